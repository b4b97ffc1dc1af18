//! How alike two texts are, by the words that both have; and two claims, field by field.

use super::assign::assign;
use crate::domain::ClaimKind;
use crate::words::{lower, stands_alone};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How alike a record and what an item wants are at least, in thousandths, for one to say the other. A gold
/// file may name another with its key `similarity`.
pub const SIMILARITY_MIN: u32 = 500;

/// The same where texts are compared by embeddings: unrelated texts are alike to a half and more for many models, so
/// that a gold file should name what its model needs.
pub const EMBEDDING_SIMILARITY_MIN: u32 = 750;

/// What the fields of a claim weigh where they are compared: what it says before why it says it.
fn weights(kind: ClaimKind) -> &'static [(&'static str, u32)] {
    match kind {
        ClaimKind::Decision => &[("chosen", 4), ("rationale", 2), ("options", 1)],
        ClaimKind::Discussion => &[("topic", 2), ("points", 1)],
        ClaimKind::Attempt => &[("action", 2), ("result", 1)],
        ClaimKind::Request => &[("summary", 2), ("intent", 2), ("target", 1)],
    }
}

/// The fields of a claim that can be compared.
pub(super) fn field_names(kind: ClaimKind) -> impl Iterator<Item = &'static str> {
    weights(kind).iter().map(|(name, _)| *name)
}

/// The words of a text in lower case, each once, in order of the alphabet. In scripts without blanks two
/// letters that stand side by side are a word.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = BTreeSet::new();
    let (mut word, mut before) = (String::new(), None);
    // A letter of a script without blanks that no other stood beside yet.
    let mut single: Option<char> = None;
    for letter in text.chars().map(narrow).chain([' ']) {
        let is_letter = letter.is_alphanumeric();
        let is_alone = is_letter && stands_alone(letter);
        if (!is_letter || is_alone) && !word.is_empty() {
            words.insert(std::mem::take(&mut word));
        }
        if is_alone {
            match before {
                Some(before) => {
                    words.insert([before, letter].into_iter().collect());
                    single = None;
                }
                None => single = Some(letter),
            }
        } else {
            words.extend(single.take().map(String::from));
            if is_letter {
                lower(letter, &mut word);
            }
        }
        before = is_alone.then_some(letter);
    }
    words.into_iter().collect()
}

/// A letter as wide as others: texts in Chinese and Japanese often have Latin letters as wide as theirs.
fn narrow(letter: char) -> char {
    let code = u32::from(letter);
    match code {
        0xFF01..=0xFF5E => char::from_u32(code - 0xFEE0).unwrap_or(letter),
        _ => letter,
    }
}

/// How alike two texts are, in thousandths: twice the words that both have, of the words of each (Dice).
pub fn similarity(one: &str, other: &str) -> u32 {
    dice(&words(one), &words(other))
}

/// The same of words in order.
pub(super) fn dice(one: &[String], other: &[String]) -> u32 {
    let (mut left, mut right, mut both) = (one.iter().peekable(), other.iter().peekable(), 0_u64);
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        match a.cmp(b) {
            std::cmp::Ordering::Less => {
                left.next();
            }
            std::cmp::Ordering::Greater => {
                right.next();
            }
            std::cmp::Ordering::Equal => {
                both += 1;
                left.next();
                right.next();
            }
        }
    }
    thousandths(both, (one.len() + other.len()) as u64)
}

fn thousandths(both: u64, all: u64) -> u32 {
    u32::try_from((2_000 * both).checked_div(all).unwrap_or_default()).unwrap_or(u32::MAX)
}

/// The texts of a claim by field, in words.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    texts: BTreeMap<String, Vec<Vec<String>>>,
}

impl Fields {
    /// The fields of a claim as it is written down: texts, and lists of texts.
    pub(super) fn of(claim: &Value) -> Fields {
        let mut texts: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
        for (name, value) in claim.as_object().into_iter().flatten() {
            let list = match value {
                Value::String(text) => vec![words(text)],
                Value::Array(all) => all.iter().filter_map(Value::as_str).map(words).collect(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => continue,
            };
            texts.insert(name.clone(), list);
        }
        Fields { texts }
    }

    /// Every word of it, each once, in order.
    pub(super) fn words(&self) -> Vec<String> {
        let all: BTreeSet<&String> = self.texts.values().flatten().flatten().collect();
        all.into_iter().cloned().collect()
    }

    /// How alike a claim is to what is wanted here, in thousandths: the mean of the fields that are named here,
    /// by their weights. A field that the claim does not have is not alike at all.
    pub(super) fn alike(&self, kind: ClaimKind, claim: &Fields) -> u32 {
        let (mut sum, mut all) = (0, 0);
        for (name, weight) in weights(kind) {
            let Some(wanted) = self.texts.get(*name) else { continue };
            let said = claim.texts.get(*name).map(Vec::as_slice).unwrap_or_default();
            sum += weight * lists(wanted, said);
            all += weight;
        }
        sum.checked_div(all).unwrap_or_default()
    }
}

/// How alike two lists of texts are: the similarity of the best pairs, of all texts. Two empty ones are the same.
fn lists(one: &[Vec<String>], other: &[Vec<String>]) -> u32 {
    if let ([one], [other]) = (one, other) {
        return dice(one, other);
    }
    if one.is_empty() && other.is_empty() {
        return 1_000;
    }
    let alike = |it: &Vec<String>| -> Vec<(usize, u32)> {
        other.iter().map(|other| dice(it, other)).enumerate().collect()
    };
    let answers: Vec<Vec<(usize, u32)>> = one.iter().map(alike).collect();
    let pairs = assign(&answers, other.len());
    let best = pairs.into_iter().zip(&answers).filter_map(|(at, all)| all.get(at?));
    let both: u64 = best.map(|(_, alike)| u64::from(*alike)).sum();
    thousandths(both, (one.len() + other.len()) as u64) / 1_000
}

/// Which texts have a word.
#[derive(Debug, Default)]
pub(super) struct Index<'t> {
    texts: BTreeMap<&'t str, Vec<usize>>,
    /// How many words each text has.
    lengths: Vec<usize>,
}

impl<'t> Index<'t> {
    /// Of texts by their words, by their places.
    pub(super) fn of(texts: impl Iterator<Item = &'t [String]>) -> Index<'t> {
        let mut index = Index::default();
        for (at, words) in texts.enumerate() {
            index.lengths.push(words.len());
            for word in words {
                index.texts.entry(word).or_default().push(at);
            }
        }
        index
    }

    /// The texts that share words with these, and how many words, in order of their places. Words are counted,
    /// not texts compared, so that a word which all have costs an addition for each.
    fn shared(&self, words: &[String]) -> Vec<(usize, usize)> {
        let mut counts = vec![0_usize; self.lengths.len()];
        for at in words.iter().filter_map(|it| self.texts.get(it.as_str())).flatten() {
            if let Some(count) = counts.get_mut(*at) {
                *count += 1;
            }
        }
        counts.into_iter().enumerate().filter(|(_, count)| *count > 0).collect()
    }

    /// The texts that are at least so much alike, and how much, in order of their places.
    pub(super) fn near(&self, words: &[String], least: u32) -> Vec<(usize, u32)> {
        let alike = |(at, both): (usize, usize)| {
            let all = words.len() + self.lengths.get(at).copied().unwrap_or_default();
            (at, thousandths(both as u64, all as u64))
        };
        let near = self.shared(words).into_iter().map(alike);
        near.filter(|(_, alike)| least <= *alike).collect()
    }

    /// The texts that share a word with these.
    pub(super) fn touched(&self, words: &[String]) -> Vec<usize> {
        self.shared(words).into_iter().map(|(at, _)| at).collect()
    }
}
