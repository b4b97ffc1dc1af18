//! Sessions: what is known of a conversation, and what it came to when it was read to the end.

use super::db::{Columns, Db, Value, json, values};
use super::entry;
use super::error::{Fault, StoreError, StoreErrorKind};
use super::forget;
use super::handle::Store;
use super::prefix::{self, IdPrefix, PrefixLookup};
use crate::domain::{
    Digest, EntryKind, Finding, Format, RunId, Session, SessionId, Skip, Speaker, Timestamp,
};
use crate::privacy::{Redacted, Report};
use std::collections::HashSet;
use std::ops::Range;

/// Result of reading a session to its end.
#[derive(Clone, Debug)]
pub struct SessionEnd {
    /// Entries read in all; the coverage must add up to it.
    pub entries: u32,
    /// Lines of the file, if it has lines.
    pub lines: Option<u32>,
    /// Findings; rules and places, no words.
    pub findings: Vec<Finding>,
    /// Counts of what was redacted in it.
    pub masked: Report,
    /// The runs that cover it now; records of all others are replaced.
    pub runs: Vec<RunId>,
    /// State of the conversation, if it is to be kept.
    pub remembered: Option<ConversationState>,
    /// Its memory card, as JSON, if one was made.
    pub card: Option<String>,
    /// When it ended.
    pub at: Timestamp,
}

/// Changes by [`end_session`](super::Store::end_session).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ReplacedCounts {
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
    db.run(sql, row)
}

/// Number of entries the session had each time it was read to its end; none if it never was.
pub(super) fn ends(db: &mut Db, id: SessionId) -> Result<Vec<u32>, Fault> {
    let sql = "SELECT e.entries FROM session_ends e JOIN sessions s ON s.no = e.session_no
        WHERE s.id = ?1 ORDER BY e.entries";
    db.all(sql, values![&id.0], |row| row.next())
}

/// As [`mark_end`], of the session in a row.
pub(super) fn mark_end_of(db: &mut Db, no: i64, entries: u32) -> Result<(), Fault> {
    let sql = "INSERT INTO session_ends (session_no, entries) VALUES (?1, ?2)
        ON CONFLICT DO NOTHING";
    db.run(sql, values![no, entries])
}

/// A run of the session as [`switch_runs`] weighs it.
struct Weighed {
    no: i64,
    covers: bool,
    current: bool,
    done: bool,
    range: (u32, u32),
}

impl Weighed {
    fn overlaps(&self, other: &Weighed) -> bool {
        self.range.0 <= other.range.1 && other.range.0 <= self.range.1
    }
}

/// Makes the runs in `covering` current, and no others; but what failed takes the place of nothing: an earlier
/// extraction of the same entries stands until there is another one.
fn switch_runs(
    db: &mut Db,
    session_no: i64,
    covering: &HashSet<RunId>,
) -> Result<ReplacedCounts, Fault> {
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
    let mut ended = ReplacedCounts::default();
    for run in runs.iter().filter(|run| run.covers != run.current) {
        db.run("UPDATE runs SET current = ?2 WHERE no = ?1", values![run.no, run.covers])?;
        if run.covers {
            ended.restored_runs += 1;
        } else {
            ended.replaced_runs += 1;
            ended.replaced_records += db.one(sql, values![run.no], |row| row.next::<u32>())?;
        }
    }
    Ok(ended)
}

/// Returns true if every entry from the first to the last is in one of `ranges`. Slices overlap by some entries, so
/// that one which is read anew reaches into its neighbour without taking its place.
fn covered(range: (u32, u32), ranges: &[(u32, u32)]) -> bool {
    let mut ranges = ranges.to_vec();
    ranges.sort_unstable();
    let mut next = range.0;
    for (from, to) in ranges {
        if from <= next && next <= to {
            next = to.saturating_add(1);
        }
    }
    next > range.1
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

pub(super) fn find(db: &mut Db, id: SessionId) -> Result<Option<Session>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM sessions s WHERE s.id = ?1");
    db.first(&sql, values![&id.0], read)
}

/// State of a conversation after its entries before `next`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConversationState {
    /// Digest of the settings that it was made under; it is of no use under others.
    pub settings: Digest,
    /// The ordinal of the first entry that it knows nothing of.
    pub next: u32,
    /// The last turns of the dialog, as JSON.
    pub dialog: String,
    /// The memory of the conversation, as JSON.
    pub conversation: String,
}

/// The card of a session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredCard {
    pub session: Session,
    pub entries: u32,
    pub due: bool,
    pub card: String,
}

impl Store {
    pub(crate) async fn remembered(
        &self,
        session: SessionId,
    ) -> Result<Option<ConversationState>, StoreError> {
        self.read("reading what is remembered of a session", move |db: &mut Db| {
            let sql = "SELECT r.settings, r.next, r.dialog, r.conversation
        FROM remembered r JOIN sessions s ON s.no = r.session_no WHERE s.id = ?1";
            db.first(sql, values![&session.0], |row| {
                let (settings, next) = (row.next()?, row.next()?);
                Ok(ConversationState {
                    settings,
                    next,
                    dialog: row.next()?,
                    conversation: row.next()?,
                })
            })
        })
        .await
    }

    /// Sessions whose card does not know all their entries, with how many they have; `limit` at most.
    pub(crate) async fn cards_due(&self, limit: u32) -> Result<Vec<(SessionId, u32)>, StoreError> {
        self.read("looking for cards to be made", move |db: &mut Db| {
            let sql = "SELECT s.id, s.entries FROM cards c JOIN sessions s ON s.no = c.session_no
        WHERE c.due = 1 AND s.entries IS NOT NULL ORDER BY c.session_no LIMIT ?1";
            db.all(sql, values![limit], |row| Ok((SessionId(row.next()?), row.next()?)))
        })
        .await
    }

    /// Keeps the card of a session that was made of its first `entries` entries.
    pub(crate) async fn keep_card(
        &self,
        session: SessionId,
        entries: u32,
        card: String,
    ) -> Result<(), StoreError> {
        let keep = move |to: &mut Db| {
            let no = number(to, session)?;
            write_card(to, no, entries, &card)
        };
        self.write("keeping a card", keep).await
    }

    /// The cards of the sessions whose ids begin so, or of all, by when the sessions began; of one namespace if that
    /// is named.
    pub(crate) async fn cards(
        &self,
        id: Option<IdPrefix>,
        namespace: Option<String>,
    ) -> Result<Vec<StoredCard>, StoreError> {
        self.read("reading cards", move |db: &mut Db| {
            let id = id.as_ref();
            let namespace = namespace.as_deref();
            let (mut conditions, mut with) = (String::new(), Vec::new());
            if let Some(id) = id {
                let (low, high) = id.bounds();
                conditions.push_str(" AND s.id BETWEEN ?1 AND ?2");
                with.extend_from_slice(values![low, high]);
            }
            if let Some(namespace) = namespace {
                with.push(Value::from(namespace));
                conditions.push_str(&format!(" AND s.namespace = ?{}", with.len()));
            }
            let sql = format!(
        "SELECT {}, c.entries, c.due, c.card FROM cards c JOIN sessions s ON s.no = c.session_no
        WHERE c.card IS NOT NULL{conditions} ORDER BY s.started_at, s.no",
        COLUMNS
    );
            db.all(&sql, &with, |row| {
                let session = read(row)?;
                Ok(StoredCard {
                    session,
                    entries: row.next()?,
                    due: row.next()?,
                    card: row.next()?,
                })
            })
        })
        .await
    }
}

/// Keeps what is remembered of a session in the place of what was.
pub(super) fn remember(db: &mut Db, session_no: i64, it: &ConversationState) -> Result<(), Fault> {
    let sql = "INSERT INTO remembered (session_no, settings, next, dialog, conversation)
        VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT (session_no) DO UPDATE SET settings = excluded.settings,
            next = excluded.next, dialog = excluded.dialog, conversation = excluded.conversation";
    db.run(sql, values![session_no, &it.settings, it.next, &it.dialog, &it.conversation])
}

/// Notes that a session grew, so that somebody makes its card anew.
pub(super) fn card_is_due(db: &mut Db, session_no: i64) -> Result<(), Fault> {
    let sql = "INSERT INTO cards (session_no, due) VALUES (?1, 1)
        ON CONFLICT (session_no) DO UPDATE SET due = 1";
    db.run(sql, values![session_no])
}

pub(super) fn write_card(
    db: &mut Db,
    session_no: i64,
    entries: u32,
    card: &str,
) -> Result<(), Fault> {
    // The session may have grown while the card was made.
    let sql = "INSERT INTO cards (session_no, entries, card, due)
        SELECT no, ?2, ?3, CASE WHEN coalesce(entries, ?2) = ?2 THEN 0 ELSE 1 END FROM sessions WHERE no = ?1
        ON CONFLICT (session_no) DO UPDATE SET entries = excluded.entries, card = excluded.card,
            due = excluded.due";
    db.run(sql, values![session_no, entries, card])
}

/// Progress of the intake of a session.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SessionProgress {
    /// Grows with every intake; an [`Intake`](super::queue::Intake) says which one it is based on.
    pub intakes: u64,
    /// Entries before this one are in slices that are cut for good, or in none.
    pub taken: u32,
    /// Entries that are known in all; those from `taken` on gather.
    pub entries: u32,
    /// The place of the next slice among the session's slices.
    pub next_index: u32,
    /// Number of entries it had each time a slice ended because the session did.
    pub ends: Vec<u32>,
    /// When those that gather are asked about as they are, if any do.
    pub gathers_until: Option<Timestamp>,
    /// The file it was last read from.
    pub path: String,
    /// True if it was forgotten: nothing is known of it, and nothing is to be.
    pub forgotten: bool,
}

/// As much of an entry as shows whether it is still the same.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SpokenEntry {
    /// Its place among the session's entries, from 0.
    pub ordinal: u32,
    pub speaker: Speaker,
    pub kind: EntryKind,
    /// Its words; empty for tool calls and what tools said, which are stored shortened.
    pub text: Redacted,
}

/// First entries of a session of which one names it: some have no id.
const BEGINNING_ENTRIES: u32 = 4;
/// Entries that are read at once of what was said: some megabytes of words at most.
const SPOKEN_MAX: usize = 1_000;

/// Reads spoken entries in order; [`SPOKEN_MAX`] at most.
fn spoken(db: &mut Db, id: SessionId, ordinals: Range<u32>) -> Result<Vec<SpokenEntry>, Fault> {
    let no = number(db, id)?;
    let sql = "SELECT place & 4294967295, speaker, kind, CASE
            WHEN speaker IN ('tool', 'web') OR kind = 'tool_call' THEN '' ELSE text END
        FROM entries WHERE ?1 <= place AND place < ?2 ORDER BY place LIMIT ?3";
    let (from, to) = (entry::place(no, ordinals.start), entry::place(no, ordinals.end));
    db.all(sql, values![from, to, SPOKEN_MAX as u64], |row| {
        Ok(SpokenEntry {
            ordinal: row.next()?,
            speaker: row.named(Speaker::of_name)?,
            kind: row.named(EntryKind::of_name)?,
            text: row.next()?,
        })
    })
}

impl Store {
    /// Progress of a session that is about to be handed over; `None` if it is new.
    pub async fn growth(&self, session: SessionId) -> Result<Option<SessionProgress>, StoreError> {
        self.read("reading how far a session was taken", move |db: &mut Db| {
            let id = session;
            let sql = "SELECT s.no, s.intakes, s.taken, s.path,
            coalesce(s.entries, s.taken) FROM sessions s WHERE s.id = ?1";
            let found = db.first(sql, values![&id.0], |row| {
                let no: i64 = row.next()?;
                let progress = SessionProgress {
                    intakes: row.next()?,
                    taken: row.next()?,
                    path: row.next()?,
                    entries: row.next()?,
                    ..SessionProgress::default()
                };
                Ok((no, progress))
            })?;
            let Some((no, mut progress)) = found else {
                let gone = forget::is_forgotten(db, id)?;
                return Ok(
                    gone.then(|| SessionProgress { forgotten: true, ..SessionProgress::default() })
                );
            };
            let sql = "SELECT coalesce(max(i), 0) FROM (
            SELECT max(slice_index) + 1 AS i FROM runs WHERE session_no = ?1
            UNION ALL
            SELECT max(slice_index) + 1 FROM jobs
            WHERE session_no = ?1 AND finished_at IS NULL
                AND (reason IS NULL OR reason <> 'gathering')) AS known";
            progress.next_index = db.first(sql, values![no], |row| row.next())?.unwrap_or_default();
            progress.ends = ends(db, id)?;
            let sql = "SELECT until FROM jobs WHERE session_no = ?1 AND finished_at IS NULL
        AND state = 'waiting' AND reason = 'gathering'";
            progress.gathers_until = db.first(sql, values![no], |row| row.next())?.flatten();
            Ok(Some(progress))
        })
        .await
    }

    /// Client ids of the first entries of a format's sessions, copies left out: a fork begins with them.
    pub(crate) async fn beginnings(
        &self,
        format: Format,
    ) -> Result<Vec<(Redacted, SessionId)>, StoreError> {
        self.read("reading how sessions begin", move |db: &mut Db| {
            let sql = "SELECT e.native_id, s.id FROM sessions s
        JOIN entries e ON e.place >= (s.no << 32) AND e.place < (s.no << 32) + ?2
        WHERE s.format = ?1 AND e.native_id IS NOT NULL AND (e.skip IS NULL OR e.skip <> ?3)
        ORDER BY s.no, e.place";
            let skip = Skip::Copied.name();
            db.all(sql, values![format.name(), BEGINNING_ENTRIES, skip], |row| {
                Ok((row.next()?, SessionId(row.next()?)))
            })
        })
        .await
    }

    /// Client ids of a session's entries that are no copies of another's.
    pub(crate) async fn own_entries(&self, id: SessionId) -> Result<Vec<Redacted>, StoreError> {
        self.read("reading a session's own entries", move |db: &mut Db| {
            let sql = "SELECT e.native_id FROM sessions s
        JOIN entries e ON e.place >= (s.no << 32) AND e.place < ((s.no + 1) << 32)
        WHERE s.id = ?1 AND e.native_id IS NOT NULL AND (e.skip IS NULL OR e.skip <> ?2)";
            db.all(sql, values![&id.0, Skip::Copied.name()], |row| row.next())
        })
        .await
    }

    /// Hands who said what in a session to `each`, in order, for entries with ordinals in this range.
    pub(crate) async fn said(
        &self,
        session: SessionId,
        ordinals: Range<u32>,
        mut each: impl FnMut(SpokenEntry),
    ) -> Result<(), StoreError> {
        let mut left = ordinals;
        loop {
            let part = left.clone();
            let read = move |from: &mut Db| spoken(from, session, part.clone());
            let said = self.read("reading who said what", read).await?;
            let whole = said.len() == SPOKEN_MAX;
            left.start = said.last().map_or(left.end, |last| last.ordinal.saturating_add(1));
            said.into_iter().for_each(&mut each);
            if !whole {
                return Ok(());
            }
        }
    }
}

impl Store {
    /// Writes what is known of a session before its entries are read. Beginning it again updates that, and forgets
    /// what it came to until it ends again; what was staged stays.
    pub async fn begin_session(&self, session: &Session) -> Result<(), StoreError> {
        let session = session.clone();
        self.write("beginning a session", move |to| begin(to, &session)).await
    }

    /// Writes what a session came to, and lets exactly `end.runs` cover it: the records of its other runs are
    /// replaced, those of runs that come back are as they were.
    pub async fn end_session(
        &self,
        id: SessionId,
        end: SessionEnd,
    ) -> Result<ReplacedCounts, StoreError> {
        self.write("ending a session", move |db: &mut Db| {
            let end = &end;
            let no = number(db, id)?;
            let sql = "UPDATE sessions SET entries = ?2, lines = ?3, findings = ?4, masked = ?5,
        ended_at = ?6, taken = ?2, intakes = intakes + 1 WHERE no = ?1";
            let (findings, masked) = (json(&end.findings)?, json(&end.masked.counts)?);
            db.run(sql, values![no, end.entries, end.lines, &findings, &masked, end.at])?;
            // A file that was rewritten shorter has no entries there any more.
            let sql = "DELETE FROM coverage WHERE session_no = ?1 AND ?2 <= ordinal";
            db.run(sql, values![no, end.entries])?;
            let sql = "DELETE FROM session_ends WHERE session_no = ?1 AND ?2 < entries";
            db.run(sql, values![no, end.entries])?;
            mark_end_of(db, no, end.entries)?;
            // It was read to its end: nothing of it waits any more.
            let sql = "DELETE FROM jobs WHERE session_no = ?1 AND finished_at IS NULL
        AND state IN ('waiting', 'ready')
        AND NOT EXISTS (SELECT 1 FROM batch_jobs b WHERE b.job_no = jobs.no)";
            db.run(sql, values![no])?;
            if let Some(remembered) = &end.remembered {
                remember(db, no, remembered)?;
            }
            if let Some(card) = &end.card {
                write_card(db, no, end.entries, card)?;
            }
            let covering: HashSet<RunId> = end.runs.iter().copied().collect();
            switch_runs(db, no, &covering)
        })
        .await
    }

    pub(crate) async fn session(
        &self,
        prefix: IdPrefix,
    ) -> Result<PrefixLookup<Session>, StoreError> {
        let read = move |from: &mut Db| {
            let read = |from: &mut Db, id| find(from, SessionId(id));
            prefix::find(from, "sessions", &prefix, read)
        };
        self.read("looking up a session", read).await
    }

    /// Number of entries a session had each time it was read to its end, in order.
    pub(crate) async fn session_ends(&self, session: SessionId) -> Result<Vec<u32>, StoreError> {
        self.read("reading where a session ended", move |from| ends(from, session)).await
    }

    /// The file that a session was last read from; none if it is not in the store.
    pub(crate) async fn session_path(
        &self,
        session: SessionId,
    ) -> Result<Option<String>, StoreError> {
        self.read("reading a session's file", move |db: &mut Db| {
            let id = session;
            db.first("SELECT path FROM sessions WHERE id = ?1", values![&id.0], |row| row.next())
        })
        .await
    }
}
