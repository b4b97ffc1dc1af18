//! Work to do, and the right to do it until a time. A job is one slice to be extracted; its lease
//! carries a token that grows with each claim, so that who lost it is known when they come back.

use super::entry::named;
use super::{JobId, SessionId, SliceId, Timestamp, Tokens};
use crate::privacy::Redacted;

named! {
    /// Where a job is.
    JobState {
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
    /// Whether nothing will happen to it by itself any more.
    pub fn is_final(self) -> bool {
        match self {
            JobState::Waiting | JobState::Ready | JobState::Leased => false,
            JobState::Done | JobState::Cut | JobState::Dead | JobState::Cancelled => true,
        }
    }
}

named! {
    /// Why a job waits.
    Wait {
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
    /// How it is cut out of its entries, as the cutter writes it.
    pub cut: String,
    /// What its prompt is told of the entries before it; none for a session's first.
    pub context: Option<Redacted>,
}

/// The right to work on a job, until a time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lease {
    /// The job.
    pub job: JobId,
    /// Grows with each claim of this job; a lease with an older one is lost.
    pub token: u64,
    /// When another worker may take it, unless it is extended.
    pub until: Timestamp,
}

/// A job with the right to work on it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claimed {
    /// The right.
    pub lease: Lease,
    /// The conversation.
    pub session: SessionId,
    /// Claims so far that were charged, this one included.
    pub attempt: u32,
    /// 0, and one more each time somebody had it asked afresh.
    pub generation: u32,
    /// What is to be done.
    pub job: Job,
}
