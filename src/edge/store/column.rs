//! Our types as columns and back. A column that cannot be read is a damaged file, never a panic.

use crate::domain::{Digest, Timestamp};
use crate::privacy::Redacted;
use rusqlite::types::{FromSqlError, Type};
use rusqlite::{Result, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads the columns of a row in their order.
pub(super) struct Columns<'a> {
    row: &'a Row<'a>,
    at: usize,
}

impl<'a> Columns<'a> {
    pub(super) fn of(row: &'a Row<'a>) -> Columns<'a> {
        Columns { row, at: 0 }
    }

    /// The next column as it is.
    pub(super) fn next<T: rusqlite::types::FromSql>(&mut self) -> Result<T> {
        let at = self.at;
        self.at += 1;
        self.row.get(at)
    }

    pub(super) fn digest(&mut self) -> Result<Digest> {
        self.next().map(Digest::from_bytes)
    }

    pub(super) fn count(&mut self) -> Result<u64> {
        let count: i64 = self.next()?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    pub(super) fn time(&mut self) -> Result<Timestamp> {
        self.next().map(Timestamp)
    }

    pub(super) fn time_if(&mut self) -> Result<Option<Timestamp>> {
        Ok(self.next::<Option<i64>>()?.map(Timestamp))
    }

    pub(super) fn redacted(&mut self) -> Result<Redacted> {
        self.next().map(Redacted::reopened)
    }

    pub(super) fn redacted_if(&mut self) -> Result<Option<Redacted>> {
        Ok(self.next::<Option<String>>()?.map(Redacted::reopened))
    }

    /// The value that `of_name` knows by the column's text.
    pub(super) fn named<T>(&mut self, of_name: impl FnOnce(&str) -> Option<T>) -> Result<T> {
        let at = self.at;
        self.at += 1;
        let name = self.row.get_ref(at)?.as_str()?;
        of_name(name).ok_or_else(|| unreadable(at, FromSqlError::InvalidType))
    }

    /// As [`Columns::named`], for a column that may be null.
    pub(super) fn named_if<T>(
        &mut self,
        of_name: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        let at = self.at;
        if self.row.get_ref(at)?.as_str_or_null()?.is_some() {
            return self.named(of_name).map(Some);
        }
        self.at += 1;
        Ok(None)
    }

    pub(super) fn json<T: DeserializeOwned>(&mut self) -> Result<T> {
        let at = self.at;
        self.at += 1;
        let text = self.row.get_ref(at)?.as_str()?;
        serde_json::from_str(text).map_err(|error| unreadable(at, error))
    }

    pub(super) fn json_if<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        if self.row.get_ref(self.at)?.as_str_or_null()?.is_some() {
            return self.json().map(Some);
        }
        self.at += 1;
        Ok(None)
    }

    /// The column after those read so far, for an error about it.
    pub(super) fn position(&self) -> usize {
        self.at
    }
}

/// The error of a column that holds what we never wrote.
pub(super) fn unreadable(
    at: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(at, Type::Text, Box::new(error))
}

/// `value` as JSON for a column.
pub(super) fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// A count as a column; counts beyond 2^63 do not occur.
pub(super) fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
