//! A kept fact with its lifecycle; what consolidation makes of records, and what the memory directory shows.

use super::entry::named;
use super::{Claim, Digest, MemoryId, RecordId, Speaker, Timestamp};
use serde::{Deserialize, Serialize};

named! {
    /// How far a fact has come. Each kind of claim walks the same way: a request is proposed, attempted,
    /// done; a discussion is proposed while it is open and decided when it is settled.
    #[derive(schemars::JsonSchema)]
    pub Stage {
        /// Wished for, or raised and still open.
        Proposed = "proposed",
        /// Tried, and not settled by that.
        Attempted = "attempted",
        /// Settled: chosen, done, or proven to work.
        Decided = "decided",
        /// Tried or chosen, and found not to hold.
        Refuted = "refuted",
    }
}

impl Stage {
    /// Whether a fact of this stage may come to `next`. It only goes forward: what was refuted and holds after all
    /// is a new fact that takes the place of the old one, so that both can be read.
    pub fn may_become(self, next: Stage) -> bool {
        match (self, next) {
            (Stage::Proposed, Stage::Attempted | Stage::Decided | Stage::Refuted)
            | (Stage::Attempted, Stage::Decided | Stage::Refuted)
            | (Stage::Decided, Stage::Refuted) => true,
            (Stage::Proposed | Stage::Attempted | Stage::Decided | Stage::Refuted, _) => false,
        }
    }
}

named! {
    /// Whether a memory is what is believed now.
    #[derive(schemars::JsonSchema)]
    pub MemoryState {
        /// Believed now.
        Active = "active",
        /// Another memory took its place; kept with the reason.
        Superseded = "superseded",
        /// Taken back without anything in its place; kept with the reason.
        Retracted = "retracted",
    }
}

/// A kept fact. Nothing of it comes from a model but the claim, which was proven first.
#[derive(schemars::JsonSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Memory {
    /// Digest of the namespace and of the first record that it rests on.
    pub id: MemoryId,
    /// Whose memory.
    pub namespace: String,
    /// What is believed.
    pub claim: Claim,
    /// How far it has come.
    pub stage: Stage,
    /// Whether it is believed now.
    pub state: MemoryState,
    /// The most trusted speaker among the evidence of its records.
    pub said_by: Speaker,
    /// Whether a person wrote it in the directory, or left it there as they changed what is around it.
    pub confirmed: bool,
    /// What stands in the directory in the place of the claim since a person changed it there, without what is private.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<String>,
    /// From when it holds: when the first of its evidence was said.
    pub valid_from: Option<Timestamp>,
    /// Until when it held, where it holds no more.
    pub valid_until: Option<Timestamp>,
    /// What took its place.
    pub superseded_by: Option<MemoryId>,
    /// The rule that took it out of use; no words.
    pub reason: Option<String>,
    /// The records that it rests on, the earliest first; none where a person wrote it.
    pub sources: Vec<RecordId>,
}

impl Memory {
    /// The id of the memory that `record` begins in `namespace`.
    pub fn id_of(namespace: &str, record: RecordId) -> MemoryId {
        MemoryId(Digest::of(&["memory", namespace, &record.to_string()]))
    }

    /// Brings it back into use: nothing stands in its place any more.
    pub fn reinstate(&mut self) {
        self.state = MemoryState::Active;
        self.valid_until = None;
        self.superseded_by = None;
        self.reason = None;
    }

    /// Whether everything that it rested on was withdrawn: it is kept to be looked up, and a record that comes back
    /// begins it anew.
    pub fn is_hollow(&self) -> bool {
        self.state == MemoryState::Retracted && self.sources.is_empty() && !self.confirmed
    }
}
