//! Memories by project, and one memory with what it replaced, who confirmed it and its evidence.

use super::shell::{PageError, Visit, encoded, one};
use super::views::{MemoryView, Pager, address, cut, day, speaker, with_places};
use crate::adapters::clock;
use crate::domain::{Claim, Entry, Evidence, Memory, MemoryId, MemoryState};
use crate::memory_dir::Section;
use crate::pipeline::{MemoryChange, memory_history, memory_named, why};
use crate::store::{PageRange, PrefixLookup, RecordSources, Store};
use axum::extract::Path;
use axum::response::Response;
use serde::Serialize;

/// Memories per page of a list.
const LISTED: u32 = 50;
/// Memories per section in the overview of all sections.
const SHOWN: u32 = 12;
/// Maximum projects in the list.
const PROJECTS_MAX: usize = 500;
/// Maximum changes of one memory in its history; the latest are kept.
const CHANGES_MAX: usize = 200;
/// Maximum total size of a project's plans that the page still reads for a history, in bytes.
const PLANS_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Letters shown before and after a quote.
const AROUND_LETTERS: usize = 160;

/// Sections with their titles, in display order.
const SECTIONS: [(Section, &str); 8] = [
    (Section::Decision, "Decisions"),
    (Section::Rule, "Standing rules"),
    (Section::Request, "Open requests"),
    (Section::Question, "Open questions"),
    (Section::Failure, "Unsolved failures"),
    (Section::Lesson, "Lessons"),
    (Section::Done, "Done and settled"),
    (Section::Past, "Superseded and retracted"),
];

#[derive(Serialize)]
struct ProjectsView {
    projects: Vec<String>,
}

#[derive(Serialize)]
struct ListView {
    namespace: String,
    sections: Vec<SectionView>,
    pager: Option<Pager>,
    is_alone: bool,
    other_projects: bool,
}

#[derive(Serialize)]
struct SectionView {
    name: &'static str,
    title: &'static str,
    total: u64,
    memories: Vec<MemoryView>,
}

pub(super) async fn list(visit: Visit) -> Result<Response, PageError> {
    let store = &visit.page.store;
    let mut projects = store.namespaces().await?;
    let namespace = match visit.get("namespace") {
        Some(named) => named.to_owned(),
        None if projects.len() == 1 => projects.remove(0),
        None => {
            projects.truncate(PROJECTS_MAX);
            let template = include_str!("templates/projects.html");
            return visit.render("Memory", template, ProjectsView { projects });
        }
    };
    let named = visit.get("section").and_then(Section::of_name);
    let counts = store.section_counts(&namespace).await?;
    let (mut sections, mut pager) = (Vec::new(), None);
    for (section, title) in SECTIONS.into_iter().filter(|it| named.is_none_or(|one| one == it.0)) {
        let range = match named {
            Some(_) => Pager::range(visit.number(), LISTED),
            None => PageRange { skip: 0, take: SHOWN },
        };
        let mut memories = store.memories_in(&namespace, section, range).await?;
        if named.is_some() {
            let address = format!(
                "/memory?namespace={}&section={}&page=",
                encoded(&namespace),
                section.name()
            );
            pager = Some(Pager::of(visit.number(), LISTED, &mut memories, address));
        }
        let memories = with_places(&visit.page, &memories).await?;
        let total = counts.get(&section).copied().unwrap_or_default();
        sections.push(SectionView { name: section.name(), title, total, memories });
    }
    let other_projects = projects.len() > 1;
    let is_alone = named.is_some();
    let title = format!("Memory of {namespace}");
    let view = ListView { namespace, sections, pager, is_alone, other_projects };
    visit.render(&title, include_str!("templates/memories.html"), view)
}

#[derive(Serialize)]
struct ShownView {
    memory: MemoryView,
    namespace: String,
    fields: Vec<FieldView>,
    edited: Option<String>,
    until: Option<String>,
    decided: Option<String>,
    reason: Option<String>,
    replaced_by: Option<MemoryView>,
    replaced: Vec<MemoryView>,
    sources: Vec<SourceView>,
    more_sources: usize,
    changes: Vec<ChangeView>,
    /// False if the history may be incomplete.
    is_whole: bool,
    verdicts: Vec<&'static str>,
}

#[derive(Serialize)]
struct FieldView {
    name: String,
    text: String,
}

/// Quote that supports a memory, in its entry.
#[derive(Serialize)]
struct SourceView {
    record: String,
    address: String,
    path: String,
    field: String,
    #[serde(skip)]
    entry: u32,
    line: u32,
    at: String,
    said_by: &'static str,
    found: &'static str,
    before: String,
    words: String,
    after: String,
}

#[derive(Serialize)]
struct ChangeView {
    at: String,
    deed: String,
    rule: Option<String>,
    plan: Option<String>,
}

pub(super) async fn show(visit: Visit, Path(id): Path<String>) -> Result<Response, PageError> {
    let store = &visit.page.store;
    let memory = one(memory_named(store, &id).await?, "memory")?;
    let found = one(why(store, &memory.id.to_string()).await?, "memory")?;
    let sources: Vec<SourceView> = found.records.iter().flat_map(sources).collect();
    // With many plans, only the ledger: it has what was done to this memory, but not the consequences for others.
    let is_whole = store.plan_bytes(&memory.namespace).await? <= PLANS_BYTES_MAX;
    let history = match is_whole {
        true => memory_history(store, &memory).await?,
        false => {
            let ledger = store.ledger(Some(memory.id)).await?;
            ledger.into_iter().map(MemoryChange::Audited).collect()
        }
    };
    let skipped = history.len().saturating_sub(CHANGES_MAX);
    let changes = history.iter().skip(skipped).map(change_view).collect();
    let replaced_by = match memory.superseded_by {
        Some(next) => looked_up(store, next).await?.as_ref().map(MemoryView::of),
        None => None,
    };
    let replaced = store.replaced_by(memory.id, SHOWN).await?;
    let title = cut(memory.claim.headline());
    let view = ShownView {
        memory: MemoryView::of(&memory),
        namespace: memory.namespace.clone(),
        fields: fields(&memory.claim),
        edited: memory.edited.clone(),
        until: memory.valid_until.map(|at| day(Some(at))),
        decided: memory
            .decided
            .as_ref()
            .map(|it| format!("{}, {}", it.rule, clock::local_minute(it.at))),
        reason: memory.reason.clone(),
        replaced_by,
        replaced: replaced.iter().map(MemoryView::of).collect(),
        more_sources: memory.sources.len().saturating_sub(found.records.len()),
        sources,
        changes,
        is_whole,
        verdicts: verdicts(&memory),
    };
    visit.render(&title, include_str!("templates/memory.html"), view)
}

/// Verdicts that are applicable to a memory.
fn verdicts(memory: &Memory) -> Vec<&'static str> {
    let is_active = memory.state == MemoryState::Active;
    let can_close = is_active && memory.is_open() && memory.stage_once(true).is_some();
    let can_open = !is_active || (!memory.is_open() && memory.stage_once(false).is_some());
    let all = [("close", can_close), ("reopen", can_open), ("retract", is_active)];
    all.into_iter().filter(|(_, makes_sense)| *makes_sense).map(|(name, _)| name).collect()
}

async fn looked_up(store: &Store, id: MemoryId) -> Result<Option<Memory>, PageError> {
    Ok(match store.memory(id.0.into()).await? {
        PrefixLookup::One(memory) => Some(*memory),
        PrefixLookup::None | PrefixLookup::Many(_) => None,
    })
}

fn fields(claim: &Claim) -> Vec<FieldView> {
    let strings = claim.strings().into_iter().filter(|(_, text)| !text.trim().is_empty());
    strings.map(|(name, text)| FieldView { name, text: text.to_owned() }).collect()
}

fn sources(of: &RecordSources) -> Vec<SourceView> {
    let stored = &of.page.stored;
    let source = |(evidence, entry): (&Evidence, &Option<Entry>)| {
        let text = entry.as_ref().map_or("", |entry| entry.text.as_str());
        let (before, after) = around(text, evidence);
        SourceView {
            record: stored.record.id.to_string(),
            address: address(of.page.session.id, evidence.ordinal),
            path: stored.path.clone(),
            field: evidence.field.clone(),
            entry: evidence.ordinal,
            line: evidence.line,
            at: entry
                .as_ref()
                .and_then(|entry| entry.at)
                .map(clock::local_minute)
                .unwrap_or_default(),
            said_by: speaker(evidence.speaker),
            found: evidence.found.name(),
            before,
            words: evidence.words.as_str().to_owned(),
            after,
        }
    };
    let mut all: Vec<SourceView> = Vec::new();
    for it in stored.record.evidence.iter().zip(&of.entries).map(source) {
        // The same quote often supports more than one field.
        match all.iter_mut().find(|known| (known.entry, &known.words) == (it.entry, &it.words)) {
            Some(known) => known.field.push_str(&format!(", {}", it.field)),
            None => all.push(it),
        }
    }
    all
}

/// Text before and after a quote in its entry, truncated; empty if the quote is not in the entry.
fn around(text: &str, evidence: &Evidence) -> (String, String) {
    let words = evidence.words.as_str();
    let start = match text.get(evidence.bytes.clone()) == Some(words) {
        true => Some(evidence.bytes.start),
        false => text.find(words),
    };
    let Some(start) = start else { return Default::default() };
    let before: Vec<char> = text[..start].chars().rev().take(AROUND_LETTERS).collect();
    let after = text[start + words.len()..].chars().take(AROUND_LETTERS);
    (before.into_iter().rev().collect(), after.collect())
}

fn change_view(change: &MemoryChange) -> ChangeView {
    match change {
        MemoryChange::Planned { at, event } => ChangeView {
            at: clock::local_minute(*at),
            deed: event.disposition.to_owned(),
            rule: Some(event.rule.clone()),
            plan: Some(event.plan.to_string()),
        },
        MemoryChange::Audited(entry) => ChangeView {
            at: clock::local_minute(entry.at),
            deed: entry.deed.clone(),
            rule: entry.rule.clone(),
            plan: entry.plan.map(|plan| plan.to_string()),
        },
    }
}
