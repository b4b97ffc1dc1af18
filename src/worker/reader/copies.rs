//! Copies: clients write what was said into other files too, and people copy files. What is read once
//! is not read again.

use crate::domain::{Digest, Entry, EntryKind, SessionId, Speaker};
use crate::privacy::Redacted;
use std::collections::HashMap;

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// Entries of the sessions, so that a copy in another file is not read twice.
    sessions: HashMap<SessionId, Vec<u64>>,
    /// Records by the number of the file that had them first: clients copy them into a new file
    /// when a session is resumed.
    records: HashMap<u64, u32>,
    file_number: u32,
}

impl Copies {
    /// Another file begins.
    pub(super) fn next_file(&mut self) {
        self.file_number += 1;
    }

    /// The entries of `session`, as [`mark_of`] sees them, if it was read before.
    pub(super) fn of(&self, session: SessionId) -> Option<Vec<u64>> {
        self.sessions.get(&session).cloned()
    }

    /// `session` is read now.
    pub(super) fn begin(&mut self, session: SessionId) {
        self.sessions.insert(session, Vec::new());
    }

    /// The next entry of `session`.
    pub(super) fn note(&mut self, session: SessionId, mark: u64) {
        self.sessions.entry(session).or_default().push(mark);
    }

    /// Whether another file had this record first. Two entries of one record share its id; only the
    /// same record elsewhere is a copy.
    pub(super) fn is_elsewhere(&mut self, native_id: &Redacted) -> bool {
        let key = Digest::of_bytes(native_id.as_str().as_bytes()).short();
        *self.records.entry(key).or_insert(self.file_number) != self.file_number
    }
}

/// Who said what, so that the same entry is known in another file. What tools said is stored shortened
/// and counts as the same.
pub(in crate::worker) fn mark_of(entry: &Entry) -> u64 {
    let tool = matches!(entry.speaker, Speaker::Tool | Speaker::Web);
    match tool || entry.kind == EntryKind::ToolCall {
        true => 0,
        false => Digest::of(&[entry.kind.name(), entry.text.as_str()]).short() | 1,
    }
}
