//! What has to change so that some records were never there: what rested on them alone goes, what rested on others
//! too is made anew from those, and what they had superseded stands again.

use super::replay::Replay;
use crate::domain::{Change, Memory, MemoryId, MemoryMap, MemoryState, Plan, RecordId};
use std::collections::{BTreeMap, BTreeSet};

/// What forgetting comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Forgotten {
    /// Each memory that changes or goes, by id.
    pub changes: Vec<Change>,
    /// The plans that hold words of the records, or of memories that they made, without them. They keep their ids
    /// and can still be undone; what they keep is read back by [`Plan`] as it is.
    pub plans: Vec<Plan>,
}

impl Forgotten {
    /// The memories without the records.
    pub fn apply(&self, state: &mut MemoryMap) {
        for change in &self.changes {
            match &change.after {
                Some(memory) => state.insert(change.memory, memory.clone()),
                None => state.remove(&change.memory),
            };
        }
    }
}

/// Forgets `records`: `plans` are all that were applied to `state` and not undone, the earliest first.
///
/// What people wrote instead of ours stays, without the sources. Where plans are missing, memories lose their sources,
/// and go when they have none left.
pub fn forget(records: &BTreeSet<RecordId>, state: &MemoryMap, plans: &[Plan]) -> Forgotten {
    let mut replay = Replay::default();
    let mut cleared = Vec::new();
    for plan in plans {
        let clear = replay.step(plan, records, &|operation| records.contains(&operation.record));
        if clear != *plan {
            cleared.push(clear);
        }
    }
    let mut after: BTreeMap<MemoryId, Option<Memory>> =
        state.values().map(|memory| (memory.id, replay.became(memory, records))).collect();
    let gone: BTreeSet<MemoryId> =
        after.iter().filter(|(_, memory)| memory.is_none()).map(|(id, _)| *id).collect();
    for memory in after.values_mut().flatten() {
        let lost = memory.superseded_by.is_some_and(|by| gone.contains(&by));
        if lost && memory.state == MemoryState::Superseded {
            memory.reinstate();
        }
    }
    let changes = after.into_iter().filter_map(|(id, after)| {
        let before = state.get(&id);
        let change = Change { memory: id, before: before.cloned(), after };
        (before != change.after.as_ref()).then_some(change)
    });
    Forgotten { changes: changes.collect(), plans: cleared }
}
