//! What a model is asked when messages of a conversation are to become a part of its summary. A prompt
//! of its own, not one of the set that extracts: changing it makes no new runs.

use super::file::{File, PromptError};
use super::frame::{Frame, Input};
use crate::privacy::{Redacted, Woven};

/// The text that is compiled in. Inputs `existing`, `messages`.
const BUILT_IN: &str = include_str!("../../prompts/summary.md");

/// A checked prompt that asks for a summary, ready to be filled.
#[derive(Debug)]
pub struct SummaryPrompt {
    version: u32,
    frame: Frame,
}

impl SummaryPrompt {
    /// The prompt that is compiled in.
    #[expect(clippy::expect_used, reason = "the text is part of the binary, and a test reads it")]
    pub fn built_in() -> SummaryPrompt {
        SummaryPrompt::read(BUILT_IN).expect("the prompt that is compiled in is in order")
    }

    /// Reads and checks a prompt, as [`Prompts::read`](super::Prompts::read) does.
    pub fn read(text: &str) -> Result<SummaryPrompt, PromptError> {
        let file = File::read("summary", text)?;
        let frame = Frame::compile(&file, &[], &[Input::Existing, Input::Messages])?;
        Ok(SummaryPrompt { version: file.version, frame })
    }

    /// The version of the prompt.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The prompt for a summary of `messages`, `role: text` lines, that takes up the `existing` one.
    pub fn fill(&self, existing: Option<&Redacted>, messages: &Redacted) -> Redacted {
        let existing = existing.map_or(Woven::Ours("None"), Woven::Passed);
        self.frame.fill(&[(Input::Existing, existing), (Input::Messages, Woven::Passed(messages))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_existing_summary_and_the_messages_are_filled_in() {
        let prompt = SummaryPrompt::built_in();
        let passed = |text: &str| Redacted::reopened(text.to_owned());
        let first = prompt.fill(None, &passed("user: {{ a }}"));
        assert_eq!(prompt.version(), 1);
        assert_eq!(
            first.as_str(),
            "Summarize the following conversation, incorporating any existing summary:\n\n\
             Existing Summary: None\n\nNew Conversation:\nuser: {{ a }}\n\nUpdated Summary:"
        );
        let next = prompt.fill(Some(&passed("They met.")), &passed("user: b"));
        assert!(next.as_str().contains("Existing Summary: They met.\n"));
    }
}
