//! Tokens in the context window, from the end of a Claude Code transcript: it may have hundreds of
//! megabytes and a hook has milliseconds.

use memchr::{memmem, memrchr};
use serde::Deserialize;
use std::borrow::Cow;

/// Sizes of the tail to read, one after the other: the first is nearly always enough, the others are for
/// long tool output behind the last answer.
pub const TAIL_BYTES: [u64; 3] = [64 * 1024, 1024 * 1024, 8 * 1024 * 1024];

/// Model of answers that the client made up; they say nothing about the window.
const SYNTHETIC: &str = "<synthetic>";

/// Token usage of the model's last answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Usage {
    /// Tokens that stood in the window: sent, read from a cache, and written to one.
    pub tokens: u64,
    /// The model that answered.
    pub model: Option<String>,
}

/// Result of reading a tail.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Tail {
    /// The usage of the last answer.
    Usage(Usage),
    /// No answer yet, or none since the conversation was compacted.
    Nothing,
    /// Nothing so far; more of the file may tell.
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

/// Usage of the last answer in the main conversation; `is_whole` if `tail` is the whole file. Sub-agents,
/// malformed lines and an unfinished last line are skipped.
pub fn last_usage(tail: &[u8], is_whole: bool) -> Tail {
    let mut rest = tail;
    while !rest.is_empty() {
        let (before, line) = match memrchr(b'\n', rest) {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            // The first line of a tail was cut somewhere.
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
    // Most lines are tool output: to look for words costs a fraction of reading them.
    if !holds("input_tokens") && !holds("compact_boundary") {
        return None;
    }
    let line: TranscriptLine<'_> = serde_json::from_slice(line).ok()?;
    match line.kind.as_ref() {
        // The answers before it are in the window no more.
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
