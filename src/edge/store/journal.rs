//! The journal: a model's answer is stored before anything reads it, and the first answer wins.
//! Also what endpoints were found able to do.

use super::bill::{self, Bill};
use super::db::{Db, json, values};
use super::error::Fault;
use crate::domain::{Reply, RequestDigest, RunId, Rung, Timestamp};

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
    /// What it cost, where no run has it on its bill.
    pub bill: Option<Bill>,
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
pub(super) fn write(db: &mut Db, entry: &JournalEntry) -> Result<Reply, Fault> {
    let sql = "INSERT INTO journal (digest, run, model, rung, at, reply, request)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (digest) DO NOTHING";
    // Also where somebody else's answer came first: this one was paid for too.
    bill::write(db, entry)?;
    let reply = json(&entry.reply)?;
    let row = values![
        &entry.digest.0,
        &entry.run.0,
        &entry.model,
        entry.rung.name(),
        entry.at,
        &reply,
        entry.request.as_ref(),
    ];
    let kept = if db.execute(sql, row)? == 1 { None } else { find(db, entry.digest)? };
    Ok(kept.map_or_else(|| entry.reply.clone(), |kept| kept.reply))
}

pub(super) fn find(db: &mut Db, digest: RequestDigest) -> Result<Option<Journaled>, Fault> {
    let sql = "SELECT run, reply FROM journal WHERE digest = ?1";
    db.first(sql, values![&digest.0], |row| {
        Ok(Journaled { run: RunId(row.next()?), reply: row.json()? })
    })
}

pub(super) fn capability(db: &mut Db, base_url: &str, model: &str) -> Result<Option<Rung>, Fault> {
    let sql = "SELECT rung FROM capabilities WHERE base_url = ?1 AND model = ?2";
    db.first(sql, values![base_url, model], |row| row.named(Rung::of_name))
}

pub(super) fn learn(
    db: &mut Db,
    endpoint: (&str, &str),
    rung: Rung,
    at: Timestamp,
) -> Result<(), Fault> {
    let sql = "INSERT INTO capabilities (base_url, model, rung, at) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (base_url, model) DO UPDATE SET rung = excluded.rung, at = excluded.at";
    let (base_url, model) = endpoint;
    db.send(sql, values![base_url, model, rung.name(), at])
}
