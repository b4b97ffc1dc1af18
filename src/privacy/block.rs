//! `<private>` blocks. When in doubt, redacts more rather than less.

use super::letter::{is_space, is_word};
use super::redacted::spliced;
use std::borrow::Cow;
use std::ops::Range;

/// Maximum number of passes. The first finds nearly everything, the second confirms it.
pub(super) const PASSES_MAX: usize = 8;
/// Remark about a block that ends with the text.
pub(crate) const UNCLOSED_PRIVATE: &str = "unclosed private block";
/// Remark about an opening tag that hides nothing: it is only mentioned, or not closed.
pub(crate) const PRIVATE_MENTION: &str = "mention or unclosed inline tag";
const STRAY: &str = "closing tag without opening";

/// An irregularity of a private tag.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PrivateRemark {
    /// Byte offset of the tag.
    pub at: usize,
    pub what: &'static str,
}

/// Removes private blocks.
///
/// - An opening tag at the start of a line opens a block. Blocks nest; one ends at its matching
///   closing tag, or at the end of the text.
/// - So does an opening tag that only list, task, quote, heading or line-number markers precede,
///   and one that ends its line, when no closing tag comes before the next opening.
/// - Any other opening tag opens a span only when a closing tag comes before the next opening;
///   otherwise the author is writing about the tag, and it stays, with a remark.
/// - Lines that held nothing else are removed; text beside the tags stays. Code fences are ignored:
///   a stray fence before a block would leak it.
/// - The text around a removed block may form new tags, so the search repeats until it finds
///   nothing. If that takes too many passes, the rest is private.
pub(crate) fn strip_private(text: &str) -> String {
    PrivateText::find(text).left.into_owned()
}

/// Returns the private byte ranges by the rules of [`strip_private`], tags included, sorted and
/// disjoint, and remarks about the tags.
pub(crate) fn private_spans(text: &str) -> (Vec<Range<usize>>, Vec<PrivateRemark>) {
    let found = PrivateText::find(text);
    (found.spans, found.remarks)
}

/// Private spans of a text, found in several passes.
pub(super) struct PrivateText<'t> {
    pub(super) spans: Vec<Range<usize>>,
    /// The spans, extended by the lines that held nothing else.
    cuts: Vec<Range<usize>>,
    pub(super) remarks: Vec<PrivateRemark>,
    /// The text without `cuts`.
    pub(super) left: Cow<'t, str>,
}

impl<'t> PrivateText<'t> {
    pub(super) fn find(text: &'t str) -> PrivateText<'t> {
        let (found, remarks) = spans(text, &tags(text));
        let left = Cow::Borrowed(text);
        let mut all = PrivateText { spans: Vec::new(), cuts: Vec::new(), remarks, left };
        let (mut spans_now, mut remarks) = (found, Vec::new());
        for _ in 0..PASSES_MAX {
            if spans_now.is_empty() {
                return all;
            }
            let cuts = cuts(&all.left, &spans_now);
            all.add(text, spans_now, &cuts, remarks);
            (spans_now, remarks) = spans(&all.left, &tags(&all.left));
        }
        if let Some(head) = before_first_tag(&all.left) {
            let rest = head.len()..all.left.len();
            let remark = PrivateRemark { at: rest.start, what: UNCLOSED_PRIVATE };
            let cuts = [rest.clone()];
            all.add(text, vec![rest], &cuts, vec![remark]);
        }
        all
    }

    /// Adds the spans found in the remaining text.
    fn add(
        &mut self,
        text: &str,
        spans: Vec<Range<usize>>,
        cuts: &[Range<usize>],
        remarks: Vec<PrivateRemark>,
    ) {
        let places = OffsetMap::of(&self.cuts, self.left.len());
        let known = std::mem::take(&mut self.spans);
        self.spans = outermost(known.into_iter().chain(spans.iter().map(|it| places.range(it))));
        let known = std::mem::take(&mut self.cuts);
        self.cuts = outermost(known.into_iter().chain(cuts.iter().map(|it| places.range(it))));
        let moved = |it: PrivateRemark| PrivateRemark { at: places.place(it.at), ..it };
        self.remarks.extend(remarks.into_iter().map(moved));
        if let Cow::Owned(_) = self.left {
            // A tag that looked unpaired in an earlier pass has found its counterpart.
            let spans = &self.spans;
            let is_over = |it: &PrivateRemark| {
                let before = spans.partition_point(|span| span.end <= it.at);
                let inside = spans.get(before).is_some_and(|span| span.start <= it.at);
                inside && matches!(it.what, STRAY | PRIVATE_MENTION)
            };
            self.remarks.retain(|remark| !is_over(remark));
            self.remarks.sort_unstable_by_key(|remark| (remark.at, remark.what));
            self.remarks.dedup();
        }
        self.left = Cow::Owned(spliced(text, self.cuts.iter().map(|cut| (cut.clone(), ""))));
    }
}

/// Text before the first tag; `None` without an opening tag.
pub(super) fn before_first_tag(text: &str) -> Option<&str> {
    let tags = tags(text);
    let opens = tags.iter().any(|tag| !tag.closes);
    let first = tags.first().filter(|_| opens)?;
    text.get(..first.at.start)
}

/// Finds the private spans of one pass, with remarks.
fn spans(text: &str, tags: &[Tag]) -> (Vec<Range<usize>>, Vec<PrivateRemark>) {
    let (mut spans, mut remarks) = (Vec::new(), Vec::new());
    let remark = |tag: &Tag, what| PrivateRemark { at: tag.at.start, what };
    let mut rest = tags;
    while let [tag, after @ ..] = rest {
        rest = after;
        if tag.closes {
            remarks.push(remark(tag, STRAY));
            continue;
        }
        if text.get(tag.at.clone()) != Some("<private>") {
            remarks.push(remark(tag, "inexact opening tag"));
        }
        let start = tag.at.start;
        match (tag.stand, after) {
            (LinePosition::AfterMarker | LinePosition::Inline, [close, others @ ..])
                if close.closes =>
            {
                remarks.push(remark(tag, "inline private span"));
                spans.push(start..close.at.end);
                rest = others;
            }
            (LinePosition::LineStart | LinePosition::AfterMarker, _) => {
                let close = outer_close(after, &mut remarks);
                if close.is_none() {
                    remarks.push(remark(tag, UNCLOSED_PRIVATE));
                }
                let end = close.and_then(|close| after.get(close));
                spans.push(start..end.map_or(text.len(), |tag| tag.at.end));
                rest = close.and_then(|close| after.get(close + 1..)).unwrap_or_default();
            }
            (LinePosition::Inline, _) => remarks.push(remark(tag, PRIVATE_MENTION)),
        }
    }
    (spans, remarks)
}

/// Index of the tag that closes an already open block.
fn outer_close(tags: &[Tag], remarks: &mut Vec<PrivateRemark>) -> Option<usize> {
    let mut depth = 1_usize;
    for (index, tag) in tags.iter().enumerate() {
        if tag.closes {
            depth -= 1;
        } else {
            depth += 1;
            remarks.push(PrivateRemark { at: tag.at.start, what: "nested private block" });
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

/// The spans, extended by the lines that held nothing else, as disjoint ranges.
fn cuts(text: &str, spans: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut cuts = Vec::with_capacity(spans.len());
    let mut kept_to = 0;
    for span in spans {
        let head = text.get(..span.start).unwrap_or_default();
        let head = head.trim_end_matches(|letter| letter != '\n' && is_space(letter));
        let head_blank = head.is_empty() || head.ends_with('\n');
        let tail = text.get(span.end..).unwrap_or_default();
        let line = tail.trim_start_matches(|letter| letter != '\n' && is_space(letter));
        let blanks = tail.len() - line.len();
        let from = if head_blank && kept_to <= head.len() { head.len() } else { span.start };
        let to = match (head_blank, line.starts_with('\n'), line.is_empty()) {
            (true, true, _) => span.end + blanks + 1,
            (true, false, true) => text.len(),
            (true, false, false) | (false, _, _) => span.end,
        };
        cuts.push(from.max(kept_to)..to);
        kept_to = kept_to.max(to);
    }
    cuts
}

/// Characters that look like the angle brackets of a tag.
const OPENERS: [char; 14] = [
    '<', '\u{ff1c}', '\u{2039}', '\u{3008}', '\u{2329}', '\u{27e8}', '\u{fe64}', '\u{300a}',
    '\u{2c2}', '\u{276e}', '\u{1438}', '\u{227a}', '\u{276c}', '\u{2770}',
];
const CLOSERS: [char; 14] = [
    '>', '\u{ff1e}', '\u{203a}', '\u{3009}', '\u{232a}', '\u{27e9}', '\u{fe65}', '\u{300b}',
    '\u{2c3}', '\u{276f}', '\u{1433}', '\u{227b}', '\u{276d}', '\u{2771}',
];

/// True for characters that are not displayed.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// Opening bracket and name of a tag: `<private`, `</private`, in any case.
struct TagHead {
    end: usize,
    closes: bool,
    /// Blanks follow the bracket: `< private >`, which has no attributes.
    spaced: bool,
}

/// Parses the head of a tag after its opening bracket.
fn tag_head(text: &str, at: usize) -> Option<TagHead> {
    const BLANKS_MAX: usize = 4;
    // A letter that looks like another, or an invisible one, is not ASCII.
    let next = text.as_bytes().get(at)?;
    if next.is_ascii() && !matches!(next, b' ' | b'\t' | b'/' | b'p' | b'P') {
        return None;
    }
    let mut letters =
        text.get(at..)?.char_indices().filter(|(_, it)| !is_invisible(*it)).peekable();
    let (mut closes, mut blanks) = (false, 0);
    while let Some((_, letter)) = letters.next_if(|(_, it)| matches!(it, ' ' | '\t' | '/')) {
        if letter == '/' && closes || blanks == BLANKS_MAX {
            return None;
        }
        closes |= letter == '/';
        blanks += usize::from(letter != '/');
    }
    let mut end = at;
    for expected in "private".chars() {
        let (place, letter) = letters.next()?;
        if plain(letter) != expected {
            return None;
        }
        end = at + place + letter.len_utf8();
    }
    Some(TagHead { end, closes, spaced: 0 < blanks })
}

/// The small Latin letter that `letter` looks like: fullwidth, mathematical, Cyrillic, or a Turkish `İ` or `ı`, which
/// upper-casing in a Turkish locale produces.
fn plain(letter: char) -> char {
    /// Letters of one mathematical alphabet, large ones first.
    const ALPHABET: u32 = 52;
    let of = |number: u32| char::from(b'a' + u8::try_from(number % 26).unwrap_or_default());
    match letter {
        '\u{ff21}'..='\u{ff3a}' => of(u32::from(letter) - 0xff21),
        '\u{ff41}'..='\u{ff5a}' => of(u32::from(letter) - 0xff41),
        '\u{1d400}'..='\u{1d6a3}' => of((u32::from(letter) - 0x1d400) % ALPHABET),
        '\u{430}' | '\u{410}' => 'a',
        '\u{435}' | '\u{415}' => 'e',
        '\u{440}' | '\u{420}' => 'p',
        '\u{442}' | '\u{422}' => 't',
        '\u{130}' | '\u{131}' | '\u{456}' | '\u{406}' => 'i',
        _ => letter.to_ascii_lowercase(),
    }
}

/// Returns whether the text has a bracket that looks like `<`, or an invisible character.
fn is_disguised(text: &str) -> bool {
    /// Bytes that are passed over together, since most of a text is ASCII.
    const LANE: usize = 16;
    let disguises =
        |letter: char| !letter.is_ascii() && (OPENERS.contains(&letter) || is_invisible(letter));
    let lanes = text.as_bytes().chunks(LANE).enumerate().filter(|(_, lane)| !lane.is_ascii());
    let bytes = lanes.flat_map(|(lane, bytes)| (lane * LANE..).zip(bytes));
    let mut starts = bytes.filter(|(_, byte)| 0xc0 <= **byte);
    starts.any(|(at, _)| text[at..].starts_with(disguises))
}

/// Start and end of each opening bracket in the text.
fn openings(text: &str, disguised: bool) -> Box<dyn Iterator<Item = (usize, usize)> + '_> {
    match disguised {
        true => Box::new(text.match_indices(OPENERS).map(|(at, mark)| (at, at + mark.len()))),
        false => Box::new(memchr::memchr_iter(b'<', text.as_bytes()).map(|at| (at, at + 1))),
    }
}

const NUMBER_DIGITS_MAX: usize = 9;

struct Tag {
    at: Range<usize>,
    closes: bool,
    stand: LinePosition,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LinePosition {
    /// Only blanks precede it.
    LineStart,
    /// Only list, task, quote, heading, table or line-number markers precede it, or only blanks
    /// follow it.
    AfterMarker,
    Inline,
}

/// Finds every tag, in order. Linear: the next `>` or line end, and the end of a line's markers,
/// are looked up once each.
fn tags(text: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let bytes = text.as_bytes();
    let disguised = is_disguised(text);
    if !disguised && memchr::memchr(b'<', bytes).is_none() {
        return tags;
    }
    let (mut end_known, mut after_last) = (None::<usize>, 0);
    let mut marks = marks_end(text, 0);
    for (start, opened) in openings(text, disguised) {
        let Some(head) = tag_head(text, opened) else { continue };
        let name_end = head.end;
        if start < after_last || !name_ends(text, name_end) {
            continue;
        }
        let end = match end_known.filter(|end| name_end <= *end) {
            Some(end) => end,
            None => {
                let rest = text.get(name_end..).unwrap_or_default();
                let ends = |letter| letter == '\n' || CLOSERS.contains(&letter);
                name_end
                    + match disguised {
                        true => rest.find(ends),
                        false => memchr::memchr2(b'>', b'\n', rest.as_bytes()),
                    }
                    .unwrap_or(rest.len())
            }
        };
        end_known = Some(end);
        let closer = text.get(end..).and_then(|rest| rest.chars().next());
        let attributes = text.get(name_end..end).unwrap_or_default();
        let bare = attributes.chars().all(|letter| is_blank(letter) || is_invisible(letter));
        if let Some(closer) = closer.filter(|it| CLOSERS.contains(it) && (bare || !head.spaced)) {
            let between = bytes.get(after_last..start).unwrap_or_default();
            if let Some(line_end) = memchr::memrchr2(b'\n', b'\r', between) {
                marks = marks_end(text, after_last + line_end + 1);
            }
            after_last = end + closer.len_utf8();
            let stand = if starts_line(text, start) {
                LinePosition::LineStart
            } else if start <= marks || ends_line(text, after_last) {
                LinePosition::AfterMarker
            } else {
                LinePosition::Inline
            };
            tags.push(Tag { at: start..after_last, closes: head.closes, stand });
        }
    }
    tags
}

fn name_ends(text: &str, at: usize) -> bool {
    text.get(at..).and_then(|rest| rest.chars().next()).is_none_or(|next| !is_word(next))
}

/// Returns whether only blanks precede `at` on its line.
fn starts_line(text: &str, at: usize) -> bool {
    let head = text.get(..at).unwrap_or_default();
    let head = head.trim_end_matches([' ', '\t', '\u{feff}']);
    head.is_empty() || head.ends_with('\n')
}

/// Returns whether only blanks follow `at` on its line.
fn ends_line(text: &str, at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    let next = rest.chars().find(|letter| matches!(letter, '\n' | '\r') || !is_blank(*letter));
    matches!(next, None | Some('\n' | '\r'))
}

/// End of the markers at the start of the line at `from`. Backticks are not markers: a tag in code
/// is only mentioned.
fn marks_end(text: &str, from: usize) -> usize {
    let mut rest = text.get(from..).unwrap_or_default();
    while let Some(length) = mark(rest) {
        rest = rest.get(length..).unwrap_or_default();
    }
    text.len() - rest.len()
}

/// Length of the blank or marker at the start of `text`; `None` at a line end or anything else.
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

/// Length of an item number or letter with its delimiter: `12.`, `a)`, `7:`; or of a line number as
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

/// Maps positions in the remaining text to positions in the original.
struct OffsetMap {
    /// For each cut, its position in the remaining text and the total bytes cut so far.
    cuts: Vec<(usize, usize)>,
    left: usize,
}

impl OffsetMap {
    fn of(cuts: &[Range<usize>], left: usize) -> OffsetMap {
        let mut gone = 0;
        let known = cuts.iter().map(|cut| {
            let at = cut.start - gone;
            gone += cut.len();
            (at, gone)
        });
        OffsetMap { cuts: known.collect(), left }
    }

    fn place(&self, at: usize) -> usize {
        let before = self.cuts.partition_point(|(cut, _)| *cut <= at);
        let last = before.checked_sub(1).and_then(|last| self.cuts.get(last));
        at + last.map_or(0, |(_, gone)| *gone)
    }

    fn range(&self, range: &Range<usize>) -> Range<usize> {
        // A range that reaches the end of the remaining text includes what was cut after it.
        if range.end == self.left {
            return self.place(range.start)..self.place(range.end);
        }
        let last = range.end.saturating_sub(1).max(range.start);
        self.place(range.start)..self.place(last) + (range.end - last)
    }
}

/// Ranges that no other range contains, in order. Two ranges must be nested or disjoint.
fn outermost(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = ranges.collect();
    all.sort_unstable_by_key(|range| (range.start, usize::MAX - range.end));
    let mut end = 0;
    all.retain(|range| {
        let is_outer = end < range.end;
        end = end.max(range.end);
        is_outer
    });
    all
}

/// Returns whether the front matter says `private: true` (or yes, or on): quoted or not, in any
/// case, indented, commented. Unclosed front matter counts. One private key among several suffices.
pub(crate) fn is_private_file(text: &str) -> bool {
    // The first line of most files is long, and no fence.
    let is_passed = |it: char| it == '\u{feff}' || it.is_whitespace();
    if !text.trim_start_matches(is_passed).starts_with("---") {
        return false;
    }
    // A byte order mark neither hides front matter nor ends it.
    let mut lines = text.split(['\n', '\r']).skip_while(|line| unmarked(line).trim().is_empty());
    if !lines.next().is_some_and(|line| is_fence(unmarked(line), "---")) {
        return false;
    }
    lines.take_while(|line| !is_fence(line, "---") && !is_fence(line, "...")).any(says_private)
}

fn unmarked(line: &str) -> &str {
    line.trim_start_matches('\u{feff}')
}

fn is_fence(line: &str, fence: &str) -> bool {
    line.trim_end() == fence
}

fn says_private(line: &str) -> bool {
    let Some((key, value)) = line.split_once(':') else { return false };
    let key = key.trim().trim_matches(['"', '\'']).trim();
    let value = value.trim();
    let word = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let inner = value.get(1..).unwrap_or_default();
            let (word, after) = inner.split_once(quote).unwrap_or((inner, ""));
            let after = after.trim_start();
            if !after.is_empty() && !after.starts_with('#') {
                return false;
            }
            word.trim()
        }
        Some(_) | None => {
            let comment = value.find(" #").or_else(|| value.find("\t#"));
            value.get(..comment.unwrap_or(value.len())).unwrap_or_default().trim()
        }
    };
    let yes = ["true", "yes", "on"].iter().any(|yes| word.eq_ignore_ascii_case(yes));
    yes && key.eq_ignore_ascii_case("private")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, public: &str) {
        assert_eq!(strip_private(text), public);
    }

    #[test]
    fn front_matter_may_say_private_in_many_ways() {
        for yes in [
            "---\nprivate: true # note\n---\n",
            "\u{feff}---\r\nprivate: \"Yes\"\r\n---\r\n",
            "\n---\ntitle: x\n  private : on\n",
            "---\nprivate:true\n",
            "---\nprivate: true\nprivate: false\n---\n",
            "\n\u{feff}---\n\u{feff}---\nprivate: true\n---\n",
        ] {
            assert!(is_private_file(yes), "{yes:?}");
        }
        for no in
            ["", "---\nprivate: trueish\n---\n", "private: true", "---\na: 1\n---\nprivate: on\n"]
        {
            assert!(!is_private_file(no), "{no:?}");
        }
    }

    #[test]
    fn unclosed_block_hides_the_rest() {
        check("a\n<private>\nkey\n", "a\n");
    }

    #[test]
    fn outer_tag_wins_over_inner_ones() {
        check("a\n<private>\n1\n<private>\n2\n</private>\n3\n</private>\nb", "a\nb");
    }

    #[test]
    fn text_beside_a_span_stays() {
        check("x <private>y</private> z\n", "x  z\n");
        check("<private>y</private> z\n", " z\n");
    }

    #[test]
    fn a_mention_stays() {
        check(
            "write `<private>` around it\nand so on\n",
            "write `<private>` around it\nand so on\n",
        );
        check("privateer <privates> stay", "privateer <privates> stay");
    }

    #[test]
    fn a_tag_behind_marks_of_a_line_opens_a_block() {
        for mark in [
            "- ", "* ", "+ ", "1. ", "12) ", "a. ", "> ", "> > - ", "- [ ] ", "- [x] ", "## ",
            "| ", "- **", "\u{2022} ", "- \u{a0}", "   12\u{2192}", "    12\t", "\u{feff}- ",
            "-\t",
        ] {
            let text = format!("a\n{mark}<private>key\nmore\n");
            let (spans, remarks) = private_spans(&text);
            let start = text.find('<').unwrap();
            assert_eq!((spans.len(), spans.first()), (1, Some(&(start..text.len()))), "{mark:?}");
            assert_eq!(remarks, [PrivateRemark { at: start, what: UNCLOSED_PRIVATE }], "{mark:?}");
        }
        check("- <private>a\n<private>\nb\n</private>\nc\n", "- ");
        check("- <private>a</private> b\n- c\n", "-  b\n- c\n");
    }

    #[test]
    fn a_tag_at_the_end_of_a_line_opens_a_block() {
        check("my pin: <private>\n1234\n", "my pin: ");
        check("my pin: <private> \r\n1234\r\n", "my pin: ");
        check("my pin: <private>\n1234\n</private>\nb\n", "my pin: \nb\n");
    }

    #[test]
    fn a_mention_is_remarked_on_wherever_it_stands() {
        for text in ["write `<private>` here\n", "- `<private>` hides\n", "a <private> b\n"] {
            let at = text.find('<').unwrap();
            let what = PRIVATE_MENTION;
            assert_eq!(private_spans(text), (vec![], vec![PrivateRemark { at, what }]), "{text}");
        }
        let (spans, remarks) = private_spans("a <private> b <private> c\n");
        assert_eq!((spans.len(), remarks.len()), (0, 2));
    }

    #[test]
    fn what_blocks_leave_is_looked_at_again() {
        // Once the inner span is removed, the mention before it has a closing tag.
        check(
            "- a <private> b\n- x <private>y</private>\n- c </private> d\n- e\n",
            "- a  d\n- e\n",
        );
        check("a\n<pri<private>y</private>vate>\nb\n", "a\n");
        let text = "a\n<pri<private>y</private>vate>\nb\n";
        let (spans, remarks) = private_spans(text);
        assert_eq!((spans.len(), spans.first()), (1, Some(&(2..text.len()))));
        assert!(remarks.contains(&PrivateRemark { at: 2, what: UNCLOSED_PRIVATE }), "{remarks:?}");
        let (spans, _) = private_spans("<pri<private>y</private>vate>\nb\n  <private>\nc");
        assert_eq!(spans.len(), 1);
        let nested = (0..20).fold("x".to_owned(), |text, _| {
            format!("a <pri<private>y</private>vate>{text}</private>")
        });
        assert!(!strip_private(&nested).contains('x'));
    }

    #[test]
    fn turkish_capitals_open_a_block() {
        check("a\n<PR\u{130}VATE>\nx\n</PR\u{130}VATE>\nb\n", "a\nb\n");
    }

    #[test]
    fn many_tags_take_linear_time() {
        for text in [
            "<private>", "<private ", "x <private>", "</private>", "<private>\n", "- ",
            "- <private>x ",
        ] {
            let many = text.repeat(200_000);
            assert!(strip_private(&many).len() <= many.len());
        }
    }

    #[test]
    fn a_remark_has_its_place() {
        let (spans, remarks) = private_spans("a\n<private>\n<private>\nb\n");
        assert_eq!(spans.first(), Some(&(2..24)));
        let at: Vec<(usize, &str)> =
            remarks.iter().map(|remark| (remark.at, remark.what)).collect();
        assert_eq!(at, [(12, "nested private block"), (2, "unclosed private block")]);
    }

    proptest! {
        #[test]
        fn what_is_stripped_holds_nothing_more(parts in parts()) {
            let text = parts.concat();
            let public = strip_private(&text);
            prop_assert!(public.len() <= text.len());
            prop_assert_eq!(&strip_private(&public), &public);
            prop_assert!(private_spans(&public).0.is_empty());
        }

        #[test]
        fn spans_are_what_is_stripped(parts in parts()) {
            let text = parts.concat();
            let (spans, remarks) = private_spans(&text);
            let mut public = String::new();
            let mut end = 0;
            for span in &spans {
                prop_assert!(end <= span.start && span.start < span.end, "{:?}", spans);
                public.push_str(&text[end..span.start]);
                end = span.end;
            }
            public.push_str(&text[end..]);
            let words = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(words(&public), words(&strip_private(&text)));
            prop_assert!(remarks.iter().all(|it| text[it.at..].starts_with('<')), "{:?}", remarks);
        }
    }

    fn parts() -> impl Strategy<Value = Vec<&'static str>> {
        let parts = [
            "<private>", "</private>", "a", "\n", " ", "<PRIVATE x>", "\u{15f}", "<pri", "vate>",
            "\r\n", "\u{feff}", "- ", "> ", "1. ", "`",
        ];
        prop::collection::vec(prop::sample::select(parts.to_vec()), 0..30)
    }
}
