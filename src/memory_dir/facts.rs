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
    /// The day that a file gets which changes.
    pub today: Timestamp,
    /// Words that are put side by side or cut pass it once more.
    pub gate: &'a Gate,
}

/// Result of a session.
#[derive(Clone, Debug)]
pub struct SessionNote {
    /// The session.
    pub id: SessionId,
    /// Its beginning; its file is named for it.
    pub began: Timestamp,
    /// Topic, for the name of its file.
    pub topic: Option<Redacted>,
    /// A few sentences.
    pub summary: Vec<Redacted>,
    /// Its memories; attempts, decisions and open discussions are listed.
    pub memories: Vec<MemoryId>,
    /// Its memory card: the names of the fields, in small letters, with their items.
    pub card: Vec<(String, Vec<Redacted>)>,
}

impl SessionNote {
    pub(super) fn digits(&self) -> String {
        self.id.to_string().chars().take(SOURCE_DIGITS_MIN).collect()
    }

    pub(super) fn tag(&self) -> String {
        format!("session-{}", self.digits())
    }
}
