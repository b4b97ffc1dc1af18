//! Hearing of what other processes commit, so that an idle worker need not ask again and again.

use super::Store;
use super::database;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

/// How often a file is looked at for commits of other processes, in milliseconds: a look costs some
/// ten microseconds, and who hands over work does not notice the wait.
const LOOK_MILLIS: u64 = 200;

/// Says when there may be new jobs. Dropping it ends the listening.
#[derive(Debug)]
pub struct Changes {
    heard: watch::Receiver<u64>,
    listening: JoinHandle<()>,
}

impl Changes {
    /// Waits until something was committed since this was asked last: new jobs on PostgreSQL,
    /// anything at all on SQLite. Also after the connection was lost and found again, since nobody
    /// knows what was missed. May say so once too often, never once too little.
    pub async fn changed(&mut self) {
        if self.heard.changed().await.is_err() {
            // The runtime is shutting down.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Wakes who waits.
#[derive(Debug)]
pub(super) struct Bell(watch::Sender<u64>);

impl Bell {
    pub(super) fn ring(&self) {
        self.0.send_modify(|rung| *rung = rung.wrapping_add(1));
    }
}

impl Store {
    /// Begins to listen for new jobs of other processes and of this one. Must be called within a
    /// runtime, on which it listens.
    pub fn listen(&self) -> Changes {
        let (rings, heard) = watch::channel(0);
        let bell = Bell(rings);
        let listening = match &self.shared.backend {
            super::Backend::File(file) => tokio::spawn(watch_file(file.path.clone(), bell)),
            super::Backend::Server(pool) => {
                tokio::spawn(super::postgres::listen(pool.address().clone(), bell))
            }
        };
        Changes { heard, listening }
    }
}

/// A connection of its own: SQLite tells each of what the others did.
async fn watch_file(path: PathBuf, bell: Bell) {
    let mut ticks = tokio::time::interval(Duration::from_millis(LOOK_MILLIS));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut open: Option<(Connection, i64)> = None;
    loop {
        ticks.tick().await;
        let now = match open.take() {
            Some((connection, before)) => version(&connection).map(|now| (connection, before, now)),
            // What was committed before we looked first is new, too.
            None => look(&path).map(|(connection, now)| (connection, now - 1, now)),
        };
        // A file that cannot be read now may be so at the next look.
        let Some((connection, before, now)) = now else { continue };
        if before != now {
            bell.ring();
        }
        open = Some((connection, now));
    }
}

fn look(path: &Path) -> Option<(Connection, i64)> {
    let connection = database::open_reader(path).ok()?;
    let now = version(&connection)?;
    Some((connection, now))
}

fn version(connection: &Connection) -> Option<i64> {
    connection.pragma_query_value(None, "data_version", |row| row.get(0)).ok()
}
