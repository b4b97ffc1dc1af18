//! End of a replayed session: decides which runs cover it from then on.

use super::db::Db;
use super::error::{Fault, StoreError};
use super::handle::Store;
use super::session;
use super::status::SessionTotals;
use super::value::{json, row_of, values};
use crate::domain::{Coverage, Finding, RunId, SessionId, Timestamp};
use crate::privacy::Report;
use std::collections::HashSet;

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

impl Store {
    /// Ends a session and makes exactly `end.runs` cover it. Records of other runs are replaced;
    /// those of runs that cover it again are restored. Returns the coverage before, and the totals after.
    pub(crate) async fn end_session(
        &self,
        id: SessionId,
        end: SessionEnd,
    ) -> Result<(Coverage, SessionTotals), StoreError> {
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
fn switch_runs(db: &mut Db, session_no: i64, covering: &HashSet<RunId>) -> Result<(), Fault> {
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
