//! What a person did to a file since we wrote it.

use super::unit::{Key, Units, is_source, same, tag_of};
use crate::memory_dir::document::{Document, Part};
use crate::privacy::{Gate, Redacted};
use std::collections::BTreeSet;

/// Something that a person did. Sections are named by their headings.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PersonEdit {
    /// They wrote an entry of their own.
    Added {
        /// The heading above it.
        section: Redacted,
        /// Its words, without what is private.
        text: Redacted,
    },
    /// They changed the words of an entry of ours.
    Edited {
        /// The tag of the memory.
        tag: String,
        /// What stands there now, without what is private.
        text: Redacted,
    },
    /// They put an entry of ours under another heading.
    Moved {
        /// The tag of the memory.
        tag: String,
        /// The heading that it stands under now.
        section: Redacted,
    },
    /// They took an entry of ours out.
    Deleted {
        /// The tag of the memory.
        tag: String,
    },
    /// They changed what stands under the same heading and left this entry of ours as it is.
    Confirmed {
        /// The tag of the memory.
        tag: String,
    },
}

/// What happened between `base` and `disk`, in the order of the base, then of the file; `sides` are the
/// units of base, ours and theirs.
pub(super) fn edits(
    base: &Document<'_>,
    disk: &Document<'_>,
    sides: &[Units<'_>; 3],
    gate: &Gate,
) -> Vec<PersonEdit> {
    if base.text() == disk.text() {
        return Vec::new();
    }
    let [before, ours, now] = sides;
    let mut edits = Vec::new();
    let mut touched: BTreeSet<&str> = BTreeSet::new();
    let mut left: Vec<(&str, &str)> = Vec::new();
    let text = |at: usize| {
        let block = disk.blocks().get(at);
        let shown = block.map(|block| disk.public(block)).unwrap_or_default();
        gate.redact(shown.trim())
    };
    for (key, unit) in &before.list {
        let Some(tag) = source(key) else { continue };
        let Some(found) = now.get(key) else {
            touched.insert(unit.section);
            edits.push(PersonEdit::Deleted { tag: tag.to_owned() });
            continue;
        };
        let is_moved = found.section != unit.section;
        if is_moved {
            touched.extend([unit.section, found.section]);
            let section = gate.redact(found.section);
            edits.push(PersonEdit::Moved { tag: tag.to_owned(), section });
        }
        if !same(unit.body, found.body) {
            touched.insert(found.section);
            edits.push(PersonEdit::Edited { tag: tag.to_owned(), text: text(found.at) });
        } else if !is_moved {
            left.push((found.section, tag));
        }
    }
    for (key, unit) in &now.list {
        let is_entry =
            disk.blocks().get(unit.at).is_some_and(|block| matches!(block.part, Part::Entry(_)));
        let is_new = before.get(key).is_none() && ours.get(key).is_none() && tag_of(key).is_none();
        if is_entry && is_new {
            touched.insert(unit.section);
            let text = text(unit.at);
            if !text.is_empty() {
                edits.push(PersonEdit::Added { section: gate.redact(unit.section), text });
            }
        }
    }
    let confirmed = left.into_iter().filter(|(section, _)| touched.contains(section));
    edits.extend(confirmed.map(|(_, tag)| PersonEdit::Confirmed { tag: tag.to_owned() }));
    edits
}

/// The tag of the memory that a block shows, once a file.
fn source(key: &Key) -> Option<&str> {
    tag_of(key).filter(|tag| key.1 == 0 && is_source(tag))
}
