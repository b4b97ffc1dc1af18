//! One connection to the database, whichever it is: the same statements run on both. Statements
//! are written with `?1`, and in the part of SQL that SQLite and PostgreSQL share; where they
//! differ, [`Db::dialect`] says which one listens.

mod sqlite;
mod value;

pub(super) use value::{Cells, Columns, Value, json};

use super::error::{Fault, StoreErrorKind};
use super::postgres::{ANNOUNCE, Connection};
use crate::domain::Digest;
use std::ops::ControlFlow;

/// A connection.
pub(super) enum Db {
    /// A file on this machine.
    Sqlite(rusqlite::Connection),
    /// A server.
    Postgres(Box<Connection>),
}

/// Rows that are inserted together: `INSERT INTO t (a, b)`, then what follows the values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Insert {
    /// Up to and including the list of columns.
    pub(super) head: &'static str,
    /// Columns in that list.
    pub(super) width: usize,
    /// From `ON CONFLICT` on, or nothing.
    pub(super) tail: &'static str,
}

/// Values of a statement, in the order of its parameters.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::edge::store::db::Value::from($value)),*] };
}
pub(super) use values;

impl Db {
    /// Runs a statement; gives how many rows it changed.
    pub(super) fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, Fault> {
        match self {
            Db::Sqlite(connection) => sqlite::execute(connection, sql, values),
            Db::Postgres(connection) => connection.execute(sql, values),
        }
    }

    /// Runs a statement of which nobody needs to know how many rows it changed. PostgreSQL hears of
    /// it together with the next statement, which then also tells of its failure.
    pub(super) fn send(&mut self, sql: &str, values: &[Value<'_>]) -> Result<(), Fault> {
        match self {
            Db::Sqlite(connection) => sqlite::execute(connection, sql, values).map(|_| ()),
            Db::Postgres(connection) => connection.send(sql, values),
        }
    }

    /// Waits for what was sent.
    pub(super) fn settle(&mut self) -> Result<(), Fault> {
        match self {
            Db::Sqlite(_) => Ok(()),
            Db::Postgres(connection) => connection.settle(),
        }
    }

    /// Runs statements that take no values, such as `BEGIN`.
    pub(super) fn batch(&mut self, sql: &str) -> Result<(), Fault> {
        match self {
            Db::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
            Db::Postgres(connection) => connection.batch(sql),
        }
    }

    /// Until the transaction ends, nobody else gets this far with the same id; SQLite has one writer
    /// anyway. For what is looked up before it is there and can be locked.
    pub(super) fn alone(&mut self, id: &Digest) -> Result<(), Fault> {
        match self {
            Db::Sqlite(_) => Ok(()),
            Db::Postgres(connection) => {
                let [a, b, c, d, e, f, g, h, ..] = *id.as_bytes();
                let key = i64::from_be_bytes([a, b, c, d, e, f, g, h]);
                connection.send("SELECT pg_advisory_xact_lock(?1)", values![key])
            }
        }
    }

    /// Locks the rows that a statement reads until the transaction ends; SQLite has one writer anyway.
    pub(super) fn locking(&self) -> &'static str {
        match self {
            Db::Sqlite(_) => "",
            Db::Postgres(_) => " FOR UPDATE",
        }
    }

    /// As [`Db::locking`], passing over rows that others have locked.
    pub(super) fn skipping_locked(&self) -> &'static str {
        match self {
            Db::Sqlite(_) => "",
            Db::Postgres(_) => " FOR UPDATE SKIP LOCKED",
        }
    }

    /// Tells waiting workers that there may be jobs, when the transaction is committed. Who watches a
    /// SQLite file sees the commit itself.
    pub(super) fn announce(&mut self) -> Result<(), Fault> {
        match self {
            Db::Sqlite(_) => Ok(()),
            Db::Postgres(connection) => connection.send(ANNOUNCE, &[]),
        }
    }

    /// Whether a transaction is open; some errors end it.
    pub(super) fn in_transaction(&self) -> bool {
        match self {
            Db::Sqlite(connection) => !connection.is_autocommit(),
            Db::Postgres(connection) => connection.in_transaction(),
        }
    }

    /// Hands each row to `each` until it breaks.
    pub(super) fn each(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut each: impl FnMut(&mut Columns<'_>) -> Result<ControlFlow<()>, Fault>,
    ) -> Result<(), Fault> {
        match self {
            Db::Sqlite(connection) => sqlite::each(connection, sql, values, &mut each),
            Db::Postgres(connection) => connection.each(sql, values, &mut each),
        }
    }

    /// What `read` makes of every row.
    pub(super) fn all<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&mut Columns<'_>) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut all = Vec::new();
        self.each(sql, values, |row| {
            all.push(read(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// What `read` makes of the first row, if there is one.
    pub(super) fn first<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnOnce(&mut Columns<'_>) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        let (mut first, mut read) = (None, Some(read));
        // What a server has found it sends in any case.
        let then = match self {
            Db::Sqlite(_) => ControlFlow::Break(()),
            Db::Postgres(_) => ControlFlow::Continue(()),
        };
        self.each(sql, values, |row| {
            if let Some(read) = read.take() {
                first = Some(read(row)?);
            }
            Ok(then)
        })?;
        Ok(first)
    }

    /// What `read` makes of the row of a statement that always gives one.
    pub(super) fn one<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnOnce(&mut Columns<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.first(sql, values, read)?.ok_or_else(|| StoreErrorKind::Damaged.into())
    }

    /// Inserts many rows; `values` holds one row after another. No two rows may have the same key:
    /// PostgreSQL refuses to touch a row twice in one statement.
    pub(super) fn insert(&mut self, into: Insert, values: &[Value<'_>]) -> Result<u64, Fault> {
        match self {
            Db::Sqlite(connection) => sqlite::insert(connection, into, values),
            Db::Postgres(connection) => connection.insert(into, values),
        }
    }

    /// As [`Db::insert`], where nobody needs to know how many rows are new; as [`Db::send`].
    pub(super) fn put(&mut self, into: Insert, values: &[Value<'_>]) -> Result<(), Fault> {
        match self {
            Db::Sqlite(connection) => sqlite::insert(connection, into, values).map(|_| ()),
            Db::Postgres(connection) => connection.put(into, values),
        }
    }
}
