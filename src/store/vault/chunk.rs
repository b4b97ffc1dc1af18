//! Chunks of a copy: consecutive entries of a session as compressed JSON. Chunk boundaries depend
//! only on earlier entries, so a session that grew keeps its full chunks.

use crate::domain::{Branch, Digest, Entry, EntryKind, Outcome, Skip, Speaker, Timestamp, Tool};
use crate::privacy::Redacted;
use crate::store::error::{Fault, StoreErrorKind};
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use serde::{Deserialize, Serialize};

/// Size at which a chunk is full, before compression. Larger chunks compress no better, and the
/// last one is compressed again each time its session grows.
const CHUNK_BYTES: usize = 256 * 1024;
/// Maximum compressed size of a copy's new chunks, which are written in one transaction.
const COPY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Compression level, 1 to 10; higher levels take longer without saving space.
const LEVEL: u8 = 6;

/// An entry in a copy. Its ordinal is its position.
#[derive(Deserialize, Serialize)]
struct EntryLine {
    line: u32,
    speaker: Speaker,
    kind: EntryKind,
    branch: Branch,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    native_id: Option<Redacted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<Redacted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<Redacted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skip: Option<Skip>,
    text: Redacted,
}

impl EntryLine {
    fn of(entry: &Entry) -> EntryLine {
        let tool = entry.tool.as_ref();
        EntryLine {
            line: entry.line,
            speaker: entry.speaker,
            kind: entry.kind,
            branch: entry.branch,
            at: entry.at,
            native_id: entry.native_id.clone(),
            tool: tool.map(|tool| tool.name.clone()),
            call_id: tool.and_then(|tool| tool.call_id.clone()),
            outcome: entry.outcome,
            exit_code: entry.exit_code,
            skip: entry.skip,
            text: entry.text.clone(),
        }
    }

    fn entry(self, ordinal: u32) -> Entry {
        let EntryLine { line, speaker, kind, branch, at, native_id, tool, call_id, .. } = self;
        let EntryLine { outcome, exit_code, skip, text, .. } = self;
        let tool = tool.map(|name| Tool { name, call_id });
        Entry {
            ordinal,
            line,
            native_id,
            speaker,
            kind,
            branch,
            text,
            tool,
            outcome,
            exit_code,
            at,
            skip,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    /// Digest and size of its lines.
    pub(super) known: KnownChunk,
    /// Compressed lines.
    pub(super) body: Vec<u8>,
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
pub(super) fn unpack(body: &[u8], plain: u64) -> Result<Vec<u8>, Fault> {
    let damaged = || Fault::from(StoreErrorKind::Damaged);
    let most = usize::try_from(plain).map_err(|_| damaged())?;
    decompress_to_vec_zlib_with_limit(body, most).map_err(|_| damaged())
}

/// Returns the entries of a compressed chunk, numbered from `first`.
pub(super) fn entries(body: &[u8], plain: u64, first: u32) -> Result<Vec<Entry>, Fault> {
    let lines = unpack(body, plain)?;
    let entry = |(ordinal, line): (u32, &[u8])| {
        let line: EntryLine = serde_json::from_slice(line).map_err(|_| StoreErrorKind::Damaged)?;
        Ok(line.entry(ordinal))
    };
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    (first..).zip(lines).map(entry).collect()
}

/// New chunks of a session, and the stored ones before them.
#[derive(Clone, Debug)]
pub(crate) struct SessionCopy {
    /// Leading chunks that are already stored.
    pub(super) before: Vec<KnownChunk>,
    pub(super) new: Vec<Chunk>,
}

/// Cuts a stream of entries into chunks and omits those already stored.
#[derive(Debug)]
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
        let (new, lines) = (Vec::new(), Vec::new());
        let (same, new_bytes, entries) = (0, 0, 0);
        CopyBuilder { stored, same, new, new_bytes, lines, entries, is_too_large: false }
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
        if serde_json::to_writer(&mut self.lines, &EntryLine::of(entry)).is_ok() {
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
    use crate::privacy::Gate;

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
