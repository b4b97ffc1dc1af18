//! The loop: claim, work, wait. Jobs run beside it, each a task of its own.

use super::Until;
use super::counts::End;
use super::state::WorkerState;
use crate::domain::{Digest, Timestamp};
use crate::llm::back_off;
use crate::pipeline::adjudicate::Halt;
use crate::pipeline::cards;
use crate::pipeline::consolidating::{ConsolidationOutcome, Consolidator};
use crate::pipeline::dir_sync::{DirSync, SyncError};
use crate::store::{ChangeListener, ClaimRequest, ClaimedJobs, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// Jobs whose answers are being worked in and stored, beyond those that are asked about: storing must
/// not keep the endpoint waiting, and what waits to be stored is held in memory.
const STORING_MAX: usize = 32;
/// How often who works until nothing is left looks whether others have ended what they had; endings are
/// not announced.
const LOOK_OFTEN: Duration = Duration::from_millis(500);
/// How long the queue is not looked at where nothing was heard of it: should a clock jump, what waits
/// for a time is late by no more than this.
const LOOK_SELDOM: Duration = Duration::from_secs(15);

/// How long a worker leaves what stands beside its jobs, cards and memory, in milliseconds.
const LOOK_MILLIS: i64 = 30_000;
/// Cards that are made in one go.
const CARDS_MAX: u32 = 32;

/// The jobs under way.
struct ClaimLoop<'a> {
    state: &'a Arc<WorkerState>,
    holder: &'a str,
    until: Until,
    /// Says when others have handed something over.
    changes: ChangeListener,
    /// The longest outage of the endpoint that somebody waits for who waits for the end.
    longest: Duration,
    jobs: JoinSet<Result<(), StoreError>>,
    /// When the next wait or lease is over.
    next_at: Option<Timestamp>,
    away: Duration,
    /// When cards were looked for last.
    cards_at: Timestamp,
    /// When it was looked last whether records have become enough, and the last record where none waited.
    memory_at: Timestamp,
    memory_of: Option<i64>,
    failed: Option<StoreError>,
}

/// Works until it is done.
pub(super) async fn run(
    state: &Arc<WorkerState>,
    (holder, until): (&str, Until),
    longest: Duration,
) -> Result<End, StoreError> {
    let mut claims = ClaimLoop {
        state,
        holder,
        until,
        changes: state.store().inner().listen(),
        longest,
        jobs: JoinSet::new(),
        next_at: None,
        away: Duration::ZERO,
        cards_at: state.now(),
        // Not yet.
        memory_at: Timestamp(i64::MIN),
        memory_of: None,
        failed: None,
    };
    let ended = claims.all().await;
    // What is under way ends, or is given back; also where the loop failed.
    state.closing.cancel();
    claims.rest().await;
    if let Some(error) = claims.failed {
        return Err(error);
    }
    let end = ended?;
    Ok(state.needs().map_or(end, End::Needs))
}

impl ClaimLoop<'_> {
    async fn all(&mut self) -> Result<End, StoreError> {
        // Ends with the worker.
        loop {
            self.reap();
            if self.state.closing.is_cancelled() {
                return Ok(End::Asked);
            }
            if let Some(line) = self.state.capped.get().filter(|_| self.jobs.is_empty()) {
                self.state.stop(line.clone());
                continue;
            }
            if let Some(tries) = self.state.breaker.tries() {
                self.probe(tries).await?;
                continue;
            }
            self.away = Duration::ZERO;
            let claimed = self.claim(self.room()).await?;
            if claimed > 0 && self.until == Until::OneJob {
                self.rest().await;
                self.make_cards().await?;
                self.rest().await;
                return Ok(End::Nothing);
            }
            let idle = claimed == 0 && self.jobs.is_empty();
            if let Some(batch) = &self.state.batch {
                if idle && self.is_done().await? {
                    return Ok(End::Nothing);
                }
                if idle {
                    batch.is_idle();
                }
                self.wait().await;
                continue;
            }
            let made = (idle || self.is_due(self.cards_at)) && self.make_cards().await?;
            let made = made || (idle || self.is_due(self.memory_at)) && self.make_memory().await?;
            if idle && !made && self.is_done().await? {
                return Ok(End::Nothing);
            }
            self.wait().await;
        }
    }

    /// Whether the last look was so long ago that jobs must make room for another.
    fn is_due(&self, last: Timestamp) -> bool {
        !(last.0..last.0.saturating_add(LOOK_MILLIS)).contains(&self.state.now().0)
    }

    /// Begins to make memory of records where enough wait, beside the jobs; says whether anywhere they do.
    async fn make_memory(&mut self) -> Result<bool, StoreError> {
        // Who works until nothing is left looks before the end, however soon that is.
        if self.until == Until::Stopped && !self.is_due(self.memory_at) {
            return Ok(false);
        }
        self.memory_at = self.state.now();
        // Until a person has mended what the model needs, records wait; extraction goes on.
        if self.state.adjudicator.as_ref().is_some_and(|judge| judge.needs().is_some()) {
            return Ok(false);
        }
        // Counting what waits goes over all records: not where none came since nothing waited.
        let last = |store: Store| async move { store.last_record().await };
        let last = self.state.store().retry(last).await?;
        if self.memory_of == Some(last) {
            return Ok(false);
        }
        let thresholds = self.state.thresholds;
        let consolidator = Consolidator {
            store: self.state.store().inner().clone(),
            holder: self.holder.to_owned(),
            clock: self.state.extractor.client.clock,
            waits: false,
            adjudicator: self.state.adjudicator.clone(),
        };
        let look = |_| consolidator.due(&thresholds);
        let due = self.state.store().retry(look).await?;
        // Tried once before the end: who finds a namespace held leaves it.
        let enough = due.is_none() || self.until != Until::Stopped;
        self.memory_of = enough.then_some(last);
        let due = due.unwrap_or_default();
        if due.is_empty() {
            return Ok(false);
        }
        let (consolidator, tell) = (consolidator.clone(), self.state.tell);
        let gate = self.state.extractor.gate.clone();
        self.jobs.spawn(async move {
            let dir_sync = || {
                let Consolidator { store, holder, clock, .. } = consolidator.clone();
                DirSync { store, holder, clock, gate: gate.clone() }
            };
            for namespace in due {
                // What a person changed is theirs before a plan is made.
                at_directories(dir_sync(), namespace.clone(), Step::ImportEdits).await;
                match consolidator.run(&namespace).await {
                    Ok(ConsolidationOutcome::Done(planned)) => {
                        let (plan, usage) = (&planned.plan, &planned.usage);
                        tracing::info!(
                            plan.id = %plan.id, records = plan.operations.len(),
                            calls = usage.calls, open = planned.left_open.len(), "consolidated"
                        );
                        at_directories(dir_sync(), namespace, Step::Sync).await;
                    }
                    // Somebody else is at it, or was meanwhile: the next look finds what is left.
                    Ok(ConsolidationOutcome::Busy | ConsolidationOutcome::Moved(_)) => {}
                    Ok(ConsolidationOutcome::Halted(Halt::Stopped)) => break,
                    Ok(ConsolidationOutcome::Halted(Halt::Needs(line))) => {
                        tell(&format!("{line}; no memory is made until then, jobs go on"));
                        break;
                    }
                    // Memory can wait; jobs are not lost for it.
                    Err(error) => tracing::warn!(kind = ?error.kind, "consolidating failed"),
                }
            }
            Ok(())
        });
        Ok(true)
    }

    /// Begins to make cards that are due, beside the jobs; says whether any are.
    async fn make_cards(&mut self) -> Result<bool, StoreError> {
        self.cards_at = self.state.now();
        let due = |store: Store| async move { store.cards_due(CARDS_MAX).await };
        let due = self.state.store().retry(due).await?;
        if due.is_empty() {
            return Ok(false);
        }
        let state = Arc::clone(self.state);
        self.jobs.spawn(async move {
            let make = |store: Store| {
                let due = due.clone();
                let (gate, stop) = (&state.extractor.gate, &state.closing);
                async move { cards::make((&store, gate), due, stop).await }
            };
            state.store().retry(make).await
        });
        Ok(true)
    }

    /// Whether there is nothing more to wait for.
    async fn is_done(&self) -> Result<bool, StoreError> {
        match self.until {
            Until::Stopped => Ok(false),
            Until::OneJob => Ok(true),
            Until::Drained => {
                if self.state.batch.as_ref().is_some_and(|batch| !batch.is_read()) {
                    return Ok(false);
                }
                Ok(!self.state.left(self.state.now()).await?.is_something())
            }
        }
    }

    /// Jobs to claim now.
    fn room(&self) -> u32 {
        if self.until == Until::OneJob {
            return 1;
        }
        let storing = self.jobs.len().saturating_sub(STORING_MAX);
        self.state.room().saturating_sub(u32::try_from(storing).unwrap_or(u32::MAX))
    }

    /// Claims jobs and begins to work on them; gives how many.
    async fn claim(&mut self, jobs_max: u32) -> Result<usize, StoreError> {
        if jobs_max == 0 {
            return Ok(0);
        }
        let (state, holder) = (self.state, self.holder);
        if state.is_late() {
            state.store().retry(|_| state.extend()).await?;
        }
        let claim = |store: Store| {
            let now = state.now();
            let claim = ClaimRequest {
                holder: holder.to_owned(),
                jobs_max,
                until: now.after(state.queue.lease),
                attempts_max: state.queue.attempts_max,
                batch: state.batch_id(),
                now,
            };
            async move { store.claim(claim).await }
        };
        let ClaimedJobs { jobs, expired, next_at } = state.store().retry(claim).await?;
        self.next_at = next_at;
        let claimed = jobs.len();
        if claimed > 0 || expired > 0 {
            state.counts.claimed(claimed, expired);
            tracing::debug!(jobs = claimed, expired, "jobs claimed");
        }
        for job in jobs {
            // Counted before it begins, or the next claim would find room that is taken.
            let (state, asking) = (Arc::clone(state), state.ask());
            self.jobs.spawn(async move { state.work(job, asking).await });
        }
        Ok(claimed)
    }

    /// Waits for whatever comes first: room for more, news of the queue, the end of a wait.
    async fn wait(&mut self) {
        let state = self.state;
        let (full, idle) = (state.room() == 0, self.idle());
        let changes = &mut self.changes;
        let looks = async {
            if full {
                return std::future::pending().await;
            }
            let news = async {
                match &state.batch {
                    Some(batch) => batch.news().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = changes.changed() => {}
                () = news => {}
                () = tokio::time::sleep(idle) => {}
            }
        };
        tokio::select! {
            () = state.closing.cancelled() => {}
            Some(ended) = self.jobs.join_next() => note(&mut self.failed, state, ended),
            () = state.freed.notified() => {}
            () = looks => {}
        }
        tokio::select! {
            () = state.closing.cancelled() => {}
            () = state.extractor.client.pace.released() => {}
        }
    }

    /// How long the queue is not looked at where nothing was there and nothing is heard of it.
    fn idle(&self) -> Duration {
        let longest = match self.until {
            Until::Drained => LOOK_OFTEN,
            Until::Stopped | Until::OneJob => LOOK_SELDOM,
        };
        let until = self.next_at.map(|at| at.0 - self.state.now().0);
        let millis = until.map(|millis| u64::try_from(millis).unwrap_or(0));
        millis.map_or(longest, |millis| longest.min(Duration::from_millis(millis)))
    }

    /// The endpoint is away: after a pause, one job alone finds out whether it is back.
    async fn probe(&mut self, tries: u32) -> Result<(), StoreError> {
        self.rest().await;
        let waits_for_the_end = self.until != Until::Stopped;
        if waits_for_the_end && self.longest <= self.away {
            let secs = self.away.as_secs();
            self.state.stop(format!(
                "the endpoint did not answer for {secs} s (limits.wait_secs_max); jobs stay in the \
                 queue, the same command goes on when it is back"
            ));
            return Ok(());
        }
        let pause = back_off(tries, seed(self.holder));
        self.away += pause;
        tokio::select! {
            () = self.state.closing.cancelled() => return Ok(()),
            () = tokio::time::sleep(pause) => {}
        }
        if self.claim(1).await? == 0 {
            tokio::time::sleep(LOOK_OFTEN).await;
        }
        self.rest().await;
        Ok(())
    }

    /// Waits until no job is under way.
    async fn rest(&mut self) {
        while let Some(ended) = self.jobs.join_next().await {
            note(&mut self.failed, self.state, ended);
        }
    }

    fn reap(&mut self) {
        while let Some(ended) = self.jobs.try_join_next() {
            note(&mut self.failed, self.state, ended);
        }
    }
}

/// What is done about the directories that show a namespace.
#[derive(Clone, Copy)]
enum Step {
    /// What people did there is taken up.
    ImportEdits,
    /// They are brought in step.
    Sync,
}

/// Goes through the directories that show a namespace; on a thread of its own, since it reads and writes files.
async fn at_directories(dir_sync: DirSync, namespace: String, step: Step) {
    let runtime = Handle::current();
    let shown = tokio::task::spawn_blocking(move || {
        runtime.block_on(async {
            for folder in dir_sync.folders(&namespace).await? {
                match step {
                    Step::ImportEdits => drop(dir_sync.import_edits(&folder, &namespace).await?),
                    // Who is at it brings it in step as well.
                    Step::Sync => drop(dir_sync.sync(&folder, &namespace).await?),
                }
            }
            Ok::<(), SyncError>(())
        })
    });
    match shown.await {
        Ok(Ok(())) => {}
        // The next `memory sync` finds what is left, and tells a person.
        Ok(Err(SyncError::Store(error))) => {
            tracing::warn!(kind = ?error.kind, "a directory was not kept")
        }
        Ok(Err(SyncError::Disk { cause, .. })) => {
            tracing::warn!(kind = ?cause.kind(), "a directory was not kept");
        }
        Err(died) => crate::pipeline::stop::resume_panic(died),
    }
}

/// Workers do not come back to an endpoint all at once.
fn seed(holder: &str) -> u64 {
    let mut seed = [0; 8];
    seed.copy_from_slice(&Digest::of(&["worker", holder]).as_bytes()[..8]);
    u64::from_le_bytes(seed)
}

/// What cannot be stored ends the work: the others must not go on paying for it.
fn note(
    failed: &mut Option<StoreError>,
    state: &WorkerState,
    ended: Result<Result<(), StoreError>, tokio::task::JoinError>,
) {
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            state.closing.cancel();
            failed.get_or_insert(error);
        }
        Err(died) => crate::pipeline::stop::resume_panic(died),
    }
}
