//! Edits that people made to the entries of each memory since the files were last seen, and their effects on memories: a
//! changed entry is confirmed, a ticked one is closed, a removed one is retracted, and one that is put back holds
//! again. Each is a decision of that person.

use super::state::{KnownFiles, REMOVED, passed};
use crate::adapters::memory_files::DirectoryRead;
use crate::domain::{
    Memory, MemoryId, MemoryState, PERSON_EDITED, PersonDecision, Stage, Timestamp,
};
use crate::memory_dir::{
    Block, Document, Files, Kind, Merge, Moved, MovedEntry, PROGRESS, PersonEdit, Rendered,
    SESSIONS, Status, Update, adr_number, meta, shared_blocks, source_tags, tags_in,
};
use crate::privacy::{Gate, Redacted};
use crate::store::{NamespaceLease, Store, StoreResult};
use crate::text::phrase::in_one_line;
use crate::text::truncate::chars;
use foldhash::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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
        if before.words != after.words {
            self.is_edited |= is_seen;
            let differs =
                |one: &str, other| !one.is_empty() && in_one_line(one) != in_one_line(other);
            let decision = Some(after.decision).filter(|it| differs(it, before.decision));
            let words = decision.or(Some(after.title).filter(|it| differs(it, before.title)));
            self.is_edited |= words.is_some();
            // Part of `now`, which is redacted.
            let words = words.map(|it| Redacted::reopened(in_one_line(it)));
            self.text = words.or(self.text.take());
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
    /// All words but those of the line with the status: how a paragraph is wrapped says nothing.
    words: String,
}

impl<'t> RecordText<'t> {
    fn of(text: &'t str) -> RecordText<'t> {
        let (document, _) = Document::parse(Kind::Decision, text);
        let top = meta(&document);
        let at = top.status_line.unwrap_or_default() as usize;
        let lines = (1..).zip(text.lines()).filter(|it| it.0 != at);
        let title = document.title();
        let decided = || document.entries().filter(|block| document.section(block) == DECISION);
        let is_tagged = |block: &&Block| document.tags(block).any(|tag| tag.ours().is_some());
        let decided = decided().find(is_tagged).or_else(|| decided().next());
        RecordText {
            status: top.status.map(|(status, _)| status),
            title: title.split_once(": ").map_or(title, |(_, title)| title),
            decision: decided.map_or("", |block| document.body(block).trim()),
            words: in_one_line(&lines.map(|(_, line)| line).collect::<Vec<_>>().join(" ")),
        }
    }
}

/// A person ticked an entry off, or moved it to the completed ones.
const CLOSED: &str = "person-closed";
/// A person removed the tick.
const REOPENED: &str = "person-reopened";
/// A person put an entry back.
const RESTORED: &str = "person-restored";
/// A person changed the status of a decision record.
const STATUS: &str = "person-status";
/// A record's status names a record that is not there.
pub(super) const NO_RECORD: &str =
    "its status names a record that does not exist, and memory keeps the decision";
/// Records would supersede each other.
pub(super) const CIRCLE: &str =
    "by its status, decisions would supersede each other, and memory keeps this one";
/// A record has no status, or one that we do not know.
pub(super) const NO_STATUS: &str = "its status is not Proposed, Accepted, Deprecated or Superseded by ADR-NNN, and memory \
                                    keeps the decision";
/// A person removed or hid the line of a decision in a list, and its record still holds.
pub(super) const RECORD_HOLDS: &str = "its line in a list was removed or hidden, and memory keeps the decision (set its \
                                       status to Deprecated, or delete this file too, to withdraw it)";
/// A person deleted the record of a decision that a list still shows.
pub(super) const RECORD_DELETED: &str = "the file stays deleted, and memory keeps the decision (remove its line from the \
                                         lists too, to withdraw it)";
/// Only the first of these entries counts.
const SHARED_TAG: &str = "two of its entries have one tag, and only the first counts (`annalist memory lint` names them)";
/// Maximum length of a person's wording, in characters.
const EDITED_LETTERS_MAX: usize = 4_000;
pub(super) struct Amendment {
    pub(super) rule: &'static str,
    pub(super) before: Memory,
    pub(super) after: Memory,
}

impl<'a> PeopleEdits<'a> {
    /// Changes to `memories` by these edits, each memory at most once.
    pub(super) fn amendments(
        self,
        memories: &[Memory],
        edits: &BTreeMap<String, MemoryEdits>,
        now: Timestamp,
    ) -> Vec<Amendment> {
        if edits.is_empty() {
            return Vec::new();
        }
        let tags = source_tags(memories.iter().map(|it| it.id));
        let shown = edits.values().any(|it| it.removal.is_some()).then(|| self.shown());
        let shown = shown.unwrap_or_default();
        let mut amended = Vec::new();
        for memory in memories {
            let edited = tags.get(&memory.id).and_then(|tag| Some((tag, edits.get(tag)?)));
            let Some((tag, edits)) = edited else { continue };
            let mut after = memory.clone();
            let Some(rule) = self.amend(&mut after, edits, shown.get(tag.as_str()), &tags) else {
                continue;
            };
            if after == *memory {
                continue;
            }
            if after.state == MemoryState::Active {
                after.confirmed = true;
            } else {
                after.valid_until = Some(now);
                after.reason = Some(rule.to_owned());
            }
            after.decided = Some(PersonDecision { rule: rule.into(), at: now });
            amended.push(Amendment { rule, before: memory.clone(), after });
        }
        amended
    }

    /// Applies the edits of the entries with one tag to their memory. Returns the rule of the most significant edit.
    fn amend(
        self,
        memory: &mut Memory,
        edits: &MemoryEdits,
        shown: Option<&Removal>,
        tags: &HashMap<MemoryId, String>,
    ) -> Option<&'static str> {
        if let Some(status) = edits.status {
            self.set_status(memory, status, tags);
            return Some(STATUS);
        }
        match memory.state {
            MemoryState::Active => {}
            MemoryState::Retracted if memory.reason.as_deref() != Some(REMOVED) => return None,
            MemoryState::Retracted | MemoryState::Superseded => {
                memory.reinstate();
                return edits.is_back.then_some(RESTORED);
            }
        }
        // Another file may still show the entry; a session file does not show that it holds.
        let is_gone = edits.removal.is_some_and(|removal| shown.is_none_or(|it| *it < removal));
        if is_gone && !self.is_partial() {
            memory.state = MemoryState::Retracted;
            return Some(REMOVED);
        }
        let is_edited = edits.is_edited;
        if is_edited {
            memory.confirmed = true;
            let words = |it: &Redacted| chars(it.as_str(), EDITED_LETTERS_MAX).to_owned();
            memory.edited = edits.text.as_ref().map(words).or(memory.edited.take());
        }
        if edits.is_begun && memory.stage == Stage::Proposed {
            memory.stage = Stage::Attempted;
        }
        let stage = edits.done.filter(|done| *done == memory.is_open());
        match stage.and_then(|done| Some((done, memory.stage_once(done)?))) {
            Some((done, stage)) => {
                memory.stage = stage;
                Some(if done { CLOSED } else { REOPENED })
            }
            None => is_edited.then_some(PERSON_EDITED),
        }
    }

    /// Drops statuses by which a record is superseded by none, or by one that it supersedes. Returns the files with
    /// the reason, also of earlier syncs, and those with another status that cannot be adopted.
    pub(super) fn refuse_statuses(
        self,
        memories: &[Memory],
        edits: &mut BTreeMap<String, MemoryEdits>,
    ) -> Vec<(String, &'static str)> {
        let is_held = |path: &String| self.update.held.iter().any(|(it, _)| it == path);
        let is_edited = |(path, text): &(&'a String, &Arc<str>)| {
            let is_ours = |files: &Files| files.get(*path) == Some(*text);
            let is_ours = is_ours(&self.before.base) || is_ours(&self.rendered.files);
            adr_number(path).is_some() && !is_ours && !is_held(path)
        };
        let records = self.disk.files.iter().filter(is_edited);
        let records: Vec<_> = records.filter_map(|it| Some((it, tags_in(it.1).next()?))).collect();
        if records.is_empty() {
            return Vec::new();
        }
        let tags = source_tags(memories.iter().map(|it| it.id));
        let ids: BTreeMap<&str, MemoryId> = tags.iter().map(|(id, tag)| (&**tag, *id)).collect();
        let has_status =
            |it: &Memory| edits.get(&tags[&it.id]).is_some_and(|it| it.status.is_some());
        let kept = memories.iter().filter(|it| !has_status(it));
        let mut successors: BTreeMap<MemoryId, MemoryId> =
            kept.filter_map(|it| Some((it.id, it.superseded_by?))).collect();
        let mut refused = Vec::new();
        for ((path, text), tag) in records {
            let Some(id) = ids.get(tag) else { continue };
            let (document, _) = Document::parse(Kind::Decision, text);
            let reason = match meta(&document).status.map(|(status, _)| status) {
                None => NO_STATUS,
                Some(Status::SupersededBy(number)) => {
                    match (self.record(number), self.memory_of(number, &tags)) {
                        (None, _) => NO_RECORD,
                        (Some(_), Some(by)) if leads_to(by, *id, &successors) => CIRCLE,
                        (Some(_), by) => {
                            successors.extend(by.map(|by| (*id, by)));
                            continue;
                        }
                    }
                }
                Some(Status::Accepted | Status::Proposed | Status::Deprecated) => continue,
            };
            if let Some(edits) = edits.get_mut(tag) {
                edits.status = None;
            }
            refused.push((path.clone(), reason));
        }
        refused
    }

    /// Records of decisions whose lines people removed or hid, and nobody moved, with the reason why they still hold.
    pub(super) fn records_that_hold(
        self,
        edits: &BTreeMap<String, MemoryEdits>,
    ) -> impl Iterator<Item = (String, &'static str)> {
        let is_gone = |tag| {
            let edits: Option<&MemoryEdits> = edits.get(tag);
            edits.is_some_and(|it| {
                it.removal == Some(Removal::Current) && !it.is_elsewhere && it.status.is_none()
            })
        };
        let records = self.disk.files.iter().filter(|(path, _)| adr_number(path).is_some());
        let held = records.filter(move |(_, text)| tags_in(text).next().is_some_and(is_gone));
        held.map(|(path, _)| (path.clone(), RECORD_HOLDS))
    }

    /// Records that people deleted since the last sync although a list still shows their decision, with the reason why
    /// that holds.
    pub(super) fn deleted_records(self) -> Vec<(String, &'static str)> {
        let is_deleted = |path: &&String| {
            adr_number(path).is_some()
                && self.update.deleted.contains(path)
                && !self.is_skipped(path)
        };
        let deleted: Vec<&String> = self.before.seen.keys().filter(is_deleted).collect();
        if deleted.is_empty() {
            return Vec::new();
        }
        let shown = self.shown();
        let is_shown = |path: &&String| {
            let tag = tags_in(&self.before.seen[*path]).next();
            tag.is_some_and(|tag| shown.get(tag) == Some(&Removal::Current))
        };
        let held = deleted.into_iter().filter(is_shown);
        held.map(|path| (path.clone(), RECORD_DELETED)).collect()
    }

    /// Files in which people copied an entry with its tag, with that reason.
    pub(super) fn shared_tags(self) -> impl Iterator<Item = (String, &'static str)> {
        let has_two = |text: &str| {
            let mut met = BTreeSet::new();
            !tags_in(text).all(|tag| met.insert(tag))
        };
        let is_it = move |(path, text): &(&String, &Arc<str>)| {
            let is_held = self.update.held.iter().any(|(it, _)| it == *path);
            let is_ours = self.rendered.files.get(*path) == Some(*text);
            !(is_ours || is_held) && adr_number(path).is_none() && has_two(text)
        };
        self.disk.files.iter().filter(is_it).map(|(path, _)| (path.clone(), SHARED_TAG))
    }

    /// Text of the record with this number.
    fn record(self, number: u32) -> Option<&'a str> {
        let found = self.disk.files.iter().find(|(path, _)| adr_number(path) == Some(number));
        found.map(|(_, text)| &**text)
    }

    fn memory_of(self, number: u32, tags: &HashMap<MemoryId, String>) -> Option<MemoryId> {
        let tag = tags_in(self.record(number)?).next()?;
        tags.iter().find(|(_, it)| *it == tag).map(|(id, _)| *id)
    }

    fn set_status(self, memory: &mut Memory, status: Status, tags: &HashMap<MemoryId, String>) {
        let successor = match status {
            Status::Accepted | Status::Proposed => {
                memory.reinstate();
                let is_decided = status == Status::Accepted;
                memory.stage = if is_decided { Stage::Decided } else { Stage::Proposed };
                return;
            }
            Status::Deprecated => None,
            Status::SupersededBy(number) => self.memory_of(number, tags),
        };
        memory.state = successor.map_or(MemoryState::Retracted, |_| MemoryState::Superseded);
        memory.superseded_by = successor;
    }
}

/// True if `from` is `to`, or was superseded by it in the end.
fn leads_to(from: MemoryId, to: MemoryId, successors: &BTreeMap<MemoryId, MemoryId>) -> bool {
    let chain = std::iter::successors(Some(from), |at| successors.get(at).copied());
    chain.take(successors.len() + 1).any(|at| at == to)
}

/// Pairs of memories that `marks` of people's edits name, such as those from which the mark of a conflict was removed.
pub(super) fn marked_pairs(
    memories: &[Memory],
    edits: &BTreeMap<String, MemoryEdits>,
    marks: fn(&MemoryEdits) -> &[String],
) -> Vec<(MemoryId, MemoryId)> {
    if edits.values().all(|it| marks(it).is_empty()) {
        return Vec::new();
    }
    let tags = source_tags(memories.iter().map(|it| it.id));
    let ids: BTreeMap<&str, MemoryId> = tags.iter().map(|(id, tag)| (tag.as_str(), *id)).collect();
    let id = |tag: &String| ids.get(tag.as_str()).copied();
    let pairs = edits.iter().flat_map(|(tag, it)| marks(it).iter().map(move |other| (tag, other)));
    pairs.filter_map(|(tag, other)| Some((id(tag)?, id(other)?))).collect()
}

/// Stores amendments, one transaction per rule; false if a memory changed since it was read.
pub(super) async fn amend(
    store: &Store,
    lease: &NamespaceLease,
    amendments: &[Amendment],
    now: Timestamp,
) -> StoreResult<bool> {
    let mut by_rule: BTreeMap<&'static str, Vec<(Memory, Memory)>> = BTreeMap::new();
    for it in amendments {
        by_rule.entry(it.rule).or_default().push((it.before.clone(), it.after.clone()));
    }
    for (rule, changes) in by_rule {
        if store.amend_memories(lease, changes, rule, now).await?.is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}
