//! Periodic tasks beside the claim loop: memory cards of sessions that grew, and consolidation with its memory
//! directories. Doing this work here keeps ingestion fast.

use super::state::WorkerState;
use crate::domain::{SessionId, Timestamp};
use crate::memory_card::CardBuilder;
use crate::pipeline::adjudicate::Halt;
use crate::pipeline::blocking;
use crate::pipeline::consolidating::{ConsolidationOutcome, Consolidator};
use crate::pipeline::dir_sync::{DirSync, SyncError};
use crate::store::{Store, StoreErrorKind, StoreResult};
use std::sync::Arc;
use tokio::runtime::Handle;

/// Interval between two checks of a busy worker, in milliseconds.
const INTERVAL_MILLIS: i64 = 30_000;
/// Maximum number of cards per task.
const CARDS_MAX: u32 = 32;
/// Stored entries per read; other work gets its turn between two pages.
const PAGE_ENTRIES: u32 = 256;

#[derive(Debug)]
pub(super) struct Schedule {
    cards_at: Timestamp,
    memory_at: Timestamp,
    /// The last record at a check that found no backlog; if `ends`, at any check.
    memory_of: Option<i64>,
    /// True if the worker ends when nothing is left. It then checks for records before the end, but only once, since a
    /// namespace that another process holds is left to that process.
    ends: bool,
}

#[derive(Debug)]
pub(super) enum Task {
    /// Cards of sessions with this many entries.
    Cards(Vec<(SessionId, u32)>),
    Consolidation(Vec<String>),
}

impl Schedule {
    pub(super) fn new(now: Timestamp, ends: bool) -> Schedule {
        Schedule { cards_at: now, memory_at: Timestamp(i64::MIN), memory_of: None, ends }
    }

    /// Returns the next task, if one is due. An idle worker checks at any time.
    pub(super) async fn due(
        &mut self,
        state: &WorkerState,
        idle: bool,
    ) -> StoreResult<Option<Task>> {
        let now = state.now();
        if (idle || has_passed(self.cards_at, now))
            && let Some(cards) = self.cards(state).await?
        {
            return Ok(Some(cards));
        }
        if has_passed(self.memory_at, now) || (idle && self.ends) {
            return self.consolidation(state).await;
        }
        Ok(None)
    }

    pub(super) async fn cards(&mut self, state: &WorkerState) -> StoreResult<Option<Task>> {
        self.cards_at = state.now();
        let due = state.store().retry(|store| store.cards_due(CARDS_MAX)).await?;
        Ok((!due.is_empty()).then_some(Task::Cards(due)))
    }

    async fn consolidation(&mut self, state: &WorkerState) -> StoreResult<Option<Task>> {
        self.memory_at = state.now();
        // Records wait until a person has fixed the problem with the model; extraction continues.
        if state.adjudicator.as_ref().is_some_and(|it| it.needs().is_some()) {
            return Ok(None);
        }
        // Counting reads all records, so it is skipped if none came since a check that found no backlog.
        let last = state.store().retry(|store| store.last_record()).await?;
        if self.memory_of == Some(last) {
            return Ok(None);
        }
        let consolidator = state.consolidator();
        let due = state.store().retry(|_| consolidator.due(&state.thresholds)).await?;
        self.memory_of = (due.is_none() || self.ends).then_some(last);
        Ok(due.filter(|due| !due.is_empty()).map(Task::Consolidation))
    }
}

/// Also true if the clock went back.
fn has_passed(last: Timestamp, now: Timestamp) -> bool {
    !(last.0..last.0.saturating_add(INTERVAL_MILLIS)).contains(&now.0)
}

impl Task {
    pub(super) async fn run(self, state: Arc<WorkerState>) -> StoreResult<()> {
        match self {
            Task::Cards(due) => state.store().retry(|store| state.make_cards(store, &due)).await,
            Task::Consolidation(namespaces) => {
                state.counts.consolidate(true);
                state.consolidate(namespaces).await;
                state.counts.consolidate(false);
                Ok(())
            }
        }
    }
}

impl WorkerState {
    async fn make_cards(&self, store: &Store, due: &[(SessionId, u32)]) -> StoreResult<()> {
        for &(session, entries) in due {
            let mut card = CardBuilder::new(&self.extractor.gate);
            let mut from = 0;
            while from < entries {
                if self.closing.is_cancelled() {
                    return Ok(());
                }
                let to = entries.min(from.saturating_add(PAGE_ENTRIES));
                let page = store.entries_of(session, from..to).await?;
                page.iter().for_each(|entry| card.entry(entry));
                from = to;
            }
            // A card always serialises.
            let card = serde_json::to_string(&card.finish()).unwrap_or_default();
            match store.keep_card(session, entries, card).await {
                // The session was forgotten meanwhile.
                Err(error) if matches!(error.kind, StoreErrorKind::UnknownSession(_)) => {}
                kept => kept?,
            }
        }
        Ok(())
    }

    fn consolidator(&self) -> Consolidator {
        Consolidator {
            store: self.store().inner.clone(),
            holder: self.id.clone(),
            clock: self.extractor.client.clock,
            waits: false,
            adjudicator: self.adjudicator.clone(),
        }
    }

    /// Consolidates namespaces. Failures are logged, because memory can wait and no job is lost.
    async fn consolidate(&self, namespaces: Vec<String>) {
        let consolidator = self.consolidator();
        for namespace in namespaces {
            // People's edits are imported before a plan is made.
            self.at_directories(&namespace, DirectoryStep::ImportEdits).await;
            match consolidator.run(&namespace).await {
                Ok(ConsolidationOutcome::Done(planned)) => {
                    let (plan, usage) = (&planned.plan, &planned.usage);
                    tracing::info!(
                        plan.id = %plan.id, records = plan.operations.len(),
                        calls = usage.spent.calls, pairs = usage.pairs, refused = usage.refused, open = planned.left_open.len(), "consolidated"
                    );
                    self.at_directories(&namespace, DirectoryStep::Sync).await;
                }
                // Another process consolidates it, or did meanwhile: the next check finds the rest.
                Ok(ConsolidationOutcome::Busy | ConsolidationOutcome::Moved(_)) => {}
                Ok(ConsolidationOutcome::Halted(Halt::Stopped)) => break,
                Ok(ConsolidationOutcome::Halted(Halt::Needs(line))) => {
                    (self.tell)(&format!("{line}; no memory is created until then, jobs continue"));
                    break;
                }
                Err(error) => tracing::warn!(kind = ?error.kind, "consolidation failed"),
            }
        }
    }

    /// Runs `step` for the directories that show a namespace, on a thread for blocking work.
    async fn at_directories(&self, namespace: &str, step: DirectoryStep) {
        let Consolidator { store, holder, clock, .. } = self.consolidator();
        let dir_sync = DirSync { store, holder, clock, gate: self.extractor.gate.clone() };
        let (runtime, namespace) = (Handle::current(), namespace.to_owned());
        let synced = blocking(move || {
            runtime.block_on(async {
                for folder in dir_sync.folders(&namespace).await? {
                    match step {
                        DirectoryStep::ImportEdits => {
                            drop(dir_sync.import_edits(&folder, &namespace).await?);
                        }
                        // Another process that syncs the directory includes these changes.
                        DirectoryStep::Sync => match dir_sync.sync(&folder, &namespace).await {
                            Ok(_) | Err(SyncError::Busy(_)) => {}
                            Err(error) => return Err(error),
                        },
                    }
                }
                Ok::<(), SyncError>(())
            })
        });
        match synced.await {
            Ok(()) | Err(SyncError::Busy(_) | SyncError::OtherNamespace { .. }) => {}
            // The next `memory sync` finds the rest and reports it.
            Err(SyncError::Store(error)) => {
                tracing::warn!(kind = ?error.kind, "a memory directory was not synced");
            }
            Err(SyncError::Disk { cause, .. }) => {
                tracing::warn!(kind = ?cause.kind(), "a memory directory was not synced");
            }
        }
    }
}

#[derive(Clone, Copy)]
enum DirectoryStep {
    ImportEdits,
    Sync,
}
