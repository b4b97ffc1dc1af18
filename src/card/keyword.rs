//! How often words were used.

use crate::entity::{is_word, pieces};
use std::cmp::Reverse;
use std::collections::HashMap;

/// The shortest keyword, in letters.
pub const KEYWORD_LETTERS_MIN: usize = 5;
/// The longest keyword, in letters: what is longer is a digest, a key or a drawing.
pub const KEYWORD_LETTERS_MAX: usize = 40;
/// Words that are counted; what is new beyond that is left out, so that a long text cannot take all
/// memory. No language has as many that anybody uses.
pub const KEYWORDS_MAX: usize = 262_144;

/// Words that are no keywords, and that dangle at the end of a cut. Most are too short to be a keyword
/// anyway.
const STOP_WORDS: [&str; 50] = [
    "the", "and", "for", "are", "but", "not", "you", "all", "can", "had", "her", "was", "one",
    "our", "out", "has", "have", "been", "would", "could", "should", "will", "with", "this",
    "that", "from", "they", "which", "their", "what", "there", "about", "when", "make", "like",
    "just", "over", "into", "also", "some", "than", "them", "then", "very", "after", "before",
    "being", "other", "those", "these",
];
/// The longest of them, in bytes.
const STOP_WORD_BYTES_MAX: usize = 6;

/// Whether a word, in lower case, says nothing by itself.
pub(super) fn is_stop_word(word: &str) -> bool {
    word.len() <= STOP_WORD_BYTES_MAX && STOP_WORDS.contains(&word)
}

/// Counts words over many texts.
#[derive(Debug, Default)]
pub(super) struct Keywords {
    used: HashMap<Box<str>, Use>,
    /// The word that is looked at; kept to be used again.
    word: String,
}

#[derive(Debug)]
struct Use {
    count: u64,
    /// How many words were known when it came.
    rank: usize,
}

impl Keywords {
    /// Counts the words of one more text.
    pub(super) fn read(&mut self, text: &str) {
        pieces(text).for_each(|piece| self.piece(piece));
    }

    fn piece(&mut self, piece: &str) {
        let bytes = piece.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let from = at;
            let mut plain = true;
            while let Some(length) = letter(piece, at, &mut plain) {
                at += length;
            }
            // A letter has a byte at least.
            if at - from >= KEYWORD_LETTERS_MIN
                && let Some(token) = piece.get(from..at)
                && self.take(token, plain)
            {
                self.count();
            }
            at += between(piece, at);
        }
    }

    /// Brings `token` into `self.word`, in the form in which words are counted; says whether it is a
    /// keyword.
    fn take(&mut self, token: &str, plain: bool) -> bool {
        self.word.clear();
        if plain {
            self.word.push_str(token);
            self.word.make_ascii_lowercase();
        } else {
            self.word.push_str(&folded(token));
        }
        let word = self.word.as_str();
        let letters = if word.is_ascii() { word.len() } else { word.chars().count() };
        (KEYWORD_LETTERS_MIN..=KEYWORD_LETTERS_MAX).contains(&letters)
            && word.chars().any(char::is_alphabetic)
            && !is_stop_word(word)
    }

    fn count(&mut self) {
        if let Some(known) = self.used.get_mut(self.word.as_str()) {
            known.count += 1;
        } else if self.used.len() < KEYWORDS_MAX {
            let rank = self.used.len();
            self.used.insert(self.word.as_str().into(), Use { count: 1, rank });
        }
    }

    /// The words, the most used first, of equals the one that came first.
    pub(super) fn ranked(&self) -> Vec<&str> {
        let mut all: Vec<_> = self.used.iter().collect();
        all.sort_unstable_by_key(|(_, used)| (Reverse(used.count), used.rank));
        all.into_iter().map(|(word, _)| &**word).collect()
    }
}

/// The length of the letter of a word, or the apostrophe, at `at`; none if something else stands there.
/// What is more than ASCII letters is not `plain`.
fn letter(text: &str, at: usize, plain: &mut bool) -> Option<usize> {
    let byte = *text.as_bytes().get(at)?;
    if byte.is_ascii_alphanumeric() || byte == b'_' {
        return Some(1);
    }
    if byte.is_ascii() && byte != b'\'' {
        return None;
    }
    let letter = text.get(at..)?.chars().next()?;
    *plain = false;
    (is_word(letter) || matches!(letter, '\'' | '’')).then_some(letter.len_utf8())
}

/// The length of what stands at `at` and is no letter.
fn between(text: &str, at: usize) -> usize {
    text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)
}

/// A word in lower case, without its contraction: `What's` is `what`, `don’t` is `do`. The dot that
/// lower case leaves above a Turkish `İ` is taken away: it is part of the letter.
fn folded(token: &str) -> String {
    const CONTRACTIONS: [&str; 7] = ["n't", "'s", "'re", "'ve", "'ll", "'d", "'m"];
    let token = token.replace('’', "'").to_lowercase().replace("i\u{307}", "i");
    let bare = token.trim_matches('\'');
    let stem = CONTRACTIONS.iter().find_map(|ending| bare.strip_suffix(ending));
    stem.unwrap_or(bare).replace('\'', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut keywords = Keywords::default();
        keywords.read(text);
        assert_eq!(keywords.ranked(), expected);
    }

    #[test]
    fn the_most_used_comes_first_and_of_equals_the_first() {
        check("zebra apple mango Apple, zebra: candy", &["zebra", "apple", "mango", "candy"]);
    }

    #[test]
    fn little_common_long_and_lone_numbers_are_no_keywords() {
        check("four would could their 123456 ___ 'tis", &[]);
        check(&format!("{} {}", "a".repeat(41), "ä".repeat(40)), &["ä".repeat(40).as_str()]);
        check("version12 2nd_place", &["version12", "2nd_place"]);
    }

    #[test]
    fn hyphens_part_words_and_contractions_are_stripped() {
        check("zero-downtime server's server’s 'server'", &["server", "downtime"]);
        check("shouldn't they'll o'clock", &["oclock"]);
    }

    #[test]
    fn lower_case_keeps_a_word_whole() {
        check(
            "İstanbul istanbul ÜBERMUT re\u{301}sume\u{301}",
            &["istanbul", "übermut", "re\u{301}sume\u{301}"],
        );
    }

    #[test]
    fn placeholders_and_addresses_are_no_words() {
        check("write <CREDIT_CARD> https://example.com/readme please", &["write", "please"]);
    }
}
