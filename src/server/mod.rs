//! HTTP server for people, agents and other machines: the local page, the intake and the Model Context Protocol, which
//! also runs over standard input and output. It shares the store, search and plans with the commands and adds no logic
//! of its own.

mod api;
mod error;
mod guard;
mod intake;
mod reading;
pub(crate) mod mcp;
mod page;
mod state;

use crate::adapters::metrics::StatusPages;
pub(crate) use api::openapi;
use axum::Router;
use axum::middleware::from_fn;
pub(crate) use intake::{Intake, IntakeParts};
pub(crate) use state::{Project, ServerState, token_digest};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub(crate) struct HttpServer {
    pub state: Arc<ServerState>,
    /// MCP tools, if enabled.
    pub mcp: Option<mcp::Server>,
    pub status: StatusPages,
    /// Further host names under which clients may address the server.
    pub hosts: Vec<String>,
}

impl HttpServer {
    /// Builds the router. MCP sessions end when `until` is cancelled.
    pub(crate) fn router(self, until: CancellationToken) -> Router {
        let HttpServer { state, mcp, status, hosts } = self;
        let mut router = api::router(Arc::clone(&state), status.router());
        if let Some(server) = mcp {
            router = router.merge(mcp::router(server, &state, until));
        }
        if state.page_secret.is_none() {
            return guard::guarded(api::closed(router), hosts);
        }
        router = api::closed(router.merge(page::router(state)));
        guard::guarded(router, hosts).layer(from_fn(page::show_errors))
    }
}
