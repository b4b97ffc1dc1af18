//! Words that a main string states, in order, with those of its qualifiers.

use super::parts::sort;
use super::phrases::{is_exact, is_stop_word, list, topic_keys};
use super::quantity::{quantity, words_of};
use crate::text::tokens::hash;

/// Words that a main string states.
#[derive(Clone, Debug, Default)]
pub(super) struct Stated {
    /// Words and values in order.
    pub(super) sequence: Vec<u64>,
    /// The same, sorted.
    pub(super) keys: Vec<u64>,
    /// For each word of `sequence`, true if it follows the one before at once.
    is_next: Vec<bool>,
    /// Qualifiers, sorted.
    pub(super) qualifiers: Vec<u64>,
    /// Words of a later clause that leaves something out, as in `8080, not 9090`, sorted.
    pub(super) dismissed: Vec<u64>,
    /// The only one that it applies to, as in `only Ann`, `Ann alone`, `nobody but Ann`.
    pub(super) only: Option<u64>,
    pub(super) nobody_else: bool,
    /// The last word may be a German verb.
    ends_with_verb: bool,
}

impl Stated {
    /// Parses the folded main string of a claim.
    pub(super) fn of(head: &str) -> Stated {
        let mut it = Stated::default();
        let head = head.replace(" d'", " de ");
        for (at, clause) in clauses(&head).enumerate() {
            let tokens = tokens(clause);
            if at > 0 && list("dismissals").begin(&words_of(clause)).is_some() {
                it.dismissed.extend(tokens.iter().flat_map(|token| token.keys.clone()));
            }
            let words = words_of(clause);
            let is_said = |at: usize| list("nobody else").begin(&words[at..]).is_some();
            it.nobody_else |= (0..words.len()).any(is_said);
            it.only = it.only.or_else(|| only(&tokens));
            let (mut part, mut noun, mut is_next) = (false, false, false);
            for token in tokens {
                if token.keys.is_empty() {
                    part |= list("qualifier words").has(token.word)
                        || (noun && list("noun qualifier words").has(token.word));
                    noun = false;
                    is_next &= list("articles").has(token.word);
                    continue;
                }
                it.sequence.extend(&token.keys);
                it.is_next.push(is_next);
                it.is_next.resize(it.sequence.len(), true);
                it.qualifiers.extend(token.keys.iter().filter(|_| part && !token.is_value));
                (part, noun, is_next) = (false, !token.is_value, true);
            }
        }
        it.ends_with_verb =
            it.is_next.last() == Some(&true) && head.trim_end_matches('.').ends_with(['n', 't']);
        it.keys = it.sequence.clone();
        [&mut it.keys, &mut it.qualifiers, &mut it.dismissed].into_iter().for_each(sort);
        it
    }

    /// True if a word that `former` lacks stands beside one of `keys`, as in `the palm house`.
    pub(super) fn specifies(&self, keys: &[u64], former: &Stated) -> bool {
        let pairs = self.sequence.windows(2).zip(self.is_next.iter().skip(1));
        let mut beside = pairs.filter(|(_, is_next)| **is_next);
        let is_new = |key: &u64| former.keys.binary_search(key).is_err();
        beside.any(|(pair, _)| pair.iter().any(|it| keys.contains(it)) && pair.iter().any(is_new))
    }

    /// True if both have their common words in the same order, or with the last ones first, and so `values`, which may
    /// stand anywhere between them. Words that are `free` stand anywhere.
    pub(super) fn is_in_order_of(
        &self,
        other: &Stated,
        values: &[u64],
        is_free: impl Fn(&u64) -> bool,
    ) -> bool {
        let common = |it: &Stated, of: &Stated| -> (Vec<u64>, Vec<u64>) {
            let is_common = |key: &&u64| of.keys.binary_search(key).is_ok() && !is_free(key);
            let keys = it.sequence.iter().filter(is_common).copied();
            keys.partition(|key| values.binary_search(key).is_ok())
        };
        let ((own_values, own), (values, words)) = (common(self, other), common(other, self));
        let is_turned = |at: usize| [&own[at..], &own[..at]].concat() == words;
        let is_ordered = own == words || own.len() > 2 && (1..own.len()).any(is_turned);
        is_ordered && own_values == values
    }

    /// True if both are one sentence but for the words in a single place.
    pub(super) fn swaps(&self, former: &Stated) -> bool {
        let added = gaps(self, former);
        added.len() == 1 && added == gaps(former, self)
    }

    /// True if both have different words behind the same word, but for a verb at the end.
    pub(super) fn exchanges(&self, former: &Stated) -> bool {
        let lost = gaps(former, self);
        let last = former.sequence.iter().rev().nth(1).copied();
        let last = last.filter(|_| self.ends_with_verb && former.ends_with_verb);
        let is_end = |gap: &Gap| gap.after.is_none() && gap.before == last;
        let mut gained = gaps(self, former).into_iter();
        gained.any(|gap| gap.before.is_some() && !is_end(&gap) && lost.contains(&gap))
    }
}

/// A place at which one text has words that another one lacks, between two words that both have.
#[derive(PartialEq)]
struct Gap {
    before: Option<u64>,
    after: Option<u64>,
}

fn gaps(of: &Stated, other: &Stated) -> Vec<Gap> {
    let is_common = |key: &&u64| other.keys.binary_search(key).is_ok();
    let runs = of.sequence.chunk_by(|one, two| is_common(&one) == is_common(&two));
    let mut gaps: Vec<Gap> = Vec::new();
    let mut before = None;
    for run in runs {
        if run.first().is_some_and(|key| is_common(&key)) {
            if let Some(gap) = gaps.last_mut().filter(|gap| gap.after.is_none()) {
                gap.after = run.first().copied();
            }
            before = run.last().copied();
        } else {
            gaps.push(Gap { before, after: None });
        }
    }
    gaps
}

/// The thing beside a word that excludes all others: after it, or before it at the end of a clause.
fn only(tokens: &[Token<'_>]) -> Option<u64> {
    let at = tokens.iter().position(|token| list("only").has(token.word))?;
    let (before, after) = tokens.split_at(at);
    let is_behind = tokens.get(at).is_some_and(|token| list("alone").has(token.word));
    let next = after.iter().filter(|_| !is_behind).find_map(|token| token.keys.first());
    next.or_else(|| before.iter().rev().find_map(|token| token.keys.first())).copied()
}

/// A word of a clause, or a quantity.
struct Token<'a> {
    word: &'a str,
    /// Empty for a stop word.
    keys: Vec<u64>,
    is_value: bool,
}

fn tokens(clause: &str) -> Vec<Token<'_>> {
    let words = words_of(clause);
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut rest = words.as_slice();
    while let Some((word, after)) = rest.split_first() {
        let mut token = Token { word, keys: Vec::new(), is_value: true };
        if let Some(quantity) = quantity(rest) {
            token.keys.push(quantity.key);
            rest = rest.get(quantity.words..).unwrap_or_default();
        } else {
            rest = after;
            if is_exact(word) {
                token.keys.push(hash(word));
            } else {
                token.is_value = false;
                if !is_stop_word(word) {
                    topic_keys(word, |key| token.keys.push(key));
                }
            }
        }
        tokens.push(token);
    }
    tokens
}

/// Parts of a folded text between punctuation marks.
pub(super) fn clauses(folded: &str) -> impl Iterator<Item = &str> {
    let mark =
        |letter: char| matches!(letter, ',' | ';' | ':' | '.' | '!' | '?' | '(' | ')' | '—' | '–');
    let mut rest = folded;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let ends = rest.char_indices().find(|(at, letter)| {
            let next = rest.get(at + letter.len_utf8()..).unwrap_or_default();
            mark(*letter) && !next.starts_with(char::is_alphanumeric)
        });
        let (clause, after) = match ends {
            Some((at, letter)) => (rest.get(..at), rest.get(at + letter.len_utf8()..)),
            None => (Some(rest), None),
        };
        rest = after.unwrap_or_default();
        clause
    })
}
