//! Staging: writes a run with its coverage and records. The end of a replayed session decides which
//! runs cover it from then on.

use super::{
    CoveredEntry, Db, Result, Run, SessionTotals, Store, StoreErrorKind, StoreResult, entry, json,
    queue, record, row_of, run, search, session, values,
};
use crate::domain::{
    Coverage, Finding, Record, RecordState, RunId, RunState, Session, SessionId, Timestamp,
};
use crate::privacy::Report;
use std::collections::HashSet;

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
    pub staged: u32,
    pub quarantined: u32,
}

row_of! { Staged { staged, quarantined } }

impl Store {
    /// Stages a note: a session with its entries and its only run. Idempotent.
    pub(crate) async fn stage_whole(&self, session: Session, staging: Staging) -> StoreResult<()> {
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

    /// Ends a session and makes exactly `end.runs` cover it. Records of other runs are replaced;
    /// those of runs that cover it again are restored. Returns the coverage before, and the totals after.
    pub(crate) async fn end_session(
        &self,
        id: SessionId,
        end: SessionEnd,
    ) -> StoreResult<(Coverage, SessionTotals)> {
        self.write("ending a session", move |db| {
            let no = session::number(db, id)?;
            let before = SessionTotals::covered(db, no, end.entries)?.coverage;
            let told = match end.is_copy {
                true => "findings = coalesce(findings, ?3), masked = coalesce(masked, ?4)",
                false => "findings = ?3, masked = ?4",
            };
            let sql = format!(
                "UPDATE sessions SET entries = ?2, {told}, ended_at = ?5, taken = ?2,
                    intakes = intakes + 1 WHERE no = ?1"
            );
            let (findings, masked) = (json(&end.findings)?, json(&end.masked.counts)?);
            db.run(&sql, values![no, end.entries, &findings, &masked, end.at])?;
            // A rewritten file may be shorter than before.
            let sql = "DELETE FROM coverage WHERE session_no = ?1 AND ?2 <= ordinal";
            db.run(sql, values![no, end.entries])?;
            let sql = "DELETE FROM session_ends WHERE session_no = ?1 AND ?2 < entries";
            db.run(sql, values![no, end.entries])?;
            session::mark_end(db, no, end.entries)?;
            // The session was read to its end, so its queued jobs are obsolete.
            let sql = "DELETE FROM jobs WHERE session_no = ?1 AND finished_at IS NULL
                AND state IN ('waiting', 'ready')
                AND NOT EXISTS (SELECT 1 FROM batch_jobs b WHERE b.job_no = jobs.no)";
            db.run(sql, values![no])?;
            let covering: HashSet<RunId> = end.runs.iter().copied().collect();
            switch_runs(db, no, &covering)?;
            Ok((before, SessionTotals::of(db, no, end.entries)?))
        })
        .await
    }
}

/// Writes a run with its coverage and records; its entries must be stored. Idempotent. Staging a
/// run again replaces its results, unless it succeeded before and failed now. A failed run without
/// records keeps those of the generation before.
pub(super) fn stage(db: &mut Db, staging: &Staging) -> Result<Staged> {
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
        if run.state == RunState::Done || !staging.records.is_empty() {
            db.run("UPDATE records SET state = 'replaced' WHERE run_no = ?1", values![run_no])?;
        }
    }
    if run.state == RunState::Done && run.failure.is_none() {
        // Replaces runs of another model, prompt or schema within the same entries. Runs that overlap only
        // partly stay until the session ends.
        let sql = "UPDATE runs SET current = 0
            WHERE session_no = ?1 AND current = 1 AND asking <> ?2
                AND (first_ordinal, first_part) >= (?3, ?4)
                AND (last_ordinal, last_part) <= (?5, ?6)";
        let (first, last) = (run.first, run.last);
        db.run(sql, values![session_no, &run.asking, first.0, first.1, last.0, last.1])?;
        // A job of these entries may have died without a run.
        entry::uncover_without_run(db, session_no, (run.first.0, run.last.0))?;
        queue::close_covered_jobs(db, session_no, run)?;
    }
    let covered = staging.entries.iter();
    let covered = covered.map(|it| (it.entry.ordinal, it.state, it.reason.as_deref()));
    entry::cover(db, session_no, run_no, covered)?;
    record::write(db, run_no, &staging.records)?;
    search::enter_run(db, run_no, &staging.records)?;
    count(db, run_no)
}

/// Returns the row number of the run's session, and that of an existing run with its done flag.
fn found(db: &mut Db, run: &Run) -> Result<(i64, Option<(i64, bool)>)> {
    let sql = "SELECT s.no, r.no, r.state FROM sessions s LEFT JOIN runs r ON r.id = ?2
        WHERE s.id = ?1";
    let found: Option<(i64, Option<i64>, Option<RunState>)> =
        db.first(sql, values![&run.session.0, &run.id.0])?;
    let (session_no, run_no, state) = found.ok_or(StoreErrorKind::UnknownSession(run.session))?;
    Ok((session_no, run_no.map(|run_no| (run_no, state == Some(RunState::Done)))))
}

fn count(db: &mut Db, run_no: i64) -> Result<Staged> {
    let sql = "SELECT count(*) FILTER (WHERE state = ?2), count(*) FILTER (WHERE state = ?3)
        FROM records WHERE run_no = ?1";
    let states = (RecordState::Staged.name(), RecordState::Quarantined.name());
    db.one(sql, values![run_no, states.0, states.1])
}

/// Adds the cost of a later generation to a run that otherwise stays unchanged.
fn add_cost(db: &mut Db, run_no: i64, run: &Run) -> Result<()> {
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

/// Result of reading a session to its end.
#[derive(Clone, Debug)]
pub(crate) struct SessionEnd {
    /// Number of entries; the coverage must add up to it.
    pub entries: u32,
    pub findings: Vec<Finding>,
    pub masked: Report,
    /// True if read from its stored copy; its findings and redaction counts are then kept.
    pub is_copy: bool,
    /// Runs that cover the session now; records of all others are replaced.
    pub runs: Vec<RunId>,
    pub at: Timestamp,
}

/// A run of the session, as seen by [`switch_runs`].
struct Weighed {
    no: i64,
    id: RunId,
    current: bool,
    done: bool,
    range: (u32, u32),
}

row_of! { Weighed { no, id, current, done, range } }

impl Weighed {
    fn overlaps(&self, other: &Weighed) -> bool {
        self.range.0 <= other.range.1 && other.range.0 <= self.range.1
    }
}

/// Makes exactly the runs in `covering` current, except that a failed run does not replace an
/// earlier extraction of the same entries.
fn switch_runs(db: &mut Db, session_no: i64, covering: &HashSet<RunId>) -> Result<()> {
    let sql = "SELECT no, id, current, state = 'done', first_ordinal, last_ordinal
        FROM runs WHERE session_no = ?1 ORDER BY no";
    let runs: Vec<Weighed> = db.all(sql, values![session_no])?;
    let (new, old): (Vec<&Weighed>, Vec<&Weighed>) =
        runs.iter().partition(|run| covering.contains(&run.id));
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
    for run in &runs {
        let covers = (covering.contains(&run.id) && !yielding.contains(&run.no))
            || standing.contains(&run.no);
        if covers != run.current {
            db.run("UPDATE runs SET current = ?2 WHERE no = ?1", values![run.no, covers])?;
        }
    }
    Ok(())
}

/// Returns true if `ranges` cover every entry of `range`. Slices overlap, so a new one may reach
/// into its neighbour without replacing it.
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
