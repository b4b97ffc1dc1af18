//! Input of a block. Everything here is redacted and public; private documents are left out by the
//! caller.

use super::budget::Kind;
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

/// Entries of the memory directory of one kind.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Group {
    /// Kind.
    pub kind: Kind,
    /// Sections in order.
    pub sections: Vec<Section>,
}

/// Everything that a block may show.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Material {
    /// The memory directory, in the order of the block.
    pub groups: Vec<Group>,
    /// Recent turns of the dialog.
    pub dialog: Option<Redacted>,
    /// Known entities of the conversation.
    pub entities: Option<Redacted>,
    /// Summary of the conversation.
    pub summary: Option<Redacted>,
    /// Card of the conversation.
    pub card: Option<Card>,
}
