//! Which entry of which file a memory becomes (DESIGN's table of the memory directory).

use super::fact::{Facts, Words};
use super::page::{Mark, Page, entry};
use super::{COMPLETED_MAX, Names, RECENT_DECISIONS_MAX, by_time};
use crate::domain::{
    Attempt, Claim, Decision, Discussion, Memory, MemoryId, MemoryState, PersonRequest, Stage,
};
use crate::memory_dir::document::Shape;
use crate::memory_dir::edit::NewEntry;
use crate::memory_dir::kind;
use crate::memory_dir::tag::Category;
use std::collections::{BTreeMap, BTreeSet};

/// The longest entry, in letters: it is to be read in a list; the record says the rest.
pub(super) const ENTRY_LETTERS_MAX: usize = 400;
/// The longest title of a record, in letters.
pub(super) const TITLE_LETTERS_MAX: usize = 80;
/// The longest word of the glossary, in letters.
const TERM_LETTERS_MAX: usize = 60;
/// Words that put what was learnt under tests.
const OF_TESTS: [&str; 7] =
    ["test", "tests", "fixture", "fixtures", "coverage", "mock", "assertion"];
/// Words that put it under conventions.
const OF_CODE: [&str; 6] = ["naming", "format", "style", "lint", "indentation", "convention"];

/// Puts memories into pages.
pub(super) struct Placing<'a> {
    pub(super) facts: &'a Facts<'a>,
    pub(super) names: &'a Names,
    pub(super) tags: &'a BTreeMap<MemoryId, String>,
    pub(super) words: &'a Words<'a>,
    /// What was put somewhere.
    pub(super) shown: BTreeSet<MemoryId>,
}

impl Placing<'_> {
    /// The files at the top of the directory, the newest entries of each section first.
    pub(super) fn base_pages(&mut self) -> Vec<Page> {
        let mut pages = [
            Page::new(kind::ACTIVE_CONTEXT),
            Page::new(kind::PROGRESS),
            Page::new(kind::PATTERNS),
            Page::new(kind::GLOSSARY),
        ];
        let (mut decisions, mut completed) = (0, 0);
        let [active, progress, patterns, glossary] = &mut pages;
        for memory in by_time(self.facts.memories).into_iter().rev() {
            if memory.state != MemoryState::Active {
                continue;
            }
            let placed = match &memory.claim {
                Claim::Decision(it) => {
                    let is_believed = memory.stage != Stage::Refuted;
                    let placed = is_believed.then(|| self.decision(memory, it)).flatten();
                    decisions += usize::from(placed.is_some());
                    let recent = placed.filter(|_| decisions <= RECENT_DECISIONS_MAX);
                    recent.map(|entry| (&mut *active, "Recent Decisions", entry))
                }
                Claim::Discussion(it) => {
                    self.discussion(memory, it).map(|entry| (&mut *active, "Open Questions", entry))
                }
                Claim::Attempt(it) if it.succeeded => None,
                Claim::Attempt(it) => self.attempt(memory, it).map(|entry| match memory.stage {
                    Stage::Proposed | Stage::Attempted => (&mut *active, "Blockers", entry),
                    Stage::Decided | Stage::Refuted => (&mut *patterns, pattern_section(it), entry),
                }),
                Claim::Request(it) => {
                    let placed = self.request(memory, it);
                    let is_done = memory.stage == Stage::Decided;
                    completed += usize::from(is_done && placed.is_some());
                    let shown = placed.filter(|_| !is_done || completed <= COMPLETED_MAX);
                    shown.map(|(section, entry)| (&mut *progress, section, entry))
                }
            };
            if let Some((page, section, entry)) = placed {
                self.shown.insert(memory.id);
                page.push(section, entry);
            }
        }
        self.terms(glossary);
        Vec::from(pages)
    }

    pub(super) fn tag(&self, id: MemoryId) -> Option<&str> {
        self.tags.get(&id).map(String::as_str)
    }

    /// A line of our own; none if no word of it is left.
    fn line(
        &self,
        mark: &Mark,
        text: &str,
        category: Option<Category>,
        id: MemoryId,
    ) -> Option<NewEntry> {
        let words = self.words.plain(text, ENTRY_LETTERS_MAX);
        (!words.is_empty()).then(|| entry(mark, &words, category, self.tag(id)))
    }

    /// A decision in a list: by its record where it has one.
    pub(super) fn decision(&self, memory: &Memory, it: &Decision) -> Option<NewEntry> {
        let text = match self.names.label(memory.id) {
            Some(label) => format!("{label}: {}", self.record_words(it)),
            None => {
                return self.line(
                    &Mark::Bullet,
                    &with_reason(&it.chosen, &it.rationale),
                    Some(Category::Decision),
                    memory.id,
                );
            }
        };
        Some(entry(&Mark::Bullet, &text, Some(Category::Decision), self.tag(memory.id)))
    }

    /// A discussion that is open; what was settled is part of the decision that it led to.
    pub(super) fn discussion(&self, memory: &Memory, it: &Discussion) -> Option<NewEntry> {
        match memory.stage {
            Stage::Proposed | Stage::Attempted => {}
            Stage::Decided | Stage::Refuted => return None,
        }
        let points: Vec<&str> = it
            .points
            .iter()
            .map(|point| end_trimmed(point))
            .filter(|point| !point.is_empty())
            .collect();
        let text = match points.is_empty() {
            true => it.topic.clone(),
            false => format!("{}: {}", end_trimmed(&it.topic), points.join("; ")),
        };
        self.line(&Mark::Bullet, &text, None, memory.id)
    }

    /// What was tried, and what came of it.
    pub(super) fn attempt(&self, memory: &Memory, it: &Attempt) -> Option<NewEntry> {
        let text = with_reason(&it.action, &it.result);
        let category = match Category::of_words(&text) {
            _ if it.succeeded => None,
            Some(Category::Bugfix) => Some(Category::Bugfix),
            Some(_) | None => Some(Category::Learning),
        };
        self.line(&Mark::Bullet, &text, category, memory.id)
    }

    fn request(&self, memory: &Memory, it: &PersonRequest) -> Option<(&'static str, NewEntry)> {
        let (section, mark) = match memory.stage {
            Stage::Proposed => ("Backlog", Mark::Bullet),
            Stage::Attempted => ("In Progress", Mark::Open),
            Stage::Decided => ("Completed (Recent)", Mark::Done),
            Stage::Refuted => return None,
        };
        let summary = if it.summary.trim().is_empty() { &it.intent } else { &it.summary };
        let target =
            it.target.as_deref().map(str::trim).filter(|target| !summary.contains(*target));
        let text = match target {
            Some(target) if !target.is_empty() => format!("{} ({target})", end_trimmed(summary)),
            Some(_) | None => summary.clone(),
        };
        Some((section, self.line(&mark, &text, None, memory.id)?))
    }

    fn terms(&self, glossary: &mut Page) {
        let mut rows: BTreeMap<(&str, String), String> = BTreeMap::new();
        for term in self.facts.terms {
            let section = if term.is_abbreviation { "Abbreviations" } else { "Terms" };
            let word = self.words.cell(term.word.as_str(), TERM_LETTERS_MAX);
            let meaning = self.words.cell(term.meaning.as_str(), ENTRY_LETTERS_MAX);
            if !word.is_empty() && !meaning.is_empty() {
                rows.entry((section, word)).or_insert(meaning);
            }
        }
        for ((section, word), meaning) in rows {
            let lines = format!("| {word} | {meaning} |\n");
            let section = if section == "Terms" { "Terms" } else { "Abbreviations" };
            glossary.push(section, NewEntry { shape: Shape::Row, lines });
        }
    }
}

/// What was done, and why or with which end.
fn with_reason(what: &str, why: &str) -> String {
    match why.trim().is_empty() {
        true => what.to_owned(),
        false => format!("{} – {}", end_trimmed(what), why.trim()),
    }
}

/// Without the full stop at its end.
fn end_trimmed(text: &str) -> &str {
    text.trim().trim_end_matches(['.', ':', ';'])
}

/// Where something that was learnt goes.
fn pattern_section(it: &Attempt) -> &'static str {
    let text = format!("{} {}", it.action, it.result).to_lowercase();
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    let mut of_code = false;
    let of_tests = words.any(|word| {
        of_code |= OF_CODE.contains(&word);
        OF_TESTS.contains(&word)
    });
    match (of_tests, of_code) {
        (true, _) => "Testing Patterns",
        (false, true) => "Code Conventions",
        (false, false) => "Architecture Patterns",
    }
}
