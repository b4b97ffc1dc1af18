//! Sweeps out what changed jobs leave behind. PostgreSQL keeps every former state of a row in the indexes
//! that it stood in until it is swept, and a claim walks over all of them; its own sweeping begins late,
//! and some servers have it turned off.

use super::address::Address;
use super::pool::connect;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Jobs that one process claims between two sweeps: a claim then walks over some thousand former states
/// at most, and a sweep of a million jobs, a tenth of a second, is a small part of the work between two.
const JOBS: usize = 5_000;
/// Leaves alone what somebody else is sweeping.
const SWEEP: &str = "VACUUM (SKIP_LOCKED, TRUNCATE FALSE) jobs";

/// Counts what there is to sweep.
#[derive(Debug, Default)]
pub(super) struct Sweeper(AtomicUsize);

impl Sweeper {
    /// So many jobs more were claimed. Sweeps beside everything else if it is time to; nobody waits
    /// for it, and a process that ends breaks it off.
    pub(super) fn claimed(&self, jobs: usize, address: &Address) {
        if self.0.fetch_add(jobs, Ordering::Relaxed) + jobs < JOBS {
            return;
        }
        self.0.store(0, Ordering::Relaxed);
        let address = address.clone();
        let sweep = move || {
            if let Err(fault) = connect(&address).and_then(|mut db| db.batch(SWEEP)) {
                tracing::debug!(store = address.shown(), kind = %fault.kind(), "not swept");
            }
        };
        // Without a thread it is done at the next time.
        let _ = std::thread::Builder::new().name("annalist-sweep".to_owned()).spawn(sweep);
    }
}
