//! Everything in its order, up to a number of messages; then the oldest go, but no system message.

use super::held::{Account, Count, Held};
use super::{ConversationMemory, Limits, MemoryMessage, MemoryType, saved};
use crate::domain::{Finding, Message, Role, Severity};
use crate::privacy::Redacted;
use serde_json::json;

/// Keeps the last messages, system messages counted among them.
#[derive(Clone, Debug)]
pub struct BufferMemory {
    pub(super) max_messages: Option<u32>,
    pub(super) held: Held,
}

impl BufferMemory {
    pub(super) fn new(limits: &Limits, session_id: Option<Redacted>) -> BufferMemory {
        BufferMemory { max_messages: limits.max_messages, held: Held::new(session_id) }
    }

    /// What system messages leave for the others.
    pub(super) fn room(&self) -> usize {
        let most = self.max_messages.map_or(usize::MAX, |most| most as usize);
        most.saturating_sub(self.held.pinned.len())
    }
}

impl ConversationMemory for BufferMemory {
    fn kind(&self) -> MemoryType {
        MemoryType::Buffer
    }

    fn add_message(&mut self, message: MemoryMessage) -> Option<Finding> {
        let is_system = message.role == Role::System;
        self.held.push(message);
        self.held.let_go_above(self.room());
        let filled = is_system
            && self.max_messages.is_some_and(|most| self.held.pinned.len() == most as usize);
        filled.then(|| {
            let what = "system messages alone fill the buffer: nothing else is kept";
            Finding::new(Severity::Warning, "pinned-fill", 0, what)
        })
    }

    fn messages(&self) -> Vec<Message> {
        self.held.in_order().map(|kept| kept.message.shown()).collect()
    }

    fn account(&self) -> Account {
        self.held.account(Count::default())
    }

    fn clear(&mut self) {
        self.held.clear();
    }

    fn to_json(&self) -> String {
        saved::write(
            self.kind(),
            json!({ "max_messages": self.max_messages }),
            &self.held,
            json!({}),
        )
    }
}
