//! Builds the model client and the extractor from the settings, the same for every command.

use super::budget::Budget;
use super::extractor::Extractor;
use super::model_client::{Model, ModelClient};
use super::output_mode::OutputModeFallback;
use super::preamble::PreambleSettings;
use super::rate_limit::RateLimit;
use super::retrying_store::RetryingStore;
use super::tally::Tally;
use crate::adapters::process;
use crate::config::Config;
use crate::domain::{Digest, OutputMode, Timestamp};
use crate::extract::{ExtractionSpec, SCHEMA_VERSION};
use crate::llm::ConcurrencyLimit;
use crate::privacy::Gate;
use crate::store::StoreError;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub(crate) struct Setup<'a> {
    pub(crate) config: &'a Config,
    pub(crate) model: Model,
    /// The model's name at the endpoint.
    pub(crate) model_name: &'a str,
    pub(crate) store: RetryingStore,
    pub(crate) tally: Arc<Tally>,
    pub(crate) cancel: CancellationToken,
    /// Grace period for a call in flight after `cancel`.
    pub(crate) grace: Duration,
    pub(crate) clock: fn() -> Timestamp,
}

impl Setup<'_> {
    pub(crate) async fn extractor(self) -> Result<Extractor, StoreError> {
        let config = self.config;
        let spec = extraction_spec(config, self.model_name);
        let asking = asking_digest(&spec, config);
        let client = Arc::new(self.client().await?);
        Ok(Extractor { client, spec, asking, gate: Gate::new(&config.pii) })
    }

    pub(crate) async fn client(self) -> Result<ModelClient, StoreError> {
        let Setup { config, model, model_name, store, tally, cancel, grace, clock } = self;
        let base_url = config.model.base_url.clone();
        let known = match &model {
            // Capabilities of the endpoint do not apply to recorded answers.
            Model::Cassette(cassette) => cassette.rung(),
            Model::Endpoint(_) => {
                config.model.rung.or(store.inner().capability(&base_url, model_name).await?)
            }
        };
        let limits = &config.limits;
        let calls_max = u32::try_from(config.model.concurrency).unwrap_or(u32::MAX);
        let price = config.model.price_of(model_name);
        tally.with(|totals| totals.count_cost(price));
        let price = price.unwrap_or_default();
        let budget = Budget::new(limits, price);
        if budget.is_set() {
            let workers = store.inner().workers().await?.into_iter().map(|worker| worker.id);
            let gone = workers.filter(|id| process::is_gone(id)).collect();
            store.inner().recount(gone, clock()).await?;
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
            in_flight: std::sync::Mutex::default(),
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
    let preamble = PreambleSettings::of(config).digest().to_string();
    let language = spec.language();
    Digest::of(&["asking", &spec.model, &prompts, &schema, language, &slices, &preamble])
}
