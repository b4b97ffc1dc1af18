//! Sinks of a replay: one enqueues whole sessions in a batch, the other, for dry runs, only counts.

use crate::domain::{
    CoverageState, Digest, Entry, Finding, RunId, RunState, Session, SessionId, Timestamp,
};
use crate::pipeline::extractor::{CUT_IN_TWO, job_of, run_id};
use crate::pipeline::reader::{Lookup, SessionEnding, SliceSink, Work};
use crate::pipeline::tally::Tally;
use crate::pipeline::worker::Batch;
use crate::privacy::{Redacted, Report};
use crate::slicing::{Cutting, halve};
use crate::store::{BatchJob, BatchPart, KnownRun, PartEnd, StoreResult};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::take;
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Maximum number of jobs in one transaction; few, so that work on the first begins at once.
const PART_JOBS_MAX: usize = 8;
const PART_ENTRIES_MAX: usize = 2_048;

#[derive(Clone, Copy)]
pub(crate) struct Asking {
    pub(crate) digest: Digest,
    pub(crate) retry_failed: bool,
}

#[derive(Debug)]
pub(crate) struct ReadSession {
    pub(crate) id: SessionId,
    /// Number of entries that were enqueued.
    pub(crate) reached: u32,
    /// Earlier runs that cover it, including those of slices that were cut in two.
    pub(crate) known: Vec<RunId>,
    pub(crate) slices_known: u64,
    /// Results of a complete reading; `None` if the reading was stopped.
    pub(crate) whole: Option<(Vec<Finding>, Report)>,
    /// True if it was read from its copy in the vault.
    pub(crate) is_copy: bool,
}

/// Enqueues sessions in a batch; blocks its thread.
pub(crate) struct ReplaySink {
    pub(crate) lookup: Lookup,
    pub(crate) asking: Asking,
    pub(crate) batch: Arc<Batch>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) closing: CancellationToken,
    pub(crate) clock: fn() -> Timestamp,
    pub(crate) open: Option<OpenSession>,
    /// A repeated reading of a session replaces the earlier one.
    pub(crate) sessions: BTreeMap<SessionId, ReadSession>,
}

pub(crate) struct OpenSession {
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
    pub(crate) fn finish(mut self) -> StoreResult<Vec<ReadSession>> {
        self.close(None)?;
        Ok(self.sessions.into_values().collect())
    }

    fn begin(&mut self, session: Arc<Session>) -> StoreResult<()> {
        self.close(None)?;
        let runs = self.asking.known_runs(&self.lookup, session.id)?;
        let read = ReadSession {
            id: session.id,
            reached: 0,
            known: Vec::new(),
            slices_known: 0,
            whole: None,
            is_copy: false,
        };
        let (entries, jobs) = (BTreeMap::new(), Vec::new());
        self.open = Some(OpenSession { session, runs, begun: false, entries, jobs, read });
        Ok(())
    }

    fn slice(&mut self, cutting: Cutting, preamble: Option<&Redacted>) {
        let Some(open) = &mut self.open else { return };
        let highest = cutting.entries.iter().map(|entry| entry.ordinal + 1).max();
        open.read.reached = open.read.reached.max(highest.unwrap_or_default());
        let split = self.asking.split(cutting, &open.runs);
        open.read.slices_known += split.done;
        self.tally.with(|totals| {
            totals.slices_done += u64::from(split.open.is_empty());
            totals.slices_halved += split.open.len().saturating_sub(1) as u64;
        });
        open.read.known.extend(split.known);
        for (cutting, generation) in split.open {
            let job = job_of(&cutting, preamble.cloned(), self.asking.digest);
            open.jobs.push(BatchJob { job, generation });
            cutting.entries.into_iter().for_each(|entry| open.keep(entry));
        }
    }

    /// Enqueues a full part; at the `end` of the session, the rest.
    fn flush(&mut self, end: Option<PartEnd>) -> StoreResult<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let is_full = open.jobs.len() >= PART_JOBS_MAX || open.entries.len() >= PART_ENTRIES_MAX;
        if end.is_none() && !is_full {
            return Ok(());
        }
        let (jobs, begins) = (take(&mut open.jobs), !open.begun);
        open.begun = true;
        let handed = jobs.len();
        let part = BatchPart {
            batch: self.batch.id.clone(),
            session: Session::clone(&open.session),
            begins,
            entries: take(&mut open.entries).into_values().collect(),
            jobs,
            asking: self.asking.digest,
            end,
            at: (self.clock)(),
        };
        self.lookup.block_on(self.lookup.store.enqueue_part(part))?;
        if handed > 0 {
            self.batch.enqueued(handed);
            self.lookup.block_on(self.batch.room(&self.closing));
        }
        Ok(())
    }

    /// Ends the open session; `ended` is `None` if its reading was stopped.
    fn close(&mut self, ended: Option<SessionEnding>) -> StoreResult<()> {
        let whole = ended.filter(|ended| ended.whole);
        if let Some(mut ended) = whole {
            let remembered = ended.preamble.take().map(|mut preamble| {
                preamble.pass(ended.entries);
                preamble.remembered()
            });
            let card = ended.card.take().and_then(|card| serde_json::to_string(&card).ok());
            self.flush(Some(PartEnd { entries: ended.entries, remembered, card }))?;
            if let Some(open) = &mut self.open {
                open.read.reached = ended.entries;
                open.read.is_copy = ended.is_copy;
                open.read.whole = Some((ended.findings, ended.masked));
            }
        }
        // The rest of an interrupted session is read next time.
        if let Some(open) = self.open.take().filter(|open| open.begun) {
            self.sessions.insert(open.read.id, open.read);
        }
        Ok(())
    }
}

impl SliceSink for ReplaySink {
    fn lookup(&mut self) -> Option<&mut Lookup> {
        Some(&mut self.lookup)
    }

    fn hand(&mut self, work: Work) -> StoreResult<ControlFlow<()>> {
        match work {
            Work::Begin(session) => self.begin(session)?,
            Work::Skipped(entry) => {
                if let Some(open) = &mut self.open {
                    open.keep(*entry);
                }
            }
            Work::Slice(cutting, preamble) => {
                self.slice(*cutting, preamble.as_ref());
                self.flush(None)?;
            }
            Work::Left => self.open = None,
            Work::End(ending) => self.close(Some(*ending))?,
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Counts the jobs that a replay would enqueue.
pub(crate) struct CountSink<'a> {
    /// `None` if there is no store yet.
    pub(crate) lookup: Option<Lookup>,
    pub(crate) asking: Asking,
    pub(crate) tally: &'a Tally,
    /// Tokens of a request besides its slice.
    pub(crate) overhead: u64,
    /// A repeated reading of a session replaces the earlier one.
    pub(crate) sessions: HashMap<SessionId, SessionCount>,
    pub(crate) open: Option<SessionId>,
}

#[derive(Default)]
pub(crate) struct SessionCount {
    runs: KnownRuns,
    slices_known: u64,
    slices_open: u64,
    tokens: u64,
    /// Entries of slices that would be extracted.
    pending: BTreeSet<u32>,
    read: BTreeSet<u32>,
}

impl CountSink<'_> {
    pub(crate) fn finish(self) -> StoreResult<u64> {
        let mut slices_open = 0;
        for (session, counted) in self.sessions {
            let known = counted.read.difference(&counted.pending).count() as u64;
            let extracted = match &self.lookup {
                Some(lookup) if known > 0 => {
                    let totals = lookup.store.session_totals(session, u32::MAX);
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
}

impl SliceSink for CountSink<'_> {
    fn lookup(&mut self) -> Option<&mut Lookup> {
        self.lookup.as_mut()
    }

    fn hand(&mut self, work: Work) -> StoreResult<ControlFlow<()>> {
        let counted = self.open.and_then(|open| self.sessions.get_mut(&open));
        match work {
            Work::Begin(session) => {
                let lookup = self.lookup.as_ref();
                let runs = lookup.map(|lookup| self.asking.known_runs(lookup, session.id));
                let runs = runs.transpose()?.unwrap_or_default();
                let counted = SessionCount { runs, ..SessionCount::default() };
                self.sessions.insert(session.id, counted);
                self.open = Some(session.id);
            }
            Work::Slice(cutting, _) => {
                if let Some(counted) = counted {
                    counted.read.extend(cutting.entries.iter().map(|entry| entry.ordinal));
                    let split = self.asking.split(*cutting, &counted.runs);
                    counted.slices_known += split.done;
                    for (cutting, _) in split.open {
                        counted.slices_open += 1;
                        counted.tokens += u64::from(cutting.slice.tokens) + self.overhead;
                        counted.pending.extend(cutting.entries.iter().map(|entry| entry.ordinal));
                    }
                }
            }
            Work::Left => {
                if let Some(open) = self.open.take() {
                    self.sessions.remove(&open);
                }
            }
            Work::Skipped(_) | Work::End(_) => {}
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Finished runs of a session under the same extraction settings.
type KnownRuns = HashMap<RunId, KnownRun>;

/// A slice, or its parts if an earlier run cut it in two.
#[derive(Default)]
struct SplitSlice {
    /// Number of parts that are extracted.
    done: u64,
    /// Runs of those parts, and of parts that were too long.
    known: Vec<RunId>,
    /// Parts to extract, each with the offset from its last generation.
    open: Vec<(Cutting, u32)>,
}

impl Asking {
    fn known_runs(self, lookup: &Lookup, id: SessionId) -> StoreResult<KnownRuns> {
        let runs = lookup.block_on(lookup.store.known_runs(id, self.digest))?;
        Ok(runs.into_iter().map(|run| (run.run, run)).collect())
    }

    fn split(self, cutting: Cutting, runs: &KnownRuns) -> SplitSlice {
        let mut split = SplitSlice::default();
        // Terminates: nothing below SLICE_TOKENS_MIN is halved again.
        let mut waiting = vec![cutting];
        while let Some(cutting) = waiting.pop() {
            let id = run_id(self.digest, cutting.slice.id);
            let known = runs.get(&id);
            if let Some(done) = known.filter(|known| known.state == RunState::Done) {
                split.known.push(id);
                match done.failure.as_deref() {
                    Some(CUT_IN_TWO) => waiting.extend(halve(&cutting).into_iter().rev()),
                    Some(_) | None => split.done += 1,
                }
            } else {
                let failed = known.filter(|_| self.retry_failed);
                let afresh = failed.map_or(0, |known| known.afresh() - known.generation);
                split.open.push((cutting, afresh));
            }
        }
        split
    }
}
