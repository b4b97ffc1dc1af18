//! Registry of workers, which shows them to people and tells a worker if it is alone.

use super::super::db::Db;
use super::super::error::{Fault, StoreError};
use super::super::handle::Store;
use super::super::value::{row_of, values};
use super::limits;
use crate::domain::Timestamp;

/// Time in milliseconds after which an unseen worker is gone; it reports every few seconds.
const GONE_MILLIS: i64 = 60_000;
/// Time after which the rows of unseen workers are deleted, in milliseconds.
const KEPT_MILLIS: i64 = 86_400_000;

/// A worker that is running, vanished, or stopped because of a problem that a person must fix.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WorkerStatus {
    /// Host, process and a digest of the start time.
    pub id: String,
    /// Start time.
    pub started_at: Timestamp,
    /// Time of the last report.
    pub seen_at: Timestamp,
    /// Remedy for the problem that it stopped for, in one line.
    pub stopped: Option<String>,
}

row_of! { WorkerStatus { id, started_at, seen_at, stopped } }

pub(super) fn list(db: &mut Db) -> Result<Vec<WorkerStatus>, Fault> {
    let sql = "SELECT id, started_at, seen_at, stopped FROM workers ORDER BY started_at, id";
    db.all(sql, &[])
}

impl Store {
    /// Recomputes spending without reservations, since a worker may have died with one. Does
    /// nothing while a worker other than the `gone` ones is running.
    pub(crate) async fn recount(
        &self,
        gone: Vec<String>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write("adding up what was spent", move |db: &mut Db| {
            let sql = "SELECT id FROM workers WHERE stopped IS NULL AND ?1 < seen_at";
            let since = values![Timestamp(now.0 - GONE_MILLIS)];
            let seen: Vec<String> = db.all(sql, since)?;
            if seen.iter().all(|id| gone.contains(id)) {
                limits::forget(db)?;
            }
            Ok(())
        })
        .await
    }

    /// Registers a worker as running or stopped, and deletes rows of workers long gone.
    pub(crate) async fn seen(&self, worker: WorkerStatus) -> Result<(), StoreError> {
        self.write("saying that a worker is here", move |db: &mut Db| {
            let it = &worker;
            let sql =
                "INSERT INTO workers (id, started_at, seen_at, stopped) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, stopped = excluded.stopped";
            db.execute(sql, values![&it.id, it.started_at, it.seen_at, it.stopped.as_ref()])?;
            let long_ago = Timestamp(it.seen_at.0 - KEPT_MILLIS);
            db.execute("DELETE FROM workers WHERE seen_at < ?1", values![long_ago])?;
            Ok(())
        })
        .await
    }

    pub(crate) async fn leave(&self, worker: &str) -> Result<(), StoreError> {
        let id = worker.to_owned();
        self.write("ending the work", move |db: &mut Db| {
            let id = &id;
            let sql = "DELETE FROM workers WHERE id = ?1 OR stopped IS NOT NULL
        AND seen_at < (SELECT w.started_at FROM workers w WHERE w.id = ?1)";
            db.execute(sql, values![id])?;
            Ok(())
        })
        .await
    }

    /// Returns the running, vanished and stopped workers, by start time.
    pub async fn workers(&self) -> Result<Vec<WorkerStatus>, StoreError> {
        self.read("reading who works", list).await
    }
}
