//! Enqueues files: transcripts session by session, and documents, alone or one per line.

use super::batch::BATCH_BYTES_MAX;
use super::document::{Document, DocumentError};
use super::intake::{IntakeReport, IntakeSink, SessionIntake};
use super::{EnqueueOptions, Enqueuer, PASSES_MAX};
use crate::adapters::files::Upload;
use crate::adapters::walk::Candidate;
use crate::domain::{DETECT_BYTES_MAX, Format, HANDED_BYTES_MAX, SessionId};
use crate::pipeline::blocking;
use crate::pipeline::reader::{Bytes, Lookup, Reader, Reading, found};
use crate::pipeline::tally::Tally;
use crate::store::{StoreError, StoreResult};
use crate::transcripts;
use futures_util::future::join_all;
use serde::de::IgnoredAny;
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// Maximum number of documents enqueued together.
const ROUND_MAX: usize = 128;

pub(crate) enum IntakeSource {
    Paths(Vec<PathBuf>),
    /// Files that are already found.
    Files(Vec<Candidate>),
    /// Bytes in memory, and the name of their origin.
    Bytes(String, Vec<u8>),
    /// Bytes that a client sent, and the name of their origin.
    Upload(String, Upload),
}

impl Enqueuer {
    /// Enqueues the part of `input` that is new. Problems of a file are in the report and do not stop other files.
    pub(crate) async fn enqueue_files(
        self: Arc<Self>,
        input: IntakeSource,
        how: EnqueueOptions,
        cancel: CancellationToken,
    ) -> StoreResult<IntakeReport> {
        let handle = Handle::current();
        blocking(move || {
            let tally = Tally::default();
            let named = |name: &String, bytes: u64| {
                vec![Candidate { path: name.into(), named: true, bytes, changed_at: None }]
            };
            let (files, bytes) = match &input {
                IntakeSource::Paths(paths) => (found(paths, &tally), Bytes::OnDisk),
                IntakeSource::Files(files) => (files.clone(), Bytes::OnDisk),
                IntakeSource::Bytes(name, bytes) => {
                    (named(name, bytes.len() as u64), Bytes::AtHand(bytes))
                }
                IntakeSource::Upload(name, upload) => {
                    (named(name, upload.bytes()), Bytes::Uploaded(upload))
                }
            };
            let reading = self.reading(&how, cancel);
            let lookup = Lookup::new(handle.clone(), self.store.clone(), Some(self.clock));
            let sink = IntakeSink::new(lookup, self.rules(&how));
            let mut reader = Reader::new(&reading, &self.gate, &tally, sink);
            for file in &files {
                if holds_documents(file, bytes, how.format).unwrap_or(false) {
                    let mut documents = DocumentFiles {
                        enqueuer: &self,
                        how: &how,
                        handle: &handle,
                        cancel: &reading.cancel,
                        tally: &tally,
                        report: &mut reader.sink.report,
                        is_upload: matches!(bytes, Bytes::Uploaded(_)),
                        round: Vec::new(),
                    };
                    documents.read(file, bytes)?;
                } else {
                    transcript(&mut reader, file, bytes);
                }
                if reader.is_over() {
                    break;
                }
            }
            Ok(reader.finish()?.report.closed(&tally))
        })
        .await
    }

    fn reading(&self, how: &EnqueueOptions, cancel: CancellationToken) -> Reading {
        Reading {
            format: how.format,
            namespace: how.namespace.clone().or_else(|| self.namespace.clone()),
            since: None,
            undated: true,
            sessions_max: None,
            slice: self.settings,
            session: how.session.clone(),
            preamble: Some(Arc::clone(&self.preamble)),
            cards: false,
            also_forgotten: how.also_forgotten,
            vault: self.vault,
            dry_run: false,
            cancel,
        }
    }
}

/// Reads a transcript until all that is new in it is enqueued.
fn transcript(reader: &mut Reader<'_, IntakeSink>, file: &Candidate, bytes: Bytes<'_>) {
    let tally = reader.tally;
    let before = tally.totals();
    reader.next_file();
    for _ in 0..PASSES_MAX {
        // The sink knows why the reading stopped.
        let _ = reader.read(file, bytes);
        if reader.is_over() || !reader.sink.is_to_be_read_again() {
            return;
        }
        reader.same_file();
        tally.with(|totals| totals.clone_from(&before));
    }
    reader.sink.report.busy += 1;
    let problem = "another process is enqueueing it; try again".to_owned();
    tally.problem(&file.path.display().to_string(), problem);
}

/// True if a file holds documents. A named file that starts like JSON and matches no format counts too, so that its
/// problems are reported.
fn holds_documents(file: &Candidate, bytes: Bytes<'_>, format: Option<Format>) -> io::Result<bool> {
    if let Some(format) = format.filter(|_| file.named) {
        return Ok(format == Format::Slice);
    }
    let mut head = Vec::new();
    let most = DETECT_BYTES_MAX as u64;
    bytes.open(&file.path)?.take(most).read_to_end(&mut head)?;
    let name = file.path.file_name().and_then(|name| name.to_str());
    Ok(match transcripts::detect(&head, name) {
        Ok(found) => found == Format::Slice,
        Err(transcripts::DetectError::Nothing) => file.named && is_json(&head),
        Err(_) => false,
    })
}

fn is_json(head: &[u8]) -> bool {
    let head = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head);
    head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// Enqueues files of documents; blocks its thread.
struct DocumentFiles<'a> {
    enqueuer: &'a Enqueuer,
    how: &'a EnqueueOptions,
    handle: &'a Handle,
    cancel: &'a CancellationToken,
    tally: &'a Tally,
    report: &'a mut IntakeReport,
    /// It came whole, from a client that knows no flags of commands.
    is_upload: bool,
    round: Vec<PlacedDocument>,
}

struct PlacedDocument {
    /// Its line, for messages.
    place: String,
    bytes: usize,
    document: Document,
}

impl DocumentFiles<'_> {
    /// Enqueues every document of a file; a refused document does not stop the others.
    fn read(&mut self, file: &Candidate, bytes: Bytes<'_>) -> StoreResult<()> {
        let path = file.path.display().to_string();
        self.tally.with(|totals| totals.files += 1);
        let input = bytes.open(&file.path).map_err(Broken::Input);
        match input.and_then(|input| self.all(&mut BufReader::new(input), &path)) {
            Err(Broken::Input(error)) => {
                self.tally.problem(&path, format!("cannot be read: {error}"));
            }
            Err(Broken::Store(error)) => return Err(error),
            Ok(()) => {}
        }
        self.enqueue(&path)
    }

    fn all(&mut self, input: &mut dyn BufRead, path: &str) -> Result<(), Broken> {
        let (mut number, mut line, mut is_first) = (0, Vec::new(), true);
        while !self.cancel.is_cancelled() && next_line(input, &mut line)? {
            number += 1;
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let is_first = std::mem::take(&mut is_first);
            let json = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line);
            let unfinished = match serde_json::from_slice::<IgnoredAny>(json) {
                Ok(_) => false,
                Err(error) => error.is_eof(),
            };
            if unfinished && !line.ends_with(b"\n") {
                if is_first || self.is_upload || HANDED_BYTES_MAX < line.len() {
                    self.one(&line, path, (!is_first).then_some(number))?;
                }
                // Otherwise the line is still being written.
            } else if unfinished && is_first {
                let rest = (HANDED_BYTES_MAX + 1).saturating_sub(line.len());
                input.take(rest as u64).read_to_end(&mut line)?;
                return self.one(&line, path, None);
            } else {
                self.one(&line, path, Some(number))?;
            }
        }
        Ok(())
    }

    fn one(&mut self, bytes: &[u8], path: &str, line: Option<u32>) -> Result<(), Broken> {
        let place = line.map_or(String::new(), |line| format!("line {line}: "));
        self.report.too_large += u64::from(HANDED_BYTES_MAX < bytes.len());
        let document = match self.enqueuer.open(bytes, path, self.how) {
            Ok(document) if document.is_idle(self.how) => {
                let problem = "entries: none: expected at least one, or \"closed\": true";
                self.tally.problem(path, format!("{place}{problem}"));
                return Ok(());
            }
            Ok(document) => document,
            Err(bad) => {
                let unnamed = bad.path == "session" && self.how.session.is_none();
                let hint = if unnamed && !self.is_upload { "; set it with --session" } else { "" };
                self.tally.problem(path, format!("{place}{bad}{hint}"));
                return Ok(());
            }
        };
        self.round.push(PlacedDocument { place, bytes: bytes.len(), document });
        let size: usize = self.round.iter().map(|it| it.bytes).sum();
        if ROUND_MAX <= self.round.len() || BATCH_BYTES_MAX <= size {
            self.enqueue(path)?;
        }
        Ok(())
    }

    /// Enqueues the documents read so far: sessions concurrently, so that they share commits, the documents of each in
    /// order.
    fn enqueue(&mut self, path: &str) -> StoreResult<()> {
        let mut sessions: HashMap<SessionId, Vec<(usize, PlacedDocument)>> = HashMap::new();
        for (at, placed) in std::mem::take(&mut self.round).into_iter().enumerate() {
            sessions.entry(placed.document.session.id).or_default().push((at, placed));
        }
        let (enqueuer, how) = (self.enqueuer, self.how);
        let one_session = |documents: Vec<(usize, PlacedDocument)>| async move {
            let mut ended: Vec<(usize, String, Result<SessionIntake, DocumentError>)> = Vec::new();
            for (at, PlacedDocument { place, document, .. }) in documents {
                ended.push((at, place, enqueuer.document(document, how).await));
            }
            ended
        };
        let ended = self.handle.block_on(join_all(sessions.into_values().map(one_session)));
        let mut ended: Vec<_> = ended.into_iter().flatten().collect();
        ended.sort_by_key(|(at, ..)| *at);
        for (_, place, result) in ended {
            match result {
                Ok(taken) => self.report.join(taken),
                Err(DocumentError::Store(error)) => return Err(error),
                Err(
                    refused @ (DocumentError::Refused(_)
                    | DocumentError::Early(_)
                    | DocumentError::Busy),
                ) => {
                    self.report.busy += u64::from(matches!(refused, DocumentError::Busy));
                    self.tally.problem(path, format!("{place}{refused}"));
                }
            }
        }
        Ok(())
    }
}

#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Input(#[from] io::Error),
}

/// Reads the next line with its end; truncates one that is too long for a document. Returns false at the end of the
/// input.
fn next_line(input: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let most = HANDED_BYTES_MAX as u64 + 1;
    input.take(most).read_until(b'\n', line)?;
    if line.len() as u64 == most && !line.ends_with(b"\n") {
        input.skip_until(b'\n')?;
    }
    Ok(!line.is_empty())
}
