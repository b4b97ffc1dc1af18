//! `<private>` blocks and private files: what an author marks as private goes, and in doubt more
//! of it goes rather than less.

use super::letter::is_space;
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

/// A tag in the text.
struct Tag {
    at: Range<usize>,
    closes: bool,
    starts_line: bool,
}

/// Something odd about a private tag.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PrivateRemark {
    /// The byte at which the tag begins.
    pub at: usize,
    /// What is odd about it.
    pub what: &'static str,
}

/// Removes private blocks: the public text, and what was odd about the tags (each remark once, in
/// alphabetical order).
///
/// - An opening tag at the start of a line opens a block. Nested openings deepen it; it ends at the
///   close that matches the outer one, or with the text.
/// - An opening tag within a line opens a span only when a closing tag comes before the next
///   opening; otherwise somebody speaks about the tag, and it stays.
/// - Lines that held nothing else vanish; text beside the tags stays. Fences are not respected: a
///   stray fence before a block would let it out.
pub fn strip_private(text: &str) -> (String, Vec<&'static str>) {
    let tags = tags(text);
    if tags.is_empty() {
        return (text.to_owned(), Vec::new());
    }
    let (spans, remarks) = spans(text, &tags);
    let mut remarks: Vec<&'static str> = remarks.into_iter().map(|remark| remark.what).collect();
    remarks.sort_unstable();
    remarks.dedup();
    (without(text, &spans), remarks)
}

/// Where private text stands, by the rules of [`strip_private`], tags included: bytes from, bytes to. In
/// order, none touches another. And what was odd about the tags, each with its place.
pub fn private_spans(text: &str) -> (Vec<Range<usize>>, Vec<PrivateRemark>) {
    spans(text, &tags(text))
}

/// The text without its private spans and how many there were; none if there were none.
pub(super) fn strip_counted(text: &str) -> Option<(String, u64)> {
    let tags = tags(text);
    let (spans, _) = spans(text, &tags);
    let count = spans.len() as u64;
    (0 < count).then(|| (without(text, &spans), count))
}

/// The text up to its first tag; none if it has no opening tag.
pub(super) fn before_first_tag(text: &str) -> Option<&str> {
    let tags = tags(text);
    let opens = tags.iter().any(|tag| !tag.closes);
    let first = tags.first().filter(|_| opens)?;
    text.get(..first.at.start)
}

/// Every tag, in order. Linear: where the next `>` or line end stands is looked up once.
fn tags(text: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let Some(word) = WORD.as_ref() else { return tags };
    let bytes = text.as_bytes();
    let (mut end_known, mut after_last) = (None::<usize>, 0);
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
            let closes = bytes.get(start + 1) == Some(&b'/');
            after_last = end + 1;
            tags.push(Tag { at: start..end + 1, closes, starts_line: starts_line(text, start) });
        }
    }
    tags
}

fn name_ends(text: &str, at: usize) -> bool {
    text.get(at..)
        .and_then(|rest| rest.chars().next())
        .is_none_or(|next| !super::letter::is_word(next))
}

/// Whether only blanks stand before `at` on its line.
fn starts_line(text: &str, at: usize) -> bool {
    let head = text.get(..at).unwrap_or_default();
    let head = head.trim_end_matches([' ', '\t', '\u{feff}']);
    head.is_empty() || head.ends_with('\n')
}

/// What is private, and remarks about it.
fn spans(text: &str, tags: &[Tag]) -> (Vec<Range<usize>>, Vec<PrivateRemark>) {
    let (mut spans, mut remarks) = (Vec::new(), Vec::new());
    let remark = |tag: &Tag, what| PrivateRemark { at: tag.at.start, what };
    let mut rest = tags;
    while let [tag, after @ ..] = rest {
        rest = after;
        if tag.closes {
            remarks.push(remark(tag, "closing tag without opening"));
            continue;
        }
        if text.get(tag.at.clone()) != Some("<private>") {
            remarks.push(remark(tag, "inexact opening tag"));
        }
        let start = tag.at.start;
        if tag.starts_line {
            match outer_close(after, &mut remarks) {
                Some(close) => {
                    spans.push(start..after.get(close).map_or(text.len(), |tag| tag.at.end));
                    rest = after.get(close + 1..).unwrap_or_default();
                }
                None => {
                    remarks.push(remark(tag, "unclosed private block"));
                    spans.push(start..text.len());
                    rest = &[];
                }
            }
            continue;
        }
        match after {
            [close, others @ ..] if close.closes => {
                remarks.push(remark(tag, "inline private span"));
                spans.push(start..close.at.end);
                rest = others;
            }
            // The next tag decides for itself.
            [next, ..] if !next.starts_line => {}
            _ => remarks.push(remark(tag, "mention or unclosed inline tag")),
        }
    }
    (spans, remarks)
}

/// Which of `tags` closes a block that is one deep.
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

/// The text without the spans, and without the lines that held nothing else.
fn without(text: &str, spans: &[Range<usize>]) -> String {
    let mut public = String::with_capacity(text.len());
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
        public.push_str(text.get(kept_to..from).unwrap_or_default());
        kept_to = kept_to.max(to);
    }
    public.push_str(text.get(kept_to..).unwrap_or_default());
    public
}

/// Whether the file's front matter says `private: true` (or yes, or on): quoted or not, in any
/// case, indented, commented; a block that never ends counts, and of several the private one
/// counts.
pub fn is_private_file(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text.split(['\n', '\r']).skip_while(|line| line.trim().is_empty());
    if !lines.next().is_some_and(|line| is_fence(line, "---")) {
        return false;
    }
    lines.take_while(|line| !is_fence(line, "---") && !is_fence(line, "...")).any(says_private)
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
        assert_eq!(strip_private(text).0, public);
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
    fn turkish_capitals_open_a_block() {
        check("a\n<PR\u{130}VATE>\nx\n</PR\u{130}VATE>\nb\n", "a\nb\n");
    }

    #[test]
    fn many_tags_take_linear_time() {
        for text in ["<private>", "<private ", "x <private>", "</private>", "<private>\n"] {
            let many = text.repeat(200_000);
            assert!(strip_private(&many).0.len() <= many.len());
        }
    }

    #[test]
    fn front_matter_may_say_private_in_many_ways() {
        for yes in [
            "---\nprivate: true # note\n---\n",
            "\u{feff}---\r\nprivate: \"Yes\"\r\n---\r\n",
            "\n---\ntitle: x\n  private : on\n",
            "---\nprivate:true\n",
            "---\nprivate: true\nprivate: false\n---\n",
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
    fn a_remark_has_its_place() {
        let (spans, remarks) = private_spans("a\n<private>\n<private>\nb\n");
        assert_eq!(spans.first(), Some(&(2..24)));
        let at: Vec<(usize, &str)> =
            remarks.iter().map(|remark| (remark.at, remark.what)).collect();
        assert_eq!(at, [(12, "nested private block"), (2, "unclosed private block")]);
    }

    proptest! {
        #[test]
        fn stripping_only_removes(parts in prop::collection::vec(
            prop::sample::select(vec!["<private>", "</private>", "a", "\n", " ", "<PRIVATE x>", "ş"]), 0..30))
        {
            let text = parts.concat();
            let (public, _) = strip_private(&text);
            prop_assert!(public.len() <= text.len());
        }
    }
}
