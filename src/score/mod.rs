//! How good an extraction is, against what a person says it should hold. Pure; counts, and rates of them.
//!
//! An item of the gold is *answered* by a staged record of its kind that says it: whose text meets its terms
//! or, where it has none, is similar enough to its statement. Records and items are assigned one to one.
//!
//! | measure | hits | of |
//! |---|---|---|
//! | precision | records that answer an item | staged records |
//! | recall | items that are answered | items |
//! | F1 | twice the answered items | items and staged records |
//! | core recall | core items that are answered | core items |
//! | succeeded | attempts whose outcome is the item's | items with an outcome that a record speaks of |
//! | grounded | strings of staged records with evidence | strings of staged records |
//! | quarantined | records in quarantine | records in quarantine, and staged ones |
//! | restraint | things not to be said that no staged record says | things not to be said |
//!
//! *Example.* The gold has three items, two of them core, and one thing not to be said. Five records are
//! staged: two answer core items, one says what is not to be said, two say something else; one more is in
//! quarantine. Precision is 2/5, recall 2/3, F1 4/8, core recall 2/2, restraint 0/1, quarantined 1/6.
//!
//! Counts of many conversations are added up before a rate is taken, so that a long one weighs more.

mod assign;
mod gold;
mod interval;
#[cfg(test)]
mod laws;
mod measure;
mod similar;
#[cfg(test)]
mod tests;

pub use gold::{Forbidden, Gold, Importance, Item};
pub use interval::{Interval, RESAMPLES, interval};
pub use measure::{Counts, Rate, Score, Tally, score};
pub use similar::{SIMILARITY_MIN, similarity};
