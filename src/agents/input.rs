//! Input of a hook. Of a prompt only the command to annalist is kept, never its text.

use super::answer::AnswerEnd;
use crate::domain::{Finding, Severity};
use clap::ValueEnum;
use serde_json::Value;

/// Prefix of a prompt that is sent although memory was not synced.
pub(crate) const OVERRIDE: &str = "annalist override";
/// First word of a prompt that syncs memory; never blocked.
pub(crate) const SYNC_COMMAND: &str = "/memory-sync";

/// Gemini CLI's event before every request that might compress; most do not.
const BEFORE_COMPRESSION: &str = "PreCompress";

/// The events that we answer.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, clap::ValueEnum)]
pub(crate) enum Event {
    /// A session begins, resumes, or goes on with an emptied window.
    SessionStart,
    /// A person sends a prompt.
    UserPromptSubmit,
    /// The client is about to replace the conversation by a summary.
    PreCompact,
    /// A session ends.
    SessionEnd,
    /// The agent ends its turn.
    Stop,
    /// A sub-agent ends its work.
    SubagentStop,
}

impl Event {
    /// All events, in the order in which they occur in a session.
    pub(crate) const ALL: [Event; 6] = [
        Event::SessionStart,
        Event::UserPromptSubmit,
        Event::PreCompact,
        Event::SubagentStop,
        Event::Stop,
        Event::SessionEnd,
    ];

    /// Name in Claude Code's JSON and settings.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Event::SessionStart => "SessionStart",
            Event::UserPromptSubmit => "UserPromptSubmit",
            Event::PreCompact => "PreCompact",
            Event::SessionEnd => "SessionEnd",
            Event::Stop => "Stop",
            Event::SubagentStop => "SubagentStop",
        }
    }

    /// Name in Gemini CLI, if it has the event.
    pub(super) fn gemini_name(self) -> Option<&'static str> {
        match self {
            Event::SessionStart | Event::SessionEnd => Some(self.name()),
            Event::UserPromptSubmit => Some("BeforeAgent"),
            Event::PreCompact => Some(BEFORE_COMPRESSION),
            Event::Stop => Some("AfterAgent"),
            Event::SubagentStop => None,
        }
    }

    pub(super) fn is_called(self, name: &str) -> bool {
        name == self.name() || self.gemini_name() == Some(name)
    }

    pub(crate) fn argument(self) -> String {
        self.to_possible_value().map(|it| it.get_name().to_owned()).unwrap_or_default()
    }
}

/// A client's name for a session, safe in file names and commands.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct SessionName(String);

impl SessionName {
    /// Maximum length; fits every file system with an extension. Claude Code's names have 36 bytes.
    pub(crate) const BYTES_MAX: usize = 200;

    pub(crate) fn parse(text: &str) -> Option<SessionName> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let safe = (1..=Self::BYTES_MAX).contains(&text.len()) && text.bytes().all(is_part);
        safe.then(|| SessionName(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Prompt {
    Plain,
    /// Sync memory: the prompt begins with [`SYNC_COMMAND`].
    Sync,
    /// Send without a sync: the prompt begins with [`OVERRIDE`].
    Override,
}

impl Prompt {
    fn of(words: &str) -> Prompt {
        let words = words.trim_start();
        let begins_with = |head: &str| {
            words.get(..head.len()).is_some_and(|own| own.eq_ignore_ascii_case(head))
                && !words[head.len()..].starts_with(|next: char| next.is_alphanumeric())
        };
        match (begins_with(OVERRIDE), begins_with(SYNC_COMMAND)) {
            (true, _) => Prompt::Override,
            (_, true) => Prompt::Sync,
            (false, false) => Prompt::Plain,
        }
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Input {
    pub event: Event,
    pub event_name: String,
    /// True if a session continues with its window; false if it starts with an empty one.
    pub resumes: bool,
    /// Command in the prompt.
    pub prompt: Prompt,
    /// True if the client compacts because the window is full, not at the user's request.
    pub is_automatic: bool,
    /// Session; `None` if its name is not safe, and then nothing is done.
    pub session: Option<SessionName>,
    pub transcript_path: Option<String>,
    /// Database with the session, for clients without transcripts.
    pub database: Option<String>,
    /// File of the sub-agent's transcript, or the folder that contains it.
    pub agent_transcript_path: Option<String>,
    /// True for a fork of the conversation that the client made for itself, such as for a compaction.
    /// Claude Code gives it no type, and often no transcript.
    pub is_fork: bool,
    /// End of the turn's answer, which the client writes into the transcript a little later.
    pub answer_end: Option<AnswerEnd>,
    /// Working directory of the agent.
    pub cwd: Option<String>,
    /// Model; newer clients name it at a session's start.
    pub model: Option<String>,
}

impl Input {
    /// Parses the input of the hook of `event`; `None` with a finding if it is something else.
    /// Unknown fields are ignored.
    ///
    /// Findings have the rule `bad-hook-input`, `wrong-hook-event` or `bad-session-id`.
    pub(crate) fn read(text: &str, event: Event) -> (Option<Input>, Vec<Finding>) {
        let wrong = |rule, detail: String| Finding::new(Severity::Error, rule, 0, detail);
        let told = match serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => return (None, vec![wrong("bad-hook-input", expected("other JSON"))]),
            Err(_) if text.trim().is_empty() => {
                return (None, vec![wrong("bad-hook-input", expected("nothing"))]);
            }
            Err(error) => {
                let (line, column) = (error.line(), error.column());
                let found = format!("invalid JSON at line {line}, column {column}");
                return (None, vec![wrong("bad-hook-input", expected(&found))]);
            }
        };
        let field = |name: &str| {
            let text = told.get(name).and_then(Value::as_str)?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        let event_name = field("hook_event_name").unwrap_or_else(|| event.name().to_owned());
        if !event.is_called(&event_name) {
            let (name, argument) = (event.name(), event.argument());
            let detail = format!(
                "standard input: expected `hook_event_name` to be {name}, found another; in the \
                 settings of the client, run `annalist hook {argument}` only for {name}"
            );
            return (None, vec![wrong("wrong-hook-event", detail)]);
        }
        let session = field("session_id").and_then(|name| SessionName::parse(&name));
        let findings = session.is_none().then(|| {
            let detail = "standard input: expected `session_id` of letters, digits, `_` and `-`; \
                          the hook ignores this session";
            Finding::new(Severity::Warning, "bad-session-id", 0, detail)
        });
        // Folder beside a transcript with those of its sub-agents.
        let sub_agents =
            || Some(format!("{}/subagents", field("transcript_path")?.strip_suffix(".jsonl")?));
        let input = Input {
            event,
            resumes: field("source").as_deref() == Some("resume"),
            prompt: field("prompt").map_or(Prompt::Plain, |words| Prompt::of(&words)),
            is_automatic: field("trigger").as_deref() == Some("auto")
                && event_name != BEFORE_COMPRESSION,
            session,
            agent_transcript_path: field("agent_transcript_path").or_else(sub_agents),
            is_fork: event == Event::SubagentStop
                && told.get("agent_type").is_some_and(|kind| kind == ""),
            answer_end: field("last_assistant_message").and_then(|text| AnswerEnd::of(&text)),
            transcript_path: field("transcript_path"),
            database: field("database"),
            event_name,
            cwd: field("cwd"),
            model: field("model"),
        };
        (Some(input), findings.into_iter().collect())
    }
}

fn expected(found: &str) -> String {
    format!(
        "standard input: expected the JSON object that a client passes to a hook, found {found}; \
         run it from the client's settings, or try it with `{{\"session_id\": \"x\"}}`"
    )
}
