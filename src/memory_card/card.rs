//! The card and its YAML. The writer is our own: the layout is fixed to the blank line, headings
//! are comments, and quoted strings are all that the lists need.

use crate::domain::{Digest, Timestamp};
use crate::privacy::Redacted;
use crate::text::names::is_blank;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};

/// Version of the rules, shown in the heading; increased when equal messages give a different card.
pub(crate) const ALGORITHM_VERSION: &str = "1.0";
/// Maximum length of a title, in characters, including the truncation mark.
pub(crate) const TITLE_LETTERS_MAX: usize = 80;
/// Maximum length of any other text, in characters, including role and mark.
pub(crate) const ITEM_LETTERS_MAX: usize = 100;
/// Maximum number of items in a list of texts.
pub(crate) const ITEMS_MAX: usize = 3;
/// Maximum number of items in a list of words.
pub(crate) const WORDS_MAX: usize = 10;
/// Title of a conversation without user messages.
pub(crate) const UNTITLED: &str = "Untitled Session";
/// Maximum length of the session name in the heading, in characters.
const SESSION_LETTERS_MAX: usize = 200;
/// Placeholder for unknown values in the heading.
const UNKNOWN: &str = "unknown";

/// Card of a conversation. Fields are printed and stored in this order.
#[derive(schemars::JsonSchema, Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// The user's first words.
    pub title: Redacted,
    /// First messages: `[role] words`.
    pub summary_bullets: Vec<Redacted>,
    /// Decisions, in the order of the messages.
    pub decisions: Vec<Redacted>,
    /// Tasks, in the order of the messages.
    pub todos: Vec<Redacted>,
    /// Names, the most mentioned first.
    pub entities: Vec<Redacted>,
    /// Words, the most used first.
    pub keywords: Vec<Redacted>,
    /// Questions and exclamations, in the order of the messages.
    pub notable_quotes: Vec<Redacted>,
}

impl Card {
    /// Digest of the seven fields: equal exactly if the cards are equal. Excludes the heading of a
    /// printed card.
    pub fn digest(&self) -> Digest {
        let mut parts = vec!["card", self.title.as_str()];
        for (name, items) in self.lists() {
            // The name terminates the previous list.
            parts.push(name);
            parts.extend(items.iter().map(Redacted::as_str));
        }
        let counts = self.lists().map(|(_, items)| items.len().to_string()).join(",");
        parts.push(&counts);
        Digest::of(&parts)
    }

    /// The list fields with their names.
    pub(crate) fn lists(&self) -> [(&'static str, &[Redacted]); 6] {
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

/// Heading of a printed card; not part of the card.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CardHead {
    /// The conversation's own name.
    pub session: Redacted,
    /// Time of the last message instead of the current time, so that equal messages print equally.
    pub at: Option<Timestamp>,
}

/// Renders the card as one YAML document that ends with a newline.
pub fn yaml(card: &Card, head: &CardHead) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut page, card, head);
    page
}

fn write(page: &mut String, card: &Card, head: &CardHead) -> fmt::Result {
    let is_shown = |c: &char| !c.is_control() && (!is_blank(*c) || *c == ' ') && is_printable(*c);
    let session = head.session.as_str().chars().filter(is_shown).take(SESSION_LETTERS_MAX);
    let session: String = session.collect();
    let session = if session.trim().is_empty() { UNKNOWN } else { session.trim() };
    let at = head.at.map_or_else(|| UNKNOWN.to_owned(), |at| at.to_string());
    writeln!(page, "# Memory Card for Session: {session}")?;
    writeln!(page, "# Generated: {at}")?;
    writeln!(page, "# Algorithm: v{ALGORITHM_VERSION}\n")?;
    write!(page, "title: ")?;
    quoted(page, card.title.as_str())?;
    for (name, items) in card.lists() {
        match items.is_empty() {
            true => write!(page, "\n{name}: []\n")?,
            false => write!(page, "\n{name}:\n")?,
        }
        for item in items {
            write!(page, "  - ")?;
            quoted(page, item.as_str())?;
        }
    }
    Ok(())
}

/// Writes a double-quoted scalar and a newline.
fn quoted(page: &mut String, text: &str) -> fmt::Result {
    page.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => write!(page, "\\{letter}")?,
            '\n' => write!(page, "\\n")?,
            '\t' => write!(page, "\\t")?,
            letter if is_printable(letter) => page.push(letter),
            letter => match u32::from(letter) {
                code @ ..=0xff => write!(page, "\\x{code:02x}")?,
                code @ ..=0xffff => write!(page, "\\u{code:04x}")?,
                code => write!(page, "\\U{code:08x}")?,
            },
        }
    }
    page.push_str("\"\n");
    Ok(())
}

/// True for YAML 1.2 characters that no reader treats as a line break or byte order mark.
fn is_printable(letter: char) -> bool {
    let is_break = matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}');
    let is_set = matches!(letter, ' '..='~' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
    is_set && !is_break
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Redacted {
        Redacted::reopened(text.to_owned())
    }

    #[test]
    fn a_card_is_quoted_lines_under_a_heading() {
        let card = Card {
            title: text("Fix \"it\" \\ now"),
            todos: vec![text("a: b # c"), text("é\u{85}\u{2028}\u{7}\u{fffe}\u{1f469}")],
            ..Card::default()
        };
        let head = CardHead { session: text("s-1\n evil: 1"), at: Some(Timestamp(0)) };
        let page = "# Memory Card for Session: s-1 evil: 1\n\
            # Generated: 1970-01-01T00:00:00Z\n\
            # Algorithm: v1.0\n\n\
            title: \"Fix \\\"it\\\" \\\\ now\"\n\n\
            summary_bullets: []\n\n\
            decisions: []\n\n\
            todos:\n  - \"a: b # c\"\n  - \"é\\x85\\u2028\\x07\\ufffe\u{1f469}\"\n\n\
            entities: []\n\n\
            keywords: []\n\n\
            notable_quotes: []\n";
        assert_eq!(yaml(&card, &head), page);
    }

    #[test]
    fn what_is_not_known_is_said_to_be_unknown() {
        let page = yaml(&Card::default(), &CardHead::default());
        assert!(page.starts_with("# Memory Card for Session: unknown\n# Generated: unknown\n"));
    }
}
