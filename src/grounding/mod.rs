//! Finds evidence for claims without a model: searches each string in the slice exactly, then
//! folded, then by rare words. Quarantines claims without support or with an absent literal.

mod fold;
mod language;
mod literal;
mod negation;
mod numbers;
mod overlap;
mod preference;
mod verdict;

pub use verdict::{Grounded, ground};

/// Maximum pieces of evidence for one string of a claim.
const EVIDENCE_PER_STRING_MAX: usize = 3;
/// Maximum length of one piece of evidence, in bytes.
const EVIDENCE_BYTES_MAX: usize = 400;
