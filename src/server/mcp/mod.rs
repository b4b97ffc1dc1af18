//! Model Context Protocol server: an agent's access to the memory of its project. Each tool returns what the command
//! of the same name prints, fenced as data and within a budget.

mod answers;
mod server;
mod tools;

pub(crate) use server::Server;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio_pipes;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Maximum size of an HTTP request; a note takes a few kilobytes.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// Serves one client over standard input and output until it disconnects.
///
/// # Errors
/// If the client does not speak the protocol; one line.
pub(crate) async fn serve(server: Server) -> Result<(), String> {
    match server.serve(stdio_pipes()).await {
        Ok(running) => running.waiting().await.map(drop).map_err(|error| error.to_string()),
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(format!(
            "standard input: not a client of the Model Context Protocol: {error}: expected \
             `initialize`; let the client start `annalist mcp`"
        )),
    }
}

/// Returns the HTTP service, with one session per client, until `until` is cancelled. The caller checks hosts, origins
/// and tokens.
pub(crate) fn http_service(
    server: Server,
    until: CancellationToken,
) -> StreamableHttpService<Arc<Server>, LocalSessionManager> {
    let server = Arc::new(server);
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(REQUEST_BYTES_MAX)
        .with_cancellation_token(until);
    let sessions = Arc::new(LocalSessionManager::default());
    StreamableHttpService::new(move || Ok(Arc::clone(&server)), sessions, config)
}
