//! Reads transcripts in order on a thread of its own and hands slices to a sink. Never runs far ahead of the sink.

mod current;
mod file;
mod earlier;

pub(super) use current::named_by;
pub(super) use earlier::{Differs, EarlierReading, Lookup, mark, mark_of};
pub(super) use file::{Bytes, found};

use super::preamble::{Preamble, PreambleSettings};
use super::tally::Tally;
use crate::adapters::walk::Candidate;
use crate::domain::{Entry, Finding, Format, Session, Timestamp};
use crate::memory_card::Card;
use crate::privacy::{Gate, Redacted, Report};
use crate::slicing::{Cutting, SliceSettings};
use crate::store::{StoreError, StoreResult, StoredCopy};
use earlier::Copies;
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Maximum number of conversations stored under one name, each of which replaced another in its file.
const APART_MAX: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) format: Option<Format>,
    pub(super) namespace: Option<String>,
    pub(super) since: Option<Timestamp>,
    /// With `since`, reads sessions without a time too.
    pub(super) undated: bool,
    pub(super) sessions_max: Option<u64>,
    pub(super) slice: SliceSettings,
    /// Name for the one conversation in a file, instead of its own.
    pub(super) session: Option<String>,
    /// Settings of preambles; `None` if no model is asked.
    pub(super) preamble: Option<Arc<PreambleSettings>>,
    pub(super) cards: bool,
    pub(super) also_forgotten: bool,
    /// Maximum size of all copies in the vault together, in bytes; `None` if no copies are kept.
    pub(super) vault: Option<u64>,
    /// True to count skipped entries here, since no store does.
    pub(super) dry_run: bool,
    pub(super) cancel: CancellationToken,
}

/// Work for a sink, session by session.
#[derive(Debug)]
pub(super) enum Work {
    Begin(Arc<Session>),
    /// An entry that no model reads.
    Skipped(Box<Entry>),
    /// The next slice, and its preamble.
    Slice(Box<Cutting>, Option<Redacted>),
    /// The session has no entry, or all of it is a copy of other sessions: discards it.
    Left,
    End(Box<SessionEnding>),
}

#[derive(Debug)]
pub(super) struct SessionEnding {
    pub(super) entries: u32,
    pub(super) findings: Vec<Finding>,
    pub(super) masked: Report,
    pub(super) whole: bool,
    /// True if it was read from its copy in the vault.
    pub(super) is_copy: bool,
    pub(super) preamble: Option<Box<Preamble>>,
    pub(super) card: Option<Box<Card>>,
}

/// Consumer of a reader's work, which can stop the reading.
pub(super) trait SliceSink {
    fn lookup(&mut self) -> Option<&mut Lookup> {
        None
    }

    /// Returns earlier readings of a session. `own` means that the file is the session's, whichever was read before.
    fn before(&mut self, session: &Session, own: bool) -> StoreResult<EarlierReading> {
        match self.lookup() {
            Some(lookup) => lookup.whole(session, own),
            None => Ok(EarlierReading::default()),
        }
    }

    fn hand(&mut self, work: Work) -> StoreResult<ControlFlow<()>>;

    /// Handles a rewritten session. None of its slices reach the sink until the file is read again. Only for sinks
    /// that return marks of entries.
    fn differs(&mut self, _session: &Session, _differs: Differs) {}
}

pub(super) struct Reader<'a, S> {
    reading: &'a Reading,
    gate: &'a Gate,
    pub(super) tally: &'a Tally,
    pub(super) sink: S,
    copies: Copies,
    /// The error that ended the reading.
    failed: Option<StoreError>,
}

impl<'a, S: SliceSink> Reader<'a, S> {
    pub(super) fn new(reading: &'a Reading, gate: &'a Gate, tally: &'a Tally, sink: S) -> Self {
        Reader { reading, gate, tally, sink, copies: Copies::default(), failed: None }
    }

    /// Reads files and copies in the vault, until the sink stops the reading.
    pub(super) fn all(&mut self, files: &[Candidate], copies: &[StoredCopy]) -> ControlFlow<()> {
        files.iter().try_for_each(|file| self.file(file))?;
        copies.iter().try_for_each(|copy| self.copy(copy))
    }

    pub(super) fn finish(self) -> StoreResult<S> {
        self.failed.map_or(Ok(self.sink), Err)
    }

    /// True if no other file is to be read.
    pub(super) fn is_over(&self) -> bool {
        self.failed.is_some() || self.reading.cancel.is_cancelled()
    }

    fn hand(&mut self, work: Work) -> ControlFlow<()> {
        if self.is_over() {
            return ControlFlow::Break(());
        }
        let handed = self.sink.hand(work).map(Some);
        match self.noted(handed) {
            Some(flow) if !self.is_over() => flow,
            Some(_) | None => ControlFlow::Break(()),
        }
    }

    fn look_up<T: Default>(&mut self, question: impl FnOnce(&mut Lookup) -> StoreResult<T>) -> T {
        let found = self.sink.lookup().map(question).transpose();
        self.noted(found).unwrap_or_default()
    }

    fn noted<T: Default>(&mut self, outcome: StoreResult<T>) -> T {
        outcome.unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            T::default()
        })
    }
}
