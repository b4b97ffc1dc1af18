//! One pass over a transcript, a record at a time: its lines, or the elements of one list inside
//! one JSON object, for exports that are not written in lines; and what a record gives its entries.

use super::RawEntry;
use super::cutter::{Cut, Cutter};
use super::lines::{Line, Lines};
use crate::domain::{
    Branch, DETECT_BYTES_MAX, EntryKind, LINE_BYTES_MAX, Skip, Speaker, Timestamp,
};
use memchr::memmem;
use std::borrow::Cow;
use std::io::{self, Read, Seek};

/// Hands over each record from the beginning, until `take` says no: the elements of the list under
/// `key`, or the lines where there is no key. Says how the whole ended.
pub(super) fn pass<R: Read + Seek>(
    input: &mut R,
    key: Option<&str>,
    mut take: impl FnMut(Line<'_>) -> bool,
) -> io::Result<Cut> {
    input.rewind()?;
    if let Some(key) = key {
        return each(input, key, LINE_BYTES_MAX, take);
    }
    let mut lines = Lines::new(input);
    while let Some(line) = lines.next()? {
        if !take(line) {
            break;
        }
    }
    Ok(Cut::Whole)
}

/// Whether the input is one object that holds a list under `key`; reads from the beginning.
pub(super) fn is_list<R: Read + Seek>(input: &mut R, key: &str) -> io::Result<bool> {
    let limit = u64::try_from(DETECT_BYTES_MAX).unwrap_or(u64::MAX);
    let mut head = Vec::new();
    input.rewind()?;
    Read::take(&mut *input, limit).read_to_end(&mut head)?;
    if memmem::find(&head, format!("\"{key}\"").as_bytes()).is_none() {
        return Ok(false);
    }
    input.rewind()?;
    let mut any = false;
    each(input, key, LINE_BYTES_MAX, |_| {
        any = true;
        false
    })?;
    Ok(any)
}

/// Hands over the JSON of each element of the list under `key`, numbered from 1, until `take` says
/// no. Says how the object ended, as far as `take` wanted it.
fn each(
    input: &mut impl Read,
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

/// What every entry of a record shares.
pub(super) struct Frame {
    pub(super) line: u32,
    pub(super) native_id: Option<String>,
    pub(super) at: Option<Timestamp>,
    pub(super) branch: Branch,
    pub(super) skip: Option<Skip>,
}

impl Frame {
    pub(super) fn entry(
        &self,
        speaker: Speaker,
        kind: EntryKind,
        text: impl Into<String>,
    ) -> RawEntry {
        let mut entry = RawEntry::new(self.line, speaker, kind, text);
        entry.native_id.clone_from(&self.native_id);
        entry.at = self.at;
        entry.branch = self.branch;
        entry.skip = self.skip;
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &[&str], end: Cut) {
        let mut got = Vec::new();
        let read = each(&mut json.as_bytes(), "list", 20, |line| {
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
