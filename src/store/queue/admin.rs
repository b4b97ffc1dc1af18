//! Jobs as a person sees and changes them: listed, shown, retried, cancelled, dropped. Each change is one transaction
//! and idempotent.

use super::super::db::{Columns, Db, Value, values};
use super::super::entry::{self, CoverageReason};
use super::super::error::{Fault, StoreError};
use super::super::handle::Store;
use super::super::prefix::{self, IdPrefix, PrefixLookup};
use super::super::run::{self, Run, StoredRun};
use super::super::session;
use super::claim;
use crate::domain::{
    CoverageState, Digest, ErrorKind, JobId, JobState, RunId, Session, SessionId, SliceId,
    Timestamp, Tokens, Wait,
};
use std::collections::HashMap;

/// Which jobs to list. The default is every one that is open or dead.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct JobFilter {
    /// In these states; none named means waiting, ready, leased and dead.
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
    /// The file of its session; empty if it was handed over without one.
    pub path: String,
    pub state: JobState,
    /// Why it waits, by the name of a [`Wait`], or the kind of what it died of.
    pub reason: Option<String>,
    pub detail: Option<String>,
    pub priority: i32,
    pub attempts: u32,
    pub generation: u32,
    pub holder: Option<String>,
    /// When its state was written last; of a lease, when it was extended.
    pub since: Timestamp,
    pub until: Option<Timestamp>,
    pub enqueued_at: Timestamp,
    /// When it ended; none while it is open.
    pub finished_at: Option<Timestamp>,
    pub slice: SliceId,
    /// Its place among the session's slices, from 0.
    pub index: u32,
    pub first: (u32, u32),
    /// Where it ends, inclusive.
    pub last: (u32, u32),
    pub tokens: Tokens,
}

/// A job with everything that is known of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JobPage {
    pub stored: StoredJob,
    pub session: Session,
    pub run: Option<StoredRun>,
}

impl Store {
    pub(crate) async fn jobs(&self, filter: JobFilter) -> Result<Vec<StoredJob>, StoreError> {
        self.read("reading jobs", move |db: &mut Db| {
            let filter = &filter;
            let states: &[JobState] = match filter.states.as_slice() {
                [] => &[JobState::Waiting, JobState::Ready, JobState::Leased, JobState::Dead],
                named => named,
            };
            let most = filter.limit.map_or(i64::MAX, i64::from);
            let mut jobs: Vec<(i64, StoredJob)> = Vec::new();
            for (part, of) in PARTS {
                let wanted: Vec<&str> =
                    of.iter().filter(|it| states.contains(it)).map(|it| it.name()).collect();
                if wanted.is_empty() {
                    continue;
                }
                // Names of states are our own words, and no value from outside.
                let mut sql = format!(
                    "SELECT j.no, {COLUMNS} FROM jobs j JOIN sessions s ON s.no = j.session_no
            WHERE {part} AND j.state IN ('{}')",
                    wanted.join("', '")
                );
                let mut row: Vec<Value<'_>> = values![most].to_vec();
                if let Some(namespace) = &filter.namespace {
                    row.push(Value::from(namespace));
                    sql += &format!(" AND s.namespace = ?{}", row.len());
                }
                if let Some((low, high)) = filter.session.as_ref().map(IdPrefix::bounds) {
                    row.extend_from_slice(values![low, high]);
                    sql += &format!(" AND s.id BETWEEN ?{} AND ?{}", row.len() - 1, row.len());
                }
                sql += " ORDER BY j.no LIMIT ?1";
                jobs.extend(db.all(&sql, &row, |row| Ok((row.next()?, read(row)?)))?);
            }
            jobs.sort_by_key(|(no, _)| *no);
            jobs.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            Ok(jobs.into_iter().map(|(_, job)| job).collect())
        })
        .await
    }

    pub(crate) async fn job(&self, prefix: IdPrefix) -> Result<PrefixLookup<JobPage>, StoreError> {
        let read = move |from: &mut Db| {
            Ok(match ids(from, &prefix)? {
                PrefixLookup::None => PrefixLookup::None,
                PrefixLookup::Many(ids) => PrefixLookup::Many(ids),
                PrefixLookup::One(id) => page(from, *id)?
                    .map_or(PrefixLookup::None, |page| PrefixLookup::One(Box::new(page))),
            })
        };
        self.read("looking up a job", read).await
    }

    pub(crate) async fn job_id(&self, prefix: IdPrefix) -> Result<PrefixLookup<JobId>, StoreError> {
        self.read("looking up a job", move |from| ids(from, &prefix)).await
    }
}

fn ids(db: &mut Db, prefix: &IdPrefix) -> Result<PrefixLookup<JobId>, Fault> {
    prefix::find(db, "jobs", prefix, |_, id| Ok(Some(JobId(id))))
}

const COLUMNS: &str = "j.id, s.id, s.namespace, s.path, j.state, j.reason, j.detail, j.priority, \
     j.attempts, j.generation, j.holder, j.since, j.until, j.enqueued_at, j.finished_at, j.slice, \
     j.slice_index, j.first_ordinal, j.first_part, j.last_ordinal, j.last_part, j.tokens";

fn read(row: &mut Columns<'_>) -> Result<StoredJob, Fault> {
    Ok(StoredJob {
        id: JobId(row.next()?),
        session: SessionId(row.next()?),
        namespace: row.next()?,
        path: row.next()?,
        state: row.named(JobState::of_name)?,
        reason: row.next()?,
        detail: row.next()?,
        priority: row.next()?,
        attempts: row.next()?,
        generation: row.next()?,
        holder: row.next()?,
        since: row.next()?,
        until: row.next()?,
        enqueued_at: row.next()?,
        finished_at: row.next()?,
        slice: SliceId(row.next()?),
        index: row.next()?,
        first: (row.next()?, row.next()?),
        last: (row.next()?, row.next()?),
        tokens: row.next()?,
    })
}

/// Parts of the table that have an index of their own, with the condition that leads to it; the last part has none
/// and is read from its beginning.
const PARTS: [(&str, &[JobState]); 3] = [
    ("j.finished_at IS NULL", &[JobState::Waiting, JobState::Ready, JobState::Leased]),
    ("j.state IN ('dead', 'cancelled')", &[JobState::Dead, JobState::Cancelled]),
    ("j.finished_at IS NOT NULL", &[JobState::Done, JobState::Cut]),
];

fn page(db: &mut Db, id: JobId) -> Result<Option<JobPage>, Fault> {
    let sql = format!(
        "SELECT {COLUMNS} FROM jobs j JOIN sessions s ON s.no = j.session_no WHERE j.id = ?1"
    );
    let Some(stored) = db.first(&sql, values![&id.0], read)? else { return Ok(None) };
    let sql = "SELECT r.id FROM jobs j JOIN runs r ON r.session_no = j.session_no
            AND r.first_ordinal = j.first_ordinal AND r.first_part = j.first_part
            AND r.slice = j.slice
        WHERE j.id = ?1 ORDER BY r.current DESC, r.no DESC LIMIT 1";
    let run = match db.first(sql, values![&id.0], |row| Ok(RunId(row.next()?)))? {
        Some(id) => run::find(db, id)?,
        None => None,
    };
    let session = session::find(db, stored.session)?;
    Ok(session.map(|session| JobPage { stored, session, run }))
}

/// Why entries of a job that was called off are skipped.
pub(crate) const CANCELLED: &str = "cancelled";
/// Jobs that one statement changes; more at once save nothing, and the values of a statement are bounded.
const JOBS_MAX: usize = 500;

/// Which jobs an order is about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum JobSelection {
    Ids(Vec<JobId>),
    Dead {
        /// Of this kind only, such as `refused`.
        kind: Option<String>,
        namespace: Option<String>,
    },
    Cancelled,
}

/// Effect of a command on one job.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JobChange {
    /// The job.
    pub id: JobId,
    /// Where it was; none if the queue does not have it.
    pub was: Option<JobState>,
    /// Why it was there: see [`StoredJob::reason`](super::StoredJob::reason).
    pub reason: Option<String>,
    /// True if the order was carried out. Where not, `was` says why: there was nothing to be done, or it cannot be
    /// done from there.
    pub done: bool,
}

impl Store {
    /// Makes jobs ready. Dead and cancelled ones are asked afresh, as if never tried, and what was said of their
    /// entries is taken back; waiting ones wait no longer. Leaves others as they are.
    pub(crate) async fn retry(
        &self,
        which: JobSelection,
        now: Timestamp,
    ) -> Result<Vec<JobChange>, StoreError> {
        self.write("retrying jobs", move |db: &mut Db| {
            let which = &which;
            let (found, gone) = meant(db, which)?;
            let waits = |it: &Target| it.state == JobState::Waiting;
            let waiting: Vec<&Target> = found.iter().filter(|it| waits(it)).collect();
            for target in waiting.iter().filter(|it| it.gathers()) {
                claim::close_gathering(db, target.session_no, target.ordinals)?;
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
        })
        .await
    }

    /// Calls open jobs off. Their entries are skipped, with the reason; who holds one finds the lease lost. Leaves
    /// others as they are.
    pub async fn cancel(
        &self,
        jobs: Vec<JobId>,
        now: Timestamp,
    ) -> Result<Vec<JobChange>, StoreError> {
        self.write("cancelling jobs", move |to| cancel(to, JobSelection::Ids(jobs.clone()), now))
            .await
    }

    /// Opens jobs again that died under another model, prompt or schema than `asking`.
    pub(crate) async fn reopen(&self, asking: Digest, now: Timestamp) -> Result<u64, StoreError> {
        self.write("opening dead jobs again", move |db: &mut Db| {
            let condition = format!("{DEAD} AND asking IS NOT NULL AND asking <> ?1");
            let dead = held(db, &condition, values![&asking])?;
            if dead.is_empty() {
                return Ok(0);
            }
            open_again(db, &dead.iter().collect::<Vec<_>>(), now)?;
            db.announce()?;
            Ok(dead.len() as u64)
        })
        .await
    }

    /// Forgets dead and cancelled jobs. What was said of their entries stays. Leaves others as they are.
    pub(crate) async fn drop_jobs(
        &self,
        which: JobSelection,
    ) -> Result<Vec<JobChange>, StoreError> {
        self.write("dropping jobs", move |db: &mut Db| {
            let which = &which;
            let (found, gone) = meant(db, which)?;
            let unwell: Vec<&Target> = found.iter().filter(|it| it.is_unwell()).collect();
            over(db, &unwell, None, |jobs, _| format!("DELETE FROM jobs AS j WHERE {jobs}"))?;
            Ok(told(found, gone, Target::is_unwell))
        })
        .await
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

const TARGET_COLUMNS: &str = "no, id, session_no, first_ordinal, last_ordinal, state, reason";
/// Condition of jobs that ended without an extraction; the first half selects the index.
const DEAD: &str = "state IN ('dead', 'cancelled') AND state = 'dead'";
const UNWELL: &str = "state IN ('dead', 'cancelled')";

fn read_target(row: &mut Columns<'_>) -> Result<Target, Fault> {
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
    let sql = format!("SELECT {TARGET_COLUMNS} FROM jobs WHERE {condition} ORDER BY no{locking}");
    db.all(&sql, values, read_target)
}

/// The jobs that are meant, in the order in which they were named; and those that are not there.
fn meant(db: &mut Db, which: &JobSelection) -> Result<(Vec<Target>, Vec<JobId>), Fault> {
    let found = match which {
        JobSelection::Ids(ids) => {
            let (mut found, mut gone) = (Vec::with_capacity(ids.len()), Vec::new());
            for id in ids {
                match held(db, "id = ?1", values![&id.0])?.pop() {
                    Some(target) => found.push(target),
                    None => gone.push(*id),
                }
            }
            return Ok((found, gone));
        }
        JobSelection::Cancelled => held(db, &format!("{UNWELL} AND state = 'cancelled'"), &[])?,
        JobSelection::Dead { kind: None, namespace: None } => held(db, DEAD, &[])?,
        JobSelection::Dead { kind: Some(kind), namespace: None } => {
            held(db, &format!("{DEAD} AND reason = ?1"), values![kind])?
        }
        JobSelection::Dead { kind: None, namespace: Some(namespace) } => {
            let lane = "lane IN (SELECT no FROM lanes WHERE namespace = ?1)";
            held(db, &format!("{DEAD} AND {lane}"), values![namespace])?
        }
        JobSelection::Dead { kind: Some(kind), namespace: Some(namespace) } => {
            let lane = "lane IN (SELECT no FROM lanes WHERE namespace = ?2)";
            held(db, &format!("{DEAD} AND reason = ?1 AND {lane}"), values![kind, namespace])?
        }
    };
    Ok((found, Vec::new()))
}

/// Runs a statement over jobs, so many at a time; `sql` makes it of the condition on `j` and of the place of the
/// value behind the last.
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

/// Effects of a command: done for the jobs that `done` selects, not for others nor for missing ones.
fn told(found: Vec<Target>, gone: Vec<JobId>, done: impl Fn(&Target) -> bool) -> Vec<JobChange> {
    let gone = gone.into_iter().map(|id| JobChange { id, was: None, reason: None, done: false });
    let found = found.into_iter().map(|it| {
        let done = done(&it);
        JobChange { id: it.id, was: Some(it.state), reason: it.reason, done }
    });
    found.chain(gone).collect()
}

/// Opens dead and cancelled jobs as if they had never been tried, but not as if never asked: the journal is not
/// consulted again.
fn open_again(db: &mut Db, targets: &[&Target], now: Timestamp) -> Result<(), Fault> {
    if targets.is_empty() {
        return Ok(());
    }
    // What was said of their entries is taken back: by runs that failed, and without a run. A cross join keeps SQLite
    // from beginning with another table than the jobs.
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
pub(in crate::store) fn outdo(db: &mut Db, session_no: i64, run: &Run) -> Result<(), Fault> {
    let sql = "UPDATE jobs SET state = 'done', reason = NULL, detail = NULL, since = ?6,
            finished_at = ?6, cut = '', context = NULL
        WHERE state IN ('dead', 'cancelled') AND session_no = ?1
            AND (?2, ?3) <= (first_ordinal, first_part) AND (last_ordinal, last_part) <= (?4, ?5)";
    let ((from, from_part), (to, to_part)) = (run.first, run.last);
    db.run(sql, values![session_no, from, from_part, to, to_part, run.finished_at])
}

/// An entry that is cut in parts stands in two jobs. Where one was opened and the other is still dead or cancelled,
/// what the other says of the entry holds.
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
            true => CoverageReason {
                state: CoverageState::Failed,
                reason: it.reason.as_deref().unwrap_or("dead"),
            },
            false => CoverageReason { state: CoverageState::Skipped, reason: CANCELLED },
        };
        entry::cover_open(db, it.session_no, it.ordinals, said)?;
    }
    Ok(())
}

fn cancel(db: &mut Db, which: JobSelection, now: Timestamp) -> Result<Vec<JobChange>, Fault> {
    let (found, gone) = meant(db, &which)?;
    let open: Vec<&Target> = found.iter().filter(|it| !it.state.is_final()).collect();
    for target in &open {
        if target.gathers() {
            // What the session grows by is cut after it, and does not bring it back.
            claim::close_gathering(db, target.session_no, target.ordinals)?;
        }
        let said = CoverageReason { state: CoverageState::Skipped, reason: CANCELLED };
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

#[cfg(test)]
#[path = "admin_tests.rs"]
mod admin_tests;
#[cfg(test)]
#[path = "jobs_tests.rs"]
mod jobs_tests;
