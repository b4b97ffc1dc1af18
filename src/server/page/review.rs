//! Pairs of memories that contradict each other, or may, side by side. A person's verdicts create the same plans as on
//! the command line.

use super::access::Posted;
use super::opened::{Page, apart};
use super::shell::{PageError, Visit, one, went_on};
use super::views::{MemoryView, Pager, memory_id, with_places};
use crate::consolidate::PersonVerdict;
use crate::domain::{Claim, Memory, Plan};
use crate::pipeline::{DecisionOutcome, Question, pair_questions, pairs};
use axum::response::Response;
use serde::Serialize;

/// Pairs per page of the list.
const LISTED: u32 = 20;

#[derive(Serialize)]
struct ReviewView {
    namespace: Option<String>,
    projects: Vec<ProjectView>,
    pairs: Vec<PairView>,
    total: usize,
    pager: Option<Pager>,
}

#[derive(Serialize)]
struct ProjectView {
    namespace: String,
}

#[derive(Serialize)]
struct PairView {
    why: &'static str,
    /// Memory that the other one may close.
    asked: Option<String>,
    memories: Vec<MemoryView>,
}

pub(super) async fn show(visit: Visit) -> Result<Response, PageError> {
    let store = &visit.page.store;
    let open = store.open_namespaces().await?;
    let namespace = visit.get("namespace").map(str::to_owned);
    let namespace = namespace.or_else(|| (open.len() == 1).then(|| open[0].clone()));
    let mut view = ReviewView {
        projects: open.into_iter().map(|namespace| ProjectView { namespace }).collect(),
        namespace,
        pairs: Vec::new(),
        total: 0,
        pager: None,
    };
    if let Some(namespace) = &view.namespace {
        let all = pairs(store, namespace).await?;
        view.total = all.len();
        let range = Pager::range(visit.number(), LISTED);
        let part = all.into_iter().skip(range.skip as usize).take(range.take as usize);
        let mut part = pair_questions(store, &part.collect::<Vec<_>>()).await?;
        let address = format!("/review?namespace={}&page=", super::shell::encoded(namespace));
        view.pager = Some(Pager::of(visit.number(), LISTED, &mut part, address));
        for question in &part {
            view.pairs.push(pair(&visit.page, question).await?);
        }
    }
    visit.render("Review", include_str!("templates/review.html"), view)
}

async fn pair(page: &Page, question: &Question) -> Result<PairView, PageError> {
    let memories: Vec<Memory> = question.memories().into_iter().cloned().collect();
    let asked = question.asked().map(|it| it.id.to_string());
    Ok(PairView { why: why(question), asked, memories: with_places(page, &memories).await? })
}

/// Suspected relation between the two, in words.
fn why(question: &Question) -> &'static str {
    match question {
        Question::Pair { is_certain: true, .. } => "These contradict each other.",
        Question::Pair { one, other, .. } => match (&one.claim, &other.claim) {
            (Claim::Request(_), Claim::Attempt(_)) => "The request may have been fulfilled.",
            (Claim::Discussion(_), Claim::Decision(_)) => "The question may have been settled.",
            (Claim::Attempt(it), Claim::Attempt(later)) if !it.succeeded && later.succeeded => {
                "The failure may have been solved."
            }
            (one, other) if one.kind() == other.kind() => "The earlier one may be outdated.",
            (_, _) => "One may follow from the other.",
        },
        Question::Open(_) => "This is open.",
    }
}

/// Applies a verdict and redirects to the page that it came from.
pub(super) async fn decide(posted: Posted) -> Result<Response, PageError> {
    let first = memory_id(posted.field("one"))?;
    let second = || memory_id(posted.field("other"));
    let verdict = match posted.field("verdict") {
        "keep-both" => PersonVerdict::KeepBoth { one: first, other: second()? },
        "supersede" => PersonVerdict::Supersede { old: first, new: second()? },
        "close" => PersonVerdict::Close { memory: first },
        "reopen" => PersonVerdict::Reopen { memory: first },
        "retract" => PersonVerdict::Retract { memory: first },
        _ => return Err(PageError::bad("expected a verdict of this page")),
    };
    let memory = one(posted.page.store.memory(first.0.into()).await?, "memory")?;
    let back = posted.back(&format!("/memory/{first}"));
    let plan =
        apart(move || async move { applied(&posted.page, &memory.namespace, verdict).await });
    let plan = plan.await?;
    Ok(went_on(&back, &plan.id.to_string()))
}

async fn applied(page: &Page, namespace: &str, verdict: PersonVerdict) -> Result<Plan, PageError> {
    page.directories.import_edits(namespace).await?;
    let plan = match page.consolidator.decide(namespace, verdict).await? {
        DecisionOutcome::Done(plan) => *plan,
        DecisionOutcome::Refused(why) => return Err(PageError::bad(why)),
        DecisionOutcome::Busy => {
            return Err(PageError::busy(format!(
                "namespace `{namespace}`: another process is changing its memory; try again"
            )));
        }
    };
    page.directories.renew(namespace).await?;
    Ok(plan)
}
