//! Entries for tests.

use super::{Branch, Entry, EntryKind, Speaker};
use crate::privacy::Redacted;

/// An entry on the main line with nothing else known of it.
pub(crate) fn said(ordinal: u32, (speaker, kind): (Speaker, EntryKind), text: Redacted) -> Entry {
    Entry {
        ordinal,
        line: ordinal.saturating_add(1),
        native_id: None,
        speaker,
        kind,
        branch: Branch::Active,
        text,
        tool: None,
        outcome: None,
        exit_code: None,
        at: None,
        skip: None,
    }
}
