//! Effects of an operation on memories. Memory changes only here: planning, applying, undoing,
//! history and forgetting all fold the same operations.

use crate::domain::{
    BY_PERSON, Claim, Disposition, Effect, Memory, MemoryId, MemoryMap, MemoryState, Merging,
    Operation, PersonDecision, Settlement, Stage, Timestamp,
};

/// Maximum options of one decision, or points of one discussion; nobody reads longer lists.
const ITEMS_MAX: usize = 64;

impl Operation {
    /// Applies the operation to `map`, which holds the memories that it touches. A missing target,
    /// for example a forgotten one, is made from the record.
    pub fn fold(&self, namespace: &str, map: &mut MemoryMap) {
        match self.disposition {
            Disposition::Add { memory } | Disposition::Conflict { memory, .. } => {
                self.rest(namespace, memory, Merging::Provenance, map);
            }
            Disposition::Supersede { old, memory } => {
                self.rest(namespace, memory, Merging::Provenance, map);
                retire(map, old, memory, self.facts.at, &self.rule);
            }
            Disposition::Merge { into, how } => self.rest(namespace, into, how, map),
            Disposition::Duplicate { of } => {
                self.rest(namespace, of, Merging::Provenance, map);
            }
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
            Settlement::Apart | Settlement::Beside | Settlement::Followed => {}
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
                valid_until: None,
                superseded_by: None,
                settled_by: None,
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
        memory.valid_from = earlier(memory.valid_from, facts.at);
        memory.said_by = memory.said_by.min(facts.said_by);
        match how {
            Merging::Provenance => {}
            Merging::Extend => extend(&mut memory.claim, &facts.claim),
            Merging::Outcome => {
                memory.claim = facts.claim.clone();
                if memory.stage.may_become(facts.stage) {
                    memory.stage = facts.stage;
                }
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
            }
        }
    }
}

impl Effect {
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

/// Adds the sources of `from` to `into`, with the more trusted speaker and the earlier start.
fn join(map: &mut MemoryMap, from: MemoryId, into: MemoryId) {
    let Some(more) = map.get(&from).filter(|_| from != into).cloned() else { return };
    let Some(memory) = map.get_mut(&into) else { return };
    for source in more.sources {
        if !memory.sources.contains(&source) {
            memory.sources.push(source);
        }
    }
    memory.said_by = memory.said_by.min(more.said_by);
    memory.confirmed |= more.confirmed;
    memory.valid_from = earlier(memory.valid_from, more.valid_from);
}

/// Earlier of two times, or the known one.
fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
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

/// Adds the items that only `more` has.
fn extend(claim: &mut Claim, more: &Claim) {
    let (items, new) = match (claim, more) {
        (Claim::Decision(it), Claim::Decision(more)) => (&mut it.options, &more.options),
        (Claim::Discussion(it), Claim::Discussion(more)) => (&mut it.points, &more.points),
        (
            Claim::Decision(_) | Claim::Discussion(_) | Claim::Attempt(_) | Claim::Request(_),
            Claim::Decision(_) | Claim::Discussion(_) | Claim::Attempt(_) | Claim::Request(_),
        ) => return,
    };
    for item in new {
        if items.len() < ITEMS_MAX && !items.contains(item) {
            items.push(item.clone());
        }
    }
}
