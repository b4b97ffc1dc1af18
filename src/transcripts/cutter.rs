//! Cuts a file that may be larger than memory into lines, or a JSON document into values small
//! enough to parse. Looks at brackets and quotes only, so that a value that does not parse never
//! affects the next one.

use super::raw::Input;
use crate::domain::{DETECT_BYTES_MAX, LINE_BYTES_MAX};
use memchr::memmem;
use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

const BUFFER_BYTES: usize = 64 * 1024;
/// Maximum size of a field beside a list: ids, titles, system prompts.
pub(super) const FIELD_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of fields of an object; a document has a dozen.
const FIELDS_MAX: usize = 10_000;

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
    /// Number of bytes up to the end of the line, line ends included.
    pub(super) end: u64,
}

impl Line<'_> {
    pub(super) fn owned(self) -> Line<'static> {
        let Line { number, text, complete, too_long, repaired, end } = self;
        let text = Cow::Owned(text.into_owned());
        Line { number, text, complete, too_long, repaired, end }
    }
}

/// Text of `bytes`; invalid UTF-8 is replaced.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    // Checking first is several times faster than replacing at once, and most text is valid.
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Visits each line until `take` returns false. A leading byte order mark and carriage returns at
/// line ends are dropped; a line that is too long is skipped.
pub(super) fn each_line(input: impl Read, take: impl FnMut(Line<'_>) -> bool) -> io::Result<()> {
    lines_within(LINE_BYTES_MAX, input, take)
}

fn lines_within(
    bytes_max: usize,
    input: impl Read,
    mut take: impl FnMut(Line<'_>) -> bool,
) -> io::Result<()> {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
    let (mut buffer, mut number, mut end) = (Vec::new(), 0u32, 0);
    loop {
        buffer.clear();
        number = number.saturating_add(1);
        // Most lines are in the reader's buffer as a whole.
        let chunk = input.fill_buf()?;
        if let Some(at) = memchr::memchr(b'\n', chunk).filter(|at| *at < bytes_max) {
            end += at as u64 + 1;
            let text = text_of(&chunk[..at], number);
            let (complete, too_long, repaired) = (true, false, matches!(text, Cow::Owned(_)));
            let goes_on = take(Line { number, text, complete, too_long, repaired, end });
            input.consume(at + 1);
            if goes_on {
                continue;
            }
            return Ok(());
        }
        let (begin, mut too_long, mut complete) = (end, false, false);
        while !complete {
            let chunk = input.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            let line_end = memchr::memchr(b'\n', chunk);
            let used = line_end.map_or(chunk.len(), |at| at + 1);
            complete = line_end.is_some();
            if buffer.len() + used > bytes_max {
                too_long = true;
                buffer = Vec::new();
            } else if !too_long {
                buffer.extend_from_slice(&chunk[..used]);
            }
            input.consume(used);
            end += used as u64;
        }
        let text = text_of(buffer.strip_suffix(b"\n").unwrap_or(&buffer), number);
        let repaired = matches!(text, Cow::Owned(_));
        if begin == end || !take(Line { number, text, complete, too_long, repaired, end }) {
            return Ok(());
        }
    }
}

/// Text of a line without its line feed.
fn text_of(line: &[u8], number: u32) -> Cow<'_, str> {
    let mut bytes = line.strip_suffix(b"\r").unwrap_or(line);
    if number == 1 {
        bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    }
    lossy(bytes)
}

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

impl Cut {
    /// True if nothing can be cut out behind it.
    pub(super) fn is_end(self) -> bool {
        matches!(self, Cut::Unfinished | Cut::Missing)
    }
}

/// Element of a list.
pub(super) struct Element<'b> {
    pub(super) cut: Cut,
    pub(super) bytes: &'b [u8],
    /// Line on which it begins.
    pub(super) line: u32,
    /// Number in its list, from 1.
    pub(super) number: u32,
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
        mut each: impl FnMut(Element<'_>) -> bool,
    ) -> io::Result<Cut> {
        let in_array = self.take(b'[')?;
        let (mut buffer, mut number) = (Vec::new(), 0u32);
        loop {
            let ended = if in_array { self.take(b']')? } else { self.peek()?.is_none() };
            if ended {
                return Ok(Cut::Whole);
            }
            self.peek()?;
            let line = self.line;
            let cut = self.value(&mut buffer, bytes_max)?;
            number = number.saturating_add(1);
            let goes_on = each(Element { cut, bytes: &buffer, line, number });
            if cut.is_end() {
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
            if cut.is_end() {
                return Ok(cut);
            }
            let key = serde_json::from_slice::<String>(&buffer).unwrap_or_default();
            if !self.take(b':')? {
                return Ok(Cut::Missing);
            }
            let cut = each(self, &key, &mut buffer)?;
            if cut.is_end() {
                return Ok(cut);
            }
            self.take(b',')?;
        }
        Ok(Cut::Whole)
    }

    /// Visits the elements of an object's lists whose keys fulfil `is_list`, until `each` returns
    /// false. Returns the cut that ended the walk, and true if `each` has seen it.
    pub(super) fn lists(
        &mut self,
        bytes_max: usize,
        is_list: impl Fn(&str) -> bool,
        mut each: impl FnMut(Element<'_>) -> bool,
    ) -> io::Result<(Cut, bool)> {
        let (mut is_seen, mut stopped) = (false, false);
        let cut = self.fields(|cutter, key, buffer| {
            if stopped || !is_list(key) || cutter.peek()? != Some(b'[') {
                return cutter.value(buffer, 0);
            }
            let cut = cutter.elements(bytes_max, |element| {
                let goes_on = each(element);
                stopped |= !goes_on;
                goes_on
            })?;
            is_seen = cut.is_end();
            Ok(cut)
        })?;
        Ok((if stopped && !is_seen { Cut::Whole } else { cut }, is_seen))
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

/// Determines the layout from the end of the first value, since file extensions are not reliable.
/// Leaves the input at its beginning.
pub(super) fn layout(input: &mut dyn Input) -> io::Result<Layout> {
    input.rewind()?;
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
    input.rewind()?;
    let of_lines = match cut {
        Cut::Whole | Cut::TooLong => (more && begun == ended) || first_of_lines,
        // A broken line hides its end.
        Cut::Unfinished => {
            alone == Layout::Object && ended > begun && breaks_at_records(&mut *input)?
        }
        Cut::Missing => true,
    };
    input.rewind()?;
    Ok(if of_lines { Layout::Lines } else { alone })
}

/// True if the second line begins a value of its own, not one nested in the first line's.
fn breaks_at_records(input: &mut dyn Input) -> io::Result<bool> {
    let (mut first, mut breaks) = (None, false);
    each_line(input, |line| {
        let text = line.text.trim_end();
        match first {
            _ if text.is_empty() && !line.too_long => {}
            None => first = Some(text.ends_with(['[', ',', ':', '{'])),
            Some(goes_on) => {
                breaks = !goes_on && text.starts_with('{');
                return false;
            }
        }
        true
    })?;
    Ok(breaks)
}

/// Visits each record from the beginning until `take` returns false: the elements of the list
/// under `key`, numbered from 1, or the lines if there is no key.
pub(super) fn each_record(
    input: &mut dyn Input,
    key: Option<&str>,
    mut take: impl FnMut(Line<'_>) -> bool,
) -> io::Result<Cut> {
    input.rewind()?;
    let Some(key) = key else { return each_line(input, take).map(|()| Cut::Whole) };
    let mut cutter = Cutter::new(input);
    let (cut, _) = cutter.lists(
        LINE_BYTES_MAX,
        |name| name == key,
        |Element { cut, bytes, number, .. }| {
            let (text, too_long) = (lossy(bytes), cut == Cut::TooLong);
            let repaired = matches!(text, Cow::Owned(_));
            let line = Line { number, text, complete: true, too_long, repaired, end: 0 };
            !cut.is_end() && take(line)
        },
    )?;
    Ok(cut)
}

/// True if the input is one object with a list under `key`.
pub(super) fn has_list(input: &mut dyn Input, key: &str) -> io::Result<bool> {
    let mut head = Vec::new();
    input.rewind()?;
    Read::take(&mut *input, DETECT_BYTES_MAX as u64).read_to_end(&mut head)?;
    if memmem::find(&head, format!("\"{key}\"").as_bytes()).is_none() {
        return Ok(false);
    }
    let mut any = false;
    each_record(input, Some(key), |_| {
        any = true;
        false
    })?;
    Ok(any)
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
        let read = each_record(&mut io::Cursor::new(json), Some("list"), |line| {
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
        let long = format!("{{\"list\":[\"{}\",{{oops}},3]}}", "x".repeat(LINE_BYTES_MAX));
        check(&long, &["…", "{oops}", "3"], Cut::Whole);
    }
}

#[cfg(test)]
mod line_tests {
    use super::*;

    #[track_caller]
    fn check(input: &[u8], expected: &[(&str, bool, bool)]) {
        let mut got = Vec::new();
        let read = lines_within(8, input, |line| {
            got.push((line.text.into_owned(), line.complete, line.too_long));
            true
        });
        read.unwrap();
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
    fn a_line_may_come_in_several_reads() {
        let input = "a\nb".as_bytes().chain("c\r".as_bytes()).chain("\nd\n".as_bytes());
        let mut got = Vec::new();
        let read = lines_within(8, input, |line| {
            got.push((line.number, line.text.into_owned(), line.end));
            true
        });
        read.unwrap();
        let got: Vec<_> = got.iter().map(|(n, text, end)| (*n, text.as_str(), *end)).collect();
        assert_eq!(got, [(1, "a", 2), (2, "bc", 6), (3, "d", 8)]);
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
