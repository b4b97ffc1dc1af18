//! Decision of a hook: a state machine over one session. Past a first threshold of context window
//! use a sync is requested, once; past a second one prompts are blocked until a later sync.

use super::input::{Event, Input, Prompt};
use super::window::Thresholds;
use crate::domain::{Finding, Severity, Timestamp};
use serde::{Deserialize, Serialize};
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
    /// Time of the last sync.
    pub synced_at: Option<Timestamp>,
    /// Time at which the user chose to continue without a sync.
    pub overridden_at: Option<Timestamp>,
}

impl State {
    /// Parses the state; a malformed one becomes empty, with a finding `bad-hook-state`.
    pub(crate) fn read(text: &str) -> (State, Vec<Finding>) {
        match serde_json::from_str(text) {
            Ok(state) => (state, Vec::new()),
            Err(_) => {
                let detail = "the state of this session cannot be read; starting over";
                let finding = Finding::new(Severity::Warning, "bad-hook-state", 0, detail);
                (State::default(), vec![finding])
            }
        }
    }

    /// Drops expired times, and future ones, which come from a clock that was set back.
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

    /// Records the window use.
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

/// Observations at the time of a hook.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Seen {
    /// Current time.
    pub now: Timestamp,
    /// Window use, if the transcript gives it.
    pub percent: Option<u32>,
    /// True if the window's size is known, not assumed.
    pub is_window_known: bool,
    /// Time of the session's last sync, from outside its state.
    pub synced_at: Option<Timestamp>,
}

/// Message to the client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Say {
    Nothing,
    /// The session's initial context.
    Context,
    /// Asks the agent to sync memory now.
    Sync {
        /// Window use, if known.
        percent: Option<u32>,
    },
    /// Tells the user that the prompt is blocked until a sync.
    Block {
        /// Window use.
        percent: u32,
        /// Hard threshold.
        hard_percent: u32,
    },
    /// Warns the user that the conversation is compacted before a sync.
    Warn,
}

/// Decision of a hook.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Answer {
    pub say: Say,
    /// True if new entries are to be enqueued; idempotent.
    pub enqueue: bool,
}

impl Answer {
    const NOTHING: Answer = Answer { say: Say::Nothing, enqueue: false };
}

/// Decides the answer to a hook and the session's next state.
///
/// - A session gets its context at its start, or with its first prompt if no start was reported.
/// - At or above `auto`, a sync is requested with a prompt, once per session.
/// - At or above `hard`, if the window's size is known, prompts are blocked until a later sync or a
///   prompt with [`OVERRIDE`](super::input::OVERRIDE), which holds until use drops below `hard`.
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
        return (Answer::NOTHING, kept.clone());
    }
    let mut state = kept.at(seen.now);
    state.synced_at = state.synced_at.max(seen.synced_at.filter(|at| *at <= seen.now));
    let percent = seen.percent.filter(|_| seen.is_window_known);
    state.fills(percent, thresholds.hard_percent, seen.now);
    let say = match input.event {
        Event::SessionStart => {
            if let Some(model) = &input.model {
                state.model = Some(model.clone());
            }
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
