//! The prompts: files in `prompts/`, compiled in, checked and compiled once. A rendered prompt is
//! woven from our own words and text that has passed the gate; no text is ever read as a template.

mod batch;
mod custom;
mod extraction;
mod template;
#[cfg(test)]
mod tests;

pub(crate) use batch::{BatchPrompt, SummaryPrompt};
pub(crate) use custom::{CustomPrompts, PromptFile};
pub(crate) use custom::{CustomTexts, FORMER_RETRY_NAME};
#[cfg(test)]
pub(crate) use extraction::BUILT_IN;
pub use extraction::Prompts;
pub(crate) use extraction::{Complaint, RetryReason};
pub(crate) use template::Form;
