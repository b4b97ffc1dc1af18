//! One item of a transcript, with its position in the source. Its text has passed the gate.

use super::Timestamp;
use crate::privacy::Redacted;
use schemars::JsonSchema;

macro_rules! named {
    ($(#[$doc:meta])* $type:ident { $($(#[$vdoc:meta])* $variant:ident = $name:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $type { $($(#[$vdoc])* #[serde(rename = $name)] $variant),* }

        impl $type {
            /// Every value.
            pub const ALL: &'static [$type] = &[$($type::$variant),*];

            /// The name in the database, in JSON and in print.
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name),* }
            }

            /// The value with this name.
            pub fn of_name(name: &str) -> Option<$type> {
                match name { $($name => Some($type::$variant),)* _ => None }
            }
        }
    };
}
pub(crate) use named;

named! {
    /// Who said it; decides how far it is trusted.
    #[derive(JsonSchema)]
    Speaker {
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

named! {
    /// What sort of item it is.
    #[derive(JsonSchema)]
    EntryKind {
        /// A person's message.
        Prompt = "prompt",
        /// What a person typed while the agent was working.
        Steering = "steering",
        /// A person's answer to a question that the agent asked.
        Answer = "answer",
        /// A person's refusal of a tool use, with their words if any.
        Rejection = "rejection",
        /// A person's slash command or shell escape.
        Command = "command",
        /// What the assistant said.
        Text = "text",
        /// A tool call: name and arguments.
        ToolCall = "tool_call",
        /// What a tool answered.
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
    /// Which line of the conversation it stands on.
    Branch {
        /// The conversation as it ended.
        Active = "active",
        /// A line that was rewound, regenerated or edited away.
        Abandoned = "abandoned",
        /// A sub-agent's own dialogue.
        Sidechain = "sidechain",
    }
}

named! {
    /// How a tool call ended, read from exit codes, flags and the person's reply.
    #[derive(JsonSchema)]
    Outcome {
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
    /// Why an entry never enters a slice.
    Skip {
        /// Context that a client added; nobody said it.
        Injected = "injected context",
        /// A copy of an entry that stands elsewhere.
        Copied = "copied from elsewhere",
        /// A summary of entries that are themselves here.
        Summarised = "summary of entries that are here",
        /// Nothing is left of it behind the gate.
        Private = "private",
        /// It has no words.
        Empty = "empty",
        /// The person took it back before it was sent.
        TakenBack = "taken back",
    }
}

/// The tool of a call or a result.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tool {
    /// Its name, as the transcript has it.
    pub name: Redacted,
    /// What joins a call with its result.
    pub call_id: Option<Redacted>,
}

/// One item of a transcript.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// Its place among the session's entries, from 0.
    pub ordinal: u32,
    /// The line of the file it begins on, from 1; for one JSON value, its number in the array.
    pub line: u32,
    /// The transcript's own id for it.
    pub native_id: Option<Redacted>,
    /// Who said it.
    pub speaker: Speaker,
    /// What sort of item it is.
    pub kind: EntryKind,
    /// Which line of the conversation it stands on.
    pub branch: Branch,
    /// Its words, behind the gate.
    pub text: Redacted,
    /// For calls and results.
    pub tool: Option<Tool>,
    /// For results: how the call ended.
    pub outcome: Option<Outcome>,
    /// For results of commands.
    pub exit_code: Option<i32>,
    /// When it was said, where the transcript knows.
    pub at: Option<Timestamp>,
    /// Why no model reads it, if so.
    pub skip: Option<Skip>,
}
