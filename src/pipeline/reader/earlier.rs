//! Earlier readings of a session: looks them up in the store, and recognises copies, because clients repeat
//! conversations in other files, and people copy files. What is read once is not read again.

use crate::adapters::walk::is_other_file;
use crate::domain::{Digest, Entry, EntryKind, Format, Session, SessionId, Speaker, Timestamp};
use crate::pipeline::namespace::Namespaces;
use crate::privacy::{Gate, Redacted};
use crate::store::{SpokenEntry, Store, StoreResult};
use std::collections::{BTreeSet, HashMap, HashSet};
use tokio::runtime::Handle;

#[derive(Debug, Default)]
pub(crate) struct EarlierReading {
    /// Number of entries at the end of each complete reading.
    pub(crate) ends: BTreeSet<u32>,
    /// Marks of its entries, if it was read from another file that still exists.
    pub(crate) elsewhere: Option<Vec<u64>>,
    /// Marks of its stored entries.
    pub(crate) marks: Vec<u64>,
    /// Number of its first entries whose slices are final and not handed over again.
    pub(crate) taken: u32,
    /// Text of its last entry, if that waits for more and may still be written.
    pub(crate) last: Option<Redacted>,
    pub(crate) next_index: u32,
    /// Suffix of its name, if it is another conversation than the stored one of that name.
    pub(crate) apart: Option<String>,
    pub(crate) forgotten: bool,
    /// True if part of it is stored.
    pub(crate) is_known: bool,
}

/// Queries the store for a reader; blocks its thread.
pub(crate) struct Lookup {
    handle: Handle,
    pub(crate) store: Store,
    /// Clock; `None` if nothing is written.
    clock: Option<fn() -> Timestamp>,
    /// Namespaces by folder.
    namespaces: HashMap<String, String>,
    /// Sessions by namespace and the key of their first record, read on first use.
    beginnings: Option<(Format, Beginnings)>,
}

type Beginnings = HashMap<(String, u64), SessionId>;

impl Lookup {
    /// Creates a lookup that blocks its thread on the runtime of `handle`.
    pub(crate) fn new(handle: Handle, store: Store, clock: Option<fn() -> Timestamp>) -> Lookup {
        Lookup { handle, store, clock, namespaces: HashMap::new(), beginnings: None }
    }

    /// Current time; `None` if nothing is written.
    pub(crate) fn now(&self) -> Option<Timestamp> {
        self.clock.map(|clock| clock())
    }

    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.handle.block_on(work)
    }

    pub(crate) fn namespace(&mut self, folder: &str, gate: &Gate) -> StoreResult<String> {
        if let Some(known) = self.namespaces.get(folder) {
            return Ok(known.clone());
        }
        let found = self.block_on(self.namespaces_of(gate).of_folder(folder))?;
        self.namespaces.insert(folder.to_owned(), found.clone());
        Ok(found)
    }

    pub(super) fn namespaces_of<'a>(&'a self, gate: &'a Gate) -> Namespaces<'a> {
        Namespaces { store: &self.store, gate }
    }

    pub(crate) fn marks(&self, session: SessionId, entries: u32) -> StoreResult<Vec<u64>> {
        let mut marks = Vec::new();
        if entries > 0 {
            let each = |said: SpokenEntry| {
                marks.resize(said.ordinal as usize, 0);
                marks.push(mark(said.speaker, said.kind, said.text.as_str()));
            };
            self.block_on(self.store.spoken_entries(session, 0..entries, each))?;
        }
        Ok(marks)
    }

    /// Returns the earlier reading for a reader of the whole session. `own` means that the file is the
    /// session's, whichever file it was read from before.
    pub(crate) fn whole(&self, session: &Session, own: bool) -> StoreResult<EarlierReading> {
        let Some(progress) = self.block_on(self.store.growth(session.id))? else {
            return Ok(EarlierReading::default());
        };
        if progress.forgotten {
            return Ok(EarlierReading { forgotten: true, ..EarlierReading::default() });
        }
        let ends = progress.ends.into_iter().collect();
        let moved = !own && is_other_file(&progress.path, &session.path);
        let elsewhere = moved.then(|| self.marks(session.id, u32::MAX)).transpose()?;
        let elsewhere = elsewhere.filter(|marks| !marks.is_empty());
        Ok(EarlierReading { ends, elsewhere, is_known: true, ..EarlierReading::default() })
    }

    /// Copy keys of the records of the session that `session` was forked from, by its first record `first`. A session
    /// of another namespace is no origin.
    pub(crate) fn fork_of(&mut self, session: &Session, first: &Redacted) -> StoreResult<Vec<u64>> {
        let format = session.format;
        if self.beginnings.as_ref().is_none_or(|(known, _)| *known != format) {
            let found = self.block_on(self.store.first_entry_ids(format))?;
            let mut beginnings = HashMap::new();
            for (first, session, namespace) in found {
                beginnings.entry((namespace, record_key(&first))).or_insert(session);
            }
            self.beginnings = Some((format, beginnings));
        }
        let first = (session.namespace.clone(), record_key(first));
        let origin = self.beginnings.as_ref().and_then(|(_, found)| found.get(&first).copied());
        let Some(origin) = origin.filter(|it| *it != session.id) else { return Ok(Vec::new()) };
        let marks = self.marks(origin, u32::MAX)?;
        let own = self.block_on(self.store.own_entries(origin))?;
        let key = |(ordinal, native_id): &(u32, Redacted)| {
            Some(copy_key(session, native_id, *marks.get(*ordinal as usize)?))
        };
        Ok(own.iter().filter_map(key).collect())
    }

    /// Keys of the records that are stored as a session's own.
    pub(crate) fn own_records(&self, session: SessionId) -> StoreResult<HashSet<u64>> {
        let own = self.block_on(self.store.own_entries(session))?;
        Ok(own.iter().map(|(_, native_id)| record_key(native_id)).collect())
    }
}

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
    /// Number of the file that had each record first, by copy key: clients copy records into a new file when a session
    /// is resumed.
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

    /// True if another file had the record of this copy key first, and one of the two is a fork.
    pub(super) fn is_elsewhere(&mut self, key: u64, is_fork: bool) -> bool {
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

    /// Makes the current file the session's own, because it continues where the session ended. The file is read again.
    pub(super) fn take_over(&mut self, session: SessionId) {
        self.own.insert(session);
        self.again = Some(self.sessions.remove(&session).unwrap_or_default());
    }
}

pub(crate) fn record_key(native_id: &Redacted) -> u64 {
    Digest::of_bytes(native_id.as_str().as_bytes()).short()
}

/// Key of a record that is a copy of every other with this key: the same id and the same words in one namespace.
pub(super) fn copy_key(session: &Session, native_id: &Redacted, mark: u64) -> u64 {
    Digest::of(&[&session.namespace, native_id.as_str(), &mark.to_string()]).short()
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
    taken: u32,
    last: Option<Redacted>,
    compared: u32,
    same: u32,
    /// The first entry that differs, and its mark.
    at: Option<(u32, u64)>,
}

impl StoredPrefix {
    pub(super) fn new(before: EarlierReading) -> StoredPrefix {
        let EarlierReading { marks, taken, last, .. } = before;
        StoredPrefix { marks, taken, last, ..StoredPrefix::default() }
    }

    /// True if the entry is not to be handed over: its slice is final, or it differs, or follows one that differs.
    pub(super) fn has(&mut self, entry: &Entry, mark: u64) -> bool {
        let Some(known) = self.marks.get(entry.ordinal as usize) else { return self.at.is_some() };
        let is_last = self.marks.len() == entry.ordinal as usize + 1;
        let last = self.last.as_ref().filter(|_| is_last);
        let grows = last.is_some_and(|last| {
            !last.as_str().is_empty() && entry.text.as_str().starts_with(last.as_str())
        });
        let is_same = mark == *known || grows;
        if mark != UNTOLD || *known != UNTOLD {
            self.compared += 1;
            self.same += u32::from(is_same);
        }
        if !is_same {
            self.at.get_or_insert((entry.ordinal, mark));
        }
        entry.ordinal < self.taken || self.at.is_some()
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
