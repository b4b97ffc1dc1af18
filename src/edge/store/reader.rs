//! Connections that read beside the writer: in write-ahead logging neither waits for the other.

use super::database;
use super::db::Db;
use super::error::{Fault, StoreError};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Reads at one time; each is a connection with its own cache, and short.
const READERS_MAX: usize = 4;

/// A small pool, filled as needed.
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Db>>,
    turns: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Readers {
        let turns = Arc::new(Semaphore::new(READERS_MAX));
        Readers { path, idle: Mutex::new(Vec::with_capacity(READERS_MAX)), turns }
    }

    /// Waits for a turn; hold what it gives while reading.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.turns).acquire_owned().await.ok()
    }

    /// Runs `work` in one snapshot: it sees what was committed before it began, and nothing after.
    pub(super) fn read<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Db) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let snapshot = || -> Result<(T, Db), Fault> {
            let open = || database::open_reader(&self.path).map(Db::Sqlite);
            let mut db = idle.map_or_else(open, Ok)?;
            db.execute("BEGIN", &[])?;
            let done = work(&mut db);
            db.execute("COMMIT", &[])?;
            // A connection whose work failed is closed rather than trusted.
            Ok((done?, db))
        };
        let (done, db) = snapshot().map_err(|fault| fault.at(doing, self.path.display()))?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(db);
        Ok(done)
    }
}
