//! The blocks of a file that can be identified across its versions: by their tags, or else by their words. Those that
//! people moved or copied to files where they are not rendered change with their memories there too.

use super::document::{Block, Document, Part};
use super::facts::{DECIDED, NOT_FOUND, PROPOSED, is_past_mark};
use super::kind::{Files, Kind, SESSIONS};
use super::line;
use super::name::is_day;
use super::tag::{SOURCE, Tag};
use crate::text::phrase::in_one_line;
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Name {
    Ours(String),
    Words(String),
    Meta(String),
    Title,
    Footer,
}

/// A name, and the number of blocks with the same name above.
pub(super) type Key = (Name, usize);

/// A block that can be identified across versions.
#[derive(Clone, Debug)]
pub(super) struct Unit<'t> {
    pub(super) at: usize,
    pub(super) section: &'t str,
    pub(super) body: &'t str,
    pub(super) tags: &'t str,
    /// The entry lost its tags, and its words identify it.
    pub(super) is_adopted: bool,
    /// A person moved the entry here from another file.
    pub(super) is_moved: bool,
}

/// The identifiable blocks of a document, in order.
pub(super) struct Units<'t> {
    pub(super) list: Vec<(Key, Unit<'t>)>,
    by_key: HashMap<Key, usize>,
}

impl<'t> Units<'t> {
    pub(super) fn of(document: &Document<'t>) -> Units<'t> {
        let mut counts: HashMap<Name, usize> = HashMap::new();
        let mut units = Units { list: Vec::new(), by_key: HashMap::new() };
        for (at, block) in document.blocks.iter().enumerate() {
            let Some(name) = name(document, block) else { continue };
            let count = counts.entry(name.clone()).or_default();
            let key = (name, *count);
            *count += 1;
            let body = document.body(block);
            let tags = document.raw(block).get(body.len()..).unwrap_or_default().trim_start();
            let section = document.section(block);
            let unit = Unit { at, section, body, tags, is_adopted: false, is_moved: false };
            units.by_key.insert(key.clone(), units.list.len());
            units.list.push((key, unit));
        }
        units
    }

    /// Names the entries without a tag of ours after the entries of `known` with the same words, apart from marks:
    /// somebody removed the tag, or wrote the entry first. Returns whether there are any.
    pub(super) fn adopt(&mut self, known: [&Units<'_>; 2]) -> bool {
        let mut untagged: HashMap<(&str, String), usize> = HashMap::new();
        for (at, ((name, _), unit)) in self.list.iter().enumerate().rev() {
            if let Name::Words(words) = name {
                untagged.insert((unit.section, marked(words).text.to_owned()), at);
            }
        }
        let mut is_adopted = false;
        for (key, unit) in known.iter().flat_map(|units| &units.list) {
            if source(key).is_none() || self.by_key.contains_key(key) {
                continue;
            }
            let words = words(unit.body);
            let name = (unit.section, marked(&words).text.to_owned());
            let Some(at) = untagged.remove(&name) else { continue };
            let Some((name, unit)) = self.list.get_mut(at) else { continue };
            (unit.is_adopted, is_adopted) = (true, true);
            self.by_key.remove(name);
            self.by_key.insert(key.clone(), at);
            *name = key.clone();
        }
        is_adopted
    }

    /// Adds a unit unless there is one with this key. Returns whether it did.
    pub(super) fn add(&mut self, key: &Key, unit: Unit<'t>) -> bool {
        let is_new = !self.by_key.contains_key(key);
        if is_new {
            self.by_key.insert(key.clone(), self.list.len());
            self.list.push((key.clone(), unit));
        }
        is_new
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Unit<'t>> {
        let at = self.by_key.get(key)?;
        self.list.get(*at).map(|(_, unit)| unit)
    }
}

fn name(document: &Document<'_>, block: &Block) -> Option<Name> {
    let words = || Name::Words(words(document.body(block)));
    if matches!(block.part, Part::Entry(_)) {
        let ours = tag_in_use(document, block);
        return Some(ours.map_or_else(words, |tag| Name::Ours(tag.to_owned())));
    }
    if block.part == Part::Meta {
        let line = document.body(block);
        return Some(Name::Meta(line.split(':').next().unwrap_or(line).trim().to_owned()));
    }
    let fixed = [(Part::Title, Name::Title), (Part::Footer, Name::Footer)];
    let fixed = fixed.into_iter().find(|(part, _)| *part == block.part).map(|(_, name)| name);
    fixed.or_else(|| (block.part == Part::Comment).then(words))
}

/// Tag of the memory that a block shows. What is struck through ended, and its line is a person's.
pub(super) fn tag_in_use<'t>(document: &Document<'t>, block: &Block) -> Option<&'t str> {
    let ours = document.tags(block).find_map(|tag| tag.ours());
    ours.filter(|_| !is_struck(document.body(block)))
}

/// The parts of an entry.
pub(super) struct Item<'t> {
    /// List marker and task box.
    pub(super) mark: &'t str,
    pub(super) done: Option<bool>,
    pub(super) text: &'t str,
}

impl Item<'_> {
    /// Text with whitespace collapsed.
    pub(super) fn words(&self) -> String {
        in_one_line(self.text)
    }
}

pub(super) fn item_of(body: &str) -> Item<'_> {
    let text = body.trim_start();
    let text = line::item(text).unwrap_or(text);
    let (done, text) = line::task(text).map_or((None, text), |(done, rest)| (Some(done), rest));
    let mark = body.get(..body.len() - text.len()).unwrap_or_default();
    Item { mark, done, text }
}

pub(super) fn words(body: &str) -> String {
    item_of(body).words()
}

/// Tag of the memory that a block shows; only its first block in a file counts.
pub(super) fn source(key: &Key) -> Option<&str> {
    tag_of(key).filter(|tag| key.1 == 0 && tag.starts_with(SOURCE))
}

/// A line before its date and marks, these, and the memories that they name.
pub(super) struct Marked<'t> {
    pub(super) text: &'t str,
    pub(super) behind: &'t str,
    pub(super) others: Vec<&'t str>,
}

pub(super) fn marked(words: &str) -> Marked<'_> {
    let behind = words.strip_suffix(')').and_then(|it| it.rsplit_once(" ("));
    let none = Marked { text: words, behind: "", others: Vec::new() };
    let Some((text, behind)) = behind else { return none };
    let parts = behind.split([' ', ';', ',']);
    let others: Vec<&str> = parts.filter(|it| it.starts_with(SOURCE)).collect();
    let is_ours = !others.is_empty() || behind.split("; ").next().is_some_and(is_day);
    if is_ours { Marked { text, behind, others } } else { none }
}

/// The line with other marks behind its text. The date is as the person left it.
pub(super) fn with_marks(line: &str, behind: &str) -> String {
    let text = line.trim_end();
    let end = line.get(text.len()..).unwrap_or_default();
    let now = marked(text);
    let day = now.behind.split("; ").find(|it| is_day(it));
    let marks = behind.split("; ").filter(|it| !is_day(it) && !it.is_empty());
    let behind = day.into_iter().chain(marks).collect::<Vec<_>>().join("; ");
    let behind = if behind.is_empty() { behind } else { format!(" ({behind})") };
    format!("{}{behind}{end}", now.text)
}

/// True for an item that is struck through as a whole; its date and marks may stand behind.
pub(crate) fn is_struck(body: &str) -> bool {
    if !body.contains("~~") || line::item(body.trim()).is_none() {
        return false;
    }
    let words = words(body);
    let struck = marked(&words).text.strip_prefix("~~").and_then(|it| it.strip_suffix("~~"));
    struck.is_some_and(|it| !it.is_empty() && !it.contains("~~"))
}

/// Tags of memories in a file, without those of entries that are struck through.
pub(crate) fn tags_in(text: &str) -> impl Iterator<Item = &str> {
    let mut is_below_struck = false;
    let tags = text.lines().filter_map(move |line| {
        let tag = Tag::of_line(line);
        let goes_on = tag.is_some() || line.trim().is_empty();
        is_below_struck = if goes_on { is_below_struck } else { is_struck(line) };
        tag.filter(|_| !is_below_struck)?.ours()
    });
    tags.filter(|tag| tag.starts_with(SOURCE))
}

/// Tags of memories in files. Private blocks count, since hiding is not removing.
pub(crate) fn tags_of_memories(files: &Files) -> BTreeSet<&str> {
    files.values().flat_map(|text| tags_in(text)).collect()
}

/// The line without the marks behind its text. The date stays, and what a person put there.
pub(super) fn without_marks(line: &str) -> String {
    let is_mark = |it: &&str| {
        let has_more = it.contains(SOURCE) || is_past_mark(it);
        has_more || it.starts_with(NOT_FOUND) || [PROPOSED, DECIDED].contains(it)
    };
    let own = marked(line.trim_end()).behind.split("; ").filter(|it| !is_mark(it));
    with_marks(line, &own.collect::<Vec<_>>().join("; "))
}

/// True if both lines are the same apart from marks.
pub(super) fn differs_in_marks(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(words);
    one != other && without_marks(&one) == without_marks(&other)
}

pub(super) fn same(one: &str, other: &str) -> bool {
    one == other || one.lines().map(str::trim_end).eq(other.lines().map(str::trim_end))
}

pub(super) fn tag_of(key: &Key) -> Option<&str> {
    if let Name::Ours(tag) = &key.0 { Some(tag) } else { None }
}

pub(super) fn is_comment(body: &str) -> bool {
    body.trim_start().starts_with("<!--")
}

/// An entry as another file had it before, and as one has it now; `None` if it is rendered nowhere any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MovedEntry<'f> {
    tag: &'f str,
    before: Lines<'f>,
    now: Option<Lines<'f>>,
}

#[derive(Clone, Copy, Debug)]
struct Lines<'f> {
    body: &'f str,
    tags: &'f str,
    /// It is from a session file, which shows what was said.
    is_history: bool,
}

/// The moved entries of each file, by path.
pub(crate) struct Moved<'f>(BTreeMap<&'f str, Vec<MovedEntry<'f>>>);

impl<'f> Moved<'f> {
    /// Finds the entries on `disk` in files that lacked them `before`, while other files had them. Those of `ended`
    /// memories go, like the ones in lists.
    pub(crate) fn of(
        before: &'f Files,
        now: &'f Files,
        disk: &'f Files,
        ended: &BTreeSet<String>,
    ) -> Moved<'f> {
        let mut strays: Vec<(&str, &str)> = Vec::new();
        for (path, text) in disk {
            let there = before.get(path);
            if there != Some(text) {
                let known: BTreeSet<&str> = there.into_iter().flat_map(|it| tags_in(it)).collect();
                let new = tags_in(text).filter(|tag| !known.contains(tag));
                strays.extend(new.map(|tag| (path.as_str(), tag)));
            }
        }
        let was = lines_of(before, &strays.iter().map(|(_, tag)| *tag).collect());
        let is = lines_of(now, &was.keys().copied().collect());
        let mut moved = Moved(BTreeMap::new());
        for (path, tag) in strays {
            let Some(before) = was.get(tag).copied() else { continue };
            let now = is.get(tag).copied();
            let now = now.filter(|it| before.is_history || !(it.is_history || ended.contains(tag)));
            moved.0.entry(path).or_default().push(MovedEntry { tag, before, now });
        }
        moved
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &'f str> {
        self.0.keys().copied()
    }

    pub(crate) fn in_file(&self, path: &str) -> &[MovedEntry<'f>] {
        self.0.get(path).map_or(&[], Vec::as_slice)
    }
}

/// The entries with these tags, of the file that says most about what holds now.
fn lines_of<'f>(files: &'f Files, tags: &BTreeSet<&str>) -> BTreeMap<&'f str, Lines<'f>> {
    let mut found: BTreeMap<&str, Lines<'_>> = BTreeMap::new();
    if tags.is_empty() {
        return found;
    }
    for (path, text) in files.iter().filter(|(_, text)| tags_in(text).any(|it| tags.contains(it))) {
        let (document, _) = Document::parse(Kind::of_path(path), text);
        let is_history = path.starts_with(SESSIONS);
        for block in document.entries() {
            let tag = document.tags(block).find_map(|tag| tag.ours());
            let Some(tag) = tag.filter(|tag| tags.contains(tag)) else { continue };
            let body = document.body(block);
            let tags = document.raw(block).get(body.len()..).unwrap_or_default().trim_start();
            let lines = Lines { body, tags, is_history };
            let first = found.entry(tag).or_insert(lines);
            if first.is_history {
                *first = lines;
            }
        }
    }
    found
}

/// Adds the entries to the old and the new rendering, where the disk has them. Returns whether there are any.
pub(super) fn take_in<'t>(moved: &[MovedEntry<'t>], [old, new, disk]: &mut [Units<'t>; 3]) -> bool {
    let mut is_any = false;
    for MovedEntry { tag, before, now } in moved {
        let key = (Name::Ours((*tag).to_owned()), 0);
        let Some(section) = disk.get(&key).map(|unit| unit.section) else { continue };
        let unit = |lines: &Lines<'t>| Unit {
            at: usize::MAX,
            section,
            body: lines.body,
            tags: lines.tags,
            is_adopted: false,
            is_moved: true,
        };
        is_any |= old.add(&key, unit(before));
        now.iter().for_each(|lines| is_any |= new.add(&key, unit(lines)));
    }
    is_any
}
