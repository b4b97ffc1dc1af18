//! Decision of a hook: a state machine over one session. Past a first threshold of context window
//! use a sync is requested, once; past a second one prompts are blocked until a later sync. Its
//! output is JSON on standard output, text for the user on standard error, and an exit code; nothing
//! if there is nothing to report.

use super::input::{Event, Input, OVERRIDE, Prompt};
use super::window::Thresholds;
use crate::domain::{Finding, Severity, Timestamp};
use crate::privacy::Redacted;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Lifetime of the times in a session's state; a sync may be requested again afterwards.
pub(crate) const STATE_TTL: Duration = Duration::from_secs(4 * 60 * 60);
/// Window use from which a manual compaction gets a warning, in percent; the client's own threshold
/// under `CLAUDE_AUTOCOMPACT_PCT_OVERRIDE=90`.
const COMPACT_PERCENT: u32 = 90;

/// State of a session between hooks. Each time expires after [`STATE_TTL`].
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct State {
    /// True once the session received its context.
    pub is_started: bool,
    /// Model that the client named at the session's start; its name gives the window size.
    pub model: Option<String>,
    /// Time at which a sync was requested.
    pub nudged_at: Option<Timestamp>,
    /// Time since when the hard threshold is exceeded.
    pub reached_hard_at: Option<Timestamp>,
    pub synced_at: Option<Timestamp>,
    /// Time at which the user chose to continue without a sync.
    pub overridden_at: Option<Timestamp>,
}

impl State {
    /// Parses the state; a malformed one becomes empty, with a finding `bad-hook-state`.
    pub(crate) fn read(text: &str) -> (State, Vec<Finding>) {
        if let Ok(state) = serde_json::from_str(text) {
            return (state, Vec::new());
        }
        let detail = "the state of this session cannot be read; starting over";
        let finding = Finding::new(Severity::Warning, "bad-hook-state", 0, detail);
        (State::default(), vec![finding])
    }

    /// Drops expired times, and future ones, which come from a clock that was set back.
    fn at(&self, now: Timestamp) -> State {
        let counts = |at: &Timestamp| *at <= now && now.since(*at) < STATE_TTL;
        State {
            nudged_at: self.nudged_at.filter(counts),
            reached_hard_at: self.reached_hard_at.filter(counts),
            synced_at: self.synced_at.filter(counts),
            overridden_at: self.overridden_at.filter(counts),
            ..self.clone()
        }
    }

    fn fills(&mut self, percent: Option<u32>, hard_percent: u32, now: Timestamp) {
        match percent {
            Some(percent) if hard_percent <= percent => {
                self.reached_hard_at.get_or_insert(now);
            }
            Some(_) => self.is_below_hard(),
            None => {}
        }
    }

    fn is_below_hard(&mut self) {
        self.reached_hard_at = None;
        self.overridden_at = None;
    }

    /// True while prompts are blocked until a sync.
    fn waits(&self) -> bool {
        let is_synced = |reached: Timestamp| self.synced_at.is_some_and(|at| reached < at);
        self.reached_hard_at.is_some_and(|reached| !is_synced(reached))
            && self.overridden_at.is_none()
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Seen {
    pub now: Timestamp,
    /// Window use, if the transcript gives it.
    pub percent: Option<u32>,
    /// True if the window's size is known, not assumed.
    pub is_window_known: bool,
    /// Time of the session's last sync, from outside its state.
    pub synced_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Say {
    Nothing,
    /// The session's initial context.
    Context,
    /// Asks the agent to sync memory now.
    Sync {
        percent: Option<u32>,
    },
    /// Tells the user that the prompt is blocked until a sync.
    Block {
        percent: u32,
        hard_percent: u32,
    },
    /// Warns the user that the conversation is compacted before a sync.
    Warn,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Answer {
    pub say: Say,
    /// True if new entries are to be enqueued; idempotent.
    pub enqueue: bool,
}

/// Decides the answer to a hook and the session's next state.
///
/// - A session gets its context at its start, or with its first prompt if no start was reported.
/// - At or above `auto`, a sync is requested with a prompt, once per session.
/// - At or above `hard`, if the window's size is known, prompts are blocked until a later sync or a
///   prompt with [`OVERRIDE`], which holds until use drops below `hard`.
/// - A compaction, automatic or from 90 % on, gets a warning if there was no sync.
/// - New entries are enqueued when turns and sessions end, and before a compaction.
///
/// A session without a safe name is ignored.
pub(crate) fn decide(
    kept: &State,
    input: &Input,
    seen: Seen,
    thresholds: &Thresholds,
) -> (Answer, State) {
    if input.session.is_none() {
        return (Answer { say: Say::Nothing, enqueue: false }, kept.clone());
    }
    let mut state = kept.at(seen.now);
    state.synced_at = state.synced_at.max(seen.synced_at.filter(|at| *at <= seen.now));
    let percent = seen.percent.filter(|_| seen.is_window_known);
    state.fills(percent, thresholds.hard_percent, seen.now);
    let say = match input.event {
        Event::SessionStart => {
            state.model = input.model.clone().or(state.model);
            if !input.resumes {
                // The transcript's window use is from before the window was cleared.
                state.is_below_hard();
            }
            Say::Context
        }
        Event::UserPromptSubmit => {
            let say = submit(input.prompt, &mut state, seen, thresholds);
            if say == Say::Nothing && !state.is_started { Say::Context } else { say }
        }
        Event::PreCompact => {
            let is_full = input.is_automatic || percent.is_some_and(|it| COMPACT_PERCENT <= it);
            if is_full && state.synced_at.is_none() { Say::Warn } else { Say::Nothing }
        }
        Event::SessionEnd | Event::Stop | Event::SubagentStop => Say::Nothing,
    };
    state.is_started |= say == Say::Context;
    let enqueue = match input.event {
        Event::PreCompact | Event::SessionEnd | Event::Stop | Event::SubagentStop => true,
        Event::SessionStart | Event::UserPromptSubmit => {
            matches!(say, Say::Sync { .. } | Say::Block { .. })
        }
    };
    (Answer { say, enqueue }, state)
}

fn submit(prompt: Prompt, state: &mut State, seen: Seen, thresholds: &Thresholds) -> Say {
    // The use of a window of assumed size is not reported.
    let known = |percent: u32| Some(percent).filter(|_| seen.is_window_known);
    match prompt {
        Prompt::Override => {
            state.overridden_at = Some(seen.now);
            Say::Nothing
        }
        Prompt::Sync => {
            state.nudged_at.get_or_insert(seen.now);
            Say::Sync { percent: seen.percent.and_then(known) }
        }
        Prompt::Plain => {
            let Some(percent) = seen.percent.filter(|share| thresholds.auto_percent <= *share)
            else {
                return Say::Nothing;
            };
            if state.nudged_at.is_none() {
                state.nudged_at = Some(seen.now);
                return Say::Sync { percent: known(percent) };
            }
            let hard_percent = thresholds.hard_percent;
            match known(percent).filter(|_| state.waits()) {
                Some(percent) => Say::Block { percent, hard_percent },
                None => Say::Nothing,
            }
        }
    }
}

/// Exit code that blocks a prompt; the client shows standard error. Never used before a compaction.
pub(crate) const EXIT_BLOCKED: u8 = 2;
/// Maximum length of text accepted from a hook, in UTF-16 units; clients cut longer text to 2 KB.
pub const OUTPUT_UNITS_MAX: usize = 10_000;

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Output {
    /// Standard output, without a line end.
    pub stdout: Option<String>,
    /// Standard error, without a line end.
    pub stderr: Option<String>,
    pub exit: u8,
}

impl Output {
    /// Renders `answer`. `context` is the start block, or empty. `sync_command` is
    /// `annalist memory sync` without the session.
    pub(crate) fn of(
        answer: Answer,
        input: &Input,
        context: &Redacted,
        sync_command: &str,
    ) -> Output {
        let session = input.session.as_ref().map(|name| format!(" --session {}", name.as_str()));
        let command = format!("{sync_command}{}", session.unwrap_or_default());
        match answer.say {
            Say::Nothing => Output::default(),
            Say::Context => start(context.as_str(), input),
            Say::Sync { percent } => {
                let share = percent.map(|it| format!("{it} % of the context window is in use. "));
                let words = format!(
                    "annalist: {}Before you answer, run `{command}`: it adds to this project's \
                     memory what is extracted from the conversation so far. Do not ask for \
                     permission, and do not write memory files yourself. Mention it only if it \
                     fails, then continue with the request.",
                    share.unwrap_or_default()
                );
                adds(&words, input)
            }
            Say::Block { percent, hard_percent } => block(format!(
                "annalist: this prompt was not sent. {percent} % of the context window is in use, \
                 and memory was not synced since it passed {hard_percent} %. Run `{command}` \
                 (here: `! {command}`) and send the prompt again, or begin it with `{OVERRIDE}` to \
                 skip the sync."
            )),
            Say::Warn => {
                let words = format!(
                    "annalist: the conversation is being compacted and memory was not synced in \
                     this session. The transcript still has everything; `{command}` adds \
                     to memory what is extracted from it."
                );
                Output::default().with_notice(&words)
            }
        }
    }

    /// Adds a line that the client shows to the user.
    pub(crate) fn with_notice(self, notice: &str) -> Output {
        let told = self.stdout.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let mut told: Map<String, Value> = told.unwrap_or_default();
        told.insert("systemMessage".to_owned(), notice.into());
        Output { stdout: Some(Value::from(told).to_string()), ..self }
    }
}

fn start(context: &str, input: &Input) -> Output {
    let units = context.encode_utf16().count();
    if OUTPUT_UNITS_MAX < units {
        let words = format!(
            "annalist: the context has {units} UTF-16 units, more than the client's maximum of \
             {OUTPUT_UNITS_MAX}; it is left out, since it would be truncated. Set a smaller budget."
        );
        return Output { stderr: Some(words), ..Output::default() };
    }
    if context.is_empty() { Output::default() } else { adds(context, input) }
}

/// Adds `words` to the agent's context.
fn adds(words: &str, input: &Input) -> Output {
    match input.event {
        Event::SessionStart | Event::UserPromptSubmit => {
            let specific = json!({"hookEventName": input.event_name, "additionalContext": words});
            print(&json!({"hookSpecificOutput": specific}))
        }
        // These events take no context, and the client reports unknown fields.
        Event::PreCompact | Event::SessionEnd | Event::Stop | Event::SubagentStop => {
            Output::default()
        }
    }
}

/// Blocks a prompt: by exit code for every version of the client, by JSON for compatible programs.
fn block(reason: String) -> Output {
    let told = json!({"decision": "block", "reason": reason});
    Output { stderr: Some(reason), exit: EXIT_BLOCKED, ..print(&told) }
}

fn print(told: &Value) -> Output {
    Output { stdout: Some(told.to_string()), ..Output::default() }
}
