//! Where the values of a JSON text stand, so that one can be edited and the others keep every byte.

use serde::de::IgnoredAny;
use std::ops::Range;

/// An element of a list or a member of an object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Element {
    /// Name and value.
    pub(super) whole: Range<usize>,
    /// The value.
    pub(super) value: Range<usize>,
    /// What goes with it when it is taken out: a comma beside it; of the only one the blanks.
    pub(super) cut: Range<usize>,
}

/// A member of an object.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) element: Element,
}

/// Where the object stands that the text is, or what it is instead. The others may then be asked: what
/// they walk over was read once by a reader that knows all of JSON.
pub(super) fn top(text: &str) -> Result<Range<usize>, String> {
    let begin = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let json = &text[begin..];
    if let Err(error) = serde_json::from_str::<IgnoredAny>(json) {
        return Err(format!("no JSON at line {}, column {}", error.line(), error.column()));
    }
    let at = blanks(text, begin);
    match text[at..].starts_with('{') {
        true => Ok(at..skip(text, at)),
        false => Err("other JSON".to_owned()),
    }
}

/// The elements of the list at `at`; none if it is none.
pub(super) fn elements(text: &str, at: &Range<usize>) -> Vec<Element> {
    walk(text, at, '[').into_iter().map(|(_, element)| element).collect()
}

/// The members of the object at `at`; none if it is none.
pub(super) fn members(text: &str, at: &Range<usize>) -> Vec<Member> {
    let named = walk(text, at, '{').into_iter().filter_map(|(name, element)| {
        let name = serde_json::from_str(&text[name]).ok()?;
        Some(Member { name, element })
    });
    named.collect()
}

/// The member of that name: the last one, as the client reads it.
pub(super) fn member(text: &str, at: &Range<usize>, name: &str) -> Option<Element> {
    let named = members(text, at).into_iter().rev().find(|member| member.name == name);
    named.map(|member| member.element)
}

/// Each name, empty in a list, and its element.
fn walk(text: &str, at: &Range<usize>, opens: char) -> Vec<(Range<usize>, Element)> {
    if !text[at.clone()].starts_with(opens) {
        return Vec::new();
    }
    let mut found: Vec<(Range<usize>, Element)> = Vec::new();
    let mut next = blanks(text, at.start + 1);
    let end = at.end.saturating_sub(1);
    while next < end {
        let name = if opens == '{' { next..skip(text, next) } else { next..next };
        let begins = match opens {
            // Behind the name stands a colon.
            '{' => blanks(text, blanks(text, name.end) + 1),
            _ => next,
        };
        let value = begins..skip(text, begins);
        let whole = next..value.end;
        // The comma before goes with it; of the first one the comma behind.
        let cut = found.last().map_or(next, |(_, before)| before.whole.end)..value.end;
        if let [(_, first)] = found.as_mut_slice() {
            first.cut.end = next;
        }
        next = blanks(text, value.end);
        if text[next..].starts_with(',') {
            next = blanks(text, next + 1);
        }
        found.push((name, Element { whole, value, cut }));
    }
    if let [(_, alone)] = found.as_mut_slice() {
        alone.cut = at.start + 1..end;
    }
    found
}

/// The first place from `at` on that is no blank.
fn blanks(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    text.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len()
}

/// Where the value that begins at `at` ends.
fn skip(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut in_string, mut place) = (0_usize, false, at);
    while let Some(byte) = bytes.get(place) {
        place += 1;
        match (in_string, byte) {
            (true, b'\\') => place += 1,
            (_, b'"') => {
                in_string = !in_string;
                if !in_string && depth == 0 {
                    return place;
                }
            }
            (true, _) => {}
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']') => {
                // The bracket around a number or a word.
                if depth == 0 {
                    return place - 1;
                }
                depth -= 1;
                if depth == 0 {
                    return place;
                }
            }
            (false, b',' | b' ' | b'\t' | b'\n' | b'\r') if depth == 0 => return place - 1,
            (false, _) => {}
        }
    }
    text.len()
}
