//! What a prompt is told of the last few turns: a line for each, newest last, within a budget of
//! tokens. Follows the words of both sides by rule, in English and Turkish, and asks no model.
//!
//! A turn is what a person says until they speak up again, and everything done about it. Steering,
//! answers and refusals belong to the turn they fall into. What was rewound, what sub-agents say among
//! themselves, what a client put in and reasoning are no part of it.

mod compact;
mod cut;
mod document;
mod fit;
mod fold;
#[cfg(test)]
mod laws;
mod phrase;
mod question;
mod records;
mod summary;
#[cfg(test)]
mod tests;
mod turn;

pub use compact::CompactSummary;
pub use document::document;
pub use fit::{Block, Fit};
pub use summary::DialogSummary;
pub use turn::{Asked, Turn};

use crate::domain::Tokens;
use crate::privacy::Gate;

/// What the block begins with.
const HEADER: &str = "DIALOG_SUMMARY (last few turns):";
/// The longest block, in tokens, unless settings say otherwise.
const TOKENS_MAX: Tokens = 500;
/// The turns that are kept, unless settings say otherwise.
const TURNS_MAX: u32 = 5;
/// The smallest budget in which the block's header and the shortest line surely fit, in tokens.
pub const DIALOG_TOKENS_MIN: Tokens = 20;

/// How much of a dialog is kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The longest block, header included, in tokens: words, or a quarter of the characters where
    /// that is more.
    pub tokens_max: Tokens,
    /// The most turns.
    pub turns_max: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { tokens_max: TOKENS_MAX, turns_max: TURNS_MAX }
    }
}

/// What every step goes by.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'g> {
    /// Words that are put side by side or cut pass it once more: together they may show what they
    /// did not show apart.
    pub gate: &'g Gate,
    /// How much is kept.
    pub limits: Limits,
}
