//! Row of a memory.

use crate::domain::{
    Claim, ClaimKind, Digest, Memory, MemoryId, MemoryState, PersonDecision, RecordId, Speaker,
    Stage,
};
use schemars::JsonSchema;
use serde::Serialize;

/// A memory, as JSON and in a list.
#[derive(JsonSchema, Serialize)]
pub(crate) struct MemoryRow<'a> {
    pub(crate) id: Digest,
    pub(crate) namespace: &'a str,
    pub(crate) kind: ClaimKind,
    pub(crate) claim: &'a Claim,
    pub(crate) stage: Stage,
    pub(crate) state: MemoryState,
    pub(crate) said_by: Speaker,
    pub(crate) confirmed: bool,
    pub(crate) decided: Option<&'a PersonDecision>,
    pub(crate) edited: Option<&'a str>,
    pub(crate) valid_from: Option<String>,
    pub(crate) valid_until: Option<String>,
    pub(crate) superseded_by: Option<MemoryId>,
    /// The memory that completed, settled or solved it.
    pub(crate) settled_by: Option<MemoryId>,
    pub(crate) reason: Option<&'a str>,
    pub(crate) records: &'a [RecordId],
}

impl<'a> MemoryRow<'a> {
    pub(crate) fn of(memory: &'a Memory) -> MemoryRow<'a> {
        MemoryRow {
            id: memory.id.0,
            namespace: &memory.namespace,
            kind: memory.claim.kind(),
            claim: &memory.claim,
            stage: memory.stage,
            state: memory.state,
            said_by: memory.said_by,
            confirmed: memory.confirmed,
            decided: memory.decided.as_ref(),
            edited: memory.edited.as_deref(),
            valid_from: memory.valid_from.map(|at| at.to_string()),
            valid_until: memory.valid_until.map(|at| at.to_string()),
            superseded_by: memory.superseded_by,
            settled_by: memory.settler(),
            reason: memory.reason.as_deref(),
            records: &memory.sources,
        }
    }
}
