//! Withdraws records whose conversation was extracted again. Only memories that rested on them alone go out of use.
//! Runs after the new records are planned, so that a memory which both support keeps its id and its place.

use super::history::forget;
use super::incoming::Incoming;
use crate::domain::{
    Claim, Disposition, Effect, Facts, Memory, MemoryId, MemoryMap, MemoryState, Merging,
    Operation, Plan, Record, RecordId,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

const RULE: &str = "read-anew";

/// A withdrawn record, and the memory made from it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Withdrawn {
    pub record: Record,
    pub memory: MemoryId,
}

pub(crate) fn rests_on_nothing_else(memory: &Memory, withdrawn: &BTreeSet<RecordId>) -> bool {
    let all = memory.sources.iter().all(|source| withdrawn.contains(source));
    all && !memory.sources.is_empty() && !memory.confirmed
}

/// Withdrawal of the memories that the new records in `plan` do not say, if that puts others back in use: the new records
/// are to be planned after it, since they may be about those.
pub(crate) fn withdraw_first(
    plan: &Plan,
    withdrawn: &[Withdrawn],
    known: &MemoryMap,
    applied: &[Plan],
) -> Option<Plan> {
    let mut now = known.clone();
    if withdrawn.is_empty() || plan.apply(&mut now).is_err() {
        return None;
    }
    let gone: BTreeSet<RecordId> = withdrawn.iter().map(|it| it.record.id).collect();
    let (lost, kept): (Vec<&Memory>, Vec<&Memory>) =
        now.values().partition(|memory| rests_on_nothing_else(memory, &gone));
    let [lost, kept] = [lost, kept]
        .map(|some| some.iter().flat_map(|it| it.sources.iter().copied()).collect::<BTreeSet<_>>());
    let is_lost = |it: &&Withdrawn| lost.contains(&it.record.id) && !kept.contains(&it.record.id);
    let lost: Vec<Withdrawn> = withdrawn.iter().filter(is_lost).cloned().collect();
    let none = Plan::new(plan.namespace.clone(), Vec::new(), Vec::new(), Vec::new());
    let first = withdraw(none, &lost, known, applied.to_vec());
    first.operations.iter().any(|it| !it.effects.is_empty()).then_some(first)
}

/// The plan `first`, followed by `next`, which was made from the memories that `first` leaves of those `known`.
pub(crate) fn one_after_another(first: Plan, next: Plan, known: &MemoryMap) -> Plan {
    whole(Plan { left_open: next.left_open, ..first }, next.operations, known)
}

/// Adds the withdrawal to `plan`, which was made from the memories `known`; `applied` are the
/// applied plans of the namespace, earliest first.
pub(crate) fn withdraw(
    plan: Plan,
    withdrawn: &[Withdrawn],
    known: &MemoryMap,
    mut applied: Vec<Plan>,
) -> Plan {
    let mut now = known.clone();
    if withdrawn.is_empty() || plan.apply(&mut now).is_err() {
        return plan;
    }
    let is_done = |it: &Operation| matches!(it.disposition, Disposition::Withdraw { .. });
    let done: BTreeSet<RecordId> =
        plan.operations.iter().filter(|it| is_done(it)).map(|it| it.record).collect();
    let withdrawn = withdrawn.iter().filter(|it| !done.contains(&it.record.id));
    let withdrawn: Vec<Withdrawn> = withdrawn.cloned().collect();
    let gone: BTreeSet<RecordId> = withdrawn.iter().map(|it| it.record.id).collect();
    applied.push(plan);
    let targets = forget(&gone, &now, &applied).changes;
    let targets = targets.into_iter().filter_map(|change| Some((change.memory, change.after?)));
    let targets: BTreeMap<MemoryId, Memory> = targets.collect();
    let mut operations = restated(&targets, &now, &applied);
    operations.extend(taken_back(&withdrawn, &now, &applied));
    let mut after = now.clone();
    let namespace = applied.last().map(|plan| plan.namespace.clone()).unwrap_or_default();
    operations.iter().for_each(|operation| operation.fold(&namespace, &mut after));
    let effects = targets.iter().filter_map(|(id, target)| {
        let effects = brought_to(after.get(id)?, target);
        (!effects.is_empty()).then_some((*id, effects))
    });
    let effects: BTreeMap<MemoryId, Vec<Effect>> = effects.collect();
    let responsible = responsible(&effects, &operations, &applied);
    for (id, effects) in effects {
        let at = responsible.get(&id).copied().or(operations.len().checked_sub(1));
        if let Some(operation) = at.and_then(|at| operations.get_mut(at)) {
            operation.effects.extend(effects);
        }
    }
    let Some(plan) = applied.pop() else { return Plan::new(namespace, operations, vec![], vec![]) };
    whole(plan, operations, known)
}

/// Adds operations to the plan, with the memories that they touch.
fn whole(plan: Plan, more: Vec<Operation>, known: &MemoryMap) -> Plan {
    let Plan { namespace, mut operations, before, mut left_open, .. } = plan;
    let mut before: MemoryMap = before.into_iter().map(|it| (it.id, it)).collect();
    for id in more.iter().flat_map(Operation::touches) {
        if let Some(memory) = known.get(&id) {
            before.entry(id).or_insert_with(|| memory.clone());
        }
    }
    operations.extend(more);
    let made = Plan::new(namespace, operations, before.into_values().collect(), Vec::new());
    let after = made.after();
    // Pairs with a memory out of use need no decision.
    let in_use = |id: &MemoryId| {
        let memory = after.get(id).or_else(|| known.get(id));
        memory.is_some_and(|memory| memory.state == MemoryState::Active)
    };
    left_open.retain(|open| in_use(&open.memory));
    Plan::new(made.namespace, made.operations, made.before, left_open)
}

/// One operation per record and memory that rests on it. A record without one is listed with the
/// memory made from it.
fn taken_back(withdrawn: &[Withdrawn], now: &MemoryMap, plans: &[Plan]) -> Vec<Operation> {
    let mut gone: BTreeSet<RecordId> = withdrawn.iter().map(|it| it.record.id).collect();
    let mut bears: BTreeMap<RecordId, Vec<MemoryId>> = BTreeMap::new();
    for memory in now.values().filter(|memory| memory.state != MemoryState::Retracted) {
        for source in memory.sources.iter().filter(|source| gone.contains(source)) {
            bears.entry(*source).or_default().push(memory.id);
        }
    }
    let facts = facts_of(&gone, plans);
    let mut operations = Vec::new();
    for it in withdrawn {
        let record = it.record.id;
        if !gone.remove(&record) {
            continue;
        }
        let own = now.contains_key(&it.memory).then(|| vec![it.memory]);
        for memory in bears.remove(&record).or(own).unwrap_or_default() {
            let facts = facts.get(&record).map(|(facts, _)| (*facts).clone());
            let facts = facts.unwrap_or_else(|| Incoming::new(&it.record, memory).facts);
            let disposition = Disposition::Withdraw { memory };
            operations.push(operation(record, disposition, facts));
        }
    }
    operations
}

/// Restatements of memories whose words change, from the remaining records.
fn restated(
    targets: &BTreeMap<MemoryId, Memory>,
    now: &MemoryMap,
    plans: &[Plan],
) -> Vec<Operation> {
    let says = |it: &Memory| (it.claim.clone(), it.said_by, it.valid_from, it.last_said, it.ends);
    let other = |target: &&Memory| {
        now.get(&target.id).is_some_and(|it| !it.confirmed && says(it) != says(target))
    };
    let others: Vec<&Memory> = targets.values().filter(other).collect();
    let wanted: BTreeSet<RecordId> =
        others.iter().flat_map(|target| target.sources.iter().copied()).collect();
    let facts = facts_of(&wanted, plans);
    let mut operations = Vec::new();
    for target in others {
        let mut sources: Vec<(RecordId, &Facts, Disposition, usize)> = Vec::new();
        for source in &target.sources {
            let found = facts.get(source);
            sources.extend(found.map(|(facts, (made, at))| (*source, *facts, *made, *at)));
        }
        // A restatement needs the words of every source.
        if sources.len() < target.sources.len() {
            continue;
        }
        // The source with its words, or with a part of them and no others; then those that made this memory, in order,
        // then those of a memory that joined it.
        let is_worded = |facts: &Facts| facts.claim == target.claim;
        let is_part = |facts: &Facts| {
            facts.claim.headline() == target.claim.headline() && has(&target.claim, facts)
        };
        sources.sort_by_key(|(_, facts, made, at)| {
            (!is_worded(facts), !is_part(facts), made.home() != Some(target.id), *at)
        });
        let learns = !sources.first().is_some_and(|(_, facts, ..)| is_worded(facts));
        for (first, (record, facts, made, _)) in sources.into_iter().enumerate() {
            let is_combined =
                matches!(made, Disposition::Merge { how: Merging::Combine | Merging::Append, .. });
            let learned = if learns && !is_combined && has(&target.claim, facts) {
                Merging::Extend
            } else if let Disposition::Merge { into, how } = made
                && learns
                && into == target.id
            {
                how
            } else {
                Merging::Provenance
            };
            let how = (first > 0).then_some(learned);
            let disposition = Disposition::Restate { memory: target.id, how };
            operations.push(operation(record, disposition, facts.clone()));
        }
    }
    operations
}

/// True if `claim` has every option or point of the record.
fn has(claim: &Claim, facts: &Facts) -> bool {
    let (all, own) = match (claim, &facts.claim) {
        (Claim::Decision(all), Claim::Decision(own)) => (&all.options, &own.options),
        (Claim::Discussion(all), Claim::Discussion(own)) => (&all.points, &own.points),
        _ => return false,
    };
    own.iter().all(|item| all.contains(item))
}

fn operation(record: RecordId, disposition: Disposition, facts: Facts) -> Operation {
    Operation { record, disposition, rule: Cow::Borrowed(RULE), facts, effects: Vec::new() }
}

fn facts_of<'p>(
    records: &BTreeSet<RecordId>,
    plans: &'p [Plan],
) -> BTreeMap<RecordId, (&'p Facts, (Disposition, usize))> {
    let operations = plans.iter().flat_map(|plan| &plan.operations).enumerate();
    let own = operations.filter(|(_, it)| !it.disposition.is_revision());
    let wanted = own.filter(|(_, it)| records.contains(&it.record));
    wanted.map(|(at, it)| (it.record, (&it.facts, (it.disposition, at)))).collect()
}

/// Index of the last withdrawal that changes each of these memories: of a record that once touched
/// it. For others it is the last operation, which is a withdrawal too.
fn responsible(
    effects: &BTreeMap<MemoryId, Vec<Effect>>,
    operations: &[Operation],
    plans: &[Plan],
) -> BTreeMap<MemoryId, usize> {
    let is_withdrawal = |it: &Operation| matches!(it.disposition, Disposition::Withdraw { .. });
    let withdrawals = operations.iter().enumerate().filter(|(_, it)| is_withdrawal(it));
    let withdrawals: BTreeMap<RecordId, usize> =
        withdrawals.map(|(at, it)| (it.record, at)).collect();
    let mut found: BTreeMap<MemoryId, usize> = BTreeMap::new();
    for operation in plans.iter().flat_map(|plan| &plan.operations) {
        let Some(at) = withdrawals.get(&operation.record) else { continue };
        for id in operation.touches().filter(|id| effects.contains_key(id)) {
            let last = found.entry(id).or_insert(*at);
            *last = (*last).max(*at);
        }
    }
    found
}

fn brought_to(memory: &Memory, target: &Memory) -> Vec<Effect> {
    let effect = |by| Effect::new(memory.id, by, None, RULE);
    let mut effects = Vec::new();
    if memory.stage != target.stage {
        // Restoring by its successor would put it back in use.
        let by = target.settled_by.filter(|by| memory.superseded_by != Some(*by));
        let (stage, by) = (Some(target.stage), by.unwrap_or(memory.id));
        let rule = target.settled_as.clone().unwrap_or(Cow::Borrowed(RULE));
        effects.push(Effect { stage, restores: true, rule, ..effect(by) });
    }
    if let Some(by) = memory.superseded_by.filter(|by| target.superseded_by != Some(*by)) {
        effects.push(Effect { restores: true, ..effect(by) });
    }
    if let Some(by) = target.superseded_by.filter(|by| memory.superseded_by != Some(*by)) {
        let rule = Cow::Owned(target.reason.clone().unwrap_or_default());
        let at = target.valid_until;
        effects.push(Effect { supersedes: true, at, rule, ..effect(by) });
    }
    effects
}
