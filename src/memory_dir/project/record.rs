//! The record of a decision.

use super::page::{Mark, Page, entry};
use super::place::{Placing, TITLE_LETTERS_MAX};
use crate::domain::{Claim, Decision, Memory, MemoryState, Stage};
use crate::memory_dir::name::adr_label;
use crate::memory_dir::tag::{Category, tag_line};

/// The longest paragraph of a record, in letters.
const PARAGRAPH_LETTERS_MAX: usize = 1_200;
/// What a record is called of whose words the gate leaves nothing.
const UNTITLED: &str = "Decision";
/// Alternatives that a record lists.
const ALTERNATIVES_MAX: usize = 10;

impl Placing<'_> {
    /// A page for each decision that has a record.
    pub(super) fn records(&mut self) -> Vec<Page> {
        let mut pages = Vec::new();
        for memory in self.facts.memories {
            let Claim::Decision(decision) = &memory.claim else { continue };
            let Some((path, number)) = self.names.records.get(&memory.id) else { continue };
            pages.push(self.record(memory, decision, path, *number));
            self.shown.insert(memory.id);
        }
        pages
    }

    fn record(&self, memory: &Memory, it: &Decision, path: &str, number: u32) -> Page {
        let title = self.record_words(it);
        let tag = self.tag(memory.id).map(tag_line).unwrap_or_default();
        let date = memory.valid_from.map_or_else(|| "unknown".to_owned(), |at| at.day());
        let mut page = Page::new(path);
        page.head = Some(format!(
            "# {}: {title}\n{tag}\n\n**Status:** {}\n**Date:** {date}\n**Tags:** decision\n",
            adr_label(number),
            self.status(memory),
        ));
        let mut options: Vec<&str> = Vec::new();
        for option in it.options.iter().map(|option| option.trim()) {
            if !option.is_empty() && !options.contains(&option) && options.len() <= ALTERNATIVES_MAX
            {
                options.push(option);
            }
        }
        let context = format!("There was a choice between {}.", options.join("; "));
        let mut push = |section, mark: &Mark, text: &str, tagged: bool| {
            // What the gate leaves nothing of is no entry.
            let words = self.words.plain(text, PARAGRAPH_LETTERS_MAX);
            let category = tagged.then_some(Category::Decision);
            let tag = self.tag(memory.id).filter(|_| tagged);
            if !words.is_empty() {
                page.push(section, entry(mark, &words, category, tag));
            }
        };
        push("Context", &Mark::Paragraph, &context, false);
        push("Decision", &Mark::Paragraph, &it.chosen, true);
        push("Rationale", &Mark::Bullet, &it.rationale, false);
        for other in options.iter().filter(|option| **option != it.chosen.trim()) {
            push("Alternatives Considered", &Mark::Bullet, other, false);
        }
        page
    }

    /// What a record is called.
    pub(super) fn record_words(&self, it: &Decision) -> String {
        let words = self.words.inline(&it.chosen, TITLE_LETTERS_MAX);
        if words.is_empty() { UNTITLED.to_owned() } else { words }
    }

    /// `Superseded by ADR-XXX` names a record, so what has none in its place is deprecated.
    fn status(&self, memory: &Memory) -> String {
        let successor = memory.superseded_by.and_then(|id| self.names.label(id));
        match (memory.state, memory.stage) {
            (MemoryState::Superseded, _) => successor
                .map_or_else(|| "Deprecated".to_owned(), |label| format!("Superseded by {label}")),
            (MemoryState::Retracted, _) | (MemoryState::Active, Stage::Refuted) => {
                "Deprecated".to_owned()
            }
            (MemoryState::Active, Stage::Proposed | Stage::Attempted) => "Proposed".to_owned(),
            (MemoryState::Active, Stage::Decided) => "Accepted".to_owned(),
        }
    }
}
