//! Decision of a hook: a state machine over one session. When the context window passes one threshold a
//! sync is requested, once; from a second one on prompts are blocked until a later sync.

use super::input::{Event, Input, Prompt};
use super::window::Thresholds;
use crate::domain::{Finding, Severity, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Lifetime of a session's state; afterwards it is asked once more.
pub(crate) const STATE_TTL: Duration = Duration::from_secs(4 * 60 * 60);
/// Share from which a manual compaction gets a warning, in percent; the client's own threshold under
/// `CLAUDE_AUTOCOMPACT_PCT_OVERRIDE=90`.
const COMPACT_PERCENT: u32 = 90;

/// State of a session between two hooks. Each time expires after [`STATE_TTL`].
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct State {
    /// True once the session got its context.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_started: bool,
    /// Model that the client named when the session started; its name tells the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Time at which a sync was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nudged_at: Option<Timestamp>,
    /// Time since which the hard threshold is exceeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached_hard_at: Option<Timestamp>,
    /// Time of the last sync.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synced_at: Option<Timestamp>,
    /// Time at which a person chose to go on without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overridden_at: Option<Timestamp>,
}

impl State {
    /// Reads the state; an empty one with a finding `bad-hook-state` if it is malformed.
    pub(crate) fn read(text: &str) -> (State, Vec<Finding>) {
        match serde_json::from_str(text) {
            Ok(state) => (state, Vec::new()),
            Err(_) => {
                let detail = "what was kept of this session cannot be read; it begins anew";
                let finding = Finding::new(Severity::Warning, "bad-hook-state", 0, detail);
                (State::default(), vec![finding])
            }
        }
    }

    /// The state without expired times. A future time comes from a clock that was set back.
    fn at(&self, now: Timestamp) -> State {
        let counts = |at: &Timestamp| *at <= now && now.since(*at) < STATE_TTL;
        State {
            is_started: self.is_started,
            model: self.model.clone(),
            nudged_at: self.nudged_at.filter(counts),
            reached_hard_at: self.reached_hard_at.filter(counts),
            synced_at: self.synced_at.filter(counts),
            overridden_at: self.overridden_at.filter(counts),
        }
    }

    /// Notes how full the window is.
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

    /// Returns whether prompts wait for a sync.
    fn waits(&self) -> bool {
        let is_synced = |reached: Timestamp| self.synced_at.is_some_and(|at| reached < at);
        self.reached_hard_at.is_some_and(|reached| !is_synced(reached))
            && self.overridden_at.is_none()
    }
}

/// Observations at the time of a hook.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Seen {
    /// The time.
    pub now: Timestamp,
    /// Used share of the window, if the transcript tells it.
    pub percent: Option<u32>,
    /// True if the window's size is known and not assumed.
    pub is_window_known: bool,
    /// Time of the session's last sync, from outside its state.
    pub synced_at: Option<Timestamp>,
}

/// Message to the client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Say {
    /// Nothing.
    Nothing,
    /// The context that a session starts with.
    Context,
    /// The agent: to sync memory now.
    Sync {
        /// Used share of the window, if known.
        percent: Option<u32>,
    },
    /// The person: that the prompt is not sent before a sync.
    Block {
        /// Used share of the window.
        percent: u32,
        /// Hard threshold.
        hard_percent: u32,
    },
    /// The person: that the conversation is compacted and memory was not synced.
    Warn,
}

/// Decision of a hook.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Answer {
    /// Message to the client.
    pub say: Say,
    /// True if new entries are to be enqueued; doing so twice changes nothing.
    pub enqueue: bool,
}

impl Answer {
    const NOTHING: Answer = Answer { say: Say::Nothing, enqueue: false };
}

/// Decides what to answer, and what to keep of the session.
///
/// - A session's start gets its context; its first prompt if the client did not tell of the start, as `qwen -p`.
/// - From `auto` on a sync is requested with a prompt, once a session.
/// - From `hard` on, of a window whose size is known, prompts are blocked until a later sync, or until a person begins one with
///   [`OVERRIDE`](super::input::OVERRIDE), which holds until the window is below `hard` again.
/// - A compaction by the client, or by a person from 90 % on, gets a warning if there was no sync.
/// - New entries are enqueued when turns and sessions end and before a compaction.
///
/// A session without a safe name is ignored.
pub(crate) fn decide(
    kept: &State,
    input: &Input,
    seen: Seen,
    thresholds: &Thresholds,
) -> (Answer, State) {
    if input.session.is_none() {
        return (Answer::NOTHING, kept.clone());
    }
    let mut state = kept.at(seen.now);
    state.synced_at = state.synced_at.max(seen.synced_at.filter(|at| *at <= seen.now));
    let percent = seen.percent.filter(|_| seen.is_window_known);
    state.fills(percent, thresholds.hard_percent(), seen.now);
    let say = match input.event {
        Event::SessionStart => {
            if let Some(model) = &input.model {
                state.model = Some(model.clone());
            }
            if !input.resumes {
                // What the transcript says of the window was before it was emptied.
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
    // A share of an assumed window is nothing to tell a person.
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
            let Some(percent) = seen.percent.filter(|share| thresholds.auto_percent() <= *share)
            else {
                return Say::Nothing;
            };
            if state.nudged_at.is_none() {
                state.nudged_at = Some(seen.now);
                return Say::Sync { percent: known(percent) };
            }
            let hard_percent = thresholds.hard_percent();
            match known(percent).filter(|_| state.waits()) {
                Some(percent) => Say::Block { percent, hard_percent },
                None => Say::Nothing,
            }
        }
    }
}
