//! One sighting of a name after the other.

use super::sentence::{closed, is_line_end, is_stop, without_closers};
use super::{is_blank, is_word, pieces, word_end};
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

/// Walks a text once, from capital to capital; what stands around one tells whether it begins a word,
/// and whether the word begins a sentence. So what has no capitals costs next to nothing.
struct Names<'t, P> {
    text: &'t str,
    /// The pieces of it that are still to come.
    pieces: P,
    /// The piece that is walked, and how far.
    start: usize,
    at: usize,
    end: usize,
    /// Whether a letter or a digit stands before the piece, in the sentence in which it begins.
    begun: bool,
}

impl<'t, P: Iterator<Item = Range<usize>>> Names<'t, P> {
    fn new(text: &'t str, pieces: P) -> Names<'t, P> {
        Names { text, pieces, start: 0, at: 0, end: 0, begun: false }
    }

    /// Goes to the next piece. An address in between may end a sentence, with the stop behind it.
    fn piece(&mut self) -> Option<()> {
        let piece = self.pieces.next()?;
        let gap = self.text.get(self.end..piece.start).unwrap_or_default();
        let stops = without_closers(gap).ends_with(is_stop);
        let ends = stops && self.text.get(piece.start..)?.starts_with(is_blank);
        self.begun = self.is_begun_at(self.end) && !ends;
        (self.start, self.at, self.end) = (piece.start, piece.start, piece.end);
        Some(())
    }

    /// Whether a letter or a digit stands before `at`, in the same sentence. Marks of a list and quotes
    /// do not count.
    fn is_begun_at(&self, at: usize) -> bool {
        let before = self.text.get(self.start..at).unwrap_or_default();
        let gap = before.trim_end_matches(|letter: char| !letter.is_alphanumeric()).len();
        let from = self.start + gap;
        let ends = |(at, letter): (usize, char)| {
            is_line_end(letter)
                || (is_stop(letter) && closed(self.text, from + at + letter.len_utf8()).is_some())
        };
        let between = before.get(gap..).unwrap_or_default();
        (gap > 0 || self.begun) && !between.char_indices().any(ends)
    }

    /// The next capital of the piece, which is not passed yet.
    fn capital(&mut self) -> Option<usize> {
        while let Some(found) = first_candidate(self.text.as_bytes().get(self.at..self.end)?) {
            self.at += found;
            let letter = self.text.get(self.at..)?.chars().next()?;
            if letter.is_uppercase() {
                return Some(self.at);
            }
            self.at += letter.len_utf8();
        }
        None
    }

    /// The word in which the capital at `at` stands, of those that begin at or behind `from`.
    fn word_around(&self, from: usize, at: usize) -> Option<Range<usize>> {
        let before = self.text.get(from..at)?;
        let may_hold = |letter: char| is_word(letter) || matches!(letter, '.' | '-');
        let mut next = from + before.trim_end_matches(may_hold).len();
        while next <= at {
            let rest = self.text.get(next..)?;
            let start = next + rest.find(char::is_alphabetic)?;
            next = self.word_end(start);
            if at < next {
                return Some(start..next);
            }
        }
        None
    }

    /// Where the word that begins at `start` ends: `docker-compose.yml` is one.
    fn word_end(&self, start: usize) -> usize {
        let piece = self.text.get(..self.end).unwrap_or_default();
        let mut end = word_end(piece, start);
        let bytes = piece.as_bytes();
        let is_inner = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
        while matches!(bytes.get(end), Some(b'.' | b'-')) && is_inner(end + 1) {
            end += 2;
            while is_inner(end) {
                end += 1;
            }
        }
        end
    }
}

/// Where the first byte stands that is, or may begin, a capital.
fn first_candidate(bytes: &[u8]) -> Option<usize> {
    /// Bytes that are looked at together.
    const TOGETHER: usize = 16;
    let is_one = |byte: &u8| byte.is_ascii_uppercase() || !byte.is_ascii();
    let mut at = 0;
    while let Some(some) = bytes.get(at..).and_then(|rest| rest.first_chunk::<TOGETHER>()) {
        if some.iter().fold(false, |any, byte| any | is_one(byte)) {
            break;
        }
        at += TOGETHER;
    }
    Some(at + bytes.get(at..)?.iter().position(is_one)?)
}

impl<'t, P: Iterator<Item = Range<usize>>> Iterator for Names<'t, P> {
    type Item = Name<'t>;

    fn next(&mut self) -> Option<Name<'t>> {
        loop {
            let from = self.at;
            let Some(capital) = self.capital() else {
                self.piece()?;
                continue;
            };
            let Some(word) = self.word_around(from, capital) else {
                // A capital that is no letter begins no word.
                self.at = capital + self.text.get(capital..)?.chars().next()?.len_utf8();
                continue;
            };
            self.at = word.end;
            let text = self.text.get(word)?;
            if self.at - text.len() == capital && is_name(text) {
                let is_shaped = text.chars().skip(1).any(is_shaped);
                return Some(Name { text, is_sure: is_shaped || self.is_begun_at(capital) });
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

    /// The rule as it is told: sentence by sentence, piece by piece, word by word.
    fn word_by_word(text: &str) -> Vec<(String, bool)> {
        let word = regex::Regex::new(r"[\p{Alphabetic}--\x{300}-\x{36f}][\p{Alphabetic}\p{N}_\x{300}-\x{36f}]*(?:[.\-][A-Za-z0-9]+)*").unwrap();
        let mut found = Vec::new();
        for sentence in sentences(text).map(|range| &text[range]) {
            let clean: Vec<&str> = pieces(sentence).map(|range| &sentence[range]).collect();
            let clean = clean.join(" ");
            for word in word.find_iter(&clean) {
                let own = word.as_str();
                if own.starts_with(char::is_uppercase) && is_name(own) {
                    let is_first = !clean[..word.start()].contains(char::is_alphanumeric);
                    found.push((own.to_owned(), !is_first || own.chars().skip(1).any(is_shaped)));
                }
            }
        }
        found
    }

    proptest! {
        #[test]
        fn one_walk_finds_what_going_word_by_word_finds(
            text in "([a-z]{1,3}|[A-Z][a-z]{2,4}|[A-Z_0-9É]{1,3}|[-._')*]|[.!?] |[ \n…]|é|<EMAIL>|https?://a\\.?){0,40}"
        ) {
            let text = Gate::new(&[]).redact(&text);
            let walked: Vec<_> = names(&text).map(|name| (name.text.to_owned(), name.is_sure)).collect();
            prop_assert_eq!(walked, word_by_word(text.as_str()));
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
