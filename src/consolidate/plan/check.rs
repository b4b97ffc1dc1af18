//! Invariants of all plans. A plan that breaks one is not applied, so a wrong policy or a forged
//! answer costs a plan and no memory.

use crate::domain::{
    Disposition, FINDINGS_MAX, Finding, Memory, MemoryId, MemoryMap, MemoryState, Merging,
    Operation, Plan, RecordId, Settlement, Severity,
};
use std::collections::{BTreeMap, BTreeSet};

impl Plan {
    /// Finds everything that is wrong with the plan on top of `state`; empty if it may be applied.
    /// It must have each of `records` exactly once, and no others.
    pub fn check(&self, records: &[RecordId], state: &MemoryMap) -> Vec<Finding> {
        let mut audit = Audit { state, running: MemoryMap::new(), findings: Vec::new() };
        if self.digest() != self.id {
            audit.note("plan-id", "the plan is not what its id was made of");
        }
        audit.cover(self, records);
        audit.before(self);
        let mut retired = BTreeSet::new();
        for operation in &self.operations {
            audit.operation(self, operation, &mut retired);
            operation.fold(&self.namespace, &mut audit.running);
        }
        audit.cycles();
        audit.findings
    }
}

struct Audit<'a> {
    state: &'a MemoryMap,
    /// Touched memories, as the operations so far left them.
    running: MemoryMap,
    findings: Vec<Finding>,
}

impl Audit<'_> {
    fn note(&mut self, rule: &'static str, detail: impl Into<String>) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding::new(Severity::Error, rule, 0, detail));
        }
    }

    fn cover(&mut self, plan: &Plan, records: &[RecordId]) {
        let wanted: BTreeSet<RecordId> = records.iter().copied().collect();
        let (mut met, mut revised) = (BTreeSet::new(), BTreeSet::new());
        for operation in &plan.operations {
            let (record, disposition) = (operation.record, &operation.disposition);
            if disposition.is_revision() {
                let about = disposition.other().or(disposition.home());
                if !revised.insert((record, disposition.name(), about)) {
                    let name = disposition.name();
                    self.note("revised-twice", format!("two operations {name} record {record}"));
                }
                continue;
            }
            if !met.insert(record) {
                self.note("record-twice", format!("record {record} has two dispositions"));
            }
            if !wanted.contains(&record) {
                self.note("record-foreign", format!("record {record} is not to be dealt with"));
            }
        }
        for record in wanted.difference(&met) {
            self.note("record-missed", format!("record {record} has no disposition"));
        }
    }

    fn before(&mut self, plan: &Plan) {
        for memory in &plan.before {
            let id = memory.id;
            if self.state.get(&id) != Some(memory) {
                self.note("before-differs", format!("memory {id} is not as the plan found it"));
            }
            if self.running.insert(id, memory.clone()).is_some() {
                self.note("before-twice", format!("memory {id} is in the plan twice"));
            }
        }
    }

    fn operation(&mut self, plan: &Plan, operation: &Operation, retired: &mut BTreeSet<MemoryId>) {
        let Operation { record, disposition, .. } = operation;
        if let Disposition::Merge { how, into } = disposition
            && *how != Merging::Provenance
        {
            self.in_use(*into, *record);
        }
        let may_be_new = |it: &&Disposition| {
            use Disposition::{Add, Conflict, Supersede};
            matches!(it, Add { .. } | Conflict { .. } | Supersede { .. })
        };
        let makes = Some(disposition).filter(may_be_new).and_then(Disposition::home);
        if let Some(id) = makes {
            let other = self.running.get(&id).or_else(|| self.state.get(&id));
            let other = other.filter(|memory| !memory.is_hollow());
            let stands = other.is_some_and(|memory| memory.state == MemoryState::Active);
            let twin = matches!(disposition, Disposition::Supersede { .. }) && stands;
            if other.is_some() && !twin {
                self.note("memory-exists", format!("memory {id} of record {record} is there"));
            } else if other.is_none() && id != Memory::id_of(&plan.namespace, *record) {
                self.note("memory-id", format!("memory {id} is not named for record {record}"));
            }
        }
        let made = |id: &MemoryId| makes == Some(*id);
        for id in operation.touches().filter(|id| !made(id)) {
            self.target(plan, id, *record);
        }
        let mut supersede = None;
        if let Disposition::Supersede { old, .. } = disposition {
            supersede = Some(*old);
        } else if let Disposition::Settle { memory, with, how } = disposition {
            supersede = match how {
                Settlement::Replaced => Some(*with),
                Settlement::Joined | Settlement::Dropped => Some(*memory),
                Settlement::Apart
                | Settlement::Beside
                | Settlement::Followed
                | Settlement::Partly => None,
            };
        } else if let Disposition::Restate { memory: id, .. } = disposition
            && let Some(memory) = self.running.get(id)
            && (memory.confirmed || !memory.sources.contains(record))
        {
            // A confirmed memory keeps its words; others are restated only from their own records.
            self.note("restated", format!("memory {id} is not to say what record {record} says"));
        }
        let effects = operation.effects.iter().filter(|effect| effect.supersedes);
        for id in supersede.into_iter().chain(effects.map(|effect| effect.memory)) {
            if !made(&id) {
                self.in_use(id, *record);
            }
            if !retired.insert(id) {
                self.note("superseded-twice", format!("two operations supersede memory {id}"));
            }
        }
        self.stages(operation);
    }

    fn stages(&mut self, operation: &Operation) {
        for effect in operation.effects.iter().filter(|effect| !effect.restores) {
            // A hollow memory starts over.
            let memory = self.running.get(&effect.memory).filter(|memory| !memory.is_hollow());
            let from = memory.map(|memory| memory.stage);
            if let (Some(from), Some(to)) = (from, effect.stage)
                && !from.may_become(to)
            {
                let (id, from, to) = (effect.memory, from.name(), to.name());
                self.note("stage", format!("memory {id} cannot go from {from} to {to}"));
            }
        }
    }

    fn target(&mut self, plan: &Plan, id: MemoryId, record: RecordId) {
        let Some(memory) = self.running.get(&id) else {
            let known = self.state.contains_key(&id);
            let rule = if known { "before-missing" } else { "target-missing" };
            self.note(rule, format!("memory {id}, which record {record} touches, is not there"));
            return;
        };
        if memory.namespace != plan.namespace {
            self.note("target-foreign", format!("memory {id} is in another namespace"));
        }
    }

    fn in_use(&mut self, id: MemoryId, record: RecordId) {
        let state = self.running.get(&id).map(|memory| memory.state);
        if state.is_some_and(|state| state != MemoryState::Active) {
            let detail = format!("memory {id}, which record {record} changes, is out of use");
            self.note("target-out-of-use", detail);
        }
    }

    /// Follows each memory to its successors, every link once, and reports cycles.
    fn cycles(&mut self) {
        let next = |id: &MemoryId| {
            let memory = self.running.get(id).or_else(|| self.state.get(id));
            memory.and_then(|memory| memory.superseded_by)
        };
        let mut seen: BTreeMap<MemoryId, usize> = BTreeMap::new();
        let mut circles = Vec::new();
        for (walk, start) in self.running.keys().enumerate() {
            let mut at = Some(*start);
            while let Some(id) = at.filter(|id| !seen.contains_key(id)) {
                seen.insert(id, walk);
                at = next(&id);
            }
            circles.extend(at.filter(|id| seen[id] == walk));
        }
        for id in circles {
            self.note("supersede-cycle", format!("memory {id} takes its own place"));
        }
    }
}
