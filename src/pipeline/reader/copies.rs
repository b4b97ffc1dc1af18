//! Copies: clients write what was said into other files too, and people copy files. What is read once
//! is not read again.

use super::Differs;
use crate::domain::{Digest, Entry, EntryKind, SessionId, Speaker};
use crate::privacy::Redacted;
use std::collections::{HashMap, HashSet};

/// What was read of a session.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// Its entries.
    pub(super) marks: Vec<u64>,
    pub(super) slices: u64,
}

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// Entries of the sessions, so that a copy in another file is not read twice.
    sessions: HashMap<SessionId, Read>,
    /// Sessions whose file is the one that is read now, or was read last.
    own: HashSet<SessionId>,
    /// The session that the file takes over, for which it must be read again.
    again: Option<Read>,
    /// Of the sessions, those that the last file began.
    begun: Vec<SessionId>,
    /// Records by the number of the file that had them first: clients copy them into a new file
    /// when a session is resumed.
    records: HashMap<u64, u32>,
    file_number: u32,
}

impl Copies {
    /// Another file begins.
    pub(super) fn next_file(&mut self) {
        self.file_number += 1;
        self.begun.clear();
    }

    /// The last file begins again.
    pub(super) fn same_file(&mut self) {
        for session in self.begun.drain(..) {
            self.sessions.remove(&session);
        }
    }

    /// The entries of `session`, as [`mark_of`] sees them, if it was read before.
    pub(super) fn of(&self, session: SessionId) -> Option<Vec<u64>> {
        self.sessions.get(&session).map(|read| read.marks.clone())
    }

    /// `session` is read now.
    pub(super) fn begin(&mut self, session: SessionId) {
        self.sessions.insert(session, Read::default());
        self.begun.push(session);
    }

    /// The next entry of `session`.
    pub(super) fn note(&mut self, session: SessionId, mark: u64) {
        self.sessions.entry(session).or_default().marks.push(mark);
    }

    /// So many slices of `session` more were cut.
    pub(super) fn cut(&mut self, session: SessionId, slices: usize) {
        self.sessions.entry(session).or_default().slices += slices as u64;
    }

    /// Whether another file had this record first. Two entries of one record share its id; only the
    /// same record elsewhere is a copy.
    pub(super) fn is_elsewhere(&mut self, native_id: &Redacted) -> bool {
        let key = record_key(native_id);
        *self.records.entry(key).or_insert(self.file_number) != self.file_number
    }

    /// These records are stored as another session's.
    pub(super) fn belong_elsewhere(&mut self, records: Vec<u64>) {
        for key in records {
            self.records.entry(key).or_insert(0);
        }
    }

    /// The file that is read goes on where the session ended: it is the session's from now on, and is
    /// read again.
    pub(super) fn take_over(&mut self, session: SessionId) {
        self.own.insert(session);
        self.again = Some(self.sessions.remove(&session).unwrap_or_default());
    }

    /// Whether the session's file is the one that is read.
    pub(super) fn is_own(&self, session: SessionId) -> bool {
        self.own.contains(&session)
    }

    /// What other files had of the session for which this one must be read again, if it must; says so
    /// once.
    pub(super) fn take_again(&mut self) -> Option<Read> {
        self.again.take()
    }
}

/// The key by which a client's record is known.
pub(crate) fn record_key(native_id: &Redacted) -> u64 {
    Digest::of_bytes(native_id.as_str().as_bytes()).short()
}

/// The beginning of a session as it was taken in, beside the same session as it is read now.
#[derive(Debug, Default)]
pub(super) struct Taken {
    marks: Vec<u64>,
    compared: u32,
    same: u32,
    /// The first that differs, and its mark.
    at: Option<(u32, u64)>,
}

impl Taken {
    pub(super) fn new(marks: Vec<u64>) -> Taken {
        Taken { marks, ..Taken::default() }
    }

    /// Whether the entry at `ordinal` is not to be handed over: it was taken in before, or it stands
    /// behind one that is not as it was taken in.
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

/// The mark of what tools said.
const UNTOLD: u64 = 0;

/// Who said what, so that the same entry is known in another file or another time. What tools said is
/// stored shortened and counts as the same.
pub(crate) fn mark_of(entry: &Entry) -> u64 {
    mark(entry.speaker, entry.kind, entry.text.as_str())
}

/// As [`mark_of`], of who said what.
pub(crate) fn mark(speaker: Speaker, kind: EntryKind, text: &str) -> u64 {
    let tool = matches!(speaker, Speaker::Tool | Speaker::Web);
    match tool || kind == EntryKind::ToolCall {
        true => UNTOLD,
        false => Digest::of(&[kind.name(), text]).short() | 1,
    }
}
