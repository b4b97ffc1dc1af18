//! Forgetting: a preview of what would be erased, then the same operation as on the command line.

use super::access::Posted;
use super::shell::{Page, PageError, Result, Visit, one, parsed};
use super::views::cut;
use crate::domain::Change;
use crate::pipeline::{ForgetResult, ForgetTarget, Forgotten, check_meant};
use crate::text::phrase::{count, counted};
use axum::response::Response;
use minijinja::{Value, context};

const LISTED_MAX: usize = 100;

struct Wanted {
    namespace: String,
    target: ForgetTarget,
    /// Target as a query parameter and form field.
    field: Value,
}

impl Wanted {
    async fn of<'a>(page: &Page, get: impl Fn(&str) -> Option<&'a str>) -> Result<Wanted> {
        let field = |name: &str, value: String| context! { name, value };
        if let Some(id) = get("session") {
            let session = one(page.store.session_named(id).await?, "session")?;
            check_meant(id, session.native_id.as_str()).map_err(PageError::bad)?;
            let field = field("session", session.id.to_string());
            let target = ForgetTarget::Session(session.id);
            return Ok(Wanted { namespace: session.namespace, target, field });
        }
        let expected = "a conversation or a record";
        if let Some(id) = get("record") {
            let found = page.store.record(parsed(id, expected)?).await?;
            let record = one(found, "record")?.stored.record;
            check_meant(id, &record.id.to_string()).map_err(PageError::bad)?;
            let field = field("record", record.id.to_string());
            let target = ForgetTarget::Record(record.id);
            return Ok(Wanted { namespace: record.provenance.namespace, target, field });
        }
        let none = || PageError::bad(format!("expected the id of {expected}"));
        let namespace = get("namespace").ok_or_else(none)?.to_owned();
        let field = field("namespace", namespace.clone());
        Ok(Wanted { namespace, target: ForgetTarget::Namespace, field })
    }
}

pub(super) async fn preview(visit: Visit) -> Result<Response> {
    let Wanted { namespace, target, field } =
        Wanted::of(&visit.page, |name| visit.get(name)).await?;
    let found = visit.page.consolidator.plan_forgetting(&namespace, &target).await?;
    let changes = &found.erasure.changes;
    let view = context! {
        target => field,
        namespace,
        erasable => found.erasable.in_words("conversation"),
        is_nothing => found.is_empty(),
        changes => changes.iter().take(LISTED_MAX).map(change_view).collect::<Value>(),
        more => changes.len().saturating_sub(LISTED_MAX),
    };
    visit.render("Forget", include_str!("templates/forget.html"), view)
}

fn change_view(change: &Change) -> Value {
    let becomes = match (&change.before, &change.after) {
        (_, None) => "is erased",
        (Some(before), Some(after)) if before.state != after.state => "is active again",
        (_, Some(_)) => "is rebuilt from the remaining records",
    };
    let memory = change.after.as_ref().or(change.before.as_ref());
    context! { becomes, words => memory.map_or(String::new(), |it| cut(it.claim.headline())) }
}

pub(super) async fn forget(visit: Visit, posted: Posted) -> Result<Response> {
    if posted.field("sure") != "yes" {
        return Err(PageError::bad("nothing was erased: confirm with the checkbox"));
    }
    let page = &posted.page;
    let get = |name: &str| Some(posted.field(name)).filter(|it| !it.is_empty());
    let Wanted { namespace, target, .. } = Wanted::of(page, get).await?;
    let found = page.consolidator.plan_forgetting(&namespace, &target).await?;
    let (erased, proof) = match page.directories.forget(&page.consolidator, &found, &target).await?
    {
        Forgotten::Done(ForgetResult { erased, proof, .. }) => (erased, proof),
        Forgotten::Busy => {
            let why = "another process is changing this memory; nothing was erased, try again";
            return Err(PageError::busy(why));
        }
        Forgotten::Moved(_) => {
            let why = "memory changed in the meantime; nothing was erased, review again";
            return Err(PageError::busy(why));
        }
    };
    let (memories, changed) = (count(erased.memories_gone), count(erased.memories_changed));
    let passages = counted(proof.passages as u64, "passage");
    let view = context! {
        namespace,
        erased => erased.in_words("conversation"),
        memories => format!("{memories} gone, {changed} changed"),
        looked => format!("{} texts were searched for {passages}", count(proof.texts)),
        left => proof.left_in_words().chain(proof.files.iter().cloned()).collect::<Value>(),
    };
    visit.render("Forgotten", include_str!("templates/forgotten.html"), view)
}
