//! Page of the day: decisions, attempts, requests, open items, problems that need a person, the queue and the cost.

use super::access::Posted;
use super::search::hit_view;
use super::shell::{Notice, Page, Result, Visit, encoded, telling};
use super::views::{cut, with_places};
use crate::adapters::clock;
use crate::domain::{ClaimKind, JobState, Timestamp};
use crate::pipeline::{DayHits, SearchHit, search_days};
use crate::search::Query;
use crate::store::{FailedRun, JobSelection, QueueStats, Spent, Store, Stuck};
use crate::text::phrase::{count, counted};
use axum::response::Response;
use jiff::Span;
use minijinja::{Value, context};
use std::collections::BTreeMap;

const ITEMS_MAX: usize = 500;
const SHOWN_MAX: usize = 100;
/// Maximum open items shown, the oldest first.
const OPEN_MAX: u32 = 30;
const FAILED_MAX: usize = 20;

pub(super) async fn show(visit: Visit) -> Result<Response> {
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
    let found = search_days(store, None, since..=until, ITEMS_MAX);
    let DayHits { mut hits, undated } = found.await?;
    let more = hits.len().saturating_sub(SHOWN_MAX);
    hits.truncate(SHOWN_MAX);
    let mut open = store.open_memories(OPEN_MAX + 1).await?;
    let is_more_open = open.len() > OPEN_MAX as usize;
    open.truncate(OPEN_MAX as usize);
    let depth = store.depth(now).await?;
    let (failed, failures) = (store.failed_runs().await?, store.failed_count().await?);
    let view = context! {
        days,
        projects => projects(&hits),
        more,
        undated,
        open => with_places(&visit.page, &open).await?,
        is_more_open,
        needs => needs(&visit.page, &depth, failures).await?,
        waits => waits(store, &depth).await?,
        more_failed => failures.saturating_sub(FAILED_MAX as u64),
        failed => failed.into_iter().take(FAILED_MAX).map(failed_view).collect::<Value>(),
        spent => vec![
            cost("today", store.spent_since(begins(0)).await?),
            cost("in seven days", store.spent_since(begins(-6)).await?),
        ],
    };
    visit.render("Today", include_str!("templates/today.html"), view)
}

fn projects(hits: &[SearchHit]) -> Value {
    const DEEDS: [(ClaimKind, &str); 4] = [
        (ClaimKind::Decision, "Decided"),
        (ClaimKind::Attempt, "Tried"),
        (ClaimKind::Request, "Asked"),
        (ClaimKind::Discussion, "Discussed"),
    ];
    let mut by_project: BTreeMap<&str, Vec<&SearchHit>> = BTreeMap::new();
    for hit in hits {
        by_project.entry(hit.namespace().unwrap_or_default()).or_default().push(hit);
    }
    let project = |(namespace, hits): (&str, Vec<&SearchHit>)| {
        let groups = DEEDS.iter().filter_map(|(kind, title)| {
            let is_own = |hit: &&SearchHit| {
                !hit.is_noted() && hit.claim().is_some_and(|it| it.kind() == *kind)
            };
            group(title, hits.iter().copied().filter(is_own))
        });
        let noted = group("Noted by an agent", hits.iter().copied().filter(|it| it.is_noted()));
        context! { namespace, groups => groups.chain(noted).collect::<Value>() }
    };
    by_project.into_iter().map(project).collect()
}

fn group<'h>(title: &str, hits: impl Iterator<Item = &'h SearchHit>) -> Option<Value> {
    let hits: Vec<Value> = hits.map(|hit| hit_view(hit, &Query::default())).collect();
    (!hits.is_empty()).then(|| context! { title, hits })
}

fn cost(when: &str, spent: Spent) -> String {
    let tokens = count(spent.usage.prompt_tokens + spent.usage.completion_tokens);
    let calls = counted(spent.calls, "call");
    let dollars = spent.cost_micros as f64 / 1e6;
    format!("{when}: {calls}, {tokens} tokens, ${dollars:.2}")
}

/// Problems that need a person, each with the command, the button or the page that solves it.
async fn needs(page: &Page, depth: &QueueStats, failed: u64) -> Result<Vec<Value>> {
    let mut needs = Vec::new();
    if failed > 0 {
        let line = format!("{} failed, listed below", counted(failed, "slice"));
        needs.push(context! { line, command => "annalist status" });
    }
    let spooled = page.spool.as_ref().map(|it| it.left_behind((page.clock)())).unwrap_or_default();
    if let Some(oldest) = spooled.first() {
        let transcripts = counted(spooled.len() as u64, "transcript");
        let problem = cut(oldest.problem.as_deref().unwrap_or("not enqueued yet"));
        let line = format!("{transcripts} from hooks since {}: {problem}", oldest.at);
        let command = format!("annalist enqueue {}", oldest.transcript.display());
        needs.push(context! { line, command });
    }
    for it in &depth.dead {
        let detail = it.detail.as_deref().map(|it| format!(": {}", cut(it)));
        let (jobs, detail) = (counted(it.jobs, "job"), detail.unwrap_or_default());
        let line = format!("{jobs} failed permanently, {}{detail}", it.kind);
        needs.push(context! { line, retries => &it.kind });
    }
    let of_worker = |line: String| context! { line, command => "annalist worker" };
    for it in depth.stopped() {
        let why = cut(it.stopped.as_deref().unwrap_or_default());
        needs.push(of_worker(format!("a worker stopped: {why}")));
    }
    for Stuck::Leases(it) | Stuck::Waits(it) | Stuck::Ready(it) in depth.stuck() {
        let jobs = counted(it.jobs, "job");
        needs.push(of_worker(format!("{jobs} due, but no worker is running")));
    }
    for it in depth.lasting_caps() {
        let (jobs, cap) = (counted(it.jobs, "job"), it.detail.as_deref().unwrap_or("at a cap"));
        needs.push(of_worker(format!("{jobs}: {cap}: raise it in the settings")));
    }
    for namespace in page.store.open_namespaces().await? {
        let pairs = page.store.open_pairs(&namespace, true, 1_000).await?.len() as u64;
        if pairs > 0 {
            let line = format!("{} of {namespace} to decide", counted(pairs, "pair"));
            let page = format!("/review?namespace={}", encoded(&namespace));
            needs.push(context! { line, page });
        }
    }
    Ok(needs)
}

async fn waits(store: &Store, depth: &QueueStats) -> Result<Vec<String>> {
    let states = [JobState::Waiting, JobState::Ready, JobState::Leased];
    let jobs = states.map(|state| (depth.jobs_in(state), state.name()));
    let jobs = jobs.into_iter().filter(|(jobs, _)| *jobs > 0);
    let jobs = jobs.map(|(jobs, state)| format!("{} {state}", counted(jobs, "job")));
    let backlog = store.backlog().await?.into_iter().map(|it| {
        format!("{} of {} waiting for consolidation", counted(it.records, "record"), it.namespace)
    });
    Ok(jobs.chain(backlog).collect())
}

fn failed_view(it: FailedRun) -> Value {
    context! {
        session => it.session.to_string(),
        run => it.run.to_string(),
        path => it.path,
        detail => format!("{}: {}", it.failure.kind, cut(&it.failure.detail)),
        at => clock::local_minute(it.at),
    }
}

pub(super) async fn retry(posted: Posted) -> Result<Response> {
    let kind = Some(posted.field("kind").to_owned());
    let which = JobSelection::Dead { kind, namespace: None };
    let now = (posted.page.clock)();
    let changes = posted.page.store.retry(which, now).await?;
    let is_any = changes.iter().any(|it| it.done);
    Ok(telling(posted.back("/"), if is_any { Notice::Retried } else { Notice::NotRetried }))
}
