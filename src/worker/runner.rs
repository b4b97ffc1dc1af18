//! A replay's slices: each is asked about, grounded and staged. What is too long is cut in two and
//! asked again; what fails is stored with its reason.

use super::asking::Paid;
use super::budget::Reached;
use super::extracting::{About, Extractor, Outcome, failure};
use super::stage::{CUT_IN_TWO, Try};
use super::talk::Waiting;
use super::tally::Tally;
use crate::domain::{Finding, ModelError, RecordState, RunId, RunState, Session, Severity, Slice};
use crate::edge::store::{Failure, KnownRun, Scope, SessionTotals, Staging, StoreError};
use crate::privacy::Redacted;
use crate::slice::{Cutting, halve};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// What slices are worked on with.
pub(super) struct Runner {
    pub(super) extractor: Extractor,
    pub(super) tally: Arc<Tally>,
    pub(super) retry_failed: bool,
    pub(super) cancel: CancellationToken,
    /// Cancelled with `cancel`, or alone: then nothing new begins, and what is under way ends well.
    pub(super) closing: CancellationToken,
    /// Slices that the endpoint did not answer since it last did.
    pub(super) unanswered: AtomicU32,
    /// The first thing that only a person can mend.
    pub(super) stop: Mutex<Option<String>>,
}

/// A session's runs from before, by id.
pub(super) type Known = HashMap<RunId, KnownRun>;

/// Slices in a row for which the endpoint had no answer after all tries and waits. It is down then, and
/// thousands of slices more would each try, wait and fail.
const UNANSWERED_MAX: u32 = 5;

/// What became of one slice.
#[derive(Debug, Default)]
pub(super) struct Worked {
    /// The runs that cover it.
    pub(super) runs: Vec<RunId>,
    /// Whether some of it waits for the next time.
    pub(super) waits: bool,
    /// What became of its entries, where this is known without asking the store.
    pub(super) totals: SessionTotals,
    /// Whether only the store knows: runs from before, or entries in several parts.
    pub(super) ask_store: bool,
}

impl Worked {
    fn count(&mut self, staging: &Staging) {
        for covered in &staging.entries {
            self.totals.coverage.add(covered.state, 1);
        }
        for record in &staging.records {
            match record.state {
                RecordState::Quarantined => self.totals.quarantined += 1,
                RecordState::Staged | RecordState::Replaced => {
                    *self.totals.staged.entry(record.claim.kind()).or_default() += 1;
                }
            }
        }
    }
}

impl Runner {
    /// Works on one slice, which is told of what is `before` it, and so are its halves; gives the runs
    /// that cover it.
    pub(super) async fn work(
        &self,
        session: &Session,
        (cutting, before): (Cutting, Option<&Redacted>),
        known: &Known,
    ) -> Result<Worked, StoreError> {
        let mut worked = Worked::default();
        // Halves of halves: bounded by SLICE_TOKENS_MIN, below which nothing is cut again.
        let mut waiting = vec![cutting];
        while let Some(cutting) = waiting.pop() {
            let run = self.extractor.run_id(cutting.slice.id);
            let in_store = known.get(&run);
            let done = in_store.is_some_and(|it| it.state == RunState::Done);
            if done && in_store.is_some_and(|it| it.failure.as_deref() == Some(CUT_IN_TWO)) {
                worked.runs.push(run);
                waiting.extend(halves_of(&cutting));
            } else if done {
                self.tally.with(|totals| totals.slices_known += 1);
                worked.ask_store = true;
                worked.runs.push(run);
            } else if self.closing.is_cancelled() {
                worked.waits = true;
            } else {
                let told = (cutting, before);
                waiting.extend(self.one(session, told, in_store, &mut worked).await?);
            }
        }
        self.tally.with(|totals| totals.slices_done += 1);
        Ok(worked)
    }

    /// Asks about one slice and stores what came of it; gives its halves if it was too long.
    async fn one(
        &self,
        session: &Session,
        (cutting, before): (Cutting, Option<&Redacted>),
        in_store: Option<&KnownRun>,
        worked: &mut Worked,
    ) -> Result<Vec<Cutting>, StoreError> {
        let extractor = &self.extractor;
        let run = extractor.run_id(cutting.slice.id);
        let generation =
            in_store.map_or(0, |it| if self.retry_failed { it.afresh() } else { it.generation });
        let started_at = (extractor.asker.clock)();
        let mut paid = Paid::default();
        let about = About { session, run, slice: &cutting.slice, before };
        let whose = about.asks(&self.cancel, false);
        let outcome = extractor.extract(about, whose, generation, &mut paid).await?;
        if !matches!(outcome, Outcome::Waits(_)) {
            self.unanswered.store(0, Ordering::Relaxed);
        }
        let of = Try { run, generation, paid, started_at };
        // A half of a part may have come out whole.
        let tokens = cutting.slice.tokens;
        let in_parts =
            |slice: &Slice| slice.parts.iter().any(|part| part.parts > 1 || part.entry_offset > 0);
        worked.ask_store |= in_parts(&cutting.slice);
        let mut halves = Vec::new();
        let staging = match outcome {
            Outcome::Extracted { records, findings, rung } => {
                self.note_findings(&findings);
                extractor.extracted(cutting, of, (records, findings, rung))
            }
            Outcome::Failed(failure, findings) => self.fail(cutting, of, (failure, findings)),
            Outcome::TooLong(error) => {
                halves = halves_of(&cutting);
                match halves.is_empty() {
                    true => self.fail(cutting, of, (failure(error), Vec::new())),
                    false => extractor.cut_in_two(&cutting.slice, of, error),
                }
            }
            Outcome::Waits(Waiting::Unanswered(error)) => {
                self.unanswered(&error);
                self.fail(cutting, of, (failure(error), Vec::new()))
            }
            Outcome::Waits(why) => {
                self.wait(why);
                worked.waits = true;
                return Ok(Vec::new());
            }
        };
        worked.count(&staging);
        tracing::info!(
            run.id = %run,
            slice.tokens = tokens,
            records = staging.records.len(),
            calls = staging.run.calls,
            state = staging.run.state.name(),
            "slice staged"
        );
        extractor.asker.store().stage(staging).await?;
        worked.runs.push(run);
        Ok(halves)
    }

    fn fail(&self, cutting: Cutting, of: Try, why: (Failure, Vec<Finding>)) -> Staging {
        self.note_findings(&why.1);
        self.note_failure(&why.0, &cutting.slice);
        self.extractor.failed(cutting, of, why)
    }

    fn wait(&self, why: Waiting) {
        match why {
            Waiting::Cap(reached) => self.wait_at_cap(&reached),
            Waiting::Needs(error) | Waiting::Unanswered(error) => self.stop(error.to_string()),
            Waiting::Stopped => {}
        }
    }

    fn note_findings(&self, findings: &[Finding]) {
        findings.iter().for_each(|finding| self.tally.finding(finding));
        let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
        if errors > 0 {
            tracing::debug!(errors, "an answer had elements that could not be used");
        }
    }

    /// Ends the work where the endpoint is down for everybody.
    fn unanswered(&self, error: &ModelError) {
        if self.unanswered.fetch_add(1, Ordering::Relaxed) + 1 >= UNANSWERED_MAX {
            let line = format!(
                "{error}; {UNANSWERED_MAX} slices in a row had no answer: what is left waits, the \
                 same command goes on when the endpoint is back"
            );
            self.stop(line);
        }
    }

    /// Ends the work because of something that only a person can mend.
    pub(super) fn stop(&self, reason: String) {
        self.note_stop(reason);
        self.cancel.cancel();
    }

    fn note_stop(&self, reason: String) {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
    }

    fn wait_at_cap(&self, reached: &Reached) {
        let reason = reached.to_string();
        self.tally.with(|totals| *totals.waiting.entry(reason.clone()).or_default() += 1);
        // A cap of one session or one namespace leaves the others going.
        if matches!(reached.scope, Scope::Day(_)) {
            self.note_stop(format!("{reason}; what is left waits, nothing is lost"));
            // Calls under way are within the cap and will be paid for: their answers are kept.
            self.closing.cancel();
        }
    }

    fn note_failure(&self, failure: &Failure, slice: &Slice) {
        // An entry in several parts fails once.
        let entries = slice.parts.iter().filter(|part| part.part == 0).count();
        self.tally.with(|totals| {
            let count = totals.failures.entry(failure.kind.clone()).or_default();
            count.slices += 1;
            count.entries += entries as u64;
            count.example.clone_from(&failure.detail);
        });
    }
}

/// The halves of a slice, the first one last: they are worked on from the back of a list.
fn halves_of(cutting: &Cutting) -> Vec<Cutting> {
    let mut halves = halve(cutting);
    halves.reverse();
    halves
}
