//! How alike two texts are, by the words that both have; and two lists of texts.

use super::assign::assign;
use crate::domain::ClaimKind;
use crate::words::{lower, stands_alone};
use std::collections::BTreeSet;

/// How alike a record and what an item wants are at least, in thousandths, for one to say the other. A gold
/// file may name another with its key `similarity`.
pub const SIMILARITY_MIN: u32 = 500;

/// The same where texts are compared by embeddings: unrelated texts are alike to a half and more for many models, so
/// that a gold file should name what its model needs.
pub const EMBEDDING_SIMILARITY_MIN: u32 = 750;

/// What the fields of a claim weigh where they are compared: what it says before why it says it.
pub(super) fn weights(kind: ClaimKind) -> &'static [(&'static str, u32)] {
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

/// The same of words in order, or of what stands for them.
fn dice<W: Ord>(one: &[W], other: &[W]) -> u32 {
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

/// How alike two lists of texts are: the similarity of the best pairs, of all texts. Two empty ones are the same.
/// Their words are in order.
pub(super) fn lists<W: Ord>(one: &[Vec<W>], other: &[Vec<W>]) -> u32 {
    if let ([one], [other]) = (one, other) {
        return dice(one, other);
    }
    if one.is_empty() && other.is_empty() {
        return 1_000;
    }
    // Those of the shorter list all have a partner; of the longer one the first would have one, however unlike.
    let (one, other) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let alike = |it: &Vec<W>| -> Vec<(usize, u32)> {
        other.iter().map(|other| dice(it, other)).enumerate().collect()
    };
    let answers: Vec<Vec<(usize, u32)>> = one.iter().map(alike).collect();
    let pairs = assign(&answers, other.len());
    let best = pairs.into_iter().zip(&answers).filter_map(|(at, all)| all.get(at?));
    let both: u64 = best.map(|(_, alike)| u64::from(*alike)).sum();
    thousandths(both, (one.len() + other.len()) as u64) / 1_000
}
