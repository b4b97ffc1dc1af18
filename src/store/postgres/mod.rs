//! The store on a PostgreSQL server, for any number of processes on any number of machines: a pool of connections,
//! with retries while the server is unavailable. Creates, identifies and migrates our tables.

mod address;
mod connection;
#[cfg(test)]
mod tests;

pub(super) use address::Address;
pub(super) use connection::Connection;

use super::{
    APPLICATION_ID, BUSY_SECS, Db, KNOWN, OpenMode, Output, POSTGRES as MIGRATIONS, Refusal,
    Result, StoreErrorKind, Work, values,
};
use parking_lot::Mutex;
use std::sync::Arc;
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
    idle: Mutex<Vec<(Instant, Db)>>,
    writers: Arc<Semaphore>,
    readers: Arc<Semaphore>,
}

impl Pool {
    /// Connects and creates or migrates the tables. Blocks; may be called on any thread.
    pub(super) fn open(address: Address, open: OpenMode) -> Result<Pool> {
        let first = || -> Result<Db> {
            let mut first = connect(&address)?;
            prepare(&mut first, open)?;
            Ok(first)
        };
        // On its own thread, since the caller's may not be allowed to block.
        let first = std::thread::scope(|scope| scope.spawn(first).join());
        let first = first.unwrap_or_else(|_| Err(StoreErrorKind::Other.into()))?;
        let shared = Shared {
            address,
            idle: Mutex::new(vec![(Instant::now(), first)]),
            writers: Arc::new(Semaphore::new(WRITERS_MAX)),
            readers: Arc::new(Semaphore::new(READERS_MAX)),
        };
        Ok(Pool { shared: Arc::new(shared) })
    }

    /// Runs `work` in a transaction or snapshot; retries if the server was unavailable or a lock was
    /// not granted. The transaction stays atomic even if the caller stops waiting.
    pub(super) async fn run(&self, access: Access, work: Work) -> Result<Output> {
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
            if fault.kind == StoreErrorKind::Unavailable {
                // Other idle connections are dead too.
                self.shared.idle.lock().clear();
            }
            tracing::debug!(store = self.shared.address.shown(), kind = %fault.kind, "retrying");
            tokio::time::sleep(Duration::from_millis(pause)).await;
            pause = (pause * 2).min(PAUSE_MILLIS_MAX);
        }
    }

    async fn attempt(&self, access: Access, work: Work) -> Result<Output> {
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
    fn transaction(&self, access: Access, work: &Work) -> Result<Output> {
        let idle = self.idle.lock().pop();
        let mut db = idle.map_or_else(|| connect(&self.address), |(_, db)| Ok(db))?;
        db.batch(access.begin())?;
        let done = work(&mut db);
        let ended = db.batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" });
        let is_open = matches!(&db, Db::Postgres(connection) if !connection.is_closed());
        if ended.is_ok() && is_open {
            self.keep(db);
        }
        let value = done?;
        ended.map(|()| value)
    }

    /// Returns a connection to the pool and closes those idle for too long.
    fn keep(&self, db: Db) {
        let mut idle = self.idle.lock();
        idle.push((Instant::now(), db));
        let closing: Vec<_> =
            idle.extract_if(.., |(since, _)| IDLE_SECS <= since.elapsed().as_secs()).collect();
        drop(idle);
        drop(closing);
    }
}

/// Opens a connection with our timeouts. Durability settings are left to the server.
fn connect(address: &Address) -> Result<Db> {
    let mut db = Db::Postgres(Box::new(Connection::open(address)?));
    db.batch(&format!(
        "SET lock_timeout = '{BUSY_SECS}s'; SET statement_timeout = '{WRITE_SECS}s';
        SET idle_in_transaction_session_timeout = '{WRITE_SECS}s';
        SET client_min_messages = 'error'"
    ))?;
    Ok(db)
}

/// Lock timeout for concurrent migrations, in seconds: another process may be rewriting tables.
const MIGRATION_SECS: u64 = 60;

fn prepare(db: &mut Db, open: OpenMode) -> Result<()> {
    match (version(db)?, open) {
        (Some(KNOWN), _) => return Ok(()),
        (None, OpenMode::Existing) => return Err(StoreErrorKind::Missing.into()),
        (Some(_), _) | (None, OpenMode::Create) => {}
    }
    db.batch("BEGIN")?;
    let done = migrate(db);
    let ended = db.batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" });
    done.and(ended)
}

/// Serialized by an advisory lock; the second process finds nothing left to do.
fn migrate(db: &mut Db) -> Result<()> {
    db.batch(&format!(
        "SET LOCAL lock_timeout = '{MIGRATION_SECS}s'; SET LOCAL statement_timeout = 0;
        SELECT pg_advisory_xact_lock({APPLICATION_ID})"
    ))?;
    make_schema(db)?;
    let found = version(db)?;
    if found.is_none() {
        db.batch("CREATE TABLE annalist (application BIGINT NOT NULL, version BIGINT NOT NULL)")?;
        db.run("INSERT INTO annalist VALUES (?1, 0)", values![APPLICATION_ID])?;
    }
    for migration in MIGRATIONS.iter().skip(found.unwrap_or(0) as usize) {
        db.batch(migration)?;
    }
    db.run("UPDATE annalist SET version = ?1", values![KNOWN])
}

/// Returns the schema version, or `None` if there are no tables. Fails for foreign or newer tables.
fn version(db: &mut Db) -> Result<Option<u32>> {
    let mut pair = |sql| -> Result<(i64, i64)> {
        db.first(sql, &[])?.ok_or_else(|| StoreErrorKind::Refused(Refusal::Foreign).into())
    };
    let (tables, ours) = pair(
        "SELECT count(*), count(*) FILTER (WHERE tablename = 'annalist')
        FROM pg_tables WHERE schemaname = current_schema()",
    )?;
    if tables == 0 {
        return Ok(None);
    }
    // Unqualified names resolve to this schema, the first that exists in the search path.
    let columns =
        "SELECT count(*), count(*) FILTER (WHERE column_name IN ('application', 'version'))
        FROM information_schema.columns
        WHERE table_schema = current_schema() AND table_name = 'annalist'";
    if ours == 0 || pair(columns)? != (2, 2) {
        return Err(StoreErrorKind::Refused(Refusal::Foreign).into());
    }
    let (application, found) = pair("SELECT application, version FROM annalist")?;
    if application != i64::from(APPLICATION_ID) {
        return Err(StoreErrorKind::Refused(Refusal::Foreign).into());
    }
    let found = u32::try_from(found).unwrap_or(u32::MAX);
    if KNOWN < found {
        return Err(StoreErrorKind::Newer { found, known: KNOWN }.into());
    }
    Ok(Some(found))
}

/// Creates the first schema that `search_path` names, other than the default `"$user"`.
fn make_schema(db: &mut Db) -> Result<()> {
    let sql = "SELECT name FROM unnest(string_to_array(current_setting('search_path'), ','))
        WITH ORDINALITY AS path (name, at) WHERE trim(name) NOT IN ('', '\"$user\"')
        ORDER BY at LIMIT 1";
    // As written there, including any quotes.
    let name: String = db.first(sql, &[])?.ok_or(StoreErrorKind::Refused(Refusal::Schema))?;
    if db.one("SELECT to_regnamespace(?1) IS NULL", values![&name])? {
        db.batch(&format!("CREATE SCHEMA {name}"))?;
    }
    Ok(())
}
