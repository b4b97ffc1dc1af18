//! `annalist serve`: serves the project's memory over HTTP to people and clients.

use super::enqueue::enqueuer_of;
use super::interrupt::cancelled_with_note;
use super::model_args::embedder;
use super::output::{self, Failure};
use super::status_pages::status_pages;
use super::{mcp, settings};
use crate::adapters::http_server::HttpListener;
use crate::adapters::metrics::Meters;
use crate::adapters::{clock, random};
use crate::config::Config;
use crate::pipeline::Embedder;
use crate::privacy::Gate;
use crate::server::mcp::Server;
use crate::server::{HttpServer, Intake, IntakeParts, ServerState};
use crate::store::{OpenMode, Store};
#[cfg(fuzzing)]
use crate::store::{Token, TokenRight};
use std::net::{Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist serve
  annalist token new laptop --namespace roofs --can write
  curl -H \"Authorization: Bearer $TOKEN\" --data-binary @session.jsonl \\
    http://127.0.0.1:4816/v1/transcripts?name=session.jsonl
  annalist serve --mcp
  claude mcp add -t http annalist http://127.0.0.1:4816/mcp \\
    -H \"Authorization: Bearer $TOKEN\"
  annalist serve --listen 0.0.0.0:4816 --behind-proxy \\
    --host memory.example

Serves the page of this project's memory; /v1, to which other machines send conversations; /metrics and /healthz; and \
with --mcp the tools of `annalist mcp`. A request needs the page's secret or a token of `annalist token new`, and comes \
from no other web page. Ctrl-C ends it.")]
pub(super) struct Args {
    /// Serve the tools of `annalist mcp` at http://ADDR/mcp
    #[arg(long)]
    mcp: bool,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4816")]
    listen: SocketAddr,
    /// Another name under which clients may address the server
    #[arg(long, value_name = "NAME", value_parser = host)]
    host: Vec<String>,
    /// Listen beyond this machine: a reverse proxy in front ends TLS; the page is not served
    #[arg(long)]
    behind_proxy: bool,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    if !args.listen.ip().is_loopback() && !args.behind_proxy {
        return Err(Failure::usage(format!(
            "--listen: {}: the network can reach it: expected 127.0.0.1 or [::1], or --behind-proxy \
             where a reverse proxy ends TLS (the page is not served then)",
            args.listen
        )));
    }
    let mcp = args.mcp.then(|| mcp::server(file)).transpose()?;
    let config = settings::load(file)?;
    let embedder = embedder(&config)?;
    let store = settings::open_store(&config, OpenMode::Create)?;
    let meters = meters();
    let page_secret = match args.behind_proxy {
        true => None,
        false => Some(random::secret().map_err(Failure::failed)?),
    };
    settings::runtime()?.block_on(async {
        let until =
            cancelled_with_note("stopping".to_owned(), || "what was taken in is kept".to_owned())?;
        let listener = HttpListener::bind(args.listen).await;
        let listener = listener.map_err(|error| Failure::usage(format!("--listen: {error}")))?;
        let addr = listener.addr();
        output::note(&format!("intake at http://{addr}/v1"));
        match &page_secret {
            Some(secret) => output::note(&format!("page at http://{addr}/?token={secret}")),
            None => output::note("no page: it is for this machine only"),
        }
        if mcp.is_some() {
            output::note(&format!("tools at http://{addr}/mcp"));
        }
        let hosts = args.host.clone();
        let server = Composition { config, store, embedder, meters, page_secret, mcp, hosts };
        listener.serve(server.compose(until.clone()).router(until.clone()), until).await;
        Ok(ExitCode::SUCCESS)
    })
}

/// Parses a host name or address as in a `Host` header, with an optional port.
fn host(text: &str) -> Result<String, String> {
    let is_name = |name: &str| {
        let plain = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
        !name.is_empty() && name.chars().all(plain)
    };
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match is_name(text) || inner.is_some_and(|it| it.parse::<Ipv6Addr>().is_ok()) {
        true => Ok(text.to_owned()),
        false => {
            Err("expected a name without scheme, port or path, such as memory.example".to_owned())
        }
    }
}

fn meters() -> Arc<Meters> {
    Arc::new(Meters::new(env!("CARGO_PKG_VERSION"), clock::now()))
}

struct Composition {
    config: Config,
    store: Store,
    embedder: Option<Embedder>,
    meters: Arc<Meters>,
    page_secret: Option<String>,
    mcp: Option<Server>,
    hosts: Vec<String>,
}

impl Composition {
    fn compose(self, until: CancellationToken) -> HttpServer {
        let Composition { config, store, embedder, meters, page_secret, mcp, hosts } = self;
        let status = status_pages(store.clone(), Arc::clone(&meters), until.clone());
        let intake = Intake::new(IntakeParts {
            enqueuer: enqueuer_of(&config, store.clone(), &config.model.model),
            store: store.clone(),
            clock: clock::now,
            jobs_max: config.queue.intake_jobs_max,
            meters,
            closing: until,
        });
        let state = ServerState {
            gate: Gate::new(&config.pii),
            config,
            store,
            embedder: embedder.map(Arc::new),
            clock: clock::now,
            folders: settings::project_folders(),
            home: settings::home(),
            page_secret,
            intake,
        };
        HttpServer { state: Arc::new(state), mcp, status, hosts }
    }
}

/// Router of `annalist serve --mcp` with the settings in `file`, for the fuzz target `http`. Its token and the page
/// secret are `fuzz`.
///
/// # Panics
/// If the settings or the store cannot be opened.
#[cfg(fuzzing)]
#[expect(clippy::unwrap_used, reason = "a fuzz target that cannot be set up ends")]
pub async fn router_for_fuzzing(file: &Path) -> axum::Router {
    let config = settings::load(Some(file)).map_err(|it| it.line).unwrap();
    let store = settings::open_store(&config, OpenMode::Create).map_err(|it| it.line).unwrap();
    let token = Token {
        name: "fuzz".to_owned(),
        namespace: "fuzz".to_owned(),
        rights: TokenRight::ALL.to_vec(),
        created_at: clock::now(),
        expires_at: None,
        revoked_at: None,
        used_at: None,
    };
    store.keep_token(token, crate::server::token_digest(b"fuzz")).await.unwrap();
    let mcp = mcp::server(Some(file)).map_err(|it| it.line).unwrap();
    let (page_secret, hosts) = (Some("fuzz".to_owned()), Vec::new());
    let meters = meters();
    let until = CancellationToken::new();
    let parts =
        Composition { config, store, embedder: None, meters, page_secret, mcp: Some(mcp), hosts };
    parts.compose(until.clone()).router(until)
}
