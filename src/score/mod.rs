//! How good an extraction is, against what a person says it should hold. Pure; counts, and rates of them.
//!
//! An item of the gold is *answered* by a staged record of its kind that says it: whose text meets its terms
//! or, where it has none, whose fields are similar enough to those it names or, where it names none, whose text
//! is to its statement. Records and items are assigned one to one: as many items as possible have a record, and
//! of all ways to do that it is one with the most similarity.
//!
//! Two texts are as similar as they share words: twice the shared ones, of the words of both (Dice). Case and the
//! width of letters do not count, and where a script has no blanks, two letters side by side are a word. Of two
//! claims it is the mean of the fields: of a decision `chosen` weighs 4, `rationale` 2, `options` 1; of a discussion
//! `topic` 2, `points` 1; of an attempt `action` 2, `result` 1; of a request `summary` and `intent` 2, `target` 1.
//! The texts of a list are paired so that the similarity is the most, and two empty lists are the same. What is not
//! alike at all answers nothing, whatever `similarity` a gold file names. Where a case names a model of embeddings, texts
//! are as similar to statements as the cosine of the angle between their vectors says.
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
//! quarantine. Precision is 2/5, recall 2/3, F1 4/8, core recall 2/2, restraint 0/1, quarantined 1/6. These are the
//! counts of one conversation: no interval goes with them, which takes ten ([`CONVERSATIONS_MIN`]).
//!
//! Which records can be similar enough is looked up by their rarest words (`index`), so that hardly more are compared
//! than are; where all of them are, as sentences from one template, that is every record with every item.
//!
//! Counts of many conversations are added up before a rate is taken, so that a long one weighs more.

mod assign;
mod case;
mod compare;
mod fields;
mod gold;
mod index;
mod interval;
mod junit;
#[cfg(test)]
mod laws;
mod matching;
mod measure;
mod page;
mod report;
mod schema;
mod similar;
mod terms;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use case::{Bars, Below, CASE_SETTINGS, Case, SCHEMA_VERSION, Tolerances};
pub use compare::{
    AsksChange, CaseComparison, Comparison, CountsChange, ForbiddenChange, ItemChange, KindChange,
    MeasureChange, RecordChange, RecordSide, Trend, VariantComparison, Written, compare,
};
pub use gold::{Forbidden, Gold, Importance, Item, Wanted, Why};
pub use interval::{CONVERSATIONS_MIN, Interval, RESAMPLES, interval};
pub use junit::junit;
pub use matching::{Score, Vectors, score, score_by, texts_to_embed};
pub use measure::{Asks, Counts, Measure, Rate, Restraints, Sums, Tally};
pub use page::page;
pub use report::{
    CaseCounts, CaseOutcome, CaseReport, EvidenceReport, ForbiddenReport, ItemReport,
    MeasuredInterval, Origins, Problem, PromptName, RecordReport, Report, Shown, ShownEntry,
    Summary, Variant, headline,
};
pub use schema::schema_files;
pub use similar::{EMBEDDING_SIMILARITY_MIN, SIMILARITY_MIN, similarity};
