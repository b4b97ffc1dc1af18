//! A message as a memory keeps it: a role, words behind the gate, and what is known of it.

use super::Metadata;
use crate::domain::{Message, Role, Timestamp, Tokens, estimate_tokens};
use crate::privacy::Redacted;

/// One message of a conversation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MemoryMessage {
    /// Who speaks. System messages are pinned: no strategy lets go of one.
    pub role: Role,
    /// The words.
    pub content: Redacted,
    /// When it was said, where that is known.
    pub at: Option<Timestamp>,
    /// The conversation's own id for it.
    pub id: Option<Redacted>,
    /// Its tokens, where somebody counted; estimated otherwise.
    pub token_count: Option<Tokens>,
    /// What else is known; under `entities` a list of names, or an object for each name.
    pub metadata: Metadata,
}

impl MemoryMessage {
    /// A message with nothing but words.
    pub fn new(role: Role, content: Redacted) -> MemoryMessage {
        let (at, id, token_count) = (None, None, None);
        MemoryMessage { role, content, at, id, token_count, metadata: Metadata::default() }
    }

    /// A person's message.
    pub fn user(content: Redacted) -> MemoryMessage {
        MemoryMessage::new(Role::User, content)
    }

    /// A model's message.
    pub fn assistant(content: Redacted) -> MemoryMessage {
        MemoryMessage::new(Role::Assistant, content)
    }

    /// Rules and context; pinned.
    pub fn system(content: Redacted) -> MemoryMessage {
        MemoryMessage::new(Role::System, content)
    }

    /// How many tokens its words are.
    pub fn tokens(&self) -> Tokens {
        self.token_count.unwrap_or_else(|| estimate_tokens(self.content.as_str()))
    }

    /// As a model sees it.
    pub(super) fn shown(&self) -> Message {
        Message { role: self.role, content: self.content.clone() }
    }
}
