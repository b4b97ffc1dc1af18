//! A file as it stands: a row of blocks that together are its text, so that printing what was parsed
//! gives the same bytes. Nothing is ever thrown away; what is not understood is a paragraph.

use super::kind::Kind;
use super::line;
use super::parse;
use super::tag::Tag;
use crate::domain::Finding;
use crate::privacy::{UNCLOSED_PRIVATE, is_private_file, private_spans};
use std::borrow::Cow;
use std::ops::Range;

/// What a block is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Part {
    /// From the first `---` to the next.
    FrontMatter,
    /// The first heading of the first level, with its tags.
    Title,
    /// A heading of the second level, with its tags; it begins a section.
    Section,
    /// Another heading, with its tags.
    Heading,
    /// A line such as `**Status:** Accepted` before the first section of a record.
    Meta,
    /// Something that was noted, with its tags.
    Entry(Shape),
    /// Heading and rule of a table.
    TableHead,
    /// A comment that is no tag.
    Comment,
    /// A tag that nothing stands above.
    StrayTag,
    /// Lines that an author marked as private.
    Private,
    /// A line of git around what it could not merge.
    Marker,
    /// A line across the page.
    Rule,
    /// The last line, with the rule above it.
    Footer,
    /// Empty lines.
    Blank,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shape {
    /// A list item.
    Bullet,
    /// A list item with a box that is empty or ticked.
    Task {
        /// Whether it is ticked.
        done: bool,
    },
    /// A row of a table.
    Row,
    /// Lines of text.
    Paragraph,
    /// A block of code between fences.
    Code,
}

/// A piece of a document.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Block {
    /// What it is.
    pub part: Part,
    /// Its bytes, line ends and tags included.
    pub span: Range<usize>,
    /// The byte at which its tags begin; the end where it has none.
    pub tags_at: usize,
    /// Its first line, from 1.
    pub line: u32,
    /// The block that begins its section; none before the first.
    pub section: Option<usize>,
}

/// A parsed file.
#[derive(Clone, Debug)]
pub struct Document<'t> {
    kind: Kind,
    text: &'t str,
    blocks: Vec<Block>,
    private: Vec<Range<usize>>,
    open: Option<usize>,
}

impl<'t> Document<'t> {
    /// Parses a file. Takes any text; what is odd about it is a finding.
    pub fn parse(kind: Kind, text: &'t str) -> (Document<'t>, Vec<Finding>) {
        let (private, remarks) = private_spans(text);
        let (blocks, findings) = parse::blocks(kind, text, &private);
        let code = findings.iter().any(|it| it.rule == parse::UNCLOSED_FENCE);
        let code = code.then(|| text.len().saturating_sub(1));
        let block = remarks.iter().filter(|remark| remark.what == UNCLOSED_PRIVATE);
        let open = block.map(|remark| remark.at).chain(code).min();
        let open = open.map(|at| blocks.partition_point(|block| block.span.end <= at));
        (Document { kind, text, blocks, private, open }, findings)
    }

    /// The blocks, one after the other.
    pub fn print(&self) -> String {
        self.blocks.iter().map(|block| self.raw(block)).collect()
    }

    /// What the file is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The text that was parsed.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Every block, in order. The end of each is the beginning of the next.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Every entry, in order.
    pub fn entries(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| matches!(block.part, Part::Entry(_)))
    }

    /// Whether the front matter makes the whole file private.
    pub fn is_private(&self) -> bool {
        is_private_file(self.text)
    }

    /// The bytes of a block.
    pub fn raw(&self, block: &Block) -> &'t str {
        self.text.get(block.span.clone()).unwrap_or_default()
    }

    /// The lines of a block without its tags.
    pub fn body(&self, block: &Block) -> &'t str {
        self.text.get(block.span.start..block.tags_at).unwrap_or_default()
    }

    /// The lines of a block without its tags and without what is private. Of a block that is private
    /// nothing is left.
    pub fn public(&self, block: &Block) -> Cow<'t, str> {
        if block.part == Part::Private {
            return Cow::Borrowed("");
        }
        without(self.text, block.span.start..block.tags_at, &self.private)
    }

    /// Whether part of the block is private.
    pub fn holds_private(&self, block: &Block) -> bool {
        self.private_in(block).next().is_some()
    }

    /// Where private text stands in the block; all of it does, since no block ends within it.
    pub(super) fn private_in(&self, block: &Block) -> impl Iterator<Item = &Range<usize>> {
        overlapping(&self.private, &block.span)
    }

    /// Where private text stands, in bytes.
    pub fn private(&self) -> &[Range<usize>] {
        &self.private
    }

    /// The tags of a block that are not private.
    pub fn tags(&self, block: &Block) -> impl Iterator<Item = Tag<'t>> {
        let tags = self.text.get(block.tags_at..block.span.end).unwrap_or_default();
        tags.lines().filter_map(Tag::parse)
    }

    /// The words of a heading, up to what is private in it.
    pub fn heading_words(&self, block: &Block) -> &'t str {
        let private = self.private_in(block).next();
        let end = private.map_or(block.tags_at, |range| range.start.min(block.tags_at));
        line::heading_words(self.text.get(block.span.start..end).unwrap_or_default())
    }

    /// The words of the heading that begins the block's section; empty before the first.
    pub fn section(&self, block: &Block) -> &'t str {
        let heading = block.section.and_then(|at| self.blocks.get(at));
        heading.map_or("", |heading| self.heading_words(heading))
    }

    /// The words of the heading of the file; empty if it has none.
    pub fn title(&self) -> &'t str {
        let title = self.blocks.iter().find(|block| block.part == Part::Title);
        title.map_or("", |title| self.heading_words(title))
    }

    /// The block that is a fence or a private block without an end: what is written behind it becomes
    /// part of it.
    pub(super) fn open(&self) -> Option<usize> {
        self.open
    }

    /// The line end that the file uses: that of its first line.
    pub fn line_end(&self) -> &'static str {
        let first = memchr::memchr(b'\n', self.text.as_bytes());
        let before = first.and_then(|at| at.checked_sub(1));
        let is_crlf = before.is_some_and(|at| self.text.as_bytes().get(at) == Some(&b'\r'));
        if is_crlf { "\r\n" } else { "\n" }
    }
}

/// The private ranges that share a byte with `span`.
fn overlapping<'p>(
    private: &'p [Range<usize>],
    span: &Range<usize>,
) -> impl Iterator<Item = &'p Range<usize>> {
    let first = private.partition_point(|range| range.end <= span.start);
    let end = span.end;
    private.get(first..).unwrap_or_default().iter().take_while(move |range| range.start < end)
}

/// The text of `span` without the private ranges.
pub(super) fn without<'t>(
    text: &'t str,
    span: Range<usize>,
    private: &[Range<usize>],
) -> Cow<'t, str> {
    let mut hidden = overlapping(private, &span).peekable();
    if hidden.peek().is_none() {
        return Cow::Borrowed(text.get(span.clone()).unwrap_or_default());
    }
    let (mut public, mut from) = (String::new(), span.start);
    for range in hidden {
        public.push_str(text.get(from..range.start.max(from)).unwrap_or_default());
        from = range.end.min(span.end).max(from);
    }
    public.push_str(text.get(from..span.end).unwrap_or_default());
    Cow::Owned(public)
}

/// For each line whether all of it is private, or it stands in a private block of more lines.
pub(super) fn private_lines(
    text: &str,
    lines: &[line::Line],
    private: &[Range<usize>],
) -> Vec<bool> {
    if private.is_empty() {
        return Vec::new();
    }
    let hidden = |line: &line::Line| {
        let span = line.start..line.end;
        let mut ranges = overlapping(private, &span).peekable();
        if ranges.peek().is_none() {
            return false;
        }
        let crosses = |range: &Range<usize>| {
            let end = line.start + line::bare(text.get(span.clone()).unwrap_or_default()).len();
            range.start < line.start || end < range.end
        };
        let is_blank = |text: &str| text.chars().all(|it| it.is_whitespace() || it == '\u{feff}');
        ranges.any(crosses) || is_blank(&without(text, span.clone(), private))
    };
    lines.iter().map(hidden).collect()
}
