//! Records: staging, listing, lookup, and their sources.

use super::{
    Columns, Db, IdPrefix, Insert, PrefixLookup, Result, Row, Store, StoreResult, StoredRun, entry,
    json, row_of, run, session, values,
};
use crate::domain::{
    Claim, ClaimKind, Digest, Entry, Evidence, Format, Match, Provenance, Record, RecordState,
    RunId, Session, Speaker, Timestamp,
};
use crate::privacy::Redacted;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::HashSet;
use std::ops::{ControlFlow, Range};

/// Filter for listing records. The default selects all current records.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RecordFilter {
    /// Kind.
    pub kind: Option<ClaimKind>,
    /// Session id prefix.
    pub session: Option<IdPrefix>,
    /// Earliest time of the words. Defaults to the start of the session, or else the end of the
    /// extraction.
    pub since: Option<Timestamp>,
    /// Namespace.
    pub namespace: Option<String>,
    /// States; empty means staged and quarantined.
    pub states: Vec<RecordState>,
    /// Newest first, instead of by session and position.
    pub newest_first: bool,
    /// Maximum number of records.
    pub limit: Option<u32>,
}

/// A record in the store.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRecord {
    /// The record; its state is `Replaced` if another run now covers its entries.
    pub record: Record,
    /// The session's file.
    pub path: String,
    /// Format of that file.
    pub format: Format,
    /// Model that made the claim.
    pub model: String,
    /// Prompt id and version.
    pub prompt: (String, u32),
    /// End time of the run.
    pub extracted_at: Timestamp,
    /// True if consolidation decided to make no memory of it, or a person set it aside with the plan that made one.
    pub is_discarded: bool,
}

/// A record with its run and session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecordPage {
    pub stored: StoredRecord,
    pub run: StoredRun,
    pub session: Session,
}

/// A record with the entry behind each piece of its evidence.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecordSources {
    pub page: RecordPage,
    /// The entry of each piece of evidence, in the same order; `None` if it is not in the store.
    pub entries: Vec<Option<Entry>>,
}

/// Evidence as stored in a column.
#[derive(Deserialize, Serialize)]
struct StoredEvidence(#[serde(with = "EvidenceColumn")] Evidence);

#[derive(Deserialize, Serialize)]
#[serde(remote = "Evidence")]
struct EvidenceColumn {
    field: String,
    ordinal: u32,
    line: u32,
    #[serde(serialize_with = "as_pair")]
    bytes: Range<usize>,
    speaker: Speaker,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<Redacted>,
    found: Match,
    words: Redacted,
}

fn as_pair<S: Serializer>(range: &Range<usize>, serializer: S) -> Result<S::Ok, S::Error> {
    (range.start, range.end).serialize(serializer)
}

const RECORDS: Insert = Insert {
    head: "INSERT INTO records (id, run_no, kind, state, score, first_ordinal, last_ordinal, at,
            reason, body, evidence)",
    width: 11,
    tail: "ON CONFLICT (id) DO UPDATE SET
            state = excluded.state, score = excluded.score, at = excluded.at,
            first_ordinal = excluded.first_ordinal, last_ordinal = excluded.last_ordinal,
            reason = excluded.reason, evidence = excluded.evidence",
};

/// Writes the records of a run. If two have the same id, the later one wins.
pub(super) fn write(db: &mut Db, run_no: i64, records: &[Record]) -> Result<()> {
    let mut seen = HashSet::with_capacity(records.len());
    let mut texts = Vec::with_capacity(records.len());
    for record in records.iter().rev().filter(|record| seen.insert(record.id)) {
        let evidence = record.evidence.iter().cloned().map(StoredEvidence).collect::<Vec<_>>();
        texts.push((record, json(&record.claim)?, json(&evidence)?));
    }
    let mut rows = Vec::with_capacity(texts.len() * RECORDS.width);
    for (record, claim, evidence) in texts.iter().rev() {
        let Record { id, provenance, score, state, reason, .. } = record;
        let (kind, (first, last)) = (record.claim.kind(), provenance.entries);
        rows.extend_from_slice(values![
            id, run_no, kind, *state, *score, first, last, provenance.at, reason, claim, evidence,
        ]);
    }
    db.insert(RECORDS, &rows).map(drop)
}

/// A record's effective state.
const STATE: &str = "CASE WHEN r.current = 1 THEN c.state ELSE 'replaced' END";

/// Columns of a [`StoredRecord`].
pub(super) const RECORD_COLUMNS: &str = "c.id, c.kind, c.body, s.namespace, s.id, r.slice, r.id, \
     c.first_ordinal, c.last_ordinal, c.at, c.evidence, c.score, \
     CASE WHEN r.current = 1 THEN c.state ELSE 'replaced' END, c.reason, \
     s.path, s.format, r.model, r.prompt_id, r.prompt_version, r.finished_at, \
     (SELECT count(*) FROM dispositions x WHERE x.record = c.id AND x.memory IS NULL \
     AND x.withdrawn_no IS NULL)";

pub(super) const RECORD_TABLES: &str = "records c JOIN runs r ON r.no = c.run_no \
     JOIN sessions s ON s.no = r.session_no";

row_of! { StoredRecord { record, path, format, model, prompt, extracted_at, is_discarded } }
row_of! { Record { id, claim, provenance, evidence, score, state, reason } }
row_of! { Provenance { namespace, session, slice, run, entries, at } }

impl Row for Claim {
    fn read(row: &mut Columns<'_>) -> Result<Claim> {
        let kind = row.next()?;
        row.text(|text| serde_json::from_str(text).ok().filter(|it: &Claim| it.kind() == kind))
    }
}

impl Row for Vec<Evidence> {
    fn read(row: &mut Columns<'_>) -> Result<Vec<Evidence>> {
        row.text(|text| {
            let stored: Vec<StoredEvidence> = serde_json::from_str(text).ok()?;
            Some(stored.into_iter().map(|it| it.0).collect())
        })
    }
}

/// Passes the records of `filter` to `each`, by session, position and staging order, until it
/// breaks. Holds at most one session's records at a time.
fn each_record(
    db: &mut Db,
    filter: &RecordFilter,
    mut each: impl FnMut(StoredRecord) -> ControlFlow<()>,
) -> Result<()> {
    let states = if filter.states.is_empty() {
        &[RecordState::Staged, RecordState::Quarantined]
    } else {
        filter.states.as_slice()
    };
    let wanted = |state: RecordState| states.contains(&state).then_some(state);
    // Each value is compared before it is tested for null, so that PostgreSQL infers its type.
    let wanted_ones = format!(
        "(c.kind = ?2 OR ?2 IS NULL)
            AND (?3 <= coalesce(c.at, s.started_at) OR ?3 IS NULL)
            AND {STATE} IN (?4, ?5, ?6)
            AND (s.id BETWEEN ?8 AND ?9 OR ?8 IS NULL) AND (s.namespace = ?10 OR ?10 IS NULL)"
    );
    // The newest are searched across all sessions. Records without a time come last.
    let (of, order, parts) = match filter.newest_first {
        true => {
            let of = format!("?1 <= r.session_no AND {}", newest(&wanted_ones));
            (of, format!("{TIME} DESC, {LATEST}"), vec![0])
        }
        false => (
            "r.session_no = ?1".to_owned(),
            "r.first_ordinal, r.first_part, r.no, c.no".to_owned(),
            sessions(db, filter)?,
        ),
    };
    let sql = format!(
        "SELECT {RECORD_COLUMNS} FROM {RECORD_TABLES} WHERE {of} AND {wanted_ones}
        ORDER BY {order} LIMIT ?7"
    );
    let (low, high) = filter.session.as_ref().map(IdPrefix::bounds).unzip();
    let [staged, quarantined, replaced] =
        [RecordState::Staged, RecordState::Quarantined, RecordState::Replaced].map(wanted);
    let mut left = filter.limit.map_or(i64::MAX, i64::from);
    let mut stopped = false;
    for session_no in parts {
        let values = values![
            session_no, filter.kind, filter.since, staged, quarantined, replaced, left, low, high,
            &filter.namespace,
        ];
        db.each(&sql, values, |row| {
            left -= 1;
            let go_on = each(row.next()?);
            stopped = go_on.is_break();
            Ok(go_on)
        })?;
        if stopped || left <= 0 {
            break;
        }
    }
    Ok(())
}

/// Sort key of records.
const TIME: &str = "coalesce(c.at, s.started_at, 0)";
/// Tie-breakers between records with the same time.
const LATEST: &str = "s.id, r.first_ordinal DESC, r.first_part DESC, c.no DESC";

/// Condition for the newest records. Finds dated ones by their index without reading older ones.
fn newest(wanted: &str) -> String {
    let found = |is_dated: &str, time: &str| {
        format!(
            "SELECT no FROM (SELECT c.no FROM records c CROSS JOIN runs r CROSS JOIN sessions s
                WHERE r.no = c.run_no AND s.no = r.session_no AND c.at {is_dated} AND {wanted}
                ORDER BY {time} DESC, {LATEST} LIMIT ?7) n"
        )
    };
    let (dated, undated) = (found("IS NOT NULL", "c.at"), found("IS NULL", TIME));
    format!("c.no IN ({dated} UNION ALL {undated})")
}

/// Sessions of a filter, in an order independent of insertion.
fn sessions(db: &mut Db, filter: &RecordFilter) -> Result<Vec<i64>> {
    let sql = "SELECT no FROM sessions
        WHERE (id BETWEEN ?1 AND ?2 OR ?1 IS NULL) AND (namespace = ?3 OR ?3 IS NULL)
        ORDER BY started_at NULLS FIRST, id";
    let (low, high) = filter.session.as_ref().map(IdPrefix::bounds).unzip();
    db.all(sql, values![low, high, &filter.namespace])
}

pub(super) fn find(db: &mut Db, id: Digest) -> Result<Option<StoredRecord>> {
    let sql = format!("SELECT {RECORD_COLUMNS} FROM {RECORD_TABLES} WHERE c.id = ?1");
    db.first(&sql, values![&id])
}

pub(super) fn page(db: &mut Db, id: Digest) -> Result<Option<RecordPage>> {
    let Some(stored) = find(db, id)? else { return Ok(None) };
    let provenance = &stored.record.provenance;
    let run = run::find(db, provenance.run)?;
    let session = session::find(db, provenance.session)?;
    Ok(run.zip(session).map(|(run, session)| RecordPage { stored, run, session }))
}

pub(super) fn why(db: &mut Db, id: Digest) -> Result<Option<RecordSources>> {
    let Some(page) = page(db, id)? else { return Ok(None) };
    let mut entries = Vec::with_capacity(page.stored.record.evidence.len());
    for piece in &page.stored.record.evidence {
        let ordinals = piece.ordinal..piece.ordinal.saturating_add(1);
        entries.push(entry::list(db, page.session.id, ordinals)?.pop());
    }
    Ok(Some(RecordSources { page, entries }))
}

impl Store {
    /// Returns the records of a filter, by session start, position and staging order.
    pub async fn records(&self, filter: RecordFilter) -> StoreResult<Vec<StoredRecord>> {
        let keep = |kept: &mut Vec<StoredRecord>, record| {
            kept.push(record);
            ControlFlow::Continue(())
        };
        self.fold_records(filter, Vec::new(), keep).await
    }

    /// Folds the records of a filter one by one, in the order of [`Store::records`], until `each`
    /// breaks. Uses constant memory, for exports.
    pub async fn fold_records<S: Send + 'static>(
        &self,
        filter: RecordFilter,
        start: S,
        mut each: impl FnMut(&mut S, StoredRecord) -> ControlFlow<()> + Send + 'static,
    ) -> StoreResult<S> {
        let mut state = start;
        let read = move |from: &mut Db| {
            each_record(from, &filter, |record| each(&mut state, record))?;
            Ok(state)
        };
        self.read_once("reading records", read).await
    }

    pub(crate) async fn record(&self, prefix: IdPrefix) -> StoreResult<PrefixLookup<RecordPage>> {
        self.lookup("looking up a record", "records", prefix, page).await
    }

    /// Like [`Store::record`], with the entries behind the evidence.
    pub(crate) async fn why(&self, prefix: IdPrefix) -> StoreResult<PrefixLookup<RecordSources>> {
        self.lookup("looking up a record's sources", "records", prefix, why).await
    }

    /// Returns all records of each run, including replaced ones, in staging order, for a diff.
    pub(crate) async fn diff(
        &self,
        old: RunId,
        new: RunId,
    ) -> StoreResult<(Vec<StoredRecord>, Vec<StoredRecord>)> {
        let sql =
            format!("SELECT {RECORD_COLUMNS} FROM {RECORD_TABLES} WHERE r.id = ?1 ORDER BY c.no");
        self.read("reading the records of two runs", move |from: &mut Db| {
            Ok((from.all(&sql, values![&old.0])?, from.all(&sql, values![&new.0])?))
        })
        .await
    }
}
