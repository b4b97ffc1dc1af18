//! How far a session was taken in, and what of it is known: what an intake is based on.

use super::super::db::{Db, values};
use super::super::error::Fault;
use super::super::{entry, forget, session};
use crate::domain::{EntryKind, SessionId, Speaker, Timestamp};
use crate::privacy::Redacted;
use std::ops::Range;

/// How far a session was taken in.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Growth {
    /// Grows with every intake; an [`Intake`](super::Intake) says which one it is based on.
    pub intakes: u64,
    /// Entries before this one are in slices that are cut for good, or in none.
    pub taken: u32,
    /// Entries that are known in all; those from `taken` on gather.
    pub entries: u32,
    /// The place of the next slice among the session's slices.
    pub next_index: u32,
    /// How many entries it had each time a slice ended because the session did.
    pub ends: Vec<u32>,
    /// When those that gather are asked about as they are, if any do.
    pub gathers_until: Option<Timestamp>,
    /// The file it was last read from.
    pub path: String,
    /// Whether it was forgotten: nothing is known of it, and nothing is to be.
    pub forgotten: bool,
}

/// Who said what: as much of an entry as shows whether it is still the same.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Said {
    /// Its place among the session's entries, from 0.
    pub ordinal: u32,
    /// Who said it.
    pub speaker: Speaker,
    /// What sort of item it is.
    pub kind: EntryKind,
    /// Its words; empty for tool calls and what tools said, which are stored shortened.
    pub text: Redacted,
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
    let Some((no, mut growth)) = found else {
        let gone = forget::is_forgotten(db, id)?;
        return Ok(gone.then(|| Growth { forgotten: true, ..Growth::default() }));
    };
    let sql = "SELECT coalesce(max(i), 0) FROM (
            SELECT max(slice_index) + 1 AS i FROM runs WHERE session_no = ?1
            UNION ALL
            SELECT max(slice_index) + 1 FROM jobs
            WHERE session_no = ?1 AND finished_at IS NULL
                AND (reason IS NULL OR reason <> 'gathering')) AS known";
    growth.next_index = db.first(sql, values![no], |row| row.next())?.unwrap_or_default();
    growth.ends = session::ends(db, id)?;
    let sql = "SELECT until FROM jobs WHERE session_no = ?1 AND finished_at IS NULL
        AND state = 'waiting' AND reason = 'gathering'";
    growth.gathers_until = db.first(sql, values![no], |row| row.next())?.flatten();
    Ok(Some(growth))
}

/// Entries that are read at once of what was said: some megabytes of words at most.
pub(super) const SAID_MAX: usize = 1_000;

/// Who said what, in order; [`SAID_MAX`] at most.
pub(super) fn said(db: &mut Db, id: SessionId, ordinals: Range<u32>) -> Result<Vec<Said>, Fault> {
    let no = session::number(db, id)?;
    let sql = "SELECT place & 4294967295, speaker, kind, CASE
            WHEN speaker IN ('tool', 'web') OR kind = 'tool_call' THEN '' ELSE text END
        FROM entries WHERE ?1 <= place AND place < ?2 ORDER BY place LIMIT ?3";
    let (from, to) = (entry::place(no, ordinals.start), entry::place(no, ordinals.end));
    db.all(sql, values![from, to, SAID_MAX as u64], |row| {
        Ok(Said {
            ordinal: row.next()?,
            speaker: row.named(Speaker::of_name)?,
            kind: row.named(EntryKind::of_name)?,
            text: row.next()?,
        })
    })
}
