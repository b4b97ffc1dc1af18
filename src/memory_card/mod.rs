//! Memory cards: the subject of a conversation in seven fields of short lines, by rules alone. No model, no clock;
//! equal messages give equal bytes.
//!
//! A [`CardBuilder`] consumes messages one by one and stores counts and a few lines, never the messages.
//! [`checklist`] holds the rules that a card must satisfy before it is stored. Every line is redacted again after
//! it was shortened, since joining or cutting may produce a new match.
//!
//! | field | holds |
//! |---|---|
//! | `title` | the first words of a user, at most 80 characters |
//! | `summary_bullets` | the first 3 messages, each with its `[role]` |
//! | `decisions`, `todos` | messages with a phrase that [`CardBuilder`] looks for, from that sentence on |
//! | `notable_quotes` | questions and exclamations, from that sentence on |
//! | `entities` | the most mentioned names |
//! | `keywords` | the most used words |

mod builder;
mod excerpt;
#[cfg(test)]
mod laws;

use crate::domain::{Finding, Severity, Timestamp};
use crate::privacy::{Gate, Redacted};
use crate::text::names::is_blank;
use crate::text::terminal::is_obeyed;
pub use builder::CardBuilder;
pub(crate) use builder::Ellipsis;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
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
pub(crate) const UNTITLED: &str = "Untitled Session";
/// Maximum length of the session name in the heading, in characters.
const SESSION_LETTERS_MAX: usize = 200;
/// Marks a truncation; counts towards the length.
const ELLIPSIS: &str = "...";
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

    fn texts(&self) -> [(&'static str, &[Redacted]); 4] {
        let [bullets, decisions, todos, _, _, quotes] = self.lists();
        [bullets, decisions, todos, quotes]
    }

    fn words(&self) -> [(&'static str, &[Redacted]); 2] {
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

/// True for YAML 1.2 characters that no reader treats as a line break or byte order mark, and no terminal obeys.
fn is_printable(letter: char) -> bool {
    let is_set = matches!(letter, ' '..='~' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
    is_set && !is_obeyed(letter)
}

/// Result of one rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CardCheck {
    /// Stable name of the rule.
    pub rule: &'static str,
    /// Requirement, for the user.
    pub asks: &'static str,
    /// Observed counts, without text of the card.
    pub seen: String,
    /// Violations; empty if the rule is satisfied.
    pub findings: Vec<Finding>,
}

impl CardCheck {
    fn new(
        rule: &'static str,
        asks: &'static str,
        seen: String,
        wrong: impl IntoIterator<Item = String>,
    ) -> CardCheck {
        let finding = |detail| Finding::new(Severity::Error, rule, 0, detail);
        CardCheck { rule, asks, seen, findings: wrong.into_iter().map(finding).collect() }
    }

    /// True if the rule is satisfied.
    pub fn holds(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Checks a card. `gate` detects text that should be masked; `opening` is the source of the title
/// ([`CardBuilder::opening`](super::CardBuilder::opening)), if known.
pub fn checklist(card: &Card, opening: Option<&Redacted>, gate: &Gate) -> Vec<CardCheck> {
    vec![
        title_length(card),
        cut_mark(card, opening),
        roles(card),
        item_counts(card),
        word_counts(card),
        text_lengths(card),
        masked(card, gate),
    ]
}

fn letters(text: &Redacted) -> usize {
    text.as_str().chars().count()
}

/// Every text with its printed position: `decisions 2`.
fn places<'c>(
    lists: impl IntoIterator<Item = (&'static str, &'c [Redacted])>,
) -> impl Iterator<Item = (String, &'c Redacted)> {
    lists.into_iter().flat_map(|(name, items)| {
        items.iter().enumerate().map(move |(at, item)| (format!("{name} {}", at + 1), item))
    })
}

fn title_length(card: &Card) -> CardCheck {
    let length = letters(&card.title);
    let fits = (1..=TITLE_LETTERS_MAX).contains(&length);
    let wrong = format!("title: expected 1 to {TITLE_LETTERS_MAX} characters, found {length}");
    let asks = "the title is there and has at most 80 characters";
    CardCheck::new("title-length", asks, format!("{length}"), (!fits).then_some(wrong))
}

fn cut_mark(card: &Card, opening: Option<&Redacted>) -> CardCheck {
    let title = card.title.as_str();
    let was_cut = opening.map(|opening| *opening != card.title);
    let kept = title.strip_suffix(ELLIPSIS);
    let begins = |kept: &str| opening.is_some_and(|opening| opening.as_str().starts_with(kept));
    let holds = was_cut != Some(true) || kept.is_some_and(begins);
    let seen = match was_cut {
        Some(true) => "cut",
        Some(false) => "whole",
        None => "not known from the card alone",
    };
    let wrong = format!("title: expected the beginning of the user's words and `{ELLIPSIS}`");
    let asks = "a title that was cut ends with `...`";
    CardCheck::new("cut-mark", asks, seen.to_owned(), (!holds).then_some(wrong))
}

fn roles(card: &Card) -> CardCheck {
    let has_role = |text: &str| {
        let role = text.strip_prefix('[').and_then(|rest| rest.split_once("] "));
        role.is_some_and(|(role, _)| !role.is_empty() && !role.contains(']'))
    };
    let count = card.summary_bullets.len();
    let bullets = [("summary_bullets", card.summary_bullets.as_slice())];
    let wrong = places(bullets).filter(|(_, bullet)| !has_role(bullet.as_str()));
    let wrong = wrong.map(|(place, _)| format!("{place}: expected it to begin with `[role] `"));
    CardCheck::new("bullet-role", "every bullet begins with `[role] `", format!("{count}"), wrong)
}

fn counts(lists: &[(&'static str, &[Redacted])], most: usize) -> (String, Vec<String>) {
    let seen: Vec<String> = lists.iter().map(|(_, items)| items.len().to_string()).collect();
    let wrong = lists.iter().filter(|(_, items)| items.len() > most);
    let wrong = wrong.map(|(name, items)| {
        format!("{name}: expected at most {most} items, found {}", items.len())
    });
    (seen.join(", "), wrong.collect())
}

fn item_counts(card: &Card) -> CardCheck {
    let (seen, wrong) = counts(&card.texts(), ITEMS_MAX);
    let asks = "no more than 3 bullets, decisions, todos and quotes";
    CardCheck::new("item-count", asks, seen, wrong)
}

fn word_counts(card: &Card) -> CardCheck {
    let lists = card.words();
    let (seen, mut wrong) = counts(&lists, WORDS_MAX);
    let twice = lists.iter().filter(|(_, items)| {
        let different: BTreeSet<_> = items.iter().collect();
        different.len() < items.len()
    });
    wrong.extend(twice.map(|(name, _)| format!("{name}: expected each word once")));
    CardCheck::new("word-count", "no more than 10 entities and 10 keywords", seen, wrong)
}

fn text_lengths(card: &Card) -> CardCheck {
    let all: Vec<_> = places(card.texts()).collect();
    let longest = all.iter().map(|(_, text)| letters(text)).max().unwrap_or_default();
    let long =
        all.iter().filter(|(_, text)| letters(text) > ITEM_LETTERS_MAX).map(|(place, text)| {
            let found = letters(text);
            format!("{place}: expected at most {ITEM_LETTERS_MAX} characters, found {found}")
        });
    let is_line = |text: &str| {
        text.split(' ').eq(text.split(is_blank)) && text.split(' ').all(|it| !it.is_empty())
    };
    let torn = every_text(card).filter(|(_, text)| !is_line(text.as_str()));
    let torn =
        torn.map(|(place, _)| format!("{place}: expected one line of words, one blank apart"));
    let asks = "every text is one line of at most 100 characters";
    CardCheck::new("text-length", asks, format!("at most {longest}"), long.chain(torn))
}

fn every_text(card: &Card) -> impl Iterator<Item = (String, &Redacted)> {
    [("title".to_owned(), &card.title)].into_iter().chain(places(card.lists()))
}

fn masked(card: &Card, gate: &Gate) -> CardCheck {
    let all: Vec<_> = every_text(card).collect();
    let wrong = all.iter().filter(|(_, text)| gate.redact(text.as_str()) != **text);
    let wrong = wrong.map(|(place, _)| format!("{place}: the gate would mask something in it"));
    let asks = "nothing in it is private, a secret or personal";
    CardCheck::new("unmasked", asks, format!("{} texts", all.len()), wrong)
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

#[cfg(test)]
mod checklist_tests {
    use super::*;
    use crate::privacy::Pii;

    fn text(text: &str) -> Redacted {
        Redacted::reopened(text.to_owned())
    }

    /// Checks which rules a card breaks.
    #[track_caller]
    fn check(card: &Card, expected: &[&str]) {
        let checks = checklist(card, None, &Gate::new(&Pii::ALL));
        let broken = checks.iter().filter(|check| !check.holds()).map(|check| check.rule);
        assert_eq!(broken.collect::<Vec<_>>(), expected, "{checks:?}");
    }

    fn good() -> Card {
        Card {
            title: text("Fix the roof before..."),
            summary_bullets: vec![text("[user] Fix the roof before...")],
            decisions: vec![text("We decided.")],
            keywords: vec![text("before")],
            ..Card::default()
        }
    }

    #[test]
    fn a_good_card_breaks_none() {
        check(&good(), &[]);
    }

    #[test]
    fn each_line_of_the_list_is_checked() {
        let wrong = |change: fn(&mut Card), rule: &str| {
            let mut card = good();
            change(&mut card);
            check(&card, &[rule]);
        };
        wrong(|card| card.title = text(&"a".repeat(81)), "title-length");
        wrong(|card| card.summary_bullets = vec![text("user: a")], "bullet-role");
        wrong(|card| card.todos = ["a", "b", "c", "d"].map(text).to_vec(), "item-count");
        wrong(|card| card.keywords = vec![text("a"), text("a")], "word-count");
        wrong(|card| card.entities = (0..11).map(|n| text(&n.to_string())).collect(), "word-count");
        wrong(|card| card.notable_quotes = vec![text(&"a".repeat(101))], "text-length");
        wrong(|card| card.notable_quotes = vec![text("a\nb")], "text-length");
        wrong(|card| card.todos = vec![text("")], "text-length");
        wrong(|card| card.todos = vec![text("write to ada@example.com")], "unmasked");
    }

    #[test]
    fn a_title_that_was_cut_is_the_beginning_and_has_the_mark() {
        let holds = |title: &str, opening: &str| {
            let card = Card { title: text(title), ..good() };
            checklist(&card, Some(&text(opening)), &Gate::new(&[])).iter().all(CardCheck::holds)
        };
        assert!(holds("Fix the roof", "Fix the roof"));
        assert!(holds("Fix the...", "Fix the roof"));
        assert!(!holds("Fix the", "Fix the roof"));
        assert!(!holds("Fix that...", "Fix the roof"));
    }

    #[test]
    fn an_empty_title_is_none() {
        check(&Card::default(), &["title-length", "text-length"]);
    }
}
