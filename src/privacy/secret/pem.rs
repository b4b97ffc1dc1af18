//! Private key blocks, and encrypted messages: from the opening line to the closing one, or as far
//! as the key goes on.

use super::Scan;
use std::ops::Range;

/// Bytes of a label such as `OPENSSH PRIVATE KEY`.
const LABEL_MAX: usize = 64;
/// Bytes of a key whose lines are strings of their own; beyond, the end belongs to something else.
const BROKEN_MAX: usize = 16 * 1024;
/// Letters in a row that tell a line of a key from words.
const LINE_MIN: usize = 16;
/// The same for the one short line of a key that breaks off: it has digits too.
const SHORT_LINE_MIN: usize = 8;
/// The same among strings, where paths are about.
const BROKEN_LINE_MIN: usize = 40;

/// Reads a block behind its opening line.
pub(super) fn read(scan: &mut Scan<'_>, at: Range<usize>) {
    if scan.hits.last().is_some_and(|hit| at.start < hit.at.end) {
        return;
    }
    let label_end =
        scan.run(at.end, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ');
    let label = scan.piece(at.end..label_end);
    let is_secret = label.contains("PRIVATE KEY") || label == "PGP MESSAGE";
    if !is_secret || LABEL_MAX < label.len() || scan.piece(label_end..label_end + 5) != "-----" {
        return;
    }
    let body = label_end + 5;
    let Some(end) = closing_end(scan, body) else {
        return unclosed(scan, at.start, body);
    };
    if memchr::memchr3(b'"', b'\'', b'`', scan.bytes.get(body..end).unwrap_or_default()).is_none() {
        scan.mark(at.start..end);
    } else if end - body <= BROKEN_MAX {
        broken(scan, body..end);
    } else {
        unclosed(scan, at.start, body);
    }
}

/// Where the next closing line ends.
fn closing_end(scan: &mut Scan<'_>, from: usize) -> Option<usize> {
    const CLOSING: &[u8] = b"-----END ";
    let known = scan.pem_end.filter(|known| from <= *known);
    let start = known.unwrap_or_else(|| {
        let rest = scan.bytes.get(from..).unwrap_or_default();
        memchr::memmem::find(rest, CLOSING).map_or(scan.bytes.len(), |found| from + found)
    });
    scan.pem_end = Some(start);
    if start == scan.bytes.len() {
        return None;
    }
    let label =
        scan.run(start + CLOSING.len(), |byte| byte.is_ascii_alphanumeric() || byte == b' ');
    Some(scan.run(label, |byte| byte == b'-').min(label + 5))
}

/// Without a closing line everything up to a quote goes, if it starts like a key.
fn unclosed(scan: &mut Scan<'_>, start: usize, body: usize) {
    let first = scan.run(body, |byte| byte.is_ascii_whitespace());
    let is_break = |at: usize| matches!(scan.byte(at), b'n' | b'r') && scan.before(at) == b'\\';
    let mut first = scan.run(first, |byte| byte == b'\\');
    while is_break(first) {
        first = scan.run(first + 1, |byte| byte == b'\\' || byte.is_ascii_whitespace());
    }
    let breaks = body < first;
    first = behind_number(scan, first);
    let line = scan.run(first, is_base64);
    let is_header = scan.byte(line) == b':'
        || scan.piece(line..line + 6) == "-Type:"
        || scan.piece(line..line + 6) == "-Info:";
    if line - first < LINE_MIN && !is_header {
        let digits = scan.piece(first..line).bytes().any(|byte| byte.is_ascii_digit());
        let ends = !matches!(scan.byte(line), b' ' | b'.' | b',' | b'-' | b'_' | b'(' | b':');
        if breaks && digits && ends && SHORT_LINE_MIN <= line - first {
            scan.mark(start..line);
        }
        return;
    }
    let end = scan.run(first, |byte| !matches!(byte, b'"' | b'\'' | b'`'));
    let end = if end < scan.bytes.len() {
        scan.run_back(end, end - first, |byte| byte == b'\\')
    } else {
        end
    };
    scan.mark(start..end);
}

/// Where the line goes on behind the number that a viewer put before it, if there is one.
fn behind_number(scan: &Scan<'_>, at: usize) -> usize {
    /// Digits of a line number.
    const DIGITS_MAX: usize = 6;
    let end = scan.run_within(at, DIGITS_MAX, |byte| byte.is_ascii_digit());
    let marks = ["\u{2192}", "\\u2192", "\t", "\\t", "|", ":"];
    let mark = marks.iter().find(|mark| scan.piece(end..end + mark.len()) == **mark);
    match mark {
        Some(mark) if at < end => scan.run(end + mark.len(), |byte| byte == b' ' || byte == b'\t'),
        Some(_) | None => at,
    }
}

/// Lines that are strings of their own: each is masked where it stands.
fn broken(scan: &mut Scan<'_>, body: Range<usize>) {
    let mut at = body.start;
    while at < body.end {
        let end = scan.run(at, is_base64).min(body.end);
        if BROKEN_LINE_MIN <= end - at {
            let start = scan.skip_escape(at, end);
            scan.mark(start..end);
        }
        at = end + 1;
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}
