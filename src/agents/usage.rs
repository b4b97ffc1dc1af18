//! Tokens in the context window, read from the end of a Claude Code transcript, since it may have
//! hundreds of megabytes and a hook has milliseconds.

use memchr::{memmem, memrchr};
use serde::Deserialize;
use std::borrow::Cow;

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
