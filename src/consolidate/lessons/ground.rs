//! Whether a lesson is in the words of its records: most of its words, every word that names a thing exactly, every
//! name, and a no only where a record says no.

use super::super::marker::{exact_words, says_no};
use super::super::subject::{keys, sort};
use crate::domain::{Claim, Record, Timestamp};
use crate::entity::names;
use crate::privacy::Redacted;
use crate::words::folded;
use std::collections::BTreeSet;

/// The share of a lesson's words that stand in its records, in percent: the others join them to a sentence.
const WORDS_PERCENT_MIN: usize = 50;
/// So many of them, however short the lesson is: one word in common proves nothing.
const WORDS_MIN: usize = 2;

/// The words of one record.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    words: BTreeSet<u64>,
    exact: BTreeSet<u64>,
    /// Whether it says no to something, or failed.
    denies: bool,
}

impl Ground {
    /// What `record` says, as it was shown: its claim and its day.
    pub(super) fn of(record: &Record, claim: &Claim) -> Ground {
        let mut texts: Vec<&str> = claim.strings().into_iter().map(|(_, text)| text).collect();
        let day = record.provenance.at.map(Timestamp::day);
        texts.extend(day.as_deref());
        let flat = folded(&texts.join("\n"));
        let failed = matches!(claim, Claim::Attempt(attempt) if !attempt.succeeded);
        Ground {
            words: keys(&flat).into_iter().collect(),
            exact: exact_words(&flat).collect(),
            denies: failed || says_no(&flat),
        }
    }

    /// Whether it shares a word with a lesson.
    pub(super) fn touches(&self, lesson: &Redacted) -> bool {
        keys(&folded(lesson.as_str())).iter().any(|key| self.words.contains(key))
    }
}

/// Why `lesson` does not rest on these records; none if it does.
pub(super) fn unproven(lesson: &Redacted, grounds: &[&Ground]) -> Option<&'static str> {
    let flat = folded(lesson.as_str());
    let mut said = keys(&flat);
    sort(&mut said);
    let is_there = |key: &u64| grounds.iter().any(|ground| ground.words.contains(key));
    let there = said.iter().filter(|key| is_there(key)).count();
    if there < WORDS_MIN || there * 100 < said.len() * WORDS_PERCENT_MIN {
        return Some("fewer than half of its words stand in the records that it names");
    }
    if exact_words(&flat).any(|word| !grounds.iter().any(|ground| ground.exact.contains(&word))) {
        return Some("a number, path or identifier that none of its records has");
    }
    let invented = |name: &str| keys(&folded(name)).iter().any(|key| !is_there(key));
    if names(lesson).any(|name| name.is_sure && invented(name.text)) {
        return Some("a name that none of its records has");
    }
    if says_no(&flat) && !grounds.iter().any(|ground| ground.denies) {
        return Some("a no where none of its records says no");
    }
    None
}
