//! The shape of a single line of Markdown.

use super::tag::Tag;
use std::ops::Range;

/// Byte range of a line, including its ending.
pub(super) type Line = Range<usize>;

/// Lines of `text`; they tile it.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let mut end = 0;
    let line = |line: &str| {
        let start = end;
        end += line.len();
        start..end
    };
    text.split_inclusive('\n').map(line).collect()
}

pub(super) fn bare(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum LineShape {
    Blank,
    Heading(usize),
    Item(Option<bool>),
    Tag,
    Comment,
    Fence,
    Row,
    Rule,
    /// Conflict marker of git: `<<<<<<<`, `|||||||`, `=======` or `>>>>>>>`.
    Marker,
    Indented,
    Text,
}

/// Length of a git conflict marker, in letters.
const MARKER_LENGTH: usize = 7;
/// Minimum indentation of a line that continues the item above it.
const INDENT: usize = 2;

pub(super) fn shape(line: &str) -> LineShape {
    // A byte order mark may precede the first line.
    let line = line.trim_start_matches('\u{feff}');
    let text = line.trim_start_matches([' ', '\t', '\u{feff}']);
    // Byte order marks are no indentation.
    let before = line.get(..line.len() - text.len()).unwrap_or_default();
    let indent = before.chars().filter(|letter| *letter != '\u{feff}').count();
    let tabbed = line.starts_with('\t');
    let rest = text.trim_end();
    let Some(first) = rest.bytes().next() else { return LineShape::Blank };
    if rest.starts_with("<!--") {
        return if Tag::parse(rest).is_some() { LineShape::Tag } else { LineShape::Comment };
    }
    if indent >= INDENT || tabbed {
        return LineShape::Indented;
    }
    match first {
        b'#' => heading(rest).map_or(LineShape::Text, LineShape::Heading),
        b'`' | b'~' if fence(rest).is_some() => LineShape::Fence,
        b'|' if rest.len() > 1 && !is_marker(line) => LineShape::Row,
        b'<' | b'>' | b'=' | b'|' if is_marker(line) => LineShape::Marker,
        b'-' | b'*' | b'_' if is_rule(rest) => LineShape::Rule,
        b'-' | b'*' | b'+' | b'0'..=b'9' => item(rest)
            .map_or(LineShape::Text, |body| LineShape::Item(task(body).map(|(done, _)| done))),
        _ => LineShape::Text,
    }
}

fn heading(text: &str) -> Option<usize> {
    let level = text.bytes().take_while(|b| *b == b'#').count();
    let after = text.get(level..).unwrap_or_default();
    (level <= 6 && (after.is_empty() || after.starts_with([' ', '\t']))).then_some(level)
}

pub(super) fn heading_words(line: &str) -> &str {
    let words = line.trim_matches(['\u{feff}', ' ', '\t', '\r', '\n']).trim_start_matches('#');
    let bare = words.trim_end_matches('#');
    // The final `#` in `# C#` does not close the heading.
    if bare.ends_with([' ', '\t']) { bare.trim() } else { words.trim() }
}

/// Character and length of a fence.
pub(super) fn fence(text: &str) -> Option<(char, usize)> {
    let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = text.chars().take_while(|c| *c == mark).count();
    let after = text.get(length..).unwrap_or_default();
    (length >= 3 && !(mark == '`' && after.contains('`'))).then_some((mark, length))
}

pub(super) fn closes(text: &str, opened: (char, usize)) -> bool {
    let text = text.trim();
    let length = text.chars().take_while(|c| *c == opened.0).count();
    length >= opened.1 && length == text.chars().count()
}

pub(super) fn is_marker(line: &str) -> bool {
    let mark = line.chars().next().filter(|c| matches!(c, '<' | '|' | '=' | '>'));
    let Some(mark) = mark else { return false };
    let length = line.chars().take_while(|c| *c == mark).count();
    let after = line.get(length..).unwrap_or_default();
    let ends = if mark == '=' { after.trim().is_empty() } else { after.starts_with(' ') };
    length == MARKER_LENGTH && ends
}

fn is_rule(text: &str) -> bool {
    let mark = text.bytes().next();
    let marks = text.bytes().filter(|b| Some(*b) == mark).count();
    marks >= 3 && text.bytes().all(|b| Some(b) == mark || b == b' ' || b == b'\t')
}

pub(super) fn item(text: &str) -> Option<&str> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text.get(digits..)?;
    let marks: &[char] = if digits == 0 { &['-', '*', '+'] } else { &['.', ')'] };
    let after = rest.strip_prefix(marks)?;
    // The blank before a box is easily forgotten.
    let is_text = || after.is_empty() || after.starts_with([' ', '\t']) || task(after).is_some();
    (digits < 10 && is_text()).then(|| after.trim_start())
}

pub(super) fn task(body: &str) -> Option<(bool, &str)> {
    let inner = body.strip_prefix('[')?;
    let mut letters = inner.chars();
    let mark = letters.next()?;
    let rest = letters.as_str().strip_prefix(']')?;
    let done = match mark {
        ' ' => false,
        'x' | 'X' => true,
        _ => return None,
    };
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| (done, rest.trim_start()))
}

/// True for metadata such as `**Status:** Accepted`.
pub(super) fn is_meta(line: &str) -> bool {
    line.starts_with("**") && line.contains(":**")
}

pub(super) fn is_table_rule(line: &str) -> bool {
    line.contains('-')
        && line.trim().bytes().all(|b| matches!(b, b'|' | b'-' | b':' | b' ' | b'\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_shapes() {
        for (line, expected) in [
            ("", LineShape::Blank),
            (" \t", LineShape::Blank),
            ("## A", LineShape::Heading(2)),
            ("##A", LineShape::Text),
            ("- a", LineShape::Item(None)),
            ("* [x] a", LineShape::Item(Some(true))),
            ("- [ ] a", LineShape::Item(Some(false))),
            ("-a", LineShape::Text),
            ("12) a", LineShape::Item(None)),
            ("  - a", LineShape::Indented),
            ("---", LineShape::Rule),
            ("* * *", LineShape::Rule),
            ("*Session: x*", LineShape::Text),
            ("| a | b |", LineShape::Row),
            ("```rs", LineShape::Fence),
            ("``a`` b", LineShape::Text),
            ("<<<<<<< HEAD", LineShape::Marker),
            ("=======", LineShape::Marker),
            ("======", LineShape::Text),
            ("||||||| base", LineShape::Marker),
            ("  <!-- @tag: a -->", LineShape::Tag),
            ("<!-- a", LineShape::Comment),
        ] {
            assert_eq!(shape(line), expected, "{line:?}");
        }
    }
}
