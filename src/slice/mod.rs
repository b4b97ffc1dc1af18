//! Cuts a session into slices within a token budget: on entry boundaries, never between a tool call
//! and its result, and never leaving anything out but the middle of long tool output, visibly.

mod bound;
mod cut;
mod group;
mod halve;
#[cfg(test)]
mod laws;
mod render;
mod slicer;
mod split;
#[cfg(test)]
mod testing;
mod weave;

pub use bound::bound;
pub use cut::{Cut, MissingEntry, Piece, rebuild};
pub use halve::halve;
pub use render::heading;
pub use slicer::{Settings, Slicer};
pub use weave::Cutting;

/// What the longest label of an entry takes of a slice, in tokens; most take six. A test builds it.
const LABEL_TOKENS_MAX: u32 = 64;
/// What the mark in bounded tool output adds, in tokens.
const MARK_TOKENS_MAX: u32 = 32;
/// The smallest budget of a slice, in tokens; below it a pair of call and result would not fit.
pub const SLICE_TOKENS_MIN: u32 = 400;
/// The smallest bound of tool output, in tokens.
pub const TOOL_TOKENS_MIN: u32 = 40;

/// The largest bound of tool output for slices of `tokens`: a call and its result, both at the
/// bound, with labels and marks, fit in one slice.
pub fn tool_tokens_max(tokens: u32) -> u32 {
    (tokens / 2).saturating_sub(LABEL_TOKENS_MAX + MARK_TOKENS_MAX)
}

const _: () = assert!(SLICE_TOKENS_MIN / 2 > LABEL_TOKENS_MAX + MARK_TOKENS_MAX + TOOL_TOKENS_MIN);
