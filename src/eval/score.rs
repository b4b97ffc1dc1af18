//! Scores an extraction against gold. Pure: counts, and rates derived from them.
//!
//! A staged record *answers* an item of its kind if its text contains a term of each of the item's groups; without
//! terms, if the item's fields are similar enough; without fields, if its text is similar enough to the statement.
//! Records and items are paired one to one: as many items as possible get a record, core items first.
//!
//! | measure | hits | of |
//! |---|---|---|
//! | precision | records that answer an item | staged records |
//! | recall | items that are answered | items |
//! | F1 | twice the answered items | items and staged records |
//! | core recall | core items that are answered | core items |
//! | succeeded | attempts with the right outcome | items with an outcome that a record could answer |
//! | grounded | strings of staged records with evidence | strings of staged records |
//! | quarantined | records in quarantine | records in quarantine, and staged ones |
//! | found | questions whose item is among the first five records that a search finds | questions |
//! | restraint | forbidden statements that no staged record makes | forbidden statements |
//!
//! *Example.* The gold has three items, two of them core, and one forbidden statement. Five records are staged: two
//! answer core items, one makes the forbidden statement, two say something else; one more is in quarantine. Precision
//! is 2/5, recall 2/3, F1 4/8, core recall 2/2, restraint 0/1, quarantined 1/6.
//!
//! Counts of several cases are added before a rate is computed, so that a long case weighs more.

use super::gold::{Gold, Importance, Item, weights};
use super::measure::{Rate, Tally};
use crate::domain::{Claim, ClaimKind, Record, RecordId, RecordState};
use crate::search::{Frequencies, Query, Ranking, fields_of_record};
use crate::text::tokens::{lower, stands_alone};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Number of search hits among which an answer must be.
const FOUND_MAX: usize = 5;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Score {
    pub tally: Tally,
    /// Each answered item and the record that answers it.
    pub answered: Vec<(String, RecordId)>,
    pub missed: Vec<String>,
    /// Questions that no search hit answers.
    pub unfound: Vec<String>,
    /// Each violated forbidden statement, and the first record that makes it.
    pub violated: Vec<(String, RecordId)>,
}

struct Candidate<'r> {
    id: RecordId,
    claim: &'r Claim,
    /// Lower-case text of every string, joined by spaces.
    text: String,
    words: Vec<String>,
    fields: FieldWords,
}

/// Scores the records of a case against its gold; superseded records are ignored.
pub(crate) fn score(gold: &Gold, records: &[Record]) -> Score {
    let mut score = Score::default();
    let staged: Vec<&Record> =
        records.iter().filter(|it| it.state == RecordState::Staged).collect();
    let quarantined =
        records.iter().filter(|it| it.state == RecordState::Quarantined).count() as u64;
    score.tally.quarantined = Rate { hits: quarantined, of: quarantined + staged.len() as u64 };
    for record in &staged {
        let fields: BTreeSet<&str> = record.evidence.iter().map(|it| it.field.as_str()).collect();
        for (field, _) in record.claim.strings() {
            score.tally.grounded.count(fields.contains(field.as_str()));
        }
    }
    score_questions(gold, &staged, &mut score);
    let candidates: Vec<Candidate<'_>> = staged.into_iter().map(candidate).collect();
    for kind in ClaimKind::ALL {
        score_kind(gold, *kind, &candidates, &mut score);
    }
    for forbidden in &gold.forbidden {
        let is_made = |it: &&Candidate<'_>| meets(&it.text, &forbidden.terms);
        let by = candidates.iter().find(is_made).filter(|_| !forbidden.terms.is_empty());
        score.tally.restraint.count(by.is_none());
        score.violated.extend(by.map(|it| (forbidden.id.clone(), it.id)));
    }
    score
}

/// Searches for the items' questions as `annalist search` does.
fn score_questions(gold: &Gold, staged: &[&Record], score: &mut Score) {
    let least = similarity_min(gold);
    for item in &gold.items {
        for question in &item.questions {
            let query = Query::of(question);
            let mut ranking = Ranking::new(&query);
            for record in staged {
                ranking.add(&fields_of_record(record).each_ref().map(String::as_str));
            }
            let found = ranking.ranked(&Frequencies::default()).into_iter().take(FOUND_MAX);
            let found: Vec<Candidate<'_>> =
                found.filter_map(|(at, _)| staged.get(at)).map(|it| candidate(it)).collect();
            let of_kind: Vec<&Candidate<'_>> =
                found.iter().filter(|it| it.claim.kind() == item.kind).collect();
            let is_found = !answers(item, &of_kind, least).is_empty();
            score.tally.found.count(is_found);
            score.unfound.extend((!is_found).then(|| question.clone()));
        }
    }
}

/// In thousandths, at least 1: texts without common words never match.
fn similarity_min(gold: &Gold) -> u32 {
    gold.similarity.map_or(SIMILARITY_MIN, |it| (it * 1_000.0).round() as u32).max(1)
}

fn candidate(record: &Record) -> Candidate<'_> {
    let strings: Vec<&str> = record.claim.strings().into_iter().map(|(_, text)| text).collect();
    let text = strings.join(" ").to_lowercase();
    let fields = FieldWords::of(&record.claim.to_json());
    Candidate { id: record.id, claim: &record.claim, words: words(&text), fields, text }
}

/// True if a lower-case text contains a term of each group.
fn meets(text: &str, groups: &[Vec<String>]) -> bool {
    groups.iter().all(|group| group.iter().any(|term| text.contains(term.as_str())))
}

fn score_kind(gold: &Gold, kind: ClaimKind, candidates: &[Candidate<'_>], score: &mut Score) {
    let records: Vec<&Candidate<'_>> =
        candidates.iter().filter(|it| it.claim.kind() == kind).collect();
    let mut items: Vec<&Item> = gold.items.iter().filter(|item| item.kind == kind).collect();
    items.sort_by_key(|item| item.importance);
    let least = similarity_min(gold);
    let similar: Vec<Vec<usize>> =
        items.iter().map(|item| answers(item, &records, least)).collect();
    let has_outcome = |item: &Item, at: &usize| match records.get(*at).map(|it| it.claim) {
        Some(Claim::Attempt(it)) => item.succeeded.is_none_or(|wanted| wanted == it.succeeded),
        Some(Claim::Decision(_) | Claim::Discussion(_) | Claim::Request(_)) | None => true,
    };
    let right = |(item, all): (&&Item, &Vec<usize>)| -> Vec<usize> {
        all.iter().copied().filter(|at| has_outcome(item, at)).collect()
    };
    let right: Vec<Vec<usize>> = items.iter().zip(&similar).map(right).collect();
    let pairs = assign(&right, records.len());
    let counts = score.tally.of_mut(kind);
    counts.records = records.len() as u64;
    counts.items = items.len() as u64;
    counts.answered = pairs.iter().flatten().count() as u64;
    for (item, record) in items.iter().zip(&pairs) {
        if item.importance == Importance::Core {
            score.tally.core.count(record.is_some());
        }
        match record.and_then(|at| records.get(at)) {
            Some(record) => score.answered.push((item.id.clone(), record.id)),
            None => score.missed.push(item.id.clone()),
        }
    }
    let pairs_with_outcome = |lists: &[Vec<usize>]| {
        let with = items.iter().zip(lists).filter(|(item, _)| item.succeeded.is_some());
        let with: Vec<Vec<usize>> = with.map(|(_, records)| records.clone()).collect();
        assign(&with, records.len()).iter().flatten().count() as u64
    };
    score.tally.succeeded +=
        Rate { hits: pairs_with_outcome(&right), of: pairs_with_outcome(&similar) };
}

/// Indices of the records that state an item, with any outcome, most similar first.
fn answers(item: &Item, records: &[&Candidate<'_>], least: u32) -> Vec<usize> {
    let statement = words(&item.statement);
    let wanted = FieldWords::of(&serde_json::to_value(&item.fields).unwrap_or_default());
    let similarity = |record: &Candidate<'_>| match item.fields.is_empty() {
        true => dice(&statement, &record.words),
        false => wanted.similarity(&record.fields, item.kind),
    };
    let answers = |(at, record): (usize, &&Candidate<'_>)| {
        let similarity = similarity(record);
        let says = match item.terms.is_empty() {
            true => least <= similarity,
            false => meets(&record.text, &item.terms),
        };
        says.then_some((Reverse(similarity), at))
    };
    let mut found: Vec<_> = records.iter().enumerate().filter_map(answers).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, at)| at).collect()
}

/// Maximum bipartite matching (Kuhn's algorithm): each item gets at most one of its records, and each record goes
/// to at most one item; earlier items take priority.
fn assign(answers: &[Vec<usize>], records: usize) -> Vec<Option<usize>> {
    fn give(
        item: usize,
        answers: &[Vec<usize>],
        given: &mut [Option<usize>],
        seen: &mut [bool],
    ) -> bool {
        for record in answers.get(item).into_iter().flatten() {
            if std::mem::replace(&mut seen[*record], true) {
                continue;
            }
            let holder = given[*record];
            if holder.is_none_or(|other| give(other, answers, given, seen)) {
                given[*record] = Some(item);
                return true;
            }
        }
        false
    }
    let mut given: Vec<Option<usize>> = vec![None; records];
    for item in 0..answers.len() {
        give(item, answers, &mut given, &mut vec![false; records]);
    }
    let record_of = |item| given.iter().position(|it| *it == Some(item));
    (0..answers.len()).map(record_of).collect()
}

/// Default minimum similarity, in thousandths, at which a record answers an item.
const SIMILARITY_MIN: u32 = 500;

/// Distinct lower-case words of a text, sorted. In scripts without spaces each pair of adjacent letters is a word.
fn words(text: &str) -> Vec<String> {
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
fn dice(one: &[String], other: &[String]) -> u32 {
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
fn best_pairs(mut pairs: Vec<(u32, usize, usize)>) -> Vec<(u32, usize, usize)> {
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

#[cfg(test)]
#[path = "score_tests.rs"]
pub(crate) mod tests;
