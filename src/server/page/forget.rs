//! Forgetting: a preview of what would be erased, then the same operation as on the command line.

use super::access::Posted;
use super::shell::{ApiError, Result, Visit, one, parsed};
use super::views::cut;
use crate::domain::Change;
use crate::pipeline::{ForgetResult, ForgetTarget, Forgotten, becomes, check_meant};
use crate::server::state::ServerState;
use crate::store::Erasure;
use crate::text::phrase::{count, counted};
use axum::response::Response;
use minijinja::{Value, context};

const LISTED_MAX: usize = 100;

/// Conversation or record that a request names, and its namespace.
async fn wanted<'a>(
    state: &ServerState,
    get: impl Fn(&str) -> Option<&'a str>,
) -> Result<(String, ForgetTarget)> {
    let expected = "a conversation or a record";
    match (get("session"), get("record")) {
        (Some(id), _) => {
            let session = one(state.store.session_named(id).await?, "session")?;
            check_meant(id, session.native_id.as_str()).map_err(ApiError::bad)?;
            Ok((session.namespace, ForgetTarget::Session(session.id)))
        }
        (None, Some(id)) => {
            let found = state.store.record(parsed(id, expected)?).await?;
            let record = one(found, "record")?.stored.record;
            check_meant(id, &record.id.to_string()).map_err(ApiError::bad)?;
            Ok((record.provenance.namespace, ForgetTarget::Record(record.id)))
        }
        (None, None) => Err(ApiError::bad(format!("expected the id of {expected}"))),
    }
}

pub(super) async fn preview(visit: Visit) -> Result<Response> {
    let (namespace, target) = wanted(&visit.state, |name| visit.get(name)).await?;
    let store = &visit.state.store;
    let found = visit.state.consolidator().preview_forgetting(&namespace, &target).await?;
    let files = visit.state.directories().files_with(&found).await?;
    let Erasure { records, changes, .. } = &found.erasure;
    let named = records.iter().copied().take(LISTED_MAX).collect();
    let named = store.records_of(named).await?.into_iter();
    let named = named.map(|it| context! { words => cut(it.claim.headline()) });
    let paths = files.iter().map(|it| context! { words => it });
    let view = context! {
        session => found.erasure.sessions.first().map(ToString::to_string),
        record => records.first().map(ToString::to_string),
        namespace,
        erasable => found.erasable.in_words("conversation"),
        is_whole => found.is_whole,
        is_remembered => !changes.is_empty(),
        lists => [
            listed("Records", records.len(), named),
            listed("Memories", changes.len(), changes.iter().map(change_view)),
            listed("Files of the directory that show them", files.len(), paths),
        ],
    };
    visit.render("Forget", include_str!("templates/forget.html"), view)
}

/// The first of `all` items of a list, and the number of the others.
fn listed(title: &str, all: usize, items: impl Iterator<Item = Value>) -> Value {
    let lines: Value = items.take(LISTED_MAX).collect();
    context! { title, lines, more => all.saturating_sub(LISTED_MAX) }
}

fn change_view(change: &Change) -> Value {
    let memory = change.after.as_ref().or(change.before.as_ref());
    let words = memory.map_or(String::new(), |it| cut(it.claim.headline()));
    context! { becomes => becomes(change), words }
}

pub(super) async fn forget(visit: Visit, posted: Posted) -> Result<Response> {
    if posted.field("sure") != "yes" {
        return Err(ApiError::bad("nothing was erased: confirm with the checkbox"));
    }
    let state = &posted.state;
    let get = |name: &str| Some(posted.field(name)).filter(|it| !it.is_empty());
    let (namespace, target) = wanted(state, get).await?;
    let outcome = state.directories().forget(&state.consolidator(), &namespace, &target).await?;
    let (erased, proof) = match outcome {
        Forgotten::Done(ForgetResult { erased, proof, .. }) => (erased, proof),
        Forgotten::Busy => {
            let why = "another process is changing this memory; nothing was erased, try again";
            return Err(ApiError::busy(why));
        }
        Forgotten::Moved(_) => {
            let why = "memory changed in the meantime; nothing was erased, review again";
            return Err(ApiError::busy(why));
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
