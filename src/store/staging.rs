//! Staging: writes a run with its coverage and records.

use super::db::Db;
use super::entry::{self, CoveredEntry};
use super::error::{Fault, StoreError, StoreErrorKind};
use super::handle::Store;
use super::run::{self, Run};
use super::session_end::SessionEnd;
use super::value::{row_of, values};
use super::{queue, record, search, session};
use crate::domain::{Record, RecordState, RunState, Session};
use crate::privacy::Report;

/// A run with its results.
#[derive(Clone, Debug, PartialEq)]
pub struct Staging {
    /// The run.
    pub run: Run,
    /// Entries of the slice with their coverage. An entry may appear once per part; the highest
    /// state counts.
    pub entries: Vec<CoveredEntry>,
    /// Records, in listing order.
    pub records: Vec<Record>,
}

/// Numbers of a run's records after staging.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Staged {
    /// Number of staged records.
    pub staged: u32,
    /// Number of quarantined records.
    pub quarantined: u32,
}

row_of! { Staged { staged, quarantined } }

impl Store {
    /// Stages a note: a session with its entries and its only run. Idempotent.
    pub(crate) async fn stage_whole(
        &self,
        session: Session,
        staging: Staging,
    ) -> Result<(), StoreError> {
        let (id, run, at) = (session.id, staging.run.id, staging.run.finished_at);
        let entries = u32::try_from(staging.entries.len()).unwrap_or(u32::MAX);
        self.write("staging a note", move |db| {
            let no = session::begin(db, &session)?;
            entry::write_texts(db, no, staging.entries.iter().map(|it| &it.entry))?;
            stage(db, &staging).map(drop)
        })
        .await?;
        let masked = Report::default();
        let (findings, runs) = (Vec::new(), vec![run]);
        let end = SessionEnd { entries, findings, masked, is_copy: false, runs, at };
        self.end_session(id, end).await.map(drop)
    }
}

/// Writes a run with its coverage and records; its entries must be stored. Idempotent. Staging a
/// run again replaces its results, unless it succeeded before and failed now.
pub(super) fn stage(db: &mut Db, staging: &Staging) -> Result<Staged, Fault> {
    let run = &staging.run;
    // Two callers that stage a new run at once would both find nothing to replace.
    db.lock_key(&run.id.0)?;
    let (session_no, earlier) = found(db, run)?;
    if let (Some((run_no, true)), RunState::Failed) = (earlier, run.state) {
        add_cost(db, run_no, run)?;
        return count(db, run_no);
    }
    let run_no = run::write(db, session_no, run)?;
    if earlier.is_some() {
        entry::uncover(db, session_no, run_no, (run.first.0, run.last.0))?;
        db.run("UPDATE records SET state = 'replaced' WHERE run_no = ?1", values![run_no])?;
    }
    if run.state == RunState::Done && run.failure.is_none() {
        replace_others(db, session_no, run)?;
        // A job of these entries may have died without a run.
        entry::uncover_without_run(db, session_no, (run.first.0, run.last.0))?;
        queue::close_covered_jobs(db, session_no, run)?;
    }
    entry::cover(db, session_no, run_no, &staging.entries)?;
    record::write(db, run_no, &staging.records)?;
    search::enter_run(db, run_no, &staging.records)?;
    count(db, run_no)
}

/// Returns the row number of the run's session, and that of an existing run with its done flag.
fn found(db: &mut Db, run: &Run) -> Result<(i64, Option<(i64, bool)>), Fault> {
    let sql = "SELECT s.no, r.no, r.state FROM sessions s LEFT JOIN runs r ON r.id = ?2
        WHERE s.id = ?1";
    let found: Option<(i64, Option<i64>, Option<RunState>)> =
        db.first(sql, values![&run.session.0, &run.id.0])?;
    let (session_no, run_no, state) = found.ok_or(StoreErrorKind::UnknownSession(run.session))?;
    Ok((session_no, run_no.map(|run_no| (run_no, state == Some(RunState::Done)))))
}

fn count(db: &mut Db, run_no: i64) -> Result<Staged, Fault> {
    let sql = "SELECT count(*) FILTER (WHERE state = ?2), count(*) FILTER (WHERE state = ?3)
        FROM records WHERE run_no = ?1";
    let states = (RecordState::Staged.name(), RecordState::Quarantined.name());
    db.one(sql, values![run_no, states.0, states.1])
}

/// Replaces runs of another model, prompt or schema within the same entries. Runs that overlap only
/// partly stay until the session ends.
fn replace_others(db: &mut Db, session_no: i64, run: &Run) -> Result<(), Fault> {
    let sql = "UPDATE runs SET current = 0
        WHERE session_no = ?1 AND current = 1 AND asking <> ?2
            AND (first_ordinal, first_part) >= (?3, ?4)
            AND (last_ordinal, last_part) <= (?5, ?6)";
    let (first, last) = (run.first, run.last);
    let values = values![session_no, &run.asking, first.0, first.1, last.0, last.1];
    db.run(sql, values)
}

/// Adds the cost of a later generation to a run that otherwise stays unchanged.
fn add_cost(db: &mut Db, run_no: i64, run: &Run) -> Result<(), Fault> {
    let sql = "UPDATE runs SET generation = ?2, asks = asks + ?3, calls = calls + ?4,
            prompt_tokens = prompt_tokens + ?5, cached_tokens = cached_tokens + ?6,
            completion_tokens = completion_tokens + ?7, cost_micros = cost_micros + ?8,
            finished_at = ?9, current = 1
        WHERE no = ?1 AND generation < ?2";
    let values = values![
        run_no, run.generation, run.asks, run.calls, run.usage.prompt_tokens,
        run.usage.cached_tokens, run.usage.completion_tokens, run.cost_micros, run.finished_at,
    ];
    db.run(sql, values)
}
