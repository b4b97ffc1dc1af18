//! Types that the modules share. No I/O, no clock, no raw text.

mod claim;
mod entry;
mod finding;
mod id;
mod limits;
mod memory;
mod model;
mod plan;
mod slice;
#[cfg(test)]
pub(crate) mod testing;
mod time;

pub(crate) use entry::{Coverage, SPEAKER_LABELS, Skip, Tool, named};

pub use claim::{Attempt, Claim, ClaimKind, Decision, Discussion, PersonRequest, WriteExtracted};
pub use claim::{Evidence, Match, Provenance, Record, RecordState, RunState};
pub use entry::{Branch, CoverageState, Entry, EntryKind, Format, Outcome, Session, Speaker};
pub(crate) use finding::{Finding, Severity};
pub use id::{Digest, JobId, MemoryId, RecordId, RunId, SessionId, SliceId};
pub(crate) use id::{PlanId, RequestDigest};
pub(crate) use limits::*;
pub use memory::{Memory, MemoryState, Stage};
pub(crate) use memory::{PERSON_EDITED, PersonDecision, shown_words};
pub use model::{Call, Finish, LanguageModel, Message, OutputMode, Reply, Request, Role, Usage};
pub(crate) use model::{ErrorKind, ModelError, Purpose, Retry, ToolSpec};
pub use plan::MemoryMap;
pub(crate) use plan::{
    BY_PERSON, Change, Disposition, Effect, Facts, LeftOpen, Merging, Moved, Operation, Plan,
    RELATED, Settlement,
};
pub(crate) use slice::Wait;
pub use slice::{Claimed, Job, Part, Slice};
pub(crate) use slice::{JobState, Lease};
pub use time::Timestamp;
