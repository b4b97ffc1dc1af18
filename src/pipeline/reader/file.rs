//! Reads one file to its end, or the copy of a session in the vault, and keeps such copies. Problems are counted and
//! do not stop other files.

use super::current::Current;
use super::{Reader, SliceSink};
use crate::adapters::files::Upload;
use crate::adapters::walk::{Candidate, Input, open, walk};
use crate::domain::{DETECT_BYTES_MAX, Entry, Finding, Format, SessionId, Severity};
use crate::pipeline::tally::{FileProblem, Tally};
use crate::privacy::{Redacted, is_private_file};
use crate::store::{CopyBuilder, StoreResult, StoredCopy};
use crate::transcripts::{self, RawEntry, RawSession, TranscriptItem, nothing_read};
use std::fmt::Display;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::mem;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

/// Finds the files of `paths`; notes problems in `tally`.
pub(crate) fn found(paths: &[PathBuf], tally: &Tally) -> Vec<Candidate> {
    let (files, problems) = walk(paths);
    for (path, error) in problems {
        tally.problem(&path.display().to_string(), error.to_string());
    }
    files
}

impl<S: SliceSink> Reader<'_, S> {
    pub(crate) fn file(&mut self, file: &Candidate) -> ControlFlow<()> {
        self.next_file();
        self.read(file, Bytes::OnDisk)
    }

    pub(crate) fn next_file(&mut self) {
        self.copies.next_file();
    }

    pub(crate) fn same_file(&mut self) {
        self.copies.same_file();
    }

    pub(crate) fn read(&mut self, file: &Candidate, bytes: Bytes<'_>) -> ControlFlow<()> {
        let path = file.path.display().to_string();
        let read = self.until_own(file.bytes, |reader| {
            bytes.open(&file.path).and_then(|input| reader.input(input, file, &path))
        });
        read.unwrap_or_else(|error| {
            self.tally.problem(&path, format!("cannot be read: {error}"));
            ControlFlow::Continue(())
        })
    }

    /// Repeats `read` of a file of `bytes` while the file takes over a session: at most once per session.
    fn until_own<T>(&mut self, bytes: u64, mut read: impl FnMut(&mut Self) -> T) -> T {
        let before = self.tally.totals();
        let read = loop {
            let result = read(self);
            let Some(taken) = self.copies.again.take() else { break result };
            self.copies.same_file();
            self.tally
                .with(|totals| totals.read_again(&before, taken.marks.len() as u64, taken.slices));
        };
        self.tally.with(|totals| totals.bytes = before.bytes + bytes);
        read
    }

    fn input(
        &mut self,
        mut input: impl Read + Seek + Send,
        file: &Candidate,
        path: &str,
    ) -> io::Result<ControlFlow<()>> {
        let mut head = Vec::new();
        input.by_ref().take(DETECT_BYTES_MAX as u64).read_to_end(&mut head)?;
        input.rewind()?;
        let name = file.path.file_name().and_then(|name| name.to_str());
        let format = match self.reading.format {
            Some(format) if file.named => format,
            chosen => match transcripts::detect(&head, name) {
                Ok(format) if chosen.is_none_or(|chosen| chosen == format) => format,
                Ok(_) => return Ok(self.pass_over("of another format than --format")),
                Err(unknown) if !file.named => return Ok(self.pass_over(unknown.reason())),
                Err(unknown) => {
                    self.tally.problem(path, unknown.to_string());
                    return Ok(ControlFlow::Continue(()));
                }
            },
        };
        if is_private_file(&transcripts::lossy(&head)) {
            let finding = Finding::new(Severity::Info, "private-file", 0, "skipped");
            self.tally.finding_in(path, &finding);
            return Ok(self.pass_over("marked as private"));
        }
        if self.reading.session.is_some() && holds_several(format, &mut input)? {
            let problem = "contains several conversations, and --session names one; omit --session";
            self.tally.problem(path, problem.to_owned());
            return Ok(ControlFlow::Continue(()));
        }
        self.tally.with(|totals| totals.files += 1);
        let mut current = Current::new(self, file, path, format);
        let input = Counted { input, tally: current.reader.tally, read: 0 };
        let mut is_empty = true;
        read_ahead(format, input, |item| {
            is_empty &= !matches!(item, TranscriptItem::Entry(_));
            current.take(item)
        })?;
        let (stopped, bad) = (current.stopped, current.bad);
        let nothing = (is_empty && !stopped).then(|| nothing_read(format, &head, name));
        if let Some(nothing) = &nothing {
            let _ = current.take(TranscriptItem::Finding(nothing.clone()));
        }
        current.end(!stopped);
        match nothing.map(|finding| finding.detail.to_string()) {
            Some(problem) if file.named && (bad > 0 || self.reading.format.is_some()) => {
                self.tally.problem(path, problem);
            }
            Some(problem) => self.tally.with(|totals| {
                totals.empty.push(FileProblem { path: path.to_owned(), problem });
            }),
            None => {}
        }
        Ok(if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn pass_over(&mut self, reason: &'static str) -> ControlFlow<()> {
        self.tally.with(|totals| {
            totals.files_passed_over += 1;
            *totals.files_not_read.entry(reason).or_default() += 1;
        });
        ControlFlow::Continue(())
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Bytes<'a> {
    OnDisk,
    AtHand(&'a [u8]),
    Uploaded(&'a Upload),
}

impl<'a> Bytes<'a> {
    /// Opens the bytes at their beginning; `path` is their file, if they are on disk.
    pub(crate) fn open(self, path: &Path) -> io::Result<Box<dyn Input + Send + 'a>> {
        Ok(match self {
            Bytes::OnDisk => open(path)?,
            Bytes::AtHand(bytes) => Box::new(Cursor::new(bytes)),
            Bytes::Uploaded(mut upload) => {
                upload.rewind()?;
                Box::new(upload)
            }
        })
    }
}

/// True if `input` has several conversations; rewinds it.
fn holds_several(format: Format, mut input: impl Read + Seek) -> io::Result<bool> {
    let mut sessions = 0;
    transcripts::read(format, &mut input, &mut |item| {
        sessions += u32::from(matches!(item, TranscriptItem::Session(_)));
        if sessions > 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    input.rewind()?;
    Ok(sessions > 1)
}

/// Parses `input` on a thread of its own while `take` handles the items in order, and stops when `take` does.
fn read_ahead(
    format: Format,
    input: impl Read + Seek + Send,
    take: impl FnMut(TranscriptItem) -> ControlFlow<()>,
) -> io::Result<()> {
    /// Maximum number of batches that wait for `take`.
    const AHEAD_MAX: usize = 2;
    const BATCH_ITEMS_MAX: usize = 64;
    const BATCH_TEXT_MAX: usize = 64 * 1024;
    let (sender, batches) = mpsc::sync_channel::<Vec<TranscriptItem>>(AHEAD_MAX);
    thread::scope(|scope| {
        let parsing = scope.spawn(move || {
            let (mut batch, mut text) = (Vec::new(), 0);
            let read = transcripts::read(format, input, &mut |item| {
                text += if let TranscriptItem::Entry(entry) = &item { entry.text.len() } else { 0 };
                batch.push(item);
                if batch.len() < BATCH_ITEMS_MAX && text < BATCH_TEXT_MAX {
                    return ControlFlow::Continue(());
                }
                text = 0;
                let sent = sender.send(mem::take(&mut batch));
                if sent.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            // After a stop, nobody receives the rest.
            let _ = sender.send(batch);
            read
        });
        let _ = batches.into_iter().flatten().try_for_each(take);
        parsing.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Counts the bytes read, for progress reports. Seeking restarts the count.
struct Counted<'a, R> {
    input: R,
    tally: &'a Tally,
    read: u64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.input.read(buffer)?;
        self.read += bytes as u64;
        self.tally.with(|totals| totals.bytes += bytes as u64);
        Ok(bytes)
    }
}

impl<R: Seek> Seek for Counted<'_, R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.tally.with(|totals| totals.bytes = totals.bytes.saturating_sub(self.read));
        self.read = 0;
        self.input.seek(to)
    }
}

impl<S: SliceSink> Reader<'_, S> {
    pub(super) fn begin_copy(&mut self, id: SessionId) -> Option<CopyBuilder> {
        self.reading.vault?;
        let lookup = self.sink.lookup()?;
        let stored = lookup.block_on(lookup.store.copy_chunks(id));
        stored.map(CopyBuilder::new).map_err(|error| self.note_not_kept(id, &error)).ok()
    }

    /// Keeps the copy of a session that was read and ingested.
    pub(super) fn keep_copy(&mut self, id: SessionId, copy: CopyBuilder) {
        let copy = match copy.finish() {
            Ok(copy) => copy,
            Err(error) => return self.note_not_kept(id, &error),
        };
        let (Some(copy), Some(bytes_max)) = (copy, self.reading.vault) else { return };
        let Some(lookup) = self.sink.lookup() else { return };
        let Some(at) = lookup.now() else { return };
        match lookup.block_on(lookup.store.keep_copy(id, copy, at, bytes_max)) {
            Ok(0) => {}
            Ok(evicted) => {
                tracing::info!(evicted, "the vault is full: the oldest copies were removed");
                let what = "the vault is full: the oldest copies were removed";
                (0..evicted).for_each(|_| {
                    self.tally.finding(&Finding::new(Severity::Info, "vault-full", 0, what));
                });
            }
            Err(error) => self.note_not_kept(id, &error),
        }
    }

    fn note_not_kept(&self, session: SessionId, error: &dyn Display) {
        tracing::warn!(session.id = %session, error = %error, "no copy was kept");
        let what = "no copy was kept in the vault";
        self.tally.finding(&Finding::new(Severity::Warning, "vault-failed", 0, what));
    }

    /// Reads a copy like the file that it was made from.
    pub(crate) fn copy(&mut self, copy: &StoredCopy) -> ControlFlow<()> {
        self.next_file();
        let read = self.until_own(copy.plain, |reader| reader.read_copy(copy));
        read.unwrap_or_else(|error| {
            let problem = format!("its copy in the vault cannot be read: {error}");
            self.tally.problem(&copy.session.path, problem);
            ControlFlow::Continue(())
        })
    }

    fn read_copy(&mut self, copy: &StoredCopy) -> StoreResult<ControlFlow<()>> {
        let session = &copy.session;
        let Some(lookup) = self.sink.lookup() else { return Ok(ControlFlow::Continue(())) };
        let chunks = lookup.block_on(lookup.store.copy_chunks(session.id))?;
        self.tally.with(|totals| totals.files += 1);
        let path = session.path.as_str();
        let file =
            Candidate { path: path.into(), named: true, bytes: copy.plain, changed_at: None };
        let mut current = Current::new(self, &file, path, session.format);
        current.namespace = Some(&session.namespace);
        let text = |text: &Option<Redacted>| text.as_ref().map(|it| it.as_str().to_owned());
        let mut flow = current.take(TranscriptItem::Session(RawSession {
            native_id: session.native_id.as_str().to_owned(),
            namespace: Some(session.namespace.clone()),
            title: text(&session.title),
            cwd: text(&session.cwd),
            parent: text(&session.parent),
            branches: text(&session.branches),
            started_at: session.started_at,
        }));
        let mut is_whole = true;
        for part in 0..u32::try_from(chunks.len()).unwrap_or(u32::MAX) {
            if flow.is_break() {
                break;
            }
            let lookup = current.reader.sink.lookup();
            let copied = lookup.map(|it| it.block_on(it.store.copied_entries(session.id, part)));
            let entries = match copied.transpose() {
                Ok(Some(Some(entries))) => entries,
                // It was evicted meanwhile.
                Ok(Some(None) | None) => {
                    is_whole = false;
                    break;
                }
                Err(error) => {
                    current.end(false);
                    return Err(error);
                }
            };
            flow =
                entries.into_iter().try_for_each(|it| current.take(TranscriptItem::Entry(raw(it))));
        }
        let stopped = current.stopped;
        current.end(is_whole && !stopped);
        Ok(if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

/// Turns a stored entry back into a raw one, so that redaction rules added since apply to it.
fn raw(entry: Entry) -> RawEntry {
    let text = |text: &Redacted| text.as_str().to_owned();
    RawEntry {
        line: entry.line,
        native_id: entry.native_id.as_ref().map(text),
        speaker: entry.speaker,
        kind: entry.kind,
        branch: entry.branch,
        text: text(&entry.text),
        tool: entry.tool.as_ref().map(|tool| text(&tool.name)),
        call_id: entry.tool.as_ref().and_then(|tool| tool.call_id.as_ref()).map(text),
        outcome: entry.outcome,
        exit_code: entry.exit_code,
        at: entry.at,
        skip: entry.skip,
    }
}
