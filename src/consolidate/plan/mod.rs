//! Digest, application and undo of a plan. Memory changes only by folding operations: planning, applying, undoing,
//! history and forgetting all fold the same ones, so a plan cannot contradict itself.

mod check;
#[cfg(test)]
mod tests;

use super::history::carry;
use crate::domain::{
    BY_PERSON, Change, Claim, ClaimKind, Digest, Disposition, Effect, LeftOpen, Memory, MemoryId,
    MemoryMap, MemoryState, Merging, Moved, Operation, PersonDecision, Plan, PlanId, Settlement,
    Stage, Timestamp,
};
use crate::text::phrase::{commas, count};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Dispositions in the past tense, by name.
const DEEDS: [(&str, &str); 10] = [
    ("add", "added"),
    ("conflict", "in conflict"),
    ("decide", "decided"),
    ("discard", "set aside"),
    ("duplicate", "said again"),
    ("merge", "merged"),
    ("restate", "restated"),
    ("settle", "settled"),
    ("supersede", "replaced others"),
    ("withdraw", "withdrawn"),
];
/// Maximum options of one decision, or points of one discussion; nobody reads longer lists.
const ITEMS_MAX: usize = 64;

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

    /// True for a plan of a person's verdict, which has no records to consolidate.
    pub(crate) fn is_verdict(&self) -> bool {
        !self.is_empty() && self.operations.iter().all(Operation::is_by_person)
    }

    /// Number of records that it consolidates: a verdict has none, and a settled pair is no record.
    pub(crate) fn records(&self) -> usize {
        let settles = |it: &Operation| matches!(it.disposition, Disposition::Settle { .. });
        self.operations.iter().filter(|it| !it.is_by_person() && !settles(it)).count()
    }

    /// Number of operations of each disposition, by name.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for operation in &self.operations {
            *counts.entry(operation.disposition.name()).or_default() += 1;
        }
        counts
    }

    /// Its operations in words, such as `44 added`; a person's verdict with the words of the memory.
    pub(crate) fn in_words(&self) -> String {
        if let Some(verdict) = self.operations.iter().find(|it| it.is_by_person()) {
            let deed = verdict.rule.strip_prefix(BY_PERSON).unwrap_or_default().replace('-', " ");
            let superseded = verdict.effects.iter().find(|it| it.supersedes).map(|it| it.memory);
            let about = superseded.or(verdict.disposition.other()).or(verdict.disposition.home());
            let memory = self.before.iter().find(|it| Some(it.id) == about);
            let words = memory.map(Memory::words).filter(|it| !it.is_empty());
            let words = words.map(|it| format!(": {it}")).unwrap_or_default();
            return format!("{deed} by a person{words}");
        }
        let counts = self.counts();
        let deeds = DEEDS.iter().filter_map(|(name, deed)| Some((counts.get(name)?, deed)));
        let all = commas(deeds.map(|(number, deed)| format!("{} {deed}", count(*number as u64))));
        if all.is_empty() {
            "nothing is left of it: all of it was forgotten".to_owned()
        } else {
            all
        }
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
    // Older versions did not keep what settled a memory, and when it was last said.
    let Memory { confirmed, edited, decided, settled_by, settled_as, last_said, .. } =
        after.clone();
    let mut bare =
        Memory { confirmed, edited, decided, settled_by, settled_as, last_said, ..now.clone() };
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

impl Operation {
    /// Applies the operation to `map`, which holds the memories that it touches. A missing target,
    /// for example a forgotten one, is made from the record.
    pub fn fold(&self, namespace: &str, map: &mut MemoryMap) {
        match self.disposition {
            Disposition::Add { memory: id }
            | Disposition::Conflict { memory: id, .. }
            | Disposition::Duplicate { of: id } => {
                self.rest(namespace, id, Merging::Provenance, map);
            }
            Disposition::Supersede { old, memory } => {
                self.rest(namespace, memory, Merging::Provenance, map);
                retire(map, old, memory, self.facts.at, &self.rule);
            }
            Disposition::Merge { into, how } => self.rest(namespace, into, how, map),
            Disposition::Settle { memory, with, how } => self.settle(memory, with, how, map),
            Disposition::Withdraw { memory } => self.withdraw(memory, map),
            Disposition::Restate { memory, how } => self.restate(memory, how, map),
            Disposition::Decide { .. } => {}
            Disposition::Discard => return,
        }
        self.effects.iter().for_each(|effect| effect.fold(map));
        if let Some(at) = self.facts.at.filter(|_| self.is_by_person()) {
            for id in self.touches() {
                if let Some(memory) = map.get_mut(&id) {
                    memory.confirmed = true;
                    memory.decided = Some(PersonDecision { rule: self.rule.clone(), at });
                }
            }
        }
    }

    /// Settles `memory`, which was left open beside `with`.
    fn settle(&self, memory: MemoryId, with: MemoryId, how: Settlement, map: &mut MemoryMap) {
        // A dropped or joined memory ends when it began: it was never valid by itself.
        let never = map.get(&memory).and_then(|it| it.valid_from).or(self.facts.at);
        match how {
            Settlement::Apart | Settlement::Beside | Settlement::Followed | Settlement::Partly => {}
            Settlement::Replaced => retire(map, with, memory, self.facts.at, &self.rule),
            Settlement::Dropped => retire(map, memory, with, never, &self.rule),
            Settlement::Joined => {
                join(map, memory, with);
                retire(map, memory, with, never, &self.rule);
            }
        }
    }

    /// Adds the record to the sources of memory `id`, which it makes if needed.
    fn rest(&self, namespace: &str, id: MemoryId, how: Merging, map: &mut MemoryMap) {
        let facts = &self.facts;
        let there = map.get_mut(&id).filter(|memory| !memory.is_hollow());
        let Some(memory) = there else {
            let memory = Memory {
                id,
                namespace: namespace.to_owned(),
                claim: facts.claim.clone(),
                stage: facts.stage,
                state: MemoryState::Active,
                said_by: facts.said_by,
                confirmed: false,
                edited: None,
                decided: None,
                valid_from: facts.at,
                last_said: None,
                valid_until: None,
                ends: facts.ends,
                superseded_by: None,
                settled_by: None,
                settled_as: None,
                reason: None,
                sources: vec![self.record],
            };
            map.insert(id, memory);
            return;
        };
        // Operations come in order of time, so this holds only for the first late one.
        let is_first = facts.at.is_some() && facts.at < memory.valid_from;
        // After an undo, a memory that a person changed still has the record.
        if !memory.sources.contains(&self.record) {
            memory.sources.insert(if is_first { 0 } else { memory.sources.len() }, self.record);
        }
        self.learn(how, memory);
    }

    /// Updates `memory` with what the record says, which is one of its sources.
    fn learn(&self, how: Merging, memory: &mut Memory) {
        let facts = &self.facts;
        memory.say_again(facts.said_by, facts.at);
        // A case that is over does not end the rule that it was merged into.
        if memory.ends.is_some() && memory.valid_from < facts.at {
            memory.ends = facts.ends.or(memory.ends);
        }
        // A question, or a wish to be told something, ends with a record that says so.
        let is_question = matches!(memory.claim, Claim::Discussion(_) | Claim::Request(_))
            && memory.claim.kind() == facts.claim.kind();
        if is_question && !memory.is_decided_after(facts.at) && memory.stage < facts.stage {
            memory.stage = facts.stage;
        }
        match how {
            Merging::Provenance => {}
            Merging::Extend => extend(&mut memory.claim, &facts.claim),
            Merging::Outcome => {
                memory.claim = facts.claim.clone();
                if memory.stage.may_become(facts.stage) {
                    memory.stage = facts.stage;
                }
            }
            Merging::Combine => {
                let before = memory.claim.clone();
                combine(&mut memory.claim, &facts.claim);
                // The reason of a decision is the one that it was made for.
                if let (Claim::Decision(it), Claim::Decision(before)) = (&mut memory.claim, before)
                    && !before.rationale.is_empty()
                {
                    it.rationale = before.rationale;
                }
            }
            Merging::Append => {
                let earlier = std::mem::replace(&mut memory.claim, facts.claim.clone());
                combine(&mut memory.claim, &earlier);
            }
        }
    }

    /// Removes the record from memory `id`. What people wrote or confirmed stays.
    fn withdraw(&self, id: MemoryId, map: &mut MemoryMap) {
        let Some(memory) = map.get_mut(&id) else { return };
        // Records that come and go do not restore what a person retracted.
        if memory.state == MemoryState::Retracted {
            return;
        }
        let had = memory.sources.len();
        memory.sources.retain(|source| *source != self.record);
        let emptied = memory.sources.is_empty() && had > 0;
        if emptied && !memory.confirmed {
            memory.state = MemoryState::Retracted;
            // It was never said, so it was never valid.
            memory.valid_until = memory.valid_from;
            memory.superseded_by = None;
            memory.reason = Some(self.rule.to_string());
        }
    }

    /// Sets the words of memory `id` from the record, which is one of its sources.
    fn restate(&self, id: MemoryId, how: Option<Merging>, map: &mut MemoryMap) {
        let Some(memory) = map.get_mut(&id) else { return };
        match how {
            Some(how) => self.learn(how, memory),
            None => {
                let facts = &self.facts;
                memory.claim = facts.claim.clone();
                (memory.said_by, memory.valid_from) = (facts.said_by, facts.at);
                memory.last_said = None;
                memory.ends = facts.ends;
            }
        }
    }
}

impl Effect {
    /// An effect of `by` on `memory` that changes nothing yet.
    pub(super) fn new(
        memory: MemoryId,
        by: MemoryId,
        at: Option<Timestamp>,
        rule: &'static str,
    ) -> Effect {
        let (stage, rule) = (None, Cow::Borrowed(rule));
        Effect { memory, by, stage, supersedes: false, restores: false, retracts: false, at, rule }
    }

    /// Applies the effect to `map`, if its cause is there.
    pub fn fold(&self, map: &mut MemoryMap) {
        if !map.contains_key(&self.by) {
            return;
        }
        if let Some(memory) = map.get_mut(&self.memory) {
            let may = |stage: &Stage| self.restores || memory.stage.may_become(*stage);
            if let Some(stage) = self.stage.filter(may) {
                memory.stage = stage;
                memory.settled_by =
                    Some(self.by).filter(|by| *by != memory.id && !memory.is_open());
                memory.settled_as = memory.settled_by.map(|_| self.rule.clone());
            }
            // A person restores whatever was out of use.
            let is_free = self.rule.starts_with(BY_PERSON) && !self.supersedes;
            if self.restores && (is_free || memory.superseded_by == Some(self.by)) {
                memory.reinstate();
            }
            if self.retracts && memory.state == MemoryState::Active {
                memory.state = MemoryState::Retracted;
                memory.valid_until = self.at;
                memory.reason = Some(self.rule.to_string());
            }
        }
        if self.supersedes {
            retire(map, self.memory, self.by, self.at, &self.rule);
        }
    }
}

/// Adds the sources of `from` to `into`, and what was said about a question, with the more trusted speaker and the earlier
/// start.
fn join(map: &mut MemoryMap, from: MemoryId, into: MemoryId) {
    let Some(more) = map.get(&from).filter(|_| from != into).cloned() else { return };
    let Some(memory) = map.get_mut(&into) else { return };
    for source in more.sources {
        if !memory.sources.contains(&source) {
            memory.sources.push(source);
        }
    }
    memory.say_again(more.said_by, more.valid_from);
    memory.say_again(more.said_by, more.last_said.or(more.valid_from));
    memory.confirmed |= more.confirmed;
    if more.claim.kind() == ClaimKind::Discussion {
        extend(&mut memory.claim, &more.claim);
    }
}

/// Supersedes `old` by `by`, unless it is out of use already.
fn retire(map: &mut MemoryMap, old: MemoryId, by: MemoryId, at: Option<Timestamp>, rule: &str) {
    let Some(memory) = map.get_mut(&old) else { return };
    if memory.state == MemoryState::Active && old != by {
        memory.state = MemoryState::Superseded;
        memory.valid_until = at;
        memory.superseded_by = Some(by);
        memory.reason = Some(rule.to_owned());
    }
}

/// Puts the words of `first` before those of the claim.
fn combine(claim: &mut Claim, first: &Claim) {
    let words = format!("{} (also: {})", first.headline(), claim.headline());
    let rest = std::mem::replace(claim, first.clone());
    extend(claim, &rest);
    match claim {
        Claim::Decision(it) => {
            let chosen = std::mem::replace(&mut it.chosen, words.clone());
            it.options.iter_mut().filter(|it| **it == chosen).for_each(|it| it.clone_from(&words));
        }
        Claim::Discussion(it) => it.topic = words,
        Claim::Attempt(it) => it.action = words,
        Claim::Request(it) => it.summary = words,
    }
}

/// Adds the items that only `more` has.
fn extend(claim: &mut Claim, more: &Claim) {
    let (items, new) = match (claim, more) {
        (Claim::Decision(it), Claim::Decision(more)) => (&mut it.options, &more.options),
        (Claim::Discussion(it), Claim::Discussion(more)) => (&mut it.points, &more.points),
        _ => return,
    };
    for item in new {
        if items.len() < ITEMS_MAX && !items.contains(item) {
            items.push(item.clone());
        }
    }
}
