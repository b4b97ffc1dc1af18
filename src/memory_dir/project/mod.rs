//! What the directory says by itself: a function of the memories, so that the same memories give the same
//! bytes. What people wrote is no part of it; [`merge`](fn@super::merge) lays one over the other.
//!
//! Each run keeps what it rendered as the base of the next. The base never holds what a person wrote, or
//! else their edits would be taken for ours and written over, and what they took out would come back.

mod fact;
mod page;
mod place;
mod record;
mod session;
#[cfg(test)]
mod tests;

pub use fact::{Facts, SessionNote, Term};

use super::Files;
use super::kind;
use super::name::{adr_label, adr_number, adr_path, next_adr, session_path};
use super::tag::{Tag, source_tags};
use crate::domain::{Claim, Memory, MemoryId, MemoryState};
use fact::Words;

use std::collections::{BTreeMap, BTreeSet};

/// Decisions that are listed as recent, the newest; older ones stay in their records and sessions.
pub const RECENT_DECISIONS_MAX: usize = 20;
/// Requests that are listed as completed, the newest.
pub const COMPLETED_MAX: usize = 20;

/// What the directory says by itself.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rendered {
    /// Every file with an entry of ours; the base of the next run.
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
    let words = Words { gate: facts.gate };
    let mut placing =
        place::Placing { facts, names: &names, tags: &tags, words: &words, shown: BTreeSet::new() };
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

/// Where records and sessions are.
struct Names {
    /// The path and number of each decision that has a record.
    records: BTreeMap<MemoryId, (String, u32)>,
    /// The path of each session, in the order in which they were given.
    sessions: Vec<String>,
    renamed: BTreeMap<String, String>,
}

impl Names {
    /// Those that have a name keep it; others are numbered and named in the order of their times.
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
        let mut order: Vec<usize> = (0..facts.sessions.len()).collect();
        order.sort_by_key(|at| facts.sessions.get(*at).map(|note| (note.began, note.id)));
        for at in order {
            let Some(note) = facts.sessions.get(at) else { continue };
            let path = known(&note.tag()).unwrap_or_else(|| {
                let topic = note.topic.as_ref().map(|topic| topic.as_str());
                session_path(note.began, topic, |path| taken.contains(path))
            });
            taken.insert(path.clone());
            if let Some(slot) = sessions.get_mut(at) {
                *slot = path;
            }
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

/// What the record of a decision is called; none if it has no record: there must have been a choice
/// between two options or more, and a reason.
fn record_title(memory: &Memory) -> Option<&str> {
    let Claim::Decision(decision) = &memory.claim else { return None };
    let options: BTreeSet<&str> =
        decision.options.iter().map(|it| it.trim()).filter(|it| !it.is_empty()).collect();
    let said = !decision.rationale.trim().is_empty() && !decision.chosen.trim().is_empty();
    (options.len() >= 2 && said).then_some(decision.chosen.as_str())
}
