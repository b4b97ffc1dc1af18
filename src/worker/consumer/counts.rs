//! What a worker has done so far: counted while it works, told when it ends.

use crate::domain::Timestamp;
use crate::edge::store::{Left, Staged};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// How the claim of a job ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Closed {
    /// Its records are stored, be it none.
    Done,
    /// Its slice had been extracted before; no call was made.
    Known,
    /// It was too long and became two jobs or more.
    Cut,
    /// It had no answer and is tried again later; the attempt counts.
    Retried,
    /// It was given back and the attempt does not count: a cap, a rate limit, somebody who asked to
    /// stop.
    Released,
    /// It failed for good.
    Dead,
    /// Another worker took it meanwhile; nothing of ours was stored.
    Lost,
}

impl Closed {
    /// The name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Closed::Done => "done",
            Closed::Known => "known",
            Closed::Cut => "cut",
            Closed::Retried => "retried",
            Closed::Released => "released",
            Closed::Dead => "dead",
            Closed::Lost => "lost",
        }
    }
}

/// Jobs by what became of them.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
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

/// Counts behind a lock: a few additions a job.
#[derive(Debug, Default)]
pub struct Counts(Mutex<Jobs>);

impl Counts {
    /// The counts now.
    pub fn jobs(&self) -> Jobs {
        self.with(|jobs| jobs.clone())
    }

    pub(super) fn claimed(&self, claims: usize, expired: u32) {
        self.with(|jobs| {
            jobs.claimed += claims as u64;
            jobs.expired += u64::from(expired);
        });
    }

    pub(super) fn closed(&self, closed: Closed) {
        self.with(|jobs| {
            *match closed {
                Closed::Done => &mut jobs.done,
                Closed::Known => &mut jobs.known,
                Closed::Cut => &mut jobs.cut,
                Closed::Retried => &mut jobs.retried,
                Closed::Released => &mut jobs.released,
                Closed::Dead => &mut jobs.dead,
                Closed::Lost => &mut jobs.lost,
            } += 1;
        });
    }

    pub(super) fn staged(&self, staged: Staged) {
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
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How a worker ended.
#[derive(Clone, Debug)]
pub struct Report {
    /// Why.
    pub end: End,
    /// When it began.
    pub started_at: Timestamp,
    /// What is left.
    pub left: Left,
}

/// Why a worker ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum End {
    /// Somebody asked for it.
    Asked,
    /// There was no more to do.
    Nothing,
    /// Something that only a person can mend, and how.
    Needs(String),
}
