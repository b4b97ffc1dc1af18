//! Effects of people's edits on memories: a changed entry is confirmed, a ticked one is closed, a removed one is
//! retracted, and one that is put back holds again. Each is a decision of that person.

use super::edits::{MemoryEdits, PeopleEdits, Removal};
use super::state::REMOVED;
use crate::domain::{
    Memory, MemoryId, MemoryState, PERSON_EDITED, PersonDecision, Stage, Timestamp,
};
use crate::memory_dir::{Document, Files, Kind, Status, adr_number, meta, source_tags, tags_in};
use crate::privacy::Redacted;
use crate::store::{NamespaceLease, Store, StoreResult};
use crate::text::truncate::chars;
use foldhash::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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
