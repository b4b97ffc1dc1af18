//! `<private>` blocks: what an author marks as private goes, and in doubt more of it goes rather
//! than less.

use super::letter::is_space;
use super::places::{Places, outermost};
use super::tag::{Stand, Tag, tags};
use std::ops::Range;

/// How often a text is looked at. The first look finds nearly everything, the second that there is no more.
pub(super) const PASSES_MAX: usize = 8;
/// What is odd about a block that ends with the text.
pub const UNCLOSED_PRIVATE: &str = "unclosed private block";
/// What is odd about an opening tag that hides nothing: somebody speaks about it, or forgot its end.
pub const PRIVATE_MENTION: &str = "mention or unclosed inline tag";
const STRAY: &str = "closing tag without opening";

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
/// - So does one that only marks of a list, a task, a quote, a heading or a numbered line stand before, and
///   one that ends its line, when no closing tag comes before the next opening.
/// - Any other opening tag opens a span only when a closing tag comes before the next opening; otherwise
///   somebody speaks about the tag, and it stays, with a remark.
/// - Lines that held nothing else vanish; text beside the tags stays. Fences are not respected: a
///   stray fence before a block would let it out.
/// - What stands around a block may make a tag, or a pair of tags, once the block is gone. So the text
///   is looked at again until nothing more is found; where that takes too long the rest is private.
pub fn strip_private(text: &str) -> (String, Vec<&'static str>) {
    let found = Found::of(text);
    let mut remarks: Vec<&'static str> = found.remarks.iter().map(|remark| remark.what).collect();
    remarks.sort_unstable();
    remarks.dedup();
    (found.left, remarks)
}

/// Where private text stands, by the rules of [`strip_private`], tags included: bytes from, bytes to. In
/// order, none overlaps another. And what was odd about the tags, each with its place.
pub fn private_spans(text: &str) -> (Vec<Range<usize>>, Vec<PrivateRemark>) {
    let found = Found::of(text);
    (found.spans, found.remarks)
}

/// What [`strip_counted`] found.
pub(super) struct Stripped {
    /// The text without its private spans and how many there were; none if there were none.
    pub(super) left: Option<(String, u64)>,
    /// How many opening tags hide nothing.
    pub(super) mentions: u64,
}

/// Removes private blocks and counts them.
pub(super) fn strip_counted(text: &str) -> Stripped {
    let found = Found::of(text);
    let mentions = found.remarks.iter().filter(|it| it.what == PRIVATE_MENTION).count() as u64;
    let count = found.spans.len() as u64;
    Stripped { left: (0 < count).then_some((found.left, count)), mentions }
}

/// What was found in a text.
struct Found {
    spans: Vec<Range<usize>>,
    /// The spans with the lines that held nothing else.
    cuts: Vec<Range<usize>>,
    remarks: Vec<PrivateRemark>,
    /// The text without `cuts`.
    left: String,
}

impl Found {
    fn of(text: &str) -> Found {
        let tags = tags(text);
        let (spans, remarks) = spans(text, &tags);
        let cuts = cuts(text, &spans);
        let left = without(text, &cuts);
        let mut found = Found { spans, cuts, remarks, left };
        if found.spans.is_empty() {
            return found;
        }
        for _ in 1..PASSES_MAX {
            if !found.look_again(text) {
                return found;
            }
        }
        if let Some(head) = before_first_tag(&found.left) {
            let rest = head.len()..found.left.len();
            let remark = PrivateRemark { at: rest.start, what: UNCLOSED_PRIVATE };
            let cuts = vec![rest.clone()];
            found.add(text, vec![rest], &cuts, vec![remark]);
        }
        found
    }

    /// Looks for what is private in what is left, and says whether there was something.
    fn look_again(&mut self, text: &str) -> bool {
        let (spans, remarks) = spans(&self.left, &tags(&self.left));
        if spans.is_empty() {
            return false;
        }
        let cuts = cuts(&self.left, &spans);
        self.add(text, spans, &cuts, remarks);
        true
    }

    /// Adds what was found in what is left of `text`.
    fn add(
        &mut self,
        text: &str,
        spans: Vec<Range<usize>>,
        cuts: &[Range<usize>],
        remarks: Vec<PrivateRemark>,
    ) {
        let places = Places::of(&self.cuts, self.left.len());
        let known = std::mem::take(&mut self.spans);
        self.spans = outermost(known.into_iter().chain(spans.iter().map(|it| places.range(it))));
        let known = std::mem::take(&mut self.cuts);
        self.cuts = outermost(known.into_iter().chain(cuts.iter().map(|it| places.range(it))));
        let moved = |it: PrivateRemark| PrivateRemark { at: places.place(it.at), ..it };
        self.remarks.extend(remarks.into_iter().map(moved));
        // What looked alone before has found its other half.
        let spans = &self.spans;
        let is_over = |it: &PrivateRemark| {
            let before = spans.partition_point(|span| span.end <= it.at);
            let inside = spans.get(before).is_some_and(|span| span.start <= it.at);
            inside && matches!(it.what, STRAY | PRIVATE_MENTION)
        };
        self.remarks.retain(|remark| !is_over(remark));
        self.remarks.sort_unstable_by_key(|remark| (remark.at, remark.what));
        self.remarks.dedup();
        self.left = without(text, &self.cuts);
    }
}

/// The text up to its first tag; none if it has no opening tag.
pub(super) fn before_first_tag(text: &str) -> Option<&str> {
    let tags = tags(text);
    let opens = tags.iter().any(|tag| !tag.closes);
    let first = tags.first().filter(|_| opens)?;
    text.get(..first.at.start)
}

/// What is private, and remarks about it.
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
            (Stand::Marked | Stand::Within, [close, others @ ..]) if close.closes => {
                remarks.push(remark(tag, "inline private span"));
                spans.push(start..close.at.end);
                rest = others;
            }
            (Stand::Alone | Stand::Marked, _) => {
                let close = outer_close(after, &mut remarks);
                if close.is_none() {
                    remarks.push(remark(tag, UNCLOSED_PRIVATE));
                }
                let end = close.and_then(|close| after.get(close));
                spans.push(start..end.map_or(text.len(), |tag| tag.at.end));
                rest = close.and_then(|close| after.get(close + 1..)).unwrap_or_default();
            }
            (Stand::Within, _) => remarks.push(remark(tag, PRIVATE_MENTION)),
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

/// The spans with the lines that hold nothing else, as ranges that share nothing.
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

fn without(text: &str, cuts: &[Range<usize>]) -> String {
    let mut public = String::with_capacity(text.len());
    let mut kept_to = 0;
    for cut in cuts {
        public.push_str(text.get(kept_to..cut.start).unwrap_or_default());
        kept_to = cut.end;
    }
    public.push_str(text.get(kept_to..).unwrap_or_default());
    public
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
    fn a_tag_behind_marks_of_a_line_opens_a_block() {
        for mark in [
            "- ",
            "* ",
            "+ ",
            "1. ",
            "12) ",
            "a. ",
            "> ",
            "> > - ",
            "- [ ] ",
            "- [x] ",
            "## ",
            "| ",
            "- **",
            "\u{2022} ",
            "- \u{a0}",
            "   12\u{2192}",
            "    12\t",
            "\u{feff}- ",
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
        // Once the span is gone, what was a mention has an end.
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
        assert!(!strip_private(&nested).0.contains('x'));
    }

    #[test]
    fn turkish_capitals_open_a_block() {
        check("a\n<PR\u{130}VATE>\nx\n</PR\u{130}VATE>\nb\n", "a\nb\n");
    }

    #[test]
    fn many_tags_take_linear_time() {
        for text in [
            "<private>",
            "<private ",
            "x <private>",
            "</private>",
            "<private>\n",
            "- ",
            "- <private>x ",
        ] {
            let many = text.repeat(200_000);
            assert!(strip_private(&many).0.len() <= many.len());
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
            let (public, _) = strip_private(&text);
            prop_assert!(public.len() <= text.len());
            prop_assert_eq!(&strip_private(&public).0, &public);
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
            prop_assert_eq!(words(&public), words(&strip_private(&text).0));
            prop_assert!(remarks.iter().all(|it| text[it.at..].starts_with('<')), "{:?}", remarks);
        }
    }

    fn parts() -> impl Strategy<Value = Vec<&'static str>> {
        let parts = [
            "<private>",
            "</private>",
            "a",
            "\n",
            " ",
            "<PRIVATE x>",
            "\u{15f}",
            "<pri",
            "vate>",
            "\r\n",
            "\u{feff}",
            "- ",
            "> ",
            "1. ",
            "`",
        ];
        prop::collection::vec(prop::sample::select(parts.to_vec()), 0..30)
    }
}
