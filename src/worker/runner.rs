//! One slice from question to stage: ask, decode, ground, store. What is too long is cut in two and
//! asked again; what fails is stored with its reason.

use super::asking::{Asker, For, Model, NoAnswer, Paid};
use super::tally::Tally;
use crate::domain::{
    CoverageState, Digest, Entry, ErrorKind, Finding, ModelError, Provenance, Record, RecordState,
    Retry, RunId, RunState, Rung, Session, Severity, Slice, SliceId, Timestamp,
};
use crate::edge::store::{Covered, Failure, KnownRun, Run, SessionTotals, Staging, StoreError};
use crate::extract::{Asking, Exchange, Extraction, SCHEMA_VERSION, Step};
use crate::grounding::ground;
use crate::privacy::Gate;
use crate::slice::{Cutting, halve};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// What slices are worked on with.
pub(super) struct Runner {
    pub(super) asker: Asker,
    pub(super) asking: Arc<Asking>,
    pub(super) gate: Gate,
    pub(super) asking_digest: Digest,
    pub(super) tally: Arc<Tally>,
    pub(super) base_url: String,
    pub(super) retry_failed: bool,
    pub(super) cancel: CancellationToken,
    /// Cancelled with `cancel`, or alone: then nothing new begins, and what is under way ends well.
    pub(super) closing: CancellationToken,
    /// Slices that the endpoint did not answer since it last did.
    pub(super) unanswered: AtomicU32,
    /// The rung that the next exchange begins on.
    pub(super) rung: Mutex<Rung>,
    /// Slices in a row that were answered on a lower rung than they began on.
    pub(super) lower: AtomicU32,
    /// The first thing that only a person can mend.
    pub(super) stop: Mutex<Option<String>>,
}

/// A session's runs from before, by id.
pub(super) type Known = HashMap<RunId, KnownRun>;

/// Slices in a row for which the endpoint had no answer after all tries and waits. It is down then, and
/// thousands of slices more would each try, wait and fail.
const UNANSWERED_MAX: u32 = 5;

/// Slices in a row that must be answered on a lower rung before the next ones begin there, where the
/// endpoint did not refuse a higher one: a model may have had a bad moment.
const LOWER_MIN: u32 = 3;

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

/// The name under which a slice is stored that was cut in two.
const CUT_IN_TWO: &str = "cut-in-two";

/// Why a slice has no extraction.
enum Unread {
    /// It is stored as failed.
    Failed(Failure, Vec<Finding>),
    /// It is cut in two.
    TooLong(ModelError),
    /// It waits for the next time.
    Waits,
}

impl Runner {
    /// The id of the run that asks about `slice` in our way.
    pub(super) fn run_id(&self, slice: SliceId) -> RunId {
        RunId(Digest::of(&["run", &slice.to_string(), &self.asking_digest.to_string()]))
    }

    /// Works on one slice; gives the runs that cover it.
    pub(super) async fn work(
        &self,
        session: &Session,
        cutting: Cutting,
        known: &Known,
    ) -> Result<Worked, StoreError> {
        let mut worked = Worked::default();
        // Halves of halves: bounded by SLICE_TOKENS_MIN, below which nothing is cut again.
        let mut waiting = vec![cutting];
        while let Some(cutting) = waiting.pop() {
            let run = self.run_id(cutting.slice.id);
            let before = known.get(&run);
            let done = before.is_some_and(|before| before.state == RunState::Done);
            if done && before.is_some_and(|it| it.failure.as_deref() == Some(CUT_IN_TWO)) {
                worked.runs.push(run);
                waiting.extend(halves_of(&cutting));
            } else if done {
                self.tally.with(|totals| totals.slices_known += 1);
                worked.ask_store = true;
                worked.runs.push(run);
            } else if self.closing.is_cancelled() {
                worked.waits = true;
            } else {
                waiting.extend(self.one(session, cutting, before, &mut worked).await?);
            }
        }
        self.tally.with(|totals| totals.slices_done += 1);
        Ok(worked)
    }

    /// Asks about one slice and stores what came of it; gives its halves if it was too long.
    async fn one(
        &self,
        session: &Session,
        cutting: Cutting,
        before: Option<&KnownRun>,
        worked: &mut Worked,
    ) -> Result<Vec<Cutting>, StoreError> {
        let run = self.run_id(cutting.slice.id);
        let generation = before.map_or(0, |it| it.generation + u32::from(self.retry_failed));
        let started_at = (self.asker.clock)();
        let mut paid = Paid::default();
        let result = self.extract(&cutting.slice, run, generation, &mut paid).await;
        let mut staging = Staging {
            run: self.run_row(&cutting.slice, (run, generation), &paid, started_at),
            entries: Vec::new(),
            records: Vec::new(),
        };
        let mut halves = Vec::new();
        match result {
            Err(Wanting::Store(error)) => return Err(error),
            Err(Wanting::Unread(Unread::Waits)) => {
                worked.waits = true;
                return Ok(Vec::new());
            }
            Ok(extraction) => {
                self.learn(extraction.rung, paid.refused).await?;
                staging.run.rung = extraction.rung;
                staging.run.findings = extraction.findings;
                extraction_findings(&self.tally, &staging.run.findings);
                let from = provenance(session, &cutting.slice, run);
                // What a model wrote in escapes passed the gate unseen; its words pass it again.
                let pass = |text: &str| self.gate.redact(text).as_str().to_owned();
                let claims = extraction.claims.into_iter().map(|claim| claim.map(&pass)).collect();
                staging.records = ground(&cutting.slice, claims, &from);
                staging.entries = covered(cutting.entries, &staging.records);
            }
            Err(Wanting::Unread(Unread::Failed(failure, findings))) => {
                extraction_findings(&self.tally, &findings);
                self.note_failure(&failure, &cutting.slice);
                staging.run.state = RunState::Failed;
                staging.run.findings = findings;
                staging.entries = failed(cutting.entries, &failure.kind);
                staging.run.failure = Some(failure);
            }
            Err(Wanting::Unread(Unread::TooLong(error))) => {
                halves = halves_of(&cutting);
                let kind = if halves.is_empty() { error.kind.name() } else { CUT_IN_TWO };
                let failure = Failure { kind: kind.to_owned(), detail: error.detail };
                if halves.is_empty() {
                    self.note_failure(&failure, &cutting.slice);
                    staging.run.state = RunState::Failed;
                    staging.entries = failed(cutting.entries, &failure.kind);
                }
                staging.run.failure = Some(failure);
            }
        }
        // A half of a part may have come out whole.
        worked.ask_store |=
            cutting.slice.parts.iter().any(|part| part.parts > 1 || part.entry_offset > 0);
        worked.count(&staging);
        tracing::info!(
            run.id = %run,
            slice.tokens = cutting.slice.tokens,
            records = staging.records.len(),
            calls = staging.run.calls,
            state = staging.run.state.name(),
            "slice staged"
        );
        self.asker.store.stage(staging).await?;
        worked.runs.push(run);
        Ok(halves)
    }

    async fn extract(
        &self,
        slice: &Slice,
        run: RunId,
        generation: u32,
        paid: &mut Paid,
    ) -> Result<Extraction, Wanting> {
        let whose = For { session: slice.session, run };
        let rung = *self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut exchange, request) = Exchange::start(&self.asking, slice, None, rung, generation);
        let mut step = Step::Ask(request);
        // The exchange itself is bounded by ASKS_MAX.
        loop {
            let request = match step {
                Step::Ask(request) => request,
                Step::Done(extraction) => return Ok(extraction),
                Step::Stuck(stuck) => {
                    let kind = stuck.kind.name().to_owned();
                    let failure = Failure { kind, detail: stuck.detail };
                    return Err(Wanting::Unread(Unread::Failed(failure, stuck.findings)));
                }
            };
            step = match self.asker.ask(&request, whose, &self.tally, paid).await {
                Ok(reply) => {
                    self.unanswered.store(0, Ordering::Relaxed);
                    exchange.reply(&reply)
                }
                Err(NoAnswer::Store(error)) => return Err(Wanting::Store(error)),
                Err(NoAnswer::Cap(reason)) => {
                    self.wait_at_cap(reason);
                    return Err(Wanting::Unread(Unread::Waits));
                }
                Err(NoAnswer::Model(error)) => match error.retry() {
                    Retry::NextRung => {
                        paid.refused = true;
                        exchange.rung_refused()
                    }
                    // What was kept of earlier answers is worth more than a new question.
                    Retry::Smaller | Retry::Never | Retry::After { .. } if exchange.kept() > 0 => {
                        exchange.stop()
                    }
                    Retry::Smaller => return Err(Wanting::Unread(Unread::TooLong(error))),
                    retry @ (Retry::Never | Retry::After { .. }) => {
                        if retry != Retry::Never {
                            self.unanswered(&error);
                        }
                        let kind = error.kind.name().to_owned();
                        let failure = Failure { kind, detail: error.detail };
                        return Err(Wanting::Unread(Unread::Failed(failure, Vec::new())));
                    }
                    Retry::Stop => {
                        if error.kind != ErrorKind::Cancelled {
                            self.stop(error.to_string());
                        }
                        return Err(Wanting::Unread(Unread::Waits));
                    }
                },
            };
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

    fn wait_at_cap(&self, reason: String) {
        // A cap of one session leaves the others going.
        let day = reason.starts_with("limits.day");
        self.tally.with(|totals| *totals.waiting.entry(reason.clone()).or_default() += 1);
        if day {
            self.note_stop(format!("{reason}; what is left waits, nothing is lost"));
            // Calls under way are within the cap and will be paid for: their answers are kept.
            self.closing.cancel();
        }
    }

    /// Begins lower from now on, if this way of asking is no use at this endpoint.
    async fn learn(&self, worked: Rung, refused: bool) -> Result<(), StoreError> {
        let begin_lower = {
            let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
            if worked <= *rung {
                self.lower.store(0, Ordering::Relaxed);
                false
            } else {
                let times = self.lower.fetch_add(1, Ordering::Relaxed) + 1;
                let lower = refused || times >= LOWER_MIN;
                *rung = if lower { worked } else { *rung };
                lower
            }
        };
        if begin_lower && matches!(self.asker.model, Model::Endpoint(_)) {
            let (at, model) = ((self.asker.clock)(), &self.asking.model);
            self.asker.store.learn(&self.base_url, model, worked, at).await?;
        }
        Ok(())
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

    fn run_row(
        &self,
        slice: &Slice,
        (id, generation): (RunId, u32),
        paid: &Paid,
        started_at: Timestamp,
    ) -> Run {
        let place = |part: Option<&crate::domain::Part>| part.map(|it| (it.ordinal, it.part));
        Run {
            id,
            session: slice.session,
            slice: slice.id,
            index: slice.index,
            first: place(slice.parts.first()).unwrap_or_default(),
            last: place(slice.parts.last()).unwrap_or_default(),
            asking: self.asking_digest,
            model: self.asking.model.clone(),
            prompt_id: self.asking.prompts().id().to_owned(),
            prompt_version: self.asking.prompts().version(),
            schema_version: SCHEMA_VERSION,
            rung: *self.rung.lock().unwrap_or_else(PoisonError::into_inner),
            generation,
            asks: paid.asks,
            calls: paid.calls,
            usage: paid.usage,
            cost_micros: paid.cost_micros,
            state: RunState::Done,
            failure: None,
            findings: Vec::new(),
            started_at,
            finished_at: (self.asker.clock)(),
        }
    }
}

/// A slice without an extraction, or a store that failed.
enum Wanting {
    Unread(Unread),
    Store(StoreError),
}

/// The halves of a slice, the first one last: they are worked on from the back of a list.
fn halves_of(cutting: &Cutting) -> Vec<Cutting> {
    let mut halves = halve(cutting);
    halves.reverse();
    halves
}

fn provenance(session: &Session, slice: &Slice, run: RunId) -> Provenance {
    Provenance {
        namespace: session.namespace.clone(),
        session: session.id,
        slice: slice.id,
        run,
        entries: slice.range(),
        at: slice.parts.iter().find_map(|part| part.at),
    }
}

/// An entry that a record rests on is extracted; of the others the model kept nothing.
fn covered(entries: Vec<Entry>, records: &[Record]) -> Vec<Covered> {
    let evidence = records.iter().flat_map(|record| &record.evidence);
    let used: BTreeSet<u32> = evidence.map(|evidence| evidence.ordinal).collect();
    let state = |entry: &Entry| match used.contains(&entry.ordinal) {
        true => CoverageState::Extracted,
        false => CoverageState::Nothing,
    };
    let cover = |entry: Entry| Covered { state: state(&entry), entry, reason: None };
    entries.into_iter().map(cover).collect()
}

fn failed(entries: Vec<Entry>, kind: &str) -> Vec<Covered> {
    let (state, reason) = (CoverageState::Failed, Some(kind.to_owned()));
    let cover = |entry| Covered { entry, state, reason: reason.clone() };
    entries.into_iter().map(cover).collect()
}

fn extraction_findings(tally: &Tally, findings: &[Finding]) {
    findings.iter().for_each(|finding| tally.finding(finding));
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    if errors > 0 {
        tracing::debug!(errors, "an answer had elements that could not be used");
    }
}
