//! Recognises copies: clients repeat conversations in other files, and people copy files. What is read
//! once is not read again.

use crate::domain::{Digest, Entry, EntryKind, SessionId, Speaker};
use crate::privacy::Redacted;
use std::collections::{HashMap, HashSet};

/// Marks of a session's entries, and its number of slices.
#[derive(Debug, Default)]
pub(super) struct SessionMarks {
    pub(super) marks: Vec<u64>,
    pub(super) slices: u64,
}

#[derive(Debug, Default)]
pub(super) struct Copies {
    /// Entries of the sessions, to recognise a copy in another file.
    pub(super) sessions: HashMap<SessionId, SessionMarks>,
    /// Sessions that a file took over because it continues them.
    pub(super) own: HashSet<SessionId>,
    /// The session that the file takes over, for which it must be read again.
    pub(super) again: Option<SessionMarks>,
    /// Sessions that the current file began.
    begun: Vec<SessionId>,
    /// Number of the file that had each record first: clients copy records into a new file when a
    /// session is resumed.
    records: HashMap<u64, u32>,
    /// Records that a fork had first.
    of_forks: HashSet<u64>,
    file_number: u32,
}

impl Copies {
    pub(super) fn next_file(&mut self) {
        self.file_number += 1;
        self.begun.clear();
    }

    /// Forgets the last file, because it is read again.
    pub(super) fn same_file(&mut self) {
        for session in self.begun.drain(..) {
            self.sessions.remove(&session);
        }
    }

    pub(super) fn begin(&mut self, session: SessionId) {
        self.sessions.insert(session, SessionMarks::default());
        self.begun.push(session);
    }

    pub(super) fn of(&mut self, session: SessionId) -> &mut SessionMarks {
        self.sessions.entry(session).or_default()
    }

    /// True if another file had this record first, and one of the two is a fork. Two entries of one
    /// record share its id; only the same record elsewhere is a copy.
    pub(super) fn is_elsewhere(&mut self, native_id: &Redacted, is_fork: bool) -> bool {
        let key = record_key(native_id);
        let is_own = *self.records.entry(key).or_insert(self.file_number) == self.file_number;
        if is_own && is_fork {
            self.of_forks.insert(key);
        }
        !is_own && (is_fork || self.of_forks.contains(&key))
    }

    /// Registers records that are stored as another session's.
    pub(super) fn belong_elsewhere(&mut self, records: Vec<u64>) {
        for key in records {
            self.records.entry(key).or_insert(0);
        }
    }

    /// Makes the current file the session's own, because it continues where the session ended. The file
    /// is read again.
    pub(super) fn take_over(&mut self, session: SessionId) {
        self.own.insert(session);
        self.again = Some(self.sessions.remove(&session).unwrap_or_default());
    }
}

pub(crate) fn record_key(native_id: &Redacted) -> u64 {
    Digest::of_bytes(native_id.as_str().as_bytes()).short()
}

/// Differences of a session from its stored beginning.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Differs {
    /// The first entry that differs.
    pub(crate) at: u32,
    /// Its mark, as it is read now.
    pub(crate) mark: u64,
    /// Number of compared entries, without tool calls and results.
    pub(crate) compared: u32,
    /// Number of those that are equal.
    pub(crate) same: u32,
}

/// The stored beginning of a session, compared with the same session as it is read now.
#[derive(Debug, Default)]
pub(super) struct StoredPrefix {
    marks: Vec<u64>,
    compared: u32,
    same: u32,
    /// The first entry that differs, and its mark.
    at: Option<(u32, u64)>,
}

impl StoredPrefix {
    pub(super) fn new(marks: Vec<u64>) -> StoredPrefix {
        StoredPrefix { marks, ..StoredPrefix::default() }
    }

    /// True if the entry at `ordinal` is not to be handed over: it is stored, or follows one that differs.
    pub(super) fn has(&mut self, ordinal: u32, mark: u64) -> bool {
        let Some(known) = self.marks.get(ordinal as usize) else { return self.at.is_some() };
        if mark != UNTOLD || *known != UNTOLD {
            self.compared += 1;
            self.same += u32::from(mark == *known);
        }
        if mark != *known {
            self.at.get_or_insert((ordinal, mark));
        }
        true
    }

    pub(super) fn differs(&self) -> Option<Differs> {
        let (compared, same) = (self.compared, self.same);
        self.at.map(|(at, mark)| Differs { at, mark, compared, same })
    }
}

/// Mark of tool calls and results.
const UNTOLD: u64 = 0;

/// Mark of an entry, which identifies it in another file or in a later reading. Tool calls and results
/// are stored truncated and count as equal.
pub(crate) fn mark_of(entry: &Entry) -> u64 {
    mark(entry.speaker, entry.kind, entry.text.as_str())
}

pub(crate) fn mark(speaker: Speaker, kind: EntryKind, text: &str) -> u64 {
    let tool = matches!(speaker, Speaker::Tool | Speaker::Web);
    match tool || kind == EntryKind::ToolCall {
        true => UNTOLD,
        false => Digest::of(&[kind.name(), text]).short() | 1,
    }
}
