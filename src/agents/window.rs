//! The context window: the tokens in it, and the two thresholds on its use. The tokens are read from
//! the end of a Claude Code transcript, since it may have hundreds of megabytes and a hook has
//! milliseconds.

use crate::domain::{Finding, Severity};
use memchr::{memmem, memrchr};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

const AUTO_PERCENT: u32 = 60;
const HARD_PERCENT: u32 = 80;
const WINDOW_TOKENS: u64 = 200_000;
/// Names of models that have the default window unless their name says another one.
const DEFAULT_WINDOW: [&str; 4] = ["claude-3", "haiku", "opus", "sonnet"];

const _: () = assert!(0 < AUTO_PERCENT && AUTO_PERCENT <= HARD_PERCENT && HARD_PERCENT <= 100);

/// Checked thresholds: `0 < auto <= hard <= 100`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Thresholds {
    /// Window use from which a sync is requested.
    pub(crate) auto_percent: u32,
    /// Window use from which prompts are blocked until a sync.
    pub(crate) hard_percent: u32,
    window_tokens: Option<u64>,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { auto_percent: AUTO_PERCENT, hard_percent: HARD_PERCENT, window_tokens: None }
    }
}

impl Thresholds {
    /// Validates `auto_sync_threshold`, `hard_block_threshold` and `context_window_tokens`. Invalid
    /// values give a finding `bad-threshold` and defaults, for both thresholds together.
    pub(crate) fn new(
        auto_percent: Option<i64>,
        hard_percent: Option<i64>,
        window_tokens: Option<i64>,
    ) -> (Thresholds, Vec<Finding>) {
        let mut findings = Vec::new();
        let mut warn = |detail| {
            findings.push(Finding::new(Severity::Warning, "bad-threshold", 0, detail));
        };
        let auto = auto_percent.unwrap_or(AUTO_PERCENT.into());
        let hard = hard_percent.unwrap_or(HARD_PERCENT.into());
        let in_order = 0 < auto && auto <= hard && hard <= 100;
        let shares = u32::try_from(auto).ok().zip(u32::try_from(hard).ok());
        let (auto_percent, hard_percent) = shares.filter(|_| in_order).unwrap_or_else(|| {
            warn(format!(
                "expected 0 < auto_sync_threshold <= hard_block_threshold <= 100, found {auto} and \
                 {hard}; using {AUTO_PERCENT} and {HARD_PERCENT}"
            ));
            (AUTO_PERCENT, HARD_PERCENT)
        });
        let window = window_tokens.and_then(|asked| {
            let tokens = u64::try_from(asked).ok().filter(|tokens| 0 < *tokens);
            if tokens.is_none() {
                warn(format!(
                    "expected context_window_tokens above 0, found {asked}; using the model's"
                ));
            }
            tokens
        });
        (Thresholds { auto_percent, hard_percent, window_tokens: window }, findings)
    }

    /// Window of `usage`: the setting, else the one that a model's name says, as `sonnet[1m]` does, else 200,000. The
    /// last is known only if the client named the answering model at the session's start, and it is known to have it.
    pub(crate) fn window(&self, usage: &Usage, models: &SessionModels<'_>) -> Window {
        if let Some(tokens) = self.window_tokens {
            return Window { tokens, is_known: true };
        }
        let answered = usage.model.as_deref();
        let named = [models.at_start, models.configured, answered].into_iter().flatten();
        if let Some(tokens) = named.filter_map(window_in_name).max() {
            return Window { tokens, is_known: true };
        }
        // The user may change the model during a session; an alias is part of the full name.
        let is_same = |at_start: &str| {
            answered.is_none_or(|it| it.contains(at_start) || at_start.contains(it))
        };
        let has_default = |model: &str| DEFAULT_WINDOW.iter().any(|it| model.contains(it));
        let is_listed = [models.at_start, answered].into_iter().flatten().any(has_default);
        let is_told = models.at_start.is_some_and(is_same);
        let is_known = is_told && is_listed && usage.tokens <= WINDOW_TOKENS;
        Window { tokens: WINDOW_TOKENS, is_known }
    }
}

/// Tokens of the window that a model's name ends with: `[1m]`, `[500k]`.
fn window_in_name(model: &str) -> Option<u64> {
    let (_, size) = model.trim().strip_suffix(']')?.rsplit_once('[')?;
    let (digits, unit) = size.split_at_checked(size.len().checked_sub(1)?)?;
    let thousands = match unit {
        "m" | "M" => 1_000,
        "k" | "K" => 1,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(thousands * 1_000).filter(|tokens| 0 < *tokens)
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SessionModels<'a> {
    /// From the client at the session's start.
    pub at_start: Option<&'a str>,
    /// From the client's environment or settings.
    pub configured: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Window {
    pub tokens: u64,
    /// False if the size is an unconfirmed default.
    pub is_known: bool,
}

/// Used share of a window in percent, rounded down; may exceed 100.
pub(crate) fn percent(tokens: u64, window_tokens: u64) -> u32 {
    let percent = u128::from(tokens) * 100 / u128::from(window_tokens.max(1));
    u32::try_from(percent).unwrap_or(u32::MAX)
}

/// Model named in a settings file of Claude Code.
pub(crate) fn model_in_settings(text: &str) -> Option<String> {
    let settings: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?;
    settings.get("model")?.as_str().map(str::to_owned)
}

/// Sizes of the tail to read, in turn: the first is nearly always enough, the others are for long
/// tool output after the last answer.
pub const TAIL_BYTES: [u64; 3] = [64 * 1024, 1024 * 1024, 8 * 1024 * 1024];

/// Model name of answers that the client generated; they say nothing about the window.
const SYNTHETIC: &str = "<synthetic>";

/// Token usage of the model's last answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Usage {
    /// Tokens in the window: sent, read from a cache, and written to one.
    pub tokens: u64,
    /// Model that answered.
    pub model: Option<String>,
}

/// Usage found in a tail.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Tail {
    /// Usage of the last answer.
    Usage(Usage),
    /// No answer yet, or none since the conversation was compacted.
    Nothing,
    /// Not found in this tail; a longer one may contain it.
    CutOff,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TranscriptLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    subtype: Option<Cow<'a, str>>,
    #[serde(default)]
    is_sidechain: Option<bool>,
    #[serde(default)]
    is_api_error_message: Option<bool>,
    #[serde(borrow, default)]
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(default)]
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
}

/// Usage of the last answer in the main conversation; `is_whole` if `tail` is the whole file. Skips
/// sub-agents, malformed lines and an unfinished last line.
pub fn last_usage(tail: &[u8], is_whole: bool) -> Tail {
    let mut rest = tail;
    while !rest.is_empty() {
        let (before, line) = match memrchr(b'\n', rest) {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            // The first line of a tail may be cut off.
            None if is_whole => (&rest[..0], rest),
            None => return Tail::CutOff,
        };
        match read(line) {
            Some(known) => return known,
            None => rest = before,
        }
    }
    if is_whole { Tail::Nothing } else { Tail::CutOff }
}

fn read(line: &[u8]) -> Option<Tail> {
    let holds = |words: &str| memmem::find(line, words.as_bytes()).is_some();
    // Most lines are tool output, and searching costs a fraction of parsing.
    if !holds("input_tokens") && !holds("compact_boundary") {
        return None;
    }
    let line: TranscriptLine<'_> = serde_json::from_slice(line).ok()?;
    match line.kind.as_ref() {
        // Earlier answers are no longer in the window.
        "system" if line.subtype.as_deref() == Some("compact_boundary") => Some(Tail::Nothing),
        "assistant"
            if line.is_sidechain != Some(true) && line.is_api_error_message != Some(true) =>
        {
            usage(line.message?).map(Tail::Usage)
        }
        _ => None,
    }
}

fn usage(message: Message<'_>) -> Option<Usage> {
    let used = message.usage?;
    let model = message.model.map(Cow::into_owned);
    let counts =
        [used.input_tokens, used.cache_read_input_tokens, used.cache_creation_input_tokens];
    let tokens = counts.into_iter().flatten().fold(0_u64, u64::saturating_add);
    let is_told = tokens > 0 && model.as_deref() != Some(SYNTHETIC);
    is_told.then_some(Usage { tokens, model })
}
