//! Makes what asks out of the settings, the same for every command that asks.

use super::budget::Budget;
use super::dialogue::OutputModeFallback;
use super::extractor::Extractor;
use super::model_client::{CallRetry, Model, ModelClient};
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
use crate::store::{Rates, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What slices are asked about with.
pub(crate) struct Setup<'a> {
    pub(crate) config: &'a Config,
    pub(crate) model: Model,
    /// The model's name at the endpoint.
    pub(crate) model_name: &'a str,
    pub(crate) store: RetryingStore,
    pub(crate) patience: CallRetry,
    pub(crate) tally: Arc<Tally>,
    /// Somebody asked to stop.
    pub(crate) cancel: CancellationToken,
    /// How long a call under way is waited for then.
    pub(crate) grace: Duration,
    pub(crate) clock: fn() -> Timestamp,
}

impl Setup<'_> {
    /// What asks about slices.
    pub(crate) async fn extractor(self) -> Result<Extractor, StoreError> {
        let config = self.config;
        let asking = extraction_spec(config, self.model_name);
        let asking_digest = asking_digest(&asking, config);
        let client = Arc::new(self.client().await?);
        Ok(Extractor { client, asking, asking_digest, gate: Gate::new(&config.pii) })
    }

    /// What asks at all. Reads from the store what is known of the endpoint.
    pub(crate) async fn client(self) -> Result<ModelClient, StoreError> {
        let Setup { config, model, model_name, store, patience, tally, cancel, grace, clock } =
            self;
        let rung = match &model {
            // What an endpoint can do says nothing of recorded answers.
            Model::Cassette(cassette) => cassette.rung(),
            Model::Endpoint(_) => {
                let known = store.inner().capability(&config.model.base_url, model_name).await?;
                config.model.rung.or(known)
            }
        };
        let limits = &config.limits;
        let limited = limits.requests_per_minute.is_some() || limits.tokens_per_minute.is_some();
        let rates = limited.then(|| Rates {
            endpoint: config.model.base_url.clone(),
            requests_per_minute: limits.requests_per_minute,
            tokens_per_minute: limits.tokens_per_minute.map(u64::from),
        });
        let calls_max = u32::try_from(config.model.concurrency).unwrap_or(u32::MAX);
        let budget = Budget::new(limits, config.model.price);
        if budget.is_set() {
            let workers = store.inner().workers().await?.into_iter().map(|worker| worker.id);
            let gone = workers.filter(|id| process::is_gone(id)).collect();
            store.inner().recount(gone, clock()).await?;
        }
        Ok(ModelClient {
            model,
            store,
            pace: ConcurrencyLimit::new(calls_max),
            rate_limit: RateLimit::new(rates, clock),
            budget,
            patience,
            price: config.model.price,
            tally,
            base_url: config.model.base_url.clone(),
            output_modes: OutputModeFallback::new(rung.unwrap_or(OutputMode::ForcedTool)),
            cancel,
            grace,
            clock,
            settled: tokio::sync::Notify::new(),
            flights: std::sync::Mutex::default(),
        })
    }
}

/// How slices are asked about under these settings.
pub(crate) fn extraction_spec(config: &Config, model: &str) -> Arc<ExtractionSpec> {
    let mut asking = ExtractionSpec::new(model, &config.language, config.prompts.extraction());
    asking.reply_tokens_max = config.model.reply_tokens_max;
    asking.temperature = config.model.temperature;
    Arc::new(asking)
}

/// Everything that makes two answers to one slice comparable: who is asked what, how slices are cut, and
/// what they are told.
pub(crate) fn asking_digest(asking: &ExtractionSpec, config: &Config) -> Digest {
    let prompts = asking.prompts();
    let prompts = format!("{} {} {}", prompts.id(), prompts.version(), prompts.digest());
    let slices = format!("{} {}", config.slice.tokens, config.slice.tool_tokens);
    let (schema, telling) =
        (SCHEMA_VERSION.to_string(), PreambleSettings::of(config).digest().to_string());
    let parts = [&asking.model, &prompts, &schema, asking.language(), &slices, &telling];
    Digest::of(&[&["asking"][..], &parts.map(|part| part)].concat())
}
