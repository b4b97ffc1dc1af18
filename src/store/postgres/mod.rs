//! The store on a PostgreSQL server, for any number of processes on any number of machines: a pool of connections,
//! with retries while the server is unavailable.

mod address;
mod connection;
mod schema;
#[cfg(test)]
mod tests;

pub(super) use address::{Address, LOGIN_SECS};
pub(super) use connection::Connection;

use super::BUSY_SECS;
use super::db::{Db, Output, Work};
use super::error::{Fault, StoreErrorKind};
use super::migrations::OpenMode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Maximum number of concurrent write transactions. Four let the server group commits and leave
/// room for ten processes within PostgreSQL's default of a hundred connections.
const WRITERS_MAX: usize = 4;
const READERS_MAX: usize = 2;
/// Idle time after which a connection is closed, in seconds.
const IDLE_SECS: u64 = 60;
/// Total retry time, in seconds: a restart takes a few, a failover over half a minute.
const RETRY_SECS: u64 = 60;
const PAUSE_MILLIS: u64 = 20;
const PAUSE_MILLIS_MAX: u64 = 2_000;
/// Timeout of a write statement and of idling within its transaction, in seconds.
const WRITE_SECS: u64 = 60;

const _: () = assert!(BUSY_SECS < WRITE_SECS && WRITE_SECS <= RETRY_SECS);

/// Kind of a transaction: one that writes, or a snapshot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Access {
    Write,
    Read,
}

impl Access {
    fn begin(self) -> &'static str {
        match self {
            Access::Write => "BEGIN",
            // The reader may be piped into a pager, so a snapshot may last an hour.
            Access::Read => {
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0;
                SET LOCAL idle_in_transaction_session_timeout = '1h'"
            }
        }
    }
}

/// A connection pool; clones share it.
#[derive(Clone)]
pub(super) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    address: Address,
    idle: Mutex<Vec<(Instant, Box<Connection>)>>,
    writers: Arc<Semaphore>,
    readers: Arc<Semaphore>,
}

impl Pool {
    /// Connects and creates or migrates the tables. Blocks; may be called on any thread.
    pub(super) fn open(address: Address, open: OpenMode) -> Result<Pool, Fault> {
        let first = || -> Result<Connection, Fault> {
            let mut first = connect(&address)?;
            schema::prepare(&mut first, open)?;
            Ok(first)
        };
        // On its own thread, since the caller's may not be allowed to block.
        let first = std::thread::scope(|scope| scope.spawn(first).join());
        let first = first.unwrap_or_else(|_| Err(StoreErrorKind::Other.into()))?;
        let shared = Shared {
            address,
            idle: Mutex::new(vec![(Instant::now(), Box::new(first))]),
            writers: Arc::new(Semaphore::new(WRITERS_MAX)),
            readers: Arc::new(Semaphore::new(READERS_MAX)),
        };
        Ok(Pool { shared: Arc::new(shared) })
    }

    pub(super) fn address(&self) -> &Address {
        &self.shared.address
    }

    /// Runs `work` in a transaction or snapshot; retries if the server was unavailable or a lock was
    /// not granted. The transaction stays atomic even if the caller stops waiting.
    pub(super) async fn run(&self, access: Access, work: Work) -> Result<Output, Fault> {
        let begun = Instant::now();
        let mut pause = PAUSE_MILLIS;
        loop {
            let fault = match self.attempt(access, Arc::clone(&work)).await {
                Ok(done) => return Ok(done),
                Err(fault) => fault,
            };
            if !fault.is_retryable() || RETRY_SECS <= begun.elapsed().as_secs() {
                return Err(fault);
            }
            if fault.kind() == &StoreErrorKind::Unavailable {
                // Other idle connections are dead too.
                self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
            }
            tracing::debug!(store = self.address().shown(), kind = %fault.kind(), "retrying");
            tokio::time::sleep(Duration::from_millis(pause)).await;
            pause = (pause * 2).min(PAUSE_MILLIS_MAX);
        }
    }

    async fn attempt(&self, access: Access, work: Work) -> Result<Output, Fault> {
        let shared = Arc::clone(&self.shared);
        let permits = match access {
            Access::Write => &shared.writers,
            Access::Read => &shared.readers,
        };
        let permit = Arc::clone(permits).acquire_owned().await;
        let attempt = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            shared.transaction(access, &work)
        });
        // Fails only while the runtime shuts down.
        attempt.await.unwrap_or_else(|_| Err(StoreErrorKind::Closed.into()))
    }
}

impl Shared {
    fn transaction(&self, access: Access, work: &Work) -> Result<Output, Fault> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match idle {
            Some((_, connection)) => connection,
            None => Box::new(connect(&self.address)?),
        };
        connection.batch(access.begin())?;
        let mut db = Db::Postgres(connection);
        let done = work(&mut db);
        let ended = db.batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" });
        if let (Ok(()), Db::Postgres(connection)) = (&ended, db)
            && !connection.is_closed()
        {
            self.keep(connection);
        }
        let value = done?;
        ended.map(|()| value)
    }

    /// Returns a connection to the pool and closes those idle for too long.
    fn keep(&self, connection: Box<Connection>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push((Instant::now(), connection));
        let closing: Vec<_> =
            idle.extract_if(.., |(since, _)| IDLE_SECS <= since.elapsed().as_secs()).collect();
        drop(idle);
        drop(closing);
    }
}

/// Opens a connection with our timeouts. Durability settings are left to the server.
fn connect(address: &Address) -> Result<Connection, Fault> {
    let mut connection = Connection::open(address)?;
    connection.batch(&format!(
        "SET lock_timeout = '{BUSY_SECS}s'; SET statement_timeout = '{WRITE_SECS}s';
        SET idle_in_transaction_session_timeout = '{WRITE_SECS}s';
        SET client_min_messages = 'error'"
    ))?;
    Ok(connection)
}
