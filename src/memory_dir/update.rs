//! Changes to all files of a directory: merges the rendering into what people left, and removes
//! entries about forgotten records.

use super::document::{Block, Document, Part};
use super::edit::Edits;
use super::kind::{ARCHIVE, Files, Kind, LESSONS, SESSIONS};
use super::merge::{Conflict, Merge, Merged, unmarked};
use super::name::{adr_number, adr_path, session_day};
use super::render::Rendered;
use super::tag::{SOURCE, Tag, record_prefix, source_of, words_tag};
use super::units::Moved;
use super::units::{Unit, Units, item_of, marked, tag_in_use, tag_of, without_marks, words};
use crate::privacy::Gate;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A file to write or delete.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileChange {
    pub path: String,
    pub before: Option<Arc<str>>,
    pub after: Option<Arc<str>>,
}

/// Changes to a directory and findings, each with its path.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Update {
    /// Changed files, by path.
    pub changes: Vec<FileChange>,
    /// Entries that both a person and we changed.
    pub conflicts: Vec<(String, Conflict)>,
    /// Files left unchanged, with the reason.
    pub held: Vec<(String, &'static str)>,
    /// Rendered files that a person deleted; they stay deleted.
    pub deleted: Vec<String>,
}

/// Merges rendered files into the directory. `base` is the last rendering.
pub fn update(base: &Files, rendered: &Rendered, disk: &Files, gate: &Gate) -> Update {
    let mut update = Update::default();
    let moved = Moved::of(base, &rendered.files, disk, &rendered.ended);
    let wordings = &rendered.wordings;
    let merge = |path: &str| {
        let (kind, moved) = (Kind::of_path(path), moved.in_file(path));
        Merge { kind, gate, wordings, moved }
    };
    let mut met: BTreeSet<&str> = BTreeSet::new();
    for (path, ours) in &rendered.files {
        let old = rendered.renamed.get(path).unwrap_or(path);
        met.extend([path.as_str(), old.as_str()]);
        let before = base.get(old);
        match (before, disk.get(path)) {
            (Some(before), Some(theirs)) if before == ours && ours == theirs => {}
            (_, Some(theirs)) => {
                let before = before.map_or("", |it| &**it);
                update.join(path, merge(path).run(before, ours, theirs), theirs);
            }
            (Some(_), None) => update.deleted.push(path.clone()),
            (None, None) => update.change(path, None, Some(Arc::clone(ours))),
        }
    }
    let gone = base.iter().filter(|(path, _)| !met.contains(path.as_str()));
    for (path, before) in gone {
        let Some(theirs) = disk.get(path) else { continue };
        if before == theirs {
            update.change(path, Some(Arc::clone(theirs)), None);
        } else {
            // A person changed it: remove only the rendered entries.
            update.join(path, merge(path).run(before, "", theirs), theirs);
        }
    }
    // A person's own file has no rendering.
    for path in moved.paths().filter(|path| !met.contains(path) && !base.contains_key(*path)) {
        if let Some(theirs) = disk.get(path) {
            update.join(path, merge(path).run("", "", theirs), theirs);
        }
    }
    update.changes.sort_by(|one, other| one.path.cmp(&other.path));
    update
}

impl Update {
    fn join(&mut self, path: &str, merged: Merged, theirs: &str) {
        let Merged { text, conflicts, edits: _, held } = merged;
        self.conflicts.extend(conflicts.into_iter().map(|it| (path.to_owned(), it)));
        self.held.extend(held.map(|rule| (path.to_owned(), rule)));
        if text != theirs {
            self.change(path, Some(theirs.into()), Some(text.into()));
        }
    }

    fn change(&mut self, path: &str, before: Option<Arc<str>>, after: Option<Arc<str>>) {
        self.changes.push(FileChange { path: path.to_owned(), before, after });
    }
}

/// True if `text` lacks an entry of `other`, another version of the file; it may have more marks.
pub(crate) fn lacks_entries(path: &str, text: &str, other: &str) -> bool {
    let [(text, _), (other, _)] = [text, other].map(|it| Document::parse(Kind::of_path(path), it));
    let entries: BTreeSet<&str> = text.entries().map(|block| text.raw(block).trim()).collect();
    let lines: Vec<String> = text.entries().map(|it| words(text.body(it))).collect();
    let mut by_text: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in &lines {
        by_text.entry(marked(line).text).or_default().push(line);
    }
    let is_there = |block: &Block| {
        let was = words(other.body(block));
        let mut now = by_text.get(marked(&was).text).into_iter().flatten();
        now.any(|now| !unmarked(now, &was).is_empty() && unmarked(&was, now).is_empty())
    };
    other.entries().any(|it| !(entries.contains(other.raw(it).trim()) || is_there(it)))
}

/// The entries of a file that have a tag like this, with their headings.
pub(crate) fn entries_of(path: &str, text: &str, is_it: impl Fn(&str) -> bool) -> String {
    let (document, _) = Document::parse(Kind::of_path(path), text);
    let has_it = |it: &&Block| tag_in_use(&document, it).is_some_and(&is_it);
    let entry = |it: &Block| format!("\n## {}\n{}", document.section(it), document.raw(it));
    document.entries().filter(has_it).map(entry).collect()
}

/// A file without the entries that people added, which have no tag.
pub(crate) fn tagged_alone(path: &str, text: &str) -> String {
    let (document, _) = Document::parse(Kind::of_path(path), text);
    let mut edits = Edits::new(&document);
    for (at, block) in document.blocks.iter().enumerate() {
        let is_tagged = tag_in_use(&document, block).is_some();
        if matches!(block.part, Part::Entry(_)) && !is_tagged && !document.holds_private(block) {
            edits.remove(at);
        }
    }
    edits.finish().text
}

/// An older version of a file without what a person changed in it: entries that are ticked, or have other words, than in
/// the `known` version. `None` if that cannot be told.
pub(crate) fn unedited(path: &str, text: &str, known: &str) -> Option<String> {
    let [(document, _), (known, _)] =
        [text, known].map(|it| Document::parse(Kind::of_path(path), it));
    if document.is_private() || document.first(Part::Marker).is_some() {
        return None;
    }
    let (known, mut edits) = (Units::of(&known), Edits::new(&document));
    for (key, unit) in &Units::of(&document).list {
        let is_entry = tag_of(key).is_some_and(|tag| source_of(tag).is_some());
        let Some(was) = known.get(key).filter(|_| is_entry) else { continue };
        let is_done = |it: &Unit<'_>| item_of(it.body).done == Some(true);
        let is_ticked = is_done(unit) && !is_done(was);
        if is_ticked || without_marks(&words(was.body)) != without_marks(&words(unit.body)) {
            edits.replace_raw(unit.at, &format!("{}{}", was.body, was.tags));
        }
    }
    Some(edits.finish().text)
}

/// The blocks of a file that `other`, another version of it, has as well, and all headings.
pub(crate) fn shared_blocks(path: &str, text: &str, other: &str) -> String {
    let [(text, _), (other, _)] = [text, other].map(|it| Document::parse(Kind::of_path(path), it));
    // A tick changes no words.
    let of = |document: &Document<'_>, it: &Block| match document.tags(it).next() {
        Some(_) => words(document.raw(it)),
        None => document.raw(it).trim().to_owned(),
    };
    let known: BTreeSet<String> = other.blocks.iter().map(|block| of(&other, block)).collect();
    let is_gone = |it: &Block| it.part != Part::Section && !known.contains(&of(&text, it));
    let mut edits = Edits::new(&text);
    text.blocks.iter().enumerate().filter(|it| is_gone(it.1)).for_each(|it| edits.remove(it.0));
    let shared = edits.finish();
    if shared.held.is_some() { String::new() } else { shared.text }
}

/// Id prefixes that tags in files name.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct NamedIds {
    pub records: BTreeSet<String>,
    pub memories: BTreeSet<String>,
    pub sessions: BTreeSet<String>,
}

impl NamedIds {
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.memories.is_empty() && self.sessions.is_empty()
    }

    /// Adds the ids named by tags in `files`.
    pub(crate) fn add(&mut self, files: &Files) {
        for tag in files.values().flat_map(|text| text.lines().filter_map(Tag::of_line)) {
            self.records.extend(record_prefix(&tag).map(str::to_owned));
            if let Some((kind, digits)) = tag.ours().and_then(|it| it.rsplit_once('-')) {
                self.memories.insert(digits.to_owned());
                if format!("{kind}-") != SOURCE {
                    self.sessions.insert(digits.to_owned());
                }
            }
        }
    }

    /// True if `tag` names one of these memories or sessions.
    fn has(&self, tag: &Tag<'_>) -> bool {
        let digits = tag.ours().and_then(|it| it.rsplit_once('-')).map(|(_, digits)| digits);
        digits.is_some_and(|it| self.memories.contains(it) || self.sessions.contains(it))
    }

    /// True if `tag` names one of these records.
    fn has_record(&self, tag: &Tag<'_>) -> bool {
        record_prefix(tag).is_some_and(|it| self.records.contains(it))
    }
}

/// Removes the entries, and the files of records and sessions, whose tags name something in `gone`. Private text and a
/// person's sections stay, and so do retrospective entries that a person changed.
pub(crate) fn strike(files: &Files, gone: &NamedIds) -> Vec<FileChange> {
    let mut changes = Vec::new();
    if gone.is_empty() {
        return changes;
    }
    for (path, text) in files {
        let is_gone = |tag: Tag<'_>| gone.has(&tag) || gone.has_record(&tag);
        if !text.lines().filter_map(Tag::of_line).any(is_gone) {
            continue;
        }
        let kind = Kind::of_path(path);
        let (document, _) = Document::parse(kind, text);
        let mut change = |path: &str, before: Option<&Arc<str>>, after: Option<String>| {
            let (before, after) = (before.cloned(), after.map(Arc::from));
            changes.push(FileChange { path: path.to_owned(), before, after });
        };
        let names_gone = |title: &Block| document.tags(title).any(|tag| gone.has(&tag));
        let is_whole = document.first(Part::Title).is_some_and(names_gone);
        if is_whole && !holds_foreign(&document) {
            change(path, Some(text), None);
            continue;
        }
        let mut edits = Edits::new(&document);
        for (at, block) in document.blocks.iter().enumerate() {
            let written = words_tag(document.body(block));
            let is_as_written = document.tags(block).any(|tag| tag.value == written);
            let is_struck = |tag: Tag<'_>| gone.has_record(&tag) && is_as_written || gone.has(&tag);
            let is_entry = matches!(block.part, Part::Entry(_));
            let is_head = matches!(block.part, Part::Title | Part::Meta);
            let is_known = || document.kind.sections().contains(&document.section(block));
            let is_ours = is_head || is_entry && is_known();
            let is_tagged = is_entry && document.tags(block).any(is_struck);
            if (is_whole && is_ours || is_tagged) && !document.holds_private(block) {
                edits.remove(at);
            }
        }
        if edits.is_empty() {
            continue;
        }
        let is_archive = path.starts_with(ARCHIVE);
        let is_ours = |name: &str| is_archive || name == LESSONS || kind.sections().contains(&name);
        edits.remove_empty_sections(|name| !kind.needs_headings() && is_ours(name));
        let edited = edits.finish();
        if edited.held.is_some() {
            // The later search for erased text reports it.
            continue;
        }
        if is_whole {
            // The file name was made of forgotten words.
            change(path, Some(text), None);
            change(&nameless(path), None, Some(edited.text));
        } else if is_archive && is_bare(&edited.text) {
            change(path, Some(text), None);
        } else {
            change(path, Some(text), Some(edited.text));
        }
    }
    changes
}

/// True if an archive has nothing below its title.
fn is_bare(text: &str) -> bool {
    let (document, _) = Document::parse(Kind::Other, text);
    document.blocks.iter().all(|it| matches!(it.part, Part::Title | Part::Blank))
}

/// True if a record or session file has private text, or a person's sections.
fn holds_foreign(document: &Document<'_>) -> bool {
    let is_foreign = |block: &Block| {
        let is_section = block.part == Part::Section;
        let is_known = document.kind.sections().contains(&document.heading_words(block));
        is_section && !is_known || document.holds_private(block)
    };
    document.is_private() || document.blocks.iter().any(is_foreign)
}

/// A path of the same kind without a topic.
fn nameless(path: &str) -> String {
    const FORGOTTEN: &str = "forgotten";
    match adr_number(path) {
        Some(number) => adr_path(number, FORGOTTEN),
        None => format!("{SESSIONS}{}-{FORGOTTEN}.md", session_day(path).unwrap_or(FORGOTTEN)),
    }
}

#[cfg(test)]
mod strike_tests {
    use super::*;

    fn retro() -> String {
        let words = |entry| format!("{entry}\n<!-- @tag: {} -->", words_tag(entry));
        let (one, two) = (words("- one"), words("- two"));
        format!(
            "# Retrospective: 2026-11-01\n\n## Quality\n{one}\n<!-- @tag: record-0a1b2c3d4e -->\n- mine\n{two}\n\
            <!-- @category: quality -->\n<!-- @tag: record-ffffffffff -->\n<!-- @tag: record-0a1b2c3d4e -->\n"
        )
    }

    fn gone(record: &str) -> NamedIds {
        NamedIds { records: BTreeSet::from([record.to_owned()]), ..NamedIds::default() }
    }

    #[test]
    fn a_forgotten_memory_leaves_no_empty_heading_and_no_run_of_empty_lines() {
        let gone =
            NamedIds { memories: BTreeSet::from(["0123abcd".to_owned()]), ..NamedIds::default() };
        let entry = "- Graz\n<!-- @tag: src-0123abcd -->\n";
        let after = |path: &str, text: &str| {
            let files = Files::from([(path.to_owned(), text.into())]);
            strike(&files, &gone).remove(0).after.map(|it| it.to_string())
        };
        let (head, tail) = ("# Progress Tracker\n\n", "## Backlog\n- a\n\n- b\n");
        let text =
            format!("{head}## In Progress\n{entry}\n## Backlog\n- a\n\n{entry}\n{entry}\n- b\n");
        assert_eq!(after("progress.md", &text), Some(format!("{head}{tail}")));
        let archive = format!("# Archive: 2026-06\n\n## Requests\n{entry}");
        assert_eq!(after("archive/2026-06.md", &archive), None);
        let (kept, more) = (format!("{archive}- a\n"), format!("{archive}\n## Mine\n- a\n"));
        assert_eq!(after("archive/2026-06.md", &kept), Some(kept.replace(entry, "")));
        let mine = "# Archive: 2026-06\n\n## Mine\n- a\n".to_owned();
        assert_eq!(after("archive/2026-06.md", &more), Some(mine));
    }

    #[test]
    fn entries_of_a_forgotten_memory_go_wherever_they_were_moved_to() {
        let gone =
            NamedIds { memories: BTreeSet::from(["0123abcd".to_owned()]), ..NamedIds::default() };
        let entry = "- Graz\n<!-- @tag: src-0123abcd -->\n";
        let record = "# ADR-001: Graz\n<!-- @tag: src-0123abcd -->\n\n**Status:** Accepted\n\n## Context\nGraz or Linz\n";
        let mine = "\n## Notes\n- mine\n";
        let files = Files::from(
            [
                ("mine.md", format!("# Mine\n\n## Own\n{entry}- kept\n")),
                ("decisions/ADR-001-graz.md", record.to_owned()),
                ("decisions/ADR-002-graz-too.md", format!("{record}{mine}")),
            ]
            .map(|(path, text)| (path.to_owned(), text.into())),
        );
        let changes = strike(&files, &gone);
        let after: Vec<(&str, bool)> =
            changes.iter().map(|it| (it.path.as_str(), it.after.is_some())).collect();
        let expected = [
            ("decisions/ADR-001-graz.md", false),
            ("decisions/ADR-002-graz-too.md", false),
            ("decisions/ADR-002-forgotten.md", true),
            ("mine.md", true),
        ];
        assert_eq!(after, expected);
        let left: Vec<&str> = changes.iter().filter_map(|it| it.after.as_deref()).collect();
        assert!(left.iter().all(|text| !text.contains("Graz")), "{left:?}");
        assert!(left[0].contains("## Notes\n- mine") && left[1].contains("- kept"), "{left:?}");
    }

    #[test]
    fn what_a_person_changed_stays() {
        let text = retro().replace("- one", "- one, says Ana").replace('\n', "\r\n");
        let files =
            Files::from([("sessions/2026-11-01-retro.md".to_owned(), text.as_str().into())]);
        let changes = strike(&files, &gone("0a1b2c3d4e"));
        let after = changes[0].after.as_deref().unwrap();
        assert!(text.starts_with(after) && after.ends_with("- mine\r\n"), "{after}");
    }

    #[test]
    fn entries_that_name_a_forgotten_record_go_and_nothing_else() {
        let files = Files::from([("sessions/2026-11-01-retro.md".to_owned(), retro().into())]);
        let mut named = NamedIds::default();
        named.add(&files);
        assert_eq!(Vec::from_iter(&named.records), ["0a1b2c3d4e", "ffffffffff"]);
        assert!(strike(&files, &NamedIds::default()).is_empty());
        let left = |record: &str| {
            let changes = strike(&files, &gone(record));
            changes.into_iter().next().unwrap().after.unwrap().to_string()
        };
        assert_eq!(left("0a1b2c3d4e"), "# Retrospective: 2026-11-01\n\n## Quality\n- mine\n");
        let (text, two) = (retro(), retro().find("- two").unwrap());
        let (kept, _) = text.split_at(two);
        assert_eq!(left("ffffffffff"), kept);
    }
}
