//! Cuts a file into blocks, line by line, from top to bottom.

use super::document::{Block, Part, Shape as Item, private_lines};
use super::kind::Kind;
use super::line::{self, Line, Shape};
use crate::domain::{Finding, Severity};
use std::ops::Range;

/// The rule of a block of code that does not end.
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
        findings: Vec::new(),
    };
    parser.front_matter();
    while parser.next < parser.lines.len() {
        parser.block();
    }
    parser.footer();
    (parser.blocks, parser.findings)
}

/// Whether a text begins with a line that may begin front matter.
pub(super) fn begins_front_matter(text: &str) -> bool {
    let mut lines = text.lines().map(|line| line.trim_start_matches('\u{feff}').trim_end());
    lines.find(|line| line::shape(line) != Shape::Blank) == Some("---")
}

struct Parser<'t> {
    kind: Kind,
    text: &'t str,
    lines: Vec<Line>,
    /// Which lines are private; empty if none is.
    hidden: Vec<bool>,
    /// The line that comes next.
    next: usize,
    blocks: Vec<Block>,
    section: Option<usize>,
    is_titled: bool,
    findings: Vec<Finding>,
}

impl<'t> Parser<'t> {
    /// The line without its end, and the first one without a mark of byte order.
    fn line(&self, at: usize) -> Option<&'t str> {
        let line = self.lines.get(at)?;
        let bare = self.text.get(line.start..line.end).map(line::bare)?;
        Some(bare.strip_prefix('\u{feff}').filter(|_| at == 0).unwrap_or(bare))
    }

    fn is_hidden(&self, at: usize) -> bool {
        self.hidden.get(at).copied().unwrap_or_default()
    }

    /// The line; none at the end and where it is private. What is private begins and ends nothing but front matter, so
    /// that no block ends within it.
    fn shown(&self, at: usize) -> Option<&'t str> {
        if self.is_hidden(at) { None } else { self.line(at) }
    }

    /// What the line looks like; none at the end and where it is private.
    fn shape(&self, at: usize) -> Option<Shape> {
        self.shown(at).map(line::shape)
    }

    fn start_of(&self, at: usize) -> usize {
        self.lines.get(at).map_or(self.text.len(), |line| line.start)
    }

    /// Ends a block before line `tags`, takes the tags that stand there, and goes on behind them.
    fn push(&mut self, part: Part, tags: usize) {
        let mut end = tags;
        while self.shape(end) == Some(Shape::Tag) {
            end += 1;
        }
        self.push_bare(part, tags, end);
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

    /// Adds lines as they are, without tags.
    fn push_plain(&mut self, part: Part, end: usize) {
        self.push_bare(part, end, end);
    }

    fn finding(&mut self, rule: &'static str, detail: &str) {
        let line = u32::try_from(self.next + 1).unwrap_or(u32::MAX);
        self.findings.push(Finding::new(Severity::Warning, rule, line, detail));
    }

    /// Front matter ends where others end it, within a private block too: whether the file is private is read from
    /// there. What of that block stands behind the end belongs to it.
    fn front_matter(&mut self) {
        let is_blank = |at: &usize| self.shape(*at) == Some(Shape::Blank);
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
            None => self.finding("unclosed-front-matter", "expected a line --- that ends it"),
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
            Shape::Blank => {
                let end = self.run(at, |shape| shape == Shape::Blank);
                self.push_plain(Part::Blank, end);
            }
            Shape::Heading(level) => {
                let part = self.heading(level);
                self.push(part, at + 1);
            }
            Shape::Item(done) => {
                let item = done.map_or(Item::Bullet, |done| Item::Task { done });
                self.push(Part::Entry(item), self.item_end(at));
            }
            Shape::Tag => self.push_plain(Part::StrayTag, at + 1),
            Shape::Comment => self.comment(),
            Shape::Fence => self.code(),
            Shape::Row => self.row(),
            Shape::Rule => self.push_plain(Part::Rule, at + 1),
            Shape::Marker => self.push_plain(Part::Marker, at + 1),
            Shape::Indented | Shape::Text if self.is_meta(at) => {
                self.push_plain(Part::Meta, at + 1);
            }
            Shape::Indented | Shape::Text => {
                let ends =
                    |at: usize| !matches!(self.shape(at), Some(Shape::Indented | Shape::Text));
                let end = (at + 1..self.lines.len()).find(|at| ends(*at) || self.is_meta(*at));
                self.push(Part::Entry(Item::Paragraph), end.unwrap_or(self.lines.len()));
            }
        }
    }

    /// The first line from `at` on that is not of a shape.
    fn run(&self, at: usize, takes: impl Fn(Shape) -> bool) -> usize {
        let ends = |at: &usize| !self.shape(*at).is_some_and(&takes);
        (at + 1..self.lines.len()).find(ends).unwrap_or(self.lines.len())
    }

    fn heading(&mut self, level: usize) -> Part {
        match level {
            1 if self.section.is_none() && !self.is_titled => {
                self.is_titled = true;
                Part::Title
            }
            2 => Part::Section,
            _ => Part::Heading,
        }
    }

    /// Whether a line says something about a record: `**Status:** …`, before its first section.
    fn is_meta(&self, at: usize) -> bool {
        let line = self.line(at).unwrap_or_default().trim_start();
        self.kind == Kind::Decision
            && self.section.is_none()
            && line.starts_with("**")
            && line.contains(":**")
    }

    /// Where an item ends: it goes on while lines are indented or carry its text on, also behind an
    /// empty line where what comes then is indented.
    fn item_end(&self, at: usize) -> usize {
        let mut end = at + 1;
        loop {
            match self.shape(end) {
                Some(Shape::Indented | Shape::Text) => end += 1,
                Some(Shape::Blank) => {
                    let after = self.run(end, |shape| shape == Shape::Blank);
                    if self.shape(after) != Some(Shape::Indented) {
                        return end;
                    }
                    end = after + 1;
                }
                Some(
                    Shape::Heading(_)
                    | Shape::Item(_)
                    | Shape::Tag
                    | Shape::Comment
                    | Shape::Fence
                    | Shape::Row
                    | Shape::Rule
                    | Shape::Marker,
                )
                | None => return end,
            }
        }
    }

    /// A comment ends before the next begins, or it is no comment: else what is noted below one that
    /// somebody forgot to close would be lost in it.
    fn comment(&mut self) {
        let at = self.next;
        let ends = |at: usize| self.shown(at).is_some_and(|line| line.contains("-->"));
        let begins = |at: usize| matches!(self.shape(at), Some(Shape::Comment | Shape::Tag));
        let last = match ends(at) {
            true => Some(at),
            false => (at + 1..self.lines.len()).find(|at| ends(*at) || begins(*at)),
        };
        match last.filter(|last| ends(*last) && (*last == at || !begins(*last))) {
            Some(last) => self.push_plain(Part::Comment, last + 1),
            None => {
                self.finding("unclosed-comment", "expected --> behind <!--");
                self.push(Part::Entry(Item::Paragraph), at + 1);
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
        let end = match (at + 1..self.lines.len()).find(closes) {
            Some(last) => last + 1,
            None => {
                self.finding(UNCLOSED_FENCE, "expected a fence that ends this block");
                self.lines.len()
            }
        };
        self.push(Part::Entry(Item::Code), end);
    }

    fn row(&mut self) {
        let at = self.next;
        let is_rule = |at: usize| {
            self.shape(at) == Some(Shape::Row) && self.line(at).is_some_and(line::is_table_rule)
        };
        if is_rule(at + 1) {
            return self.push_plain(Part::TableHead, at + 2);
        }
        if is_rule(at) {
            return self.push_plain(Part::TableHead, at + 1);
        }
        self.push(Part::Entry(Item::Row), at + 1);
    }

    /// Joins the last line with the rule above it, where they are a footer: `---`, `*…*`.
    fn footer(&mut self) {
        let shown = |block: &Block| block.part != Part::Blank;
        let Some(last) = self.blocks.iter().rposition(shown) else { return };
        let Some(rule) = self.blocks.get(..last).and_then(|head| head.iter().rposition(shown))
        else {
            return;
        };
        let is_line = |block: &Block| {
            let line = self.text.get(block.span.clone()).unwrap_or_default().trim();
            let inner = line.strip_prefix('*').and_then(|rest| rest.strip_suffix('*'));
            let words =
                inner.is_some_and(|inner| !inner.is_empty() && !inner.contains(['*', '\n']));
            block.part == Part::Entry(Item::Paragraph) && words
        };
        let ruled = self.blocks.get(rule).is_some_and(|block| block.part == Part::Rule);
        let end = self.blocks.get(last).filter(|block| is_line(block)).map(|block| block.span.end);
        let (true, Some(end)) = (ruled, end) else { return };
        self.blocks.drain(rule + 1..=last);
        if let Some(block) = self.blocks.get_mut(rule) {
            (block.part, block.span.end, block.tags_at) = (Part::Footer, end, end);
        }
    }
}
