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
pub(crate) use namespace::{NamespaceTotals, Token, TokenRight};
pub(crate) use plan::{AskedPair, MemoryPairs, PlanEntry, StoredOpenPair, StoredPlan};
pub(crate) use queue::{
    ABANDONED, BatchJob, BatchPart, CallEnd, Cap, CapJobs, CapReached, CapScope, CapUnit, Charge,
    DeadJobs, Gathering, JobChange, JobFilter, JobRelease, JobSelection, OpenJobs, Overdue,
    PartEnd, QueueStats, Rates, RemainingJobs, SentCall, StoredJob, Stuck, WorkerStatus,
    is_lasting_cap,
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
pub(in crate::store) use handle::{Backend, query};
pub(in crate::store) use value::{
    Cells, Columns, Insert, Row, Value, json, literal, row_of, values,
};

/// Busy timeout while another process writes, in seconds. Commits take milliseconds.
pub(crate) const BUSY_SECS: u64 = 5;

/// Behaviour if the store does not exist.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OpenMode {
    /// Creates the store and its folder.
    Create,
    /// Fails with `Missing`.
    Existing,
}

/// Application id of annalist's databases: `anna` in ASCII.
const APPLICATION_ID: i32 = 0x616e_6e61;
/// Newest schema version this build supports.
const KNOWN: u32 = SQLITE.len() as u32;

macro_rules! migrations {
    ($folder:literal: $($name:literal)*) => {
        [$(include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"), "/migrations/", $folder, "/", $name, ".sql"
        ))),*]
    };
    ($folder:literal) => {
        migrations!(
            $folder: "0001_begin" "0002_queue" "0003_told" "0004_memory" "0005_forgotten"
            "0006_directories" "0007_judged" "0008_withdrawn" "0009_batches" "0010_undone"
            "0011_index" "0012_search" "0014_branches" "0015_stems" "0016_tokens"
            "0017_namespaces" "0018_sections" "0019_vectors" "0020_vault" "0021_contradictions"
            "0022_counts" "0023_unanswered" "0024_scrubs" "0025_jobs" "0026_suspected"
        )
    };
}

/// Migrations from version N to N + 1. Never edit a released one.
const SQLITE: [&str; 25] = migrations!("sqlite");
const POSTGRES: [&str; 25] = migrations!("postgres");
