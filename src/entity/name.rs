//! One sighting of a name after the other.

use super::sentence::{closed, is_line_end, is_stop, without_closers};
use super::{is_blank, pieces, word_end};
use crate::privacy::Redacted;
use std::ops::Range;

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
    Names::new(text.as_str(), pieces(text.as_str()))
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

/// Walks a text once, from word to word, and knows which of them begin a sentence.
struct Names<'t, P> {
    text: &'t str,
    /// The pieces of it that are still to come.
    pieces: P,
    /// What is left of the piece that is walked.
    at: usize,
    end: usize,
    /// Whether a letter or a digit stands before, in this sentence; marks of a list and quotes do not
    /// count.
    begun: bool,
}

impl<'t, P: Iterator<Item = Range<usize>>> Names<'t, P> {
    fn new(text: &'t str, pieces: P) -> Names<'t, P> {
        Names { text, pieces, at: 0, end: 0, begun: false }
    }

    /// Goes to the next piece. An address in between may end a sentence, with the stop behind it.
    fn piece(&mut self) -> Option<()> {
        let piece = self.pieces.next()?;
        let gap = self.text.get(self.end..piece.start).unwrap_or_default();
        let stops = without_closers(gap).ends_with(is_stop);
        if stops && self.text.get(piece.start..).is_some_and(|rest| rest.starts_with(is_blank)) {
            self.begun = false;
        }
        (self.at, self.end) = (piece.start, piece.end);
        Some(())
    }

    /// The letter here.
    fn letter(&self) -> Option<char> {
        match self.text.as_bytes().get(self.at) {
            Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
            Some(_) => self.text.get(self.at..)?.chars().next(),
            None => None,
        }
    }

    /// Goes to the next letter or digit of the piece, past the ends of sentences; none if there is no
    /// more.
    fn seek(&mut self) -> Option<char> {
        while self.at < self.end {
            let letter = self.letter()?;
            if letter.is_alphanumeric() {
                return Some(letter);
            }
            self.at += letter.len_utf8();
            if is_line_end(letter) || (is_stop(letter) && closed(self.text, self.at).is_some()) {
                self.begun = false;
            }
        }
        None
    }

    /// Goes behind the word that begins here: `docker-compose.yml` is one.
    fn word(&mut self) {
        let piece = self.text.get(..self.end).unwrap_or_default();
        self.at = word_end(piece, self.at);
        let bytes = piece.as_bytes();
        let is_inner = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
        while matches!(bytes.get(self.at), Some(b'.' | b'-')) && is_inner(self.at + 1) {
            self.at += 2;
            while is_inner(self.at) {
                self.at += 1;
            }
        }
    }
}

impl<'t, P: Iterator<Item = Range<usize>>> Iterator for Names<'t, P> {
    type Item = Name<'t>;

    fn next(&mut self) -> Option<Name<'t>> {
        loop {
            let Some(first) = self.seek() else {
                self.piece()?;
                continue;
            };
            let from = self.at;
            if !first.is_alphabetic() {
                self.at += first.len_utf8();
                self.begun = true;
                continue;
            }
            self.word();
            let is_first = !std::mem::replace(&mut self.begun, true);
            let Some(text) = self.text.get(from..self.at) else { continue };
            if first.is_uppercase() && is_name(text) {
                let is_sure = !is_first || text.chars().skip(1).any(is_shaped);
                return Some(Name { text, is_sure });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sentences;
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
        check("see (https://a.example/b.) Then <EMAIL>. Yes", &["Then?", "Yes?"]);
        check("see https://a.example/b Redis", &["Redis"]);
    }

    proptest! {
        #[test]
        fn what_is_not_sure_begins_a_sentence(text in "(.|[A-Z][a-z]{2,4}|[.!?] |\n|<EMAIL>|https?://a\\.?){0,60}") {
            let text = Gate::new(&[]).redact(&text);
            let unsure = names(&text).filter(|name| !name.is_sure).count();
            let begins = |range: Range<usize>| {
                let sentence = &text.as_str()[range];
                let words = pieces(sentence).map(|range| &sentence[range]).collect::<Vec<_>>().join(" ");
                words.trim_start_matches(|c: char| !c.is_alphanumeric()).starts_with(char::is_uppercase)
            };
            prop_assert!(unsure <= sentences(text.as_str()).filter(|range| begins(range.clone())).count());
        }

        #[test]
        fn every_name_stands_in_the_text(text in "(.|[A-Z][a-z]{2,4}|[.!?] |\n){0,60}") {
            let text = Gate::new(&[]).redact(&text);
            for name in names(&text) {
                prop_assert!(text.as_str().contains(name.text) && is_name(name.text));
            }
        }
    }
}
