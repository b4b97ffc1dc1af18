//! What jobs are worked with, the same for all of them.

use super::counts::Counts;
use super::leases::Leases;
use super::outage::Outage;
use crate::config::{Queue, Thresholds};
use crate::domain::Timestamp;
use crate::edge::store::{Store, StoreError};
use crate::worker::extracting::Extractor;
use crate::worker::judging::Judge;
use crate::worker::steady::Steady;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What jobs are worked with.
pub(super) struct Bench {
    pub(super) extractor: Extractor,
    /// Is asked what no rule decides about memory, if the settings name a model for it.
    pub(super) judge: Option<Arc<Judge>>,
    pub(super) queue: Queue,
    /// When records become memory.
    pub(super) thresholds: Thresholds,
    pub(super) leases: Leases,
    pub(super) outage: Outage,
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
    /// The first thing that only a person can mend.
    pub(super) needs: Mutex<Option<String>>,
}

/// A job that is being asked about.
pub(super) struct Asking(Arc<Bench>);

impl Bench {
    pub(super) fn now(&self) -> Timestamp {
        (self.extractor.asker.clock)()
    }

    pub(super) fn steady(&self) -> &Steady {
        &self.extractor.asker.steady
    }

    pub(super) fn store(&self) -> &Store {
        self.extractor.asker.store()
    }

    /// Extends the leases in hand.
    pub(super) async fn extend(&self) -> Result<(), StoreError> {
        let (now, leases) = (self.now(), self.leases.all());
        if !leases.is_empty() {
            let until = now.after(self.queue.lease);
            let lost = self.store().extend(leases.clone(), until, now).await?;
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
        self.extractor.asker.pace.limit().saturating_sub(self.asking.load(Ordering::Relaxed))
    }

    /// A job more is asked about until what is returned is dropped.
    pub(super) fn ask(self: &Arc<Bench>) -> Asking {
        self.asking.fetch_add(1, Ordering::Relaxed);
        Asking(Arc::clone(self))
    }

    /// Ends the work because of something that only a person can mend.
    pub(super) fn stop(&self, line: String) {
        self.needs.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(line);
        self.closing.cancel();
    }

    /// What only a person can mend: what ended the work, or what keeps memory waiting beside it.
    pub(super) fn needs(&self) -> Option<String> {
        let needs = self.needs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        needs.or_else(|| self.judge.as_ref()?.needs())
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::Relaxed);
        self.0.freed.notify_one();
    }
}
