//! Files of documents: one alone, or one a line, as a log of them is written.

use super::document::NotTaken;
use super::report::TakenIn;
use super::{Enqueuer, HandOver};
use crate::adapters::walk::{Candidate, open};
use crate::domain::{DETECT_BYTES_MAX, Format, HANDED_BYTES_MAX};
use crate::pipeline::reader::Bytes;
use crate::pipeline::tally::{FileProblem, Tally};
use crate::store::StoreError;
use crate::transcripts;
use serde::de::IgnoredAny;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// Whether a file holds documents. One that was named and begins like JSON is taken for one too where it
/// is nothing else: then it is told what is wrong with it.
pub(super) fn are_in(
    (file, bytes): (&Candidate, Bytes<'_>),
    format: Option<Format>,
) -> io::Result<bool> {
    if let Some(format) = format.filter(|_| file.named) {
        return Ok(format == Format::Slice);
    }
    let mut head = Vec::new();
    let most = DETECT_BYTES_MAX as u64;
    match bytes {
        Bytes::OnDisk => open(&file.path)?.take(most).read_to_end(&mut head)?,
        Bytes::AtHand(bytes) => bytes.take(most).read_to_end(&mut head)?,
    };
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

/// What a file of documents is taken in with; blocks its thread.
pub(super) struct Documents<'a> {
    pub(super) enqueuer: &'a Enqueuer,
    pub(super) how: &'a HandOver,
    pub(super) handle: &'a Handle,
    pub(super) cancel: &'a CancellationToken,
    pub(super) tally: &'a Tally,
    pub(super) report: &'a mut TakenIn,
}

impl Documents<'_> {
    /// Takes in every document of a file; one that is refused keeps no other from being taken in.
    pub(super) fn take_in(&mut self, file: &Candidate, bytes: Bytes<'_>) -> Result<(), StoreError> {
        let path = file.path.display().to_string();
        self.tally.with(|totals| totals.files += 1);
        let done = match bytes {
            Bytes::OnDisk => match open(&file.path) {
                Ok(input) => self.all(&mut BufReader::new(input), &path),
                Err(error) => Err(Broken::Input(error)),
            },
            Bytes::AtHand(bytes) => self.all(&mut Cursor::new(bytes), &path),
        };
        match done {
            Ok(()) => Ok(()),
            Err(Broken::Store(error)) => Err(error),
            Err(Broken::Input(error)) => {
                self.problem(&path, format!("cannot be read: {error}"));
                Ok(())
            }
        }
    }

    fn all(&mut self, input: &mut dyn BufRead, path: &str) -> Result<(), Broken> {
        let (mut number, mut line) = (0, Vec::new());
        while !self.cancel.is_cancelled() && next_line(input, &mut line)? {
            number += 1;
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let unfinished = match serde_json::from_slice::<IgnoredAny>(&line) {
                Ok(_) => false,
                Err(error) => error.is_eof(),
            };
            if unfinished && !line.ends_with(b"\n") {
                if number == 1 {
                    self.one(&line, path, None)?;
                }
                // Else it is still being written.
            } else if unfinished && number == 1 {
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
        let document = match self.enqueuer.open(bytes, path, self.how) {
            Ok(document) => document,
            Err(bad) => {
                let unnamed = bad.path == "session" && self.how.session.is_none();
                let hint = if unnamed { "; --session gives it" } else { "" };
                self.problem(path, format!("{place}{bad}{hint}"));
                return Ok(());
            }
        };
        match self.handle.block_on(self.enqueuer.document(&document, self.how)) {
            Ok(taken) => self.report.join(taken),
            Err(NotTaken::Store(error)) => return Err(Broken::Store(error)),
            Err(refused @ (NotTaken::Refused(_) | NotTaken::Busy)) => {
                self.problem(path, format!("{place}{refused}"));
            }
        }
        Ok(())
    }

    fn problem(&mut self, path: &str, problem: String) {
        let path = path.to_owned();
        self.tally.with(|totals| totals.problems.push(FileProblem { path, problem }));
    }
}

/// Why a file was not read to its end.
enum Broken {
    Store(StoreError),
    Input(io::Error),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        Broken::Input(error)
    }
}

/// The next line, with its end; of one that is longer than a document may be, only so much that this is
/// seen. False at the end.
fn next_line(input: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let most = HANDED_BYTES_MAX as u64 + 1;
    input.take(most).read_until(b'\n', line)?;
    if line.len() as u64 == most && !line.ends_with(b"\n") {
        // Passed over piece by piece, so that it takes no memory.
        let mut rest = Vec::new();
        while {
            rest.clear();
            input.take(most).read_until(b'\n', &mut rest)? > 0
        } {
            if rest.ends_with(b"\n") {
                break;
            }
        }
    }
    Ok(!line.is_empty())
}
