//! Three-way merge of one file, entry by entry: our rendering over a person's version. If both changed an entry, the
//! person's version stays and ours is reported as a conflict. Also joins both sides of an unfinished git merge.

use super::document::{Block, Document, Part, Shape};
use super::edit::{Edited, Edits, NewEntry, Place};
use super::kind::{Kind, LESSONS, table_head};
use super::tag::{FOCUS, SOURCE, Tag};
use super::units::{
    Item, Key, MovedEntry, Name, Unit, Units, differs_in_marks, is_comment, item_of, marked, same,
    source, tag_of, take_in, with_marks, without_marks, words,
};
use crate::privacy::{Gate, Redacted};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::iter::successors;

/// An entry that both sides changed; the person's version stayed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Conflict {
    /// Tag of the entry; `None` for other rendered lines, such as the status of a record.
    pub tag: Option<String>,
    pub section: Redacted,
    pub ours: Option<Redacted>,
    pub theirs: Redacted,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Merged {
    pub text: String,
    pub conflicts: Vec<Conflict>,
    /// Edits by tag.
    pub edits: Vec<(String, PersonEdit)>,
    /// Reason why nothing was changed; `None` if everything could be merged.
    pub held: Option<&'static str>,
}

/// Nothing automatic reads or changes it.
const HELD_PRIVATE: &str = "the whole file is private";
/// Its remains belong to neither side.
const HELD_MARKERS: &str =
    "an unfinished git merge (choose the lines to keep, or run `annalist memory lint --fix`)";

/// It is unknown which of its entries were moved.
const HELD_HEADING: &str = "a heading is missing, and entries of its list are among those of another (put it back; `annalist \
                            memory lint` names it)";

/// People's wordings of entries that memories keep, by tag.
pub(crate) type Wordings = BTreeMap<String, String>;

pub(crate) struct Merge<'m> {
    pub(crate) kind: Kind,
    pub(crate) gate: &'m Gate,
    pub(crate) wordings: &'m Wordings,
    /// Entries that people moved to this file.
    pub(crate) moved: &'m [MovedEntry<'m>],
}

impl Merge<'_> {
    /// Merges into `theirs` (the file on disk) the changes from `base` (rendered last; empty the first
    /// time) to `ours` (rendered now).
    pub(crate) fn run(&self, base: &str, ours: &str, theirs: &str) -> Merged {
        let Merge { kind, gate, wordings, moved } = *self;
        let (disk, _) = Document::parse(kind, theirs);
        let unchanged = |held| Merged { text: theirs.to_owned(), held, ..Merged::default() };
        if disk.is_private() {
            return unchanged(Some(HELD_PRIVATE));
        }
        if disk.first(Part::Marker).is_some() {
            return unchanged(Some(HELD_MARKERS));
        }
        if same(theirs, ours) && same(base, theirs) {
            return unchanged(None);
        }
        let (before, _) = Document::parse(kind, base);
        let (now, _) = Document::parse(kind, ours);
        let mut sides = [Units::of(&before), Units::of(&now), Units::of(&disk)];
        let [old, new, there] = &mut sides;
        match with_heading(&disk, there, &before, old) {
            Ok(Some(text)) => return self.run(base, ours, &text),
            Ok(None) => {}
            Err(IsAmbiguous) => return unchanged(Some(HELD_HEADING)),
        }
        let is_matched = there.adopt([old, new]) | take_in(moved, &mut sides);
        let edits = person_edits(&before, &disk, &sides, gate);
        let is_remarked = |(key, it): &(Key, Unit<'_>)| {
            sides[2].get(key).is_some_and(|theirs| differs_in_marks(it.body, theirs.body))
        };
        if base == ours && !is_matched && !sides[1].list.iter().any(is_remarked) {
            return Merged { text: theirs.to_owned(), edits, ..Merged::default() };
        }
        if theirs == base || theirs.trim().is_empty() && base.trim().is_empty() {
            return Merged { text: ours.to_owned(), edits, ..Merged::default() };
        }
        let ([base, ours, theirs], known) = (&sides, ours);
        let join = Join { base, ours, theirs, disk: &disk, gate, wordings };
        let (Edited { text, held }, conflicts) = join.run();
        // The next run, to which ours is known, changes nothing.
        let text = with_lost_headings(kind, known, text);
        if held.is_some() { unchanged(held) } else { Merged { text, conflicts, edits, held } }
    }

    /// Edits in `theirs`, a file that was never seen: ticks and other words than in `ours`. Nothing else in it is known to
    /// be a person's.
    pub(crate) fn unseen_edits(&self, ours: &str, theirs: &str) -> Vec<(String, PersonEdit)> {
        let text = |body: &str| marked(&words(body)).text.to_owned();
        let (document, _) = Document::parse(self.kind, ours);
        let known: HashSet<String> =
            document.entries().map(|block| text(document.body(block))).collect();
        let mut edits = self.run(ours, ours, theirs).edits;
        edits.retain(|(_, edit)| match edit {
            PersonEdit::Edited(edited) => !known.contains(&text(edited.as_str())),
            PersonEdit::Ticked(done) => *done,
            PersonEdit::Marks { .. } | PersonEdit::Moved(_) | PersonEdit::Deleted => false,
        });
        edits
    }
}

/// The text with the headings of the schema that it lost since it was `known`.
pub(super) fn with_lost_headings(kind: Kind, known: &str, text: String) -> String {
    let (before, _) = Document::parse(kind, known);
    let known = Units::of(&before);
    let with_one = |text: &String| {
        let (disk, _) = Document::parse(kind, text);
        with_heading(&disk, &Units::of(&disk), &before, &known).ok().flatten()
    };
    successors(Some(text), with_one).last().unwrap_or_default()
}

/// A heading is lost, and what stood below it is among other entries.
struct IsAmbiguous;

/// Puts a lost heading above the entries that are `known` to be below it and are the last ones of an earlier section now. A
/// person moves entries elsewhere, such as above all others of that section.
fn with_heading(
    disk: &Document<'_>,
    there: &Units<'_>,
    before: &Document<'_>,
    known: &Units<'_>,
) -> Result<Option<String>, IsAmbiguous> {
    let sections: Vec<&str> = disk.kind.sections().iter().copied().chain([LESSONS]).collect();
    for (at, name) in sections.iter().enumerate().rev().filter(|it| !disk.has_section(it.1)) {
        let is_own = |key: &Key| known.get(key).is_some_and(|it| it.section == *name);
        let is_above = |name: &str| {
            name.is_empty() || sections[..at].contains(&name) && before.has_section(name)
        };
        let mut tagged = there.list.iter().filter(|(key, _)| source(key).is_some());
        let Some((_, last)) = tagged.rfind(|(key, it)| is_own(key) && is_above(it.section)) else {
            continue;
        };
        let list = there.list.iter().filter(|(key, _)| source(key).is_some());
        let list: Vec<_> = list.filter(|it| it.1.section == last.section).collect();
        let run = list.iter().rev().take_while(|it| is_own(&it.0)).count();
        let (rest, run) = list.split_at(list.len() - run);
        let own = known.list.iter().filter(|it| source(&it.0).is_some() && is_own(&it.0)).count();
        // Those that a person moved up are the first ones, or there was only one.
        if own > 1 && rest.iter().skip_while(|it| is_own(&it.0)).any(|it| is_own(&it.0)) {
            return Err(IsAmbiguous);
        }
        let Some((_, first)) = run.first() else { continue };
        return Ok(heading_above(disk, first.at, name));
    }
    Ok(None)
}

/// The text with a heading above the block `at`, its table head, and what remains of the heading.
fn heading_above(disk: &Document<'_>, at: usize, name: &str) -> Option<String> {
    let is_demoted = |it: &Block| it.part == Part::Heading && disk.heading_words(it) == name;
    let goes_along =
        |it: &&Block| matches!(it.part, Part::Blank | Part::TableHead) || is_demoted(it);
    let blocks = disk.blocks.get(..at)?.iter().rev().take_while(goes_along);
    let block = blocks.filter(|it| it.part != Part::Blank).last().or(disk.blocks.get(at))?;
    let from = if is_demoted(block) { block.tags_at } else { block.span.start };
    let (head, tail) = (disk.text.get(..block.span.start)?, disk.text.get(from..)?);
    Some(format!("{head}## {name}{}{tail}", disk.line_end()))
}

struct Join<'j, 't> {
    base: &'j Units<'t>,
    ours: &'j Units<'t>,
    theirs: &'j Units<'t>,
    disk: &'j Document<'t>,
    gate: &'j Gate,
    wordings: &'j Wordings,
}

/// Both sides changed an entry.
struct BothChanged;

impl Join<'_, '_> {
    fn run(&self) -> (Edited, Vec<Conflict>) {
        let mut edits = Edits::new(self.disk);
        let mut conflicts = Vec::new();
        let mut spots = Spots { first: self.first_anchors(), last: HashMap::new() };
        let heads = self.disk.blocks.iter().filter(|it| it.part == Part::TableHead);
        let mut headed: HashSet<&str> = heads.map(|it| self.disk.section(it)).collect();
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
            let Ok(raw) = self.changed(key, ours, theirs) else {
                conflicts.push(self.conflict(key, Some(ours), theirs));
                continue;
            };
            if self.moves(key, ours, theirs) {
                let raw = raw.unwrap_or_else(|| format!("{}{}", theirs.body, theirs.tags));
                edits.remove(theirs.at);
                edits.insert(ours.section, spots.place(ours.section), new_entry(&raw));
            } else if let Some(raw) = raw {
                let lines = raw.replace("\r\n", "\n");
                edits.replace_raw(theirs.at, &lines.replace('\n', self.disk.line_end()));
            }
        }
        for (key, base) in &self.base.list {
            let (None, Some(theirs)) = (self.ours.get(key), self.theirs.get(key)) else { continue };
            let is_ours = is_entry(key, base) || is_comment(base.body);
            if !is_ours || self.holds_private(theirs) {
                continue;
            }
            // It is as a person worded it and memory keeps it.
            let wording = tag_of(key).and_then(|tag| self.wordings.get(tag));
            let shown = || words(self.gate.redact(theirs.body).as_str());
            let shows_wording = || wording.is_some_and(|it| words(it) == shown());
            // A ticked box alone is no edit of the words.
            let has_own_tag = || theirs.tags.lines().any(|tag| !base.tags.contains(tag.trim()));
            let is_free = theirs.is_adopted && !has_own_tag()
                || shows_wording()
                || words(base.body) == words(theirs.body) && same(base.tags, theirs.tags);
            match is_free {
                true => edits.remove(theirs.at),
                false => conflicts.push(self.conflict(key, None, theirs)),
            }
        }
        let has = |units: &Units<'_>, name: &str| {
            units.list.iter().any(|(_, it)| it.section == name && !it.is_moved)
        };
        edits.remove_empty_sections(|name| has(self.base, name) && !has(self.ours, name));
        (edits.finish(), conflicts)
    }

    /// First entry of each section that `ours` and `theirs` both have there.
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

    /// New text of an entry; `None` if it stays.
    fn changed(
        &self,
        key: &Key,
        ours: &Unit<'_>,
        theirs: &Unit<'_>,
    ) -> Result<Option<String>, BothChanged> {
        let base = self.base.get(key);
        if theirs.is_adopted && !self.holds_private(theirs) {
            return Ok(Some(tagged(base.unwrap_or(ours), ours, theirs)));
        }
        let (old_body, old_tags) = base.map_or((None, None), |it| (Some(it.body), Some(it.tags)));
        let fixed = matches!(key.0, Name::Title) && base.is_none() || is_comment(theirs.body);
        let differs = |ours: &str, theirs: &str, old: Option<&str>| {
            !same(ours, theirs) && !old.is_some_and(|old| same(old, ours))
        };
        let body_wanted =
            differs(ours.body, theirs.body, old_body) || differs_in_marks(ours.body, theirs.body);
        let tags_wanted = differs(ours.tags, theirs.tags, old_tags);
        if fixed || !(body_wanted || tags_wanted) {
            return Ok(None);
        }
        let body_free = old_body.is_some_and(|old| same(old, theirs.body));
        let tags_free = old_tags.is_some_and(|old| same(old, theirs.tags));
        let body = match (body_wanted, body_free) {
            _ if self.holds_private(theirs) => None,
            (false, _) => Some(theirs.body.to_owned()),
            (true, true) => Some(ours.body.to_owned()),
            (true, false) => {
                // Apart from marks; ours is redacted.
                let said = [ours.body, self.gate.redact(theirs.body).as_str()].map(words);
                let is_same = marked(&said[0]).text == marked(&said[1]).text;
                let old = base.or(is_same.then_some(ours));
                old.and_then(|old| with_changes(old.body, ours.body, theirs.body, is_same))
            }
        };
        let tags = if tags_wanted && tags_free { ours.tags } else { theirs.tags };
        // The date at the end of a file is nobody's claim, and memory keeps one wording of a record.
        if body.is_none() && !matches!(key.0, Name::Footer | Name::Title) {
            return Err(BothChanged);
        }
        Ok(body.map(|body| body + tags))
    }

    fn moves(&self, key: &Key, ours: &Unit<'_>, theirs: &Unit<'_>) -> bool {
        let base = self.base.get(key).map(|base| base.section);
        base.is_some_and(|base| base != ours.section && base == theirs.section)
            && is_entry(key, ours)
            && !self.holds_private(theirs)
    }

    fn holds_private(&self, theirs: &Unit<'_>) -> bool {
        self.disk.blocks.get(theirs.at).is_some_and(|block| self.disk.holds_private(block))
    }

    fn conflict(&self, key: &Key, ours: Option<&Unit<'_>>, theirs: &Unit<'_>) -> Conflict {
        let block = self.disk.blocks.get(theirs.at);
        let shown = block.map(|block| self.disk.public(block)).unwrap_or_default();
        Conflict {
            tag: tag_of(key).map(str::to_owned),
            section: self.gate.redact(theirs.section),
            ours: ours.map(|ours| self.gate.redact(ours.body.trim_end())),
            theirs: self.gate.redact(shown.trim_end()),
        }
    }
}

/// The entry of `theirs`, which has no tag of ours, with those of `ours`, and with our changes since `base`.
fn tagged(base: &Unit<'_>, ours: &Unit<'_>, theirs: &Unit<'_>) -> String {
    let body = if same(base.body, ours.body) { theirs.body } else { ours.body };
    let text = body.trim_end();
    let end = theirs.body.get(theirs.body.trim_end().len()..).unwrap_or_default();
    // The tag of a table row stands behind its last cell.
    let glue = if ours.body.ends_with('\n') { "\n" } else { " " };
    let own = theirs.tags.lines().map(str::trim);
    let own = own.filter(|tag| !tag.is_empty() && !ours.tags.contains(tag));
    let tags: Vec<&str> = own.chain([ours.tags.trim_end()]).collect();
    format!("{text}{glue}{}{end}", tags.join(glue))
}

struct Spots<'s> {
    first: HashMap<&'s str, usize>,
    last: HashMap<&'s str, usize>,
}

impl Spots<'_> {
    /// After the rendered entry above it, or before the first rendered entry, or at the end.
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
    let (document, _) = Document::parse(Kind::Other, raw);
    let part = document.entries().next().map(|block| block.part);
    let shape = if let Some(Part::Entry(shape)) = part { shape } else { Shape::Paragraph };
    NewEntry { shape, lines }
}

fn is_entry(key: &Key, unit: &Unit<'_>) -> bool {
    match key.0 {
        Name::Ours(_) => true,
        Name::Words(_) => !is_comment(unit.body) && !unit.section.is_empty(),
        Name::Meta(_) | Name::Title | Name::Footer => false,
    }
}

/// An edit of an entry by a person.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum PersonEdit {
    Edited(Redacted),
    /// The box of a task was ticked or unticked.
    Ticked(bool),
    /// Marks after the text were removed or added; has the tags of the memories that they name.
    Marks {
        gone: Vec<String>,
        more: Vec<String>,
    },
    /// It is in the section with this heading.
    Moved(Redacted),
    Deleted,
}

fn person_edits(
    base: &Document<'_>,
    disk: &Document<'_>,
    sides: &[Units<'_>; 3],
    gate: &Gate,
) -> Vec<(String, PersonEdit)> {
    if base.text == disk.text {
        return Vec::new();
    }
    let [before, _, now] = sides;
    let mut edits = Vec::new();
    let text = |at: usize| {
        let block = disk.blocks.get(at);
        let shown = block.map(|block| disk.public(block)).unwrap_or_default();
        gate.redact(&without_marks(shown.trim()))
    };
    for (key, unit) in &before.list {
        // A line of the current focus is a copy: its words and its box count, its place does not.
        let focus = tag_of(key).and_then(|tag| tag.strip_prefix(FOCUS));
        let focus = focus.map(|digits| format!("{SOURCE}{digits}"));
        let is_copy = focus.is_some();
        let Some(tag) = focus.or_else(|| source(key).map(str::to_owned)) else { continue };
        let Some(found) = now.get(key) else {
            edits.extend((!is_copy).then_some((tag, PersonEdit::Deleted)));
            continue;
        };
        // Renaming a heading moves no entry.
        let is_renamed =
            !(disk.has_section(unit.section) || disk.kind.sections().contains(&found.section));
        if found.section != unit.section && !(is_renamed || is_copy) {
            edits.push((tag.clone(), PersonEdit::Moved(gate.redact(found.section))));
        }
        let (was, is) = (item_of(unit.body), item_of(found.body));
        if let Some(done) = is.done.filter(|done| was.done.unwrap_or(false) != *done) {
            edits.push((tag.clone(), PersonEdit::Ticked(done)));
        }
        if was.words() != is.words() {
            let gone = unmarked(&was.words(), &is.words());
            let more = unmarked(&is.words(), &was.words());
            if !(gone.is_empty() && more.is_empty()) {
                edits.push((tag, PersonEdit::Marks { gone, more }));
            } else if !differs_in_marks(unit.body, found.body) {
                edits.push((tag, PersonEdit::Edited(text(found.at))));
            }
        }
    }
    edits
}

/// Memories whose marks were removed, if nothing else was changed.
pub(super) fn unmarked(was: &str, now: &str) -> Vec<String> {
    let (before, after) = (marked(was), marked(now));
    let gone = before.others.iter().filter(|it| !after.others.contains(it));
    gone.filter(|_| before.text == after.text).map(|it| (*it).to_owned()).collect()
}

/// The line of `theirs` with what we changed since `base`: the list marker, unless the person changed it too, and the
/// marks behind the text. `None` if we changed more, unless ours and theirs say the same.
fn with_changes(base: &str, ours: &str, theirs: &str, is_same: bool) -> Option<String> {
    let [base, ours, theirs] = [base, ours, theirs].map(item_of);
    let is_done = |it: &Item<'_>| it.done.unwrap_or(false);
    let is_free = theirs.mark == base.mark || is_done(&theirs) == is_done(&ours);
    let mark = match base.mark == ours.mark {
        true => theirs.mark,
        false => Some(ours.mark).filter(|_| is_free)?,
    };
    let is_line = !theirs.text.trim_end().contains('\n');
    let is_remarked = differs_in_marks(ours.text, theirs.text);
    if base.words() == ours.words() && !is_remarked || is_same && !is_line {
        return Some(format!("{mark}{}", theirs.text));
    }
    let [base, ours] = [base, ours].map(|it| marked(it.text.trim_end()));
    let is_ours = base.text == ours.text && !(base.behind.is_empty() && ours.behind.is_empty());
    ((is_ours || is_same) && is_line)
        .then(|| format!("{mark}{}", with_marks(theirs.text, ours.behind)))
}

const JOINS_MAX: usize = 16;

/// Text with both sides of each unfinished merge; `None` if they have two versions of one entry: a person chooses.
pub(super) fn with_both_sides(document: &Document<'_>) -> Option<String> {
    // Removing a marker may reveal others.
    let joined = repeated(joined(document), JOINS_MAX, |now| {
        let (left, _) = Document::parse(document.kind, now);
        if left.is_private() { now.to_owned() } else { joined(&left) }
    });
    // A tag below both sides belongs to an entry of each.
    let mut lines = document.text.lines().zip(document.text.lines().skip(1));
    let is_shared = |it: (&str, &str)| it.0.starts_with(">>>>>>>") && Tag::parse(it.1).is_some();
    (!repeats_tag(document.kind, &joined) && !lines.any(is_shared)).then_some(joined)
}

/// Repeats `step` until it changes nothing, at most `rounds_max` times.
pub(super) fn repeated(text: String, rounds_max: usize, step: impl Fn(&str) -> String) -> String {
    let mut now = text;
    for _ in 0..rounds_max {
        let next = step(&now);
        if next == now {
            break;
        }
        now = next;
    }
    now
}

/// True if two entries have the tag of the same memory.
fn repeats_tag(kind: Kind, text: &str) -> bool {
    let (document, _) = Document::parse(kind, text);
    let mut met = HashSet::new();
    let is_again = |block: &Block| {
        document.tags(block).filter_map(|tag| tag.ours()).any(|tag| !met.insert(tag.to_owned()))
    };
    document.entries().any(is_again)
}

/// Keeps both sides of an unfinished git merge, one after the other; common entries once.
fn joined(document: &Document<'_>) -> String {
    let mut edits = Edits::new(document);
    let mut side = ' ';
    let mut first: HashSet<&str> = HashSet::new();
    for (at, block) in document.blocks.iter().enumerate() {
        let raw = document.raw(block);
        match (block.part, raw.trim_start_matches('\u{feff}').chars().next().unwrap_or(' ')) {
            (Part::Marker, mark) => {
                edits.remove(at);
                // An end marker without a start belongs to nothing.
                side = if mark == '>' { ' ' } else { mark };
                if mark == '<' {
                    first.clear();
                }
            }
            _ if document.holds_private(block) => {}
            (Part::Blank, _) => {}
            _ if side == '<' => {
                first.insert(raw.trim());
            }
            _ if side == '|' => edits.remove(at),
            _ if side == '=' && first.contains(raw.trim()) => edits.remove(at),
            _ => {}
        }
    }
    edits.finish().text
}

#[cfg(test)]
#[path = "merge_test.rs"]
mod tests;
