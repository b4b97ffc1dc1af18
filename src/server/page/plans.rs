//! Plans: the next plan as a diff before it is applied, and applied plans, which can be undone.

use super::access::Posted;
use super::opened::{Page, apart};
use super::shell::{PageError, Visit, encoded, one, telling, went_on};
use super::views::{MemoryView, Pager};
use crate::adapters::clock;
use crate::domain::{Change, Plan, PlanId};
use crate::memory_dir::FileChange;
use crate::pipeline::{ConsolidationOutcome, PlannedConsolidation, SyncedDirectory};
use crate::store::{PlanEntry, StoredPlan};
use crate::text::diff::difference;
use crate::text::phrase::counted;
use axum::extract::Path;
use axum::response::Response;
use serde::Serialize;

/// Plans per page of the list.
const LISTED: u32 = 30;
/// Maximum changes and files shown of one plan.
const CHANGES_MAX: usize = 100;
const FILES_MAX: usize = 40;

#[derive(Serialize)]
struct ListView {
    waiting: Vec<WaitingView>,
    plans: Vec<PlanView>,
    pager: Pager,
}

#[derive(Serialize)]
struct WaitingView {
    namespace: String,
    records: String,
}

#[derive(Serialize)]
struct PlanView {
    id: String,
    namespace: String,
    at: String,
    undone_at: Option<String>,
    what: String,
}

impl PlanView {
    fn of(entry: PlanEntry) -> PlanView {
        PlanView {
            id: entry.id.to_string(),
            namespace: entry.namespace,
            at: clock::local_minute(entry.at),
            undone_at: entry.undone_at.map(clock::local_minute),
            what: entry.plan.as_ref().map_or("many changes".to_owned(), in_words),
        }
    }
}

/// Counts of a plan's operations, or the rule of a person's verdict.
fn in_words(plan: &Plan) -> String {
    let by_person = plan.operations.iter().find(|it| it.is_by_person());
    if let Some(operation) = by_person {
        return operation.rule.to_string();
    }
    let counts = plan.counts().into_iter().map(|(name, count)| format!("{count} {name}"));
    counts.collect::<Vec<_>>().join(", ")
}

pub(super) async fn list(visit: Visit) -> Result<Response, PageError> {
    let store = &visit.page.store;
    let mut plans = store.latest_plans(Pager::range(visit.number(), LISTED)).await?;
    let pager = Pager::of(visit.number(), LISTED, &mut plans, "/plans?page=".to_owned());
    let waiting = store
        .backlog()
        .await?
        .into_iter()
        .map(|it| WaitingView { namespace: it.namespace, records: counted(it.records, "record") });
    let plans = plans.into_iter().map(PlanView::of).collect();
    let view = ListView { waiting: waiting.collect(), plans, pager };
    visit.render("Plans", include_str!("templates/plans.html"), view)
}

#[derive(Serialize)]
struct ShownView {
    id: String,
    namespace: String,
    what: String,
    /// `None` for a plan that is not applied yet.
    at: Option<String>,
    undone_at: Option<String>,
    changes: Vec<ChangeView>,
    more_changes: usize,
    left_open: usize,
    files: Vec<FileView>,
    more_files: usize,
}

#[derive(Serialize)]
struct ChangeView {
    became: &'static str,
    before: Option<MemoryView>,
    after: Option<MemoryView>,
}

#[derive(Serialize)]
struct FileView {
    path: String,
    became: &'static str,
    lines: Vec<LineView>,
}

#[derive(Serialize)]
struct LineView {
    class: &'static str,
    text: String,
}

impl ShownView {
    fn of(plan: &Plan) -> ShownView {
        let changes = plan.changes();
        ShownView {
            id: plan.id.to_string(),
            namespace: plan.namespace.clone(),
            what: in_words(plan),
            at: None,
            undone_at: None,
            changes: changes.iter().take(CHANGES_MAX).map(change_view).collect(),
            more_changes: changes.len().saturating_sub(CHANGES_MAX),
            left_open: plan.left_open.len(),
            files: Vec::new(),
            more_files: 0,
        }
    }
}

fn change_view(change: &Change) -> ChangeView {
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    let became = match (before, after) {
        (None, _) => "is new",
        (Some(_), None) => "is removed",
        (Some(before), Some(after)) if before.state != after.state => "changes state",
        (Some(before), Some(after)) if before.stage != after.stage => "advances",
        (Some(_), Some(_)) => "changes",
    };
    ChangeView { became, before: before.map(MemoryView::of), after: after.map(MemoryView::of) }
}

fn files(page: &Page, synced: &[SyncedDirectory]) -> Vec<FileView> {
    let all = synced.iter().flat_map(|it| it.report.changes.iter().map(|file| (&it.folder, file)));
    let view = all.map(|(folder, file)| FileView {
        path: page.directories.shown(folder, file.path.clone()),
        ..file_view(file)
    });
    view.collect()
}

fn file_view(change: &FileChange) -> FileView {
    let (before, after) = (change.before.as_deref(), change.after.as_deref());
    let became = match (before, after) {
        (None, _) => "created",
        (Some(_), Some(_)) => "changed",
        (Some(_), None) => "removed",
    };
    let diff = difference(before.unwrap_or_default(), after.unwrap_or_default());
    let line = |text: &str| LineView {
        class: match text.chars().next() {
            Some('+') => "added",
            Some('-') => "removed",
            Some(_) | None => "same",
        },
        text: text.to_owned(),
    };
    FileView { path: change.path.clone(), became, lines: diff.lines().map(line).collect() }
}

pub(super) async fn show(visit: Visit, Path(id): Path<String>) -> Result<Response, PageError> {
    let stored = stored(&visit.page, &id).await?;
    let view = ShownView {
        at: Some(clock::local_minute(stored.at)),
        undone_at: stored.undone_at.map(clock::local_minute),
        ..ShownView::of(&stored.plan)
    };
    visit.render("A plan", include_str!("templates/plan.html"), view)
}

async fn stored(page: &Page, id: &str) -> Result<StoredPlan, PageError> {
    let prefix = id.parse().map_err(|_| PageError::bad("expected the id of a plan"))?;
    one(page.store.plan(prefix).await?, "plan")
}

/// Previews consolidation by rule: the changes, and the directories after them.
pub(super) async fn next(visit: Visit) -> Result<Response, PageError> {
    apart(move || planned(visit)).await
}

async fn planned(visit: Visit) -> Result<Response, PageError> {
    let namespace = visit.get("namespace").ok_or_else(|| PageError::bad("expected a namespace"))?;
    let page = &visit.page;
    let planned = done(namespace, page.consolidator.plan(namespace).await?)?;
    let synced = page.directories.preview(&planned.plan).await?;
    let mut files = files(page, &synced);
    let more_files = files.len().saturating_sub(FILES_MAX);
    files.truncate(FILES_MAX);
    let view = ShownView { files, more_files, ..ShownView::of(&planned.plan) };
    visit.render("What would change", include_str!("templates/plan.html"), view)
}

/// Applies the previewed plan, or sets its records aside.
pub(super) async fn answer(posted: Posted) -> Result<Response, PageError> {
    apart(move || answered(posted)).await
}

async fn answered(posted: Posted) -> Result<Response, PageError> {
    let page = &posted.page;
    let namespace = posted.field("namespace");
    let shown: PlanId =
        posted.field("plan").parse().map_err(|_| PageError::bad("expected the id of a plan"))?;
    page.directories.import_edits(namespace).await?;
    let now = done(namespace, page.consolidator.plan(namespace).await?)?;
    if now.plan.id != shown {
        let line = "something changed: this is the updated plan";
        return Ok(telling(&format!("/plans/next?namespace={}", encoded(namespace)), line));
    }
    let applied = done(namespace, page.consolidator.run(namespace).await?)?.plan.id.to_string();
    if posted.field("answer") == "refuse" {
        let stored = stored(page, &applied).await?;
        done(namespace, page.consolidator.undo(&stored).await?)?;
        page.directories.renew(namespace).await?;
        return Ok(telling(&format!("/plans/{applied}"), "Refused: its records are set aside."));
    }
    page.directories.renew(namespace).await?;
    Ok(went_on("/plans", &applied))
}

pub(super) async fn undo(posted: Posted) -> Result<Response, PageError> {
    apart(move || undone(posted)).await
}

async fn undone(posted: Posted) -> Result<Response, PageError> {
    let stored = stored(&posted.page, posted.field("plan")).await?;
    let back = posted.back("/plans");
    if stored.undone_at.is_some() {
        return Ok(telling(&back, "This plan is already undone."));
    }
    let namespace = stored.plan.namespace.as_str();
    // Imports edits by people first, so that the undo does not discard them.
    posted.page.directories.import_edits(namespace).await?;
    done(namespace, posted.page.consolidator.undo(&stored).await?)?;
    posted.page.directories.renew(namespace).await?;
    Ok(telling(&back, "The plan is undone."))
}

/// Returns the records of an undone plan to the waiting ones.
pub(super) async fn redo(posted: Posted) -> Result<Response, PageError> {
    let stored = stored(&posted.page, posted.field("plan")).await?;
    let namespace = &stored.plan.namespace;
    let next = format!("/plans/next?namespace={}", encoded(namespace));
    if stored.undone_at.is_none() {
        return Ok(telling(&next, "The plan is in effect: nothing to redo."));
    }
    match posted.page.consolidator.release(&stored).await? {
        Some(records) => {
            Ok(telling(&next, &format!("Redone: {} staged again.", counted(records, "record"))))
        }
        None => Err(busy(namespace)),
    }
}

fn done(namespace: &str, outcome: ConsolidationOutcome) -> Result<PlannedConsolidation, PageError> {
    match outcome {
        ConsolidationOutcome::Done(planned) => Ok(*planned),
        ConsolidationOutcome::Busy => Err(busy(namespace)),
        ConsolidationOutcome::Moved(ids) => Err(PageError::busy(format!(
            "{} of `{namespace}` changed in the meantime; nothing was written. Undo the newest \
             plan first",
            counted(ids.len() as u64, "memory")
        ))),
        // There is no adjudicator, so no model call can halt it.
        ConsolidationOutcome::Halted(_) => Err(PageError::failed("the model cannot be called")),
    }
}

fn busy(namespace: &str) -> PageError {
    PageError::busy(format!(
        "namespace `{namespace}`: another process is changing its memory; try again"
    ))
}
