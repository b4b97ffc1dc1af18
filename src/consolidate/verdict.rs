//! Pairs that a plan left open, and a model's verdicts on pairs after the host checked every id. Planning takes a
//! verdict as advice: the policy still says what may change what.

use crate::domain::{MemoryId, Record, RecordId};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    Unrelated,
    Same,
    /// One of both takes the other's place, or something follows for it.
    Replaces {
        /// A person agreed to it, beside the words of the record.
        agreed: bool,
    },
    Conflict,
    /// The record says nothing that is worth keeping beside the memory.
    Nothing,
}

impl Verdict {
    pub(super) fn is_agreed(self) -> bool {
        matches!(self, Verdict::Replaces { agreed: true })
    }
}

/// Verdicts by record and memory.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Verdicts(BTreeMap<(RecordId, MemoryId), Verdict>);

impl Verdicts {
    /// No verdicts: pairs that the rules leave open stay open.
    pub fn none() -> Verdicts {
        Verdicts::default()
    }

    /// The verdict of `record` and `memory`.
    pub fn get(&self, record: RecordId, memory: MemoryId) -> Option<Verdict> {
        self.0.get(&(record, memory)).copied()
    }

    /// Notes one; a later one counts.
    pub fn insert(&mut self, record: RecordId, memory: MemoryId, verdict: Verdict) {
        self.0.insert((record, memory), verdict);
    }

    /// Takes up the verdicts of another batch.
    pub fn extend(&mut self, others: Verdicts) {
        self.0.extend(others.0);
    }

    /// Number of verdicts.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A pair that an earlier plan left open: a record that became a memory of its own, and the memory beside it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenPair {
    pub record: Record,
    pub home: MemoryId,
    pub memory: MemoryId,
    /// The record that began that one, where it is known: tells the order within one conversation.
    pub first: Option<Record>,
    pub rule: String,
}
