//! Content of a directory as plain data.

use super::tag::SOURCE_DIGITS_MIN;
use crate::domain::{Claim, Memory, MemoryId, SessionId, Timestamp};
use crate::privacy::{Gate, Redacted};

/// Everything that the directory shows.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Memories of one namespace, including superseded and retracted ones.
    pub memories: &'a [Memory],
    /// Sessions that have a file.
    pub sessions: &'a [SessionNote],
    /// Memories that contradict one another, or may.
    pub contradictions: &'a [Contradiction],
    /// Memories that name something missing in the code, and the text that says so.
    pub missing: &'a [(MemoryId, String)],
    /// Date for files that change.
    pub today: Timestamp,
    /// Redacts joined or truncated text once more.
    pub gate: &'a Gate,
}

/// Text between an entry and the tag of the entry that it contradicts.
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

/// Words of a mark for what `by` may have done to `memory`, while the pair is open.
pub(crate) fn suspicion(memory: &Memory, by: &Memory) -> Option<&'static str> {
    let is_later = (memory.valid_from, memory.id) < (by.valid_from, by.id);
    match (&memory.claim, &by.claim) {
        (Claim::Request(_), Claim::Attempt(it)) if it.succeeded => Some("possibly done by"),
        (Claim::Request(_), Claim::Attempt(_)) => Some("possibly tried by"),
        (Claim::Request(_), Claim::Decision(_)) => Some("possibly withdrawn by"),
        (Claim::Discussion(_), Claim::Decision(_)) => Some("possibly settled by"),
        (Claim::Attempt(_), Claim::Attempt(it)) if is_later && it.succeeded => {
            Some("possibly solved by")
        }
        (one, other) if one.kind() != other.kind() => None,
        _ if is_later => Some("possibly outdated by"),
        _ => Some("possibly in place of"),
    }
}

/// Result of a session.
#[derive(Clone, Debug)]
pub struct SessionNote {
    /// The session.
    pub id: SessionId,
    /// Start of the session; names its file.
    pub began: Timestamp,
    /// Time of its last entry.
    pub ended: Option<Timestamp>,
    /// Topic, for the file name.
    pub topic: Option<Redacted>,
    /// Memories of the session; attempts, decisions, open requests and open discussions are listed.
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
