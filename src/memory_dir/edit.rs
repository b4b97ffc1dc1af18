//! Changes to a document that touch nothing else: entries are put in, replaced and taken out, and all other
//! bytes stay. All changes of a file are gathered and written at once.

use super::document::{Block, Document, Part, Shape};
use super::line;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What ends a list in Markdown where an empty line does not, and is not shown.
const LIST_END: &str = "<!-- -->";

/// An entry as it is to stand in a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewEntry {
    /// What it is.
    pub shape: Shape,
    /// Its lines, tags included, each with `\n` at its end.
    pub lines: String,
}

/// Where an entry goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// Before the first entry of its section.
    First,
    /// Behind everything in its section.
    Last,
    /// Before the block with this place in [`Document::blocks`].
    Before(usize),
    /// Behind it.
    After(usize),
}

/// Changes that are gathered.
#[derive(Debug)]
pub struct Edits<'d, 't> {
    document: &'d Document<'t>,
    /// The heading of each section, and the place behind the last thing in it.
    known: HashMap<&'t str, (usize, usize)>,
    removed: BTreeSet<usize>,
    bodies: BTreeMap<usize, String>,
    raws: BTreeMap<usize, String>,
    inserted: BTreeMap<usize, Vec<NewEntry>>,
    sections: Vec<(String, Vec<NewEntry>)>,
}

impl<'d, 't> Edits<'d, 't> {
    /// No change yet.
    pub fn new(document: &'d Document<'t>) -> Edits<'d, 't> {
        Edits {
            document,
            known: sections(document),
            removed: BTreeSet::new(),
            bodies: BTreeMap::new(),
            raws: BTreeMap::new(),
            inserted: BTreeMap::new(),
            sections: Vec::new(),
        }
    }

    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty()
            && self.bodies.is_empty()
            && self.raws.is_empty()
            && self.inserted.is_empty()
            && self.sections.is_empty()
    }

    /// Takes a block out, with its tags.
    pub fn remove(&mut self, block: usize) {
        self.removed.insert(block);
    }

    /// Replaces the lines of a block; its tags stay. `lines` end with `\n` each.
    pub fn replace_body(&mut self, block: usize, lines: &str) {
        self.bodies.insert(block, lines.to_owned());
    }

    /// Replaces a block with its tags, byte for byte.
    pub fn replace_raw(&mut self, block: usize, raw: &str) {
        self.raws.insert(block, raw.to_owned());
    }

    /// Puts an entry in; a section that is not there is made, in the schema's order. Entries for one
    /// place stand in the order in which they came.
    pub fn insert(&mut self, section: &str, place: Place, entry: NewEntry) {
        let at = match place {
            Place::Before(block) => Some(block),
            Place::After(block) => Some(block + 1),
            Place::First => self.section(section).map(|heading| self.first_in(heading)),
            Place::Last => self.known.get(section).map(|(_, behind)| *behind),
        };
        match at.map(|at| self.before_open(at)) {
            Some(at) => self.inserted.entry(at).or_default().push(entry),
            None => self.section_entries(section).push(entry),
        }
    }

    /// Makes a section even if nothing is put into it.
    pub fn make_section(&mut self, section: &str) {
        if self.section(section).is_none() {
            self.section_entries(section);
        }
    }

    /// Nothing goes behind a block that does not end.
    fn before_open(&self, at: usize) -> usize {
        at.min(self.document.open().unwrap_or(at))
    }

    fn section_entries(&mut self, section: &str) -> &mut Vec<NewEntry> {
        let known = self.sections.iter().position(|(name, _)| name == section);
        let at = known.unwrap_or_else(|| {
            self.sections.push((section.to_owned(), Vec::new()));
            self.sections.len() - 1
        });
        &mut self.sections[at].1
    }

    /// The block that begins the section with this heading.
    pub fn section(&self, words: &str) -> Option<usize> {
        self.known.get(words).map(|(heading, _)| *heading)
    }

    fn part(&self, at: usize) -> Option<Part> {
        self.document.blocks().get(at).map(|block| block.part)
    }

    /// Behind a heading and the hint below it.
    fn first_in(&self, heading: usize) -> usize {
        let skipped = |at: &usize| {
            matches!(self.part(*at), Some(Part::Comment | Part::TableHead | Part::Blank))
        };
        let mut end = heading + 1;
        let mut kept = end;
        while skipped(&end) {
            end += 1;
            if self.part(end - 1) != Some(Part::Blank) {
                kept = end;
            }
        }
        let is_end = matches!(self.part(end), None | Some(Part::Section | Part::Footer));
        if is_end { kept } else { end }
    }

    /// Where a new section goes: before the first that the schema puts behind it, else at the end.
    fn place_of_new(&self, section: &str) -> usize {
        let order = self.document.kind().sections();
        let rank = |name: &str| order.iter().position(|known| *known == name);
        let own = rank(section).unwrap_or(order.len());
        let blocks = self.document.blocks();
        let later = blocks.iter().position(|block| match block.part {
            Part::Section => rank(self.document.heading_words(block)).is_some_and(|it| own < it),
            Part::Footer => true,
            Part::FrontMatter
            | Part::Title
            | Part::Heading
            | Part::Meta
            | Part::Entry(_)
            | Part::TableHead
            | Part::Comment
            | Part::StrayTag
            | Part::Private
            | Part::Marker
            | Part::Rule
            | Part::Blank => false,
        });
        self.before_open(later.unwrap_or(blocks.len()))
    }

    /// The text with all changes.
    pub fn finish(mut self) -> String {
        let order = self.document.kind().sections();
        let rank = |name: &str| order.iter().position(|known| *known == name);
        let mut made = std::mem::take(&mut self.sections);
        made.sort_by_key(|(name, _)| rank(name).unwrap_or(order.len()));
        let mut new: BTreeMap<usize, Vec<(String, Vec<NewEntry>)>> = BTreeMap::new();
        for section in made {
            new.entry(self.place_of_new(&section.0)).or_default().push(section);
        }
        let blocks = self.document.blocks();
        let mut out = Writer::new(self.document);
        for at in 0..=blocks.len() {
            let next = blocks.get(at);
            for entry in self.inserted.get(&at).into_iter().flatten() {
                out.entry(entry);
            }
            for (name, entries) in new.get(&at).into_iter().flatten() {
                out.section(name, entries);
            }
            let Some(block) = next else { break };
            if self.removed.contains(&at) {
                out.gone = true;
                continue;
            }
            match (self.raws.get(&at), self.bodies.get(&at)) {
                (Some(raw), _) => out.block(block, raw),
                (None, Some(body)) => {
                    let tags = self.document.raw(block).get(block.tags_at - block.span.start..);
                    let body = out.with_ends(body);
                    out.block(block, &format!("{body}{}", tags.unwrap_or_default()));
                }
                (None, None) => out.block(block, self.document.raw(block)),
            }
        }
        out.text
    }
}

/// The first section of each name: its heading, and the place behind the last thing in it. Empty lines and
/// a line across the page at its end belong to what comes next.
fn sections<'t>(document: &Document<'t>) -> HashMap<&'t str, (usize, usize)> {
    let mut sections = HashMap::new();
    let mut open: Option<(&'t str, usize, usize)> = None;
    let mut end = |open: Option<(&'t str, usize, usize)>| {
        if let Some((words, heading, behind)) = open {
            sections.entry(words).or_insert((heading, behind));
        }
    };
    for (at, block) in document.blocks().iter().enumerate() {
        match block.part {
            Part::Section => {
                end(open.take());
                open = Some((document.heading_words(block), at, at + 1));
            }
            Part::Footer => end(open.take()),
            Part::Blank | Part::Rule => {}
            Part::FrontMatter
            | Part::Title
            | Part::Heading
            | Part::Meta
            | Part::Entry(_)
            | Part::TableHead
            | Part::Comment
            | Part::StrayTag
            | Part::Private
            | Part::Marker => {
                if let Some((_, _, behind)) = &mut open {
                    *behind = at + 1;
                }
            }
        }
    }
    end(open);
    sections
}

/// Writes blocks and entries one after the other, with an empty line where two would run together.
struct Writer {
    text: String,
    line_end: &'static str,
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

impl Writer {
    fn new(document: &Document<'_>) -> Writer {
        let line_end = document.line_end();
        let text = String::with_capacity(document.text().len() + 256);
        Writer {
            text,
            line_end,
            last: None,
            is_new: false,
            gone: false,
            above: None,
            changed: false,
        }
    }

    fn with_ends(&self, lines: &str) -> String {
        if self.line_end == "\n" { lines.to_owned() } else { lines.replace('\n', self.line_end) }
    }

    fn end_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
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

    fn entry(&mut self, entry: &NewEntry) {
        if runs_together(self.last, Part::Entry(entry.shape)) {
            self.gap()
        } else {
            self.end_line()
        }
        let lines = self.with_ends(&entry.lines);
        self.text.push_str(&lines);
        (self.last, self.is_new) = (Some(Part::Entry(entry.shape)), true);
        self.above = self.last;
    }

    fn section(&mut self, name: &str, entries: &[NewEntry]) {
        self.gap();
        self.text.push_str(&format!("## {name}{}", self.line_end));
        (self.last, self.is_new) = (Some(Part::Section), true);
        self.above = self.last;
        entries.iter().for_each(|entry| self.entry(entry));
        self.text.push_str(self.line_end);
        self.last = Some(Part::Blank);
    }

    /// A block that was there.
    fn block(&mut self, block: &Block, raw: &str) {
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
        self.text.push_str(raw);
        (self.last, self.is_new, self.gone) = (Some(block.part), false, false);
    }
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
