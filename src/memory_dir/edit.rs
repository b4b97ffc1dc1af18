//! Edits of a document: inserts, replaces and removes entries and keeps all other bytes. All edits of a file are
//! applied at once. No edit shows private text, hides public text, or puts an entry where it cannot be seen.

use super::document::{Block, Document, Part, Shape, begins_front_matter};
use super::line;
use crate::privacy::{is_private_file, private_spans};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct NewEntry {
    pub shape: Shape,
    pub lines: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Place {
    Last,
    /// Before the block with this index in [`Document::blocks`].
    Before(usize),
    After(usize),
}

/// Result of the edits of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Edited {
    pub text: String,
    /// Reason why nothing was changed; `None` if all edits were applied.
    pub held: Option<&'static str>,
}

/// An unclosed private block begins in front matter, so there is no place outside it.
pub(super) const HELD_UNCLOSED: &str = "a private block that begins in front matter is not closed";
/// An unpaired private tag would pair with another one and hide or show text.
pub(super) const HELD_TAG: &str = "an unpaired private tag (`annalist memory lint` finds it)";

#[derive(Debug)]
pub(crate) struct Edits<'d, 't> {
    document: &'d Document<'t>,
    /// Heading of each section, and the index after its last block.
    known: HashMap<&'t str, (usize, usize)>,
    removed: BTreeSet<usize>,
    raws: BTreeMap<usize, String>,
    inserted: BTreeMap<usize, Vec<NewEntry>>,
    sections: Vec<(String, Vec<NewEntry>)>,
}

impl<'d, 't> Edits<'d, 't> {
    pub(crate) fn new(document: &'d Document<'t>) -> Edits<'d, 't> {
        Edits {
            document,
            known: sections(document),
            removed: BTreeSet::new(),
            raws: BTreeMap::new(),
            inserted: BTreeMap::new(),
            sections: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.removed.is_empty()
            && self.raws.is_empty()
            && self.inserted.is_empty()
            && self.sections.is_empty()
    }

    pub(crate) fn remove(&mut self, block: usize) {
        self.removed.insert(block);
    }

    /// Removes the headings of sections of ours with nothing below them but what is removed, and the blank lines above
    /// and in them.
    pub(crate) fn remove_empty_sections(&mut self, is_ours: impl Fn(&str) -> bool) {
        let blocks = &self.document.blocks;
        let ends = |it: &Block| matches!(it.part, Part::Section | Part::Rule | Part::Footer);
        let is_blank = |at: &usize| self.part(*at) == Some(Part::Blank);
        let mut empty = Vec::new();
        for (heading, block) in blocks.iter().enumerate().filter(|it| it.1.part == Part::Section) {
            let length = blocks.iter().skip(heading + 1).take_while(|it| !ends(it)).count();
            let mut below = heading + 1..heading + 1 + length;
            let is_empty = below.clone().all(|at| self.removed.contains(&at) || is_blank(&at));
            let last = below.rfind(|at| self.removed.contains(at)).filter(|_| is_empty);
            if let Some(last) = last.filter(|_| is_ours(self.document.heading_words(block))) {
                empty.extend((0..heading).rev().take_while(is_blank).chain(heading..last));
            }
        }
        self.removed.extend(empty);
    }

    pub(crate) fn replace_raw(&mut self, block: usize, raw: &str) {
        self.raws.insert(block, raw.to_owned());
    }

    /// Inserts an entry, and its section in the schema's order if there is none. Entries at the
    /// same place keep their order of insertion.
    pub(crate) fn insert(&mut self, section: &str, place: Place, entry: NewEntry) {
        let at = match place {
            Place::Before(block) => Some(block),
            Place::After(block) => Some(block + 1),
            Place::Last => self.known.get(section).map(|(_, behind)| *behind),
        };
        match at.map(|at| self.outside(at)) {
            Some(at) => self.inserted.entry(at).or_default().push(entry),
            None => self.section_entries(section).push(entry),
        }
    }

    pub(crate) fn make_section(&mut self, section: &str) {
        if self.section(section).is_none() {
            self.section_entries(section);
        }
    }

    /// Nothing is inserted after an unclosed block or before front matter.
    fn outside(&self, at: usize) -> usize {
        let first = usize::from(self.part(0) == Some(Part::FrontMatter));
        at.min(self.document.open.unwrap_or(at)).max(first)
    }

    fn section_entries(&mut self, section: &str) -> &mut Vec<NewEntry> {
        let known = self.sections.iter().position(|(name, _)| name == section);
        let at = known.unwrap_or_else(|| {
            self.sections.push((section.to_owned(), Vec::new()));
            self.sections.len() - 1
        });
        &mut self.sections[at].1
    }

    pub(crate) fn section(&self, words: &str) -> Option<usize> {
        self.known.get(words).map(|(heading, _)| *heading)
    }

    fn part(&self, at: usize) -> Option<Part> {
        self.document.blocks.get(at).map(|block| block.part)
    }

    /// Rank of a section in the schema's order; `None` for sections of people.
    fn rank(&self, section: &str) -> Option<usize> {
        self.document.kind.sections().iter().position(|known| *known == section)
    }

    fn place_of_new(&self, section: &str) -> usize {
        let own = self.rank(section).unwrap_or(usize::MAX);
        let blocks = &self.document.blocks;
        let later = blocks.iter().position(|block| {
            let rank = || self.rank(self.document.heading_words(block));
            let is_later = || rank().is_some_and(|it| own < it);
            block.part == Part::Footer || (block.part == Part::Section && is_later())
        });
        self.outside(later.unwrap_or(blocks.len()))
    }

    /// Applies all edits; changes nothing if one would be in private text or change what is private.
    pub(crate) fn finish(mut self) -> Edited {
        let mut made = std::mem::take(&mut self.sections);
        made.sort_by_key(|(name, _)| self.rank(name).unwrap_or(usize::MAX));
        let mut new: BTreeMap<usize, Vec<(String, Vec<NewEntry>)>> = BTreeMap::new();
        for section in made {
            new.entry(self.place_of_new(&section.0)).or_default().push(section);
        }
        let held = |rule| Edited { text: self.document.text.to_owned(), held: Some(rule) };
        let last = self.inserted.last_key_value().map(|(at, _)| *at);
        let last = last.max(new.last_key_value().map(|(at, _)| *at));
        if self.document.open.is_some_and(|open| Some(open) < last) {
            return held(HELD_UNCLOSED);
        }
        let out = self.write(&new);
        out.finish().map_or_else(|| held(HELD_TAG), |text| Edited { text, held: None })
    }

    fn write(&self, new: &BTreeMap<usize, Vec<(String, Vec<NewEntry>)>>) -> Writer<'d, 't> {
        let blocks = &self.document.blocks;
        let mut out = Writer::new(self.document);
        for at in 0..=blocks.len() {
            for entry in self.inserted.get(&at).into_iter().flatten() {
                out.entry(entry);
            }
            for (name, entries) in new.get(&at).into_iter().flatten() {
                out.section(name, entries);
            }
            let Some(block) = blocks.get(at) else { break };
            if self.removed.contains(&at) {
                out.gone = true;
                continue;
            }
            match self.raws.get(&at) {
                Some(raw) => out.replaced(block, raw),
                None => out.kept(block),
            }
        }
        out
    }
}

/// First section of each name: its heading, and the index after its last block. Trailing empty
/// lines and rules belong to the next section.
fn sections<'t>(document: &Document<'t>) -> HashMap<&'t str, (usize, usize)> {
    let mut sections: HashMap<&str, (usize, usize)> = HashMap::new();
    let mut open = None;
    for (at, block) in document.blocks.iter().enumerate() {
        if block.part == Part::Section {
            let words = document.heading_words(block);
            open = Some(words).filter(|words| !sections.contains_key(words));
        } else if block.part == Part::Footer {
            open = None;
        }
        if !matches!(block.part, Part::Blank | Part::Rule)
            && let Some(words) = open
        {
            sections.entry(words).or_insert((at, at)).1 = at + 1;
        }
    }
    sections
}

const LIST_END: &str = "<!-- -->";
/// Byte order mark; it stays first.
const MARK: char = '\u{feff}';

/// Writes blocks and entries in order, with an empty line where two would merge.
struct Writer<'d, 't> {
    document: &'d Document<'t>,
    text: String,
    line_end: &'static str,
    mark: usize,
    private: Vec<Range<usize>>,
    is_other: bool,
    last: Option<Part>,
    is_new: bool,
    gone: bool,
    above: Option<Part>,
    changed: bool,
}

impl<'d, 't> Writer<'d, 't> {
    fn new(document: &'d Document<'t>) -> Writer<'d, 't> {
        let mut text = String::with_capacity(document.text.len() + 256);
        if document.text.starts_with(MARK) {
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

    /// Returns the text; `None` if the edits hide or show anything.
    fn finish(mut self) -> Option<String> {
        let before = self.document.text;
        // The new first block must not become front matter.
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

    fn end_line(&mut self) {
        if self.mark < self.text.len() && !self.text.ends_with('\n') {
            self.text.push_str(self.line_end);
        }
    }

    fn gap(&mut self) {
        self.end_line();
        if self.last.is_some_and(|last| last != Part::Blank) {
            self.text.push_str(self.line_end);
        }
    }

    fn entry(&mut self, entry: &NewEntry) {
        let part = Some(Part::Entry(entry.shape));
        match runs_together(self.last, Part::Entry(entry.shape)) {
            true => self.gap(),
            false => self.end_line(),
        }
        let lines = entry.lines.replace('\n', self.line_end);
        self.expect(private_spans(&lines).0, 0);
        self.text.push_str(&lines);
        (self.last, self.above, self.is_new) = (part, part, true);
    }

    fn section(&mut self, name: &str, entries: &[NewEntry]) {
        self.gap();
        self.text.push_str(&format!("## {name}{}", self.line_end));
        (self.above, self.is_new) = (Some(Part::Section), true);
        self.last = self.above;
        entries.iter().for_each(|entry| self.entry(entry));
        self.text.push_str(self.line_end);
        self.last = Some(Part::Blank);
    }

    fn kept(&mut self, block: &Block) {
        // What was removed leaves one of the empty lines around it.
        if self.gone && [self.last, Some(block.part)] == [Some(Part::Blank); 2] {
            (self.gone, self.changed) = (false, true);
            return;
        }
        let raw = self.document.raw(block);
        let bare = unmarked(block, raw);
        self.before(block, bare);
        let start = block.span.end - bare.len();
        self.expect(self.document.private_in(block).cloned().collect(), start);
        self.text.push_str(bare);
    }

    fn replaced(&mut self, block: &Block, raw: &str) {
        let bare = unmarked(block, raw);
        self.before(block, bare);
        let private = private_spans(bare).0;
        let was = self.document.private_in(block).map(|it| self.document.text.get(it.clone()));
        self.is_other |= !private.iter().map(|it| bare.get(it.clone())).eq(was);
        self.expect(private, 0);
        self.text.push_str(bare);
    }

    /// Records the private ranges of the next piece, which began at `start`.
    fn expect(&mut self, private: Vec<Range<usize>>, start: usize) {
        let at = self.text.len();
        let moved = |it: Range<usize>| it.start + at - start..it.end + at - start;
        self.private.extend(private.into_iter().map(moved));
    }

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

/// A block's text without the byte order mark of the file.
fn unmarked<'r>(block: &Block, raw: &'r str) -> &'r str {
    let bare = raw.strip_prefix(MARK).filter(|_| block.span.start == 0);
    bare.unwrap_or(raw)
}

fn goes_on(above: Option<Part>, raw: &str) -> bool {
    let is_item = matches!(above, Some(Part::Entry(Shape::Bullet | Shape::Task { .. })));
    is_item && raw.lines().next().map(line::shape) == Some(line::LineShape::Indented)
}

fn runs_together(above: Option<Part>, below: Part) -> bool {
    let Some(above) = above else { return false };
    let is_entry = matches!(above, Part::Entry(_));
    let is_item = matches!(above, Part::Entry(Shape::Bullet | Shape::Task { .. }));
    let is_text = above == Part::Entry(Shape::Paragraph);
    if let Part::Entry(shape) = below {
        return match shape {
            Shape::Paragraph => is_entry,
            Shape::Row => is_text || is_item,
            Shape::Bullet | Shape::Task { .. } => {
                is_text || matches!(above, Part::Entry(Shape::Row | Shape::Code))
            }
            Shape::Code => false,
        };
    }
    let is_heading = matches!(above, Part::Title | Part::Section | Part::Heading);
    (is_entry && matches!(below, Part::TableHead | Part::Rule | Part::Footer))
        || (below == Part::StrayTag && (is_entry || is_heading))
}
