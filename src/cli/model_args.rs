//! Flags of commands that call a model: model name, concurrency, or recorded answers instead.

use super::output::{self, Failure, Result, count, counted, dollars, json_row, numbers, remark};
use super::progress::cancelled_by_signal;
use super::settings;
use crate::adapters::clock;
use crate::config::Config;
use crate::domain::Session;
use crate::llm::{Cassette, Endpoint, EndpointConfig};
use crate::pipeline::{
    Adjudicator, AskMode, Embedder, Model, ModelSource, ModelUsage, Summariser, Totals,
};
use crate::privacy::{Gate, Only};
use crate::store::{Spent, Store};
use clap::builder::NonEmptyStringValueParser;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Flags of commands that extract.
#[derive(Debug, clap::Args)]
pub(super) struct ModelArgs {
    /// Model name at the endpoint, instead of model.model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Use recorded answers from this folder instead of an endpoint
    #[arg(long, value_name = "DIR")]
    cassette: Option<PathBuf>,
    /// Concurrent calls, instead of model.concurrency
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    concurrency: Option<u32>,
}

impl ModelArgs {
    pub(super) fn is_recorded(&self) -> bool {
        self.cassette.is_some()
    }

    pub(super) fn override_settings(&self, config: &mut Config) {
        if let Some(concurrency) = self.concurrency {
            config.model.concurrency = concurrency as usize;
        }
    }

    pub(super) fn name(&self, config: &Config) -> Result<String> {
        let cassette = self.cassette.as_deref().map(recorded).transpose()?;
        let recorded = cassette.as_ref().and_then(|cassette| cassette.model());
        Ok(self.model.as_deref().or(recorded).unwrap_or(&config.model.model).to_owned())
    }

    pub(super) fn model(&self, config: &Config) -> Result<(Model, String)> {
        model(config, self.cassette.as_deref(), self.model.as_deref(), &config.model.model)
    }
}

/// Flags of commands that adjudicate.
#[derive(Debug, clap::Args)]
pub(super) struct AdjudicationArgs {
    /// Ask this model, instead of consolidate.model
    #[arg(long, value_name = "NAME", conflicts_with = "no_model")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    model: Option<String>,
    /// Use rules only, without a model
    #[arg(long)]
    no_model: bool,
    /// Use recorded answers from this folder instead of an endpoint
    #[arg(long, value_name = "DIR", conflicts_with = "no_model")]
    cassette: Option<PathBuf>,
}

impl AdjudicationArgs {
    /// Creates the adjudicator; `None` to decide by rule alone. A dry run calls a model only if a flag names it.
    /// Ctrl-C stops its calls.
    pub(super) async fn adjudicator(
        &self,
        config: &Config,
        store: &Store,
        dry_run: bool,
    ) -> Result<Option<Arc<Adjudicator>>> {
        let (cassette, named) = (self.cassette.as_deref(), self.model.as_deref());
        let set = config.consolidate.model_name(&config.model.model);
        let named = (cassette.is_some() || named.is_some())
            .then(|| model(config, cassette, named, set.unwrap_or(&config.model.model)))
            .transpose()?;
        let set = set.filter(|_| !self.no_model);
        if let (None, Some(name)) = (&named, set) {
            match unpriced_cap(config, name) {
                Some(what) if dry_run => output::note(&output::warning(&what)),
                Some(what) => return Err(Failure::usage(what)),
                None => {}
            }
        }
        let (model, name, mode) = match (named, set) {
            (Some((model, name)), _) => (model, name, AskMode::Required),
            (None, None) => return Ok(None),
            (None, Some(name)) if dry_run => {
                (of_endpoint(endpoint_with(config, None)?), name.to_owned(), AskMode::Priced)
            }
            (None, Some(name)) if config.consolidate.is_auto() => match responding(config).await {
                Ok(endpoint) => (of_endpoint(endpoint), name.to_owned(), AskMode::Optional),
                Err(why) => (Model::Unavailable(why), name.to_owned(), AskMode::Optional),
            },
            (None, Some(name)) => {
                (of_endpoint(endpoint(config)?), name.to_owned(), AskMode::Required)
            }
        };
        let adjudicator = Adjudicator::new(source(config, store, model, &name)?, mode).await?;
        Ok(Some(Arc::new(adjudicator)))
    }
}

/// Flags of commands that can have a model write summaries.
#[derive(Debug, clap::Args)]
pub(super) struct SummaryArgs {
    /// Write summaries with this model instead of by rule
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    model: Option<String>,
    /// Use recorded answers from this folder instead of an endpoint
    #[arg(long, value_name = "DIR")]
    cassette: Option<PathBuf>,
}

impl SummaryArgs {
    pub(super) fn is_named(&self) -> bool {
        self.model.is_some() || self.cassette.is_some()
    }

    /// Creates the summary writer for `session`. Ctrl-C stops its calls.
    pub(super) async fn summariser(
        &self,
        config: &Config,
        store: &Store,
        session: Option<&Session>,
    ) -> Result<Summariser> {
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
) -> Result<ModelSource<'a>> {
    let (store, cancel) = (store.clone(), cancelled_by_signal()?);
    Ok(ModelSource { config, model, model_name, store, cancel, clock: clock::now })
}

/// Returns a cassette or the endpoint, and the model name: `named`, else the cassette's, else `otherwise`.
fn model(
    config: &Config,
    cassette: Option<&Path>,
    named: Option<&str>,
    otherwise: &str,
) -> Result<(Model, String)> {
    if let Some(folder) = cassette {
        let cassette = recorded(folder)?;
        let name = named.or(cassette.model()).unwrap_or(otherwise).to_owned();
        return Ok((Model::Cassette(Box::new(cassette)), name));
    }
    let (endpoint, name) = (endpoint(config)?, named.unwrap_or(otherwise));
    if masked(name) != name {
        return Err(Failure::usage(
            "model.model: <SECRET> looks like a key, not like the name of a model: put the key into a variable, and \
             set api_key_env to its name; replace a key that was in a file",
        ));
    }
    refuse_unpriced_cap(config, name)?;
    Ok((of_endpoint(endpoint), name.to_owned()))
}

/// Redacts a text with the model's name, since a user may have entered the key instead.
pub(super) fn masked(model: &str) -> String {
    Gate::new(&[]).only(Only::Secrets).redact(model).as_str().to_owned()
}

fn of_endpoint(endpoint: Endpoint) -> Model {
    Model::Endpoint(Box::new(endpoint))
}

/// Calls, or the answers from a cassette instead of calls, and their tokens, with labels.
pub(super) fn call_rows(totals: &Totals, is_recorded: bool) -> [(&'static str, String); 2] {
    let journaled = remark(totals.journaled, "from the journal");
    let (sent, answered) = (count(totals.tokens.sent), count(totals.tokens.answered));
    let calls = if is_recorded { "answers recorded" } else { "calls" };
    [
        (calls, format!("{}{journaled}", count(totals.calls))),
        ("tokens", format!("{sent} sent, {answered} answered")),
    ]
}

pub(super) const PRICE_UNKNOWN: &str =
    "price unknown: set model.usd_per_million_sent and model.usd_per_million_answered";

/// Problem of a cost cap that has no effect because the model has no known price.
pub(super) fn unpriced_cap(config: &Config, model: &str) -> Option<String> {
    let cap = config.limits.money_cap().filter(|_| config.model.price_of(model).is_none())?;
    Some(format!(
        "{cap} has no effect: {} has no known price; set model.usd_per_million_sent and \
         model.usd_per_million_answered (0 if it is free)",
        masked(model)
    ))
}

pub(super) fn refuse_unpriced_cap(config: &Config, model: &str) -> Result<()> {
    unpriced_cap(config, model).map_or(Ok(()), |what| Err(Failure::usage(what)))
}

pub(super) fn endpoint(config: &Config) -> Result<Endpoint> {
    endpoint_with(config, settings::api_key(config)?)
}

pub(super) fn embedder(config: &Config) -> Result<Option<Embedder>> {
    let endpoint = config.search.embeddings.as_ref().map(|_| endpoint(config)).transpose()?;
    Ok(endpoint.and_then(|endpoint| Embedder::new(endpoint, config, clock::now)))
}

/// Returns the endpoint if it responds, else the reason.
async fn responding(config: &Config) -> Result<Endpoint, String> {
    let endpoint = endpoint(config).map_err(|failure| failure.line)?;
    let is_there = endpoint.responds().await;
    let why =
        || format!("no model answers at {}; `annalist doctor` shows why", config.model.base_url);
    is_there.then_some(endpoint).ok_or_else(why)
}

fn endpoint_with(config: &Config, api_key: Option<String>) -> Result<Endpoint> {
    let settings = EndpointConfig {
        base_url: config.model.base_url.clone(),
        api_key,
        api_key_env: config.model.api_key_env.clone().unwrap_or_default(),
        source: settings::endpoint_source(config),
        connect_timeout: config.model.connect_timeout,
        read_timeout: config.model.timeout,
        total_timeout: config.model.timeout,
    };
    Endpoint::new(settings, Gate::new(&config.pii), clock::now)
        .map_err(|error| Failure::usage(format!("model.base_url: {error}")))
}

pub(super) fn recorded(folder: &Path) -> Result<Cassette> {
    let (cassette, findings) = Cassette::load(folder).map_err(|error| {
        Failure::usage(format!("{}: cannot read the cassette: {error}", folder.display()))
    })?;
    findings.iter().for_each(|finding| output::note(&format!("cassette: {finding}")));
    if cassette.is_empty() {
        return Err(Failure::usage(format!("{}: contains no recorded answers", folder.display())));
    }
    let origins = cassette.origins();
    let kinds = numbers([
        ("recorded from a model", origins.recorded),
        ("imported from recorded answers", origins.imported),
        ("written by hand", origins.hand_written),
    ]);
    output::note(&format!("answers come from the cassette, no model is called: {kinds}"));
    Ok(cassette)
}

json_row! {
    /// Questions about pairs of a record and a memory, as JSON.
    pub(super) struct AskedPairs of it: &ModelUsage {
        /// Records of the plan.
        records: u64 = it.records,
        pairs: u64 = it.pairs,
        /// Verdicts that were not taken.
        refused: u64 = it.refused,
        questions: u64 = it.questions,
        journaled: u64 = it.journaled,
        /// Nothing was asked: the counts, and the usage, are estimates.
        estimated: bool = it.is_estimate,
    }
}

json_row! {
    /// Calls, tokens and US dollars, as JSON.
    pub(super) struct CallUsage of it: &Spent {
        calls: u64 = it.calls,
        sent: u64 = it.usage.prompt_tokens,
        cached: u64 = it.usage.cached_tokens,
        answered: u64 = it.usage.completion_tokens,
        cost: f64 = dollars(it.cost_micros),
    }
}

pub(super) fn asked_line(about: &str, usage: &ModelUsage) -> String {
    let free = remark(usage.journaled, "from the journal");
    let (begin, calls) = match usage.is_estimate {
        true => ("would ask", "about".to_owned()),
        false => ("asked", format!("{},", counted(usage.spent.calls, "call"))),
    };
    format!(
        "{begin} about {about} in {}{free}: {calls} {} tokens sent, {} answered{}",
        counted(usage.questions, "question"),
        count(usage.spent.usage.prompt_tokens),
        count(usage.spent.usage.completion_tokens),
        output::paid(usage.spent.cost_micros)
    )
}
