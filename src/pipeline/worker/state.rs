//! What jobs are worked with, the same for all of them.

use super::batch::Batch;
use super::circuit_breaker::CircuitBreaker;
use super::counts::Counts;
use super::leases::Leases;
use crate::config::{Queue, Thresholds};
use crate::domain::Timestamp;
use crate::pipeline::adjudicate::Adjudicator;
use crate::pipeline::extractor::Extractor;
use crate::pipeline::retrying_store::RetryingStore;
use crate::store::{RemainingJobs, Store, StoreError};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What jobs are worked with.
pub(super) struct WorkerState {
    pub(super) extractor: Extractor,
    /// Decides about memory where no rule does, if the settings name a model for it.
    pub(super) adjudicator: Option<Arc<Adjudicator>>,
    pub(super) queue: Queue,
    /// The batch whose jobs alone are worked on, if it drains one.
    pub(super) batch: Option<Arc<Batch>>,
    /// When records become memory.
    pub(super) thresholds: Thresholds,
    pub(super) leases: Leases,
    pub(super) breaker: CircuitBreaker,
    pub(super) counts: Arc<Counts>,
    /// Nothing new begins, and what is under way ends well.
    pub(super) closing: CancellationToken,
    /// Says a line to a person.
    pub(super) tell: fn(&str),
    /// When the leases in hand were extended last, in milliseconds of the clock.
    pub(super) extended_at: AtomicI64,
    /// Jobs that are being asked about, or wait for their call.
    pub(super) asking: AtomicU32,
    /// One job less is asked about.
    pub(super) freed: Notify,
    /// The cap of a day that a replay reached: what is in hand still tries, nothing more is claimed.
    pub(super) capped: OnceLock<String>,
    /// The first thing that only a person can mend.
    pub(super) needs: Mutex<Option<String>>,
}

/// A job that is being asked about.
pub(super) struct CallSlot(Arc<WorkerState>);

impl WorkerState {
    pub(super) fn now(&self) -> Timestamp {
        (self.extractor.client.clock)()
    }

    pub(super) fn store(&self) -> &RetryingStore {
        &self.extractor.client.store
    }

    pub(super) fn batch_id(&self) -> Option<String> {
        self.batch.as_ref().map(|batch| batch.id().to_owned())
    }

    /// What is left to do; of the dead, those that died at `since` or later.
    pub(super) async fn left(&self, since: Timestamp) -> Result<RemainingJobs, StoreError> {
        let left = |store: Store| {
            let batch = self.batch_id();
            async move {
                match batch {
                    Some(batch) => store.left_of(batch, since).await,
                    None => store.left(since).await,
                }
            }
        };
        self.store().retry(left).await
    }

    /// Extends the leases in hand.
    pub(super) async fn extend(&self) -> Result<(), StoreError> {
        let (now, leases) = (self.now(), self.leases.all());
        if !leases.is_empty() {
            let until = now.after(self.queue.lease);
            let lost = self.store().inner().extend(leases.clone(), until, now).await?;
            let lost = self.leases.lose(&leases, &lost);
            if lost > 0 {
                tracing::warn!(leases = lost, "leases were lost to other workers");
            }
        }
        self.extended_at.store(now.0, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the leases in hand may have run out: the machine slept, or the store was in trouble.
    /// Who claims then would take its own jobs a second time.
    pub(super) fn is_late(&self) -> bool {
        let at = Timestamp(self.extended_at.load(Ordering::Relaxed));
        at.after(self.queue.lease / 2) < self.now()
    }

    /// Jobs that may be claimed now, for as many calls as the endpoint bears.
    pub(super) fn room(&self) -> u32 {
        if self.capped.get().is_some() {
            return 0;
        }
        let limit = self.extractor.client.pace.limit();
        // A replay claims some jobs ahead: a store that is busy must not keep the endpoint waiting.
        let ahead = if self.batch.is_some() { limit / 2 + 1 } else { 0 };
        (limit + ahead).saturating_sub(self.asking.load(Ordering::Relaxed))
    }

    /// A job more is asked about until what is returned is dropped.
    pub(super) fn ask(self: &Arc<WorkerState>) -> CallSlot {
        self.asking.fetch_add(1, Ordering::Relaxed);
        CallSlot(Arc::clone(self))
    }

    /// Ends the work because of something that only a person can mend.
    pub(super) fn stop(&self, line: String) {
        self.needs.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(line);
        self.closing.cancel();
    }

    /// What only a person can mend: what ended the work, or what keeps memory waiting beside it.
    pub(super) fn needs(&self) -> Option<String> {
        let needs = self.needs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        needs.or_else(|| self.adjudicator.as_ref()?.needs())
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::Relaxed);
        self.0.freed.notify_one();
    }
}
