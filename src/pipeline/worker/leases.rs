//! Leases of the jobs in progress.

use crate::domain::{JobId, Lease};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub(super) struct Leases(Mutex<HashMap<(JobId, u64), LeaseEntry>>);

#[derive(Debug)]
struct LeaseEntry {
    lease: Lease,
    stop: CancellationToken,
}

/// A held lease. Dropping it ends its extensions, whatever the state of the job in the store.
#[derive(Debug)]
pub(super) struct LeaseGuard<'a> {
    leases: &'a Leases,
    lease: Lease,
    /// Cancelled when the lease is lost or the worker stops.
    pub(super) stop: CancellationToken,
    closing: CancellationToken,
}

impl Leases {
    pub(super) fn take(&self, lease: Lease, closing: &CancellationToken) -> LeaseGuard<'_> {
        let stop = closing.child_token();
        let held = LeaseEntry { lease, stop: stop.clone() };
        self.held().insert((lease.subject, lease.token), held);
        LeaseGuard { leases: self, lease, stop, closing: closing.clone() }
    }

    pub(super) fn all(&self) -> Vec<Lease> {
        self.held().values().map(|held| held.lease).collect()
    }

    /// Stops the jobs whose leases were lost to other workers. Returns their number, without jobs that ended meanwhile
    /// and dropped their leases.
    pub(super) fn lose(&self, extended: &[Lease], lost: &[JobId]) -> usize {
        let mut held = self.held();
        let lost = extended.iter().filter(|lease| lost.contains(&lease.subject));
        let gone: Vec<LeaseEntry> =
            lost.filter_map(|lease| held.remove(&(lease.subject, lease.token))).collect();
        gone.iter().for_each(|held| held.stop.cancel());
        gone.len()
    }

    fn held(&self) -> MutexGuard<'_, HashMap<(JobId, u64), LeaseEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaseGuard<'_> {
    /// True if another worker may have the job.
    pub(super) fn is_lost(&self) -> bool {
        self.stop.is_cancelled() && !self.closing.is_cancelled()
    }
}

impl Drop for LeaseGuard<'_> {
    fn drop(&mut self) {
        self.leases.held().remove(&(self.lease.subject, self.lease.token));
    }
}
