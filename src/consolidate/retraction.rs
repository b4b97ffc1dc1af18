//! Words that a text retracts, in whole clauses or after phrases such as `instead of`. A word that
//! is retracted here and stated by an earlier decision shows that both are about the same thing.

use super::parts::{both, shared, sort, without};
use super::phrases::{WordList, is_exact, is_stop_word, list, says_change, says_no, topic_keys};
use super::quantity::{quantity, words_of};
use crate::text::tokens::hash;
use std::mem;

/// A text, with what it retracts.
#[derive(Clone, Debug, Default)]
pub(super) struct Retraction {
    /// All words and values, sorted.
    pub(super) all: Vec<u64>,
    /// Retracted words and values, sorted.
    pub(super) retracted: Vec<u64>,
    /// The same, clause by clause.
    by_clause: Vec<Vec<u64>>,
    /// Words and values of clauses that retract a decision, sorted, if there are any.
    pub(super) regrets: Option<Vec<u64>>,
    pub(super) refuses: bool,
    pub(super) changes: bool,
    pub(super) says_again: bool,
}

impl Retraction {
    /// Parses a folded text.
    pub(super) fn of(folded: &str) -> Retraction {
        let mut it = Retraction {
            refuses: has(folded, list("refusals")),
            changes: says_change(folded),
            says_again: list("repeats").are_in(folded) || has(folded, list("as ever")),
            ..Retraction::default()
        };
        for clause in clauses(&folded.replace(" d'", " de ")) {
            let tokens = tokens(clause, it.changes);
            let keys = |given: bool| {
                let tokens = tokens.iter().filter(move |token| token.retracted || !given);
                tokens.flat_map(|token| token.keys.iter().copied())
            };
            it.all.extend(keys(false));
            let mut retracted: Vec<u64> = keys(true).collect();
            sort(&mut retracted);
            it.retracted.extend(&retracted);
            it.by_clause.push(retracted);
            if has(clause, list("regrets")) {
                it.regrets.get_or_insert_default().extend(keys(false));
            }
        }
        sort(&mut it.all);
        sort(&mut it.retracted);
        it.regrets.iter_mut().for_each(sort);
        it
    }

    /// Retracted words and values of clauses that retract mostly words of `known`, sorted. A clause such as `a blocked member's card
    /// is dead` retracts nothing of a rule that also mentions members.
    pub(super) fn retracted_of(&self, known: &[u64]) -> Vec<u64> {
        let is_about = |clause: &&Vec<u64>| shared(clause, known) * 2 >= clause.len();
        let mut all: Vec<u64> = self.by_clause.iter().filter(is_about).flatten().copied().collect();
        sort(&mut all);
        all
    }
}

/// Words that a main string states, without those that it retracts.
#[derive(Clone, Debug, Default)]
pub(super) struct Stated {
    /// Words and values in order.
    pub(super) sequence: Vec<u64>,
    /// The same, sorted.
    pub(super) keys: Vec<u64>,
    /// Kind of stop words before each word of `sequence`.
    stop_words_before: Vec<StopWordRun>,
    /// Qualifiers, sorted.
    pub(super) qualifiers: Vec<u64>,
    /// Qualifiers beside an amount, sorted.
    amounts: Vec<u64>,
    /// Words of a negative first clause that others follow, sorted.
    pub(super) denied: Vec<u64>,
    /// Words of a later clause that leaves something out, as in `8080, not 9090`, sorted.
    pub(super) dismissed: Vec<u64>,
    /// The only one that it applies to, as in `only Ann`, `Ann alone`, `nobody but Ann`.
    pub(super) only: Option<u64>,
    pub(super) nobody_else: bool,
    /// The last word may be a German verb.
    ends_with_verb: bool,
}

impl Stated {
    /// Parses the folded main string of a claim; `changes` is true if the claim mentions a change.
    pub(super) fn of(head: &str, changes: bool) -> Stated {
        let mut it = Stated::default();
        let head = head.replace(" d'", " de ");
        let all: Vec<&str> = clauses(&head).collect();
        for (at, clause) in all.iter().enumerate() {
            let tokens = tokens(clause, changes);
            if at == 0 && all.len() > 1 && says_no(clause) {
                it.denied = tokens.iter().flat_map(|token| token.keys.clone()).collect();
                sort(&mut it.denied);
            }
            if at > 0 && list("dismissals").begin(&words_of(clause)).is_some() {
                it.dismissed.extend(tokens.iter().flat_map(|token| token.keys.clone()));
            }
            it.nobody_else |= has(clause, list("nobody else"));
            it.only = it.only.or_else(|| only(&tokens));
            let (mut part, mut amount) = (false, false);
            let (mut noun, mut glue) = (false, StopWordRun::Nothing);
            for token in tokens {
                let is_in = |list: &WordList| list.has(token.word);
                if token.keys.is_empty() {
                    let is_between = is_in(list("qualifier words"))
                        || is_in(list("amount qualifier words"))
                        || is_in(list("between"));
                    if !is_in(list("articles")) {
                        let goes_on = is_between && glue != StopWordRun::Other;
                        glue = if goes_on { StopWordRun::Preposition } else { StopWordRun::Other };
                    }
                    part |= is_in(list("qualifier words"))
                        || (noun && is_in(list("noun qualifier words")));
                    amount |= is_in(list("amount qualifier words"));
                    noun = false;
                    continue;
                }
                if !token.retracted {
                    it.sequence.extend(&token.keys);
                    it.stop_words_before.push(glue);
                    it.stop_words_before.resize(it.sequence.len(), StopWordRun::Nothing);
                    if !token.is_value {
                        it.qualifiers.extend(token.keys.iter().filter(|_| part));
                        it.amounts.extend(token.keys.iter().filter(|_| part || amount));
                    }
                }
                (part, amount, noun, glue) = (false, false, !token.is_value, StopWordRun::Nothing);
            }
        }
        it.ends_with_verb = it.stop_words_before.last() == Some(&StopWordRun::Nothing)
            && head.trim_end_matches('.').ends_with(['n', 't']);
        it.keys = it.sequence.clone();
        let lists = [&mut it.keys, &mut it.qualifiers, &mut it.amounts, &mut it.dismissed];
        lists.into_iter().for_each(sort);
        it
    }

    /// True if each of the two says what the other dismisses, and both say something else, too.
    pub(super) fn turns_around(&self, former: &Stated) -> bool {
        let said = |it: &Stated| without(&it.keys, &it.dismissed);
        let (own, before) = (said(self), said(former));
        shared(&self.dismissed, &before) > 0
            && shared(&former.dismissed, &own) > 0
            && shared(&own, &before) > 0
    }

    /// True if it is about only a part of what `former` is about: it has a qualifier, adds words where `former` lost
    /// none, or begins with new words although the first of `former` is not `told`.
    pub(super) fn narrows(&self, former: &Stated, of_amount: bool, told: &[u64]) -> bool {
        if self.has_new_qualifier(former, of_amount, told) {
            return true;
        }
        let is_added = |key: &u64| former.keys.binary_search(key).is_err();
        let runs = self.sequence.windows(2).zip(self.stop_words_before.windows(2));
        let in_phrases = |(keys, glue): (&[u64], &[StopWordRun])| {
            keys.iter().all(is_added)
                && glue.first() == Some(&StopWordRun::Preposition)
                && glue.last() != Some(&StopWordRun::Nothing)
        };
        if runs.into_iter().any(in_phrases) {
            return true;
        }
        let (added, lost) = (gaps(self, former), gaps(former, self));
        let at_end = |gaps: &[Gap]| gaps.iter().filter(|gap| gap.is_end()).count();
        let is_known =
            |key: &u64| [&self.keys, told].iter().any(|it| it.binary_search(key).is_ok());
        let is_replaced = former.sequence.first().is_none_or(is_known);
        added.iter().any(|gap| {
            if gap.before.is_none() && !is_replaced {
                return true;
            }
            let same = lost.iter().any(|it| it.before == gap.before || it.after == gap.after);
            // A value may move from one end of a sentence to the other.
            let alone = gap.after.is_none() && added.len() == 1 && lost.len() == 1;
            let turned = alone || (gap.is_end() && at_end(&added) == 1 && at_end(&lost) > 0);
            !same && !turned
        })
    }

    /// True if it names a part that `former` does not, unless `former` names another one that is `told`.
    pub(super) fn has_new_qualifier(&self, former: &Stated, of_amount: bool, told: &[u64]) -> bool {
        let parts =
            |it: &Stated| if of_amount { it.amounts.clone() } else { it.qualifiers.clone() };
        let other = both(&without(&parts(former), &self.keys), told);
        other.is_empty() && !without(&parts(self), &former.keys).is_empty()
    }

    /// True if a word that `former` lacks stands beside one of `keys`, as in `the palm house`.
    pub(super) fn specifies(&self, keys: &[u64], former: &Stated) -> bool {
        let pairs = self.sequence.windows(2).zip(self.stop_words_before.iter().skip(1));
        let mut beside = pairs.filter(|(_, glue)| **glue == StopWordRun::Nothing);
        let is_new = |key: &u64| former.keys.binary_search(key).is_err();
        beside.any(|(pair, _)| pair.iter().any(|it| keys.contains(it)) && pair.iter().any(is_new))
    }

    /// True if `former` has a qualifier that this one lacks and that is not `told`.
    pub(super) fn loses_part_of(&self, former: &Stated, told: &[u64]) -> bool {
        let is_known =
            |key: &u64| [&self.keys[..], told].iter().any(|it| it.binary_search(key).is_ok());
        !former.qualifiers.iter().all(is_known)
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

    pub(super) fn swaps(&self, former: &Stated) -> bool {
        let (added, lost) = (gaps(self, former), gaps(former, self));
        added.len() == 1 && added == lost
    }

    /// True if it has other words in the place of `words` of `former` alone.
    pub(super) fn puts_others_for(&self, words: &[u64], former: &Stated) -> bool {
        let added = gaps(self, former);
        let is_wanted = |gap: &Gap| gap.keys.iter().all(|key| words.contains(key));
        gaps(former, self).iter().any(|gap| is_wanted(gap) && added.contains(gap))
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

    /// True if it begins with the subject of `former`, or has before it only words that replace
    /// others.
    pub(super) fn is_of_subject(&self, former: &Stated) -> bool {
        let leads = |gaps: Vec<Gap>| gaps.iter().any(|gap| gap.before.is_none());
        !leads(gaps(self, former)) || leads(gaps(former, self))
    }
}

/// Stop words between two other words.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum StopWordRun {
    Nothing,
    /// Only a preposition, perhaps with an article.
    Preposition,
    Other,
}

/// Run of words that another text lacks, between two that both have.
struct Gap {
    keys: Vec<u64>,
    before: Option<u64>,
    after: Option<u64>,
}

impl PartialEq for Gap {
    fn eq(&self, other: &Gap) -> bool {
        (self.before, self.after) == (other.before, other.after)
    }
}

impl Gap {
    fn is_end(&self) -> bool {
        self.before.is_none() || self.after.is_none()
    }
}

fn gaps(of: &Stated, other: &Stated) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let (mut before, mut keys) = (None, Vec::new());
    for key in &of.sequence {
        if other.keys.binary_search(key).is_err() {
            keys.push(*key);
        } else {
            if !keys.is_empty() {
                gaps.push(Gap { keys: mem::take(&mut keys), before, after: Some(*key) });
            }
            before = Some(*key);
        }
    }
    if !keys.is_empty() {
        gaps.push(Gap { keys, before, after: None });
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
    /// Number of words before it.
    start: usize,
    /// Empty for a stop word.
    keys: Vec<u64>,
    is_value: bool,
    retracted: bool,
}

/// Tokens of a clause; retracted ones are marked.
fn tokens(clause: &str, changes: bool) -> Vec<Token<'_>> {
    let words = words_of(clause);
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut rest = words.as_slice();
    while let Some((word, after)) = rest.split_first() {
        let start = words.len() - rest.len();
        let mut token = Token { word, start, keys: Vec::new(), is_value: true, retracted: false };
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
    let ne = words.contains(&"ne") || clause.contains(" n'") || clause.starts_with("n'");
    let says = |list: &WordList| words.iter().any(|word| list.has(word));
    let moves = says(list("moves")) || (list("shifts").are_in(clause) && says(list("to")));
    let begins = |list: &WordList, at: usize| list.begin(words.get(at..).unwrap_or_default());
    for at in 0..tokens.len() {
        let (before, after) = tokens.split_at_mut(at);
        let Some(Token { word, start, .. }) = after.first() else { break };
        let (word, start) = (*word, *start);
        let verb = begins(list("retracting verbs"), start);
        let ahead = begins(list("before retracted"), start)
            .or(verb)
            .or_else(|| begins(list("negations before retracted"), start).filter(|_| changes))
            .or_else(|| (ne && word == "plus").then_some(1))
            .or_else(|| (moves && list("from").has(word)).then_some(1));
        // Under a condition nothing is given up: `opens when power is gone`.
        let is_condition = || before.iter().any(|it| list("conditions").has(it.word));
        let behind = begins(list("after retracted"), start).filter(|_| !is_condition());
        // Number of tokens in the first `words` words from here.
        let count = |words: Option<usize>| {
            after.iter().take_while(|it| it.start < start + words.unwrap_or_default()).count()
        };
        let (skip, said) = (count(ahead), count(behind));
        let mut found = false;
        if ahead.is_some() {
            after.iter_mut().take(skip).for_each(|token| token.retracted = true);
            for token in after.iter_mut().skip(skip) {
                if (found || verb.is_some()) && list("retraction ends").has(token.word) {
                    break;
                }
                found |= !token.keys.is_empty();
                token.retracted = true;
            }
        }
        if behind.is_some() || (ahead.is_some() && !found) {
            before.iter_mut().chain(after.iter_mut().take(said)).for_each(|it| it.retracted = true);
        }
    }
    tokens
}

fn has(folded: &str, list: &WordList) -> bool {
    let words = words_of(folded);
    (0..words.len()).any(|at| list.begin(words.get(at..).unwrap_or_default()).is_some())
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
