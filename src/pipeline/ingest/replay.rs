//! Sinks of a replay: one hands whole sessions to a batch of the queue, the other, for dry runs, counts
//! what would be handed over.

use super::known::{Known, KnownRuns, Lookup};
use crate::domain::{CoverageState, Digest, Entry, Finding, RunId, Session, SessionId, Timestamp};
use crate::pipeline::cut::job_of;
use crate::pipeline::reader::{Before, Ended, SliceSink, Work};
use crate::pipeline::stop::unless_cancelled;
use crate::pipeline::tally::Tally;
use crate::pipeline::worker::Batch;
use crate::privacy::{Redacted, Report};
use crate::slicing::Cutting;
use crate::store::{BatchJob, BatchPart, PartEnd, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::mem::take;
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Jobs that are handed over in one transaction: few, so that the first are asked about at once.
const PART_JOBS_MAX: usize = 8;
/// Entries that are handed over in one transaction.
const PART_ENTRIES_MAX: usize = 2_048;

/// How a replay asks.
#[derive(Clone, Copy)]
pub(crate) struct Asking {
    pub(crate) digest: Digest,
    /// Whether slices that failed are asked about afresh.
    pub(crate) retry_failed: bool,
}

/// A session of a replay.
#[derive(Debug)]
pub(crate) struct ReadSession {
    pub(crate) id: SessionId,
    /// How far its entries were handed over.
    pub(crate) reached: u32,
    /// The runs from before that cover it, those of slices that were cut in two included.
    pub(crate) known: Vec<RunId>,
    pub(crate) slices_known: u64,
    /// What was found while it was read to its end; none if the reading was stopped.
    pub(crate) whole: Option<(Vec<Finding>, Report)>,
}

/// Hands what is read to a batch; blocks its thread.
pub(crate) struct ReplaySink {
    lookup: Lookup,
    asking: Asking,
    batch: Arc<Batch>,
    tally: Arc<Tally>,
    closing: CancellationToken,
    clock: fn() -> Timestamp,
    open: Option<OpenSession>,
    /// A session that is read again takes the place of its earlier reading.
    sessions: BTreeMap<SessionId, ReadSession>,
    failed: Option<StoreError>,
}

struct OpenSession {
    session: Arc<Session>,
    runs: KnownRuns,
    begun: bool,
    entries: BTreeMap<u32, Entry>,
    jobs: Vec<BatchJob>,
    read: ReadSession,
}

impl OpenSession {
    fn keep(&mut self, entry: Entry) {
        self.read.reached = self.read.reached.max(entry.ordinal + 1);
        self.entries.insert(entry.ordinal, entry);
    }
}

impl ReplaySink {
    pub(crate) fn new(
        lookup: Lookup,
        asking: Asking,
        batch: Arc<Batch>,
        (tally, closing): (Arc<Tally>, CancellationToken),
        clock: fn() -> Timestamp,
    ) -> ReplaySink {
        let (open, sessions, failed) = (None, BTreeMap::new(), None);
        ReplaySink { lookup, asking, batch, tally, closing, clock, open, sessions, failed }
    }

    /// The sessions that were read.
    ///
    /// # Errors
    /// The store's, if one ended the reading.
    pub(crate) fn finish(mut self) -> Result<Vec<ReadSession>, StoreError> {
        self.close(None);
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.sessions.into_values().collect()),
        }
    }

    fn noted<T: Default>(&mut self, outcome: Result<T, StoreError>) -> T {
        outcome.unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            T::default()
        })
    }

    fn begin(&mut self, session: Arc<Session>) {
        self.close(None);
        let runs = self.lookup.runs(session.id, self.asking.digest);
        let runs = runs.unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            KnownRuns::none(self.asking.digest)
        });
        let read = ReadSession {
            id: session.id,
            reached: 0,
            known: Vec::new(),
            slices_known: 0,
            whole: None,
        };
        let (entries, jobs) = (BTreeMap::new(), Vec::new());
        self.open = Some(OpenSession { session, runs, begun: false, entries, jobs, read });
    }

    fn slice(&mut self, cutting: Cutting, before: Option<&Redacted>) {
        let Some(open) = &mut self.open else { return };
        let highest = cutting.entries.iter().map(|entry| entry.ordinal + 1).max();
        open.read.reached = open.read.reached.max(highest.unwrap_or_default());
        let mut fresh = Vec::new();
        let (mut known, mut done) = (Vec::new(), 0);
        open.runs.split(cutting, self.asking.retry_failed, &mut |part| match part {
            Known::Done(run) => {
                known.push(run);
                done += 1;
            }
            Known::Cut(run) => known.push(run),
            Known::Open(cutting, generation) => fresh.push((cutting, generation)),
        });
        open.read.slices_known += done;
        self.tally.with(|totals| totals.slices_done += u64::from(fresh.is_empty()));
        open.read.known.append(&mut known);
        for (cutting, generation) in fresh {
            let job = job_of(&cutting, before.cloned(), self.asking.digest);
            open.jobs.push(BatchJob { job, generation });
            cutting.entries.into_iter().for_each(|entry| open.keep(entry));
        }
    }

    /// Hands over what has gathered; all of it at the `end` of the session.
    fn flush(&mut self, end: Option<PartEnd>) {
        let Some(open) = self.open.as_mut().filter(|_| self.failed.is_none()) else { return };
        let is_full = open.jobs.len() >= PART_JOBS_MAX || open.entries.len() >= PART_ENTRIES_MAX;
        if end.is_none() && !is_full {
            return;
        }
        let (jobs, begins) = (take(&mut open.jobs), !open.begun);
        open.begun = true;
        let handed = jobs.len();
        let part = BatchPart {
            batch: self.batch.id().to_owned(),
            session: Session::clone(&open.session),
            begins,
            entries: take(&mut open.entries).into_values().collect(),
            jobs,
            asking: self.asking.digest,
            end,
            at: (self.clock)(),
        };
        let outcome = self.lookup.block_on(self.lookup.store().enqueue_part(part));
        self.noted(outcome);
        if handed > 0 {
            self.batch.enqueued(handed);
            let room = async {
                self.batch.room(&self.closing).await;
                Ok(())
            };
            let outcome = self.lookup.block_on(room);
            self.noted(outcome);
        }
    }

    /// Ends the open session; `ended` is none if its reading was stopped.
    fn close(&mut self, ended: Option<Ended>) {
        let whole = ended.filter(|ended| ended.whole);
        if let Some(mut ended) = whole {
            let remembered = ended.preamble.take().map(|mut preamble| {
                preamble.pass(ended.entries);
                preamble.remembered()
            });
            let card = ended.card.take().and_then(|card| serde_json::to_string(&card).ok());
            self.flush(Some(PartEnd { entries: ended.entries, remembered, card }));
            if let Some(open) = &mut self.open {
                open.read.reached = ended.entries;
                open.read.whole = Some((ended.findings, ended.masked));
            }
        }
        // What was not handed over of a session that was stopped is read next time.
        if let Some(open) = self.open.take().filter(|open| open.begun) {
            self.sessions.insert(open.read.id, open.read);
        }
    }
}

impl SliceSink for ReplaySink {
    fn before(&mut self, session: &Session, own: bool) -> Before {
        let before = self.lookup.whole(session, own);
        self.noted(before)
    }

    fn fork_of(&mut self, session: &Session, native_id: &Redacted) -> Vec<u64> {
        let found = self.lookup.fork_of(session, native_id);
        self.noted(found)
    }

    fn own_records(&mut self, session: &Session) -> HashSet<u64> {
        let found = self.lookup.own_records(session.id);
        self.noted(found)
    }

    fn hand(&mut self, work: Work) -> ControlFlow<()> {
        if self.failed.is_some() || self.closing.is_cancelled() {
            return ControlFlow::Break(());
        }
        match work {
            Work::Begin(session) => self.begin(session),
            Work::Skipped(entries) => {
                if let Some(open) = &mut self.open {
                    entries.into_iter().for_each(|entry| open.keep(entry));
                }
            }
            Work::Slice(cutting, before) => {
                self.slice(*cutting, before.as_ref());
                self.flush(None);
            }
            Work::Copy => self.open = None,
            Work::End(ended) => self.close(Some(*ended)),
        }
        match self.failed {
            Some(_) => ControlFlow::Break(()),
            None => unless_cancelled(&self.closing),
        }
    }
}

/// Counts what a replay would hand over.
pub(crate) struct CountSink<'a> {
    /// None where there is no store yet.
    pub(crate) lookup: Option<Lookup>,
    pub(crate) asking: Asking,
    pub(crate) tally: &'a Tally,
    pub(crate) cancel: &'a CancellationToken,
    /// Tokens of a request beside its slice.
    pub(crate) overhead: u64,
    pub(crate) open: Option<Counted>,
    pub(crate) sessions: HashMap<SessionId, Counted>,
    pub(crate) failed: Option<StoreError>,
}

/// What was counted of a session.
pub(crate) struct Counted {
    session: SessionId,
    runs: KnownRuns,
    slices_known: u64,
    slices_open: u64,
    tokens: u64,
    /// Entries of slices that would be asked about.
    pending: BTreeSet<u32>,
    read: BTreeSet<u32>,
}

impl CountSink<'_> {
    /// Adds up the sessions.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn finish(mut self) -> Result<u64, StoreError> {
        if let Some(open) = self.open.take() {
            self.sessions.insert(open.session, open);
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut slices_open = 0;
        for counted in self.sessions.into_values() {
            let known = counted.read.difference(&counted.pending).count() as u64;
            let extracted = match &self.lookup {
                Some(lookup) if known > 0 => {
                    let totals = lookup.store().session_totals(counted.session, u32::MAX);
                    lookup.block_on(totals)?.coverage.extracted.min(known)
                }
                Some(_) | None => 0,
            };
            slices_open += counted.slices_open;
            self.tally.with(|totals| {
                totals.slices_known += counted.slices_known;
                totals.tokens.estimated += counted.tokens;
                totals.coverage.add(CoverageState::Extracted, extracted);
                totals.coverage.add(CoverageState::Nothing, known - extracted);
            });
        }
        Ok(slices_open)
    }

    fn noted<T: Default>(&mut self, outcome: Option<Result<T, StoreError>>) -> T {
        match outcome {
            Some(Ok(found)) => found,
            Some(Err(error)) => {
                self.failed.get_or_insert(error);
                T::default()
            }
            None => T::default(),
        }
    }
}

impl SliceSink for CountSink<'_> {
    fn before(&mut self, session: &Session, own: bool) -> Before {
        let before = self.lookup.as_ref().map(|lookup| lookup.whole(session, own));
        self.noted(before)
    }

    fn fork_of(&mut self, session: &Session, native_id: &Redacted) -> Vec<u64> {
        let found = self.lookup.as_mut().map(|lookup| lookup.fork_of(session, native_id));
        self.noted(found)
    }

    fn own_records(&mut self, session: &Session) -> HashSet<u64> {
        let found = self.lookup.as_ref().map(|lookup| lookup.own_records(session.id));
        self.noted(found)
    }

    fn hand(&mut self, work: Work) -> ControlFlow<()> {
        match work {
            Work::Begin(session) => {
                let digest = self.asking.digest;
                let runs = self.lookup.as_ref().map(|lookup| lookup.runs(session.id, digest));
                let runs = runs.transpose().unwrap_or_else(|error| {
                    self.failed.get_or_insert(error);
                    None
                });
                self.open = Some(Counted {
                    session: session.id,
                    runs: runs.unwrap_or_else(|| KnownRuns::none(digest)),
                    slices_known: 0,
                    slices_open: 0,
                    tokens: 0,
                    pending: BTreeSet::new(),
                    read: BTreeSet::new(),
                });
            }
            Work::Slice(cutting, _) => {
                if let Some(open) = &mut self.open {
                    open.read.extend(cutting.entries.iter().map(|entry| entry.ordinal));
                    let Counted { runs, slices_known, slices_open, tokens, pending, .. } = open;
                    let overhead = self.overhead;
                    runs.split(*cutting, self.asking.retry_failed, &mut |part| match part {
                        Known::Done(_) => *slices_known += 1,
                        Known::Cut(_) => {}
                        Known::Open(cutting, _) => {
                            *slices_open += 1;
                            *tokens += u64::from(cutting.slice.tokens) + overhead;
                            pending.extend(cutting.entries.iter().map(|entry| entry.ordinal));
                        }
                    });
                }
            }
            Work::Skipped(_) => {}
            Work::Copy => self.open = None,
            Work::End(_) => {
                if let Some(open) = self.open.take() {
                    self.sessions.insert(open.session, open);
                }
            }
        }
        match self.failed {
            Some(_) => ControlFlow::Break(()),
            None => unless_cancelled(self.cancel),
        }
    }
}
