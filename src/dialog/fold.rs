//! Texts folded for comparing with words of ours: lower case, and Latin letters without their marks,
//! as people type them. All four i of Turkish become one, so `İPTAL`, `IPTAL` and `ıptal` meet.

/// The text folded.
pub(super) fn fold(text: &str) -> String {
    let lower = text.chars().flat_map(char::to_lowercase);
    lower.filter_map(bare).collect()
}

/// The folded words of a text with one blank between them.
pub(super) fn words(text: &str) -> String {
    let folded = fold(text);
    let words = folded.split(|letter: char| !letter.is_alphanumeric()).filter(|it| !it.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// A letter in lower case without its mark; none for a mark alone, such as the dot that lowering an
/// `İ` leaves behind.
fn bare(letter: char) -> Option<char> {
    match letter {
        '\u{300}'..='\u{36f}' => None,
        'ı' | 'î' => Some('i'),
        'ş' => Some('s'),
        'ç' => Some('c'),
        'ğ' => Some('g'),
        'ö' => Some('o'),
        'ü' | 'û' => Some('u'),
        'â' => Some('a'),
        _ => Some(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(words(text), expected);
    }

    #[test]
    fn spellings_of_a_word_meet() {
        for text in ["İptal", "IPTAL", "ıptal", "iptal", "I\u{307}PTAL", "i\u{307}ptal"] {
            check(text, "iptal");
        }
        for text in ["teşekkürler", "TEŞEKKÜRLER", "tesekkurler", "tes\u{327}ekku\u{308}rler"] {
            check(text, "tesekkurler");
        }
        check("Günaydın! Nasılsın?", "gunaydin nasilsin");
        check("What's up :)", "what s up");
        check("…", "");
    }

    proptest! {
        #[test]
        fn folding_twice_changes_nothing(text in any::<String>()) {
            prop_assert_eq!(fold(&fold(&text)), fold(&text));
        }
    }
}
