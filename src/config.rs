//! Settings: defaults from the shipped `config.toml`, overridden by a file and the environment,
//! then checked. This module reads neither files nor the environment.

use crate::adapters::repository::below_home;
use crate::conversation_memory::{self, MemoryError, MemoryType};
use crate::dialog_summary;
use crate::domain::{OutputMode, Tokens};
use crate::llm::prompt::CustomPrompts;
use crate::privacy::Pii;
use crate::slicing;
use crate::text::phrase::commas;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::path::Path;
use std::time::Duration;
use toml::{Table, Value};

mod layer;
mod price;

/// Longest lease, in seconds; the jobs of a dead worker stay blocked for that long.
const LEASE_SECS_MAX: u32 = 3_600;
/// Longest time to gather or to stop, in seconds; more is a typo.
const WAIT_SECS_MAX: u32 = 86_400;
/// Maximum number of claims of one job; each may be a paid call.
const ATTEMPTS_MOST: u32 = 100;
/// Maximum number of concurrent calls.
pub(crate) const CONCURRENCY_MAX: u32 = 4_096;

pub use layer::DEFAULT;
pub(crate) use layer::{ConfigError, ENV_PREFIX, ENV_PREFIX_ALL, Layer, is_ours};
pub(crate) use price::{Price, PriceSettings};

/// Checked settings.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Config {
    /// Language of the records.
    #[serde(deserialize_with = "trimmed")]
    pub language: String,
    /// Namespace of new records; `None` names the repository or folder that the agent worked in.
    #[serde(deserialize_with = "namespace")]
    pub namespace: Option<String>,
    /// Folder or file with the user's own prompts; `None` takes the built-in ones.
    #[serde(rename = "prompts", deserialize_with = "optional")]
    pub prompts_path: Option<String>,
    /// The prompts read from `prompts_path`, by the caller.
    #[serde(skip)]
    pub prompts: CustomPrompts,
    /// The endpoint.
    pub model: Model,
    /// URL of the store; empty where the settings name none.
    #[serde(rename = "store", deserialize_with = "store_url")]
    pub store_url: String,
    pub(crate) slice: slicing::SliceSettings,
    #[serde(deserialize_with = "conversation")]
    pub(crate) conversation: conversation_memory::ConversationSettings,
    #[serde(rename = "privacy", deserialize_with = "pii")]
    pub(crate) pii: Vec<Pii>,
    pub(crate) dialog: dialog_summary::DialogLimits,
    pub(crate) limits: Limits,
    pub(crate) queue: Queue,
    pub(crate) consolidate: Consolidate,
    pub(crate) search: Search,
    pub(crate) vault: Vault,
    pub(crate) mcp: Mcp,
    /// Name of the settings file in force, set by the caller that read it.
    #[serde(skip)]
    pub source: String,
    /// All layers merged, unchecked.
    #[serde(skip)]
    layers: Table,
}

/// The endpoint and how it is called.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Model {
    /// Up to and including `/v1`, without a slash at the end.
    #[serde(deserialize_with = "base_url")]
    pub base_url: String,
    /// The model's name there.
    #[serde(deserialize_with = "trimmed")]
    pub model: String,
    /// Environment variable with the key, if one is needed.
    #[serde(deserialize_with = "optional")]
    pub api_key_env: Option<String>,
    /// Output mode of the first call; `None` takes the best that worked before.
    #[serde(deserialize_with = "rung")]
    pub rung: Option<OutputMode>,
    /// Sampling temperature; `None` sends none.
    #[serde(deserialize_with = "temperature")]
    pub temperature: Option<f32>,
    /// Maximum length of an answer.
    pub reply_tokens_max: u32,
    /// Maximum number of concurrent calls.
    pub concurrency: usize,
    /// Connection timeout.
    #[serde(rename = "connect_timeout_secs", deserialize_with = "secs")]
    pub connect_timeout: Duration,
    /// Timeout of a whole answer.
    #[serde(rename = "timeout_secs", deserialize_with = "secs")]
    pub timeout: Duration,
    /// Cost of tokens, where it is set.
    #[serde(flatten)]
    pub price: PriceSettings,
}

/// Bounds on calls, tokens and money; `None` means no bound. Days are UTC.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(crate) struct Limits {
    #[serde(deserialize_with = "nonzero")]
    pub requests_per_minute: Option<u32>,
    #[serde(deserialize_with = "nonzero")]
    pub tokens_per_minute: Option<u32>,
    #[serde(rename = "session_tokens_max", deserialize_with = "nonzero")]
    pub session_tokens: Option<u64>,
    #[serde(rename = "day_tokens_max", deserialize_with = "nonzero")]
    pub day_tokens: Option<u64>,
    #[serde(rename = "namespace_day_tokens_max", deserialize_with = "nonzero")]
    pub namespace_day_tokens: Option<u64>,
    #[serde(rename = "session_usd_max", deserialize_with = "micros")]
    pub session_micros: Option<u64>,
    #[serde(rename = "day_usd_max", deserialize_with = "micros")]
    pub day_micros: Option<u64>,
    #[serde(rename = "namespace_day_usd_max", deserialize_with = "micros")]
    pub namespace_day_micros: Option<u64>,
    pub tries_max: u32,
    #[serde(rename = "wait_secs_max", deserialize_with = "secs")]
    pub wait_max: Duration,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub(crate) struct Queue {
    /// A session that grew by less waits for more.
    pub gather_tokens: Tokens,
    /// Longest wait after it grew last.
    #[serde(rename = "idle_secs", deserialize_with = "secs")]
    pub idle: Duration,
    /// Silence of a worker after which another takes its jobs.
    #[serde(rename = "lease_secs", deserialize_with = "secs")]
    pub lease: Duration,
    pub attempts_max: u32,
    /// Length of the queue from which on nothing is taken in over HTTP.
    pub intake_jobs_max: u32,
    /// Time for calls under way after a request to stop.
    #[serde(rename = "grace_secs", deserialize_with = "secs")]
    pub grace: Duration,
}

/// Copies of what is read.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
pub(crate) struct Vault {
    pub enabled: bool,
    /// Most that they take together, in MiB after compression.
    pub max_mb: u32,
}

impl Vault {
    /// Maximum total size of copies in bytes; `None` if copies are disabled.
    pub(crate) fn bound(self) -> Option<u64> {
        self.enabled.then(|| self.bytes_max())
    }

    /// Maximum total size of copies in bytes, even if copies are disabled.
    pub(crate) fn bytes_max(self) -> u64 {
        u64::from(self.max_mb) * 1024 * 1024
    }
}

/// The server of the Model Context Protocol.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub(crate) struct Mcp {
    /// Namespaces that clients may read beside that of their project.
    pub namespaces: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub(crate) struct Search {
    /// Model of embeddings at the endpoint; `None` searches by words alone.
    #[serde(deserialize_with = "optional")]
    pub embeddings: Option<String>,
}

/// Consolidation of records into memory.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub(crate) struct Consolidate {
    /// Thresholds at which a worker consolidates.
    #[serde(flatten)]
    pub thresholds: Thresholds,
    /// Model for adjudication, by its name at the endpoint or as `auto`; `None` decides by rule alone.
    #[serde(deserialize_with = "optional")]
    pub model: Option<String>,
}

impl Consolidate {
    /// Returns true if the extraction model adjudicates too. Rules decide while it is unavailable.
    pub(crate) fn is_auto(&self) -> bool {
        self.model.as_deref() == Some("auto")
    }

    /// Returns the name of the adjudication model, given the extraction model; `None` decides by rule alone.
    pub(crate) fn model_name<'a>(&'a self, extracting: &'a str) -> Option<&'a str> {
        if self.is_auto() { Some(extracting) } else { self.model.as_deref() }
    }
}

/// Thresholds of consolidation. Zero disables one; with all disabled a worker never consolidates.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
pub(crate) struct Thresholds {
    /// Number of waiting records.
    pub records: u64,
    /// Bytes of their claims.
    pub bytes: u64,
    /// Time since the last record was staged.
    #[serde(rename = "idle_secs", deserialize_with = "secs")]
    pub idle: Duration,
    /// Least time between two consolidations.
    #[serde(rename = "cool_down_secs", deserialize_with = "secs")]
    pub cool_down: Duration,
}

impl Model {
    /// Returns the price of `model` at this endpoint, from the settings or else the list; `None` if unknown.
    pub(crate) fn price_of(&self, model: &str) -> Option<Price> {
        self.price.of(&self.base_url, model)
    }
}

impl Limits {
    /// Returns the key of the first money cap that is set.
    pub(crate) fn money_cap(&self) -> Option<&'static str> {
        let caps = [
            ("limits.day_usd_max", self.day_micros),
            ("limits.namespace_day_usd_max", self.namespace_day_micros),
            ("limits.session_usd_max", self.session_micros),
        ];
        caps.into_iter().find(|(_, cap)| cap.is_some()).map(|(key, _)| key)
    }
}

impl Config {
    /// Loads the defaults, overridden by `file`, then by `env` (names with `ENV_PREFIX`, and values).
    pub fn load(file: Option<Layer<'_>>, env: &[(String, String)]) -> Result<Config, ConfigError> {
        let mut settings = layer::parse(Layer { name: "built-in config.toml", text: DEFAULT })?;
        let defaults = settings.clone();
        if let Some(file) = file {
            let table = layer::parse(file)?;
            layer::check_keys(&[], &table, &defaults, file)?;
            layer::merge(&mut settings, table);
        }
        for (name, value) in env {
            layer::set_from_env(&mut settings, &defaults, name, value)?;
        }
        read(settings).map_err(|what| ConfigError { place: place_of(&what, file, env), what })
    }

    /// Returns these settings overridden by `over`. Only slicing, privacy, conversation and dialog
    /// change.
    pub fn with(&self, over: &Table, place: &str) -> Result<Config, ConfigError> {
        if over.is_empty() {
            return Ok(self.clone());
        }
        let mut layers = self.layers.clone();
        layer::check_keys(&[], over, &layers, Layer { name: place, text: "" })?;
        layer::merge(&mut layers, over.clone());
        let changed = read(layers);
        let changed = changed.map_err(|what| ConfigError { place: place.to_owned(), what })?;
        let Config { slice, conversation, pii, dialog, layers, .. } = changed;
        Ok(Config { slice, conversation, pii, dialog, layers, ..self.clone() })
    }
}

/// Returns the location of the key at the start of `what`.
fn place_of(what: &str, file: Option<Layer<'_>>, env: &[(String, String)]) -> String {
    let key = what.split(':').next().unwrap_or_default();
    let variable = format!("{ENV_PREFIX}{}", key.replace('.', "__").to_ascii_uppercase());
    if env.iter().any(|(name, _)| *name == variable) {
        return format!("environment variable {variable}");
    }
    let path: Vec<&str> = key.split('.').collect();
    file.map_or("config.toml".to_owned(), |file| file.place_of_key(&path))
}

/// Checks and reads merged settings. An error starts with its key.
fn read(settings: Table) -> Result<Config, String> {
    check_bounds(&settings)?;
    let config = Config::deserialize(Value::Table(settings.clone()));
    let config = config.map_err(|error| error.message().to_owned())?;
    let slicing::SliceSettings { tokens, tool_tokens } = config.slice;
    let most = slicing::tool_tokens_max(tokens);
    if tool_tokens > most {
        return Err(format!(
            "slice.tool_tokens: {tool_tokens} is too much for slices of {tokens} tokens: \
             a call and its result must fit in one, so at most {most}"
        ));
    }
    if config.queue.gather_tokens > tokens {
        return Err(format!(
            "queue.gather_tokens: expected at most slice.tokens, {tokens}, found {}: a full \
             slice never waits for more",
            config.queue.gather_tokens
        ));
    }
    Ok(Config { layers: settings, ..config })
}

enum Bound {
    Filled,
    Finite,
    UpTo(u32),
    Dollars,
    Number { least: u32, most: u32 },
    ZeroOrAtLeast(u32),
    Seconds { least: u32, most: u32 },
}

const BOUNDS: &[(&str, Bound)] = &[
    ("language", Bound::Filled),
    ("model.model", Bound::Filled),
    ("model.temperature", Bound::UpTo(2)),
    ("model.reply_tokens_max", Bound::Number { least: 64, most: u32::MAX }),
    ("model.concurrency", Bound::Number { least: 1, most: CONCURRENCY_MAX }),
    ("model.connect_timeout_secs", Bound::Seconds { least: 1, most: WAIT_SECS_MAX }),
    ("model.timeout_secs", Bound::Seconds { least: 1, most: WAIT_SECS_MAX }),
    ("model.usd_per_million_sent", Bound::Finite),
    ("model.usd_per_million_cached", Bound::Finite),
    ("model.usd_per_million_answered", Bound::Finite),
    ("slice.tokens", Bound::Number { least: slicing::SLICE_TOKENS_MIN, most: u32::MAX }),
    ("slice.tool_tokens", Bound::Number { least: slicing::TOOL_TOKENS_MIN, most: u32::MAX }),
    ("dialog.tokens", Bound::ZeroOrAtLeast(dialog_summary::DIALOG_TOKENS_MIN)),
    ("dialog.turns", Bound::Number { least: 1, most: u32::MAX }),
    ("limits.session_usd_max", Bound::Dollars),
    ("limits.day_usd_max", Bound::Dollars),
    ("limits.namespace_day_usd_max", Bound::Dollars),
    ("limits.tries_max", Bound::Number { least: 1, most: u32::MAX }),
    ("queue.attempts_max", Bound::Number { least: 1, most: ATTEMPTS_MOST }),
    ("queue.intake_jobs_max", Bound::Number { least: 1, most: u32::MAX }),
    ("queue.idle_secs", Bound::Seconds { least: 0, most: WAIT_SECS_MAX }),
    ("queue.lease_secs", Bound::Seconds { least: 1, most: LEASE_SECS_MAX }),
    ("vault.max_mb", Bound::Number { least: 1, most: u32::MAX }),
    ("queue.grace_secs", Bound::Seconds { least: 0, most: WAIT_SECS_MAX }),
];

fn check_bounds(settings: &Table) -> Result<(), String> {
    for (key, bound) in BOUNDS {
        let path: Vec<&str> = key.split('.').collect();
        let Some(value) = layer::get(settings, &path) else { continue };
        let integer = value.as_integer().unwrap_or_default();
        let number = value.as_float().unwrap_or(integer as f64);
        let at_least = |least: u32| format!("a number of at least {least}");
        let (is_right, expected) = match *bound {
            Bound::Filled if value.as_str().is_some_and(|text| text.trim().is_empty()) => {
                let expected = "expected text, found nothing; omit the key to use the default";
                return Err(format!("{key}: {expected}"));
            }
            Bound::Filled => continue,
            Bound::Finite => (number.is_finite(), "a number".to_owned()),
            Bound::UpTo(most) => {
                (number <= most.into() && number.is_finite(), format!("a number from 0 to {most}"))
            }
            Bound::Dollars => {
                (number >= 0.0 && number.is_finite(), "0 or more US dollars".to_owned())
            }
            Bound::Number { least, most: u32::MAX } if integer <= u32::MAX.into() => {
                (integer >= least.into(), at_least(least))
            }
            Bound::Number { least, most } => {
                let is_right = (least.into()..=most.into()).contains(&integer);
                (is_right, format!("a number from {least} to {most}"))
            }
            Bound::ZeroOrAtLeast(least) => {
                (integer == 0 || integer >= least.into(), at_least(least))
            }
            Bound::Seconds { least, most } => {
                let is_right = (least.into()..=most.into()).contains(&integer);
                (is_right, format!("{least} to {most} seconds"))
            }
        };
        if !is_right {
            return Err(format!("{key}: expected {expected}, found {value}"));
        }
    }
    for (section, table) in settings.iter().filter_map(|(key, it)| Some((key, it.as_table()?))) {
        for (key, number) in table.iter().filter_map(|(key, it)| Some((key, it.as_integer()?))) {
            if !(0..=u32::MAX.into()).contains(&number) {
                let most = u32::MAX;
                return Err(format!(
                    "{section}.{key}: expected a number from 0 to {most}, found {number}"
                ));
            }
        }
    }
    Ok(())
}

fn trimmed<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    Ok(String::deserialize(value)?.trim().to_owned())
}

fn optional<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    Ok(Some(trimmed(value)?).filter(|text| !text.is_empty()))
}

fn namespace<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    let name = optional(value)?.map(|name| namespace_name(&name)).transpose();
    name.map_err(|what| D::Error::custom(format!("namespace: {what}")))
}

/// Parses the name of a namespace. The shell replaces the `~` of one in the user's home by the path of the home.
pub(crate) fn namespace_name(text: &str) -> Result<String, &'static str> {
    let name = text.trim();
    let is_one = !["", "."].contains(&name) && !name.chars().any(char::is_control);
    let below_home = || below_home(Path::new(name))?.to_str().map(str::to_owned);
    is_one.then(|| below_home().unwrap_or_else(|| name.to_owned())).ok_or(
        "expected a name on one line, such as `github.com/owner/app`; `annalist namespace list` \
         lists those that there are",
    )
}

fn nonzero<'de, D, T>(value: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default + PartialEq,
{
    Ok(Some(T::deserialize(value)?).filter(|number| *number != T::default()))
}

fn micros<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    let usd = f64::deserialize(value)?;
    Ok((usd > 0.0).then_some((usd * 1e6) as u64))
}

fn secs<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    u64::deserialize(value).map(Duration::from_secs)
}

fn temperature<'de, D: Deserializer<'de>>(value: D) -> Result<Option<f32>, D::Error> {
    let temperature = f64::deserialize(value)?;
    Ok((temperature >= 0.0).then_some(temperature as f32))
}

fn base_url<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    let url = trimmed(value)?.trim_end_matches('/').to_owned();
    if !url.starts_with("http://") && !url.starts_with("https://") {
        let what = "model.base_url: expected a URL such as http://127.0.0.1:11434/v1";
        return Err(D::Error::custom(what));
    }
    Ok(url)
}

fn rung<'de, D: Deserializer<'de>>(value: D) -> Result<Option<OutputMode>, D::Error> {
    let name = String::deserialize(value)?;
    if name == "auto" {
        return Ok(None);
    }
    OutputMode::of_name(&name).map(Some).ok_or_else(|| {
        let known = commas(OutputMode::ALL.iter().map(|rung| rung.name()));
        D::Error::custom(format!("model.rung: unknown value `{name}`: expected auto, {known}"))
    })
}

fn store_url<'de, D: Deserializer<'de>>(section: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    struct Section {
        #[serde(deserialize_with = "trimmed")]
        url: String,
    }
    Section::deserialize(section).map(|section| section.url)
}

fn pii<'de, D: Deserializer<'de>>(section: D) -> Result<Vec<Pii>, D::Error> {
    #[derive(Deserialize)]
    struct Section {
        pii: Vec<String>,
    }
    let names = Section::deserialize(section)?.pii;
    let kind =
        |name: &String| name.parse().map_err(|it| D::Error::custom(format!("privacy.pii: {it}")));
    names.iter().map(kind).collect()
}

fn conversation<'de, D: Deserializer<'de>>(
    section: D,
) -> Result<conversation_memory::ConversationSettings, D::Error> {
    #[derive(Deserialize)]
    struct Section {
        strategy: String,
        context_tokens: Tokens,
        #[serde(flatten)]
        limits: conversation_memory::ConversationLimits,
    }
    let wrong = |error: MemoryError| {
        let key = match &error {
            MemoryError::UnsupportedType(_) | MemoryError::Unreadable(_) => "strategy",
            MemoryError::Limit { name, .. } => name,
            MemoryError::KeepRecent { .. } => "keep_recent",
        };
        D::Error::custom(format!("conversation.{key}: {error}"))
    };
    let Section { strategy, context_tokens, limits } = Section::deserialize(section)?;
    limits.check().map_err(wrong)?;
    let strategy: MemoryType = strategy.trim().parse().map_err(wrong)?;
    Ok(conversation_memory::ConversationSettings { strategy, limits, context_tokens })
}

#[cfg(test)]
mod tests;
