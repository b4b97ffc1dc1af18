//! Forgetting: a preview of what would be erased, then the same operation as on the command line.

use super::access::Posted;
use super::opened::{Page, apart};
use super::shell::{PageError, Visit, one};
use super::views::cut;
use crate::domain::Change;
use crate::pipeline::{
    ErasureProof, ForgetPlan, ForgetResult, ForgetTarget, Forgotten, check_meant,
};
use crate::store::Erased;
use crate::text::phrase::{count, counted};
use axum::response::Response;
use serde::Serialize;

/// Maximum changes in the preview.
const LISTED_MAX: usize = 100;

/// Target as a query parameter and form field.
#[derive(Serialize)]
struct TargetView {
    name: &'static str,
    value: String,
}

#[derive(Serialize)]
struct PreviewView {
    target: TargetView,
    namespace: String,
    sessions: String,
    records: String,
    is_nothing: bool,
    changes: Vec<GoneView>,
    more: usize,
}

#[derive(Serialize)]
struct GoneView {
    becomes: &'static str,
    words: String,
}

/// Target and its namespace.
struct Wanted {
    namespace: String,
    target: ForgetTarget,
    view: TargetView,
}

impl Wanted {
    async fn of<'a>(
        page: &Page,
        get: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Wanted, PageError> {
        let bad = || PageError::bad("expected the id of a conversation or a record");
        if let Some(id) = get("session") {
            let session = one(page.store.session_named(id).await?, "session")?;
            check_meant(id, session.native_id.as_str()).map_err(PageError::bad)?;
            let view = TargetView { name: "session", value: session.id.to_string() };
            let target = ForgetTarget::Session(session.id);
            return Ok(Wanted { namespace: session.namespace, target, view });
        }
        if let Some(id) = get("record") {
            let found = page.store.record(id.parse().map_err(|_| bad())?).await?;
            let record = one(found, "record")?.stored.record;
            check_meant(id, &record.id.to_string()).map_err(PageError::bad)?;
            let view = TargetView { name: "record", value: record.id.to_string() };
            let target = ForgetTarget::Record(record.id);
            return Ok(Wanted { namespace: record.provenance.namespace, target, view });
        }
        let namespace = get("namespace").ok_or_else(bad)?.to_owned();
        let view = TargetView { name: "namespace", value: namespace.clone() };
        Ok(Wanted { namespace, target: ForgetTarget::Namespace, view })
    }
}

pub(super) async fn preview(visit: Visit) -> Result<Response, PageError> {
    let wanted = Wanted::of(&visit.page, |name| visit.get(name)).await?;
    let found = visit.page.consolidator.plan_forgetting(&wanted.namespace, &wanted.target).await?;
    let ForgetPlan { sessions, records, changes, .. } = &found;
    let view = PreviewView {
        target: wanted.view,
        namespace: wanted.namespace,
        sessions: counted(sessions.len() as u64, "conversation"),
        records: counted(records.len() as u64, "record"),
        is_nothing: sessions.is_empty() && records.is_empty(),
        changes: changes.iter().take(LISTED_MAX).map(gone_view).collect(),
        more: changes.len().saturating_sub(LISTED_MAX),
    };
    visit.render("Forget", include_str!("templates/forget.html"), view)
}

fn gone_view(change: &Change) -> GoneView {
    let becomes = match (&change.before, &change.after) {
        (_, None) => "is erased",
        (Some(before), Some(after)) if before.state != after.state => "is active again",
        (_, Some(_)) => "is rebuilt from the remaining records",
    };
    let memory = change.after.as_ref().or(change.before.as_ref());
    GoneView { becomes, words: memory.map_or(String::new(), |it| cut(it.claim.headline())) }
}

#[derive(Serialize)]
struct ForgottenView {
    namespace: String,
    erased: String,
    memories: String,
    looked: String,
    left: Vec<String>,
}

impl ForgottenView {
    fn of(namespace: String, erased: &Erased, proof: &ErasureProof) -> ForgottenView {
        let gone = [
            counted(erased.sessions, "conversation"),
            counted(erased.entries, "entry"),
            counted(erased.records, "record"),
            counted(erased.answers, "answer"),
            counted(erased.jobs, "job"),
        ];
        let (gone_memories, changed) = (erased.memories_gone, erased.memories_changed);
        let passages = counted(proof.passages as u64, "passage");
        let left = proof.left.iter().map(|(place, number)| format!("{place} {}", count(*number)));
        ForgottenView {
            namespace,
            erased: gone.join(", "),
            memories: format!("{} gone, {} changed", count(gone_memories), count(changed)),
            looked: format!("{} texts were searched for {passages}", count(proof.texts)),
            left: left.chain(proof.files.iter().cloned()).collect(),
        }
    }
}

pub(super) async fn forget(visit: Visit, posted: Posted) -> Result<Response, PageError> {
    apart(move || forgotten(visit, posted)).await
}

async fn forgotten(visit: Visit, posted: Posted) -> Result<Response, PageError> {
    if posted.field("sure") != "yes" {
        return Err(PageError::bad("nothing was erased: confirm with the checkbox"));
    }
    let page = &posted.page;
    let get = |name: &str| Some(posted.field(name)).filter(|it| !it.is_empty());
    let Wanted { namespace, target, .. } = Wanted::of(page, get).await?;
    let found = page.consolidator.plan_forgetting(&namespace, &target).await?;
    match page.directories.forget(&page.consolidator, &found, &target).await? {
        Forgotten::Done(ForgetResult { erased, proof, .. }) => {
            let view = ForgottenView::of(namespace, &erased, &proof);
            visit.render("Forgotten", include_str!("templates/forgotten.html"), view)
        }
        Forgotten::Busy => Err(PageError::busy(
            "another process is changing this memory; nothing was erased, try again",
        )),
        Forgotten::Moved(_) => {
            Err(PageError::busy("memory changed in the meantime; nothing was erased, review again"))
        }
    }
}
