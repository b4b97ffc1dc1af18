//! Entries that people moved or copied to files where they are not rendered: they change with their memories there too.

use super::document::Document;
use super::kind::{Files, Kind, SESSIONS};
use super::units::{Name, Unit, Units, tags_in};
use std::collections::{BTreeMap, BTreeSet};

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
