//! Turns staged records into memory: which record says something new, which repeats a memory, completes, contradicts
//! or replaces one. It plans and changes nothing; what is unrelated is not looked at, and in doubt both are kept.

mod across;
mod ask;
mod course;
mod dates;
mod forget;
mod handed;
mod history;
mod incoming;
mod index;
mod lessons;
mod likeness;
mod marker;
mod memories;
mod planner;
mod reflect;
mod replay;
mod rules;
mod settle;
mod subject;
mod verdict;
mod withdraw;

pub use ask::{
    BATCH_RECORDS_MAX, BATCH_TOKENS_MAX, Batch, Exchange, Judged, Judgement, Judging,
    SCHEMA_VERSION, TOOL_NAME, WriteConsolidated, batches, offer, schema_files,
};
pub use course::{REMINDERS_MAX, REPAIRS_MAX, REPLY_TOKENS_DEFAULT, Step, Way};
pub use dates::{Resolved, annotate, relative_dates};
pub use forget::{Forgotten, forget};
pub use history::{Event, as_of, history};
pub use lessons::{
    LESSON_LETTERS_MAX, LESSON_RECORDS_MAX, LESSONS_MAX, Learned, Lesson, LookBack,
    MATERIAL_RECORDS_MAX, MATERIAL_TOKENS_MAX, MATERIALS_MAX, Material, REFLECT_SCHEMA_VERSION,
    REFLECT_TOOL_NAME, Reflecting, WriteReflection, materials, reflect_schema_files,
};
pub use memories::Memories;
pub use planner::{consolidate, consolidate_with, is_judged};
pub use reflect::{Category, Made, Note, Retrospective, reflect, reflect_with, standing};
pub use rules::rules;
pub use settle::OpenPair;
pub use verdict::{Verdict, Verdicts};
pub use withdraw::{Withdrawn, rests_on_nothing_else, withdraw};

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod past_test;
#[cfg(test)]
mod settle_test;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod withdraw_test;
