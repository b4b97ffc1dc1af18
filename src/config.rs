//! Settings: the shipped `config.toml` is the defaults, a file and the environment are laid over it,
//! and what comes out is checked. Reads no file and no environment itself.

use crate::conversation;
use crate::dialog;
use crate::domain::{Rung, Tokens};
use crate::privacy::Pii;
use crate::prompt::OwnPrompts;
use crate::slice;
use serde::Deserialize;
use std::time::Duration;
use toml::Value;

/// The defaults, as shipped.
pub const DEFAULT: &str = include_str!("../config.toml");
/// What the names of environment variables begin with.
pub const ENV_PREFIX: &str = "ANNALIST__";

/// One text that settings come from, and what to call it in an error.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    /// The file's path.
    pub name: &'a str,
    /// Its text, TOML.
    pub text: &'a str,
}

/// Checked settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Language of the records.
    pub language: String,
    /// Whose memory records become; none takes the folder that the agent worked in.
    pub namespace: Option<String>,
    /// The folder of prompts of one's own, or a file of one; none takes those that are compiled in.
    pub prompts_path: Option<String>,
    /// What was read there, by whoever reads files.
    pub prompts: OwnPrompts,
    /// The endpoint.
    pub model: Model,
    /// URL of the store.
    pub store_url: String,
    /// How slices are cut.
    pub slice: slice::Settings,
    /// What is remembered of a conversation.
    pub conversation: conversation::Settings,
    /// Personal data that is masked.
    pub pii: Vec<Pii>,
    /// How much of a dialog's last turns is told.
    pub dialog: dialog::Limits,
    /// Bounds on calls, tokens and money.
    pub limits: Limits,
    /// Slices that wait to be asked about.
    pub queue: Queue,
    /// How and when records become memory.
    pub consolidate: Consolidate,
    /// All layers as one, before they were checked.
    layers: toml::Table,
}

/// The endpoint and how it is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Up to and including `/v1`, without a slash at the end.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    /// The environment variable with the key, if one is needed.
    pub api_key_env: Option<String>,
    /// Where the ladder begins; none is decided by what worked before.
    pub rung: Option<Rung>,
    /// Sampling temperature, if it is sent.
    pub temperature: Option<f32>,
    /// Longest answer.
    pub reply_tokens_max: u32,
    /// Calls at the same time.
    pub concurrency: usize,
    /// Until a connection must stand.
    pub connect_timeout: Duration,
    /// Until an answer must be complete.
    pub timeout: Duration,
    /// What tokens cost.
    pub price: Price,
}

/// What tokens cost, in US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// US dollars for a million tokens sent.
    pub sent: f64,
    /// US dollars for a million tokens sent that the provider had cached.
    pub cached: f64,
    /// US dollars for a million tokens answered.
    pub answered: f64,
}

/// Bounds; none means no bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Calls a minute.
    pub requests_per_minute: Option<u32>,
    /// Tokens a minute.
    pub tokens_per_minute: Option<u32>,
    /// Tokens for one session.
    pub session_tokens: Option<u64>,
    /// Tokens a day, UTC.
    pub day_tokens: Option<u64>,
    /// Tokens for one namespace a day, UTC.
    pub namespace_day_tokens: Option<u64>,
    /// Micro-dollars for one session.
    pub session_micros: Option<u64>,
    /// Micro-dollars a day, UTC.
    pub day_micros: Option<u64>,
    /// Micro-dollars for one namespace a day, UTC.
    pub namespace_day_micros: Option<u64>,
    /// Tries of one call.
    pub tries_max: u32,
    /// Longest wait for an endpoint.
    pub wait_max: Duration,
}

/// Settings that cannot be used: where, what was expected, what to do. One line.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct ConfigError {
    /// File and line, or the variable, or the flag.
    pub place: String,
    /// What is wrong and what was expected.
    pub what: String,
}

/// The file as it is written; `config.toml` has every one of these and no others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfig {
    language: String,
    namespace: String,
    prompts: String,
    model: RawModel,
    store: RawStore,
    slice: RawSlice,
    conversation: RawConversation,
    privacy: RawPrivacy,
    dialog: RawDialog,
    limits: RawLimits,
    queue: RawQueue,
    consolidate: RawConsolidate,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawModel {
    base_url: String,
    model: String,
    api_key_env: String,
    rung: String,
    temperature: f64,
    reply_tokens_max: u32,
    concurrency: u32,
    connect_timeout_secs: u64,
    timeout_secs: u64,
    usd_per_million_sent: f64,
    usd_per_million_cached: f64,
    usd_per_million_answered: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStore {
    url: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSlice {
    tokens: Tokens,
    tool_tokens: Tokens,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPrivacy {
    pii: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDialog {
    tokens: Tokens,
    turns: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLimits {
    requests_per_minute: u32,
    tokens_per_minute: u32,
    session_tokens_max: u64,
    day_tokens_max: u64,
    namespace_day_tokens_max: u64,
    session_usd_max: f64,
    day_usd_max: f64,
    namespace_day_usd_max: f64,
    tries_max: u32,
    wait_secs_max: u64,
}

impl Config {
    /// The defaults under `file`, under `env` (names and values, [`ENV_PREFIX`] included).
    pub fn load(file: Option<Layer<'_>>, env: &[(String, String)]) -> Result<Config, ConfigError> {
        let mut settings = layer::parse(Layer { name: "built-in config.toml", text: DEFAULT })?;
        let defaults = settings.clone();
        if let Some(file) = file {
            let table = layer::parse(file)?;
            layer::check_keys(&table, &defaults, file)?;
            layer::merge(&mut settings, table);
        }
        for (name, value) in env {
            layer::set_from_env(&mut settings, &defaults, name, value)?;
        }
        let place = file.map_or("config.toml", |file| file.name).to_owned();
        let raw = RawConfig::deserialize(Value::Table(settings.clone()))
            .map_err(|error| ConfigError { place: place.clone(), what: error.message().into() })?;
        let config = check(raw);
        let config =
            config.map_err(|what| ConfigError { place: place_of(&what, file, env), what })?;
        Ok(Config { layers: settings, ..config })
    }

    /// These settings with tables of `over`, which `place` holds, laid over them: how transcripts are read,
    /// cut and told. Everything else stays as it is.
    pub fn with(&self, over: &toml::Table, place: &str) -> Result<Config, ConfigError> {
        if over.is_empty() {
            return Ok(self.clone());
        }
        let mut layers = self.layers.clone();
        layer::check_keys(over, &layers, Layer { name: place, text: "" })?;
        layer::merge(&mut layers, over.clone());
        let wrong = |what: String| ConfigError { place: place.to_owned(), what };
        let raw = RawConfig::deserialize(Value::Table(layers.clone()))
            .map_err(|error| wrong(error.message().into()))?;
        let Config { slice, conversation, pii, dialog, .. } = check(raw).map_err(wrong)?;
        Ok(Config { slice, conversation, pii, dialog, layers, ..self.clone() })
    }
}

mod layer;
mod consolidate;
mod memory;
mod queue;

use consolidate::RawConsolidate;
pub use consolidate::{Consolidate, Thresholds};
use memory::RawConversation;
pub use queue::Queue;
use queue::RawQueue;

/// Where the key stands that a sentence of [`check`] begins with.
fn place_of(what: &str, file: Option<Layer<'_>>, env: &[(String, String)]) -> String {
    let key = what.split(':').next().unwrap_or_default();
    let variable = format!("{ENV_PREFIX}{}", key.replace('.', "__").to_ascii_uppercase());
    if env.iter().any(|(name, _)| *name == variable) {
        return format!("environment variable {variable}");
    }
    let path: Vec<&str> = key.split('.').collect();
    let line = file.and_then(|file| layer::line_of_key(file.text, &path));
    match (file, line) {
        (Some(file), Some(line)) => format!("{}:{line}", file.name),
        (Some(file), None) => file.name.to_owned(),
        (None, _) => "config.toml".to_owned(),
    }
}

fn check(raw: RawConfig) -> Result<Config, String> {
    let namespace = raw.namespace.trim();
    let prompts = raw.prompts.trim();
    let slice = check_slice(&raw.slice)?;
    Ok(Config {
        language: text(&raw.language, "language")?,
        namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
        prompts_path: (!prompts.is_empty()).then(|| prompts.to_owned()),
        prompts: OwnPrompts::default(),
        model: check_model(raw.model)?,
        store_url: text(&raw.store.url, "store.url")?,
        slice,
        conversation: memory::check(&raw.conversation)?,
        pii: check_pii(&raw.privacy.pii)?,
        dialog: check_dialog(&raw.dialog)?,
        limits: check_limits(&raw.limits)?,
        queue: queue::check(&raw.queue, slice.tokens)?,
        consolidate: consolidate::read(&raw.consolidate),
        layers: toml::Table::new(),
    })
}

fn check_model(raw: RawModel) -> Result<Model, String> {
    let base_url = raw.base_url.trim().trim_end_matches('/').to_owned();
    if !base_url.starts_with("http://") && !base_url.starts_with("https://") {
        return Err("model.base_url: expected a URL such as http://127.0.0.1:11434/v1".into());
    }
    let rung = match raw.rung.as_str() {
        "auto" => None,
        name => Some(Rung::of_name(name).ok_or_else(|| unknown_rung(name))?),
    };
    if !raw.temperature.is_finite() {
        return Err(format!("model.temperature: expected a number, found {}", raw.temperature));
    }
    let key = raw.api_key_env.trim();
    let price = Price {
        sent: amount(raw.usd_per_million_sent, "model.usd_per_million_sent")?,
        cached: amount(raw.usd_per_million_cached, "model.usd_per_million_cached")?,
        answered: amount(raw.usd_per_million_answered, "model.usd_per_million_answered")?,
    };
    Ok(Model {
        base_url,
        model: text(&raw.model, "model.model")?,
        api_key_env: (!key.is_empty()).then(|| key.to_owned()),
        rung,
        temperature: (raw.temperature >= 0.0).then_some(raw.temperature as f32),
        reply_tokens_max: at_least(raw.reply_tokens_max, 64, "model.reply_tokens_max")?,
        concurrency: at_least(raw.concurrency, 1, "model.concurrency")? as usize,
        connect_timeout: Duration::from_secs(raw.connect_timeout_secs.max(1)),
        timeout: Duration::from_secs(raw.timeout_secs.max(1)),
        price,
    })
}

fn unknown_rung(name: &str) -> String {
    let known: Vec<&str> = Rung::ALL.iter().map(|rung| rung.name()).collect();
    format!("model.rung: unknown value `{name}`: expected auto, {}", known.join(", "))
}

fn check_slice(raw: &RawSlice) -> Result<slice::Settings, String> {
    let tokens = at_least(raw.tokens, slice::SLICE_TOKENS_MIN, "slice.tokens")?;
    let tool_tokens = at_least(raw.tool_tokens, slice::TOOL_TOKENS_MIN, "slice.tool_tokens")?;
    let most = slice::tool_tokens_max(tokens);
    if tool_tokens > most {
        return Err(format!(
            "slice.tool_tokens: {tool_tokens} is too much for slices of {tokens} tokens: \
             a call and its result must fit in one, so at most {most}"
        ));
    }
    Ok(slice::Settings { tokens, tool_tokens })
}

fn check_pii(names: &[String]) -> Result<Vec<Pii>, String> {
    names.iter().map(|name| name.parse().map_err(|error| format!("privacy.pii: {error}"))).collect()
}

fn check_dialog(raw: &RawDialog) -> Result<dialog::Limits, String> {
    let tokens_max = match raw.tokens {
        // No block fits in nothing.
        0 => 0,
        tokens => at_least(tokens, dialog::DIALOG_TOKENS_MIN, "dialog.tokens")?,
    };
    Ok(dialog::Limits { tokens_max, turns_max: at_least(raw.turns, 1, "dialog.turns")? })
}

fn check_limits(raw: &RawLimits) -> Result<Limits, String> {
    let micros = |usd: f64, key| -> Result<Option<u64>, String> {
        let usd = amount(usd, key)?;
        Ok((usd > 0.0).then_some((usd * 1e6) as u64))
    };
    Ok(Limits {
        requests_per_minute: (raw.requests_per_minute > 0).then_some(raw.requests_per_minute),
        tokens_per_minute: (raw.tokens_per_minute > 0).then_some(raw.tokens_per_minute),
        session_tokens: (raw.session_tokens_max > 0).then_some(raw.session_tokens_max),
        day_tokens: (raw.day_tokens_max > 0).then_some(raw.day_tokens_max),
        namespace_day_tokens: (raw.namespace_day_tokens_max > 0)
            .then_some(raw.namespace_day_tokens_max),
        session_micros: micros(raw.session_usd_max, "limits.session_usd_max")?,
        day_micros: micros(raw.day_usd_max, "limits.day_usd_max")?,
        namespace_day_micros: micros(raw.namespace_day_usd_max, "limits.namespace_day_usd_max")?,
        tries_max: at_least(raw.tries_max, 1, "limits.tries_max")?,
        wait_max: Duration::from_secs(raw.wait_secs_max),
    })
}

fn text(value: &str, key: &str) -> Result<String, String> {
    match value.trim() {
        "" => Err(format!("{key}: expected text, found nothing")),
        value => Ok(value.to_owned()),
    }
}

fn at_least(value: u32, least: u32, key: &str) -> Result<u32, String> {
    (value >= least)
        .then_some(value)
        .ok_or_else(|| format!("{key}: expected a number of at least {least}, found {value}"))
}

fn amount(value: f64, key: &str) -> Result<f64, String> {
    (value >= 0.0 && value.is_finite())
        .then_some(value)
        .ok_or_else(|| format!("{key}: expected US dollars from 0 up, found {value}"))
}

#[cfg(test)]
mod tests;
