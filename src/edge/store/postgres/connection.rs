//! One connection to PostgreSQL, driven by the thread that uses it. Statements whose answer nobody
//! waits for are sent ahead and answered with the next one: a piece of work is then a few trips to
//! the server instead of one for each statement.

use super::super::db::{Columns, Insert, Value};
use super::super::error::{Fault, StoreErrorKind};
use super::address::{Address, LOGIN_SECS};
use super::value::{Came, Slices, Written};
use futures_util::StreamExt;
use std::collections::HashMap;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Statement};

/// Prepared statements kept a connection; more than the statements that there are.
const STATEMENTS_MAX: usize = 256;

/// A value that its column cannot hold.
#[derive(Debug, thiserror::Error)]
#[error("a value cannot be written: {0}")]
struct Unwritable(Box<dyn std::error::Error + Send + Sync>);

type Sent = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// A connection. Only threads that may block use it; any thread may drop it.
pub(in crate::edge::store) struct Connection {
    client: Arc<Client>,
    /// Sent, not yet answered, in their order.
    ahead: Vec<Sent>,
    statements: HashMap<String, Statement>,
    in_transaction: bool,
    /// Rows of a statement are still on their way that nobody wants.
    left_over: bool,
    /// Drives the connection while somebody waits for an answer. None only while being dropped.
    runtime: Option<Runtime>,
}

impl Connection {
    /// Reaches the server and is let in.
    pub(super) fn open(address: &Address) -> Result<Connection, Fault> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Fault::caused(StoreErrorKind::Other, error))?;
        let login = async {
            let login = address.config.connect(address.tls.clone());
            tokio::time::timeout(Duration::from_secs(LOGIN_SECS), login).await
        };
        let (client, connection) = runtime
            .block_on(login)
            .map_err(|late| Fault::caused(StoreErrorKind::Unavailable, late))??;
        // Its error is the error of whoever waits for an answer.
        runtime.spawn(async { connection.await.unwrap_or_default() });
        Ok(Connection {
            client: Arc::new(client),
            ahead: Vec::new(),
            statements: HashMap::new(),
            in_transaction: false,
            left_over: false,
            runtime: Some(runtime),
        })
    }

    /// Sends words that take no values, such as `BEGIN`, ahead.
    pub(super) fn begin(&mut self, sql: &'static str) {
        let client = Arc::clone(&self.client);
        self.in_transaction = true;
        self.go_ahead(Box::pin(async move { client.batch_execute(sql).await }));
    }

    /// Ends the transaction; `sql` is `COMMIT` or `ROLLBACK`.
    pub(super) fn end(&mut self, sql: &str) -> Result<(), Fault> {
        self.in_transaction = false;
        self.batch(sql)
    }

    /// Waits until everything that was sent ahead is answered.
    pub(in crate::edge::store) fn settle(&mut self) -> Result<(), Fault> {
        self.wait(async { Ok(()) })
    }

    pub(in crate::edge::store) fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// Whether it may be used again.
    pub(super) fn is_clean(&self) -> bool {
        !self.left_over && !self.in_transaction && !self.client.is_closed()
    }

    pub(super) fn has_left_over(&self) -> bool {
        self.left_over
    }

    pub(in crate::edge::store) fn batch(&mut self, sql: &str) -> Result<(), Fault> {
        let client = Arc::clone(&self.client);
        self.wait(async move { client.batch_execute(sql).await })
    }

    pub(in crate::edge::store) fn execute(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<u64, Fault> {
        let statement = self.prepared(sql)?;
        let client = Arc::clone(&self.client);
        self.wait(async move { client.execute_raw(&statement, values).await })
    }

    /// As [`Connection::execute`], ahead of the next statement; an error is that one's.
    pub(in crate::edge::store) fn send(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<(), Fault> {
        let statement = self.prepared(sql)?;
        let values: Vec<&dyn ToSql> = values.iter().map(|value| value as &dyn ToSql).collect();
        self.send_prepared(statement, &values)
    }

    /// Hands rows to `each` as they come.
    pub(in crate::edge::store) fn each(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        each: &mut dyn FnMut(&mut Columns<'_>) -> Result<ControlFlow<()>, Fault>,
    ) -> Result<(), Fault> {
        let statement = self.prepared(sql)?;
        let client = Arc::clone(&self.client);
        let rows = self.wait(async move { client.query_raw(&statement, values).await })?;
        let mut rows = pin!(rows);
        // `each` runs outside the runtime: it may take its time.
        while let Some(row) = self.wait_for(rows.next())? {
            match each(&mut Columns::of(&Came::new(row?))) {
                Ok(ControlFlow::Continue(())) => {}
                stop => {
                    self.left_over = true;
                    return stop.map(|_| ());
                }
            }
        }
        Ok(())
    }

    pub(in crate::edge::store) fn insert(
        &mut self,
        into: Insert,
        values: &[Value<'_>],
    ) -> Result<u64, Fault> {
        if values.is_empty() {
            return Ok(0);
        }
        let statement = self.prepared_insert(into, values.len())?;
        let client = Arc::clone(&self.client);
        if values.len() == into.width {
            return self.wait(async move { client.execute_raw(&statement, values).await });
        }
        let columns = columns(into, values);
        self.wait(async move { client.execute_raw(&statement, &columns).await })
    }

    /// As [`Connection::insert`], ahead of the next statement.
    pub(in crate::edge::store) fn put(
        &mut self,
        into: Insert,
        values: &[Value<'_>],
    ) -> Result<(), Fault> {
        if values.is_empty() {
            return Ok(());
        }
        let statement = self.prepared_insert(into, values.len())?;
        if values.len() == into.width {
            let values: Vec<&dyn ToSql> = values.iter().map(|value| value as &dyn ToSql).collect();
            return self.send_prepared(statement, &values);
        }
        let columns = columns(into, values);
        let values: Vec<&dyn ToSql> = columns.iter().map(|column| column as &dyn ToSql).collect();
        self.send_prepared(statement, &values)
    }

    fn send_prepared(&mut self, statement: Statement, values: &[&dyn ToSql]) -> Result<(), Fault> {
        let written: Result<Vec<Written>, _> = (values.iter().zip(statement.params()))
            .map(|(value, ty)| Written::of(*value, ty))
            .collect();
        let written =
            written.map_err(|error| Fault::caused(StoreErrorKind::Other, Unwritable(error)))?;
        let client = Arc::clone(&self.client);
        self.go_ahead(Box::pin(async move {
            client.execute_raw(&statement, written).await.map(|_| ())
        }));
        Ok(())
    }

    /// The first poll writes the request; who waits for the next answer polls on.
    fn go_ahead(&mut self, mut sent: Sent) {
        match sent.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => self.ahead.push(sent),
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => self.ahead.push(Box::pin(async { Err(error) })),
        }
    }

    /// Sends `work` behind what was sent ahead, and waits for all of it. The first error counts:
    /// those after it only say that the transaction is over.
    fn wait<T>(&mut self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Fault> {
        let ahead = std::mem::take(&mut self.ahead);
        let answered = self.wait_for(async move {
            let mut work = pin!(work);
            let mut early = None;
            std::future::poll_fn(|cx| {
                early = Some(work.as_mut().poll(cx));
                Poll::Ready(())
            })
            .await;
            let mut failed = None;
            for sent in ahead {
                failed = failed.or(sent.await.err());
            }
            let done = match early {
                Some(Poll::Ready(done)) => done,
                Some(Poll::Pending) | None => work.await,
            };
            failed.map_or(done, Err)
        })?;
        Ok(answered?)
    }

    fn wait_for<T>(&self, work: impl Future<Output = T>) -> Result<T, Fault> {
        let runtime = self.runtime.as_ref().ok_or(Fault::from(StoreErrorKind::Closed))?;
        Ok(runtime.block_on(work))
    }

    fn prepared(&mut self, sql: &str) -> Result<Statement, Fault> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        if STATEMENTS_MAX <= self.statements.len() {
            self.statements.clear();
        }
        let client = Arc::clone(&self.client);
        let numbered = numbered(sql);
        let statement = self.wait(async move { client.prepare(&numbered).await })?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// One statement for one row, and one for any number of them: whatever comes, two are prepared.
    fn prepared_insert(&mut self, into: Insert, values: usize) -> Result<Statement, Fault> {
        let places: Vec<String> = (1..=into.width).map(|n| format!("?{n}")).collect();
        let one = format!("{} VALUES ({}) {}", into.head, places.join(", "), into.tail);
        let one = self.prepared(&one)?;
        if values == into.width {
            return Ok(one);
        }
        // The server knows what the columns are made of.
        let casts = one.params().iter().zip(&places).map(|(ty, place)| array(ty, place));
        let casts: Result<Vec<String>, Fault> = casts.collect();
        let many =
            format!("{} SELECT * FROM unnest({}) {}", into.head, casts?.join(", "), into.tail);
        self.prepared(&many)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // An ordinary drop of a runtime panics on a thread that may not block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn columns<'a>(into: Insert, values: &'a [Value<'a>]) -> Vec<Slices<'a>> {
    (0..into.width).map(|at| Slices { values, width: into.width, at }).collect()
}

fn array(member: &Type, place: &str) -> Result<String, Fault> {
    let name = match *member {
        Type::INT8 => "bigint",
        Type::INT4 => "integer",
        Type::TEXT => "text",
        Type::BYTEA => "bytea",
        Type::FLOAT8 => "double precision",
        Type::BOOL => "boolean",
        _ => return Err(StoreErrorKind::Other.into()),
    };
    Ok(format!("CAST({place} AS {name}[])"))
}

/// Statements are written with `?1`; PostgreSQL has `$1`. Quoted text stays as it is.
fn numbered(sql: &str) -> String {
    let mut quoted = false;
    let mut numbered = String::with_capacity(sql.len());
    let mut characters = sql.chars().peekable();
    while let Some(character) = characters.next() {
        quoted ^= character == '\'';
        let place = character == '?' && characters.peek().is_some_and(char::is_ascii_digit);
        numbered.push(if place && !quoted { '$' } else { character });
    }
    numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_numbered_and_quoted_text_stays() {
        assert_eq!(
            numbered("a = ?1 AND b = '?2''?3' OR c = ?12"),
            "a = $1 AND b = '?2''?3' OR c = $12"
        );
    }
}
