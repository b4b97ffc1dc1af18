//! The content of a directory as plain data.

use super::tag::SOURCE_DIGITS_MIN;
use crate::domain::{Memory, MemoryId, SessionId, Timestamp};
use crate::privacy::{Gate, Redacted};

/// Everything that the directory is to show.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The memories of one namespace, superseded and retracted ones too.
    pub memories: &'a [Memory],
    /// The sessions that have a file.
    pub sessions: &'a [SessionNote],
    /// Memories that contradict one another, or may.
    pub contradictions: &'a [Contradiction],
    /// Memories that name what the code no longer has, and the words for it.
    pub missing: &'a [(MemoryId, String)],
    /// The day that a file gets which changes.
    pub today: Timestamp,
    /// Words that are put side by side or cut pass it once more.
    pub gate: &'a Gate,
}

/// Words between a line and the tag of the one that it contradicts.
pub(crate) const CONFLICTS_WITH: &str = "conflicts with";

/// Two memories that contradict one another, or may.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Contradiction {
    /// The first.
    pub one: MemoryId,
    /// The second.
    pub other: MemoryId,
    /// False while the pair is open.
    pub is_certain: bool,
}

/// Result of a session.
#[derive(Clone, Debug)]
pub struct SessionNote {
    /// The session.
    pub id: SessionId,
    /// Its beginning; its file is named for it.
    pub began: Timestamp,
    /// Time of its last entry.
    pub ended: Option<Timestamp>,
    /// Topic, for the name of its file.
    pub topic: Option<Redacted>,
    /// Its memories; attempts, decisions, open requests and open discussions are listed.
    pub memories: Vec<MemoryId>,
}

impl SessionNote {
    pub(super) fn digits(&self) -> String {
        self.id.to_string().chars().take(SOURCE_DIGITS_MIN).collect()
    }

    pub(super) fn tag(&self) -> String {
        format!("session-{}", self.digits())
    }
}
