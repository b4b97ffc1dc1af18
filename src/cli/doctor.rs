//! `annalist doctor`: checks the endpoint, the settings and the store.

use super::output::{self, DIM, Failure, GREEN, RED, Result, YELLOW, json_row};
use super::{model_args, settings};
use crate::adapters::clock;
use crate::config::{Config, Price};
use crate::domain::{ModelError, OutputMode};
use crate::llm::{Probe, probe};
use crate::pipeline::trial;
use crate::store::{OpenMode, Store, StoreErrorKind};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Sends the endpoint a few small requests (a few hundred tokens), saves the best output mode if \
there is a store, and extracts a three-line conversation with one decision, as `replay` would \
(about 3,000 tokens). Exits 1 if something is missing, the model does not find the decision, or a \
cap in dollars has no effect because the price is unknown.")]
pub(super) struct Args {
    /// Model name at the endpoint, instead of model.model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Key of the best output mode in JSON, which scripts read.
const MODE: &str = "ladder";

struct Line {
    name: &'static str,
    check: CheckRow,
}

#[derive(JsonSchema, Serialize)]
struct CheckRow {
    /// `null` where the check is neither good nor bad.
    ok: Option<bool>,
    detail: String,
}

impl Line {
    fn new(name: &'static str, ok: Option<bool>, detail: impl Into<String>) -> Line {
        Line { name, check: CheckRow { ok, detail: detail.into() } }
    }
}

/// The report, as JSON.
#[derive(JsonSchema, Serialize)]
pub(super) struct DoctorReport<'a> {
    base_url: &'a str,
    model: &'a str,
    models: Option<&'a [String]>,
    best: Option<OutputMode>,
    checks: BTreeMap<&'static str, CheckRow>,
    error: Option<EndpointProblem<'a>>,
    settings: &'a str,
    store: &'a str,
}

json_row! {
    struct EndpointProblem<'a> of error: &'a ModelError {
        kind: &'static str = error.kind.name(),
        detail: &'a str = &error.detail,
    }
}

pub(super) async fn run(args: &Args, file: Option<&Path>) -> Result<()> {
    let config = settings::load(file)?;
    let model = args.model.clone().unwrap_or_else(|| config.model.model.clone());
    let endpoint = model_args::endpoint(&config)?;
    let mut lines = Lines { all: Vec::new(), printed: !args.json, failed: None };
    lines.add(Line::new("settings", None, config.source.clone()));
    let price = price(&config, &model);
    let is_priced = price.check.ok != Some(false);
    lines.add(price);
    let probe = probe(&endpoint, &model, |probe| match probe.checks.last() {
        None => {
            let reached = match &probe.reply_model {
                Some(name) => format!("{} as {name}", probe.reachable.detail),
                None => probe.reachable.detail.clone(),
            };
            let reached = format!("{}: {reached}", config.model.base_url);
            lines.add(Line::new("endpoint", Some(probe.reachable.ok), reached));
            lines.add(listed(probe, &model, &model_args::masked(&model)));
        }
        Some((name, check)) => {
            let detail = format!("{} ({} ms)", check.detail, check.millis);
            lines.add(Line::new(name, Some(check.ok), detail));
        }
    })
    .await;
    let mut usable = false;
    if let Some(best) = probe.best {
        let detail = format!("{} is the best output mode", best.name());
        lines.add(Line::new(MODE, Some(true), detail));
        let found = trial(&config, &endpoint, &model, best).await;
        usable = found.is_ok();
        let detail = found.err().unwrap_or_else(|| "found the decision in three lines".to_owned());
        lines.add(Line::new("extraction", Some(usable), detail));
    }
    let store = store(&config, &probe, &model).await;
    let model = model_args::masked(&model);
    usable &= is_priced && store.check.ok != Some(false);
    let store_name = store.check.detail.clone();
    lines.add(store);
    twins(&config).await.into_iter().for_each(|line| lines.add(line));
    lines.failed.map_or(Ok(()), Err)?;
    if args.json {
        output::json(&DoctorReport {
            base_url: &config.model.base_url,
            model: &model,
            models: probe.models.as_deref(),
            best: probe.best,
            checks: lines.all.into_iter().map(|line| (line.name, line.check)).collect(),
            error: probe.error.as_ref().map(EndpointProblem::of),
            settings: &config.source,
            store: &store_name,
        })?;
    }
    // Without --json, the list above already shows the error.
    if let Some(error) = probe.error.as_ref().filter(|_| args.json) {
        output::note(&output::error(&error.to_string()));
    }
    output::fail_if(!usable)
}

/// The lines of the report, printed as soon as they are known.
struct Lines {
    all: Vec<Line>,
    printed: bool,
    failed: Option<Failure>,
}

impl Lines {
    fn add(&mut self, mut line: Line) {
        line.check.detail = model_args::masked(&line.check.detail);
        if self.printed && self.failed.is_none() {
            self.failed = print(&line).err();
        }
        self.all.push(line);
    }
}

fn listed(probe: &Probe, model: &str, shown: &str) -> Line {
    /// Maximum names to show if the wanted one is not among them.
    const NAMES_MAX: usize = 8;
    let (ok, detail) = match &probe.models {
        None if !probe.reachable.ok => (None, shown.to_owned()),
        None => (None, format!("{shown} (the endpoint lists no models)")),
        Some(names) if names.iter().any(|name| name == model) => (Some(true), shown.to_owned()),
        Some(names) => {
            let some = output::commas(names.iter().take(NAMES_MAX));
            (None, format!("{shown} is not among the listed models: {some}"))
        }
    };
    Line::new("model", ok, detail)
}

fn price(config: &Config, model: &str) -> Line {
    if let Some(what) = model_args::unpriced_cap(config, model) {
        return Line::new("price", Some(false), what);
    }
    let detail = match config.model.price_of(model) {
        None => model_args::PRICE_UNKNOWN.to_owned(),
        Some(Price { sent, answered, read_on, .. }) => {
            let list = read_on.map(|day| format!(" (list price of {day})")).unwrap_or_default();
            format!("${sent} per million tokens sent, ${answered} answered{list}")
        }
    };
    Line::new("price", None, detail)
}

async fn store(config: &Config, probe: &Probe, model: &str) -> Line {
    let url = &config.store_url;
    // A store that is only readable opens for `Existing`, but workers cannot use it.
    let opened = Store::open(url, OpenMode::Existing);
    let store = match opened.and_then(|_| Store::open(url, OpenMode::Create)) {
        Ok(store) => store,
        Err(error) if error.kind == StoreErrorKind::Missing => {
            return Line::new("store", None, format!("{}: {}", error.place, error.kind));
        }
        Err(error) => return Line::new("store", Some(false), Failure::from(error).line),
    };
    if let Some(best) = probe.best
        && let Err(error) = store
            .learn(&config.model.base_url, &model_args::masked(model), best, clock::now())
            .await
    {
        return Line::new("store", Some(false), error.to_string());
    }
    Line::new("store", Some(true), store.place())
}

/// Two namespaces whose names differ only by case.
async fn twins(config: &Config) -> Option<Line> {
    let store = settings::known_store(config).ok()??;
    let (names, mut folded) = (store.namespaces().await.ok()?, BTreeMap::new());
    let mut twins =
        names.iter().filter_map(|name| Some((folded.insert(name.to_lowercase(), name)?, name)));
    let (one, other) = twins.next()?;
    let what = format!(
        "`{one}` and `{other}` differ only by case; if they are one project, merge them with \
         `annalist namespace move {one} {other}`"
    );
    Some(Line::new("namespaces", None, what))
}

fn print(line: &Line) -> Result<()> {
    let mark = match line.check.ok {
        Some(true) => format!("{GREEN}✓{GREEN:#}"),
        Some(false) => format!("{RED}✗{RED:#}"),
        None => format!("{YELLOW}·{YELLOW:#}"),
    };
    let name = if line.name == MODE { "mode" } else { line.name };
    output::line(&format!("{mark} {name:<14} {DIM}{}{DIM:#}", line.check.detail))
}
