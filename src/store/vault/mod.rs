//! The vault: redacted copies of sessions, from which their entries can be read again. Equal chunks
//! are stored once and deleted with the last copy that uses them.

mod chunk;

pub(crate) use chunk::{CopyBuilder, KnownChunk, SessionCopy};

use super::db::Db;
use super::error::{Fault, StoreError};
use super::handle::Store;
use super::session;
use super::value::{row_of, values};
use crate::domain::{Digest, Entry, Format, Session, SessionId, Timestamp};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// A copy in the vault.
#[derive(Clone, Debug)]
pub(crate) struct StoredCopy {
    pub(crate) session: Session,
    /// Size before compression, in bytes.
    pub(crate) plain: u64,
}

row_of! { StoredCopy { plain, session } }

/// Parameters for storing a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepAs {
    pub(crate) at: Timestamp,
    /// Maximum total size of all copies.
    pub(crate) bytes_max: u64,
}

/// Totals of the copies of one client's sessions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VaultTotals {
    pub(crate) sessions: u64,
    pub(crate) entries: u64,
    /// Size before deduplication and compression, in bytes.
    pub(crate) plain: u64,
    /// Stored size, in bytes.
    pub(crate) bytes: u64,
    /// Times at which the oldest and the newest copy were read.
    pub(crate) oldest: Option<Timestamp>,
    pub(crate) newest: Option<Timestamp>,
}

row_of! { VaultTotals { sessions, entries, plain, bytes, oldest, newest } }

impl Store {
    /// Returns the chunks of a session's copy, in order; empty if there is none.
    pub(crate) async fn copy_chunks(&self, id: SessionId) -> Result<Vec<KnownChunk>, StoreError> {
        self.read("looking for the copy of a session", move |db| {
            let sql = "SELECT no FROM sessions WHERE id = ?1";
            match db.first(sql, values![&id.0])? {
                Some(no) => chunks(db, no),
                None => Ok(Vec::new()),
            }
        })
        .await
    }

    /// Returns the entries of one chunk of a session's copy.
    pub(crate) async fn copied_entries(
        &self,
        id: SessionId,
        part: u32,
    ) -> Result<Option<Vec<Entry>>, StoreError> {
        self.read("reading the copy of a session", move |db| {
            let no = session::number(db, id)?;
            let sql = "SELECT CAST(coalesce(sum(entries), 0) AS BIGINT) FROM vault
                WHERE session_no = ?1 AND part < ?2";
            let first = db.one(sql, values![no, part])?;
            let sql = "SELECT c.body, c.plain FROM vault v JOIN vault_chunks c ON c.no = v.chunk_no
                WHERE v.session_no = ?1 AND v.part = ?2";
            let found: Option<(Vec<u8>, u64)> = db.first(sql, values![no, part])?;
            found.map(|(body, plain)| chunk::entries(&body, plain, first)).transpose()
        })
        .await
    }

    /// Stores a copy, then evicts the least recently read ones to fit; returns their number.
    pub(crate) async fn keep_copy(
        &self,
        id: SessionId,
        copy: SessionCopy,
        how: KeepAs,
    ) -> Result<u64, StoreError> {
        self.write("keeping a copy of a session", move |db| keep(db, id, &copy, how)).await
    }

    /// Returns all copies, in the order in which their sessions were first read.
    pub(crate) async fn copies(&self) -> Result<Vec<StoredCopy>, StoreError> {
        let sql = format!(
            "SELECT CAST(k.plain AS BIGINT), {} FROM sessions s JOIN (
                SELECT v.session_no, sum(c.plain) AS plain FROM vault v
                JOIN vault_chunks c ON c.no = v.chunk_no GROUP BY v.session_no
            ) k ON k.session_no = s.no ORDER BY s.no",
            session::COLUMNS
        );
        self.all("listing copies", &sql, &[]).await
    }

    /// Returns totals of the copies by transcript format.
    pub(crate) async fn vault_totals(&self) -> Result<BTreeMap<Format, VaultTotals>, StoreError> {
        self.read("counting copies", |db| {
            let sql = "SELECT s.format, count(DISTINCT s.no), CAST(sum(v.entries) AS BIGINT),
                    CAST(sum(c.plain) AS BIGINT), 0, min(k.at), max(k.at)
                FROM vault v JOIN vault_chunks c ON c.no = v.chunk_no
                JOIN sessions s ON s.no = v.session_no
                JOIN (SELECT session_no, max(at) AS at FROM vault GROUP BY session_no) k
                    ON k.session_no = s.no
                GROUP BY s.format";
            let mut all: BTreeMap<Format, VaultTotals> = db.all(sql, &[])?.into_iter().collect();
            // A chunk shared by several formats counts for one of them.
            let sql = "SELECT k.format, CAST(sum(k.bytes) AS BIGINT) FROM (
                    SELECT min(s.format) AS format, min(c.bytes) AS bytes FROM vault v
                    JOIN vault_chunks c ON c.no = v.chunk_no
                    JOIN sessions s ON s.no = v.session_no GROUP BY c.no
                ) k GROUP BY k.format";
            let sizes: Vec<(Format, u64)> = db.all(sql, &[])?;
            for (format, bytes) in sizes {
                all.entry(format).or_default().bytes = bytes;
            }
            Ok(all)
        })
        .await
    }

    pub(crate) async fn clear_vault(&self) -> Result<(), StoreError> {
        self.write("removing all copies", |db| {
            lock(db)?;
            db.run("DELETE FROM vault", &[])?;
            db.run("DELETE FROM vault_chunks", &[])
        })
        .await
    }
}

/// Locks the vault until the transaction ends, so that a shared chunk is not deleted with one copy
/// while another starts to use it.
pub(super) fn lock(db: &mut Db) -> Result<(), Fault> {
    db.lock_key(&Digest::of(&["vault"]))
}

/// Deletes a session's copy and the chunks that no other copy uses. The caller must hold the [`lock`].
pub(super) fn erase(db: &mut Db, session_no: i64) -> Result<(), Fault> {
    cut_from(db, session_no, 0)
}

/// Passes every text of the copies to `each`.
pub(super) fn each_text(db: &mut Db, each: &mut dyn FnMut(&str)) -> Result<(), Fault> {
    db.each("SELECT body, plain FROM vault_chunks", &[], |row| {
        let (body, plain): (Vec<u8>, u64) = (row.next()?, row.next()?);
        for entry in chunk::entries(&body, plain, 0)? {
            let tool = entry.tool.as_ref();
            let call_id = tool.and_then(|tool| tool.call_id.as_ref());
            let names = [entry.native_id.as_ref(), tool.map(|tool| &tool.name), call_id];
            for text in names.into_iter().flatten().chain([&entry.text]) {
                each(text.as_str());
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

fn chunks(db: &mut Db, session_no: i64) -> Result<Vec<KnownChunk>, Fault> {
    let sql = "SELECT c.digest, v.entries, c.plain FROM vault v
        JOIN vault_chunks c ON c.no = v.chunk_no WHERE v.session_no = ?1 ORDER BY v.part";
    db.all(sql, values![session_no])
}

fn keep(db: &mut Db, id: SessionId, copy: &SessionCopy, how: KeepAs) -> Result<u64, Fault> {
    lock(db)?;
    let no = session::number(db, id)?;
    let stored = chunks(db, no)?;
    // If another process changed the copy in the meantime, the next reading updates it.
    if !stored.starts_with(&copy.before) || is_longer(db, &stored, copy)? {
        return Ok(0);
    }
    cut_from(db, no, copy.before.len())?;
    for (part, chunk) in (copy.before.len()..).zip(&copy.new) {
        let KnownChunk { digest, entries, plain } = &chunk.known;
        let body = chunk.body.as_slice();
        let sql = "INSERT INTO vault_chunks (digest, plain, bytes, body) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (digest) DO NOTHING";
        db.run(sql, values![digest, *plain, body.len() as u64, body])?;
        let sql = "INSERT INTO vault (session_no, part, chunk_no, entries, at)
            SELECT ?1, ?2, no, ?4, ?5 FROM vault_chunks WHERE digest = ?3";
        db.run(sql, values![no, part as u64, digest, *entries, how.at])?;
    }
    evict(db, how.bytes_max)
}

/// Returns true if the stored copy extends `copy`: the file is being written or was truncated.
fn is_longer(db: &mut Db, stored: &[KnownChunk], copy: &SessionCopy) -> Result<bool, Fault> {
    let [last] = copy.new.as_slice() else { return Ok(false) };
    let Some(there) = stored.get(copy.before.len()).filter(|it| last.known.plain < it.plain) else {
        return Ok(false);
    };
    let sql = "SELECT body FROM vault_chunks WHERE digest = ?1";
    let body: Option<Vec<u8>> = db.first(sql, values![&there.digest])?;
    let there = chunk::unpack(&body.unwrap_or_default(), there.plain)?;
    Ok(there.starts_with(&chunk::unpack(&last.body, last.known.plain)?))
}

/// Deletes the parts of a copy from `part` on, and unused chunks.
fn cut_from(db: &mut Db, session_no: i64, part: usize) -> Result<(), Fault> {
    let sql = "SELECT DISTINCT chunk_no FROM vault WHERE session_no = ?1 AND ?2 <= part";
    let row = values![session_no, part as u64];
    let chunks: Vec<i64> = db.all(sql, row)?;
    db.run("DELETE FROM vault WHERE session_no = ?1 AND ?2 <= part", row)?;
    for chunk in chunks {
        let sql = "DELETE FROM vault_chunks WHERE no = ?1
            AND NOT EXISTS (SELECT 1 FROM vault WHERE chunk_no = ?1)";
        db.run(sql, values![chunk])?;
    }
    Ok(())
}

/// Deletes the least recently read copies until the rest fits.
fn evict(db: &mut Db, bytes_max: u64) -> Result<u64, Fault> {
    let mut evicted = 0;
    // Terminates at the latest when no copy is left.
    loop {
        let sql = "SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM vault_chunks";
        let bytes: u64 = db.one(sql, &[])?;
        if bytes <= bytes_max {
            return Ok(evicted);
        }
        let sql = "SELECT session_no FROM vault GROUP BY session_no
            ORDER BY max(at), session_no LIMIT 1";
        let Some(oldest) = db.first(sql, &[])? else {
            return Ok(evicted);
        };
        erase(db, oldest)?;
        evicted += 1;
    }
}

row_of! { KnownChunk { digest, entries, plain } }
