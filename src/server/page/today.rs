//! Page of the day: decisions, attempts, requests, open items, problems that need a person, the queue and the cost.

use super::access::Posted;
use super::search::hit_view;
use super::shell::{Notice, Result, Visit, encoded, telling};
use super::views::{cut, with_places};
use crate::adapters::clock;
use crate::agents::quoted;
use crate::domain::{Claim, ClaimKind, JobState, Timestamp};
use crate::pipeline::{DayHits, Obstacle, SearchHit, obstacles, search_days, spooled_line};
use crate::search::Query;
use crate::server::state::ServerState;
use crate::store::{FailedRun, JobSelection, QueueStats, Spent, Store};
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
    let store = &visit.state.store;
    let now = (visit.state.project.clock)();
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
    open.sort_by(|one, other| one.namespace.cmp(&other.namespace));
    let mut left_open = Vec::new();
    for own in open.chunk_by(|one, other| one.namespace == other.namespace) {
        let memories = with_places(&visit.state, own).await?;
        left_open.push(context! { namespace => &own[0].namespace, memories });
    }
    let depth = store.depth(now).await?;
    let failed = store.failed_runs().await?;
    let view = context! {
        days,
        projects => projects(&hits),
        more,
        undated,
        left_open,
        is_more_open,
        needs => needs(&visit.state, &depth, failed.len()).await?,
        waits => waits(store, &depth).await?,
        more_failed => failed.len().saturating_sub(FAILED_MAX),
        failed => failed.into_iter().take(FAILED_MAX).map(failed_view).collect::<Value>(),
        spent => vec![
            cost("today", store.spent_since(begins(0)).await?),
            cost("in seven days", store.spent_since(begins(-6)).await?),
        ],
    };
    visit.render("Today", include_str!("templates/today.html"), view)
}

fn projects(hits: &[SearchHit]) -> Value {
    const TITLES: [&str; 5] = ["Decided", "Tried", "Asked", "Discussed", "Noted by an agent"];
    let mut by_project: BTreeMap<&str, [Vec<Value>; TITLES.len()]> = BTreeMap::new();
    for hit in hits {
        let group = match hit.claim().map(Claim::kind) {
            Some(_) if hit.is_noted() => 4,
            Some(ClaimKind::Decision) => 0,
            Some(ClaimKind::Attempt) => 1,
            Some(ClaimKind::Request) => 2,
            Some(ClaimKind::Discussion) => 3,
            None => continue,
        };
        let groups = by_project.entry(hit.namespace().unwrap_or_default()).or_default();
        groups[group].push(hit_view(hit, &Query::default()));
    }
    let project = |(namespace, groups): (&str, [Vec<Value>; TITLES.len()])| {
        let groups = TITLES.into_iter().zip(groups).filter(|(_, hits)| !hits.is_empty());
        let groups: Value = groups.map(|(title, hits)| context! { title, hits }).collect();
        context! { namespace, groups }
    };
    by_project.into_iter().map(project).collect()
}

fn cost(when: &str, spent: Spent) -> String {
    let tokens = count(spent.usage.prompt_tokens + spent.usage.completion_tokens);
    let calls = counted(spent.calls, "call");
    let dollars = spent.cost_micros as f64 / 1e6;
    format!("{when}: {calls}, {tokens} tokens, ${dollars:.2}")
}

/// Problems that need a person, each with the command, the button or the page that solves it.
async fn needs(state: &ServerState, depth: &QueueStats, failed: usize) -> Result<Vec<Value>> {
    let mut needs = Vec::new();
    if failed > 0 {
        let line = format!("{} failed", counted(failed as u64, "slice"));
        let link = "each with the command that tries it again";
        needs.push(context! { line, link, page => "#failed" });
    }
    if let Some(spool) = &state.spool {
        let spooled = spool.left_behind((state.project.clock)());
        if let Some(oldest) = spooled.first() {
            let transcripts = counted(spooled.len() as u64, "transcript");
            let line = spooled_line(spool, oldest);
            let line = format!("{transcripts} from hooks since {}: {line}", oldest.at);
            needs.push(context! { line });
        }
    }
    for Obstacle { line, dead } in obstacles(depth) {
        let detail = dead.and_then(|it| it.detail.as_deref()).map(cut);
        needs.push(context! { line, detail, retries => dead.map(|it| &it.kind) });
    }
    for namespace in state.store.open_namespaces().await? {
        let pairs = state.store.open_pairs(&namespace, true, 1_000).await?.len() as u64;
        if pairs > 0 {
            let line = format!("{} of {namespace} to decide", counted(pairs, "pair"));
            let page = format!("/review?namespace={}", encoded(&namespace));
            needs.push(context! { line, link => "review them", page });
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
    // A slice from another machine has a job, which has a button.
    let is_file = !it.path.starts_with("http:");
    context! {
        command => is_file.then(|| format!("annalist replay {}", quoted(&it.path))),
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
    let now = (posted.state.project.clock)();
    let changes = posted.state.store.retry(which, now).await?;
    let is_any = changes.iter().any(|it| it.done);
    Ok(telling(posted.back("/"), if is_any { Notice::Retried } else { Notice::NotRetried }))
}
