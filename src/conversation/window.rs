//! System messages, and the last of the others.

use super::held::{Account, Count, Held};
use super::{ConversationMemory, Limits, MemoryMessage, MemoryType, saved};
use crate::domain::{Finding, Message};
use crate::privacy::Redacted;
use serde_json::json;

/// Keeps the last messages; system messages stand apart, in front of them.
#[derive(Clone, Debug)]
pub struct WindowMemory {
    pub(super) window_size: u32,
    pub(super) held: Held,
}

impl WindowMemory {
    pub(super) fn new(limits: &Limits, session_id: Option<Redacted>) -> WindowMemory {
        WindowMemory { window_size: limits.window_size, held: Held::new(session_id) }
    }
}

impl ConversationMemory for WindowMemory {
    fn kind(&self) -> MemoryType {
        MemoryType::Window
    }

    fn add_message(&mut self, message: MemoryMessage) -> Option<Finding> {
        self.held.push(message);
        self.held.let_go_above(self.window_size as usize);
        None
    }

    fn messages(&self) -> Vec<Message> {
        self.held.pinned_shown().chain(self.held.others_shown()).collect()
    }

    fn account(&self) -> Account {
        self.held.account(Count::default())
    }

    fn clear(&mut self) {
        self.held.clear();
    }

    fn to_json(&self) -> String {
        saved::write(self.kind(), json!({ "window_size": self.window_size }), &self.held, json!({}))
    }
}
