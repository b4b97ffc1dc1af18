//! Where private tags stand in a text, and what stands around them on their lines.

use super::letter::{is_space, is_word};
use aho_corasick::{AhoCorasick, AhoCorasickBuilder};
use std::ops::Range;
use std::sync::LazyLock;

/// Finds `private` in any case at any speed. The Turkish capital and dotless i count as an i, as
/// they do where text was upper-cased in that language.
static WORD: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let spellings = ["<private", "</private", "<pr\u{130}vate", "</pr\u{130}vate"];
    let dotless = ["<pr\u{131}vate", "</pr\u{131}vate"];
    let words = spellings.into_iter().chain(dotless);
    AhoCorasickBuilder::new().ascii_case_insensitive(true).build(words).ok()
});

/// The most digits a number before an item or a line has.
const NUMBER_DIGITS_MAX: usize = 9;

/// A tag in the text.
pub(super) struct Tag {
    pub(super) at: Range<usize>,
    pub(super) closes: bool,
    pub(super) stand: Stand,
}

/// Where on its line a tag stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stand {
    /// Only blanks stand before it.
    Alone,
    /// Only marks stand before it, of a list, a task, a quote, a heading, a table, a numbered line, or
    /// only blanks behind it.
    Marked,
    /// Among words.
    Within,
}

/// Every tag, in order. Linear: where the next `>` or line end stands is looked up once, and where the marks of
/// a line end.
pub(super) fn tags(text: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let Some(word) = WORD.as_ref() else { return tags };
    let bytes = text.as_bytes();
    let (mut end_known, mut after_last) = (None::<usize>, 0);
    let mut marks = marks_end(text, 0);
    for hit in word.find_iter(bytes) {
        let (start, name_end) = (hit.start(), hit.end());
        if start < after_last || !name_ends(text, name_end) {
            continue;
        }
        let end = match end_known.filter(|end| name_end <= *end) {
            Some(end) => end,
            None => {
                let rest = bytes.get(name_end..).unwrap_or_default();
                name_end + memchr::memchr2(b'>', b'\n', rest).unwrap_or(rest.len())
            }
        };
        end_known = Some(end);
        if bytes.get(end) == Some(&b'>') {
            let between = bytes.get(after_last..start).unwrap_or_default();
            if let Some(line_end) = memchr::memrchr2(b'\n', b'\r', between) {
                marks = marks_end(text, after_last + line_end + 1);
            }
            let closes = bytes.get(start + 1) == Some(&b'/');
            after_last = end + 1;
            let stand = if starts_line(text, start) {
                Stand::Alone
            } else if start <= marks || ends_line(text, after_last) {
                Stand::Marked
            } else {
                Stand::Within
            };
            tags.push(Tag { at: start..after_last, closes, stand });
        }
    }
    tags
}

fn name_ends(text: &str, at: usize) -> bool {
    text.get(at..).and_then(|rest| rest.chars().next()).is_none_or(|next| !is_word(next))
}

/// Whether only blanks stand before `at` on its line.
fn starts_line(text: &str, at: usize) -> bool {
    let head = text.get(..at).unwrap_or_default();
    let head = head.trim_end_matches([' ', '\t', '\u{feff}']);
    head.is_empty() || head.ends_with('\n')
}

/// Whether only blanks stand behind `at` on its line.
fn ends_line(text: &str, at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    let next = rest.chars().find(|letter| matches!(letter, '\n' | '\r') || !is_blank(*letter));
    matches!(next, None | Some('\n' | '\r'))
}

/// Where the marks end that a line begins with; it begins at `from`. Backticks are none: what stands in code is
/// spoken about.
fn marks_end(text: &str, from: usize) -> usize {
    let mut rest = text.get(from..).unwrap_or_default();
    while let Some(length) = mark(rest) {
        rest = rest.get(length..).unwrap_or_default();
    }
    text.len() - rest.len()
}

/// The length of the blank or mark that `text` begins with; none if it begins with neither, or its line ends.
fn mark(text: &str) -> Option<usize> {
    let mut letters = text.chars();
    let first = letters.next()?;
    let is_mark =
        |letter: char| "->*+#|_~=:\u{2022}\u{25e6}\u{2013}\u{2014}\u{b7}".contains(letter);
    match first {
        '\n' | '\r' => None,
        '[' => {
            letters.next().filter(|tick| !matches!(tick, '\n' | '\r'))?;
            let rest = letters.as_str();
            rest.starts_with(']').then(|| text.len() - rest.len() + 1)
        }
        _ if is_blank(first) || is_mark(first) => Some(first.len_utf8()),
        _ if first.is_ascii_alphanumeric() => numbered(text),
        _ => None,
    }
}

/// The length of a number or of a single letter and what ends it: `12.`, `a)`, `7:`; or of the number of a line as
/// tools print it.
fn numbered(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let name = digits.max(1);
    let ends: &[char] =
        if digits == 0 { &['.', ')'] } else { &['.', ')', ':', '|', '\t', '\u{2192}'] };
    let end = text.get(name..)?.chars().next().filter(|end| ends.contains(end))?;
    (digits <= NUMBER_DIGITS_MAX).then(|| name + end.len_utf8())
}

fn is_blank(letter: char) -> bool {
    is_space(letter) || letter == '\u{feff}'
}
