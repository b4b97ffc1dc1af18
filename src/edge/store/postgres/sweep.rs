//! Sweeps out what changed jobs leave behind, and lets the server count what its tables hold. PostgreSQL
//! keeps every former state of a row in the indexes that it stood in until it is swept, and a claim walks
//! over all of them; what it has not counted it reads whole. It does both by itself, but late, and some
//! servers have it turned off.

use super::address::Address;
use super::pool::connect;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Jobs and slices that one process ends between two sweeps: a claim then walks over some thousand former states
/// at most, and a sweep of a million jobs, a tenth of a second, is a small part of the work between two.
const JOBS: usize = 5_000;
/// After so many it is done for the first time: what was never counted is taken to be small.
const FIRST: usize = 500;
/// Sweeps between two counts; tables that grow by a part of what they hold are read in the same way.
const SWEEPS: usize = 16;
/// Leaves alone what somebody else is sweeping.
const SWEEP: &str = "VACUUM (SKIP_LOCKED, TRUNCATE FALSE) jobs";
/// As above.
const COUNT: &str = "ANALYZE (SKIP_LOCKED) sessions, entries, coverage, runs, records, jobs";

/// Knows when there is something to sweep.
#[derive(Debug)]
pub(super) struct Sweeper {
    jobs: AtomicUsize,
    sweeps: AtomicUsize,
}

impl Default for Sweeper {
    fn default() -> Sweeper {
        Sweeper { jobs: AtomicUsize::new(JOBS - FIRST), sweeps: AtomicUsize::new(0) }
    }
}

impl Sweeper {
    /// So many jobs and slices more were worked on. Sweeps beside everything else if it is time to;
    /// nobody waits for it, and a process that ends breaks it off.
    pub(super) fn worked(&self, jobs: usize, address: &Address) {
        let Some(orders) = self.due(jobs) else { return };
        let address = address.clone();
        let sweep = move || {
            let swept = connect(&address)
                .and_then(|mut db| orders.iter().try_for_each(|order| db.batch(order)));
            if let Err(fault) = swept {
                tracing::debug!(store = address.shown(), kind = %fault.kind(), "not swept");
            }
        };
        // Without a thread it is done at the next time.
        let _ = std::thread::Builder::new().name("annalist-sweep".to_owned()).spawn(sweep);
    }

    fn due(&self, jobs: usize) -> Option<&'static [&'static str]> {
        if self.jobs.fetch_add(jobs, Ordering::Relaxed) + jobs < JOBS {
            return None;
        }
        self.jobs.store(0, Ordering::Relaxed);
        let counts = self.sweeps.fetch_add(1, Ordering::Relaxed).is_multiple_of(SWEEPS);
        Some(if counts { &[SWEEP, COUNT] } else { &[SWEEP] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_few_thousand_jobs_are_swept_and_now_and_then_counted() {
        let sweeper = Sweeper::default();
        let orders: Vec<usize> = (0..FIRST + JOBS * (2 * SWEEPS - 1))
            .filter_map(|_| sweeper.due(1))
            .map(<[_]>::len)
            .collect();
        let expected = [vec![2], vec![1; SWEEPS - 1]].concat().repeat(2);
        assert_eq!(orders, expected);
    }
}
