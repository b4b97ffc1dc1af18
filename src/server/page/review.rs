//! Pairs of memories that contradict each other, or may, side by side. A person's verdicts create the same plans as on
//! the command line.

use super::access::Posted;
use super::shell::{ApiError, Result, Visit, encoded, one, parsed, went_on};
use super::views::{pager, range, with_places};
use crate::consolidate::PersonVerdict;
use crate::domain::{Memory, MemoryId, Plan};
use crate::memory_dir::suspicion;
use crate::pipeline::{DecisionOutcome, Question, pair_questions, pairs};
use crate::server::state::ServerState;
use axum::response::Response;
use minijinja::{Value, context};

const LISTED: u32 = 20;

pub(super) async fn show(visit: Visit) -> Result<Response> {
    let store = &visit.state.store;
    let open = store.open_namespaces().await?;
    let namespace = visit.get("namespace").map(str::to_owned);
    let namespace = namespace.or_else(|| (open.len() == 1).then(|| open[0].clone()));
    let projects: Value = open.into_iter().map(|namespace| context! { namespace }).collect();
    let mut view = context! { projects };
    if let Some(namespace) = namespace {
        let all = pairs(store, &namespace).await?;
        let total = all.len();
        let last = u32::try_from(total).unwrap_or(u32::MAX).div_ceil(LISTED).max(1);
        let number = visit.number().min(last);
        let listed = range(number, LISTED);
        let part = all.into_iter().skip(listed.skip as usize).take(listed.take as usize);
        let mut part = pair_questions(store, &part.collect::<Vec<_>>()).await?;
        let address = format!("/review?namespace={}&page=", encoded(&namespace));
        let pager = pager(number, LISTED, &mut part, &address)?;
        let mut pairs = Vec::new();
        for question in &part {
            pairs.push(pair_view(&visit.state, question).await?);
        }
        view = context! { namespace, pairs, total, pager, before => listed.skip, ..view };
    }
    visit.render("Review", include_str!("templates/review.html"), view)
}

async fn pair_view(state: &ServerState, question: &Question) -> Result<Value> {
    let memories: Vec<Memory> = question.memories().into_iter().cloned().collect();
    Ok(context! {
        why => why(question),
        // Memory that the other one may close.
        asked => question.asked().map(|it| it.id.to_string()),
        memories => with_places(state, &memories).await?,
    })
}

/// Suspected relation between the two, in words.
fn why(question: &Question) -> String {
    let Question::Pair { one, other, is_certain: false } = question else {
        return "These contradict each other.".to_owned();
    };
    let suspected = |it, by, of: &str, the: &str| {
        suspicion(it, by, false).map(|words| format!("The {of} is {words} the {the}."))
    };
    suspected(one, other, "earlier", "later")
        .or_else(|| suspected(other, one, "later", "earlier"))
        .unwrap_or_else(|| "One may follow from the other.".to_owned())
}

/// Applies a verdict and redirects to the page that it came from.
pub(super) async fn decide(posted: Posted) -> Result<Response> {
    let id = |field: &str| parsed::<MemoryId>(posted.field(field), "a memory");
    let first = id("one")?;
    let verdict = match posted.field("verdict") {
        "keep-both" => PersonVerdict::KeepBoth { one: first, other: id("other")? },
        "supersede" => PersonVerdict::Supersede { old: first, new: id("other")? },
        "close" => PersonVerdict::Close { memory: first },
        "reopen" => PersonVerdict::Reopen { memory: first },
        "retract" => PersonVerdict::Retract { memory: first },
        _ => return Err(ApiError::bad("expected a verdict of this page")),
    };
    let memory = one(posted.state.store.memory(first.0.into()).await?, "memory")?;
    let page = format!("/memory/{first}");
    let back = posted.back(&page);
    let plan = applied(&posted.state, &memory.namespace, verdict).await?;
    Ok(went_on(back, &plan.id.to_string()))
}

async fn applied(state: &ServerState, namespace: &str, verdict: PersonVerdict) -> Result<Plan> {
    state.directories().import_edits(namespace).await?;
    let plan = match state.consolidator().decide(namespace, verdict).await? {
        DecisionOutcome::Done(plan) => *plan,
        DecisionOutcome::Refused(why) => return Err(ApiError::bad(why)),
        DecisionOutcome::Busy => return Err(ApiError::leased(namespace)),
    };
    state.directories().renew(namespace).await?;
    Ok(plan)
}
