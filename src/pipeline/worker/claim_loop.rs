//! The claim loop: claims, waits and stops. Each job and each periodic task is a Tokio task of its own.

use super::state::{End, Until, WorkerState};
use super::tasks::Schedule;
use crate::domain::{Digest, Timestamp};
use crate::llm::back_off;
use crate::pipeline::join_result;
use crate::store::{ClaimRequest, ClaimedJobs, StoreError, StoreResult};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};

/// Maximum number of answers decoded and stored besides the calls in flight: storing must not keep the endpoint
/// waiting, but each unstored answer takes memory.
const STORING_MAX: usize = 32;
/// Poll interval while the queue drains: other workers do not announce the end of their jobs.
const DRAINING_LOOK: Duration = Duration::from_millis(500);
/// Poll interval of a silent queue, which other processes fill; a claim takes less than a millisecond.
const SILENT_LOOK: Duration = Duration::from_secs(1);

struct ClaimLoop<'a> {
    state: &'a Arc<WorkerState>,
    until: Until,
    /// Maximum outage of the endpoint that a user waits for.
    outage_max: Duration,
    schedule: Schedule,
    under_way: JoinSet<StoreResult<()>>,
    /// Time at which the next wait or lease ends.
    next_at: Option<Timestamp>,
    /// Duration of the outage so far.
    away: Duration,
    failed: Option<StoreError>,
}

pub(super) async fn run(
    state: &Arc<WorkerState>,
    until: Until,
    outage_max: Duration,
) -> StoreResult<End> {
    let mut claims = ClaimLoop {
        state,
        until,
        outage_max,
        schedule: Schedule::new(state.now(), until != Until::Stopped),
        under_way: JoinSet::new(),
        next_at: None,
        away: Duration::ZERO,
        failed: None,
    };
    let end = claims.run().await;
    // Jobs in progress end or are released, even if the loop failed.
    state.closing.cancel();
    claims.rest().await;
    if let Some(error) = claims.failed {
        return Err(error);
    }
    let end = end?;
    Ok(state.needs().map_or(end, End::Needs))
}

impl ClaimLoop<'_> {
    async fn run(&mut self) -> StoreResult<End> {
        // Terminates with the worker.
        loop {
            while let Some(ended) = self.under_way.try_join_next() {
                self.note(ended);
            }
            if self.state.closing.is_cancelled() {
                return Ok(End::Asked);
            }
            if let Some(line) = self.state.capped.get().filter(|_| self.under_way.is_empty()) {
                self.state.stop(line.clone());
                continue;
            }
            if let Some(number) = self.state.breaker.next_probe() {
                self.probe(number).await?;
                continue;
            }
            self.away = Duration::ZERO;
            let claimed = self.claim(self.room()).await?;
            if claimed > 0 && self.until == Until::OneJob {
                self.rest().await;
                if let Some(cards) = self.schedule.cards(self.state).await? {
                    cards.run(Arc::clone(self.state)).await?;
                }
                return Ok(End::Nothing);
            }
            let idle = claimed == 0 && self.under_way.is_empty();
            let due = match &self.state.batch {
                Some(_) => None,
                None => self.schedule.due(self.state, idle).await?,
            };
            let begun = due.is_some();
            if let Some(task) = due {
                self.under_way.spawn(task.run(Arc::clone(self.state)));
            }
            if idle && !begun && self.is_done().await? {
                return Ok(End::Nothing);
            }
            if let Some(batch) = self.state.batch.as_ref().filter(|_| idle) {
                batch.idle();
            }
            self.wait().await;
        }
    }

    /// Returns true if nothing is left to wait for.
    async fn is_done(&self) -> StoreResult<bool> {
        match self.until {
            Until::Stopped => Ok(false),
            Until::OneJob => Ok(true),
            Until::Drained => {
                let batch = self.state.batch.as_ref();
                let is_read = batch.is_none_or(|it| it.is_read.load(Ordering::SeqCst));
                if !is_read || self.state.feeding.strong_count() > 0 {
                    return Ok(false);
                }
                let now = self.state.now();
                let left = self.state.left(now).await?;
                if left.gathering > 0 && self.state.batch.is_none() {
                    self.state.store().retry(|store| store.end_gathering_waits(now)).await?;
                    return Ok(false);
                }
                Ok(!left.is_something())
            }
        }
    }

    fn room(&self) -> u32 {
        if self.until == Until::OneJob {
            return 1;
        }
        let storing = self.under_way.len().saturating_sub(STORING_MAX);
        self.state.room().saturating_sub(u32::try_from(storing).unwrap_or(u32::MAX))
    }

    async fn claim(&mut self, jobs_max: u32) -> StoreResult<usize> {
        if jobs_max == 0 {
            return Ok(0);
        }
        let state = self.state;
        if state.is_late() {
            state.store().retry(|_| state.extend()).await?;
        }
        let claimed = state.store().retry(|store| {
            let now = state.now();
            let claim = ClaimRequest {
                holder: state.id.clone(),
                jobs_max,
                until: now.after(state.queue.lease),
                attempts_max: state.queue.attempts_max,
                batch: state.batch_id(),
                now,
            };
            store.claim(claim)
        });
        let ClaimedJobs { jobs, expired, next_at } = claimed.await?;
        self.next_at = next_at;
        let claimed = jobs.len();
        if claimed > 0 || expired > 0 {
            state.counts.claimed(claimed, expired);
            tracing::debug!(jobs = claimed, expired, "jobs claimed");
        }
        for job in jobs {
            // Taken before the job starts, or the next claim would count the slot as free.
            let (state, slot) = (Arc::clone(state), state.take_slot());
            self.under_way.spawn(async move { state.work(job, slot).await });
        }
        Ok(claimed)
    }

    /// Waits for room, for a change of the queue or for the end of a wait.
    async fn wait(&mut self) {
        let state = self.state;
        let (has_room, silent_max) = (state.room() > 0, self.silent_max());
        let read = async {
            match &state.batch {
                Some(batch) => batch.news.notified().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = state.closing.cancelled() => {}
            Some(ended) = self.under_way.join_next() => self.note(ended),
            () = state.freed.notified() => {}
            () = read, if has_room => {}
            () = tokio::time::sleep(silent_max), if has_room => {}
        }
        tokio::select! {
            () = state.closing.cancelled() => {}
            () = state.extractor.client.concurrency.released() => {}
        }
    }

    /// Maximum interval until the next poll of a silent queue.
    fn silent_max(&self) -> Duration {
        let longest = match self.until {
            Until::Drained => DRAINING_LOOK,
            Until::Stopped | Until::OneJob => SILENT_LOOK,
        };
        let left = self.next_at.map(|at| u64::try_from(at.0 - self.state.now().0).unwrap_or(0));
        left.map_or(longest, |millis| longest.min(Duration::from_millis(millis)))
    }

    /// Probes an unreachable endpoint with a single job after a pause.
    async fn probe(&mut self, number: u32) -> StoreResult<()> {
        self.rest().await;
        // Probably the wrong address; a worker that runs on waits for it like for an outage.
        if self.until != Until::Stopped
            && let Some(error) = self.state.no_model.get()
        {
            self.state.stop(error.clone());
            return Ok(());
        }
        if self.until != Until::Stopped && self.outage_max <= self.away {
            let secs = self.away.as_secs();
            self.state.stop(format!(
                "the endpoint did not answer for {secs} s (limits.wait_secs_max); jobs stay in the \
                 queue; run the same command again once it is reachable"
            ));
            return Ok(());
        }
        // Jitter, so that workers do not return to an endpoint all at once.
        let pause = back_off(number, Digest::of(&["worker", &self.state.id]).short());
        self.away += pause;
        tokio::select! {
            () = self.state.closing.cancelled() => return Ok(()),
            () = tokio::time::sleep(pause) => {}
        }
        if self.claim(1).await? == 0 {
            tokio::time::sleep(DRAINING_LOOK).await;
        }
        self.rest().await;
        Ok(())
    }

    async fn rest(&mut self) {
        while let Some(ended) = self.under_way.join_next().await {
            self.note(ended);
        }
    }

    /// Stops the worker on a store error, so that other jobs do not pay for answers that cannot be stored.
    fn note(&mut self, ended: Result<StoreResult<()>, JoinError>) {
        if let Some(Err(error)) = join_result(ended) {
            self.state.closing.cancel();
            self.failed.get_or_insert(error);
        }
    }
}
