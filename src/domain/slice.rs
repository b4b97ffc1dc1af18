//! A slice is consecutive entries for one request, with each entry's span in the text. A job is a
//! slice to extract; its lease has a token that grows with each claim, which reveals a lost lease.

use super::entry::named;
use super::{Branch, Digest, EntryKind, JobId, SessionId, SliceId, Speaker, Timestamp, Tokens};
use crate::privacy::Redacted;
use std::ops::Range;

/// An entry of a slice, or a part of one too long for a single slice.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Part {
    /// Ordinal of the entry in its session.
    pub ordinal: u32,
    /// First line of the entry in the file.
    pub line: u32,
    /// Index of the part, from 0.
    pub part: u32,
    /// Number of parts of the entry; 1 if it is whole.
    pub parts: u32,
    /// Author.
    pub speaker: Speaker,
    /// Kind of entry.
    pub kind: EntryKind,
    /// Branch of the conversation.
    pub branch: Branch,
    /// Time.
    pub at: Option<Timestamp>,
    /// Byte range of its words in the slice's text, without the label.
    pub span: Range<usize>,
    /// Byte offset of those words in the entry's own text.
    pub entry_offset: usize,
}

/// Consecutive entries of one session, as a model reads them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Slice {
    /// Digest of session, range and text.
    pub id: SliceId,
    /// The conversation.
    pub session: SessionId,
    /// Position among the session's slices, from 0.
    pub index: u32,
    /// The rendered entries.
    pub text: Redacted,
    /// Entries, in text order.
    pub parts: Vec<Part>,
    /// Estimated tokens of the text.
    pub tokens: Tokens,
}

impl Slice {
    /// Returns the id of the slice with this text at this place.
    pub fn id_of(session: SessionId, parts: &[Part], text: &Redacted) -> SliceId {
        let place = |part: &Part| format!("{}.{}", part.ordinal, part.part);
        let first = parts.first().map(place).unwrap_or_default();
        let last = parts.last().map(place).unwrap_or_default();
        let session = session.to_string();
        SliceId(Digest::of(&["slice", &session, &first, &last, text.as_str()]))
    }

    /// Returns the part with the word at byte `offset` of the text.
    pub fn part_at(&self, offset: usize) -> Option<&Part> {
        let after = self.parts.partition_point(|part| part.span.start <= offset);
        self.parts[..after].last().filter(|part| offset < part.span.end)
    }

    /// Returns the lowest and highest ordinal.
    pub fn range(&self) -> (u32, u32) {
        let ordinals = || self.parts.iter().map(|part| part.ordinal);
        (ordinals().min().unwrap_or(0), ordinals().max().unwrap_or(0))
    }
}

named! {
    /// State of a job.
    #[derive(schemars::JsonSchema)]
    pub JobState {
        /// Until a time, for a reason: see [`Wait`].
        Waiting = "waiting",
        /// For the next worker.
        Ready = "ready",
        /// A worker holds it.
        Leased = "leased",
        /// Its slice was extracted, or found to be.
        Done = "done",
        /// Its slice was too long; two jobs took its place.
        Cut = "cut",
        /// It failed for good; a person, another model or another prompt can open it again.
        Dead = "dead",
        /// A person called it off.
        Cancelled = "cancelled",
    }
}

impl JobState {
    /// Returns true for terminal states.
    pub fn is_final(self) -> bool {
        !matches!(self, JobState::Waiting | JobState::Ready | JobState::Leased)
    }
}

named! {
    /// Why a job waits.
    #[derive(schemars::JsonSchema)]
    pub Wait {
        /// Its session is still growing, and so little is not worth a call.
        Gathering = "gathering",
        /// The last attempt failed for a reason that passes.
        BackOff = "back-off",
        /// The endpoint has had too much.
        RateLimited = "rate-limited",
        /// A cap on tokens or money is reached.
        Cap = "cap",
    }
}

/// A slice to extract.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Job {
    /// Digest of the slice and of model, prompt and schema.
    pub id: JobId,
    /// The slice.
    pub slice: SliceId,
    /// Position among the session's slices, from 0.
    pub index: u32,
    /// Start: the entry's ordinal and part.
    pub first: (u32, u32),
    /// End, inclusive.
    pub last: (u32, u32),
    /// Estimated tokens of its text.
    pub tokens: Tokens,
    /// Instructions to cut the slice out of its entries again, written by the slicer.
    pub cut: String,
    /// Preamble of its prompt; `None` for a session's first slice.
    pub context: Option<Redacted>,
}

/// Exclusive right to work on something until a time, fenced by a token.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lease<S = JobId> {
    /// Leased job or other subject.
    pub subject: S,
    /// Fencing token; grows with each lease of the subject, which invalidates older ones.
    pub token: u64,
    /// Expiry time, unless extended.
    pub until: Timestamp,
}

/// A leased job.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claimed {
    /// The lease.
    pub lease: Lease,
    /// The conversation.
    pub session: SessionId,
    /// Number of charged claims, including this one.
    pub attempt: u32,
    /// Number of times the slice was requested afresh.
    pub generation: u32,
    /// The job.
    pub job: Job,
}
