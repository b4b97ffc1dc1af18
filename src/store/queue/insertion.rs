//! Insertion of jobs into the queue.

use crate::domain::{Digest, Job, JobState, Timestamp, Wait};
use crate::store::db::Db;
use crate::store::error::{Fault, StoreErrorKind};
use crate::store::value::{Insert, Value, values};

/// Returns the row of a namespace. A new namespace joins the round-robin at the back.
pub(super) fn lane(db: &mut Db, namespace: &str) -> Result<i64, Fault> {
    let sql = "SELECT no FROM lanes WHERE namespace = ?1";
    if let Some(no) = db.first(sql, values![namespace])? {
        return Ok(no);
    }
    let sql = "INSERT INTO lanes (namespace) VALUES (?1)
        ON CONFLICT (namespace) DO UPDATE SET served = lanes.served RETURNING no";
    let no = db.first(sql, values![namespace])?;
    no.ok_or_else(|| StoreErrorKind::Other.into())
}

/// Row values shared by inserted jobs.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobSlot {
    pub(super) session_no: i64,
    pub(super) lane: i64,
    pub(super) priority: i32,
    pub(super) at: Timestamp,
    /// End of gathering; `None` makes the jobs ready.
    pub(super) until: Option<Timestamp>,
}

/// A job of a batch.
#[derive(Clone, Debug)]
pub(crate) struct BatchJob {
    pub(crate) job: Job,
    /// Generation of the next extraction of the slice.
    pub(crate) generation: u32,
}

/// Insert statement for jobs. Finished jobs are reopened under the condition at its end.
macro_rules! insert_jobs {
    ($more:literal) => {
        Insert {
            head: "INSERT INTO jobs (id, session_no, lane, state, reason, priority, since, until,
                enqueued_at, slice, slice_index, first_ordinal, first_part, last_ordinal,
                last_part, tokens, cut, context, asking, generation)",
            width: 20,
            tail: concat!(
                "ON CONFLICT (id) DO UPDATE SET state = excluded.state, reason = excluded.reason,
                    detail = NULL, since = excluded.since, until = excluded.until,
                    enqueued_at = excluded.enqueued_at, finished_at = NULL, attempts = 0,
                    slice_index = excluded.slice_index, cut = excluded.cut,
                    context = excluded.context, ",
                $more
            ),
        }
    };
}

/// Adds new jobs, and reopens finished ones whose entries are no longer covered.
pub(super) fn insert(db: &mut Db, slot: JobSlot, jobs: &[Job]) -> Result<u32, Fault> {
    const INTO: Insert = insert_jobs!(
        "priority = excluded.priority
        WHERE jobs.finished_at IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM coverage c LEFT JOIN runs r ON r.no = c.run_no
            WHERE c.session_no = jobs.session_no AND c.ordinal = jobs.first_ordinal
                AND (c.run_no = 0 OR r.current = 1))"
    );
    let mut rows = Vec::with_capacity(jobs.len() * INTO.width);
    for job in jobs {
        push(&mut rows, slot, job);
        rows.extend_from_slice(values![Value::Null, 0]);
    }
    Ok(db.insert(INTO, &rows)? as u32)
}

/// Adds new jobs, and reopens those that ended without an extraction under `asking`. Open jobs stay
/// unchanged, since a worker may hold them.
pub(super) fn insert_batch(
    db: &mut Db,
    slot: JobSlot,
    jobs: &[BatchJob],
    asking: &Digest,
) -> Result<(), Fault> {
    const INTO: Insert = insert_jobs!(
        "asking = excluded.asking, generation = excluded.generation
        WHERE jobs.finished_at IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM runs r WHERE r.session_no = jobs.session_no
                AND r.slice = jobs.slice AND r.asking = excluded.asking AND r.state = 'done')"
    );
    let mut rows = Vec::with_capacity(jobs.len() * INTO.width);
    for BatchJob { job, generation } in jobs {
        push(&mut rows, slot, job);
        rows.extend_from_slice(values![asking, *generation]);
    }
    db.insert(INTO, &rows).map(drop)
}

fn push<'a>(rows: &mut Vec<Value<'a>>, slot: JobSlot, job: &'a Job) {
    let state = if slot.until.is_some() { JobState::Waiting } else { JobState::Ready };
    rows.extend_from_slice(values![
        &job.id.0,
        slot.session_no,
        slot.lane,
        state.name(),
        slot.until.map(|_| Wait::Gathering.name()),
        slot.priority,
        slot.at,
        slot.until,
        slot.at,
        &job.slice.0,
        job.index,
        job.first.0,
        job.first.1,
        job.last.0,
        job.last.1,
        job.tokens,
        &job.cut,
        job.context.as_ref(),
    ]);
}

/// Deletes the slice that is gathering entries.
pub(super) fn end_gathering(db: &mut Db, session_no: i64) -> Result<(), Fault> {
    let sql = "DELETE FROM jobs WHERE session_no = ?1 AND finished_at IS NULL
        AND state = 'waiting' AND reason = 'gathering'";
    db.run(sql, values![session_no])
}
