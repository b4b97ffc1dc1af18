//! One turn in a sentence or two.

use super::cut::Size;
use crate::domain::{Timestamp, Tokens};
use crate::privacy::{Redacted, Woven};
use serde::{Deserialize, Serialize};

/// What stands before a line in the block.
pub(super) const INDENT: &str = "\n  ";

/// One turn: what the person wanted, what was done, and what is still open.
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
pub struct CompactSummary {
    /// Its number in the dialog, from 1.
    pub turn_number: u32,
    /// What stands behind "User", such as `asked about calendar query`.
    pub user_intent: Redacted,
    /// What stands behind "I", such as `called list_events`.
    pub action_taken: Redacted,
    /// What waits for the person, such as `waiting for confirmation`.
    pub pending_items: Vec<Redacted>,
    /// When the turn began, where its transcript says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
    /// The ordinals of its first and its last entry, where it was told by a transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<(u32, u32)>,
}

impl CompactSummary {
    /// The turn as one line: `Turn 2: User asked about x, I called y. Pending: z`.
    pub fn line(&self) -> Redacted {
        let number = self.turn_number.to_string();
        let mut line = vec![
            Woven::Ours("Turn "),
            Woven::Label(&number),
            Woven::Ours(": User "),
            Woven::Passed(&self.user_intent),
            Woven::Ours(", I "),
            Woven::Passed(&self.action_taken),
            Woven::Ours("."),
        ];
        for (at, item) in self.pending_items.iter().enumerate() {
            line.push(Woven::Ours(if at == 0 { " Pending: " } else { ", " }));
            line.push(Woven::Passed(item));
        }
        Redacted::weave(&line)
    }

    /// How long its line is.
    pub fn tokens(&self) -> Tokens {
        self.size().tokens()
    }

    /// The room that its line takes in the block.
    pub(super) fn size(&self) -> Size {
        let line = Size::of(self.line().as_str());
        Size { chars: line.chars + INDENT.len(), words: line.words }
    }
}
