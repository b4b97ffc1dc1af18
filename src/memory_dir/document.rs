//! A parsed file: a list of blocks that tile its text, so that printing it gives the same bytes.
//! Nothing is discarded; anything not understood is a paragraph.

use super::kind::Kind;
use super::line::{self, Line, LineShape};
use super::tag::Tag;
use crate::domain::{Finding, Severity};
use crate::privacy::{UNCLOSED_PRIVATE, is_private_file, private_spans};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Part {
    FrontMatter,
    Title,
    /// A second-level heading with its tags; starts a section.
    Section,
    Heading,
    /// A line such as `**Status:** Accepted` before the first section of a record.
    Meta,
    Entry(Shape),
    TableHead,
    Comment,
    StrayTag,
    Private,
    Marker,
    Rule,
    Footer,
    Blank,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shape {
    Bullet,
    Task { done: bool },
    Row,
    Paragraph,
    Code,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Block {
    pub part: Part,
    pub span: Range<usize>,
    /// Start of its tags, in bytes; the end of the block if it has none.
    pub tags_at: usize,
    pub line: u32,
    /// Block that starts its section; `None` before the first.
    pub section: Option<usize>,
}

/// A parsed file.
#[derive(Clone, Debug)]
pub struct Document<'t> {
    pub(super) kind: Kind,
    pub(super) text: &'t str,
    /// Blocks in order; each ends where the next begins.
    pub blocks: Vec<Block>,
    /// Byte ranges of private text.
    pub(super) private: Vec<Range<usize>>,
    /// Index of the unclosed fence or private block; text after it becomes part of it.
    pub(super) open: Option<usize>,
}

impl<'t> Document<'t> {
    /// Parses a file. Any text parses; oddities are findings.
    pub fn parse(kind: Kind, text: &'t str) -> (Document<'t>, Vec<Finding>) {
        let (private, remarks) = private_spans(text);
        let (blocks, findings) = blocks(kind, text, &private);
        let code = findings.iter().any(|it| it.rule == UNCLOSED_FENCE);
        let code = code.then(|| text.len().saturating_sub(1));
        let block = remarks.iter().filter(|remark| remark.what == UNCLOSED_PRIVATE);
        let open = block.map(|remark| remark.at).chain(code).min();
        let open = open.map(|at| blocks.partition_point(|block| block.span.end <= at));
        (Document { kind, text, blocks, private, open }, findings)
    }

    /// Concatenates the blocks.
    pub fn print(&self) -> String {
        self.blocks.iter().map(|block| self.raw(block)).collect()
    }

    /// Entries in order.
    pub fn entries(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| matches!(block.part, Part::Entry(_)))
    }

    /// True if the front matter makes the whole file private.
    pub fn is_private(&self) -> bool {
        is_private_file(self.text)
    }

    /// The bytes of a block.
    pub fn raw(&self, block: &Block) -> &'t str {
        self.text.get(block.span.clone()).unwrap_or_default()
    }

    /// Lines of a block without its tags.
    pub fn body(&self, block: &Block) -> &'t str {
        self.text.get(block.span.start..block.tags_at).unwrap_or_default()
    }

    /// Lines of a block without tags and private text; empty for a private block.
    pub fn public(&self, block: &Block) -> Cow<'t, str> {
        if block.part == Part::Private {
            return Cow::Borrowed("");
        }
        without(self.text, block.span.start..block.tags_at, &self.private)
    }

    /// True if part of the block is private.
    pub fn holds_private(&self, block: &Block) -> bool {
        self.private_in(block).next().is_some()
    }

    pub(super) fn private_in(&self, block: &Block) -> impl Iterator<Item = &Range<usize>> {
        overlapping(&self.private, &block.span)
    }

    /// Public tags of a block.
    pub fn tags(&self, block: &Block) -> impl Iterator<Item = Tag<'t>> {
        let tags = self.text.get(block.tags_at..block.span.end).unwrap_or_default();
        tags.lines().filter_map(Tag::parse)
    }

    /// Heading text before its first private part.
    pub fn heading_words(&self, block: &Block) -> &'t str {
        let private = self.private_in(block).next();
        let end = private.map_or(block.tags_at, |range| range.start.min(block.tags_at));
        line::heading_words(self.text.get(block.span.start..end).unwrap_or_default())
    }

    /// Heading of the block's section; empty before the first.
    pub fn section(&self, block: &Block) -> &'t str {
        let heading = block.section.and_then(|at| self.blocks.get(at));
        heading.map_or("", |heading| self.heading_words(heading))
    }

    pub(super) fn has_section(&self, name: &str) -> bool {
        let mut headings = self.blocks.iter().filter(|it| it.part == Part::Section);
        headings.any(|it| self.heading_words(it) == name)
    }

    /// Heading of the file; empty if it has none.
    pub fn title(&self) -> &'t str {
        self.first(Part::Title).map_or("", |title| self.heading_words(title))
    }

    /// First line that would be the footer if it were at the end.
    pub(super) fn misplaced_footer(&self) -> Option<u32> {
        let head = self.kind.footer()?;
        let is_it = |line: &str| {
            let line = line.trim_matches(|it: char| it.is_whitespace() || it == '\u{feff}');
            line.strip_prefix('*').is_some_and(|it| it.starts_with(head) && it.ends_with('*'))
        };
        let mut lines = (1..).zip(self.text.split('\n'));
        lines.find(|(_, line)| is_it(line)).map(|(at, _)| at)
    }

    pub(crate) fn first(&self, part: Part) -> Option<&Block> {
        self.blocks.iter().find(|block| block.part == part)
    }

    /// Line ending of the file's first line.
    pub fn line_end(&self) -> &'static str {
        let first = memchr::memchr(b'\n', self.text.as_bytes());
        let before = first.and_then(|at| at.checked_sub(1));
        let is_crlf = before.is_some_and(|at| self.text.as_bytes().get(at) == Some(&b'\r'));
        if is_crlf { "\r\n" } else { "\n" }
    }
}

/// Private ranges that overlap `span`.
fn overlapping<'p>(
    private: &'p [Range<usize>],
    span: &Range<usize>,
) -> impl Iterator<Item = &'p Range<usize>> {
    let first = private.partition_point(|range| range.end <= span.start);
    let end = span.end;
    private.get(first..).unwrap_or_default().iter().take_while(move |range| range.start < end)
}

/// Text of `span` without the private ranges.
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

/// True for each line that is entirely private or inside a private block of several lines.
pub(super) fn private_lines(
    text: &str,
    lines: &[line::Line],
    private: &[Range<usize>],
) -> Vec<bool> {
    if private.is_empty() {
        return Vec::new();
    }
    let hidden = |line: &line::Line| {
        let mut ranges = overlapping(private, line).peekable();
        if ranges.peek().is_none() {
            return false;
        }
        let end = line.start + line::bare(text.get(line.clone()).unwrap_or_default()).len();
        let is_blank = |text: &str| text.chars().all(|it| it.is_whitespace() || it == '\u{feff}');
        ranges.any(|range| range.start < line.start || end < range.end)
            || is_blank(&without(text, line.clone(), private))
    };
    lines.iter().map(hidden).collect()
}

/// Rule of an unclosed code block.
pub(super) const UNCLOSED_FENCE: &str = "unclosed-fence";

/// Cuts `text` into blocks that tile it.
pub(super) fn blocks(
    kind: Kind,
    text: &str,
    private: &[Range<usize>],
) -> (Vec<Block>, Vec<Finding>) {
    let lines = line::lines(text);
    let hidden = private_lines(text, &lines, private);
    let blocks = Vec::with_capacity(lines.len() / 2);
    let mut parser = Parser {
        kind,
        text,
        lines,
        hidden,
        next: 0,
        blocks,
        section: None,
        is_titled: false,
        is_spaced: OnceCell::new(),
        findings: Vec::new(),
    };
    parser.front_matter();
    while parser.next < parser.lines.len() {
        parser.block();
    }
    parser.footer();
    (parser.blocks, parser.findings)
}

pub(super) fn begins_front_matter(text: &str) -> bool {
    let mut lines = text.lines().map(|line| line.trim_start_matches('\u{feff}').trim_end());
    lines.find(|line| line::shape(line) != LineShape::Blank) == Some("---")
}

struct Parser<'t> {
    kind: Kind,
    text: &'t str,
    lines: Vec<Line>,
    hidden: Vec<bool>,
    next: usize,
    blocks: Vec<Block>,
    section: Option<usize>,
    is_titled: bool,
    is_spaced: OnceCell<bool>,
    findings: Vec<Finding>,
}

impl<'t> Parser<'t> {
    /// The line without its ending; the first one without its byte order mark.
    fn line(&self, at: usize) -> Option<&'t str> {
        let line = self.lines.get(at)?;
        let bare = self.text.get(line.clone()).map(line::bare)?;
        Some(bare.strip_prefix('\u{feff}').filter(|_| at == 0).unwrap_or(bare))
    }

    fn is_hidden(&self, at: usize) -> bool {
        self.hidden.get(at).copied().unwrap_or_default()
    }

    /// The line; `None` at the end and for a private line. Only front matter may begin or end in
    /// private text, so no other block ends inside it.
    fn shown(&self, at: usize) -> Option<&'t str> {
        if self.is_hidden(at) { None } else { self.line(at) }
    }

    fn shape(&self, at: usize) -> Option<LineShape> {
        self.shown(at).map(line::shape)
    }

    fn start_of(&self, at: usize) -> usize {
        self.lines.get(at).map_or(self.text.len(), |line| line.start)
    }

    /// Ends a block before line `tags`, consumes the tags from there, and continues after them.
    fn push(&mut self, part: Part, tags: usize) {
        let is = |at: usize, shape| self.shape(at) == Some(shape);
        let run = |at: usize| (at..).find(|at| !is(*at, LineShape::Tag)).unwrap_or(at);
        let from = (tags..).find(|at| !is(*at, LineShape::Blank)).unwrap_or(tags);
        let mut below = (from..run(from)).filter_map(|at| Tag::parse(self.line(at)?));
        let is_entry = matches!(part, Part::Title | Part::Entry(_));
        let is_apart = is_entry && from > tags && below.any(|tag| tag.ours().is_some());
        let is_apart = is_apart && self.is_spaced();
        let end = run(if is_apart { from } else { tags });
        self.push_bare(part, tags, end);
    }

    /// True if at least half of the tags have an empty line above, as formatters put it between an entry and its tags.
    /// Otherwise such tags are left over from an entry that a person removed.
    fn is_spaced(&self) -> bool {
        *self.is_spaced.get_or_init(|| {
            let tag = |at: usize| self.shown(at).and_then(Tag::parse);
            let is_ours = |at: &usize| tag(*at).is_some_and(|it| it.ours().is_some());
            let above = (1..self.lines.len()).filter(is_ours).map(|at| self.shape(at - 1));
            let above: Vec<_> = above.filter(|it| *it != Some(LineShape::Tag)).collect();
            let apart = above.iter().filter(|it| **it == Some(LineShape::Blank)).count();
            above.len() <= 2 * apart
        })
    }

    fn push_bare(&mut self, part: Part, tags: usize, end: usize) {
        let span = self.start_of(self.next)..self.start_of(end);
        let line = u32::try_from(self.next + 1).unwrap_or(u32::MAX);
        if part == Part::Section {
            self.section = Some(self.blocks.len());
        }
        let tags_at = self.start_of(tags);
        self.blocks.push(Block { part, span, tags_at, line, section: self.section });
        self.next = end;
    }

    fn push_plain(&mut self, part: Part, end: usize) {
        self.push_bare(part, end, end);
    }

    fn finding(&mut self, rule: &'static str, detail: &str) {
        let line = u32::try_from(self.next + 1).unwrap_or(u32::MAX);
        self.findings.push(Finding::new(Severity::Warning, rule, line, detail));
    }

    /// Front matter ends at its fence even in a private block, because it decides whether the file
    /// is private. The rest of that private block belongs to the front matter.
    fn front_matter(&mut self) {
        let is_blank = |at: &usize| self.shape(*at) == Some(LineShape::Blank);
        let first = (0..self.lines.len()).find(|at| !is_blank(at)).unwrap_or_default();
        let is_fence = |at: usize, fence: &str| {
            let line = self.line(at).unwrap_or_default();
            line.trim_start_matches('\u{feff}').trim_end() == fence
        };
        if !is_fence(first, "---") {
            return;
        }
        let mut after = first + 1..self.lines.len();
        match after.find(|at| is_fence(*at, "---") || is_fence(*at, "...")) {
            Some(last) => {
                let is_in = |at: &usize| self.is_hidden(last) && self.is_hidden(*at);
                let end = (last + 1..self.lines.len()).find(|at| !is_in(at));
                self.push_plain(Part::FrontMatter, end.unwrap_or(self.lines.len()));
            }
            None => self.finding("unclosed-front-matter", "expected a closing line ---"),
        }
    }

    fn block(&mut self) {
        let at = self.next;
        let Some(shape) = self.shape(at) else {
            let mut rest = at..self.lines.len();
            let shown = rest.find(|at| !self.is_hidden(*at));
            return self.push_plain(Part::Private, shown.unwrap_or(self.lines.len()).max(at + 1));
        };
        match shape {
            LineShape::Blank => {
                let end = self.run(at, |shape| shape == LineShape::Blank);
                self.push_plain(Part::Blank, end);
            }
            LineShape::Heading(level) => {
                let part = self.heading(level);
                self.push(part, at + 1);
            }
            LineShape::Item(done) => {
                let item = done.map_or(Shape::Bullet, |done| Shape::Task { done });
                self.push(Part::Entry(item), self.item_end(at));
            }
            LineShape::Tag => self.push_plain(Part::StrayTag, at + 1),
            LineShape::Comment => self.comment(),
            LineShape::Fence => self.code(),
            LineShape::Row => self.row(),
            LineShape::Rule => self.push_plain(Part::Rule, at + 1),
            LineShape::Marker => self.push_plain(Part::Marker, at + 1),
            LineShape::Indented | LineShape::Text if self.is_meta(at) => {
                self.push_plain(Part::Meta, at + 1);
            }
            LineShape::Indented | LineShape::Text => {
                let ends = |at: usize| {
                    !matches!(self.shape(at), Some(LineShape::Indented | LineShape::Text))
                };
                let end = (at + 1..self.lines.len()).find(|at| ends(*at) || self.is_meta(*at));
                self.push(Part::Entry(Shape::Paragraph), end.unwrap_or(self.lines.len()));
            }
        }
    }

    fn run(&self, at: usize, takes: impl Fn(LineShape) -> bool) -> usize {
        let ends = |at: &usize| !self.shape(*at).is_some_and(&takes);
        (at + 1..self.lines.len()).find(ends).unwrap_or(self.lines.len())
    }

    fn heading(&mut self, level: usize) -> Part {
        match level {
            1 if self.section.is_none() && !std::mem::replace(&mut self.is_titled, true) => {
                Part::Title
            }
            2 => Part::Section,
            _ => Part::Heading,
        }
    }

    fn is_meta(&self, at: usize) -> bool {
        let line = self.line(at).unwrap_or_default().trim_start();
        self.kind == Kind::Decision && self.section.is_none() && line::is_meta(line)
    }

    fn item_end(&self, at: usize) -> usize {
        let mut end = at + 1;
        loop {
            let after = match self.shape(end) {
                Some(LineShape::Indented | LineShape::Text) => end,
                Some(LineShape::Blank) => self.run(end, |shape| shape == LineShape::Blank),
                Some(_) | None => return end,
            };
            if after > end && self.shape(after) != Some(LineShape::Indented) {
                return end;
            }
            end = after + 1;
        }
    }

    /// Parses a comment. An unclosed one is a paragraph, so that it hides no entries below it.
    fn comment(&mut self) {
        let at = self.next;
        let ends = |at: usize| self.shown(at).is_some_and(|line| line.contains("-->"));
        let begins =
            |at: usize| matches!(self.shape(at), Some(LineShape::Comment | LineShape::Tag));
        let last = match ends(at) {
            true => Some(at),
            false => (at + 1..self.lines.len()).find(|at| ends(*at) || begins(*at)),
        };
        match last.filter(|last| ends(*last) && (*last == at || !begins(*last))) {
            Some(last) => self.push_plain(Part::Comment, last + 1),
            None => {
                self.finding("unclosed-comment", "expected --> after <!--");
                self.push(Part::Entry(Shape::Paragraph), at + 1);
            }
        }
    }

    fn code(&mut self) {
        let at = self.next;
        let opened = self.line(at).and_then(|line| line::fence(line.trim()));
        let closes = |at: &usize| {
            let line = self.shown(*at).unwrap_or_default();
            opened.is_some_and(|opened| line::closes(line, opened))
        };
        let last = (at + 1..self.lines.len()).find(closes);
        if last.is_none() {
            self.finding(UNCLOSED_FENCE, "expected a closing code fence");
        }
        self.push(Part::Entry(Shape::Code), last.map_or(self.lines.len(), |last| last + 1));
    }

    fn row(&mut self) {
        let at = self.next;
        let is_rule = |at: usize| {
            self.shape(at) == Some(LineShape::Row) && self.line(at).is_some_and(line::is_table_rule)
        };
        if is_rule(at + 1) {
            return self.push_plain(Part::TableHead, at + 2);
        }
        if is_rule(at) {
            return self.push_plain(Part::TableHead, at + 1);
        }
        self.push(Part::Entry(Shape::Row), at + 1);
        // A comment on its own line would end the table, so a row's tag follows its last cell.
        let Some(block) = self.blocks.last_mut() else { return };
        let row = self.text.get(block.span.start..block.tags_at).map(line::bare);
        let row = row.unwrap_or_default();
        if let Some(from) = row.rfind("<!--").filter(|from| Tag::parse(&row[*from..]).is_some()) {
            block.tags_at = block.span.start + from;
        }
    }

    /// Joins the last line `*…*` with the rule `---` above it to a footer.
    fn footer(&mut self) {
        let blocks = self.blocks.iter().enumerate().rev();
        let mut shown = blocks.filter(|(_, block)| block.part != Part::Blank);
        let (Some((last, line)), Some((rule, above))) = (shown.next(), shown.next()) else {
            return;
        };
        let text = self.text.get(line.span.clone()).unwrap_or_default().trim();
        let inner = text.strip_prefix('*').and_then(|rest| rest.strip_suffix('*'));
        let is_line = inner.is_some_and(|it| !it.is_empty() && !it.contains(['*', '\n']))
            && line.part == Part::Entry(Shape::Paragraph);
        if is_line && above.part == Part::Rule {
            let end = line.span.end;
            self.blocks.drain(rule + 1..=last);
            let block = &mut self.blocks[rule];
            (block.part, block.span.end, block.tags_at) = (Part::Footer, end, end);
        }
    }
}
