//! Input of a block. Everything here is redacted and public; private documents are left out by the
//! caller.

use crate::memory_card::Card;
use crate::privacy::Redacted;

/// A paragraph, list item or table row that is shown whole or not at all.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Entry {
    /// Text without a trailing line end.
    pub text: Redacted,
    /// Search score; 0 without a query. Entries with higher scores are kept first, then earlier
    /// ones.
    pub score: u32,
}

/// A heading and its entries.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Section {
    /// Heading line with its marks; shown if one of its entries is.
    pub heading: Option<Redacted>,
    /// Entries in order.
    pub entries: Vec<Entry>,
}

/// A file of the memory directory.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Document {
    /// Path in the directory, such as `decisions/ADR-007-queue.md`.
    pub name: Redacted,
    /// Sections in order.
    pub sections: Vec<Section>,
}

impl Document {
    pub(super) fn entries(&self) -> usize {
        self.sections.iter().map(|section| section.entries.len()).sum()
    }

    pub(super) fn score(&self) -> u32 {
        let entries = self.sections.iter().flat_map(|section| &section.entries);
        entries.map(|entry| entry.score).max().unwrap_or_default()
    }
}

/// An accepted decision.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Decision {
    /// One line, such as `ADR-007: Keep the queue in Postgres`, with its score.
    pub line: Entry,
    /// The whole document, if it was read: see
    /// [`Budget::decisions_max`](super::Budget::decisions_max).
    pub document: Option<Document>,
}

/// Everything that a block may show.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Material {
    /// `active-context.md`.
    pub active_context: Option<Document>,
    /// `product-context.md`.
    pub product_context: Option<Document>,
    /// `progress.md`.
    pub progress: Option<Document>,
    /// `patterns.md`.
    pub patterns: Option<Document>,
    /// Sessions, the newest first; one is shown. Without a query the others need not be read.
    pub sessions: Vec<Document>,
    /// Accepted decisions, the newest first.
    pub decisions: Vec<Decision>,
    /// `glossary.md`.
    pub glossary: Option<Document>,
    /// Recent turns of the dialog.
    pub dialog: Option<Redacted>,
    /// Known entities of the conversation.
    pub entities: Option<Redacted>,
    /// Summary of the conversation.
    pub summary: Option<Redacted>,
    /// Card of the conversation.
    pub card: Option<Card>,
}
