//! A text in comparable parts: topic words, values, bounds and word order. Sets of word keys are sorted lists without
//! duplicates.

use super::phrases::{is_exact, is_stop_word, list, topic_keys};
use super::quantity::{quantity, words_of};
use crate::text::stems::is_no;
use crate::text::tokens::{folded, hash};
use foldhash::HashMap;
use std::sync::LazyLock;

/// A parsed text.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) folded: String,
    /// Topic words, sorted.
    pub(super) topic: Vec<u64>,
    /// Quantities and exact names, sorted.
    pub(super) values: Vec<u64>,
    /// Exact names and bare numbers, sorted.
    pub(super) names: Vec<u64>,
    /// Those that may tell one thing from others of its kind, as in `lock room 7`, sorted.
    pub(super) instances: Vec<u64>,
    /// Topic words in order, if the order carries meaning, as in `from A to B`.
    pub(super) order: WordOrder,
    /// Bounds set by stop words such as `before` and `below`, sorted.
    pub(super) bounds: Vec<usize>,
    /// Topic words right after a form of `be`, as in `mails are sent`, sorted.
    pub(super) predicates: Vec<u64>,
    /// Says that something stays as it is.
    pub(super) keeps: bool,
}

/// Topic words in order; empty if the order makes no difference.
#[derive(Clone, Debug, Default)]
pub(super) struct WordOrder {
    pub(super) words: Vec<u64>,
    /// Number of words before the direction word, if there is only one.
    pub(super) turn: Option<usize>,
}

impl WordOrder {
    /// True if both go from one thing to another, but not the same way.
    pub(super) fn is_turned(&self, other: &WordOrder) -> bool {
        let spans = |it: &WordOrder| it.turn.is_none() && !it.words.is_empty();
        spans(self) && spans(other) && self.words != other.words
    }

    /// True if both are equal, or equal once swapped at a direction: `after B do A` is `do A after B`.
    pub(super) fn says_as(&self, other: &WordOrder) -> bool {
        let begins = |one: &WordOrder, at: usize, other: &WordOrder| {
            let (head, tail) = one.words.split_at_checked(at).unwrap_or_default();
            other.turn == Some(0) && [tail, head].concat() == other.words
        };
        self.words == other.words
            || self.turn.is_some_and(|at| begins(self, at, other))
            || other.turn.is_some_and(|at| begins(other, at, self))
    }
}

/// Words that set bounds or say how binding a statement is; words of different lists differ.
static BOUNDS: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
    let lines = list("bound kind").lines.iter().enumerate();
    lines.flat_map(|(at, words)| words.split('|').map(move |word| (word, at))).collect()
});
/// Kind of bound that a word sets.
pub(super) fn bound_of(word: &str) -> Option<&'static usize> {
    BOUNDS.get(word)
}

/// Particles that end a German statement, as in `geht nachts an`; they count as bounds.
const PARTICLES: [&str; 6] = ["auf", "zu", "an", "aus", "ein", "ab"];

impl Parts {
    pub(super) fn of(text: &str) -> Parts {
        let flat = folded(text);
        let words = words_of(&flat);
        let (mut topic, mut values, mut predicates) = (Vec::new(), Vec::new(), Vec::new());
        let (mut names, mut instances) = (Vec::new(), Vec::new());
        let (mut bounds, mut turns, mut keeps) = (Vec::new(), Vec::new(), false);
        let mut before = "";
        let mut rest = words.as_slice();
        while let Some((word, after)) = rest.split_first() {
            let last = if is_no(word) { before } else { std::mem::replace(&mut before, word) };
            let at = words.len() - rest.len();
            if let Some(quantity) = quantity(rest) {
                values.push(quantity.key);
                let is_bare = quantity.words == 1 && word.bytes().all(|it| it.is_ascii_digit());
                names.extend(is_bare.then_some(quantity.key));
                instances.extend((is_bare && is_nominal(&words, at)).then_some(quantity.key));
                rest = rest.get(quantity.words..).unwrap_or_default();
                continue;
            }
            rest = after;
            // `up to` an amount means at most.
            let at_most = *word == "up" && rest.first().is_some_and(|next| *next == "to");
            bounds.extend(BOUNDS.get(if at_most { "most" } else { word }));
            // `prior to` counts as one word.
            if list("directions").has(word) && last != "prior" && last != "up" {
                turns.push(topic.len());
            }
            keeps |= list("keeps").has(word);
            if is_exact(word) {
                values.push(hash(word));
                names.push(hash(word));
                instances.extend(may_be_instance(&words, at).then_some(hash(word)));
            } else if !is_stop_word(word) && !list("keeps").has(word) {
                let is_predicate = list("be").has(last);
                topic_keys(word, |key| {
                    topic.push(key);
                    predicates.extend(is_predicate.then_some(key));
                });
            }
        }
        // `de Lugo a Vigo`; either word alone is too common.
        let spans = words.windows(3).any(|it| matches!(it, ["de", _, "a" | "à"]));
        let order = WordOrder {
            words: if turns.is_empty() && !spans { Vec::new() } else { topic.clone() },
            turn: turns.first().copied().filter(|_| turns.len() == 1),
        };
        // German puts the predicate at the end.
        let is_german = words.iter().any(|word| matches!(*word, "wird" | "werden"));
        predicates.extend(topic.last().filter(|_| is_german));
        let particle = words.last().and_then(|last| PARTICLES.iter().position(|it| it == last));
        bounds.extend(particle.map(|at| usize::MAX - at));
        let sets = [&mut topic, &mut values, &mut names, &mut instances];
        sets.into_iter().chain([&mut predicates]).for_each(sort);
        bounds.sort_unstable();
        Parts { folded: flat, topic, values, names, instances, order, bounds, predicates, keeps }
    }
}

/// True if the word at `at` may be the noun before a name.
fn is_noun(words: &[&str], at: usize) -> bool {
    !is_stop_word(words[at]) || words[at] == "port"
}

/// True if the bare number at `at` may tell one thing from others, as in `lock room 7` and `ward 5 orders its linen`; in
/// `allow 7 copies` it is an amount.
fn is_nominal(words: &[&str], at: usize) -> bool {
    let counts = || words.get(at + 1).is_some_and(|next| !is_stop_word(next));
    let of_noun = |article: &&str| list("articles").has(article);
    let is_subject = at == 1 && words.get(at + 2).is_some_and(|it| list("possessives").has(it));
    let is_one = is_subject || at > 1 && words.get(at - 2).is_some_and(of_noun) || !counts();
    at > 0 && is_noun(words, at - 1) && is_one && may_be_instance(words, at)
}

/// True if the name at `at` may tell one thing from others of its kind: it begins the text, is an object, or says where
/// something is done to an object, as in `check the token on /v1/orders`. In `use port 8080` and `listen on port 8080` it
/// is a value.
fn may_be_instance(words: &[&str], at: usize) -> bool {
    let lead = list("changes").begin(words).unwrap_or_default();
    let mut begin = at;
    begin -= usize::from(lead < begin && is_noun(words, begin - 1));
    begin -= usize::from(lead < begin && list("articles").has(words[begin - 1]));
    let Some((before, rest)) = words.get(lead..begin).and_then(<[&str]>::split_last) else {
        return true;
    };
    let has_object = || {
        let begins = |two: &[&str]| !is_stop_word(two[0]) && list("articles").has(two[1]);
        let nouns = rest.iter().filter(|word| !is_stop_word(word)).count();
        rest.windows(2).any(begins) || nouns > SUBJECT_AND_VERB
    };
    if list("places").has(before) {
        return has_object();
    }
    list("of scope").has(before) || !(is_stop_word(before) || list("has value").has(before))
}

/// The folded text before its reason, as in `close early because of the storm`.
pub(super) fn before_reason(folded: &str) -> &str {
    let tokens: Vec<&str> = folded.split(' ').collect();
    let mark = |letter: char| !letter.is_alphanumeric();
    let words: Vec<&str> = tokens.iter().map(|token| token.trim_matches(mark)).collect();
    let is_reason = |at: &usize| {
        list("reasons").begin(&words[*at..]).is_some() && !list("be").has(words[*at - 1])
    };
    let Some(at) = (1..words.len()).find(is_reason) else { return folded };
    let end = tokens[..at].iter().map(|token| token.len() + 1).sum::<usize>();
    folded.get(..end).unwrap_or(folded)
}

/// Maximum number of words of a subject and its verb.
const SUBJECT_AND_VERB: usize = 2;

/// Sorts the keys and removes duplicates.
pub(super) fn sort(keys: &mut Vec<u64>) {
    keys.sort_unstable();
    keys.dedup();
}

/// Number of keys in both sets.
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

/// Keys of `one` that `other` lacks.
pub(super) fn without(one: &[u64], other: &[u64]) -> Vec<u64> {
    one.iter().filter(|key| other.binary_search(key).is_err()).copied().collect()
}

/// Keys in both sets.
pub(super) fn both(one: &[u64], other: &[u64]) -> Vec<u64> {
    one.iter().filter(|key| other.binary_search(key).is_ok()).copied().collect()
}
