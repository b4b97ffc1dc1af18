//! A claim with provenance and evidence.

use super::entry::named;
use super::{Claim, Digest, RecordId, RunId, SessionId, SliceId, Speaker, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::Range;

named! {
    /// Method by which a piece of evidence was found.
    #[derive(JsonSchema)]
    pub Match {
        /// The very words.
        Exact = "exact",
        /// The words after folding case, blanks, quotes and dashes.
        Folded = "folded",
        /// Enough of the claim's rare words, near one another.
        Overlap = "overlap",
        /// An identifier, a path, a number or a quote of the claim.
        Literal = "literal",
        /// An agent handed the words over as a note; nobody was asked about them.
        Noted = "noted",
    }
}

/// Words of one entry that a claim rests on.
#[derive(schemars::JsonSchema, Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// The field it supports, such as `options[1]`.
    pub field: String,
    /// The entry's ordinal in its session.
    pub ordinal: u32,
    /// The line of the file.
    pub line: u32,
    /// Bytes of the entry's text.
    pub bytes: Range<usize>,
    /// Author of the entry.
    pub speaker: Speaker,
    /// The person's name, where several people talk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<crate::privacy::Redacted>,
    /// Method by which it was found.
    pub found: Match,
    /// The words, copied from the slice.
    pub words: crate::privacy::Redacted,
}

/// Origin of a record. Set by the host, never by a model.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Provenance {
    /// Namespace.
    pub namespace: String,
    /// The conversation.
    pub session: SessionId,
    /// Slice that the model read.
    pub slice: SliceId,
    /// Extraction that produced it.
    pub run: RunId,
    /// Lowest and highest ordinal of the slice.
    pub entries: (u32, u32),
    /// Time of the first entry that it rests on.
    pub at: Option<Timestamp>,
}

named! {
    /// State of a record.
    #[derive(JsonSchema)]
    pub RecordState {
        /// Proven; waits for consolidation.
        Staged = "staged",
        /// Not proven; kept with the reason, never consolidated.
        Quarantined = "quarantined",
        /// A newer run of the same entries took its place.
        Replaced = "replaced",
    }
}

named! {
    /// Result of a run.
    #[derive(schemars::JsonSchema)]
    pub RunState {
        /// With an extraction, be it empty.
        Done = "done",
        /// Without one, for a reason that is kept.
        Failed = "failed",
    }
}

/// A claim with its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Digest of run, kind and body.
    pub id: RecordId,
    /// The claim.
    pub claim: Claim,
    /// Origin.
    pub provenance: Provenance,
    /// Words that it rests on.
    pub evidence: Vec<Evidence>,
    /// Share of the claim found in the slice, 0 to 1.
    pub score: f64,
    /// Staged or quarantined.
    pub state: RecordState,
    /// Reason for quarantine: the rule, the place, and the literal that was not found, if any. It
    /// comes from the claim, so it must not be logged.
    pub reason: Option<String>,
}

impl Record {
    /// The id of `claim` as `run` made it.
    pub fn id_of(run: RunId, claim: &Claim) -> RecordId {
        let body = claim.to_json().to_string();
        RecordId(Digest::of(&["record", &run.to_string(), claim.kind().name(), &body]))
    }
}
