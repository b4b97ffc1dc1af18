//! Effects of people's edits on memories: a changed entry is confirmed, a ticked one is closed, a removed one is
//! retracted, and one that is put back holds again. Each is a decision of that person.

use crate::adapters::memory_files::DirectoryRead;
use crate::domain::{
    Memory, MemoryId, MemoryState, PERSON_EDITED, PersonDecision, Stage, Timestamp,
};
use crate::memory_dir::{
    Document, Files, Kind, Merge, PROGRESS, PersonEdit, Rendered, SESSIONS, SOURCE, Status, Tag,
    Update, adr_number, meta, source_tags,
};
use crate::privacy::{Gate, Redacted};
use crate::store::{NamespaceLease, Store, StoreError};
use crate::text::truncate::chars;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A person ticked an entry off, or moved it to the completed ones.
const CLOSED: &str = "person-closed";
/// A person removed the tick.
const REOPENED: &str = "person-reopened";
/// A person removed an entry, and no other file shows that it holds.
const REMOVED: &str = "person-removed";
/// A person put an entry back.
const RESTORED: &str = "person-restored";
/// A person changed the status of a decision record.
const STATUS: &str = "person-status";
/// A record's status names a record that is not there.
const NO_RECORD: &str = "status-names-no-record";
/// Records would supersede each other.
const CIRCLE: &str = "status-makes-a-circle";
/// Maximum length of a person's wording, in characters.
const EDITED_LETTERS_MAX: usize = 4_000;
/// Section of a record.
const DECISION: &str = "Decision";
const COMPLETED: &str = "Completed (Recent)";
const IN_PROGRESS: &str = "In Progress";

pub(super) struct Amendment {
    pub(super) rule: &'static str,
    pub(super) before: Memory,
    pub(super) after: Memory,
}

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
    is_edited: bool,
    text: Option<Redacted>,
    done: Option<bool>,
    /// Tags of memories that it is no longer marked to conflict with.
    unmarked: Vec<String>,
    removal: Option<Removal>,
    is_back: bool,
    /// It was moved to the requests in progress.
    is_begun: bool,
    status: Option<Status>,
}

/// The files that an entry was removed from.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Removal {
    /// Session files, which show what was said.
    History,
    /// A file that shows what holds now.
    Current,
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
        tags: &BTreeMap<MemoryId, String>,
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
    /// the reason.
    pub(super) fn refuse_statuses(
        self,
        memories: &[Memory],
        edits: &mut BTreeMap<String, MemoryEdits>,
    ) -> Vec<(String, &'static str)> {
        if edits.values().all(|it| it.status.is_none()) {
            return Vec::new();
        }
        let tags = source_tags(memories.iter().map(|it| it.id));
        let status_of = |id: &MemoryId| tags.get(id).and_then(|tag| edits.get(tag)?.status);
        let kept = memories.iter().filter(|it| status_of(&it.id).is_none());
        let mut successors: BTreeMap<MemoryId, MemoryId> =
            kept.filter_map(|it| Some((it.id, it.superseded_by?))).collect();
        let mut refused = Vec::new();
        for (id, tag) in &tags {
            let Some(edits) = edits.get_mut(tag) else { continue };
            let Some(Status::SupersededBy(number)) = edits.status else { continue };
            let reason = match (self.record(number), self.memory_of(number, &tags)) {
                (None, _) => NO_RECORD,
                (Some(_), Some(by)) if leads_to(by, *id, &successors) => CIRCLE,
                (Some(_), by) => {
                    successors.extend(by.map(|by| (*id, by)));
                    continue;
                }
            };
            edits.status = None;
            let is_own = |(path, text): &(&String, &Arc<str>)| {
                adr_number(path).is_some() && tags_in(text).next() == Some(tag.as_str())
            };
            let own = self.disk.files.iter().find(is_own);
            refused.extend(own.map(|(path, _)| (path.clone(), reason)));
        }
        refused
    }

    /// Text of the record with this number.
    fn record(self, number: u32) -> Option<&'a str> {
        let found = self.disk.files.iter().find(|(path, _)| adr_number(path) == Some(number));
        found.map(|(_, text)| &**text)
    }

    fn memory_of(self, number: u32, tags: &BTreeMap<MemoryId, String>) -> Option<MemoryId> {
        let tag = tags_in(self.record(number)?).next()?;
        tags.iter().find(|(_, it)| *it == tag).map(|(id, _)| *id)
    }

    fn set_status(self, memory: &mut Memory, status: Status, tags: &BTreeMap<MemoryId, String>) {
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

    fn is_skipped(&self, path: &str) -> bool {
        self.disk.skipped.iter().any(|(it, _)| it == path)
    }

    /// True if a file was skipped that was never seen, and may show any entry.
    fn is_partial(&self) -> bool {
        self.disk.skipped.iter().any(|(path, _)| !self.seen.contains_key(path))
    }

    /// Tags in all files, each with its most significant file; a skipped file counts as it was last seen. Private blocks
    /// count, since hiding is not removing.
    fn shown(&self) -> BTreeMap<&str, Removal> {
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
}

/// True if `from` is `to`, or was superseded by it in the end.
fn leads_to(from: MemoryId, to: MemoryId, successors: &BTreeMap<MemoryId, MemoryId>) -> bool {
    let chain = std::iter::successors(Some(from), |at| successors.get(at).copied());
    chain.take(successors.len() + 1).any(|at| at == to)
}

/// Pairs of memories from which a person removed the mark of a conflict.
pub(super) fn unmarked_pairs(
    memories: &[Memory],
    edits: &BTreeMap<String, MemoryEdits>,
) -> Vec<(MemoryId, MemoryId)> {
    if edits.values().all(|it| it.unmarked.is_empty()) {
        return Vec::new();
    }
    let tags = source_tags(memories.iter().map(|it| it.id));
    let ids: BTreeMap<&str, MemoryId> = tags.iter().map(|(id, tag)| (tag.as_str(), *id)).collect();
    let id = |tag: &String| ids.get(tag.as_str()).copied();
    let pairs =
        edits.iter().flat_map(|(tag, it)| it.unmarked.iter().map(move |other| (tag, other)));
    pairs.filter_map(|(tag, other)| Some((id(tag)?, id(other)?))).collect()
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

pub(super) fn tags_in(text: &str) -> impl Iterator<Item = &str> {
    let tags = text.lines().filter_map(Tag::of_line).filter_map(|tag| tag.ours());
    tags.filter(|tag| tag.starts_with(SOURCE))
}

/// Stores amendments, one transaction per rule; false if a memory changed since it was read.
pub(super) async fn amend(
    store: &Store,
    lease: &NamespaceLease,
    amendments: &[Amendment],
    now: Timestamp,
) -> Result<bool, StoreError> {
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
