//! One connection to the database, whichever it is: the same statements run on both. Statements are written with
//! `?1`, in the part of SQL that SQLite and PostgreSQL share.

use super::changes::ANNOUNCE;
use super::error::{Fault, StoreErrorKind};
use super::postgres::Connection;
use super::sqlite;
use crate::domain::{Digest, Timestamp};
use crate::privacy::Redacted;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::ControlFlow;

/// A connection.
pub(super) enum Db {
    Sqlite(rusqlite::Connection),
    Postgres(Box<Connection>),
}

/// Rows that are inserted together: `INSERT INTO t (a, b)`, then what follows the values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Insert {
    pub(super) head: &'static str,
    pub(super) width: usize,
    /// From `ON CONFLICT` on, or nothing.
    pub(super) tail: &'static str,
}

/// Values of a statement, in the order of its parameters.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::store::db::Value::from($value)),*] };
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

    /// Runs a statement whose number of changed rows is of no interest.
    pub(super) fn run(&mut self, sql: &str, values: &[Value<'_>]) -> Result<(), Fault> {
        self.execute(sql, values).map(|_| ())
    }

    /// Runs statements that take no values, such as `BEGIN`.
    pub(super) fn batch(&mut self, sql: &str) -> Result<(), Fault> {
        match self {
            Db::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
            Db::Postgres(connection) => connection.batch(sql),
        }
    }

    /// Until the transaction ends, nobody else gets this far with the same id; SQLite has one writer anyway. For what
    /// is looked up before it is there and can be locked.
    pub(super) fn alone(&mut self, id: &Digest) -> Result<(), Fault> {
        match self {
            Db::Sqlite(_) => Ok(()),
            Db::Postgres(connection) => {
                let [a, b, c, d, e, f, g, h, ..] = *id.as_bytes();
                let key = i64::from_be_bytes([a, b, c, d, e, f, g, h]);
                connection.execute("SELECT pg_advisory_xact_lock(?1)", values![key]).map(|_| ())
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

    /// Tells waiting workers that there may be jobs, when the transaction is committed. Who watches a SQLite file
    /// sees the commit itself.
    pub(super) fn announce(&mut self) -> Result<(), Fault> {
        match self {
            Db::Sqlite(_) => Ok(()),
            Db::Postgres(connection) => connection.execute(ANNOUNCE, &[]).map(|_| ()),
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

    pub(super) fn first<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnOnce(&mut Columns<'_>) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        let (mut first, mut read) = (None, Some(read));
        self.each(sql, values, |row| {
            if let Some(read) = read.take() {
                first = Some(read(row)?);
            }
            Ok(ControlFlow::Break(()))
        })?;
        Ok(first)
    }

    pub(super) fn one<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnOnce(&mut Columns<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.first(sql, values, read)?.ok_or_else(|| StoreErrorKind::Damaged.into())
    }

    /// Inserts many rows; `values` holds one row after another. No two rows may have the same key: PostgreSQL refuses
    /// to touch a row twice in one statement.
    pub(super) fn insert(&mut self, into: Insert, values: &[Value<'_>]) -> Result<u64, Fault> {
        match self {
            Db::Sqlite(connection) => sqlite::insert(connection, into, values),
            Db::Postgres(connection) => connection.insert(into, values),
        }
    }
}

/// A value of a column, going in or coming out.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// No words: drivers log what they are given.
impl std::fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Null => f.write_str("Null"),
            Value::Int(int) => write!(f, "Int({int})"),
            Value::Real(real) => write!(f, "Real({real})"),
            Value::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Value::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
        }
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Value<'a> {
        value.map_or(Value::Null, Into::into)
    }
}

macro_rules! value_of {
    ($($type:ty => $make:expr),* $(,)?) => { $(
        impl<'a> From<$type> for Value<'a> {
            fn from(value: $type) -> Value<'a> {
                ($make)(value)
            }
        }
    )* };
}

value_of! {
    i64 => Value::Int,
    i32 => |int| Value::Int(i64::from(int)),
    u32 => |int| Value::Int(i64::from(int)),
    u8 => |int| Value::Int(i64::from(int)),
    bool => |flag| Value::Int(i64::from(flag)),
    // Counts beyond 2^63 do not occur.
    u64 => |count| Value::Int(i64::try_from(count).unwrap_or(i64::MAX)),
    f64 => Value::Real,
    Timestamp => |at: Timestamp| Value::Int(at.0),
    &'a str => Value::Text,
    &'a String => |text: &'a String| Value::Text(text),
    &'a Redacted => |text: &'a Redacted| Value::Text(text.as_str()),
    &'a Digest => |digest: &'a Digest| Value::Bytes(digest.as_bytes()),
}

/// Reads the columns of a row in their order.
pub(super) struct Columns<'a> {
    row: &'a dyn Cells,
    at: usize,
}

/// A row of either database.
pub(super) trait Cells {
    fn cell(&self, at: usize) -> Result<Value<'_>, Fault>;
}

/// Type of a column.
pub(super) trait Column: Sized {
    fn of(value: Value<'_>) -> Option<Self>;
}

impl<T: Column> Column for Option<T> {
    fn of(value: Value<'_>) -> Option<Self> {
        if value == Value::Null { Some(None) } else { T::of(value).map(Some) }
    }
}

macro_rules! column_of {
    ($($type:ty: $value:pat => $make:expr),* $(,)?) => { $(
        impl Column for $type {
            fn of(value: Value<'_>) -> Option<$type> {
                if let $value = value { $make } else { None }
            }
        }
    )* };
}

column_of! {
    i64: Value::Int(int) => Some(int),
    i32: Value::Int(int) => i32::try_from(int).ok(),
    u32: Value::Int(int) => u32::try_from(int).ok(),
    u8: Value::Int(int) => u8::try_from(int).ok(),
    bool: Value::Int(int) => Some(int != 0),
    u64: Value::Int(int) => Some(u64::try_from(int).unwrap_or(0)),
    f64: Value::Real(real) => Some(real),
    Timestamp: Value::Int(int) => Some(Timestamp(int)),
    String: Value::Text(text) => Some(text.to_owned()),
    Redacted: Value::Text(text) => Some(Redacted::reopened(text.to_owned())),
    Digest: Value::Bytes(bytes) => bytes.try_into().ok().map(Digest::from_bytes),
}

impl<'a> Columns<'a> {
    pub(super) fn of(row: &'a dyn Cells) -> Columns<'a> {
        Columns { row, at: 0 }
    }

    pub(super) fn next<T: Column>(&mut self) -> Result<T, Fault> {
        let value = self.take()?;
        T::of(value).ok_or_else(|| self.unreadable())
    }

    /// The value that `of_name` knows by the column's text.
    pub(super) fn named<T>(&mut self, of_name: impl FnOnce(&str) -> Option<T>) -> Result<T, Fault> {
        self.named_if(of_name)?.ok_or_else(|| self.unreadable())
    }

    /// As [`Columns::named`], for a column that may be null.
    pub(super) fn named_if<T>(
        &mut self,
        of_name: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        match self.take()? {
            Value::Null => Ok(None),
            Value::Text(name) => of_name(name).map(Some).ok_or_else(|| self.unreadable()),
            Value::Int(_) | Value::Real(_) | Value::Bytes(_) => Err(self.unreadable()),
        }
    }

    pub(super) fn json<T: DeserializeOwned>(&mut self) -> Result<T, Fault> {
        self.json_if()?.ok_or_else(|| self.unreadable())
    }

    /// As [`Columns::json`], for a column that may be null.
    pub(super) fn json_if<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Fault> {
        self.named_if(|text| serde_json::from_str(text).ok())
    }

    fn take(&mut self) -> Result<Value<'a>, Fault> {
        self.at += 1;
        self.row.cell(self.at - 1)
    }

    fn unreadable(&self) -> Fault {
        Fault::unreadable(self.at)
    }
}

/// `value` as JSON for a column.
pub(super) fn json<T: Serialize>(value: &T) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(Fault::unwritable)
}
