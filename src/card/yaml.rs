//! A card as YAML. Written by hand: the layout is given to the blank line, headings are comments, and a
//! list of quoted lines needs no more of YAML than its quotes.

use super::{ALGORITHM_VERSION, Card};
use crate::domain::Timestamp;
use crate::entity::is_blank;
use crate::privacy::Redacted;
use std::fmt::{self, Write};

/// The longest name of a session in a heading, in letters.
const SESSION_LETTERS_MAX: usize = 200;
/// What a heading says where something is not known.
const UNKNOWN: &str = "unknown";

/// What stands above a card and is no part of it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Head {
    /// The conversation's own name.
    pub session: Redacted,
    /// When its last message was said; no clock, so that the same messages print the same.
    pub at: Option<Timestamp>,
}

/// The card as one YAML document, ending with a line end.
pub fn yaml(card: &Card, head: &Head) -> String {
    let mut page = String::new();
    // A string takes everything.
    let _ = write(&mut page, card, head);
    page
}

fn write(page: &mut String, card: &Card, head: &Head) -> fmt::Result {
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

/// Writes a double-quoted scalar and a line end.
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

/// What YAML 1.2 lets stand in a document and no reader takes for a line end or a byte order mark.
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
        let head = Head { session: text("s-1\n evil: 1"), at: Some(Timestamp(0)) };
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
        let page = yaml(&Card::default(), &Head::default());
        assert!(page.starts_with("# Memory Card for Session: unknown\n# Generated: unknown\n"));
    }
}
