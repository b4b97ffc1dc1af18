//! Knowledge of earlier readings: which slices of a session are extracted, how far it was stored, and
//! which entries are copies of another session's.

use crate::adapters::walk::is_other_file;
use crate::domain::{Digest, Format, RunId, RunState, Session, SessionId};
use crate::pipeline::extractor::run_id;
use crate::pipeline::reader::{Before, mark, record_key};
use crate::pipeline::stage::CUT_IN_TWO;
use crate::privacy::Redacted;
use crate::slicing::{Cutting, halve};
use crate::store::{KnownRun, SpokenEntry, Store, StoreError};
use std::collections::{HashMap, HashSet};
use tokio::runtime::Handle;

/// Looks into the store for a reader; blocks its thread.
pub(crate) struct Lookup {
    handle: Handle,
    store: Store,
    /// The sessions that begin with a record, once they were asked for.
    beginnings: Option<HashMap<u64, SessionId>>,
}

/// The runs of a session that asked in one way.
#[derive(Debug)]
pub(crate) struct KnownRuns {
    asking: Digest,
    runs: HashMap<RunId, KnownRun>,
}

/// A slice, or a part of one that was cut in two.
pub(crate) enum Known {
    /// It was extracted by this run.
    Done(RunId),
    /// It was too long, and its halves follow.
    Cut(RunId),
    /// It was not, and is to be asked about in this generation beyond its last one.
    Open(Cutting, u32),
}

impl Lookup {
    /// For a thread on which blocking is allowed, of the runtime of `handle`.
    pub(crate) fn new(handle: Handle, store: Store) -> Lookup {
        Lookup { handle, store, beginnings: None }
    }

    pub(crate) fn block_on<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.handle.block_on(work)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The session's stored entries, as the reader marks them.
    pub(crate) fn marks(&self, session: SessionId, entries: u32) -> Result<Vec<u64>, StoreError> {
        let mut marks = Vec::new();
        if entries > 0 {
            let each = |said: SpokenEntry| {
                marks.resize(said.ordinal as usize, 0);
                marks.push(mark(said.speaker, said.kind, said.text.as_str()));
            };
            self.block_on(self.store.said(session, 0..entries, each))?;
        }
        Ok(marks)
    }

    /// What a reader of the whole session needs to know; `own` says that its file is the session's,
    /// whatever file it was read from before.
    pub(crate) fn whole(&self, session: &Session, own: bool) -> Result<Before, StoreError> {
        let id = session.id;
        let Some(progress) = self.block_on(self.store.growth(id))? else {
            return Ok(Before::default());
        };
        if progress.forgotten {
            return Ok(Before { forgotten: true, ..Before::default() });
        }
        let ends = progress.ends.into_iter().collect();
        let moved = !own && is_other_file(&progress.path, &session.path);
        let elsewhere = moved.then(|| self.marks(id, u32::MAX)).transpose()?;
        let elsewhere = elsewhere.filter(|marks| !marks.is_empty());
        Ok(Before { ends, elsewhere, is_known: true, ..Before::default() })
    }

    /// The finished runs of a session that asked in this way.
    pub(crate) fn runs(&self, id: SessionId, asking: Digest) -> Result<KnownRuns, StoreError> {
        let runs = self.block_on(self.store.known_runs(id, asking))?;
        Ok(KnownRuns { asking, runs: runs.into_iter().map(|run| (run.run, run)).collect() })
    }

    /// The keys of the records of the session that `session` repeats from its beginning, which is
    /// `native_id`; none if there is no such session.
    pub(crate) fn fork_of(
        &mut self,
        session: &Session,
        native_id: &Redacted,
    ) -> Result<Vec<u64>, StoreError> {
        if self.beginnings.is_none() {
            let found = self.block_on(self.store.beginnings(Format::ClaudeCode))?;
            let mut beginnings = HashMap::new();
            for (native_id, session) in found {
                beginnings.entry(record_key(&native_id)).or_insert(session);
            }
            self.beginnings = Some(beginnings);
        }
        let beginnings = self.beginnings.as_ref();
        let forked = beginnings.and_then(|found| found.get(&record_key(native_id)));
        match forked.filter(|forked| **forked != session.id) {
            Some(forked) => Ok(self.own_records(*forked)?.into_iter().collect()),
            None => Ok(Vec::new()),
        }
    }

    /// The keys of the records that are stored as a session's own.
    pub(crate) fn own_records(&self, session: SessionId) -> Result<HashSet<u64>, StoreError> {
        let own = self.block_on(self.store.own_entries(session))?;
        Ok(own.iter().map(record_key).collect())
    }
}

impl KnownRuns {
    /// Runs of nothing yet.
    pub(crate) fn none(asking: Digest) -> KnownRuns {
        KnownRuns { asking, runs: HashMap::new() }
    }

    /// Hands over the parts of a slice, which is one part unless it was cut in two before.
    pub(crate) fn split(&self, cutting: Cutting, retry_failed: bool, each: &mut dyn FnMut(Known)) {
        // Halves of halves: bounded by SLICE_TOKENS_MIN, below which nothing is cut again.
        let mut waiting = vec![cutting];
        while let Some(cutting) = waiting.pop() {
            let id = run_id(self.asking, cutting.slice.id);
            let known = self.runs.get(&id);
            match known.filter(|known| known.state == RunState::Done) {
                Some(done) if done.failure.as_deref() == Some(CUT_IN_TWO) => {
                    each(Known::Cut(id));
                    waiting.extend(halve(&cutting).into_iter().rev());
                }
                Some(_) => each(Known::Done(id)),
                None => {
                    let failed = known.filter(|_| retry_failed);
                    let afresh = failed.map_or(0, |known| known.afresh() - known.generation);
                    each(Known::Open(cutting, afresh));
                }
            }
        }
    }
}
