//! Extraction of one slice: asks a model, decodes and grounds its answer, and prepares the records to stage. Stores
//! only the answers.

use super::dialogue::{Deferral, DialogueEnd, DialogueStep, ModelDialogue};
use super::model_client::{CallContext, ModelClient, Spending};
use crate::domain::{
    CoverageState, Digest, Entry, Finding, Job, JobId, ModelError, OutputMode, Provenance, Record,
    Reply, RunId, RunState, Session, Slice, SliceId, Timestamp,
};
use crate::extract::{self, Exchange, Extraction, ExtractionSpec, SCHEMA_VERSION, Step};
use crate::grounding::ground;
use crate::privacy::{Gate, Redacted};
use crate::slicing::{Cutting, SliceCut};
use crate::store::{CoveredEntry, Run, RunFailure, Staging, StoreError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Failure kind of the run of a slice that was cut in two.
pub(super) const CUT_IN_TWO: &str = "cut-in-two";

pub(crate) struct Extractor {
    pub(crate) client: Arc<ModelClient>,
    pub(crate) spec: Arc<ExtractionSpec>,
    /// Digest of everything that an answer depends on besides the slice.
    pub(crate) asking: Digest,
    pub(crate) gate: Gate,
}

/// A slice with everything that its request and records depend on.
#[derive(Clone, Copy)]
pub(crate) struct SliceRequest<'a> {
    pub(crate) session: &'a Session,
    pub(crate) run: RunId,
    pub(crate) slice: &'a Slice,
    /// The preamble.
    pub(crate) before: Option<&'a Redacted>,
    pub(crate) generation: u32,
}

pub(crate) enum Outcome {
    /// Success; the extraction may be empty.
    Extracted(Proven),
    /// Permanent failure.
    Failed(RunFailure, Vec<Finding>),
    /// The slice exceeds the context window.
    TooLong(ModelError),
    Deferred(Deferral),
}

/// A grounded extraction.
pub(crate) struct Proven {
    /// Staged or quarantined.
    pub(crate) records: Vec<Record>,
    /// Findings about the answers.
    pub(crate) findings: Vec<Finding>,
    pub(crate) output_mode: OutputMode,
}

/// A run of a slice with its cost.
#[derive(Debug)]
pub(super) struct RunAttempt {
    pub(super) cutting: Cutting,
    pub(super) run: RunId,
    /// Number of times that the slice was extracted afresh, from 0.
    pub(super) generation: u32,
    pub(super) spent: Spending,
    pub(super) started_at: Timestamp,
}

impl Extractor {
    pub(crate) fn run_id(&self, slice: SliceId) -> RunId {
        run_id(self.asking, slice)
    }

    /// Extracts a slice and adds the cost to `spent`. Only store errors are `Err`.
    pub(crate) async fn extract(
        &self,
        slice: SliceRequest<'_>,
        context: CallContext<'_>,
        spent: &mut Spending,
    ) -> Result<Outcome, StoreError> {
        let SliceRequest { slice: cut, before, generation, .. } = slice;
        let begin = self.client.output_mode.current();
        let (mut exchange, first) = Exchange::start(&self.spec, cut, before, begin, generation);
        Ok(match self.client.run(&mut exchange, first, context, spent).await? {
            DialogueEnd::Done(Ok(extraction)) => {
                self.client.learn(&self.spec.model, extraction.rung, spent.refused).await?;
                Outcome::Extracted(slice.prove(&self.gate, extraction))
            }
            DialogueEnd::Done(Err(why)) => {
                let failure = RunFailure { kind: why.kind.name().to_owned(), detail: why.detail };
                Outcome::Failed(failure, why.findings)
            }
            DialogueEnd::TooLong(error) => Outcome::TooLong(error),
            DialogueEnd::Failed(error) => Outcome::Failed(failure(error), Vec::new()),
            DialogueEnd::Deferred(why) => Outcome::Deferred(why),
        })
    }

    pub(super) fn extracted(&self, attempt: RunAttempt, proven: Proven) -> Staging {
        let Proven { records, findings, output_mode } = proven;
        let run = Run { rung: output_mode, findings, ..self.run(&attempt) };
        let evidence = records.iter().flat_map(|record| &record.evidence);
        let used: BTreeSet<u32> = evidence.map(|evidence| evidence.ordinal).collect();
        let state = |entry: &Entry| match used.contains(&entry.ordinal) {
            true => CoverageState::Extracted,
            false => CoverageState::Nothing,
        };
        let cover = |entry| CoveredEntry { state: state(&entry), entry, reason: None };
        let entries = attempt.cutting.entries.into_iter().map(cover).collect();
        Staging { run, entries, records }
    }

    pub(super) fn failed(
        &self,
        attempt: RunAttempt,
        failure: RunFailure,
        findings: Vec<Finding>,
    ) -> Staging {
        let (state, reason) = (CoverageState::Failed, Some(failure.kind.clone()));
        let failure = Some(failure);
        let run = Run { state: RunState::Failed, failure, findings, ..self.run(&attempt) };
        let cover = |entry| CoveredEntry { entry, state, reason: reason.clone() };
        let entries = attempt.cutting.entries.into_iter().map(cover).collect();
        Staging { run, entries, records: Vec::new() }
    }

    /// Run of a slice that was too long; the halves cover its entries.
    pub(super) fn cut_in_two(&self, attempt: &RunAttempt, error: ModelError) -> Staging {
        let failure = Some(RunFailure { kind: CUT_IN_TWO.to_owned(), detail: error.detail });
        let run = Run { failure, ..self.run(attempt) };
        Staging { run, entries: Vec::new(), records: Vec::new() }
    }

    fn run(&self, attempt: &RunAttempt) -> Run {
        let (slice, spent) = (&attempt.cutting.slice, attempt.spent);
        let (first, last) = places(slice);
        let prompts = self.spec.prompts();
        Run {
            id: attempt.run,
            session: slice.session,
            slice: slice.id,
            index: slice.index,
            first,
            last,
            asking: self.asking,
            model: self.spec.model.clone(),
            prompt_id: prompts.id().to_owned(),
            prompt_version: prompts.version(),
            prompt_digest: Some(prompts.digest()),
            schema_version: SCHEMA_VERSION,
            rung: self.client.output_mode.current(),
            generation: attempt.generation,
            asks: spent.asks,
            calls: spent.calls,
            usage: spent.usage,
            cost_micros: spent.cost_micros,
            state: RunState::Done,
            failure: None,
            findings: Vec::new(),
            started_at: attempt.started_at,
            finished_at: (self.client.clock)(),
        }
    }
}

impl SliceRequest<'_> {
    /// Grounds an extraction of the slice.
    pub(crate) fn prove(&self, gate: &Gate, extraction: Extraction) -> Proven {
        let from = Provenance {
            namespace: self.session.namespace.clone(),
            session: self.session.id,
            slice: self.slice.id,
            run: self.run,
            entries: self.slice.range(),
            at: self.slice.parts.iter().find_map(|part| part.at),
        };
        // Text that the model wrote as JSON escapes passed the first redaction unseen, so redact again.
        let pass = |text: &str| gate.redact(text).as_str().to_owned();
        let Extraction { claims, mut findings, rung: output_mode, .. } = extraction;
        let claims = claims.into_iter().map(|claim| claim.map(&pass)).collect();
        let grounded = ground(self.slice, self.before, claims, &from);
        findings.extend(grounded.findings);
        Proven { records: grounded.records, findings, output_mode }
    }
}

impl ModelDialogue for Exchange {
    type Outcome = Result<Extraction, extract::Failure>;

    fn reply(&mut self, reply: &Reply) -> DialogueStep<Self::Outcome> {
        step(Exchange::reply(self, reply))
    }

    fn output_mode_refused(&mut self) -> DialogueStep<Self::Outcome> {
        step(Exchange::rung_refused(self))
    }

    fn stop(&mut self) -> DialogueStep<Self::Outcome> {
        step(Exchange::stop(self))
    }

    fn has_partial_result(&self) -> bool {
        self.kept() > 0
    }
}

fn step(step: Step) -> DialogueStep<Result<Extraction, extract::Failure>> {
    match step {
        Step::Ask(request) => DialogueStep::Ask(request),
        Step::Done(extraction) => DialogueStep::End(Ok(extraction)),
        Step::Stuck(stuck) => DialogueStep::End(Err(stuck)),
    }
}

/// Converts a failed call into the failure of its slice.
pub(crate) fn failure(error: ModelError) -> RunFailure {
    RunFailure { kind: error.kind.name().to_owned(), detail: error.detail }
}

/// Id of the run for `slice` under the settings that `asking` digests.
pub(crate) fn run_id(asking: Digest, slice: SliceId) -> RunId {
    RunId(Digest::of(&["run", &slice.to_string(), &asking.to_string()]))
}

/// Job for `cutting` with the preamble `before`, under the settings that `asking` digests.
pub(super) fn job_of(cutting: &Cutting, before: Option<Redacted>, asking: Digest) -> Job {
    let slice = &cutting.slice;
    let (first, last) = places(slice);
    let cut = serde_json::to_string(&SliceCut::of(cutting));
    Job {
        id: JobId(Digest::of(&["job", &slice.id.to_string(), &asking.to_string()])),
        slice: slice.id,
        index: slice.index,
        first,
        last,
        tokens: slice.tokens,
        // Numbers always serialise.
        cut: cut.unwrap_or_default(),
        context: before,
    }
}

/// Lowest and highest position (ordinal, part) in a slice. A call is kept next to its result, so the last part is
/// not always the highest.
fn places(slice: &Slice) -> ((u32, u32), (u32, u32)) {
    let places = || slice.parts.iter().map(|part| (part.ordinal, part.part));
    (places().min().unwrap_or_default(), places().max().unwrap_or_default())
}
