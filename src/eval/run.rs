//! A run: every case with every model and prompt, on recordings or with an endpoint.

use super::case::{CaseFolder, Tolerances};
use super::extraction::{Recorder, Recording, SliceResult, from_model, from_recordings};
use super::judge::{broken, judge};
use super::prepare::{Answers, Broken, PreparedCase, Variation, prepare};
use super::report::{CaseReport, PromptName, Report, SCHEMA_VERSION, Summary, Variant};
use crate::config::Config;
use crate::domain::{OutputMode, Timestamp};
use crate::extract::SCHEMA_VERSION as ANSWERS_VERSION;
use crate::llm::Endpoint;
use crate::pipeline::ModelSource;
use crate::pipeline::model_client::{Model, ModelClient, OutputModeFallback};
use crate::pipeline::retrying_store::RetryPolicy;
use crate::pipeline::tally::Tally;
use crate::store::{Store, StoreError};
use futures_util::future::try_join_all;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const THREADS_MAX: usize = 16;
const GRACE: Duration = Duration::from_secs(5);
const UNANSWERED_MAX: u32 = 5;

#[derive(Clone, Debug)]
pub(crate) struct EvalRun {
    /// Settings, which a case may override.
    pub config: Config,
    pub variations: Vec<Variation>,
    pub cases: Vec<CaseFolder>,
}

#[derive(Clone, Debug)]
pub(crate) struct EvalResult {
    pub report: Report,
    pub tolerances: BTreeMap<String, Tolerances>,
    /// Recordings of the cases that a live run answered completely.
    pub recordings: Vec<Recording>,
    /// Reason why a live run stopped early.
    pub stopped: Option<String>,
}

pub(crate) struct LiveModel {
    pub endpoint: Endpoint,
    pub store: Store,
    pub cancel: CancellationToken,
    /// Progress: slices, tokens, cost.
    pub tally: Arc<Tally>,
    pub clock: fn() -> Timestamp,
}

type Prepared = Result<PreparedCase, Broken>;

struct JudgedCase {
    report: CaseReport,
    tolerances: Tolerances,
}

impl JudgedCase {
    fn of(name: &str, case: Prepared, results: Vec<SliceResult>) -> JudgedCase {
        match case {
            Ok(case) => JudgedCase {
                report: judge(&case, results),
                tolerances: case.contents.case.tolerances,
            },
            Err(reason) => {
                JudgedCase { report: broken(name, reason), tolerances: Tolerances::default() }
            }
        }
    }
}

impl EvalRun {
    /// Runs every case with every variation on recordings: no store, no network, no clock.
    pub(crate) fn offline(&self) -> EvalResult {
        let total = self.variations.len() * self.cases.len();
        let next = AtomicUsize::new(0);
        let done: Mutex<BTreeMap<usize, JudgedCase>> = Mutex::default();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let work = || {
            // Ends after `total` rounds over all threads.
            while let Some((at, variation, folder)) = self.nth(next.fetch_add(1, Ordering::Relaxed))
            {
                let case = prepare(&self.config, Answers::Recorded, folder, variation);
                let results = case.as_ref().map(from_recordings).unwrap_or_default();
                let judged = JudgedCase::of(&folder.name, case, results);
                done.lock().unwrap_or_else(PoisonError::into_inner).insert(at, judged);
            }
        };
        std::thread::scope(|scope| {
            (0..threads.min(THREADS_MAX).min(total)).for_each(|_| drop(scope.spawn(work)));
        });
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.result(done, Vec::new(), None)
    }

    /// Runs every case with every variation on an endpoint, using the journal and the caps of the settings.
    pub(crate) async fn live(&self, model: LiveModel) -> Result<EvalResult, StoreError> {
        let (tally, cancel) = (Arc::clone(&model.tally), model.cancel.clone());
        let mut output_modes = Vec::new();
        for variation in &self.variations {
            let name = variation.model.as_deref().unwrap_or(&self.config.model.model);
            let known = model.store.capability(&self.config.model.base_url, name).await?;
            let rung = self.config.model.rung.or(known).unwrap_or(OutputMode::ForcedTool);
            output_modes.extend(std::iter::repeat_n(
                Arc::new(OutputModeFallback::new(rung)),
                self.cases.len(),
            ));
        }
        let client = self.client(model).await?;
        let breaker = Breaker { cancel, ..Breaker::default() };
        let pairs = (0..).map_while(|at| self.nth(at));
        let cases: Vec<(&CaseFolder, Prepared)> = pairs
            .map(|(_, variation, folder)| {
                (folder, prepare(&self.config, Answers::Live, folder, variation))
            })
            .collect();
        let case_slices =
            cases.iter().zip(&output_modes).enumerate().flat_map(|(at, (it, output_mode))| {
                let case = it.1.as_ref().ok();
                case.into_iter().flat_map(move |case| {
                    case.slices().map(move |slice| (at, case, slice, &**output_mode))
                })
            });
        let case_slices: Vec<_> = case_slices.collect();
        tally.with(|totals| totals.slices += case_slices.len() as u64);
        let (client, breaker_of, tally_of) = (&client, &breaker, &tally);
        // The client limits the number of concurrent calls.
        let asking = case_slices.into_iter().map(|(at, case, slice, output_mode)| async move {
            if breaker_of.cancel.is_cancelled() {
                let unanswered = Some("stopped before it was asked about".to_owned());
                return Ok((at, SliceResult { unanswered, ..SliceResult::default() }));
            }
            let result = from_model(case, slice, client, output_mode, &breaker_of.cancel).await?;
            breaker_of.after(&result);
            tally_of.with(|totals| totals.slices_done += 1);
            Ok::<_, StoreError>((at, result))
        });
        let mut results: BTreeMap<usize, Vec<SliceResult>> = BTreeMap::new();
        for (at, result) in try_join_all(asking).await? {
            results.entry(at).or_default().push(result);
        }
        let (mut judged, mut recorder) = (BTreeMap::new(), Recorder::default());
        for (at, (folder, case)) in cases.into_iter().enumerate() {
            let results = results.remove(&at).unwrap_or_default();
            if let Ok(case) = &case {
                recorder.add(case, &results);
            }
            judged.insert(at, JudgedCase::of(&folder.name, case, results));
        }
        let reason = breaker.reason.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(self.result(judged, recorder.finish(), reason))
    }

    /// The `at`th pair of variation and case.
    fn nth(&self, at: usize) -> Option<(usize, &Variation, &CaseFolder)> {
        let variation = self.variations.get(at.checked_div(self.cases.len())?)?;
        Some((at, variation, self.cases.get(at % self.cases.len())?))
    }

    async fn client(&self, model: LiveModel) -> Result<ModelClient, StoreError> {
        let LiveModel { endpoint, store, cancel, tally, clock } = model;
        let source = ModelSource {
            config: &self.config,
            model: Model::Endpoint(Box::new(endpoint)),
            model_name: &self.config.model.model,
            store,
            cancel,
            clock,
        };
        source.client(RetryPolicy::none(), tally, GRACE).await
    }

    /// Builds the report from the judged cases, whose keys are those of [`EvalRun::nth`].
    fn result(
        &self,
        judged: BTreeMap<usize, JudgedCase>,
        recordings: Vec<Recording>,
        stopped: Option<String>,
    ) -> EvalResult {
        let (mut variants, mut tolerances) = (Vec::new(), BTreeMap::new());
        let mut judged = judged.into_values();
        for variation in &self.variations {
            let mut cases = Vec::new();
            for it in judged.by_ref().take(self.cases.len()) {
                tolerances.insert(it.report.name.clone(), it.tolerances);
                cases.push(it.report);
            }
            let prompts = &variation.prompts;
            variants.push(Variant {
                name: variation.name.clone(),
                model: variation.model.clone(),
                prompt: PromptName {
                    id: prompts.id().to_owned(),
                    version: prompts.version(),
                    digest: prompts.digest().to_string(),
                },
                schema: ANSWERS_VERSION,
                summary: Summary::of(&cases),
                cases,
            });
        }
        let annalist = env!("CARGO_PKG_VERSION").to_owned();
        let report = Report { report: SCHEMA_VERSION, annalist, variants };
        EvalResult { report, tolerances, recordings, stopped }
    }
}

/// Circuit breaker: stops a run whose endpoint does not answer.
#[derive(Default)]
struct Breaker {
    cancel: CancellationToken,
    unanswered: Mutex<u32>,
    reason: Mutex<Option<String>>,
}

impl Breaker {
    fn after(&self, result: &SliceResult) {
        let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(reason) = &result.unanswered else {
            *unanswered = 0;
            return;
        };
        *unanswered += 1;
        if result.stops || *unanswered >= UNANSWERED_MAX {
            if !self.cancel.is_cancelled() {
                let mut first = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert_with(|| reason.clone());
            }
            self.cancel.cancel();
        }
    }
}
