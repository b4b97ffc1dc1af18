//! The connections of one process: a few that write, a few that read, all opened when they are
//! needed. What fails because the database is away for a while is tried again.

use super::super::BUSY_SECS;
use super::super::Open;
use super::super::db::Db;
use super::super::error::{Fault, StoreErrorKind};
use super::address::Address;
use super::connection::Connection;
use super::schema;
use super::sweep::Sweeper;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Transactions that write at one time: enough that the server syncs many commits at once, few
/// enough that ten processes fit into PostgreSQL's usual hundred connections.
pub(super) const WRITERS_MAX: usize = 4;
/// Snapshots that are read at one time.
const READERS_MAX: usize = 2;
/// A connection that was idle for this long is closed, in seconds.
const IDLE_SECS: u64 = 60;
/// How long work is tried again while the database is away, in seconds: a restart takes a few, a
/// standby that takes over half a minute.
pub(super) const AGAIN_SECS: u64 = 60;
/// The first pause before work is tried again, and the longest, in milliseconds.
const PAUSE_MILLIS: u64 = 20;
const PAUSE_MILLIS_MAX: u64 = 2_000;
/// How long one statement that writes may take, and how long we may be silent in its transaction, in
/// seconds: more means that something hangs.
const WRITE_SECS: u64 = 60;
/// A snapshot may take as long as it takes, and whoever takes its rows may be a pager: an hour.
const READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
     SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = '1h'";

const _: () = assert!(BUSY_SECS < WRITE_SECS && WRITE_SECS <= AGAIN_SECS);

/// What a turn is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::edge::store) enum For {
    /// A transaction that writes.
    Writing,
    /// A snapshot: what was committed before it began, and nothing after.
    Reading,
}

/// The door; clones share it.
#[derive(Clone)]
pub(in crate::edge::store) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    address: Address,
    idle: Mutex<Vec<(Instant, Db)>>,
    writers: Arc<Semaphore>,
    readers: Arc<Semaphore>,
    /// The database went away and is not back.
    away: AtomicBool,
    sweeper: Sweeper,
}

impl Pool {
    /// Connects, and makes or migrates the tables. Blocks; may be called anywhere.
    pub(in crate::edge::store) fn open(address: Address, open: Open) -> Result<Pool, Fault> {
        let first = || -> Result<Db, Fault> {
            let mut first = connect(&address)?;
            schema::prepare(&mut first, open)?;
            Ok(Db::Postgres(Box::new(first)))
        };
        // On a thread of its own, since the caller's may not be allowed to block.
        let first = std::thread::scope(|scope| scope.spawn(first).join());
        let first = first.unwrap_or_else(|_| Err(StoreErrorKind::Other.into()))?;
        let shared = Shared {
            address,
            idle: Mutex::new(vec![(Instant::now(), first)]),
            writers: Arc::new(Semaphore::new(WRITERS_MAX)),
            readers: Arc::new(Semaphore::new(READERS_MAX)),
            away: AtomicBool::new(false),
            sweeper: Sweeper::default(),
        };
        Ok(Pool { shared: Arc::new(shared) })
    }

    pub(in crate::edge::store) fn address(&self) -> &Address {
        &self.shared.address
    }

    /// So many jobs and slices more were worked on, and leave their former states behind.
    pub(in crate::edge::store) fn worked(&self, jobs: usize) {
        self.shared.sweeper.worked(jobs, &self.shared.address);
    }

    /// Runs `work` in a transaction, again where the database was away or the work lost to other
    /// work. Done or not done as a whole, also if the caller no longer waits.
    pub(in crate::edge::store) async fn run<T: Send + 'static>(
        &self,
        what: For,
        work: impl Fn(&mut Db) -> Result<T, Fault> + Send + Sync + 'static,
    ) -> Result<T, Fault> {
        let (work, begun) = (Arc::new(work), Instant::now());
        let mut pause = PAUSE_MILLIS;
        loop {
            let fault = match self.attempt(what, Arc::clone(&work)).await {
                Ok(done) => {
                    self.shared.is_back();
                    return Ok(done);
                }
                Err(fault) => fault,
            };
            if !fault.passes() || AGAIN_SECS <= begun.elapsed().as_secs() {
                return Err(fault);
            }
            self.shared.note(&fault);
            tokio::time::sleep(Duration::from_millis(pause)).await;
            pause = (pause * 2).min(PAUSE_MILLIS_MAX);
        }
    }

    /// As [`Pool::run`], for work that cannot be done twice: tried again only until it began.
    pub(in crate::edge::store) async fn run_once<T: Send + 'static>(
        &self,
        what: For,
        work: impl FnOnce(&mut Db) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let work = Mutex::new(Some(work));
        self.run(what, move |db| {
            db.settle()?;
            let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
            let work = work.ok_or(Fault::from(StoreErrorKind::Other))?;
            work(db).map_err(Fault::for_good)
        })
        .await
    }

    async fn attempt<T: Send + 'static>(
        &self,
        what: For,
        work: Arc<impl Fn(&mut Db) -> Result<T, Fault> + Send + Sync + 'static>,
    ) -> Result<T, Fault> {
        let shared = Arc::clone(&self.shared);
        let turns = match what {
            For::Writing => &shared.writers,
            For::Reading => &shared.readers,
        };
        let turn = Arc::clone(turns).acquire_owned().await;
        let attempt = tokio::task::spawn_blocking(move || {
            let _held = turn;
            shared.attempt(what, &*work)
        });
        // Fails only where the runtime is shutting down.
        attempt.await.unwrap_or_else(|_| Err(StoreErrorKind::Closed.into()))
    }
}

impl Shared {
    fn attempt<T>(
        &self,
        what: For,
        work: &impl Fn(&mut Db) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut db = match idle {
            Some((_, db)) => db,
            None => Db::Postgres(Box::new(connect(&self.address)?)),
        };
        let Db::Postgres(connection) = &mut db else { return Err(StoreErrorKind::Other.into()) };
        connection.begin(match what {
            For::Writing => "BEGIN",
            For::Reading => READ,
        });
        let done = work(&mut db);
        let Db::Postgres(connection) = &mut db else { return Err(StoreErrorKind::Other.into()) };
        let ended = match &done {
            // The rest of the rows would have to be waited for; closing is sooner.
            Ok(_) if connection.has_left_over() => Ok(()),
            Ok(_) => connection.end("COMMIT"),
            Err(_) => connection.end("ROLLBACK").or(Ok(())),
        };
        if connection.is_clean() {
            self.keep(db);
        }
        ended.and(done)
    }

    /// Puts a connection back, and closes those that nobody needed for a while.
    fn keep(&self, db: Db) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push((Instant::now(), db));
        let old = |(since, _): &(Instant, Db)| IDLE_SECS <= since.elapsed().as_secs();
        let closing: Vec<_> = idle.extract_if(.., |it| old(it)).collect();
        drop(idle);
        drop(closing);
    }

    fn note(&self, fault: &Fault) {
        let away = fault.kind() == &StoreErrorKind::Unavailable;
        if away && !self.away.swap(true, Ordering::Relaxed) {
            // Connections of before are dead, too.
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
            tracing::warn!(store = self.address.shown(), "the database went away; trying again");
        }
    }

    fn is_back(&self) {
        if self.away.load(Ordering::Relaxed) && self.away.swap(false, Ordering::Relaxed) {
            tracing::warn!(store = self.address.shown(), "the database is back");
        }
    }
}

/// A connection with our bounds. Durability is the server's; we never ask for less.
pub(super) fn connect(address: &Address) -> Result<Connection, Fault> {
    let mut connection = Connection::open(address)?;
    connection.batch(&format!(
        "SET lock_timeout = '{BUSY_SECS}s'; SET statement_timeout = '{WRITE_SECS}s';
        SET idle_in_transaction_session_timeout = '{WRITE_SECS}s';
        SET client_min_messages = 'error'"
    ))?;
    Ok(connection)
}
