//! The store: sessions, entries, runs, records, journal and coverage in one database, so that what
//! belongs together is written together or not at all. No type of the database leaves this room.

mod beside;
mod bill;
mod changes;
mod database;
mod db;
mod entry;
mod error;
mod directories;
mod forget;
mod journal;
mod memory;
mod open_pair;
mod plan;
mod postgres;
mod prefix;
mod queue;
mod reader;
mod record;
mod run;
mod session;
mod staging;
mod status;
mod writer;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod judged_test;
#[cfg(test)]
mod memory_test;
#[cfg(test)]
mod shared_test;
#[cfg(test)]
mod tests;

pub use beside::{Remembered, StoredCard};
pub use bill::{Bill, BillLine};
pub use changes::Changes;
pub use directories::Directory;
pub use entry::Covered;
pub use error::{Refusal, StoreError, StoreErrorKind};
pub use forget::{Erased, Erasure, Looked};
pub use journal::{JournalEntry, Journaled};
pub use memory::{Backlog, Deed, Tenure};
pub use open_pair::{AskedPair, LeftPair};
pub use plan::StoredPlan;
pub use prefix::{BadPrefix, Found, IdPrefix};
pub use queue::{
    ABANDONED, CANCELLED, Cap, CapJobs, Charge, Claim, Claims, DeadJobs, Depth, Ending, Enqueued,
    Gathering, Growth, Intake, JobFilter, JobPage, Left, OpenJobs, Overdue, Presence, Rates,
    Release, SILENT_SECS, Said, Scope, Sort, Steered, StoredJob, Stuck, Which,
};
pub use record::{RecordFilter, RecordPage, StoredRecord, Why};
pub use run::{Failure, KnownRun, Run, Spent, StoredRun};
pub use session::{Ended, SessionEnd};
pub use staging::{Staged, Staging};
pub use status::{FailedRun, SessionStatus, SessionTotals, Status};

use crate::domain::{
    Digest, Entry, RecordId, Reply, RequestDigest, RunId, Rung, Session, SessionId, Timestamp,
};
use db::Db;
use error::Fault;
use postgres::{Address, For, Pool};
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::Arc;

/// How long we wait for another process that writes, in seconds: its commits take milliseconds, so
/// that one which takes longer is stuck.
pub const BUSY_SECS: u64 = 5;

/// What to do where there is no store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Open {
    /// Make one, and the folder it stands in.
    Create,
    /// Say that there is none.
    Existing,
}

/// The door to the database; clones share it. Dropping the last one waits until everything is
/// written.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    place: String,
    backend: Backend,
}

/// Where a store is.
enum Backend {
    /// In a file on this machine.
    File(File),
    /// On a server.
    Server(Pool),
}

/// Fields are dropped in their order: readers close first, so that the writer, closing last, can
/// move the whole log into the database.
struct File {
    path: PathBuf,
    readers: reader::Readers,
    writer: writer::Writer,
}

impl Store {
    /// Opens the store at `sqlite:PATH`, at a bare path, or at `postgres://…`, with the options of
    /// such a URL that tokio-postgres knows and `sslmode=verify-full`. Tables are made where there
    /// are none, and brought to our version. Waits for the disk, or for the server.
    ///
    /// # Errors
    /// Every kind of [`StoreErrorKind`] but those of sessions and jobs, and `Closed`.
    pub fn open(url: &str, open: Open) -> Result<Store, StoreError> {
        const DOING: &str = "opening the store";
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            let address = Address::of_url(url).map_err(|fault| fault.at(DOING, "store.url"))?;
            let place = address.shown().to_owned();
            let pool = Pool::open(address, open).map_err(|fault| fault.at(DOING, &place))?;
            let shared = Shared { place, backend: Backend::Server(pool) };
            return Ok(Store { shared: Arc::new(shared) });
        }
        let path = database::path_of(url)?;
        let writer = writer::Writer::start(Db::Sqlite(database::open_writer(&path, open)?), &path)?;
        let readers = reader::Readers::new(path.clone());
        let place = path.display().to_string();
        let backend = Backend::File(File { path, readers, writer });
        Ok(Store { shared: Arc::new(Shared { place, backend }) })
    }

    /// Where it is, for people: the file, or the server's URL without the password.
    pub fn place(&self) -> &str {
        &self.shared.place
    }

    /// The file it is in; none on a server.
    fn file_path(&self) -> Option<&std::path::Path> {
        match &self.shared.backend {
            Backend::File(file) => Some(&file.path),
            Backend::Server(_) => None,
        }
    }

    /// Writes what is known of a session before its entries are read. Beginning it again updates
    /// that, and forgets what it came to until it ends again; what was staged stays.
    pub async fn begin_session(&self, session: &Session) -> Result<(), StoreError> {
        let session = session.clone();
        self.write("beginning a session", move |to| session::begin(to, &session)).await
    }

    /// Writes what a session came to, and lets exactly `end.runs` cover it: the records of its other
    /// runs are replaced, those of runs that come back are as they were.
    pub async fn end_session(&self, id: SessionId, end: SessionEnd) -> Result<Ended, StoreError> {
        self.write("ending a session", move |to| session::end(to, id, &end)).await
    }

    /// The finished runs of a session that asked in this way, replaced ones too, by position.
    pub async fn known_runs(
        &self,
        session: SessionId,
        asking: Digest,
    ) -> Result<Vec<KnownRun>, StoreError> {
        self.look("reading known runs", move |from| run::known(from, session, asking)).await
    }

    /// A finished run, if there is one with this id.
    pub async fn known_run(&self, run: RunId) -> Result<Option<KnownRun>, StoreError> {
        self.look("looking for a run", move |from| run::known_one(from, run)).await
    }

    /// The answer that was given to this question, if it was ever asked.
    pub async fn journaled(&self, digest: RequestDigest) -> Result<Option<Journaled>, StoreError> {
        self.look("reading the journal", move |from| journal::find(from, digest)).await
    }

    /// Keeps an answer; it is on the disk when this returns. The first answer to a question wins:
    /// this gives the one that is kept.
    pub async fn journal(&self, entry: JournalEntry) -> Result<Reply, StoreError> {
        self.write("journaling an answer", move |to| journal::write(to, &entry)).await
    }

    /// Writes a run with its entries, coverage and records. Twice is the same as once; a run that is
    /// staged anew replaces what it came to before, unless it was done then and failed now.
    pub async fn stage(&self, staging: Staging) -> Result<Staged, StoreError> {
        let write = move |to: &mut Db| staging::write(to, &staging, staging::Texts::New);
        let staged = self.write("staging a slice", write).await?;
        self.worked(1);
        Ok(staged)
    }

    /// So many jobs and slices more were worked on; a server is swept after many.
    fn worked(&self, jobs: usize) {
        if let Backend::Server(pool) = &self.shared.backend {
            pool.worked(jobs);
        }
    }

    /// Writes entries that were in no slice, with what became of them and why.
    pub async fn stage_skipped(
        &self,
        session: SessionId,
        entries: Vec<Covered>,
    ) -> Result<(), StoreError> {
        let write = move |to: &mut Db| entry::write_skipped(to, session, &entries);
        self.write("staging skipped entries", write).await
    }

    /// The best way of asking that worked at this endpoint, if it was found.
    pub async fn capability(
        &self,
        base_url: &str,
        model: &str,
    ) -> Result<Option<Rung>, StoreError> {
        let (base_url, model) = (base_url.to_owned(), model.to_owned());
        let read = move |from: &mut Db| journal::capability(from, &base_url, &model);
        self.look("reading what the endpoint can do", read).await
    }

    /// Remembers the best way of asking that worked at this endpoint.
    pub async fn learn(
        &self,
        base_url: &str,
        model: &str,
        rung: Rung,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let (base_url, model) = (base_url.to_owned(), model.to_owned());
        let write = move |to: &mut Db| journal::learn(to, (&base_url, &model), rung, at);
        self.write("remembering what the endpoint can do", write).await
    }

    /// What runs that finished at `since` or later cost, replaced ones too, and calls that are no run's; of one
    /// namespace, of one session, or of all.
    pub async fn spent(
        &self,
        since: Timestamp,
        namespace: Option<&str>,
        session: Option<SessionId>,
    ) -> Result<Spent, StoreError> {
        let namespace = namespace.map(str::to_owned);
        let read = move |from: &mut Db| run::spent(from, since, namespace.as_deref(), session);
        self.read("adding up what was spent", read).await
    }

    /// The records of a filter, by time of session, place and order of staging.
    pub async fn records(&self, filter: RecordFilter) -> Result<Vec<StoredRecord>, StoreError> {
        let keep = |kept: &mut Vec<StoredRecord>, record| {
            kept.push(record);
            ControlFlow::Continue(())
        };
        self.fold_records(filter, Vec::new(), keep).await
    }

    /// Hands the records of a filter to `each` one by one, in the order of [`Store::records`],
    /// until it breaks; gives back what it made of `start`. For exports: memory stays flat.
    pub async fn fold_records<S: Send + 'static>(
        &self,
        filter: RecordFilter,
        start: S,
        mut each: impl FnMut(&mut S, StoredRecord) -> ControlFlow<()> + Send + 'static,
    ) -> Result<S, StoreError> {
        let mut state = start;
        let read = move |from: &mut Db| {
            record::each(from, &filter, |record| each(&mut state, record))?;
            Ok(state)
        };
        self.read_once("reading records", read).await
    }

    /// The record whose id begins so, with its run and its session.
    pub async fn record(
        &self,
        prefix: IdPrefix,
    ) -> Result<Found<RecordPage, RecordId>, StoreError> {
        let read =
            move |from: &mut Db| prefix::find(from, "records", &prefix, (RecordId, record::page));
        self.read("looking up a record", read).await
    }

    /// As [`Store::record`], with the entries that it rests on.
    pub async fn why(&self, prefix: IdPrefix) -> Result<Found<Why, RecordId>, StoreError> {
        let read =
            move |from: &mut Db| prefix::find(from, "records", &prefix, (RecordId, record::why));
        self.read("looking up a record's sources", read).await
    }

    /// The run whose id begins so.
    pub async fn run(&self, prefix: IdPrefix) -> Result<Found<StoredRun, RunId>, StoreError> {
        let read = move |from: &mut Db| {
            prefix::find(from, "runs", &prefix, (RunId, |from, id| run::find(from, RunId(id))))
        };
        self.read("looking up a run", read).await
    }

    /// Runs of one session or of all, replaced ones too, by time of session and position; `limit` at
    /// most.
    pub async fn runs(
        &self,
        session: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<StoredRun>, StoreError> {
        self.read("reading runs", move |from| run::list(from, session, limit)).await
    }

    /// Every record of either run, replaced ones too, in order of staging: what a diff compares.
    pub async fn diff(
        &self,
        old: RunId,
        new: RunId,
    ) -> Result<(Vec<StoredRecord>, Vec<StoredRecord>), StoreError> {
        let read =
            move |from: &mut Db| Ok((record::of_run(from, old)?, record::of_run(from, new)?));
        self.read("reading the records of two runs", read).await
    }

    /// The session whose id begins so.
    pub async fn session(&self, prefix: IdPrefix) -> Result<Found<Session, SessionId>, StoreError> {
        let read = move |from: &mut Db| {
            let read = |from: &mut Db, id| session::find(from, SessionId(id));
            prefix::find(from, "sessions", &prefix, (SessionId, read))
        };
        self.read("looking up a session", read).await
    }

    /// The entries of a session with ordinals in this range, in order.
    pub async fn entries_of(
        &self,
        session: SessionId,
        ordinals: Range<u32>,
    ) -> Result<Vec<Entry>, StoreError> {
        self.read("reading entries", move |from| entry::list(from, session, ordinals.clone())).await
    }

    /// How many entries a session had each time it was read to its end, in order.
    pub async fn session_ends(&self, session: SessionId) -> Result<Vec<u32>, StoreError> {
        self.look("reading where a session ended", move |from| session::ends(from, session)).await
    }

    /// Notes that a session had so many entries when it was read to its end, where some of it waits to
    /// be asked about: what grows later is cut there all the same.
    pub async fn mark_end(&self, session: SessionId, entries: u32) -> Result<(), StoreError> {
        let mark = move |to: &mut Db| session::mark_end(to, session, entries);
        self.write("marking where a session ended", mark).await
    }

    /// The file that a session was last read from; none if it is not in the store.
    pub async fn session_path(&self, session: SessionId) -> Result<Option<String>, StoreError> {
        self.look("reading a session's file", move |from| session::path(from, session)).await
    }

    /// What became of one session, of its first `entries` entries.
    pub async fn session_totals(
        &self,
        session: SessionId,
        entries: u32,
    ) -> Result<SessionTotals, StoreError> {
        self.look("adding up a session", move |from| status::totals(from, session, entries)).await
    }

    /// What became of everything.
    pub async fn status(&self) -> Result<Status, StoreError> {
        self.read("reading the status", |from: &mut Db| status::read(from)).await
    }

    /// `work` may be done more than once, where the database went away before it said whether it
    /// was committed: it must come to the same when it is done again.
    async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Fn(&mut Db) -> Result<T, Fault> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        match &self.shared.backend {
            Backend::File(file) => file.writer.write(doing, work).await,
            Backend::Server(pool) => self.told(doing, pool.run(For::Writing, work).await),
        }
    }

    /// A read of a few rows: of a file over sooner than another thread would begin it.
    async fn look<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Fn(&mut Db) -> Result<T, Fault> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        match &self.shared.backend {
            Backend::File(file) => {
                let _turn = file.readers.turn().await;
                file.readers.read(doing, work)
            }
            Backend::Server(pool) => self.told(doing, pool.run(For::Reading, work).await),
        }
    }

    async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Fn(&mut Db) -> Result<T, Fault> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        match &self.shared.backend {
            Backend::File(file) => self.read_file(file, doing, work).await,
            Backend::Server(pool) => self.told(doing, pool.run(For::Reading, work).await),
        }
    }

    /// As [`Store::read`], for work that cannot be done twice.
    async fn read_once<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Db) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        match &self.shared.backend {
            Backend::File(file) => self.read_file(file, doing, work).await,
            Backend::Server(pool) => self.told(doing, pool.run_once(For::Reading, work).await),
        }
    }

    async fn read_file<T: Send + 'static>(
        &self,
        file: &File,
        doing: &'static str,
        work: impl FnOnce(&mut Db) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let turn = file.readers.turn().await;
        let shared = Arc::clone(&self.shared);
        let read = tokio::task::spawn_blocking(move || {
            let _held = turn;
            match &shared.backend {
                Backend::File(file) => file.readers.read(doing, work),
                Backend::Server(_) => Err(StoreError::new(CLOSED, doing, &shared.place)),
            }
        });
        // Fails only where the runtime is shutting down.
        read.await.unwrap_or_else(|_| Err(StoreError::new(CLOSED, doing, self.place())))
    }

    fn told<T>(&self, doing: &'static str, outcome: Result<T, Fault>) -> Result<T, StoreError> {
        outcome.map_err(|fault| fault.at(doing, self.place()))
    }
}

const CLOSED: StoreErrorKind = StoreErrorKind::Closed;
