//! Line reader with bounded memory: a line that is too long is skipped.

use crate::domain::LINE_BYTES_MAX;
use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

const BUFFER_BYTES: usize = 256 * 1024;

#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) number: u32,
    /// Text without its line end; invalid UTF-8 is replaced. Empty if the line was too long.
    pub(super) text: Cow<'a, str>,
    /// False for a last line without a line end, which may still be being written.
    pub(super) complete: bool,
    /// True if the line was longer than [`LINE_BYTES_MAX`] and skipped.
    pub(super) too_long: bool,
    pub(super) repaired: bool,
}

/// Line reader. Drops a leading byte order mark, and carriage returns at line ends.
pub(super) struct Lines<R> {
    input: BufReader<R>,
    buffer: Vec<u8>,
    number: u32,
    bytes_max: usize,
    passed: u64,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R) -> Lines<R> {
        Lines::with_bytes_max(input, LINE_BYTES_MAX)
    }

    pub(super) fn with_bytes_max(input: R, bytes_max: usize) -> Lines<R> {
        let input = BufReader::with_capacity(BUFFER_BYTES, input);
        Lines { input, buffer: Vec::new(), number: 0, bytes_max, passed: 0 }
    }

    /// Number of bytes consumed, line ends included.
    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        let (mut too_long, mut complete, mut any) = (false, false, false);
        while !complete {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            any = true;
            let end = memchr::memchr(b'\n', chunk);
            let used = end.map_or(chunk.len(), |end| end + 1);
            complete = end.is_some();
            if self.buffer.len() + used > self.bytes_max {
                too_long = true;
                self.buffer = Vec::new();
            } else if !too_long {
                self.buffer.extend_from_slice(&chunk[..used]);
            }
            self.input.consume(used);
            self.passed += used as u64;
        }
        if !any {
            return Ok(None);
        }
        self.number = self.number.saturating_add(1);
        Ok(Some(self.finish(complete, too_long)))
    }

    fn finish(&self, complete: bool, too_long: bool) -> Line<'_> {
        let mut bytes = self.buffer.as_slice();
        bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if self.number == 1 {
            bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        }
        // Checking first is several times faster than replacing at once, and most text is valid.
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(bytes),
        };
        let repaired = matches!(text, Cow::Owned(_));
        Line { number: self.number, text, complete, too_long, repaired }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &[u8], expected: &[(&str, bool, bool)]) {
        let mut lines = Lines::with_bytes_max(input, 8);
        let mut got = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            got.push((line.text.into_owned(), line.complete, line.too_long));
        }
        let got: Vec<_> = got.iter().map(|(t, c, l)| (t.as_str(), *c, *l)).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn marks_and_line_ends_are_dropped() {
        check(b"\xef\xbb\xbfa\r\nb\n", &[("a", true, false), ("b", true, false)]);
    }

    #[test]
    fn a_line_without_end_is_not_complete() {
        check(b"a\nb", &[("a", true, false), ("b", false, false)]);
        check(b"", &[]);
    }

    #[test]
    fn a_long_line_is_passed_over_and_the_next_is_read() {
        check(b"123456789012\nb\n", &[("", true, true), ("b", true, false)]);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_replaced() {
        check(b"a\xff\n", &[("a\u{fffd}", true, false)]);
    }
}
