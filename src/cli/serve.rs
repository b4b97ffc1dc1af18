//! `annalist serve`: the project's memory over HTTP, for clients on this machine.

use super::interrupt::cancelled_with_note;
use super::mcp::server;
use super::output::{self, Failure};
use super::settings;
use crate::adapters::loopback::{Access, LoopbackListener};
use crate::server::mcp::http_service;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

/// Variable with the token of clients.
const TOKEN: &str = "ANNALIST_MCP_TOKEN";
/// Fewest letters of a token.
const TOKEN_LETTERS_MIN: usize = 16;
const PATH: &str = "/mcp";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  export ANNALIST_MCP_TOKEN=$(openssl rand -hex 16)
  annalist serve --mcp
  claude mcp add -t http annalist http://127.0.0.1:4816/mcp \\
    -H \"Authorization: Bearer $ANNALIST_MCP_TOKEN\"

The tools of `annalist mcp` for several clients of the project of this folder. Only this machine reaches it, a \
request without the token is refused, and so is one from a web page. Ctrl-C ends it.")]
pub(super) struct Args {
    /// Serve the tools of `annalist mcp` at http://ADDR/mcp
    #[arg(long, required = true)]
    mcp: bool,
    /// Address of this machine
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4816")]
    listen: SocketAddr,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let token = token()?;
    let server = server(file)?;
    settings::runtime()?.block_on(async {
        let until =
            cancelled_with_note("stopping".to_owned(), || "what was noted is kept".to_owned())?;
        let listener = LoopbackListener::bind(args.listen).await;
        let listener = listener.map_err(|error| Failure::usage(format!("--listen: {error}")))?;
        output::note(&format!("tools at http://{}{PATH}", listener.addr()));
        let service = http_service(server, until.clone());
        let answer = move |request| {
            let service = service.clone();
            async move { service.handle(request).await }
        };
        listener.serve(Access { path: PATH, token }, answer, until).await;
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
