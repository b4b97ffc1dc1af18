//! Renders memories as files: a function of the memories, so that the same memories give the same bytes. What people wrote
//! is no part of it; the merge lays one over the other.
//!
//! Each run keeps what it rendered as the base of the next. The base never holds what a person wrote, or else their edits
//! would be taken for ours and written over, and what they took out would come back.

use super::document::Shape;
use super::edit::NewEntry;
use super::escape::{words_inline, words_line};
use super::facts::{Facts, SessionNote};
use super::kind::{self, Files, UNKNOWN_DURATION};
use super::name::{adr_label, adr_number, adr_path, next_adr, session_path};
use super::page::{Page, entry};
use super::tag::{Category, Tag, is_value, source_tags, tag_line};
use crate::domain::{
    Attempt, Claim, Decision, Discussion, Memory, MemoryId, MemoryState, PersonRequest, Stage,
};
use std::collections::{BTreeMap, BTreeSet};

/// Decisions that are listed as recent, the newest; older ones stay in their records and sessions.
pub(crate) const RECENT_DECISIONS_MAX: usize = 20;
/// Requests that are listed as completed, the newest.
pub(crate) const COMPLETED_MAX: usize = 20;

/// The rendered directory.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rendered {
    /// Every file with a rendered entry; the base of the next run.
    pub files: Files,
    /// Files that a person gave another name: the name now, and the one that the base knows.
    pub renamed: BTreeMap<String, String>,
    /// Active memories that no file shows: decisions and requests that are no longer recent, and what
    /// belongs to a session that was not given.
    pub unplaced: Vec<MemoryId>,
}

/// Renders `facts`. `base` is what the last run rendered, `disk` what lies in the directory: numbers and
/// names of records and sessions come from them, and a day at the end of a file that did not change.
pub fn render(facts: &Facts<'_>, base: &Files, disk: &Files) -> Rendered {
    let names = Names::of(facts, base, disk);
    let tags = source_tags(facts.memories.iter().map(|memory| memory.id));
    let mut placing = Placing { facts, names: &names, tags: &tags, shown: BTreeSet::new() };
    let mut pages = placing.base_pages();
    pages.extend(placing.records());
    pages.extend(placing.sessions());
    let shown = placing.shown;
    let active = facts.memories.iter().filter(|memory| memory.state == MemoryState::Active);
    let unplaced = active.map(|memory| memory.id).filter(|id| !shown.contains(id)).collect();
    let mut files = Files::new();
    for page in pages {
        let before = names.renamed.get(&page.path).unwrap_or(&page.path);
        let before = base.get(before).map(String::as_str);
        // A file without an entry is made by a person or not at all; one that was made stays.
        if page.is_empty() && before.is_none() {
            continue;
        }
        let text = page.text(before, &facts.today.day());
        files.insert(page.path, text);
    }
    Rendered { files, renamed: names.renamed, unplaced }
}

struct Names {
    /// The path and number of each decision that has a record.
    records: BTreeMap<MemoryId, (String, u32)>,
    /// The path of each session, in the order in which they were given.
    sessions: Vec<String>,
    renamed: BTreeMap<String, String>,
}

impl Names {
    fn of(facts: &Facts<'_>, base: &Files, disk: &Files) -> Names {
        let (in_base, on_disk) = (marked(base), marked(disk));
        let mut renamed = BTreeMap::new();
        let mut known = |tag: &str| {
            let old = in_base.get(tag).copied();
            let now = on_disk.get(tag).copied();
            match (old, now) {
                (Some(old), Some(now)) if old != now && !disk.contains_key(old) => {
                    renamed.insert(now.to_owned(), old.to_owned());
                    Some(now.to_owned())
                }
                (Some(old), _) => Some(old.to_owned()),
                (None, now) => now.map(str::to_owned),
            }
        };
        let mut number = next_adr(base.keys().chain(disk.keys()).map(String::as_str));
        let tags = source_tags(facts.memories.iter().map(|memory| memory.id));
        let mut records = BTreeMap::new();
        for memory in by_time(facts.memories) {
            let Some(title) = record_title(memory) else { continue };
            let tag = tags.get(&memory.id).map_or("", String::as_str);
            let path = known(tag).filter(|path| adr_number(path).is_some());
            let path = match path {
                Some(path) => path,
                None if memory.state == MemoryState::Retracted => continue,
                None => {
                    let path = adr_path(number, title);
                    number = number.saturating_add(1);
                    path
                }
            };
            let number = adr_number(&path).unwrap_or_default();
            records.insert(memory.id, (path, number));
        }
        let mut taken: BTreeSet<String> = base.keys().chain(disk.keys()).cloned().collect();
        let mut sessions = vec![String::new(); facts.sessions.len()];
        let mut order: Vec<(usize, &SessionNote)> = facts.sessions.iter().enumerate().collect();
        order.sort_by_key(|(_, note)| (note.began, note.id));
        for (at, note) in order {
            let path = known(&note.tag()).unwrap_or_else(|| {
                let topic = note.topic.as_ref().map(|topic| topic.as_str());
                session_path(note.began, topic, |path| taken.contains(path))
            });
            taken.insert(path.clone());
            sessions[at] = path;
        }
        Names { records, sessions, renamed }
    }

    fn label(&self, id: MemoryId) -> Option<String> {
        self.records.get(&id).map(|(_, number)| adr_label(*number))
    }
}

/// The files among records and sessions by the tag below their heading.
fn marked(files: &Files) -> BTreeMap<&str, &str> {
    let mut marked = BTreeMap::new();
    let folder = |path: &str| path.starts_with(kind::DECISIONS) || path.starts_with(kind::SESSIONS);
    for (path, text) in files.iter().filter(|(path, _)| folder(path)) {
        let lines =
            text.lines().skip_while(|line| !line.trim_start_matches('\u{feff}').starts_with("# "));
        let tags = lines.skip(1).map_while(Tag::parse);
        for tag in tags.filter_map(|tag| tag.ours()) {
            marked.entry(tag).or_insert(path.as_str());
        }
    }
    marked
}

/// The earliest first, those without a time before them.
fn by_time(memories: &[Memory]) -> Vec<&Memory> {
    let mut sorted: Vec<&Memory> = memories.iter().collect();
    sorted.sort_by_key(|memory| (memory.valid_from, memory.id));
    sorted
}

fn record_title(memory: &Memory) -> Option<&str> {
    let Claim::Decision(decision) = &memory.claim else { return None };
    let options: BTreeSet<&str> =
        decision.options.iter().map(|it| it.trim()).filter(|it| !it.is_empty()).collect();
    let said = !decision.rationale.trim().is_empty() && !decision.chosen.trim().is_empty();
    (options.len() >= 2 && said).then_some(decision.chosen.as_str())
}

/// The longest entry, in letters: it is to be read in a list; the record says the rest.
const ENTRY_LETTERS_MAX: usize = 400;
/// The longest title of a record, in letters.
const TITLE_LETTERS_MAX: usize = 80;
/// Words that put what was learnt under tests.
const OF_TESTS: [&str; 7] =
    ["test", "tests", "fixture", "fixtures", "coverage", "mock", "assertion"];
/// Words that put it under conventions.
const OF_CODE: [&str; 6] = ["naming", "format", "style", "lint", "indentation", "convention"];

struct Placing<'a> {
    facts: &'a Facts<'a>,
    names: &'a Names,
    tags: &'a BTreeMap<MemoryId, String>,
    shown: BTreeSet<MemoryId>,
}

impl Placing<'_> {
    /// The files at the top of the directory, the newest entries of each section first.
    fn base_pages(&mut self) -> Vec<Page> {
        let mut pages = [
            Page::new(kind::ACTIVE_CONTEXT),
            Page::new(kind::PROGRESS),
            Page::new(kind::PATTERNS),
            Page::new(kind::GLOSSARY),
        ];
        let (mut decisions, mut completed) = (0, 0);
        let [active, progress, patterns, _glossary] = &mut pages;
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
        Vec::from(pages)
    }

    fn tag(&self, id: MemoryId) -> Option<&str> {
        self.tags.get(&id).map(String::as_str)
    }

    fn line(
        &self,
        shape: Shape,
        text: &str,
        category: Option<Category>,
        id: MemoryId,
    ) -> Option<NewEntry> {
        let words = words_line(text, ENTRY_LETTERS_MAX, self.facts.gate);
        (!words.is_empty()).then(|| entry(shape, &words, category, self.tag(id)))
    }

    /// A decision in a list: by its record where it has one.
    fn decision(&self, memory: &Memory, it: &Decision) -> Option<NewEntry> {
        let category = Some(Category::Decision);
        let Some(label) = self.names.label(memory.id) else {
            let text = with_reason(&it.chosen, &it.rationale);
            return self.line(Shape::Bullet, &text, category, memory.id);
        };
        let text = format!("{label}: {}", self.record_words(it));
        Some(entry(Shape::Bullet, &text, category, self.tag(memory.id)))
    }

    /// An open discussion; a settled one is part of its decision.
    fn discussion(&self, memory: &Memory, it: &Discussion) -> Option<NewEntry> {
        if matches!(memory.stage, Stage::Decided | Stage::Refuted) {
            return None;
        }
        let points = it.points.iter().map(|point| end_trimmed(point));
        let points: Vec<&str> = points.filter(|point| !point.is_empty()).collect();
        let text = match points.is_empty() {
            true => it.topic.clone(),
            false => format!("{}: {}", end_trimmed(&it.topic), points.join("; ")),
        };
        self.line(Shape::Bullet, &text, None, memory.id)
    }

    fn attempt(&self, memory: &Memory, it: &Attempt) -> Option<NewEntry> {
        let text = with_reason(&it.action, &it.result);
        let category = match Category::of_words(&text) {
            _ if it.succeeded => None,
            Some(Category::Bugfix) => Some(Category::Bugfix),
            Some(_) | None => Some(Category::Learning),
        };
        self.line(Shape::Bullet, &text, category, memory.id)
    }

    fn request(&self, memory: &Memory, it: &PersonRequest) -> Option<(&'static str, NewEntry)> {
        let (section, shape) = match memory.stage {
            Stage::Proposed => ("Backlog", Shape::Bullet),
            Stage::Attempted => ("In Progress", Shape::Task { done: false }),
            Stage::Decided => ("Completed (Recent)", Shape::Task { done: true }),
            Stage::Refuted => return None,
        };
        let summary = if it.summary.trim().is_empty() { &it.intent } else { &it.summary };
        let target =
            it.target.as_deref().map(str::trim).filter(|target| !summary.contains(*target));
        let text = match target {
            Some(target) if !target.is_empty() => format!("{} ({target})", end_trimmed(summary)),
            Some(_) | None => summary.clone(),
        };
        Some((section, self.line(shape, &text, None, memory.id)?))
    }
}

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

/// The longest paragraph of a record, in letters.
const PARAGRAPH_LETTERS_MAX: usize = 1_200;
const UNTITLED: &str = "Decision";
/// Alternatives that a record lists.
const ALTERNATIVES_MAX: usize = 10;

impl Placing<'_> {
    fn records(&mut self) -> Vec<Page> {
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
        let mut push = |section, shape: Shape, text: &str, tagged: bool| {
            // What the gate leaves nothing of is no entry.
            let words = words_line(text, PARAGRAPH_LETTERS_MAX, self.facts.gate);
            let category = tagged.then_some(Category::Decision);
            let tag = self.tag(memory.id).filter(|_| tagged);
            if !words.is_empty() {
                page.push(section, entry(shape, &words, category, tag));
            }
        };
        push("Context", Shape::Paragraph, &context, false);
        push("Decision", Shape::Paragraph, &it.chosen, true);
        push("Rationale", Shape::Bullet, &it.rationale, false);
        for other in options.iter().filter(|option| **option != it.chosen.trim()) {
            push("Alternatives Considered", Shape::Bullet, other, false);
        }
        page
    }

    fn record_words(&self, it: &Decision) -> String {
        let words = words_inline(&it.chosen, TITLE_LETTERS_MAX, self.facts.gate);
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

/// The section of the memory card, behind those of the schema.
const CARD: &str = "Memory Card";
/// The longest summary, in letters.
const SUMMARY_LETTERS_MAX: usize = 800;

impl Placing<'_> {
    fn sessions(&mut self) -> Vec<Page> {
        let by_id: BTreeMap<MemoryId, &Memory> =
            self.facts.memories.iter().map(|memory| (memory.id, memory)).collect();
        let named = self.facts.sessions.iter().zip(&self.names.sessions);
        named.map(|(note, path)| self.session(note, path, &by_id)).collect()
    }

    fn session(
        &mut self,
        note: &SessionNote,
        path: &str,
        by_id: &BTreeMap<MemoryId, &Memory>,
    ) -> Page {
        let digits = note.digits();
        let mut page = Page::new(path);
        page.head = Some(format!("# Session: {}\n{}\n", note.began.day(), tag_line(&note.tag())));
        page.footer = Some(format!("*Session duration: {UNKNOWN_DURATION}*"));
        let summary: Vec<&str> = note.summary.iter().map(|line| line.as_str()).collect();
        let summary = words_line(&summary.join(" "), SUMMARY_LETTERS_MAX, self.facts.gate);
        if !summary.is_empty() {
            let tag = format!("summary-{digits}");
            page.push("Summary", entry(Shape::Paragraph, &summary, None, Some(&tag)));
        }
        let mut memories: Vec<&Memory> =
            note.memories.iter().filter_map(|id| by_id.get(id).copied()).collect();
        memories.sort_by_key(|memory| (memory.valid_from, memory.id));
        memories.dedup_by_key(|memory| memory.id);
        for memory in memories {
            self.session_entry(&mut page, memory);
        }
        for (field, items) in &note.card {
            let items: Vec<&str> = items.iter().map(|item| item.as_str()).collect();
            let name = field.replace('_', "-");
            if items.is_empty() || !is_value(&name) {
                continue;
            }
            let text = format!("{}: {}", field.replace('_', " "), items.join(" | "));
            let words = words_line(&text, SUMMARY_LETTERS_MAX, self.facts.gate);
            page.push(
                CARD,
                entry(Shape::Bullet, &words, None, Some(&format!("card-{name}-{digits}"))),
            );
        }
        page
    }

    /// A memory in the file of the session that it came from. A decision was made then, whatever became
    /// of it later.
    fn session_entry(&mut self, page: &mut Page, memory: &Memory) {
        let is_active = memory.state == MemoryState::Active;
        let placed = match &memory.claim {
            Claim::Attempt(it) if it.succeeded && is_active => {
                self.attempt(memory, it).map(|entry| ("Work Completed", entry))
            }
            Claim::Decision(it) if memory.state != MemoryState::Retracted => {
                self.decision(memory, it).map(|entry| ("Decisions Made", entry))
            }
            Claim::Discussion(it) if is_active => {
                self.discussion(memory, it).map(|entry| ("Open Questions", entry))
            }
            Claim::Attempt(_) | Claim::Decision(_) | Claim::Discussion(_) | Claim::Request(_) => {
                None
            }
        };
        if let Some((section, entry)) = placed {
            self.shown.insert(memory.id);
            page.push(section, entry);
        }
    }
}

#[cfg(test)]
#[path = "render_test.rs"]
mod tests;
