//! Feeds that fill the queue of a worker: watched folders and received streams. Neither asks a model.

#[cfg(feature = "nats")]
mod receiving;
#[cfg(test)]
#[cfg(feature = "nats")]
mod receiving_test;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod watching_test;

use super::ingest::{EnqueueOptions, Enqueuer, IntakeReport, IntakeSource};
use crate::adapters::watch::{Batch, Watch};
use crate::text::phrase::counted;
use crate::transcripts::DetectError;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Pause before a feed tries a failed store again.
const RETRY: Duration = Duration::from_secs(2);

/// A feed, and its connections to the worker.
#[derive(Clone)]
pub(crate) struct Feed {
    pub enqueuer: Arc<Enqueuer>,
    /// Ends the feed. A feed that cannot continue cancels it.
    pub closing: CancellationToken,
    /// Held if the worker drains: the feed ends once it has enqueued what there is, and the worker not before.
    pub drain: Option<Arc<()>>,
    pub tell: fn(&str),
    /// Receives the number of new jobs.
    pub enqueued: Arc<dyn Fn(u64) + Send + Sync>,
    /// Number of rejected messages.
    #[cfg_attr(not(feature = "nats"), expect(dead_code, reason = "only messages are rejected"))]
    pub rejected: Arc<AtomicU64>,
}

impl Feed {
    /// Enqueues the growth of the files in `watch`, until it is closed or drained. The store knows the progress of sessions, so
    /// that nothing is enqueued twice after a restart. Fails with the action for the user, in one line.
    pub(crate) async fn watching(
        self,
        mut watch: Watch,
        how: EnqueueOptions,
    ) -> Result<(), String> {
        loop {
            let batch = tokio::select! {
                () = self.closing.cancelled() => return Ok(()),
                batch = watch.next() => batch,
            };
            let Some(Batch { files, problems }) = batch else {
                return Err(self
                    .give_up("folders are no longer watched; start the worker again".to_owned()));
            };
            for (path, error) in problems {
                (self.tell)(&format!("{}: cannot be watched for now: {error}", path.display()));
            }
            // Bounded by `closing`; the worker reports that the store is unavailable.
            loop {
                let enqueuer = self.enqueuer.clone();
                let taking = enqueuer.enqueue_files(
                    IntakeSource::Files(files.clone()),
                    how.clone(),
                    self.closing.clone(),
                );
                match taking.await {
                    Ok(taken) => {
                        self.took(&taken, "folders");
                        break;
                    }
                    Err(error) if error.is_transient() => {
                        if !self.pause(RETRY).await {
                            return Ok(());
                        }
                    }
                    Err(error) => return Err(self.give_up(error.to_string())),
                }
            }
            // The first batch has every existing file.
            if self.drain.is_some() {
                return Ok(());
            }
        }
    }

    fn took(&self, taken: &IntakeReport, from: &str) {
        if !taken.is_nothing_new() {
            let sessions = taken.sessions.len();
            let (jobs, entries) = (taken.jobs, taken.entries);
            tracing::info!(from, sessions, jobs, entries, "handed over");
            (self.enqueued)(taken.jobs);
        }
        for problem in taken.problems.iter().chain(&taken.empty) {
            (self.tell)(&format!("{}: {}", problem.path, problem.problem));
        }
        // Files beside transcripts and those that a client begins to write change often.
        let usual = [DetectError::Nothing, DetectError::Empty].map(DetectError::reason);
        for (reason, files) in taken.files_not_read.iter().filter(|it| !usual.contains(it.0)) {
            (self.tell)(&format!("not read: {}: {reason}", counted(*files, "file")));
        }
    }

    /// Waits before a retry; false if the feed ends meanwhile.
    async fn pause(&self, pause: Duration) -> bool {
        tokio::select! {
            () = self.closing.cancelled() => false,
            () = tokio::time::sleep(pause) => true,
        }
    }

    /// Ends the worker too: the user would wait for this feed in vain.
    fn give_up(&self, line: String) -> String {
        self.closing.cancel();
        line
    }
}
