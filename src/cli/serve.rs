//! `annalist serve`: the project's memory over HTTP, for people and clients on this machine.

use super::interrupt::cancelled_with_note;
use super::output::{self, Failure};
use super::status_pages::status_pages;
use super::{mcp, settings};
use crate::adapters::http_server::HttpListener;
use crate::adapters::metrics::Meters;
use crate::adapters::{clock, random};
use crate::privacy::Gate;
use crate::server::{HttpServer, McpAccess, ServerState};
use crate::store::OpenMode;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Variable with the token of clients.
const TOKEN: &str = "ANNALIST_MCP_TOKEN";
/// Fewest letters of a token.
const TOKEN_LETTERS_MIN: usize = 16;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist serve
  export ANNALIST_MCP_TOKEN=$(openssl rand -hex 16)
  annalist serve --mcp
  claude mcp add -t http annalist http://127.0.0.1:4816/mcp \\
    -H \"Authorization: Bearer $ANNALIST_MCP_TOKEN\"

Serves the page of this project's memory, /metrics and /healthz, and with --mcp the tools of `annalist mcp` for several \
clients. Only this machine reaches it; a request without the page's secret or a token is refused, and so is one from \
another web page. Ctrl-C ends it.")]
pub(super) struct Args {
    /// Serve the tools of `annalist mcp` at http://ADDR/mcp
    #[arg(long)]
    mcp: bool,
    /// Address of this machine
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4816")]
    listen: SocketAddr,
    /// Another name under which clients may address the server
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    if !args.listen.ip().is_loopback() {
        return Err(Failure::usage(format!(
            "--listen: {}: the network can reach it: expected 127.0.0.1 or [::1]",
            args.listen
        )));
    }
    let mcp = match args.mcp {
        true => Some(McpAccess { token: token()?, server: mcp::server(file)? }),
        false => None,
    };
    let config = settings::load(file)?;
    let store = settings::open_store(&config, OpenMode::Create)?;
    let meters = Arc::new(Meters::new(env!("CARGO_PKG_VERSION"), clock::now()));
    let page_secret = random::secret().map_err(Failure::failed)?;
    settings::runtime()?.block_on(async {
        let until =
            cancelled_with_note("stopping".to_owned(), || "what was taken in is kept".to_owned())?;
        let listener = HttpListener::bind(args.listen).await;
        let listener = listener.map_err(|error| Failure::usage(format!("--listen: {error}")))?;
        let addr = listener.addr();
        output::note(&format!("page at http://{addr}/?token={page_secret}"));
        if mcp.is_some() {
            output::note(&format!("tools at http://{addr}/mcp"));
        }
        let status = status_pages(store.clone(), meters, until.clone());
        let state = ServerState {
            gate: Gate::new(&config.pii),
            config,
            store,
            clock: clock::now,
            folders: settings::project_folders(),
            home: settings::home(),
            page_secret: Some(page_secret),
        };
        let hosts = args.host.clone();
        let server = HttpServer { state: Arc::new(state), mcp, status, hosts };
        listener.serve(server.router(until.clone()), until).await;
        Ok(ExitCode::SUCCESS)
    })
}

fn token() -> Result<String, Failure> {
    let token = std::env::var_os(TOKEN).and_then(|value| value.into_string().ok());
    let token = token.map(|token| token.trim().to_owned()).unwrap_or_default();
    if token.chars().count() < TOKEN_LETTERS_MIN {
        return Err(Failure::usage(format!(
            "{TOKEN}: expected a token of at least {TOKEN_LETTERS_MIN} letters: \
             export {TOKEN}=$(openssl rand -hex 16), and give it to the clients"
        )));
    }
    Ok(token)
}
