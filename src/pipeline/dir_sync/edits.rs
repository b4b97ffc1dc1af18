//! What people did to the entries of each memory since the files were last seen.

use crate::adapters::memory_files::DirectoryRead;
use crate::memory_dir::{
    Document, Files, Kind, Merge, PROGRESS, PersonEdit, Rendered, SESSIONS, Status, Update,
    adr_number, meta, tags_in,
};
use crate::privacy::{Gate, Redacted};
use std::collections::{BTreeMap, BTreeSet};

/// Section of a record.
const DECISION: &str = "Decision";
const COMPLETED: &str = "Completed (Recent)";
const IN_PROGRESS: &str = "In Progress";

#[derive(Clone, Copy)]
pub(super) struct PeopleEdits<'a> {
    pub(super) seen: &'a Files,
    pub(super) rendered: &'a Rendered,
    pub(super) update: &'a Update,
    pub(super) disk: &'a DirectoryRead,
}

/// Edits of the entries of one memory.
#[derive(Default)]
pub(super) struct MemoryEdits {
    pub(super) is_edited: bool,
    pub(super) text: Option<Redacted>,
    pub(super) done: Option<bool>,
    /// Tags of memories that it is no longer marked to conflict with.
    pub(super) unmarked: Vec<String>,
    pub(super) removal: Option<Removal>,
    pub(super) is_back: bool,
    /// It was moved to the requests in progress.
    pub(super) is_begun: bool,
    pub(super) status: Option<Status>,
}

/// The files that an entry was removed from.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Removal {
    /// Session files, which show what was said.
    History,
    /// A file that shows what holds now.
    Current,
}

impl PeopleEdits<'_> {
    /// Edits since a file was last seen; earlier ones were imported then. For a file that was never seen, everything
    /// that differs from what was rendered.
    pub(super) fn by_tag(self, gate: &Gate) -> BTreeMap<String, MemoryEdits> {
        let mut by_tag: BTreeMap<String, MemoryEdits> = BTreeMap::new();
        // A deleted decision record is a removed entry.
        for path in self.update.deleted.iter().filter(|path| adr_number(path).is_some()) {
            let tag = self.seen.get(path).and_then(|text| tags_in(text).next());
            if let Some(tag) = tag.filter(|_| !self.is_skipped(path)) {
                let edit = PersonEdit::Deleted { tag: tag.to_owned() };
                by_tag.entry(tag.to_owned()).or_default().note(path, edit);
            }
        }
        for (path, ours) in &self.rendered.files {
            let Some(text) = self.disk.files.get(path) else { continue };
            let old = self.rendered.renamed.get(path).unwrap_or(path);
            let seen = self.seen.get(old);
            if seen == Some(text) {
                continue;
            }
            let ours: BTreeSet<&str> = tags_in(ours).collect();
            let now = gate.redact(text);
            let edits = match seen {
                Some(seen) => {
                    let wordings = &self.rendered.wordings;
                    Merge { kind: Kind::of_path(path), gate, wordings }
                        .run(seen, seen, now.as_str())
                        .edits
                }
                None => {
                    let of_file = self.update.edits.iter().filter(|(it, _)| it == path);
                    of_file.map(|(_, edit)| edit.clone()).collect()
                }
            };
            for edit in edits {
                // An entry that is not rendered here any more was removed by us.
                if let Some(tag) = tag_of(&edit).filter(|tag| ours.contains(tag)) {
                    by_tag.entry(tag.to_owned()).or_default().note(path, edit);
                }
            }
            let known: BTreeSet<&str> = seen.into_iter().flat_map(|text| tags_in(text)).collect();
            for tag in tags_in(text).filter(|tag| !ours.contains(tag) && !known.contains(tag)) {
                by_tag.entry(tag.to_owned()).or_default().is_back |= seen.is_some();
            }
            if let (Some(seen), Some(tag)) = (seen, tags_in(text).next())
                && adr_number(path).is_some()
            {
                by_tag.entry(tag.to_owned()).or_default().note_record(seen, now);
            }
        }
        by_tag.retain(|_, edits| edits.is_something());
        by_tag
    }

    pub(super) fn is_skipped(&self, path: &str) -> bool {
        self.disk.skipped.iter().any(|(it, _)| it == path)
    }

    /// True if a file was skipped that was never seen, and may show any entry.
    pub(super) fn is_partial(&self) -> bool {
        self.disk.skipped.iter().any(|(path, _)| !self.seen.contains_key(path))
    }

    /// Tags in all files, each with its most significant file; a skipped file counts as it was last seen. Private blocks
    /// count, since hiding is not removing.
    pub(super) fn shown(&self) -> BTreeMap<&str, Removal> {
        let mut shown: BTreeMap<&str, Removal> = BTreeMap::new();
        let skipped =
            self.disk.skipped.iter().filter_map(|(path, _)| self.seen.get_key_value(path));
        for (path, text) in self.disk.files.iter().chain(skipped) {
            let file = removal_of(path);
            for tag in tags_in(text) {
                let most = shown.entry(tag).or_insert(file);
                *most = file.max(*most);
            }
        }
        shown
    }
}

fn removal_of(path: &str) -> Removal {
    if path.starts_with(SESSIONS) { Removal::History } else { Removal::Current }
}

fn tag_of(edit: &PersonEdit) -> Option<&str> {
    match edit {
        PersonEdit::Added { .. } => None,
        PersonEdit::Edited { tag, .. }
        | PersonEdit::Ticked { tag, .. }
        | PersonEdit::Unmarked { tag, .. }
        | PersonEdit::Moved { tag, .. }
        | PersonEdit::Deleted { tag } => Some(tag),
    }
}

impl MemoryEdits {
    fn note(&mut self, path: &str, edit: PersonEdit) {
        match edit {
            PersonEdit::Added { .. } => {}
            PersonEdit::Edited { text, .. } => {
                (self.is_edited, self.text) = (true, Some(text));
            }
            PersonEdit::Ticked { done, .. } => self.done = Some(done),
            PersonEdit::Unmarked { others, .. } => self.unmarked.extend(others),
            PersonEdit::Moved { section, .. } => {
                self.is_edited = true;
                if path == PROGRESS {
                    self.done = Some(section.as_str() == COMPLETED);
                    self.is_begun = section.as_str() == IN_PROGRESS;
                }
            }
            PersonEdit::Deleted { .. } => self.removal = self.removal.max(Some(removal_of(path))),
        }
    }

    /// Collects the edits of a decision record, which is one memory whichever of its lines changed.
    fn note_record(&mut self, seen: &str, now: Redacted) {
        let [before, after] = [seen, now.as_str()].map(RecordText::of);
        self.status = after.status.filter(|_| before.status != after.status);
        if before.lines != after.lines {
            self.is_edited = true;
            let is_new = |it: &&str| !it.is_empty();
            let decision = Some(after.decision).filter(|it| *it != before.decision);
            let words = decision.or(Some(after.title).filter(|it| *it != before.title));
            let start = |words: &str| now.as_str().find(words);
            let words = words.filter(is_new).and_then(|it| Some((start(it)?, it.len())));
            self.text = words.map(|(at, len)| now.cut(at..at + len)).or(self.text.take());
        }
    }

    fn is_something(&self) -> bool {
        let MemoryEdits {
            is_edited,
            text: _,
            done,
            unmarked,
            removal,
            is_back,
            is_begun: _,
            status,
        } = self;
        *is_edited
            || *is_back
            || !unmarked.is_empty()
            || done.is_some()
            || removal.is_some()
            || status.is_some()
    }
}

/// A decision record, as far as an edit of it counts.
struct RecordText<'t> {
    status: Option<Status>,
    /// Title without the number.
    title: &'t str,
    /// Text of the section with the decision.
    decision: &'t str,
    /// All lines but that of the status.
    lines: Vec<&'t str>,
}

impl<'t> RecordText<'t> {
    fn of(text: &'t str) -> RecordText<'t> {
        let (document, _) = Document::parse(Kind::Decision, text);
        let top = meta(&document);
        let at = top.status_line.unwrap_or_default() as usize;
        let lines = (1..).zip(text.trim_end().lines()).filter(|(number, _)| *number != at);
        let title = document.title();
        let decided = document.entries().find(|block| document.section(block) == DECISION);
        RecordText {
            status: top.status.map(|(status, _)| status),
            title: title.split_once(": ").map_or(title, |(_, title)| title),
            decision: decided.map_or("", |block| document.body(block).trim()),
            lines: lines.map(|(_, line)| line.trim_end()).collect(),
        }
    }
}

/// Tags of memories in files. Private blocks count, since hiding is not removing.
pub(super) fn tags_of_memories(files: &Files) -> BTreeSet<&str> {
    files.values().flat_map(|text| tags_in(text)).collect()
}
