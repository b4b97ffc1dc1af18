//! Turns staged records into memory: candidates → rules → adjudication → plan. Only plans, never
//! changes anything; keeps both sides when in doubt.

mod adjudication;
mod answer;
mod candidates;
mod cross_kind;
mod deed;
mod dialogue;
mod history;
mod incoming;
mod parts;
mod person_verdict;
mod phrases;
mod plan;
mod planner;
mod quantity;
mod question;
mod retrospective;
mod rules;
mod stated;
mod statement;
mod subject;
mod verdict;
mod withdraw;

pub(crate) use adjudication::{Adjudicated, AdjudicationSpec, Asked, PairBatch, Undecided};
pub(crate) use answer::schema_files;
pub use candidates::Memories;
pub(crate) use candidates::{Index, Numbers, Posting, Postings, entered_keys};
pub(crate) use cross_kind::looked_up_keys;
pub(crate) use dialogue::Dialogue;
pub(crate) use history::{Event, as_of, forget, history};
pub(crate) use person_verdict::{PersonVerdict, UnsettledPair, decide};
pub use planner::consolidate;
pub(crate) use planner::{Draft, UNRELATED, is_judged};
pub(crate) use retrospective::{Category, Note, Retrospective, reflect, standing};
pub(crate) use subject::SearchKeys;
pub use verdict::Verdicts;
pub(crate) use verdict::{NearbyStatement, OpenPair};
pub(crate) use withdraw::{
    Withdrawn, one_after_another, rests_on_nothing_else, withdraw, withdraw_first,
};

#[cfg(test)]
pub(crate) use verdict::Verdict;

#[cfg(test)]
mod changed_test;
#[cfg(test)]
mod deed_test;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod past_test;
#[cfg(test)]
mod restated_test;
#[cfg(test)]
mod settle_test;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod again_test;
#[cfg(test)]
mod withdraw_test;
