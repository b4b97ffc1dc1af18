//! Types that the modules share. No I/O, no clock, no raw text.

mod claim;
mod entry;
mod finding;
mod id;
mod limits;
mod memory;
mod model;
mod plan;
mod record;
mod session;
mod slice;
#[cfg(test)]
pub mod testing;
mod time;

pub(crate) use entry::named;

pub use claim::{Attempt, Claim, ClaimKind, Decision, Discussion, PersonRequest, WriteExtracted};
pub use entry::{Branch, Coverage, CoverageState, Entry, EntryKind, Outcome, Skip, Speaker, Tool};
pub use finding::{Finding, Severity};
pub use id::{Digest, JobId, MemoryId, PlanId, RecordId, RequestDigest, RunId, SessionId, SliceId};
pub use limits::*;
pub use memory::{Memory, MemoryState, Stage};
pub use model::{
    Call, ErrorKind, Finish, LanguageModel, Message, ModelError, OutputMode, Purpose, Reply,
    Request, Retry, Role, ToolSpec, Usage,
};
pub use plan::{
    Change, Disposition, Effect, Facts, LeftOpen, MemoryMap, Merging, Moved, Operation, Plan,
    Settlement,
};
pub use record::{Evidence, Match, Provenance, Record, RecordState, RunState};
pub use session::{Format, Session};
pub use slice::{Claimed, Job, JobState, Lease, Part, Slice, Wait};
pub use time::Timestamp;
