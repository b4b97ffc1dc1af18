//! Finds decisions, tasks and quotes in a message, and counts its words.

use crate::text::names::{CLOSERS, is_blank, is_word, pieces, sentences, word_end, word_start};
use aho_corasick::{AhoCorasick, MatchKind};
use foldhash::{HashMap, HashSet};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::LazyLock;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ExcerptKind {
    Decision,
    Todo,
    Quote,
}

/// Number of kinds; a kind is the index of what was found of it.
pub(super) const KINDS: usize = 3;

/// Lower-case phrases of decisions and tasks; an apostrophe matches any apostrophe, a space any run of blanks.
const PHRASES: [(ExcerptKind, &str); 2] = [
    // "We'll go with ECS" is the usual way to say it.
    (
        ExcerptKind::Decision,
        "decided, decision, will use, chosen, selected, going with, opted for, settled on, go with, \
         went with",
    ),
    (
        ExcerptKind::Todo,
        "todo, need to, should, must, will need, remember to, don't forget, make sure to",
    ),
];
/// Suffixes that may follow a phrase: `decisions`, `shouldn't`.
const ENDINGS: [&str; 3] = ["", "s", "n't"];
const MARKS: [char; 4] = ['?', '!', '？', '！'];

fn phrases() -> impl Iterator<Item = (ExcerptKind, &'static str)> {
    PHRASES.iter().flat_map(|(kind, list)| list.split(", ").map(|phrase| (*kind, phrase)))
}

/// First letters of a phrase, up to a blank or an apostrophe.
fn beginning(phrase: &str) -> &str {
    phrase.split([' ', '\'']).next().unwrap_or(phrase)
}

/// Matches the beginnings of phrases, and marks; `None` only if the patterns are invalid.
static BEGINNINGS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let beginnings = phrases().map(|(_, phrase)| beginning(phrase));
    let marks = MARKS.map(String::from);
    let patterns = beginnings.map(str::to_owned).chain(marks);
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .build(patterns)
        .ok()
});

/// Calls `each` with the start of the first sentence of each `wanted` kind.
pub(super) fn find(
    text: &str,
    mut wanted: [bool; KINDS],
    mut each: impl FnMut(ExcerptKind, usize),
) {
    let Some(beginnings) = &*BEGINNINGS else { return };
    let mut sentences = sentences(text);
    let mut sentence = 0..0;
    // End of the marks that were already examined.
    let mut looked_to = 0;
    for hit in beginnings.find_iter(text) {
        if !wanted.contains(&true) {
            return;
        }
        while sentence.end <= hit.start() {
            let Some(next) = sentences.next() else { return };
            sentence = next;
        }
        let kind = match marks_at(text, hit.start()) {
            0 => text.get(sentence.clone()).and_then(|words| {
                phrase(words, hit.start() - sentence.start).filter(|_| !is_question(words))
            }),
            _ if hit.start() < looked_to => None,
            marks => {
                looked_to = hit.start() + marks;
                stands_free(text, looked_to).then_some(ExcerptKind::Quote)
            }
        };
        if let Some(kind) = kind
            && wanted.get_mut(kind as usize).is_some_and(std::mem::take)
        {
            each(kind, sentence.start);
        }
    }
}

/// Kind of the phrase at `at` in a sentence, if it consists of whole words.
fn phrase(sentence: &str, at: usize) -> Option<ExcerptKind> {
    let (before, here) = (sentence.get(..at)?, sentence.get(at..)?);
    if before.chars().next_back().is_some_and(is_word) {
        return None;
    }
    let is_word_end = |rest: &str| !rest.starts_with(is_word);
    let stands = |(_, phrase): &(ExcerptKind, &str)| {
        let rest = behind(here, phrase);
        rest.is_some_and(|rest| {
            ENDINGS.iter().filter_map(|ending| behind(rest, ending)).any(is_word_end)
        })
    };
    phrases().find(stands).map(|(kind, _)| kind)
}

/// Rest of `text` after `words`, if it starts with them.
fn behind<'t>(text: &'t str, words: &str) -> Option<&'t str> {
    let mut rest = text;
    for letter in words.chars() {
        rest = match letter {
            ' ' => {
                let more = rest.trim_start_matches(is_blank);
                (more.len() < rest.len()).then_some(more)?
            }
            '\'' => rest.strip_prefix(['\'', '’', '‘'])?,
            letter => rest.strip_prefix(|own: char| own.eq_ignore_ascii_case(&letter))?,
        };
    }
    Some(rest)
}

/// Length of the marks at `at`.
fn marks_at(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    rest.len() - rest.trim_start_matches(MARKS).len()
}

/// Returns whether a word ends at `at`: `?q=1` and `!=` are not a question or an exclamation.
fn stands_free(text: &str, at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    let rest = rest.trim_start_matches(|c| CLOSERS.contains(&c) || matches!(c, '*' | '_'));
    rest.is_empty() || rest.starts_with(is_blank)
}

fn is_question(sentence: &str) -> bool {
    sentence.trim_end_matches(CLOSERS).ends_with(['?', '？'])
}

/// Minimum length of a keyword, in characters.
pub(crate) const KEYWORD_LETTERS_MIN: usize = 5;
/// Maximum length of a keyword, in characters: a longer one is a digest, a key or a drawing.
pub(crate) const KEYWORD_LETTERS_MAX: usize = 40;
/// Maximum number of distinct words that are counted, which bounds memory. No language has as many in use.
pub(crate) const KEYWORDS_MAX: usize = 262_144;

/// Words that are not keywords, and are dropped at a cut. Most are too short for a keyword anyway.
const STOP_WORDS: [&str; 50] = [
    "the", "and", "for", "are", "but", "not", "you", "all", "can", "had", "her", "was", "one",
    "our", "out", "has", "have", "been", "would", "could", "should", "will", "with", "this",
    "that", "from", "they", "which", "their", "what", "there", "about", "when", "make", "like",
    "just", "over", "into", "also", "some", "than", "them", "then", "very", "after", "before",
    "being", "other", "those", "these",
];

const APOSTROPHES: [char; 2] = ['\'', '’'];

pub(super) fn is_stop_word(word: &str) -> bool {
    static WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| STOP_WORDS.into_iter().collect());
    WORDS.contains(word)
}

#[derive(Debug, Default)]
pub(super) struct Keywords {
    /// Count and rank of each word; the rank is the number of words known when it was added.
    used: HashMap<Box<str>, (u64, usize)>,
}

impl Keywords {
    pub(super) fn read(&mut self, text: &str) {
        for piece in pieces(text).filter_map(|piece| text.get(piece)) {
            let mut at = word_start(piece, 0);
            while at < piece.len() {
                let end = token_end(piece, at);
                let token = piece.get(at..end).unwrap_or_default();
                // Folding makes no word longer, so a short token can be skipped before it.
                if KEYWORD_LETTERS_MIN <= token.len() {
                    self.count(&folded(token));
                }
                at = word_start(piece, end);
            }
        }
    }

    fn count(&mut self, word: &str) {
        let letters = word.chars().count();
        let fits = (KEYWORD_LETTERS_MIN..=KEYWORD_LETTERS_MAX).contains(&letters);
        if !fits || is_stop_word(word) || !word.chars().any(char::is_alphabetic) {
            return;
        }
        let rank = self.used.len();
        if let Some((count, _)) = self.used.get_mut(word) {
            *count += 1;
        } else if rank < KEYWORDS_MAX {
            self.used.insert(word.into(), (1, rank));
        }
    }

    /// Words by descending count, then by first occurrence.
    pub(super) fn ranked(&self) -> Vec<&str> {
        let mut all: Vec<_> = self.used.iter().collect();
        all.sort_unstable_by_key(|(_, (count, rank))| (Reverse(*count), *rank));
        all.into_iter().map(|(word, _)| &**word).collect()
    }
}

/// End of the run of letters and apostrophes that starts at `from`.
fn token_end(text: &str, from: usize) -> usize {
    let mut at = word_end(text, from);
    while let Some(rest) = text.get(at..).filter(|rest| rest.starts_with(APOSTROPHES)) {
        at += rest.chars().next().map_or(0, char::len_utf8);
        at = word_end(text, at);
    }
    at
}

/// A lower-case word without its contraction: `What's` is `what`, `don’t` is `do`. Removes the combining dot that
/// lower-casing a Turkish `İ` leaves.
fn folded(token: &str) -> Cow<'_, str> {
    const CONTRACTIONS: [&str; 7] = ["n't", "'s", "'re", "'ve", "'ll", "'d", "'m"];
    if token.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Cow::Borrowed(token);
    }
    if token.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Cow::Owned(token.to_ascii_lowercase());
    }
    let token = token.replace('’', "'").to_lowercase().replace("i\u{307}", "i");
    let bare = token.trim_matches('\'');
    let stem = CONTRACTIONS.iter().find_map(|ending| bare.strip_suffix(ending));
    Cow::Owned(stem.unwrap_or(bare).replace('\'', ""))
}

#[cfg(test)]
mod tests {
    mod excerpt {
        use super::super::*;

        /// Checks kinds and sentence starts.
        #[track_caller]
        fn check(text: &str, expected: &[(ExcerptKind, &str)]) {
            let mut found = Vec::new();
            find(text, [true; KINDS], |kind, at| found.push((kind, at)));
            let expected: Vec<_> =
                expected.iter().map(|(kind, from)| (*kind, text.find(from).unwrap())).collect();
            assert_eq!(found, expected, "{text}");
        }

        #[test]
        fn the_first_sentence_of_each_kind_counts() {
            check(
                "It rains. We decided so. You must go! Decided. Really?",
                &[
                    (ExcerptKind::Decision, "We"),
                    (ExcerptKind::Todo, "You"),
                    (ExcerptKind::Quote, "You"),
                ],
            );
        }

        #[test]
        fn phrases_are_whole_words() {
            for text in [
                "undecided", "preselected", "shoulder", "mustard", "needed to", "chosenly",
                "go without",
            ] {
                check(text, &[]);
            }
            check("two decisions", &[(ExcerptKind::Decision, "two")]);
            check("it SHOULDN\u{2019}T (musts)", &[(ExcerptKind::Todo, "it")]);
            check("TODO: x", &[(ExcerptKind::Todo, "TODO")]);
        }

        #[test]
        fn phrases_have_any_apostrophe_and_any_blanks_on_their_line() {
            check("don\u{2019}t  forget", &[(ExcerptKind::Todo, "don")]);
            check("need \t to", &[(ExcerptKind::Todo, "need")]);
            check("we need\nto go", &[]);
            check("We'll go with ECS", &[(ExcerptKind::Decision, "We")]);
        }

        #[test]
        fn a_question_decides_nothing() {
            check(
                "Should we? (Is it decided?) I must.",
                &[(ExcerptKind::Quote, "Should"), (ExcerptKind::Todo, "I must")],
            );
        }

        #[test]
        fn marks_inside_words_ask_nothing() {
            for text in ["a/?q=1", "a != b", "!important", "?!x", "[?](a)"] {
                check(text, &[]);
            }
            check("so!", &[(ExcerptKind::Quote, "so")]);
            check("**Why?** ok", &[(ExcerptKind::Quote, "**")]);
            check("他说？ ok", &[(ExcerptKind::Quote, "他")]);
        }
    }

    mod keyword {
        use super::super::*;

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
}
