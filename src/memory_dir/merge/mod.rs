//! Lays what we render over what a person left, entry by entry. Where both changed the same entry the
//! person's stays, and ours is told as a conflict. Nothing that a person wrote is lost.

mod person;
mod tree;
#[cfg(test)]
mod tests;
mod unit;

pub use person::PersonEdit;
pub use tree::{FileChange, Update, update};

use super::document::{Document, Part, Shape};
use super::edit::{Edited, Edits, NewEntry, Place};
use super::kind::Kind;
use super::template::table_head;
use crate::privacy::{Gate, Redacted};
use std::collections::{HashMap, HashSet};
use unit::{Key, Name, Unit, Units, same, tag_of};

/// An entry that both sides changed; the person's stayed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Conflict {
    /// The tag that it is known by; none for other lines of ours, such as the status of a record.
    pub tag: Option<String>,
    /// The heading above it.
    pub section: Redacted,
    /// What we would have written; none where we would have taken it out.
    pub ours: Option<Redacted>,
    /// What stands there.
    pub theirs: Redacted,
}

/// A file after both sides were joined.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Merged {
    /// What the file is to hold.
    pub text: String,
    /// Where both sides changed the same, in the order of our entries.
    pub conflicts: Vec<Conflict>,
    /// What the person did since the base was written.
    pub edits: Vec<PersonEdit>,
    /// Why nothing was changed: the rule's name; none where all could be done.
    pub held: Option<&'static str>,
}

/// The file is private as a whole: nothing automatic reads or changes it.
const HELD_PRIVATE: &str = "private-file";
/// A merge of git is not finished; what it left belongs to neither side.
const HELD_MARKERS: &str = "conflict-markers";

/// Joins `ours`, which we render now, with `theirs`, the file as it is, by what changed in ours since
/// `base`, which we rendered last (empty the first time).
pub fn merge(kind: Kind, base: &str, ours: &str, theirs: &str, gate: &Gate) -> Merged {
    let (disk, _) = Document::parse(kind, theirs);
    let unchanged = |held| Merged { text: theirs.to_owned(), held, ..Merged::default() };
    if disk.is_private() {
        return unchanged(Some(HELD_PRIVATE));
    }
    if disk.blocks().iter().any(|block| block.part == Part::Marker) {
        return unchanged(Some(HELD_MARKERS));
    }
    if same(theirs, ours) && same(base, theirs) {
        return unchanged(None);
    }
    let (before, _) = Document::parse(kind, base);
    let (now, _) = Document::parse(kind, ours);
    let sides = [Units::of(&before), Units::of(&now), Units::of(&disk)];
    let edits = person::edits(&before, &disk, &sides, gate);
    if base == ours {
        return Merged { text: theirs.to_owned(), edits, ..Merged::default() };
    }
    if theirs == base || theirs.trim().is_empty() && base.trim().is_empty() {
        return Merged { text: ours.to_owned(), edits, ..Merged::default() };
    }
    let [base, ours, theirs] = &sides;
    let join = Join { base, ours, theirs, disk: &disk, gate };
    let (Edited { text, held }, conflicts) = join.run();
    match held {
        Some(rule) => unchanged(Some(rule)),
        None => Merged { text, conflicts, edits, held },
    }
}

struct Join<'j, 't> {
    base: &'j Units<'t>,
    ours: &'j Units<'t>,
    theirs: &'j Units<'t>,
    disk: &'j Document<'t>,
    gate: &'j Gate,
}

/// What is to be done about an entry of ours that is there already.
enum Verdict {
    /// Nothing, or nothing that may be done.
    Leave,
    /// Its lines and tags are to be these.
    Write(String),
    /// Both changed it.
    Conflict,
}

impl Join<'_, '_> {
    fn run(&self) -> (Edited, Vec<Conflict>) {
        let mut edits = Edits::new(self.disk);
        let mut conflicts = Vec::new();
        let mut spots = Spots { first: self.first_anchors(), last: HashMap::new() };
        let mut headed: HashSet<&str> = self.sections_with_table();
        for (key, ours) in &self.ours.list {
            let Some(theirs) = self.theirs.get(key) else {
                if self.base.get(key).is_none() && is_entry(key, ours) {
                    let mut entry = new_entry(&format!("{}{}", ours.body, ours.tags));
                    if entry.shape == Shape::Row && headed.insert(ours.section) {
                        entry.lines.insert_str(0, table_head(ours.section));
                    }
                    edits.insert(ours.section, spots.place(ours.section), entry);
                }
                continue;
            };
            if theirs.section == ours.section {
                spots.last.insert(ours.section, theirs.at);
            }
            let raw = match self.verdict(key, ours, theirs) {
                Verdict::Leave => None,
                Verdict::Write(raw) => Some(raw),
                Verdict::Conflict => {
                    conflicts.push(self.conflict(key, Some(ours), theirs));
                    continue;
                }
            };
            if self.moves(key, ours, theirs) {
                let raw = raw.unwrap_or_else(|| format!("{}{}", theirs.body, theirs.tags));
                edits.remove(theirs.at);
                edits.insert(ours.section, spots.place(ours.section), new_entry(&raw));
            } else if let Some(raw) = raw {
                edits.replace_raw(theirs.at, &self.with_ends(&raw));
            }
        }
        for (key, base) in &self.base.list {
            let (None, Some(theirs)) = (self.ours.get(key), self.theirs.get(key)) else { continue };
            let is_ours = is_entry(key, base) || is_comment(base.body);
            if !is_ours || self.holds_private(theirs) {
                continue;
            }
            match same(base.body, theirs.body) && same(base.tags, theirs.tags) {
                true => edits.remove(theirs.at),
                false => conflicts.push(self.conflict(key, None, theirs)),
            }
        }
        (edits.finish(), conflicts)
    }

    /// The first entry of each section that both ours and theirs have there.
    fn first_anchors(&self) -> HashMap<&str, usize> {
        let mut anchors = HashMap::new();
        for (key, ours) in &self.ours.list {
            let theirs = self.theirs.get(key).filter(|theirs| theirs.section == ours.section);
            if let Some(theirs) = theirs.filter(|theirs| !is_comment(theirs.body)) {
                anchors.entry(ours.section).or_insert(theirs.at);
            }
        }
        anchors
    }

    fn sections_with_table(&self) -> HashSet<&str> {
        let blocks = self.disk.blocks().iter();
        let heads = blocks.filter(|block| block.part == Part::TableHead);
        heads.map(|block| self.disk.section(block)).collect()
    }

    fn verdict(&self, key: &Key, ours: &Unit<'_>, theirs: &Unit<'_>) -> Verdict {
        let base = self.base.get(key);
        let (old_body, old_tags) = base.map_or((None, None), |it| (Some(it.body), Some(it.tags)));
        let fixed = matches!(key.0, Name::Title) && base.is_none() || is_comment(theirs.body);
        let footer = key.0 == Name::Footer;
        let differs = |ours: &str, theirs: &str, old: Option<&str>| {
            !same(ours, theirs) && !old.is_some_and(|old| same(old, ours))
        };
        let body_wanted = differs(ours.body, theirs.body, old_body);
        let tags_wanted = differs(ours.tags, theirs.tags, old_tags);
        if fixed || !(body_wanted || tags_wanted) {
            return Verdict::Leave;
        }
        let body_free = old_body.is_some_and(|old| same(old, theirs.body));
        let tags_free = old_tags.is_some_and(|old| same(old, theirs.tags));
        if self.holds_private(theirs) || body_wanted && !body_free {
            // A day at the end of a file is nobody's claim.
            return if footer { Verdict::Leave } else { Verdict::Conflict };
        }
        let body = if body_wanted { ours.body } else { theirs.body };
        let tags = if tags_wanted && tags_free { ours.tags } else { theirs.tags };
        Verdict::Write(format!("{body}{tags}"))
    }

    /// Whether we put the entry into another section, and the person did not.
    fn moves(&self, key: &Key, ours: &Unit<'_>, theirs: &Unit<'_>) -> bool {
        let base = self.base.get(key).map(|base| base.section);
        base.is_some_and(|base| base != ours.section && base == theirs.section)
            && !self.holds_private(theirs)
    }

    fn with_ends(&self, raw: &str) -> String {
        let lines = raw.replace("\r\n", "\n");
        if self.disk.line_end() == "\n" { lines } else { lines.replace('\n', "\r\n") }
    }

    fn holds_private(&self, theirs: &Unit<'_>) -> bool {
        self.disk.blocks().get(theirs.at).is_some_and(|block| self.disk.holds_private(block))
    }

    fn conflict(&self, key: &Key, ours: Option<&Unit<'_>>, theirs: &Unit<'_>) -> Conflict {
        let block = self.disk.blocks().get(theirs.at);
        let shown = block.map(|block| self.disk.public(block)).unwrap_or_default();
        Conflict {
            tag: tag_of(key).map(str::to_owned),
            section: self.gate.redact(theirs.section),
            ours: ours.map(|ours| self.gate.redact(ours.body.trim_end())),
            theirs: self.gate.redact(shown.trim_end()),
        }
    }
}

/// Where new entries go.
struct Spots<'s> {
    /// The first entry of each section that was there.
    first: HashMap<&'s str, usize>,
    /// The last one that was met.
    last: HashMap<&'s str, usize>,
}

impl Spots<'_> {
    /// Behind the entry of ours above it, or else before the first of ours, or else at the end.
    fn place(&self, section: &str) -> Place {
        match (self.last.get(section), self.first.get(section)) {
            (Some(at), _) => Place::After(*at),
            (None, Some(at)) => Place::Before(*at),
            (None, None) => Place::Last,
        }
    }
}

fn new_entry(raw: &str) -> NewEntry {
    let mut lines = raw.replace("\r\n", "\n");
    if !lines.ends_with('\n') {
        lines.push('\n');
    }
    NewEntry { shape: shape_of(raw), lines }
}

/// Whether a unit is an entry of a section.
fn is_entry(key: &Key, unit: &Unit<'_>) -> bool {
    match key.0 {
        Name::Ours(_) => true,
        Name::Words(_) => !is_comment(unit.body) && !unit.section.is_empty(),
        Name::Meta(_) | Name::Title | Name::Footer => false,
    }
}

fn is_comment(body: &str) -> bool {
    body.trim_start().starts_with("<!--")
}

/// What an entry is, by its first line.
fn shape_of(body: &str) -> Shape {
    let (document, _) = Document::parse(Kind::Other, body);
    let shapes = document.blocks().iter().map(|block| match block.part {
        Part::Entry(shape) => Some(shape),
        Part::FrontMatter
        | Part::Title
        | Part::Section
        | Part::Heading
        | Part::Meta
        | Part::TableHead
        | Part::Comment
        | Part::StrayTag
        | Part::Private
        | Part::Marker
        | Part::Rule
        | Part::Footer
        | Part::Blank => None,
    });
    shapes.flatten().next().unwrap_or(Shape::Paragraph)
}
