//! Finds the words that support a claim, without a model: each string of a claim is searched in the slice, exactly, then
//! folded, then by its rare words. A claim without support, or with a literal that does not occur, is quarantined.

mod fold;
mod language;
mod literal;
mod names;
mod negation;
mod numbers;
mod overlap;
mod preference;
mod verdict;

pub use verdict::{Grounded, ground};

/// The most evidence kept for one string of a claim, in pieces.
const EVIDENCE_PER_STRING_MAX: usize = 3;
/// The longest piece of evidence that is copied out of an entry, in bytes.
const EVIDENCE_BYTES_MAX: usize = 400;
