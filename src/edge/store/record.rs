//! Records: what was staged, listed, looked up and told with its sources.

use super::column::{Columns, json, unreadable};
use super::error::Fault;
use super::{IdPrefix, StoredRun};
use super::{entry, run, session};
use crate::domain::{
    Claim, ClaimKind, Digest, Entry, Evidence, Format, Match, Provenance, Record, RecordId,
    RecordState, RunId, Session, SessionId, SliceId, Speaker, Timestamp,
};
use crate::privacy::Redacted;
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::ControlFlow;

/// Which records to list. The default is every current one.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RecordFilter {
    /// Of this kind only.
    pub kind: Option<ClaimKind>,
    /// Of sessions whose id begins so.
    pub session: Option<IdPrefix>,
    /// That rest on words said then or later; where nobody knows, the session's beginning counts,
    /// and at last the time of the extraction.
    pub since: Option<Timestamp>,
    /// Of this namespace only.
    pub namespace: Option<String>,
    /// In these states; none named means staged and quarantined.
    pub states: Vec<RecordState>,
    /// This many at most.
    pub limit: Option<u32>,
}

/// A record in the store.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRecord {
    /// The record; its state is `Replaced` where another run covers its entries now.
    pub record: Record,
    /// The file of its session.
    pub path: String,
    /// How that file is written.
    pub format: Format,
    /// The model that claimed it.
    pub model: String,
    /// The prompt's id and version.
    pub prompt: (String, u32),
    /// When the run finished.
    pub extracted_at: Timestamp,
}

/// A record with everything it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordPage {
    /// The record.
    pub stored: StoredRecord,
    /// The run that made it.
    pub run: StoredRun,
    /// Its conversation.
    pub session: Session,
}

/// Why a record is believed: its page, and the entry under each piece of its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// Record, run and session.
    pub page: RecordPage,
    /// The entry of each piece of evidence, in the same order; none if it is not in the store.
    pub entries: Vec<Option<Entry>>,
}

/// A piece of evidence as a column has it.
#[derive(Deserialize, Serialize)]
struct Proof<'a> {
    #[serde(borrow)]
    field: Cow<'a, str>,
    ordinal: u32,
    line: u32,
    bytes: (usize, usize),
    speaker: Speaker,
    found: Match,
    #[serde(borrow)]
    words: Cow<'a, str>,
}

pub(super) fn write(connection: &Connection, run_no: i64, records: &[Record]) -> Result<(), Fault> {
    let sql =
        "INSERT INTO records (id, run_no, kind, state, score, first_ordinal, last_ordinal, at,
            reason, body, evidence)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
        ON CONFLICT (id) DO UPDATE SET
            state = excluded.state, score = excluded.score, at = excluded.at,
            first_ordinal = excluded.first_ordinal, last_ordinal = excluded.last_ordinal,
            reason = excluded.reason, evidence = excluded.evidence";
    let mut insert = connection.prepare_cached(sql)?;
    for record in records {
        let evidence: Vec<Proof<'_>> = record.evidence.iter().map(proof).collect();
        insert.execute(params![
            record.id.0.as_bytes(),
            run_no,
            record.claim.kind().name(),
            record.state.name(),
            record.score,
            record.provenance.entries.0,
            record.provenance.entries.1,
            record.provenance.at.map(|at| at.0),
            record.reason,
            json(&record.claim)?,
            json(&evidence)?,
        ])?;
    }
    Ok(())
}

fn proof(evidence: &Evidence) -> Proof<'_> {
    Proof {
        field: Cow::Borrowed(&evidence.field),
        ordinal: evidence.ordinal,
        line: evidence.line,
        bytes: (evidence.bytes.start, evidence.bytes.end),
        speaker: evidence.speaker,
        found: evidence.found,
        words: Cow::Borrowed(evidence.words.as_str()),
    }
}

fn evidence(proof: Proof<'_>) -> Evidence {
    Evidence {
        field: proof.field.into_owned(),
        ordinal: proof.ordinal,
        line: proof.line,
        bytes: proof.bytes.0..proof.bytes.1,
        speaker: proof.speaker,
        found: proof.found,
        words: Redacted::reopened(proof.words.into_owned()),
    }
}

/// A record's state as seen from outside.
const STATE: &str = "iif(r.current, c.state, 'replaced')";

const COLUMNS: &str = "c.id, c.kind, c.score, c.first_ordinal, c.last_ordinal, c.at, c.reason, \
     c.body, c.evidence, r.id, r.slice, r.model, r.prompt_id, r.prompt_version, r.finished_at, \
     s.id, s.namespace, s.path, s.format";

const TABLES: &str = "records c JOIN runs r ON r.no = c.run_no \
     JOIN sessions s ON s.no = r.session_no";

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<StoredRecord> {
    let row = &mut Columns::of(row);
    let state = row.named(RecordState::of_name)?;
    let id = RecordId(row.digest()?);
    let kind = row.named(ClaimKind::of_name)?;
    let score = row.next()?;
    let entries = (row.next()?, row.next()?);
    let (at, reason) = (row.time_if()?, row.next()?);
    let claim_at = row.position();
    let claim = Claim::from_json(kind, &row.next::<String>()?)
        .map_err(|error| unreadable(claim_at, error))?;
    let evidence_at = row.position();
    let proofs: String = row.next()?;
    let proofs: Vec<Proof<'_>> =
        serde_json::from_str(&proofs).map_err(|error| unreadable(evidence_at, error))?;
    let evidence = proofs.into_iter().map(evidence).collect();
    let (run, slice) = (RunId(row.digest()?), SliceId(row.digest()?));
    let model = row.next()?;
    let prompt = (row.next()?, row.next()?);
    let extracted_at = row.time()?;
    let session = SessionId(row.digest()?);
    let namespace = row.next()?;
    let provenance = Provenance { namespace, session, slice, run, entries, at };
    let record = Record { id, claim, provenance, evidence, score, state, reason };
    let path = row.next()?;
    let format = session::format(row)?;
    Ok(StoredRecord { record, path, format, model, prompt, extracted_at })
}

/// Hands every record of `filter` to `each`, by session, place and order of staging, until it says
/// stop. At no time is more than one session's worth held.
pub(super) fn each(
    connection: &Connection,
    filter: &RecordFilter,
    mut each: impl FnMut(StoredRecord) -> ControlFlow<()>,
) -> Result<(), Fault> {
    let states = if filter.states.is_empty() {
        &[RecordState::Staged, RecordState::Quarantined]
    } else {
        filter.states.as_slice()
    };
    let wanted = |state: RecordState| states.contains(&state);
    let sql = format!(
        "SELECT {STATE}, {COLUMNS} FROM {TABLES}
        WHERE r.session_no = ?1 AND (?2 IS NULL OR c.kind = ?2)
            AND (?3 IS NULL OR ?3 <= coalesce(c.at, s.started_at, r.finished_at))
            AND CASE {STATE} WHEN 'staged' THEN ?4 WHEN 'quarantined' THEN ?5 ELSE ?6 END
        ORDER BY r.first_ordinal, r.first_part, r.no, c.no LIMIT ?7"
    );
    let mut left = filter.limit.map_or(i64::MAX, i64::from);
    for session_no in sessions(connection, filter)? {
        let mut select = connection.prepare_cached(&sql)?;
        let mut rows = select.query(params![
            session_no,
            filter.kind.map(ClaimKind::name),
            filter.since.map(|at| at.0),
            wanted(RecordState::Staged),
            wanted(RecordState::Quarantined),
            wanted(RecordState::Replaced),
            left,
        ])?;
        while let Some(row) = rows.next()? {
            left -= 1;
            if each(read(row)?).is_break() {
                return Ok(());
            }
        }
        if left <= 0 {
            break;
        }
    }
    Ok(())
}

/// The sessions of a filter in an order that does not depend on which was written first.
fn sessions(connection: &Connection, filter: &RecordFilter) -> Result<Vec<i64>, Fault> {
    let sql = "SELECT no FROM sessions
        WHERE (?1 IS NULL OR id BETWEEN ?1 AND ?2) AND (?3 IS NULL OR namespace = ?3)
        ORDER BY started_at, id";
    let bounds = filter.session.as_ref().map(IdPrefix::bounds);
    let (low, high) = (bounds.map(|(low, _)| low), bounds.map(|(_, high)| high));
    let mut select = connection.prepare_cached(sql)?;
    let rows = select.query_map(params![low, high, filter.namespace], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Every record of a run, replaced ones too, in order of staging.
pub(super) fn of_run(connection: &Connection, run: RunId) -> Result<Vec<StoredRecord>, Fault> {
    let sql = format!("SELECT {STATE}, {COLUMNS} FROM {TABLES} WHERE r.id = ?1 ORDER BY c.no");
    let mut select = connection.prepare_cached(&sql)?;
    let rows = select.query_map([run.0.as_bytes()], read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// One record with its run and its session.
pub(super) fn page(connection: &Connection, id: Digest) -> Result<Option<RecordPage>, Fault> {
    let sql = format!("SELECT {STATE}, {COLUMNS} FROM {TABLES} WHERE c.id = ?1");
    let mut select = connection.prepare_cached(&sql)?;
    let Some(stored) = select.query_row([id.as_bytes()], read).optional()? else {
        return Ok(None);
    };
    let provenance = &stored.record.provenance;
    let run = run::find(connection, provenance.run)?;
    let session = session::find(connection, provenance.session)?;
    Ok(run.zip(session).map(|(run, session)| RecordPage { stored, run, session }))
}

/// One record with the entries that it rests on.
pub(super) fn why(connection: &Connection, id: Digest) -> Result<Option<Why>, Fault> {
    let Some(page) = page(connection, id)? else { return Ok(None) };
    let mut entries = Vec::with_capacity(page.stored.record.evidence.len());
    for piece in &page.stored.record.evidence {
        let ordinals = piece.ordinal..piece.ordinal.saturating_add(1);
        entries.push(entry::list(connection, page.session.id, ordinals)?.pop());
    }
    Ok(Some(Why { page, entries }))
}
