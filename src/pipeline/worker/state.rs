//! State that all jobs of a worker share.

use super::batch::Batch;
use super::circuit_breaker::CircuitBreaker;
use super::counts::Counts;
use super::leases::Leases;
use crate::config::{Queue, Thresholds};
use crate::domain::Timestamp;
use crate::pipeline::adjudicate::Adjudicator;
use crate::pipeline::extractor::Extractor;
use crate::pipeline::model_client::CallRetry;
use crate::pipeline::retrying_store::RetryingStore;
use crate::store::{RemainingJobs, StoreError};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub(super) struct WorkerState {
    /// The worker's name, in leases.
    pub(super) id: String,
    pub(super) extractor: Extractor,
    pub(super) retry: CallRetry,
    /// Adjudicates candidate pairs, if the settings name a model for it.
    pub(super) adjudicator: Option<Arc<Adjudicator>>,
    pub(super) queue: Queue,
    /// The batch of a replay; only its jobs are worked on.
    pub(super) batch: Option<Arc<Batch>>,
    /// Backlog that makes a namespace due for consolidation.
    pub(super) thresholds: Thresholds,
    pub(super) leases: Leases,
    pub(super) breaker: CircuitBreaker,
    pub(super) counts: Arc<Counts>,
    /// When cancelled, nothing new starts, and calls in flight complete.
    pub(super) closing: CancellationToken,
    /// Held by the feeds that fill the queue.
    pub(super) feeding: Weak<()>,
    /// Prints a line for the user.
    pub(super) tell: fn(&str),
    /// Time of the last extension of the leases, in milliseconds.
    pub(super) extended_at: AtomicI64,
    /// Jobs that call a model, or wait for their call.
    pub(super) calling: AtomicU32,
    /// Notified when a call slot was freed.
    pub(super) freed: Notify,
    /// Daily cap that a replay reached: claimed jobs still try, nothing more is claimed.
    pub(super) capped: OnceLock<String>,
    /// Message of the first problem that only a person can fix.
    pub(super) needs: Mutex<Option<String>>,
}

/// A job's share of the concurrency, until it is dropped.
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

    /// Remaining jobs; of the dead, those that died at `since` or later.
    pub(super) async fn left(&self, since: Timestamp) -> Result<RemainingJobs, StoreError> {
        let store = self.store().inner();
        match self.batch_id() {
            Some(batch) => self.store().retry(|| store.left_of(batch.clone(), since)).await,
            None => self.store().retry(|| store.left(since)).await,
        }
    }

    /// Extends the leases of the jobs in progress.
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

    /// True if the leases may have expired because the machine slept or the store was unavailable. A claim would then
    /// take the worker's own jobs a second time.
    pub(super) fn is_late(&self) -> bool {
        let at = Timestamp(self.extended_at.load(Ordering::Relaxed));
        at.after(self.queue.lease / 2) < self.now()
    }

    /// Number of jobs that may be claimed now, by the limit on concurrency.
    pub(super) fn room(&self) -> u32 {
        if self.capped.get().is_some() {
            return 0;
        }
        let limit = self.extractor.client.concurrency.limit();
        // A replay claims some jobs ahead, so that a busy store does not keep the endpoint waiting.
        let ahead = if self.batch.is_some() { limit / 2 + 1 } else { 0 };
        (limit + ahead).saturating_sub(self.calling.load(Ordering::Relaxed))
    }

    pub(super) fn take_slot(self: &Arc<WorkerState>) -> CallSlot {
        self.calling.fetch_add(1, Ordering::Relaxed);
        CallSlot(Arc::clone(self))
    }

    /// Stops the worker because of a problem that only a person can fix.
    pub(super) fn stop(&self, line: String) {
        self.needs.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(line);
        self.closing.cancel();
    }

    /// Message of the problem that only a person can fix: it stopped the worker, or keeps consolidation waiting.
    pub(super) fn needs(&self) -> Option<String> {
        let needs = self.needs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        needs.or_else(|| self.adjudicator.as_ref()?.needs())
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        self.0.calling.fetch_sub(1, Ordering::Relaxed);
        self.0.freed.notify_one();
    }
}
