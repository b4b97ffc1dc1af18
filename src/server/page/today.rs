//! Page of the day: decisions, attempts, requests, open items, problems that need a person, the queue and the cost.

use super::access::Posted;
use super::search::HitView;
use super::shell::{PageError, Visit, telling};
use super::views::{MemoryView, cut, with_places};
use crate::adapters::clock;
use crate::domain::{ClaimKind, JobState, Timestamp};
use crate::pipeline::{SearchHit, SearchRequest, search};
use crate::search::Query;
use crate::store::{JobSelection, QueueStats, SearchFilter, Spent, Store, Stuck};
use crate::text::phrase::{count, counted};
use axum::response::Response;
use jiff::Span;
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum hits searched, and shown.
const ITEMS_MAX: usize = 500;
const SHOWN_MAX: usize = 100;
/// Maximum open items shown, the oldest first.
const OPEN_MAX: u32 = 30;
const FAILED_MAX: usize = 20;

#[derive(Serialize)]
struct TodayView {
    days: &'static str,
    projects: Vec<ProjectView>,
    more: usize,
    open: Vec<MemoryView>,
    is_more_open: bool,
    needs: Vec<NeedView>,
    waits: Vec<String>,
    failed: Vec<FailedView>,
    spent: Vec<String>,
}

#[derive(Serialize)]
struct ProjectView {
    namespace: String,
    groups: Vec<GroupView>,
}

#[derive(Serialize)]
struct GroupView {
    title: &'static str,
    hits: Vec<HitView>,
}

/// Problem that needs a person, with its remedy.
#[derive(Serialize)]
struct NeedView {
    line: String,
    command: Option<String>,
    /// Failure kind of the dead jobs that a button retries.
    retries: Option<String>,
    /// Page that resolves it.
    page: Option<String>,
}

#[derive(Serialize)]
struct FailedView {
    session: String,
    run: String,
    path: String,
    detail: String,
    at: String,
}

pub(super) async fn show(visit: Visit) -> Result<Response, PageError> {
    let store = &visit.page.store;
    let now = (visit.page.clock)();
    let zone = clock::zone();
    let today = now.date_in(&zone);
    let begins =
        |days| Timestamp::beginning_of(today.saturating_add(Span::new().days(days)), &zone);
    let (days, since) = match visit.get("days") {
        Some("7") => ("7", begins(-6)),
        _ => ("1", begins(0)),
    };
    let until = Timestamp(begins(1).0 - 1);
    let filter = SearchFilter { since: Some(since), until: Some(until), ..SearchFilter::default() };
    let request = SearchRequest { filter, limit: ITEMS_MAX, ..SearchRequest::default() };
    let mut hits = search(Some(store), &request, Vec::new()).await?;
    hits.retain(|hit| !hit.state.is_void());
    // A successor is found together with the memory it replaced, whatever its date.
    hits.retain(|hit| hit.at().is_none_or(|at| since <= at && at <= until));
    hits.sort_by_key(|hit| std::cmp::Reverse(hit.at()));
    let more = hits.len().saturating_sub(SHOWN_MAX);
    hits.truncate(SHOWN_MAX);
    let mut open = store.open_memories(OPEN_MAX + 1).await?;
    let is_more_open = open.len() > OPEN_MAX as usize;
    open.truncate(OPEN_MAX as usize);
    let depth = store.depth(now).await?;
    let view = TodayView {
        days,
        projects: projects(&hits),
        more,
        open: with_places(&visit.page, &open).await?,
        is_more_open,
        needs: needs(store, &depth).await?,
        waits: waits(store, &depth).await?,
        failed: failed(store).await?,
        spent: vec![
            cost("today", store.spent_since(begins(0)).await?),
            cost("in seven days", store.spent_since(begins(-6)).await?),
        ],
    };
    visit.render("Today", include_str!("templates/today.html"), view)
}

/// Groups hits by project and kind.
fn projects(hits: &[SearchHit]) -> Vec<ProjectView> {
    const DEEDS: [(ClaimKind, &str); 4] = [
        (ClaimKind::Decision, "Decided"),
        (ClaimKind::Attempt, "Tried"),
        (ClaimKind::Request, "Asked"),
        (ClaimKind::Discussion, "Discussed"),
    ];
    let mut by_project: BTreeMap<String, Vec<HitView>> = BTreeMap::new();
    for hit in hits {
        let view = HitView::of(hit, &Query::default());
        by_project.entry(view.namespace.clone().unwrap_or_default()).or_default().push(view);
    }
    let project = |(namespace, hits): (String, Vec<HitView>)| {
        let mut groups: Vec<GroupView> =
            DEEDS.map(|(_, title)| GroupView { title, hits: Vec::new() }).into();
        for hit in hits {
            let at = DEEDS.iter().position(|(kind, _)| kind.name() == hit.kind);
            if let Some(group) = at.and_then(|at| groups.get_mut(at)) {
                group.hits.push(hit);
            }
        }
        groups.retain(|it| !it.hits.is_empty());
        ProjectView { namespace, groups }
    };
    by_project.into_iter().map(project).collect()
}

fn cost(when: &str, spent: Spent) -> String {
    let tokens = count(spent.usage.prompt_tokens + spent.usage.completion_tokens);
    let calls = counted(spent.calls, "call");
    let dollars = spent.cost_micros as f64 / 1e6;
    format!("{when}: {calls}, {tokens} tokens, ${dollars:.2}")
}

async fn needs(store: &Store, depth: &QueueStats) -> Result<Vec<NeedView>, PageError> {
    let mut needs = Vec::new();
    let need = |line: String, command: Option<&str>| NeedView {
        line,
        command: command.map(str::to_owned),
        retries: None,
        page: None,
    };
    for it in &depth.dead {
        let detail = it.detail.as_deref().map(|it| format!(": {}", cut(it)));
        let (jobs, detail) = (counted(it.jobs, "job"), detail.unwrap_or_default());
        let line = format!("{jobs} failed permanently, {}{detail}", it.kind);
        needs.push(NeedView { retries: Some(it.kind.clone()), ..need(line, None) });
    }
    for it in depth.stopped() {
        let why = cut(it.stopped.as_deref().unwrap_or_default());
        needs.push(need(format!("a worker stopped: {why}"), Some("annalist worker")));
    }
    for stuck in depth.stuck() {
        let (Stuck::Leases(it) | Stuck::Waits(it) | Stuck::Ready(it)) = stuck;
        let line = format!("{} due, but no worker is running", counted(it.jobs, "job"));
        needs.push(need(line, Some("annalist worker")));
    }
    for it in depth.lasting_caps() {
        let cap = it.detail.as_deref().unwrap_or("at a cap");
        let line = format!("{}: {cap}: raise it in the settings", counted(it.jobs, "job"));
        needs.push(need(line, Some("annalist worker")));
    }
    for namespace in store.open_namespaces().await? {
        let pairs = store.suspected_pairs(&namespace, 1_000).await?.len() as u64;
        if pairs > 0 {
            let line = format!("{} of {namespace} may be contradictory", counted(pairs, "pair"));
            let page = Some(format!("/review?namespace={}", super::shell::encoded(&namespace)));
            needs.push(NeedView { page, ..need(line, None) });
        }
    }
    Ok(needs)
}

async fn waits(store: &Store, depth: &QueueStats) -> Result<Vec<String>, PageError> {
    let states = [JobState::Waiting, JobState::Ready, JobState::Leased];
    let jobs = states.map(|state| (depth.jobs_in(state), state.name()));
    let jobs = jobs.into_iter().filter(|(jobs, _)| *jobs > 0);
    let mut waits: Vec<String> =
        jobs.map(|(jobs, state)| format!("{} {state}", counted(jobs, "job"))).collect();
    let backlog = store.backlog().await?.into_iter();
    waits.extend(backlog.map(|it| {
        format!("{} of {} waiting for consolidation", counted(it.records, "record"), it.namespace)
    }));
    Ok(waits)
}

async fn failed(store: &Store) -> Result<Vec<FailedView>, PageError> {
    let failed = store.failed_runs().await?.into_iter().take(FAILED_MAX);
    let view = failed.map(|it| FailedView {
        session: it.session.to_string(),
        run: it.run.to_string(),
        path: it.path,
        detail: format!("{}: {}", it.failure.kind, cut(&it.failure.detail)),
        at: clock::local_minute(it.at),
    });
    Ok(view.collect())
}

/// Retries the jobs that died of one kind of failure.
pub(super) async fn retry(posted: Posted) -> Result<Response, PageError> {
    let kind = Some(posted.field("kind").to_owned());
    let which = JobSelection::Dead { kind, namespace: None };
    let now = (posted.page.clock)();
    let changes = posted.page.store.retry(which, now).await?;
    let jobs = changes.iter().filter(|it| it.done).count() as u64;
    Ok(telling(&posted.back("/"), &format!("{} will be retried", counted(jobs, "job"))))
}
