//! Entries and their coverage.

use super::{
    Columns, Db, Insert, Result, Row, Store, StoreResult, Value, literal, row_of, session, values,
};
use crate::domain::{CoverageState, Entry, EntryKind, Format, SessionId, Skip, Speaker, Tool};
use crate::privacy::Redacted;
use std::collections::BTreeMap;
use std::ops::Range;

/// An entry and its coverage.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CoveredEntry {
    /// The whole entry, even if the slice holds only a part of it.
    pub entry: Entry,
    /// Coverage state.
    pub state: CoverageState,
    /// Reason, if skipped or failed.
    pub reason: Option<String>,
}

/// Run number of entries that belong to no slice.
pub(super) const NO_RUN: i64 = 0;

/// Primary key of an entry: session number in the high bits, ordinal in the low 32.
pub(super) fn entry_key(session_no: i64, ordinal: u32) -> i64 {
    (session_no << 32) | i64::from(ordinal)
}

/// Rank of a state. An entry in several parts has the highest state of its parts: a failed part is
/// never hidden, and any other state replaces pending.
pub(super) fn rank(state: CoverageState) -> u8 {
    match state {
        CoverageState::Pending => 0,
        CoverageState::Skipped => 1,
        CoverageState::Nothing => 2,
        CoverageState::Extracted => 3,
        CoverageState::Failed => 4,
    }
}

pub(super) fn of_rank(wanted: u8) -> Option<CoverageState> {
    CoverageState::ALL.iter().copied().find(|state| rank(*state) == wanted)
}

/// Writes entries, and the skip reason of those in no slice. Replaces the previous reason.
pub(super) fn write(db: &mut Db, session_no: i64, entries: &[Entry]) -> Result<()> {
    write_texts(db, session_no, entries.iter())?;
    let skipped = entries.iter().filter_map(|it| Some((it.ordinal, it.skip?)));
    for (ordinal, _) in skipped.clone() {
        uncover(db, session_no, NO_RUN, (ordinal, ordinal))?;
    }
    let of = |(ordinal, skip): (u32, Skip)| (ordinal, CoverageState::Skipped, Some(skip.name()));
    cover(db, session_no, NO_RUN, skipped.map(of))
}

/// Writes entries. New text replaces the old, since the redactor may mask more than before.
pub(super) fn write_texts<'a>(
    db: &mut Db,
    session_no: i64,
    entries: impl Iterator<Item = &'a Entry>,
) -> Result<()> {
    const INTO: Insert = Insert {
        head: "INSERT INTO entries (place, line, speaker, kind, branch, at, native_id, tool,
            call_id, outcome, exit_code, skip, text)",
        width: 13,
        tail: "ON CONFLICT (place) DO UPDATE SET
            line = excluded.line, speaker = excluded.speaker, kind = excluded.kind,
            branch = excluded.branch, at = excluded.at, native_id = excluded.native_id,
            tool = excluded.tool, call_id = excluded.call_id, outcome = excluded.outcome,
            exit_code = excluded.exit_code, skip = excluded.skip, text = excluded.text",
    };
    // An entry in several parts appears more than once.
    let entries: BTreeMap<u32, &Entry> = entries.map(|entry| (entry.ordinal, entry)).collect();
    let mut rows: Vec<Value<'_>> = Vec::with_capacity(entries.len() * INTO.width);
    for entry in entries.into_values() {
        let key = entry_key(session_no, entry.ordinal);
        let tool = entry.tool.as_ref();
        let (name, call_id) = (tool.map(|it| &it.name), tool.and_then(|it| it.call_id.as_ref()));
        rows.extend_from_slice(values![
            key, entry.line, entry.speaker, entry.kind, entry.branch, entry.at, &entry.native_id,
            name, call_id, entry.outcome, entry.exit_code, entry.skip, &entry.text,
        ]);
    }
    db.insert(INTO, &rows).map(drop)
}

/// Writes the coverage of entries in `run_no`; of an entry given more than once, the highest state.
pub(super) fn cover<'a>(
    db: &mut Db,
    session_no: i64,
    run_no: i64,
    entries: impl Iterator<Item = (u32, CoverageState, Option<&'a str>)>,
) -> Result<()> {
    const INTO: Insert = Insert {
        head: "INSERT INTO coverage (session_no, ordinal, run_no, state, reason)",
        width: 5,
        tail: "ON CONFLICT (session_no, ordinal, run_no) DO UPDATE SET
            state = excluded.state, reason = excluded.reason
            WHERE coverage.state < excluded.state",
    };
    let mut highest: BTreeMap<u32, (u8, Option<&str>)> = BTreeMap::new();
    for (ordinal, state, reason) in entries {
        let known = highest.entry(ordinal).or_insert((rank(state), reason));
        if known.0 < rank(state) {
            *known = (rank(state), reason);
        }
    }
    let mut rows: Vec<Value<'_>> = Vec::with_capacity(highest.len() * INTO.width);
    for (ordinal, (state, reason)) in highest {
        rows.extend_from_slice(values![session_no, ordinal, run_no, state, reason]);
    }
    db.insert(INTO, &rows).map(drop)
}

/// Sets the coverage of entries in an inclusive range that are neither skipped nor in a current
/// run, for a job that ended without a run. An entry shared by two jobs gets the worse state.
pub(super) fn cover_without_run(
    db: &mut Db,
    session_no: i64,
    ordinals: (u32, u32),
    state: CoverageState,
    reason: &str,
) -> Result<()> {
    let sql = "INSERT INTO coverage (session_no, ordinal, run_no, state, reason)
        SELECT ?1, place - ?2, 0, ?5, ?6 FROM entries
        WHERE place BETWEEN ?3 AND ?4 AND skip IS NULL AND NOT EXISTS (
            SELECT 1 FROM coverage c JOIN runs r ON r.no = c.run_no
            WHERE c.session_no = ?1 AND c.ordinal = entries.place - ?2 AND r.current = 1)
        ON CONFLICT (session_no, ordinal, run_no) DO UPDATE SET
            state = excluded.state, reason = excluded.reason
            WHERE coverage.state < excluded.state";
    let (first, last) = (entry_key(session_no, ordinals.0), entry_key(session_no, ordinals.1));
    let row = values![session_no, entry_key(session_no, 0), first, last, rank(state), reason];
    db.run(sql, row)
}

/// Reverts [`cover_without_run`].
pub(super) fn uncover_without_run(
    db: &mut Db,
    session_no: i64,
    ordinals: (u32, u32),
) -> Result<()> {
    let sql = "DELETE FROM coverage WHERE session_no = ?1 AND ordinal BETWEEN ?2 AND ?3
        AND run_no = 0 AND NOT EXISTS (
            SELECT 1 FROM entries WHERE place = ?4 + coverage.ordinal AND skip IS NOT NULL)";
    db.run(sql, values![session_no, ordinals.0, ordinals.1, entry_key(session_no, 0)])
}

/// Deletes the coverage of `run_no` in an inclusive range of ordinals, left by an earlier staging.
pub(super) fn uncover(
    db: &mut Db,
    session_no: i64,
    run_no: i64,
    ordinals: (u32, u32),
) -> Result<()> {
    let sql = "DELETE FROM coverage WHERE session_no = ?1 AND ordinal BETWEEN ?2 AND ?3
        AND run_no = ?4";
    db.run(sql, values![session_no, ordinals.0, ordinals.1, run_no])
}

pub(super) fn list(db: &mut Db, session: SessionId, ordinals: Range<u32>) -> Result<Vec<Entry>> {
    let session_no = session::number(db, session)?;
    let sql =
        format!("SELECT {COLUMNS} FROM entries WHERE ?1 <= place AND place < ?2 ORDER BY place");
    let (from, to) = (entry_key(session_no, ordinals.start), entry_key(session_no, ordinals.end));
    db.all(&sql, values![from, to])
}

/// Columns of an [`Entry`].
pub(super) const COLUMNS: &str = "place & 4294967295, line, speaker, kind, branch, at, native_id, \
     tool, call_id, outcome, exit_code, skip, text";

row_of! {
    Entry {
        ordinal, line, speaker, kind, branch, at, native_id, tool, outcome, exit_code, skip, text
    }
}

impl Row for Option<Tool> {
    fn read(row: &mut Columns<'_>) -> Result<Option<Tool>> {
        let (name, call_id): (Option<Redacted>, _) = row.next()?;
        Ok(name.map(|name| Tool { name, call_id }))
    }
}

impl Store {
    pub(crate) async fn entries_of(
        &self,
        session: SessionId,
        ordinals: Range<u32>,
    ) -> StoreResult<Vec<Entry>> {
        self.read("reading entries", move |from| list(from, session, ordinals.clone())).await
    }

    /// Returns client ids of the first entries of a format's sessions, each with the session and its namespace, without
    /// copies; forks start with them.
    pub(crate) async fn first_entry_ids(
        &self,
        format: Format,
    ) -> StoreResult<Vec<(Redacted, SessionId, String)>> {
        let sql = "SELECT e.native_id, s.id, s.namespace FROM sessions s
            JOIN entries e ON e.place >= (s.no << 32) AND e.place < (s.no << 32) + ?2
            WHERE s.format = ?1 AND e.native_id IS NOT NULL
                AND (e.skip IS NULL OR e.skip <> ?3)
            ORDER BY s.no, e.place";
        let row = values![format, IDENTIFYING_ENTRIES, Skip::Copied];
        self.all("reading how sessions begin", sql, row).await
    }

    /// Returns the ordinals and client ids of a session's entries, without copies from other sessions.
    pub(crate) async fn own_entries(&self, id: SessionId) -> StoreResult<Vec<(u32, Redacted)>> {
        let sql = "SELECT e.place & 4294967295, e.native_id FROM sessions s
            JOIN entries e ON e.place >= (s.no << 32) AND e.place < ((s.no + 1) << 32)
            WHERE s.id = ?1 AND e.native_id IS NOT NULL
                AND (e.skip IS NULL OR e.skip <> ?2)";
        self.all("reading a session's own entries", sql, values![&id, Skip::Copied]).await
    }

    /// Returns the spoken entries of each of these ranges in order, at most [`SPOKEN_MAX`] per range.
    pub(crate) async fn spoken_entries_in(
        &self,
        parts: Vec<(SessionId, Range<u32>)>,
    ) -> StoreResult<Vec<Vec<SpokenEntry>>> {
        let read = move |from: &mut Db| {
            parts.iter().map(|(session, part)| read_spoken(from, *session, part.clone())).collect()
        };
        self.read("reading who said what", read).await
    }

    /// Passes the spoken entries of a range of ordinals to `each`, in order.
    pub(crate) async fn spoken_entries(
        &self,
        session: SessionId,
        ordinals: Range<u32>,
        mut each: impl FnMut(SpokenEntry),
    ) -> StoreResult<()> {
        let mut left = ordinals;
        loop {
            let part = left.clone();
            let read = move |from: &mut Db| read_spoken(from, session, part.clone());
            let said = self.read("reading who said what", read).await?;
            let whole = said.len() == SPOKEN_MAX;
            left.start = said.last().map_or(left.end, |last| last.ordinal.saturating_add(1));
            said.into_iter().for_each(&mut each);
            if !whole {
                return Ok(());
            }
        }
    }

    /// Returns the last entries of a session that contain one of `words` literally, latest first.
    pub(crate) async fn entries_naming(
        &self,
        session: SessionId,
        words: Vec<String>,
    ) -> StoreResult<Vec<Entry>> {
        if words.is_empty() {
            return Ok(Vec::new());
        }
        self.read("looking for entries that name something", move |db| {
            let no = session::number(db, session)?;
            let patterns: Vec<String> =
                words.iter().map(|it| format!("%{}%", literal(it))).collect();
            let conditions: Vec<String> = (4..)
                .take(patterns.len())
                .map(|no| format!(r"text LIKE ?{no} ESCAPE '\'"))
                .collect();
            let sql = format!(
                "SELECT {COLUMNS} FROM entries WHERE ?1 <= place AND place < ?2 AND ({})
                ORDER BY place DESC LIMIT ?3",
                conditions.join(" OR ")
            );
            let mut row = values![entry_key(no, 0), entry_key(no + 1, 0), NAMING_MAX].to_vec();
            row.extend(patterns.iter().map(Value::from));
            db.all(&sql, &row)
        })
        .await
    }
}

/// The fields of an entry that are compared to detect changes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SpokenEntry {
    /// Position among the session's entries, from 0.
    pub ordinal: u32,
    pub speaker: Speaker,
    pub kind: EntryKind,
    /// Text; empty for tool calls and tool output, which are stored truncated.
    pub text: Redacted,
}

row_of! { SpokenEntry { ordinal, speaker, kind, text } }

/// Number of leading entries that may identify a session; some have no id.
const IDENTIFYING_ENTRIES: u32 = 4;
/// Batch size when reading spoken entries; at most some megabytes of text.
const SPOKEN_MAX: usize = 1_000;

/// Reads spoken entries in order, at most [`SPOKEN_MAX`].
fn read_spoken(db: &mut Db, id: SessionId, ordinals: Range<u32>) -> Result<Vec<SpokenEntry>> {
    let no = session::number(db, id)?;
    let sql = "SELECT place & 4294967295, speaker, kind, CASE
            WHEN speaker IN ('tool', 'web') OR kind = 'tool_call' THEN '' ELSE text END
        FROM entries WHERE ?1 <= place AND place < ?2 ORDER BY place LIMIT ?3";
    let (from, to) = (entry_key(no, ordinals.start), entry_key(no, ordinals.end));
    db.all(sql, values![from, to, SPOKEN_MAX as u64])
}

/// Maximum number of entries returned per session.
const NAMING_MAX: u32 = 500;
