//! The store in a SQLite file: concurrent readers, and one writer thread with group commit: work sent
//! during a commit is written and synced together in the next one, each piece in its own savepoint.

pub(super) mod connection;

use super::{Db, Fault, OpenMode, Output, Result, StoreErrorKind, StoreResult, Work};
use connection::{Access, open_reader, open_writer};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot};

/// Maximum number of concurrent reads; each is short and has its own connection and cache.
const READERS_MAX: usize = 4;

/// A database file. Field order matters: readers close first, so that the writer can checkpoint the
/// whole log when it closes.
pub(super) struct SqliteFile {
    readers: Arc<Readers>,
    writer: Writer,
}

impl SqliteFile {
    pub(super) fn open(url: &str, open: OpenMode) -> StoreResult<SqliteFile> {
        let path = path_of(url)?;
        let (writer, access) = open_writer(&path, open)?;
        let writer = Writer::start(Db::Sqlite(writer), &path)?;
        let readers = Readers {
            path,
            access,
            idle: Mutex::new(Vec::with_capacity(READERS_MAX)),
            permits: Arc::new(Semaphore::new(READERS_MAX)),
        };
        Ok(SqliteFile { readers: Arc::new(readers), writer })
    }

    pub(super) fn path(&self) -> &Path {
        &self.readers.path
    }

    pub(super) async fn write(&self, work: Work) -> Result<Output> {
        self.writer.write(work).await
    }

    /// Runs `work` in one snapshot.
    pub(super) async fn read(&self, work: Work) -> Result<Output> {
        let permit = Arc::clone(&self.readers.permits).acquire_owned().await;
        let readers = Arc::clone(&self.readers);
        let read = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            readers.read(&work)
        });
        // Fails only while the runtime shuts down.
        read.await.unwrap_or_else(|_| Err(StoreErrorKind::Closed.into()))
    }
}

/// Read connections; with write-ahead logging, readers and the writer do not block each other.
struct Readers {
    path: PathBuf,
    access: Access,
    idle: Mutex<Vec<Db>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    fn read(&self, work: &Work) -> Result<Output> {
        let idle = self.idle.lock().pop();
        let mut db =
            idle.map_or_else(|| open_reader(&self.path, self.access).map(Db::Sqlite), Ok)?;
        db.execute("BEGIN", &[])?;
        let done = work(&mut db);
        db.execute("COMMIT", &[])?;
        // A connection whose work failed is closed instead of reused.
        let done = done?;
        self.idle.lock().push(db);
        Ok(done)
    }
}

/// Parses `sqlite:PATH`, `sqlite://PATH` or a bare path.
fn path_of(url: &str) -> StoreResult<PathBuf> {
    let is_scheme =
        |text: &str| text.len() > 1 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+');
    let path = match url.split_once(':') {
        Some(("sqlite", path)) => path.strip_prefix("//").unwrap_or(path),
        Some((scheme, rest)) if is_scheme(scheme) && rest.starts_with("//") => "",
        Some(_) | None => url,
    };
    if path.is_empty() {
        // A URL may contain a password, so only the part before the colon is repeated.
        let shown = url.split(':').next().unwrap_or_default().to_owned();
        let kind = StoreErrorKind::BadUrl(shown);
        return Err(Fault::from(kind).at("opening the store", "store.url"));
    }
    Ok(PathBuf::from(path))
}

/// Maximum number of queued pieces of work; further callers wait. Bounds memory: a piece is a slice
/// with its records, at most some 100 KB.
const QUEUE_MAX: usize = 64;
/// Maximum number of pieces in one commit: a full queue, and as many that arrive meanwhile.
const GROUP_MAX: usize = 128;

const _: () = assert!(QUEUE_MAX <= GROUP_MAX);

/// Work with the channel of its caller, who may have stopped waiting.
struct Job {
    work: Work,
    answer: oneshot::Sender<Result<Output>>,
}

/// Handle of the writer thread. Dropping it waits until all queued work is done.
pub(super) struct Writer {
    queue: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(mut db: Db, path: &Path) -> StoreResult<Writer> {
        let (queue, jobs) = mpsc::channel(QUEUE_MAX);
        let thread = std::thread::Builder::new()
            .name("annalist-store".to_owned())
            .spawn(move || run(&mut db, jobs))
            .map_err(|error| Fault::from(error).at("starting the writer", path.display()))?;
        Ok(Writer { queue: Some(queue), thread: Some(thread) })
    }

    /// Runs `work` in a transaction; its changes are on disk when this returns. Atomic even if the
    /// caller stops waiting.
    pub(super) async fn write(&self, work: Work) -> Result<Output> {
        let closed = || Fault::from(StoreErrorKind::Closed);
        let (answer, answered) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(closed)?;
        queue.send(Job { work, answer }).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        // If the thread panicked, its callers were notified already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Time that a busy writer waits for more work. Halves the number of commits for a wait much
/// shorter than a commit.
const GATHER: Duration = Duration::from_millis(1);
/// Minimum group size at which the writer counts as busy; below it, nobody is kept waiting.
const BUSY_FROM: usize = 3;

fn run(db: &mut Db, mut queue: mpsc::Receiver<Job>) {
    let mut group: Vec<Job> = Vec::with_capacity(GROUP_MAX);
    let mut busy = false;
    // Ends when the last sender is dropped.
    while let Some(first) = queue.blocking_recv() {
        group.push(first);
        if busy {
            std::thread::sleep(GATHER);
        }
        while group.len() < GROUP_MAX {
            let Ok(next) = queue.try_recv() else { break };
            group.push(next);
        }
        busy = group.len() >= BUSY_FROM;
        commit(db, &mut group);
    }
    // Closing the last connection checkpoints the log; if other processes have it open, this moves
    // as much as they allow.
    let _ = db.batch("PRAGMA wal_checkpoint(PASSIVE)");
}

/// Commits the group in one transaction, then answers all callers. Work that failed by itself gets
/// its own fault; a failed commit fails all others.
fn commit(db: &mut Db, group: &mut Vec<Job>) {
    // Alone it needs no savepoint, which would copy every changed page and check these copies with
    // every statement.
    let is_alone = group.len() == 1;
    let mut answers = Vec::with_capacity(group.len());
    let mut begun = db.run("BEGIN IMMEDIATE", &[]);
    for Job { work, answer } in group.drain(..) {
        let done = match &begun {
            Ok(()) if is_alone => work(db),
            Ok(()) => in_savepoint(db, &work),
            Err(fault) => Err(fault.clone()),
        };
        let failed = done.as_ref().err().cloned();
        // Errors such as a full disk roll back the whole transaction, not just the savepoint.
        if begun.is_ok() && (is_alone && failed.is_some() || !in_transaction(db)) {
            begun = Err(failed.unwrap_or_else(|| StoreErrorKind::Other.into()));
        }
        answers.push((done, answer));
    }
    let ended = begun.and_then(|()| db.run("COMMIT", &[]));
    if ended.is_err() && in_transaction(db) {
        // Fails only if nothing is left to roll back.
        let _ = db.batch("ROLLBACK");
    }
    for (done, answer) in answers {
        let done = done.and_then(|output| ended.clone().map(|()| output));
        // The caller may have stopped waiting.
        let _ = answer.send(done);
    }
}

/// Runs one piece of work so that a failure rolls back only that piece.
fn in_savepoint(db: &mut Db, work: &Work) -> Result<Output> {
    db.run("SAVEPOINT work", &[])?;
    let done = work(db);
    let back = if done.is_err() { db.run("ROLLBACK TO work", &[]) } else { Ok(()) };
    let ended = back.and_then(|()| db.run("RELEASE work", &[]));
    done.and_then(|output| ended.map(|()| output))
}

fn in_transaction(db: &Db) -> bool {
    matches!(db, Db::Sqlite(connection) if !connection.is_autocommit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::value::values;
    use rusqlite::Connection;
    use std::time::Duration;

    #[test]
    fn a_url_names_a_file_or_is_refused() {
        let file = |url: &str| path_of(url).map(|path| path.display().to_string());
        assert_eq!(file("sqlite:a/b.db").unwrap(), "a/b.db");
        assert_eq!(file("sqlite:///a/b.db").unwrap(), "/a/b.db");
        assert_eq!(file("a/b.db").unwrap(), "a/b.db");
        assert_eq!(file("C:\\b.db").unwrap(), "C:\\b.db");
        let refused = file("postgres://user:word@host/db").unwrap_err();
        assert_eq!(refused.kind, StoreErrorKind::BadUrl("postgres".to_owned()));
        assert!(file("sqlite:").is_err());
    }

    /// Returns a writer on a new database with a table of numbers, and a second connection to it.
    fn numbers() -> (tempfile::TempDir, Writer, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n.db");
        let connection = Connection::open(&path).unwrap();
        let schema = "PRAGMA journal_mode = wal; PRAGMA foreign_keys = on;
            CREATE TABLE numbers (n INTEGER PRIMARY KEY);
            CREATE TABLE children (n INTEGER REFERENCES numbers DEFERRABLE INITIALLY DEFERRED)";
        connection.execute_batch(schema).unwrap();
        connection.busy_timeout(Duration::ZERO).unwrap();
        let writer = Writer::start(Db::Sqlite(connection), &path).unwrap();
        (folder, writer, Connection::open(&path).unwrap())
    }

    fn add(n: i64) -> impl FnOnce(&mut Db) -> Result<i64> + Send + 'static {
        move |to| {
            to.execute("INSERT INTO numbers VALUES (?1)", values![n])?;
            Ok(n)
        }
    }

    fn all(connection: &Connection) -> Vec<i64> {
        let mut select = connection.prepare("SELECT n FROM numbers ORDER BY rowid").unwrap();
        select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    type Step = Box<dyn FnOnce(&mut Db) -> Result<i64> + Send>;

    /// Writes with the type of the output.
    async fn write<T: Send + 'static>(
        writer: &Writer,
        work: impl FnOnce(&mut Db) -> Result<T> + Send + 'static,
    ) -> StoreResult<T> {
        let work = std::sync::Mutex::new(Some(work));
        let work: Work = std::sync::Arc::new(move |db| {
            let work = work.lock().unwrap().take().unwrap();
            Ok(Box::new(work(db)?))
        });
        let done = writer.write(work).await.map_err(|fault| fault.at("counting", "there"))?;
        Ok(*done.downcast().unwrap())
    }

    /// Blocks the writer until all of `jobs` are queued, so that they form one group.
    async fn group(writer: Writer, jobs: Vec<Step>) -> (Vec<StoreResult<i64>>, Writer) {
        let writer = std::sync::Arc::new(writer);
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = oneshot::channel::<()>();
        let hold: Step = Box::new(move |_| {
            let _ = begin.send(());
            let _ = wait.recv();
            Ok(-1)
        });
        let spawn = |job: Step| {
            let writer = std::sync::Arc::clone(&writer);
            tokio::spawn(async move { write(&writer, job).await })
        };
        let held = spawn(hold);
        begun.await.unwrap();
        let tasks: Vec<_> = jobs.into_iter().map(spawn).collect();
        // The runtime has one thread and runs tasks in order: after this, all jobs are queued.
        tokio::task::yield_now().await;
        go.send(()).unwrap();
        held.await.unwrap().unwrap();
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(task.await.unwrap());
        }
        (answers, std::sync::Arc::into_inner(writer).unwrap())
    }

    #[tokio::test]
    async fn a_group_is_one_commit_in_order_and_a_failing_job_takes_no_other_with_it() {
        let (_folder, writer, beside) = numbers();
        let mut jobs: Vec<Step> = (0..10).map(|n| Box::new(add(n)) as Step).collect();
        jobs.insert(
            4,
            Box::new(|to| {
                add(77)(to)?;
                add(0)(to)
            }),
        );
        let path = beside.path().unwrap().to_owned();
        // A concurrent reader sees nothing of an uncommitted group.
        jobs.push(Box::new(move |_| Ok(all(&Connection::open(path)?).len() as i64)));
        let (mut answers, _writer) = group(writer, jobs).await;
        assert_eq!(answers.pop().unwrap().unwrap(), 0);
        let failed = answers.remove(4).unwrap_err();
        assert_eq!((failed.kind, failed.doing), (StoreErrorKind::Other, "counting"));
        let done: Vec<i64> = answers.into_iter().map(Result::unwrap).collect();
        assert_eq!(done, (0..10).collect::<Vec<_>>());
        assert_eq!(all(&beside), done);
    }

    #[tokio::test]
    async fn a_job_that_fails_alone_leaves_nothing() {
        let (_folder, writer, beside) = numbers();
        let twice = |to: &mut Db| {
            add(7)(to)?;
            add(7)(to)
        };
        assert_eq!(write(&writer, twice).await.unwrap_err().kind, StoreErrorKind::Other);
        assert_eq!(write(&writer, add(1)).await.unwrap(), 1);
        assert_eq!(all(&beside), [1]);
    }

    #[tokio::test]
    async fn a_failed_commit_fails_everybody_and_the_writer_goes_on() {
        let (_folder, writer, beside) = numbers();
        let orphan: Step =
            Box::new(|to| Ok(to.execute("INSERT INTO children VALUES (9)", &[])? as i64));
        let (answers, writer) = group(writer, vec![Box::new(add(1)), orphan]).await;
        assert!(answers.iter().all(Result::is_err), "{answers:?}");
        assert!(all(&beside).is_empty());
        assert_eq!(write(&writer, add(2)).await.unwrap(), 2);
        assert_eq!(all(&beside), [2]);
    }

    #[tokio::test]
    async fn a_lost_transaction_fails_everybody_in_it() {
        let (_folder, writer, beside) = numbers();
        let lose: Step = Box::new(|to| {
            to.batch("ROLLBACK")?;
            Err(StoreErrorKind::Full.into())
        });
        let (answers, _writer) =
            group(writer, vec![Box::new(add(1)), lose, Box::new(add(2))]).await;
        let kinds: Vec<_> = answers.into_iter().map(|answer| answer.unwrap_err().kind).collect();
        assert_eq!(kinds[0], StoreErrorKind::Full, "{kinds:?}");
        assert_eq!(kinds[2], StoreErrorKind::Full, "{kinds:?}");
        assert!(all(&beside).is_empty());
    }

    #[tokio::test]
    async fn a_full_disk_is_named_and_nothing_half_written_stays() {
        let (_folder, writer, beside) = numbers();
        let fill = |to: &mut Db| {
            to.batch("PRAGMA max_page_count = 8")?;
            let sql = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 99999)
                INSERT INTO numbers SELECT n FROM r";
            to.execute(sql, &[])
        };
        let error = write(&writer, fill).await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Full);
        assert!(all(&beside).is_empty());
        assert_eq!(write(&writer, add(1)).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_database_that_another_process_holds_is_told_as_locked() {
        let (_folder, writer, beside) = numbers();
        beside.execute_batch("BEGIN IMMEDIATE").unwrap();
        let error = write(&writer, add(1)).await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Locked);
        let line = error.to_string();
        assert!(line.starts_with("counting: ") && line.contains("another process"), "{line}");
        beside.execute_batch("COMMIT").unwrap();
        assert_eq!(write(&writer, add(1)).await.unwrap(), 1);
    }
}
