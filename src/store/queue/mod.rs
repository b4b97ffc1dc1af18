//! The job queue: intake, leases, outcomes, limits and statistics.

mod admin;
mod claim;
mod intake;
mod limits;
mod stats;
#[cfg(test)]
mod intake_tests;
#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod tests;

pub(crate) use admin::{JobChange, JobFilter, JobSelection, StoredJob};
pub(crate) use claim::{ABANDONED, JobRelease};
pub use claim::{ClaimRequest, ClaimedJobs, JobEnding};
pub use intake::Intake;
pub(crate) use intake::{BatchJob, BatchPart, Gathering, PartEnd};
pub(crate) use limits::{CallEnd, Cap, CapReached, CapScope, CapUnit, Charge, Rates, SentCall};
pub(crate) use stats::{
    CapJobs, DeadJobs, OpenJobs, Overdue, QueueStats, RemainingJobs, Stuck, WorkerStatus,
    is_lasting_cap,
};

pub(super) use admin::close_covered_jobs;
pub(super) use stats::pending;
