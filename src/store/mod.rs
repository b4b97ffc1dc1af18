//! The store: sessions, entries, runs, records, journal, queue and memory in one database, so that
//! related changes share a transaction.

mod db;
mod entry;
mod error;
mod forget;
mod handle;
mod journal;
mod lease;
mod memory;
mod memory_index;
mod migrations;
mod namespace;
mod plan;
mod postgres;
mod queue;
mod record;
mod run;
mod search;
mod session;
mod sqlite;
mod staging;
mod status;
mod value;
mod vault;
mod vectors;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod judged_test;
#[cfg(test)]
mod memory_test;
#[cfg(test)]
mod shared_test;
#[cfg(test)]
mod tests;

pub use entry::CoveredEntry;
pub(crate) use entry::SpokenEntry;
pub use error::StoreError;
pub(crate) use error::{StoreErrorKind, StoreResult};
pub(crate) use forget::{Erased, Erasure, StoredText, TagKind, place_in_words};
pub use handle::Store;
pub(crate) use handle::{BadPrefix, IdPrefix, PrefixLookup};
pub(crate) use journal::{Bill, JournalEntry, Journaled, Journaling, KeptAnswer};
pub(crate) use lease::{HeldLease, LeaseRequest, NamespaceLease};
pub(crate) use memory::{AuditEntry, Backlog, Directory, KeptFiles};
pub use migrations::OpenMode;
pub(crate) use namespace::{NamespaceTotals, Token, TokenRight};
pub(crate) use plan::{AskedPair, MemoryPairs, PlanEntry, StoredOpenPair, StoredPlan};
pub(crate) use queue::{
    ABANDONED, BatchJob, BatchPart, CallEnd, Cap, CapJobs, CapReached, CapScope, CapUnit, Charge,
    DeadJobs, Gathering, JobChange, JobFilter, JobRelease, JobSelection, OpenJobs, Overdue,
    PartEnd, QueueStats, Rates, RemainingJobs, SentCall, StoredJob, Stuck, WorkerStatus,
};
pub use queue::{ClaimRequest, ClaimedJobs, Intake, JobEnding};
pub use record::RecordFilter;
pub(crate) use record::{RecordPage, RecordSources, StoredRecord};
pub use run::Run;
pub(crate) use run::{BillLine, KnownRun, RunFailure, Spent, StoredRun};
pub(crate) use search::{SearchFilter, Undated};
pub use session::{ConversationState, SessionProgress};
pub(crate) use session::{SessionSpan, SessionWithSpan, StoredCard};
pub use staging::Staging;
pub(crate) use staging::{SessionEnd, Staged};
pub(crate) use status::{EntryEnd, FailedRun, NamespaceSums, SessionStatus, SessionTotals, Status};
pub(crate) use value::PageRange;
pub(crate) use vault::{CopyBuilder, StoredCopy, VaultTotals};
pub(crate) use vectors::{EmbeddedTexts, NearText, UnembeddedText, Vector};

pub(in crate::store) use db::{Db, Output, Work};
pub(in crate::store) use error::{Fault, Refusal, Result};
pub(in crate::store) use handle::Backend;
pub(in crate::store) use value::{
    Cells, Columns, Insert, Row, Value, json, literal, row_of, values,
};

/// Busy timeout while another process writes, in seconds. Commits take milliseconds.
pub(crate) const BUSY_SECS: u64 = 5;
