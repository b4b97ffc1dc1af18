//! Prompts: files in `prompts/`, compiled in, validated and parsed once. A rendered prompt consists
//! of our own words and redacted text; no input is ever parsed as a template.

mod batch;
mod custom;
mod extraction;
mod template;
#[cfg(test)]
mod tests;

pub(crate) use batch::{BatchPrompt, SummaryPrompt};
pub(crate) use custom::{CustomPrompts, read_extraction, read_prompts, write_built_in};
#[cfg(test)]
pub(crate) use extraction::BUILT_IN;
pub use extraction::Prompts;
pub(crate) use extraction::{Complaint, RetryReason};
pub(crate) use template::Form;
