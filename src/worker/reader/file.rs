//! One file: found out what it is, opened, read to its end. What is wrong with it is counted and does
//! not stop the others.

use super::current::Current;
use super::{Desk, Reader};
use crate::domain::{DETECT_BYTES_MAX, Finding, Severity};
use crate::edge::walk::{Candidate, open};
use crate::privacy::is_private_file;
use crate::source;
use crate::worker::tally::{FileProblem, Tally};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;

impl<D: Desk> Reader<'_, D> {
    /// Reads one file; what is wrong with it is counted and does not stop the others.
    pub(in crate::worker) fn file(&mut self, file: &Candidate) -> ControlFlow<()> {
        self.copies.next_file();
        self.once(file, |reader, path| reader.input(open(&file.path)?, file, path))
    }

    /// Reads the last file again, as if it had not been read.
    pub(in crate::worker) fn file_again(&mut self, file: &Candidate) -> ControlFlow<()> {
        self.copies.same_file();
        self.once(file, |reader, path| reader.input(open(&file.path)?, file, path))
    }

    fn once(
        &mut self,
        file: &Candidate,
        read: impl FnOnce(&mut Self, &str) -> io::Result<ControlFlow<()>>,
    ) -> ControlFlow<()> {
        let path = file.path.display().to_string();
        let before = self.tally.with(|totals| totals.bytes);
        let result = read(self, &path);
        self.tally.with(|totals| totals.bytes = before + file.bytes);
        match result {
            Ok(flow) => flow,
            Err(error) => {
                let problem = format!("cannot be read: {error}");
                self.tally.with(|totals| totals.problems.push(FileProblem { path, problem }));
                ControlFlow::Continue(())
            }
        }
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
            chosen => match source::detect(&head, name) {
                Ok(format) if chosen.is_none_or(|chosen| chosen == format) => format,
                Ok(_) => return Ok(self.pass_over()),
                Err(_) if !file.named => return Ok(self.pass_over()),
                Err(unknown) => {
                    let problem = unknown.to_string();
                    let path = path.to_owned();
                    self.tally.with(|totals| totals.problems.push(FileProblem { path, problem }));
                    return Ok(ControlFlow::Continue(()));
                }
            },
        };
        if is_private_file(&String::from_utf8_lossy(&head)) {
            self.tally.finding(&Finding::new(Severity::Info, "private-file", 0, "left out"));
            return Ok(self.pass_over());
        }
        let entries = self.tally.with(|totals| {
            totals.files += 1;
            totals.entries
        });
        let mut current = Current::new(self, file, path, format);
        let input = Counted { input, tally: current.reader.tally, read: 0 };
        source::read(format, input, &mut |item| current.take(item))?;
        let (stopped, bad) = (current.stopped, current.bad);
        current.end(!stopped);
        let entries = self.tally.with(|totals| totals.entries) - entries;
        if file.named && entries == 0 && bad > 0 {
            let problem = format!("nothing in it could be read as {format}: {bad} findings");
            let path = path.to_owned();
            self.tally.with(|totals| totals.problems.push(FileProblem { path, problem }));
        }
        Ok(if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn pass_over(&mut self) -> ControlFlow<()> {
        self.tally.with(|totals| totals.files_passed_over += 1);
        ControlFlow::Continue(())
    }
}

/// Counts what is read, for those who watch. A reader that looks twice begins anew.
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
