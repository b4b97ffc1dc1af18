//! Similarity of texts, by shared words, and of claims, by field.

use crate::domain::ClaimKind;
use crate::text::tokens::{lower, stands_alone};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Default minimum similarity, in thousandths, at which a record answers an item.
pub(crate) const SIMILARITY_MIN: u32 = 500;

/// Compared fields of a claim, with weights.
pub(crate) fn weights(kind: ClaimKind) -> &'static [(&'static str, u32)] {
    match kind {
        ClaimKind::Decision => &[("chosen", 4), ("rationale", 2), ("options", 1)],
        ClaimKind::Discussion => &[("topic", 2), ("points", 1)],
        ClaimKind::Attempt => &[("action", 2), ("result", 1)],
        ClaimKind::Request => &[("summary", 2), ("intent", 2), ("target", 1)],
    }
}

/// Distinct lower-case words of a text, sorted. In scripts without spaces each pair of adjacent letters is a word.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = BTreeSet::new();
    let (mut word, mut before) = (String::new(), None);
    // Letter of a script without spaces that has no neighbour yet.
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

/// Halfwidth form of a fullwidth Latin letter.
fn narrow(letter: char) -> char {
    let code = u32::from(letter);
    match code {
        0xFF01..=0xFF5E => char::from_u32(code - 0xFEE0).unwrap_or(letter),
        _ => letter,
    }
}

/// Similarity of two texts in thousandths.
#[cfg(test)]
pub(crate) fn similarity(one: &str, other: &str) -> u32 {
    dice(&words(one), &words(other))
}

/// Dice coefficient of two sorted word lists, in thousandths.
pub(crate) fn dice(one: &[String], other: &[String]) -> u32 {
    let shared = one.iter().filter(|word| other.binary_search(word).is_ok()).count();
    thousandths(2_000 * shared, one.len() + other.len())
}

fn thousandths(sum: usize, of: usize) -> u32 {
    u32::try_from(sum.checked_div(of).unwrap_or_default()).unwrap_or(u32::MAX)
}

type Texts = Vec<Vec<String>>;

pub(crate) struct FieldWords(Vec<(String, Texts)>);

impl FieldWords {
    pub(crate) fn of(claim: &Value) -> FieldWords {
        let field = |(name, value): (&String, &Value)| {
            let texts = match value {
                Value::String(text) => vec![words(text)],
                Value::Array(all) => all.iter().filter_map(Value::as_str).map(words).collect(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
            };
            Some((name.clone(), texts))
        };
        FieldWords(claim.as_object().into_iter().flatten().filter_map(field).collect())
    }

    fn field(&self, name: &str) -> Option<&Texts> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, texts)| texts)
    }

    /// Weighted mean similarity of the fields that are named here, in thousandths. A field that the claim lacks
    /// counts as empty.
    pub(crate) fn similarity(&self, claim: &FieldWords, kind: ClaimKind) -> u32 {
        let (mut sum, mut weight_sum) = (0, 0);
        for (name, weight) in weights(kind) {
            let Some(wanted) = self.field(name) else { continue };
            let said = claim.field(name).map_or(&[][..], Vec::as_slice);
            sum += weight * list_similarity(wanted, said);
            weight_sum += weight;
        }
        sum.checked_div(weight_sum).unwrap_or_default()
    }
}

/// Similarity of two lists of texts: the sum over the best pairs, relative to all texts. Two empty lists are equal.
fn list_similarity(one: &[Vec<String>], other: &[Vec<String>]) -> u32 {
    if one.is_empty() && other.is_empty() {
        return 1_000;
    }
    let mut pairs: Vec<(u32, usize, usize)> = Vec::new();
    for (left, words) in one.iter().enumerate() {
        pairs.extend(other.iter().enumerate().map(|(right, it)| (dice(words, it), left, right)));
    }
    let best = best_pairs(pairs);
    let sum: u32 = best.iter().map(|(similarity, ..)| similarity).sum();
    thousandths(2 * sum as usize, one.len() + other.len())
}

/// Greedily picks disjoint pairs, most similar first.
pub(crate) fn best_pairs(mut pairs: Vec<(u32, usize, usize)>) -> Vec<(u32, usize, usize)> {
    let (mut left_taken, mut right_taken) = (BTreeSet::new(), BTreeSet::new());
    pairs.sort_by_key(|(similarity, left, right)| (Reverse(*similarity), *left, *right));
    pairs.retain(|(_, left, right)| {
        let free = !left_taken.contains(left) && !right_taken.contains(right);
        if free {
            left_taken.insert(*left);
            right_taken.insert(*right);
        }
        free
    });
    pairs
}
