//! What people say of memories by what they do to the directory: an entry that they change or keep is confirmed, one
//! that they take out everywhere is taken back, one that they put back holds again.

use crate::domain::{Memory, MemoryState, Timestamp};
use crate::edge::memory_dir::Read;
use crate::edge::store::{Store, StoreError, Tenure};
use crate::memory_dir::{
    Files, Kind, PersonEdit, Rendered, SOURCE, Tag, Update, adr_number, merge, source_tags,
};
use crate::privacy::{Gate, Redacted};
use std::collections::{BTreeMap, BTreeSet};

/// A person changed the words of an entry, or where it stands.
pub(super) const EDITED: &str = "person-edited";
/// A person changed what stands around an entry and left it.
pub(super) const CONFIRMED: &str = "person-confirmed";
/// A person took an entry out, and nothing else shows the memory.
pub(super) const REMOVED: &str = "person-removed";
/// A person put such an entry back.
pub(super) const RESTORED: &str = "person-restored";

/// Letters that are kept of what a person put in an entry's place.
const EDITED_LETTERS_MAX: usize = 4_000;

/// What a person's edit makes of a memory.
pub(super) struct Amendment {
    pub(super) rule: &'static str,
    pub(super) before: Memory,
    pub(super) after: Memory,
}

/// What people did since a file was last seen. What they did before was taken up then; where nothing was seen yet,
/// what differs from what was rendered.
pub(super) fn edits(
    seen: &Files,
    (rendered, update): (&Rendered, &Update),
    disk: &Files,
    gate: &Gate,
) -> Vec<(String, PersonEdit)> {
    let mut edits = Vec::new();
    for (path, text) in rendered.files.keys().filter_map(|path| Some((path, disk.get(path)?))) {
        let old = rendered.renamed.get(path).unwrap_or(path);
        let Some(seen) = seen.get(old) else {
            edits.extend(update.edits.iter().filter(|(it, _)| it == path).cloned());
            continue;
        };
        let now = gate.redact(text);
        let since = merge(Kind::of_path(path), seen, seen, now.as_str(), gate);
        edits.extend(since.edits.into_iter().map(|edit| (path.clone(), edit)));
        // A record is one memory, whichever of its lines a person changed.
        let own = tags_in(text).next().filter(|_| adr_number(path).is_some());
        if let Some(tag) = own.filter(|_| !is_same(seen, now.as_str())) {
            let edit = PersonEdit::Edited { tag: tag.to_owned(), text: now.clone() };
            edits.push((path.clone(), edit));
        }
    }
    edits
}

/// Whether two texts differ in nothing but how their lines end.
fn is_same(one: &str, other: &str) -> bool {
    one.trim_end().lines().eq(other.trim_end().lines())
}

/// What `edits` make of `memories`, each at most once.
pub(super) fn amendments(
    memories: &[Memory],
    (rendered, edits): (&Rendered, &[(String, PersonEdit)]),
    disk: &Read,
    now: Timestamp,
) -> Vec<Amendment> {
    let tags = source_tags(memories.iter().map(|it| it.id));
    let tag_of = |memory: &Memory| tags.get(&memory.id).map_or("", String::as_str);
    let there = sources(&disk.files);
    let said = said(rendered, edits);
    let mut amended = Vec::new();
    for memory in memories {
        let tag = tag_of(memory);
        let is_there = there.contains(tag);
        let mut after = memory.clone();
        let rule = match (memory.state, said.get(tag)) {
            // Of what could not be read nobody knows what it shows.
            (MemoryState::Active, Some((REMOVED, _))) if !is_there && disk.skipped.is_empty() => {
                after.state = MemoryState::Retracted;
                after.valid_until = Some(now);
                after.reason = Some(REMOVED.to_owned());
                REMOVED
            }
            (MemoryState::Active, Some((rule, text))) if *rule != REMOVED => {
                after.confirmed = true;
                let words = text.map(|text| text.as_str().chars().take(EDITED_LETTERS_MAX));
                after.edited = words.map(Iterator::collect).or(after.edited);
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
            (MemoryState::Active | MemoryState::Superseded | MemoryState::Retracted, _) => continue,
        };
        if after != *memory {
            amended.push(Amendment { rule, before: memory.clone(), after });
        }
    }
    amended
}

/// What was done to an entry: the rule, and the words that a person put there.
type Said<'e> = (&'static str, Option<&'e Redacted>);

/// What was done to each entry, by its tag; of several the rule that says most.
fn said<'e>(rendered: &Rendered, edits: &'e [(String, PersonEdit)]) -> BTreeMap<&'e str, Said<'e>> {
    let mut said: BTreeMap<&str, Said<'e>> = BTreeMap::new();
    let ours: BTreeMap<&str, BTreeSet<&str>> = rendered
        .files
        .iter()
        .map(|(path, text)| (path.as_str(), tags_in(text).collect()))
        .collect();
    for (path, edit) in edits {
        let (tag, rule, text) = match edit {
            PersonEdit::Added { .. } => continue,
            PersonEdit::Edited { tag, text } => (tag, EDITED, Some(text)),
            PersonEdit::Moved { tag, .. } => (tag, EDITED, None),
            PersonEdit::Confirmed { tag } => (tag, CONFIRMED, None),
            PersonEdit::Deleted { tag } => (tag, REMOVED, None),
        };
        // What we would not show there any more is no person's business.
        if !ours.get(path.as_str()).is_some_and(|tags| tags.contains(tag.as_str())) {
            continue;
        }
        let weight = |rule: &str| [REMOVED, CONFIRMED, EDITED].iter().position(|it| *it == rule);
        let slot = said.entry(tag).or_insert((rule, text));
        if weight(slot.0) < weight(rule) {
            slot.0 = rule;
        }
        slot.1 = text.or(slot.1);
    }
    said
}

/// The tags of memories that files show, in private blocks too: hiding is not taking back.
pub(super) fn sources(files: &Files) -> BTreeSet<&str> {
    files.values().flat_map(|text| tags_in(text)).collect()
}

fn tags_in(text: &str) -> impl Iterator<Item = &str> {
    let tags = text.lines().filter_map(Tag::parse).filter_map(|tag| tag.ours());
    tags.filter(|tag| tag.starts_with(SOURCE))
}

/// Writes amendments, each rule in a transaction; says whether all memories were still as they were read.
pub(super) async fn amend(
    store: &Store,
    tenure: &Tenure,
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
        if store.amend_memories(tenure, changes, (rule, now)).await?.is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}
