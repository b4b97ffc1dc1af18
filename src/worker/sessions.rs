//! Sessions under way: the reading thread hands them over, their slices are worked on at once, and
//! each is closed when its last slice has come to its end.

use super::reader::{Before, Desk, Ended, Work, mark_of};
use super::replay::go_on;
use super::runner::{Known, Runner, Worked};
use crate::domain::{CoverageState, Digest, Entry, Session};
use crate::edge::store::{Covered, SessionEnd, SessionTotals, Store, StoreError};
use crate::edge::walk::is_other_file;
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// Skipped entries that are handed over at once.
const SKIPPED_BATCH: usize = 64;

/// Work, and for a session that begins, its runs from before.
pub(super) type Handed = (Work, Known);

/// Hands work from the reading thread to the line.
pub(super) struct Line {
    handle: Handle,
    store: Store,
    asking: Digest,
    sender: mpsc::Sender<Handed>,
    cancel: CancellationToken,
    known: Known,
    /// Skipped entries of the session that is being read.
    skipped: Vec<Entry>,
    /// The store's error that ended the reading, if one did.
    pub(super) failed: Option<StoreError>,
}

impl Line {
    /// For a thread of the current runtime on which blocking is allowed.
    pub(super) fn new(
        store: Store,
        asking: Digest,
        sender: mpsc::Sender<Handed>,
        cancel: CancellationToken,
    ) -> Line {
        let (handle, known, failed) = (Handle::current(), Known::new(), None);
        Line { handle, store, asking, sender, cancel, known, skipped: Vec::new(), failed }
    }

    fn look_up(&mut self, session: &Session) -> Result<Before, StoreError> {
        let known = self.handle.block_on(self.store.known_runs(session.id, self.asking))?;
        self.known = known.into_iter().map(|run| (run.run, run)).collect();
        let ends = self.handle.block_on(self.store.session_ends(session.id))?;
        let path = self.handle.block_on(self.store.session_path(session.id))?;
        let forgotten =
            path.is_none() && self.handle.block_on(self.store.is_forgotten(session.id))?;
        let moved = path.is_some_and(|path| is_other_file(&path, &session.path));
        let elsewhere = match moved {
            false => None,
            true => {
                let entries = self.store.entries_of(session.id, 0..u32::MAX);
                Some(self.handle.block_on(entries)?.iter().map(mark_of).collect())
            }
        };
        Ok(Before { ends: ends.into_iter().collect(), elsewhere, forgotten, ..Before::default() })
    }

    fn send_skipped(&mut self) -> ControlFlow<()> {
        match std::mem::take(&mut self.skipped) {
            none if none.is_empty() => ControlFlow::Continue(()),
            skipped => self.send(Work::Skipped(skipped)),
        }
    }

    fn send(&mut self, work: Work) -> ControlFlow<()> {
        let known = std::mem::take(&mut self.known);
        if self.sender.blocking_send((work, known)).is_err() {
            return ControlFlow::Break(());
        }
        go_on(&self.cancel)
    }
}

impl Desk for Line {
    fn before(&mut self, session: &Session) -> Before {
        match self.look_up(session) {
            Ok(before) => before,
            Err(error) => {
                self.failed = Some(error);
                Before::default()
            }
        }
    }

    fn hand(&mut self, work: Work) -> ControlFlow<()> {
        if self.failed.is_some() || self.cancel.is_cancelled() {
            return ControlFlow::Break(());
        }
        match work {
            Work::Skipped(mut entries) => {
                self.skipped.append(&mut entries);
                if self.skipped.len() < SKIPPED_BATCH {
                    return ControlFlow::Continue(());
                }
                self.send_skipped()
            }
            Work::Begin(_) => {
                // A file that could not be read to its end left them.
                self.skipped.clear();
                self.send(work)
            }
            Work::Slice(..) => self.send(work),
            Work::End(_) => {
                self.send_skipped()?;
                self.send(work)
            }
        }
    }
}

/// The sessions under way.
pub(super) struct Sessions {
    runner: Arc<Runner>,
    in_flight: Arc<Semaphore>,
    open: Option<OpenSession>,
    ending: JoinSet<Result<(), StoreError>>,
    failed: Option<StoreError>,
}

struct OpenSession {
    session: Arc<Session>,
    known: Arc<Known>,
    /// True once the session's row is stored; nothing of it may be stored before.
    begun: watch::Receiver<bool>,
    slices: Vec<JoinHandle<Result<Worked, StoreError>>>,
    skipped: Vec<JoinHandle<Result<(), StoreError>>>,
    skipped_entries: u64,
    /// How far its entries were handed over.
    reached: u32,
}

impl OpenSession {
    fn reach(&mut self, entries: &[Entry]) {
        let last = entries.iter().map(|entry| entry.ordinal + 1).max();
        self.reached = self.reached.max(last.unwrap_or_default());
    }
}

impl Sessions {
    pub(super) fn new(runner: Arc<Runner>, in_flight: Arc<Semaphore>) -> Sessions {
        Sessions { runner, in_flight, open: None, ending: JoinSet::new(), failed: None }
    }

    pub(super) async fn take(&mut self, (work, known): Handed) {
        match work {
            Work::Begin(session) => {
                self.close(None);
                self.begin(session, known);
            }
            Work::Skipped(entries) => {
                let permit = Arc::clone(&self.in_flight).acquire_owned().await;
                if let Some(open) = &mut self.open {
                    open.reach(&entries);
                    let (runner, mut begun) = (Arc::clone(&self.runner), open.begun.clone());
                    let session = open.session.id;
                    let state = CoverageState::Skipped;
                    open.skipped_entries += entries.len() as u64;
                    let reason = |entry: &Entry| entry.skip.map(|skip| skip.name().to_owned());
                    let cover = |entry| Covered { reason: reason(&entry), entry, state };
                    let entries: Vec<Covered> = entries.into_iter().map(cover).collect();
                    open.skipped.push(tokio::spawn(async move {
                        let _permit = permit;
                        if begun.wait_for(|begun| *begun).await.is_ok() {
                            runner.extractor.asker.store().stage_skipped(session, entries).await?;
                        }
                        Ok(())
                    }));
                }
            }
            Work::Slice(cutting, before) => {
                let permit = Arc::clone(&self.in_flight).acquire_owned().await;
                if let Some(open) = &mut self.open {
                    open.reach(&cutting.entries);
                    let (runner, mut begun) = (Arc::clone(&self.runner), open.begun.clone());
                    let (session, known) = (Arc::clone(&open.session), Arc::clone(&open.known));
                    open.slices.push(tokio::spawn(async move {
                        let _permit = permit;
                        if begun.wait_for(|begun| *begun).await.is_err() {
                            return Ok(Worked::default());
                        }
                        let worked =
                            runner.work(&session, (*cutting, before.as_ref()), &known).await;
                        if worked.is_err() {
                            // The others must not go on paying for what cannot be stored.
                            runner.cancel.cancel();
                        }
                        worked
                    }));
                }
            }
            Work::End(ended) => self.close(Some(*ended)),
        }
        while let Some(result) = self.ending.try_join_next() {
            self.note(result);
        }
    }

    fn begin(&mut self, session: Arc<Session>, known: Known) {
        let (sender, begun) = watch::channel(false);
        let (runner, head) = (Arc::clone(&self.runner), Arc::clone(&session));
        self.ending.spawn(async move {
            runner.extractor.asker.store().begin_session(&head).await?;
            // Nobody may be waiting any more.
            let _ = sender.send(true);
            Ok(())
        });
        let known = Arc::new(known);
        self.open = Some(OpenSession {
            session,
            known,
            begun,
            slices: Vec::new(),
            skipped: Vec::new(),
            skipped_entries: 0,
            reached: 0,
        });
    }

    /// Closes the open session when its slices are done; `ended` is none if reading was stopped.
    fn close(&mut self, ended: Option<Ended>) {
        let Some(open) = self.open.take() else { return };
        let runner = Arc::clone(&self.runner);
        self.ending.spawn(close(runner, open, ended));
    }

    /// Waits for everything that is under way.
    pub(super) async fn finish(mut self) -> Result<(), StoreError> {
        self.close(None);
        while let Some(result) = self.ending.join_next().await {
            self.note(result);
        }
        self.failed.map_or(Ok(()), Err)
    }

    fn note(&mut self, result: Result<Result<(), StoreError>, tokio::task::JoinError>) {
        match result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                self.runner.cancel.cancel();
                self.failed.get_or_insert(error);
            }
            Err(died) => go_down(died),
        }
    }
}

/// A panic on another task is ours: going on would pass over what it was working on.
pub(super) fn go_down(died: tokio::task::JoinError) {
    if let Ok(panic) = died.try_into_panic() {
        std::panic::resume_unwind(panic);
    }
}

fn add(sum: &mut SessionTotals, more: SessionTotals) {
    sum.coverage.extracted += more.coverage.extracted;
    sum.coverage.nothing += more.coverage.nothing;
    sum.coverage.failed += more.coverage.failed;
    sum.quarantined += more.quarantined;
    for (kind, count) in more.staged {
        *sum.staged.entry(kind).or_default() += count;
    }
}

async fn close(
    runner: Arc<Runner>,
    mut open: OpenSession,
    ended: Option<Ended>,
) -> Result<(), StoreError> {
    let (mut runs, mut waits, mut ask_store, mut failure) = (Vec::new(), false, false, None);
    let mut totals = SessionTotals::default();
    totals.coverage.add(CoverageState::Skipped, open.skipped_entries);
    for slice in open.slices {
        match slice.await {
            Ok(Ok(worked)) => {
                runs.extend(worked.runs);
                waits |= worked.waits;
                ask_store |= worked.ask_store;
                add(&mut totals, worked.totals);
            }
            Ok(Err(error)) => {
                failure.get_or_insert(error);
            }
            Err(died) => go_down(died),
        }
    }
    for skipped in open.skipped {
        if let Ok(Err(error)) = skipped.await {
            failure.get_or_insert(error);
        }
    }
    if let Some(error) = failure {
        return Err(error);
    }
    if open.begun.wait_for(|begun| *begun).await.is_err() {
        // Beginning failed, and said so itself.
        return Ok(());
    }
    let (store, session) = (runner.extractor.asker.store(), open.session.id);
    let reached = ended.as_ref().map_or(open.reached, |ended| ended.entries);
    if let Some(ended) = ended.as_ref().filter(|ended| ended.whole && waits) {
        store.mark_end(session, ended.entries).await?;
    }
    // A session that was stopped keeps the runs that it had: they still cover what is not read again.
    let whole = ended.filter(|ended| ended.whole && !waits);
    let ended_whole = whole.is_some();
    if let Some(ended) = whole {
        let remembered = ended.told.map(|mut told| {
            told.pass(ended.entries);
            told.remembered()
        });
        let card = ended.card.and_then(|card| serde_json::to_string(&card).ok());
        store
            .end_session(
                session,
                SessionEnd {
                    entries: ended.entries,
                    lines: None,
                    findings: ended.findings,
                    masked: ended.masked,
                    runs,
                    remembered,
                    card,
                    at: (runner.extractor.asker.clock)(),
                },
            )
            .await?;
    }
    if ask_store || !ended_whole {
        // What an earlier reading stored further on was not read this time, and is not counted.
        totals = store.session_totals(session, reached).await?;
    }
    runner.tally.with(|tally| {
        let (sum, more) = (&mut tally.coverage, totals.coverage);
        sum.extracted += more.extracted;
        sum.nothing += more.nothing;
        sum.skipped += more.skipped;
        sum.failed += more.failed;
        tally.quarantined += totals.quarantined;
        for (kind, count) in totals.staged {
            tally.records.add(kind, count);
        }
    });
    Ok(())
}
