//! Detects the format of one file and reads it to its end. Problems are counted and do not stop other files.

use super::current::Current;
use super::{Reader, SliceSink};
use crate::adapters::files::Upload;
use crate::adapters::walk::{Candidate, open};
use crate::domain::{DETECT_BYTES_MAX, Finding, Format, Severity};
use crate::pipeline::tally::{FileProblem, Tally};
use crate::privacy::is_private_file;
use crate::transcripts::{self, DetectError, TranscriptItem, nothing_read};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::ops::ControlFlow;

impl<S: SliceSink> Reader<'_, S> {
    /// Reads one file.
    pub(crate) fn file(&mut self, file: &Candidate) -> ControlFlow<()> {
        self.next_file();
        self.read(file, Bytes::OnDisk)
    }

    /// Announces another file.
    pub(crate) fn next_file(&mut self) {
        self.copies.next_file();
    }

    /// Announces the last file again, as if it had not been read.
    pub(crate) fn same_file(&mut self) {
        self.copies.same_file();
    }

    pub(crate) fn read(&mut self, file: &Candidate, bytes: Bytes<'_>) -> ControlFlow<()> {
        let path = file.path.display().to_string();
        let before = self.tally.totals();
        let result = loop {
            let result = match bytes {
                Bytes::OnDisk => open(&file.path).and_then(|input| self.input(input, file, &path)),
                Bytes::AtHand(bytes) => self.input(Cursor::new(bytes), file, &path),
                Bytes::Uploaded(mut upload) => {
                    upload.rewind().and_then(|()| self.input(upload, file, &path))
                }
            };
            // Repeats at most once per session: then the file is the session's own.
            let Some(taken) = self.copies.take_again() else { break result };
            self.copies.same_file();
            self.tally
                .with(|totals| totals.read_again(&before, taken.marks.len() as u64, taken.slices));
        };
        self.tally.with(|totals| totals.bytes = before.bytes + file.bytes);
        result.unwrap_or_else(|error| {
            self.tally.problem(&path, format!("cannot be read: {error}"));
            ControlFlow::Continue(())
        })
    }

    fn input(
        &mut self,
        mut input: impl Read + Seek,
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
                Ok(_) => return Ok(self.pass_over()),
                Err(unknown) if !file.named => {
                    if let DetectError::LooksLike(client) = unknown {
                        self.tally.with(|it| *it.files_not_read.entry(client).or_default() += 1);
                    }
                    return Ok(self.pass_over());
                }
                Err(unknown) => {
                    self.tally.problem(path, unknown.to_string());
                    return Ok(ControlFlow::Continue(()));
                }
            },
        };
        if is_private_file(&String::from_utf8_lossy(&head)) {
            self.tally.finding(&Finding::new(Severity::Info, "private-file", 0, "left out"));
            return Ok(self.pass_over());
        }
        if self.reading.session.is_some() && holds_several(format, &mut input)? {
            let problem = "holds several conversations, and --session names one; leave it out";
            self.tally.problem(path, problem.to_owned());
            return Ok(ControlFlow::Continue(()));
        }
        self.tally.with(|totals| totals.files += 1);
        let mut current = Current::new(self, file, path, format);
        let input = Counted { input, tally: current.reader.tally, read: 0 };
        let mut is_empty = true;
        transcripts::read(format, input, &mut |item| {
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

    fn pass_over(&mut self) -> ControlFlow<()> {
        self.tally.with(|totals| totals.files_passed_over += 1);
        ControlFlow::Continue(())
    }
}

/// Location of a transcript's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bytes<'a> {
    OnDisk,
    AtHand(&'a [u8]),
    Uploaded(&'a Upload),
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
