//! Local page on which a person checks and corrects memory, conversations and plans. It shows what the commands show
//! and changes memory with the same plans.

mod access;
mod forget;
mod memory;
mod opened;
mod plans;
mod review;
mod search;
mod session;
mod shell;
mod today;
mod views;

use super::state::ServerState;
use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use opened::Page;
use std::sync::Arc;

const STYLE: &str = include_str!("style.css");
/// Search as you type; every page works without it.
const SCRIPT: &str = include_str!("script.js");

pub(super) fn router(state: &ServerState) -> Router {
    let page = Arc::new(Page::of(state));
    Router::new()
        .route("/", get(today::show))
        .route("/memory", get(memory::list))
        .route("/memory/{id}", get(memory::show))
        .route("/review", get(review::show))
        .route("/verdict", post(review::decide))
        .route("/search", get(search::show))
        .route("/session", get(session::list))
        .route("/session/{id}", get(session::show))
        .route("/run/{id}", get(session::run))
        .route("/plans", get(plans::list))
        .route("/plans/next", get(plans::next).post(plans::answer))
        .route("/plans/{id}", get(plans::show))
        .route("/plans/{id}/undo", post(plans::undo))
        .route("/plans/{id}/redo", post(plans::redo))
        .route("/jobs/retry", post(today::retry))
        .route("/forget", get(forget::preview).post(forget::forget))
        .route("/style.css", get(|| async { asset("text/css; charset=utf-8", STYLE) }))
        .route("/script.js", get(|| async { asset("text/javascript; charset=utf-8", SCRIPT) }))
        .route_layer(from_fn_with_state(Arc::clone(&page), access::guard))
        .with_state(page)
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-store")], text).into_response()
}
