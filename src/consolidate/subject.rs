//! The subject of a claim in comparable form, and the similarity of two subjects. Text is folded
//! like evidence, so case, quotes and Markdown make no difference. Dotless and dotted i are equal
//! in candidate lookups, but not when two claims are compared for equality.

use super::parts::{both, shared, sort, without};
use super::phrases::{invariant_words, is_stop_word, list};
use super::question::{question, wish};
use super::statement::Statement;
use crate::domain::{Claim, ClaimKind, Digest};
use crate::text::tokens::{folded, hash, keys, search_keys};
use crate::text::truncate;
use std::collections::BTreeSet;

/// Maximum number of alternatives of one decision to compare.
pub(super) const ALTERNATIVES_MAX: usize = 16;
/// Maximum length of a subject, and of the text around it, to compare: a long paragraph.
const TEXT_BYTES_MAX: usize = 2_000;

/// Keys by which a claim is found.
#[derive(Clone, Debug)]
pub(crate) struct SearchKeys {
    pub(super) kind: ClaimKind,
    /// Digest of the whole claim; equal ones say the same.
    pub(super) content: Digest,
    /// Words of the whole claim, sorted.
    pub(super) terms: Vec<Term>,
}

impl SearchKeys {
    pub(crate) fn of(claim: &Claim) -> SearchKeys {
        SearchKeys { kind: claim.kind(), content: content(claim), terms: terms(claim) }
    }
}

/// A claim prepared for comparison.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) search: SearchKeys,
    /// Words of the subject, sorted, without duplicates.
    pub(super) words: Vec<u64>,
    pub(super) statement: Statement,
    /// Adjacent words, sorted, without duplicates; another order means something else.
    pub(super) pairs: Vec<u64>,
    pub(super) hard: Vec<u64>,
    /// Words of the rest: rationale, points, result, intent.
    pub(super) around: Vec<u64>,
    pub(super) alternatives: Vec<u64>,
    pub(super) chosen: Option<u64>,
    pub(super) named: Vec<Vec<u64>>,
}

impl Subject {
    pub(super) fn of(claim: &Claim) -> Subject {
        let (about, around) = texts(claim);
        let about = cut(&about);
        let (mut words, mut around) = (keys(about), keys(cut(&around)));
        // Combines two adjacent words.
        let pair = |two: &[u64]| two.iter().fold(0x9e37_79b9_7f4a_7c15, |all, key| mix(all, *key));
        let mut pairs: Vec<u64> = words.windows(2).map(pair).collect();
        [&mut pairs, &mut words, &mut around].into_iter().for_each(sort);
        let (alternatives, chosen, named) = alternatives(claim);
        Subject {
            search: SearchKeys::of(claim),
            words,
            pairs,
            hard: invariant_words(&folded(about)),
            statement: Statement::of(claim),
            around,
            alternatives,
            chosen,
            named,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.hard.is_empty()
    }

    /// Words of the subject and the rest, sorted, without duplicates.
    pub(super) fn all(&self) -> Vec<u64> {
        let mut all = [self.words.as_slice(), self.around.as_slice()].concat();
        sort(&mut all);
        all
    }

    pub(super) fn weight(&self) -> usize {
        self.words.len() + self.hard.len()
    }
}

/// Search term of a claim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    pub(super) key: u64,
    /// Occurrences in the claim.
    pub(super) times: u16,
}

/// Words of the whole claim, without stop words.
fn terms(claim: &Claim) -> Vec<Term> {
    let mut keys = Vec::new();
    for (_, text) in claim.strings() {
        let flat = folded(cut(text));
        let is_mark = |letter: char| !letter.is_alphanumeric();
        let told = flat.split(' ').filter(|word| !is_stop_word(word.trim_matches(is_mark)));
        told.for_each(|word| search_keys(word, |key| keys.push(key)));
    }
    keys.sort_unstable();
    let times = |group: &[u64]| u16::try_from(group.len()).unwrap_or(u16::MAX);
    keys.chunk_by(|one, other| one == other)
        .filter_map(|group| Some(Term { key: *group.first()?, times: times(group) }))
        .collect()
}

/// Text that names a claim's subject, and the rest.
fn texts(claim: &Claim) -> (String, String) {
    match claim {
        Claim::Decision(it) => {
            let named = it.options.contains(&it.chosen);
            let options = it.options.join("\n");
            let about = if named { options } else { format!("{}\n{options}", it.chosen) };
            (about, it.rationale.clone())
        }
        Claim::Discussion(it) => (question(&it.topic).to_owned(), it.points.join("\n")),
        Claim::Attempt(it) => (it.action.clone(), it.result.clone()),
        Claim::Request(it) => {
            let target = it.target.as_deref().filter(|target| !it.summary.contains(target));
            (format!("{}\n{}", wish(&it.summary), target.unwrap_or_default()), it.intent.clone())
        }
    }
}

fn cut(text: &str) -> &str {
    truncate::bytes(text, TEXT_BYTES_MAX)
}

/// Combines two keys; their order matters.
pub(super) fn mix(one: u64, other: u64) -> u64 {
    (one.rotate_left(23) ^ other).wrapping_mul(0x2545_f491_4f6c_dd1d)
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

/// Digest of the whole claim, regardless of the order of options and points.
fn content(claim: &Claim) -> Digest {
    let (mut parts, items): (Vec<String>, &[String]) = match claim {
        Claim::Decision(it) => (vec![folded(&it.chosen), folded(&it.rationale)], &it.options),
        Claim::Discussion(it) => (vec![folded(&it.topic)], &it.points),
        Claim::Attempt(it) => {
            let ended = if it.succeeded { "yes" } else { "no" };
            (vec![folded(&it.action), folded(&it.result), ended.to_owned()], &[])
        }
        Claim::Request(it) => {
            let target = it.target.as_deref().map(folded).unwrap_or_default();
            (vec![folded(&it.summary), target, folded(&it.intent)], &[])
        }
    };
    let items: BTreeSet<String> = items.iter().map(|item| folded(item)).collect();
    parts.extend(items);
    let mut all = vec![claim.kind().name()];
    all.extend(parts.iter().map(String::as_str));
    Digest::of(&all)
}

/// Minimum share of common words at which a statement repeats one with more words.
const NEAR_WORDS: f64 = 0.8;
/// Minimum share of common word pairs: order carries meaning.
const NEAR_PAIRS: f64 = 0.5;

#[derive(Clone, Debug)]
pub(super) struct Likeness {
    /// Share of common words.
    pub(super) words: f64,
    /// True if the old one says the same in nearly the same words.
    pub(super) is_near: bool,
    /// True if one has all words of the other.
    pub(super) is_one_sided: bool,
    /// Common words of the rationales, without the alternatives: signs of the same topic.
    pub(super) rationale: usize,
    /// Number of generic alternatives in common.
    pub(super) generic: usize,
    /// True if the new one has words around its subject that the old one lacks.
    pub(super) says_more: bool,
}

impl Likeness {
    pub(super) fn of(new: &Subject, old: &Subject) -> Likeness {
        let common = shared(&new.words, &old.words);
        let words = share(common, &new.words, &old.words);
        let pairs = share(shared(&new.pairs, &old.pairs), &new.pairs, &old.pairs);
        let is_within = common == new.words.len();
        let is_near = (common > 0 || !new.hard.is_empty())
            && new.hard == old.hard
            && is_within
            && words >= NEAR_WORDS
            && pairs >= NEAR_PAIRS;
        let mut options = [new.named.concat(), old.named.concat()].concat();
        sort(&mut options);
        let is_generic = |key: &&u64| list("generic").words().any(|word| hash(word) == **key);
        Likeness {
            words,
            is_near,
            is_one_sided: is_within || common == old.words.len(),
            rationale: shared(&without(&new.around, &options), &old.around),
            generic: both(&new.alternatives, &old.alternatives).iter().filter(is_generic).count(),
            says_more: shared(&new.around, &old.around) < new.around.len(),
        }
    }
}

fn share(common: usize, one: &[u64], other: &[u64]) -> f64 {
    let all = one.len() + other.len() - common;
    if all == 0 { 1.0 } else { common as f64 / all as f64 }
}
