//! The subject of a claim in comparable form, and the similarity of two subjects. Text is folded
//! like evidence, so case, quotes and Markdown make no difference. Dotless and dotted i are equal
//! in candidate lookups, but not when two claims are compared for equality.

use super::key_set::{shared, sort};
use super::phrases::{invariant_words, is_stop_word};
use super::statement::Statement;
use crate::domain::{Claim, ClaimKind, Digest};
use crate::text::tokens::{folded, hash, keys, search_keys};
use crate::text::truncate;
use std::sync::LazyLock;

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
        let ordered = keys(about);
        let mut pairs: Vec<u64> = ordered.windows(2).map(pair).collect();
        sort(&mut pairs);
        let mut words = ordered;
        sort(&mut words);
        let mut around = keys(cut(&around));
        sort(&mut around);
        let (alternatives, chosen, named) = alternatives(claim);
        let flat = folded(about);
        Subject {
            search: SearchKeys::of(claim),
            words,
            pairs,
            hard: invariant_words(&flat),
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
        let told = flat.split(' ').filter(|word| !is_stop_word(word.trim_matches(is_mark)));
        told.for_each(|word| search_keys(word, |key| keys.push(key)));
    }
    keys.sort_unstable();
    let times = |group: &[u64]| u16::try_from(group.len()).unwrap_or(u16::MAX);
    keys.chunk_by(|one, other| one == other)
        .filter_map(|group| Some(Term { key: *group.first()?, times: times(group) }))
        .collect()
}

fn is_mark(letter: char) -> bool {
    !letter.is_alphanumeric()
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
        Claim::Discussion(it) => (it.topic.clone(), it.points.join("\n")),
        Claim::Attempt(it) => (it.action.clone(), it.result.clone()),
        Claim::Request(it) => {
            let target = it.target.as_deref().filter(|target| !it.summary.contains(target));
            (format!("{}\n{}", it.summary, target.unwrap_or_default()), it.intent.clone())
        }
    }
}

fn cut(text: &str) -> &str {
    truncate::bytes(text, TEXT_BYTES_MAX)
}

/// Combines two adjacent words.
fn pair(two: &[u64]) -> u64 {
    two.iter().fold(0x9e37_79b9_7f4a_7c15, |all, key| mix(all, *key))
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

/// Minimum share of common words at which a statement repeats one with more words.
const NEAR_WORDS: f64 = 0.8;
/// Minimum share of common word pairs: order carries meaning.
const NEAR_PAIRS: f64 = 0.5;
/// Alternatives in decisions about anything.
const GENERIC: &str = "yes|no|on|off|true|false|keep|remove|now|later|both|none|a|b|c|option a|option b|option 1|option 2|\
     enable|disable|ja|nein|evet|hayır|sí|si|oui|non|はい|いいえ|accept|reject|approve|wait";

static GENERIC_WORDS: LazyLock<Vec<u64>> =
    LazyLock::new(|| GENERIC.split('|').flat_map(keys).collect());

pub(super) fn is_generic(words: &[u64]) -> bool {
    words.iter().all(|word| GENERIC_WORDS.contains(word))
}

#[derive(Clone, Debug)]
pub(super) struct Likeness {
    pub(super) words: f64,
    pairs: f64,
    within: bool,
    around: bool,
    hard: bool,
    common: bool,
    hard_any: bool,
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
                && GENERIC.split('|').any(|word| hash(word) == **key)
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
            says_more: shared(&new.around, &old.around) < new.around.len(),
        }
    }

    pub(super) fn is_near(&self) -> bool {
        let something = self.common || self.hard_any;
        something
            && self.hard
            && self.within
            && self.words >= NEAR_WORDS
            && self.pairs >= NEAR_PAIRS
    }

    pub(super) fn is_one_sided(&self) -> bool {
        self.within || self.around
    }
}

fn share(common: usize, one: &[u64], other: &[u64]) -> f64 {
    let all = one.len() + other.len() - common;
    if all == 0 { 1.0 } else { common as f64 / all as f64 }
}
