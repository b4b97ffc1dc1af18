//! Text clean-up: removes reminders and terminal escapes, replaces images with marks, finds tags.

use super::fields::{Block, Content};
use super::json::JsonExt;
use memchr::{memchr2, memmem};
use std::borrow::Cow;
use std::ops::Range;

const OPEN: &str = "<system-reminder>";
const CLOSE: &str = "</system-reminder>";

/// Removes reminders, terminal escapes and NUL bytes.
pub(super) fn clean(text: Cow<'_, str>) -> String {
    let text = match memmem::find(text.as_bytes(), OPEN.as_bytes()) {
        Some(_) => Cow::Owned(without_reminders(&text)),
        None => text,
    };
    match memchr2(0x1b, 0, text.as_bytes()) {
        Some(_) => without_escapes(&text),
        None => text.into_owned(),
    }
}

/// Removes closed reminders, and an unclosed one if it begins a line; in the middle of a line it is
/// more likely source code.
fn without_reminders(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find(OPEN) {
        let begins_line = rest[..open].is_empty() || rest[..open].ends_with('\n');
        let close = rest[open..].find(CLOSE);
        kept.push_str(&rest[..open]);
        match close {
            Some(close) => rest = &rest[open + close + CLOSE.len()..],
            None if begins_line => rest = "",
            None => {
                kept.push_str(OPEN);
                rest = &rest[open + OPEN.len()..];
            }
        }
    }
    kept.push_str(rest);
    kept.trim_end().to_owned()
}

/// Removes `ESC [ … letter`, `ESC ] … BEL`, other escapes of two characters, and NUL.
fn without_escapes(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\0' => {}
            '\u{1b}' => match chars.next() {
                Some('[') => {
                    chars.by_ref().find(|c| ('@'..='~').contains(c));
                }
                Some(']') => {
                    chars.by_ref().find(|c| matches!(c, '\u{7}' | '\u{1b}' | '\n'));
                }
                Some(_) | None => {}
            },
            _ => kept.push(char),
        }
    }
    kept
}

/// Mark for an image or a document, with its media type and size.
pub(super) fn mark(block: &Block<'_>) -> String {
    let sort = if block.kind.is("document") { "document" } else { "image" };
    let (media, data) = match (&block.source.0, block.image_url.some()) {
        (Some(source), _) => (source.media_type.get(), source.data.get()),
        (None, Some(url)) => return mark_url(url),
        (None, None) => ("", ""),
    };
    mark_of(sort, media, data.len() / 4 * 3)
}

/// Mark for a URL, which may be a data URL.
pub(super) fn mark_url(url: &str) -> String {
    match url.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
        Some((media, data)) => {
            let media = media.split(';').next().unwrap_or_default();
            mark_of("image", media, data.len() / 4 * 3)
        }
        None if url.len() <= MARK_URL_BYTES_MAX => format!("[image {url}]"),
        None => "[image]".to_owned(),
    }
}

/// Maximum size of a URL in a mark; longer ones are data.
const MARK_URL_BYTES_MAX: usize = 300;

fn mark_of(sort: &str, media: &str, bytes: usize) -> String {
    match (media, bytes) {
        ("", 0) => format!("[{sort}]"),
        ("", _) => format!("[{sort}, {bytes} bytes]"),
        (_, 0) => format!("[{sort} {media}]"),
        (_, _) => format!("[{sort} {media}, {bytes} bytes]"),
    }
}

/// Text of a content: its text blocks and marks, one per line.
pub(super) fn flatten(content: Content<'_>) -> String {
    match content {
        Content::None => String::new(),
        Content::Text(text) => clean(text),
        Content::Blocks(blocks) => {
            let mut all = String::new();
            for block in blocks {
                let piece = flatten_block(block);
                push_piece(&mut all, &piece, "\n");
            }
            all
        }
    }
}

fn flatten_block(block: Block<'_>) -> String {
    match block.kind.get() {
        "image" | "document" | "input_image" => mark(&block),
        "tool_reference" => format!("[tool {}]", block.tool_name.some().unwrap_or("unnamed")),
        "web_search_result" => format!("{} {}", block.title.get(), block.url.get()),
        _ => match block.text.0 {
            Some(text) => clean(text),
            None if block.response.is_null() => flatten(block.content),
            None => {
                let part = block.response.list().first().unwrap_or(&block.response);
                let response = &part["functionResponse"]["response"];
                clean(response.first_text(&["output", "error"]).unwrap_or_default().into())
            }
        },
    }
}

/// Appends `piece` after `gap`, unless it is blank.
pub(super) fn push_piece(all: &mut String, piece: &str, gap: &str) {
    if piece.trim().is_empty() {
        return;
    }
    if !all.is_empty() {
        all.push_str(gap);
    }
    all.push_str(piece);
}

/// Returns the text between `<tag>` and `</tag>`.
pub(super) fn between<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    text.get(block(text, tag)?.inner)
}

pub(super) struct TagSpan {
    pub(super) start: usize,
    pub(super) inner: Range<usize>,
    pub(super) end: usize,
}

/// Finds the first block of a tag, which may have attributes. Uses a byte search, since most texts
/// contain no `<`.
pub(super) fn block(text: &str, tag: &str) -> Option<TagSpan> {
    let opening = bracket(text, 0, "<", tag)?;
    let closing = bracket(text, opening.end, "</", tag)?;
    Some(TagSpan { start: opening.start, inner: opening.end..closing.start, end: closing.end })
}

fn bracket(text: &str, from: usize, open: &str, tag: &str) -> Option<Range<usize>> {
    let span = |at: usize| {
        let rest = text.get(at..)?.strip_prefix(open)?.strip_prefix(tag)?;
        let length = rest.find('>')?;
        let attributes = &rest[..length];
        let is_tag = attributes.is_empty()
            || open == "<" && attributes.starts_with(' ') && !attributes.contains(['<', '\n']);
        is_tag.then(|| at..at + open.len() + tag.len() + length + 1)
    };
    let rest = text.as_bytes().get(from..)?;
    memchr::memchr_iter(b'<', rest).find_map(|at| span(from + at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(clean(Cow::Borrowed(text)), expected);
    }

    #[test]
    fn reminders_are_taken_out() {
        check("a\n<system-reminder>do b</system-reminder>", "a");
        check("a\n<system-reminder>do b", "a");
        check("x<system-reminder>1</system-reminder>y<system-reminder>2</system-reminder>", "xy");
    }

    #[test]
    fn a_reminder_named_in_source_code_is_kept() {
        check("const A = \"<system-reminder>\";\nb", "const A = \"<system-reminder>\";\nb");
    }

    #[test]
    fn colours_and_nul_are_taken_out() {
        check("\u{1b}[1;31mred\u{1b}[0m\0 \u{1b}]0;title\u{7}x\u{1b}", "red x");
    }

    #[test]
    fn data_addresses_become_marks() {
        assert_eq!(mark_url("data:image/png;base64,REDACTED!!!!"), "[image image/png, 9 bytes]");
        assert_eq!(mark_url("https://x.test/a.png"), "[image https://x.test/a.png]");
    }
}
