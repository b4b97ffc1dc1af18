//! Memories by project, and one memory with what it replaced, who confirmed it and its evidence.

use super::shell::{Result, Visit, encoded, one};
use super::views::{address, cut, memory_view, pager, period, range, span, speaker, with_places};
use crate::adapters::clock;
use crate::domain::{ClaimKind, Entry, Evidence, Memory, MemoryState};
use crate::memory_dir::Section;
use crate::pipeline::{
    MemoryChange, memory_history, memory_named, rule_in_words, tag_or_id, undecided, why,
};
use crate::store::{AuditEntry, PageRange, RecordSources};
use axum::extract::Path;
use axum::response::Response;
use minijinja::{Value, context};

const LISTED: u32 = 50;
/// Memories per section in the overview of all sections.
const SHOWN: u32 = 12;
const PROJECTS_MAX: usize = 500;
/// Maximum changes of one memory in its history; the latest are kept.
const CHANGES_MAX: usize = 200;
/// Maximum total size of a project's plans that the page still reads for a history, in bytes.
const PLANS_BYTES_MAX: u64 = 4 * 1024 * 1024;
const AROUND_LETTERS: usize = 160;

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

pub(super) async fn list(visit: Visit) -> Result<Response> {
    let store = &visit.state.store;
    let mut projects = store.namespaces().await?;
    let namespace = match visit.get("namespace") {
        Some(named) => named.to_owned(),
        None if projects.len() == 1 => projects.remove(0),
        None => {
            projects.truncate(PROJECTS_MAX);
            let template = include_str!("templates/projects.html");
            return visit.render("Memory", template, context! { projects });
        }
    };
    let named = visit.get("section").and_then(Section::of_name);
    let counts = store.section_counts(&namespace).await?;
    let (mut sections, mut links) = (Vec::new(), None);
    for (section, title) in SECTIONS.into_iter().filter(|it| named.is_none_or(|one| one == it.0)) {
        let name = section.name();
        let listed = match named {
            Some(_) => range(visit.number(), LISTED),
            None => PageRange { skip: 0, take: SHOWN },
        };
        let mut memories = store.memories_in(&namespace, section, listed).await?;
        if named.is_some() {
            let list = format!("/memory?namespace={}&section={name}&page=", encoded(&namespace));
            links = Some(pager(visit.number(), LISTED, &mut memories, &list)?);
        }
        let memories = with_places(&visit.state, &memories).await?;
        let total = counts.get(&section).copied().unwrap_or_default();
        sections.push(context! { name, title, total, memories });
    }
    let title = format!("Memory of {namespace}");
    let view = context! {
        is_empty => counts.is_empty(),
        is_known => store.has_namespace(&namespace).await?,
        namespace,
        sections,
        pager => links,
        is_alone => named.is_some(),
        other_projects => projects.len() > 1,
    };
    visit.render(&title, include_str!("templates/memories.html"), view)
}

pub(super) async fn show(visit: Visit, Path(id): Path<String>) -> Result<Response> {
    let store = &visit.state.store;
    let id = tag_or_id(visit.state.directories().here.as_ref(), &id)?;
    let memory = one(memory_named(store, &id).await?, "memory")?;
    let found = one(why(store, &memory.id.to_string()).await?, "memory")?;
    // With many plans, only the ledger: it has what was done to this memory, but not the consequences for others.
    let is_whole = store.plan_bytes(&memory.namespace).await? <= PLANS_BYTES_MAX;
    let history = match is_whole {
        true => memory_history(store, &memory).await?,
        false => {
            let ledger = store.ledger(Some(memory.id)).await?;
            ledger.into_iter().map(MemoryChange::from).collect()
        }
    };
    let skipped = history.len().saturating_sub(CHANGES_MAX);
    let replaced_by = store.memories_of(memory.replaced_by().into_iter().collect()).await?;
    let replaced = store.replaced_by(memory.id, SHOWN).await?;
    let fields = memory.claim.strings().into_iter().filter(|(_, text)| !text.trim().is_empty());
    let decided = memory.decided.as_ref();
    let mut related = undecided(store, &memory).await?;
    let settler = memory.settler().filter(|by| *by != memory.id);
    let settler = store.memories_of(settler.into_iter().collect()).await?;
    related.extend(settler.into_iter().map(|by| (memory.settled_in_words(), by)));
    let related =
        related.iter().map(|(name, by)| context! { name => *name, memory => memory_view(by) });
    let view = context! {
        memory => with_places(&visit.state, std::slice::from_ref(&memory)).await?.get_item_by_index(0).ok(),
        related => related.collect::<Value>(),
        namespace => &memory.namespace,
        fields => fields.map(|(name, text)| context! { name, text }).collect::<Value>(),
        edited => &memory.edited,
        period => period(memory.valid_from, memory.valid_until),
        said_by => speaker(memory.said_by),
        decided => decided.map(|it| {
            format!("{}, {}", rule_in_words(&it.rule), clock::local_minute(it.at))
        }),
        reason => memory.reason.as_deref().map(rule_in_words),
        replaced_by => replaced_by.first().map(memory_view),
        replaced => replaced.iter().map(memory_view).collect::<Value>(),
        more_sources => memory.sources.len().saturating_sub(found.records.len()),
        sources => found.records.iter().flat_map(sources).collect::<Value>(),
        changes => history.iter().skip(skipped).map(change_view).collect::<Value>(),
        is_whole,
        verdicts => verdicts(&memory),
    };
    let title = cut(memory.claim.headline());
    visit.render(&title, include_str!("templates/memory.html"), view)
}

/// Verdicts that are applicable to a memory, with the words on their buttons.
fn verdicts(memory: &Memory) -> Value {
    let is_active = memory.state == MemoryState::Active;
    let can_close = is_active && memory.is_open() && memory.stage_once(true).is_some();
    let can_open = !is_active || (!memory.is_open() && memory.stage_once(false).is_some());
    // A request that comes back into use may be done already.
    let is_opened = is_active || memory.claim.kind() == ClaimKind::Discussion;
    let open = if is_opened { "Open again" } else { "Restore: it is in use again" };
    let all = [
        ("close", "Close: it is done", can_close),
        ("reopen", open, can_open),
        ("retract", "Wrong: retract it", is_active),
    ];
    let all = all.into_iter().filter(|(.., makes_sense)| *makes_sense);
    all.map(|(name, label, _)| context! { name, label }).collect()
}

/// Quotes of a record that support a memory, in their entries.
fn sources(of: &RecordSources) -> Vec<Value> {
    let all: Vec<_> = of.page.stored.record.evidence.iter().zip(&of.entries).collect();
    let is_same =
        |it: &Evidence, other: &Evidence| it.ordinal == other.ordinal && it.words == other.words;
    let mut views = Vec::new();
    for (at, (evidence, entry)) in all.iter().enumerate() {
        // The same quote often supports more than one field.
        if !all[..at].iter().any(|(earlier, _)| is_same(earlier, evidence)) {
            let same = all[at..].iter().filter(|(other, _)| is_same(other, evidence));
            let fields: Vec<&str> = same.map(|(it, _)| it.field.as_str()).collect();
            views.push(source_view(of, evidence, entry.as_ref(), &fields.join(", ")));
        }
    }
    views
}

fn source_view(
    of: &RecordSources,
    evidence: &Evidence,
    entry: Option<&Entry>,
    field: &str,
) -> Value {
    let stored = &of.page.stored;
    let (before, after) = around(entry.map_or("", |entry| entry.text.as_str()), evidence);
    context! {
        record => stored.record.id.to_string(),
        address => address(of.page.session.id, evidence.ordinal),
        path => &stored.path,
        field,
        line => evidence.line,
        at => entry.and_then(|entry| entry.at).map(clock::local_minute),
        said_by => speaker(evidence.speaker),
        found => evidence.found.in_words(),
        before,
        words => evidence.words.as_str(),
        after,
    }
}

/// Text before and after a quote in its entry, truncated; empty if the quote is not in the entry.
fn around(text: &str, evidence: &Evidence) -> (String, String) {
    let Some(span) = span(text, evidence) else { return Default::default() };
    let before: Vec<char> = text[..span.start].chars().rev().take(AROUND_LETTERS).collect();
    let after = text[span.end..].chars().take(AROUND_LETTERS);
    (before.into_iter().rev().collect(), after.collect())
}

fn change_view(change: &MemoryChange) -> Value {
    let AuditEntry { at, rule, plan, .. } = &change.entry;
    let plan = plan.map(|plan| plan.to_string());
    let rule = rule.as_deref().map(rule_in_words);
    context! { at => clock::local_minute(*at), deed => change.in_words(), rule, plan }
}
