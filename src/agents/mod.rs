//! Claude Code's hooks: their input, the fill level of the context window, the decision, the output, and our
//! entries in the client's settings. No I/O: files, the clock and the state come as arguments.
//!
//! The formats are those of Claude Code's hook reference. A hook that fails must never exit with
//! [`EXIT_BLOCKED`](output::EXIT_BLOCKED): the client takes that for a decision and erases the prompt.

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

pub(crate) use decide::STATE_TTL;
pub use decide::{Answer, Say, Seen, State, decide};
#[cfg(test)]
use input::OVERRIDE;
pub use input::{Event, Happened, Input, Prompt, SessionName, Source, Trigger};
#[cfg(test)]
use output::EXIT_BLOCKED;
pub use output::{OUTPUT_UNITS_MAX, Output};
pub(crate) use settings::remove;
pub use settings::{Merged, changes, install};
pub use usage::{TAIL_BYTES, Tail, Usage, last_usage};
pub(crate) use window::model_in_settings;
pub use window::{Thresholds, percent};
