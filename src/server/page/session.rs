//! Redacted conversation with its evidence marked, the skipped entries with reasons, and what a model was asked about it and
//! answered.

use super::shell::{Result, Visit, one, parsed};
use super::views::{ENTRIES, cut, day, pager, range, shortened, span, speaker};
use crate::adapters::{clock, walk};
use crate::domain::{
    CoverageState, Entry, EntryKind, Evidence, Message, Record, RecordState, Reply, RunState,
    Session, Speaker,
};
use crate::pipeline::{Asked, asked};
use crate::server::state::ServerState;
use crate::store::{EntryEnd, RecordFilter, Store, StoreError, StoredRun};
use crate::text::phrase::counted;
use axum::extract::Path;
use axum::response::Response;
use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ops::Range;

const LISTED: u32 = 50;
/// Number of first entries that may have the words by which a conversation without a title is shown.
const BEGINNING_ENTRIES: u32 = 40;
/// Maximum letters of such words.
const TITLE_LETTERS: usize = 80;
/// Bytes of an entry that are shown unfolded.
const UNFOLDED_BYTES: usize = 2_400;
const RECORDS_MAX: u32 = 5_000;
const RUNS_MAX: u32 = 5_000;

/// Titles of conversations; of one without, the first words that a person said in it, or its client and day.
async fn titles(store: &Store, sessions: &[Session]) -> Result<Vec<String>, StoreError> {
    let untitled = sessions.iter().filter(|it| it.title.is_none());
    let beginnings = untitled.map(|it| (it.id, 0..BEGINNING_ENTRIES)).collect();
    let mut beginnings = store.spoken_entries_in(beginnings).await?.into_iter();
    let title = |session: &Session| match &session.title {
        Some(title) => cut(title.as_str()),
        None => {
            let mut said = beginnings.next().unwrap_or_default().into_iter();
            let prompt =
                said.find(|it| it.speaker == Speaker::Person && it.kind == EntryKind::Prompt);
            prompt.map_or_else(
                || format!("{}, {}", session.format.name(), day(session.started_at)),
                |it| shortened(it.text.as_str(), TITLE_LETTERS),
            )
        }
    };
    Ok(sessions.iter().map(title).collect())
}

fn session_view(session: &Session, title: &str) -> Value {
    context! {
        id => session.id.to_string(),
        title,
        namespace => &session.namespace,
        format => session.format.name(),
        path => &session.path,
        day => day(session.started_at),
    }
}

pub(super) async fn list(visit: Visit) -> Result<Response> {
    let mut found = visit.state.store.latest_sessions(range(visit.number(), LISTED)).await?;
    let pager = pager(visit.number(), LISTED, &mut found, "/session?page=")?;
    let titles = titles(&visit.state.store, &found).await?;
    let sessions: Value =
        found.iter().zip(&titles).map(|(it, title)| session_view(it, title)).collect();
    let template = include_str!("templates/sessions.html");
    visit.render("Conversations", template, context! { sessions, pager })
}

fn run_view(stored: &StoredRun) -> Value {
    let run = &stored.run;
    let failure = || run.failure.as_ref().map_or("failed", |it| it.detail.as_str());
    context! {
        id => run.id.to_string(),
        entries => format!("{}–{}", run.first.0, run.last.0),
        model => &run.model,
        prompt => run.prompt(),
        failure => (run.state == RunState::Failed).then(failure),
        calls => counted(u64::from(run.calls), "call"),
        at => clock::local_minute(run.finished_at),
    }
}

pub(super) async fn show(visit: Visit, Path(id): Path<String>) -> Result<Response> {
    let store = &visit.state.store;
    let session = one(store.session_named(&id).await?, "conversation")?;
    let title = titles(store, std::slice::from_ref(&session)).await?.concat();
    let listed = range(visit.number(), ENTRIES);
    let ordinals = listed.skip..listed.skip.saturating_add(listed.take);
    let mut found = store.entries_of(session.id, ordinals.clone()).await?;
    let address = format!("/session/{}?page=", session.id);
    let pager = pager(visit.number(), ENTRIES, &mut found, &address)?;
    let ends = store.entry_ends(session.id, ordinals.clone()).await?;
    let filter = RecordFilter {
        session: Some(session.id.0.into()),
        limit: Some(RECORDS_MAX),
        ..RecordFilter::default()
    };
    let records = store.records(filter).await?;
    let mut entries = Vec::with_capacity(found.len());
    for entry in &found {
        let (mut views, mut evidence) = (Vec::new(), Vec::new());
        for record in records.iter().map(|it| &it.record) {
            let own = record.evidence.iter().filter(|it| it.ordinal == entry.ordinal);
            let own: Vec<&Evidence> = own.collect();
            if !own.is_empty() {
                views.push(record_view(&visit.state, record, &own).await?);
                evidence.extend(own);
            }
        }
        let view = entry_view(entry, ends.get(&entry.ordinal), &evidence);
        entries.push(context! { records => views, ..view });
    }
    let mut totals = store.session_totals(session.id, u32::MAX).await?;
    let waiting = store.waiting_entries(session.id).await?;
    totals.coverage.add(CoverageState::Pending, waiting);
    let runs = store.runs(Some(session.id), RUNS_MAX).await?;
    let is_here = |it: &&StoredRun| {
        it.current && it.run.first.0 < ordinals.end && ordinals.start <= it.run.last.0
    };
    let reasons = totals.reasons.iter().map(|((state, reason), entries)| {
        format!("{} {}: {reason}", counted(*entries, "entry"), ended(*state))
    });
    let view = context! {
        session => session_view(&session, &title),
        // Name of the token that sent it.
        sender => session.path.strip_prefix("http:").and_then(|it| it.split('/').next()),
        // The file still exists at its path.
        is_there => walk::open(std::path::Path::new(&session.path)).is_ok(),
        ends => format!(
            "{}: {} extracted, {} nothing worth keeping, {} skipped, {} pending, {} failed",
            counted(totals.coverage.total(), "entry"),
            totals.coverage.extracted,
            totals.coverage.nothing,
            totals.coverage.skipped,
            totals.coverage.pending,
            totals.coverage.failed
        ),
        reasons => reasons.collect::<Value>(),
        entries,
        runs => runs.iter().filter(is_here).map(run_view).collect::<Value>(),
        pager,
    };
    visit.render(&title, include_str!("templates/session.html"), view)
}

async fn record_view(
    state: &ServerState,
    record: &Record,
    evidence: &[&Evidence],
) -> Result<Value> {
    let fields: BTreeSet<&str> = evidence.iter().map(|it| it.field.as_str()).collect();
    let memory = state.store.memory_on(record.id).await?;
    Ok(context! {
        id => record.id.to_string(),
        kind => record.claim.kind().name(),
        words => cut(record.claim.headline()),
        fields => fields.into_iter().collect::<Vec<_>>().join(", "),
        is_proven => record.state != RecordState::Quarantined,
        reason => &record.reason,
        memory => memory.map(|it| it.id.to_string()),
    })
}

fn entry_view(entry: &Entry, end: Option<&EntryEnd>, evidence: &[&Evidence]) -> Value {
    let text = entry.text.as_str();
    let spans: Vec<Range<usize>> = evidence.iter().filter_map(|it| span(text, it)).collect();
    let fold = text.floor_char_boundary(UNFOLDED_BYTES);
    let (shown, folded): (Vec<Part<'_>>, Vec<Part<'_>>) =
        parts(text, &spans, fold).into_iter().partition(|it| it.start < fold);
    let tool = entry.tool.as_ref().map(|it| format!(", {}", it.name.as_str())).unwrap_or_default();
    let outcome = entry.outcome.map(|it| format!(", {}", it.name())).unwrap_or_default();
    let state = end.map_or("not processed yet", |it| ended(it.state));
    let reason = end.and_then(|it| it.reason.as_ref()).map(|it| format!(": {it}"));
    context! {
        ordinal => entry.ordinal,
        line => entry.line,
        speaker => speaker(entry.speaker),
        class => entry.speaker.name(),
        kind => format!("{}{tool}{outcome}", entry.kind.name().replace('_', " ")),
        at => entry.at.map(clock::local_minute),
        // Final state, with the reason.
        end => format!("{state}{}", reason.unwrap_or_default()),
        is_skipped => end.is_some_and(|it| it.state == CoverageState::Skipped),
        folded_letters => folded.iter().map(|it| it.text.chars().count()).sum::<usize>(),
        is_open => folded.iter().any(|it| it.is_marked),
        shown => Value::from(Serde(shown)),
        folded => Value::from(Serde(folded)),
    }
}

fn ended(state: CoverageState) -> &'static str {
    let is_nothing = state == CoverageState::Nothing;
    if is_nothing { "nothing worth keeping" } else { state.name() }
}

/// Part of a text that is marked as a whole or not at all.
#[derive(Serialize)]
struct Part<'t> {
    start: usize,
    text: &'t str,
    is_marked: bool,
}

/// Splits the text at the ends of marks and at `fold`.
fn parts<'t>(text: &'t str, marks: &[Range<usize>], fold: usize) -> Vec<Part<'t>> {
    let mut cuts: BTreeSet<usize> = marks.iter().flat_map(|it| [it.start, it.end]).collect();
    cuts.extend([0, fold, text.len()]);
    let cuts: Vec<usize> = cuts.into_iter().filter(|at| *at <= text.len()).collect();
    let part = |pair: &[usize]| {
        let [start, end] = *pair else { return None };
        let is_marked = marks.iter().any(|it| it.start <= start && end <= it.end);
        Some(Part { start, text: text.get(start..end)?, is_marked })
    };
    cuts.windows(2).filter_map(part).collect()
}

pub(super) async fn run(visit: Visit, Path(id): Path<String>) -> Result<Response> {
    let ServerState { store, project, .. } = &*visit.state;
    let run = one(store.run(parsed(&id, "an extraction")?).await?, "extraction")?;
    let asked = asked(store, &project.config, &run.run).await?;
    let view = context! {
        session => run.run.session.to_string(),
        asked => asked.iter().map(asked_view).collect::<Value>(),
        run => run_view(&run),
    };
    visit.render("An extraction", include_str!("templates/run.html"), view)
}

fn asked_view(Asked { request, answer }: &Asked) -> Value {
    let message = |it: &Message| context! { role => it.role.name(), text => it.content.as_str() };
    let request = request.as_ref().map(|it| {
        let messages = it.messages.iter().map(message).collect::<Value>();
        context! { messages, tool => it.tool.name, mode => it.rung.name() }
    });
    let answer = answer.as_ref().map(|it| {
        context! { at => clock::local_minute(it.at), model => &it.model, lines => lines(&it.reply) }
    });
    context! { request, answer }
}

/// The reply as indented JSON, with the arguments of calls as JSON too.
fn lines(reply: &Reply) -> String {
    let mut reply = serde_json::to_value(reply).unwrap_or_default();
    for call in reply["calls"].as_array_mut().into_iter().flatten() {
        let arguments = call["arguments"].as_str().and_then(|it| serde_json::from_str(it).ok());
        call["arguments"] = arguments.unwrap_or_else(|| call["arguments"].take());
    }
    serde_json::to_string_pretty(&reply).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_that_overlap_mark_each_letter_once() {
        let cut = |marks: &[Range<usize>]| -> String {
            let parts = parts("one two three", marks, 8);
            let shown = parts.into_iter().map(|it| match it.is_marked {
                true => format!("[{}]", it.text),
                false => it.text.to_owned(),
            });
            shown.collect()
        };
        assert_eq!(cut(&[]), "one two three");
        assert_eq!(cut(&[0..3, 4..7]), "[one] [two] three");
        assert_eq!(cut(&[0..7, 4..13]), "[one ][two][ ][three]");
    }
}
