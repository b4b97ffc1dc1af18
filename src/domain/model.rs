//! Requests to a model and their replies; providers' wire types stay in `llm`.

use super::entry::named;
use super::{Digest, RequestDigest};
use crate::privacy::Redacted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
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
        /// Lessons of the records.
        Reflect = "reflect",
        /// Summaries of a conversation memory.
        Summarise = "summarise",
        /// Vectors of what is searched.
        Search = "search",
        /// To try a prompt or a model.
        Test = "test",
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
    /// The next rung down, if there is one.
    pub fn next(self) -> Option<OutputMode> {
        let at = OutputMode::ALL.iter().position(|rung| *rung == self)?;
        OutputMode::ALL.get(at + 1).copied()
    }

    /// True if the answer is a tool call.
    pub fn is_tool(self) -> bool {
        match self {
            OutputMode::ForcedTool | OutputMode::RequiredTool | OutputMode::OfferedTool => true,
            OutputMode::JsonSchema | OutputMode::JsonObject | OutputMode::Text => false,
        }
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

/// The one tool that is offered.
#[derive(Debug, PartialEq)]
pub struct ToolSpec {
    /// Its name, `write_extracted`.
    pub name: &'static str,
    /// Its purpose.
    pub description: String,
    /// Its arguments as a JSON schema, strict.
    pub parameters: Value,
    /// The same as text, written once: every request is digested with it.
    text: String,
}

impl ToolSpec {
    /// A tool with this name, purpose and JSON schema of its arguments.
    pub fn new(name: &'static str, description: String, parameters: Value) -> ToolSpec {
        let text = parameters.to_string();
        ToolSpec { name, description, parameters, text }
    }

    /// The schema of the arguments as compact JSON.
    pub fn schema(&self) -> &str {
        &self.text
    }
}

/// A question to a model. Equal requests have equal digests, whatever endpoint they go to.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The model's name at the endpoint.
    pub model: String,
    /// System prompt first, then the slice, then earlier answers and complaints.
    pub messages: Vec<Message>,
    /// Output mode.
    pub rung: OutputMode,
    /// The tool or schema of the answer.
    pub tool: Arc<ToolSpec>,
    /// The longest answer, in the model's tokens.
    pub reply_tokens_max: u32,
    /// Sampling temperature; none leaves it to the endpoint (some models refuse the field).
    pub temperature: Option<f32>,
    /// Which try this is: 0, and one more each time a failed slice is asked afresh.
    pub generation: u32,
}

impl Request {
    /// The digest under which the reply is journaled.
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

    /// The request as a person reads it in a cassette.
    pub fn to_json(&self) -> Value {
        let messages = self.messages.iter();
        let messages: Vec<Value> =
            messages.map(|m| json!({"role": m.role, "content": m.content.as_str()})).collect();
        json!({
            "model": self.model, "rung": self.rung, "tool": self.tool.name,
            "reply_tokens_max": self.reply_tokens_max, "temperature": self.temperature,
            "generation": self.generation, "messages": messages,
        })
    }
}

/// A call of a tool.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The tool's name as the model gave it.
    pub name: String,
    /// The arguments as text, JSON if all went well.
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

/// Redacted reply of a model.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Tool calls, in order.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// Prose, or JSON where no tool was offered.
    #[serde(default)]
    pub content: Redacted,
    /// The words of a refusal.
    #[serde(default)]
    pub refusal: Option<Redacted>,
    /// Why it stopped.
    pub finish: Finish,
    /// Tokens that it cost.
    #[serde(default)]
    pub usage: Usage,
}

/// Kind of a failed call; decides what happens next.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ErrorKind {
    /// Too many requests; charges no attempt.
    RateLimited {
        /// Wait that the endpoint asks for, if any.
        wait: Option<Duration>,
    },
    /// The account has no more to spend; waiting does not help.
    QuotaExhausted,
    /// Down, overloaded, cut off or too slow.
    Unavailable {
        /// Wait that the endpoint asks for, if any.
        wait: Option<Duration>,
    },
    /// The request is longer than the model's context.
    TooLong,
    /// The endpoint does not take this way of asking; the next rung may work.
    Unsupported,
    /// The key is missing or wrong.
    Unauthorised,
    /// No such model or no such path.
    NotFound,
    /// The request is wrong and stays wrong.
    BadRequest,
    /// No cassette holds an answer to this request.
    Stale,
    /// Asked to stop.
    Cancelled,
}

impl ErrorKind {
    /// The name in the database, in logs and in print.
    pub fn name(&self) -> &'static str {
        match self {
            ErrorKind::RateLimited { .. } => "rate-limited",
            ErrorKind::QuotaExhausted => "quota-exhausted",
            ErrorKind::Unavailable { .. } => "unavailable",
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
    /// Ask the same again after the wait, or after a back-off if none was given.
    After {
        /// Wait that the endpoint asked for.
        wait: Option<Duration>,
        /// True if the attempt counts.
        charged: bool,
    },
    /// Ask on the next rung.
    NextOutputMode,
    /// Cut the slice in two.
    Smaller,
    /// This slice is lost, the next may work.
    Never,
    /// Nothing will work until a person mends it.
    Stop,
}

/// A failed call. Its text never holds a reply's body.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}: {detail}", kind.name())]
pub struct ModelError {
    /// Kind, for callers to branch on.
    pub kind: ErrorKind,
    /// The event and its remedy, for a person; status codes and names, no words.
    pub detail: String,
}

impl ModelError {
    /// An error of `kind`.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> ModelError {
        ModelError { kind, detail: detail.into() }
    }

    /// Decided here once, so that no caller guesses from a message.
    pub fn retry(&self) -> Retry {
        match self.kind {
            ErrorKind::RateLimited { wait } => Retry::After { wait, charged: false },
            ErrorKind::Unavailable { wait } => Retry::After { wait, charged: true },
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

/// Something that answers requests: an endpoint, or a cassette.
pub trait LanguageModel: Send + Sync {
    /// Asks once. Retries are the caller's.
    fn call(&self, request: &Request) -> impl Future<Output = Result<Reply, ModelError>> + Send;
}
