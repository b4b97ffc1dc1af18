//! The journal: a model's answer is stored before anything reads it, and the first answer wins.
//! Also what endpoints were found able to do.

use super::column::{Columns, json};
use super::error::Fault;
use crate::domain::{Reply, RequestDigest, RunId, Rung, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

/// An answer to keep.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JournalEntry {
    /// The question's digest.
    pub digest: RequestDigest,
    /// The run that asked.
    pub run: RunId,
    /// The model's name at the endpoint.
    pub model: String,
    /// How the answer was asked for.
    pub rung: Rung,
    /// When it came.
    pub at: Timestamp,
    /// The answer.
    pub reply: Reply,
    /// The question as JSON, where it is to be kept.
    pub request: Option<String>,
}

/// An answer that is kept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Journaled {
    /// The run that asked first, and paid.
    pub run: RunId,
    /// The answer.
    pub reply: Reply,
}

/// Keeps the answer unless there is one; gives the one that is kept.
pub(super) fn write(connection: &Connection, entry: JournalEntry) -> Result<Reply, Fault> {
    let sql = "INSERT INTO journal (digest, run, model, rung, at, reply, request)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (digest) DO NOTHING";
    let inserted = connection.prepare_cached(sql)?.execute(params![
        entry.digest.0.as_bytes(),
        entry.run.0.as_bytes(),
        entry.model,
        entry.rung.name(),
        entry.at.0,
        json(&entry.reply)?,
        entry.request,
    ])?;
    if inserted == 1 {
        return Ok(entry.reply);
    }
    Ok(find(connection, entry.digest)?.map_or(entry.reply, |kept| kept.reply))
}

pub(super) fn find(
    connection: &Connection,
    digest: RequestDigest,
) -> Result<Option<Journaled>, Fault> {
    let mut find = connection.prepare_cached("SELECT run, reply FROM journal WHERE digest = ?1")?;
    let kept = find.query_row([digest.0.as_bytes()], |row| {
        let mut row = Columns::of(row);
        Ok(Journaled { run: RunId(row.digest()?), reply: row.json()? })
    });
    Ok(kept.optional()?)
}

pub(super) fn capability(
    connection: &Connection,
    base_url: &str,
    model: &str,
) -> Result<Option<Rung>, Fault> {
    let sql = "SELECT rung FROM capabilities WHERE base_url = ?1 AND model = ?2";
    let mut find = connection.prepare_cached(sql)?;
    let rung = find.query_row([base_url, model], |row| Columns::of(row).named(Rung::of_name));
    Ok(rung.optional()?)
}

pub(super) fn learn(
    connection: &Connection,
    endpoint: (&str, &str),
    rung: Rung,
    at: Timestamp,
) -> Result<(), Fault> {
    let sql = "INSERT INTO capabilities (base_url, model, rung, at) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (base_url, model) DO UPDATE SET rung = excluded.rung, at = excluded.at";
    let (base_url, model) = endpoint;
    connection.prepare_cached(sql)?.execute(params![base_url, model, rung.name(), at.0])?;
    Ok(())
}
