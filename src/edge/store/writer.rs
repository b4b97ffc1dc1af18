//! The one thread that writes, with group commit: what callers sent while the last commit was on
//! its way to the disk is written and synced together, each in a savepoint of its own.

use super::error::{Fault, StoreError, StoreErrorKind};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// Pieces of work that wait for the writer; a caller beyond it waits to hand over. Bounds memory:
/// one is a slice with its records, some 100 KB at most.
const QUEUE_MAX: usize = 64;
/// Pieces of work in one commit: those that can wait, and as many that came while they were taken.
const GROUP_MAX: usize = 128;

const _: () = assert!(QUEUE_MAX <= GROUP_MAX);

/// Tells one caller how it ended: well, or with a fault.
type Answer = Box<dyn FnOnce(Option<&Fault>) + Send>;
/// Does the work, or hears why it cannot be done; says how it went and how to tell the caller.
type Work = Box<dyn FnOnce(Result<&Connection, &Fault>) -> (Result<(), Fault>, Answer) + Send>;

/// The door to the thread. Dropping it lets the thread finish what it has, and waits for it.
pub(super) struct Writer {
    path: PathBuf,
    queue: Option<mpsc::Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(connection: Connection, path: &Path) -> Result<Writer, StoreError> {
        let (queue, work) = mpsc::channel(QUEUE_MAX);
        let thread = std::thread::Builder::new()
            .name("annalist-store".to_owned())
            .spawn(move || run(&connection, work))
            .map_err(|error| StoreError::of_io(error, "starting the writer", path))?;
        Ok(Writer { path: path.to_owned(), queue: Some(queue), thread: Some(thread) })
    }

    /// Runs `work` in a transaction; what it returns is on the disk when this returns. The work is
    /// done or not done as a whole, also if the caller no longer waits for it.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (send, answer) = oneshot::channel();
        let work: Work = Box::new(move |connection| {
            let done = connection.map_err(Fault::clone).and_then(work);
            let outcome = done.as_ref().map(|_| ()).map_err(Fault::clone);
            let tell = move |failed: Option<&Fault>| {
                // A caller that stopped waiting is no error.
                let _ = send.send(failed.map_or(done, |fault| Err(fault.clone())));
            };
            (outcome, Box::new(tell))
        });
        let closed = || StoreError::new(StoreErrorKind::Closed, doing, &self.path);
        let queue = self.queue.as_ref().ok_or_else(closed)?;
        queue.send(work).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?.map_err(|fault| fault.at(doing, &self.path))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        // A thread that died has told its callers already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn run(connection: &Connection, mut queue: mpsc::Receiver<Work>) {
    let mut group: Vec<Work> = Vec::with_capacity(GROUP_MAX);
    // Ends with the last sender.
    while let Some(first) = queue.blocking_recv() {
        group.push(first);
        while group.len() < GROUP_MAX {
            let Ok(next) = queue.try_recv() else { break };
            group.push(next);
        }
        commit(connection, &mut group);
    }
    // Closing the last connection moves the log into the database; with other processes about,
    // this moves what they allow.
    let _ = connection.execute_batch("PRAGMA wal_checkpoint(PASSIVE)");
}

/// Does the group in one transaction and answers everybody after the commit. Who failed alone is
/// told of that; a failed commit is told to all others.
fn commit(connection: &Connection, group: &mut Vec<Work>) {
    let mut answers: Vec<(Result<(), Fault>, Answer)> = Vec::with_capacity(group.len());
    let mut begun = connection.execute_batch("BEGIN IMMEDIATE").map_err(Fault::from);
    for work in group.drain(..) {
        let (outcome, answer) = match &begun {
            Ok(()) => in_savepoint(connection, work),
            Err(fault) => work(Err(fault)),
        };
        // A full disk and the like end the whole transaction, not the savepoint alone.
        if begun.is_ok() && connection.is_autocommit() {
            begun = outcome.clone().and_then(|()| Err(StoreErrorKind::Other.into()));
        }
        answers.push((outcome, answer));
    }
    let ended = begun.and_then(|()| Ok(connection.execute_batch("COMMIT")?));
    if ended.is_err() && !connection.is_autocommit() {
        // Fails only where nothing is left to roll back.
        let _ = connection.execute_batch("ROLLBACK");
    }
    for (outcome, answer) in answers {
        answer(outcome.as_ref().err().or(ended.as_ref().err()));
    }
}

/// Does one piece of work so that its failure takes back itself alone.
fn in_savepoint(connection: &Connection, work: Work) -> (Result<(), Fault>, Answer) {
    if let Err(error) = savepoint(connection, "SAVEPOINT work") {
        return work(Err(&error));
    }
    let (outcome, answer) = work(Ok(connection));
    let ended = match outcome {
        Ok(()) => savepoint(connection, "RELEASE work"),
        Err(_) => savepoint(connection, "ROLLBACK TO work")
            .and_then(|()| savepoint(connection, "RELEASE work")),
    };
    (outcome.and(ended), answer)
}

fn savepoint(connection: &Connection, sql: &str) -> Result<(), Fault> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}
