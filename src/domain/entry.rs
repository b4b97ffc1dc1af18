//! Transcripts: one conversation with an agent, and its items with their positions in the source.
//! Their texts are redacted. Bad content is a finding, never an error; the rest goes on.

use super::{Digest, SessionId, Timestamp};
use crate::privacy::Redacted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

macro_rules! named {
    ($(#[$doc:meta])* $vis:vis $type:ident { $($(#[$vdoc:meta])* $variant:ident = $name:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[derive(serde::Serialize, serde::Deserialize)]
        $vis enum $type { $($(#[$vdoc])* #[serde(rename = $name)] $variant),* }

        impl $type {
            /// All values.
            $vis const ALL: &'static [$type] = &[$($type::$variant),*];

            /// Name in the database, in JSON and in output.
            $vis fn name(self) -> &'static str {
                match self { $($type::$variant => $name),* }
            }

            /// Returns the value with this name.
            $vis fn of_name(name: &str) -> Option<$type> {
                match name { $($name => Some($type::$variant),)* _ => None }
            }
        }

        // Avoids dead-code warnings, since not every type uses these.
        const _: (&[$type], fn($type) -> &'static str, fn(&str) -> Option<$type>) =
            ($type::ALL, $type::name, $type::of_name);
    };
}
pub(crate) use named;

named! {
    /// Author of an entry; decides how far it is trusted.
    #[derive(JsonSchema)]
    pub Speaker {
        /// A person: typed, answered, refused.
        Person = "person",
        /// The model that the person talked to.
        Assistant = "assistant",
        /// Output of a tool that ran here: files, commands.
        Tool = "tool",
        /// Text that a tool brought from the web or another service.
        Web = "web",
        /// The client itself: reminders, context, notices; also a parent agent's prompt.
        Client = "client",
    }
}

/// Prefixes of entry labels in a slice; followed by tool names, outcomes and parts.
pub(crate) const SPEAKER_LABELS: [&str; 11] = [
    "User",
    "Assistant",
    "ToolCall",
    "ToolResult",
    "Parent agent",
    "Prompt",
    "Context",
    "Notice",
    "Summary of earlier conversation",
    "Abandoned branch",
    "Sub-agent",
];

named! {
    /// Kind of an entry.
    #[derive(JsonSchema)]
    pub EntryKind {
        /// A person's message.
        Prompt = "prompt",
        /// A person's message, typed while the agent was working.
        Steering = "steering",
        /// A person's answer to a question that the agent asked.
        Answer = "answer",
        /// A person's refusal of a tool use, with their words if any.
        Rejection = "rejection",
        /// A person's slash command or shell escape.
        Command = "command",
        /// The assistant's words.
        Text = "text",
        /// A tool call: name and arguments.
        ToolCall = "tool_call",
        /// A tool's answer.
        ToolResult = "tool_result",
        /// A summary of earlier entries that a client had written.
        Summary = "summary",
        /// Context that a client added: reminders, files, skills, system prompts.
        Injected = "injected",
        /// A client's notice: interrupted, aborted, an API error, a finished background task.
        Notice = "notice",
    }
}

named! {
    /// Branch of the conversation.
    pub Branch {
        /// The conversation as it ended.
        Active = "active",
        /// A branch that was rewound, regenerated or edited away.
        Abandoned = "abandoned",
        /// A sub-agent's own dialogue.
        Sidechain = "sidechain",
    }
}

named! {
    /// Outcome of a tool call, read from exit codes, flags and the person's reply.
    #[derive(JsonSchema)]
    pub Outcome {
        /// Exit code 0, or a success flag.
        Succeeded = "succeeded",
        /// Another exit code, or an error flag.
        Failed = "failed",
        /// Refused, interrupted or timed out.
        Aborted = "aborted",
        /// Still running when the transcript goes on.
        Running = "running",
    }
}

named! {
    /// Reason for which an entry never enters a slice.
    pub Skip {
        /// Context that a client added; nobody wrote it.
        Injected = "injected context",
        /// A copy of an entry from elsewhere.
        Copied = "copied from elsewhere",
        /// A summary of entries that are present themselves.
        Summarised = "summary of entries that are here",
        /// Nothing is left after redaction.
        Private = "private",
        /// The entry has no text.
        Empty = "empty",
        /// The person withdrew it before it was sent.
        TakenBack = "taken back",
    }
}

/// The tool of a call or a result.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// Tool name, as in the transcript.
    #[serde(rename = "tool")]
    pub name: Redacted,
    /// Id that joins a call with its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<Redacted>,
}

/// One item of a transcript. The vault stores it as JSON with its fields in this order.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Position among the session's entries, from 0.
    #[serde(skip)]
    pub ordinal: u32,
    /// First line in the file, from 1; in a JSON array, the element's number.
    pub line: u32,
    /// Author.
    pub speaker: Speaker,
    /// Kind.
    pub kind: EntryKind,
    /// Branch of the conversation.
    pub branch: Branch,
    /// Time, if the transcript has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Id in the transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_id: Option<Redacted>,
    /// Tool, for calls and results.
    #[serde(flatten)]
    pub tool: Option<Tool>,
    /// Outcome of the call, for results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Exit code, for results of commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Reason for which no model reads it, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip: Option<Skip>,
    /// Redacted text.
    pub text: Redacted,
}

named! {
    /// Coverage of an entry; each entry has exactly one.
    pub CoverageState {
        /// A record rests on the entry.
        Extracted = "extracted",
        /// A model read it and found nothing worth keeping.
        Nothing = "nothing",
        /// No model read it; the reason is stored.
        Skipped = "skipped",
        /// Extraction failed; the reason is stored.
        Failed = "failed",
        /// Not read yet, because of a dry run or interrupted work.
        Pending = "pending",
    }
}

/// Numbers of entries by state.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// See [`CoverageState::Extracted`].
    pub extracted: u64,
    /// See [`CoverageState::Nothing`].
    pub nothing: u64,
    /// See [`CoverageState::Skipped`].
    pub skipped: u64,
    /// See [`CoverageState::Failed`].
    pub failed: u64,
    /// See [`CoverageState::Pending`].
    pub pending: u64,
}

impl Coverage {
    fn number(&mut self, state: CoverageState) -> &mut u64 {
        match state {
            CoverageState::Extracted => &mut self.extracted,
            CoverageState::Nothing => &mut self.nothing,
            CoverageState::Skipped => &mut self.skipped,
            CoverageState::Failed => &mut self.failed,
            CoverageState::Pending => &mut self.pending,
        }
    }

    /// Adds `entries` entries in `state`.
    pub fn add(&mut self, state: CoverageState, entries: u64) {
        *self.number(state) += entries;
    }

    /// Returns the number of entries in `state`.
    pub fn of(mut self, state: CoverageState) -> u64 {
        *self.number(state)
    }

    /// Returns the number of all entries.
    pub fn total(&self) -> u64 {
        self.extracted + self.nothing + self.skipped + self.failed + self.pending
    }
}

impl std::ops::AddAssign for Coverage {
    fn add_assign(&mut self, other: Coverage) {
        CoverageState::ALL.iter().for_each(|state| self.add(*state, other.of(*state)));
    }
}

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

named! {
    /// Severity of a finding.
    #[derive(JsonSchema)]
    pub Severity {
        /// Worth knowing; nothing was lost.
        Info = "info",
        /// Something was repaired or left out.
        Warning = "warning",
        /// Something could not be used.
        Error = "error",
    }
}

/// A rule, a place and a sentence. The sentence holds no words of any conversation.
#[derive(schemars::JsonSchema, Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Severity.
    pub severity: Severity,
    /// The rule's stable name, such as `bad-line`.
    pub rule: Cow<'static, str>,
    /// Where: a line of the file from 1, or 0 for the whole.
    pub line: u32,
    /// The expectation, for a person to read.
    pub detail: String,
}

impl Finding {
    /// Creates a finding of `rule` at `line`.
    pub fn new(
        severity: Severity,
        rule: &'static str,
        line: u32,
        detail: impl Into<String>,
    ) -> Finding {
        Finding { severity, rule: Cow::Borrowed(rule), line, detail: detail.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        write!(f, "{} [{}]", self.detail, self.rule)
    }
}
