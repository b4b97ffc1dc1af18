//! `annalist doctor`: what the endpoint can do, and whether everything is in place.

use super::output::{self, DIM, Failure, GREEN, RED, YELLOW};
use super::settings;
use crate::config::Config;
use crate::edge::clock;
use crate::edge::model::{Endpoint, EndpointConfig, Probe, probe};
use crate::edge::store::Open;
use crate::privacy::Gate;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Asks the endpoint a few small questions (they cost a few hundred tokens) and remembers the best way \
to ask. Exits 1 if something is missing.")]
pub(super) struct Args {
    /// The model's name at the endpoint, instead of model.model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One line of the report.
struct Line {
    name: &'static str,
    /// None: worth knowing, neither good nor bad.
    ok: Option<bool>,
    detail: String,
}

/// The endpoint of the settings.
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

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let config = settings::load(file)?;
    let model = args.model.clone().unwrap_or_else(|| config.model.model.clone());
    let endpoint = endpoint(&config)?;
    let runtime = settings::runtime()?;
    let probe = runtime.block_on(probe(&endpoint, &model));
    let mut lines = vec![Line {
        name: "endpoint",
        ok: Some(probe.reachable.ok),
        detail: format!("{}: {}", config.model.base_url, reached(&probe)),
    }];
    lines.push(listed(&probe, &model));
    let checks = probe.checks();
    for (name, check) in checks.into_iter().filter(|(name, _)| *name != "reachable") {
        if probe.reachable.ok {
            let detail = format!("{} ({} ms)", check.detail, check.millis);
            lines.push(Line { name, ok: Some(check.ok), detail });
        }
    }
    if let Some(best) = probe.best {
        let detail = format!("{} is the best way to ask", best.name());
        lines.push(Line { name: "ladder", ok: Some(true), detail });
    }
    lines.push(runtime.block_on(store(&config, &probe, &model)));
    let usable = probe.best.is_some() && lines.last().is_some_and(|line| line.ok != Some(false));
    if args.json { print_json(&config, &model, &probe, &lines) } else { print(&lines) }?;
    if let Some(error) = &probe.error {
        output::note(&format!("{RED}error:{RED:#} {error}"));
    }
    Ok(ExitCode::from(if usable { 0 } else { output::FAILED }))
}

fn reached(probe: &Probe) -> String {
    match &probe.reply_model {
        Some(name) => format!("{} as {name}", probe.reachable.detail),
        None => probe.reachable.detail.clone(),
    }
}

fn listed(probe: &Probe, model: &str) -> Line {
    /// Names that are shown when the wanted one is not among them.
    const NAMES_MAX: usize = 8;
    let (ok, detail) = match &probe.models {
        None => (None, format!("{model} (the endpoint lists no models)")),
        Some(names) if names.iter().any(|name| name == model) => (Some(true), model.to_owned()),
        Some(names) => {
            let some: Vec<&str> = names.iter().take(NAMES_MAX).map(String::as_str).collect();
            (None, format!("{model} is not among those listed: {}", some.join(", ")))
        }
    };
    Line { name: "model", ok, detail }
}

async fn store(config: &Config, probe: &Probe, model: &str) -> Line {
    let store = match settings::open_store(config, Open::Create) {
        Ok(store) => store,
        Err(failure) => return Line { name: "store", ok: Some(false), detail: failure.line },
    };
    if let Some(best) = probe.best {
        let learned = store.learn(&config.model.base_url, model, best, clock::now()).await;
        if let Err(error) = learned {
            return Line { name: "store", ok: Some(false), detail: error.to_string() };
        }
    }
    Line { name: "store", ok: Some(true), detail: store.place().to_owned() }
}

fn print(lines: &[Line]) -> Result<(), Failure> {
    for line in lines {
        let mark = match line.ok {
            Some(true) => format!("{GREEN}✓{GREEN:#}"),
            Some(false) => format!("{RED}✗{RED:#}"),
            None => format!("{YELLOW}·{YELLOW:#}"),
        };
        output::line(&format!("{mark} {:<14} {DIM}{}{DIM:#}", line.name, line.detail))?;
    }
    Ok(())
}

fn print_json(config: &Config, model: &str, probe: &Probe, lines: &[Line]) -> Result<(), Failure> {
    let checks: serde_json::Map<String, Value> = lines
        .iter()
        .map(|line| (line.name.to_owned(), json!({ "ok": line.ok, "detail": line.detail })))
        .collect();
    output::json(&json!({
        "base_url": config.model.base_url, "model": model, "models": probe.models,
        "best": probe.best, "checks": checks,
        "error": probe.error.as_ref().map(|error| json!({
            "kind": error.kind.name(), "detail": error.detail,
        })),
    }))
}
