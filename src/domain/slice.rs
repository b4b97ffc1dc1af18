//! A slice is consecutive entries, one request's worth, with each entry's span in the text. A job is a slice to be
//! extracted; its lease carries a token that grows with each claim, so that a lost lease is recognised.

use super::entry::named;
use super::{Branch, Digest, EntryKind, JobId, SessionId, SliceId, Speaker, Timestamp, Tokens};
use crate::privacy::Redacted;
use std::ops::Range;

/// One entry of a slice, or one part of an entry that was too long for one slice.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Part {
    /// The entry's ordinal in its session.
    pub ordinal: u32,
    /// The line of the file it begins on.
    pub line: u32,
    /// Which part this is, from 0.
    pub part: u32,
    /// Number of parts of the entry; 1 for a whole entry.
    pub parts: u32,
    /// Author.
    pub speaker: Speaker,
    /// Kind of entry.
    pub kind: EntryKind,
    /// Line of the conversation.
    pub branch: Branch,
    /// When it was said.
    pub at: Option<Timestamp>,
    /// Where its words stand in the slice's text, in bytes, label left out.
    pub span: Range<usize>,
    /// Where those words begin in the entry's own text, in bytes.
    pub entry_offset: usize,
}

/// Consecutive entries of one session as a model reads them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Slice {
    /// Digest of session, range and text.
    pub id: SliceId,
    /// The conversation it is from.
    pub session: SessionId,
    /// Its place among the session's slices, from 0.
    pub index: u32,
    /// The rendered entries.
    pub text: Redacted,
    /// The entries, in the order in which they stand in the text.
    pub parts: Vec<Part>,
    /// Estimated tokens of the text.
    pub tokens: Tokens,
}

impl Slice {
    /// The id of the slice with this text at this place.
    pub fn id_of(session: SessionId, parts: &[Part], text: &Redacted) -> SliceId {
        let place = |part: &Part| format!("{}.{}", part.ordinal, part.part);
        let first = parts.first().map(place).unwrap_or_default();
        let last = parts.last().map(place).unwrap_or_default();
        let session = session.to_string();
        SliceId(Digest::of(&["slice", &session, &first, &last, text.as_str()]))
    }

    /// The part whose words stand at byte `offset` of the text.
    pub fn part_at(&self, offset: usize) -> Option<&Part> {
        let after = self.parts.partition_point(|part| part.span.start <= offset);
        self.parts[..after].last().filter(|part| offset < part.span.end)
    }

    /// The lowest and the highest ordinal.
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
    /// True for terminal states.
    pub fn is_final(self) -> bool {
        match self {
            JobState::Waiting | JobState::Ready | JobState::Leased => false,
            JobState::Done | JobState::Cut | JobState::Dead | JobState::Cancelled => true,
        }
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

/// A slice to be extracted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Job {
    /// Digest of the slice and of how it is to be asked about.
    pub id: JobId,
    /// The slice.
    pub slice: SliceId,
    /// Its place among the session's slices, from 0.
    pub index: u32,
    /// Where it begins: the entry's ordinal and its part.
    pub first: (u32, u32),
    /// Where it ends, inclusive.
    pub last: (u32, u32),
    /// Estimated tokens of its text.
    pub tokens: Tokens,
    /// Recipe to cut it out of its entries again, as the slicer writes it.
    pub cut: String,
    /// Preamble of its prompt; none for a session's first slice.
    pub context: Option<Redacted>,
}

/// The right to work on something until a time, fenced by a token.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lease<S = JobId> {
    /// The job, or whatever else is leased.
    pub subject: S,
    /// Grows with each lease of the subject; a lease with an older one is lost.
    pub token: u64,
    /// When another worker may take it, unless it is extended.
    pub until: Timestamp,
}

/// A job with the right to work on it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claimed {
    /// The lease.
    pub lease: Lease,
    /// The conversation.
    pub session: SessionId,
    /// Claims so far that were charged, this one included.
    pub attempt: u32,
    /// 0, and one more each time somebody had it asked afresh.
    pub generation: u32,
    /// The job.
    pub job: Job,
}
