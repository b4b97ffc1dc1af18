//! `annalist serve` serves the project's memory over HTTP to people and clients, `annalist mcp` to an agent over
//! standard input and output.

#[cfg(fuzzing)]
pub(super) mod testing;

use super::enqueue::enqueuer_of;
use super::hand_over::spool;
use super::model_args::embedder;
use super::output::{self, Failure, Result};
use super::progress::cancelled_with_note;
use super::settings;
use crate::adapters::http_server::HttpListener;
use crate::adapters::metrics::{Health, Jobs, Meters, Snapshot, StatusPages};
use crate::adapters::{clock, process};
use crate::config::Config;
use crate::domain::JobState;
use crate::pipeline::Embedder;
use crate::privacy::Gate;
use crate::server::{HttpServer, Intake, IntakeParts, Project, ServerState, mcp};
use crate::store::{OpenMode, Store, StoreError};
use axum::Router;
use axum::http::uri::Authority;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};
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

Serves the page of this project's memory; /v1, to which other machines send conversations; \
/metrics and /healthz; and with --mcp the tools of `annalist mcp`. A request needs the page's \
secret or a token of `annalist token new`; requests from other web pages are refused. Ctrl-C stops \
it.")]
pub(super) struct Args {
    /// Serve the tools of `annalist mcp` at http://ADDR/mcp
    #[arg(long)]
    mcp: bool,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4816")]
    listen: SocketAddr,
    /// Additional host name of the server
    #[arg(long, value_name = "NAME", value_parser = host)]
    host: Vec<String>,
    /// Accept other machines, behind a reverse proxy that terminates TLS; the page is not served
    #[arg(long)]
    behind_proxy: bool,
}

pub(super) async fn run(args: &Args, file: Option<&Path>) -> Result<()> {
    if !args.listen.ip().is_loopback() && !args.behind_proxy {
        return Err(Failure::usage(format!(
            "--listen: {}: reachable from the network: expected 127.0.0.1 or [::1], or \
             --behind-proxy if a reverse proxy terminates TLS (the page is not served then)",
            args.listen
        )));
    }
    let mcp = args.mcp.then(|| server(file)).transpose()?;
    let config = settings::load(file)?;
    let embedder = embedder(&config)?;
    let store = settings::open_store(&config, OpenMode::Create)?;
    let secret = (!args.behind_proxy).then(process::secret);
    let page_secret = secret.transpose().map_err(Failure::failed)?;
    let until =
        cancelled_with_note("stopping".to_owned(), || "received content is kept".to_owned())?;
    let listener = HttpListener::bind(args.listen).await;
    let listener = listener.map_err(|error| Failure::usage(format!("--listen: {error}")))?;
    let addr = listener.addr();
    output::note(&format!("API at http://{addr}/v1"));
    match &page_secret {
        Some(secret) => output::note(&format!("page at http://{addr}/?token={secret}")),
        None => output::note("no page: it is served on this machine only"),
    }
    if mcp.is_some() {
        output::note(&format!("tools at http://{addr}/mcp"));
    }
    let hosts = args.host.clone();
    let server = Composition { config, store, embedder, page_secret, mcp, hosts };
    listener.serve(server.router(until.clone()), until).await;
    Ok(())
}

/// Parses a host name or address as in a `Host` header without a port.
fn host(text: &str) -> Result<String, String> {
    let is_plain = text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.:[]".contains(&it));
    let is_host = is_plain && text.parse::<Authority>().is_ok_and(|it| it.host() == text);
    let expected = "expected a name without scheme, port or path, such as memory.example";
    is_host.then(|| text.to_owned()).ok_or_else(|| expected.to_owned())
}

pub(super) fn meters() -> Arc<Meters> {
    Arc::new(Meters::new(env!("CARGO_PKG_VERSION"), clock::now()))
}

struct Composition {
    config: Config,
    store: Store,
    embedder: Option<Embedder>,
    page_secret: Option<String>,
    mcp: Option<mcp::Server>,
    hosts: Vec<String>,
}

impl Composition {
    fn router(self, until: CancellationToken) -> Router {
        let Composition { config, store, embedder, page_secret, mcp, hosts } = self;
        let meters = meters();
        let status = status_pages(store.clone(), Arc::clone(&meters), until.clone());
        let intake = Intake::new(IntakeParts {
            enqueuer: enqueuer_of(&config, store.clone(), &config.model.model),
            store: store.clone(),
            clock: clock::now,
            jobs_max: config.queue.intake_jobs_max,
            meters,
            closing: until.clone(),
        });
        let (project, embedder) = (project(config), embedder.map(Arc::new));
        let state = ServerState { project, store, embedder, intake, spool: spool(), page_secret };
        HttpServer { state: Arc::new(state), mcp, status, hosts }.router(until)
    }
}

fn project(config: Config) -> Project {
    Project {
        gate: Gate::new(&config.pii),
        config,
        folders: settings::project_folders(),
        home: settings::home(),
        clock: clock::now,
    }
}

pub(super) async fn mcp(file: Option<&Path>) -> Result<()> {
    let served = mcp::serve(server(file)?).await;
    served.map_err(Failure::failed)
}

fn server(file: Option<&Path>) -> Result<mcp::Server> {
    let config = settings::load(file)?;
    let embedder = embedder(&config)?;
    let of_store = config.clone();
    let open = Arc::new(move |how| settings::unless_missing(settings::open_store(&of_store, how)));
    Ok(mcp::Server { project: project(config), open, store: OnceLock::new(), embedder })
}

/// Creates the status pages of this process, which is healthy until `closing` is cancelled.
pub(super) fn status_pages(
    store: Store,
    meters: Arc<Meters>,
    closing: CancellationToken,
) -> StatusPages {
    let health = Arc::new(Health::default());
    let told = Arc::clone(&health);
    tokio::spawn(async move {
        closing.cancelled().await;
        told.ill("stopping");
    });
    StatusPages::new(meters, health, move || snapshot(store.clone()))
}

async fn snapshot(store: Store) -> Result<Snapshot, StoreError> {
    let now = clock::now();
    let depth = store.depth(now).await?;
    let coverage = store.status().await?.coverage();
    let mut snapshot = Snapshot { coverage, ..Snapshot::default() };
    for open in &depth.open {
        let jobs = snapshot.jobs.entry(open.state).or_default();
        jobs.jobs += open.jobs;
        jobs.oldest = jobs.oldest.max(Some(now.since(open.oldest)));
        if let Some(wait) = open.wait {
            *snapshot.waiting.entry(wait).or_default() += open.jobs;
        }
    }
    let oldest = depth.dead.iter().map(|dead| now.since(dead.since)).max();
    let dead = Jobs { jobs: depth.dead_jobs(), oldest };
    snapshot.jobs.insert(JobState::Dead, dead);
    let cancelled = Jobs { jobs: depth.cancelled, oldest: None };
    snapshot.jobs.insert(JobState::Cancelled, cancelled);
    Ok(snapshot)
}
