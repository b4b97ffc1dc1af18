//! Which record says which item: by terms, by fields, or by the statement.

use super::assign::{Answer, assign};
use super::fields::{Fields, Texts};
use super::gold::{Gold, Importance, Item};
use super::index::Index;
use super::measure::{Rate, Tally};
use super::similar::{EMBEDDING_SIMILARITY_MIN, SIMILARITY_MIN, words};
use super::terms::Terms;
use crate::domain::{Claim, ClaimKind, Record, RecordId, RecordState, Vector};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

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
    /// Its words, as a list of one text.
    words: [Vec<String>; 1],
}

/// Where texts stand among others, by the texts: those of [`texts_to_embed`].
pub type Vectors = BTreeMap<String, Vector>;

/// The texts that are compared by their vectors where there are any: statements of items that have neither terms
/// nor fields, and records of their kinds.
pub fn texts_to_embed(gold: &Gold, records: &[Record]) -> BTreeSet<String> {
    let by_statement = |item: &&Item| item.terms.is_empty() && item.fields.is_empty();
    let items: Vec<&Item> = gold.items.iter().filter(by_statement).collect();
    let is_wanted = |record: &&Record| {
        let kind = record.claim.kind();
        record.state == RecordState::Staged && items.iter().any(|item| item.kind == kind)
    };
    let said = records.iter().filter(is_wanted).map(|record| said(record).text);
    let wanted = items.iter().map(|item| item.statement.clone());
    said.chain(wanted).filter(|text| !text.trim().is_empty()).collect()
}

/// Compares the records of a conversation with its gold; replaced records count for nothing.
pub fn score(gold: &Gold, records: &[Record]) -> Score {
    score_by(gold, records, &Vectors::new())
}

/// The same; statements are compared by `vectors` instead of by words where there are any.
pub fn score_by(gold: &Gold, records: &[Record], vectors: &Vectors) -> Score {
    let mut score = Score::default();
    let staged: Vec<&Record> =
        records.iter().filter(|record| record.state == RecordState::Staged).collect();
    let doubted = records.iter().filter(|record| record.state == RecordState::Quarantined).count();
    let (doubted, kept) = (doubted as u64, staged.len() as u64);
    score.tally.quarantined = Rate { hits: doubted, of: doubted + kept };
    staged.iter().for_each(|record| ground(record, &mut score.tally.grounded));
    let said: Vec<Said<'_>> = staged.iter().map(|record| said(record)).collect();
    for kind in ClaimKind::ALL {
        compare((gold, vectors), *kind, &said, &mut score);
    }
    let forbidden = gold.forbidden.iter().map(|it| it.terms.as_slice());
    let terms = Terms::of(forbidden, said.iter().map(|it| it.text.as_str()));
    for forbidden in &gold.forbidden {
        let by = terms.meeting(&forbidden.terms).first().and_then(|at| said.get(*at));
        score.tally.restraint.count(by.is_none());
        score.tally.restraints.of_mut(forbidden.why).count(by.is_none());
        score.violated.extend(by.map(|it| (forbidden.id.clone(), it.id)));
    }
    score
}

fn said(record: &Record) -> Said<'_> {
    let strings: Vec<&str> = record.claim.strings().into_iter().map(|(_, text)| text).collect();
    let text = strings.join(" ").to_lowercase();
    Said { id: record.id, claim: &record.claim, words: [words(&text)], text }
}

/// Counts the strings of a record, and those that evidence is named for.
fn ground(record: &Record, grounded: &mut Rate) {
    let fields: BTreeSet<&str> = record.evidence.iter().map(|it| it.field.as_str()).collect();
    for (field, _) in record.claim.strings() {
        grounded.count(fields.contains(field.as_str()));
    }
}

/// Assigns records of one kind to items of it, core items first.
fn compare(
    (gold, vectors): (&Gold, &Vectors),
    kind: ClaimKind,
    said: &[Said<'_>],
    score: &mut Score,
) {
    let said: Vec<&Said<'_>> = said.iter().filter(|it| it.claim.kind() == kind).collect();
    let mut items: Vec<&Item> = gold.items.iter().filter(|item| item.kind == kind).collect();
    items.sort_by_key(|item| item.importance);
    let with_fields = items.iter().any(|item| !item.fields.is_empty());
    let fields = said.iter().filter(|_| with_fields).map(|it| Texts::of(&it.claim.to_json()));
    let fields: Vec<Texts> = fields.collect();
    let speakers = Speakers::of((gold, vectors), &items, (kind, &said, &fields));
    let speak: Vec<Vec<Answer>> = items.iter().map(|item| speakers.of_item(item)).collect();
    let agrees = |item: &Item, at: usize| {
        let outcome = said.get(at).and_then(|it| outcome(it.claim));
        item.succeeded.is_none_or(|expected| outcome.is_none_or(|outcome| outcome == expected))
    };
    let answers: Vec<Vec<Answer>> = items
        .iter()
        .zip(&speak)
        .map(|(item, all)| all.iter().copied().filter(|(at, _)| agrees(item, *at)).collect())
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
fn outcomes(
    items: &[&Item],
    speak: &[Vec<Answer>],
    answers: &[Vec<Answer>],
    records: usize,
) -> Rate {
    let assigned = |lists: &[Vec<Answer>]| {
        let with = items.iter().zip(lists).filter(|(item, _)| item.succeeded.is_some());
        let with: Vec<Vec<Answer>> = with.map(|(_, records)| records.clone()).collect();
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

/// Finds the records of one kind that say an item.
struct Speakers<'s> {
    said: &'s [&'s Said<'s>],
    index: Index<'s>,
    terms: Terms<'s>,
    /// The records field by field, where an item names fields.
    fields: Fields<'s>,
    vectors: &'s Vectors,
    /// How alike a record is at least, in thousandths.
    least: u32,
}

impl<'s> Speakers<'s> {
    fn of(
        (gold, vectors): (&Gold, &'s Vectors),
        items: &[&'s Item],
        (kind, said, fields): (ClaimKind, &'s [&'s Said<'s>], &'s [Texts]),
    ) -> Speakers<'s> {
        let terms = items.iter().map(|item| item.terms.as_slice());
        // Thousandths of what is from 0 to 1.
        let least = gold.similarity.map(|it| (it * 1_000.0).round() as u32);
        let least = least.unwrap_or(match vectors.is_empty() {
            true => SIMILARITY_MIN,
            false => EMBEDDING_SIMILARITY_MIN,
        });
        Speakers {
            said,
            index: Index::of(said.iter().map(|it| it.words.as_slice())),
            terms: Terms::of(terms, said.iter().map(|it| it.text.as_str())),
            fields: Fields::of(kind, fields),
            vectors,
            // What is not alike at all says nothing.
            least: least.max(1),
        }
    }

    /// The records that say an item, those most like it first. Terms decide where it has some, then fields,
    /// then its statement.
    fn of_item(&self, item: &Item) -> Vec<Answer> {
        let statement = || self.index.ranked(&[words(&item.statement)]);
        let fields = Texts::of(&serde_json::to_value(&item.fields).unwrap_or_default());
        let fields = self.fields.wanted(&fields);
        let mut answers: Vec<Answer> = match (item.terms.is_empty(), item.fields.is_empty()) {
            (false, true) => {
                let statement = statement();
                self.meeting(item, |at| self.index.alike(&statement, at))
            }
            (false, false) => self.meeting(item, |at| self.fields.alike(&fields, at)),
            (true, true) => match self.vectors.get(&item.statement) {
                Some(vector) => self.close_to(vector),
                None => self.index.near(&statement(), self.least),
            },
            (true, false) => self.fields.near(&fields, self.least),
        };
        answers.sort_by_key(|(_, alike)| Reverse(*alike));
        answers
    }

    /// The records that meet the terms of an item.
    fn meeting(&self, item: &Item, alike: impl Fn(usize) -> u32) -> Vec<Answer> {
        self.terms.meeting(&item.terms).into_iter().map(|at| (at, alike(at))).collect()
    }

    /// The records whose vectors point where this one points.
    fn close_to(&self, vector: &Vector) -> Vec<Answer> {
        let alike = |it: &&Said<'_>| self.vectors.get(&it.text).map_or(0, |it| it.alike(vector));
        let all = self.said.iter().map(alike).enumerate();
        all.filter(|(_, alike)| self.least <= *alike).collect()
    }
}
