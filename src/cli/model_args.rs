//! Flags of commands that call a model: its name, the concurrency, or recorded answers instead.

use super::interrupt;
use super::output::{self, Failure, count, counted, dollars, numbers, remark};
use super::settings;
use crate::adapters::clock;
use crate::config::Config;
use crate::domain::{Session, Usage};
use crate::llm::{Cassette, Endpoint, EndpointConfig};
use crate::pipeline::{Adjudicator, Model, ModelSource, ModelUsage, Reflector, Summariser};
use crate::privacy::Gate;
use crate::store::{Spent, Store};
use clap::builder::NonEmptyStringValueParser;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Flags of commands that extract.
#[derive(Debug, clap::Args)]
pub(super) struct ModelArgs {
    /// The model's name at the endpoint, instead of model.model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Take recorded answers from this folder instead of an endpoint
    #[arg(long, value_name = "DIR")]
    cassette: Option<PathBuf>,
    /// Concurrent calls, instead of model.concurrency
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    concurrency: Option<u32>,
}

impl ModelArgs {
    pub(super) fn override_settings(&self, config: &mut Config) {
        if let Some(concurrency) = self.concurrency {
            config.model.concurrency = concurrency as usize;
        }
    }

    pub(super) fn name(&self, config: &Config) -> Result<String, Failure> {
        let cassette = self.cassette.as_deref().map(recorded).transpose()?;
        let recorded = cassette.as_ref().and_then(|cassette| cassette.model());
        Ok(self.model.as_deref().or(recorded).unwrap_or(&config.model.model).to_owned())
    }

    pub(super) fn model(&self, config: &Config) -> Result<(Model, String), Failure> {
        model(config, self.cassette.as_deref(), self.model.as_deref(), &config.model.model)
    }
}

/// Flags of commands that adjudicate or look back: a model is asked only where one is named.
#[derive(Debug, clap::Args)]
pub(super) struct AdjudicationArgs {
    /// Ask this model, instead of consolidate.model
    #[arg(long, value_name = "NAME", conflicts_with = "no_model")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    model: Option<String>,
    /// Ask no model: decide by rule alone
    #[arg(long)]
    no_model: bool,
    /// Take the model's answers from this folder of recorded ones instead of an endpoint
    #[arg(long, value_name = "DIR", conflicts_with = "no_model")]
    cassette: Option<PathBuf>,
}

impl AdjudicationArgs {
    /// The adjudicator, if a model is named. Ctrl-C stops its calls.
    pub(super) async fn adjudicator(
        &self,
        config: &Config,
        store: &Store,
    ) -> Result<Option<Arc<Adjudicator>>, Failure> {
        let Some((model, name)) = self.model(config)? else { return Ok(None) };
        let adjudicator = Adjudicator::new(source(config, store, model, &name)?).await?;
        Ok(Some(Arc::new(adjudicator)))
    }

    /// The writer of lessons, if a model is named. Ctrl-C stops its calls.
    pub(super) async fn reflector(
        &self,
        config: &Config,
        store: &Store,
    ) -> Result<Option<Reflector>, Failure> {
        let Some((model, name)) = self.model(config)? else { return Ok(None) };
        Ok(Some(Reflector::new(source(config, store, model, &name)?).await?))
    }

    fn model(&self, config: &Config) -> Result<Option<(Model, String)>, Failure> {
        let set = config.consolidate.model.as_deref();
        let cassette = self.cassette.as_deref();
        if self.no_model || (self.model.is_none() && cassette.is_none() && set.is_none()) {
            return Ok(None);
        }
        let otherwise = set.unwrap_or(&config.model.model);
        model(config, cassette, self.model.as_deref(), otherwise).map(Some)
    }
}

/// Flags of commands that can have a model write summaries.
#[derive(Debug, clap::Args)]
pub(super) struct SummaryArgs {
    /// Have this model write the summaries, instead of the rule
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    model: Option<String>,
    /// Take the model's answers from this folder of recorded ones instead of an endpoint
    #[arg(long, value_name = "DIR")]
    cassette: Option<PathBuf>,
}

impl SummaryArgs {
    /// True if a model is to write summaries.
    pub(super) fn is_named(&self) -> bool {
        self.model.is_some() || self.cassette.is_some()
    }

    /// The writer of the summaries of `session`. Ctrl-C stops its calls.
    pub(super) async fn summariser(
        &self,
        config: &Config,
        store: &Store,
        session: Option<&Session>,
    ) -> Result<Summariser, Failure> {
        let (cassette, named) = (self.cassette.as_deref(), self.model.as_deref());
        let (model, name) = model(config, cassette, named, &config.model.model)?;
        Ok(Summariser::new(source(config, store, model, &name)?, session).await?)
    }
}

fn source<'a>(
    config: &'a Config,
    store: &Store,
    model: Model,
    model_name: &'a str,
) -> Result<ModelSource<'a>, Failure> {
    let (store, cancel) = (store.clone(), interrupt::cancelled_by_signal()?);
    Ok(ModelSource { config, model, model_name, store, cancel, clock: clock::now })
}

/// A cassette or the endpoint, and the model's name: `named`, else the cassette's, else `otherwise`.
fn model(
    config: &Config,
    cassette: Option<&Path>,
    named: Option<&str>,
    otherwise: &str,
) -> Result<(Model, String), Failure> {
    if let Some(folder) = cassette {
        let cassette = recorded(folder)?;
        let name = named.or(cassette.model()).unwrap_or(otherwise).to_owned();
        return Ok((Model::Cassette(Box::new(cassette)), name));
    }
    let endpoint = endpoint(config)?;
    Ok((Model::Endpoint(Box::new(endpoint)), named.unwrap_or(otherwise).to_owned()))
}

pub(super) fn endpoint(config: &Config) -> Result<Endpoint, Failure> {
    let settings = EndpointConfig {
        base_url: config.model.base_url.clone(),
        api_key: settings::api_key(config)?,
        api_key_env: config.model.api_key_env.clone().unwrap_or_default(),
        connect_timeout: config.model.connect_timeout,
        read_timeout: config.model.timeout,
        total_timeout: config.model.timeout,
    };
    Endpoint::new(settings, Gate::new(&config.pii), clock::now)
        .map_err(|error| Failure::usage(format!("model.base_url: {error}")))
}

/// The recorded answers in a folder; their origins are noted.
pub(super) fn recorded(folder: &Path) -> Result<Cassette, Failure> {
    let (cassette, findings) = Cassette::load(folder).map_err(|error| {
        Failure::usage(format!("{}: no cassette can be read there: {error}", folder.display()))
    })?;
    findings.iter().for_each(|finding| output::note(&format!("cassette: {finding}")));
    if cassette.is_empty() {
        return Err(Failure::usage(format!("{}: holds no recorded answers", folder.display())));
    }
    let origins = cassette.origins();
    let kinds = numbers([
        ("recorded from a model", origins.recorded as u64),
        ("imported from recorded answers", origins.imported as u64),
        ("written by hand", origins.hand_written as u64),
    ]);
    output::note(&format!("answers come from the cassette, no model is asked: {kinds}"));
    Ok(cassette)
}

/// Questions about pairs of a record and a memory, as JSON.
#[derive(JsonSchema, Serialize)]
pub(super) struct AskedPairs {
    pairs: u64,
    questions: u64,
    journaled: u64,
}

/// Calls, tokens and US dollars, as JSON.
#[derive(JsonSchema, Serialize)]
pub(super) struct CallUsage {
    calls: u64,
    sent: u64,
    cached: u64,
    answered: u64,
    cost: f64,
}

impl AskedPairs {
    pub(super) fn of(usage: &ModelUsage) -> AskedPairs {
        let &ModelUsage { pairs, questions, journaled, .. } = usage;
        AskedPairs { pairs, questions, journaled }
    }
}

impl CallUsage {
    pub(super) fn of(usage: &ModelUsage) -> CallUsage {
        let &ModelUsage { calls, sent, cached, answered, .. } = usage;
        CallUsage { calls, sent, cached, answered, cost: dollars(usage.cost_micros) }
    }

    pub(super) fn of_spent(spent: &Spent) -> CallUsage {
        let Usage { prompt_tokens, cached_tokens, completion_tokens } = spent.usage;
        CallUsage {
            calls: spent.calls,
            sent: prompt_tokens,
            cached: cached_tokens,
            answered: completion_tokens,
            cost: dollars(spent.cost_micros),
        }
    }
}

/// The questions about something and what they cost, in a line.
pub(super) fn asked_line(about: &str, usage: &ModelUsage) -> String {
    let free = remark(usage.journaled, "from the journal");
    format!(
        "asked about {about} in {}{free}: {}, {} tokens sent, {} answered, ${:.4}",
        counted(usage.questions, "question"),
        counted(usage.calls, "call"),
        count(usage.sent),
        count(usage.answered),
        dollars(usage.cost_micros)
    )
}
