//! What consolidation will change: for every record one operation, and the memories as they were. It can be read
//! before it is applied and undone after; what it comes to is folded from it, so that a plan cannot contradict itself.

mod check;
mod fold;

use super::Memory;
use super::entry::named;
use super::{Claim, Digest, MemoryId, PlanId, RecordId, Speaker, Stage, Timestamp};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Memories of one namespace by id.
pub type MemoryMap = BTreeMap<MemoryId, Memory>;

/// What a record says, as far as memory needs to know: enough to fold a memory anew when another record that it
/// rested on was forgotten.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Facts {
    /// The claim; dates that were told relative to the day have the day behind them.
    pub claim: Claim,
    /// How far the fact has come by this record alone.
    pub stage: Stage,
    /// The most trusted speaker among its evidence.
    pub said_by: Speaker,
    /// When the first of its evidence was said.
    pub at: Option<Timestamp>,
}

named! {
    /// What a merge changes besides where the memory comes from.
    Merging {
        /// Nothing.
        Provenance = "provenance",
        /// Options or points that the memory did not have are added.
        Extend = "extend",
        /// A later outcome takes the place of the earlier one.
        Outcome = "outcome",
    }
}

named! {
    /// What a pair comes to that was left open before, once a model was asked about it.
    Settlement {
        /// They have nothing to do with one another.
        Apart = "apart",
        /// They contradict one another, and both stand.
        Beside = "beside",
        /// They say the same: the other one rests on its records too and stands for both.
        Joined = "joined",
        /// It takes the other one's place.
        Replaced = "replaced",
        /// It says nothing that is worth keeping beside the other one.
        Dropped = "dropped",
        /// Something follows for the other one, which is of another kind.
        Followed = "followed",
    }
}

/// What becomes of a record. Each record has exactly one, and may have revisions later: a settlement for each pair that
/// was left open, and where its conversation is read anew, a withdrawal or a restatement.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Deserialize, Serialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Disposition {
    /// It begins a memory.
    Add {
        /// The new one.
        memory: MemoryId,
    },
    /// A memory rests on it from now on, and may learn something.
    Merge {
        /// That memory.
        into: MemoryId,
        /// What it learns.
        how: Merging,
    },
    /// A memory is believed no more; another one takes its place.
    Supersede {
        /// The one that goes out of use.
        old: MemoryId,
        /// What stands now: new, or one that says the same already.
        memory: MemoryId,
    },
    /// It contradicts a memory, or may; both are kept.
    Conflict {
        /// The other one.
        with: MemoryId,
        /// The new one.
        memory: MemoryId,
    },
    /// It becomes no memory; the record stays where it is.
    Discard,
    /// A memory says the same already, and rests on it too from now on.
    Duplicate {
        /// That memory.
        of: MemoryId,
    },
    /// A pair that an earlier plan left open is decided now.
    Settle {
        /// The memory that rests on the record.
        memory: MemoryId,
        /// The one that it was left open beside.
        with: MemoryId,
        /// What they come to.
        how: Settlement,
    },
    /// A newer reading of its conversation took its place: a memory rests on it no more, and goes out of use where it
    /// rests on nothing else.
    Withdraw {
        /// That memory.
        memory: MemoryId,
    },
    /// A memory says what this record says, since another one that it rested on was withdrawn.
    Restate {
        /// That memory.
        memory: MemoryId,
        /// What it learns; without it, it begins with this record.
        how: Option<Merging>,
    },
}

impl Disposition {
    /// The name in the ledger and in print.
    pub fn name(&self) -> &'static str {
        match self {
            Disposition::Add { .. } => "add",
            Disposition::Merge { .. } => "merge",
            Disposition::Supersede { .. } => "supersede",
            Disposition::Conflict { .. } => "conflict",
            Disposition::Discard => "discard",
            Disposition::Duplicate { .. } => "duplicate",
            Disposition::Settle { .. } => "settle",
            Disposition::Withdraw { .. } => "withdraw",
            Disposition::Restate { .. } => "restate",
        }
    }

    /// The memory that rests on the record afterwards; none if it was discarded or withdrawn.
    pub fn home(&self) -> Option<MemoryId> {
        match self {
            Disposition::Add { memory }
            | Disposition::Supersede { memory, .. }
            | Disposition::Conflict { memory, .. }
            | Disposition::Settle { memory, .. }
            | Disposition::Restate { memory, .. } => Some(*memory),
            Disposition::Merge { into, .. } => Some(*into),
            Disposition::Duplicate { of } => Some(*of),
            Disposition::Discard | Disposition::Withdraw { .. } => None,
        }
    }

    /// Whether it is about a record that an earlier plan dealt with.
    pub fn is_revision(&self) -> bool {
        match self {
            Disposition::Settle { .. }
            | Disposition::Withdraw { .. }
            | Disposition::Restate { .. } => true,
            Disposition::Add { .. }
            | Disposition::Merge { .. }
            | Disposition::Supersede { .. }
            | Disposition::Conflict { .. }
            | Disposition::Discard
            | Disposition::Duplicate { .. } => false,
        }
    }

    /// The memory beside the one that rests on the record: superseded, in conflict with it, or without it now.
    pub fn other(&self) -> Option<MemoryId> {
        match self {
            Disposition::Supersede { old, .. } => Some(*old),
            Disposition::Conflict { with, .. } | Disposition::Settle { with, .. } => Some(*with),
            Disposition::Withdraw { memory } => Some(*memory),
            Disposition::Add { .. }
            | Disposition::Merge { .. }
            | Disposition::Restate { .. }
            | Disposition::Discard
            | Disposition::Duplicate { .. } => None,
        }
    }
}

/// What follows from a record for another memory, such as a request that an attempt completed.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Effect {
    /// What changes.
    pub memory: MemoryId,
    /// The memory that it follows from; without it nothing follows.
    pub by: MemoryId,
    /// The stage that it comes to, if it comes to another.
    pub stage: Option<Stage>,
    /// Whether `by` takes its place.
    pub supersedes: bool,
    /// Whether it takes back what followed before: the stage may be an earlier one, and `by` is in its place no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restores: bool,
    /// Since when.
    pub at: Option<Timestamp>,
    /// The rule by which it follows.
    pub rule: Cow<'static, str>,
}

/// One record and what becomes of it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Operation {
    /// The record.
    pub record: RecordId,
    /// What becomes of it.
    pub disposition: Disposition,
    /// Why: the name of a rule, no words.
    pub rule: Cow<'static, str>,
    /// What it says.
    pub facts: Facts,
    /// What follows for other memories.
    pub effects: Vec<Effect>,
}

impl Operation {
    /// Every memory that it makes, changes or depends on; some more than once.
    pub fn touches(&self) -> impl Iterator<Item = MemoryId> + '_ {
        let own = [self.disposition.home(), self.disposition.other()];
        let effects = self.effects.iter().flat_map(|effect| [effect.memory, effect.by]);
        own.into_iter().flatten().chain(effects)
    }
}

/// A record and a memory of which no rule could say how they stand to one another; both are kept.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Deserialize, Serialize)]
pub struct LeftOpen {
    /// The record.
    pub record: RecordId,
    /// The memory that it may touch.
    pub memory: MemoryId,
    /// The rule that could not decide.
    pub rule: Cow<'static, str>,
}

/// A set of changes to the memories of one namespace.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Plan {
    /// Digest of all the rest: the same input gives the same plan.
    pub id: PlanId,
    /// Whose memory.
    pub namespace: String,
    /// One for each record, in the order of time; each is applied to what those before it left.
    pub operations: Vec<Operation>,
    /// The memories that operations touch, as they were; new ones are not among them. By id.
    pub before: Vec<Memory>,
    /// What a model or a person may still decide.
    pub left_open: Vec<LeftOpen>,
}

/// One memory before and after a plan.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Change {
    /// Which.
    pub memory: MemoryId,
    /// As it was; none if it is new.
    pub before: Option<Memory>,
    /// As it becomes; none if it goes.
    pub after: Option<Memory>,
}

/// Memories are neither as the plan found them nor as it leaves them: something else changed them since.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{} memories were changed by something else, the first is {}", .0.len(), first(.0))]
pub struct Moved(pub Vec<MemoryId>);

fn first(ids: &[MemoryId]) -> String {
    ids.first().map(ToString::to_string).unwrap_or_default()
}

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

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// How many records come to each disposition, by name.
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
        let changes = self.changes();
        replace(state, changes.into_iter().map(|it| (it.memory, it.before, it.after)).collect())
    }

    /// Takes it back from `state`, with the same rules as [`Plan::apply`]. Plans are undone from the last one on.
    pub fn undo(&self, state: &mut MemoryMap) -> Result<(), Moved> {
        let changes = self.changes();
        replace(state, changes.into_iter().map(|it| (it.memory, it.after, it.before)).collect())
    }
}

/// Replaces the first of each two by the second, all or none.
fn replace(
    state: &mut MemoryMap,
    changes: Vec<(MemoryId, Option<Memory>, Option<Memory>)>,
) -> Result<(), Moved> {
    let other = |(id, from, to): &&(MemoryId, Option<Memory>, Option<Memory>)| {
        let is = state.get(id);
        is != from.as_ref() && is != to.as_ref()
    };
    let moved: Vec<MemoryId> = changes.iter().filter(other).map(|(id, ..)| *id).collect();
    if !moved.is_empty() {
        return Err(Moved(moved));
    }
    for (id, _, to) in changes {
        match to {
            Some(memory) => state.insert(id, memory),
            None => state.remove(&id),
        };
    }
    Ok(())
}

/// The digest of `value` as JSON, in the order of its fields.
fn digest(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    Digest::of(&[&text]).to_string()
}

#[cfg(test)]
mod tests;
