//! Batches: the jobs of one replay. A replay reads whole sessions and does not care how far they were
//! taken in before; a job that the queue has already joins the batch as it is.

use super::super::db::{Db, Insert, Value, values};
use super::super::entry::{self, CoveredEntry};
use super::super::error::Fault;
use super::super::error::StoreError;
use super::super::handle::Store;
use super::super::session::{self, ConversationState};
use super::intake;
use super::stats::{self, RemainingJobs};
use crate::domain::{
    CoverageState, Digest, Entry, Job, JobState, Session, SessionId, SliceId, Timestamp, Wait,
};

/// A job of a batch.
#[derive(Clone, Debug)]
pub(crate) struct BatchJob {
    pub(crate) job: Job,
    /// How often the slice is asked afresh beyond its last run.
    pub(crate) generation: u32,
}

/// The next entries and jobs of a session that a replay reads.
#[derive(Clone, Debug)]
pub(crate) struct BatchPart {
    pub(crate) batch: String,
    pub(crate) session: Session,
    /// Whether it is the first of its session.
    pub(crate) begins: bool,
    pub(crate) entries: Vec<Entry>,
    pub(crate) jobs: Vec<BatchJob>,
    /// How the jobs are asked about: one that ended in another way is opened again.
    pub(crate) asking: Digest,
    /// What is known at the end of the session, in its last part.
    pub(crate) end: Option<PartEnd>,
    pub(crate) at: Timestamp,
}

/// What is known of a session once all of it was read.
#[derive(Clone, Debug)]
pub(crate) struct PartEnd {
    pub(crate) entries: u32,
    pub(crate) remembered: Option<ConversationState>,
    /// The memory card, as JSON.
    pub(crate) card: Option<String>,
}

impl Store {
    /// Takes in a part of a session with its jobs, in one transaction. Twice is the same as once.
    pub(crate) async fn enqueue_part(&self, part: BatchPart) -> Result<(), StoreError> {
        self.write("taking in a session", move |to| write(to, &part)).await
    }

    /// What is left of a batch; of its dead jobs, those that died at `since` or later.
    pub(crate) async fn left_of(
        &self,
        batch: String,
        since: Timestamp,
    ) -> Result<RemainingJobs, StoreError> {
        self.read("counting what is left", move |from| stats::remaining(from, since, Some(&batch)))
            .await
    }

    /// Every job of a batch: its session, its slice, and whether it is open.
    pub(crate) async fn batch_slices(
        &self,
        batch: String,
    ) -> Result<Vec<(SessionId, SliceId, bool)>, StoreError> {
        self.read("reading the jobs of a batch", move |from| slices(from, &batch)).await
    }

    /// Forgets which jobs were in a batch, and those of them that died: their runs tell why.
    pub(crate) async fn end_batch(&self, batch: String) -> Result<(), StoreError> {
        let end = move |to: &mut Db| {
            let sql = "DELETE FROM jobs WHERE state = 'dead' AND state IN ('dead', 'cancelled')
                AND no IN (SELECT job_no FROM batch_jobs WHERE batch = ?1)
                AND EXISTS (SELECT 1 FROM runs r WHERE r.session_no = jobs.session_no
                    AND r.slice = jobs.slice AND r.state = 'failed')";
            to.execute(sql, values![&batch])?;
            to.run("DELETE FROM batch_jobs WHERE batch = ?1", values![&batch])
        };
        self.write("ending a batch", end).await
    }
}

fn write(db: &mut Db, part: &BatchPart) -> Result<(), Fault> {
    if part.begins {
        session::begin(db, &part.session)?;
    }
    let session_no = session::number(db, part.session.id)?;
    if part.begins {
        end_gathering(db, session_no)?;
    }
    write_entries(db, session_no, &part.entries)?;
    let lane = intake::lane(db, &part.session.namespace)?;
    insert(db, session_no, lane, part)?;
    for job in &part.jobs {
        let sql = "INSERT INTO batch_jobs (batch, job_no) SELECT ?1, no FROM jobs WHERE id = ?2
            ON CONFLICT DO NOTHING";
        db.execute(sql, values![&part.batch, &job.job.id.0])?;
    }
    if let Some(end) = &part.end {
        // What grows later is cut here all the same, also where this session is not asked about to its end.
        session::mark_end_of(db, session_no, end.entries)?;
        if let Some(remembered) = &end.remembered {
            session::remember(db, session_no, remembered)?;
        }
        if let Some(card) = &end.card {
            session::write_card(db, session_no, end.entries, card)?;
        }
    }
    db.announce()
}

/// What gathered for more of the session is in the slices that follow.
fn end_gathering(db: &mut Db, session_no: i64) -> Result<(), Fault> {
    let sql = "DELETE FROM jobs WHERE session_no = ?1 AND finished_at IS NULL
        AND state = 'waiting' AND reason = ?2";
    db.run(sql, values![session_no, Wait::Gathering.name()])
}

/// Writes texts, and of entries in no slice why. What is said of these now replaces what was said before.
fn write_entries(db: &mut Db, session_no: i64, entries: &[Entry]) -> Result<(), Fault> {
    entry::write_texts(db, session_no, entries.iter())?;
    let mut skipped = Vec::new();
    for entry in entries.iter().filter(|entry| entry.skip.is_some()) {
        entry::uncover(db, session_no, entry::NO_RUN, (entry.ordinal, entry.ordinal))?;
        let reason = entry.skip.map(|skip| skip.name().to_owned());
        skipped.push(CoveredEntry { entry: entry.clone(), state: CoverageState::Skipped, reason });
    }
    match skipped.is_empty() {
        true => Ok(()),
        false => entry::cover(db, session_no, entry::NO_RUN, &skipped),
    }
}

/// Adds jobs that the queue does not have, and opens those again that ended without an extraction in
/// this way of asking. Others stay as they are: a worker may be at them.
fn insert(db: &mut Db, session_no: i64, lane: i64, part: &BatchPart) -> Result<(), Fault> {
    const INTO: Insert = Insert {
        head: "INSERT INTO jobs (id, session_no, lane, state, priority, since, enqueued_at, slice,
            slice_index, first_ordinal, first_part, last_ordinal, last_part, tokens, cut, context,
            asking, generation)",
        width: 18,
        tail: "ON CONFLICT (id) DO UPDATE SET
            state = excluded.state, reason = NULL, detail = NULL, since = excluded.since,
            until = NULL, enqueued_at = excluded.enqueued_at, finished_at = NULL, attempts = 0,
            slice_index = excluded.slice_index, cut = excluded.cut, context = excluded.context,
            asking = excluded.asking, generation = excluded.generation
            WHERE jobs.finished_at IS NOT NULL AND NOT EXISTS (
                SELECT 1 FROM runs r WHERE r.session_no = jobs.session_no
                    AND r.slice = jobs.slice AND r.asking = excluded.asking AND r.state = 'done')",
    };
    let mut rows: Vec<Value<'_>> = Vec::with_capacity(part.jobs.len() * INTO.width);
    for BatchJob { job, generation } in &part.jobs {
        rows.extend_from_slice(values![
            &job.id.0,
            session_no,
            lane,
            JobState::Ready.name(),
            0,
            part.at,
            part.at,
            &job.slice.0,
            job.index,
            job.first.0,
            job.first.1,
            job.last.0,
            job.last.1,
            job.tokens,
            &job.cut,
            job.context.as_ref(),
            &part.asking,
            *generation,
        ]);
    }
    if rows.is_empty() {
        return Ok(());
    }
    db.insert(INTO, &rows).map(|_| ())
}

fn slices(db: &mut Db, batch: &str) -> Result<Vec<(SessionId, SliceId, bool)>, Fault> {
    let sql = "SELECT s.id, j.slice, j.finished_at IS NULL FROM batch_jobs b
        JOIN jobs j ON j.no = b.job_no JOIN sessions s ON s.no = j.session_no
        WHERE b.batch = ?1 ORDER BY b.job_no";
    db.all(sql, values![batch], |row| {
        Ok((SessionId(row.next()?), SliceId(row.next()?), row.next()?))
    })
}
