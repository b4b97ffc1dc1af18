//! The job queue: intake, leases, outcomes, limits and statistics.

mod admin;
mod claim;
mod insertion;
mod intake;
mod limits;
mod stats;
#[cfg(test)]
mod intake_tests;
#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod tests;

pub(crate) use admin::JobChange;
pub(crate) use admin::{JobFilter, JobPage, JobSelection, StoredJob};
pub(crate) use claim::ABANDONED;
pub(crate) use claim::JobRelease;
pub use claim::{ClaimRequest, ClaimedJobs, JobEnding};
pub(crate) use insertion::BatchJob;
pub use intake::Intake;
pub(crate) use intake::{BatchPart, Gathering, PartEnd};
pub(crate) use limits::{Cap, CapReached, CapScope, CapUnit, Charge, Rates};
pub(crate) use stats::{
    CapJobs, DeadJobs, OpenJobs, Overdue, QueueStats, RemainingJobs, Stuck, WorkerStatus,
};

pub(super) use admin::close_covered_jobs;
pub(super) use stats::pending;

use super::value::row_of;
use crate::domain::Job;

/// Columns of a [`Job`].
const JOB_COLUMNS: &str = "id, slice, slice_index, first_ordinal, first_part, last_ordinal, \
     last_part, tokens, cut, context";

row_of! { Job { id, slice, index, first, last, tokens, cut, context } }
