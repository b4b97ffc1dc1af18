//! Jobs as a person looks at them: listed by state and age, and one with all that is known of it.

use super::super::db::{Columns, Db, Value, values};
use super::super::error::Fault;
use super::super::prefix;
use super::super::{Found, IdPrefix, Store, StoreError, StoredRun, run, session};
use crate::domain::{
    Digest, JobId, JobState, RunId, Session, SessionId, SliceId, Timestamp, Tokens, Wait,
};

/// Which jobs to list. The default is every one that is open or dead.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct JobFilter {
    /// In these states; none named means waiting, ready, leased and dead.
    pub states: Vec<JobState>,
    /// Of this namespace only.
    pub namespace: Option<String>,
    /// Of sessions whose id begins so.
    pub session: Option<IdPrefix>,
    /// This many at most, the oldest.
    pub limit: Option<u32>,
}

/// A job in the queue.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoredJob {
    /// Its id.
    pub id: JobId,
    /// Its conversation.
    pub session: SessionId,
    /// Whose memory it becomes.
    pub namespace: String,
    /// The file of its session; empty if it was handed over without one.
    pub path: String,
    /// Where it is.
    pub state: JobState,
    /// Why it waits, by the name of a [`Wait`], or the kind of what it died of.
    pub reason: Option<String>,
    /// The same in a sentence.
    pub detail: Option<String>,
    /// The highest goes first, within its namespace.
    pub priority: i32,
    /// Claims that were charged.
    pub attempts: u32,
    /// 0, and one more each time it was opened again.
    pub generation: u32,
    /// Who claimed it last.
    pub holder: Option<String>,
    /// When its state was written last; of a lease, when it was extended.
    pub since: Timestamp,
    /// The end of its wait or of its lease.
    pub until: Option<Timestamp>,
    /// When it was handed over.
    pub enqueued_at: Timestamp,
    /// When it ended; none while it is open.
    pub finished_at: Option<Timestamp>,
    /// What is to be extracted.
    pub slice: SliceId,
    /// Its place among the session's slices, from 0.
    pub index: u32,
    /// Where it begins: the entry's ordinal and its part.
    pub first: (u32, u32),
    /// Where it ends, inclusive.
    pub last: (u32, u32),
    /// Estimated tokens of its text.
    pub tokens: Tokens,
}

impl StoredJob {
    /// What it waits for, if it waits.
    pub fn wait(&self) -> Option<Wait> {
        match self.state {
            JobState::Waiting => self.reason.as_deref().and_then(Wait::of_name),
            JobState::Ready
            | JobState::Leased
            | JobState::Done
            | JobState::Cut
            | JobState::Dead
            | JobState::Cancelled => None,
        }
    }
}

/// A job with everything that is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPage {
    /// The job.
    pub stored: StoredJob,
    /// Its conversation.
    pub session: Session,
    /// The latest extraction of its slice, if there was one.
    pub run: Option<StoredRun>,
}

impl Store {
    /// Jobs of a filter, the oldest first.
    pub async fn jobs(&self, filter: JobFilter) -> Result<Vec<StoredJob>, StoreError> {
        self.read("reading jobs", move |from: &mut Db| list(from, &filter)).await
    }

    /// The job whose id begins so.
    pub async fn job(&self, prefix: IdPrefix) -> Result<Found<JobPage, JobId>, StoreError> {
        let read = move |from: &mut Db| {
            Ok(match ids(from, &prefix)? {
                Found::None => Found::None,
                Found::Many(ids) => Found::Many(ids),
                Found::One(id) => {
                    page(from, *id)?.map_or(Found::None, |page| Found::One(Box::new(page)))
                }
            })
        };
        self.read("looking up a job", read).await
    }

    /// The whole id of the job whose id begins so.
    pub async fn job_id(&self, prefix: IdPrefix) -> Result<Found<JobId, JobId>, StoreError> {
        self.look("looking up a job", move |from| ids(from, &prefix)).await
    }
}

fn ids(db: &mut Db, prefix: &IdPrefix) -> Result<Found<JobId, JobId>, Fault> {
    prefix::find(db, "jobs", prefix, (JobId, |_, id: Digest| Ok(Some(JobId(id)))))
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

/// Parts of the table that have an index of their own, with the condition that leads to it; the last
/// part has none and is read from its beginning.
const PARTS: [(&str, &[JobState]); 3] = [
    ("j.finished_at IS NULL", &[JobState::Waiting, JobState::Ready, JobState::Leased]),
    ("j.state IN ('dead', 'cancelled')", &[JobState::Dead, JobState::Cancelled]),
    ("j.finished_at IS NOT NULL", &[JobState::Done, JobState::Cut]),
];

fn list(db: &mut Db, filter: &JobFilter) -> Result<Vec<StoredJob>, Fault> {
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
}

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

#[cfg(test)]
#[path = "jobs_test.rs"]
mod tests;
