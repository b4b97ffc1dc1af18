//! Creates, identifies and migrates our tables.

use super::super::error::{Fault, Refusal, StoreErrorKind};
use super::super::migrations::{APPLICATION_ID, KNOWN, OpenMode, POSTGRES as MIGRATIONS};
use super::super::value::values;
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

fn one(to: &mut Connection, sql: &str) -> Result<(i64, i64), Fault> {
    let mut found = None;
    to.each(sql, &[], &mut |row| {
        found = Some((row.next()?, row.next()?));
        Ok(ControlFlow::Continue(()))
    })?;
    found.ok_or_else(|| StoreErrorKind::Foreign.into())
}

/// Creates the first schema that `search_path` names, other than the default `"$user"`.
fn make_schema(to: &mut Connection) -> Result<(), Fault> {
    let mut first = None;
    let sql = "SELECT name FROM unnest(string_to_array(current_setting('search_path'), ','))
        WITH ORDINALITY AS path (name, at) WHERE trim(name) NOT IN ('', '\"$user\"')
        ORDER BY at LIMIT 1";
    to.each(sql, &[], &mut |row| {
        first = Some(row.next::<String>()?);
        Ok(ControlFlow::Continue(()))
    })?;
    // As written there, including any quotes.
    let first = first.ok_or(Fault::from(StoreErrorKind::Refused(Refusal::Schema)))?;
    let mut missing = false;
    let sql = "SELECT to_regnamespace(?1) IS NULL";
    to.each(sql, values![first.as_str()], &mut |row| {
        missing = row.next()?;
        Ok(ControlFlow::Continue(()))
    })?;
    if missing {
        to.batch(&format!("CREATE SCHEMA {first}"))?;
    }
    Ok(())
}
