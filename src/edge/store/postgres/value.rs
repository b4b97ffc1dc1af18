//! Values as PostgreSQL has them, going in and coming out.

use super::super::db::{Cells, Value};
use super::super::error::Fault;
use bytes::{BufMut, BytesMut};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::error::Error;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, Kind, ToSql, Type, to_sql_checked};

/// PostgreSQL's text has no NUL, ours may. It stands as this mark and a digit, and so does the mark.
const MARK: char = '\u{e000}';

type Failed = Box<dyn Error + Send + Sync>;

impl ToSql for Value<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Failed> {
        match *self {
            Value::Null => return Ok(IsNull::Yes),
            Value::Int(int) if *ty == Type::INT8 => out.put_i64(int),
            Value::Int(int) if *ty == Type::INT4 => out.put_i32(int.try_into()?),
            Value::Int(int) if *ty == Type::BOOL => out.put_u8(u8::from(int != 0)),
            Value::Real(real) if *ty == Type::FLOAT8 => out.put_f64(real),
            Value::Text(text) if *ty == Type::TEXT => out.put_slice(escaped(text).as_bytes()),
            Value::Bytes(bytes) if *ty == Type::BYTEA => out.put_slice(bytes),
            Value::Int(_) | Value::Real(_) | Value::Text(_) | Value::Bytes(_) => {
                return Err(format!("a value of another kind than {ty}").into());
            }
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// One column of many rows, as an array.
#[derive(Debug)]
pub(super) struct Slices<'a> {
    /// Row after row.
    pub(super) values: &'a [Value<'a>],
    /// Columns in a row.
    pub(super) width: usize,
    /// Which one this is.
    pub(super) at: usize,
}

impl ToSql for Slices<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Failed> {
        let Kind::Array(member) = ty.kind() else { return Err(format!("no array: {ty}").into()) };
        out.put_i32(1); // dimensions
        out.put_i32(1); // nulls may occur
        out.put_u32(member.oid());
        out.put_i32(i32::try_from(self.values.len() / self.width)?);
        out.put_i32(1); // the index of the first
        for value in self.values.iter().skip(self.at).step_by(self.width) {
            let place = out.len();
            out.put_i32(-1);
            if let IsNull::No = value.to_sql(member, out)? {
                let length = i32::try_from(out.len() - place - 4)?;
                out[place..place + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A value that is written already: for statements that are sent ahead.
pub(super) struct Written(Option<BytesMut>);

impl Written {
    pub(super) fn of(value: &dyn ToSql, ty: &Type) -> Result<Written, Failed> {
        let mut out = BytesMut::new();
        let null = value.to_sql_checked(ty, &mut out)?;
        Ok(Written(matches!(null, IsNull::No).then_some(out)))
    }
}

/// Sizes only.
impl std::fmt::Debug for Written {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Written({:?} bytes)", self.0.as_ref().map(BytesMut::len))
    }
}

impl ToSql for Written {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Failed> {
        let Some(written) = &self.0 else { return Ok(IsNull::Yes) };
        out.put_slice(written);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A row that came.
pub(super) struct Came {
    row: Row,
    /// Texts that held a mark, by column.
    texts: OnceCell<Vec<OnceCell<String>>>,
}

impl Came {
    pub(super) fn new(row: Row) -> Came {
        Came { row, texts: OnceCell::new() }
    }

    fn text<'a>(&'a self, at: usize, text: &'a str) -> &'a str {
        if !text.contains(MARK) {
            return text;
        }
        let texts =
            self.texts.get_or_init(|| (0..self.row.len()).map(|_| OnceCell::new()).collect());
        texts.get(at).map_or(text, |cell| cell.get_or_init(|| unescaped(text)))
    }
}

impl Cells for Came {
    fn cell(&self, at: usize) -> Result<Value<'_>, Fault> {
        let Cell(value) = self.row.try_get(at)?;
        Ok(match value {
            Value::Text(text) => Value::Text(self.text(at, text)),
            Value::Null | Value::Int(_) | Value::Real(_) | Value::Bytes(_) => value,
        })
    }
}

struct Cell<'a>(Value<'a>);

impl<'a> FromSql<'a> for Cell<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Cell<'a>, Failed> {
        Ok(Cell(match *ty {
            Type::INT8 => Value::Int(i64::from_be_bytes(raw.try_into()?)),
            Type::INT4 => Value::Int(i64::from(i32::from_be_bytes(raw.try_into()?))),
            Type::BOOL => Value::Int(i64::from(raw != [0])),
            Type::FLOAT8 => Value::Real(f64::from_be_bytes(raw.try_into()?)),
            Type::TEXT | Type::NAME => Value::Text(std::str::from_utf8(raw)?),
            Type::BYTEA => Value::Bytes(raw),
            _ => return Err(format!("a column of an unknown kind: {ty}").into()),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Cell<'a>, Failed> {
        Ok(Cell(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

fn escaped(text: &str) -> Cow<'_, str> {
    // Few texts hold either; the mark's first byte is rare too.
    if memchr::memchr2(0, 0xee, text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(MARK, "\u{e000}1").replace('\0', "\u{e000}0"))
}

fn unescaped(text: &str) -> String {
    text.replace("\u{e000}0", "\0").replace("\u{e000}1", "\u{e000}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_text_comes_back_as_it_was_and_is_sent_without_nul(text in "[a\0\u{e000}01é]{0,9}") {
            let sent = escaped(&text);
            prop_assert!(!sent.contains('\0'));
            prop_assert_eq!(unescaped(&sent), text);
        }
    }
}
