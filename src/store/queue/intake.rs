//! Intake: stores the new entries of a session and queues their jobs in one transaction.
//!
//! The jobs of one replay are a batch. A replay reads whole sessions, however far they were ingested
//! before. A job that is already queued joins the batch unchanged.

use crate::domain::{
    Digest, Entry, FINDINGS_MAX, Finding, Format, Job, JobId, JobState, Session, SessionId,
    SliceId, Timestamp, Wait,
};
use crate::privacy::Report;
use crate::store::{
    ConversationState, Db, Fault, Insert, Result, SessionProgress, Store, StoreErrorKind,
    StoreResult, Value, entry, json, session, values,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// New entries of a session, cut into jobs.
#[derive(Clone, Debug)]
pub struct Intake {
    /// The session.
    pub session: Session,
    /// Progress of the session when its slices were cut; the default for a new one.
    pub growth: SessionProgress,
    /// First entry that differs from the stored one, if finished slices changed. Slices from there
    /// on are no longer valid.
    pub anew: Option<u32>,
    /// Entries from `growth.taken` on, including those that gather and those in no slice.
    pub entries: Vec<Entry>,
    /// Current number of entries.
    pub known: u32,
    /// True if another intake follows directly: the last slice is full but the session does not end there.
    pub goes_on: bool,
    /// Slices that are complete.
    pub jobs: Vec<Job>,
    /// The last slice, if it waits for more entries.
    pub gathering: Option<Gathering>,
    /// Priority within the namespace; highest first.
    pub priority: i32,
    /// Digest of the submitted document, if any.
    pub document: Option<Digest>,
    /// Findings; rules and places, no conversation text.
    pub findings: Vec<Finding>,
    /// Redaction counts.
    pub masked: Report,
    /// New state of the conversation; `None` keeps the current one.
    pub remembered: Option<ConversationState>,
    /// Time of submission.
    pub at: Timestamp,
}

/// A slice that waits for more of its session.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Gathering {
    /// The slice so far.
    pub job: Job,
    /// Time at which it is extracted without waiting for more.
    pub until: Timestamp,
}

/// Effect of an intake.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct EnqueueResult {
    /// Number of new jobs.
    pub jobs: u32,
    /// Number of jobs that were already queued.
    pub known: u32,
    /// Number of new entries.
    pub entries: u32,
    /// True if the same document was submitted before; nothing was done.
    pub repeated: bool,
}

impl Store {
    /// Returns true if a document with this digest was submitted for the session.
    pub(crate) async fn was_submitted(
        &self,
        session: SessionId,
        document: Digest,
    ) -> StoreResult<bool> {
        self.read("looking for a document", move |db| was_submitted(db, session, document)).await
    }

    /// Returns the jobs that these entries of a session were queued as, each with whether it gathers: without halves of
    /// others, and without those of slices that changed since.
    pub(crate) async fn jobs_of_entries(
        &self,
        session: SessionId,
        ordinals: Range<u32>,
    ) -> StoreResult<Vec<(JobId, bool)>> {
        let sql = "SELECT j.id, coalesce(j.reason, '') = 'gathering', j.state = 'cut',
                j.last_ordinal, j.last_part
            FROM sessions s JOIN jobs j ON j.session_no = s.no
            WHERE s.id = ?1 AND j.first_ordinal < ?3 AND ?2 <= j.last_ordinal
                AND (j.state = 'cut' OR coalesce((SELECT max(r.current) FROM runs r
                    WHERE r.session_no = j.session_no AND r.first_ordinal = j.first_ordinal
                        AND r.slice = j.slice), 1) = 1)
            ORDER BY j.first_ordinal, j.first_part, j.no";
        let values = values![&session.0, ordinals.start, ordinals.end];
        let mut jobs: Vec<(_, _, bool, (u32, u32))> =
            self.all("reading the jobs of a session", sql, values).await?;
        let mut cut_to = None;
        jobs.retain(|(_, _, is_cut, last)| {
            let is_half = Some(*last) <= cut_to;
            cut_to = if *is_cut && !is_half { Some(*last) } else { cut_to };
            !is_half
        });
        Ok(jobs.into_iter().map(|(id, gathers, ..)| (id, gathers)).collect())
    }

    /// Ingests the growth of a session as jobs, atomically. What was ingested before is skipped.
    pub async fn enqueue(&self, intake: Intake) -> StoreResult<EnqueueResult> {
        self.write("taking in a session", move |db| write(db, &intake)).await
    }

    /// Ingests part of a session with its jobs in one transaction. Idempotent.
    pub(crate) async fn enqueue_part(&self, part: BatchPart) -> StoreResult<()> {
        self.write("taking in a session", move |to| write_part(to, &part)).await
    }

    /// Returns the session and slice of every job of a batch, and whether the job is open.
    pub(crate) async fn batch_slices(
        &self,
        batch: String,
    ) -> StoreResult<Vec<(SessionId, SliceId, bool)>> {
        let sql = "SELECT s.id, j.slice, j.finished_at IS NULL FROM batch_jobs b
            JOIN jobs j ON j.no = b.job_no JOIN sessions s ON s.no = j.session_no
            WHERE b.batch = ?1 ORDER BY b.job_no";
        self.all("reading the jobs of a batch", sql, values![&batch]).await
    }

    /// Deletes a batch, and its dead jobs whose failed runs already tell why. A job that another batch
    /// has too is left to it, since that batch counts it when it ends.
    pub(crate) async fn end_batch(&self, batch: String) -> StoreResult<()> {
        let end = move |to: &mut Db| {
            let sql = "DELETE FROM jobs WHERE state = 'dead' AND state IN ('dead', 'cancelled')
                AND no IN (SELECT job_no FROM batch_jobs WHERE batch = ?1)
                AND EXISTS (SELECT 1 FROM runs r WHERE r.session_no = jobs.session_no
                    AND r.slice = jobs.slice AND r.state = 'failed')
                AND NOT EXISTS (SELECT 1 FROM batch_jobs o
                    WHERE o.job_no = jobs.no AND o.batch <> ?1)";
            to.run(sql, values![&batch])?;
            to.run("DELETE FROM batch_jobs WHERE batch = ?1", values![&batch])
        };
        self.write("ending a batch", end).await
    }
}

/// Fails if the session has changed since `intake.growth` was read.
fn write(db: &mut Db, intake: &Intake) -> Result<EnqueueResult> {
    if let Some(document) = intake.document
        && was_submitted(db, intake.session.id, document)?
    {
        return Ok(EnqueueResult { repeated: true, ..EnqueueResult::default() });
    }
    let session_no = update_session(db, intake)?;
    if let Some(document) = &intake.document {
        let sql = "INSERT INTO handed (session_no, digest) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        db.run(sql, values![session_no, document])?;
    }
    if let Some(from) = intake.anew {
        invalidate_from(db, session_no, from)?;
    }
    if intake.growth.taken < intake.growth.entries {
        // Coverage of the gathering entries is rewritten below.
        let sql = "DELETE FROM coverage WHERE session_no = ?1 AND ?2 <= ordinal AND run_no = 0";
        db.run(sql, values![session_no, intake.growth.taken])?;
    }
    entry::write(db, session_no, &intake.entries)?;
    if intake.growth.intakes > 0 {
        end_gathering(db, session_no)?;
    }
    let lane = lane(db, &intake.session.namespace)?;
    let slot = JobSlot { session_no, lane, priority: intake.priority, at: intake.at, until: None };
    let added = insert(db, slot, &intake.jobs)?;
    if let Some(gathering) = &intake.gathering {
        let slot = JobSlot { until: Some(gathering.until), ..slot };
        insert(db, slot, std::slice::from_ref(&gathering.job))?;
    } else if !intake.goes_on {
        session::mark_end(db, session_no, intake.known)?;
    }
    if let Some(remembered) = &intake.remembered {
        session::remember(db, session_no, remembered)?;
    }
    session::mark_card_due(db, session_no)?;
    Ok(EnqueueResult {
        jobs: added,
        known: (intake.jobs.len() as u32).saturating_sub(added),
        entries: intake.known.saturating_sub(intake.growth.entries),
        repeated: false,
    })
}

fn was_submitted(db: &mut Db, session: SessionId, document: Digest) -> Result<bool> {
    let sql = "SELECT 1 FROM handed h JOIN sessions s ON s.no = h.session_no
        WHERE s.id = ?1 AND h.digest = ?2";
    db.exists(sql, values![&session.0, &document])
}

/// Updates the session and returns its row number.
fn update_session(db: &mut Db, intake: &Intake) -> Result<i64> {
    let based_on = intake.growth.intakes;
    let no = session::upsert(db, &intake.session, Some(based_on))?
        .ok_or(Fault::from(StoreErrorKind::Moved))?;
    let taken = intake.gathering.as_ref().map_or(intake.known, |it| it.job.first.0);
    let (findings, masked) = merged_findings(db, intake)?;
    let sql = "UPDATE sessions SET intakes = ?2, taken = ?3, entries = ?4, findings = ?5,
        masked = ?6, ended_at = ?7 WHERE no = ?1";
    db.run(sql, values![no, based_on + 1, taken, intake.known, &findings, &masked, intake.at])?;
    Ok(no)
}

/// Findings and redactions of the session. A file is read from the start each time and yields all
/// of them; a document adds to those of earlier documents.
fn merged_findings(db: &mut Db, intake: &Intake) -> Result<(String, String)> {
    let (mut findings, counts) = (Vec::new(), &intake.masked.counts);
    let mut masked: BTreeMap<String, u64> = BTreeMap::new();
    if intake.session.format == Format::Slice && intake.growth.intakes > 0 {
        let sql = "SELECT findings, masked FROM sessions WHERE id = ?1";
        let before: Option<(Option<_>, Option<_>)> =
            db.first(sql, values![&intake.session.id.0])?;
        let (before, hidden) = before.unwrap_or_default();
        (findings, masked) = (before.unwrap_or_default(), hidden.unwrap_or_default());
    }
    findings.extend(intake.findings.iter().cloned());
    findings.truncate(FINDINGS_MAX);
    for (rule, count) in counts {
        *masked.entry((*rule).to_owned()).or_default() += count;
    }
    Ok((json::<Vec<Finding>>(&findings)?, json(&masked)?))
}

/// Invalidates slices of entries that changed. Deletes open jobs, so that their workers lose the
/// lease, and session ends; marks runs as not current, as a replay does.
fn invalidate_from(db: &mut Db, session_no: i64, from: u32) -> Result<()> {
    for sql in [
        "DELETE FROM jobs WHERE session_no = ?1 AND finished_at IS NULL AND ?2 <= last_ordinal",
        "DELETE FROM jobs WHERE state IN ('dead', 'cancelled') AND session_no = ?1
            AND ?2 <= last_ordinal",
        "UPDATE runs SET current = 0 WHERE session_no = ?1 AND ?2 <= last_ordinal",
        "DELETE FROM session_ends WHERE session_no = ?1 AND ?2 < entries",
        "DELETE FROM coverage WHERE session_no = ?1 AND ?2 <= ordinal AND run_no = 0",
    ] {
        db.run(sql, values![session_no, from])?;
    }
    Ok(())
}

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

fn write_part(db: &mut Db, part: &BatchPart) -> Result<()> {
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
        db.run(sql, values![&part.batch, &job.job.id.0])?;
        retract_failed_runs(db, &job.job.id)?;
    }
    if let Some(end) = &part.end {
        // Marks the cut even if not all slices were queued: later growth starts a new slice here.
        session::mark_end(db, session_no, end.entries)?;
        if let Some(remembered) = &end.remembered {
            session::remember(db, session_no, remembered)?;
        }
        if let Some(card) = &end.card {
            session::write_card(db, session_no, end.entries, card)?;
        }
    }
    Ok(())
}

/// Returns the row of a namespace. A new namespace joins the round-robin at the back.
pub(super) fn lane(db: &mut Db, namespace: &str) -> Result<i64> {
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
pub(super) fn insert(db: &mut Db, slot: JobSlot, jobs: &[Job]) -> Result<u32> {
    const INTO: Insert = insert_jobs!(
        "priority = excluded.priority
        WHERE jobs.finished_at IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM coverage c LEFT JOIN runs r ON r.no = c.run_no
            WHERE c.session_no = jobs.session_no AND c.ordinal = jobs.first_ordinal
                AND (c.run_no = 0 OR r.current = 1))"
    );
    Ok(insert_into(db, INTO, slot, jobs.iter().map(|job| (job, None, 0)))? as u32)
}

/// Adds new jobs, and reopens those that ended without an extraction under `asking`. Open jobs stay
/// unchanged, since a worker may hold them.
pub(super) fn insert_batch(
    db: &mut Db,
    slot: JobSlot,
    jobs: &[BatchJob],
    asking: &Digest,
) -> Result<()> {
    const INTO: Insert = insert_jobs!(
        "asking = excluded.asking, generation = excluded.generation
        WHERE jobs.finished_at IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM runs r WHERE r.session_no = jobs.session_no
                AND r.slice = jobs.slice AND r.asking = excluded.asking AND r.state = 'done')"
    );
    let jobs = jobs.iter().map(|it| (&it.job, Some(asking), it.generation));
    insert_into(db, INTO, slot, jobs).map(drop)
}

/// Inserts jobs, each with its `asking` and generation.
fn insert_into<'a>(
    db: &mut Db,
    into: Insert,
    slot: JobSlot,
    jobs: impl Iterator<Item = (&'a Job, Option<&'a Digest>, u32)>,
) -> Result<u64> {
    let (state, reason) = match slot.until {
        Some(_) => (JobState::Waiting, Some(Wait::Gathering)),
        None => (JobState::Ready, None),
    };
    let mut rows: Vec<Value<'_>> = Vec::new();
    for (job, asking, generation) in jobs {
        rows.extend_from_slice(values![
            &job.id, slot.session_no, slot.lane, state, reason, slot.priority, slot.at, slot.until,
            slot.at, &job.slice, job.index, job.first.0, job.first.1, job.last.0, job.last.1,
            job.tokens, &job.cut, &job.context, asking, generation,
        ]);
    }
    db.insert(into, &rows)
}

/// Deletes the slice that is gathering entries.
pub(super) fn end_gathering(db: &mut Db, session_no: i64) -> Result<()> {
    let sql = "DELETE FROM jobs WHERE session_no = ?1 AND finished_at IS NULL
        AND state = 'waiting' AND reason = 'gathering'";
    db.run(sql, values![session_no])
}

/// Reverts the coverage by failed runs of an open job. The cross join makes SQLite start with the
/// jobs table.
pub(super) fn retract_failed_runs(db: &mut Db, open: &JobId) -> Result<()> {
    let sql = "UPDATE runs SET current = 0 WHERE no IN (
        SELECT r.no FROM jobs j CROSS JOIN runs r
        WHERE j.id = ?1 AND j.finished_at IS NULL AND r.session_no = j.session_no
            AND r.first_ordinal = j.first_ordinal AND r.first_part = j.first_part
            AND r.slice = j.slice AND r.state = 'failed' AND r.current = 1)";
    db.run(sql, values![&open.0])
}
