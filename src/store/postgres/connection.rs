//! A blocking connection to PostgreSQL that caches prepared statements.

use super::address::Address;
use crate::store::{Cells, Columns, Fault, Insert, Refusal, Result, StoreErrorKind, Value};
use bytes::{BufMut, BytesMut};
use futures_util::StreamExt;
use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error as StdError;
use std::ops::ControlFlow;
use std::pin::pin;
use tokio::runtime::Runtime;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Error, Row, Statement};

/// Maximum number of cached prepared statements; more than the program uses.
const STATEMENTS_MAX: usize = 256;
/// Escape character for NUL, which PostgreSQL's text cannot hold. `0` after it means NUL, `1` the
/// character itself.
const MARK: char = '\u{e000}';

type BoxError = Box<dyn StdError + Send + Sync>;

/// A connection, used only from threads that may block. It may be dropped on any thread.
pub(in crate::store) struct Connection {
    client: Client,
    statements: HashMap<String, Statement>,
    /// Drives the connection during a statement. `None` only while being dropped.
    runtime: Option<Runtime>,
}

impl Connection {
    pub(super) fn open(address: &Address) -> Result<Connection> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Fault::caused(StoreErrorKind::Other, error))?;
        let (client, connection) = runtime.block_on(address.connect())?;
        // The failing statement reports the connection's error.
        runtime.spawn(async { connection.await.unwrap_or_default() });
        Ok(Connection { client, statements: HashMap::new(), runtime: Some(runtime) })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub(in crate::store) fn batch(&mut self, sql: &str) -> Result<()> {
        self.wait(self.client.batch_execute(sql))
    }

    pub(in crate::store) fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64> {
        let statement = self.prepared(sql)?;
        self.wait(self.client.execute_raw(&statement, values))
    }

    /// Passes rows to `each` as they arrive.
    pub(in crate::store) fn each(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        each: &mut dyn FnMut(&mut Columns<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let statement = self.prepared(sql)?;
        let mut rows = pin!(self.wait(self.client.query_raw(&statement, values))?);
        // `each` runs outside the runtime, so it may block.
        while let Some(row) = self.wait(async { rows.next().await.transpose() })? {
            if each(&mut Columns::of(&row))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Inserts any number of rows with one statement over arrays.
    pub(in crate::store) fn insert(&mut self, into: Insert, values: &[Value<'_>]) -> Result<u64> {
        if values.is_empty() {
            return Ok(0);
        }
        let params: Vec<String> = (1..=into.width).map(|n| format!("?{n}")).collect();
        let one = format!("{} VALUES ({}) {}", into.head, params.join(", "), into.tail);
        let one = self.prepared(&one)?;
        if values.len() == into.width {
            return self.wait(self.client.execute_raw(&one, values));
        }
        // The parameter types come from preparing the one-row statement.
        let cast = |(ty, param): (&Type, &String)| format!("CAST({param} AS {}[])", ty.name());
        let casts: Vec<String> = one.params().iter().zip(&params).map(cast).collect();
        let many =
            format!("{} SELECT * FROM unnest({}) {}", into.head, casts.join(", "), into.tail);
        let many = self.prepared(&many)?;
        let column = |at| values.iter().skip(at).step_by(into.width).collect();
        let columns: Vec<Vec<&Value<'_>>> = (0..into.width).map(column).collect();
        self.wait(self.client.execute_raw(&many, &columns))
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T> {
        let runtime = self.runtime.as_ref().ok_or(Fault::from(StoreErrorKind::Closed))?;
        Ok(runtime.block_on(work)?)
    }

    fn prepared(&mut self, sql: &str) -> Result<Statement> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        if STATEMENTS_MAX <= self.statements.len() {
            self.statements.clear();
        }
        // PostgreSQL's parameters are `$1`; no statement has a question mark elsewhere.
        let statement = self.wait(self.client.prepare(&sql.replace('?', "$")))?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Dropping a runtime the ordinary way panics in async contexts.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        match self {
            Value::Null => return Ok(IsNull::Yes),
            Value::Int(int) if *ty == Type::INT8 => out.put_i64(*int),
            Value::Int(int) if *ty == Type::INT4 => out.put_i32((*int).try_into()?),
            Value::Int(int) if *ty == Type::BOOL => out.put_u8(u8::from(*int != 0)),
            Value::Real(real) if *ty == Type::FLOAT8 => out.put_f64(*real),
            Value::Text(text) if *ty == Type::TEXT => out.put_slice(escaped(text).as_bytes()),
            Value::Bytes(bytes) if *ty == Type::BYTEA => out.put_slice(bytes),
            Value::Int(_) | Value::Real(_) | Value::Text(_) | Value::Bytes(_) => {
                return Err(format!("a value of another type than {ty}").into());
            }
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl Cells for Row {
    fn cell(&self, at: usize) -> Result<Value<'_>> {
        let Cell(value) = self.try_get(at)?;
        Ok(value)
    }
}

struct Cell<'a>(Value<'a>);

impl<'a> FromSql<'a> for Cell<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Cell<'a>, BoxError> {
        Ok(Cell(match *ty {
            Type::INT8 => Value::Int(i64::from_be_bytes(raw.try_into()?)),
            Type::INT4 => Value::Int(i64::from(i32::from_be_bytes(raw.try_into()?))),
            Type::BOOL => Value::Int(i64::from(raw != [0])),
            Type::FLOAT8 => Value::Real(f64::from_be_bytes(raw.try_into()?)),
            Type::TEXT | Type::NAME => Value::Text(unescaped(std::str::from_utf8(raw)?)),
            Type::BYTEA => Value::from(raw),
            _ => return Err(format!("a column of an unknown type: {ty}").into()),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Cell<'a>, BoxError> {
        Ok(Cell(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

fn escaped(text: &str) -> Cow<'_, str> {
    // Both are rare, and so is the first byte of the escape character.
    if memchr::memchr2(0, 0xee, text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(MARK, "\u{e000}1").replace('\0', "\u{e000}0"))
}

fn unescaped(text: &str) -> Cow<'_, str> {
    match text.contains(MARK) {
        true => text.replace("\u{e000}0", "\0").replace("\u{e000}1", "\u{e000}").into(),
        false => text.into(),
    }
}

/// Error of the connection, or reported by the server: only its message, as the details may quote data.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct PostgresError(String);

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        if let Some(reported) = error.as_db_error() {
            let code = reported.code().code();
            let line = format!("{} (SQLSTATE {code})", reported.message());
            return Fault::caused(kind_of_code(code), PostgresError(line));
        }
        let line = match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        };
        Fault::caused(kind_without_code(&error), PostgresError(line))
    }
}

/// Maps an SQLSTATE code (PostgreSQL manual, appendix A) to a kind.
fn kind_of_code(code: &str) -> StoreErrorKind {
    match code {
        // Shutting down, crashed, starting up, dropped; too many connections; idle for too long.
        "57P01" | "57P02" | "57P03" | "57P04" | "57P05" | "53300" | "25P03" => {
            StoreErrorKind::Unavailable
        }
        _ if code.starts_with("08") => StoreErrorKind::Unavailable,
        // Lock timeout, deadlock, serialization failure, statement timeout.
        "55P03" | "40P01" | "40001" | "57014" => StoreErrorKind::Locked,
        "53100" => StoreErrorKind::Full,
        "25006" => Refusal::ReadOnly.into(),
        "28P01" => Refusal::Password.into(),
        _ if code.starts_with("28") => Refusal::Login.into(),
        "3D000" => Refusal::Database.into(),
        "3F000" => Refusal::Schema.into(),
        "42501" => Refusal::Rights.into(),
        "XX001" | "XX002" => StoreErrorKind::Damaged,
        _ => StoreErrorKind::Other,
    }
}

fn kind_without_code(error: &Error) -> StoreErrorKind {
    if error.is_closed() {
        return StoreErrorKind::Unavailable;
    }
    let Some(cause) = error.source() else { return StoreErrorKind::Other };
    if let Some(io) = cause.downcast_ref::<std::io::Error>() {
        let inner = io.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        return match inner {
            Some(rustls::Error::InvalidCertificate(_)) => Refusal::Certificate.into(),
            Some(_) => Refusal::Tls.into(),
            None => StoreErrorKind::Unavailable,
        };
    }
    // These errors have no type of their own.
    match (error.to_string().as_str(), cause.to_string().as_str()) {
        (_, "password missing") => Refusal::Password.into(),
        ("error performing TLS handshake", _) => Refusal::Tls.into(),
        ("authentication error", _) => Refusal::Login.into(),
        _ => StoreErrorKind::Other,
    }
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
            prop_assert_eq!(unescaped(&sent), text.as_str());
        }
    }
}
