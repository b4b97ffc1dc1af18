//! The file of a session.

use super::fact::SessionNote;
use super::page::{Mark, Page, entry};
use super::place::{ENTRY_LETTERS_MAX, Placing};
use crate::domain::{Claim, Digest, Memory, MemoryId, MemoryState};
use crate::memory_dir::tag::{SOURCE_DIGITS_MIN, is_value, tag_line};
use crate::memory_dir::template::UNKNOWN_DURATION;
use std::collections::BTreeMap;

/// The section of the memory card, behind those of the schema.
const CARD: &str = "Memory Card";
/// The longest summary, in letters.
const SUMMARY_LETTERS_MAX: usize = 800;
/// Minutes of an hour.
const HOUR: u64 = 60;

impl Placing<'_> {
    /// A page for each session.
    pub(super) fn sessions(&mut self) -> Vec<Page> {
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
        page.footer = Some(footer(note.minutes));
        let summary: Vec<&str> = note.summary.iter().map(|line| line.as_str()).collect();
        let summary = self.words.plain(&summary.join(" "), SUMMARY_LETTERS_MAX);
        if !summary.is_empty() {
            let tag = format!("summary-{digits}");
            page.push("Summary", entry(&Mark::Paragraph, &summary, None, Some(&tag)));
        }
        let mut told: Vec<&Memory> =
            note.memories.iter().filter_map(|id| by_id.get(id).copied()).collect();
        told.sort_by_key(|memory| (memory.valid_from, memory.id));
        told.dedup_by_key(|memory| memory.id);
        for memory in told {
            self.told(&mut page, memory);
        }
        for next in &note.next {
            let words = self.words.plain(next.as_str(), ENTRY_LETTERS_MAX);
            if !words.is_empty() {
                let digest = Digest::of(&["next", &digits, &words]).to_string();
                let tag = format!("next-{}", digest.get(..SOURCE_DIGITS_MIN).unwrap_or(&digest));
                page.push(
                    "Context for Next Session",
                    entry(&Mark::Bullet, &words, None, Some(&tag)),
                );
            }
        }
        for (field, items) in &note.card {
            let items: Vec<&str> = items.iter().map(|item| item.as_str()).collect();
            let name = field.replace('_', "-");
            if items.is_empty() || !is_value(&name) {
                continue;
            }
            let text = format!("{}: {}", field.replace('_', " "), items.join(" | "));
            let words = self.words.plain(&text, SUMMARY_LETTERS_MAX);
            page.push(
                CARD,
                entry(&Mark::Bullet, &words, None, Some(&format!("card-{name}-{digits}"))),
            );
        }
        page
    }

    /// A memory in the file of the session that it came from. A decision was made then, whatever became
    /// of it later.
    fn told(&mut self, page: &mut Page, memory: &Memory) {
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

fn footer(minutes: Option<u64>) -> String {
    match minutes {
        Some(minutes) => format!("*Session duration: ~{}h {}m*", minutes / HOUR, minutes % HOUR),
        None => format!("*Session duration: {UNKNOWN_DURATION}*"),
    }
}
