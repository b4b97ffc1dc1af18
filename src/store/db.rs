//! Connection to either database. Statements use `?1` placeholders and the subset of SQL that
//! SQLite and PostgreSQL share.

use super::error::{Result, StoreErrorKind};
use super::postgres::Connection;
use super::sqlite::connection as sqlite;
use super::value::{Columns, Insert, Row, Value, values};
use crate::domain::Digest;
use std::any::Any;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Work in a transaction or snapshot, without the type of its output: threads, retries and commits
/// are compiled once, not once per operation.
pub(super) type Work = Arc<dyn Fn(&mut Db) -> Result<Output> + Send + Sync>;
pub(super) type Output = Box<dyn Any + Send>;

pub(super) enum Db {
    Sqlite(rusqlite::Connection),
    Postgres(Box<Connection>),
}

impl Db {
    /// Runs a statement and returns the number of rows it changed.
    pub(super) fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64> {
        match self {
            Db::Sqlite(connection) => sqlite::execute(connection, sql, values),
            Db::Postgres(connection) => connection.execute(sql, values),
        }
    }

    pub(super) fn run(&mut self, sql: &str, values: &[Value<'_>]) -> Result<()> {
        self.execute(sql, values).map(|_| ())
    }

    /// Runs statements without parameters, such as `BEGIN`.
    pub(super) fn batch(&mut self, sql: &str) -> Result<()> {
        match self {
            Db::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
            Db::Postgres(connection) => connection.batch(sql),
        }
    }

    /// Holds an exclusive lock on `id` until the transaction ends, for rows that may not exist yet
    /// and so cannot be locked. SQLite has a single writer and needs none.
    pub(super) fn lock_key(&mut self, id: &Digest) -> Result<()> {
        match self {
            Db::Sqlite(_) => Ok(()),
            Db::Postgres(connection) => {
                let [a, b, c, d, e, f, g, h, ..] = *id.as_bytes();
                let key = i64::from_be_bytes([a, b, c, d, e, f, g, h]);
                connection.execute("SELECT pg_advisory_xact_lock(?1)", values![key]).map(|_| ())
            }
        }
    }

    /// SQL suffix that locks the rows read until the transaction ends. SQLite has a single writer.
    pub(super) fn locking(&self) -> &'static str {
        match self {
            Db::Sqlite(_) => "",
            Db::Postgres(_) => " FOR UPDATE",
        }
    }

    /// Like [`Db::locking`], but skips rows that others have locked.
    pub(super) fn skipping_locked(&self) -> &'static str {
        match self {
            Db::Sqlite(_) => "",
            Db::Postgres(_) => " FOR UPDATE SKIP LOCKED",
        }
    }

    pub(super) fn each(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut each: impl FnMut(&mut Columns<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        match self {
            Db::Sqlite(connection) => sqlite::each(connection, sql, values, &mut each),
            Db::Postgres(connection) => connection.each(sql, values, &mut each),
        }
    }

    pub(super) fn all<T: Row>(&mut self, sql: &str, by: &[Value<'_>]) -> Result<Vec<T>> {
        let mut all = Vec::new();
        self.each(sql, by, |row| {
            all.push(row.next()?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    pub(super) fn first<T: Row>(&mut self, sql: &str, by: &[Value<'_>]) -> Result<Option<T>> {
        let mut first = None;
        self.each(sql, by, |row| {
            first = Some(row.next()?);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(first)
    }

    pub(super) fn one<T: Row>(&mut self, sql: &str, by: &[Value<'_>]) -> Result<T> {
        self.first(sql, by)?.ok_or_else(|| StoreErrorKind::Damaged.into())
    }

    pub(super) fn exists(&mut self, sql: &str, by: &[Value<'_>]) -> Result<bool> {
        Ok(self.first::<i64>(sql, by)?.is_some())
    }

    /// Inserts many rows, given one after another in `values`. Keys must be unique: PostgreSQL
    /// rejects a statement that touches a row twice.
    pub(super) fn insert(&mut self, into: Insert, values: &[Value<'_>]) -> Result<u64> {
        match self {
            Db::Sqlite(connection) => sqlite::insert(connection, into, values),
            Db::Postgres(connection) => connection.insert(into, values),
        }
    }
}
