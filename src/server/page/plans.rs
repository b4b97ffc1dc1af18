//! Plans: the next plan as a diff before it is applied, and applied plans, which can be undone.

use super::access::Posted;
use super::shell::{ApiError, Notice, Result, Visit, encoded, one, parsed, telling, went_on};
use super::views::{cut, memory_view, pager, range};
use crate::adapters::clock;
use crate::domain::{Change, Disposition, Memory, MemoryId, Operation, Plan, PlanId, Timestamp};
use crate::memory_dir::FileChange;
use crate::pipeline::{ConsolidationOutcome, PlannedConsolidation, RedoOutcome, SyncedDirectory};
use crate::server::state::ServerState;
use crate::store::{PlanEntry, Store, StoredPlan};
use crate::text::diff::difference;
use crate::text::phrase::counted;
use axum::extract::Path;
use axum::response::Response;
use minijinja::{Value, context};
use std::collections::BTreeSet;

const LISTED: u32 = 30;
/// Maximum changes and files shown of one plan.
const CHANGES_MAX: usize = 100;
const FILES_MAX: usize = 40;
/// Maximum size of a plan whose changes are shown, in bytes.
const SHOWN_BYTES_MAX: u64 = 2 * 1024 * 1024;
const TOO_MANY: &str =
    "too many changes to show: see `annalist consolidate log --json`, `annalist memory history ID`";
const TEMPLATE: &str = include_str!("templates/plan.html");

pub(super) async fn list(visit: Visit) -> Result<Response> {
    let store = &visit.state.store;
    let mut plans = store.latest_plans(range(visit.number(), LISTED)).await?;
    let pager = pager(visit.number(), LISTED, &mut plans, "/plans?page=")?;
    let waiting =
        store.backlog().await?.into_iter().map(
            |it| context! { namespace => it.namespace, records => counted(it.records, "record") },
        );
    let plan = |it: PlanEntry| {
        context! {
            id => it.id.to_string(),
            namespace => it.namespace,
            at => clock::local_minute(it.at),
            undone => undone(it.at, it.undone_at),
            what => it.plan.map_or("many changes".to_owned(), |it| cut(&it.in_words())),
        }
    };
    let plans = plans.into_iter().map(plan).collect::<Value>();
    let view = context! { waiting => waiting.collect::<Value>(), plans, pager };
    visit.render("Plans", include_str!("templates/plans.html"), view)
}

fn undone(at: Timestamp, undone_at: Option<Timestamp>) -> Option<String> {
    undone_at.map(|undone_at| match undone_at == at {
        true => "refused".to_owned(),
        false => format!("undone {}", clock::local_minute(undone_at)),
    })
}

async fn plan_view(store: &Store, plan: &Plan) -> Result<Value> {
    let changes = plan.changes();
    let after = plan.after();
    let conflicts = plan.operations.iter().filter_map(|it| {
        let Disposition::Conflict { with, memory } = it.disposition else { return None };
        Some([after.get(&with)?, after.get(&memory)?])
    });
    let mut conflicts: Vec<[&Memory; 2]> = conflicts.collect();
    let more_conflicts = conflicts.len().saturating_sub(CHANGES_MAX);
    conflicts.truncate(CHANGES_MAX);
    let shown = changes.iter().take(CHANGES_MAX).map(|it| it.memory);
    let shown = shown.chain(conflicts.iter().flatten().map(|it| it.id)).collect();
    let known = store.memories_of(shown).await?;
    let known: BTreeSet<MemoryId> = known.into_iter().map(|it| it.id).collect();
    // A memory that is not there has no page.
    let memory_view = |it: &Memory| match known.contains(&it.id) {
        true => memory_view(it),
        false => context! { id => "", ..memory_view(it) },
    };
    let is_discarded = |it: &&Operation| it.disposition == Disposition::Discard;
    let mut discarded: Vec<&Operation> = plan.operations.iter().filter(is_discarded).collect();
    let more_discarded = discarded.len().saturating_sub(CHANGES_MAX);
    discarded.truncate(CHANGES_MAX);
    Ok(context! {
        conflicts => conflicts.iter().map(|pair| pair.map(memory_view).into()).collect::<Vec<Value>>(),
        more_conflicts,
        more_discarded,
        discarded => discarded.iter().map(|it| cut(it.facts.claim.headline())).collect::<Vec<_>>(),
        id => plan.id.to_string(),
        namespace => &plan.namespace,
        what => cut(&plan.in_words()),
        is_empty => plan.is_empty(),
        is_verdict => plan.is_verdict(),
        changes => changes.iter().take(CHANGES_MAX).map(|it| change_view(it, memory_view)).collect::<Value>(),
        more_changes => changes.len().saturating_sub(CHANGES_MAX),
        left_open => plan.left_open.len(),
    })
}

fn change_view(change: &Change, memory_view: impl Fn(&Memory) -> Value) -> Value {
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    let became = match (before, after) {
        (None, _) => "is new",
        (Some(before), Some(after)) if before.state != after.state => "changes state",
        (Some(before), Some(after)) if before.stage != after.stage => "advances",
        (Some(_), _) => "changes",
    };
    context! { became, before => before.map(&memory_view), after => after.map(&memory_view) }
}

fn file_view(path: String, change: &FileChange) -> Value {
    let (before, after) = (change.before.as_deref(), change.after.as_deref());
    let became = match (before, after) {
        (None, _) => "created",
        (Some(_), Some(_)) => "changed",
        (Some(_), None) => "removed",
    };
    let diff = difference(before.unwrap_or_default(), after.unwrap_or_default());
    let line = |text: &str| {
        let class = match text.chars().next() {
            Some('+') => "added",
            Some('-') => "removed",
            Some(_) | None => "same",
        };
        context! { class, text }
    };
    context! { path, became, lines => diff.lines().map(line).collect::<Value>() }
}

pub(super) async fn show(visit: Visit, Path(id): Path<String>) -> Result<Response> {
    let store = &visit.state.store;
    let found = store.plan_entry(parsed(&id, "a plan")?, SHOWN_BYTES_MAX).await?;
    let PlanEntry { id, namespace, at, undone_at, plan } = one(found, "plan")?;
    let undone = undone(at, undone_at);
    let view = match &plan {
        Some(plan) => plan_view(store, plan).await?,
        None => context! { id => id.to_string(), namespace, what => TOO_MANY },
    };
    visit.render("A plan", TEMPLATE, context! { at => clock::local_minute(at), undone, ..view })
}

async fn stored(state: &ServerState, id: &str) -> Result<StoredPlan> {
    one(state.store.plan(parsed(id, "a plan")?).await?, "plan")
}

/// Previews consolidation by rule: the changes, and the directories after them.
pub(super) async fn next(visit: Visit) -> Result<Response> {
    let namespace = visit.get("namespace").ok_or_else(|| ApiError::bad("expected a namespace"))?;
    let state = &visit.state;
    let planned = done(namespace, state.consolidator().plan(namespace).await?)?;
    let mut files = Vec::new();
    for SyncedDirectory { folder, report } in state.directories().preview(&planned.plan).await? {
        let shown = |file: &FileChange| state.directories().shown(&folder, file.path.clone());
        files.extend(report.changes.iter().map(|file| file_view(shown(file), file)));
    }
    let more_files = files.len().saturating_sub(FILES_MAX);
    files.truncate(FILES_MAX);
    let view = context! { files, more_files, ..plan_view(&state.store, &planned.plan).await? };
    visit.render("What would change", TEMPLATE, view)
}

/// Applies the previewed plan, or sets its records aside.
pub(super) async fn answer(posted: Posted) -> Result<Response> {
    let state = &posted.state;
    let namespace = posted.field("namespace");
    let shown: PlanId = parsed(posted.field("plan"), "a plan")?;
    state.directories().import_edits(namespace).await?;
    let now = done(namespace, state.consolidator().plan(namespace).await?)?;
    if now.plan.id != shown {
        return Ok(telling(&next_of(namespace), Notice::Changed));
    }
    let applied = done(namespace, state.consolidator().run(namespace).await?)?.plan.id.to_string();
    let is_refused = posted.field("answer") == "refuse";
    if is_refused {
        let stored = stored(state, &applied).await?;
        done(namespace, state.consolidator().undo(&stored, true).await?)?;
    }
    state.directories().renew(namespace).await?;
    if is_refused {
        return Ok(telling(&format!("/plans/{applied}"), Notice::Refused));
    }
    Ok(went_on("/plans", &applied))
}

pub(super) async fn undo(posted: Posted) -> Result<Response> {
    let stored = stored(&posted.state, posted.field("plan")).await?;
    let back = posted.back("/plans");
    if stored.undone_at.is_some() {
        return Ok(telling(back, Notice::UndoneBefore));
    }
    let namespace = stored.plan.namespace.as_str();
    // Imports edits by people first, so that the undo does not discard them.
    posted.state.directories().import_edits(namespace).await?;
    done(namespace, posted.state.consolidator().undo(&stored, false).await?)?;
    posted.state.directories().renew(namespace).await?;
    Ok(telling(back, Notice::Undone))
}

/// Redoes an undone plan as `annalist consolidate --redo` does.
pub(super) async fn redo(posted: Posted) -> Result<Response> {
    let state = &posted.state;
    let stored = stored(state, posted.field("plan")).await?;
    let namespace = stored.plan.namespace.as_str();
    if stored.undone_at.is_none() {
        return Ok(telling(&next_of(namespace), Notice::InEffect));
    }
    state.directories().import_edits(namespace).await?;
    match state.consolidator().redo(&stored).await? {
        RedoOutcome::Applied => {
            state.directories().renew(namespace).await?;
            Ok(went_on("/plans", &stored.plan.id.to_string()))
        }
        RedoOutcome::Released(_) => Ok(telling(&next_of(namespace), Notice::Staged)),
        RedoOutcome::Busy => Err(ApiError::leased(namespace)),
        RedoOutcome::Moved => Err(ApiError::busy("its memories have changed since")),
    }
}

fn next_of(namespace: &str) -> String {
    format!("/plans/next?namespace={}", encoded(namespace))
}

fn done(namespace: &str, outcome: ConsolidationOutcome) -> Result<PlannedConsolidation> {
    match outcome {
        ConsolidationOutcome::Done(planned) => Ok(*planned),
        ConsolidationOutcome::Busy => Err(ApiError::leased(namespace)),
        ConsolidationOutcome::Moved(ids) => Err(ApiError::busy(format!(
            "{} of `{namespace}` changed in the meantime; nothing was written. Undo the newest \
             plan first",
            counted(ids.len() as u64, "memory")
        ))),
        // There is no adjudicator, so no model call can halt it.
        ConsolidationOutcome::Halted(_) => Err(ApiError::failed("the model cannot be called")),
    }
}
