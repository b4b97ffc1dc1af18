//! Statement parameters and row columns, the same for both databases.

use super::error::Fault;
use crate::domain::{Digest, Timestamp};
use crate::privacy::Redacted;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// A page of a list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PageRange {
    pub skip: u32,
    pub take: u32,
}

/// An insert of many rows: `INSERT INTO t (a, b)`, and what follows the values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Insert {
    pub(super) head: &'static str,
    pub(super) width: usize,
    /// Starts with `ON CONFLICT`, or empty.
    pub(super) tail: &'static str,
}

macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::store::value::Value::from($value)),*] };
}
pub(super) use values;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// Omits text, since drivers log their parameters.
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
    // Counts never exceed 2^63.
    u64 => |count| Value::Int(i64::try_from(count).unwrap_or(i64::MAX)),
    f64 => Value::Real,
    Timestamp => |at: Timestamp| Value::Int(at.0),
    &'a str => Value::Text,
    &'a String => |text: &'a String| Value::Text(text),
    &'a Redacted => |text: &'a Redacted| Value::Text(text.as_str()),
    &'a [u8] => Value::Bytes,
    &'a Digest => |digest: &'a Digest| Value::Bytes(digest.as_bytes()),
}

/// Reads the columns of a row in order.
pub(super) struct Columns<'a> {
    row: &'a dyn Cells,
    at: usize,
}

pub(super) trait Cells {
    fn cell(&self, at: usize) -> Result<Value<'_>, Fault>;
}

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
    Arc<str>: Value::Text(text) => Some(text.into()),
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
    Vec<u8>: Value::Bytes(bytes) => Some(bytes.to_vec()),
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

    /// Reads a text column and converts it with `of_name`.
    pub(super) fn named<T>(&mut self, of_name: impl FnOnce(&str) -> Option<T>) -> Result<T, Fault> {
        self.named_if(of_name)?.ok_or_else(|| self.unreadable())
    }

    /// Like [`Columns::named`], for a nullable column.
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

    /// Like [`Columns::json`], for a nullable column.
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

pub(super) fn json<T: Serialize>(value: &T) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(Fault::unwritable)
}
