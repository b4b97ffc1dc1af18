//! Edits by people and what they make of memories: an entry that a person changes or keeps is confirmed, one that is
//! taken out everywhere is retracted, one that is put back holds again.

use crate::adapters::memory_files::DirectoryRead;
use crate::domain::{Memory, MemoryState, Timestamp};
use crate::memory_dir::{
    Files, Kind, PersonEdit, Rendered, SOURCE, Tag, Update, adr_number, merge, source_tags,
};
use crate::privacy::{Gate, Redacted};
use crate::store::{NamespaceLease, Store, StoreError};
use crate::text::truncate::chars;
use std::collections::{BTreeMap, BTreeSet};

/// A person changed the words of an entry, or moved it.
const EDITED: &str = "person-edited";
/// A person changed the surroundings of an entry and left it.
const CONFIRMED: &str = "person-confirmed";
/// A person took an entry out, and nothing else shows the memory.
const REMOVED: &str = "person-removed";
/// A person put such an entry back.
const RESTORED: &str = "person-restored";
/// Letters that are kept of a person's words.
const EDITED_LETTERS_MAX: usize = 4_000;

/// A memory before and after a person's edit.
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

/// The edit of an entry: its rule, and the words that a person put there.
type EntryEdit = (&'static str, Option<Redacted>);

impl PeopleEdits<'_> {
    /// The changes of `memories` by these edits, each memory at most once.
    pub(super) fn amendments(
        self,
        memories: &[Memory],
        gate: &Gate,
        now: Timestamp,
    ) -> Vec<Amendment> {
        let tags = source_tags(memories.iter().map(|it| it.id));
        let there = tags_of_memories(&self.disk.files);
        let edits = self.by_tag(gate);
        let mut amended = Vec::new();
        for memory in memories {
            let tag = tags.get(&memory.id).map_or("", String::as_str);
            let is_there = there.contains(tag);
            let mut after = memory.clone();
            let rule = match (memory.state, edits.get(tag)) {
                // A file that could not be read may show the entry.
                (MemoryState::Active, Some((REMOVED, _)))
                    if !is_there && self.disk.skipped.is_empty() =>
                {
                    after.state = MemoryState::Retracted;
                    after.valid_until = Some(now);
                    after.reason = Some(REMOVED.to_owned());
                    REMOVED
                }
                (MemoryState::Active, Some((rule, text))) if *rule != REMOVED => {
                    after.confirmed = true;
                    let words = |it: &Redacted| chars(it.as_str(), EDITED_LETTERS_MAX).to_owned();
                    after.edited = text.as_ref().map(words).or(after.edited);
                    rule
                }
                (MemoryState::Retracted, _)
                    if is_there && memory.reason.as_deref() == Some(REMOVED) =>
                {
                    after.state = MemoryState::Active;
                    after.valid_until = None;
                    after.reason = None;
                    after.confirmed = true;
                    RESTORED
                }
                (MemoryState::Active | MemoryState::Superseded | MemoryState::Retracted, _) => {
                    continue;
                }
            };
            if after != *memory {
                amended.push(Amendment { rule, before: memory.clone(), after });
            }
        }
        amended
    }

    /// Edits since a file was last seen. Earlier ones were imported then; for a file that was never seen, everything
    /// that differs from what was rendered.
    fn edits(&self, gate: &Gate) -> Vec<(&str, PersonEdit)> {
        let mut edits = Vec::new();
        for path in self.rendered.files.keys() {
            let Some(text) = self.disk.files.get(path) else { continue };
            let old = self.rendered.renamed.get(path).unwrap_or(path);
            let Some(seen) = self.seen.get(old) else {
                let of_file = self.update.edits.iter().filter(|(it, _)| it == path);
                edits.extend(of_file.map(|(_, edit)| (path.as_str(), edit.clone())));
                continue;
            };
            let now = gate.redact(text);
            let since = merge(Kind::of_path(path), seen, seen, now.as_str(), gate);
            edits.extend(since.edits.into_iter().map(|edit| (path.as_str(), edit)));
            // A record is one memory, whichever of its lines a person changed.
            let is_same = seen.trim_end().lines().eq(now.as_str().trim_end().lines());
            if adr_number(path).is_some()
                && !is_same
                && let Some(tag) = tags_in(text).next()
            {
                edits.push((path, PersonEdit::Edited { tag: tag.to_owned(), text: now }));
            }
        }
        edits
    }

    /// The edit of each entry, by its tag; of several the rule that says most.
    fn by_tag(self, gate: &Gate) -> BTreeMap<String, EntryEdit> {
        let mut by_tag: BTreeMap<String, EntryEdit> = BTreeMap::new();
        for (path, edit) in self.edits(gate) {
            let (tag, rule, text) = match edit {
                PersonEdit::Added { .. } => continue,
                PersonEdit::Edited { tag, text } => (tag, EDITED, Some(text)),
                PersonEdit::Moved { tag, .. } => (tag, EDITED, None),
                PersonEdit::Confirmed { tag } => (tag, CONFIRMED, None),
                PersonEdit::Deleted { tag } => (tag, REMOVED, None),
            };
            // An entry that we would not show there any more was taken out by us.
            let ours = self.rendered.files.get(path);
            if !ours.is_some_and(|text| tags_in(text).any(|it| it == tag)) {
                continue;
            }
            let weight =
                |rule: &str| [REMOVED, CONFIRMED, EDITED].iter().position(|it| *it == rule);
            let slot = by_tag.entry(tag).or_insert((rule, None));
            if weight(slot.0) < weight(rule) {
                slot.0 = rule;
            }
            slot.1 = text.or(slot.1.take());
        }
        by_tag
    }
}

/// The tags of memories that files show, in private blocks too: hiding is not taking back.
pub(super) fn tags_of_memories(files: &Files) -> BTreeSet<&str> {
    files.values().flat_map(|text| tags_in(text)).collect()
}

fn tags_in(text: &str) -> impl Iterator<Item = &str> {
    let tags = text.lines().filter_map(Tag::parse).filter_map(|tag| tag.ours());
    tags.filter(|tag| tag.starts_with(SOURCE))
}

/// Writes amendments, each rule in a transaction; false if a memory was changed since it was read.
pub(super) async fn amend(
    store: &Store,
    lease: &NamespaceLease,
    amendments: &[Amendment],
    now: Timestamp,
) -> Result<bool, StoreError> {
    for rule in [EDITED, CONFIRMED, REMOVED, RESTORED] {
        let of_rule = amendments.iter().filter(|it| it.rule == rule);
        let changes: Vec<(Memory, Memory)> =
            of_rule.map(|it| (it.before.clone(), it.after.clone())).collect();
        if changes.is_empty() {
            continue;
        }
        if store.amend_memories(lease, changes, rule, now).await?.is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}
