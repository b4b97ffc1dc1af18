//! One conversation with an agent, as its transcript identifies it.

use super::entry::named;
use super::{Digest, SessionId, Timestamp};
use crate::privacy::Redacted;
use std::fmt;
use std::str::FromStr;

named! {
    /// Transcript format, in the order in which help lists them.
    #[derive(schemars::JsonSchema)]
    pub Format {
        /// Claude Code session JSONL.
        ClaudeCode = "claude-code",
        /// Codex rollout JSONL, with or without envelope.
        Codex = "codex",
        /// Gemini CLI session, JSON or JSONL, and its checkpoints.
        GeminiCli = "gemini-cli",
        /// Qwen Code session JSONL.
        QwenCode = "qwen-code",
        /// Session of opencode: its export, its database, or the events of a run.
        Opencode = "opencode",
        /// pi session JSONL, also of OpenClaw and Factory's droid.
        Pi = "pi",
        /// Cursor agent transcript JSONL.
        Cursor = "cursor",
        /// GitHub Copilot: events of its CLI, and VS Code's chat sessions.
        Copilot = "copilot",
        /// OpenHands: events, and records of evaluations.
        Openhands = "openhands",
        /// Trajectory of SWE-agent or mini-swe-agent.
        SweAgent = "swe-agent",
        /// Objects of OpenAI's Responses API.
        Responses = "responses",
        /// OpenTelemetry spans and logs of generative models.
        Otel = "otel",
        /// OpenAI chat messages, JSON or JSONL.
        Openai = "openai",
        /// Anthropic messages, JSON or JSONL, and Cline's history.
        Anthropic = "anthropic",
        /// ChatGPT data export.
        Chatgpt = "chatgpt",
        /// aider's chat history, Markdown.
        Aider = "aider",
        /// SpecStory's rendered history, Markdown.
        Specstory = "specstory",
        /// `role: text` lines.
        Plain = "plain",
        /// Slices as they are handed over: `schemas/slice.v1.json`, alone or one a line.
        Slice = "slice",
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
        Format::of_name(text).ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// Unknown format name.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("unknown format `{0}`: expected {names}", names = names())]
pub struct UnknownFormat(pub String);

fn names() -> String {
    Format::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ")
}

/// Metadata of a conversation, known before its entries are read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Session {
    /// Digest of namespace, format and native id.
    pub id: SessionId,
    /// Namespace of its records; from the envelope, never from the model.
    pub namespace: String,
    /// Transcript format.
    pub format: Format,
    /// Id in the transcript, or a digest of its beginning if it has none.
    pub native_id: Redacted,
    /// File it was read from, as given on the command line, redacted.
    pub path: String,
    /// Title given by the client.
    pub title: Option<Redacted>,
    /// Working directory of the agent.
    pub cwd: Option<Redacted>,
    /// Session that it was forked from or works for.
    pub parent: Option<Redacted>,
    /// Git branches in order, separated by spaces.
    pub branches: Option<Redacted>,
    /// Start time.
    pub started_at: Option<Timestamp>,
}

impl Session {
    /// Returns the id of the conversation `native_id` of `format` in `namespace`.
    pub fn id_of(namespace: &str, format: Format, native_id: &str) -> SessionId {
        SessionId(Digest::of(&["session", namespace, format.name(), native_id]))
    }
}
