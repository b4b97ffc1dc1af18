//! Writes the blocks of a file and what is new among them, and watches what is private on the way.

use super::document::{Block, Document, Part, Shape};
use super::edit::NewEntry;
use super::line;
use super::parse::begins_front_matter;
use crate::privacy::{is_private_file, private_spans};
use std::ops::Range;

/// What ends a list in Markdown where an empty line does not, and is not shown.
const LIST_END: &str = "<!-- -->";
/// The mark of byte order; it stays the first.
const MARK: char = '\u{feff}';

/// Writes blocks and entries one after the other, with an empty line where two would run together.
pub(super) struct Writer<'d, 't> {
    document: &'d Document<'t>,
    text: String,
    line_end: &'static str,
    /// The bytes of a mark of byte order at the beginning.
    mark: usize,
    /// Where private text is to stand, if nothing changes what is private.
    private: Vec<Range<usize>>,
    /// Whether a block lost or won something private by being replaced.
    is_other: bool,
    /// What was written last; none at the beginning.
    last: Option<Part>,
    /// Whether what was written last is new.
    is_new: bool,
    /// Whether a block was left out since.
    gone: bool,
    /// What was written last but for empty lines.
    above: Option<Part>,
    /// Whether something was put in or left out since.
    changed: bool,
}

impl<'d, 't> Writer<'d, 't> {
    pub(super) fn new(document: &'d Document<'t>) -> Writer<'d, 't> {
        let mut text = String::with_capacity(document.text().len() + 256);
        if document.text().starts_with(MARK) {
            text.push(MARK);
        }
        let (mark, line_end) = (text.len(), document.line_end());
        Writer {
            document,
            text,
            line_end,
            mark,
            private: Vec::new(),
            is_other: false,
            last: None,
            is_new: false,
            gone: false,
            above: None,
            changed: false,
        }
    }

    /// The text; none if something else would be private in it than was, or is in what is new.
    pub(super) fn finish(mut self) -> Option<String> {
        let before = self.document.text();
        // What stands at the top now must not become front matter.
        if begins_front_matter(&self.text) && !begins_front_matter(before) {
            let line = format!("{LIST_END}{}", self.line_end);
            self.text.insert_str(self.mark, &line);
            let moved = |it: &mut Range<usize>| *it = it.start + line.len()..it.end + line.len();
            self.private.iter_mut().for_each(moved);
        }
        let is_same = private_spans(&self.text).0 == self.private
            && is_private_file(&self.text) == is_private_file(before);
        (is_same && !self.is_other).then_some(self.text)
    }

    pub(super) fn with_ends(&self, lines: &str) -> String {
        if self.line_end == "\n" { lines.to_owned() } else { lines.replace('\n', self.line_end) }
    }

    fn end_line(&mut self) {
        if self.mark < self.text.len() && !self.text.ends_with('\n') {
            self.text.push_str(self.line_end);
        }
    }

    /// Ends the line, and puts an empty one behind it.
    fn gap(&mut self) {
        self.end_line();
        if self.last.is_some_and(|last| last != Part::Blank) {
            self.text.push_str(self.line_end);
        }
    }

    pub(super) fn entry(&mut self, entry: &NewEntry) {
        if runs_together(self.last, Part::Entry(entry.shape)) {
            self.gap()
        } else {
            self.end_line()
        }
        let lines = self.with_ends(&entry.lines);
        self.expect(private_spans(&lines).0, 0);
        self.text.push_str(&lines);
        (self.last, self.is_new) = (Some(Part::Entry(entry.shape)), true);
        self.above = self.last;
    }

    pub(super) fn section(&mut self, name: &str, entries: &[NewEntry]) {
        self.gap();
        self.text.push_str(&format!("## {name}{}", self.line_end));
        (self.last, self.is_new) = (Some(Part::Section), true);
        self.above = self.last;
        entries.iter().for_each(|entry| self.entry(entry));
        self.text.push_str(self.line_end);
        self.last = Some(Part::Blank);
    }

    /// The block that comes next is left out.
    pub(super) fn leave_out(&mut self) {
        self.gone = true;
    }

    /// A block as it was.
    pub(super) fn kept(&mut self, block: &Block) {
        let raw = self.document.raw(block);
        let bare = unmarked(block, raw);
        self.before(block, bare);
        let start = block.span.end - bare.len();
        let private = self.document.private_in(block).cloned();
        let private = private.collect();
        self.expect(private, start);
        self.text.push_str(bare);
    }

    /// A block with other lines.
    pub(super) fn replaced(&mut self, block: &Block, raw: &str) {
        let bare = unmarked(block, raw);
        self.before(block, bare);
        let private = private_spans(bare).0;
        let was = self.document.private_in(block).map(|it| self.document.text().get(it.clone()));
        self.is_other |= !private.iter().map(|it| bare.get(it.clone())).eq(was);
        self.expect(private, 0);
        self.text.push_str(bare);
    }

    /// Notes what is private in the piece that comes next; `start` is where the piece began.
    fn expect(&mut self, private: Vec<Range<usize>>, start: usize) {
        let at = self.text.len();
        let moved = |it: Range<usize>| it.start + at - start..it.end + at - start;
        self.private.extend(private.into_iter().map(moved));
    }

    /// What stands between a block that was there and what was written last.
    fn before(&mut self, block: &Block, raw: &str) {
        let touches = self.is_new || self.gone;
        if touches && runs_together(self.last, block.part) {
            self.gap();
        } else if self.is_new {
            self.end_line();
        }
        if block.part != Part::Blank {
            let changed = std::mem::take(&mut self.changed) || touches;
            if changed && goes_on(self.above, raw) {
                self.text.push_str(LIST_END);
                self.text.push_str(self.line_end);
            }
            self.above = Some(block.part);
        }
        self.changed |= touches && block.part == Part::Blank;
        (self.last, self.is_new, self.gone) = (Some(block.part), false, false);
    }
}

/// The bytes of a block without the mark of byte order at the beginning of the file.
fn unmarked<'r>(block: &Block, raw: &'r str) -> &'r str {
    let bare = raw.strip_prefix(MARK).filter(|_| block.span.start == 0);
    bare.unwrap_or(raw)
}

/// Whether a block would become part of the item above it also behind an empty line: it is indented.
fn goes_on(above: Option<Part>, raw: &str) -> bool {
    let is_item = matches!(above, Some(Part::Entry(Shape::Bullet | Shape::Task { .. })));
    is_item && raw.lines().next().map(line::shape) == Some(line::Shape::Indented)
}

/// Whether a block would become part of what stands above it without an empty line between them.
fn runs_together(above: Option<Part>, below: Part) -> bool {
    let Some(above) = above else { return false };
    let is_entry = matches!(above, Part::Entry(_));
    match below {
        Part::StrayTag => is_entry || matches!(above, Part::Title | Part::Section | Part::Heading),
        Part::Entry(Shape::Paragraph) => is_entry,
        Part::Entry(Shape::Row) => {
            matches!(above, Part::Entry(Shape::Paragraph | Shape::Bullet | Shape::Task { .. }))
        }
        Part::TableHead => is_entry,
        Part::Entry(Shape::Bullet | Shape::Task { .. }) => {
            matches!(above, Part::Entry(Shape::Paragraph | Shape::Row | Shape::Code))
        }
        Part::Entry(Shape::Code) => false,
        Part::Rule | Part::Footer => matches!(above, Part::Entry(_)),
        Part::FrontMatter
        | Part::Title
        | Part::Section
        | Part::Heading
        | Part::Meta
        | Part::Comment
        | Part::Private
        | Part::Marker
        | Part::Blank => false,
    }
}
