//! SQLite below [`Db`](super::Db).

use super::value::{Cells, Columns, Value};
use super::{Fault, Insert};
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, params_from_iter};
use std::ops::ControlFlow;

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(int) => ValueRef::Integer(*int),
            Value::Real(real) => ValueRef::Real(*real),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl Cells for rusqlite::Row<'_> {
    fn cell(&self, at: usize) -> Result<Value<'_>, Fault> {
        Ok(match self.get_ref(at)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(int) => Value::Int(int),
            ValueRef::Real(real) => Value::Real(real),
            text @ ValueRef::Text(_) => Value::Text(text.as_str().map_err(rusqlite::Error::from)?),
            ValueRef::Blob(bytes) => Value::Bytes(bytes),
        })
    }
}

pub(super) fn execute(
    connection: &Connection,
    sql: &str,
    values: &[Value<'_>],
) -> Result<u64, Fault> {
    Ok(connection.prepare_cached(sql)?.execute(params_from_iter(values))? as u64)
}

pub(super) fn each(
    connection: &Connection,
    sql: &str,
    values: &[Value<'_>],
    each: &mut dyn FnMut(&mut Columns<'_>) -> Result<ControlFlow<()>, Fault>,
) -> Result<(), Fault> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        if each(&mut Columns::of(row))?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Row by row: a prepared statement of one row is as fast here as one of many.
pub(super) fn insert(
    connection: &Connection,
    into: Insert,
    values: &[Value<'_>],
) -> Result<u64, Fault> {
    let places: Vec<String> = (1..=into.width).map(|n| format!("?{n}")).collect();
    let sql = format!("{} VALUES ({}) {}", into.head, places.join(", "), into.tail);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut changed = 0;
    for row in values.chunks_exact(into.width) {
        changed += statement.execute(params_from_iter(row))? as u64;
    }
    Ok(changed)
}
