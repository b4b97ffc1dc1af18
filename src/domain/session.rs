//! One conversation of an agent with somebody, as its transcript names it.

use super::{Digest, SessionId, Timestamp};
use crate::privacy::Redacted;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A transcript format that we read.
#[derive(
    Clone,
    Copy,
    Debug,
    Eq,
    Hash,
    Ord,
    PartialEq,
    PartialOrd,
    schemars::JsonSchema,
    Serialize,
    Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Claude Code session JSONL.
    ClaudeCode,
    /// Codex rollout JSONL, with or without envelope.
    Codex,
    /// OpenAI chat messages, JSON or JSONL.
    Openai,
    /// Anthropic messages, JSON or JSONL, and Cline's history.
    Anthropic,
    /// ChatGPT data export.
    Chatgpt,
    /// aider's chat history, Markdown.
    Aider,
    /// SpecStory's rendered history, Markdown.
    Specstory,
    /// `role: text` lines.
    Plain,
    /// Slices as they are handed over: `schemas/slice.v1.json`, alone or one a line.
    Slice,
}

impl Format {
    /// Every format, in the order in which help lists them.
    pub const ALL: [Format; 9] = [
        Format::ClaudeCode,
        Format::Codex,
        Format::Openai,
        Format::Anthropic,
        Format::Chatgpt,
        Format::Aider,
        Format::Specstory,
        Format::Plain,
        Format::Slice,
    ];

    /// The name on the command line and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Format::ClaudeCode => "claude-code",
            Format::Codex => "codex",
            Format::Openai => "openai",
            Format::Anthropic => "anthropic",
            Format::Chatgpt => "chatgpt",
            Format::Aider => "aider",
            Format::Specstory => "specstory",
            Format::Plain => "plain",
            Format::Slice => "slice",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Format, UnknownFormat> {
        let known = Format::ALL.into_iter().find(|format| format.name() == text);
        known.ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// A name that is no format of ours.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "unknown format `{0}`: expected claude-code, codex, openai, anthropic, chatgpt, aider, \
     specstory, plain or slice"
)]
pub struct UnknownFormat(pub String);

/// What is known of a conversation before its entries are read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Session {
    /// Digest of namespace, format and native id.
    pub id: SessionId,
    /// Whose memory this becomes; from the envelope, never from the model.
    pub namespace: String,
    /// How it was written.
    pub format: Format,
    /// The transcript's own name for it, or a digest of its beginning where it has none.
    pub native_id: Redacted,
    /// The file it was read from, as given on the command line.
    pub path: String,
    /// What its client called it.
    pub title: Option<Redacted>,
    /// The folder the agent worked in.
    pub cwd: Option<Redacted>,
    /// The session that it was forked from or works for.
    pub parent: Option<Redacted>,
    /// When it began.
    pub started_at: Option<Timestamp>,
}

impl Session {
    /// The id of the conversation that `format` calls `native_id`, in `namespace`.
    pub fn id_of(namespace: &str, format: Format, native_id: &str) -> SessionId {
        SessionId(Digest::of(&["session", namespace, format.name(), native_id]))
    }
}
