//! Handle of the store: opens the database and runs work in transactions and snapshots. No database
//! type leaves `store`.

use super::db::{Db, Output, Work};
use super::error::{Fault, StoreError, StoreErrorKind};
use super::migrations::OpenMode;
use super::postgres::{Access, Address, Pool};
use super::sqlite::SqliteFile;
use super::value::{OwnedValue, Row, Value};
use std::sync::{Arc, Mutex, PoisonError};

/// The database; clones share it. Dropping the last one waits until all writes are done.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    place: String,
    backend: Backend,
}

pub(super) enum Backend {
    File(SqliteFile),
    Server(Pool),
}

/// A statement with its parameters.
struct Query {
    sql: String,
    values: Vec<OwnedValue>,
}

impl Query {
    fn of(sql: &str, values: &[Value<'_>]) -> Query {
        Query { sql: sql.to_owned(), values: values.iter().map(OwnedValue::of).collect() }
    }

    fn values(&self) -> Vec<Value<'_>> {
        self.values.iter().map(OwnedValue::value).collect()
    }
}

impl Store {
    /// Opens the store at `sqlite:PATH`, a bare path, or `postgres://…` with the URL options that
    /// tokio-postgres supports plus `sslmode=verify-full`. Creates and migrates the tables. Blocks.
    pub fn open(url: &str, open: OpenMode) -> Result<Store, StoreError> {
        const DOING: &str = "opening the store";
        let (place, backend) = if url.starts_with("postgres://") || url.starts_with("postgresql://")
        {
            let address = Address::of_url(url).map_err(|fault| fault.at(DOING, "store.url"))?;
            let place = address.shown().to_owned();
            let pool = Pool::open(address, open).map_err(|fault| fault.at(DOING, &place))?;
            (place, Backend::Server(pool))
        } else {
            let file = SqliteFile::open(url, open)?;
            (file.path().display().to_string(), Backend::File(file))
        };
        Ok(Store { shared: Arc::new(Shared { place, backend }) })
    }

    /// The file path, or the server's URL without the password, for display.
    pub fn place(&self) -> &str {
        &self.shared.place
    }

    pub(super) fn backend(&self) -> &Backend {
        &self.shared.backend
    }

    /// Runs `work` in a transaction. It must be idempotent: it is repeated if the connection is
    /// lost before the commit is confirmed.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Fn(&mut Db) -> Result<T, Fault> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        let work: Work = Arc::new(move |db| Ok(Box::new(work(db)?)));
        self.output_of(doing, self.perform(doing, Access::Write, work).await?)
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Fn(&mut Db) -> Result<T, Fault> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        let work: Work = Arc::new(move |db| Ok(Box::new(work(db)?)));
        self.output_of(doing, self.perform(doing, Access::Read, work).await?)
    }

    /// Like [`Store::read`], for work that passes rows on: it is not retried once started.
    pub(super) async fn read_once<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Db) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let work = Mutex::new(Some(work));
        self.read(doing, move |db| {
            let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
            let work = work.ok_or(Fault::from(StoreErrorKind::Other))?;
            work(db).map_err(Fault::without_retry)
        })
        .await
    }

    /// Runs one statement in a transaction and returns the number of rows it changed. It must be
    /// idempotent, as in [`Store::write`].
    pub(super) async fn execute(
        &self,
        doing: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<u64, StoreError> {
        let query = Query::of(sql, values);
        self.write(doing, move |db| db.execute(&query.sql, &query.values())).await
    }

    /// Returns the rows of one query.
    pub(super) async fn all<T: Row + Send + 'static>(
        &self,
        doing: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<T>, StoreError> {
        let query = Query::of(sql, values);
        self.read(doing, move |db| db.all(&query.sql, &query.values())).await
    }

    /// Returns the first row of one query.
    pub(super) async fn first<T: Row + Send + 'static>(
        &self,
        doing: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Option<T>, StoreError> {
        let query = Query::of(sql, values);
        self.read(doing, move |db| db.first(&query.sql, &query.values())).await
    }

    /// Returns the only row of one query.
    pub(super) async fn one<T: Row + Send + 'static>(
        &self,
        doing: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<T, StoreError> {
        let query = Query::of(sql, values);
        self.read(doing, move |db| db.one(&query.sql, &query.values())).await
    }

    /// Returns true if a query for a number finds a row.
    pub(super) async fn exists(
        &self,
        doing: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<bool, StoreError> {
        Ok(self.first::<i64>(doing, sql, values).await?.is_some())
    }

    async fn perform(
        &self,
        doing: &'static str,
        does: Access,
        work: Work,
    ) -> Result<Output, StoreError> {
        let done = match (self.backend(), does) {
            (Backend::File(file), Access::Write) => file.write(work).await,
            (Backend::File(file), Access::Read) => file.read(work).await,
            (Backend::Server(pool), does) => pool.run(does, work).await,
        };
        done.map_err(|fault| fault.at(doing, self.place()))
    }

    /// Restores the type of an output.
    fn output_of<T: 'static>(&self, doing: &'static str, output: Output) -> Result<T, StoreError> {
        let other = |_| StoreError::new(StoreErrorKind::Other, doing, self.place());
        output.downcast().map(|value| *value).map_err(other)
    }
}
