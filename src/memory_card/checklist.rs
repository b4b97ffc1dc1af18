//! Rules that a card must satisfy before it is stored. A failure for a card of [`CardBuilder`](super::CardBuilder)
//! is a bug in the builder.

use super::builder::ELLIPSIS;
use super::card::{Card, ITEM_LETTERS_MAX, ITEMS_MAX, TITLE_LETTERS_MAX, WORDS_MAX};
use crate::domain::{Finding, Severity};
use crate::privacy::{Gate, Redacted};
use crate::text::names::is_blank;
use std::collections::BTreeSet;

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

/// Checks the lengths of the lists.
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
        let words = text.split(is_blank);
        !text.is_empty()
            && text.split(' ').eq(words.clone())
            && words.clone().all(|it| !it.is_empty())
    };
    let title = ("title".to_owned(), &card.title);
    let every = [title].into_iter().chain(places(card.lists()));
    let torn = every.filter(|(_, text)| !is_line(text.as_str()));
    let torn =
        torn.map(|(place, _)| format!("{place}: expected one line of words, one blank apart"));
    let wrong: Vec<String> = long.chain(torn).collect();
    let asks = "every text is one line of at most 100 characters";
    CardCheck::new("text-length", asks, format!("at most {longest}"), wrong)
}

fn masked(card: &Card, gate: &Gate) -> CardCheck {
    let title = ("title".to_owned(), &card.title);
    let all: Vec<_> = [title].into_iter().chain(places(card.lists())).collect();
    let wrong = all.iter().filter(|(_, text)| gate.redact(text.as_str()) != **text);
    let wrong = wrong.map(|(place, _)| format!("{place}: the gate would mask something in it"));
    let asks = "nothing in it is private, a secret or personal";
    CardCheck::new("unmasked", asks, format!("{} texts", all.len()), wrong)
}

#[cfg(test)]
mod tests {
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
