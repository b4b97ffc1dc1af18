//! Sessions: what is known of a conversation, and what it came to when it was read to the end.

use super::beside::{self, Remembered};
use super::db::{Columns, Db, json, values};
use super::error::{Fault, StoreErrorKind};
use crate::domain::{Finding, Format, RunId, Session, SessionId, Timestamp};
use crate::privacy::Report;
use std::collections::HashSet;

/// What a session came to.
#[derive(Clone, Debug)]
pub struct SessionEnd {
    /// Entries read in all; the coverage must add up to it.
    pub entries: u32,
    /// Lines of the file, if it has lines.
    pub lines: Option<u32>,
    /// What was wrong with it; rules and places, no words.
    pub findings: Vec<Finding>,
    /// What the gate masked in it.
    pub masked: Report,
    /// The runs that cover it now; records of all others are replaced.
    pub runs: Vec<RunId>,
    /// What is remembered of it, if anything is to be.
    pub remembered: Option<Remembered>,
    /// Its memory card, as JSON, if one was made.
    pub card: Option<String>,
    /// When it ended.
    pub at: Timestamp,
}

/// What [`end_session`](super::Store::end_session) changed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ended {
    /// Runs that no longer cover the session.
    pub replaced_runs: u32,
    /// Their records that were staged or quarantined until now.
    pub replaced_records: u32,
    /// Runs that cover it again, after others had taken their place.
    pub restored_runs: u32,
}

/// Columns of a session, for [`read`].
pub(super) const COLUMNS: &str = "s.id, s.namespace, s.format, s.native_id, s.path, s.title, \
     s.cwd, s.parent, s.started_at";

pub(super) fn read(row: &mut Columns<'_>) -> Result<Session, Fault> {
    Ok(Session {
        id: SessionId(row.next()?),
        namespace: row.next()?,
        format: format(row)?,
        native_id: row.next()?,
        path: row.next()?,
        title: row.next()?,
        cwd: row.next()?,
        parent: row.next()?,
        started_at: row.next()?,
    })
}

pub(super) fn format(row: &mut Columns<'_>) -> Result<Format, Fault> {
    row.named(|name| name.parse().ok())
}

/// The row number of a session.
pub(super) fn number(db: &mut Db, id: SessionId) -> Result<i64, Fault> {
    let no = db.first("SELECT no FROM sessions WHERE id = ?1", values![&id.0], |row| row.next())?;
    no.ok_or_else(|| StoreErrorKind::UnknownSession(id).into())
}

/// Writes what is known; what an earlier reading came to is forgotten until this one ends.
pub(super) fn begin(db: &mut Db, session: &Session) -> Result<(), Fault> {
    let sql = "INSERT INTO sessions
            (id, namespace, format, native_id, path, title, cwd, parent, started_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
        ON CONFLICT (id) DO UPDATE SET
            path = excluded.path, title = excluded.title, cwd = excluded.cwd,
            parent = excluded.parent, started_at = excluded.started_at,
            entries = NULL, lines = NULL, findings = NULL, masked = NULL, ended_at = NULL";
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
    db.send(sql, row)
}

/// How many entries the session had each time it was read to its end; none if it never was.
pub(super) fn ends(db: &mut Db, id: SessionId) -> Result<Vec<u32>, Fault> {
    let sql = "SELECT e.entries FROM session_ends e JOIN sessions s ON s.no = e.session_no
        WHERE s.id = ?1 ORDER BY e.entries";
    db.all(sql, values![&id.0], |row| row.next())
}

/// Notes that the session had so many entries when it was read to its end, though some of it still
/// waits to be asked about.
pub(super) fn mark_end(db: &mut Db, id: SessionId, entries: u32) -> Result<(), Fault> {
    let no = number(db, id)?;
    mark_end_of(db, no, entries)
}

/// As [`mark_end`], of the session in a row.
pub(super) fn mark_end_of(db: &mut Db, no: i64, entries: u32) -> Result<(), Fault> {
    let sql = "INSERT INTO session_ends (session_no, entries) VALUES (?1, ?2)
        ON CONFLICT DO NOTHING";
    db.send(sql, values![no, entries])
}

/// The file that the session was last read from; none if it never was.
pub(super) fn path(db: &mut Db, id: SessionId) -> Result<Option<String>, Fault> {
    db.first("SELECT path FROM sessions WHERE id = ?1", values![&id.0], |row| row.next())
}

pub(super) fn end(db: &mut Db, id: SessionId, end: &SessionEnd) -> Result<Ended, Fault> {
    let no = number(db, id)?;
    let sql = "UPDATE sessions SET entries = ?2, lines = ?3, findings = ?4, masked = ?5,
        ended_at = ?6, taken = ?2, intakes = intakes + 1 WHERE no = ?1";
    let (findings, masked) = (json(&end.findings)?, json(&end.masked.counts)?);
    db.send(sql, values![no, end.entries, end.lines, &findings, &masked, end.at])?;
    // A file that was rewritten shorter has no entries there any more.
    let sql = "DELETE FROM coverage WHERE session_no = ?1 AND ?2 <= ordinal";
    db.send(sql, values![no, end.entries])?;
    let sql = "DELETE FROM session_ends WHERE session_no = ?1 AND ?2 < entries";
    db.send(sql, values![no, end.entries])?;
    mark_end_of(db, no, end.entries)?;
    // It was read to its end: nothing of it waits any more.
    let sql = "DELETE FROM jobs WHERE session_no = ?1 AND finished_at IS NULL
        AND state IN ('waiting', 'ready')";
    db.send(sql, values![no])?;
    if let Some(remembered) = &end.remembered {
        beside::remember(db, no, remembered)?;
    }
    if let Some(card) = &end.card {
        beside::write_card(db, no, end.entries, card)?;
    }
    let covering: HashSet<RunId> = end.runs.iter().copied().collect();
    switch_runs(db, no, &covering)
}

/// A run of the session as [`switch_runs`] weighs it.
struct Weighed {
    no: i64,
    covers: bool,
    current: bool,
    done: bool,
    /// First and last ordinal.
    range: (u32, u32),
}

impl Weighed {
    fn overlaps(&self, other: &Weighed) -> bool {
        self.range.0 <= other.range.1 && other.range.0 <= self.range.1
    }
}

/// Makes the runs in `covering` current, and no others; but what failed takes the place of nothing: an
/// earlier extraction of the same entries stands until there is another one.
fn switch_runs(db: &mut Db, session_no: i64, covering: &HashSet<RunId>) -> Result<Ended, Fault> {
    let mut runs = weighed(db, session_no, covering)?;
    let (new, old): (Vec<&Weighed>, Vec<&Weighed>) = runs.iter().partition(|run| run.covers);
    let failed: Vec<&Weighed> = new.iter().copied().filter(|run| !run.done).collect();
    let done: Vec<(u32, u32)> = new.iter().filter(|run| run.done).map(|run| run.range).collect();
    let stands = |run: &Weighed| {
        let failed = failed.iter().any(|other| other.overlaps(run));
        run.done && run.current && failed && !covered(run.range, &done)
    };
    let standing: HashSet<i64> =
        old.iter().filter(|run| !failed.is_empty() && stands(run)).map(|run| run.no).collect();
    let yields = |run: &Weighed| {
        !run.done && old.iter().any(|other| standing.contains(&other.no) && other.overlaps(run))
    };
    let yielding: HashSet<i64> = new.iter().filter(|run| yields(run)).map(|run| run.no).collect();
    for run in &mut runs {
        run.covers = (run.covers && !yielding.contains(&run.no)) || standing.contains(&run.no);
    }
    let sql = "SELECT count(*) FROM records WHERE run_no = ?1 AND state <> 'replaced'";
    let mut ended = Ended::default();
    for run in runs.iter().filter(|run| run.covers != run.current) {
        db.send("UPDATE runs SET current = ?2 WHERE no = ?1", values![run.no, run.covers])?;
        if run.covers {
            ended.restored_runs += 1;
        } else {
            ended.replaced_runs += 1;
            ended.replaced_records += db.one(sql, values![run.no], |row| row.next::<u32>())?;
        }
    }
    Ok(ended)
}

/// Whether every entry from the first to the last is in one of `ranges`. Slices overlap by some entries, so that one
/// which is read anew reaches into its neighbour without taking its place.
fn covered((first, last): (u32, u32), ranges: &[(u32, u32)]) -> bool {
    let mut ranges = ranges.to_vec();
    ranges.sort_unstable();
    let mut next = first;
    for (from, to) in ranges {
        if from <= next && next <= to {
            next = to.saturating_add(1);
        }
    }
    next > last
}

fn weighed(db: &mut Db, session_no: i64, covering: &HashSet<RunId>) -> Result<Vec<Weighed>, Fault> {
    let sql = "SELECT no, id, current, state = 'done', first_ordinal, last_ordinal
        FROM runs WHERE session_no = ?1 ORDER BY no";
    db.all(sql, values![session_no], |row| {
        let (no, id) = (row.next()?, RunId(row.next()?));
        let (current, done) = (row.next()?, row.next()?);
        let range = (row.next()?, row.next()?);
        Ok(Weighed { no, covers: covering.contains(&id), current, done, range })
    })
}

/// One session by its id.
pub(super) fn find(db: &mut Db, id: SessionId) -> Result<Option<Session>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM sessions s WHERE s.id = ?1");
    db.first(&sql, values![&id.0], read)
}
