//! Folds the plans that were applied once more, without some of their operations, beside what really happened. What
//! people changed between two plans is carried over, field by field.

use crate::domain::{
    Disposition, Effect, Memory, MemoryId, MemoryMap, Operation, Plan, RecordId, Settlement,
};
use std::collections::{BTreeMap, BTreeSet};

/// Memories as they became, and as they become without what is left out.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) full: MemoryMap,
    pub(super) rest: MemoryMap,
}

impl Replay {
    /// Folds `plan` with and without the operations that `leave_out` names; gives it without them. Sources in
    /// `gone` are taken from memories that no plan made.
    pub(super) fn step(
        &mut self,
        plan: &Plan,
        gone: &BTreeSet<RecordId>,
        leave_out: &dyn Fn(&Operation) -> bool,
    ) -> Plan {
        for memory in &plan.before {
            self.meet(memory, gone);
        }
        let mut before: BTreeMap<MemoryId, Option<Memory>> = BTreeMap::new();
        let mut operations = Vec::new();
        for operation in &plan.operations {
            operation.fold(&plan.namespace, &mut self.full);
            if leave_out(operation) {
                continue;
            }
            let operation = self.without_missing(operation);
            for id in operation.touches() {
                before.entry(id).or_insert_with(|| self.rest.get(&id).cloned());
            }
            operation.fold(&plan.namespace, &mut self.rest);
            operations.push(operation);
        }
        let kept: BTreeSet<RecordId> = operations.iter().map(|it| it.record).collect();
        let open = plan.left_open.iter().cloned();
        let open =
            open.filter(|it| kept.contains(&it.record) && self.rest.contains_key(&it.memory));
        Plan {
            id: plan.id,
            namespace: plan.namespace.clone(),
            before: before.into_values().flatten().collect(),
            left_open: open.collect(),
            operations,
        }
    }

    /// Takes up a memory as it really was at some time.
    fn meet(&mut self, actual: &Memory, gone: &BTreeSet<RecordId>) {
        match self.became(actual, gone) {
            Some(memory) => self.rest.insert(actual.id, memory),
            None => self.rest.remove(&actual.id),
        };
        self.full.insert(actual.id, actual.clone());
    }

    /// What `actual` is without what was left out; none if nothing of it is left.
    pub(super) fn became(&self, actual: &Memory, gone: &BTreeSet<RecordId>) -> Option<Memory> {
        match (self.full.get(&actual.id), self.rest.get(&actual.id)) {
            (None, _) => without(actual, gone),
            (Some(full), rest) if full == actual => rest.cloned(),
            (Some(full), None) => {
                // Words that a person put there instead of ours are theirs.
                let theirs = actual.claim != full.claim;
                theirs.then(|| Memory { sources: Vec::new(), ..actual.clone() })
            }
            (Some(full), Some(rest)) => Some(carry(full, rest, actual)),
        }
    }

    /// The operation without what it does to memories that are not there any more.
    fn without_missing(&self, operation: &Operation) -> Operation {
        let there = |id: &MemoryId| self.rest.contains_key(id);
        let disposition = match operation.disposition {
            Disposition::Merge { into, .. } if !there(&into) => Disposition::Add { memory: into },
            Disposition::Duplicate { of } if !there(&of) => Disposition::Add { memory: of },
            Disposition::Conflict { with, memory } if !there(&with) => Disposition::Add { memory },
            Disposition::Supersede { old, memory } if !there(&old) && there(&memory) => {
                Disposition::Duplicate { of: memory }
            }
            Disposition::Supersede { old, memory } if !there(&old) => Disposition::Add { memory },
            // What is gone is not decided about any more.
            Disposition::Settle { memory, with, .. } if !there(&memory) || !there(&with) => {
                Disposition::Settle { memory, with, how: Settlement::Apart }
            }
            other @ (Disposition::Add { .. }
            | Disposition::Merge { .. }
            | Disposition::Duplicate { .. }
            | Disposition::Conflict { .. }
            | Disposition::Supersede { .. }
            | Disposition::Settle { .. }
            | Disposition::Withdraw { .. }
            | Disposition::Restate { .. }
            | Disposition::Discard) => other,
        };
        let home = disposition.home();
        let stands = |id: &MemoryId| there(id) || home == Some(*id);
        let stands = |effect: &&Effect| stands(&effect.memory) && stands(&effect.by);
        let effects = operation.effects.iter().filter(stands).cloned().collect();
        Operation { disposition, effects, ..operation.clone() }
    }
}

/// A memory that no plan made, without these sources.
fn without(memory: &Memory, gone: &BTreeSet<RecordId>) -> Option<Memory> {
    let mut rest = memory.clone();
    rest.sources.retain(|source| !gone.contains(source));
    let emptied = rest.sources.is_empty() && !memory.sources.is_empty();
    (!emptied).then_some(rest)
}

/// What people changed of `full` to `actual`, done to `rest`.
fn carry(full: &Memory, rest: &Memory, actual: &Memory) -> Memory {
    fn pick<T: Clone + PartialEq>(full: &T, rest: &T, actual: &T) -> T {
        if full == actual { rest.clone() } else { actual.clone() }
    }
    let use_of = |it: &Memory| (it.state, it.valid_until, it.superseded_by, it.reason.clone());
    let (state, valid_until, superseded_by, reason) =
        pick(&use_of(full), &use_of(rest), &use_of(actual));
    let known: BTreeSet<&RecordId> = full.sources.iter().collect();
    let added = actual.sources.iter().filter(|source| !known.contains(source));
    let sources = rest.sources.iter().chain(added).copied().collect();
    Memory {
        id: actual.id,
        namespace: actual.namespace.clone(),
        claim: pick(&full.claim, &rest.claim, &actual.claim),
        stage: pick(&full.stage, &rest.stage, &actual.stage),
        said_by: pick(&full.said_by, &rest.said_by, &actual.said_by),
        confirmed: actual.confirmed,
        edited: actual.edited.clone(),
        valid_from: pick(&full.valid_from, &rest.valid_from, &actual.valid_from),
        state,
        valid_until,
        superseded_by,
        reason,
        sources,
    }
}
