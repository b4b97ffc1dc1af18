//! Intake: what a session grew by becomes entries and jobs, in one transaction.

use super::super::db::{Db, Insert, Value, json, values};
use super::super::error::{Fault, StoreErrorKind};
use super::super::{Covered, entry, session};
use crate::domain::{
    CoverageState, Digest, Entry, Finding, Job, JobState, Session, SessionId, Timestamp, Wait,
};
use crate::privacy::Report;

/// How far a session was taken in.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Growth {
    /// Grows with every intake; an [`Intake`] says which one it is based on.
    pub intakes: u64,
    /// Entries before this one are in slices that are cut for good, or in none.
    pub taken: u32,
    /// Entries that are known in all; those from `taken` on gather.
    pub entries: u32,
    /// The place of the next slice among the session's slices.
    pub next_index: u32,
    /// How many entries it had each time a slice ended because the session did.
    pub ends: Vec<u32>,
    /// The file it was last read from.
    pub path: String,
}

/// What a session grew by.
#[derive(Clone, Debug)]
pub struct Intake {
    /// The session.
    pub session: Session,
    /// What it was when its slices were cut; the default for one that is new.
    pub growth: Growth,
    /// Its entries from `growth.taken` on, also those that gather and those in no slice.
    pub entries: Vec<Entry>,
    /// Entries that it has now.
    pub known: u32,
    /// Slices that are cut for good.
    pub jobs: Vec<Job>,
    /// The last slice, if it waits for more.
    pub gathering: Option<Gathering>,
    /// The highest goes first, within its namespace.
    pub priority: i32,
    /// The digest of the document that was handed over, if one was.
    pub document: Option<Digest>,
    /// What was wrong with it; rules and places, no words.
    pub findings: Vec<Finding>,
    /// What the gate masked in it.
    pub masked: Report,
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

/// What an intake did.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Enqueued {
    /// Jobs that are new.
    pub jobs: u32,
    /// Jobs that the queue had already.
    pub known: u32,
    /// Entries that the store had not.
    pub entries: u32,
    /// Whether the session's last slice waits for more.
    pub gathers: bool,
    /// The very document was handed over before; nothing was done.
    pub repeated: bool,
}

/// What is known of a session.
pub(super) fn growth(db: &mut Db, id: SessionId) -> Result<Option<Growth>, Fault> {
    let sql = "SELECT s.no, s.intakes, s.taken, s.path,
            coalesce(s.entries, s.taken) FROM sessions s WHERE s.id = ?1";
    let found = db.first(sql, values![&id.0], |row| {
        let no: i64 = row.next()?;
        let growth = Growth {
            intakes: row.next()?,
            taken: row.next()?,
            path: row.next()?,
            entries: row.next()?,
            ..Growth::default()
        };
        Ok((no, growth))
    })?;
    let Some((no, mut growth)) = found else { return Ok(None) };
    let sql = "SELECT coalesce(max(i), 0) FROM (
            SELECT max(slice_index) + 1 AS i FROM runs WHERE session_no = ?1
            UNION ALL
            SELECT max(slice_index) + 1 FROM jobs
            WHERE session_no = ?1 AND finished_at IS NULL
                AND (reason IS NULL OR reason <> 'gathering')) AS known";
    growth.next_index = db.first(sql, values![no], |row| row.next())?.unwrap_or_default();
    growth.ends = session::ends(db, id)?;
    Ok(Some(growth))
}

/// Takes `intake` in.
pub(super) fn write(db: &mut Db, intake: &Intake) -> Result<Enqueued, Fault> {
    let session_no = touch(db, intake)?;
    if let Some(document) = &intake.document {
        let sql = "INSERT INTO handed (session_no, digest) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        if db.execute(sql, values![session_no, document])? == 0 {
            return Ok(Enqueued { repeated: true, ..Enqueued::default() });
        }
    }
    let sql = "UPDATE sessions SET intakes = intakes + 1 WHERE no = ?1 AND intakes = ?2";
    if db.execute(sql, values![session_no, intake.growth.intakes])? == 0 {
        return Err(StoreErrorKind::Moved.into());
    }
    write_entries(db, session_no, intake)?;
    let lane = lane(db, &intake.session.namespace)?;
    let sql = "DELETE FROM jobs WHERE session_no = ?1 AND state = 'waiting'
        AND reason = 'gathering'";
    db.execute(sql, values![session_no])?;
    let place = Place { session_no, lane, priority: intake.priority, at: intake.at };
    let jobs: Vec<&Job> = intake.jobs.iter().collect();
    let added = insert(db, place, &jobs, None)?;
    let mut taken = intake.known;
    if let Some(gathering) = &intake.gathering {
        taken = gathering.job.first.0;
        insert(db, place, &[&gathering.job], Some(gathering.until))?;
    } else {
        session::mark_end_of(db, session_no, intake.known)?;
    }
    let sql = "UPDATE sessions SET taken = ?2, entries = ?3, findings = ?4, masked = ?5,
        ended_at = ?6 WHERE no = ?1";
    let (findings, masked) = (json(&intake.findings)?, json(&intake.masked.counts)?);
    let row = values![session_no, taken, intake.known, &findings, &masked, intake.at];
    db.execute(sql, row)?;
    db.announce()?;
    Ok(Enqueued {
        jobs: added,
        known: (intake.jobs.len() as u32).saturating_sub(added),
        entries: intake.known.saturating_sub(intake.growth.entries),
        gathers: intake.gathering.is_some(),
        repeated: false,
    })
}

/// The session's row, made or brought up to date; what it came to stays.
fn touch(db: &mut Db, intake: &Intake) -> Result<i64, Fault> {
    let session = &intake.session;
    let sql = "INSERT INTO sessions
            (id, namespace, format, native_id, path, title, cwd, parent, started_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
        ON CONFLICT (id) DO UPDATE SET path = excluded.path,
            title = coalesce(excluded.title, sessions.title),
            cwd = coalesce(excluded.cwd, sessions.cwd),
            parent = coalesce(excluded.parent, sessions.parent),
            started_at = coalesce(sessions.started_at, excluded.started_at)
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
    ];
    let no = db.first(sql, row, |row| row.next())?;
    no.ok_or_else(|| StoreErrorKind::UnknownSession(session.id).into())
}

/// Entries in no slice are accounted for at once; the others when their job ends.
fn write_entries(db: &mut Db, session_no: i64, intake: &Intake) -> Result<(), Fault> {
    entry::write_texts(db, session_no, intake.entries.iter())?;
    let state = CoverageState::Skipped;
    let reason = |entry: &Entry| entry.skip.map(|skip| skip.name().to_owned());
    let skipped: Vec<Covered> = (intake.entries.iter().filter(|entry| entry.skip.is_some()))
        .map(|entry| Covered { entry: entry.clone(), state, reason: reason(entry) })
        .collect();
    entry::cover(db, session_no, entry::NO_RUN, &skipped)
}

/// The row of a namespace. A new one is served as if it had waited since the last who was.
fn lane(db: &mut Db, namespace: &str) -> Result<i64, Fault> {
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

/// Adds jobs that the queue does not have; ready, or gathering until a time. Gives how many it added.
pub(super) fn insert(
    db: &mut Db,
    place: Place,
    jobs: &[&Job],
    until: Option<Timestamp>,
) -> Result<u32, Fault> {
    const INTO: Insert = Insert {
        head: "INSERT INTO jobs (id, session_no, lane, state, reason, priority, since, until,
            enqueued_at, slice, slice_index, first_ordinal, first_part, last_ordinal, last_part,
            tokens, cut)",
        width: 17,
        tail: "ON CONFLICT (id) DO NOTHING",
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
        ]);
    }
    Ok(db.insert(INTO, &rows)? as u32)
}
