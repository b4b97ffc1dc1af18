//! View models of memories and records for the templates.

use super::opened::Page;
use super::shell::PageError;
use crate::adapters::clock;
use crate::domain::{
    Claim, Memory, MemoryId, MemoryState, Record, RecordId, SessionId, Speaker, Stage, Timestamp,
    shown_words,
};
use crate::store::PageRange;
use crate::text::truncate;
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum letters of a memory in a list.
const WORDS_LETTERS: usize = 400;

/// Entries per page of a conversation.
pub(super) const ENTRIES: u32 = 60;

/// Returns the address of an entry.
pub(super) fn address(session: SessionId, ordinal: u32) -> String {
    format!("/session/{session}?page={}#e{ordinal}", ordinal / ENTRIES + 1)
}

#[derive(Serialize)]
pub(super) struct MemoryView {
    pub(super) id: String,
    kind: &'static str,
    words: String,
    /// Reason, or result of an attempt.
    because: String,
    standing: &'static str,
    /// CSS class of the state: `good`, `bad` or empty.
    tone: &'static str,
    day: String,
    said_by: &'static str,
    confirmed: bool,
    place: Option<PlaceView>,
}

/// Source location of a quote.
#[derive(Serialize)]
pub(super) struct PlaceView {
    address: String,
    line: u32,
    quote: String,
}

impl PlaceView {
    fn of(record: &Record) -> Option<PlaceView> {
        let evidence = record.evidence.first()?;
        Some(PlaceView {
            address: address(record.provenance.session, evidence.ordinal),
            line: evidence.line,
            quote: cut(evidence.words.as_str()),
        })
    }
}

impl MemoryView {
    pub(super) fn of(memory: &Memory) -> MemoryView {
        let because = match &memory.claim {
            Claim::Decision(it) => it.rationale.as_str(),
            Claim::Attempt(it) => it.result.as_str(),
            Claim::Discussion(_) | Claim::Request(_) => "",
        };
        MemoryView {
            id: memory.id.to_string(),
            kind: memory.claim.kind().name(),
            words: cut(shown_words(memory.edited.as_deref(), &memory.claim)),
            because: cut(because),
            standing: memory.standing(),
            tone: tone(memory),
            day: day(memory.valid_from),
            said_by: speaker(memory.said_by),
            confirmed: memory.confirmed,
            place: None,
        }
    }
}

/// Builds views of memories, each with its first source.
pub(super) async fn with_places(
    page: &Page,
    memories: &[Memory],
) -> Result<Vec<MemoryView>, PageError> {
    let first = memories.iter().filter_map(|it| it.sources.first().copied());
    let records = page.store.records_of(first.collect()).await?;
    let records: BTreeMap<RecordId, Record> = records.into_iter().map(|it| (it.id, it)).collect();
    let view = |memory: &Memory| {
        let record = memory.sources.first().and_then(|id| records.get(id));
        MemoryView { place: record.and_then(PlaceView::of), ..MemoryView::of(memory) }
    };
    Ok(memories.iter().map(view).collect())
}

fn is_failure(memory: &Memory) -> bool {
    matches!(&memory.claim, Claim::Attempt(it) if !it.succeeded)
}

fn tone(memory: &Memory) -> &'static str {
    let is_bad = match is_failure(memory) {
        true => memory.is_open(),
        false => memory.stage == Stage::Refuted,
    };
    match &memory.claim {
        _ if is_bad || memory.state != MemoryState::Active => "bad",
        Claim::Request(_) | Claim::Discussion(_) if memory.is_open() => "",
        Claim::Decision(_) | Claim::Request(_) | Claim::Discussion(_) | Claim::Attempt(_) => "good",
    }
}

pub(super) fn speaker(speaker: Speaker) -> &'static str {
    match speaker {
        Speaker::Person => "a person",
        Speaker::Assistant => "the agent",
        Speaker::Tool => "a tool",
        Speaker::Web => "the web",
        Speaker::Client => "the client",
    }
}

pub(super) fn day(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "no date".to_owned(), clock::local_day)
}

/// Truncates a text with an ellipsis.
pub(super) fn cut(text: &str) -> String {
    let head = truncate::letters(text, WORDS_LETTERS);
    if head.len() == text.len() { head.to_owned() } else { format!("{head}…") }
}

pub(super) fn memory_id(text: &str) -> Result<MemoryId, PageError> {
    text.parse().map_err(|_| PageError::bad("expected the id of a memory"))
}

/// Links to the previous and next page of a list.
#[derive(Serialize)]
pub(super) struct Pager {
    number: u32,
    before: Option<u32>,
    after: Option<u32>,
    /// Address of the list, up to the page number.
    address: String,
}

impl Pager {
    /// Range of page `number`, plus one item to detect a next page.
    pub(super) fn range(number: u32, size: u32) -> PageRange {
        PageRange { skip: (number - 1) * size, take: size + 1 }
    }

    /// Builds the pager for the items of that range, and truncates them to one page.
    pub(super) fn of<T>(number: u32, size: u32, found: &mut Vec<T>, address: String) -> Pager {
        let is_more = found.len() > size as usize;
        found.truncate(size as usize);
        let before = (number > 1).then(|| number - 1);
        Pager { number, before, after: is_more.then(|| number + 1), address }
    }
}
