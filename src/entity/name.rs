//! One sighting of a name after the other.

use super::{pieces, sentences, word_end, word_start};
use crate::privacy::Redacted;

/// The shortest name, in letters.
pub const NAME_LETTERS_MIN: usize = 3;
/// The longest name, in letters: what is longer is a digest, a key or a drawing.
pub const NAME_LETTERS_MAX: usize = 40;
/// Words with a capital that are never a name.
const NO_NAMES: [&str; 8] = ["I", "The", "This", "That", "It", "We", "You", "They"];

/// A word that looks like a name, where it stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Name<'t> {
    /// The word: `Kubernetes`, `EC2`, `Node.js`, `PostgreSQL`.
    pub text: &'t str,
    /// Whether it is one by itself: it stands inside a sentence, or has a capital or a digit inside.
    /// Otherwise it begins a sentence, and is a name if the same word is one elsewhere.
    pub is_sure: bool,
}

/// Every word of `text` that looks like a name, in order, as often as it stands there.
pub fn names(text: &Redacted) -> impl Iterator<Item = Name<'_>> {
    let text = text.as_str();
    sentences(text).filter_map(|range| text.get(range)).flat_map(in_sentence)
}

fn in_sentence(sentence: &str) -> impl Iterator<Item = Name<'_>> {
    // Whether a letter or a digit stands before; marks of a list and quotes do not count.
    let mut begun = false;
    pieces(sentence).flat_map(Capitals::new).filter_map(move |seen| match seen {
        Seen::Begun => {
            begun = true;
            None
        }
        Seen::Capital(text) => {
            let is_first = !std::mem::replace(&mut begun, true);
            let is_sure = !is_first || text.chars().skip(1).any(is_shaped);
            is_name(text).then_some(Name { text, is_sure })
        }
    })
}

fn is_shaped(letter: char) -> bool {
    letter.is_uppercase() || letter.is_numeric()
}

fn is_name(text: &str) -> bool {
    // Four bytes a letter at most.
    let short = text.len() <= NAME_LETTERS_MAX || {
        text.len() <= NAME_LETTERS_MAX * 4 && text.chars().count() <= NAME_LETTERS_MAX
    };
    short && text.chars().nth(NAME_LETTERS_MIN - 1).is_some() && !NO_NAMES.contains(&text)
}

/// What stands in a piece of a sentence.
enum Seen<'t> {
    /// A word with a capital.
    Capital(&'t str),
    /// The first thing that has a letter or a digit, if it is no such word.
    Begun,
}

/// Walks a piece from one word with a capital to the next.
struct Capitals<'t> {
    text: &'t str,
    at: usize,
    told: bool,
}

impl<'t> Capitals<'t> {
    fn new(text: &'t str) -> Capitals<'t> {
        Capitals { text, at: 0, told: false }
    }

    /// The letter at `self.at`.
    fn letter(&self) -> Option<char> {
        match self.text.as_bytes().get(self.at) {
            Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
            Some(_) => self.text.get(self.at..)?.chars().next(),
            None => None,
        }
    }

    /// Goes to the next letter or digit, and gives it.
    fn seek(&mut self) -> Option<char> {
        loop {
            self.at = word_start(self.text, self.at);
            let letter = self.letter()?;
            if letter.is_alphanumeric() {
                return Some(letter);
            }
            self.at += letter.len_utf8();
        }
    }

    /// Goes behind the word that begins here: `docker-compose.yml` is one.
    fn word(&mut self) {
        self.at = word_end(self.text, self.at);
        let bytes = self.text.as_bytes();
        let is_inner = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
        while matches!(bytes.get(self.at), Some(b'.' | b'-')) && is_inner(self.at + 1) {
            self.at += 2;
            while is_inner(self.at) {
                self.at += 1;
            }
        }
    }
}

impl<'t> Iterator for Capitals<'t> {
    type Item = Seen<'t>;

    fn next(&mut self) -> Option<Seen<'t>> {
        loop {
            let first = self.seek()?;
            let from = self.at;
            if first.is_alphabetic() {
                self.word();
            } else {
                self.at += first.len_utf8();
            }
            if first.is_uppercase() {
                self.told = true;
                return self.text.get(from..self.at).map(Seen::Capital);
            }
            if !std::mem::replace(&mut self.told, true) {
                return Some(Seen::Begun);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::Gate;
    use proptest::prelude::*;

    /// Names, those that are not sure with a `?`.
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let text = Gate::new(&[]).redact(text);
        let mark = |name: Name<'_>| format!("{}{}", name.text, if name.is_sure { "" } else { "?" });
        assert_eq!(names(&text).map(mark).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_capital_inside_a_sentence_is_a_name() {
        check("we run Docker and Kubernetes.", &["Docker", "Kubernetes"]);
        check("gestern in Ürümqi mit Ayşe", &["Ürümqi", "Ayşe"]);
    }

    #[test]
    fn a_capital_that_begins_a_sentence_is_not_sure() {
        check(
            "Ann met Bob. Today it rains.\n- Then? \"Yes\"",
            &["Ann?", "Bob", "Today?", "Then?", "Yes?"],
        );
        check("3 Redis nodes", &["Redis"]);
    }

    #[test]
    fn capitals_and_digits_inside_make_it_sure() {
        check("PostgreSQL is up. EC2 is not. AWS", &["PostgreSQL", "EC2", "AWS"]);
    }

    #[test]
    fn names_hold_stops_and_hyphens_inside() {
        check(
            "use Node.js, Docker-compose.yml and Foo-",
            &["Node.js", "Docker-compose.yml", "Foo"],
        );
    }

    #[test]
    fn short_long_and_common_words_are_no_names() {
        check("so I and The Go do it as They said", &[]);
        check(&format!("see {} there", "A".repeat(41)), &[]);
        check(&format!("see {} there", "Ä".repeat(40)), &["Ä".repeat(40).as_str()]);
    }

    #[test]
    fn placeholders_and_addresses_name_nothing() {
        check("ask <EMAIL> at https://Example.com/Readme", &[]);
        check("<EMAIL> Kubernetes", &["Kubernetes?"]);
    }

    proptest! {
        #[test]
        fn every_name_stands_in_the_text(text in "(.|[A-Z][a-z]{2,4}|[.!?] |\n){0,60}") {
            let text = Gate::new(&[]).redact(&text);
            for name in names(&text) {
                prop_assert!(text.as_str().contains(name.text) && is_name(name.text));
            }
        }
    }
}
