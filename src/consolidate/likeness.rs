//! How much two subjects have in common.

use super::subject::{Subject, keys, shared};
use crate::words::hash;
use std::sync::LazyLock;

/// The least share of words in common with which one statement repeats another that says a word more.
const NEAR_WORDS: f64 = 0.8;
/// The least share of neighbouring words in common: order makes meaning.
const NEAR_PAIRS: f64 = 0.5;
/// Alternatives that stand in decisions about anything.
const GENERIC: &[&str] = &[
    "yes",
    "no",
    "on",
    "off",
    "true",
    "false",
    "keep",
    "remove",
    "now",
    "later",
    "both",
    "none",
    "a",
    "b",
    "c",
    "option a",
    "option b",
    "option 1",
    "option 2",
    "enable",
    "disable",
    "ja",
    "nein",
    "evet",
    "hayır",
    "sí",
    "si",
    "oui",
    "non",
    "はい",
    "いいえ",
    "accept",
    "reject",
    "approve",
    "wait",
];

static GENERIC_WORDS: LazyLock<Vec<u64>> =
    LazyLock::new(|| GENERIC.iter().flat_map(|word| keys(word)).collect());

/// Whether `words` of an alternative are such as stand in decisions about anything.
pub(super) fn is_generic(words: &[u64]) -> bool {
    words.iter().all(|word| GENERIC_WORDS.contains(word))
}

/// Two subjects compared.
#[derive(Clone, Debug)]
pub(super) struct Likeness {
    /// Words in common, as a share of all words of both.
    pub(super) words: f64,
    pairs: f64,
    /// Whether the record says no word that the memory does not.
    within: bool,
    /// Whether the memory says no word that the record does not.
    around: bool,
    hard: bool,
    /// Whether there are words in common at all, and exact ones.
    common: bool,
    hard_any: bool,
    rationale: usize,
    generic: usize,
    more: bool,
}

impl Likeness {
    pub(super) fn of(new: &Subject, old: &Subject) -> Likeness {
        let common = shared(&new.words, &old.words);
        let options = |subject: &Subject| {
            let mut all = subject.named.concat();
            all.sort_unstable();
            all
        };
        let (options, others) = (options(new), options(old));
        let matter =
            |key: &&u64| options.binary_search(key).is_err() && others.binary_search(key).is_err();
        let reasons: Vec<u64> = new.around.iter().filter(matter).copied().collect();
        let generic = |key: &&u64| {
            old.alternatives.binary_search(key).is_ok()
                && GENERIC.iter().any(|word| hash(word) == **key)
        };
        Likeness {
            words: share(common, &new.words, &old.words),
            pairs: share(shared(&new.pairs, &old.pairs), &new.pairs, &old.pairs),
            within: common == new.words.len(),
            around: common == old.words.len(),
            hard: new.hard == old.hard,
            common: common > 0,
            hard_any: !new.hard.is_empty(),
            rationale: shared(&reasons, &old.around),
            generic: new.alternatives.iter().filter(generic).count(),
            more: shared(&new.around, &old.around) < new.around.len(),
        }
    }

    /// Whether the record says what the memory says, and no more of what it is about.
    pub(super) fn is_near(&self) -> bool {
        let something = self.common || self.hard_any;
        something
            && self.hard
            && self.within
            && self.words >= NEAR_WORDS
            && self.pairs >= NEAR_PAIRS
    }

    /// Whether one of both says only what the other says too.
    pub(super) fn is_one_sided(&self) -> bool {
        self.within || self.around
    }

    /// Words of their reasons in common, those of the alternatives left out: that both are about one matter.
    pub(super) fn rationale(&self) -> usize {
        self.rationale
    }

    /// Whether `count` of the alternatives in common are such as stand in decisions about anything.
    pub(super) fn is_generic(&self, count: usize) -> bool {
        self.generic >= count
    }

    /// Whether the record has more around its subject than the memory: other points, another rationale.
    pub(super) fn says_more(&self) -> bool {
        self.more
    }
}

/// How many of all keys of both are common; all, where there are none.
fn share(common: usize, one: &[u64], other: &[u64]) -> f64 {
    let all = one.len() + other.len() - common;
    if all == 0 { 1.0 } else { common as f64 / all as f64 }
}
