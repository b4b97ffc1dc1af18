//! Which entries of a transcript are messages: a memory holds what was said, on one line of the
//! conversation. What tools were called with and answered is none; it would push out the rest.

use super::MemoryMessage;
use crate::domain::{Branch, Entry, EntryKind, Format, Role, Skip, Speaker};
use serde::{Deserialize, Serialize};

/// The line that a conversation is followed on: the one of its first message. The file of a sub-agent
/// has no other than that of the sub-agent; elsewhere its talk stands aside.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Line(Option<Branch>);

impl Line {
    /// The message that the next entry is, in a transcript of `format`; none if it is no message, or
    /// stands on another line.
    pub fn message(&mut self, entry: &Entry, format: Format) -> Option<MemoryMessage> {
        let role = role_of(entry, format)?;
        match entry.branch {
            Branch::Abandoned => return None,
            Branch::Active | Branch::Sidechain => {}
        }
        let is_on = *self.0.get_or_insert(entry.branch) == entry.branch;
        is_on.then(|| MemoryMessage {
            at: entry.at,
            id: entry.native_id.clone(),
            ..MemoryMessage::new(role, entry.text.clone())
        })
    }
}

fn role_of(entry: &Entry, format: Format) -> Option<Role> {
    let role = match entry.kind {
        EntryKind::Prompt
        | EntryKind::Steering
        | EntryKind::Answer
        | EntryKind::Rejection
        | EntryKind::Command => Role::User,
        EntryKind::Text => match entry.speaker {
            Speaker::Person => Role::User,
            Speaker::Assistant | Speaker::Tool | Speaker::Web | Speaker::Client => Role::Assistant,
        },
        EntryKind::Summary => Role::System,
        EntryKind::Injected if has_system_messages(format) => Role::System,
        EntryKind::Injected | EntryKind::Notice | EntryKind::ToolCall | EntryKind::ToolResult => {
            return None;
        }
    };
    let is_read = match entry.skip {
        None => true,
        Some(Skip::Injected) => role == Role::System,
        Some(Skip::Copied | Skip::Summarised | Skip::Private | Skip::Empty | Skip::TakenBack) => {
            false
        }
    };
    is_read.then_some(role)
}

/// Whether context that nobody said is a message of its own there. The clients of agents put files,
/// reminders and skills between the messages without end; pinned, they would push out what was said.
fn has_system_messages(format: Format) -> bool {
    match format {
        Format::Openai | Format::Anthropic | Format::Chatgpt | Format::Plain | Format::Slice => {
            true
        }
        Format::ClaudeCode | Format::Codex | Format::Aider | Format::Specstory => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::testing::said;
    use crate::privacy::Gate;

    fn entry(speaker: Speaker, kind: EntryKind, skip: Option<Skip>) -> Entry {
        Entry { skip, ..said(0, (speaker, kind), Gate::new(&[]).redact("words")) }
    }

    #[track_caller]
    fn check(entry: &Entry, format: Format, expected: Option<Role>) {
        let found = Line::default().message(entry, format).map(|message| message.role);
        assert_eq!(found, expected, "{format} {entry:?}");
    }

    #[test]
    fn what_was_said_is_a_message_and_what_tools_did_is_none() {
        let said = |speaker, kind| entry(speaker, kind, None);
        check(&said(Speaker::Person, EntryKind::Prompt), Format::Codex, Some(Role::User));
        check(&said(Speaker::Person, EntryKind::Rejection), Format::Codex, Some(Role::User));
        check(&said(Speaker::Assistant, EntryKind::Text), Format::Codex, Some(Role::Assistant));
        check(&said(Speaker::Client, EntryKind::Summary), Format::ClaudeCode, Some(Role::System));
        for kind in [EntryKind::ToolCall, EntryKind::ToolResult, EntryKind::Notice] {
            check(&said(Speaker::Tool, kind), Format::Openai, None);
        }
    }

    #[test]
    fn a_chats_context_is_a_system_message_and_an_agents_is_none() {
        let context = entry(Speaker::Client, EntryKind::Injected, Some(Skip::Injected));
        check(&context, Format::Openai, Some(Role::System));
        check(&context, Format::Plain, Some(Role::System));
        check(&context, Format::ClaudeCode, None);
    }

    #[test]
    fn what_no_model_reads_is_no_message() {
        for skip in Skip::ALL {
            let skipped = entry(Speaker::Person, EntryKind::Prompt, Some(*skip));
            check(&skipped, Format::Openai, None);
        }
    }

    #[test]
    fn a_conversation_is_followed_on_the_line_that_it_began_on() {
        let mut line = Line::default();
        let mut on = |branch| {
            let said = entry(Speaker::Assistant, EntryKind::Text, None);
            line.message(&Entry { branch, ..said }, Format::ClaudeCode).is_some()
        };
        assert!(!on(Branch::Abandoned) && on(Branch::Sidechain));
        assert!(!on(Branch::Active) && on(Branch::Sidechain) && !on(Branch::Abandoned));
    }
}
