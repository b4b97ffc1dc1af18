//! How alike two texts are, by the words that both have.

use std::collections::{BTreeMap, BTreeSet};

/// How alike a record and a statement are at least, in thousandths, for one to say the other.
pub const SIMILARITY_MIN: u32 = 500;
/// Texts in which a word may stand to lead from one to another: `the` leads everywhere.
const TEXTS_MAX: usize = 500;

/// The words of a text in lower case, each once, in order of the alphabet.
pub(super) fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|letter: char| !letter.is_alphanumeric());
    let words: BTreeSet<&str> = words.filter(|word| !word.is_empty()).collect();
    words.into_iter().map(str::to_owned).collect()
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
    let all = (one.len() + other.len()) as u64;
    u32::try_from((2_000 * both).checked_div(all).unwrap_or_default()).unwrap_or(u32::MAX)
}

/// Which texts have a word.
#[derive(Debug, Default)]
pub(super) struct Index<'t> {
    texts: BTreeMap<&'t str, Vec<usize>>,
}

impl<'t> Index<'t> {
    pub(super) fn of(texts: impl Iterator<Item = (usize, &'t [String])>) -> Index<'t> {
        let mut index = Index::default();
        for (at, words) in texts {
            for word in words {
                index.texts.entry(word).or_default().push(at);
            }
        }
        index
    }

    /// The texts that share a word with these, in order.
    pub(super) fn near(&self, words: &[String]) -> Vec<usize> {
        let found = words.iter().filter_map(|word| self.texts.get(word.as_str()));
        let near: BTreeSet<usize> =
            found.filter(|texts| texts.len() <= TEXTS_MAX).flatten().copied().collect();
        near.into_iter().collect()
    }
}
