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

    /// The id that a plan with this content has. One that [`forget`](crate::consolidate::forget) cleared of words
    /// keeps the id that it was applied under.
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

    /// The memories that it touches as they become, by id.
    pub fn after(&self) -> MemoryMap {
        let mut map: MemoryMap = self.before.iter().map(|it| (it.id, it.clone())).collect();
        self.operations.iter().for_each(|operation| operation.fold(&self.namespace, &mut map));
        map
    }

    /// Each memory that becomes another, before and after, by id.
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

    /// Applies it to `state`. What was applied already stays as it is, so that doing it twice, or going on after a
    /// crash, comes to the same; where anything else changed a memory nothing is applied.
    pub fn apply(&self, state: &mut MemoryMap) -> Result<(), Moved> {
        replace(state, self.changes())
    }

    /// Takes it back from `state`, with the same rules as [`Plan::apply`]. Plans are undone from the last one on. What
    /// people changed since stays.
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

/// True if `now` differs from `after` in nothing but what people changed.
fn is_amended(after: &Memory, now: &Memory) -> bool {
    let Memory { confirmed, edited, decided, .. } = after.clone();
    let mut bare = Memory { confirmed, edited, decided, ..now.clone() };
    if now.decided != after.decided {
        let Memory { stage, state, valid_until, superseded_by, reason, .. } = after.clone();
        bare = Memory { stage, state, valid_until, superseded_by, reason, ..bare };
    }
    now != after && bare == *after
}

/// Makes these changes, all or none.
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

/// The digest of `value` as JSON, in the order of its fields.
fn digest(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    Digest::of(&[&text]).to_string()
}
