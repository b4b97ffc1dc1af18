//! Extraction of one slice: asks a model, decodes and grounds its answer, and prepares the records to stage. Stores
//! only the answers. Builds the model client and the extractor from the settings, the same for every command.

use super::budget::{Budget, RateLimit};
use super::dialogue::{self, Deferral, DialogueEnd, ReplySource};
use super::model_client::{
    AskError, CallContext, Model, ModelClient, OutputModeFallback, Spending,
};
use super::preamble::PreambleSettings;
use super::retrying_store::{RetryPolicy, RetryingStore};
use super::tally::Tally;
use crate::adapters::process;
use crate::config::Config;
use crate::domain::{
    ClaimKind, CoverageState, Digest, Entry, EntryKind, Finding, Job, JobId, LanguageModel,
    ModelError, OutputMode, Provenance, Record, Reply, Request, RunId, RunState, Session,
    SessionId, Slice, SliceId, Speaker, Timestamp,
};
use crate::extract::{Exchange, Extraction, ExtractionSpec, Failure, FailureKind, SCHEMA_VERSION};
use crate::grounding::ground;
use crate::llm::{ConcurrencyLimit, Endpoint};
use crate::privacy::{Gate, Redacted, Report};
use crate::slicing::{Cutting, SliceCut, Slicer};
use crate::store::{CoveredEntry, Run, RunFailure, Staging, Store, StoreResult};
use crate::transcripts::{RawEntry, redact_entry};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

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
    pub(crate) before: Option<&'a Redacted>,
    pub(crate) generation: u32,
}

pub(crate) enum Outcome {
    /// Success; the extraction may be empty.
    Extracted(Proven),
    Failed(FailedExtraction),
    /// The request or the answer is too long: smaller slices may be extracted.
    TooLong(FailedExtraction),
    Deferred(Deferral),
}

pub(crate) struct FailedExtraction {
    pub(crate) failure: RunFailure,
    pub(crate) findings: Vec<Finding>,
    /// Records of the part of an answer that arrived.
    pub(crate) records: Vec<Record>,
}

impl FailedExtraction {
    fn of(why: Failure, records: Vec<Record>) -> FailedExtraction {
        let failure = RunFailure { kind: why.kind.name().to_owned(), detail: why.detail };
        FailedExtraction { failure, findings: why.findings, records }
    }
}

impl From<ModelError> for FailedExtraction {
    fn from(error: ModelError) -> FailedExtraction {
        let (findings, records) = (Vec::new(), Vec::new());
        FailedExtraction { failure: failure(error), findings, records }
    }
}

pub(crate) struct Proven {
    pub(crate) records: Vec<Record>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) output_mode: OutputMode,
}

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
    pub(crate) fn new(client: Arc<ModelClient>, config: &Config, model_name: &str) -> Extractor {
        let spec = extraction_spec(config, model_name);
        let asking = asking_digest(&spec, config);
        Extractor { client, spec, asking, gate: Gate::new(&config.pii) }
    }

    /// Extracts a slice and adds the cost to `spent`. Only store errors are `Err`.
    pub(crate) async fn extract(
        &self,
        slice: SliceRequest<'_>,
        context: CallContext<'_>,
        spent: &mut Spending,
    ) -> StoreResult<Outcome> {
        let SliceRequest { slice: cut, before, generation, .. } = slice;
        let begin = self.client.output_mode.current();
        let (mut exchange, first) = Exchange::start(&self.spec, cut, before, begin, generation);
        Ok(match self.client.run(&mut exchange, first, context, spent).await? {
            DialogueEnd::Done(Ok(extraction)) if extraction.is_cut => {
                let Proven { records, findings, .. } = slice.prove(&self.gate, extraction);
                Outcome::TooLong(FailedExtraction::of(Failure::cut_off(findings), records))
            }
            DialogueEnd::Done(Ok(extraction)) => {
                self.client.learn(&self.spec.model, extraction.rung, spent.refused).await?;
                Outcome::Extracted(slice.prove(&self.gate, extraction))
            }
            DialogueEnd::Done(Err(why)) if why.kind == FailureKind::CutOff => {
                Outcome::TooLong(FailedExtraction::of(why, Vec::new()))
            }
            DialogueEnd::Done(Err(why)) => Outcome::Failed(FailedExtraction::of(why, Vec::new())),
            DialogueEnd::TooLong(error) => Outcome::TooLong(error.into()),
            DialogueEnd::Failed(error) => Outcome::Failed(error.into()),
            DialogueEnd::Deferred(why) => Outcome::Deferred(why),
        })
    }

    pub(super) fn extracted(&self, attempt: RunAttempt, proven: Proven) -> Staging {
        let Proven { records, findings, output_mode } = proven;
        let run = Run { rung: output_mode, findings, ..self.run(&attempt) };
        let evidence = records.iter().flat_map(|record| &record.evidence);
        let used: BTreeSet<u32> = evidence.map(|evidence| evidence.ordinal).collect();
        let cover = |entry: Entry| {
            let is_used = used.contains(&entry.ordinal);
            let state = if is_used { CoverageState::Extracted } else { CoverageState::Nothing };
            CoveredEntry { entry, state, reason: None }
        };
        let entries = attempt.cutting.entries.into_iter().map(cover).collect();
        Staging { run, entries, records }
    }

    pub(super) fn failed(&self, attempt: RunAttempt, failed: FailedExtraction) -> Staging {
        let FailedExtraction { failure, findings, records } = failed;
        let (state, reason) = (CoverageState::Failed, Some(failure.kind.clone()));
        let failure = Some(failure);
        let run = Run { state: RunState::Failed, failure, findings, ..self.run(&attempt) };
        let cover = |entry| CoveredEntry { entry, state, reason: reason.clone() };
        let entries = attempt.cutting.entries.into_iter().map(cover).collect();
        Staging { run, entries, records }
    }

    /// Run of a slice that was too long; the halves cover its entries.
    pub(super) fn cut_in_two(&self, attempt: &RunAttempt, detail: String) -> Staging {
        let failure = Some(RunFailure { kind: CUT_IN_TWO.to_owned(), detail });
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
    pub(crate) fn prove(&self, gate: &Gate, extraction: Extraction) -> Proven {
        let from = Provenance {
            namespace: self.session.namespace.clone(),
            session: self.session.id,
            slice: self.slice.id,
            run: self.run,
            entries: self.slice.range(),
            // Some formats have only the time at which a conversation began.
            at: self.slice.parts.iter().find_map(|part| part.at).or(self.session.started_at),
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

pub(super) fn unstored(slice: &Slice) -> Provenance {
    Provenance {
        namespace: String::new(),
        session: slice.session,
        slice: slice.id,
        run: RunId(Digest::of(&[])),
        entries: slice.range(),
        at: None,
    }
}

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

/// A model, with the store and the settings that its client needs.
pub(crate) struct ModelSource<'a> {
    pub config: &'a Config,
    pub model: Model,
    pub model_name: &'a str,
    pub store: Store,
    pub cancel: CancellationToken,
    pub clock: fn() -> Timestamp,
}

impl ModelSource<'_> {
    /// Creates the client; `grace` is the time for a call in flight after a cancellation.
    pub(crate) async fn client(
        self,
        policy: RetryPolicy,
        tally: Arc<Tally>,
        grace: Duration,
    ) -> StoreResult<ModelClient> {
        let ModelSource { config, model, model_name, store, cancel, clock } = self;
        let store = RetryingStore::new(store, policy);
        let base_url = config.model.base_url.clone();
        let known = match &model {
            // Capabilities of the endpoint do not apply to recorded answers.
            Model::Cassette(cassette) => cassette.rung(),
            Model::Endpoint(_) | Model::Unavailable(_) => {
                config.model.rung.or(store.inner.capability(&base_url, model_name).await?)
            }
        };
        let limits = &config.limits;
        let calls_max = u32::try_from(config.model.concurrency).unwrap_or(u32::MAX);
        let price = config.model.price_of(model_name);
        tally.with(|totals| totals.count_cost(price));
        let price = price.unwrap_or_default();
        let budget = Budget::new(limits, price);
        if budget.is_set() {
            let workers = store.inner.workers().await?.into_iter().map(|worker| worker.id);
            let gone = workers.filter(|id| process::is_gone(id)).collect();
            store.inner.recount(gone, clock()).await?;
        }
        Ok(ModelClient {
            model,
            store,
            concurrency: ConcurrencyLimit::new(calls_max),
            rate_limit: RateLimit::of(config, clock),
            budget,
            price,
            tally,
            base_url,
            output_mode: OutputModeFallback::new(known.unwrap_or(OutputMode::ForcedTool)),
            cancel,
            grace,
            clock,
            settled: tokio::sync::Notify::new(),
            in_flight: parking_lot::Mutex::default(),
            overruns: parking_lot::Mutex::default(),
            first_call: tokio::sync::Mutex::default(),
        })
    }
}

pub(crate) fn extraction_spec(config: &Config, model: &str) -> Arc<ExtractionSpec> {
    let mut spec = ExtractionSpec::new(model, &config.language, config.prompts.extraction());
    spec.reply_tokens_max = config.model.reply_tokens_max;
    spec.temperature = config.model.temperature;
    Arc::new(spec)
}

/// Digest of all that an answer depends on besides the slice: model, prompt, schema, language, slicing, preamble.
pub(crate) fn asking_digest(spec: &ExtractionSpec, config: &Config) -> Digest {
    let prompts = spec.prompts();
    let prompts = format!("{} {} {}", prompts.id(), prompts.version(), prompts.digest());
    let slices = format!("{} {}", config.slice.tokens, config.slice.tool_tokens);
    let schema = SCHEMA_VERSION.to_string();
    let preamble = PreambleSettings::of(config).digest.to_string();
    let language = spec.language();
    Digest::of(&["asking", &spec.model, &prompts, &schema, language, &slices, &preamble])
}

/// A conversation with one decision.
const TALK: [(Speaker, EntryKind, &str); 3] = [
    (
        Speaker::Person,
        EntryKind::Prompt,
        "Shall the cache of the importer be in Redis or in SQLite?",
    ),
    (
        Speaker::Assistant,
        EntryKind::Text,
        "SQLite is one file and needs no server; Redis is faster.",
    ),
    (Speaker::Person, EntryKind::Prompt, "We chose SQLite over Redis because it needs no server."),
];

impl ReplySource for &Endpoint {
    async fn answer(&mut self, request: &Request) -> Result<Reply, AskError> {
        self.call(request).await.map_err(AskError::Model)
    }
}

/// Asks `model` about a conversation with one decision; fails with a one-line reason if it does not find it.
pub(crate) async fn trial(
    config: &Config,
    mut endpoint: &Endpoint,
    model: &str,
    output_mode: OutputMode,
) -> Result<(), String> {
    let gate = Gate::new(&config.pii);
    let id = SessionId(Digest::of(&["trial"]));
    let mut slicer = Slicer::new(id, config.slice, BTreeSet::new());
    for (ordinal, (speaker, kind, text)) in (0..).zip(TALK) {
        let raw = RawEntry::new(ordinal + 1, speaker, kind, text);
        slicer.push(redact_entry(raw, ordinal, &gate, &mut Report::default()));
    }
    let Some(cutting) = slicer.finish().pop() else { return Err("there is no slice".to_owned()) };
    let slice = &cutting.slice;
    let spec = extraction_spec(config, model);
    let (mut exchange, first) = Exchange::start(&spec, slice, None, output_mode, 0);
    let end = dialogue::run(&mut exchange, first, false, &mut endpoint).await;
    let extraction = match end.map_err(|error| error.to_string())?.0 {
        DialogueEnd::Done(Ok(extraction)) => extraction,
        DialogueEnd::Done(Err(why)) => return Err(why.detail),
        DialogueEnd::TooLong(error)
        | DialogueEnd::Failed(error)
        | DialogueEnd::Deferred(Deferral::Unanswered(error) | Deferral::Needs(error)) => {
            return Err(error.to_string());
        }
        DialogueEnd::Deferred(Deferral::Cap(_) | Deferral::Stopped) => {
            return Err("stopped".to_owned());
        }
    };
    let records = ground(slice, None, extraction.claims, &unstored(slice)).records;
    let decided = records.iter().filter(|record| record.claim.kind() == ClaimKind::Decision);
    let mut evidence = decided.flat_map(|record| &record.evidence);
    // Only `chosen` counts: the reason may be in another language than the conversation.
    match evidence.any(|it| it.field == "chosen") {
        true => Ok(()),
        false => Err(format!(
            "{model} does not find the decision in three lines that hold one; choose a model that can \
             call tools (model.model)"
        )),
    }
}
