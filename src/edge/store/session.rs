//! Sessions: what is known of a conversation, and what it came to when it was read to the end.

use super::column::{Columns, json, unreadable};
use super::db::{Db, values};
use super::error::{Fault, StoreErrorKind};
use crate::domain::{Finding, Format, RunId, Session, SessionId, Timestamp};
use crate::privacy::Report;
use rusqlite::{Connection, OptionalExtension, params};
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

pub(super) fn read(row: &mut Columns<'_>) -> rusqlite::Result<Session> {
    Ok(Session {
        id: SessionId(row.digest()?),
        namespace: row.next()?,
        format: format(row)?,
        native_id: row.redacted()?,
        path: row.next()?,
        title: row.redacted_if()?,
        cwd: row.redacted_if()?,
        parent: row.redacted_if()?,
        started_at: row.time_if()?,
    })
}

pub(super) fn format(row: &mut Columns<'_>) -> rusqlite::Result<Format> {
    let at = row.position();
    let name: String = row.next()?;
    name.parse::<Format>().map_err(|error| unreadable(at, error))
}

/// The row number of a session.
pub(super) fn number(connection: &Connection, id: SessionId) -> Result<i64, Fault> {
    let mut find = connection.prepare_cached("SELECT no FROM sessions WHERE id = ?1")?;
    let no = find.query_row([id.0.as_bytes()], |row| row.get(0)).optional()?;
    no.ok_or_else(|| StoreErrorKind::UnknownSession(id).into())
}

/// Writes what is known; what an earlier reading came to is forgotten until this one ends.
pub(super) fn begin(connection: &Connection, session: &Session) -> Result<(), Fault> {
    let sql = "INSERT INTO sessions
            (id, namespace, format, native_id, path, title, cwd, parent, started_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
        ON CONFLICT (id) DO UPDATE SET
            path = excluded.path, title = excluded.title, cwd = excluded.cwd,
            parent = excluded.parent, started_at = excluded.started_at,
            entries = NULL, lines = NULL, findings = NULL, masked = NULL, ended_at = NULL";
    let text =
        |text: &Option<crate::privacy::Redacted>| text.as_ref().map(|t| t.as_str().to_owned());
    connection.prepare_cached(sql)?.execute(params![
        session.id.0.as_bytes(),
        session.namespace,
        session.format.name(),
        session.native_id.as_str(),
        session.path,
        text(&session.title),
        text(&session.cwd),
        text(&session.parent),
        session.started_at.map(|at| at.0),
    ])?;
    Ok(())
}

/// How many entries the session had each time it was read to its end; none if it never was.
pub(super) fn ends(connection: &Connection, id: SessionId) -> Result<Vec<u32>, Fault> {
    let sql = "SELECT e.entries FROM session_ends e JOIN sessions s ON s.no = e.session_no
        WHERE s.id = ?1 ORDER BY e.entries";
    let mut select = connection.prepare_cached(sql)?;
    let rows = select.query_map([id.0.as_bytes()], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
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
    db.execute(sql, values![no, entries])?;
    Ok(())
}

/// The file that the session was last read from; none if it never was.
pub(super) fn path(connection: &Connection, id: SessionId) -> Result<Option<String>, Fault> {
    let mut select = connection.prepare_cached("SELECT path FROM sessions WHERE id = ?1")?;
    Ok(select.query_row([id.0.as_bytes()], |row| row.get(0)).optional()?)
}

pub(super) fn end(
    connection: &Connection,
    id: SessionId,
    end: &SessionEnd,
) -> Result<Ended, Fault> {
    let no = number(connection, id)?;
    let sql = "UPDATE sessions SET entries = ?2, lines = ?3, findings = ?4, masked = ?5,
        ended_at = ?6, taken = ?2, intakes = intakes + 1 WHERE no = ?1";
    connection.prepare_cached(sql)?.execute(params![
        no,
        end.entries,
        end.lines,
        json(&end.findings)?,
        json(&end.masked.counts)?,
        end.at.0,
    ])?;
    // A file that was rewritten shorter has no entries there any more.
    let sql = "DELETE FROM coverage WHERE session_no = ?1 AND ?2 <= ordinal";
    connection.prepare_cached(sql)?.execute(params![no, end.entries])?;
    let sql = "DELETE FROM session_ends WHERE session_no = ?1 AND ?2 < entries";
    connection.prepare_cached(sql)?.execute(params![no, end.entries])?;
    let sql = "INSERT OR IGNORE INTO session_ends (session_no, entries) VALUES (?1, ?2)";
    connection.prepare_cached(sql)?.execute(params![no, end.entries])?;
    // It was read to its end: nothing of it waits any more.
    let sql = "DELETE FROM jobs WHERE session_no = ?1 AND state IN ('waiting', 'ready')";
    connection.prepare_cached(sql)?.execute([no])?;
    let covering: HashSet<RunId> = end.runs.iter().copied().collect();
    switch_runs(connection, no, &covering)
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
fn switch_runs(
    connection: &Connection,
    session_no: i64,
    covering: &HashSet<RunId>,
) -> Result<Ended, Fault> {
    let mut runs = weighed(connection, session_no, covering)?;
    let (new, old): (Vec<&Weighed>, Vec<&Weighed>) = runs.iter().partition(|run| run.covers);
    let failed: Vec<&Weighed> = new.iter().copied().filter(|run| !run.done).collect();
    let stands = |run: &Weighed| {
        let replaced = new.iter().any(|other| other.done && other.overlaps(run));
        run.done && run.current && !replaced && failed.iter().any(|other| other.overlaps(run))
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
    let mut set = connection.prepare_cached("UPDATE runs SET current = ?2 WHERE no = ?1")?;
    let sql = "SELECT count(*) FROM records WHERE run_no = ?1 AND state <> 'replaced'";
    let mut count = connection.prepare_cached(sql)?;
    let mut ended = Ended::default();
    for run in runs.iter().filter(|run| run.covers != run.current) {
        set.execute(params![run.no, run.covers])?;
        if run.covers {
            ended.restored_runs += 1;
        } else {
            ended.replaced_runs += 1;
            ended.replaced_records += count.query_row([run.no], |row| row.get::<_, u32>(0))?;
        }
    }
    Ok(ended)
}

fn weighed(
    connection: &Connection,
    session_no: i64,
    covering: &HashSet<RunId>,
) -> Result<Vec<Weighed>, Fault> {
    let sql = "SELECT no, id, current, state = 'done', first_ordinal, last_ordinal
        FROM runs WHERE session_no = ?1";
    let mut select = connection.prepare_cached(sql)?;
    let rows = select.query_map([session_no], |row| {
        let mut row = Columns::of(row);
        let (no, id) = (row.next()?, RunId(row.digest()?));
        let (current, done) = (row.next()?, row.next()?);
        let range = (row.next()?, row.next()?);
        Ok(Weighed { no, covers: covering.contains(&id), current, done, range })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// One session by its id.
pub(super) fn find(connection: &Connection, id: SessionId) -> Result<Option<Session>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM sessions s WHERE s.id = ?1");
    let mut find = connection.prepare_cached(&sql)?;
    Ok(find.query_row([id.0.as_bytes()], |row| read(&mut Columns::of(row))).optional()?)
}
