//! Notifications of new jobs that other processes commit, so that an idle worker need not poll.

use super::error::{Fault, StoreErrorKind};
use super::handle::{Backend, Store};
use super::postgres::{Address, LOGIN_SECS};
use super::sqlite::connection::{Access, open_reader};
use rusqlite::Connection;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, sleep, timeout};
use tokio_postgres::{AsyncMessage, SimpleQueryMessage};

/// Poll interval for commits of other processes, in milliseconds. A poll costs some ten microseconds.
const POLL_MILLIS: u64 = 200;

/// Notification of possible new jobs. Dropping it stops the listener.
#[derive(Debug)]
pub(crate) struct ChangeListener {
    changes: Arc<Notify>,
    listening: JoinHandle<()>,
}

impl ChangeListener {
    /// Waits for a commit since the last call: new jobs on PostgreSQL, any commit on SQLite.
    pub(crate) async fn changed(&self) {
        self.changes.notified().await;
    }
}

impl Drop for ChangeListener {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Store {
    /// Starts listening for new jobs of this and other processes. Must be called within a Tokio
    /// runtime.
    pub(crate) fn listen(&self) -> ChangeListener {
        let changes = Arc::new(Notify::new());
        let signal = Arc::clone(&changes);
        let listening = match self.backend() {
            Backend::File(file) => tokio::spawn(watch_file(file.path().to_owned(), signal)),
            Backend::Server(pool) => tokio::spawn(listen(pool.address().clone(), signal)),
        };
        ChangeListener { changes, listening }
    }
}

/// Notifies on each commit. Uses its own connection, as `data_version` only counts the commits of others.
async fn watch_file(path: PathBuf, changes: Arc<Notify>) {
    let mut ticks = tokio::time::interval(Duration::from_millis(POLL_MILLIS));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut connection, mut before): (Option<Connection>, Option<i64>) = (None, None);
    loop {
        ticks.tick().await;
        if connection.is_none() {
            // Commits made before the connection was opened count as new.
            (connection, before) = (open_reader(&path, Access::Write).ok(), None);
        }
        let version = connection.as_ref().map(|connection| {
            connection.pragma_query_value(None, "data_version", |row| row.get::<_, i64>(0))
        });
        match version {
            Some(Ok(now)) if before != Some(now) => {
                before = Some(now);
                changes.notify_one();
            }
            Some(Ok(_)) => {}
            // The file may be readable again at the next poll.
            Some(Err(_)) | None => connection = None,
        }
    }
}

/// Pause before reconnecting, in seconds.
const RECONNECT_SECS: u64 = 1;

/// Notifies on each announcement and on each (re)connect, since earlier ones were missed. Never returns.
async fn listen(address: Address, changes: Arc<Notify>) {
    loop {
        // The pool reports an unavailable database; no caller waits for this result.
        if let Err(fault) = listen_once(&address, &changes).await {
            tracing::debug!(store = address.shown(), kind = %fault.kind(), "not listening");
        }
        sleep(Duration::from_secs(RECONNECT_SECS)).await;
    }
}

async fn listen_once(address: &Address, changes: &Notify) -> Result<(), Fault> {
    let login = address.config.connect(address.tls.clone());
    let login = timeout(Duration::from_secs(LOGIN_SECS), login).await;
    let (client, mut connection) =
        login.map_err(|late| Fault::caused(StoreErrorKind::Unavailable, late))??;
    let mut listening = pin!(client.simple_query("LISTEN annalist_jobs; SELECT current_schema()"));
    // Other stores in this database use the same channel.
    let mut ours: Option<String> = None;
    loop {
        tokio::select! {
            begun = &mut listening, if ours.is_none() => {
                ours = Some(schema_of(&begun?).unwrap_or_default());
                changes.notify_one();
            }
            message = poll_fn(|cx| connection.poll_message(cx)) => match message {
                None => return Ok(()),
                Some(Ok(AsyncMessage::Notification(notification))) => {
                    if ours.as_deref() == Some(notification.payload()) {
                        changes.notify_one();
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
