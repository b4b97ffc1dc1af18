//! Makes what asks out of the settings, the same for every command that asks.

use super::asking::{Asker, Model};
use super::budget::{Budget, Charge};
use super::extracting::{Extractor, Ladder};
use super::tally::Tally;
use crate::config::Config;
use crate::domain::{Digest, Rung, SessionId, Timestamp};
use crate::edge::model::{Pace, PaceConfig};
use crate::edge::store::{Store, StoreError};
use crate::extract::{Asking, SCHEMA_VERSION};
use crate::privacy::Gate;
use crate::prompt::Prompts;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What slices are asked about with.
pub(super) struct Setup<'a> {
    pub(super) config: &'a Config,
    pub(super) model: Model,
    /// The model's name at the endpoint.
    pub(super) model_name: &'a str,
    pub(super) store: Store,
    pub(super) tally: Arc<Tally>,
    pub(super) cancel: CancellationToken,
    pub(super) clock: fn() -> Timestamp,
}

impl Setup<'_> {
    /// Reads from the store what is known of the endpoint and of the day.
    pub(super) async fn extractor(self) -> Result<Extractor, StoreError> {
        let Setup { config, model, model_name, store, tally, cancel, clock } = self;
        let now = clock();
        let asking = asking_of(config, model_name);
        let rung = match &model {
            // What an endpoint can do says nothing of recorded answers.
            Model::Cassette(cassette) => cassette.rung(),
            Model::Endpoint(_) => {
                let known = store.capability(&config.model.base_url, model_name).await?;
                config.model.rung.or(known)
            }
        };
        let today = match config.limits.day_tokens.is_some() || config.limits.day_micros.is_some() {
            true => spent(&store, Some(midnight(now)), None).await?,
            false => Charge::default(),
        };
        let pace = Pace::new(PaceConfig {
            calls_max: u32::try_from(config.model.concurrency).unwrap_or(u32::MAX),
            requests_per_minute: config.limits.requests_per_minute,
            tokens_per_minute: config.limits.tokens_per_minute.map(u64::from),
        });
        let asking_digest = asking_digest(&asking, config);
        Ok(Extractor {
            asker: Asker {
                model,
                store,
                pace,
                budget: Budget::new(&config.limits, config.model.price, now, today),
                limits: config.limits.clone(),
                price: config.model.price,
                tally,
                cancel,
                clock,
            },
            asking,
            asking_digest,
            gate: Gate::new(&config.pii),
            base_url: config.model.base_url.clone(),
            ladder: Ladder::new(rung.unwrap_or(Rung::ForcedTool)),
        })
    }
}

/// How slices are asked about under these settings.
pub(super) fn asking_of(config: &Config, model: &str) -> Arc<Asking> {
    let mut asking = Asking::new(model, &config.language, Arc::new(Prompts::built_in()));
    asking.reply_tokens_max = config.model.reply_tokens_max;
    asking.temperature = config.model.temperature;
    Arc::new(asking)
}

/// Everything that makes two answers to one slice comparable: who is asked what, and how slices are
/// cut.
pub(super) fn asking_digest(asking: &Asking, config: &Config) -> Digest {
    let prompts = asking.prompts();
    let prompts = format!("{} {} {}", prompts.id(), prompts.version(), prompts.digest());
    let slices = format!("{} {}", config.slice.tokens, config.slice.tool_tokens);
    let schema = SCHEMA_VERSION.to_string();
    Digest::of(&["asking", &asking.model, &prompts, &schema, asking.language(), &slices])
}

fn midnight(now: Timestamp) -> Timestamp {
    /// Milliseconds of a day.
    const DAY_MILLIS: i64 = 86_400_000;
    Timestamp(now.0 - now.0.rem_euclid(DAY_MILLIS))
}

pub(super) async fn spent(
    store: &Store,
    since: Option<Timestamp>,
    session: Option<SessionId>,
) -> Result<Charge, StoreError> {
    let spent = store.spent(since.unwrap_or(Timestamp(0)), None, session).await?;
    let tokens = spent.usage.prompt_tokens + spent.usage.completion_tokens;
    Ok(Charge { tokens, micros: spent.cost_micros })
}
