//! Adjudication: asks a model about the pairs that no rule decides, batch by batch and within the usual limits.
//! The model only gives verdicts, which are checked; the rules make the plan.

use super::budget::{CapOwner, cost};
use super::dialogue::{Deferral, DialogueEnd};
use super::extractor::ModelSource;
use super::join_result;
use super::model_client::{Billing, CallContext, CallRetry, ModelClient, Spending, estimate};
use super::retrying_store::RetryPolicy;
use crate::config::Config;
use crate::consolidate::{Adjudicated, AdjudicationSpec, Asked, Dialogue, PairBatch, Verdicts};
use crate::domain::{
    Digest, Finding, MemoryId, Purpose, RecordId, Request, RunId, Severity, Usage,
};
use crate::llm::{ModelDialogue, UNUSABLE};
use crate::store::{Spent, StoreResult};
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::task::JoinSet;

/// Consecutive unanswered batches after which no further batch starts; each was already retried.
const UNANSWERED_MAX: u32 = 2;
/// Consecutive batches without a usable answer after which the model is not asked again.
const UNUSABLE_MAX: u32 = 3;
/// Estimated tokens of a verdict: its ids, its disposition and a few words of evidence.
pub(super) const VERDICT_TOKENS_ESTIMATE: u64 = 40;
/// Grace period for calls in flight after a stop.
const GRACE: Duration = Duration::from_secs(5);

/// Questions, calls and costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ModelUsage {
    pub records: u64,
    pub pairs: u64,
    /// Rejected verdicts: unproven, or forbidden by the rules.
    pub refused: u64,
    /// True if no model was asked; the counts are estimates.
    pub is_estimate: bool,
    /// Questions, including those answered from the journal.
    pub questions: u64,
    pub journaled: u64,
    pub spent: Spent,
}

impl ModelUsage {
    pub(crate) fn was_used(&self) -> bool {
        self.questions > 0
    }

    pub(super) fn add(&mut self, pairs: usize, spent: Spending) {
        self.pairs += if spent.asks > 0 { pairs as u64 } else { 0 };
        self.questions += u64::from(spent.asks);
        self.journaled += u64::from(spent.journaled);
        self.spent.calls += u64::from(spent.calls);
        self.spent.usage += spent.usage;
        self.spent.cost_micros += spent.cost_micros;
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Halt {
    Needs(String),
    Stopped,
}

pub(super) struct BatchBill<'a> {
    pub(super) namespace: &'a str,
    /// Task name; with the namespace it forms the run id in the journal.
    pub(super) task: &'static str,
    pub(super) purpose: Purpose,
    pub(super) about: Vec<Digest>,
}

/// Creates the client of a command whose user waits.
pub(super) async fn waiting_client(source: ModelSource<'_>) -> StoreResult<ModelClient> {
    source.client(RetryPolicy::none(), Arc::default(), GRACE).await
}

impl ModelClient {
    /// Runs a dialogue outside extraction. It retries in place: a user waits for the answer, or waiting costs nothing.
    pub(super) async fn run_billed<T: ModelDialogue>(
        &self,
        mut dialogue: T,
        first: Request,
        bill: BatchBill<'_>,
    ) -> StoreResult<(DialogueEnd<T::Outcome>, Spending)> {
        let BatchBill { namespace, task, purpose, about } = bill;
        let context = CallContext {
            cap_owner: CapOwner { namespace, session: None },
            billing: Billing::Own {
                task: RunId(Digest::of(&[task, namespace])),
                purpose,
                about: &about,
            },
            stop: &self.cancel,
            is_resumable: false,
            retry: CallRetry::within(&self.budget.limits),
        };
        let mut spent = Spending::default();
        let ended = self.run(&mut dialogue, first, context, &mut spent).await?;
        Ok((ended, spent))
    }
}

/// Role of the model in a plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AskMode {
    /// No plan is made without its answers.
    Required,
    /// The rules decide alone while the model cannot be asked.
    Optional,
    /// The model is not asked; its questions are counted and priced.
    Priced,
}

pub(crate) struct Adjudicator {
    client: Arc<ModelClient>,
    pub(super) spec: Arc<AdjudicationSpec>,
    in_flight: usize,
    pub(super) mode: AskMode,
    /// Message of the first [`Halt::Needs`]; once set, nothing more is asked.
    needs: OnceLock<String>,
    /// Batches without a usable answer, before the first one with such an answer.
    unusable: AtomicU32,
    /// True once an answer could be used: others are about their batches.
    was_usable: AtomicBool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    pub(super) verdicts: Verdicts,
    pub(super) asked: Asked,
    pub(super) findings: Vec<Finding>,
    pub(super) usage: ModelUsage,
    /// True if a batch went unanswered and is to be asked again later.
    pub(super) has_unanswered: bool,
    /// Unanswered or merely priced questions, which this plan does not ask again.
    pub(super) skipped: Asked,
    /// Consecutive unanswered batches.
    pub(super) unanswered: u32,
    /// True if no further batch starts.
    pub(super) is_over: bool,
}

struct BatchResult {
    /// Index of the batch, followed by 0 or 1 for each time it was halved.
    path: Vec<usize>,
    pairs: Vec<(RecordId, MemoryId)>,
    records: Vec<RecordId>,
    ended: DialogueEnd<Adjudicated>,
    /// Halves of a batch that exceeds the context window.
    halves: Option<[PairBatch; 2]>,
    spent: Spending,
}

impl Adjudicator {
    pub(crate) async fn new(source: ModelSource<'_>, mode: AskMode) -> StoreResult<Adjudicator> {
        let (config, model_name) = (source.config, source.model_name);
        let client = Arc::new(waiting_client(source).await?);
        Ok(Adjudicator { mode, ..Adjudicator::with_client(client, config, model_name) })
    }

    pub(super) fn with_client(
        client: Arc<ModelClient>,
        config: &Config,
        model_name: &str,
    ) -> Adjudicator {
        let prompt = config.prompts.consolidate();
        let mut spec = AdjudicationSpec::new(model_name, &config.language, prompt);
        spec.reply_tokens_max = spec.reply_tokens_max.min(config.model.reply_tokens_max);
        spec.temperature = config.model.temperature;
        let (in_flight, spec) = (config.model.concurrency, Arc::new(spec));
        let mode = if config.consolidate.is_auto() { AskMode::Optional } else { AskMode::Required };
        Adjudicator {
            client,
            spec,
            in_flight,
            mode,
            needs: OnceLock::new(),
            unusable: AtomicU32::new(0),
            was_usable: AtomicBool::new(false),
        }
    }

    /// Maximum number of batches asked about at once. Until an answer could be used, as many as may still be unusable.
    fn in_flight(&self) -> usize {
        let left = UNUSABLE_MAX.saturating_sub(self.unusable.load(Ordering::Relaxed));
        match self.was_usable.load(Ordering::Relaxed) {
            true => self.in_flight,
            false => self.in_flight.min(left as usize),
        }
    }

    /// True if the model was given up because of its answers.
    pub(crate) fn is_unusable(&self) -> bool {
        self.unusable.load(Ordering::Relaxed) >= UNUSABLE_MAX
    }

    pub(crate) fn needs(&self) -> Option<String> {
        self.needs.get().cloned()
    }

    /// Asks about `batches` of `namespace` and adds the verdicts to `progress`. A batch without an answer leaves its
    /// pairs open; one that exceeds the context window is split in halves.
    pub(super) async fn ask(
        self: &Arc<Adjudicator>,
        namespace: &str,
        batches: Vec<PairBatch>,
        progress: &mut Progress,
    ) -> StoreResult<Result<(), Halt>> {
        if self.mode == AskMode::Priced {
            batches.iter().for_each(|batch| self.price(batch, progress));
            return Ok(Ok(()));
        }
        if let Some(line) = self.needs() {
            return Ok(Err(Halt::Needs(line)));
        }
        let many = batches.len();
        let mut left: VecDeque<(Vec<usize>, PairBatch)> =
            batches.into_iter().enumerate().map(|(number, batch)| (vec![number], batch)).collect();
        let mut under_way: JoinSet<StoreResult<BatchResult>> = JoinSet::new();
        let (mut results, mut halt) = (Vec::new(), None);
        // Terminates: each batch starts once and is halved at most down to a single record.
        loop {
            while !progress.is_over && under_way.len() < self.in_flight() {
                let Some((path, batch)) = left.pop_front() else { break };
                let (adjudicator, namespace) = (Arc::clone(self), namespace.to_owned());
                under_way.spawn(async move { adjudicator.batch(&namespace, path, batch).await });
            }
            let Some(ended) = under_way.join_next().await else { break };
            let Some(result) = join_result(ended) else { continue };
            let mut result = result?;
            match &result.ended {
                DialogueEnd::Done(it) if it.summary.is_usable => {
                    progress.unanswered = 0;
                    self.was_usable.store(true, Ordering::Relaxed);
                    self.unusable.store(0, Ordering::Relaxed);
                }
                DialogueEnd::Done(_) if !self.was_usable.load(Ordering::Relaxed) => {
                    self.unusable.fetch_add(1, Ordering::Relaxed);
                    if self.is_unusable() {
                        progress.is_over = true;
                        let line = || format!("{}: {UNUSABLE}", self.spec.model);
                        halt = Some(Halt::Needs(self.needs.get_or_init(line).clone()));
                    }
                }
                DialogueEnd::Done(_) | DialogueEnd::TooLong(_) | DialogueEnd::Failed(_) => {}
                DialogueEnd::Deferred(Deferral::Cap(_)) => progress.is_over = true,
                DialogueEnd::Deferred(Deferral::Unanswered(_)) => {
                    progress.unanswered += 1;
                    progress.is_over |= progress.unanswered >= UNANSWERED_MAX;
                }
                DialogueEnd::Deferred(Deferral::Needs(error)) => {
                    progress.is_over = true;
                    let line = self.needs.get_or_init(|| error.detail.clone());
                    halt = Some(Halt::Needs(line.clone()));
                }
                DialogueEnd::Deferred(Deferral::Stopped) => {
                    progress.is_over = true;
                    halt = halt.or(Some(Halt::Stopped));
                }
            }
            for (half, batch) in result.halves.take().into_iter().flatten().enumerate() {
                left.push_back(([result.path.as_slice(), &[half]].concat(), batch));
                result.pairs.clear();
            }
            results.push(result);
        }
        // Sorted by batch, not by completion, so that the same answers give the same verdicts.
        results.sort_by(|one, other| one.path.cmp(&other.path));
        let was_usable = self.was_usable.load(Ordering::Relaxed);
        for result in results {
            progress.take(result, many, was_usable);
        }
        let unasked: BTreeSet<_> = left.iter().filter_map(|(path, _)| path.first()).collect();
        if !unasked.is_empty() && halt.is_none() {
            progress.has_unanswered = true;
            let detail = format!("{} of {many} batches were not asked about", unasked.len());
            progress.note("not-asked", detail);
        }
        Ok(halt.map_or(Ok(()), Err))
    }

    fn price(&self, batch: &PairBatch, progress: &mut Progress) {
        let (_, request) =
            Dialogue::start(&self.spec, batch.clone(), self.client.output_mode.current());
        let pairs = batch.pairs().count();
        let usage = Usage {
            prompt_tokens: estimate(&request),
            cached_tokens: 0,
            completion_tokens: pairs.max(batch.len()) as u64 * VERDICT_TOKENS_ESTIMATE,
        };
        let cost_micros = cost(usage, self.client.price);
        progress.usage.add(pairs, Spending { asks: 1, usage, cost_micros, ..Spending::default() });
        progress.usage.is_estimate = true;
        progress.skip(batch.pairs(), batch.records());
    }

    async fn batch(
        &self,
        namespace: &str,
        path: Vec<usize>,
        batch: PairBatch,
    ) -> StoreResult<BatchResult> {
        let (pairs, about) = (batch.pairs().collect(), batch.about());
        let records = batch.records().collect();
        let (dialogue, request) =
            Dialogue::start(&self.spec, batch.clone(), self.client.output_mode.current());
        let bill = BatchBill { namespace, task: "judging", purpose: Purpose::Consolidate, about };
        let (ended, spent) = self.client.run_billed(dialogue, request, bill).await?;
        if let DialogueEnd::Done(adjudicated) = &ended
            && !adjudicated.verdicts.is_empty()
        {
            let worked = adjudicated.summary.rung;
            self.client.learn(&self.spec.model, worked, spent.refused).await?;
        }
        let is_too_long = matches!(ended, DialogueEnd::TooLong(_));
        let halves = if is_too_long { batch.halves() } else { None };
        Ok(BatchResult { path, pairs, records, ended, halves, spent })
    }
}

impl Progress {
    /// Takes the answer about one of `many` batches. Without a usable one its pairs are asked about again, unless the
    /// model `was_usable`.
    fn take(&mut self, result: BatchResult, many: usize, was_usable: bool) {
        let BatchResult { path, pairs, records, ended, halves: _, spent } = result;
        self.usage.add(pairs.len(), spent);
        let here = format!("batch {} of {many}", path.first().map_or(1, |at| at + 1));
        match answered(ended) {
            Ok(adjudicated) => {
                let located = |it: Finding| Finding {
                    line: 0,
                    detail: format!("{here}: {}", it.detail),
                    ..it
                };
                self.findings.extend(adjudicated.summary.findings.into_iter().map(located));
                if !adjudicated.summary.is_usable && !was_usable {
                    return self.skip(pairs, records);
                }
                self.verdicts.extend(adjudicated.verdicts);
                self.usage.refused += adjudicated.refused as u64;
                self.asked.pairs.extend(pairs);
                self.asked.records.extend(records);
            }
            // Its halves were asked instead.
            Err(NoAnswer::Open("too-long", _)) if pairs.is_empty() => {}
            Err(NoAnswer::Open(rule, why)) => {
                self.note(rule, format!("{here}: {why}; its pairs stay open"));
                self.skip(pairs, records);
            }
            // Reported once, as a halt.
            Err(NoAnswer::Halted(_)) => self.has_unanswered = true,
        }
    }

    fn skip(
        &mut self,
        pairs: impl IntoIterator<Item = (RecordId, MemoryId)>,
        records: impl IntoIterator<Item = RecordId>,
    ) {
        self.has_unanswered = true;
        self.skipped.pairs.extend(pairs);
        self.skipped.records.extend(records);
    }

    pub(super) fn note(&mut self, rule: &'static str, detail: String) {
        self.findings.push(Finding::new(Severity::Warning, rule, 0, detail));
    }
}

pub(super) enum NoAnswer {
    /// Rule name of the finding, and the reason.
    Open(&'static str, String),
    Halted(Halt),
}

pub(super) fn answered<T>(ended: DialogueEnd<T>) -> Result<T, NoAnswer> {
    Err(match ended {
        DialogueEnd::Done(answer) => return Ok(answer),
        DialogueEnd::TooLong(error) => NoAnswer::Open("too-long", error.to_string()),
        DialogueEnd::Failed(error) | DialogueEnd::Deferred(Deferral::Unanswered(error)) => {
            NoAnswer::Open("no-answer", error.to_string())
        }
        DialogueEnd::Deferred(Deferral::Cap(reached)) => {
            NoAnswer::Open("cap-reached", reached.to_string())
        }
        DialogueEnd::Deferred(Deferral::Needs(error)) => {
            NoAnswer::Halted(Halt::Needs(error.detail))
        }
        DialogueEnd::Deferred(Deferral::Stopped) => NoAnswer::Halted(Halt::Stopped),
    })
}
