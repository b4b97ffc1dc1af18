//! Row of a record with its origin and evidence.

use crate::domain::{Claim, ClaimKind, Digest, Format, Match, Record, RecordState, Speaker};
use crate::privacy::Redacted;
use crate::store::StoredRecord;
use schemars::JsonSchema;
use serde::Serialize;

/// A record, as JSON and in a list.
#[derive(JsonSchema, Serialize)]
pub(crate) struct RecordRow<'a> {
    pub(crate) id: Digest,
    pub(crate) kind: ClaimKind,
    pub(crate) claim: &'a Claim,
    pub(crate) state: RecordState,
    pub(crate) reason: Option<&'a str>,
    pub(crate) score: f64,
    pub(crate) namespace: &'a str,
    pub(crate) session: Digest,
    pub(crate) run: Digest,
    pub(crate) slice: Digest,
    pub(crate) entries: (u32, u32),
    pub(crate) at: Option<String>,
    pub(crate) path: &'a str,
    pub(crate) format: Format,
    pub(crate) model: &'a str,
    pub(crate) prompt: PromptRow<'a>,
    pub(crate) extracted_at: String,
    pub(crate) evidence: Vec<EvidenceRow<'a>>,
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct PromptRow<'a> {
    id: &'a str,
    version: u32,
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct EvidenceRow<'a> {
    field: &'a str,
    entry: u32,
    line: u32,
    bytes: (usize, usize),
    speaker: Speaker,
    /// The person's name, where several people talk.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a Redacted>,
    found: Match,
    words: &'a Redacted,
}

impl<'a> RecordRow<'a> {
    pub(crate) fn of(stored: &'a StoredRecord) -> RecordRow<'a> {
        let Record { id, claim, provenance, evidence, score, state, reason } = &stored.record;
        let evidence = evidence.iter().map(|it| EvidenceRow {
            field: &it.field,
            entry: it.ordinal,
            line: it.line,
            bytes: (it.bytes.start, it.bytes.end),
            speaker: it.speaker,
            name: it.name.as_ref(),
            found: it.found,
            words: &it.words,
        });
        RecordRow {
            id: id.0,
            kind: claim.kind(),
            claim,
            state: *state,
            reason: reason.as_deref(),
            score: (score * 1000.0).round() / 1000.0,
            namespace: &provenance.namespace,
            session: provenance.session.0,
            run: provenance.run.0,
            slice: provenance.slice.0,
            entries: provenance.entries,
            at: provenance.at.map(|at| at.to_string()),
            path: &stored.path,
            format: stored.format,
            model: &stored.model,
            prompt: PromptRow { id: &stored.prompt.0, version: stored.prompt.1 },
            extracted_at: stored.extracted_at.to_string(),
            evidence: evidence.collect(),
        }
    }
}
