//! Handle of the store: opens the database, and runs work in transactions and snapshots. No database
//! type leaves `store`.

use super::postgres::{Access, Address, Pool};
use super::sqlite::SqliteFile;
use super::{
    Db, Fault, OpenMode, Output, Result, Row, StoreErrorKind, StoreResult, Value, Work, values,
};
use crate::domain::Digest;
use parking_lot::Mutex;
use std::str::FromStr;
use std::sync::Arc;

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

impl Store {
    /// Opens the store at `sqlite:PATH`, a bare path, or `postgres://…` with the URL options that
    /// tokio-postgres supports plus `sslmode=verify-full`. Creates and migrates the tables. Blocks.
    pub fn open(url: &str, open: OpenMode) -> StoreResult<Store> {
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
        work: impl Fn(&mut Db) -> Result<T> + Send + Sync + 'static,
    ) -> StoreResult<T> {
        self.perform(doing, Access::Write, work).await
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Fn(&mut Db) -> Result<T> + Send + Sync + 'static,
    ) -> StoreResult<T> {
        self.perform(doing, Access::Read, work).await
    }

    /// Like [`Store::read`], for work that passes rows on: it is not retried once started.
    pub(super) async fn read_once<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Db) -> Result<T> + Send + 'static,
    ) -> StoreResult<T> {
        let work = Mutex::new(Some(work));
        self.read(doing, move |db| {
            let work = work.lock().take();
            let work = work.ok_or(Fault::from(StoreErrorKind::Other))?;
            work(db).map_err(Fault::without_retry)
        })
        .await
    }

    /// Returns the rows of one query.
    pub(super) async fn all<T: Row + Send + 'static>(
        &self,
        doing: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> StoreResult<Vec<T>> {
        self.perform(doing, Access::Read, query(sql, values, Db::all)).await
    }

    /// Returns the first row of one query.
    pub(super) async fn first<T: Row + Send + 'static>(
        &self,
        doing: &'static str,
        sql: &str,
        values: &[Value<'_>],
    ) -> StoreResult<Option<T>> {
        self.perform(doing, Access::Read, query(sql, values, Db::first)).await
    }

    /// Hides the type of the output from threads, retries and commits.
    async fn perform<T: Send + 'static>(
        &self,
        doing: &'static str,
        access: Access,
        work: impl Fn(&mut Db) -> Result<T> + Send + Sync + 'static,
    ) -> StoreResult<T> {
        let done = self.perform_work(access, Arc::new(move |db| Ok(Box::new(work(db)?)))).await;
        let done = done.and_then(|it| it.downcast().map_err(|_| StoreErrorKind::Other.into()));
        done.map(|output| *output).map_err(|fault| fault.at(doing, self.place()))
    }

    async fn perform_work(&self, access: Access, work: Work) -> Result<Output> {
        match (self.backend(), access) {
            (Backend::File(file), Access::Write) => file.write(work).await,
            (Backend::File(file), Access::Read) => file.read(work).await,
            (Backend::Server(pool), access) => pool.run(access, work).await,
        }
    }

    /// Looks up `prefix` in a table's ids; `read` fetches the row if exactly one matches.
    pub(super) async fn lookup<T: Send + 'static>(
        &self,
        doing: &'static str,
        table: &'static str,
        prefix: IdPrefix,
        read: fn(&mut Db, Digest) -> Result<Option<T>>,
    ) -> StoreResult<PrefixLookup<T>> {
        self.read(doing, move |db| {
            let sql =
                format!("SELECT id FROM {table} WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3");
            let ids: Vec<Digest> = db.all(&sql, values![&prefix.low, &prefix.high, FOUND_MAX])?;
            match ids.as_slice() {
                [one] => Ok(read(db, *one)?.map_or(PrefixLookup::None, PrefixLookup::one)),
                [] => Ok(PrefixLookup::None),
                _ => Ok(PrefixLookup::Many(ids)),
            }
        })
        .await
    }
}

/// Work that runs one statement, for [`Store::read`] or [`Store::write`].
pub(super) fn query<T>(
    sql: &str,
    values: &[Value<'_>],
    run: fn(&mut Db, &str, &[Value<'_>]) -> Result<T>,
) -> impl Fn(&mut Db) -> Result<T> + Send + Sync + use<T> {
    let sql = sql.to_owned();
    let values: Vec<Value<'static>> = values.iter().map(Value::to_owned).collect();
    move |db| run(db, &sql, &values)
}

/// Maximum number of ids listed for an ambiguous prefix.
const FOUND_MAX: u32 = 20;

/// The first hex digits of an id, 1 to 32.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IdPrefix {
    low: Digest,
    high: Digest,
}

impl FromStr for IdPrefix {
    type Err = BadPrefix;

    fn from_str(text: &str) -> Result<IdPrefix, BadPrefix> {
        if text.is_empty() {
            return Err(BadPrefix);
        }
        let filled = |digit: &str| -> Result<Digest, BadPrefix> {
            let rest = digit.repeat(32usize.saturating_sub(text.chars().count()));
            format!("{text}{rest}").parse().map_err(|_| BadPrefix)
        };
        Ok(IdPrefix { low: filled("0")?, high: filled("f")? })
    }
}

impl From<Digest> for IdPrefix {
    fn from(whole: Digest) -> IdPrefix {
        IdPrefix { low: whole, high: whole }
    }
}

impl IdPrefix {
    /// The lowest and highest id with this prefix, for `BETWEEN`.
    pub(super) fn bounds(&self) -> (&Digest, &Digest) {
        (&self.low, &self.high)
    }
}

/// Invalid id prefix.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("not the beginning of an id: expected 1 to 32 hex digits")]
pub struct BadPrefix;

/// Result of looking up a prefix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PrefixLookup<T> {
    None,
    One(Box<T>),
    Many(Vec<Digest>),
}

impl<T> PrefixLookup<T> {
    pub(super) fn of(mut found: Vec<T>, id: impl Fn(&T) -> Digest) -> PrefixLookup<T> {
        match found.len() {
            0 | 1 => found.pop().map_or(PrefixLookup::None, PrefixLookup::one),
            _ => PrefixLookup::Many(found.iter().map(id).collect()),
        }
    }

    fn one(found: T) -> PrefixLookup<T> {
        PrefixLookup::One(Box::new(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_spans_all_ids_that_begin_so() {
        let prefix: IdPrefix = "Ab3".parse().unwrap();
        assert_eq!(prefix.low.to_string(), format!("ab3{}", "0".repeat(29)));
        assert_eq!(prefix.high.to_string(), format!("ab3{}", "f".repeat(29)));
        let whole = Digest::of(&["x"]);
        assert_eq!(whole.to_string().parse(), Ok(IdPrefix::from(whole)));
    }

    #[test]
    fn what_begins_no_id_is_refused() {
        for bad in ["", "xyz", "é", &"0".repeat(33)] {
            assert_eq!(bad.parse::<IdPrefix>(), Err(BadPrefix), "{bad}");
        }
    }
}
