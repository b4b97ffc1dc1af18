//! A text in comparable parts: topic words, values, bounds and word order.

use super::key_set::sort;
use super::phrases::{is_exact, is_stop_word, topic_keys};
use super::quantity::{quantity, words_of};
use crate::text::stems::is_no;
use crate::text::tokens::{folded, hash};
use foldhash::{HashMap, HashSet};
use std::sync::LazyLock;

/// A parsed text.
pub(super) struct Parts {
    pub(super) folded: String,
    pub(super) topic: Vec<u64>,
    pub(super) values: Vec<u64>,
    pub(super) order: WordOrder,
    pub(super) bounds: Vec<usize>,
    pub(super) predicates: Vec<u64>,
    pub(super) keeps: bool,
}

/// Topic words in order; empty if the order makes no difference.
#[derive(Clone, Debug)]
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

/// Words that set bounds or say how binding a statement is; words of different rows differ.
const BOUNDS: [&str; 13] = [
    "out hors fuera",
    "or oder ou или",
    "from desde",
    "before prior vor avant antes önce",
    "after nach après después sonra",
    "below under less unter sous moins menos bajo <",
    "above over more über sur plus más sobre >",
    "up hoch raise raised raises increase increased increases upgrade upgraded extend extended lengthen lengthened doubled \
     tripled erhöht erhöhen verlängert verlängern verdoppelt verdoppeln aumentar augmenter augmenté увеличить",
    "down herunter runter lower lowered lowers reduce reduced reduces downgrade downgraded shorten shortened halve halved cut \
     trim trimmed gesenkt senken verkürzt verkürzen reducir réduire réduit уменьшить",
    "some several einige quelques algunos",
    "most maximum maximal höchstens máximo <= ≤",
    "least minimum mindestens mínimo >= ≥",
    "may can might could darf dürfen kann können peut peuvent puede pueden",
];
/// Particles that end a German statement, as in `geht nachts an`; they count as bounds.
const PARTICLES: [&str; 6] = ["auf", "zu", "an", "aus", "ein", "ab"];
/// Forms of `be`, which precede a predicate.
const BE: &str = "is are was were be been ist sind wird werden est sont es son";
/// Words saying that something stays as it is.
const KEEPS: &str = "keep keeps stay stays remain remains leave behalten beibehalten bleibt bleiben garder garde reste \
     restent mantener mantiene seguir";

/// Words that make the order of the others matter.
const DIRECTIONS: &str = "from to before prior after into until von zu nach vor bis desde hasta antes después avant après depuis \
     から まで önce sonra -> → => <- ←";

static BE_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| BE.split(' ').collect());
static KEEP_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| KEEPS.split_whitespace().collect());
static DIRECTION_WORDS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| DIRECTIONS.split_whitespace().collect());

static BOUND_WORDS: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
    let rows = BOUNDS.iter().enumerate();
    rows.flat_map(|(row, words)| words.split(' ').map(move |word| (word, row))).collect()
});

impl Parts {
    pub(super) fn of(text: &str) -> Parts {
        let flat = folded(text);
        let words = words_of(&flat);
        let (mut topic, mut values, mut predicates) = (Vec::new(), Vec::new(), Vec::new());
        let (mut bounds, mut turns, mut keeps) = (Vec::new(), Vec::new(), false);
        let mut before = "";
        let mut rest = words.as_slice();
        while let Some((word, after)) = rest.split_first() {
            let last = if is_no(word) { before } else { std::mem::replace(&mut before, word) };
            if let Some(quantity) = quantity(rest) {
                values.push(quantity.key);
                rest = rest.get(quantity.words..).unwrap_or_default();
                continue;
            }
            rest = after;
            // `up to` an amount means at most.
            let at_most = *word == "up" && rest.first().is_some_and(|next| *next == "to");
            bounds.extend(BOUND_WORDS.get(if at_most { "most" } else { word }));
            // `prior to` counts as one word.
            if DIRECTION_WORDS.contains(word) && last != "prior" && last != "up" {
                turns.push(topic.len());
            }
            keeps |= KEEP_WORDS.contains(word);
            if is_exact(word) {
                values.push(hash(word));
            } else if !is_stop_word(word) && !KEEP_WORDS.contains(word) {
                let is_predicate = BE_WORDS.contains(last);
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
        bounds.extend(particle.map(|at| BOUNDS.len() + at));
        sort(&mut topic);
        sort(&mut values);
        sort(&mut predicates);
        bounds.sort_unstable();
        Parts { folded: flat, topic, values, order, bounds, predicates, keeps }
    }
}
