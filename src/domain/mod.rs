//! The words of the house: what rooms hand to one another. No I/O, no clock, no raw text.

mod claim;
mod coverage;
mod entry;
mod finding;
mod id;
mod job;
mod limits;
mod memory;
mod model;
mod plan;
mod record;
mod session;
mod slice;
#[cfg(test)]
pub(crate) mod testing;
mod time;
mod tokens;
mod vector;

pub(crate) use entry::named;

pub use claim::{Attempt, Claim, ClaimKind, Decision, Discussion, PersonRequest, WriteExtracted};
pub use coverage::{Coverage, CoverageState};
pub use entry::{Branch, Entry, EntryKind, Outcome, Skip, Speaker, Tool};
pub use finding::{Finding, Severity};
pub use id::{Digest, JobId, MemoryId, PlanId, RecordId, RequestDigest, RunId, SessionId, SliceId};
pub use job::{Claimed, Job, JobState, Lease, Wait};
pub use limits::*;
pub use memory::{Memory, MemoryState, Stage};
pub use model::{
    Call, ErrorKind, Finish, LanguageModel, Message, ModelError, Purpose, Reply, Request, Retry,
    Role, Rung, ToolSpec, Usage,
};
pub use plan::{
    Change, Disposition, Effect, Facts, LeftOpen, MemoryMap, Merging, Moved, Operation, Plan,
    Settlement,
};
pub use record::{Evidence, Match, Provenance, Record, RecordState, RunState};
pub use session::{Format, Session};
pub use slice::{Part, Slice};
pub use time::Timestamp;
pub use tokens::{Tokens, estimate_tokens};
pub use vector::{EMBEDDING, VECTOR_NUMBERS_MAX, Vector};
