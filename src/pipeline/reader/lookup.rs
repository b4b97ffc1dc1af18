//! Looks up earlier readings of a session in the store.

use super::copies::{mark, record_key};
use crate::adapters::walk::is_other_file;
use crate::domain::{Format, Session, SessionId, Timestamp};
use crate::pipeline::namespace::Namespaces;
use crate::privacy::{Gate, Redacted};
use crate::store::{SpokenEntry, Store, StoreError};
use std::collections::{BTreeSet, HashMap, HashSet};
use tokio::runtime::Handle;

#[derive(Debug, Default)]
pub(crate) struct EarlierReading {
    /// Number of entries at the end of each complete reading.
    pub(crate) ends: BTreeSet<u32>,
    /// Marks of its entries, if it was read from another file that still exists.
    pub(crate) elsewhere: Option<Vec<u64>>,
    /// Marks of its first entries, whose slices are final and not handed over again.
    pub(crate) taken: Vec<u64>,
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
    store: Store,
    /// Clock for renaming namespaces; if `None`, none is renamed.
    clock: Option<fn() -> Timestamp>,
    /// Namespaces by folder.
    namespaces: HashMap<String, String>,
    /// Sessions by the key of their first record, read on first use.
    beginnings: Option<(Format, HashMap<u64, SessionId>)>,
}

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

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The namespace of a folder, as the store has it.
    pub(crate) fn namespace(&mut self, folder: &str, gate: &Gate) -> Result<String, StoreError> {
        if let Some(known) = self.namespaces.get(folder) {
            return Ok(known.clone());
        }
        let found = self.block_on(self.namespaces_of(gate).of_folder(folder))?;
        self.namespaces.insert(folder.to_owned(), found.clone());
        Ok(found)
    }

    /// The session as the store knows it.
    pub(crate) fn known(
        &self,
        session: &Session,
        native_id: &str,
        is_named: bool,
        gate: &Gate,
    ) -> Result<Option<Session>, StoreError> {
        let namespaces = self.namespaces_of(gate);
        self.block_on(namespaces.known(session.clone(), native_id, is_named)).map(Some)
    }

    fn namespaces_of<'a>(&'a self, gate: &'a Gate) -> Namespaces<'a> {
        Namespaces { store: &self.store, gate, clock: self.clock }
    }

    /// Marks of the session's stored entries.
    pub(crate) fn marks(&self, session: SessionId, entries: u32) -> Result<Vec<u64>, StoreError> {
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
    pub(crate) fn whole(&self, session: &Session, own: bool) -> Result<EarlierReading, StoreError> {
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

    /// Keys of the records of the session that `session` was forked from, by its first record `native_id`.
    pub(crate) fn fork_of(
        &mut self,
        session: &Session,
        native_id: &Redacted,
    ) -> Result<Vec<u64>, StoreError> {
        let format = session.format;
        if self.beginnings.as_ref().is_none_or(|(known, _)| *known != format) {
            let found = self.block_on(self.store.first_entry_ids(format))?;
            let mut beginnings = HashMap::new();
            for (native_id, session) in found {
                beginnings.entry(record_key(&native_id)).or_insert(session);
            }
            self.beginnings = Some((format, beginnings));
        }
        let beginnings = self.beginnings.as_ref();
        let forked = beginnings.and_then(|(_, found)| found.get(&record_key(native_id)));
        match forked.filter(|forked| **forked != session.id) {
            Some(forked) => Ok(self.own_records(*forked)?.into_iter().collect()),
            None => Ok(Vec::new()),
        }
    }

    /// Keys of the records that are stored as a session's own.
    pub(crate) fn own_records(&self, session: SessionId) -> Result<HashSet<u64>, StoreError> {
        let own = self.block_on(self.store.own_entries(session))?;
        Ok(own.iter().map(record_key).collect())
    }
}
