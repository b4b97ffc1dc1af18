//! Client hooks: their input, the use of the context window, the decision, the output, and
//! annalist's parts of the clients' files. No I/O: files, the clock and the state are arguments.
//!
//! The formats are those of Claude Code's hook reference, which other clients adopted. No failure
//! may exit with [`EXIT_BLOCKED`](decide::EXIT_BLOCKED): the client would erase the prompt.

mod answer;
mod clients;
mod decide;
#[cfg(test)]
mod golden;
mod input;
mod json_edit;
#[cfg(test)]
mod laws;
mod servers;
mod settings;
#[cfg(test)]
mod tests;
mod window;
#[cfg(test)]
mod window_test;

pub(crate) use answer::AnswerEnd;
pub(crate) use clients::{CLIENTS, Client, Content, Deletion, SETTINGS};
#[cfg(test)]
use decide::EXIT_BLOCKED;
pub use decide::OUTPUT_UNITS_MAX;
pub(crate) use decide::{Answer, Output, STATE_TTL, Say, Seen, State, decide};
#[cfg(test)]
use input::OVERRIDE;
pub(crate) use input::{Event, Input};
pub(crate) use settings::{Merged, changes, has_hook, has_plugin, quoted};
pub(crate) use window::{SessionModels, Tail, Thresholds, Usage, model_in_settings, percent};
pub use window::{TAIL_BYTES, last_usage};
