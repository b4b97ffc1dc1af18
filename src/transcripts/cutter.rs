//! Cuts a JSON document that may be larger than memory into values small enough to parse. Looks at
//! brackets and quotes only, so that a value that does not parse never affects the next one.

use super::lines::{Line, Lines};
use super::raw::Input;
use crate::domain::{DETECT_BYTES_MAX, LINE_BYTES_MAX};
use memchr::memmem;
use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

const BUFFER_BYTES: usize = 256 * 1024;
/// Maximum size of a field beside a list: ids, titles, system prompts.
pub(super) const FIELD_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of fields of an object; a document has a dozen.
const FIELDS_MAX: usize = 10_000;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Cut {
    Whole,
    /// Longer than allowed; skipped.
    TooLong,
    /// Cut off by the end of the input.
    Unfinished,
    /// The next byte cannot begin a value.
    Missing,
}

pub(super) struct Cutter<R> {
    input: BufReader<R>,
    line: u32,
    passed: u64,
}

impl<R: Read> Cutter<R> {
    pub(super) fn new(input: R) -> Cutter<R> {
        Cutter { input: BufReader::with_capacity(BUFFER_BYTES, input), line: 1, passed: 0 }
    }

    /// Line of the next byte, 1-based.
    pub(super) fn line(&self) -> u32 {
        self.line
    }

    /// Number of bytes consumed.
    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    /// Returns the next byte that is not white space without consuming it. A byte order mark counts
    /// as white space.
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

    /// Skips white space, then consumes the next byte if it is `byte`.
    pub(super) fn take(&mut self, byte: u8) -> io::Result<bool> {
        let found = self.peek()? == Some(byte);
        if found {
            self.pass(1);
        }
        Ok(found)
    }

    /// Cuts out the next value into `into`; a value longer than `bytes_max` is skipped.
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
                // The end of the input ends a bare number or word.
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

    /// Visits the elements of an array, or all values if the input does not begin with one, until
    /// `each` returns false. Returns the cut that ended the walk, which `each` has seen.
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

    /// Visits the fields of an object; `each` consumes the value. Returns the cut that ended it.
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
    /// Returns how much of `chunk` belongs to the value.
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

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Layout {
    /// One value per line.
    Lines,
    Array,
    /// One value that is not an array.
    Object,
}

/// Determines the layout from the end of the first value; file extensions are not reliable.
pub(super) fn layout(input: &mut dyn Input) -> io::Result<Layout> {
    let head = Read::take(&mut *input, LINE_BYTES_MAX as u64 + 1);
    let mut cutter = Cutter::new(head);
    let alone = match cutter.peek()? {
        Some(b'[') => Layout::Array,
        _ => Layout::Object,
    };
    let begun = cutter.line();
    let cut = cutter.value(&mut Vec::new(), 0)?;
    let (ended, length) = (cutter.line(), cutter.passed());
    let more = cutter.peek()?.is_some();
    // A single object with a line end counts as the first of many lines, so that the file is read
    // the same way after the next line is appended.
    let first_of_lines = alone == Layout::Object
        && begun == ended
        && cutter.line() > ended
        && length <= LINE_BYTES_MAX as u64;
    Ok(match cut {
        Cut::Whole | Cut::TooLong if (more && begun == ended) || first_of_lines => Layout::Lines,
        Cut::Whole | Cut::TooLong => alone,
        // A broken line hides its end.
        Cut::Unfinished if alone == Layout::Object && ended > begun => {
            input.rewind()?;
            if breaks_at_records(input)? { Layout::Lines } else { alone }
        }
        Cut::Unfinished => alone,
        Cut::Missing => Layout::Lines,
    })
}

/// True if the second line begins a value of its own, not one nested in the first line's.
fn breaks_at_records(input: &mut dyn Input) -> io::Result<bool> {
    let mut lines = Lines::new(input);
    let mut first = None;
    while let Some(line) = lines.next()? {
        let text = line.text.trim_end();
        match first {
            _ if text.is_empty() && !line.too_long => {}
            None => first = Some(text.ends_with(['[', ',', ':', '{'])),
            Some(goes_on) => return Ok(!goes_on && text.starts_with('{')),
        }
    }
    Ok(false)
}

/// Visits each record from the beginning until `take` returns false: the elements of the list
/// under `key`, or the lines if there is no key.
pub(super) fn each_record(
    input: &mut dyn Input,
    key: Option<&str>,
    mut take: impl FnMut(Line<'_>) -> bool,
) -> io::Result<Cut> {
    input.rewind()?;
    if let Some(key) = key {
        return each_element(input, key, LINE_BYTES_MAX, take);
    }
    let mut lines = Lines::new(input);
    while let Some(line) = lines.next()? {
        if !take(line) {
            break;
        }
    }
    Ok(Cut::Whole)
}

/// True if the input is one object with a list under `key`.
pub(super) fn has_list(input: &mut dyn Input, key: &str) -> io::Result<bool> {
    let limit = u64::try_from(DETECT_BYTES_MAX).unwrap_or(u64::MAX);
    let mut head = Vec::new();
    input.rewind()?;
    Read::take(&mut *input, limit).read_to_end(&mut head)?;
    if memmem::find(&head, format!("\"{key}\"").as_bytes()).is_none() {
        return Ok(false);
    }
    input.rewind()?;
    let mut any = false;
    each_element(input, key, LINE_BYTES_MAX, |_| {
        any = true;
        false
    })?;
    Ok(any)
}

/// Visits each element of the list under `key`, numbered from 1, until `take` returns false.
fn each_element(
    input: &mut dyn Input,
    key: &str,
    bytes_max: usize,
    mut take: impl FnMut(Line<'_>) -> bool,
) -> io::Result<Cut> {
    let (mut number, mut stopped) = (0u32, false);
    let end = Cutter::new(input).fields(|cutter, name, buffer| {
        if stopped || name != key || cutter.peek()? != Some(b'[') {
            return cutter.value(buffer, 0);
        }
        cutter.elements(bytes_max, |cut, bytes, _| {
            if matches!(cut, Cut::Unfinished | Cut::Missing) {
                return false;
            }
            number = number.saturating_add(1);
            let text = String::from_utf8_lossy(bytes);
            let repaired = matches!(text, Cow::Owned(_));
            let too_long = cut == Cut::TooLong;
            stopped = !take(Line { number, text, complete: true, too_long, repaired });
            !stopped
        })
    })?;
    Ok(if stopped { Cut::Whole } else { end })
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

#[cfg(test)]
mod record_tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &[&str], end: Cut) {
        let mut got = Vec::new();
        let read = each_element(&mut io::Cursor::new(json), "list", 20, |line| {
            got.push(if line.too_long { "…".to_owned() } else { line.text.into_owned() });
            got.len() < 3
        });
        let got: Vec<_> = got.iter().map(String::as_str).collect();
        assert_eq!((got, read.unwrap()), (expected.to_vec(), end));
    }

    #[test]
    fn elements_come_one_by_one() {
        check(r#"{"a":[1],"list":[{"x": 1},2]}"#, &[r#"{"x": 1}"#, "2"], Cut::Whole);
    }

    #[test]
    fn reading_ends_when_no_more_is_wanted() {
        check(r#"{"list":[1,2,3,4]}"#, &["1", "2", "3"], Cut::Whole);
    }

    #[test]
    fn a_broken_object_gives_what_stands_before() {
        check(r#"{"list":[1,2"#, &["1", "2"], Cut::Unfinished);
        check("[1]", &[], Cut::Missing);
    }

    #[test]
    fn a_long_or_broken_element_costs_itself_only() {
        let long = format!("{{\"list\":[\"{}\",{{oops}},3]}}", "x".repeat(30));
        check(&long, &["…", "{oops}", "3"], Cut::Whole);
    }
}
