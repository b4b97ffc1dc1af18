//! Cuts a JSON document that may be larger than memory into the values worth parsing. Cutting looks
//! at brackets and quotes only, so that one value that does not parse never costs the next one.

use std::io::{self, BufRead, BufReader, Read};

/// How much is read at once, in bytes.
const BUFFER_BYTES: usize = 256 * 1024;

/// The longest field beside a list that is read, in bytes: ids, titles, system prompts.
pub(super) const FIELD_BYTES_MAX: usize = 1024 * 1024;
/// Fields of one object that are read; a document has a dozen.
const FIELDS_MAX: usize = 10_000;

/// How cutting out one value ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Cut {
    /// It is all there.
    Whole,
    /// It was longer than allowed, and passed over.
    TooLong,
    /// The input ended in the middle of it.
    Unfinished,
    /// There was no value here, but a byte that cannot begin one.
    Missing,
}

/// Reads a document from its beginning to its end.
pub(super) struct Cutter<R> {
    input: BufReader<R>,
    line: u32,
    passed: u64,
}

impl<R: Read> Cutter<R> {
    pub(super) fn new(input: R) -> Cutter<R> {
        Cutter { input: BufReader::with_capacity(BUFFER_BYTES, input), line: 1, passed: 0 }
    }

    /// The line the next byte stands on, from 1.
    pub(super) fn line(&self) -> u32 {
        self.line
    }

    /// How many bytes were passed over or read.
    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    /// The next byte that is no white space, left in place; none at the end. A byte order mark
    /// counts as white space.
    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let space = |b: &u8| b.is_ascii_whitespace() || matches!(b, 0xef | 0xbb | 0xbf);
            let skipped = chunk.iter().take_while(|b| space(b)).count();
            let found = chunk.get(skipped).copied();
            self.pass(skipped);
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// Passes over the next byte if, after white space, it is `byte`; says whether it did.
    pub(super) fn take(&mut self, byte: u8) -> io::Result<bool> {
        let found = self.peek()? == Some(byte);
        if found {
            self.pass(1);
        }
        Ok(found)
    }

    /// Cuts out the next value, leaving at most `bytes_max` bytes of it in `into`.
    pub(super) fn value(&mut self, into: &mut Vec<u8>, bytes_max: usize) -> io::Result<Cut> {
        into.clear();
        let mut scan = match self.peek()? {
            None => return Ok(Cut::Unfinished),
            Some(b',' | b':' | b']' | b'}') => return Ok(Cut::Missing),
            Some(_) => Scan::default(),
        };
        let (mut too_long, mut ended) = (false, false);
        while !ended {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                // A bare number or word ends with the input.
                return Ok(if scan.scalar { Cut::Whole } else { Cut::Unfinished });
            }
            let used = scan.feed(chunk);
            ended = scan.ended;
            if too_long || into.len() + used > bytes_max {
                too_long = true;
                *into = Vec::new();
            } else {
                into.extend_from_slice(chunk.get(..used).unwrap_or_default());
            }
            self.pass(used);
        }
        Ok(if too_long { Cut::TooLong } else { Cut::Whole })
    }

    /// Walks the elements of an array, or, where none begins, the values up to the end of the input.
    /// `each` has how cutting one out ended, its bytes and its line, and says whether it wants more.
    /// Gives the cut at which the walk had to stop, which `each` has had.
    pub(super) fn elements(
        &mut self,
        bytes_max: usize,
        mut each: impl FnMut(Cut, &[u8], u32) -> bool,
    ) -> io::Result<Cut> {
        let in_array = self.take(b'[')?;
        let mut buffer = Vec::new();
        loop {
            let ended = if in_array { self.take(b']')? } else { self.peek()?.is_none() };
            if ended {
                return Ok(Cut::Whole);
            }
            self.peek()?;
            let line = self.line;
            let cut = self.value(&mut buffer, bytes_max)?;
            let goes_on = each(cut, &buffer, line);
            if matches!(cut, Cut::Unfinished | Cut::Missing) {
                return Ok(cut);
            }
            if !goes_on {
                return Ok(Cut::Whole);
            }
            self.take(b',')?;
        }
    }

    /// Walks the fields of one object; `each` passes over the value. Gives the cut at which the walk
    /// had to stop.
    pub(super) fn fields(
        &mut self,
        mut each: impl FnMut(&mut Cutter<R>, &str, &mut Vec<u8>) -> io::Result<Cut>,
    ) -> io::Result<Cut> {
        let mut buffer = Vec::new();
        if !self.take(b'{')? {
            return Ok(Cut::Missing);
        }
        for _ in 0..FIELDS_MAX {
            if self.take(b'}')? {
                break;
            }
            let cut = self.value(&mut buffer, FIELD_BYTES_MAX)?;
            if cut == Cut::Missing || cut == Cut::Unfinished {
                return Ok(cut);
            }
            let key = serde_json::from_slice::<String>(&buffer).unwrap_or_default();
            if !self.take(b':')? {
                return Ok(Cut::Missing);
            }
            let cut = each(self, &key, &mut buffer)?;
            if cut == Cut::Missing || cut == Cut::Unfinished {
                return Ok(cut);
            }
            self.take(b',')?;
        }
        Ok(Cut::Whole)
    }

    fn pass(&mut self, count: usize) {
        let passed = self.input.buffer().get(..count).unwrap_or_default();
        let lines = memchr::memchr_iter(b'\n', passed).count();
        self.line = self.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.passed = self.passed.saturating_add(count as u64);
        self.input.consume(count);
    }
}

/// Where in a value the scan stands.
#[derive(Default)]
struct Scan {
    depth: usize,
    begun: bool,
    scalar: bool,
    in_string: bool,
    escaped: bool,
    ended: bool,
}

impl Scan {
    /// Looks at `chunk`; says how much of it belongs to the value.
    fn feed(&mut self, chunk: &[u8]) -> usize {
        let mut at = 0;
        while let Some(&byte) = chunk.get(at) {
            if self.in_string {
                at = self.string(chunk, at);
            } else if self.scalar && (byte.is_ascii_whitespace() || b",:]}".contains(&byte)) {
                self.ended = true;
                return at;
            } else {
                self.outside(byte);
                at += 1;
            }
            if self.ended {
                return at;
            }
        }
        at
    }

    fn string(&mut self, chunk: &[u8], at: usize) -> usize {
        if self.escaped {
            self.escaped = false;
            return at + 1;
        }
        let rest = chunk.get(at..).unwrap_or_default();
        let Some(found) = memchr::memchr2(b'"', b'\\', rest) else { return chunk.len() };
        if rest.get(found) == Some(&b'"') {
            self.in_string = false;
            self.ended = self.depth == 0;
        } else {
            self.escaped = true;
        }
        at + found + 1
    }

    fn outside(&mut self, byte: u8) {
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.ended = self.depth == 0;
            }
            _ if !self.begun => self.scalar = true,
            _ => {}
        }
        self.begun = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &str, expected: &[(&str, Cut)]) {
        for step in [1, 3, 1024] {
            let mut cutter = Cutter {
                input: BufReader::with_capacity(step, input.as_bytes()),
                line: 1,
                passed: 0,
            };
            assert!(cutter.take(b'[').unwrap());
            let (mut got, mut buffer) = (Vec::new(), Vec::new());
            while cutter.peek().unwrap().is_some() && !cutter.take(b']').unwrap() {
                let cut = cutter.value(&mut buffer, 12).unwrap();
                got.push((String::from_utf8_lossy(&buffer).into_owned(), cut));
                if cut == Cut::Missing || cut == Cut::Unfinished {
                    break;
                }
                cutter.take(b',').unwrap();
            }
            let got: Vec<_> = got.iter().map(|(text, cut)| (text.as_str(), *cut)).collect();
            assert_eq!(got, expected, "in steps of {step}");
        }
    }

    #[test]
    fn values_are_cut_at_their_brackets() {
        check(
            "[1, \"a,]\" ,[{}], null]",
            &[
                ("1", Cut::Whole),
                ("\"a,]\"", Cut::Whole),
                ("[{}]", Cut::Whole),
                ("null", Cut::Whole),
            ],
        );
    }

    #[test]
    fn escaped_quotes_do_not_end_a_string() {
        check(r#"["\"\\","\\"]"#, &[(r#""\"\\""#, Cut::Whole), (r#""\\""#, Cut::Whole)]);
    }

    #[test]
    fn a_long_value_is_passed_over() {
        check(r#"["0123456789abcdef", 2]"#, &[("", Cut::TooLong), ("2", Cut::Whole)]);
    }

    #[test]
    fn the_end_in_the_middle_is_told() {
        check("[1, {\"a\"", &[("1", Cut::Whole), ("{\"a\"", Cut::Unfinished)]);
        check("[1, }", &[("1", Cut::Whole), ("", Cut::Missing)]);
    }

    #[test]
    fn lines_are_counted() {
        let mut cutter = Cutter::new("\n\n{\"a\":\n1}\n 2".as_bytes());
        let mut buffer = Vec::new();
        assert_eq!((cutter.peek().unwrap(), cutter.line()), (Some(b'{'), 3));
        assert_eq!(cutter.value(&mut buffer, 100).unwrap(), Cut::Whole);
        assert_eq!((cutter.peek().unwrap(), cutter.line()), (Some(b'2'), 5));
    }
}
