//! With which prompt a recording was made: one of those at hand, or another. A recording has no name of a prompt, so it
//! is told by the words around the slice.

use super::cassette_file::Question;
use super::stale::fence;
use crate::domain::{Digest, EMBEDDING, Request, Role};
use std::collections::BTreeSet;

/// The prompts at hand, by what they say around a slice. What they say of a broken answer is not looked at.
#[derive(Clone, Debug, Default)]
pub struct KeptPrompts {
    said: BTreeSet<(Role, Digest)>,
}

impl KeptPrompts {
    /// Adds that of the first request about a slice.
    pub fn add(&mut self, first: &Request) {
        let messages = first.messages.iter();
        self.said.extend(messages.map(|it| (it.role, frame(it.content.as_str()))));
    }

    /// Whether a question was asked with another prompt. One without words was written by hand, for whatever is asked;
    /// one for an embedding has no prompt.
    pub(super) fn is_other(&self, question: &Question) -> bool {
        if question.tool == EMBEDDING {
            return false;
        }
        let first = |role: Role| question.messages.iter().find(|it| it.role == role);
        let opening = [Role::System, Role::User].map(first);
        let mut said = opening.into_iter().flatten();
        said.any(|it| !self.said.contains(&(it.role, frame(&it.content.text()))))
    }
}

/// What a prompt says around what is fenced in.
fn frame(text: &str) -> Digest {
    let Some(fence) = fence(text) else { return Digest::of(&[text]) };
    let mut frame = text.to_owned();
    for name in ["before", "transcript"] {
        let (open, close) = (format!("<{name}-{fence}>"), format!("</{name}-{fence}>"));
        let around = frame.split_once(&open).and_then(|(before, rest)| {
            let (_, after) = rest.rsplit_once(&close)?;
            Some(format!("{before}{open}{close}{after}"))
        });
        frame = around.unwrap_or(frame);
    }
    Digest::of(&[&frame.replace(fence, "")])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_the_same_around_every_slice_and_another_where_a_prompt_says_other_words() {
        let one = "Old:\n<before-1a>\nx\n</before-1a>\nIt ends at `1a`.\n<transcript-1a>\ny\n</transcript-1a>\nGo.";
        let other = one.replace("1a", "2b").replace("\nx\n", "\nz\n").replace("\ny\n", "\nv\n");
        assert_eq!(frame(one), frame(&other));
        for (from, to) in [("Old", "Earlier"), ("ends", "stops"), ("Go", "Now")] {
            assert_ne!(frame(one), frame(&one.replace(from, to)), "{from}");
        }
    }
}
