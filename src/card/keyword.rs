//! How often words were used.

use crate::entity::{pieces, word_end, word_start};
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

/// What stands inside a contraction.
const APOSTROPHES: [char; 2] = ['\'', '’'];

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
    /// Whether it says something by itself.
    is_kept: bool,
}

impl Keywords {
    /// Counts the words of one more text.
    pub(super) fn read(&mut self, text: &str) {
        pieces(text).filter_map(|piece| text.get(piece)).for_each(|piece| self.piece(piece));
    }

    fn piece(&mut self, piece: &str) {
        let mut at = word_start(piece, 0);
        while at < piece.len() {
            let from = at;
            at = token_end(piece, from);
            // A letter has a byte at least.
            if at - from >= KEYWORD_LETTERS_MIN
                && let Some(token) = piece.get(from..at)
                && self.take(token)
            {
                self.count();
            }
            at = word_start(piece, at);
        }
    }

    /// Brings `token` into `self.word`, in the form in which words are counted; says whether it is long
    /// enough, and not too long, and has a letter.
    fn take(&mut self, token: &str) -> bool {
        self.word.clear();
        let is_plain = token.bytes().all(|byte| byte.is_ascii() && byte != b'\'');
        if is_plain {
            self.word.push_str(token);
            self.word.make_ascii_lowercase();
        } else {
            self.word.push_str(&folded(token));
        }
        let word = self.word.as_str();
        let letters = if is_plain { word.len() } else { word.chars().count() };
        (KEYWORD_LETTERS_MIN..=KEYWORD_LETTERS_MAX).contains(&letters)
            && word.chars().any(char::is_alphabetic)
    }

    fn count(&mut self) {
        if let Some(known) = self.used.get_mut(self.word.as_str()) {
            known.count += 1;
        } else if self.used.len() < KEYWORDS_MAX {
            // Asked of new words alone: it is as dear as finding one that is known.
            let is_kept = !is_stop_word(&self.word);
            let rank = self.used.len();
            self.used.insert(self.word.as_str().into(), Use { count: 1, rank, is_kept });
        }
    }

    /// The words, the most used first, of equals the one that came first.
    pub(super) fn ranked(&self) -> Vec<&str> {
        let mut all: Vec<_> = self.used.iter().filter(|(_, used)| used.is_kept).collect();
        all.sort_unstable_by_key(|(_, used)| (Reverse(used.count), used.rank));
        all.into_iter().map(|(word, _)| &**word).collect()
    }
}

/// Where the run of letters and apostrophes ends in which a word begins at `from`.
fn token_end(text: &str, from: usize) -> usize {
    let mut at = word_end(text, from);
    while let Some(rest) = text.get(at..).filter(|rest| rest.starts_with(APOSTROPHES)) {
        at += rest.chars().next().map_or(0, char::len_utf8);
        at = word_end(text, at);
    }
    at
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
