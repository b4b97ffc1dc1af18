//! Finds the words that a claim rests on. The model is never asked: each string of a claim is looked
//! for in the slice, exactly, then folded, then by its rare words; what must occur and does not, or
//! what is not there at all, quarantines the claim with the reason.

mod fold;
mod language;
mod literal;
mod mark;
mod overlap;
mod verdict;

pub use verdict::{SCORE_MIN, ground};

/// The most evidence kept for one string of a claim, in pieces.
const EVIDENCE_PER_STRING_MAX: usize = 3;
/// The longest piece of evidence that is copied out of an entry, in bytes.
const EVIDENCE_BYTES_MAX: usize = 400;
