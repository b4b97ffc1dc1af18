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
use crate::store::TokenRight;
pub(crate) use api::openapi;
use axum::RequestPartsExt;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use error::{ApiError, Result};
pub(crate) use intake::{Intake, IntakeParts};
use state::Caller;
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
            let tools = Router::new().route_service("/mcp", mcp::http_service(server, until));
            let checked = tools.layer(from_fn_with_state(Arc::clone(&state), check_mcp));
            router = router.merge(checked);
        }
        if state.page_secret.is_none() {
            return guard::guarded(api::closed(router), hosts);
        }
        router = api::closed(router.merge(page::router(&state)));
        guard::guarded(router, hosts).layer(from_fn(page::show_errors))
    }
}

/// Admits clients whose token may read the project's namespace.
async fn check_mcp(
    State(state): State<Arc<ServerState>>,
    request: Request,
    next: Next,
) -> Result<Response> {
    let (mut parts, body) = request.into_parts();
    let caller: Caller = parts.extract_with_state(&state).await?;
    caller.may(TokenRight::Read)?;
    let own = state.project.namespace(Some(&state.store)).await?;
    if caller.namespace != own {
        let what = format!("a token of namespace `{}`", caller.namespace);
        let expected = format!("one of `{own}`, the project of this server");
        return Err(ApiError::new(StatusCode::FORBIDDEN, &what, "Authorization", &expected));
    }
    parts.extensions.insert(caller);
    Ok(next.run(Request::from_parts(parts, body)).await)
}
