//! Batches: the jobs of one replay. A replay reads whole sessions, however far they were ingested
//! before. A job that is already queued joins the batch unchanged.

use super::insertion::{BatchJob, JobSlot, end_gathering, insert_batch, lane};
use super::stats::{self, RemainingJobs};
use crate::domain::{Digest, Entry, Session, SessionId, SliceId, Timestamp};
use crate::store::db::Db;
use crate::store::error::{Fault, StoreError};
use crate::store::handle::Store;
use crate::store::session::{self, ConversationState};
use crate::store::value::values;
use crate::store::{card, entry};

/// The next entries and jobs of a session that is being replayed.
#[derive(Clone, Debug)]
pub(crate) struct BatchPart {
    pub(crate) batch: String,
    pub(crate) session: Session,
    /// True for the first part of a session.
    pub(crate) begins: bool,
    pub(crate) entries: Vec<Entry>,
    pub(crate) jobs: Vec<BatchJob>,
    /// Digest of model, prompt and schema; a job that ended under another one is reopened.
    pub(crate) asking: Digest,
    /// End of the session; set in its last part.
    pub(crate) end: Option<PartEnd>,
    pub(crate) at: Timestamp,
}

/// End of a session that was read completely.
#[derive(Clone, Debug)]
pub(crate) struct PartEnd {
    pub(crate) entries: u32,
    pub(crate) remembered: Option<ConversationState>,
    /// The memory card, as JSON.
    pub(crate) card: Option<String>,
}

impl Store {
    /// Ingests part of a session with its jobs in one transaction. Idempotent.
    pub(crate) async fn enqueue_part(&self, part: BatchPart) -> Result<(), StoreError> {
        self.write("taking in a session", move |to| write(to, &part)).await
    }

    /// Returns the open jobs of a batch, and the number of its jobs that died at `since` or later.
    pub(crate) async fn left_of(
        &self,
        batch: String,
        since: Timestamp,
    ) -> Result<RemainingJobs, StoreError> {
        self.read("counting what is left", move |from| stats::remaining(from, since, Some(&batch)))
            .await
    }

    /// Returns the session and slice of every job of a batch, and whether the job is open.
    pub(crate) async fn batch_slices(
        &self,
        batch: String,
    ) -> Result<Vec<(SessionId, SliceId, bool)>, StoreError> {
        let sql = "SELECT s.id, j.slice, j.finished_at IS NULL FROM batch_jobs b
            JOIN jobs j ON j.no = b.job_no JOIN sessions s ON s.no = j.session_no
            WHERE b.batch = ?1 ORDER BY b.job_no";
        self.all("reading the jobs of a batch", sql, values![&batch]).await
    }

    /// Deletes a batch, and its dead jobs whose failed runs already tell why.
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
    let session_no = match part.begins {
        true => session::begin(db, &part.session)?,
        false => session::number(db, part.session.id)?,
    };
    if part.begins {
        // The new slices include the entries that were gathering.
        end_gathering(db, session_no)?;
    }
    entry::write(db, session_no, &part.entries)?;
    let lane = lane(db, &part.session.namespace)?;
    let slot = JobSlot { session_no, lane, priority: 0, at: part.at, until: None };
    insert_batch(db, slot, &part.jobs, &part.asking)?;
    for job in &part.jobs {
        let sql = "INSERT INTO batch_jobs (batch, job_no) SELECT ?1, no FROM jobs WHERE id = ?2
            ON CONFLICT DO NOTHING";
        db.execute(sql, values![&part.batch, &job.job.id.0])?;
    }
    if let Some(end) = &part.end {
        // Marks the cut even if not all slices were queued: later growth starts a new slice here.
        session::mark_end(db, session_no, end.entries)?;
        if let Some(remembered) = &end.remembered {
            session::remember(db, session_no, remembered)?;
        }
        if let Some(card) = &end.card {
            card::write(db, session_no, end.entries, card)?;
        }
    }
    db.announce()
}
