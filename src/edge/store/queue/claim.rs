//! Claiming: who may work on what, until when. Waits that are over and leases that ran out come
//! first, so that no other process is needed for them.

use super::super::db::{Columns, Db, values};
use super::super::error::Fault;
use super::super::{entry, session};
use super::{JOB_COLUMNS, read_job};
use crate::domain::{Claimed, CoverageState, JobId, JobState, Lease, SessionId, Timestamp};

/// Waits and leases that one claim looks after, so that it stays short.
const DUE_MAX: u32 = 256;
/// Times that lie this far ahead of the clock, in milliseconds, were not written by a clock that runs
/// right; less is the difference between two machines.
const SKEW_MILLIS: i64 = 60_000;
/// The kind of death of a job whose workers never came back; no run tells of it.
pub const ABANDONED: &str = "abandoned";

/// What a worker wants.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claim {
    /// The worker, for a person who looks.
    pub holder: String,
    /// The most jobs.
    pub jobs_max: u32,
    /// When the leases end, unless they are extended.
    pub until: Timestamp,
    /// Claims of one job; one that was charged so often and comes back unfinished is dead.
    pub attempts_max: u32,
    /// The time.
    pub now: Timestamp,
}

/// What a worker gets.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Claims {
    /// Jobs, in the order in which they are due.
    pub jobs: Vec<Claimed>,
    /// Leases of others that had run out.
    pub expired: u32,
    /// When the next wait or lease is over, if there is one and there are no more jobs now.
    pub next_at: Option<Timestamp>,
}

pub(super) fn write(db: &mut Db, claim: &Claim) -> Result<Claims, Fault> {
    let expired = end_waits(db, claim)?;
    let mut jobs = Vec::new();
    // Each round serves every namespace once; it ends when all are empty or enough is there.
    while (jobs.len() as u32) < claim.jobs_max {
        let left = claim.jobs_max - jobs.len() as u32;
        let lanes = lanes(db, left)?;
        let Ok(served) = u32::try_from(lanes.len()) else { break };
        if served == 0 {
            break;
        }
        let before = jobs.len();
        for lane in lanes {
            let most = left.div_ceil(served).min(claim.jobs_max - jobs.len() as u32);
            lease(db, claim, (lane, most), &mut jobs)?;
        }
        if jobs.len() == before {
            // Others are claiming these very jobs.
            break;
        }
    }
    let sql = "SELECT min(until) FROM jobs WHERE until IS NOT NULL";
    let next_at = match jobs.is_empty() {
        true => db.first(sql, &[], |row| row.next::<Option<Timestamp>>())?.flatten(),
        false => None,
    };
    Ok(Claims { jobs, expired, next_at })
}

/// Namespaces with jobs, who was served longest ago first.
fn lanes(db: &mut Db, most: u32) -> Result<Vec<i64>, Fault> {
    let sql = "SELECT l.no FROM lanes l
        WHERE EXISTS (SELECT 1 FROM jobs j WHERE j.lane = l.no AND j.state = 'ready')
        ORDER BY l.served, l.no LIMIT ?1";
    db.all(sql, values![most], |row| row.next())
}

fn lease(
    db: &mut Db,
    claim: &Claim,
    (lane, most): (i64, u32),
    jobs: &mut Vec<Claimed>,
) -> Result<(), Fault> {
    let sql = format!(
        "UPDATE jobs SET state = 'leased', reason = NULL, detail = NULL,
            token = token + 1, attempts = attempts + 1, holder = ?1, since = ?2, until = ?3
        WHERE no IN (
            SELECT no FROM jobs WHERE lane = ?4 AND state = 'ready'
            ORDER BY priority DESC, no LIMIT ?5{})
        RETURNING priority, no, (SELECT s.id FROM sessions s WHERE s.no = session_no), token,
            attempts, generation, {JOB_COLUMNS}",
        db.skipping_locked()
    );
    let row = values![&claim.holder, claim.now, claim.until, lane, most];
    let mut leased = db.all(&sql, row, |row| read(row, claim.until))?;
    if leased.is_empty() {
        return Ok(());
    }
    // A database may return rows in any order.
    leased.sort_by_key(|(priority, no, _)| (-priority, *no));
    jobs.extend(leased.into_iter().map(|(_, _, claimed)| claimed));
    let sql = "UPDATE lanes SET served = 1 + (SELECT max(served) FROM lanes) WHERE no = ?1";
    db.execute(sql, values![lane])?;
    Ok(())
}

fn read(row: &mut Columns<'_>, until: Timestamp) -> Result<(i64, i64, Claimed), Fault> {
    let (priority, no) = (row.next()?, row.next()?);
    let session = SessionId(row.next()?);
    let (token, attempt, generation) = (row.next()?, row.next()?, row.next()?);
    let job = read_job(row)?;
    let lease = Lease { job: job.id, token, until };
    Ok((priority, no, Claimed { lease, session, attempt, generation, job }))
}

/// Makes jobs ready whose wait is over or whose worker let the lease run out; says how many of these
/// last there were.
fn end_waits(db: &mut Db, claim: &Claim) -> Result<u32, Fault> {
    let sql = format!(
        "SELECT no, session_no, state, reason, attempts, first_ordinal, last_ordinal FROM jobs
        WHERE until IS NOT NULL AND until <= ?1 ORDER BY until LIMIT ?2{}",
        db.skipping_locked()
    );
    let due = db.all(&sql, values![claim.now, DUE_MAX], |row| {
        Ok(Due {
            no: row.next()?,
            session_no: row.next()?,
            state: row.named(JobState::of_name)?,
            gathers: row.next::<Option<String>>()?.as_deref() == Some("gathering"),
            attempts: row.next()?,
            ordinals: (row.next()?, row.next()?),
        })
    })?;
    let mut expired = 0;
    for due in due {
        expired += u32::from(due.state == JobState::Leased);
        if due.state == JobState::Leased && claim.attempts_max <= due.attempts {
            abandon(db, &due, claim.now)?;
            continue;
        }
        if due.gathers {
            settle(db, due.session_no, due.ordinals)?;
        }
        let sql = "UPDATE jobs SET state = 'ready', reason = NULL, detail = NULL, since = ?2,
            until = NULL WHERE no = ?1";
        db.execute(sql, values![due.no, claim.now])?;
    }
    Ok(expired)
}

/// A job whose time has come.
struct Due {
    no: i64,
    session_no: i64,
    state: JobState,
    gathers: bool,
    attempts: u32,
    ordinals: (u32, u32),
}

/// What gathered is now a slice: what the session grows by begins after it.
pub(super) fn settle(db: &mut Db, session_no: i64, ordinals: (u32, u32)) -> Result<(), Fault> {
    let sql = "UPDATE sessions SET taken = entries, intakes = intakes + 1
        WHERE no = ?1 AND entries IS NOT NULL RETURNING entries";
    let entries: Option<u32> = db.first(sql, values![session_no], |row| row.next())?;
    session::mark_end_of(db, session_no, entries.unwrap_or(ordinals.1 + 1))
}

/// The workers that took this job never came back. Should one do so all the same, its lease is lost.
fn abandon(db: &mut Db, due: &Due, now: Timestamp) -> Result<(), Fault> {
    let detail = format!("{} workers took it and none came back", due.attempts);
    let sql = "UPDATE jobs SET state = 'dead', reason = ?2, detail = ?3, since = ?4, until = NULL,
        finished_at = ?4, token = token + 1 WHERE no = ?1";
    db.execute(sql, values![due.no, ABANDONED, &detail, now])?;
    entry::cover_open(db, due.session_no, due.ordinals, (CoverageState::Failed, ABANDONED))
}

pub(super) fn extend(
    db: &mut Db,
    leases: &[Lease],
    (until, now): (Timestamp, Timestamp),
) -> Result<Vec<JobId>, Fault> {
    let sql = "UPDATE jobs SET until = ?3, since = ?4
        WHERE id = ?1 AND token = ?2 AND state = 'leased'";
    let mut lost = Vec::new();
    for lease in leases {
        if db.execute(sql, values![&lease.job.0, lease.token, until, now])? == 0 {
            lost.push(lease.job);
        }
    }
    Ok(lost)
}

/// Waits and leases that begin in the future end now: the clock went back. So do waits at a cap.
pub(super) fn recover(db: &mut Db, now: Timestamp) -> Result<u64, Fault> {
    let sql = "UPDATE jobs SET until = ?1 WHERE until IS NOT NULL AND ?1 < until
        AND (?2 < since OR reason = 'cap')";
    let recovered = db.execute(sql, values![now, Timestamp(now.0 + SKEW_MILLIS)])?;
    if recovered > 0 {
        db.announce()?;
    }
    Ok(recovered)
}
