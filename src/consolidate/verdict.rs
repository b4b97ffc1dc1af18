//! What a model judged of the pairs that the rules left open, after the host had checked every id in it. Planning
//! takes it as advice: the policy still says what may change what.

use crate::domain::{MemoryId, RecordId};
use std::collections::BTreeMap;

/// How a record stands to a memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// They have nothing to do with one another.
    Unrelated,
    /// They say the same.
    Same,
    /// The record takes the memory's place.
    Replaces,
    /// They contradict one another, and both stand.
    Conflict,
    /// The record says nothing that is worth keeping beside the memory.
    Nothing,
}

/// Verdicts by record and memory.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Verdicts(BTreeMap<(RecordId, MemoryId), Verdict>);

impl Verdicts {
    /// None: what the rules leave open stays open.
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

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
