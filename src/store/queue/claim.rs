//! Job leases: claim, extend, release, finish. Every transaction checks the lease token, so a
//! worker that lost its lease writes nothing.

use super::intake::{JobSlot, insert};
use crate::domain::{
    Claimed, CoverageState, Digest, Entry, Job, JobId, JobState, Lease, Session, SessionId,
    Timestamp, Wait,
};
use crate::store::lease::SKEW;
use crate::store::staging::stage;
use crate::store::{
    Db, Fault, Result, Staged, Staging, Store, StoreErrorKind, StoreResult, Value, entry, lease,
    query, row_of, session, values,
};
use std::time::Duration;

impl Store {
    /// Leases jobs to a worker: least recently served namespace first, then by priority, then
    /// oldest. Reclaims expired leases, and charges an attempt for each claim.
    pub async fn claim(&self, request: ClaimRequest) -> StoreResult<ClaimedJobs> {
        self.write("claiming jobs", move |db| claim(db, &request)).await
    }

    /// Returns a session and the entries of one of its jobs.
    pub async fn work_of(
        &self,
        session: SessionId,
        job: &Job,
    ) -> StoreResult<(Session, Vec<Entry>)> {
        let ordinals = job.first.0..job.last.0.saturating_add(1);
        let read = move |from: &mut Db| {
            let unknown = StoreErrorKind::UnknownSession(session);
            let whole = session::find(from, session)?.ok_or(Fault::from(unknown))?;
            Ok((whole, entry::list(from, session, ordinals.clone())?))
        };
        self.read("reading the entries of a job", read).await
    }

    /// Extends leases to `until`; returns the jobs whose lease was lost.
    pub(crate) async fn extend(
        &self,
        leases: Vec<Lease>,
        until: Timestamp,
        now: Timestamp,
    ) -> StoreResult<Vec<JobId>> {
        self.write("extending leases", move |db| {
            let sql = "UPDATE jobs SET until = ?3, since = ?4
                WHERE id = ?1 AND token = ?2 AND state = 'leased'";
            let mut lost = Vec::new();
            for Lease { subject, token, .. } in &leases {
                if db.execute(sql, values![&subject.0, *token, until, now])? == 0 {
                    lost.push(*subject);
                }
            }
            Ok(lost)
        })
        .await
    }

    /// Finishes a job and stores its result in one transaction. Idempotent for the same lease.
    pub async fn finish(
        &self,
        lease: Lease,
        staging: Option<Staging>,
        ending: JobEnding,
        now: Timestamp,
    ) -> StoreResult<Staged> {
        self.write("ending a job", move |db| {
            let held = check_lease(db, lease, now)?;
            // Staging is idempotent and returns the same counts again.
            let staged = staging.as_ref().map(|staging| stage(db, staging)).transpose()?;
            if !held.ended {
                end_job(db, &held, &ending, now)?;
                if let (JobEnding::Dead { kind, .. }, None) = (&ending, staged) {
                    // There is no run to record the coverage of its entries.
                    let (no, state) = (held.slot.session_no, CoverageState::Failed);
                    entry::cover_without_run(db, no, held.ordinals, state, kind)?;
                }
            }
            Ok(staged.unwrap_or_default())
        })
        .await
    }

    /// Releases a job before it is finished.
    pub async fn release(
        &self,
        lease: Lease,
        release: JobRelease,
        now: Timestamp,
    ) -> StoreResult<()> {
        self.write("releasing a job", move |db| {
            let held = check_lease(db, lease, now)?;
            if held.ended {
                return Err(StoreErrorKind::LeaseLost(lease.subject).into());
            }
            let (state, reason, until, detail) = waiting(&release);
            let sql = "UPDATE jobs SET state = ?2, reason = ?3, until = ?4, detail = ?5,
                    since = ?6, attempts = attempts - ?7
                WHERE no = ?1";
            let back = u32::from(!release.charged);
            db.run(sql, values![held.no, state, reason, until, detail, now, back])
        })
        .await
    }

    /// Makes all ready jobs wait, optionally of one namespace or batch only, when a cap is reached.
    pub(crate) async fn hold_ready(
        &self,
        namespace: Option<String>,
        batch: Option<String>,
        release: JobRelease,
        now: Timestamp,
    ) -> StoreResult<u64> {
        let (state, reason, until, detail) = waiting(&release);
        let sql = "UPDATE jobs SET state = ?1, reason = ?2, until = ?3, detail = ?4, since = ?5
            WHERE state = 'ready'
                AND (lane IN (SELECT no FROM lanes WHERE namespace = ?6) OR ?6 IS NULL)
                AND (no IN (SELECT job_no FROM batch_jobs WHERE batch = ?7) OR ?7 IS NULL)";
        let row = values![state, reason, until, detail, now, &namespace, &batch];
        self.write("holding jobs back", query(sql, row, Db::execute)).await
    }

    /// Ends waits and leases that start in the future or last too long, since the clock was set
    /// back. Also retries jobs that wait for a cap, since caps may have been raised. Called when a
    /// worker starts.
    pub(crate) async fn recover(&self, now: Timestamp) -> StoreResult<u64> {
        let sql = "UPDATE jobs SET until = ?1 WHERE until IS NOT NULL AND ?1 < until
            AND (?2 < since OR reason = 'cap' OR (state = 'leased' AND ?3 < until))";
        let skewed = now.after(SKEW);
        let row = values![now, skewed, skewed.after(LEASE_MAX)];
        self.write("recovering jobs", query(sql, row, Db::execute)).await
    }

    /// Returns the workers that hold leases or drain a batch.
    pub(crate) async fn holders(&self) -> StoreResult<Vec<String>> {
        let sql = "SELECT DISTINCT holder FROM jobs
            WHERE state = 'leased' AND until IS NOT NULL AND holder IS NOT NULL
            UNION SELECT DISTINCT batch FROM batch_jobs";
        self.all("reading the lease holders", sql, &[]).await
    }

    /// Ends the leases and batches of workers known to be gone, and removes them from the registry.
    pub(crate) async fn abandon_leases(
        &self,
        gone: Vec<String>,
        now: Timestamp,
    ) -> StoreResult<u64> {
        self.write("ending leases of dead workers", move |db| {
            let mut ended = 0;
            for holder in &gone {
                let sql = "UPDATE jobs SET until = ?2 WHERE state = 'leased' AND holder = ?1";
                ended += db.execute(sql, values![holder, now])?;
                db.run("DELETE FROM batch_jobs WHERE batch = ?1", values![holder])?;
                let sql = "DELETE FROM workers WHERE id = ?1 AND stopped IS NULL";
                db.run(sql, values![holder])?;
            }
            Ok(ended)
        })
        .await
    }
}

/// Maximum number of expired waits and leases handled by one claim, to keep it short.
const DUE_MAX: u32 = 256;
/// Longest lease that settings allow (`queue.lease_secs`).
const LEASE_MAX: Duration = Duration::from_secs(3_600);
/// Death reason of a job whose workers never returned; it has no run.
pub(crate) const ABANDONED: &str = "abandoned";

/// Request for jobs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClaimRequest {
    /// Name of the worker, for display.
    pub holder: String,
    /// Maximum number of jobs.
    pub jobs_max: u32,
    /// End of the leases unless extended.
    pub until: Timestamp,
    /// Maximum number of claims; a job that comes back unfinished after that many is dead.
    pub attempts_max: u32,
    /// Restricts the claim to this batch.
    pub batch: Option<String>,
    /// Current time.
    pub now: Timestamp,
}

/// Jobs leased to a worker.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ClaimedJobs {
    /// Jobs, in the order in which they are due.
    pub jobs: Vec<Claimed>,
    /// Number of expired leases that were reclaimed.
    pub expired: u32,
    /// End of the next wait or lease; set only if no job was claimed.
    pub next_at: Option<Timestamp>,
}

fn claim(db: &mut Db, claim: &ClaimRequest) -> Result<ClaimedJobs> {
    let expired = end_waits(db, claim)?;
    let mut jobs = Vec::new();
    // Each round serves every namespace once, until enough jobs are claimed or none is left.
    while (jobs.len() as u32) < claim.jobs_max {
        let left = claim.jobs_max - jobs.len() as u32;
        let lanes = lanes(db, claim, left)?;
        let (before, served) = (jobs.len(), lanes.len() as u32);
        for lane in lanes {
            let most = left.div_ceil(served).min(claim.jobs_max - jobs.len() as u32);
            jobs.extend(claim_from(db, claim, lane, most)?);
        }
        if jobs.len() == before {
            // No job is ready, or other workers are claiming the same jobs.
            break;
        }
    }
    let next_at = match jobs.is_empty() {
        true => db.one("SELECT min(until) FROM jobs WHERE until IS NOT NULL", &[])?,
        false => None,
    };
    Ok(ClaimedJobs { jobs, expired, next_at })
}

fn lanes(db: &mut Db, claim: &ClaimRequest, most: u32) -> Result<Vec<i64>> {
    let sql = format!(
        "SELECT l.no FROM lanes l
        WHERE EXISTS (SELECT 1 FROM jobs j WHERE j.lane = l.no AND j.state = 'ready'{})
        ORDER BY l.served, l.no LIMIT ?1",
        in_batch(claim, "j", "?2")
    );
    let mut row = vec![Value::from(most)];
    row.extend(claim.batch.as_ref().map(Value::from));
    db.all(&sql, &row)
}

/// Condition that restricts `jobs` to the claim's batch; empty without one.
fn in_batch(claim: &ClaimRequest, jobs: &str, batch: &str) -> String {
    match claim.batch {
        Some(_) => format!(
            " AND EXISTS (SELECT 1 FROM batch_jobs b WHERE b.batch = {batch} AND b.job_no = {jobs}.no)"
        ),
        None => String::new(),
    }
}

fn claim_from(db: &mut Db, claim: &ClaimRequest, lane: i64, most: u32) -> Result<Vec<Claimed>> {
    let sql = format!(
        "UPDATE jobs SET state = 'leased', reason = NULL, detail = NULL,
            token = token + 1, attempts = attempts + 1, holder = ?1, since = ?2, until = ?3
        WHERE no IN (
            SELECT no FROM jobs WHERE lane = ?4 AND state = 'ready'{}
            ORDER BY priority DESC, no LIMIT ?5{})
        RETURNING priority, no, (SELECT s.id FROM sessions s WHERE s.no = session_no), token,
            attempts, generation, {JOB_COLUMNS}",
        in_batch(claim, "jobs", "?6"),
        db.skipping_locked()
    );
    let mut row = values![&claim.holder, claim.now, claim.until, lane, most].to_vec();
    row.extend(claim.batch.as_ref().map(Value::from));
    let mut leased: Vec<(i64, i64, ClaimedRow)> = db.all(&sql, &row)?;
    if leased.is_empty() {
        return Ok(Vec::new());
    }
    // A database may return rows in any order.
    leased.sort_by_key(|(priority, no, _)| (-priority, *no));
    let sql = "UPDATE lanes SET served = 1 + (SELECT max(served) FROM lanes) WHERE no = ?1";
    db.run(sql, values![lane])?;
    let claimed = leased.into_iter().map(|(_, _, row)| {
        let ClaimedRow { session, token, attempt, generation, job } = row;
        let lease = Lease { subject: job.id, token, until: claim.until };
        Claimed { lease, session, attempt, generation, job }
    });
    Ok(claimed.collect())
}

/// Columns of a [`Job`].
const JOB_COLUMNS: &str = "id, slice, slice_index, first_ordinal, first_part, last_ordinal, \
     last_part, tokens, cut, context";

row_of! { Job { id, slice, index, first, last, tokens, cut, context } }

struct ClaimedRow {
    session: SessionId,
    token: u64,
    attempt: u32,
    generation: u32,
    job: Job,
}

row_of! { ClaimedRow { session, token, attempt, generation, job } }

/// Makes jobs ready whose wait or lease has expired; returns the number of expired leases.
fn end_waits(db: &mut Db, claim: &ClaimRequest) -> Result<u32> {
    let sql = format!(
        "SELECT {QUEUED_COLUMNS} FROM jobs
        WHERE until IS NOT NULL AND until <= ?1 ORDER BY until LIMIT ?2{}",
        db.skipping_locked()
    );
    let due: Vec<QueuedJob> = db.all(&sql, values![claim.now, DUE_MAX])?;
    let mut expired = 0;
    for due in due {
        expired += u32::from(due.state == JobState::Leased);
        if due.state == JobState::Leased && claim.attempts_max <= due.attempts {
            abandon(db, &due, claim.now)?;
            continue;
        }
        if due.gathers() {
            close_gathering(db, due.session_no, due.ordinals)?;
        }
        let sql = "UPDATE jobs SET state = 'ready', reason = NULL, detail = NULL, since = ?2,
            until = NULL WHERE no = ?1";
        db.run(sql, values![due.no, claim.now])?;
    }
    Ok(expired)
}

/// Row of a job in the queue.
pub(super) struct QueuedJob {
    pub(super) no: i64,
    pub(super) id: JobId,
    pub(super) session_no: i64,
    pub(super) ordinals: (u32, u32),
    pub(super) state: JobState,
    pub(super) reason: Option<String>,
    attempts: u32,
}

/// Columns of a [`QueuedJob`].
pub(super) const QUEUED_COLUMNS: &str =
    "no, id, session_no, first_ordinal, last_ordinal, state, reason, attempts";

row_of! { QueuedJob { no, id, session_no, ordinals, state, reason, attempts } }

impl QueuedJob {
    pub(super) fn gathers(&self) -> bool {
        self.state == JobState::Waiting && self.reason.as_deref() == Some(Wait::Gathering.name())
    }

    pub(super) fn is_reopenable(&self) -> bool {
        matches!(self.state, JobState::Dead | JobState::Cancelled)
    }
}

impl Store {
    /// Ends the wait of every gathering slice; the next claim closes them.
    pub(crate) async fn end_gathering_waits(&self, now: Timestamp) -> StoreResult<()> {
        let sql = "UPDATE jobs SET until = ?1
            WHERE until > ?1 AND state = 'waiting' AND reason = 'gathering'";
        self.write("ending the wait for more entries", move |db| db.run(sql, values![now])).await
    }
}

/// Closes a gathering slice; later entries of the session start a new one.
pub(super) fn close_gathering(db: &mut Db, session_no: i64, ordinals: (u32, u32)) -> Result<()> {
    let sql = "UPDATE sessions SET taken = entries, intakes = intakes + 1
        WHERE no = ?1 AND entries IS NOT NULL RETURNING entries";
    let entries: Option<u32> = db.first(sql, values![session_no])?;
    session::mark_end(db, session_no, entries.unwrap_or(ordinals.1 + 1))
}

/// Marks a job as dead whose workers never returned. A worker that returns later finds its lease lost.
fn abandon(db: &mut Db, due: &QueuedJob, now: Timestamp) -> Result<()> {
    let detail = format!("{} workers claimed it and none finished", due.attempts);
    let sql = "UPDATE jobs SET state = 'dead', reason = ?2, detail = ?3, since = ?4, until = NULL,
        finished_at = ?4, token = token + 1 WHERE no = ?1";
    db.run(sql, values![due.no, ABANDONED, &detail, now])?;
    entry::cover_without_run(db, due.session_no, due.ordinals, CoverageState::Failed, ABANDONED)
}

/// Outcome of a job.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum JobEnding {
    /// The slice was extracted.
    Done,
    /// The slice was too long; these jobs replace it in order, with its priority.
    Cut(Vec<Job>),
    /// The job failed permanently.
    Dead {
        /// Stable name, such as `refused`.
        kind: String,
        /// Description for a person, without conversation text.
        detail: String,
        /// Digest of model, prompt and schema.
        asking: Digest,
    },
}

/// Terms on which a job is released.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JobRelease {
    /// Reason of the wait, its end and a description; `None` makes the job ready at once.
    pub wait: Option<(Wait, Timestamp, String)>,
    /// True if the attempt counts.
    pub charged: bool,
}

/// Row of a job whose lease was checked.
struct LeasedJob {
    no: i64,
    slot: JobSlot,
    ordinals: (u32, u32),
    ended: bool,
}

fn check_lease(db: &mut Db, lease: Lease, now: Timestamp) -> Result<LeasedJob> {
    let sql = "SELECT token, no, session_no, lane, priority, first_ordinal, last_ordinal, state
        FROM jobs WHERE id = ?1";
    let row = lease::check(db, sql, Value::from(&lease.subject), lease.token)?;
    let lost = || Fault::from(StoreErrorKind::LeaseLost(lease.subject));
    let (no, (session_no, lane, priority), ordinals, state) = row.ok_or_else(lost)?;
    let slot = JobSlot { session_no, lane, priority, at: now, until: None };
    let ended = match state {
        JobState::Leased => false,
        JobState::Done | JobState::Cut | JobState::Dead => true,
        JobState::Waiting | JobState::Ready | JobState::Cancelled => {
            return Err(lost());
        }
    };
    Ok(LeasedJob { no, slot, ordinals, ended })
}

fn end_job(db: &mut Db, held: &LeasedJob, ending: &JobEnding, now: Timestamp) -> Result<()> {
    let (state, kind, detail, asking) = match ending {
        JobEnding::Done => (JobState::Done, None, None, None),
        JobEnding::Cut(_) => (JobState::Cut, None, None, None),
        JobEnding::Dead { kind, detail, asking } => {
            (JobState::Dead, Some(kind), Some(detail), Some(asking))
        }
    };
    if let JobEnding::Cut(halves) = ending {
        insert(db, held.slot, halves)?;
        for half in halves {
            let sql = "INSERT INTO batch_jobs (batch, job_no)
                SELECT b.batch, j.no FROM batch_jobs b CROSS JOIN jobs j
                WHERE b.job_no = ?1 AND j.id = ?2 ON CONFLICT DO NOTHING";
            db.run(sql, values![held.no, &half.id.0])?;
        }
    }
    // Only dead jobs are rebuilt; dropping the cut and context of the others saves space.
    let sql = "UPDATE jobs SET state = ?2, reason = ?3, detail = ?4, asking = ?5, since = ?6,
            finished_at = ?6, until = NULL, cut = CASE WHEN ?2 = 'dead' THEN cut ELSE '' END,
            context = CASE WHEN ?2 = 'dead' THEN context END
        WHERE no = ?1";
    db.run(sql, values![held.no, state, kind, detail, asking, now])
}

type Waiting<'a> = (JobState, Option<Wait>, Option<Timestamp>, Option<&'a str>);

fn waiting(release: &JobRelease) -> Waiting<'_> {
    match &release.wait {
        None => (JobState::Ready, None, None, None),
        Some((wait, until, detail)) => (JobState::Waiting, Some(*wait), Some(*until), Some(detail)),
    }
}
