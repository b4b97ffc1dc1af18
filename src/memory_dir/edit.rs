//! Changes to a document that touch nothing else: entries are put in, replaced and taken out, and all other
//! bytes stay. All changes of a file are gathered and written at once. No change shows what was private, hides
//! what was not, or puts something where it cannot be seen.

use super::document::{Document, Part, Shape};
use super::writer::Writer;
use std::collections::{BTreeMap, BTreeSet, HashMap};

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

/// A file after its changes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Edited {
    /// What it is to hold.
    pub text: String,
    /// Why nothing was changed: the rule of the linter that says where; none where all could be done.
    pub held: Option<&'static str>,
}

/// A private block that does not end begins in front matter, so that there is no place outside of it.
const HELD_UNCLOSED: &str = "private-unclosed";
/// A private tag without its other half would find one: what is public would be hidden, or the other way round.
const HELD_TAG: &str = "private-tag";

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
        match at.map(|at| self.outside(at)) {
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

    /// Nothing goes behind a block that does not end, and nothing before front matter.
    fn outside(&self, at: usize) -> usize {
        let first = usize::from(self.part(0) == Some(Part::FrontMatter));
        at.min(self.document.open().unwrap_or(at)).max(first)
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
        self.outside(later.unwrap_or(blocks.len()))
    }

    /// The text with all changes. It stays as it is where one of them cannot be made outside of what is private, or
    /// would change what is.
    pub fn finish(mut self) -> Edited {
        let order = self.document.kind().sections();
        let rank = |name: &str| order.iter().position(|known| *known == name);
        let mut made = std::mem::take(&mut self.sections);
        made.sort_by_key(|(name, _)| rank(name).unwrap_or(order.len()));
        let mut new: BTreeMap<usize, Vec<(String, Vec<NewEntry>)>> = BTreeMap::new();
        for section in made {
            new.entry(self.place_of_new(&section.0)).or_default().push(section);
        }
        let held = |rule| Edited { text: self.document.text().to_owned(), held: Some(rule) };
        let last = self.inserted.last_key_value().map(|(at, _)| *at);
        let last = last.max(new.last_key_value().map(|(at, _)| *at));
        if self.document.open().is_some_and(|open| Some(open) < last) {
            return held(HELD_UNCLOSED);
        }
        let out = self.write(&new);
        out.finish().map_or_else(|| held(HELD_TAG), |text| Edited { text, held: None })
    }

    fn write(&self, new: &BTreeMap<usize, Vec<(String, Vec<NewEntry>)>>) -> Writer<'d, 't> {
        let blocks = self.document.blocks();
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
                out.leave_out();
                continue;
            }
            match (self.raws.get(&at), self.bodies.get(&at)) {
                (Some(raw), _) => out.replaced(block, raw),
                (None, Some(body)) => {
                    let tags = self.document.raw(block).get(block.tags_at - block.span.start..);
                    let body = out.with_ends(body);
                    out.replaced(block, &format!("{body}{}", tags.unwrap_or_default()));
                }
                (None, None) => out.kept(block),
            }
        }
        out
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
