//! Summary of the last few turns for a prompt: a line for each, newest last, within a budget of tokens. Made by rule,
//! in English and Turkish, without a model.
//!
//! A turn is what a person says until they speak up again, and everything done about it. Steering,
//! answers and refusals belong to the turn they fall into. What was rewound, what sub-agents say among
//! themselves, what a client put in and reasoning are no part of it.

mod block;
mod cut;
mod document;
#[cfg(test)]
mod laws;
mod phrases;
mod summary;
#[cfg(test)]
mod tests;
mod turn;

pub(crate) use block::{Block, DIALOG_TOKENS_MIN};
pub use block::{DialogLimits, DialogRules};
pub(crate) use document::document;
pub use summary::DialogSummary;
pub(crate) use turn::CompactSummary;
