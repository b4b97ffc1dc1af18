//! The past of memories: events of one memory, memories as of a day, and memories without forgotten records. Replays
//! the applied plans beside the actual state, and carries over what people changed between plans.

use crate::domain::{
    Change, Disposition, Effect, Facts, Memory, MemoryId, MemoryMap, MemoryState, Operation, Plan,
    PlanId, RecordId, Settlement, Stage, Timestamp,
};
use std::collections::{BTreeMap, BTreeSet};

/// Something that happened to a memory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Event {
    pub plan: PlanId,
    pub record: RecordId,
    pub at: Option<Timestamp>,
    pub disposition: &'static str,
    pub rule: String,
    pub stage: Stage,
    pub state: MemoryState,
    /// State in words.
    pub standing: &'static str,
    /// The memory that took its place, or answered a question.
    pub superseded_by: Option<MemoryId>,
    /// False for a consequence of what became of the record.
    pub is_own: bool,
}

/// Events of memory `id` in `plans`, earliest first. Changes by people show in the events that follow.
pub(crate) fn history(id: MemoryId, plans: &[Plan]) -> Vec<Event> {
    let mut events = Vec::new();
    for plan in plans {
        let touches = |operation: &&Operation| operation.touches().any(|other| other == id);
        if !plan.operations.iter().any(|operation| touches(&operation)) {
            continue;
        }
        let mut map: MemoryMap = plan.before.iter().map(|it| (it.id, it.clone())).collect();
        for operation in &plan.operations {
            let before = map.get(&id).cloned();
            operation.fold(&plan.namespace, &mut map);
            let Some(memory) = map.get(&id).filter(|memory| before.as_ref() != Some(*memory))
            else {
                continue;
            };
            let own = operation.disposition.home() == Some(id)
                || operation.disposition.other() == Some(id);
            let effect = operation.effects.iter().find(|effect| effect.memory == id);
            let rule = match effect.filter(|_| !own) {
                Some(effect) => effect.rule.clone(),
                None => operation.rule.clone(),
            };
            events.push(Event {
                plan: plan.id,
                record: operation.record,
                at: operation.facts.at,
                disposition: operation.disposition.name(),
                rule: rule.into_owned(),
                stage: memory.stage,
                state: memory.state,
                standing: memory.standing(),
                superseded_by: memory.superseded_by,
                is_own: own,
            });
        }
    }
    events
}

/// Memories as of `date`, from the statements until then; `state` and `plans` are the current ones.
/// Statements without a time count as earlier.
pub(crate) fn as_of(date: Timestamp, state: &MemoryMap, plans: &[Plan]) -> MemoryMap {
    let mut replay = Replay::default();
    let none = BTreeSet::new();
    let until = |operation: &Operation, _, _: &MemoryMap| {
        let is_later = operation.facts.at.is_some_and(|at| date < at);
        (!is_later).then(|| operation.clone())
    };
    for plan in plans {
        replay.step(plan, &none, &until);
    }
    let then = state.values().filter_map(|memory| replay.became(memory, &none));
    let begun = then.filter(|memory| memory.valid_from.is_none_or(|from| from <= date));
    let held = begun.map(|mut memory| {
        if memory.valid_until.is_some_and(|until| date < until) {
            memory.reinstate();
        }
        (memory.id, memory)
    });
    held.collect()
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Forgotten {
    pub changes: Vec<Change>,
    /// Plans with words of the records, or of memories made from them, now without these words. They keep their
    /// ids and can still be undone; reading them back as a [`Plan`] changes nothing.
    pub plans: Vec<Plan>,
}

/// Forgets `records`. `plans` are all that were applied to `state` and not undone, earliest first.
///
/// Words that people put in place of ours stay, without the sources. Where plans are missing,
/// memories lose the sources, and are removed if none is left. A record that said the same later, or that a verdict
/// also concerns, takes the place of a forgotten one: its consequences stay.
pub(crate) fn forget(records: &BTreeSet<RecordId>, state: &MemoryMap, plans: &[Plan]) -> Forgotten {
    let mut replay = Replay::default();
    let mut cleared = Vec::new();
    let heirs = Heirs::new(records, state, plans);
    let remaining = |operation: &Operation, at, full: &MemoryMap| {
        if records.contains(&operation.record) {
            return heirs.operation(operation, at);
        }
        let mut operation = operation.clone();
        // A record that came back was not withdrawn, unless nothing else bore the memory meanwhile.
        if let Disposition::Withdraw { memory: of } = operation.disposition
            && full.get(&of).is_some_and(|it| !it.is_hollow())
            && state.get(&of).is_some_and(|it| it.sources.contains(&operation.record))
        {
            operation.disposition = Disposition::Duplicate { of };
        }
        Some(operation)
    };
    for plan in plans {
        let clear = replay.step(plan, records, &remaining);
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

/// Remaining sources of memories that also rested on forgotten records.
struct Heirs<'p>(BTreeMap<MemoryId, Vec<Heir<'p>>>);

struct Heir<'p> {
    record: RecordId,
    facts: &'p Facts,
    /// Number of operations before its own.
    at: usize,
}

impl<'p> Heirs<'p> {
    fn new(gone: &BTreeSet<RecordId>, state: &MemoryMap, plans: &'p [Plan]) -> Heirs<'p> {
        let left = |memory: &&Memory| memory.sources.iter().any(|source| gone.contains(source));
        let mut bears: BTreeMap<RecordId, Vec<MemoryId>> = BTreeMap::new();
        for memory in state.values().filter(left) {
            for source in memory.sources.iter().filter(|source| !gone.contains(source)) {
                bears.entry(*source).or_default().push(memory.id);
            }
        }
        let mut heirs: BTreeMap<MemoryId, Vec<Heir<'p>>> = BTreeMap::new();
        for (at, operation) in plans.iter().flat_map(|plan| &plan.operations).enumerate() {
            let (record, facts) = (operation.record, &operation.facts);
            if operation.disposition.is_revision() {
                continue;
            }
            for id in bears.get(&record).into_iter().flatten() {
                heirs.entry(*id).or_default().push(Heir { record, facts, at });
            }
        }
        Heirs(heirs)
    }

    /// The operation of a forgotten record, with `at` operations before it, as one of a remaining record.
    fn operation(&self, operation: &Operation, at: usize) -> Option<Operation> {
        let heirs = self.0.get(&operation.disposition.home()?)?;
        if matches!(operation.disposition, Disposition::Restate { .. }) {
            return None;
        }
        if operation.disposition.is_revision() {
            // The record of a verdict only names the memory.
            let heir = heirs.first()?;
            let facts = Facts { claim: heir.facts.claim.clone(), ..operation.facts.clone() };
            return Some(Operation { record: heir.record, facts, ..operation.clone() });
        }
        let agrees = |heir: &&Heir<'_>| heir.facts.stage == operation.facts.stage;
        let later = || heirs.iter().filter(|heir| at < heir.at).filter(agrees);
        let same = later().find(|heir| heir.facts.claim == operation.facts.claim);
        let heir = same.or_else(|| later().next())?;
        let facts = heir.facts.clone();
        Some(Operation { record: heir.record, facts, ..operation.clone() })
    }
}

/// Memories after all operations, and after those that remain.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) full: MemoryMap,
    pub(super) rest: MemoryMap,
    /// Number of operations so far.
    at: usize,
}

impl Replay {
    /// Folds `plan` into both maps; returns it with what `remaining` leaves of its operations, given the number of
    /// operations before each and all memories after it. Memories that no plan made lose the sources in `gone`.
    pub(super) fn step(
        &mut self,
        plan: &Plan,
        gone: &BTreeSet<RecordId>,
        remaining: &dyn Fn(&Operation, usize, &MemoryMap) -> Option<Operation>,
    ) -> Plan {
        for memory in &plan.before {
            match self.became(memory, gone) {
                Some(rest) => self.rest.insert(memory.id, rest),
                None => self.rest.remove(&memory.id),
            };
            self.full.insert(memory.id, memory.clone());
        }
        let mut before: BTreeMap<MemoryId, Option<Memory>> = BTreeMap::new();
        let mut operations = Vec::new();
        for operation in &plan.operations {
            operation.fold(&plan.namespace, &mut self.full);
            self.at += 1;
            let Some(remaining) = remaining(operation, self.at - 1, &self.full) else { continue };
            let operation = self.without_missing(remaining);
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

    pub(super) fn became(&self, actual: &Memory, gone: &BTreeSet<RecordId>) -> Option<Memory> {
        match (self.full.get(&actual.id), self.rest.get(&actual.id)) {
            // No plan made it.
            (None, _) => {
                let mut rest = actual.clone();
                rest.sources.retain(|source| !gone.contains(source));
                (!rest.sources.is_empty() || actual.sources.is_empty()).then_some(rest)
            }
            (Some(full), rest) if full == actual => rest.cloned(),
            (Some(full), None) => {
                // Words that a person put in place of ours stay.
                let theirs = actual.claim != full.claim;
                theirs.then(|| Memory { sources: Vec::new(), ..actual.clone() })
            }
            (Some(full), Some(rest)) => Some(carry(full, rest, actual)),
        }
    }

    /// Adapts the operation to memories that no longer exist.
    fn without_missing(&self, operation: Operation) -> Operation {
        let there = |id: &MemoryId| self.rest.contains_key(id);
        let disposition = match operation.disposition {
            Disposition::Merge { into, .. } if !there(&into) => Disposition::Add { memory: into },
            Disposition::Duplicate { of } if !there(&of) => Disposition::Add { memory: of },
            Disposition::Conflict { with, memory } if !there(&with) => Disposition::Add { memory },
            Disposition::Supersede { old, memory } if !there(&old) && there(&memory) => {
                Disposition::Duplicate { of: memory }
            }
            Disposition::Supersede { old, memory } if !there(&old) => Disposition::Add { memory },
            // Nothing is left to settle with a missing memory.
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
            | Disposition::Decide { .. }
            | Disposition::Discard) => other,
        };
        let home = disposition.home();
        let stands = |id: &MemoryId| there(id) || home == Some(*id);
        let stands = |effect: &&Effect| stands(&effect.memory) && stands(&effect.by);
        let effects = operation.effects.iter().filter(stands).cloned().collect();
        Operation { disposition, effects, ..operation }
    }
}

/// Applies the differences between `full` and `actual` to `rest`.
pub(super) fn carry(full: &Memory, rest: &Memory, actual: &Memory) -> Memory {
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
        decided: actual.decided.clone(),
        valid_from: pick(&full.valid_from, &rest.valid_from, &actual.valid_from),
        last_said: pick(&full.last_said, &rest.last_said, &actual.last_said),
        state,
        valid_until,
        ends: pick(&full.ends, &rest.ends, &actual.ends),
        superseded_by,
        settled_by: pick(&full.settled_by, &rest.settled_by, &actual.settled_by),
        settled_as: pick(&full.settled_as, &rest.settled_as, &actual.settled_as),
        reason,
        sources,
    }
}
