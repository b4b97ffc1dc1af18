//! Cuts a session into slices within a token budget: on entry boundaries, and never between a tool
//! call and its result. Omits nothing but the middle of long tool output, with a mark.

mod assemble;
mod bound;
mod cut;
#[cfg(test)]
mod laws;
mod slicer;
#[cfg(test)]
mod testing;

pub use assemble::Cutting;
pub(crate) use assemble::heading;
pub(crate) use bound::bound;
pub(crate) use cut::SliceCut;
pub(crate) use cut::{halve, rebuild};
pub use slicer::{SLICE_TOKENS_MIN, SliceSettings, Slicer, TOOL_TOKENS_MIN, tool_tokens_max};
