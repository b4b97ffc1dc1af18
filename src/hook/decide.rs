//! What to answer: a state machine over one session. The window fills; from one share on a sync is asked
//! for, once; from a second one on prompts wait until a sync was completed after that moment.

use super::{Happened, Input, Prompt, Source, Thresholds, Trigger};
use crate::domain::{Finding, Severity, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long what was kept of a session counts: afterwards it is asked once more.
pub const STATE_TTL: Duration = Duration::from_secs(4 * 60 * 60);
/// The share from which a compaction that a person asked for is warned about, in percent. It is where the
/// client compacts by itself under `CLAUDE_AUTOCOMPACT_PCT_OVERRIDE=90`.
const COMPACT_PERCENT: u32 = 90;

/// What is kept of a session between two hooks. Every part stands for a moment, and is forgotten
/// [`STATE_TTL`] after it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct State {
    /// When a sync was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nudged_at: Option<Timestamp>,
    /// When the hard threshold was met and not left since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached_hard_at: Option<Timestamp>,
    /// When the last sync was completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synced_at: Option<Timestamp>,
    /// When a person chose to go on without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overridden_at: Option<Timestamp>,
}

impl State {
    /// Reads what was kept; of what cannot be read nothing is known, and the finding says so with the
    /// rule `bad-hook-state`.
    pub fn read(text: &str) -> (State, Vec<Finding>) {
        match serde_json::from_str(text) {
            Ok(state) => (state, Vec::new()),
            Err(_) => {
                let detail = "what was kept of this session cannot be read; it begins anew";
                let finding = Finding::new(Severity::Warning, "bad-hook-state", 0, detail);
                (State::default(), vec![finding])
            }
        }
    }

    /// What still counts now. A moment that lies ahead was written by a clock that went back since.
    fn at(self, now: Timestamp) -> State {
        let counts = |at: &Timestamp| *at <= now && now.since(*at) < STATE_TTL;
        State {
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

    /// Whether prompts wait for a sync.
    fn waits(&self) -> bool {
        let is_synced = |reached: Timestamp| self.synced_at.is_some_and(|at| reached < at);
        self.reached_hard_at.is_some_and(|reached| !is_synced(reached))
            && self.overridden_at.is_none()
    }
}

/// What is seen as a hook runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Seen {
    /// The time.
    pub now: Timestamp,
    /// How much of the window is in use; none where that is not known.
    pub percent: Option<u32>,
    /// When the last sync of this session was completed, where that is kept elsewhere than in its state.
    pub synced_at: Option<Timestamp>,
}

/// What the client is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Say {
    /// Nothing.
    Nothing,
    /// The context that a session starts with.
    Context,
    /// The agent: to sync memory now.
    Sync {
        /// How much of the window is in use, where that is known.
        percent: Option<u32>,
    },
    /// The person: that the prompt is not sent before a sync.
    Block {
        /// How much of the window is in use.
        percent: u32,
        /// From which share on that is so.
        hard_percent: u32,
    },
    /// The person: that the conversation is compacted and memory was not synced.
    Warn,
}

/// What to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Answer {
    /// What the client is told.
    pub say: Say,
    /// Whether to hand over what was said since the last time; doing so twice changes nothing.
    pub enqueue: bool,
}

impl Answer {
    const NOTHING: Answer = Answer { say: Say::Nothing, enqueue: false };
}

/// Decides what to answer, and what to keep of the session.
///
/// - A session that starts is given its context.
/// - A prompt below `auto` passes. From `auto` on a sync is asked for, once a session; it goes through with
///   that prompt.
/// - From `hard` on the next prompt waits until a sync was completed after `hard` was met, or the person
///   begins a prompt with [`OVERRIDE`](super::OVERRIDE), which holds until the window was below `hard`.
/// - Before the client compacts by itself, or a person does so from 90 % on, a missing sync is
///   warned about. A compaction is never held up.
/// - Where turns and sessions end, and before anything that takes words out of the window, what was
///   said is handed over.
///
/// A session without a safe name is left alone.
pub fn decide(kept: State, input: &Input, seen: Seen, thresholds: &Thresholds) -> (Answer, State) {
    if input.session.is_none() {
        return (Answer::NOTHING, kept);
    }
    let mut state = kept.at(seen.now);
    state.synced_at = state.synced_at.max(seen.synced_at.filter(|at| *at <= seen.now));
    state.fills(seen.percent, thresholds.hard_percent(), seen.now);
    let say = match input.happened {
        Happened::SessionStart(source) => {
            match source {
                // What the transcript says of the window was before it was emptied.
                Source::Anew => state.is_below_hard(),
                Source::Resume => {}
            }
            Say::Context
        }
        Happened::UserPromptSubmit(prompt) => submit(prompt, &mut state, seen, thresholds),
        Happened::PreCompact(trigger) => {
            let is_full = match trigger {
                Trigger::Auto => true,
                Trigger::Manual => seen.percent.is_some_and(|share| COMPACT_PERCENT <= share),
            };
            if is_full && state.synced_at.is_none() { Say::Warn } else { Say::Nothing }
        }
        Happened::SessionEnd | Happened::Stop => Say::Nothing,
    };
    let enqueue = match input.happened {
        Happened::PreCompact(_) | Happened::SessionEnd | Happened::Stop => true,
        Happened::SessionStart(_) | Happened::UserPromptSubmit(_) => match say {
            Say::Sync { .. } | Say::Block { .. } => true,
            Say::Nothing | Say::Context | Say::Warn => false,
        },
    };
    (Answer { say, enqueue }, state)
}

/// What a prompt is answered.
fn submit(prompt: Prompt, state: &mut State, seen: Seen, thresholds: &Thresholds) -> Say {
    match prompt {
        Prompt::Override => {
            state.overridden_at = Some(seen.now);
            Say::Nothing
        }
        Prompt::Sync => {
            state.nudged_at.get_or_insert(seen.now);
            Say::Sync { percent: seen.percent }
        }
        Prompt::Plain => {
            let Some(percent) = seen.percent.filter(|share| thresholds.auto_percent() <= *share)
            else {
                return Say::Nothing;
            };
            if state.nudged_at.is_none() {
                state.nudged_at = Some(seen.now);
                return Say::Sync { percent: Some(percent) };
            }
            let hard_percent = thresholds.hard_percent();
            if state.waits() { Say::Block { percent, hard_percent } } else { Say::Nothing }
        }
    }
}
