//! Pairs that a plan left open, and a model's verdicts on pairs once every id was checked. Planning
//! treats a verdict as advice: the policy still decides what may change.

use super::phrases::says_no;
use crate::domain::{Digest, Memory, MemoryId, Record, RecordId, Speaker, Timestamp};
use crate::privacy::Redacted;
use crate::text::tokens::folded;
use crate::text::wording::begins_with_consent;
use foldhash::HashMap;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    Unrelated,
    Same,
    /// The memory says it already, and keeps its words: the record is a case of it.
    Covered,
    /// The record says what the memory says, and more in general.
    Covers,
    /// One replaces the other, or has a consequence for it.
    Replaces {
        /// True if a person agreed, in words near the record's evidence.
        agreed: bool,
    },
    Conflict,
    /// The later one changes a part of the other; the rest of the other still holds.
    Partly,
    /// The record has nothing that is worth keeping beside the memory.
    Nothing,
}

impl Verdict {
    /// True if it says something about both sides.
    fn changes(self) -> bool {
        !matches!(self, Verdict::Unrelated | Verdict::Nothing)
    }

    /// The verdict on the same two with their sides exchanged.
    fn exchanged(self) -> Verdict {
        match self {
            Verdict::Covered => Verdict::Covers,
            Verdict::Covers => Verdict::Covered,
            Verdict::Unrelated
            | Verdict::Same
            | Verdict::Replaces { .. }
            | Verdict::Conflict
            | Verdict::Partly
            | Verdict::Nothing => self,
        }
    }
}

/// Statement near the evidence of a record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NearbyStatement {
    pub(crate) speaker: Speaker,
    pub(crate) words: Redacted,
    /// Said after the record's first evidence.
    pub(crate) after: bool,
}

/// Verdicts by record and memory, records of what a person accepted, and ends of what records are about.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Verdicts {
    pairs: BTreeMap<(RecordId, MemoryId), Verdict>,
    accepted: BTreeSet<RecordId>,
    ends: BTreeMap<RecordId, Timestamp>,
}

impl Verdicts {
    /// No verdicts: pairs that the rules leave open stay open.
    pub fn none() -> Verdicts {
        Verdicts::default()
    }

    /// Verdict on `record` and `memory`.
    pub fn get(&self, record: RecordId, memory: MemoryId) -> Option<Verdict> {
        self.pairs.get(&(record, memory)).copied()
    }

    fn of(&self, record: RecordId) -> impl Iterator<Item = (MemoryId, Verdict)> + '_ {
        let first = (record, MemoryId(Digest::from_bytes([0; 16])));
        let all = self.pairs.range(first..).take_while(move |((of, _), _)| *of == record);
        all.map(|((_, memory), verdict)| (*memory, *verdict))
    }

    /// Memories that `record` does something to.
    pub(super) fn memories_of(&self, record: RecordId) -> impl Iterator<Item = MemoryId> + '_ {
        let touched = self.of(record).filter(|(_, verdict)| *verdict != Verdict::Unrelated);
        touched.map(|(memory, _)| memory)
    }

    /// True if a person agreed to `record`, in words near its evidence.
    pub(super) fn is_agreed(&self, record: RecordId, memory: MemoryId) -> bool {
        let judged = self.get(record, memory) == Some(Verdict::Replaces { agreed: true });
        judged || self.accepted.contains(&record)
    }

    /// Notes that a person agreed to `record` if its decision is an assistant's and the next words of
    /// a person accept it.
    pub(crate) fn hear(&mut self, record: RecordId, beside: &[NearbyStatement]) {
        let mut answers = beside.iter().filter(|it| it.after && it.speaker == Speaker::Person);
        let answer = answers.next().map(|it| folded(it.words.as_str()));
        if answer.is_some_and(|it| begins_with_consent(&it) && !says_no(&it)) {
            self.accepted.insert(record);
        }
    }

    /// These verdicts, and those on two of `records` with their sides exchanged, unless the other side has one of its
    /// own: which of two records is planned first depends on their times, not on which of them a model named.
    pub(super) fn mirrored(&self, namespace: &str, records: &[Record]) -> Verdicts {
        if self.is_empty() {
            return self.clone();
        }
        let own = |record: RecordId| Memory::id_of(namespace, record);
        let of_memory: BTreeMap<MemoryId, RecordId> =
            records.iter().map(|it| (own(it.id), it.id)).collect();
        let mut all = self.clone();
        for ((record, memory), verdict) in &self.pairs {
            let Some(other) = of_memory.get(memory).filter(|_| verdict.changes()) else { continue };
            all.add(*other, own(*record), verdict.exchanged());
        }
        all
    }

    /// True if a model was asked about `record`.
    pub(super) fn has(&self, record: RecordId) -> bool {
        self.of(record).next().is_some()
    }

    /// Records with a verdict that changes something, by the memory that it is about.
    pub(super) fn by_memory(&self) -> HashMap<MemoryId, Vec<RecordId>> {
        let mut all: HashMap<MemoryId, Vec<RecordId>> = HashMap::default();
        for ((record, memory), _) in self.pairs.iter().filter(|(_, verdict)| verdict.changes()) {
            all.entry(*memory).or_default().push(*record);
        }
        all
    }

    /// Adds a verdict unless the pair has one that changes something; true if it was added.
    pub(super) fn add(&mut self, record: RecordId, memory: MemoryId, verdict: Verdict) -> bool {
        let there = self.pairs.entry((record, memory)).or_insert(Verdict::Unrelated);
        let is_free = *there == Verdict::Unrelated;
        if is_free {
            *there = verdict;
        }
        is_free
    }

    /// Adds a verdict, which replaces an earlier one.
    pub fn insert(&mut self, record: RecordId, memory: MemoryId, verdict: Verdict) {
        self.pairs.insert((record, memory), verdict);
    }

    /// Adds the verdicts of another batch. A pair that an answer did not name keeps its earlier verdict.
    pub fn extend(&mut self, others: Verdicts) {
        for (pair, verdict) in others.pairs {
            let there = self.pairs.entry(pair).or_insert(verdict);
            if verdict != Verdict::Unrelated {
                *there = verdict;
            }
        }
        self.accepted.extend(others.accepted);
        self.ends.extend(others.ends);
    }

    /// End of the day or the time that `record` is about, if a model found one.
    pub(super) fn end_of(&self, record: RecordId) -> Option<Timestamp> {
        self.ends.get(&record).copied()
    }

    /// Notes the end of the day or the time that `record` is about.
    pub(super) fn note_end(&mut self, record: RecordId, end: Timestamp) {
        self.ends.insert(record, end);
    }

    /// True if there are none on pairs.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

/// Pair that an earlier plan left open: a record with a memory of its own, and the other memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenPair {
    pub record: Record,
    pub home: MemoryId,
    pub memory: MemoryId,
    /// Record that began `memory`, if known; tells the order within one conversation.
    pub first: Option<Record>,
    pub rule: String,
}
