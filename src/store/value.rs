//! Statement parameters and row columns, the same for both databases.

use super::error::{Fault, Result, StoreErrorKind};
use crate::domain::{
    Branch, ClaimKind, Digest, EntryKind, Finding, Format, JobId, JobState, Memory, MemoryId,
    MemoryState, Outcome, OutputMode, Plan, PlanId, Purpose, RecordId, RecordState, Reply, RunId,
    RunState, SessionId, Skip, SliceId, Speaker, Timestamp, Wait,
};
use crate::memory_dir::Section;
use crate::privacy::Redacted;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
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

#[derive(Clone, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
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

impl Value<'_> {
    /// Copies the value for work that outlives its caller.
    pub(super) fn to_owned(&self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Int(int) => Value::Int(*int),
            Value::Real(real) => Value::Real(*real),
            Value::Text(text) => Value::Text(Cow::Owned(text.to_string())),
            Value::Bytes(bytes) => Value::Bytes(Cow::Owned(bytes.to_vec())),
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
    Format => |format: Format| Value::from(format.name()),
    &'a str => |text| Value::Text(Cow::Borrowed(text)),
    &'a String => |text: &'a String| Value::from(text.as_str()),
    &'a Redacted => |text: &'a Redacted| Value::from(text.as_str()),
    &'a [u8] => |bytes| Value::Bytes(Cow::Borrowed(bytes)),
    &'a Option<String> => |text: &'a Option<String>| Value::from(text.as_ref()),
    &'a Option<Redacted> => |text: &'a Option<Redacted>| Value::from(text.as_ref()),
    &'a Digest => |digest: &'a Digest| Value::from(digest.as_bytes().as_slice()),
    &'a Option<Digest> => |digest: &'a Option<Digest>| Value::from(digest.as_ref()),
}

/// Reads the columns of a row in order.
pub(super) struct Columns<'a> {
    row: &'a dyn Cells,
    at: usize,
}

pub(super) trait Cells {
    fn cell(&self, at: usize) -> Result<Value<'_>>;
}

/// Type of the next columns of a row: one value, a tuple or a struct.
pub(super) trait Row: Sized {
    fn read(row: &mut Columns<'_>) -> Result<Self>;
}

impl<T: Column> Row for T {
    fn read(row: &mut Columns<'_>) -> Result<T> {
        row.converted(T::of)
    }
}

macro_rules! row_of_tuple {
    ($($type:ident)*) => {
        impl<$($type: Row),*> Row for ($($type,)*) {
            fn read(row: &mut Columns<'_>) -> Result<Self> {
                Ok(($(row.next::<$type>()?,)*))
            }
        }
    };
}

row_of_tuple! { A B }
row_of_tuple! { A B C }
row_of_tuple! { A B C D }

/// Implements [`Row`] for a struct whose fields are columns in this order.
macro_rules! row_of {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl $crate::store::value::Row for $type {
            fn read(
                row: &mut $crate::store::value::Columns<'_>,
            ) -> Result<$type, $crate::store::error::Fault> {
                Ok($type { $($field: row.next()?),* })
            }
        }
    };
}
pub(super) use row_of;

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
    String: Value::Text(text) => Some(text.into_owned()),
    Redacted: Value::Text(text) => Some(Redacted::reopened(text.into_owned())),
    Vec<u8>: Value::Bytes(bytes) => Some(bytes.into_owned()),
    Digest: Value::Bytes(bytes) => bytes.as_ref().try_into().ok().map(Digest::from_bytes),
    Format: Value::Text(name) => name.parse().ok(),
}

/// Columns that hold ids, names of enums, and JSON.
macro_rules! columns_of {
    ($($id:ident)*; $($name:ident)*; $($json:ty),*) => {
        $(impl Column for $id {
            fn of(value: Value<'_>) -> Option<$id> {
                <Digest as Column>::of(value).map($id)
            }
        }

        impl<'a> From<&'a $id> for Value<'a> {
            fn from(id: &'a $id) -> Value<'a> {
                Value::from(&id.0)
            }
        }

        impl<'a> From<&'a Option<$id>> for Value<'a> {
            fn from(id: &'a Option<$id>) -> Value<'a> {
                Value::from(id.as_ref())
            }
        })*
        $(impl From<$name> for Value<'_> {
            fn from(value: $name) -> Self {
                Value::from(value.name())
            }
        })*
        column_of! {
            $($name: Value::Text(name) => $name::of_name(&name),)*
            $($json: Value::Text(text) => serde_json::from_str(&text).ok(),)*
        }
    };
}

columns_of! {
    JobId MemoryId PlanId RecordId RunId SessionId SliceId;
    Branch ClaimKind EntryKind JobState MemoryState Outcome OutputMode Purpose RecordState RunState Section Skip
    Speaker Wait;
    BTreeMap<String, u64>, Memory, Plan, Reply, Vec<Finding>
}

impl<'a> Columns<'a> {
    pub(super) fn of(row: &'a dyn Cells) -> Columns<'a> {
        Columns { row, at: 0 }
    }

    pub(super) fn next<T: Row>(&mut self) -> Result<T> {
        T::read(self)
    }

    /// Reads a text column and converts it with `of_text`.
    pub(super) fn text<T>(&mut self, of_text: impl FnOnce(&str) -> Option<T>) -> Result<T> {
        self.converted(|value| if let Value::Text(text) = value { of_text(&text) } else { None })
    }

    fn converted<T>(&mut self, of: impl FnOnce(Value<'_>) -> Option<T>) -> Result<T> {
        self.at += 1;
        of(self.row.cell(self.at - 1)?).ok_or_else(|| Fault::unreadable(self.at))
    }
}

pub(super) fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Fault::caused(StoreErrorKind::Other, error))
}

/// Escapes `text` for use in `LIKE … ESCAPE '\'`.
pub(super) fn literal(text: &str) -> String {
    text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_")
}
