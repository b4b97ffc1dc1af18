//! Summary of the last few turns for a prompt: one line per turn, newest last, within a token budget. Rule-based,
//! without a model: recognises seven languages and writes English.
//!
//! A turn is a user message and everything done about it, up to the next message. Steering, answers and refusals
//! belong to the current turn. Rewound entries, sub-agents' messages, injected context and reasoning are excluded.

mod block;
mod cut;
#[cfg(test)]
mod laws;
mod phrases;
mod summary;
#[cfg(test)]
mod tests;
mod turn;

pub(crate) use block::{Block, DIALOG_TOKENS_MIN};
pub use block::{DialogLimits, DialogRules};
pub use summary::DialogSummary;
pub(crate) use turn::{CompactSummary, document};
