//! A worker's condition to end, its counts, and its final report.

use crate::adapters::metrics::{Meters, Outcome};
use crate::domain::{Record, Timestamp};
use crate::store::{RemainingJobs, Staged};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Jobs by what became of them.
#[derive(Clone, Debug, Default, Eq, PartialEq, JsonSchema, Serialize)]
pub struct Jobs {
    /// Claims.
    pub claimed: u64,
    /// Extracted now.
    pub done: u64,
    /// Found extracted from before.
    pub known: u64,
    /// Too long, and two or more jobs now.
    pub cut: u64,
    /// Without an answer, to be tried again.
    pub retried: u64,
    /// Given back unasked.
    pub released: u64,
    /// Failed for good.
    pub dead: u64,
    /// Taken by others meanwhile.
    pub lost: u64,
    /// Leases of others that had run out.
    pub expired: u64,
    /// Dead ones by kind, with what happened to one of them.
    pub failures: BTreeMap<String, (u64, String)>,
    /// Records that are staged.
    pub staged: u64,
    /// Records that were not proven.
    pub quarantined: u64,
}

/// Shared job counts. A lock suffices for a few additions per job.
#[derive(Debug, Default)]
pub struct Counts {
    jobs: Mutex<Jobs>,
    meters: Option<Arc<Meters>>,
}

impl Counts {
    /// Creates counts that are also reported to `meters`.
    pub fn metered(meters: Arc<Meters>) -> Counts {
        Counts { jobs: Mutex::default(), meters: Some(meters) }
    }

    /// Returns a snapshot of the counts.
    pub fn jobs(&self) -> Jobs {
        self.with(|jobs| jobs.clone())
    }

    pub(super) fn claimed(&self, claims: usize, expired: u32) {
        self.with(|jobs| {
            jobs.claimed += claims as u64;
            jobs.expired += u64::from(expired);
        });
        if let Some(meters) = &self.meters {
            meters.claimed(claims as u64);
            meters.expired(u64::from(expired));
        }
    }

    pub(super) fn ended(&self, outcome: Outcome) {
        self.with(|jobs| {
            *match outcome {
                Outcome::Done => &mut jobs.done,
                Outcome::Known => &mut jobs.known,
                Outcome::Cut => &mut jobs.cut,
                Outcome::Retried => &mut jobs.retried,
                Outcome::Released => &mut jobs.released,
                Outcome::Dead => &mut jobs.dead,
                Outcome::Lost => &mut jobs.lost,
            } += 1;
        });
        if let Some(meters) = &self.meters {
            meters.ended(outcome);
        }
    }

    pub(super) fn staged(&self, staged: Staged, records: &[Record]) {
        if let Some(meters) = &self.meters {
            records.iter().for_each(|it| meters.stored(it.claim.kind(), it.state, 1));
        }
        self.with(|jobs| {
            jobs.staged += u64::from(staged.staged);
            jobs.quarantined += u64::from(staged.quarantined);
        });
    }

    pub(super) fn failed(&self, kind: &str, detail: &str) {
        self.with(|jobs| {
            let (count, example) = jobs.failures.entry(kind.to_owned()).or_default();
            *count += 1;
            detail.clone_into(example);
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut Jobs) -> T) -> T {
        change(&mut self.jobs.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Condition on which a worker ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Until {
    /// When it is stopped.
    Stopped,
    /// When nothing is left to do, now or after a wait.
    Drained,
    /// After one job.
    OneJob,
}

/// Final report of a worker.
#[derive(Clone, Debug)]
pub struct Report {
    /// Reason.
    pub end: End,
    /// Start time.
    pub started_at: Timestamp,
    pub(crate) left: RemainingJobs,
}

/// Reason for the end of a worker.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum End {
    /// It was asked to stop.
    Asked,
    /// No work was left.
    Nothing,
    /// Only a person can fix the problem; the message says how.
    Needs(String),
}
