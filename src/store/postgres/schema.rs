//! Creates, identifies and migrates our tables.

use super::super::error::{Fault, Refusal, StoreErrorKind};
use super::super::migrations::{APPLICATION_ID, KNOWN, OpenMode, POSTGRES as MIGRATIONS};
use super::super::value::{Row, Value, values};
use super::connection::Connection;
use std::ops::ControlFlow;

/// Lock timeout for concurrent migrations, in seconds: another process may be rewriting tables.
const MIGRATION_SECS: u64 = 60;

pub(super) fn prepare(to: &mut Connection, open: OpenMode) -> Result<(), Fault> {
    match version(to)? {
        Some(found) if found == KNOWN => return Ok(()),
        Some(_) => {}
        None if open == OpenMode::Existing => return Err(StoreErrorKind::Missing.into()),
        None => {}
    }
    to.batch("BEGIN")?;
    let done = migrate(to);
    let ended = to.batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" });
    done.and(ended)
}

/// Serialized by an advisory lock; the second process finds nothing left to do.
fn migrate(to: &mut Connection) -> Result<(), Fault> {
    to.batch(&format!(
        "SET LOCAL lock_timeout = '{MIGRATION_SECS}s'; SET LOCAL statement_timeout = 0;
        SELECT pg_advisory_xact_lock({APPLICATION_ID})"
    ))?;
    make_schema(to)?;
    let found = version(to)?;
    if found.is_none() {
        to.batch("CREATE TABLE annalist (application BIGINT NOT NULL, version BIGINT NOT NULL)")?;
        to.execute("INSERT INTO annalist VALUES (?1, 0)", values![APPLICATION_ID])?;
    }
    for migration in MIGRATIONS.iter().skip(found.unwrap_or(0) as usize) {
        to.batch(migration)?;
    }
    to.execute("UPDATE annalist SET version = ?1", values![KNOWN])?;
    Ok(())
}

/// Returns the schema version, or `None` if there are no tables. Fails for foreign or newer tables.
fn version(to: &mut Connection) -> Result<Option<u32>, Fault> {
    let sql = "SELECT count(*), count(*) FILTER (WHERE tablename = 'annalist')
        FROM pg_tables WHERE schemaname = current_schema()";
    let (tables, ours): (i64, i64) = one(to, sql)?;
    if tables == 0 {
        return Ok(None);
    }
    // Unqualified names resolve to this schema, the first that exists in the search path.
    let sql = "SELECT count(*), count(*) FILTER (WHERE column_name IN ('application', 'version'))
        FROM information_schema.columns
        WHERE table_schema = current_schema() AND table_name = 'annalist'";
    if ours == 0 || one(to, sql)? != (2, 2) {
        return Err(StoreErrorKind::Foreign.into());
    }
    let (application, found) = one(to, "SELECT application, version FROM annalist")?;
    if application != i64::from(APPLICATION_ID) {
        return Err(StoreErrorKind::Foreign.into());
    }
    let found = u32::try_from(found).unwrap_or(u32::MAX);
    if KNOWN < found {
        return Err(StoreErrorKind::Newer { found, known: KNOWN }.into());
    }
    Ok(Some(found))
}

fn first<T: Row>(to: &mut Connection, sql: &str, by: &[Value<'_>]) -> Result<Option<T>, Fault> {
    let mut first = None;
    to.each(sql, by, &mut |row| {
        first = Some(row.next()?);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(first)
}

fn one(to: &mut Connection, sql: &str) -> Result<(i64, i64), Fault> {
    first(to, sql, &[])?.ok_or_else(|| StoreErrorKind::Foreign.into())
}

/// Creates the first schema that `search_path` names, other than the default `"$user"`.
fn make_schema(to: &mut Connection) -> Result<(), Fault> {
    let sql = "SELECT name FROM unnest(string_to_array(current_setting('search_path'), ','))
        WITH ORDINALITY AS path (name, at) WHERE trim(name) NOT IN ('', '\"$user\"')
        ORDER BY at LIMIT 1";
    // As written there, including any quotes.
    let name: String = first(to, sql, &[])?.ok_or(StoreErrorKind::Refused(Refusal::Schema))?;
    let sql = "SELECT to_regnamespace(?1) IS NULL";
    if first(to, sql, values![&name])?.unwrap_or(false) {
        to.batch(&format!("CREATE SCHEMA {name}"))?;
    }
    Ok(())
}
