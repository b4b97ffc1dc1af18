//! What a claim is about, as two claims are compared: its words, what may not differ, and for a decision its
//! alternatives. Folded as evidence is, so that case, quotes and Markdown part nothing; a Turkish dotless i meets the
//! dotted one where candidates are looked for, and is told from it where two claims are called equal.

use super::marker::{hard_words, without_exact};
use crate::domain::{Claim, ClaimKind, Digest};
use crate::words::{folded, hash, words};
use std::borrow::Cow;

/// Alternatives of one decision that are compared; a longer list is none that somebody chose from.
pub(super) const ALTERNATIVES_MAX: usize = 16;
/// Bytes of a claim's subject, and of what surrounds it, that are compared: the length of a long paragraph.
const TEXT_BYTES_MAX: usize = 2_000;

/// A claim taken apart for comparing.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) kind: ClaimKind,
    /// Digest of everything it says; equal ones say the same.
    pub(super) content: Digest,
    /// The words that name what it is about, sorted, each once.
    pub(super) words: Vec<u64>,
    /// Those of them that stand in no exact word: what is left where only values differ.
    pub(super) soft: Vec<u64>,
    /// Neighbours among them, sorted, each once: the same words in another order say something else.
    pub(super) pairs: Vec<u64>,
    /// What may not differ; see [`hard_words`].
    pub(super) hard: Vec<u64>,
    /// The words of the rest: rationale, points, result, intent.
    pub(super) around: Vec<u64>,
    /// What a decision was made among, the chosen one included, sorted, each once.
    pub(super) alternatives: Vec<u64>,
    /// What it chose.
    pub(super) chosen: Option<u64>,
    /// The words of each alternative.
    pub(super) named: Vec<Vec<u64>>,
}

impl Subject {
    pub(super) fn of(claim: &Claim) -> Subject {
        let (about, around) = texts(claim);
        let about = cut(&about);
        let ordered = keys(about);
        let mut pairs: Vec<u64> = ordered.windows(2).map(pair).collect();
        sort(&mut pairs);
        let mut words = ordered;
        sort(&mut words);
        let mut around = keys(cut(&around));
        sort(&mut around);
        let (alternatives, chosen, named) = alternatives(claim);
        let flat = folded(about);
        let mut soft = keys(&without_exact(&flat));
        sort(&mut soft);
        Subject {
            kind: claim.kind(),
            content: content(claim),
            words,
            pairs,
            hard: hard_words(&flat),
            soft,
            around,
            alternatives,
            chosen,
            named,
        }
    }

    /// Whether there is anything to compare.
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.hard.is_empty()
    }

    /// Words of the subject and of what surrounds it, sorted, each once.
    pub(super) fn all(&self) -> Vec<u64> {
        let mut all = [self.words.as_slice(), self.around.as_slice()].concat();
        sort(&mut all);
        all
    }

    /// How many words name it, exact ones counted twice: below three a subject is like many others.
    pub(super) fn weight(&self) -> usize {
        self.words.len() + self.hard.len()
    }
}

/// The text that names a claim's subject, and the rest of it.
fn texts(claim: &Claim) -> (String, String) {
    match claim {
        Claim::Decision(it) => {
            let named = it.options.contains(&it.chosen);
            let options = it.options.join("\n");
            let about = if named { options } else { format!("{}\n{options}", it.chosen) };
            (about, it.rationale.clone())
        }
        Claim::Discussion(it) => (it.topic.clone(), it.points.join("\n")),
        Claim::Attempt(it) => (it.action.clone(), it.result.clone()),
        Claim::Request(it) => {
            let target = it.target.as_deref().filter(|target| !it.summary.contains(target));
            (format!("{}\n{}", it.summary, target.unwrap_or_default()), it.intent.clone())
        }
    }
}

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or(text)
}

/// The words of `text` in their order. A dotless i counts as a dotted one: what is typed in capitals has lost the
/// difference.
pub(super) fn keys(text: &str) -> Vec<u64> {
    let text = match text.contains('ı') {
        true => Cow::Owned(text.replace('ı', "i")),
        false => Cow::Borrowed(text),
    };
    let mut keys = Vec::new();
    words(&text, |word| keys.push(word.key));
    keys
}

/// Two words next to one another as one.
fn pair(two: &[u64]) -> u64 {
    two.iter().fold(0x9e37_79b9_7f4a_7c15, |all, key| mix(all, *key))
}

/// Joins two keys; the order counts.
pub(super) fn mix(one: u64, other: u64) -> u64 {
    (one.rotate_left(23) ^ other).wrapping_mul(0x2545_f491_4f6c_dd1d)
}

/// Sorted, each once.
pub(super) fn sort(keys: &mut Vec<u64>) {
    keys.sort_unstable();
    keys.dedup();
}

/// All alternatives, the chosen one, and the words of each.
fn alternatives(claim: &Claim) -> (Vec<u64>, Option<u64>, Vec<Vec<u64>>) {
    let Claim::Decision(decision) = claim else { return (Vec::new(), None, Vec::new()) };
    let key = |text: &String| hash(folded(text).trim_end_matches(['.', '!', '?', ';']));
    let chosen = key(&decision.chosen);
    let mut all = vec![chosen];
    let mut named = vec![keys(cut(&decision.chosen))];
    for option in decision.options.iter().take(ALTERNATIVES_MAX) {
        let option_key = key(option);
        if !all.contains(&option_key) {
            all.push(option_key);
            named.push(keys(cut(option)));
        }
    }
    all.sort_unstable();
    named.iter_mut().for_each(sort);
    (all, Some(chosen), named)
}

/// Everything that a claim says; the order of options and points does not count.
fn content(claim: &Claim) -> Digest {
    let list = |items: &[String]| {
        let mut items: Vec<String> = items.iter().map(|item| folded(item)).collect();
        items.sort_unstable();
        items.dedup();
        items
    };
    let parts = match claim {
        Claim::Decision(it) => {
            let mut parts = vec![folded(&it.chosen), folded(&it.rationale)];
            parts.extend(list(&it.options));
            parts
        }
        Claim::Discussion(it) => {
            let mut parts = vec![folded(&it.topic)];
            parts.extend(list(&it.points));
            parts
        }
        Claim::Attempt(it) => {
            let ended = if it.succeeded { "yes" } else { "no" };
            vec![folded(&it.action), folded(&it.result), ended.to_owned()]
        }
        Claim::Request(it) => {
            let target = it.target.as_deref().map(folded).unwrap_or_default();
            vec![folded(&it.summary), target, folded(&it.intent)]
        }
    };
    let mut all = vec![claim.kind().name()];
    all.extend(parts.iter().map(String::as_str));
    Digest::of(&all)
}

/// How many keys two sorted lists share.
pub(super) fn shared(one: &[u64], other: &[u64]) -> usize {
    let (mut left, mut right, mut count) = (one, other, 0);
    while let ([first, rest @ ..], [second, after @ ..]) = (left, right) {
        match first.cmp(second) {
            std::cmp::Ordering::Less => left = rest,
            std::cmp::Ordering::Greater => right = after,
            std::cmp::Ordering::Equal => {
                count += 1;
                (left, right) = (rest, after);
            }
        }
    }
    count
}
