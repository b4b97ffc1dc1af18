//! Folders that are watched: what their transcripts grow by is handed over.

use super::{Feed, RETRY};
use crate::adapters::watch::{Batch, Watch};
use crate::pipeline::ingest::HandOver;

impl Feed {
    /// Hands over what the files of `watch` grow by, until it is closed. Where a session stands is in
    /// the store, so that this goes on after a restart and hands over nothing twice.
    ///
    /// # Errors
    /// One line that says what a person must do.
    pub(crate) async fn watching(self, mut watch: Watch, how: HandOver) -> Result<(), String> {
        loop {
            let batch = tokio::select! {
                () = self.closing.cancelled() => return Ok(()),
                batch = watch.next() => batch,
            };
            let Some(Batch { files, problems }) = batch else { return Ok(()) };
            for (path, error) in problems {
                (self.tell)(&format!("{}: cannot be watched for now: {error}", path.display()));
            }
            // Bounded by `closing`: a store in trouble is waited for, and the worker beside says so.
            loop {
                let enqueuer = self.enqueuer.clone();
                let taking = enqueuer.found(files.clone(), how.clone(), self.closing.clone());
                match taking.await {
                    Ok(taken) => {
                        self.took(&taken, "folders");
                        break;
                    }
                    Err(error) if error.is_passing() => {
                        if !self.pause(RETRY).await {
                            return Ok(());
                        }
                    }
                    Err(error) => return Err(self.give_up(error.to_string())),
                }
            }
        }
    }
}
