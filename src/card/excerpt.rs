//! Finds the sentence from which on a message is a decision, something to do, or a quote.

use crate::entity::{is_blank, is_word, sentences};
use aho_corasick::{AhoCorasick, MatchKind};
use std::sync::LazyLock;

/// What a message is kept for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// It decides.
    Decision,
    /// It says what to do.
    Todo,
    /// It asks or exclaims.
    Quote,
}

impl Kind {
    /// How many there are.
    pub(super) const COUNT: usize = 3;

    /// Its place among them.
    pub(super) fn place(self) -> usize {
        match self {
            Kind::Decision => 0,
            Kind::Todo => 1,
            Kind::Quote => 2,
        }
    }
}

/// What decides and what is to be done, in lower case; for an apostrophe any may stand, for a blank any
/// number of them.
const PHRASES: [(Kind, &str); 18] = [
    (Kind::Decision, "decided"),
    (Kind::Decision, "decision"),
    (Kind::Decision, "will use"),
    (Kind::Decision, "chosen"),
    (Kind::Decision, "selected"),
    (Kind::Decision, "going with"),
    (Kind::Decision, "opted for"),
    (Kind::Decision, "settled on"),
    // "We'll go with ECS" is the usual way to say it.
    (Kind::Decision, "go with"),
    (Kind::Decision, "went with"),
    (Kind::Todo, "todo"),
    (Kind::Todo, "need to"),
    (Kind::Todo, "should"),
    (Kind::Todo, "must"),
    (Kind::Todo, "will need"),
    (Kind::Todo, "remember to"),
    (Kind::Todo, "don't forget"),
    (Kind::Todo, "make sure to"),
];
/// What may follow a phrase and belong to it: `decisions`, `shouldn't`.
const ENDINGS: [&str; 3] = ["", "s", "n't"];
/// What asks or exclaims.
const MARKS: [char; 4] = ['?', '!', '？', '！'];
/// What may stand between the end of a sentence and the blank behind it.
const CLOSERS: [char; 6] = ['"', '\'', '”', '’', ')', ']'];

/// Where a phrase may begin: its first letters, up to a blank or an apostrophe.
fn beginning(phrase: &str) -> &str {
    phrase.split([' ', '\'']).next().unwrap_or(phrase)
}

/// Finds beginnings of phrases, then marks; none only if they were no patterns.
static BEGINNINGS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let beginnings = PHRASES.iter().map(|(_, phrase)| beginning(phrase));
    let marks = MARKS.map(String::from);
    let patterns = beginnings.map(str::to_owned).chain(marks);
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .build(patterns)
        .ok()
});

/// Hands over where the first sentence begins that makes `text` a message of a kind, once for each
/// kind for which `wanted` says so.
pub(super) fn find(text: &str, mut wanted: [bool; Kind::COUNT], mut each: impl FnMut(Kind, usize)) {
    let Some(beginnings) = &*BEGINNINGS else { return };
    let mut sentences = sentences(text);
    let mut sentence = 0..0;
    // Marks up to here were looked at.
    let mut looked_to = 0;
    for hit in beginnings.find_iter(text) {
        if !wanted.contains(&true) {
            return;
        }
        while sentence.end <= hit.start() {
            let Some(next) = sentences.next() else { return };
            sentence = next;
        }
        let kind = match is_mark(text, hit.start()) {
            true if hit.start() < looked_to => None,
            true => {
                let marks = marks_at(text, hit.start());
                looked_to = hit.start() + marks;
                stands_free(text, looked_to).then_some(Kind::Quote)
            }
            false => text.get(sentence.clone()).and_then(|words| {
                phrase(words, hit.start() - sentence.start).filter(|_| !is_question(words))
            }),
        };
        if let Some(kind) = kind
            && wanted.get_mut(kind.place()).is_some_and(std::mem::take)
        {
            each(kind, sentence.start);
        }
    }
}

/// The kind of the phrase that stands at `at` in a sentence as words of their own.
fn phrase(sentence: &str, at: usize) -> Option<Kind> {
    let (before, here) = (sentence.get(..at)?, sentence.get(at..)?);
    if before.chars().next_back().is_some_and(is_word) {
        return None;
    }
    let stands = |(_, phrase): &&(Kind, &str)| {
        behind(here, phrase).is_some_and(|rest| {
            ENDINGS
                .iter()
                .filter_map(|ending| behind(rest, ending))
                .any(|rest| !rest.starts_with(is_word))
        })
    };
    PHRASES.iter().find(stands).map(|(kind, _)| *kind)
}

/// What follows `words` in `text`, if it begins with them.
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

fn is_mark(text: &str, at: usize) -> bool {
    text.get(at..).is_some_and(|rest| rest.starts_with(MARKS))
}

/// The length of the run of marks at `at`.
fn marks_at(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    rest.len() - rest.trim_start_matches(MARKS).len()
}

/// Whether words end at `at`: `?q=1` and `!=` are no question and no exclamation.
fn stands_free(text: &str, at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    let rest = rest.trim_start_matches(|c| CLOSERS.contains(&c) || matches!(c, '*' | '_'));
    rest.is_empty() || rest.starts_with(is_blank)
}

/// Whether a sentence asks something.
fn is_question(sentence: &str) -> bool {
    without_closers(sentence).ends_with(['?', '？'])
}

/// A sentence without the quotes and brackets that close behind it.
pub(super) fn without_closers(sentence: &str) -> &str {
    sentence.trim_end_matches(CLOSERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found: the kind, and the beginning of the sentence.
    #[track_caller]
    fn check(text: &str, expected: &[(Kind, &str)]) {
        let mut found = Vec::new();
        find(text, [true; Kind::COUNT], |kind, at| found.push((kind, at)));
        let expected: Vec<_> =
            expected.iter().map(|(kind, from)| (*kind, text.find(from).unwrap())).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn the_first_sentence_of_each_kind_counts() {
        check(
            "It rains. We decided so. You must go! Decided. Really?",
            &[(Kind::Decision, "We"), (Kind::Todo, "You"), (Kind::Quote, "You")],
        );
    }

    #[test]
    fn phrases_are_whole_words() {
        for text in [
            "undecided",
            "preselected",
            "shoulder",
            "mustard",
            "needed to",
            "chosenly",
            "go without",
        ] {
            check(text, &[]);
        }
        check("two decisions", &[(Kind::Decision, "two")]);
        check("it SHOULDN\u{2019}T (musts)", &[(Kind::Todo, "it")]);
        check("TODO: x", &[(Kind::Todo, "TODO")]);
    }

    #[test]
    fn phrases_have_any_apostrophe_and_any_blanks_on_their_line() {
        check("don\u{2019}t  forget", &[(Kind::Todo, "don")]);
        check("need \t to", &[(Kind::Todo, "need")]);
        check("we need\nto go", &[]);
        check("We'll go with ECS", &[(Kind::Decision, "We")]);
    }

    #[test]
    fn a_question_decides_nothing() {
        check(
            "Should we? (Is it decided?) I must.",
            &[(Kind::Quote, "Should"), (Kind::Todo, "I must")],
        );
    }

    #[test]
    fn marks_inside_words_ask_nothing() {
        for text in ["a/?q=1", "a != b", "!important", "?!x", "[?](a)"] {
            check(text, &[]);
        }
        check("so!", &[(Kind::Quote, "so")]);
        check("**Why?** ok", &[(Kind::Quote, "**")]);
        check("他说？ ok", &[(Kind::Quote, "他")]);
    }
}
