//! The server of the Model Context Protocol: what an agent may ask of the memory of its project. It adds no logic of its
//! own: a tool answers what the command of the same name answers, fenced as data and within a budget.

mod answers;
mod server;
mod tools;

pub(crate) use server::Server;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio_pipes;

/// Serves one client over standard input and output until it goes away.
///
/// # Errors
/// One line, if the client does not speak the protocol.
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
