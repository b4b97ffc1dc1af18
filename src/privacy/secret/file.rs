//! Secrets in files, located by the file's format: keys without their first or last line, password
//! files, manifests, JSON web keys, and tables.

use super::scan::Scan;
use super::words::{self, Kind};
use super::{shape, value};
use regex::Regex;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

/// Bytes that are read around the word that identifies the format.
const FILE_MAX: usize = 8 * 1024;
const LINES_MAX: usize = 64;
const LINE_MAX: usize = 1024;
/// Minimum run of base64 characters in a line of a key.
const KEY_LINE_MIN: usize = 32;

/// Masks a private key whose opening line is missing.
pub(super) fn headless_key(scan: &mut Scan<'_>, at: Range<usize>) {
    if scan.byte(at.end - 1) != b':' {
        let start = scan.run_back(at.start, 16, shape::is_base64);
        let start = scan.skip_escape(start, at.end);
        let end = scan.run(at.end, shape::is_base64);
        if end - start < KEY_LINE_MIN {
            return;
        }
        scan.add_hit(start..end);
    }
    let mut line_end = scan.line_end(at.end, LINE_MAX);
    for _ in 0..LINES_MAX {
        let Some(line) = scan.next_line(line_end) else { return };
        let start = scan.run(line, |byte| matches!(byte, b' ' | b'\t' | b'+' | b'>'));
        let start = shape::behind_number(scan, start);
        let end = scan.run(start, shape::is_base64);
        line_end = scan.line_end(end, LINE_MAX);
        if end - start < 4 || end < line_end && !matches!(scan.byte(end), b'"' | b' ' | b'\'') {
            return;
        }
        scan.add_hit(start..end);
    }
}

/// Masks the lines before the closing line of a private key.
pub(super) fn headless_end(scan: &mut Scan<'_>, at: Range<usize>) {
    if !shape::is_secret_title(scan.piece(at.end..shape::title_end(scan, at.end))) {
        return;
    }
    let mut line = scan.line_start(at.start, LINE_MAX);
    for _ in 0..LINES_MAX {
        let breaks = |byte| matches!(byte, b'\n' | b'\r' | b'\\' | b'n' | b'r');
        let escaped = matches!(scan.before(line), b'n' | b'r') && scan.before(line - 1) == b'\\';
        let end = match escaped {
            true => scan.run_back(line, 8, breaks).max(line.saturating_sub(4)),
            false => scan.run_back(line, 2, |byte| matches!(byte, b'\n' | b'\r')),
        };
        let start = scan.run_back(end, LINE_MAX, shape::is_base64);
        let known = scan
            .hits
            .iter()
            .rev()
            .take(LINES_MAX)
            .any(|hit| hit.at.start <= start && end <= hit.at.end);
        if end == line || end - start < 4 || known {
            return;
        }
        let start = scan.skip_escape(start, end);
        scan.add_hit(start..end);
        line = scan.line_start(start, LINE_MAX);
    }
}

/// Formats of lines with a secret, by the words that occur in them.
pub(super) static FORMATS: LazyLock<HashMap<&str, Regex>> = LazyLock::new(|| {
    let rows = words::lines("formats").into_iter().filter_map(|line| line.split_once(" := "));
    let formats = rows.flat_map(|(words, form)| {
        let form = Regex::new(&format!("(?m){form}")).ok();
        words.split(", ").filter_map(move |word| Some((word, form.clone()?)))
    });
    formats.collect()
});

/// Masks the groups of the format that the word at `at` belongs to, in its line and those below.
pub(super) fn formatted(scan: &mut Scan<'_>, at: Range<usize>) {
    /// Maximum bytes of the lines below.
    const BELOW_MAX: usize = 512;
    let word = scan.piece(at.clone());
    let format = FORMATS.get(word).or_else(|| FORMATS.get(word.to_ascii_lowercase().as_str()));
    let from = scan.line_start(at.start, LINE_MAX);
    let text = scan.piece(from..scan.floor((at.end + BELOW_MAX).min(scan.bytes.len())));
    let fits = |it: &regex::Match<'_>| {
        let fills = it.end() < text.len() || from + text.len() == scan.bytes.len();
        fills && !value::is_no_secret(it.as_str(), "") && !words::PLAIN.contains(it.as_str())
    };
    let found = format.into_iter().flat_map(|it| it.captures_iter(text));
    let groups = found.flat_map(|it| it.iter().skip(1).flatten().collect::<Vec<_>>());
    let hits: Vec<Range<usize>> = groups.filter(fits).map(|it| it.range()).collect();
    scan.add_hits(from, hits);
}

/// Masks the values of a Kubernetes secret: in YAML below `data:`, in JSON within `"data"`.
pub(super) fn manifest(scan: &mut Scan<'_>, at: Range<usize>) {
    let around = scan.floor(at.start.saturating_sub(FILE_MAX))
        ..scan.floor(scan.bytes.len().min(at.end + FILE_MAX));
    let word = scan.piece(at.clone());
    let (start, names): (usize, &[&str]) = match word {
        "stringData" => (at.start, &["stringData"]),
        _ => (around.start, &["data", "stringData"]),
    };
    let start = match word.starts_with("kind") {
        // The manifest starts after the last document separator.
        true => scan.piece(start..at.start).rfind("---").map_or(start, |found| start + found),
        false => start,
    };
    let json = word.starts_with('"');
    if json && !scan.piece(scan.floor(at.start.saturating_sub(24))..at.start).contains("kind") {
        return;
    }
    for name in names {
        let text = scan.piece(start..around.end);
        let found = text.match_indices(name).map(|(found, _)| start + found);
        let places: Vec<usize> =
            found.filter(|at| !scan.before(*at).is_ascii_alphabetic()).collect();
        for place in places {
            let (quote, after) = scan.quote_or(place + name.len());
            let value = scan.gap(after + 1);
            match (scan.byte(after), quote, scan.byte(value)) {
                (b':', Some(_), b'{') => members(scan, value),
                (b':', None, b'\n' | b'\r' | b'\\') => indented(scan, place, value),
                _ => {}
            }
        }
    }
}

/// Masks every string after a colon, up to the closing brace.
fn members(scan: &mut Scan<'_>, brace: usize) {
    let end = scan.run_within(brace, FILE_MAX, |byte| byte != b'}');
    let mut at = brace;
    while at < end {
        let colon = scan.run(at, |byte| byte != b':');
        let value = scan.gap(colon + 1);
        at = value.max(colon + 1);
        if let Some(content) = scan.string(value).filter(|_| value < end) {
            at = content.end.max(at);
            if !value::is_reference(scan.piece(content.clone())) {
                scan.add_hit(content);
            }
        }
    }
}

/// Masks every value in the lines indented deeper than `name`.
fn indented(scan: &mut Scan<'_>, name: usize, mut line_end: usize) {
    let depth = name - scan.run_back(name, LINE_MAX, |byte| byte == b' ');
    for _ in 0..LINES_MAX {
        let Some(line) = scan.next_line(line_end) else { return };
        let start = scan.run(line, |byte| byte == b' ');
        line_end = scan.line_end(start, LINE_MAX);
        if start - line <= depth || start == line_end {
            return;
        }
        let text = scan.piece(start..line_end);
        let value = text.find(": ").map_or(start, |colon| scan.gap(start + colon + 2));
        if text.ends_with(':') || scan.byte(start) == b'#' {
            continue;
        }
        let fits = |byte| !matches!(byte, b'"' | b'\n' | b'\r' | b'\\');
        let content = scan.string(value).unwrap_or_else(|| value..scan.run(value, fits));
        let secret = scan.piece(content.clone()).trim_end();
        if !value::is_reference(secret) && !secret.starts_with(['|', '>']) {
            scan.add_hit(content.start..content.start + secret.len());
        }
    }
}

/// Masks the private members of a JSON web key.
pub(super) fn web_key(scan: &mut Scan<'_>, at: Range<usize>) {
    let start = scan.run_back(at.start, FILE_MAX, |byte| byte != b'{');
    let end = scan.run_within(at.end, FILE_MAX, |byte| byte != b'}');
    string_members(scan, start..end, &["\"d", "\"p", "\"q", "\"dp", "\"dq", "\"qi", "\"k"], 16);
}

/// Masks the strings of the members with these names, if they are long enough.
fn string_members(scan: &mut Scan<'_>, object: Range<usize>, names: &[&str], length_min: usize) {
    for name in names {
        let found = scan.piece(object.clone()).match_indices(name);
        let places: Vec<usize> =
            found.map(|(found, _)| object.start + found + name.len()).collect();
        for place in places {
            let Some((_, colon)) = scan.quote(place) else { continue };
            let Some(content) = scan.string(scan.gap(scan.gap(colon) + 1)) else { continue };
            if length_min <= content.len() && scan.byte(scan.gap(colon)) == b':' {
                scan.add_hit(content);
            }
        }
    }
}

/// Marks between the columns of tables that programs draw.
const BARS: [char; 3] = ['|', '│', '┃'];

/// Masks the cells below a name in a drawn, aligned or delimiter-separated table, and the cell
/// beside it in a table of names and values.
pub(super) fn table(scan: &mut Scan<'_>, name: Range<usize>) {
    /// Maximum padding of a cell.
    const PADDING_MAX: usize = 64;
    let pads = |byte: u8| b"*`\"' ".contains(&byte);
    let after = scan.run_within(name.end, PADDING_MAX, pads);
    let before = scan.run_back(name.start, PADDING_MAX, pads);
    let is_mark = |mark: &char| BARS.contains(mark) || [',', ';', '\t'].contains(mark);
    let next = scan.from(after).chars().next().filter(is_mark);
    let last = scan.piece(scan.floor(before.saturating_sub(3))..before).chars().next_back();
    let mark = next.or(last.filter(is_mark));
    let apart = 2 <= after - name.end || 2 <= name.start - before;
    let ends = next.is_some() || matches!(scan.byte(after), 0 | b'\n' | b'\r' | b'\\');
    if mark.is_none() && !apart || mark.is_some() && !ends {
        return;
    }
    let Some(kind) = words::kind(scan.piece(name.clone())) else { return };
    let start = scan.line_start(name.start, LINE_MAX);
    let end = scan.line_end(name.end, LINE_MAX);
    let Some(mark) = mark else { return aligned(scan, start..end, name.start - start, kind) };
    let is_bar = BARS.contains(&mark);
    let splits = |letter: char| letter == mark || is_bar && BARS.contains(&letter);
    let header = scan.piece(start..end);
    let columns = header.matches(splits).count();
    let column = scan.piece(start..name.start).matches(splits).count();
    let word = |field: &str| {
        let field = field.trim_matches('"');
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        !field.is_empty() && field.bytes().all(fits)
    };
    let named = header.split(splits).all(word);
    let mut line_end = end;
    let mut ruled = false;
    for _ in 0..LINES_MAX {
        let Some(line) = scan.next_line(line_end) else { break };
        line_end = scan.line_end(line, LINE_MAX);
        let row = scan.piece(line..line_end);
        if is_bar && is_rule(row) {
            ruled = true;
            continue;
        }
        if !named && !ruled || row.matches(splits).count() != columns {
            break;
        }
        ruled = true;
        let before: usize = row.split_inclusive(splits).take(column).map(str::len).sum();
        let cell = row.split(splits).nth(column).unwrap_or_default();
        let from = line + before;
        mask_cell(scan, from..from + cell.len(), kind);
    }
    if !ruled && is_bar && next.is_some() {
        // A table of names and values.
        let from = after + mark.len_utf8();
        let ends = |letter: char| BARS.contains(&letter) || "\n\"\\".contains(letter);
        let cell = scan.piece(from..scan.line_end(from, LINE_MAX)).split(ends).next();
        let cell = cell.unwrap_or_default();
        let is_plain = kind == Kind::Password && value::is_plain_password(cell.trim());
        let kind = if is_plain { kind } else { Kind::Maybe };
        mask_cell(scan, from..from + cell.len(), kind);
    }
}

/// Returns whether a line only separates the rows of a table.
fn is_rule(line: &str) -> bool {
    let draws = |letter: char| "|:-+= ".contains(letter) || ('─'..='╿').contains(&letter);
    let is_dashed = |cell: &str| cell.is_empty() || cell.contains('-');
    let cells = line.trim().trim_matches('|').split('|');
    let has_cells = line.contains('|') && line.contains('-') && cells.map(str::trim).all(is_dashed);
    (has_cells || line.contains("--") || line.contains(['─', '━', '═'])) && line.chars().all(draws)
}

/// Masks the words below a name in columns that only blanks separate.
fn aligned(scan: &mut Scan<'_>, header: Range<usize>, column: usize, kind: Kind) {
    let is_title =
        |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b" _-()".contains(&byte);
    let titles = scan.piece(header.clone());
    if !titles.bytes().all(is_title) || !titles.trim().contains("  ") {
        return;
    }
    let mut line_end = header.end;
    for _ in 0..LINES_MAX {
        let Some(line) = scan.next_line(line_end) else { return };
        line_end = scan.line_end(line, LINE_MAX);
        let start = (line + column).min(line_end);
        let end = scan.run_within(start, line_end - start, |byte| byte > b' ');
        if start == line_end || !matches!(scan.before(start), b' ' | b'\n') {
            return;
        }
        let word = scan.piece(start..end);
        // Names of secrets also stand in such columns.
        if kind == Kind::Password && (value::is_random(word) || value::is_plain_password(word))
            || value::is_made_up(word)
            || value::is_key(word) && !word.contains('-')
        {
            scan.add_hit(start..end);
        }
    }
}

/// Masks the values of the columns that hold secrets: `INSERT INTO t (name, password) VALUES …`.
pub(super) fn inserted(scan: &mut Scan<'_>, at: Range<usize>) {
    let end = scan.run_within(at.end, FILE_MAX, |byte| byte != b';');
    let statement = scan.piece(at.end..end);
    let Some((head, rest)) = statement.split_once('(') else { return };
    let Some((names, rest)) = rest.split_once(')') else { return };
    let rows = rest.trim_start().get(.."values".len());
    if LINE_MAX < head.len() || !rows.is_some_and(|it| it.eq_ignore_ascii_case("values")) {
        return;
    }
    let kinds: Vec<Option<Kind>> = names
        .split(',')
        .map(|name| words::kind(name.trim_matches(|it: char| !it.is_alphanumeric())))
        .collect();
    if kinds.iter().all(Option::is_none) {
        return;
    }
    let (mut place, mut column) = (end - rest.len(), 0);
    while place < end {
        match scan.byte(place) {
            b'(' => column = 0,
            b',' => column += 1,
            _ => {}
        }
        let Some(content) = scan.string(place) else {
            place += 1;
            continue;
        };
        let value = scan.piece(content.clone());
        let is_secret = match kinds.get(column).copied().flatten() {
            Some(Kind::Password) => !value::is_no_secret(value, ""),
            Some(_) => value::is_random(value) && 8 <= value.len(),
            None => false,
        };
        place = scan.quote_or(content.end).1.max(content.end + 1);
        if is_secret {
            scan.add_hit(content);
        }
    }
}

fn mask_cell(scan: &mut Scan<'_>, cell: Range<usize>, kind: Kind) {
    let around = [' ', '`', '*', '\'', '"', '\t', '\\'];
    let text = scan.piece(cell.clone());
    let start = cell.start + text.len() - text.trim_start_matches(around).len();
    let text = text.trim_matches(around);
    let plain = kind == Kind::Password && value::may_be_secret(text, false);
    let random = value::is_random(text) && (kind == Kind::Password || !value::is_identifier(text));
    let secret = !text.contains([' ', '"']) && (random || plain);
    if secret && !value::is_reference(text) && !words::ABOUT.contains(text) {
        scan.add_hit(start..start + text.len());
    }
}
