//! Queue statistics: open jobs, what holds them up, dead jobs, remaining jobs. Finished jobs are
//! never read. The registry of workers shows them to people and tells a worker if it is alone.

use super::limits;
use crate::adapters::process;
use crate::domain::{JobState, Timestamp, Wait};
use crate::store::{Db, Result, Store, StoreResult, query, row_of, values};
use std::time::Duration;

/// Time after which a silent worker or a stuck job is reported, in seconds; twice the default
/// lease.
pub(crate) const SILENT_SECS: u64 = 120;
/// Maximum number of caps listed; there may be many session caps.
const CAPS_MAX: u32 = 20;
/// Key prefix of the settings for session caps.
const SESSION_CAP: &str = "limits.session_";

/// Snapshot of the queue, without conversation text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct QueueStats {
    pub at: Timestamp,
    /// Open jobs by state and wait reason, in lifecycle order, without empty groups.
    pub open: Vec<OpenJobs>,
    /// Caps that hold jobs back, at most 20, those with the most jobs first.
    pub caps: Vec<CapJobs>,
    pub expired: Option<Overdue>,
    pub waited: Option<Overdue>,
    pub dead: Vec<DeadJobs>,
    pub cancelled: u64,
    pub workers: Vec<WorkerStatus>,
}

/// Open jobs with one state and wait reason.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct OpenJobs {
    pub state: JobState,
    pub wait: Option<Wait>,
    pub jobs: u64,
    pub oldest: Timestamp,
    pub since: Timestamp,
    pub until: Option<Timestamp>,
    pub detail: Option<String>,
}

row_of! { OpenJobs { state, wait, jobs, oldest, since, until, detail } }

/// Jobs held back by one cap.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct CapJobs {
    pub detail: Option<String>,
    pub jobs: u64,
    pub until: Option<Timestamp>,
}

row_of! { CapJobs { detail, jobs, until } }

/// Jobs whose wait or lease has expired.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Overdue {
    pub jobs: u64,
    pub since: Timestamp,
}

row_of! { Overdue { jobs, since } }

/// Dead jobs of one error kind.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct DeadJobs {
    /// Stable name, such as `refused`.
    pub kind: String,
    pub jobs: u64,
    pub since: Timestamp,
    pub detail: Option<String>,
}

row_of! { DeadJobs { kind, jobs, since, detail } }

/// Jobs that no live worker will move.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stuck {
    Leases(Overdue),
    Waits(Overdue),
    Ready(Overdue),
}

impl QueueStats {
    /// Returns true if there are no open, dead or cancelled jobs and no workers.
    pub(crate) fn is_empty(&self) -> bool {
        let jobs = !self.open.is_empty() || !self.dead.is_empty() || self.cancelled > 0;
        !jobs && self.workers.is_empty()
    }

    pub(crate) fn jobs_in(&self, state: JobState) -> u64 {
        self.open.iter().filter(|it| it.state == state).map(|it| it.jobs).sum()
    }

    pub(crate) fn dead_jobs(&self) -> u64 {
        self.dead.iter().map(|it| it.jobs).sum()
    }

    pub(crate) fn oldest(&self) -> Option<Duration> {
        self.oldest_of(|_| true)
    }

    /// Age of the oldest ready job: the lag of the workers.
    pub(crate) fn lag(&self) -> Option<Duration> {
        self.oldest_of(|it| it.state == JobState::Ready)
    }

    pub(crate) fn gathering(&self) -> Option<Duration> {
        self.oldest_of(|it| it.wait == Some(Wait::Gathering))
    }

    fn oldest_of(&self, is_counted: fn(&&OpenJobs) -> bool) -> Option<Duration> {
        self.open.iter().filter(is_counted).map(|it| self.at.since(it.oldest)).max()
    }

    /// Returns true if the worker was seen recently, has not stopped, and its process is not known to be gone.
    pub(crate) fn is_alive(&self, worker: &WorkerStatus) -> bool {
        let silent = Duration::from_secs(SILENT_SECS);
        let is_silent = silent < self.at.since(worker.seen_at) || process::is_gone(&worker.id);
        worker.stopped.is_none() && !is_silent
    }

    pub(crate) fn alive(&self) -> impl Iterator<Item = &WorkerStatus> {
        self.workers.iter().filter(|it| self.is_alive(it))
    }

    /// Workers that stopped because of a problem a person must fix, unless a worker started since.
    pub(crate) fn stopped(&self) -> impl Iterator<Item = &WorkerStatus> {
        let last = self.alive().map(|it| it.started_at).max();
        let mended = move |it: &WorkerStatus| last.is_some_and(|last| it.seen_at < last);
        self.workers.iter().filter(move |it| it.stopped.is_some() && !mended(it))
    }

    pub(crate) fn stuck(&self) -> Vec<Stuck> {
        if self.alive().next().is_some() {
            return Vec::new();
        }
        let silent = Duration::from_secs(SILENT_SECS);
        let long = |it: &Overdue| silent <= self.at.since(it.since);
        let ready = self.open.iter().find(|it| it.state == JobState::Ready);
        let ready = ready.map(|it| Overdue { jobs: it.jobs, since: it.since });
        let stuck = [
            self.expired.map(Stuck::Leases),
            self.waited.filter(long).map(Stuck::Waits),
            ready.filter(long).map(Stuck::Ready),
        ];
        stuck.into_iter().flatten().collect()
    }

    /// Session caps, which no new day lifts.
    pub(crate) fn lasting_caps(&self) -> impl Iterator<Item = &CapJobs> {
        self.caps.iter().filter(|it| is_lasting_cap(it.detail.as_deref()))
    }

    /// Returns true if a person must act: dead jobs, stopped workers, stuck jobs or jobs at a
    /// session cap.
    pub(crate) fn needs_person(&self) -> bool {
        !self.dead.is_empty()
            || self.stopped().next().is_some()
            || !self.stuck().is_empty()
            || self.lasting_caps().next().is_some()
    }
}

/// Returns true for the detail of a job at a session cap.
pub(crate) fn is_lasting_cap(detail: Option<&str>) -> bool {
    detail.is_some_and(|it| it.starts_with(SESSION_CAP))
}

impl Store {
    /// Returns statistics of the queue at `now`. The cost grows with open and dead jobs only.
    pub(crate) async fn depth(&self, now: Timestamp) -> StoreResult<QueueStats> {
        self.read("measuring the queue", move |db: &mut Db| {
            let sql = "SELECT state, reason, count(*), min(enqueued_at), min(since), min(until),
                    max(detail)
                FROM jobs WHERE finished_at IS NULL GROUP BY state, reason";
            let mut open: Vec<OpenJobs> = db.all(sql, &[])?;
            let state = |it: &OpenJobs| JobState::ALL.iter().position(|state| *state == it.state);
            let wait = |it: &OpenJobs| Wait::ALL.iter().position(|wait| Some(*wait) == it.wait);
            open.sort_by_key(|it| (state(it), wait(it)));
            let sql = "SELECT state, count(*), min(until) FROM jobs
                WHERE until IS NOT NULL AND until <= ?1 GROUP BY state";
            let over: Vec<(JobState, Overdue)> = db.all(sql, values![now])?;
            let of = |state| over.iter().find(|(it, _)| *it == state).map(|(_, overdue)| *overdue);
            let (expired, waited) = (of(JobState::Leased), of(JobState::Waiting));
            // The amounts that calls need differ from job to job. Of one cap the largest is shown, which is the last in
            // order of the longest texts.
            let caps = "SELECT substr(max(CAST(1000 + length(detail) AS TEXT) || detail), 5), count(*), min(until)
                FROM jobs WHERE finished_at IS NULL AND state = 'waiting' AND reason = 'cap'
                GROUP BY rtrim(detail, '0123456789.,tokens ') ORDER BY 2 DESC, 1 NULLS FIRST LIMIT ?1";
            let dead = "SELECT coalesce(reason, 'unknown'), count(*), min(since), max(detail)
                FROM jobs WHERE state IN ('dead', 'cancelled') AND state = 'dead'
                GROUP BY 1 ORDER BY 2 DESC, 1";
            let cancelled = "SELECT count(*) FROM jobs
                WHERE state IN ('dead', 'cancelled') AND state = 'cancelled'";
            Ok(QueueStats {
                at: now,
                open,
                caps: db.all(caps, values![CAPS_MAX])?,
                expired,
                waited,
                dead: db.all(dead, &[])?,
                cancelled: db.one(cancelled, &[])?,
                workers: workers(db)?,
            })
        })
        .await
    }

    /// Returns open jobs by state and wait, and the number of dead jobs, and of those that died at `since` or later;
    /// of one batch, or of all.
    pub(crate) async fn left(
        &self,
        since: Timestamp,
        batch: Option<String>,
    ) -> StoreResult<RemainingJobs> {
        self.read("counting the remaining jobs", move |db| {
            let mut left = RemainingJobs::default();
            let (all, batch) = (batch.is_none(), batch.as_deref().unwrap_or_default());
            let sql = "SELECT state, reason, count(*), max(detail) FROM jobs
                WHERE finished_at IS NULL
                    AND (?1 = 1 OR no IN (SELECT job_no FROM batch_jobs WHERE batch = ?2))
                GROUP BY state, reason";
            for (state, wait, jobs, detail) in db.all::<(_, _, u64, _)>(sql, values![all, batch])? {
                match (state, wait) {
                    (JobState::Ready, _) => left.ready += jobs,
                    (JobState::Leased, _) => left.leased += jobs,
                    (JobState::Waiting, Some(Wait::Gathering)) => left.gathering += jobs,
                    (JobState::Waiting, Some(Wait::Cap)) => {
                        (left.at_a_cap, left.cap) = (left.at_a_cap + jobs, detail);
                    }
                    (JobState::Waiting, Some(Wait::BackOff | Wait::RateLimited) | None) => {
                        left.waiting += jobs;
                    }
                    (JobState::Done | JobState::Cut | JobState::Dead | JobState::Cancelled, _) => {}
                }
            }
            let sql = "SELECT count(*), CAST(COALESCE(sum(CASE WHEN ?1 <= finished_at THEN 1 ELSE 0 END), 0)
                AS BIGINT) FROM jobs WHERE state IN ('dead', 'cancelled') AND state = 'dead'
                AND (?2 = 1 OR no IN (SELECT job_no FROM batch_jobs WHERE batch = ?3))";
            (left.dead, left.died) = db.one(sql, values![since, all, batch])?;
            Ok(left)
        })
        .await
    }

    /// Recomputes spending; calls that a worker died with count as unanswered. Does nothing while a
    /// worker other than the `gone` ones is running.
    pub(crate) async fn recount(&self, gone: Vec<String>, now: Timestamp) -> StoreResult<()> {
        self.write("adding up the cost", move |db: &mut Db| {
            let sql = "SELECT id FROM workers WHERE stopped IS NULL AND ?1 < seen_at";
            let since = values![Timestamp(now.0 - GONE_MILLIS)];
            let seen: Vec<String> = db.all(sql, since)?;
            if seen.iter().all(|id| gone.contains(id)) {
                limits::forget(db)?;
            }
            Ok(())
        })
        .await
    }

    /// Registers a worker as running or stopped, and deletes rows of workers long gone.
    pub(crate) async fn seen(&self, worker: WorkerStatus) -> StoreResult<()> {
        self.write("registering a worker", move |db| {
            let WorkerStatus { id, started_at, seen_at, stopped } = &worker;
            let sql =
                "INSERT INTO workers (id, started_at, seen_at, stopped) VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at,
                    stopped = excluded.stopped";
            db.run(sql, values![id, *started_at, *seen_at, stopped])?;
            let long_ago = Timestamp(seen_at.0 - KEPT_MILLIS);
            db.run("DELETE FROM workers WHERE seen_at < ?1", values![long_ago])
        })
        .await
    }

    pub(crate) async fn leave(&self, worker: &str) -> StoreResult<()> {
        let sql = "DELETE FROM workers WHERE id = ?1 OR stopped IS NOT NULL
            AND seen_at < (SELECT w.started_at FROM workers w WHERE w.id = ?1)";
        self.write("ending the work", query(sql, values![worker], Db::run)).await
    }

    /// Returns the running, vanished and stopped workers, by start time.
    pub async fn workers(&self) -> StoreResult<Vec<WorkerStatus>> {
        self.read("reading the registered workers", workers).await
    }
}

/// Returns the number of entries in open jobs without coverage, by session row number.
pub(in crate::store) fn pending(db: &mut Db) -> Result<Vec<(i64, u64)>> {
    let sql = "SELECT session_no, CAST(sum(highest - lowest + 1 - (
            SELECT count(DISTINCT c.ordinal) FROM coverage c
            WHERE c.session_no = fresh.session_no
                AND c.ordinal BETWEEN fresh.lowest AND fresh.highest
                AND c.run_no NOT IN (SELECT no FROM runs WHERE current = 0))) AS BIGINT)
        FROM (
            SELECT session_no, highest,
                CASE WHEN lowest <= reached THEN reached + 1 ELSE lowest END AS lowest
            FROM (
                SELECT session_no, first_ordinal AS lowest, last_ordinal AS highest,
                    max(last_ordinal) OVER (PARTITION BY session_no
                        ORDER BY first_ordinal, last_ordinal, no
                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
                FROM jobs WHERE finished_at IS NULL) AS marked) AS fresh
        WHERE lowest <= highest GROUP BY session_no";
    db.all(sql, &[])
}

/// Open and dead jobs of the queue.
#[derive(schemars::JsonSchema, Clone, Debug, Default, Eq, PartialEq, serde::Serialize)]
#[schemars(rename = "RemainingSummary")]
pub(crate) struct RemainingJobs {
    pub ready: u64,
    pub leased: u64,
    pub waiting: u64,
    pub gathering: u64,
    pub at_a_cap: u64,
    pub cap: Option<String>,
    pub dead: u64,
    /// Of the dead, those that died recently.
    #[serde(skip)]
    pub died: u64,
}

impl RemainingJobs {
    /// Returns true if jobs are ready, leased or in a short wait.
    pub(crate) fn is_something(&self) -> bool {
        self.ready + self.leased + self.waiting > 0
    }
}

/// Time in milliseconds after which an unseen worker is gone; it reports every few seconds.
const GONE_MILLIS: i64 = 60_000;
/// Time after which the rows of unseen workers are deleted, in milliseconds.
const KEPT_MILLIS: i64 = 86_400_000;

/// A worker that is running, vanished, or stopped because of a problem that a person must fix.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WorkerStatus {
    /// Host, process and a digest of the start time.
    pub id: String,
    /// Start time.
    pub started_at: Timestamp,
    /// Time of the last report.
    pub seen_at: Timestamp,
    /// Remedy for the problem that it stopped for, in one line.
    pub stopped: Option<String>,
}

row_of! { WorkerStatus { id, started_at, seen_at, stopped } }

fn workers(db: &mut Db) -> Result<Vec<WorkerStatus>> {
    let sql = "SELECT id, started_at, seen_at, stopped FROM workers ORDER BY started_at, id";
    db.all(sql, &[])
}

#[cfg(test)]
#[path = "stats_tests.rs"]
mod tests;
