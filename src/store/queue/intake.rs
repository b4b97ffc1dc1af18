//! Intake: the new entries of a session become entries and jobs in one transaction.

use super::super::db::{Db, Insert, Value, json, values};
use super::super::entry::{self, CoveredEntry};
use super::super::error::{Fault, StoreError, StoreErrorKind};
use super::super::handle::Store;
use super::super::session::{self, ConversationState, SessionProgress};
use crate::domain::{
    CoverageState, Digest, Entry, FINDINGS_MAX, Finding, Format, Job, JobState, Session, SessionId,
    Timestamp, Wait,
};
use crate::privacy::Report;
use std::collections::BTreeMap;

/// New entries of a session, cut into jobs.
#[derive(Clone, Debug)]
pub struct Intake {
    /// The session.
    pub session: Session,
    /// Progress of the session when its slices were cut; the default for one that is new.
    pub growth: SessionProgress,
    /// The first entry that is no longer what the store has, if what is cut for good has changed: what was cut of
    /// that one and of those behind it counts no longer.
    pub anew: Option<u32>,
    /// Its entries from `growth.taken` on, also those that gather and those in no slice.
    pub entries: Vec<Entry>,
    /// Entries that it has now.
    pub known: u32,
    /// More of it follows in another intake: it does not end after these entries, its last slice was simply full.
    pub goes_on: bool,
    /// Slices that are cut for good.
    pub jobs: Vec<Job>,
    /// The last slice, if it waits for more.
    pub gathering: Option<Gathering>,
    /// The highest goes first, within its namespace.
    pub priority: i32,
    /// The digest of the document that was handed over, if one was.
    pub document: Option<Digest>,
    /// Findings; rules and places, no words.
    pub findings: Vec<Finding>,
    /// Counts of what was redacted in it.
    pub masked: Report,
    /// State of the conversation from now on; `None` leaves it as it is.
    pub remembered: Option<ConversationState>,
    /// When it was handed over.
    pub at: Timestamp,
}

/// A slice that waits for more of its session.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Gathering {
    /// The slice so far.
    pub job: Job,
    /// When it is asked about as it is.
    pub until: Timestamp,
}

/// Effect of an intake.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct EnqueueResult {
    /// Jobs that are new.
    pub jobs: u32,
    /// Jobs that the queue had already.
    pub known: u32,
    /// Entries that the store had not.
    pub entries: u32,
    /// True if the session's last slice waits for more.
    pub gathers: bool,
    /// The very document was handed over before; nothing was done.
    pub repeated: bool,
}

impl Store {
    /// Returns true if a document of this digest was handed over for a session.
    pub(crate) async fn was_handed(
        &self,
        session: SessionId,
        document: Digest,
    ) -> Result<bool, StoreError> {
        self.read("looking for a document", move |from: &mut Db| {
            was_handed(from, session, document)
        })
        .await
    }

    /// Takes in what a session grew by, as jobs. All of it or none; what was taken in before is not taken in again.
    pub async fn enqueue(&self, intake: Intake) -> Result<EnqueueResult, StoreError> {
        let take_in =
            move |to: &mut Db| write(to, &intake)?.ok_or_else(|| StoreErrorKind::Moved.into());
        self.write("taking in a session", take_in).await
    }

    /// As [`Store::enqueue`], many in one transaction: of different sessions, or one after another of the same. None
    /// stands for one whose session moved; it keeps no other from being taken in.
    pub async fn enqueue_all(
        &self,
        intakes: Vec<Intake>,
    ) -> Result<Vec<Option<EnqueueResult>>, StoreError> {
        let take_in = move |to: &mut Db| intakes.iter().map(|intake| write(to, intake)).collect();
        self.write("taking in sessions", take_in).await
    }
}

/// Takes `intake` in; none if the session is no longer as `intake.growth` says, and then nothing is written.
pub(super) fn write(db: &mut Db, intake: &Intake) -> Result<Option<EnqueueResult>, Fault> {
    if let Some(document) = intake.document
        && was_handed(db, intake.session.id, document)?
    {
        return Ok(Some(EnqueueResult { repeated: true, ..EnqueueResult::default() }));
    }
    let Some(session_no) = touch(db, intake)? else { return Ok(None) };
    if let Some(document) = &intake.document {
        let sql = "INSERT INTO handed (session_no, digest) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        db.execute(sql, values![session_no, document])?;
    }
    if let Some(from) = intake.anew {
        forget(db, session_no, from)?;
    }
    if intake.growth.taken < intake.growth.entries {
        // What gathers is said anew below.
        let sql = "DELETE FROM coverage WHERE session_no = ?1 AND ?2 <= ordinal AND run_no = 0";
        db.execute(sql, values![session_no, intake.growth.taken])?;
    }
    write_entries(db, session_no, intake)?;
    if intake.growth.intakes > 0 {
        let sql = "DELETE FROM jobs WHERE session_no = ?1 AND finished_at IS NULL
            AND state = 'waiting' AND reason = 'gathering'";
        db.execute(sql, values![session_no])?;
    }
    let lane = lane(db, &intake.session.namespace)?;
    let place = Place { session_no, lane, priority: intake.priority, at: intake.at };
    let jobs: Vec<&Job> = intake.jobs.iter().collect();
    let added = insert(db, place, &jobs, None)?;
    if let Some(gathering) = &intake.gathering {
        insert(db, place, &[&gathering.job], Some(gathering.until))?;
    } else if !intake.goes_on {
        session::mark_end_of(db, session_no, intake.known)?;
    }
    if let Some(remembered) = &intake.remembered {
        session::remember(db, session_no, remembered)?;
    }
    session::card_is_due(db, session_no)?;
    db.announce()?;
    Ok(Some(EnqueueResult {
        jobs: added,
        known: (intake.jobs.len() as u32).saturating_sub(added),
        entries: intake.known.saturating_sub(intake.growth.entries),
        gathers: intake.gathering.is_some(),
        repeated: false,
    }))
}

pub(super) fn was_handed(db: &mut Db, session: SessionId, document: Digest) -> Result<bool, Fault> {
    let sql = "SELECT 1 FROM handed h JOIN sessions s ON s.no = h.session_no
        WHERE s.id = ?1 AND h.digest = ?2";
    let found = db.first(sql, values![&session.0, &document], |row| row.next::<i64>())?;
    Ok(found.is_some())
}

/// The session's row, made or brought up to date; none if somebody else took in more of it.
fn touch(db: &mut Db, intake: &Intake) -> Result<Option<i64>, Fault> {
    let (session, based_on) = (&intake.session, intake.growth.intakes);
    let taken = intake.gathering.as_ref().map_or(intake.known, |it| it.job.first.0);
    let (findings, masked) = told(db, intake)?;
    let sql = "INSERT INTO sessions (id, namespace, format, native_id, path, title, cwd, parent,
            started_at, intakes, taken, entries, findings, masked, ended_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
        ON CONFLICT (id) DO UPDATE SET path = excluded.path,
            title = coalesce(excluded.title, sessions.title),
            cwd = coalesce(excluded.cwd, sessions.cwd),
            parent = coalesce(excluded.parent, sessions.parent),
            started_at = coalesce(sessions.started_at, excluded.started_at),
            intakes = excluded.intakes, taken = excluded.taken, entries = excluded.entries,
            findings = excluded.findings, masked = excluded.masked, ended_at = excluded.ended_at
            WHERE sessions.intakes = ?16
        RETURNING no";
    let row = values![
        &session.id.0,
        &session.namespace,
        session.format.name(),
        &session.native_id,
        &session.path,
        session.title.as_ref(),
        session.cwd.as_ref(),
        session.parent.as_ref(),
        session.started_at,
        based_on + 1,
        taken,
        intake.known,
        &findings,
        &masked,
        intake.at,
        based_on,
    ];
    db.first(sql, row, |row| row.next())
}

/// Findings and redactions of the session: a file is read from its beginning each time and tells all of it, a document adds to
/// what those before it told.
fn told(db: &mut Db, intake: &Intake) -> Result<(String, String), Fault> {
    let (mut findings, counts) = (Vec::new(), &intake.masked.counts);
    let mut masked: BTreeMap<String, u64> = BTreeMap::new();
    if intake.session.format == Format::Slice && intake.growth.intakes > 0 {
        let sql = "SELECT findings, masked FROM sessions WHERE id = ?1";
        let before = db.first(sql, values![&intake.session.id.0], |row| {
            Ok((row.json_if()?.unwrap_or_default(), row.json_if()?.unwrap_or_default()))
        })?;
        (findings, masked) = before.unwrap_or_default();
    }
    findings.extend(intake.findings.iter().cloned());
    findings.truncate(FINDINGS_MAX);
    for (rule, count) in counts {
        *masked.entry((*rule).to_owned()).or_default() += count;
    }
    Ok((json::<Vec<Finding>>(&findings)?, json(&masked)?))
}

/// Withdraws what was cut of entries that have changed: jobs go, so that who works on one finds the lease lost;
/// runs no longer count, as those that a replay replaces; places where it ended go.
fn forget(db: &mut Db, session_no: i64, from: u32) -> Result<(), Fault> {
    for sql in [
        "DELETE FROM jobs WHERE session_no = ?1 AND finished_at IS NULL AND ?2 <= last_ordinal",
        "DELETE FROM jobs WHERE state IN ('dead', 'cancelled') AND session_no = ?1
            AND ?2 <= last_ordinal",
        "UPDATE runs SET current = 0 WHERE session_no = ?1 AND ?2 <= last_ordinal",
        "DELETE FROM session_ends WHERE session_no = ?1 AND ?2 < entries",
        "DELETE FROM coverage WHERE session_no = ?1 AND ?2 <= ordinal AND run_no = 0",
    ] {
        db.execute(sql, values![session_no, from])?;
    }
    Ok(())
}

/// Entries in no slice are accounted for at once; the others when their job ends.
fn write_entries(db: &mut Db, session_no: i64, intake: &Intake) -> Result<(), Fault> {
    entry::write_texts(db, session_no, intake.entries.iter())?;
    if intake.entries.iter().all(|entry| entry.skip.is_none()) {
        return Ok(());
    }
    let state = CoverageState::Skipped;
    let reason = |entry: &Entry| entry.skip.map(|skip| skip.name().to_owned());
    let skipped: Vec<CoveredEntry> = (intake.entries.iter().filter(|entry| entry.skip.is_some()))
        .map(|entry| CoveredEntry { entry: entry.clone(), state, reason: reason(entry) })
        .collect();
    entry::cover(db, session_no, entry::NO_RUN, &skipped)
}

/// The row of a namespace. A new one is served as if it had waited since the last who was.
pub(super) fn lane(db: &mut Db, namespace: &str) -> Result<i64, Fault> {
    let sql = "SELECT no FROM lanes WHERE namespace = ?1";
    if let Some(no) = db.first(sql, values![namespace], |row| row.next())? {
        return Ok(no);
    }
    let sql = "INSERT INTO lanes (namespace) VALUES (?1)
        ON CONFLICT (namespace) DO UPDATE SET served = lanes.served RETURNING no";
    let no = db.first(sql, values![namespace], |row| row.next())?;
    no.ok_or_else(|| StoreErrorKind::Other.into())
}

/// Where jobs are put.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) session_no: i64,
    pub(super) lane: i64,
    pub(super) priority: i32,
    pub(super) at: Timestamp,
}

/// Adds jobs that the queue does not have; ready, or gathering until a time.
pub(super) fn insert(
    db: &mut Db,
    place: Place,
    jobs: &[&Job],
    until: Option<Timestamp>,
) -> Result<u32, Fault> {
    const INTO: Insert = Insert {
        head: "INSERT INTO jobs (id, session_no, lane, state, reason, priority, since, until,
            enqueued_at, slice, slice_index, first_ordinal, first_part, last_ordinal, last_part,
            tokens, cut, context)",
        width: 18,
        tail: "ON CONFLICT (id) DO UPDATE SET
            state = excluded.state, reason = excluded.reason, detail = NULL,
            priority = excluded.priority, since = excluded.since, until = excluded.until,
            enqueued_at = excluded.enqueued_at, finished_at = NULL, attempts = 0,
            slice_index = excluded.slice_index, cut = excluded.cut,
            context = excluded.context
            WHERE jobs.finished_at IS NOT NULL AND NOT EXISTS (
                SELECT 1 FROM coverage c LEFT JOIN runs r ON r.no = c.run_no
                WHERE c.session_no = jobs.session_no AND c.ordinal = jobs.first_ordinal
                    AND (c.run_no = 0 OR r.current = 1))",
    };
    let state = if until.is_some() { JobState::Waiting } else { JobState::Ready };
    let reason = until.map(|_| Wait::Gathering.name());
    let mut rows: Vec<Value<'_>> = Vec::with_capacity(jobs.len() * INTO.width);
    for job in jobs {
        rows.extend_from_slice(values![
            &job.id.0,
            place.session_no,
            place.lane,
            state.name(),
            reason,
            place.priority,
            place.at,
            until,
            place.at,
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
    Ok(db.insert(INTO, &rows)? as u32)
}
