//! How many tokens stand in the window, from the end of a Claude Code transcript. A transcript may have
//! hundreds of megabytes and a hook has milliseconds, so only its end is looked at.

use memchr::{memmem, memrchr};
use serde::Deserialize;
use std::borrow::Cow;

/// How much of the end to look at, in bytes: the first is enough nearly always, the others are for
/// tool output that stands behind the last answer. One line with an image has a few megabytes; what is
/// further back than that is not worth the time.
pub const TAIL_BYTES: [u64; 3] = [64 * 1024, 1024 * 1024, 8 * 1024 * 1024];

/// The model that stands where the client made up an answer: it tells nothing about the window.
const SYNTHETIC: &str = "<synthetic>";

/// What the last answer of the model took.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Usage {
    /// Tokens that stood in the window: sent, read from a cache, and written to one.
    pub tokens: u64,
    /// The model that answered.
    pub model: Option<String>,
}

/// What the end of a transcript says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Tail {
    /// How full the window is.
    Usage(Usage),
    /// That nothing is known: no answer yet, or none since the conversation was compacted.
    Nothing,
    /// Nothing so far; more of the file may say it.
    CutOff,
}

/// A line of the transcript, of which nothing else matters.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
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

/// The usage of the last answer in the main conversation. `is_whole` says that `tail` is the whole file,
/// and not only its end. What sub-agents used, what is no line, and a last line that is still being
/// written are passed over.
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

/// What a line says about the window, if anything.
fn read(line: &[u8]) -> Option<Tail> {
    let holds = |words: &str| memmem::find(line, words.as_bytes()).is_some();
    // Most lines are tool output: to look for words costs a fraction of reading them.
    if !holds("input_tokens") && !holds("compact_boundary") {
        return None;
    }
    let line: Line<'_> = serde_json::from_slice(line).ok()?;
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
