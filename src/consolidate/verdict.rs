//! Pairs that a plan left open, and a model's verdicts on pairs once every id was checked. Planning
//! treats a verdict as advice: the policy still decides what may change.

use crate::domain::{MemoryId, Record, RecordId};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    Unrelated,
    Same,
    /// One replaces the other, or has a consequence for it.
    Replaces {
        /// True if a person agreed, in words near the record's evidence.
        agreed: bool,
    },
    Conflict,
    /// The record has nothing that is worth keeping beside the memory.
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

    /// Verdict on `record` and `memory`.
    pub fn get(&self, record: RecordId, memory: MemoryId) -> Option<Verdict> {
        self.0.get(&(record, memory)).copied()
    }

    /// Adds a verdict, which replaces an earlier one.
    pub fn insert(&mut self, record: RecordId, memory: MemoryId, verdict: Verdict) {
        self.0.insert((record, memory), verdict);
    }

    /// Adds the verdicts of another batch.
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
