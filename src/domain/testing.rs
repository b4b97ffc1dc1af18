//! Entries for tests.

use super::{Branch, Entry, EntryKind, Speaker};
use crate::privacy::Redacted;

/// Creates an entry on the active branch without further metadata.
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
