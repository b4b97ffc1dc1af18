//! Consolidation plan: one operation per record, and the affected memories as they were.
//! `consolidate::plan` checks, applies and undoes it.

use super::Memory;
use super::entry::named;
use super::{Claim, MemoryId, PlanId, RecordId, Speaker, Stage, Timestamp};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Memories of one namespace by id.
pub type MemoryMap = BTreeMap<MemoryId, Memory>;

/// The parts of a record that memory needs: enough to fold a memory anew after another of its records was
/// forgotten.
#[derive(schemars::JsonSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Facts {
    /// The claim; dates that were told relative to the day have the day behind them.
    pub claim: Claim,
    /// Stage by this record alone.
    pub stage: Stage,
    /// The most trusted speaker among its evidence.
    pub said_by: Speaker,
    /// When the first of its evidence was said.
    pub at: Option<Timestamp>,
    /// End of the last day on which it matters, if a model found one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Timestamp>,
}

named! {
    /// Effect of a merge on the memory, besides its provenance.
    #[derive(schemars::JsonSchema)]
    pub Merging {
        /// Nothing.
        Provenance = "provenance",
        /// Options or points that the memory did not have are added.
        Extend = "extend",
        /// A later outcome takes the place of the earlier one.
        Outcome = "outcome",
        /// The later words, with the earlier ones behind them.
        Combine = "combine",
        /// The earlier words, with the later ones behind them.
        Append = "append",
    }
}

named! {
    /// A model's decision on a pair that was left open.
    #[derive(schemars::JsonSchema)]
    pub Settlement {
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
        /// The later one changes a part of the other one; both stand, marked.
        Partly = "partly",
    }
}

/// Decision on a record. Each record has exactly one, and may have revisions later: a settlement for each pair that
/// was left open, and a withdrawal or a restatement if its conversation is read anew.
#[derive(schemars::JsonSchema, Clone, Copy, Debug, Eq, PartialEq, Deserialize, Serialize)]
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
        /// The change.
        how: Merging,
    },
    /// A memory is believed no more; another one takes its place.
    Supersede {
        /// The one that goes out of use.
        old: MemoryId,
        /// Its successor: new, or one that says the same already.
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
        /// The decision on the pair.
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
        /// The change; none if the memory begins with this record.
        how: Option<Merging>,
    },
    /// A person decided on a memory that rests on the record; the effects say what follows.
    Decide {
        /// That memory.
        memory: MemoryId,
    },
}

impl Disposition {
    /// Name in the ledger and in output.
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
            Disposition::Decide { .. } => "decide",
        }
    }

    /// Returns the memory that rests on the record afterwards; `None` if discarded or withdrawn.
    pub fn home(&self) -> Option<MemoryId> {
        match self {
            Disposition::Add { memory }
            | Disposition::Supersede { memory, .. }
            | Disposition::Conflict { memory, .. }
            | Disposition::Settle { memory, .. }
            | Disposition::Restate { memory, .. }
            | Disposition::Decide { memory }
            | Disposition::Merge { into: memory, .. }
            | Disposition::Duplicate { of: memory } => Some(*memory),
            Disposition::Discard | Disposition::Withdraw { .. } => None,
        }
    }

    /// Returns true if an earlier plan already decided on the record.
    pub fn is_revision(&self) -> bool {
        use Disposition::{Decide, Restate, Settle, Withdraw};
        matches!(self, Settle { .. } | Withdraw { .. } | Restate { .. } | Decide { .. })
    }

    /// Returns the other memory involved: superseded, in conflict, or no longer resting on the record.
    pub fn other(&self) -> Option<MemoryId> {
        match self {
            Disposition::Supersede { old: other, .. }
            | Disposition::Conflict { with: other, .. }
            | Disposition::Settle { with: other, .. }
            | Disposition::Withdraw { memory: other } => Some(*other),
            Disposition::Add { .. }
            | Disposition::Merge { .. }
            | Disposition::Restate { .. }
            | Disposition::Decide { .. }
            | Disposition::Discard
            | Disposition::Duplicate { .. } => None,
        }
    }
}

/// Consequence of a record for another memory, such as a request that an attempt completed.
#[derive(schemars::JsonSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Effect {
    /// The changed memory.
    pub memory: MemoryId,
    /// The memory that causes the change; without it nothing changes.
    pub by: MemoryId,
    /// New stage, if it changes.
    pub stage: Option<Stage>,
    /// True if `by` is its successor.
    pub supersedes: bool,
    /// True if it reverts an earlier effect: the stage may be an earlier one, and `by` is no longer its successor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restores: bool,
    /// True if a person says that it is wrong: it goes out of use without a successor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retracts: bool,
    /// Time of the change.
    pub at: Option<Timestamp>,
    /// The rule by which it follows.
    pub rule: Cow<'static, str>,
}

/// One record and the decision on it.
#[derive(schemars::JsonSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Operation {
    /// The record.
    pub record: RecordId,
    /// The decision.
    pub disposition: Disposition,
    /// Why: the name of a rule, no words.
    pub rule: Cow<'static, str>,
    /// The record's content.
    pub facts: Facts,
    /// Consequences for other memories.
    pub effects: Vec<Effect>,
}

/// Prefix of the rules of people's decisions.
pub(crate) const BY_PERSON: &str = "person-";

impl Operation {
    /// Returns true if a person made the decision.
    pub fn is_by_person(&self) -> bool {
        self.rule.starts_with(BY_PERSON)
    }

    /// Returns every memory it creates, changes or depends on, possibly more than once.
    pub fn touches(&self) -> impl Iterator<Item = MemoryId> + '_ {
        let own = [self.disposition.home(), self.disposition.other()];
        let effects = self.effects.iter().flat_map(|effect| [effect.memory, effect.by]);
        own.into_iter().flatten().chain(effects)
    }
}

/// A record and a memory whose relation no rule could decide; both are kept.
#[derive(
    schemars::JsonSchema, Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Deserialize, Serialize,
)]
pub struct LeftOpen {
    /// The record.
    pub record: RecordId,
    /// The memory that it may touch.
    pub memory: MemoryId,
    /// The rule that could not decide.
    pub rule: Cow<'static, str>,
}

/// Rule of a pair that only shares rare words: a model may be asked about it, but no person.
pub(crate) const RELATED: &str = "related";
/// Rules of a pair of which the later one changes a part of the other: as a model found, or because it is about a case of it
/// or names its own end.
pub(crate) const PARTLY: &str = "judged-partly";
pub(crate) const NARROWER: &str = "judged-narrower";
pub(crate) const FOR_A_TIME: &str = "for-a-time";

/// True for a pair that stays side by side, marked.
pub(crate) fn is_partly(rule: &str) -> bool {
    [PARTLY, NARROWER, FOR_A_TIME].contains(&rule)
}

/// A set of changes to the memories of one namespace.
#[derive(schemars::JsonSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Plan {
    /// Digest of all the rest: the same input gives the same plan.
    pub id: PlanId,
    /// Namespace.
    pub namespace: String,
    /// One for each record, in the order of time; each is applied to what those before it left.
    pub operations: Vec<Operation>,
    /// The memories that operations touch, as they were; new ones are not among them. By id.
    pub before: Vec<Memory>,
    /// Pairs that a model or a person may still decide.
    pub left_open: Vec<LeftOpen>,
}

/// One memory before and after a plan.
#[derive(schemars::JsonSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Change {
    /// The memory.
    pub memory: MemoryId,
    /// As it was; none if it is new.
    pub before: Option<Memory>,
    /// As it becomes; none if it goes.
    pub after: Option<Memory>,
}

/// Memories match neither the state before the plan nor after it: something else changed them.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{} memories were changed by something else, the first is {}", .0.len(), first(.0))]
pub struct Moved(pub Vec<MemoryId>);

fn first(ids: &[MemoryId]) -> String {
    ids.first().map(ToString::to_string).unwrap_or_default()
}
