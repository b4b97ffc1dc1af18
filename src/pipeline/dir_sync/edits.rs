//! Edits that people made to the entries of each memory since the files were last seen.

use super::state::{KnownFiles, passed};
use crate::adapters::memory_files::DirectoryRead;
use crate::memory_dir::{
    Document, Files, Kind, Merge, Moved, MovedEntry, PROGRESS, PersonEdit, Rendered, SESSIONS,
    Status, Update, adr_number, meta, shared_blocks, tags_in,
};
use crate::privacy::{Gate, Redacted};
use std::collections::{BTreeMap, BTreeSet};

/// Section of a record.
const DECISION: &str = "Decision";
const COMPLETED: &str = "Completed (Recent)";
const IN_PROGRESS: &str = "In Progress";

#[derive(Clone, Copy)]
pub(super) struct PeopleEdits<'a> {
    pub(super) before: &'a KnownFiles,
    pub(super) rendered: &'a Rendered,
    pub(super) update: &'a Update,
    pub(super) disk: &'a DirectoryRead,
    /// Words in files that were never seen count; false if they may be forgotten ones.
    pub(super) trusts_unseen: bool,
}

/// Edits of the entries of one memory.
#[derive(Default)]
pub(super) struct MemoryEdits {
    pub(super) is_edited: bool,
    pub(super) text: Option<Redacted>,
    pub(super) done: Option<bool>,
    /// Tags of memories that it is no longer marked to conflict with.
    pub(super) unmarked: Vec<String>,
    /// Tags of memories that it is marked to conflict with again.
    pub(super) marked: Vec<String>,
    pub(super) removal: Option<Removal>,
    pub(super) is_back: bool,
    /// It is in a file that did not have it before.
    pub(super) is_elsewhere: bool,
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

impl<'a> PeopleEdits<'a> {
    /// Edits since a file was last seen; earlier ones were imported then. For a file that was never seen, what differs
    /// from the rendering and is a person's for certain.
    pub(super) fn by_tag(self, gate: &Gate) -> BTreeMap<String, MemoryEdits> {
        let mut by_tag: BTreeMap<String, MemoryEdits> = BTreeMap::new();
        for (path, seen) in &self.before.seen {
            for tag in self.tags_gone_with(path, seen) {
                by_tag.entry(tag.to_owned()).or_default().note(path, PersonEdit::Deleted);
            }
        }
        let disk = &self.disk.files;
        let moved = Moved::of(&self.before.seen, &self.before.seen, disk, &self.rendered.ended);
        let changed = disk.iter().filter_map(|(path, text)| self.changed(path, text, &moved));
        let changed: Vec<ChangedFile<'_>> = changed.collect();
        let lost: BTreeSet<&str> = changed.iter().flat_map(ChangedFile::lost).collect();
        for file in &changed {
            let now = gate.redact(file.text);
            for (tag, edit) in self.edits_of(file, now.as_str(), gate) {
                if file.counts(&edit, &tag) {
                    by_tag.entry(tag).or_default().note(file.path, edit);
                }
            }
            let is_known = file.seen.is_some() && self.rendered.files.contains_key(file.path);
            let new = tags_in(file.text).filter(|tag| !file.ours.contains(tag) && is_known);
            for tag in new.filter(|tag| !file.known.contains(tag) && !lost.contains(tag)) {
                by_tag.entry(tag.to_owned()).or_default().is_back = true;
            }
            for tag in tags_in(file.text).filter(|tag| !file.known.contains(tag)) {
                by_tag.entry(tag.to_owned()).or_default().is_elsewhere = true;
            }
            if let (Some(before), Some(tag)) = (file.before(), tags_in(file.text).next())
                && adr_number(file.path).is_some()
            {
                by_tag.entry(tag.to_owned()).or_default().note_record(
                    before,
                    now,
                    file.seen.is_some(),
                );
            }
        }
        by_tag
    }

    /// The files that were never seen, and their blocks that are as rendered. Once both are known, a later change of memory
    /// makes no line in them an edit.
    pub(super) fn unseen(self, gate: &Gate) -> KnownFiles {
        let mut unseen = KnownFiles::default();
        for (path, text) in self.disk.files.iter().filter(|_| self.trusts_unseen) {
            let is_seen = self.before.seen.contains_key(path);
            let is_held = self.update.held.iter().any(|(it, _)| it == path);
            let ours = self.rendered.files.get(path).filter(|_| !is_seen && !is_held);
            let Some(ours) = ours.filter(|_| tags_in(text).next().is_some()) else { continue };
            let text = passed(text, gate);
            unseen.base.insert(path.clone(), shared_blocks(path, &text, ours).into());
            unseen.seen.insert(path.clone(), text);
        }
        unseen
    }

    /// Tags of the entries that a person removed with a file: a decision record, or one of their own.
    fn tags_gone_with<'s>(self, path: &str, seen: &'s str) -> impl Iterator<Item = &'s str> {
        let is_gone = !self.disk.files.contains_key(path) && !self.is_skipped(path);
        let is_record =
            adr_number(path).is_some() && self.update.deleted.iter().any(|it| it == path);
        let is_own = !self.before.base.contains_key(path);
        let entries_max = match is_gone {
            true if is_own => usize::MAX,
            true if is_record => 1,
            _ => 0,
        };
        tags_in(seen).take(entries_max)
    }

    /// The file, if it changed since it was last seen and may have entries.
    fn changed(
        self,
        path: &'a str,
        text: &'a str,
        moved: &'a Moved<'a>,
    ) -> Option<ChangedFile<'a>> {
        let old = self.rendered.renamed.get(path).map_or(path, String::as_str);
        let of = |files: &'a Files, path| files.get(path).map(|it| &**it);
        let (seen, ours) = (of(&self.before.seen, old), of(&self.rendered.files, path));
        let moved = moved.in_file(path);
        let is_known = seen.is_some() || ours.is_some() || !moved.is_empty();
        let tags = |text: Option<&'a str>| text.into_iter().flat_map(tags_in).collect();
        (is_known && seen != Some(text)).then(|| ChangedFile {
            path,
            text,
            seen,
            rendered: ours.filter(|_| self.trusts_unseen),
            known: tags(seen),
            base: tags(of(&self.before.base, old)),
            ours: tags(ours),
            moved,
        })
    }

    fn edits_of(self, file: &ChangedFile<'_>, now: &str, gate: &Gate) -> Vec<(String, PersonEdit)> {
        let (wordings, moved) = (&self.rendered.wordings, file.moved);
        let merge = Merge { kind: Kind::of_path(file.path), gate, wordings, moved };
        match (file.seen, file.rendered) {
            (None, Some(ours)) => merge.unseen_edits(ours, now),
            (seen, _) => {
                let seen = seen.unwrap_or_default();
                merge.run(seen, seen, now).edits
            }
        }
    }

    pub(super) fn is_skipped(&self, path: &str) -> bool {
        self.disk.skipped.iter().any(|(it, _)| it == path)
    }

    /// True if a file was skipped that was never seen, and may show any entry.
    pub(super) fn is_partial(&self) -> bool {
        self.disk.skipped.iter().any(|(path, _)| !self.before.seen.contains_key(path))
    }

    /// Tags in all files, each with its most significant file; a skipped file counts as it was last seen. Private blocks
    /// count, since hiding is not removing.
    pub(super) fn shown(&self) -> BTreeMap<&str, Removal> {
        let mut shown: BTreeMap<&str, Removal> = BTreeMap::new();
        let skipped =
            self.disk.skipped.iter().filter_map(|(path, _)| self.before.seen.get_key_value(path));
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

/// A file that a person changed, with the tags of its entries: when last seen, rendered last, rendered now.
struct ChangedFile<'a> {
    path: &'a str,
    text: &'a str,
    seen: Option<&'a str>,
    rendered: Option<&'a str>,
    known: BTreeSet<&'a str>,
    base: BTreeSet<&'a str>,
    ours: BTreeSet<&'a str>,
    /// Entries that were moved here since it was last seen.
    moved: &'a [MovedEntry<'a>],
}

impl<'a> ChangedFile<'a> {
    /// Text to compare with: as last seen, or else as rendered.
    fn before(&self) -> Option<&'a str> {
        self.seen.or(self.rendered)
    }

    /// Tags that were here and are not any more.
    fn lost(&self) -> impl Iterator<Item = &str> {
        let still: BTreeSet<&str> = tags_in(self.text).collect();
        self.known.iter().copied().filter(move |tag| !still.contains(tag))
    }

    /// True if the edit of this entry is a person's.
    fn counts(&self, edit: &PersonEdit, tag: &str) -> bool {
        match edit {
            // An entry that is not rendered here any more was removed by us.
            PersonEdit::Deleted => self.ours.contains(tag) || !self.base.contains(tag),
            // Marks do not move along.
            PersonEdit::Marks { .. } => self.known.contains(tag) || self.ours.contains(tag),
            PersonEdit::Edited(_) | PersonEdit::Ticked(_) | PersonEdit::Moved(_) => true,
        }
    }
}

fn removal_of(path: &str) -> Removal {
    if path.starts_with(SESSIONS) { Removal::History } else { Removal::Current }
}

impl MemoryEdits {
    fn note(&mut self, path: &str, edit: PersonEdit) {
        match edit {
            PersonEdit::Edited(text) => {
                (self.is_edited, self.text) = (true, Some(text));
            }
            PersonEdit::Ticked(done) => self.done = Some(done),
            PersonEdit::Marks { gone, more } => {
                self.unmarked.extend(gone);
                self.marked.extend(more);
            }
            PersonEdit::Moved(section) => {
                self.is_edited = true;
                if path == PROGRESS {
                    self.done = Some(section.as_str() == COMPLETED);
                    self.is_begun = section.as_str() == IN_PROGRESS;
                }
            }
            PersonEdit::Deleted => self.removal = self.removal.max(Some(removal_of(path))),
        }
    }

    /// Collects the edits of a decision record, which is one memory whichever of its lines changed.
    /// Of a record that was never seen, `before` is the rendering, and only a wording or an end is a person's for certain.
    fn note_record(&mut self, before: &str, now: Redacted, is_seen: bool) {
        let [before, after] = [before, now.as_str()].map(RecordText::of);
        let is_end = |it: Status| matches!(it, Status::Deprecated | Status::SupersededBy(_));
        let ends = after.status.is_some_and(is_end) && !before.status.is_some_and(is_end);
        self.status = after.status.filter(|_| before.status != after.status && (is_seen || ends));
        if before.lines != after.lines {
            self.is_edited |= is_seen;
            let is_new = |it: &&str| !it.is_empty();
            let decision = Some(after.decision).filter(|it| *it != before.decision);
            let words = decision.or(Some(after.title).filter(|it| *it != before.title));
            let start = |words: &str| now.as_str().find(words);
            let words = words.filter(is_new).and_then(|it| Some((start(it)?, it.len())));
            self.is_edited |= words.is_some();
            self.text = words.map(|(at, len)| now.cut(at..at + len)).or(self.text.take());
        }
    }
}

/// A decision record, as far as an edit of it counts.
struct RecordText<'t> {
    status: Option<Status>,
    /// Title without the number.
    title: &'t str,
    /// Text of the section with the decision.
    decision: &'t str,
    /// All lines with words but that of the status.
    lines: Vec<&'t str>,
}

impl<'t> RecordText<'t> {
    fn of(text: &'t str) -> RecordText<'t> {
        let (document, _) = Document::parse(Kind::Decision, text);
        let top = meta(&document);
        let at = top.status_line.unwrap_or_default() as usize;
        let lines = (1..).zip(text.lines()).filter(|it| it.0 != at && !it.1.trim().is_empty());
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
