//! Digest, application and undo of a plan. The resulting memories are folded from its operations, so a plan cannot
//! contradict itself.

mod check;
mod fold;
#[cfg(test)]
mod tests;

use super::history::carry;
use crate::domain::{
    Change, Digest, LeftOpen, Memory, MemoryId, MemoryMap, Moved, Operation, Plan, PlanId,
};
use serde::Serialize;
use std::collections::BTreeMap;

impl Plan {
    /// A plan of these operations; its id is their digest.
    pub fn new(
        namespace: String,
        operations: Vec<Operation>,
        before: Vec<Memory>,
        left_open: Vec<LeftOpen>,
    ) -> Plan {
        let id = PlanId(Digest::of(&[]));
        let mut plan = Plan { id, namespace, operations, before, left_open };
        plan.id = plan.digest();
        plan
    }

    /// Id that a plan with this content has. One that [`forget`](crate::consolidate::forget)
    /// cleared of words keeps the id it was applied under.
    pub fn digest(&self) -> PlanId {
        let mut parts = vec!["plan".to_owned(), self.namespace.clone()];
        parts.extend(self.operations.iter().map(digest));
        parts.push(digest(&self.before));
        parts.push(digest(&self.left_open));
        PlanId(Digest::of(&parts.iter().map(String::as_str).collect::<Vec<_>>()))
    }

    /// True if it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Number of records of each disposition, by name.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for operation in &self.operations {
            *counts.entry(operation.disposition.name()).or_default() += 1;
        }
        counts
    }

    /// Touched memories after the plan, by id.
    pub fn after(&self) -> MemoryMap {
        let mut map: MemoryMap = self.before.iter().map(|it| (it.id, it.clone())).collect();
        self.operations.iter().for_each(|operation| operation.fold(&self.namespace, &mut map));
        map
    }

    /// Changed memories, before and after, by id.
    pub fn changes(&self) -> Vec<Change> {
        let before: BTreeMap<MemoryId, &Memory> =
            self.before.iter().map(|memory| (memory.id, memory)).collect();
        let change = |(memory, after)| {
            let before = before.get(&memory).map(|it| (*it).clone());
            Change { memory, before, after: Some(after) }
        };
        let all = self.after().into_iter().map(change);
        all.filter(|change| change.before != change.after).collect()
    }

    /// Applies the plan to `state`. Skips changes that are already there, so it can be repeated
    /// after a crash. Applies nothing if a memory was changed otherwise.
    pub fn apply(&self, state: &mut MemoryMap) -> Result<(), Moved> {
        replace(state, self.changes())
    }

    /// Undoes the plan in `state`, by the same rules as [`Plan::apply`]. Plans are undone in
    /// reverse order. Later changes by people stay.
    pub fn undo(&self, state: &mut MemoryMap) -> Result<(), Moved> {
        let back = |Change { memory, before, after }: Change| {
            let amended = state.get(&memory).zip(after.as_ref());
            let Some((now, after)) = amended.filter(|(now, after)| is_amended(after, now)) else {
                return Change { memory, before: after, after: before };
            };
            let kept = before.map_or_else(|| now.clone(), |before| carry(after, &before, now));
            Change { memory, before: Some(now.clone()), after: Some(kept) }
        };
        let changes = self.changes().into_iter().map(back).collect();
        replace(state, changes)
    }
}

/// True if `now` differs from `after` only in what people changed.
fn is_amended(after: &Memory, now: &Memory) -> bool {
    // Older versions did not keep what settled a memory.
    let Memory { confirmed, edited, decided, settled_by, .. } = after.clone();
    let mut bare = Memory { confirmed, edited, decided, settled_by, ..now.clone() };
    if now.decided != after.decided {
        let Memory { stage, state, valid_until, superseded_by, reason, .. } = after.clone();
        bare = Memory { stage, state, valid_until, superseded_by, reason, ..bare };
    }
    now != after && bare == *after
}

/// Makes all of these changes or none.
fn replace(state: &mut MemoryMap, changes: Vec<Change>) -> Result<(), Moved> {
    let is_other = |it: &&Change| {
        let is = state.get(&it.memory);
        is != it.before.as_ref() && is != it.after.as_ref()
    };
    let moved: Vec<MemoryId> = changes.iter().filter(is_other).map(|it| it.memory).collect();
    if !moved.is_empty() {
        return Err(Moved(moved));
    }
    for Change { memory, after, .. } in changes {
        match after {
            Some(after) => state.insert(memory, after),
            None => state.remove(&memory),
        };
    }
    Ok(())
}

/// Digest of `value` as JSON, in field order.
fn digest(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    Digest::of(&[&text]).to_string()
}
