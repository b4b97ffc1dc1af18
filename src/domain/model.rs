//! Requests to a model and replies. Providers' wire types stay in `llm`.

use super::entry::named;
use super::{Digest, RequestDigest};
use crate::privacy::Redacted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

named! {
    /// Purpose of a call.
    #[derive(schemars::JsonSchema)]
    pub Purpose {
        /// Extraction from a conversation.
        Extract = "extract",
        /// Consolidation into memory.
        Consolidate = "consolidate",
        /// Lessons of the records, in bills of earlier versions.
        Reflect = "reflect",
        /// Summaries of a conversation memory.
        Summarise = "summarise",
        /// Vectors of what is searched.
        Search = "search",
        /// To try a prompt or a model.
        Test = "test",
        /// Extraction whose job was cancelled meanwhile.
        Cancelled = "cancelled",
        /// Any, but no answer was received: counted as the worst case.
        Unanswered = "unanswered",
        /// Any, but the endpoint refused it or was not there: counted at no cost.
        Failed = "failed",
    }
}

named! {
    /// Author of a message.
    #[derive(JsonSchema)]
    pub Role {
        /// The rules.
        System = "system",
        /// The slice, and complaints about an answer.
        User = "user",
        /// An earlier answer, when asking again.
        Assistant = "assistant",
    }
}

named! {
    /// Ways to ask for an answer, best first.
    #[derive(JsonSchema)]
    pub OutputMode {
        /// The tool, named in `tool_choice`.
        ForcedTool = "forced_tool",
        /// The tool with `tool_choice: "required"`, for servers that ignore or refuse a name.
        RequiredTool = "required_tool",
        /// The tool with `tool_choice: "auto"` and a reminder in the prompt.
        OfferedTool = "offered_tool",
        /// `response_format` with the strict schema, no tool.
        JsonSchema = "json_schema",
        /// `response_format: json_object` with the schema in the prompt.
        JsonObject = "json_object",
        /// JSON found in text.
        Text = "text",
    }
}

impl OutputMode {
    /// Returns the next mode to fall back to, if any.
    pub fn next(self) -> Option<OutputMode> {
        let at = OutputMode::ALL.iter().position(|rung| *rung == self)?;
        OutputMode::ALL.get(at + 1).copied()
    }

    /// Returns true if the answer is a tool call.
    pub fn is_tool(self) -> bool {
        matches!(self, OutputMode::ForcedTool | OutputMode::RequiredTool | OutputMode::OfferedTool)
    }
}

/// One message of a request, or of what a conversation memory shows.
#[derive(schemars::JsonSchema, Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Message {
    /// Author.
    pub role: Role,
    /// The words.
    pub content: Redacted,
}

/// The only tool offered.
#[derive(Debug, PartialEq)]
pub struct ToolSpec {
    /// Tool name, `write_extracted`.
    pub name: &'static str,
    /// Description for the model.
    pub description: String,
    /// Strict JSON schema of the arguments.
    pub parameters: Value,
    /// `parameters` as text, serialized once because every request digest includes it.
    text: String,
}

impl ToolSpec {
    /// Creates a tool from its name, description and argument schema.
    pub fn new(name: &'static str, description: String, parameters: Value) -> ToolSpec {
        let text = parameters.to_string();
        ToolSpec { name, description, parameters, text }
    }

    /// Returns the argument schema as compact JSON.
    pub fn schema(&self) -> &str {
        &self.text
    }
}

/// A request to a model. Equal requests have equal digests, regardless of the endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Model name at the endpoint.
    pub model: String,
    /// Messages: system prompt, slice, then earlier answers and complaints.
    pub messages: Vec<Message>,
    /// Output mode.
    pub rung: OutputMode,
    /// Tool or schema of the answer.
    pub tool: Arc<ToolSpec>,
    /// Maximum length of the answer, in the model's tokens.
    pub reply_tokens_max: u32,
    /// Sampling temperature; `None` omits the field, which some models reject.
    pub temperature: Option<f32>,
    /// Number of times that the failed slice was retried from scratch.
    pub generation: u32,
}

impl Request {
    /// Returns the digest under which the reply is journaled.
    pub fn digest(&self) -> RequestDigest {
        let mut parts: Vec<&str> = vec!["request", &self.model, self.rung.name(), self.tool.name];
        for message in &self.messages {
            parts.push(message.role.name());
            parts.push(message.content.as_str());
        }
        let settings =
            format!("{} {:?} {}", self.reply_tokens_max, self.temperature, self.generation);
        parts.extend([self.tool.description.as_str(), self.tool.schema(), settings.as_str()]);
        RequestDigest(Digest::of(&parts))
    }
}

/// A tool call.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Tool name as given by the model.
    pub name: String,
    /// Arguments as text, normally JSON.
    pub arguments: Redacted,
}

named! {
    /// Why the model stopped. Never trusted alone: servers disagree.
    #[derive(JsonSchema)]
    pub Finish {
        /// It was done.
        Stop = "stop",
        /// It called a tool.
        ToolCalls = "tool_calls",
        /// It ran out of tokens.
        Length = "length",
        /// A filter stopped it.
        ContentFilter = "content_filter",
        /// Anything else, or nothing.
        Other = "other",
    }
}

/// Tokens that a reply cost, as the endpoint counted them; zeros where it did not.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens of the request.
    pub prompt_tokens: u64,
    /// Those of them that came from the provider's cache.
    pub cached_tokens: u64,
    /// Tokens of the reply.
    pub completion_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Usage) {
        self.prompt_tokens += more.prompt_tokens;
        self.cached_tokens += more.cached_tokens;
        self.completion_tokens += more.completion_tokens;
    }
}

/// Redacted reply of a model.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Tool calls, in order.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// Prose, or JSON if no tool was offered.
    #[serde(default)]
    pub content: Redacted,
    /// Text of a refusal.
    #[serde(default)]
    pub refusal: Option<Redacted>,
    /// Reason for which the model stopped.
    pub finish: Finish,
    /// Token usage.
    #[serde(default)]
    pub usage: Usage,
}

/// Kind of a failed call; determines the reaction.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ErrorKind {
    /// Too many requests; does not count as an attempt.
    RateLimited {
        /// Wait requested by the endpoint, if any.
        wait: Option<Duration>,
    },
    /// The account's quota is used up; waiting does not help.
    QuotaExhausted,
    /// The endpoint is down, overloaded, too slow or dropped the connection.
    Unavailable {
        /// Wait requested by the endpoint, if any.
        wait: Option<Duration>,
    },
    /// The endpoint answered with something that is no reply of a model: probably its URL is wrong.
    NotAReply,
    /// The request is longer than the model's context.
    TooLong,
    /// The endpoint does not support this output mode; the next one may work.
    Unsupported,
    /// The key is missing or wrong.
    Unauthorised,
    /// The model or the path does not exist.
    NotFound,
    /// The request is invalid; a retry will not help.
    BadRequest,
    /// No cassette contains an answer to this request.
    Stale,
    /// The call was cancelled.
    Cancelled,
}

impl ErrorKind {
    /// Name in the database, in logs and in output.
    pub fn name(&self) -> &'static str {
        match self {
            ErrorKind::RateLimited { .. } => "rate-limited",
            ErrorKind::QuotaExhausted => "quota-exhausted",
            ErrorKind::Unavailable { .. } => "unavailable",
            ErrorKind::NotAReply => "not-a-reply",
            ErrorKind::TooLong => "too-long",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::Unauthorised => "unauthorised",
            ErrorKind::NotFound => "not-found",
            ErrorKind::BadRequest => "bad-request",
            ErrorKind::Stale => "stale",
            ErrorKind::Cancelled => "cancelled",
        }
    }
}

/// Reaction to a failed call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Retry {
    /// Repeat the request after the wait, or after a backoff if none is given.
    After {
        /// Wait requested by the endpoint.
        wait: Option<Duration>,
        /// True if the attempt counts.
        charged: bool,
    },
    /// Retry with the next output mode.
    NextOutputMode,
    /// Split the slice in two.
    Smaller,
    /// Give up on this slice; the next may work.
    Never,
    /// Stop: every call fails until a person fixes the problem.
    Stop,
}

/// A failed call. Its text never contains a reply's body.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}: {detail}", kind.name())]
pub struct ModelError {
    /// Kind, for callers to branch on.
    pub kind: ErrorKind,
    /// Problem and remedy for a person: status codes and names, no conversation text.
    pub detail: String,
    /// True if the request was sent and may have been processed, though no answer was received.
    pub is_unanswered: bool,
}

impl ModelError {
    /// Creates an error of `kind`.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> ModelError {
        ModelError { kind, detail: detail.into(), is_unanswered: false }
    }

    /// Returns the reaction to the error. The only place that decides it.
    pub fn retry(&self) -> Retry {
        match self.kind {
            ErrorKind::RateLimited { wait } => Retry::After { wait, charged: false },
            ErrorKind::Unavailable { wait } => Retry::After { wait, charged: true },
            ErrorKind::NotAReply => Retry::After { wait: None, charged: true },
            ErrorKind::TooLong => Retry::Smaller,
            ErrorKind::Unsupported => Retry::NextOutputMode,
            ErrorKind::BadRequest | ErrorKind::Stale => Retry::Never,
            ErrorKind::Unauthorised
            | ErrorKind::NotFound
            | ErrorKind::QuotaExhausted
            | ErrorKind::Cancelled => Retry::Stop,
        }
    }
}

/// A backend that answers requests: an endpoint or a cassette.
pub trait LanguageModel: Send + Sync {
    /// Sends one request. The caller handles retries.
    fn call(&self, request: &Request) -> impl Future<Output = Result<Reply, ModelError>> + Send;
}
