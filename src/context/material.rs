//! What a block is made of. Everything here has passed the gate and holds nothing private: documents that
//! are private as a whole are not handed over.

use crate::card::Card;
use crate::privacy::Redacted;

/// What stands in a document and is shown whole or not at all: a paragraph, an item of a list with what
/// belongs to it, a row of a table.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Entry {
    /// Its text, without a line end behind it.
    pub text: Redacted,
    /// How well it answers the query; 0 without one. Of entries that cannot all stay, those with more
    /// do, and those before others.
    pub score: u32,
}

/// A heading and what stands under it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Section {
    /// The heading as it is written, marks and all; shown where one of the entries is.
    pub heading: Option<Redacted>,
    /// The entries in their order.
    pub entries: Vec<Entry>,
}

/// A file of the memory directory.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Document {
    /// Its name in the directory, such as `decisions/ADR-007-queue.md`.
    pub name: Redacted,
    /// Its sections in their order.
    pub sections: Vec<Section>,
}

impl Document {
    /// How many entries it has.
    pub(super) fn entries(&self) -> usize {
        self.sections.iter().map(|section| section.entries.len()).sum()
    }

    /// How well its best entry answers the query.
    pub(super) fn score(&self) -> u32 {
        let entries = self.sections.iter().flat_map(|section| &section.entries);
        entries.map(|entry| entry.score).max().unwrap_or_default()
    }
}

/// A decision that is accepted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Decision {
    /// It in a line, such as `ADR-007: Keep the queue in Postgres`, and how well it answers the query.
    pub line: Entry,
    /// The whole, where it was read: see [`Budget::decisions_max`](super::Budget::decisions_max).
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
    /// The block that tells the last turns of a dialog.
    pub dialog: Option<Redacted>,
    /// Entities that are known of the conversation.
    pub entities: Option<Redacted>,
    /// The summary of the conversation.
    pub summary: Option<Redacted>,
    /// The card of the conversation.
    pub card: Option<Card>,
}
