//! The card itself.

use crate::domain::Digest;
use crate::privacy::Redacted;
use serde::{Deserialize, Serialize};

/// What a conversation was about. What is printed, stored and read back is the same; fields stand in
/// this order.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// What the user came with.
    pub title: Redacted,
    /// How it began: `[role] words`.
    pub summary_bullets: Vec<Redacted>,
    /// What was decided, in the order of the messages.
    pub decisions: Vec<Redacted>,
    /// What is to be done, in the order of the messages.
    pub todos: Vec<Redacted>,
    /// Names, the most mentioned first.
    pub entities: Vec<Redacted>,
    /// Words, the most used first.
    pub keywords: Vec<Redacted>,
    /// Questions and exclamations, in the order of the messages.
    pub notable_quotes: Vec<Redacted>,
}

impl Card {
    /// The digest of the seven fields: two cards have the same one exactly if they are equal. The
    /// heading of a printed card is no part of it.
    pub fn digest(&self) -> Digest {
        let mut parts = vec!["card", self.title.as_str()];
        for (name, items) in self.lists() {
            // The name ends the list before it.
            parts.push(name);
            parts.extend(items.iter().map(Redacted::as_str));
        }
        let counts = self.lists().map(|(_, items)| items.len().to_string()).join(",");
        parts.push(&counts);
        Digest::of(&parts)
    }

    /// The fields behind the title, with their names.
    pub(super) fn lists(&self) -> [(&'static str, &[Redacted]); 6] {
        [
            ("summary_bullets", &self.summary_bullets),
            ("decisions", &self.decisions),
            ("todos", &self.todos),
            ("entities", &self.entities),
            ("keywords", &self.keywords),
            ("notable_quotes", &self.notable_quotes),
        ]
    }

    /// The fields that hold texts, with their names.
    pub(super) fn texts(&self) -> [(&'static str, &[Redacted]); 4] {
        let [bullets, decisions, todos, _, _, quotes] = self.lists();
        [bullets, decisions, todos, quotes]
    }

    /// The fields that hold words, with their names.
    pub(super) fn words(&self) -> [(&'static str, &[Redacted]); 2] {
        let [_, _, _, entities, keywords, _] = self.lists();
        [entities, keywords]
    }
}
