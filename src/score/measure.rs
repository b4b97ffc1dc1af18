//! Counts, and the rates that they come to.

use super::assign::assign;
use super::gold::{Gold, Importance, Item, meets};
use super::similar::{Index, SIMILARITY_MIN, dice, words};
use crate::domain::{Claim, ClaimKind, Record, RecordId, RecordState};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::AddAssign;

/// So many of so many.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Rate {
    /// Those that count.
    pub hits: u64,
    /// All.
    pub of: u64,
}

impl Rate {
    /// From 0 to 1; none where there is nothing to take it of.
    pub fn value(self) -> Option<f64> {
        (self.of > 0).then(|| self.hits as f64 / self.of as f64)
    }

    fn count(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.of += 1;
    }
}

impl AddAssign for Rate {
    fn add_assign(&mut self, other: Rate) {
        self.hits += other.hits;
        self.of += other.of;
    }
}

/// What was to be found, and what was found.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Counts {
    /// Items of the gold.
    pub items: u64,
    /// Records that are staged.
    pub records: u64,
    /// Pairs of both.
    pub answered: u64,
}

impl Counts {
    /// Records that answer an item, of all records.
    pub fn precision(self) -> Rate {
        Rate { hits: self.answered, of: self.records }
    }

    /// Items that are answered, of all items.
    pub fn recall(self) -> Rate {
        Rate { hits: self.answered, of: self.items }
    }

    /// The harmonic mean of both.
    pub fn f1(self) -> Rate {
        Rate { hits: 2 * self.answered, of: self.items + self.records }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.items += other.items;
        self.records += other.records;
        self.answered += other.answered;
    }
}

/// Everything that is counted of one conversation, or of many together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Tally {
    /// Decisions.
    pub decisions: Counts,
    /// Discussions.
    pub discussions: Counts,
    /// Attempts.
    pub attempts: Counts,
    /// Requests.
    pub requests: Counts,
    /// Core items that are answered.
    pub core: Rate,
    /// Outcomes of attempts that are told right.
    pub succeeded: Rate,
    /// Strings of staged records that evidence is named for.
    pub grounded: Rate,
    /// Records in quarantine.
    pub quarantined: Rate,
    /// Things not to be said that are not.
    pub restraint: Rate,
}

impl Tally {
    /// The counts of one kind.
    pub fn of(&self, kind: ClaimKind) -> Counts {
        match kind {
            ClaimKind::Decision => self.decisions,
            ClaimKind::Discussion => self.discussions,
            ClaimKind::Attempt => self.attempts,
            ClaimKind::Request => self.requests,
        }
    }

    /// The counts of all kinds together.
    pub fn all(&self) -> Counts {
        let mut all = Counts::default();
        ClaimKind::ALL.iter().for_each(|kind| all += self.of(*kind));
        all
    }

    fn of_mut(&mut self, kind: ClaimKind) -> &mut Counts {
        match kind {
            ClaimKind::Decision => &mut self.decisions,
            ClaimKind::Discussion => &mut self.discussions,
            ClaimKind::Attempt => &mut self.attempts,
            ClaimKind::Request => &mut self.requests,
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        for kind in ClaimKind::ALL {
            *self.of_mut(*kind) += other.of(*kind);
        }
        self.core += other.core;
        self.succeeded += other.succeeded;
        self.grounded += other.grounded;
        self.quarantined += other.quarantined;
        self.restraint += other.restraint;
    }
}

/// How one conversation did, and by which records.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Score {
    /// The counts.
    pub tally: Tally,
    /// Each answered item and the record that answers it.
    pub answered: Vec<(String, RecordId)>,
    /// The items that nothing answers.
    pub missed: Vec<String>,
    /// What is not to be said, and the first record that says it.
    pub violated: Vec<(String, RecordId)>,
}

/// A staged record as it is compared.
struct Said<'r> {
    id: RecordId,
    claim: &'r Claim,
    /// Every string, joined by a blank, in lower case.
    text: String,
    words: Vec<String>,
}

/// Compares the records of a conversation with its gold; replaced records count for nothing.
pub fn score(gold: &Gold, records: &[Record]) -> Score {
    let mut score = Score::default();
    let staged: Vec<&Record> =
        records.iter().filter(|record| record.state == RecordState::Staged).collect();
    let doubted = records.iter().filter(|record| record.state == RecordState::Quarantined).count();
    let (doubted, kept) = (doubted as u64, staged.len() as u64);
    score.tally.quarantined = Rate { hits: doubted, of: doubted + kept };
    staged.iter().for_each(|record| ground(record, &mut score.tally.grounded));
    let said: Vec<Said<'_>> = staged.iter().map(|record| said(record)).collect();
    for kind in ClaimKind::ALL {
        compare(gold, *kind, &said, &mut score);
    }
    for forbidden in &gold.forbidden {
        let by = said.iter().find(|it| meets(&it.text, &forbidden.terms));
        score.tally.restraint.count(by.is_none());
        score.violated.extend(by.map(|it| (forbidden.id.clone(), it.id)));
    }
    score
}

fn said(record: &Record) -> Said<'_> {
    let strings: Vec<&str> = record.claim.strings().into_iter().map(|(_, text)| text).collect();
    let text = strings.join(" ").to_lowercase();
    Said { id: record.id, claim: &record.claim, words: words(&text), text }
}

/// Counts the strings of a record, and those that evidence is named for.
fn ground(record: &Record, grounded: &mut Rate) {
    let fields: BTreeSet<&str> = record.evidence.iter().map(|it| it.field.as_str()).collect();
    for (field, _) in record.claim.strings() {
        grounded.count(fields.contains(field.as_str()));
    }
}

/// Assigns records of one kind to items of it, core items first.
fn compare(gold: &Gold, kind: ClaimKind, said: &[Said<'_>], score: &mut Score) {
    let said: Vec<&Said<'_>> = said.iter().filter(|it| it.claim.kind() == kind).collect();
    let mut items: Vec<&Item> = gold.items.iter().filter(|item| item.kind == kind).collect();
    items.sort_by_key(|item| item.importance);
    let index = Index::of(said.iter().enumerate().map(|(at, it)| (at, it.words.as_slice())));
    let speak: Vec<Vec<usize>> = items.iter().map(|item| speak(item, &said, &index)).collect();
    let agrees = |item: &Item, at: usize| {
        let outcome = said.get(at).and_then(|it| outcome(it.claim));
        item.succeeded.is_none_or(|expected| outcome.is_none_or(|outcome| outcome == expected))
    };
    let answers: Vec<Vec<usize>> = items
        .iter()
        .zip(&speak)
        .map(|(item, records)| records.iter().copied().filter(|at| agrees(item, *at)).collect())
        .collect();
    let given = assign(&answers, said.len());
    let counts = score.tally.of_mut(kind);
    counts.records = said.len() as u64;
    for (item, record) in items.iter().zip(&given) {
        let record = record.and_then(|at| said.get(at));
        let counts = score.tally.of_mut(kind);
        counts.items += 1;
        counts.answered += u64::from(record.is_some());
        match item.importance {
            Importance::Core => score.tally.core.count(record.is_some()),
            Importance::Useful => {}
        }
        match record {
            Some(record) => score.answered.push((item.id.clone(), record.id)),
            None => score.missed.push(item.id.clone()),
        }
    }
    score.tally.succeeded += outcomes(&items, &speak, &answers, said.len());
}

/// Of the items with an outcome that a record of its own speaks of, those for which it can be one that
/// tells it right.
fn outcomes(items: &[&Item], speak: &[Vec<usize>], answers: &[Vec<usize>], records: usize) -> Rate {
    let assigned = |lists: &[Vec<usize>]| {
        let with = items.iter().zip(lists).filter(|(item, _)| item.succeeded.is_some());
        let with: Vec<Vec<usize>> = with.map(|(_, records)| records.clone()).collect();
        assign(&with, records).iter().flatten().count() as u64
    };
    Rate { hits: assigned(answers), of: assigned(speak) }
}

fn outcome(claim: &Claim) -> Option<bool> {
    match claim {
        Claim::Attempt(attempt) => Some(attempt.succeeded),
        Claim::Decision(_) | Claim::Discussion(_) | Claim::Request(_) => None,
    }
}

/// The records that say an item, those most like its statement first.
fn speak(item: &Item, said: &[&Said<'_>], index: &Index<'_>) -> Vec<usize> {
    let statement = words(&item.statement);
    let like = |at: usize| said.get(at).map_or(0, |it| dice(&statement, &it.words));
    let mut records: Vec<usize> = if item.terms.is_empty() {
        index.near(&statement).into_iter().filter(|at| SIMILARITY_MIN <= like(*at)).collect()
    } else {
        let meets = |(at, it): (usize, &&Said<'_>)| meets(&it.text, &item.terms).then_some(at);
        said.iter().enumerate().filter_map(meets).collect()
    };
    records.sort_by_cached_key(|at| Reverse(like(*at)));
    records
}
