//! Names that are values themselves: `{"name": "DB_PASSWORD", "value": "…"}`, the same in YAML, and
//! `<add key="password" value="…"/>`; and names that a blank joins to the value: `ENV NAME …`.

use super::Scan;
use super::escape::Quote;
use super::named::{Joint, is_blank};

/// What the name of a pair stands under.
const NAMES: [&str; 4] = ["name", "key", "id", "variable"];
/// Bytes between the two halves of a pair.
const GAP_MAX: usize = 128;

/// Where the value of the pair starts whose name stands at `start..end`.
pub(super) fn value_of(
    scan: &Scan<'_>,
    start: usize,
    end: usize,
) -> Option<(Option<Quote>, Joint, usize)> {
    let (quote, after) = match scan.quote(end) {
        Some((quote, after)) => (Some(quote), after),
        None => (None, end),
    };
    let key = gap_end(scan, after);
    if key == after {
        return None;
    }
    let (key_quote, word) = match scan.quote(key) {
        Some((quote, word)) => (Some(quote), word),
        None => (None, key),
    };
    let word_end = word + "value".len();
    if !scan.piece(word..word_end).eq_ignore_ascii_case("value") || !is_name(scan, start) {
        return None;
    }
    let closed = match key_quote {
        Some(quote) => scan.quote(word_end).filter(|(closing, _)| *closing == quote)?.1,
        None => word_end,
    };
    let mark = scan.run(closed, is_blank);
    let joint = match scan.byte(mark) {
        b':' => Joint::Colon,
        b'=' => Joint::Equals,
        _ => return None,
    };
    let value = scan.run(mark + 1, is_blank);
    (value < scan.bytes.len()).then_some((quote, joint, value))
}

/// Where blanks, line ends, written out or not, and commas end.
fn gap_end(scan: &Scan<'_>, from: usize) -> usize {
    let fits = |byte: u8| byte.is_ascii_whitespace() || byte == b',';
    let mut at = from;
    for _ in 0..GAP_MAX {
        let escape = scan.byte(at) == b'\\' && matches!(scan.byte(at + 1), b'n' | b'r' | b't');
        match (fits(scan.byte(at)), escape) {
            (true, _) => at += 1,
            (false, true) => at += 2,
            (false, false) => break,
        }
    }
    at
}

/// Whether `name:` or `key=` stands before.
fn is_name(scan: &Scan<'_>, start: usize) -> bool {
    let back = |at: usize, fits: fn(u8) -> bool| scan.run_back(at, GAP_MAX, fits);
    let is_quote = |byte: u8| matches!(byte, b'"' | b'\'' | b'`' | b'\\');
    let mark = back(back(start, is_quote), is_blank);
    if !matches!(scan.before(mark), b':' | b'=') {
        return false;
    }
    let end = back(back(mark - 1, is_blank), is_quote);
    let word = back(end, |byte| byte.is_ascii_alphabetic());
    NAMES.iter().any(|name| scan.piece(word..end).eq_ignore_ascii_case(name))
}

/// Whether a blank joins name and value: `ENV NAME …`, `setenv NAME …`, and `machine … login …
/// password …` of a `.netrc`.
pub(super) fn is_set(scan: &Scan<'_>, start: usize, end: usize) -> bool {
    /// Bytes of a line before the name.
    const HEAD_MAX: usize = 256;
    let line = scan.floor(scan.run_back(start, HEAD_MAX, |byte| byte != b'\n'));
    let head = scan.piece(line..start);
    let word = head.trim_end_matches([' ', '\t']);
    let sets = word.len() < head.len()
        && ["ENV", "setenv"].iter().any(|known| {
            word.strip_suffix(known).is_some_and(|before| {
                before.bytes().next_back().is_none_or(|byte| !byte.is_ascii_alphanumeric())
                    || scan.escape_ends(line + before.len())
            })
        });
    sets || scan.piece(start..end) == "password"
        && head.contains("machine ")
        && head.contains(" login ")
}
