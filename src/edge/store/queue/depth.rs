//! How deep the queue is, what holds it up and who works on it: a few sums over what is open or dead.
//! Finished jobs are not read, however many there are.

use super::super::db::{Db, values};
use super::super::error::Fault;
use super::super::{Store, StoreError};
use super::presence::{self, Presence};
use crate::domain::{JobState, Timestamp, Wait};
use std::time::Duration;

/// How long a worker may be silent and a job may stand there before a person should hear of it, in
/// seconds: twice what a lease lasts by default.
pub const SILENT_SECS: u64 = 120;
/// Caps that are told one by one, those that hold most; caps of sessions may be many.
const CAPS_MAX: u32 = 20;

/// What the queue holds at one moment. Nothing in it names a word of a conversation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Depth {
    /// The moment.
    pub at: Timestamp,
    /// Open jobs by state and by what they wait for, in the order in which a job goes through them;
    /// only what there is.
    pub open: Vec<OpenJobs>,
    /// What holds jobs back that are at a cap, the one that holds most first, 20 at most.
    pub caps: Vec<CapJobs>,
    /// Leases that ran out and that nobody took.
    pub expired: Option<Overdue>,
    /// Waits that are over and that nobody ended.
    pub waited: Option<Overdue>,
    /// Dead jobs by kind, the kind of most first.
    pub dead: Vec<DeadJobs>,
    /// Jobs that were called off and not dropped.
    pub cancelled: u64,
    /// Workers that are about or stopped, by when they began.
    pub workers: Vec<Presence>,
}

/// Open jobs in one state.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OpenJobs {
    /// The state.
    pub state: JobState,
    /// What they wait for, if they wait.
    pub wait: Option<Wait>,
    /// How many.
    pub jobs: u64,
    /// When the oldest was handed over.
    pub oldest: Timestamp,
    /// Since when one of them is in this state.
    pub since: Timestamp,
    /// When the first wait or lease ends.
    pub until: Option<Timestamp>,
    /// The reason of one of them, in a sentence.
    pub detail: Option<String>,
}

/// Jobs at one cap.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CapJobs {
    /// Which, in a sentence.
    pub detail: Option<String>,
    /// How many.
    pub jobs: u64,
    /// When the first may go on.
    pub until: Option<Timestamp>,
}

/// Jobs whose time has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Overdue {
    /// How many.
    pub jobs: u64,
    /// The first such time.
    pub since: Timestamp,
}

/// Jobs that died of one thing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeadJobs {
    /// A stable name, such as `refused`.
    pub kind: String,
    /// How many.
    pub jobs: u64,
    /// When the first of them died.
    pub since: Timestamp,
    /// What was said of one of them.
    pub detail: Option<String>,
}

/// What does not move by itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stuck {
    /// Leases ran out, and no worker is there to take them back.
    Leases(Overdue),
    /// Waits are over for long, and no worker is there.
    Waits(Overdue),
    /// Jobs are ready for long, and no worker is there.
    Ready(Overdue),
}

impl Depth {
    /// Whether the queue holds nothing and nobody works on it: most likely it was never used.
    pub fn is_empty(&self) -> bool {
        let jobs = !self.open.is_empty() || !self.dead.is_empty() || self.cancelled > 0;
        !jobs && self.workers.is_empty()
    }

    /// Open jobs in this state.
    pub fn jobs_in(&self, state: JobState) -> u64 {
        self.open.iter().filter(|it| it.state == state).map(|it| it.jobs).sum()
    }

    /// Dead jobs of every kind.
    pub fn dead_jobs(&self) -> u64 {
        self.dead.iter().map(|it| it.jobs).sum()
    }

    /// How long ago the oldest open job was handed over.
    pub fn oldest(&self) -> Option<Duration> {
        self.open.iter().map(|it| self.at.since(it.oldest)).max()
    }

    /// How far behind the workers are: how long ago the oldest job was handed over that is ready.
    pub fn lag(&self) -> Option<Duration> {
        let ready = self.open.iter().filter(|it| it.state == JobState::Ready);
        ready.map(|it| self.at.since(it.oldest)).max()
    }

    /// How long ago the oldest job was handed over that gathers.
    pub fn gathering(&self) -> Option<Duration> {
        let gathering = self.open.iter().filter(|it| it.wait == Some(Wait::Gathering));
        gathering.map(|it| self.at.since(it.oldest)).max()
    }

    /// Whether a worker was heard of lately and has not stopped.
    pub fn is_alive(&self, worker: &Presence) -> bool {
        let silent = Duration::from_secs(SILENT_SECS);
        worker.stopped.is_none() && self.at.since(worker.seen_at) <= silent
    }

    /// Workers that are at work.
    pub fn alive(&self) -> impl Iterator<Item = &Presence> {
        self.workers.iter().filter(|it| self.is_alive(it))
    }

    /// Workers that stopped because of something that a person must mend, and that nobody has taken the
    /// place of since.
    pub fn stopped(&self) -> impl Iterator<Item = &Presence> {
        let last = self.alive().map(|it| it.started_at).max();
        let mended = move |it: &Presence| last.is_some_and(|last| it.seen_at < last);
        self.workers.iter().filter(move |it| it.stopped.is_some() && !mended(it))
    }

    /// What does not move because no worker is there.
    pub fn stuck(&self) -> Vec<Stuck> {
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

    /// Whether something does not mend itself: a dead job, a worker that stopped, jobs that are stuck.
    pub fn needs_person(&self) -> bool {
        !self.dead.is_empty() || self.stopped().next().is_some() || !self.stuck().is_empty()
    }
}

impl Store {
    /// How deep the queue is at `now`. Its cost grows with the open and the dead jobs, not with those
    /// that are done.
    pub async fn depth(&self, now: Timestamp) -> Result<Depth, StoreError> {
        self.read("measuring the queue", move |from: &mut Db| read(from, now)).await
    }
}

fn read(db: &mut Db, now: Timestamp) -> Result<Depth, Fault> {
    let (expired, waited) = overdue(db, now)?;
    let sql = "SELECT count(*) FROM jobs
        WHERE state IN ('dead', 'cancelled') AND state = 'cancelled'";
    Ok(Depth {
        at: now,
        open: open(db)?,
        caps: caps(db)?,
        expired,
        waited,
        dead: dead(db)?,
        cancelled: db.one(sql, &[], |row| row.next())?,
        workers: presence::list(db)?,
    })
}

fn open(db: &mut Db) -> Result<Vec<OpenJobs>, Fault> {
    let sql =
        "SELECT state, reason, count(*), min(enqueued_at), min(since), min(until), max(detail)
        FROM jobs WHERE finished_at IS NULL GROUP BY state, reason";
    let mut open = db.all(sql, &[], |row| {
        Ok(OpenJobs {
            state: row.named(JobState::of_name)?,
            wait: row.named_if(Wait::of_name)?,
            jobs: row.next()?,
            oldest: row.next()?,
            since: row.next()?,
            until: row.next()?,
            detail: row.next()?,
        })
    })?;
    let state = |it: &OpenJobs| JobState::ALL.iter().position(|state| *state == it.state);
    let wait = |it: &OpenJobs| Wait::ALL.iter().position(|wait| Some(*wait) == it.wait);
    open.sort_by_key(|it| (state(it), wait(it)));
    Ok(open)
}

fn caps(db: &mut Db) -> Result<Vec<CapJobs>, Fault> {
    let sql = "SELECT detail, count(*), min(until) FROM jobs
        WHERE finished_at IS NULL AND state = 'waiting' AND reason = 'cap'
        GROUP BY detail ORDER BY 2 DESC, 1 NULLS FIRST LIMIT ?1";
    db.all(sql, values![CAPS_MAX], |row| {
        Ok(CapJobs { detail: row.next()?, jobs: row.next()?, until: row.next()? })
    })
}

/// Leases and waits that are over.
fn overdue(db: &mut Db, now: Timestamp) -> Result<(Option<Overdue>, Option<Overdue>), Fault> {
    let sql = "SELECT state, count(*), min(until) FROM jobs
        WHERE until IS NOT NULL AND until <= ?1 GROUP BY state";
    let over = db.all(sql, values![now], |row| {
        let state = row.named(JobState::of_name)?;
        Ok((state, Overdue { jobs: row.next()?, since: row.next()? }))
    })?;
    let of = |state| over.iter().find(|(it, _)| *it == state).map(|(_, overdue)| *overdue);
    Ok((of(JobState::Leased), of(JobState::Waiting)))
}

fn dead(db: &mut Db) -> Result<Vec<DeadJobs>, Fault> {
    let sql = "SELECT coalesce(reason, 'unknown'), count(*), min(since), max(detail) FROM jobs
        WHERE state IN ('dead', 'cancelled') AND state = 'dead' GROUP BY 1 ORDER BY 2 DESC, 1";
    db.all(sql, &[], |row| {
        let kind = row.next()?;
        let (jobs, since, detail) = (row.next()?, row.next()?, row.next()?);
        Ok(DeadJobs { kind, jobs, since, detail })
    })
}

/// How many entries of each session stand in open jobs and are not accounted for yet, by the session's
/// row. An entry in two jobs counts once; one that a run has read, or that no model reads, does not
/// count. `reached` is how far the jobs before this one go.
pub(in crate::edge::store) fn pending(db: &mut Db) -> Result<Vec<(i64, u64)>, Fault> {
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
    db.all(sql, &[], |row| Ok((row.next()?, row.next()?)))
}

#[cfg(test)]
#[path = "depth_test.rs"]
mod tests;
