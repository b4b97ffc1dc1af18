//! Notifications of new jobs that other processes commit, so that an idle worker need not poll.

use super::error::{Fault, StoreErrorKind};
use super::handle::{Backend, Store};
use super::postgres::{Address, LOGIN_SECS};
use super::sqlite::connection::open_reader;
use rusqlite::Connection;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, sleep, timeout};
use tokio_postgres::{AsyncMessage, SimpleQueryMessage};

/// Interval at which a file is checked for commits of other processes, in milliseconds: a look costs some ten microseconds,
/// and who hands over work does not notice the wait.
const LOOK_MILLIS: u64 = 200;

/// Says when there may be new jobs. Dropping it ends the listening.
#[derive(Debug)]
pub(crate) struct ChangeListener {
    heard: watch::Receiver<u64>,
    listening: JoinHandle<()>,
}

impl ChangeListener {
    /// Waits until something was committed since this was asked last: new jobs on PostgreSQL, anything at all on
    /// SQLite.
    pub(crate) async fn changed(&mut self) {
        if self.heard.changed().await.is_err() {
            // The runtime is shutting down.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for ChangeListener {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

#[derive(Debug)]
struct ChangeSignal(watch::Sender<u64>);

impl ChangeSignal {
    fn notify(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }
}

impl Store {
    /// Begins to listen for new jobs of other processes and of this one. Must be called within a runtime, on which it
    /// listens.
    pub(crate) fn listen(&self) -> ChangeListener {
        let (sender, heard) = watch::channel(0);
        let signal = ChangeSignal(sender);
        let listening = match self.backend() {
            Backend::File(file) => tokio::spawn(watch_file(file.path().to_owned(), signal)),
            Backend::Server(pool) => tokio::spawn(listen(pool.address().clone(), signal)),
        };
        ChangeListener { heard, listening }
    }
}

/// A connection of its own: SQLite tells each of what the others did.
async fn watch_file(path: PathBuf, signal: ChangeSignal) {
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
            signal.notify();
        }
        open = Some((connection, now));
    }
}

fn look(path: &Path) -> Option<(Connection, i64)> {
    let connection = open_reader(path).ok()?;
    let now = version(&connection)?;
    Some((connection, now))
}

fn version(connection: &Connection) -> Option<i64> {
    connection.pragma_query_value(None, "data_version", |row| row.get(0)).ok()
}

/// Pause before listening again after the connection was lost, in seconds.
const AGAIN_SECS: u64 = 1;

/// Rings `signal` for each announcement, and once whenever it begins to listen: what was announced before was not
/// heard. Ends never.
async fn listen(address: Address, signal: ChangeSignal) {
    loop {
        // The pool tells that the database is away; here nobody waits for an answer.
        if let Err(fault) = listen_once(&address, &signal).await {
            tracing::debug!(store = address.shown(), kind = %fault.kind(), "not listening");
        }
        sleep(Duration::from_secs(AGAIN_SECS)).await;
    }
}

async fn listen_once(address: &Address, signal: &ChangeSignal) -> Result<(), Fault> {
    let login = address.config.connect(address.tls.clone());
    let login = timeout(Duration::from_secs(LOGIN_SECS), login).await;
    let (client, mut connection) =
        login.map_err(|late| Fault::caused(StoreErrorKind::Unavailable, late))??;
    let mut listening = pin!(client.simple_query("LISTEN annalist_jobs; SELECT current_schema()"));
    // Other stores of this database announce on the same channel.
    let mut ours: Option<String> = None;
    loop {
        tokio::select! {
            begun = &mut listening, if ours.is_none() => {
                ours = Some(schema_of(&begun?).unwrap_or_default());
                signal.notify();
            }
            message = poll_fn(|cx| connection.poll_message(cx)) => match message {
                None => return Ok(()),
                Some(Ok(AsyncMessage::Notification(notification))) => {
                    if ours.as_deref() == Some(notification.payload()) {
                        signal.notify();
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
            },
        }
    }
}

fn schema_of(answers: &[SimpleQueryMessage]) -> Option<String> {
    answers.iter().find_map(|answer| {
        let SimpleQueryMessage::Row(row) = answer else { return None };
        row.get(0).map(str::to_owned)
    })
}
