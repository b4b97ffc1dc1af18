//! One item of a transcript, with its position in the source. Its text has passed the gate.

use super::Timestamp;
use crate::privacy::Redacted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! named {
    ($(#[$doc:meta])* $vis:vis $type:ident { $($(#[$vdoc:meta])* $variant:ident = $name:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[derive(serde::Serialize, serde::Deserialize)]
        $vis enum $type { $($(#[$vdoc])* #[serde(rename = $name)] $variant),* }

        impl $type {
            /// Every value.
            $vis const ALL: &'static [$type] = &[$($type::$variant),*];

            /// The name in the database, in JSON and in print.
            $vis fn name(self) -> &'static str {
                match self { $($type::$variant => $name),* }
            }

            /// The value with this name.
            $vis fn of_name(name: &str) -> Option<$type> {
                match name { $($name => Some($type::$variant),)* _ => None }
            }
        }

        // Not every type needs all of these.
        const _: (&[$type], fn(&str) -> Option<$type>) = ($type::ALL, $type::of_name);
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

/// Beginnings of the labels that entries have in a slice; tools' names, outcomes and parts follow.
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
    /// Line of the conversation.
    pub Branch {
        /// The conversation as it ended.
        Active = "active",
        /// A line that was rewound, regenerated or edited away.
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
    /// Why an entry never enters a slice.
    pub Skip {
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
    /// Joins a call with its result.
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
    /// Author.
    pub speaker: Speaker,
    /// Kind.
    pub kind: EntryKind,
    /// Line of the conversation.
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

named! {
    /// Coverage of an entry: exactly one of these.
    pub CoverageState {
        /// A record rests on it.
        Extracted = "extracted",
        /// A model read it and found nothing worth keeping in it.
        Nothing = "nothing",
        /// No model read it, for a reason that is kept.
        Skipped = "skipped",
        /// Reading it failed, for a reason that is kept.
        Failed = "failed",
        /// Not read yet: a dry run, or work that was stopped.
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
    /// Counts `entries` more in `state`.
    pub fn add(&mut self, state: CoverageState, entries: u64) {
        *match state {
            CoverageState::Extracted => &mut self.extracted,
            CoverageState::Nothing => &mut self.nothing,
            CoverageState::Skipped => &mut self.skipped,
            CoverageState::Failed => &mut self.failed,
            CoverageState::Pending => &mut self.pending,
        } += entries;
    }

    /// Number of entries in `state`.
    pub fn of(&self, state: CoverageState) -> u64 {
        match state {
            CoverageState::Extracted => self.extracted,
            CoverageState::Nothing => self.nothing,
            CoverageState::Skipped => self.skipped,
            CoverageState::Failed => self.failed,
            CoverageState::Pending => self.pending,
        }
    }

    /// Every entry that was counted.
    pub fn total(&self) -> u64 {
        self.extracted + self.nothing + self.skipped + self.failed + self.pending
    }
}

impl std::ops::AddAssign for Coverage {
    fn add_assign(&mut self, other: Coverage) {
        CoverageState::ALL.iter().for_each(|state| self.add(*state, other.of(*state)));
    }
}
