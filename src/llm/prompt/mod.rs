//! Prompts: files in `prompts/`, compiled in, validated and parsed once. A rendered prompt consists
//! of our own words and redacted text; no input is ever parsed as a template.

mod custom;
mod sets;
mod template;
#[cfg(test)]
mod tests;

pub(crate) use custom::{CustomPrompts, read_extraction, read_prompts, write_built_in};
#[cfg(test)]
pub(crate) use sets::BUILT_IN;
pub use sets::Prompts;
pub(crate) use sets::{BatchPrompt, Complaint, RetryReason, SummaryPrompt};
pub(crate) use template::Form;
