//! The vault: redacted copies of sessions, from which their entries can be read again. A copy consists
//! of chunks: consecutive entries as compressed JSON. Equal chunks are stored once and deleted with
//! the last copy that uses them. Chunk boundaries depend only on earlier entries, so a session that
//! grew keeps its full chunks.

use super::session::{SESSION_COLUMNS, mark_unscrubbed};
use super::{Db, Fault, Result, Store, StoreErrorKind, StoreResult, row_of, session, values};
use crate::domain::{Digest, Entry, Format, Session, SessionId, Timestamp};
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
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
    pub(crate) async fn copy_chunks(&self, id: SessionId) -> StoreResult<Vec<KnownChunk>> {
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
    ) -> StoreResult<Option<Vec<Entry>>> {
        self.read("reading the copy of a session", move |db| {
            let no = session::number(db, id)?;
            let sql = "SELECT CAST(coalesce(sum(entries), 0) AS BIGINT) FROM vault
                WHERE session_no = ?1 AND part < ?2";
            let first = db.one(sql, values![no, part])?;
            let sql = "SELECT c.body, c.plain FROM vault v JOIN vault_chunks c ON c.no = v.chunk_no
                WHERE v.session_no = ?1 AND v.part = ?2";
            let found: Option<(Vec<u8>, u64)> = db.first(sql, values![no, part])?;
            found.map(|(body, plain)| entries(&body, plain, first)).transpose()
        })
        .await
    }

    /// Stores a copy, then evicts the least recently read ones until all fit into `bytes_max`; returns their number.
    pub(crate) async fn keep_copy(
        &self,
        id: SessionId,
        copy: SessionCopy,
        at: Timestamp,
        bytes_max: u64,
    ) -> StoreResult<u64> {
        self.write("keeping a copy of a session", move |db| {
            lock(db)?;
            let no = session::number(db, id)?;
            let stored = chunks(db, no)?;
            // If another process changed the copy in the meantime, the next reading updates it.
            if !stored.starts_with(&copy.before) || is_longer(db, &stored, &copy)? {
                return Ok(0);
            }
            cut_from(db, no, copy.before.len())?;
            for (part, chunk) in (copy.before.len()..).zip(&copy.new) {
                let KnownChunk { digest, entries, plain } = &chunk.known;
                let body = chunk.body.as_slice();
                let sql = "INSERT INTO vault_chunks (digest, plain, bytes, body)
                    VALUES (?1, ?2, ?3, ?4) ON CONFLICT (digest) DO NOTHING";
                db.run(sql, values![digest, *plain, body.len() as u64, body])?;
                let sql = "INSERT INTO vault (session_no, part, chunk_no, entries, at)
                    SELECT ?1, ?2, no, ?4, ?5 FROM vault_chunks WHERE digest = ?3";
                db.run(sql, values![no, part as u64, digest, *entries, at])?;
            }
            evict(db, bytes_max)
        })
        .await
    }

    /// Returns all copies, in the order in which their sessions were first read.
    pub(crate) async fn copies(&self) -> StoreResult<Vec<StoredCopy>> {
        let sql = format!(
            "SELECT CAST(k.plain AS BIGINT), {SESSION_COLUMNS} FROM sessions s JOIN (
                SELECT v.session_no, sum(c.plain) AS plain FROM vault v
                JOIN vault_chunks c ON c.no = v.chunk_no GROUP BY v.session_no
            ) k ON k.session_no = s.no ORDER BY s.no"
        );
        self.all("listing copies", &sql, &[]).await
    }

    /// Returns totals of the copies by transcript format.
    pub(crate) async fn vault_totals(&self) -> StoreResult<BTreeMap<Format, VaultTotals>> {
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

    pub(crate) async fn clear_vault(&self) -> StoreResult<()> {
        self.write("removing all copies", |db| {
            lock(db)?;
            mark_unscrubbed(db, "")?;
            db.run("DELETE FROM vault", &[])?;
            db.run("DELETE FROM vault_chunks", &[])
        })
        .await
    }
}

/// Locks the vault until the transaction ends, so that a shared chunk is not deleted with one copy
/// while another starts to use it.
pub(super) fn lock(db: &mut Db) -> Result<()> {
    db.lock_key(&Digest::of(&["vault"]))
}

/// Passes every text of the copies to `each`.
pub(super) fn each_text(db: &mut Db, each: &mut dyn FnMut(&str)) -> Result<()> {
    db.each("SELECT body, plain FROM vault_chunks", &[], |row| {
        let (body, plain): (Vec<u8>, u64) = (row.next()?, row.next()?);
        for entry in entries(&body, plain, 0)? {
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

fn chunks(db: &mut Db, session_no: i64) -> Result<Vec<KnownChunk>> {
    let sql = "SELECT c.digest, v.entries, c.plain FROM vault v
        JOIN vault_chunks c ON c.no = v.chunk_no WHERE v.session_no = ?1 ORDER BY v.part";
    db.all(sql, values![session_no])
}

/// Returns true if the stored copy extends `copy`: the file is being written or was truncated.
fn is_longer(db: &mut Db, stored: &[KnownChunk], copy: &SessionCopy) -> Result<bool> {
    let [last] = copy.new.as_slice() else { return Ok(false) };
    let Some(there) = stored.get(copy.before.len()).filter(|it| last.known.plain < it.plain) else {
        return Ok(false);
    };
    let sql = "SELECT body FROM vault_chunks WHERE digest = ?1";
    let body: Option<Vec<u8>> = db.first(sql, values![&there.digest])?;
    let there = unpack(&body.unwrap_or_default(), there.plain)?;
    Ok(there.starts_with(&unpack(&last.body, last.known.plain)?))
}

/// Deletes the parts of a copy from `part` on, and unused chunks. The caller must hold the [`lock`].
pub(super) fn cut_from(db: &mut Db, session_no: i64, part: usize) -> Result<()> {
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
fn evict(db: &mut Db, bytes_max: u64) -> Result<u64> {
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
        cut_from(db, oldest, 0)?;
        evicted += 1;
    }
}

row_of! { KnownChunk { digest, entries, plain } }

/// Size at which a chunk is full, before compression. Larger chunks compress no better, and the
/// last one is compressed again each time its session grows.
const CHUNK_BYTES: usize = 256 * 1024;
/// Maximum compressed size of a copy's new chunks, which are written in one transaction.
const COPY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Compression level, 1 to 10; higher levels take longer without saving space.
const LEVEL: u8 = 6;

#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    /// Digest and size of its lines.
    known: KnownChunk,
    /// Compressed lines.
    body: Vec<u8>,
}

/// Digest and size of a chunk, which identify it without reading it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct KnownChunk {
    pub(crate) digest: Digest,
    pub(crate) entries: u32,
    /// Size before compression, in bytes.
    pub(crate) plain: u64,
}

/// Returns the lines of a compressed chunk.
fn unpack(body: &[u8], plain: u64) -> Result<Vec<u8>> {
    let damaged = || Fault::from(StoreErrorKind::Damaged);
    let most = usize::try_from(plain).map_err(|_| damaged())?;
    decompress_to_vec_zlib_with_limit(body, most).map_err(|_| damaged())
}

/// Returns the entries of a compressed chunk, numbered from `first`.
fn entries(body: &[u8], plain: u64, first: u32) -> Result<Vec<Entry>> {
    let lines = unpack(body, plain)?;
    let entry = |(ordinal, line): (u32, &[u8])| {
        let entry: Entry = serde_json::from_slice(line).map_err(|_| StoreErrorKind::Damaged)?;
        Ok(Entry { ordinal, ..entry })
    };
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    (first..).zip(lines).map(entry).collect()
}

/// New chunks of a session, and the stored ones before them.
#[derive(Clone, Debug)]
pub(crate) struct SessionCopy {
    /// Leading chunks that are already stored.
    before: Vec<KnownChunk>,
    new: Vec<Chunk>,
}

/// Cuts a stream of entries into chunks and omits those already stored.
#[derive(Debug, Default)]
pub(crate) struct CopyBuilder {
    stored: Vec<KnownChunk>,
    /// Number of leading chunks that are unchanged.
    same: usize,
    new: Vec<Chunk>,
    new_bytes: usize,
    /// Lines of the current chunk.
    lines: Vec<u8>,
    entries: u32,
    is_too_large: bool,
}

impl CopyBuilder {
    /// Starts the copy of a session that has these stored chunks.
    pub(crate) fn new(stored: Vec<KnownChunk>) -> CopyBuilder {
        CopyBuilder { stored, ..CopyBuilder::default() }
    }

    /// Continues a copy after its full chunks. Returns the number of the last chunk if it is not
    /// full; its entries must then be pushed first.
    pub(crate) fn behind(stored: Vec<KnownChunk>) -> (CopyBuilder, Option<u32>) {
        let last = stored.len().checked_sub(1);
        let open = last.filter(|last| stored[*last].plain < CHUNK_BYTES as u64);
        let same = open.unwrap_or(stored.len());
        let number = open.and_then(|open| u32::try_from(open).ok());
        (CopyBuilder { same, ..CopyBuilder::new(stored) }, number)
    }

    pub(crate) fn push(&mut self, entry: &Entry) {
        if self.is_too_large {
            return;
        }
        // Serialization cannot fail: an entry holds only text, names and numbers.
        if serde_json::to_writer(&mut self.lines, entry).is_ok() {
            self.lines.push(b'\n');
            self.entries += 1;
        }
        if CHUNK_BYTES <= self.lines.len() {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let (lines, entries) = (std::mem::take(&mut self.lines), std::mem::take(&mut self.entries));
        if entries == 0 {
            return;
        }
        let (digest, plain) = (Digest::of_bytes(&lines), lines.len() as u64);
        let known = KnownChunk { digest, entries, plain };
        if self.new.is_empty() && self.stored.get(self.same) == Some(&known) {
            self.same += 1;
            return;
        }
        let body = compress_to_vec_zlib(&lines, LEVEL);
        self.new_bytes += body.len();
        self.is_too_large |= COPY_BYTES_MAX < self.new_bytes;
        self.new.push(Chunk { known, body });
    }

    /// Finishes the copy; `None` if nothing is new.
    ///
    /// # Errors
    /// Fails if the new chunks exceed the maximum size.
    pub(crate) fn finish(mut self) -> Result<Option<SessionCopy>, CopyTooLarge> {
        self.cut();
        if self.is_too_large {
            return Err(CopyTooLarge);
        }
        self.stored.truncate(self.same);
        let copy = SessionCopy { before: self.stored, new: self.new };
        Ok((!copy.new.is_empty()).then_some(copy))
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a session is larger than a copy may be, {} MB after compression", COPY_BYTES_MAX >> 20)]
pub(crate) struct CopyTooLarge;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Branch, EntryKind, Outcome, Skip, Speaker, Tool};
    use crate::privacy::{Gate, Redacted};

    /// Returns entries whose texts compress badly.
    fn said(count: u32, bytes: usize) -> Vec<Entry> {
        let text = |number: u32| {
            let digests = (0..bytes / 32)
                .map(|at| Digest::of(&[&number.to_string(), &at.to_string()]).to_string());
            Gate::new(&[]).redact(&digests.collect::<String>())
        };
        (0..count)
            .map(|ordinal| Entry {
                ordinal,
                line: ordinal * 2 + 1,
                native_id: Some(Redacted::reopened(format!("id-{ordinal}"))),
                speaker: Speaker::Tool,
                kind: EntryKind::ToolResult,
                branch: Branch::Active,
                text: text(ordinal),
                tool: Some(Tool {
                    name: Redacted::reopened("Bash".to_owned()),
                    call_id: Some(Redacted::reopened(format!("call-{ordinal}"))),
                }),
                outcome: Some(Outcome::Failed),
                exit_code: Some(2),
                at: Some(Timestamp(1_000)),
                skip: (ordinal % 2 == 0).then_some(Skip::Copied),
            })
            .collect()
    }

    fn copy(stored: Vec<KnownChunk>, entries: &[Entry]) -> Option<SessionCopy> {
        let mut builder = CopyBuilder::new(stored);
        entries.iter().for_each(|entry| builder.push(entry));
        builder.finish().unwrap()
    }

    fn known(copy: &SessionCopy) -> Vec<KnownChunk> {
        copy.before.iter().copied().chain(copy.new.iter().map(|it| it.known)).collect()
    }

    #[test]
    fn what_is_unpacked_is_what_was_packed() {
        let said = said(20, 40_000);
        let copy = copy(Vec::new(), &said).unwrap();
        assert!(copy.new.len() > 1);
        let mut read = Vec::new();
        for Chunk { known, body } in &copy.new {
            let first = u32::try_from(read.len()).unwrap();
            read.extend(entries(body, known.plain, first).unwrap());
        }
        assert_eq!(read, said);
        let broken = &copy.new[0].body[..100];
        assert!(unpack(broken, copy.new[0].known.plain).is_err());
        assert!(unpack(&copy.new[0].body, 10).is_err(), "no more than it says is unpacked");
    }

    #[test]
    fn stored_lines_are_read_and_written_unchanged() {
        const LINES: &str = concat!(
            r#"{"line":3,"speaker":"tool","kind":"tool_result","branch":"sidechain","at":1000,"#,
            r#""native_id":"n1","tool":"Bash","call_id":"c1","outcome":"failed","exit_code":-2,"#,
            r#""skip":"copied from elsewhere","text":"a \"b\"\nc"}"#,
            "\n",
            r#"{"line":4,"speaker":"tool","kind":"tool_call","branch":"active","tool":"Bash","text":""}"#,
            "\n",
            r#"{"line":5,"speaker":"person","kind":"prompt","branch":"active","text":"Hi."}"#,
            "\n",
        );
        let packed = compress_to_vec_zlib(LINES.as_bytes(), LEVEL);
        let read = entries(&packed, LINES.len() as u64, 7).unwrap();
        assert_eq!((read[0].ordinal, read[2].ordinal), (7, 9));
        assert!(read[0].exit_code == Some(-2) && read[1].tool.is_some() && read[2].tool.is_none());
        let written = copy(Vec::new(), &read).unwrap();
        let bytes = unpack(&written.new[0].body, LINES.len() as u64).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), LINES);
    }

    #[test]
    fn a_session_that_grew_has_the_chunks_that_it_had() {
        let said = said(40, 40_000);
        let first = known(&copy(Vec::new(), &said[..30]).unwrap());
        assert!(copy(first.clone(), &said[..30]).is_none(), "nothing is new");
        let grown = copy(first.clone(), &said).unwrap();
        assert_eq!(grown.before, first[..first.len() - 1], "all full ones stay");
        let (mut builder, open) = CopyBuilder::behind(first.clone());
        let from: u32 = first[..open.unwrap() as usize].iter().map(|it| it.entries).sum();
        said[from as usize..].iter().for_each(|entry| builder.push(entry));
        assert_eq!(known(&builder.finish().unwrap().unwrap()), known(&grown));
        let mut changed = said;
        changed[12].line = 1;
        let changed = copy(first, &changed).unwrap();
        assert_eq!(changed.before.len(), 1, "those before the change stay");
    }
}
