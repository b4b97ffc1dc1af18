//! What people, agents and other machines reach over HTTP: the page, the intake and the Model Context Protocol, which
//! is also served over standard input and output. It shares the store, search and plans with the commands and adds no
//! logic of its own.

mod guard;
pub(crate) mod mcp;
mod page;
mod state;

use crate::adapters::metrics::StatusPages;
use axum::Router;
use guard::AllowedHosts;
pub(crate) use state::ServerState;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The Model Context Protocol over HTTP, and the token of its clients.
pub(crate) struct McpAccess {
    pub server: mcp::Server,
    pub token: String,
}

/// A server to compose.
pub(crate) struct HttpServer {
    pub state: Arc<ServerState>,
    pub mcp: Option<McpAccess>,
    pub status: StatusPages,
    /// Names beside those of this machine under which clients may address it.
    pub hosts: Vec<String>,
}

impl HttpServer {
    /// Everything that it serves; sessions of clients end when `until` is cancelled.
    pub(crate) fn router(self, until: CancellationToken) -> Router {
        let HttpServer { state, mcp, status, hosts } = self;
        let mut router = status.router();
        if let Some(McpAccess { server, token }) = mcp {
            let service = Router::new().route_service("/mcp", mcp::http_service(server, until));
            router = router.merge(guard::with_token(service, &token));
        }
        if state.page_secret.is_some() {
            router = router.merge(page::router(state));
        }
        guard::guarded(router, AllowedHosts::new(hosts))
    }
}
