//! Claude Code's hooks: what the client hands over, how full its context window is, what to answer, and
//! the entries in its settings that run us. No I/O: files, the clock and what was kept come as arguments.
//!
//! | step | door |
//! |---|---|
//! | standard input → what happened | [`Input::read`] |
//! | end of the transcript → tokens in the window | [`last_usage`] |
//! | settings, model, tokens → percent | [`Thresholds`] |
//! | what was kept, what happened, percent → answer | [`decide`] |
//! | answer → standard output, standard error, exit code | [`Output::of`] |
//! | settings of the client → settings with our entries, and without | [`install`], [`remove`] |
//!
//! The formats are those of Claude Code's reference of hooks. A hook that fails must never exit with
//! [`EXIT_BLOCKED`]: the client takes that for a decision, and erases the person's prompt.

mod decide;
#[cfg(test)]
mod golden;
mod input;
#[cfg(test)]
mod laws;
mod output;
mod settings;
#[cfg(test)]
mod tests;
mod usage;
#[cfg(test)]
mod usage_test;
mod window;

pub use decide::{Answer, STATE_TTL, Say, Seen, State, decide};
pub use input::{
    Event, Happened, Input, OVERRIDE, Prompt, SYNC_COMMAND, SessionName, Source, Trigger,
};
pub use output::{EXIT_BLOCKED, OUTPUT_UNITS_MAX, Output};
pub use settings::{Merged, changes, install, remove};
pub use usage::{TAIL_BYTES, Tail, Usage, last_usage};
pub use window::{Thresholds, model_in_settings, percent};
