//! Local page on which a person checks and corrects memory, conversations and plans. It shows what the commands show
//! and changes memory with the same plans.

mod access;
mod forget;
mod memory;
mod plans;
mod review;
mod search;
mod session;
mod shell;
mod today;
mod views;

use super::state::ServerState;
use access::Posted;
use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
pub(super) use shell::show_errors;
use shell::{Visit, apart};
use std::sync::Arc;

const STYLE: &str = include_str!("style.css");
/// Search as you type; every page works without it.
const SCRIPT: &str = include_str!("script.js");

pub(super) fn router(state: Arc<ServerState>) -> Router {
    let asset = |kind: &'static str, text: &'static str| {
        get(move || async move { ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-store")], text) })
    };
    let decide = |posted: Posted| apart(move || review::decide(posted));
    let next = |visit: Visit| apart(move || plans::next(visit));
    let answer = |posted: Posted| apart(move || plans::answer(posted));
    let undo = |posted: Posted| apart(move || plans::undo(posted));
    let redo = |posted: Posted| apart(move || plans::redo(posted));
    let preview = |visit: Visit| apart(move || forget::preview(visit));
    let erase = |visit: Visit, posted: Posted| apart(move || forget::forget(visit, posted));
    Router::new()
        .route("/", get(today::show))
        .route("/memory", get(memory::list))
        .route("/memory/{id}", get(memory::show))
        .route("/review", get(review::show))
        .route("/verdict", post(decide))
        .route("/search", get(search::show))
        .route("/session", get(session::list))
        .route("/session/{id}", get(session::show))
        .route("/run/{id}", get(session::run))
        .route("/plans", get(plans::list))
        .route("/plans/next", get(next).post(answer))
        .route("/plans/{id}", get(plans::show))
        .route("/plans/{id}/undo", post(undo))
        .route("/plans/{id}/redo", post(redo))
        .route("/jobs/retry", post(today::retry))
        .route("/forget", get(preview).post(erase))
        .route("/style.css", asset("text/css; charset=utf-8", STYLE))
        .route("/script.js", asset("text/javascript; charset=utf-8", SCRIPT))
        .route_layer(from_fn_with_state(Arc::clone(&state), access::guard))
        .with_state(state)
}
