//! Looks back: what became of a memory and why, and what was believed on a day.

use super::replay::Replay;
use crate::domain::{
    MemoryId, MemoryMap, MemoryState, Operation, Plan, PlanId, RecordId, Stage, Timestamp,
};
use std::collections::BTreeSet;

/// Something that happened to a memory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Event {
    /// The plan that did it.
    pub plan: PlanId,
    /// The record behind it.
    pub record: RecordId,
    /// When the first of the record's evidence was said.
    pub at: Option<Timestamp>,
    /// The disposition of the record.
    pub disposition: &'static str,
    /// The rule.
    pub rule: String,
    /// How far the memory has come by it.
    pub stage: Stage,
    /// Whether it is in use after it.
    pub state: MemoryState,
}

/// Everything that `plans`, the earliest first, did to memory `id`, in their order. What people did to it in between
/// shows in the events that follow.
pub fn history(id: MemoryId, plans: &[Plan]) -> Vec<Event> {
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
            });
        }
    }
    events
}

/// The memories as they were believed at `date`, by what had been said until then: `state` and `plans` are those of
/// now. What nobody knows the time of counts as said before.
pub fn as_of(date: Timestamp, state: &MemoryMap, plans: &[Plan]) -> MemoryMap {
    let mut replay = Replay::default();
    let none = BTreeSet::new();
    for plan in plans {
        replay.step(plan, &none, &|operation| operation.facts.at.is_some_and(|at| date < at));
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
