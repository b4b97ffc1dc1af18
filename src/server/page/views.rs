//! Views of memories and records for the templates.

use super::shell::{ApiError, Result};
use crate::adapters::clock;
use crate::domain::{
    Claim, Evidence, Memory, Record, RecordId, SessionId, Speaker, Timestamp, shown_words,
};
use crate::memory_dir::{Section, section, standing};
use crate::pipeline::marked;
use crate::rows::MemoryRow;
use crate::server::state::ServerState;
use crate::store::PageRange;
use crate::text::truncate;
use axum::http::StatusCode;
use minijinja::{Value, context};
use std::collections::BTreeMap;
use std::ops::Range;

const WORDS_LETTERS: usize = 400;

/// Entries per page of a conversation.
pub(super) const ENTRIES: u32 = 60;

pub(super) fn address(session: SessionId, ordinal: u32) -> String {
    format!("/session/{session}?page={}#e{ordinal}", ordinal / ENTRIES + 1)
}

/// View of a memory without its first source and its marks.
pub(super) fn memory_view(memory: &Memory) -> Value {
    view(memory, standing(memory).to_owned(), None)
}

fn view(memory: &Memory, standing: String, first: Option<&Record>) -> Value {
    let said_by = first.and_then(|it| it.evidence.first()).map_or(memory.said_by, |it| it.speaker);
    let because = match &memory.claim {
        Claim::Decision(it) => it.rationale.as_str(),
        Claim::Attempt(it) => it.result.as_str(),
        Claim::Discussion(_) | Claim::Request(_) => "",
    };
    context! {
        id => memory.id.to_string(),
        namespace => &memory.namespace,
        kind => memory.claim.kind().name(),
        words => cut(shown_words(memory.edited.as_deref(), &memory.claim)),
        because => cut(because),
        standing,
        tone => tone(memory),
        day => day(memory.valid_from),
        // Of the line that is linked, if one is.
        said_by => speaker(said_by),
        confirmed => memory.confirmed,
        place => first.and_then(place_view),
    }
}

fn place_view(record: &Record) -> Option<Value> {
    let evidence = record.evidence.first()?;
    Some(context! {
        address => address(record.provenance.session, evidence.ordinal),
        line => evidence.line,
        quote => cut(evidence.words.as_str()),
    })
}

/// Views of memories, each with its marks and its first source.
pub(super) async fn with_places(state: &ServerState, memories: &[Memory]) -> Result<Value> {
    let first = memories.iter().filter_map(|it| it.sources.first().copied());
    let records = state.store.records_of(first.collect()).await?;
    let records: BTreeMap<RecordId, Record> = records.into_iter().map(|it| (it.id, it)).collect();
    let first = |it: &Memory| it.sources.first().and_then(|id| records.get(id));
    let hits = marked(&state.store, memories.to_vec(), None, (state.project.clock)()).await?;
    let rows = hits.iter().filter_map(MemoryRow::of_hit).map(|it| it.standing_in_words());
    Ok(memories.iter().zip(rows).map(|(it, standing)| view(it, standing, first(it))).collect())
}

/// Days from and until which a memory holds.
pub(super) fn period(from: Option<Timestamp>, until: Option<Timestamp>) -> String {
    match until.map(clock::local_day) {
        Some(until) if from.map(clock::local_day).as_ref() == Some(&until) => until,
        Some(until) if from.is_none() => format!("until {until}"),
        Some(until) => format!("{} until {until}", day(from)),
        None => day(from),
    }
}

/// CSS class of a memory's state: `good`, `bad` or empty.
pub(super) fn tone(memory: &Memory) -> &'static str {
    match section(memory) {
        _ if memory.is_answered() => "good",
        Section::Request | Section::Question => "",
        Section::Failure | Section::Past => "bad",
        Section::Rule | Section::Decision | Section::Lesson | Section::Done => "good",
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

/// Span of a quote in the text of its entry, also if it moved.
pub(super) fn span(text: &str, evidence: &Evidence) -> Option<Range<usize>> {
    let words = evidence.words.as_str();
    if text.get(evidence.bytes.clone()) == Some(words) {
        return Some(evidence.bytes.clone());
    }
    let start = text.find(words)?;
    Some(start..start + words.len())
}

pub(super) fn day(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "no date".to_owned(), clock::local_day)
}

pub(super) fn cut(text: &str) -> String {
    shortened(text, WORDS_LETTERS)
}

pub(super) fn shortened(text: &str, letters: usize) -> String {
    let head = truncate::letters(text, letters);
    if head.len() == text.len() { head.to_owned() } else { format!("{head}…") }
}

/// Range of page `number` of a list, plus one item to detect a next page.
pub(super) fn range(number: u32, size: u32) -> PageRange {
    PageRange { skip: (number - 1) * size, take: size + 1 }
}

/// Links to the pages before and after `number`, whose addresses are `address` and the number. Truncates the items of
/// [`range`] to one page.
pub(super) fn pager<T>(number: u32, size: u32, found: &mut Vec<T>, address: &str) -> Result<Value> {
    if found.is_empty() && number > 1 {
        let line = "this list has no such page";
        return Err(ApiError::of_page(StatusCode::NOT_FOUND, line));
    }
    let is_more = found.len() > size as usize;
    found.truncate(size as usize);
    let (before, after) = ((number > 1).then(|| number - 1), is_more.then(|| number + 1));
    Ok(context! { number, before, after, address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_names_the_days_that_are_known_once() {
        let [first, later] = [Timestamp(0), Timestamp(10 * 24 * 3_600_000)];
        let of = |at: Timestamp| clock::local_day(at);
        assert_eq!(period(None, None), "no date");
        assert_eq!(period(Some(first), None), of(first));
        assert_eq!(period(None, Some(later)), format!("until {}", of(later)));
        assert_eq!(period(Some(first), Some(first)), of(first));
        let both = format!("{} until {}", of(first), of(later));
        assert_eq!(period(Some(first), Some(later)), both);
    }
}
