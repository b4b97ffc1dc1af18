//! Status: coverage, records, failures and cost, aggregated by the database.

use super::session::SESSION_COLUMNS;
use super::{
    BillLine, Columns, Db, Result, Row, RunFailure, Spent, Store, StoreResult, Value, entry, queue,
    row_of, run, session, values,
};
use crate::domain::{
    ClaimKind, Coverage, CoverageState, Finding, RunId, Session, SessionId, Timestamp,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::{ControlFlow, Range};

/// Maximum number of failed runs listed.
const FAILED_MAX: u32 = 1_000;

/// Totals of everything in the store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// All sessions, by start time and id.
    pub sessions: Vec<SessionStatus>,
    /// Failed runs that nothing has replaced, latest first, at most 1,000.
    pub failed: Vec<FailedRun>,
    pub spent: Spent,
    /// The same by day, namespace and purpose, latest day first, at most 1,000 lines.
    pub bill: Vec<BillLine>,
}

impl Status {
    /// Coverage of the entries of all sessions.
    pub(crate) fn coverage(&self) -> Coverage {
        let mut sum = Coverage::default();
        self.sessions.iter().for_each(|session| sum += session.totals.coverage);
        sum
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct SessionStatus {
    pub session: Session,
    /// Number of entries; `None` until the session has been read to the end.
    pub entries: Option<u64>,
    pub totals: SessionTotals,
    /// Number of current runs that succeeded.
    pub runs_done: u64,
    /// Of those, runs that asked and made no call: recordings or the journal answered.
    pub runs_uncalled: u64,
    /// Number of current runs that failed.
    pub runs_failed: u64,
    pub findings: Vec<Finding>,
    /// Redaction counts by rule.
    pub masked: BTreeMap<String, u64>,
    /// Time at which it was last read to the end.
    pub ended_at: Option<Timestamp>,
}

impl SessionStatus {
    /// Returns true if every entry is covered or in an open job; false while the session is being
    /// read.
    pub(crate) fn is_balanced(&self) -> bool {
        self.entries == Some(self.totals.coverage.total())
    }
}

/// Coverage and records of a session.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SessionTotals {
    pub coverage: Coverage,
    /// Staged records by kind, in the order of [`ClaimKind::ALL`].
    pub staged: BTreeMap<ClaimKind, u64>,
    /// Number of records without sufficient evidence.
    pub quarantined: u64,
    /// Number of skipped and failed entries for each reason.
    pub reasons: BTreeMap<(CoverageState, String), u64>,
}

impl SessionTotals {
    /// Totals of a session with the coverage of its first `entries` entries.
    pub(super) fn of(db: &mut Db, no: i64, entries: u32) -> Result<SessionTotals> {
        let mut totals = SessionTotals::covered(db, no, entries)?;
        totals.add_records(db, " AND r.session_no = ?1", values![no])?;
        Ok(totals)
    }

    /// The same without its records.
    pub(super) fn covered(db: &mut Db, no: i64, entries: u32) -> Result<SessionTotals> {
        let mut totals = SessionTotals::default();
        let first = " AND session_no = ?1 AND ordinal < ?2";
        totals.add_coverage(db, first, values![no, entries])?;
        Ok(totals)
    }

    fn add_coverage(&mut self, db: &mut Db, condition: &str, of: &[Value<'_>]) -> Result<()> {
        each_coverage(db, condition, of, |_, state, reason, entries| {
            self.cover(state, reason, entries);
        })
    }

    fn cover(&mut self, state: CoverageState, reason: Option<String>, entries: u64) {
        self.coverage.add(state, entries);
        if let Some(reason) = reason {
            *self.reasons.entry((state, reason)).or_default() += entries;
        }
    }

    fn add_records(&mut self, db: &mut Db, condition: &str, of: &[Value<'_>]) -> Result<()> {
        // One row: a group for each kind would sort all records.
        let counts = ClaimKind::ALL.iter().map(|kind| {
            let kind = kind.name();
            format!(", count(*) FILTER (WHERE c.state <> 'quarantined' AND c.kind = '{kind}')")
        });
        let sql = format!(
            "SELECT count(*) FILTER (WHERE c.state = 'quarantined'){}
            FROM runs r JOIN records c ON r.no = c.run_no
            WHERE r.current = 1 AND c.state <> 'replaced'{condition}",
            counts.collect::<String>()
        );
        db.each(&sql, of, |row| {
            self.quarantined += row.next::<u64>()?;
            for kind in ClaimKind::ALL {
                let records: u64 = row.next()?;
                if records > 0 {
                    *self.staged.entry(*kind).or_default() += records;
                }
            }
            Ok(ControlFlow::Break(()))
        })
    }
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct NamespaceSums {
    pub sessions: u64,
    /// Totals of all its sessions.
    pub totals: SessionTotals,
    pub runs_failed: u64,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct EntryEnd {
    pub state: CoverageState,
    /// Reason, if skipped or failed.
    pub reason: Option<String>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FailedRun {
    pub run: RunId,
    pub session: SessionId,
    pub path: String,
    /// First and last ordinal of the slice.
    pub entries: (u32, u32),
    pub failure: RunFailure,
    pub at: Timestamp,
}

row_of! { FailedRun { run, session, path, entries, failure, at } }
row_of! { RunFailure { kind, detail } }

pub(super) fn read(db: &mut Db) -> Result<Status> {
    let mut totals: HashMap<i64, SessionTotals> = HashMap::new();
    each_coverage(db, "", &[], |no, state, reason, entries| {
        totals.entry(no).or_default().cover(state, reason, entries);
    })?;
    let sql = "SELECT r.session_no, CASE WHEN c.state = 'quarantined' THEN NULL ELSE c.kind END,
            count(*) FROM runs r JOIN records c ON r.no = c.run_no
        WHERE r.current = 1 AND c.state <> 'replaced' GROUP BY 1, 2";
    for (no, kind, records) in db.all::<(_, Option<ClaimKind>, u64)>(sql, &[])? {
        let totals = totals.entry(no).or_default();
        match kind {
            Some(kind) => *totals.staged.entry(kind).or_default() += records,
            None => totals.quarantined += records,
        }
    }
    for (no, entries) in queue::pending(db)? {
        totals.entry(no).or_default().coverage.add(CoverageState::Pending, entries);
    }
    let sql = format!(
        "SELECT s.no, {SESSION_COLUMNS}, s.entries, s.findings, s.masked, s.ended_at,
            coalesce(k.done, 0), coalesce(k.uncalled, 0), coalesce(k.failed, 0)
        FROM sessions s LEFT JOIN (
            SELECT session_no, count(*) FILTER (WHERE state = 'done') AS done,
                count(*) FILTER (WHERE state = 'done' AND calls = 0 AND asks > 0) AS uncalled,
                count(*) FILTER (WHERE state = 'failed') AS failed
            FROM runs WHERE current = 1 GROUP BY session_no
        ) k ON k.session_no = s.no ORDER BY s.started_at NULLS FIRST, s.id"
    );
    let mut sessions = Vec::new();
    for (no, session) in db.all::<(i64, SessionStatus)>(&sql, &[])? {
        let totals = totals.remove(&no).unwrap_or_default();
        sessions.push(SessionStatus { totals, ..session });
    }
    let spent = run::spent(db, Timestamp(i64::MIN), None, None)?;
    Ok(Status { sessions, failed: failed(db)?, spent, bill: run::bill(db)? })
}

impl Row for SessionStatus {
    fn read(row: &mut Columns<'_>) -> Result<SessionStatus> {
        Ok(SessionStatus {
            session: row.next()?,
            entries: row.next()?,
            findings: row.next::<Option<_>>()?.unwrap_or_default(),
            masked: row.next::<Option<_>>()?.unwrap_or_default(),
            ended_at: row.next()?,
            runs_done: row.next()?,
            runs_uncalled: row.next()?,
            runs_failed: row.next()?,
            totals: SessionTotals::default(),
        })
    }
}

/// Counts the matching entries by session, state and reason. The highest state in current runs
/// counts, with the reason of its row; among several such rows the greatest reason, which makes the
/// result deterministic.
fn each_coverage(
    db: &mut Db,
    condition: &str,
    values: &[Value<'_>],
    mut each: impl FnMut(i64, CoverageState, Option<String>, u64),
) -> Result<()> {
    let sql = format!(
        "SELECT session_no, state, CASE state WHEN 4 THEN failed WHEN 1 THEN skipped END, count(*)
        FROM (
            SELECT session_no, ordinal, max(state) AS state,
                max(reason) FILTER (WHERE state = 4) AS failed,
                max(reason) FILTER (WHERE state = 1) AS skipped
            FROM coverage
            WHERE run_no NOT IN (SELECT no FROM runs WHERE current = 0){condition}
            GROUP BY session_no, ordinal) AS entry
        GROUP BY 1, 2, 3"
    );
    db.each(&sql, values, |row| {
        let (no, rank, reason, entries) = row.next()?;
        if let Some(state) = entry::of_rank(rank) {
            each(no, state, reason, entries);
        }
        Ok(ControlFlow::Continue(()))
    })
}

fn failed(db: &mut Db) -> Result<Vec<FailedRun>> {
    let sql = "SELECT r.id, s.id, s.path, r.first_ordinal, r.last_ordinal,
            coalesce(r.error_kind, 'unknown'), coalesce(r.error_detail, ''), r.finished_at
        FROM runs r JOIN sessions s ON s.no = r.session_no
        WHERE r.current = 1 AND r.state = 'failed'
        ORDER BY r.finished_at DESC, r.no DESC LIMIT ?1";
    db.all(sql, values![FAILED_MAX])
}

impl Store {
    /// Returns the totals of a session, with the coverage of its first `entries` entries.
    pub(crate) async fn session_totals(
        &self,
        session: SessionId,
        entries: u32,
    ) -> StoreResult<SessionTotals> {
        self.read("adding up a session", move |db| {
            let no = session::number(db, session)?;
            SessionTotals::of(db, no, entries)
        })
        .await
    }

    /// Returns the number of a session's entries in jobs that wait.
    pub(crate) async fn waiting_entries(&self, session: SessionId) -> StoreResult<u64> {
        self.read("counting what waits", move |db| {
            let no = session::number(db, session)?;
            Ok(queue::pending(db)?.into_iter().filter(|it| it.0 == no).map(|it| it.1).sum())
        })
        .await
    }

    /// Returns the totals of the sessions of a namespace.
    pub(crate) async fn namespace_sums(&self, namespace: &str) -> StoreResult<NamespaceSums> {
        let namespace = namespace.to_owned();
        self.read("adding up a namespace", move |db| {
            let ours = values![&namespace];
            let sql = "SELECT no FROM sessions WHERE namespace = ?1";
            let sessions: HashSet<i64> = db.all(sql, ours)?.into_iter().collect();
            let of =
                |no: &str| format!(" AND {no} IN (SELECT no FROM sessions WHERE namespace = ?1)");
            let mut totals = SessionTotals::default();
            totals.add_coverage(db, &of("session_no"), ours)?;
            totals.add_records(db, &of("r.session_no"), ours)?;
            let pending = queue::pending(db)?.into_iter().filter(|it| sessions.contains(&it.0));
            pending.for_each(|it| totals.coverage.add(CoverageState::Pending, it.1));
            let sql = format!(
                "SELECT count(*) FROM runs WHERE current = 1 AND state = 'failed'{}",
                of("session_no")
            );
            let runs_failed = db.first(&sql, ours)?.unwrap_or_default();
            Ok(NamespaceSums { sessions: sessions.len() as u64, totals, runs_failed })
        })
        .await
    }

    /// Returns the coverage of these entries of a session.
    pub(crate) async fn entry_ends(
        &self,
        session: SessionId,
        ordinals: Range<u32>,
    ) -> StoreResult<BTreeMap<u32, EntryEnd>> {
        self.read("reading the states of entries", move |db| {
            let no = session::number(db, session)?;
            let sql = "SELECT ordinal, state, reason FROM coverage
                WHERE session_no = ?1 AND ?2 <= ordinal AND ordinal < ?3
                    AND run_no NOT IN (SELECT no FROM runs WHERE current = 0)
                ORDER BY ordinal, state, reason";
            let rows = db.all(sql, values![no, ordinals.start, ordinals.end])?;
            // The last row of an ordinal wins, which has the highest state.
            let ends = rows.into_iter().filter_map(|(ordinal, rank, reason)| {
                Some((ordinal, EntryEnd { state: entry::of_rank(rank)?, reason }))
            });
            Ok(ends.collect())
        })
        .await
    }

    /// Returns failed runs that nothing has replaced, latest first, at most 1,000.
    pub(crate) async fn failed_runs(&self) -> StoreResult<Vec<FailedRun>> {
        self.read("reading what failed", failed).await
    }

    /// Returns the cost of all calls that ended at `since` or later.
    pub(crate) async fn spent_since(&self, since: Timestamp) -> StoreResult<Spent> {
        self.read("adding up the cost", move |db| run::spent(db, since, None, None)).await
    }

    /// Returns the totals of everything in the store.
    pub async fn status(&self) -> StoreResult<Status> {
        self.read("reading the status", read).await
    }
}
