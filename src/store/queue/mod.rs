//! The job queue: intake, leases, outcomes, limits and statistics.

mod admin;
mod batch;
mod claim;
mod insertion;
mod intake;
mod limits;
mod stats;
mod workers;
#[cfg(test)]
mod intake_tests;
#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod tests;

pub(crate) use admin::JobChange;
pub(crate) use admin::{JobFilter, JobPage, JobSelection, StoredJob};
pub(crate) use batch::{BatchPart, PartEnd};
pub(crate) use claim::ABANDONED;
pub(crate) use claim::JobRelease;
pub use claim::{ClaimRequest, ClaimedJobs, JobEnding};
pub(crate) use insertion::BatchJob;
pub(crate) use intake::Gathering;
pub use intake::Intake;
pub(crate) use limits::{Cap, CapReached, CapScope, CapUnit, Charge, Rates};
pub(crate) use stats::{CapJobs, DeadJobs, OpenJobs, Overdue, QueueStats, RemainingJobs, Stuck};
pub(crate) use workers::WorkerStatus;

pub(super) use admin::close_covered_jobs;
pub(super) use stats::pending;

use super::error::Fault;
use super::value::Columns;
use crate::domain::{Job, JobId, SliceId};

/// Columns read by [`read_job`].
const JOB_COLUMNS: &str = "id, slice, slice_index, first_ordinal, first_part, last_ordinal, \
     last_part, tokens, cut, context";

fn read_job(row: &mut Columns<'_>) -> Result<Job, Fault> {
    Ok(Job {
        id: JobId(row.next()?),
        slice: SliceId(row.next()?),
        index: row.next()?,
        first: (row.next()?, row.next()?),
        last: (row.next()?, row.next()?),
        tokens: row.next()?,
        cut: row.next()?,
        context: row.next()?,
    })
}
