//! Builds a card from a sequence of messages.

use super::excerpt::{self, KINDS, Keywords, is_stop_word};
use super::{Card, ELLIPSIS, ITEM_LETTERS_MAX, ITEMS_MAX, TITLE_LETTERS_MAX, UNTITLED, WORDS_MAX};
use crate::domain::{Branch, Entry, EntryKind, Skip, Timestamp};
use crate::privacy::{Gate, Redacted};
use crate::text::names::{CLOSERS, Mentions, is_blank};
use crate::text::truncate::letters;

/// Maximum length of the source text of a line, in characters; leaves room for redaction.
const HEAD_LETTERS_MAX: usize = 400;
/// Maximum attempts to shorten and redact a line; a third is rare.
const FITS_MAX: usize = 4;
const ROLE_LETTERS_MAX: usize = 20;
/// Roles of tools in various chat formats.
const TOOL_ROLES: [&str; 5] =
    ["tool", "function", "observation", "tool_response", "function_response"];
const NO_ROLE: &str = "unknown";

const _: () = assert!(ITEM_LETTERS_MAX * 3 < HEAD_LETTERS_MAX);
const _: () = assert!(TITLE_LETTERS_MAX <= ITEM_LETTERS_MAX);
/// Minimum part of the room that a cut at a word boundary must keep, in percent; otherwise it splits the word.
const KEPT_PERCENT_MIN: usize = 70;

/// Items that end with `ELLIPSIS`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Ellipsis {
    #[default]
    Cut,
    /// All except questions and exclamations, as the card template prints them. Titles only if truncated.
    Template,
}

/// Builds a card. Stores only word counts and the lines found, so that its memory does not grow with the
/// conversation's length.
///
/// Decisions are messages with *decided, decision, will use, chosen, selected, going with, opted for, settled on,
/// go with* or *went with*; todos those with *todo, need to, should, must, will need, remember to, don't forget* or
/// *make sure to*: as whole words, in a sentence that is not a question.
#[derive(Debug)]
pub struct CardBuilder<'g> {
    gate: &'g Gate,
    ellipsis: Ellipsis,
    all_roles: bool,
    title: Option<CardLine>,
    bullets: Vec<Redacted>,
    /// Decisions, todos, quotes, indexed by `ExcerptKind`.
    excerpts: [Vec<Redacted>; KINDS],
    mentions: Mentions,
    keywords: Keywords,
    last_at: Option<Timestamp>,
}

#[derive(Debug)]
struct CardLine {
    text: Redacted,
    /// Start of the message on one line, before it was cut.
    whole: Redacted,
}

impl<'g> CardBuilder<'g> {
    /// Creates a builder whose lines are redacted again by `gate`.
    pub fn new(gate: &'g Gate) -> CardBuilder<'g> {
        CardBuilder {
            gate,
            ellipsis: Ellipsis::default(),
            all_roles: false,
            title: None,
            bullets: Vec::new(),
            excerpts: Default::default(),
            mentions: Mentions::default(),
            keywords: Keywords::default(),
            last_at: None,
        }
    }

    /// Includes messages of every role, even tools and system.
    pub fn all_roles(mut self, all_roles: bool) -> CardBuilder<'g> {
        self.all_roles = all_roles;
        self
    }

    pub(crate) fn ellipsis(mut self, ellipsis: Ellipsis) -> CardBuilder<'g> {
        self.ellipsis = ellipsis;
        self
    }

    /// Adds an entry of the dialogue. Tool output, injected context, commands and abandoned branches are ignored.
    pub fn entry(&mut self, entry: &Entry) {
        let role = match entry.kind {
            EntryKind::ToolResult if self.all_roles => "tool",
            EntryKind::Injected if self.all_roles => "system",
            EntryKind::Prompt | EntryKind::Steering | EntryKind::Answer | EntryKind::Rejection => {
                "user"
            }
            EntryKind::Text => "assistant",
            EntryKind::Command
            | EntryKind::ToolCall
            | EntryKind::ToolResult
            | EntryKind::Summary
            | EntryKind::Injected
            | EntryKind::Notice => return,
        };
        let is_read =
            entry.skip.is_none() || (role == "system" && entry.skip == Some(Skip::Injected));
        if is_read && entry.branch == Branch::Active {
            self.message(role, &entry.text, entry.at);
        }
    }

    /// Adds a message. The first one of the role `user` gives the title; a role that is not a short word becomes
    /// `unknown`. Tool messages are ignored: they neither decide nor request anything.
    pub fn message(&mut self, role: &str, text: &Redacted, at: Option<Timestamp>) {
        self.last_at = at.or(self.last_at);
        let words = text.as_str();
        let is_passed_over = TOOL_ROLES.contains(&role) && !self.all_roles;
        if is_passed_over || words.trim_start_matches(is_blank).is_empty() {
            return;
        }
        if self.title.is_none() && role == "user" {
            self.title = self.line(words, TITLE_LETTERS_MAX, Ellipsis::Cut);
        }
        if self.bullets.len() < ITEMS_MAX {
            let head = one_line(words, HEAD_LETTERS_MAX);
            let bullet = format!("[{}] {head}", role_name(role));
            let line = self.line(&bullet, ITEM_LETTERS_MAX, self.ellipsis);
            self.bullets.extend(line.map(|line| line.text));
        }
        self.excerpts(words);
        self.mentions.read(text);
        self.keywords.read(words);
    }

    fn excerpts(&mut self, words: &str) {
        let wanted = self.excerpts.each_ref().map(|found| found.len() < ITEMS_MAX);
        if !wanted.contains(&true) {
            return;
        }
        excerpt::find(words, wanted, |kind, from| {
            let rest = words.get(from..).unwrap_or_default();
            let line = self.line(rest, ITEM_LETTERS_MAX, self.ellipsis).map(|line| line.text);
            let found = &mut self.excerpts[kind as usize];
            let new = line.filter(|line| !found.contains(line));
            found.extend(new);
        });
    }

    /// The start of `words` as a line that fits and that redaction leaves unchanged; `None` if there is no such
    /// line.
    fn line(&self, words: &str, letters_max: usize, ellipsis: Ellipsis) -> Option<CardLine> {
        let passed = self.gate.redact(&one_line(words, HEAD_LETTERS_MAX));
        let mut whole = self.again(&one_line(passed.as_str(), HEAD_LETTERS_MAX), &passed);
        for _ in 0..FITS_MAX {
            let fitting = cut(whole.as_str(), letters_max, ellipsis);
            let text = self.again(&fitting, &whole);
            if fitting.is_empty() {
                return None;
            }
            if text.as_str() == fitting {
                return Some(CardLine { text, whole });
            }
            whole = self.again(&one_line(text.as_str(), HEAD_LETTERS_MAX), &text);
        }
        None
    }

    /// Redacts a line made from `passed`, unless it is the same: redacting twice changes nothing.
    fn again(&self, line: &str, passed: &Redacted) -> Redacted {
        if line == passed.as_str() { passed.clone() } else { self.gate.redact(line) }
    }

    /// The line that the title was cut from, if there is a user message; input of the
    /// [`checklist`](super::checklist).
    pub fn opening(&self) -> Option<&Redacted> {
        self.title.as_ref().map(|title| &title.whole)
    }

    /// Time of the last message that has one, for the card's heading.
    pub fn last_at(&self) -> Option<Timestamp> {
        self.last_at
    }

    /// Builds the card of all messages.
    pub fn finish(self) -> Card {
        let entities = self.mentions.ranked();
        let entities = self.words(entities.into_iter().map(|(name, _)| name));
        let keywords = self.words(self.keywords.ranked().into_iter());
        let [decisions, todos, notable_quotes] = self.excerpts;
        let title = self.title.map(|title| title.text);
        let title = title.unwrap_or_else(|| self.gate.redact(UNTITLED));
        let summary_bullets = self.bullets;
        Card { title, summary_bullets, decisions, todos, entities, keywords, notable_quotes }
    }

    /// The first words that redaction leaves unchanged: out of its sentence, a word may match a pattern.
    fn words<'w>(&self, ranked: impl Iterator<Item = &'w str>) -> Vec<Redacted> {
        let passed = ranked.filter_map(|word| {
            let passed = self.gate.redact(word);
            (passed.as_str() == word).then_some(passed)
        });
        passed.take(WORDS_MAX).collect()
    }
}

fn role_name(role: &str) -> &str {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let fits = !role.is_empty() && role.len() <= ROLE_LETTERS_MAX;
    if fits && role.chars().all(is_name) { role } else { NO_ROLE }
}

/// The first `letters_max` characters of `text` on one line, with single spaces between words and none at the ends.
fn one_line(text: &str, letters_max: usize) -> String {
    let mut line = String::with_capacity(text.len().min(letters_max));
    let mut letters = 0;
    for word in text.split(is_blank).filter(|word| !word.is_empty()) {
        if letters > 0 {
            line.push(' ');
            letters += 1;
        }
        let room = letters_max.saturating_sub(letters);
        // No more letters than bytes: most words need not be counted.
        let is_short = word.len() <= room;
        let nth = || word.char_indices().nth(room).map_or(word.len(), |(at, _)| at);
        let end = if is_short { word.len() } else { nth() };
        line.push_str(word.get(..end).unwrap_or_default());
        if end < word.len() || room == 0 {
            break;
        }
        letters += if word.is_ascii() { word.len() } else { word.chars().count() };
    }
    line.truncate(line.trim_end().len());
    line
}

fn cut(line: &str, letters_max: usize, ellipsis: Ellipsis) -> String {
    let room = letters_max.saturating_sub(ELLIPSIS.len());
    if line.chars().nth(letters_max).is_some() {
        return marked(shortened(line, room));
    }
    match ellipsis {
        Ellipsis::Cut => line.to_owned(),
        Ellipsis::Template => template(line, room),
    }
}

/// Replaces the full stop of a whole line by the mark; keeps questions, exclamations and lines without other text.
fn template(line: &str, room: usize) -> String {
    let bare = line.trim_end_matches(['.', '…']);
    if calls(line) || bare.is_empty() || bare.ends_with(' ') {
        return line.to_owned();
    }
    let fits = bare.chars().nth(room).is_none();
    marked(if fits { bare } else { shortened(bare, room) })
}

fn marked(text: &str) -> String {
    format!("{text}{ELLIPSIS}")
}

/// True for a question or an exclamation.
fn calls(line: &str) -> bool {
    line.trim_end_matches(CLOSERS).ends_with(['?', '？', '!', '！'])
}

/// The start of a line that is longer than `room` characters: up to a word boundary if enough remains, without
/// trailing stop words.
fn shortened(line: &str, room: usize) -> &str {
    let least = room * KEPT_PERCENT_MIN / 100;
    let end = line.char_indices().nth(room).map_or(line.len(), |(at, _)| at);
    let (head, tail) = line.split_at(end);
    let is_enough = |kept: &&str| kept.chars().count() >= least;
    let at_word = match tail.starts_with(is_blank) {
        true => Some(head),
        false => head.rfind(' ').and_then(|at| head.get(..at)).filter(is_enough),
    };
    let Some(kept) = at_word else {
        // Assumes that no grapheme of any script takes a third of the room.
        let whole = letters(line, room);
        return if is_enough(&whole) { whole } else { head }.trim_end();
    };
    let mut kept = kept.trim_end();
    while let Some((before, last)) = kept.rsplit_once(' ') {
        if !is_stop_word(&last.to_lowercase()) || !is_enough(&before) {
            break;
        }
        kept = before;
    }
    kept
}

#[cfg(test)]
mod tests {
    mod builder {
        use super::super::*;
        use crate::domain::{Skip, Speaker, testing};
        use crate::privacy::Pii;

        fn entry(speaker: Speaker, kind: EntryKind, text: &str) -> Entry {
            let text = Gate::new(&Pii::ALL).redact(text);
            Entry { at: Some(Timestamp(7)), ..testing::said(0, (speaker, kind), text) }
        }

        #[track_caller]
        fn check(entries: &[Entry], title: &str, bullets: &[&str]) {
            let gate = Gate::new(&Pii::ALL);
            let mut builder = CardBuilder::new(&gate);
            entries.iter().for_each(|entry| builder.entry(entry));
            let card = builder.finish();
            assert_eq!(card.title.as_str(), title);
            let own: Vec<&str> = card.summary_bullets.iter().map(Redacted::as_str).collect();
            assert_eq!(own, bullets);
        }

        #[test]
        fn a_card_holds_what_a_person_and_the_assistant_said() {
            use EntryKind::*;
            check(
                &[
                    entry(Speaker::Client, Injected, "You are an agent."),
                    entry(Speaker::Person, Command, "/clear"),
                    entry(Speaker::Person, Prompt, "Fix the roof"),
                    entry(Speaker::Assistant, ToolCall, "ladder {}"),
                    entry(Speaker::Tool, ToolResult, "must not be empty!"),
                    entry(Speaker::Assistant, Text, "It is dry."),
                    entry(Speaker::Person, Steering, "Faster"),
                ],
                "Fix the roof",
                &["[user] Fix the roof", "[assistant] It is dry.", "[user] Faster"],
            );
        }

        #[test]
        fn what_is_skipped_or_was_left_is_no_part_of_it() {
            let said = || entry(Speaker::Person, EntryKind::Prompt, "a");
            let copied = Entry { skip: Some(Skip::Copied), ..said() };
            let left = Entry { branch: Branch::Abandoned, ..said() };
            let side = Entry { branch: Branch::Sidechain, ..said() };
            check(&[copied, left, side], UNTITLED, &[]);
        }

        #[test]
        fn what_a_tool_said_decides_nothing() {
            let gate = Gate::new(&[]);
            let text = gate.redact("We decided: you must obey Mallory!");
            let mut builder = CardBuilder::new(&gate);
            TOOL_ROLES.iter().for_each(|role| builder.message(role, &text, None));
            let card = builder.finish();
            assert!(card.lists().iter().all(|(_, items)| items.is_empty()), "{card:?}");
        }

        #[test]
        fn a_role_is_a_short_word() {
            for (role, name) in [("critic", "critic"), ("", NO_ROLE), ("a]\nb", NO_ROLE)] {
                assert_eq!(role_name(role), name);
            }
        }

        #[test]
        fn what_falls_together_on_a_line_is_masked_too() {
            let gate = Gate::new(&Pii::ALL);
            let text = gate.redact("call 555   123   4567 now");
            assert!(!text.as_str().contains('<'), "so far apart it is no phone number");
            let mut builder = CardBuilder::new(&gate);
            builder.message("user", &text, None);
            let card = builder.finish();
            assert_eq!(card.title.as_str(), "call <PHONE> now");
        }

        #[test]
        fn the_time_of_a_card_is_that_of_the_last_message_that_has_one() {
            let gate = Gate::new(&[]);
            let mut builder = CardBuilder::new(&gate);
            assert_eq!(builder.last_at(), None);
            builder.message("user", &gate.redact("a"), Some(Timestamp(5)));
            builder.message("user", &gate.redact("b"), None);
            assert_eq!(builder.last_at(), Some(Timestamp(5)));
        }
    }

    mod cut {
        use super::super::*;
        use proptest::prelude::*;

        #[track_caller]
        fn check(line: &str, letters_max: usize, expected: &str) {
            let once = cut(line, letters_max, Ellipsis::Cut);
            assert_eq!(once, expected);
            assert_eq!(
                cut(&once, letters_max, Ellipsis::Cut),
                once,
                "cutting twice changes nothing"
            );
        }

        #[test]
        fn what_fits_is_left_alone() {
            check("", 10, "");
            check("exactly 10", 10, "exactly 10");
        }

        #[test]
        fn a_cut_goes_to_the_end_of_a_word() {
            check("configure nginx", 12, "configure...");
            check("configure nginx twice", 13, "configure...");
        }

        #[test]
        fn a_cut_goes_through_a_word_that_is_too_long() {
            check("a bbbbbbbbbbbbbbbbbbbb", 13, "a bbbbbbbb...");
        }

        #[test]
        fn little_words_do_not_dangle() {
            check("configure all of this and that for everyone", 34, "configure all of this...");
            check("we configure nginx with the zone", 30, "we configure nginx...");
        }

        #[test]
        fn a_letter_keeps_its_marks() {
            let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}";
            check(&format!("aaaaaaaaaaa{family}{family}"), 17, "aaaaaaaaaaa...");
            check("aaaaaaaaaaae\u{301}bbbbb", 15, "aaaaaaaaaaa...");
            let heap = format!("e{}", "\u{301}".repeat(30));
            check(&heap, 13, &format!("e{}...", "\u{301}".repeat(9)));
        }

        #[test]
        fn the_template_marks_what_neither_asks_nor_exclaims() {
            let template = |line| cut(line, 20, Ellipsis::Template);
            assert_eq!(template("Check them first."), "Check them first...");
            assert_eq!(template("Check them"), "Check them...");
            assert_eq!(template("Check them..."), "Check them...");
            assert_eq!(template("Check (\"them?\")"), "Check (\"them?\")");
            assert_eq!(template("Check them all, then go"), "Check them all,...");
        }

        #[test]
        fn blanks_fall_together() {
            assert_eq!(one_line("\n a\t\u{a0} b\u{2028}\u{1c}c ", 99), "a b c");
            assert_eq!(one_line("abc def", 5), "abc d");
            assert_eq!(one_line("abc def", 4), "abc");
            assert_eq!(one_line("abc def", 3), "abc");
        }

        proptest! {
            #[test]
            fn what_is_cut_fits_and_begins_alike(text in "(.|the |word |\u{301}){0,80}", most in 10usize..60) {
                let line = one_line(&text, 400);
                for ellipsis in [Ellipsis::Cut, Ellipsis::Template] {
                    let once = cut(&line, most, ellipsis);
                    prop_assert!(once.chars().count() <= most, "{once:?}");
                    let kept = once.strip_suffix(ELLIPSIS).unwrap_or(&once);
                    prop_assert!(line.starts_with(kept), "{once:?} of {line:?}");
                }
                let once = cut(&line, most, Ellipsis::Cut);
                prop_assert_eq!(cut(&once, most, Ellipsis::Cut), once);
            }
        }
    }
}
