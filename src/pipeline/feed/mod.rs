//! What feeds the queue beside a worker: folders that are watched, streams that are received. Both hand
//! over what they find and go on; neither asks a model.

mod receiving;
#[cfg(test)]
mod receiving_test;
#[cfg(test)]
mod testing;
mod watching;
#[cfg(test)]
mod watching_test;

use super::ingest::{Enqueuer, TakenIn};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a feed waits before it tries again what a store in trouble did not take.
const RETRY: Duration = Duration::from_secs(2);

/// A feed, and what it shares with the worker beside it.
#[derive(Clone)]
pub(crate) struct Feed {
    /// Takes in what is found.
    pub enqueuer: Arc<Enqueuer>,
    /// Cancelled, it hands over no more. A feed that cannot go on cancels it.
    pub closing: CancellationToken,
    /// Says a line to a person.
    pub tell: fn(&str),
    /// Hears how many jobs are new.
    pub enqueued: Arc<dyn Fn(u64) + Send + Sync>,
}

impl Feed {
    fn took(&self, taken: &TakenIn, from: &str) {
        if !taken.is_nothing_new() {
            let sessions = taken.sessions.len();
            tracing::info!(
                from,
                sessions,
                jobs = taken.jobs,
                entries = taken.entries,
                "handed over"
            );
            (self.enqueued)(taken.jobs);
        }
        for problem in &taken.problems {
            (self.tell)(&format!("{}: {}", problem.path, problem.problem));
        }
    }

    /// Waits before something is tried again; false if there is no more time.
    async fn pause(&self, pause: Duration) -> bool {
        tokio::select! {
            () = self.closing.cancelled() => false,
            () = tokio::time::sleep(pause) => true,
        }
    }

    /// Ends the worker too: who asked for this feed would wait for what never comes.
    fn give_up(&self, line: String) -> String {
        self.closing.cancel();
        line
    }
}
