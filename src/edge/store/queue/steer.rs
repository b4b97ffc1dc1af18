//! What a person does to jobs: retry, cancel, drop. Each order is one transaction, and given twice it
//! is the same as once.

use super::super::db::{Columns, Db, Value, values};
use super::super::error::Fault;
use super::super::{Run, Store, StoreError, entry};
use super::claim;
use crate::domain::{CoverageState, Digest, ErrorKind, JobId, JobState, Timestamp, Wait};
use std::collections::HashMap;

/// Why entries of a job that was called off are skipped.
pub const CANCELLED: &str = "cancelled";
/// Jobs that one statement changes; more at once save nothing, and the values of a statement are bounded.
const JOBS_MAX: usize = 500;

/// Which jobs an order is about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Which {
    /// These.
    Ids(Vec<JobId>),
    /// All that are dead.
    Dead {
        /// Of this kind only, such as `refused`.
        kind: Option<String>,
        /// Of this namespace only.
        namespace: Option<String>,
    },
    /// All that were called off.
    Cancelled,
}

/// What an order came to for one job.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Steered {
    /// The job.
    pub id: JobId,
    /// Where it was; none if the queue does not have it.
    pub was: Option<JobState>,
    /// Why it was there: see [`StoredJob::reason`](super::StoredJob::reason).
    pub reason: Option<String>,
    /// Whether the order was carried out. Where not, `was` says why: there was nothing to be done, or
    /// it cannot be done from there.
    pub done: bool,
}

impl Store {
    /// Makes jobs ready. Dead and cancelled ones are asked afresh, as if never tried, and what was said
    /// of their entries is taken back; waiting ones wait no longer. Leaves others as they are.
    pub async fn retry(&self, which: Which, now: Timestamp) -> Result<Vec<Steered>, StoreError> {
        self.write("retrying jobs", move |to| retry(to, &which, now)).await
    }

    /// Calls open jobs off. Their entries are skipped, with the reason; who holds one finds the lease
    /// lost. Leaves others as they are.
    pub async fn cancel(
        &self,
        jobs: Vec<JobId>,
        now: Timestamp,
    ) -> Result<Vec<Steered>, StoreError> {
        self.write("cancelling jobs", move |to| cancel(to, Which::Ids(jobs.clone()), now)).await
    }

    /// Forgets dead and cancelled jobs. What was said of their entries stays. Leaves others as they
    /// are.
    pub async fn drop_jobs(&self, which: Which) -> Result<Vec<Steered>, StoreError> {
        self.write("dropping jobs", move |to| forget(to, &which)).await
    }
}

/// A job as an order finds it.
struct Target {
    no: i64,
    id: JobId,
    session_no: i64,
    ordinals: (u32, u32),
    state: JobState,
    reason: Option<String>,
}

impl Target {
    fn gathers(&self) -> bool {
        self.state == JobState::Waiting && self.reason.as_deref() == Some(Wait::Gathering.name())
    }

    /// Whether it ended without an extraction.
    fn is_unwell(&self) -> bool {
        match self.state {
            JobState::Dead | JobState::Cancelled => true,
            JobState::Waiting
            | JobState::Ready
            | JobState::Leased
            | JobState::Done
            | JobState::Cut => false,
        }
    }
}

const COLUMNS: &str = "no, id, session_no, first_ordinal, last_ordinal, state, reason";
/// What ended without an extraction; the first half leads to its index.
const DEAD: &str = "state IN ('dead', 'cancelled') AND state = 'dead'";
const UNWELL: &str = "state IN ('dead', 'cancelled')";

fn read(row: &mut Columns<'_>) -> Result<Target, Fault> {
    Ok(Target {
        no: row.next()?,
        id: JobId(row.next()?),
        session_no: row.next()?,
        ordinals: (row.next()?, row.next()?),
        state: row.named(JobState::of_name)?,
        reason: row.next()?,
    })
}

/// Jobs that meet a condition, held until the transaction ends; the oldest first.
fn held(db: &mut Db, condition: &str, values: &[Value<'_>]) -> Result<Vec<Target>, Fault> {
    let locking = db.locking();
    let sql = format!("SELECT {COLUMNS} FROM jobs WHERE {condition} ORDER BY no{locking}");
    db.all(&sql, values, read)
}

/// The jobs that are meant, in the order in which they were named; and those that are not there.
fn meant(db: &mut Db, which: &Which) -> Result<(Vec<Target>, Vec<JobId>), Fault> {
    let found = match which {
        Which::Ids(ids) => {
            let (mut found, mut gone) = (Vec::with_capacity(ids.len()), Vec::new());
            for id in ids {
                match held(db, "id = ?1", values![&id.0])?.pop() {
                    Some(target) => found.push(target),
                    None => gone.push(*id),
                }
            }
            return Ok((found, gone));
        }
        Which::Cancelled => held(db, &format!("{UNWELL} AND state = 'cancelled'"), &[])?,
        Which::Dead { kind: None, namespace: None } => held(db, DEAD, &[])?,
        Which::Dead { kind: Some(kind), namespace: None } => {
            held(db, &format!("{DEAD} AND reason = ?1"), values![kind])?
        }
        Which::Dead { kind: None, namespace: Some(namespace) } => {
            let lane = "lane IN (SELECT no FROM lanes WHERE namespace = ?1)";
            held(db, &format!("{DEAD} AND {lane}"), values![namespace])?
        }
        Which::Dead { kind: Some(kind), namespace: Some(namespace) } => {
            let lane = "lane IN (SELECT no FROM lanes WHERE namespace = ?2)";
            held(db, &format!("{DEAD} AND reason = ?1 AND {lane}"), values![kind, namespace])?
        }
    };
    Ok((found, Vec::new()))
}

/// Runs a statement over jobs, so many at a time; `sql` makes it of the condition on `j` and of the
/// place of the value behind the last.
fn over(
    db: &mut Db,
    targets: &[&Target],
    more: Option<Timestamp>,
    sql: impl Fn(&str, usize) -> String,
) -> Result<(), Fault> {
    for some in targets.chunks(JOBS_MAX) {
        let places: Vec<String> = (1..=some.len()).map(|n| format!("?{n}")).collect();
        let condition = format!("j.no IN ({})", places.join(", "));
        let mut values: Vec<Value<'_>> = some.iter().map(|it| Value::from(it.no)).collect();
        values.extend(more.map(Value::from));
        db.execute(&sql(&condition, some.len() + 1), &values)?;
    }
    Ok(())
}

/// What an order came to: done for those jobs that `done` says, not for others, nor for what is gone.
fn told(found: Vec<Target>, gone: Vec<JobId>, done: impl Fn(&Target) -> bool) -> Vec<Steered> {
    let gone = gone.into_iter().map(|id| Steered { id, was: None, reason: None, done: false });
    let found = found.into_iter().map(|it| {
        let done = done(&it);
        Steered { id: it.id, was: Some(it.state), reason: it.reason, done }
    });
    found.chain(gone).collect()
}

fn retry(db: &mut Db, which: &Which, now: Timestamp) -> Result<Vec<Steered>, Fault> {
    let (found, gone) = meant(db, which)?;
    let waits = |it: &Target| it.state == JobState::Waiting;
    let waiting: Vec<&Target> = found.iter().filter(|it| waits(it)).collect();
    for target in waiting.iter().filter(|it| it.gathers()) {
        claim::settle(db, target.session_no, target.ordinals)?;
    }
    over(db, &waiting, Some(now), |jobs, now| {
        format!(
            "UPDATE jobs AS j SET state = 'ready', reason = NULL, detail = NULL, until = NULL,
                since = ?{now} WHERE {jobs}"
        )
    })?;
    let unwell: Vec<&Target> = found.iter().filter(|it| it.is_unwell()).collect();
    open_again(db, &unwell, now)?;
    if !waiting.is_empty() || !unwell.is_empty() {
        db.announce()?;
    }
    Ok(told(found, gone, |it| waits(it) || it.is_unwell()))
}

/// Opens what died under another way of asking than this; says how many there were.
pub(super) fn reopen(db: &mut Db, asking: Digest, now: Timestamp) -> Result<u64, Fault> {
    let condition = format!("{DEAD} AND asking IS NOT NULL AND asking <> ?1");
    let dead = held(db, &condition, values![&asking])?;
    if dead.is_empty() {
        return Ok(0);
    }
    open_again(db, &dead.iter().collect::<Vec<_>>(), now)?;
    db.announce()?;
    Ok(dead.len() as u64)
}

/// Opens dead and cancelled jobs as if they had never been tried, but not as if never asked: the
/// journal is not consulted again.
fn open_again(db: &mut Db, targets: &[&Target], now: Timestamp) -> Result<(), Fault> {
    if targets.is_empty() {
        return Ok(());
    }
    // What was said of their entries is taken back: by runs that failed, and without a run. A cross
    // join keeps SQLite from beginning with another table than the jobs.
    over(db, targets, None, |jobs, _| {
        format!(
            "UPDATE runs SET current = 0 WHERE no IN (
                SELECT r.no FROM jobs j CROSS JOIN runs r
                WHERE {jobs} AND r.session_no = j.session_no
                    AND r.first_ordinal = j.first_ordinal AND r.first_part = j.first_part
                    AND r.slice = j.slice AND r.state = 'failed' AND r.current = 1)"
        )
    })?;
    for target in targets {
        entry::uncover_open(db, target.session_no, target.ordinals)?;
    }
    over(db, targets, Some(now), |jobs, now| {
        format!(
            "UPDATE jobs AS j SET state = 'ready', reason = NULL, detail = NULL, until = NULL,
                since = ?{now}, finished_at = NULL, attempts = 0,
                generation = generation + CASE WHEN reason = '{}' THEN 0 ELSE 1 END
            WHERE {jobs}",
            // No answer was kept, and nobody was asked.
            ErrorKind::Stale.name()
        )
    })?;
    say_again(db, targets)
}

/// Dead and cancelled jobs whose entries were extracted after all, such as by a replay, are done.
pub(in crate::edge::store) fn outdo(db: &mut Db, session_no: i64, run: &Run) -> Result<(), Fault> {
    let sql = "UPDATE jobs SET state = 'done', reason = NULL, detail = NULL, since = ?6,
            finished_at = ?6, cut = '', context = NULL
        WHERE state IN ('dead', 'cancelled') AND session_no = ?1
            AND (?2, ?3) <= (first_ordinal, first_part) AND (last_ordinal, last_part) <= (?4, ?5)";
    let ((from, from_part), (to, to_part)) = (run.first, run.last);
    db.send(sql, values![session_no, from, from_part, to, to_part, run.finished_at])
}

/// An entry that is cut in parts stands in two jobs. Where one was opened and the other is still dead
/// or cancelled, what the other says of the entry holds.
fn say_again(db: &mut Db, opened: &[&Target]) -> Result<(), Fault> {
    let mut ranges: HashMap<i64, Vec<(u32, u32)>> = HashMap::new();
    for target in opened {
        ranges.entry(target.session_no).or_default().push(target.ordinals);
    }
    let beside = held(db, UNWELL, &[])?.into_iter().filter(|it| {
        let shared = |range: &(u32, u32)| range.0 <= it.ordinals.1 && it.ordinals.0 <= range.1;
        ranges.get(&it.session_no).is_some_and(|ranges| ranges.iter().any(shared))
    });
    for it in beside {
        let said = match it.state == JobState::Dead {
            true => (CoverageState::Failed, it.reason.as_deref().unwrap_or("dead")),
            false => (CoverageState::Skipped, CANCELLED),
        };
        entry::cover_open(db, it.session_no, it.ordinals, said)?;
    }
    Ok(())
}

fn cancel(db: &mut Db, which: Which, now: Timestamp) -> Result<Vec<Steered>, Fault> {
    let (found, gone) = meant(db, &which)?;
    let open: Vec<&Target> = found.iter().filter(|it| !it.state.is_final()).collect();
    for target in &open {
        if target.gathers() {
            // What the session grows by is cut after it, and does not bring it back.
            claim::settle(db, target.session_no, target.ordinals)?;
        }
        let said = (CoverageState::Skipped, CANCELLED);
        entry::cover_open(db, target.session_no, target.ordinals, said)?;
    }
    over(db, &open, Some(now), |jobs, now| {
        format!(
            "UPDATE jobs AS j SET state = 'cancelled', reason = NULL, detail = NULL, until = NULL,
                since = ?{now}, finished_at = ?{now} WHERE {jobs}"
        )
    })?;
    Ok(told(found, gone, |it| !it.state.is_final()))
}

/// Forgets dead and cancelled jobs; their entries were told of when they ended.
fn forget(db: &mut Db, which: &Which) -> Result<Vec<Steered>, Fault> {
    let (found, gone) = meant(db, which)?;
    let unwell: Vec<&Target> = found.iter().filter(|it| it.is_unwell()).collect();
    over(db, &unwell, None, |jobs, _| format!("DELETE FROM jobs AS j WHERE {jobs}"))?;
    Ok(told(found, gone, Target::is_unwell))
}

#[cfg(test)]
#[path = "steer_test.rs"]
mod tests;
