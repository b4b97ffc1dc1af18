//! The store: sessions, entries, runs, records, journal, queue and memory in one database, so that
//! related changes share a transaction.

mod changes;
mod db;
mod entry;
mod error;
mod forget;
mod handle;
mod journal;
mod lease;
mod memory;
mod memory_index;
mod memory_list;
mod migrations;
mod namespace;
mod plan;
mod postgres;
mod prefix;
mod queue;
mod record;
mod run;
mod search;
mod session;
mod session_end;
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

pub(crate) use changes::ChangeListener;
pub use entry::CoveredEntry;
pub(crate) use entry::SpokenEntry;
pub use error::StoreError;
pub(crate) use error::StoreErrorKind;
pub(crate) use forget::{Erased, Erasure, StoredText, TagKind};
pub use handle::Store;
pub(crate) use journal::{Bill, JournalEntry, Journaled};
pub(crate) use lease::NamespaceLease;
pub(crate) use lease::{HeldLease, LeaseRequest};
pub(crate) use memory::{AuditEntry, Backlog, Directory, KeptFiles};
pub use migrations::OpenMode;
pub(crate) use namespace::{NamespaceTotals, Token, TokenRight};
pub(crate) use plan::{AskedPair, MemoryPairs, PlanEntry, StoredOpenPair, StoredPlan};
pub(crate) use prefix::{BadPrefix, IdPrefix, PrefixLookup};
pub(crate) use queue::{ABANDONED, JobChange, WorkerStatus};
pub(crate) use queue::{BatchJob, BatchPart, PartEnd};
pub(crate) use queue::{
    Cap, CapJobs, CapReached, CapScope, CapUnit, Charge, DeadJobs, JobFilter, JobPage,
    JobSelection, OpenJobs, Overdue, QueueStats, Rates, RemainingJobs, StoredJob, Stuck,
};
pub use queue::{ClaimRequest, ClaimedJobs, Intake, JobEnding};
pub(crate) use queue::{Gathering, JobRelease};
pub use record::RecordFilter;
pub(crate) use record::{RecordPage, RecordSources, StoredRecord};
pub use run::Run;
pub(crate) use run::RunFailure;
pub(crate) use run::{BillLine, KnownRun, Spent, StoredRun};
pub(crate) use search::SearchFilter;
pub use session::{ConversationState, SessionProgress};
pub(crate) use session::{SessionSpan, SessionWithSpan, StoredCard};
pub(crate) use session_end::SessionEnd;
pub(crate) use staging::Staged;
pub use staging::Staging;
pub(crate) use status::{EntryEnd, FailedRun, NamespaceSums, SessionStatus, SessionTotals, Status};
pub(crate) use value::PageRange;
pub(crate) use vault::{CopyBuilder, KeepAs, StoredCopy, VaultTotals};
pub(crate) use vectors::{EmbeddedTexts, NearText, UnembeddedText, Vector};

/// Busy timeout while another process writes, in seconds. Commits take milliseconds.
pub(crate) const BUSY_SECS: u64 = 5;
