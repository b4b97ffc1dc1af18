//! Redacted conversation with its evidence marked, the skipped entries with reasons, and the model calls about it.

use super::opened::Page;
use super::shell::{PageError, Visit, one};
use super::views::{ENTRIES, Pager, cut, day, speaker};
use crate::adapters::{clock, walk};
use crate::domain::{
    CoverageState, Entry, Evidence, Record, RecordState, RunState, Session, SessionId,
};
use crate::store::{EntryEnd, RecordFilter, StoredRun};
use crate::text::phrase::counted;
use axum::extract::Path;
use axum::response::Response;
use serde::Serialize;
use std::collections::BTreeSet;
use std::ops::Range;

/// Conversations per page of the list.
const LISTED: u32 = 50;
/// Bytes of an entry that are shown unfolded.
const UNFOLDED_BYTES: usize = 2_400;
/// Maximum records that are read for a conversation.
const RECORDS_MAX: u32 = 5_000;
/// Maximum extraction runs that are read for a conversation.
const RUNS_MAX: u32 = 5_000;

#[derive(Serialize)]
struct SessionsView {
    sessions: Vec<SessionView>,
    pager: Pager,
}

#[derive(Serialize)]
struct SessionView {
    id: String,
    title: String,
    namespace: String,
    format: &'static str,
    path: String,
    day: String,
}

impl SessionView {
    fn of(session: &Session) -> SessionView {
        let title = session.title.as_ref().map(|it| cut(it.as_str()));
        SessionView {
            id: session.id.to_string(),
            title: title.unwrap_or_else(|| session.native_id.as_str().to_owned()),
            namespace: session.namespace.clone(),
            format: session.format.name(),
            path: session.path.clone(),
            day: day(session.started_at),
        }
    }
}

pub(super) async fn list(visit: Visit) -> Result<Response, PageError> {
    let range = Pager::range(visit.number(), LISTED);
    let mut found = visit.page.store.latest_sessions(range).await?;
    let pager = Pager::of(visit.number(), LISTED, &mut found, "/session?page=".to_owned());
    let sessions = found.iter().map(SessionView::of).collect();
    let template = include_str!("templates/sessions.html");
    visit.render("Conversations", template, SessionsView { sessions, pager })
}

#[derive(Serialize)]
struct ShownView {
    session: SessionView,
    /// True if the file still exists at its path.
    is_there: bool,
    /// Counts of entries by final state, in words.
    ends: String,
    reasons: Vec<String>,
    entries: Vec<EntryView>,
    runs: Vec<RunView>,
    pager: Pager,
}

#[derive(Serialize)]
struct EntryView {
    ordinal: u32,
    line: u32,
    speaker: &'static str,
    class: &'static str,
    kind: String,
    at: String,
    /// Final state, with the reason.
    end: String,
    is_skipped: bool,
    shown: Vec<Part>,
    folded: Vec<Part>,
    folded_letters: usize,
    is_open: bool,
    records: Vec<RecordView>,
}

/// Part of a text that is marked as a whole or not at all.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
struct Part {
    text: String,
    is_marked: bool,
}

#[derive(Serialize)]
struct RecordView {
    id: String,
    kind: &'static str,
    words: String,
    fields: String,
    is_proven: bool,
    reason: Option<String>,
    memory: Option<String>,
}

#[derive(Serialize)]
struct RunView {
    id: String,
    entries: String,
    model: String,
    prompt: String,
    failure: Option<String>,
    calls: String,
    at: String,
}

impl RunView {
    fn of(stored: &StoredRun) -> RunView {
        let run = &stored.run;
        RunView {
            id: run.id.to_string(),
            entries: format!("{}–{}", run.first.0, run.last.0),
            model: run.model.clone(),
            prompt: run.prompt(),
            failure: (run.state == RunState::Failed)
                .then(|| run.failure.as_ref().map_or("failed".to_owned(), |it| it.detail.clone())),
            calls: counted(u64::from(run.calls), "call"),
            at: clock::local_minute(run.finished_at),
        }
    }
}

pub(super) async fn show(visit: Visit, Path(id): Path<String>) -> Result<Response, PageError> {
    let store = &visit.page.store;
    let session = one(store.session_named(&id).await?, "conversation")?;
    let range = Pager::range(visit.number(), ENTRIES);
    let ordinals = range.skip..range.skip.saturating_add(range.take);
    let mut entries = store.entries_of(session.id, ordinals.clone()).await?;
    let address = format!("/session/{}?page=", session.id);
    let pager = Pager::of(visit.number(), ENTRIES, &mut entries, address);
    let ends = store.entry_ends(session.id, ordinals.clone()).await?;
    let records = records(&visit.page, session.id).await?;
    let mut views = Vec::with_capacity(entries.len());
    for entry in &entries {
        let mut view = entry_view(entry, ends.get(&entry.ordinal), &records);
        for (record, rests) in resting(entry.ordinal, &records) {
            view.records.push(record_view(&visit.page, record, &rests).await?);
        }
        views.push(view);
    }
    let totals = store.session_totals(session.id, u32::MAX).await?;
    let runs = store.runs(Some(session.id), RUNS_MAX).await?;
    let is_here = |it: &&StoredRun| {
        it.current && it.run.first.0 < ordinals.end && ordinals.start <= it.run.last.0
    };
    let reasons = totals.reasons.iter().map(|((state, reason), entries)| {
        format!("{} {}: {reason}", counted(*entries, "entry"), ended(*state))
    });
    let view = ShownView {
        session: SessionView::of(&session),
        is_there: walk::open(std::path::Path::new(&session.path)).is_ok(),
        ends: format!(
            "{}: {} extracted, {} nothing worth keeping, {} skipped, {} pending, {} failed",
            counted(totals.coverage.total(), "entry"),
            totals.coverage.extracted,
            totals.coverage.nothing,
            totals.coverage.skipped,
            totals.coverage.pending,
            totals.coverage.failed
        ),
        reasons: reasons.collect(),
        entries: views,
        runs: runs.iter().filter(is_here).map(RunView::of).collect(),
        pager,
    };
    let title = view.session.title.clone();
    visit.render(&title, include_str!("templates/session.html"), view)
}

async fn records(page: &Page, session: SessionId) -> Result<Vec<Record>, PageError> {
    let filter = RecordFilter {
        session: Some(session.0.into()),
        limit: Some(RECORDS_MAX),
        ..RecordFilter::default()
    };
    Ok(page.store.records(filter).await?.into_iter().map(|it| it.record).collect())
}

/// Returns the records supported by an entry, each with its evidence there.
fn resting(ordinal: u32, records: &[Record]) -> Vec<(&Record, Vec<&Evidence>)> {
    let rests = |record: &'_ Record| -> Vec<usize> {
        let all = record.evidence.iter().enumerate();
        all.filter(|(_, it)| it.ordinal == ordinal).map(|(at, _)| at).collect()
    };
    let found = records.iter().map(|record| {
        let at = rests(record);
        (record, at.into_iter().filter_map(|at| record.evidence.get(at)).collect::<Vec<_>>())
    });
    found.filter(|(_, evidence)| !evidence.is_empty()).collect()
}

async fn record_view(
    page: &Page,
    record: &Record,
    evidence: &[&Evidence],
) -> Result<RecordView, PageError> {
    let fields: BTreeSet<&str> = evidence.iter().map(|it| it.field.as_str()).collect();
    let memory = page.store.memory_on(record.id).await?;
    Ok(RecordView {
        id: record.id.to_string(),
        kind: record.claim.kind().name(),
        words: cut(record.claim.headline()),
        fields: fields.into_iter().collect::<Vec<_>>().join(", "),
        is_proven: record.state != RecordState::Quarantined,
        reason: record.reason.clone(),
        memory: memory.map(|it| it.id.to_string()),
    })
}

fn entry_view(entry: &Entry, end: Option<&EntryEnd>, records: &[Record]) -> EntryView {
    let evidence: Vec<&Evidence> =
        resting(entry.ordinal, records).into_iter().flat_map(|(_, evidence)| evidence).collect();
    let text = entry.text.as_str();
    let spans: Vec<Range<usize>> = evidence.iter().filter_map(|it| span(text, it)).collect();
    let fold = text.floor_char_boundary(UNFOLDED_BYTES);
    let (mut shown, mut folded) = (Vec::new(), Vec::new());
    let mut is_open = false;
    for (start, part) in parts(text, &spans, fold) {
        is_open |= start >= fold && part.is_marked;
        if start < fold { shown.push(part) } else { folded.push(part) }
    }
    let tool = entry.tool.as_ref().map(|it| format!(", {}", it.name.as_str()));
    let outcome = entry.outcome.map(|it| format!(", {}", it.name()));
    let state = end.map_or("not processed yet", |it| ended(it.state));
    let reason = end.and_then(|it| it.reason.as_ref()).map(|it| format!(": {it}"));
    EntryView {
        ordinal: entry.ordinal,
        line: entry.line,
        speaker: speaker(entry.speaker),
        class: entry.speaker.name(),
        kind: format!(
            "{}{}{}",
            entry.kind.name().replace('_', " "),
            tool.unwrap_or_default(),
            outcome.unwrap_or_default()
        ),
        at: entry.at.map(clock::local_minute).unwrap_or_default(),
        end: format!("{state}{}", reason.unwrap_or_default()),
        is_skipped: end.is_some_and(|it| it.state == CoverageState::Skipped),
        folded_letters: folded.iter().map(|it| it.text.chars().count()).sum(),
        shown,
        folded,
        is_open,
        records: Vec::new(),
    }
}

fn ended(state: CoverageState) -> &'static str {
    match state {
        CoverageState::Pending => "pending",
        CoverageState::Skipped => "skipped",
        CoverageState::Nothing => "nothing worth keeping",
        CoverageState::Extracted => "extracted",
        CoverageState::Failed => "failed",
    }
}

/// Span of a quote in the text of its entry.
fn span(text: &str, evidence: &Evidence) -> Option<Range<usize>> {
    let words = evidence.words.as_str();
    if text.get(evidence.bytes.clone()) == Some(words) {
        return Some(evidence.bytes.clone());
    }
    let start = text.find(words).filter(|_| !words.is_empty())?;
    Some(start..start + words.len())
}

/// Splits the text at the ends of marks and at `fold`; each part comes with its start.
fn parts(text: &str, marks: &[Range<usize>], fold: usize) -> Vec<(usize, Part)> {
    let mut cuts: BTreeSet<usize> = marks.iter().flat_map(|it| [it.start, it.end]).collect();
    cuts.extend([0, fold, text.len()]);
    let cuts: Vec<usize> = cuts.into_iter().filter(|at| *at <= text.len()).collect();
    let part = |pair: &[usize]| {
        let [start, end] = *pair else { return None };
        let is_marked = marks.iter().any(|it| it.start <= start && end <= it.end);
        Some((start, Part { text: text.get(start..end)?.to_owned(), is_marked }))
    };
    cuts.windows(2).filter_map(part).collect()
}

#[derive(Serialize)]
struct AskedView {
    run: RunView,
    session: String,
    answers: Vec<AnswerView>,
}

#[derive(Serialize)]
struct AnswerView {
    at: String,
    model: String,
    question: Option<String>,
    answer: String,
}

pub(super) async fn run(visit: Visit, Path(id): Path<String>) -> Result<Response, PageError> {
    let store = &visit.page.store;
    let prefix = id.parse().map_err(|_| PageError::bad("expected the id of an extraction"))?;
    let run = one(store.run(prefix).await?, "extraction")?;
    let answers = store.answers_of(run.run.id).await?.into_iter().map(|it| AnswerView {
        at: clock::local_minute(it.at),
        model: it.model,
        question: it.request.map(|text| pretty(&text)),
        answer: serde_json::to_string_pretty(&it.reply).unwrap_or_default(),
    });
    let view = AskedView {
        session: run.run.session.to_string(),
        answers: answers.collect(),
        run: RunView::of(&run),
    };
    visit.render("An extraction", include_str!("templates/run.html"), view)
}

/// Indents JSON; returns other text unchanged.
fn pretty(text: &str) -> String {
    let value: Option<serde_json::Value> = serde_json::from_str(text).ok();
    let indented = value.and_then(|it| serde_json::to_string_pretty(&it).ok());
    indented.unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_that_overlap_mark_each_letter_once() {
        let cut = |marks: &[Range<usize>]| -> String {
            let parts = parts("one two three", marks, 8);
            let shown = parts.into_iter().map(|(_, it)| match it.is_marked {
                true => format!("[{}]", it.text),
                false => it.text,
            });
            shown.collect()
        };
        assert_eq!(cut(&[]), "one two three");
        assert_eq!(cut(&[0..3, 4..7]), "[one] [two] three");
        assert_eq!(cut(&[0..7, 4..13]), "[one ][two][ ][three]");
    }
}
