//! What Claude Code hands a hook on standard input. Of a prompt only what it asks of us is kept, never
//! its words. Fields that nothing depends on are not read: why a session ended, and whether a stop follows
//! a stop, for a stop is never held up here.

use crate::domain::{Finding, Severity};
use serde_json::{Map, Value};
use std::fmt;
use std::str::FromStr;

/// What a prompt begins with to be sent although memory was not synced.
pub const OVERRIDE: &str = "annalist override";
/// The first word of a prompt that syncs memory: it is never held up.
pub const SYNC_COMMAND: &str = "/memory-sync";

/// The events that we answer.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Event {
    /// A session begins, goes on, or goes on with an emptied window.
    SessionStart,
    /// A person sends a prompt.
    UserPromptSubmit,
    /// The client is about to replace the conversation by a summary.
    PreCompact,
    /// A session ends.
    SessionEnd,
    /// The agent ends its turn.
    Stop,
}

impl Event {
    /// Every event, in the order in which a session meets them.
    pub const ALL: [Event; 5] = [
        Event::SessionStart,
        Event::UserPromptSubmit,
        Event::PreCompact,
        Event::Stop,
        Event::SessionEnd,
    ];

    /// Its name in the client's JSON and settings.
    pub fn name(self) -> &'static str {
        match self {
            Event::SessionStart => "SessionStart",
            Event::UserPromptSubmit => "UserPromptSubmit",
            Event::PreCompact => "PreCompact",
            Event::SessionEnd => "SessionEnd",
            Event::Stop => "Stop",
        }
    }

    /// Its name on our command line, behind `annalist hook`.
    pub fn argument(self) -> &'static str {
        match self {
            Event::SessionStart => "session-start",
            Event::UserPromptSubmit => "user-prompt-submit",
            Event::PreCompact => "pre-compact",
            Event::SessionEnd => "session-end",
            Event::Stop => "stop",
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.argument())
    }
}

impl FromStr for Event {
    type Err = UnknownEvent;

    fn from_str(text: &str) -> Result<Event, UnknownEvent> {
        let known = Event::ALL.into_iter().find(|event| event.argument() == text);
        known.ok_or_else(|| UnknownEvent(text.to_owned()))
    }
}

/// A name that is no event of ours.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "unknown hook `{0}`: expected session-start, user-prompt-submit, pre-compact, stop or session-end"
)]
pub struct UnknownEvent(pub String);

/// The client's name of a session, safe as a part of a file name and of a command.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct SessionName(String);

impl SessionName {
    /// The longest name, in bytes: with an ending it fits every file system. Claude Code's have 36.
    pub const BYTES_MAX: usize = 200;

    /// Reads a name of ASCII letters, digits, `_` and `-`, or says no.
    pub fn parse(text: &str) -> Option<SessionName> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let safe = (1..=Self::BYTES_MAX).contains(&text.len()) && text.bytes().all(is_part);
        safe.then(|| SessionName(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a session starts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// With an empty window: `startup`, `clear`, `compact`, or a word that is new to us.
    Anew,
    /// With the window as it was: `resume`.
    Resume,
}

/// Who asked for a compaction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Trigger {
    /// The person.
    Manual,
    /// The client, because the window is full.
    Auto,
}

/// What a prompt asks of us.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Prompt {
    /// Nothing.
    Plain,
    /// To sync memory: it begins with [`SYNC_COMMAND`].
    Sync,
    /// Not to be held up: it begins with [`OVERRIDE`].
    Override,
}

impl Prompt {
    fn of(words: &str) -> Prompt {
        let words = words.trim_start();
        let begins_with = |head: &str| {
            words.get(..head.len()).is_some_and(|own| own.eq_ignore_ascii_case(head))
                && !words[head.len()..].starts_with(|next: char| next.is_alphanumeric())
        };
        match () {
            () if begins_with(OVERRIDE) => Prompt::Override,
            () if begins_with(SYNC_COMMAND) => Prompt::Sync,
            () => Prompt::Plain,
        }
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Happened {
    /// A session starts.
    SessionStart(Source),
    /// A person sends a prompt.
    UserPromptSubmit(Prompt),
    /// The conversation is about to be compacted.
    PreCompact(Trigger),
    /// A session ends.
    SessionEnd,
    /// The agent ends its turn.
    Stop,
}

impl Happened {
    /// Which event that is.
    pub fn event(self) -> Event {
        match self {
            Happened::SessionStart(_) => Event::SessionStart,
            Happened::UserPromptSubmit(_) => Event::UserPromptSubmit,
            Happened::PreCompact(_) => Event::PreCompact,
            Happened::SessionEnd => Event::SessionEnd,
            Happened::Stop => Event::Stop,
        }
    }

    fn of(event: Event, fields: &Map<String, Value>) -> Happened {
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        match event {
            Event::SessionStart => Happened::SessionStart(match text("source") {
                Some("resume") => Source::Resume,
                Some(_) | None => Source::Anew,
            }),
            Event::UserPromptSubmit => {
                Happened::UserPromptSubmit(text("prompt").map_or(Prompt::Plain, Prompt::of))
            }
            Event::PreCompact => Happened::PreCompact(match text("trigger") {
                Some("auto") => Trigger::Auto,
                Some(_) | None => Trigger::Manual,
            }),
            Event::SessionEnd => Happened::SessionEnd,
            Event::Stop => Happened::Stop,
        }
    }
}

/// What a hook is told.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Input {
    /// What happened.
    pub happened: Happened,
    /// In which session; none where its name is not safe, and then nothing is to be done.
    pub session: Option<SessionName>,
    /// The file with the transcript.
    pub transcript_path: Option<String>,
    /// The folder the agent works in.
    pub cwd: Option<String>,
    /// The model, where the client says it: newer ones do as a session starts.
    pub model: Option<String>,
}

impl Input {
    /// Reads what the client hands to the hook of `event`; none if it is nothing of the kind, with one
    /// finding that says what was expected. Unknown fields are for other versions to know.
    ///
    /// Findings have the rule `bad-hook-input`, `wrong-hook-event` or `bad-session-id`.
    pub fn read(text: &str, event: Event) -> (Option<Input>, Vec<Finding>) {
        let wrong = |rule, detail: String| Finding::new(Severity::Error, rule, 0, detail);
        let told = match serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => return (None, vec![wrong("bad-hook-input", expected("other JSON"))]),
            Err(error) => {
                let found = match text.trim().is_empty() {
                    true => "nothing".to_owned(),
                    false => {
                        format!("no JSON from line {}, column {} on", error.line(), error.column())
                    }
                };
                return (None, vec![wrong("bad-hook-input", expected(&found))]);
            }
        };
        let field = |name: &str| {
            let text = told.get(name).and_then(Value::as_str)?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        let other = |name: &String| name != event.name();
        if field("hook_event_name").as_ref().is_some_and(other) {
            let detail = format!(
                "standard input: expected `hook_event_name` to be {}, found another; let the \
                 settings of the client run `annalist hook {event}` for {} alone",
                event.name(),
                event.name()
            );
            return (None, vec![wrong("wrong-hook-event", detail)]);
        }
        let session = field("session_id").and_then(|name| SessionName::parse(&name));
        let findings = session.is_none().then(|| {
            let detail = "standard input: expected `session_id` of letters, digits, `_` and `-`; \
                          nothing is done for this session";
            Finding::new(Severity::Warning, "bad-session-id", 0, detail)
        });
        let input = Input {
            happened: Happened::of(event, &told),
            session,
            transcript_path: field("transcript_path"),
            cwd: field("cwd"),
            model: field("model"),
        };
        (Some(input), findings.into_iter().collect())
    }
}

fn expected(found: &str) -> String {
    format!(
        "standard input: expected the JSON object that Claude Code hands to a hook, found {found}; \
         run it from the client's settings, or try it with `{{\"session_id\": \"x\"}}`"
    )
}
