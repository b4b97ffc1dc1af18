//! Words as they are compared: lower case, light suffixes off, one by one in scripts without blanks.

/// The longest word that is compared, in bytes; longer runs are digests and base64.
const WORD_BYTES_MAX: usize = 64;

/// Words that say nothing about what a text is about. English, since claims are mostly written in
/// it; words of other languages are weighed by how rare they are.
const STOP: &[&str] = &[
    "a", "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "because",
    "been", "before", "but", "by", "can", "could", "did", "do", "does", "each", "for", "from",
    "had", "has", "have", "he", "her", "his", "how", "i", "if", "in", "instead", "into", "is",
    "it", "its", "just", "let", "may", "more", "most", "no", "not", "now", "of", "on", "one",
    "only", "or", "other", "our", "out", "over", "per", "same", "she", "should", "so", "some",
    "such", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this",
    "those", "to", "too", "under", "up", "us", "use", "used", "user", "using", "via", "was", "we",
    "were", "what", "when", "where", "which", "while", "who", "will", "with", "without", "would",
    "you", "your",
];

/// A word of a text: its key for comparing and its bytes in the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Word {
    /// Hash of the folded word.
    pub(super) key: u64,
    /// Where it begins.
    pub(super) start: usize,
    /// Where it ends.
    pub(super) end: usize,
}

/// Calls `each` with every word of `text`, stop words left out.
pub(super) fn words(text: &str, mut each: impl FnMut(Word)) {
    let mut folded = String::new();
    let mut rest = text.char_indices().peekable();
    while let Some((start, letter)) = rest.next() {
        if !is_word(letter) {
            continue;
        }
        let mut end = start + letter.len_utf8();
        if !stands_alone(letter) {
            while let Some((at, next)) = rest.next_if(|(_, next)| continues(*next)) {
                end = at + next.len_utf8();
            }
        }
        if end - start <= WORD_BYTES_MAX
            && let Some(key) = key_of(&text[start..end], &mut folded)
        {
            each(Word { key, start, end });
        }
    }
}

/// Whether `word` is one of the stop words; `word` must be in lower case.
pub(super) fn is_stop(word: &str) -> bool {
    STOP.binary_search(&word).is_ok()
}

fn key_of(word: &str, folded: &mut String) -> Option<u64> {
    folded.clear();
    if word.is_ascii() {
        folded.push_str(word);
        folded.make_ascii_lowercase();
    } else {
        // U+0307 is what lowering a dotted capital I leaves behind.
        let lower = word.chars().flat_map(char::to_lowercase);
        folded.extend(lower.filter(|letter| *letter != '\u{307}'));
    }
    let single = folded.len() == 1 && !folded.as_bytes()[0].is_ascii_digit();
    (!single && !is_stop(folded)).then(|| hash(stem(folded)))
}

/// Cuts the endings that a paraphrase changes most: `caches`, `caching`, `cached` meet in `cach`.
fn stem(word: &str) -> &str {
    /// Shorter stems would make strangers meet.
    const STEM_BYTES_MIN: usize = 4;
    const ENDINGS: [&str; 8] = ["ations", "ation", "ings", "ing", "ies", "ed", "es", "s"];
    if !word.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return word;
    }
    let cut = ENDINGS.iter().find_map(|ending| word.strip_suffix(ending));
    let stem = cut.filter(|stem| stem.len() >= STEM_BYTES_MIN).unwrap_or(word);
    let bare = stem.strip_suffix('e').filter(|bare| bare.len() >= STEM_BYTES_MIN);
    bare.unwrap_or(stem)
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric()
}

fn continues(letter: char) -> bool {
    is_word(letter) && !stands_alone(letter)
}

/// Scripts written without blanks: each character is a word.
fn stands_alone(letter: char) -> bool {
    matches!(u32::from(letter),
        0x0E00..=0x0EFF | 0x1100..=0x11FF | 0x2E80..=0x9FFF | 0xAC00..=0xD7FF | 0xF900..=0xFAFF
        | 0x20000..=0x3FFFF)
}

/// FNV-1a: short keys, no adversary.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn same(one: &str, other: &str, expected: bool) {
        let keys = |text| {
            let mut keys = Vec::new();
            words(text, |word| keys.push(word.key));
            keys
        };
        assert_eq!(keys(one) == keys(other), expected, "{one} / {other}");
    }

    #[test]
    fn endings_and_case_do_not_part_words() {
        same("Caching", "caches", true);
        same("the tests failed", "test fail", true);
        same("İstanbul", "istanbul", true);
        same("port", "post", false);
        same("HTTP2", "HTTP1", false);
    }

    #[test]
    fn stop_words_are_sorted_for_the_search() {
        assert!(STOP.is_sorted());
    }
}
