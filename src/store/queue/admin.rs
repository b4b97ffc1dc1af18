//! Lists, retries, cancels and drops jobs. Each change is one idempotent transaction.

use super::claim::{QUEUED_COLUMNS, QueuedJob, close_gathering};
use super::intake::retract_failed_runs;
use crate::domain::{
    CoverageState, Digest, ErrorKind, JobId, JobState, SessionId, SliceId, Timestamp, Tokens,
};
use crate::store::{
    Db, IdPrefix, PrefixLookup, Result, Run, Store, StoreResult, Value, entry, row_of, values,
};
use std::collections::HashMap;

/// Filter for listing jobs. The default selects all open and dead jobs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct JobFilter {
    /// States; empty means waiting, ready, leased and dead.
    pub states: Vec<JobState>,
    pub namespace: Option<String>,
    pub session: Option<IdPrefix>,
    pub limit: Option<u32>,
}

/// A job in the queue.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct StoredJob {
    pub id: JobId,
    pub session: SessionId,
    pub namespace: String,
    /// The session's file; empty if there was none.
    pub path: String,
    pub state: JobState,
    /// Name of the [`Wait`], or kind of the error it died of.
    pub reason: Option<String>,
    pub detail: Option<String>,
    pub priority: i32,
    pub attempts: u32,
    pub generation: u32,
    pub holder: Option<String>,
    /// Time of the last state change or lease extension.
    pub since: Timestamp,
    pub until: Option<Timestamp>,
    pub enqueued_at: Timestamp,
    /// End time; `None` while it is open.
    pub finished_at: Option<Timestamp>,
    pub slice: SliceId,
    /// Position among the session's slices, from 0.
    pub index: u32,
    pub first: (u32, u32),
    /// End position, inclusive.
    pub last: (u32, u32),
    pub tokens: Tokens,
}

impl Store {
    pub(crate) async fn jobs(&self, filter: JobFilter) -> StoreResult<Vec<StoredJob>> {
        self.read("reading jobs", move |db| {
            let states: &[JobState] = match filter.states.as_slice() {
                [] => &[JobState::Waiting, JobState::Ready, JobState::Leased, JobState::Dead],
                named => named,
            };
            let most = filter.limit.map_or(i64::MAX, i64::from);
            let (low, high) = filter.session.as_ref().map(IdPrefix::bounds).unzip();
            let row = values![most, &filter.namespace, low, high];
            let mut jobs: Vec<(i64, StoredJob)> = Vec::new();
            for (part, of) in STATE_PARTITIONS {
                let wanted: Vec<&str> =
                    of.iter().filter(|it| states.contains(it)).map(|it| it.name()).collect();
                if wanted.is_empty() {
                    continue;
                }
                // State names are constants, not user input.
                let sql = format!(
                    "SELECT j.no, {COLUMNS} WHERE {part} AND j.state IN ('{}') AND (s.namespace = ?2 OR ?2 IS NULL)
                        AND (s.id BETWEEN ?3 AND ?4 OR ?3 IS NULL)
                    ORDER BY j.no LIMIT ?1",
                    wanted.join("', '")
                );
                jobs.extend(db.all(&sql, row)?);
            }
            jobs.sort_by_key(|(no, _)| *no);
            jobs.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            Ok(jobs.into_iter().map(|(_, job)| job).collect())
        })
        .await
    }

    pub(crate) async fn job(&self, prefix: IdPrefix) -> StoreResult<PrefixLookup<StoredJob>> {
        self.lookup("looking up a job", "jobs", prefix, |db, id| {
            db.first(&format!("SELECT {COLUMNS} WHERE j.id = ?1"), values![&id])
        })
        .await
    }

    /// Makes waiting jobs ready, and reopens dead and cancelled ones as if never tried, reverting
    /// the coverage of their entries. Leaves others unchanged.
    pub(crate) async fn retry(
        &self,
        which: JobSelection,
        now: Timestamp,
    ) -> StoreResult<Vec<JobChange>> {
        self.write("retrying jobs", move |db| {
            let (found, gone) = select(db, &which)?;
            let waits = |it: &QueuedJob| it.state == JobState::Waiting;
            for target in found.iter().filter(|it| waits(it)) {
                if target.gathers() {
                    close_gathering(db, target.session_no, target.ordinals)?;
                }
                let sql = "UPDATE jobs SET state = 'ready', reason = NULL, detail = NULL,
                    until = NULL, since = ?2 WHERE no = ?1";
                db.run(sql, values![target.no, now])?;
            }
            let reopenable: Vec<&QueuedJob> =
                found.iter().filter(|it| it.is_reopenable()).collect();
            reopen_jobs(db, &reopenable, now)?;
            Ok(changes(found, gone, |it| waits(it) || it.is_reopenable()))
        })
        .await
    }

    /// Cancels open jobs. Their entries are skipped with that reason; a lease holder loses the
    /// lease. Leaves others unchanged.
    pub async fn cancel(&self, jobs: Vec<JobId>, now: Timestamp) -> StoreResult<Vec<JobChange>> {
        let which = JobSelection::Ids(jobs);
        self.write("cancelling jobs", move |db| {
            let (found, gone) = select(db, &which)?;
            for target in found.iter().filter(|it| !it.state.is_final()) {
                if target.gathers() {
                    // Entries added to the session later go to a new job.
                    close_gathering(db, target.session_no, target.ordinals)?;
                }
                let (no, state) = (target.session_no, CoverageState::Skipped);
                entry::cover_without_run(db, no, target.ordinals, state, CANCELLED)?;
                let sql = "UPDATE jobs SET state = 'cancelled', reason = NULL, detail = NULL,
                    until = NULL, since = ?2, finished_at = ?2 WHERE no = ?1";
                db.run(sql, values![target.no, now])?;
            }
            Ok(changes(found, gone, |it| !it.state.is_final()))
        })
        .await
    }

    /// Reopens jobs that died under another model, prompt or schema than `asking`.
    pub(crate) async fn reopen(&self, asking: Digest, now: Timestamp) -> StoreResult<u64> {
        self.write("reopening dead jobs", move |db| {
            let condition = format!("{DEAD} AND asking IS NOT NULL AND asking <> ?1");
            let dead = lock(db, &condition, values![&asking])?;
            reopen_jobs(db, &dead.iter().collect::<Vec<_>>(), now)?;
            Ok(dead.len() as u64)
        })
        .await
    }

    /// Deletes dead and cancelled jobs but keeps the coverage of their entries. Leaves others unchanged.
    pub(crate) async fn drop_jobs(&self, which: JobSelection) -> StoreResult<Vec<JobChange>> {
        self.write("dropping jobs", move |db| {
            let (found, gone) = select(db, &which)?;
            for target in found.iter().filter(|it| it.is_reopenable()) {
                db.run("DELETE FROM jobs WHERE no = ?1", values![target.no])?;
            }
            Ok(changes(found, gone, QueuedJob::is_reopenable))
        })
        .await
    }
}

const COLUMNS: &str = "j.id, s.id, s.namespace, s.path, j.state, j.reason, j.detail, j.priority, \
     j.attempts, j.generation, j.holder, j.since, j.until, j.enqueued_at, j.finished_at, j.slice, \
     j.slice_index, j.first_ordinal, j.first_part, j.last_ordinal, j.last_part, j.tokens \
     FROM jobs j JOIN sessions s ON s.no = j.session_no";

row_of! {
    StoredJob {
        id, session, namespace, path, state, reason, detail, priority, attempts, generation, holder,
        since, until, enqueued_at, finished_at, slice, index, first, last, tokens
    }
}

/// Partitions of the jobs, each with the condition that selects its index. The last has no index
/// and is scanned.
const STATE_PARTITIONS: [(&str, &[JobState]); 3] = [
    ("j.finished_at IS NULL", &[JobState::Waiting, JobState::Ready, JobState::Leased]),
    ("j.state IN ('dead', 'cancelled')", &[JobState::Dead, JobState::Cancelled]),
    ("j.finished_at IS NOT NULL", &[JobState::Done, JobState::Cut]),
];

/// Skip reason for entries of a cancelled job.
pub(crate) const CANCELLED: &str = "cancelled";

/// Jobs that a command applies to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum JobSelection {
    Ids(Vec<JobId>),
    Dead {
        /// Error kind to match, such as `refused`.
        kind: Option<String>,
        namespace: Option<String>,
    },
    Cancelled,
}

/// Effect of a command on one job.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JobChange {
    pub id: JobId,
    /// Previous state; `None` if the job is not in the queue.
    pub was: Option<JobState>,
    /// Previous reason: see [`StoredJob::reason`](super::StoredJob::reason).
    pub reason: Option<String>,
    /// True if the command took effect. If not, `was` shows why.
    pub done: bool,
}

/// Condition of dead jobs; its first half selects the index.
const DEAD: &str = "state IN ('dead', 'cancelled') AND state = 'dead'";
const DEAD_OR_CANCELLED: &str = "state IN ('dead', 'cancelled')";

/// Locks the matching jobs until the transaction ends; oldest first.
fn lock(db: &mut Db, condition: &str, values: &[Value<'_>]) -> Result<Vec<QueuedJob>> {
    let locking = db.locking();
    let sql = format!("SELECT {QUEUED_COLUMNS} FROM jobs WHERE {condition} ORDER BY no{locking}");
    db.all(&sql, values)
}

/// Returns the selected jobs, in the order given, and the ids that do not exist.
fn select(db: &mut Db, which: &JobSelection) -> Result<(Vec<QueuedJob>, Vec<JobId>)> {
    let found = match which {
        JobSelection::Ids(ids) => {
            let (mut found, mut gone) = (Vec::with_capacity(ids.len()), Vec::new());
            for id in ids {
                match lock(db, "id = ?1", values![&id.0])?.pop() {
                    Some(target) => found.push(target),
                    None => gone.push(*id),
                }
            }
            return Ok((found, gone));
        }
        JobSelection::Cancelled => {
            lock(db, &format!("{DEAD_OR_CANCELLED} AND state = 'cancelled'"), &[])?
        }
        JobSelection::Dead { kind, namespace } => {
            let condition = format!(
                "{DEAD} AND (reason = ?1 OR ?1 IS NULL)
                AND (lane IN (SELECT no FROM lanes WHERE namespace = ?2) OR ?2 IS NULL)"
            );
            lock(db, &condition, values![kind, namespace])?
        }
    };
    Ok((found, Vec::new()))
}

/// Lists the effects of a command; `done` tells which existing jobs it changed.
fn changes(
    found: Vec<QueuedJob>,
    gone: Vec<JobId>,
    done: impl Fn(&QueuedJob) -> bool,
) -> Vec<JobChange> {
    let gone = gone.into_iter().map(|id| JobChange { id, was: None, reason: None, done: false });
    let found = found.into_iter().map(|it| {
        let done = done(&it);
        JobChange { id: it.id, was: Some(it.state), reason: it.reason, done }
    });
    found.chain(gone).collect()
}

/// Reopens dead and cancelled jobs with no attempts used. A new generation keeps the journal from
/// answering for them.
fn reopen_jobs(db: &mut Db, targets: &[&QueuedJob], now: Timestamp) -> Result<()> {
    if targets.is_empty() {
        return Ok(());
    }
    for target in targets {
        entry::uncover_without_run(db, target.session_no, target.ordinals)?;
        // Neither a cancelled nor a stale job has an answer to avoid.
        let sql = "UPDATE jobs SET state = 'ready', reason = NULL, detail = NULL, until = NULL,
                since = ?2, finished_at = NULL, attempts = 0,
                generation = generation
                    + CASE WHEN state = 'cancelled' OR reason = ?3 THEN 0 ELSE 1 END
            WHERE no = ?1";
        db.run(sql, values![target.no, now, ErrorKind::Stale.name()])?;
        retract_failed_runs(db, &target.id)?;
    }
    restore_shared_coverage(db, targets)
}

/// Marks dead and cancelled jobs as done if their entries were extracted since, as by a replay.
pub(in crate::store) fn close_covered_jobs(db: &mut Db, session_no: i64, run: &Run) -> Result<()> {
    let sql = "UPDATE jobs SET state = 'done', reason = NULL, detail = NULL, since = ?6,
            finished_at = ?6, cut = '', context = NULL
        WHERE state IN ('dead', 'cancelled') AND session_no = ?1
            AND (?2, ?3) <= (first_ordinal, first_part) AND (last_ordinal, last_part) <= (?4, ?5)";
    let ((from, from_part), (to, to_part)) = (run.first, run.last);
    db.run(sql, values![session_no, from, from_part, to, to_part, run.finished_at])
}

/// Restores the coverage of entries that an opened job shares with a job still dead or cancelled.
/// An entry cut into parts belongs to two jobs.
fn restore_shared_coverage(db: &mut Db, opened: &[&QueuedJob]) -> Result<()> {
    let mut ranges: HashMap<i64, Vec<(u32, u32)>> = HashMap::new();
    for target in opened {
        ranges.entry(target.session_no).or_default().push(target.ordinals);
    }
    let beside = lock(db, DEAD_OR_CANCELLED, &[])?.into_iter().filter(|it| {
        let shared = |range: &(u32, u32)| range.0 <= it.ordinals.1 && it.ordinals.0 <= range.1;
        ranges.get(&it.session_no).is_some_and(|ranges| ranges.iter().any(shared))
    });
    for it in beside {
        let (state, reason) = match it.state == JobState::Dead {
            true => (CoverageState::Failed, it.reason.as_deref().unwrap_or("dead")),
            false => (CoverageState::Skipped, CANCELLED),
        };
        entry::cover_without_run(db, it.session_no, it.ordinals, state, reason)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "admin_tests.rs"]
mod admin_tests;
#[cfg(test)]
#[path = "jobs_tests.rs"]
mod jobs_tests;
