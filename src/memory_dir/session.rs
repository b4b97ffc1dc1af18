//! Session files: what was decided, done and left open, from the memories of the session.

use super::document::Shape;
use super::escape::words_line;
use super::facts::SessionNote;
use super::kind::UNKNOWN;
use super::page::{Page, entry};
use super::render::{Placing, end_trimmed, is_active, said, summary_of};
use super::tag::tag_line;
use crate::domain::{Claim, Memory, MemoryState, Stage};
use crate::text::truncate::clauses_within;
use crate::text::wording;
use std::borrow::Cow;

/// Maximum length of a summary, in letters.
const SUMMARY_LETTERS_MAX: usize = 1_600;
/// Maximum number of items in a sentence of the summary.
const SUMMARY_ITEMS_MAX: usize = 3;
/// Length from which an item of the summary ends with one of its clauses, in letters.
const ITEM_LETTERS_MAX: usize = 100;

impl Placing<'_> {
    pub(super) fn sessions(&mut self) -> Vec<Page> {
        let named = self.facts.sessions.iter().zip(&self.names.sessions);
        let named = named.filter(|(_, path)| !path.is_empty());
        named.map(|(note, path)| self.session(note, path)).collect()
    }

    fn session(&mut self, note: &SessionNote, path: &str) -> Page {
        let mut memories: Vec<&Memory> =
            note.memories.iter().filter_map(|id| self.by_id.get(id).copied()).collect();
        memories.sort_by_key(|memory| (memory.valid_from, memory.id));
        memories.dedup_by_key(|memory| memory.id);
        let inputs = self.inputs((note.id, note.began, note.ended), &memories);
        let mut page = self.page(path.to_owned(), inputs);
        if !page.is_kept {
            self.begin_session(&mut page, note, &memories);
        }
        for memory in memories {
            self.session_entry(&mut page, memory);
        }
        page
    }

    /// Title, duration and summary.
    fn begin_session(&self, page: &mut Page, note: &SessionNote, memories: &[&Memory]) {
        page.head = Some(format!("# Session: {}\n{}\n", note.began.day(), tag_line(&note.tag())));
        page.footer = Some(format!("*Session duration: {}*", note.duration()));
        // What the session only restated began earlier.
        let is_new = |memory: &&&Memory| memory.valid_from.is_none_or(|at| note.began <= at);
        let mut new: Vec<&Memory> = memories.iter().filter(is_new).copied().collect();
        new.sort_by_key(|memory| !is_active(memory));
        let told = summary(if new.is_empty() { memories } else { &new });
        let summary = words_line(&told, SUMMARY_LETTERS_MAX, self.facts.gate);
        if !summary.is_empty() {
            let tag = format!("summary-{}", note.digits());
            page.push("Summary", entry(Shape::Paragraph, &summary, None, Some(&tag)));
        }
    }

    /// A memory in the file of its session. Decisions and completed work stay whatever happens
    /// later; open items go once they are done.
    fn session_entry(&mut self, page: &mut Page, memory: &Memory) {
        if memory.state == MemoryState::Retracted {
            return;
        }
        let is_open = is_active(memory) && !matches!(memory.stage, Stage::Decided | Stage::Refuted);
        // A rule is never done.
        let is_rule = |it| wording::is_constraint(summary_of(it));
        let (section, shape) = match &memory.claim {
            Claim::Attempt(it) if it.succeeded => ("Work Completed", Shape::Bullet),
            Claim::Decision(_) => ("Decisions Made", Shape::Bullet),
            _ if !is_open => return,
            Claim::Request(it) if !is_rule(it) => (NEXT, Shape::Task { done: false }),
            Claim::Attempt(_) | Claim::Request(_) => (NEXT, Shape::Bullet),
            Claim::Discussion(_) => ("Open Questions", Shape::Bullet),
        };
        if !page.is_kept {
            let Some(entry) = self.entry(memory, shape) else {
                page.inputs = None;
                return;
            };
            page.push(section, entry);
        }
        // What its list has no room for is archived.
        if is_active(memory) && self.ended.contains(&memory.id) {
            self.shown.insert(memory.id);
        }
    }
}

const NEXT: &str = "Context for Next Session";

/// One sentence each for decisions, completed work, requests and failures.
fn summary(memories: &[&Memory]) -> String {
    let (mut decided, mut done, mut failed, mut asked) = (vec![], vec![], vec![], vec![]);
    for memory in memories.iter().filter(|memory| memory.state != MemoryState::Retracted) {
        match &memory.claim {
            Claim::Decision(it) => decided.push(said(memory, &it.chosen)),
            Claim::Attempt(it) if it.succeeded => done.push(said(memory, &it.action)),
            Claim::Attempt(it) => failed.push(said(memory, &it.action)),
            Claim::Request(it) => asked.push(said(memory, summary_of(it))),
            Claim::Discussion(_) => {}
        }
    }
    let sentence = |(begins, items): (&str, Vec<Cow<'_, str>>)| {
        let more = items.len().saturating_sub(SUMMARY_ITEMS_MAX);
        let whole = |text| clauses_within(text, ITEM_LETTERS_MAX).unwrap_or(text);
        let shown = items.iter().take(SUMMARY_ITEMS_MAX);
        let shown: Vec<&str> = shown.map(|it| end_trimmed(whole(end_trimmed(it)))).collect();
        let more = if more == 0 { String::new() } else { format!("; and {more} more") };
        (!shown.is_empty()).then(|| format!("{begins}: {}{more}.", shown.join("; ")))
    };
    let all = [("Decided", decided), ("Done", done), ("Failed", failed), ("Asked for", asked)];
    all.into_iter().filter_map(sentence).collect::<Vec<_>>().join(" ")
}

impl SessionNote {
    /// Time between the first and last entry, as in the footer.
    fn duration(&self) -> String {
        let Some(ended) = self.ended else { return UNKNOWN.to_owned() };
        let minutes = ended.since(self.began).as_secs().div_ceil(60);
        format!("~{}h {}m", minutes / 60, minutes % 60)
    }
}
