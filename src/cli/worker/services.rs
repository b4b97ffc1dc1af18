//! Services of a worker, which end with it: watched folders, a NATS stream and the metrics page.

use crate::adapters::http_server::HttpListener;
use crate::adapters::metrics::Meters;
use crate::adapters::watch::{Options, Watch};
use crate::cli::enqueue::enqueuer_of;
use crate::cli::hand_over;
use crate::cli::output::{self, Failure};
use crate::cli::status_pages::status_pages;
use crate::config::Config;
use crate::pipeline::{EnqueueOptions, Feed};
use crate::store::Store;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Interval between retries of failed hand-overs of hooks.
const HAND_OVER_EVERY: Duration = Duration::from_secs(30);

#[derive(Debug, clap::Args)]
pub(super) struct ServiceArgs {
    /// Watch these folders and enqueue new entries of their transcripts
    #[arg(long, value_name = "DIR", num_args = 1..)]
    watch: Vec<PathBuf>,
    /// Take slices from a NATS JetStream stream: nats://HOST[:PORT]/STREAM
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Serve /metrics (Prometheus) and /healthz at this address, such as 127.0.0.1:9464
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,
}

/// Worker that the services belong to.
pub(super) struct WorkerContext<'a> {
    pub(super) config: &'a Config,
    pub(super) model_name: &'a str,
    pub(super) store: &'a Store,
    pub(super) closing: &'a CancellationToken,
    pub(super) meters: &'a Arc<Meters>,
    /// Held by each folder and stream until it has been read to its end; `None` to follow them.
    pub(super) drain: Option<Arc<()>>,
}

/// Running services; each returns the problem that a person must solve, if there is one.
pub(super) type Services = JoinSet<Result<(), String>>;

pub(super) async fn start(
    args: &ServiceArgs,
    worker: WorkerContext<'_>,
) -> Result<Services, Failure> {
    let WorkerContext { config, model_name, store, closing, meters, drain } = worker;
    let mut services = Services::new();
    if let Some(addr) = args.metrics {
        let listener = HttpListener::bind(addr).await;
        let listener = listener.map_err(|error| Failure::usage(format!("--metrics: {error}")))?;
        let open = listener.addr();
        output::note(&format!("metrics at http://{open}/metrics"));
        if !open.ip().is_loopback() {
            output::note(&output::warning(
                "the network can read them; 127.0.0.1 is for this machine",
            ));
        }
        let pages = status_pages(store.clone(), Arc::clone(meters), closing.clone());
        let closing = closing.clone();
        services.spawn(async move {
            listener.serve(pages.router(), closing).await;
            Ok(())
        });
    }
    let stopping = closing.clone();
    services.spawn(async move {
        let pause = || tokio::time::sleep(HAND_OVER_EVERY);
        while stopping.run_until_cancelled(pause()).await.is_some() {
            let _ = tokio::task::spawn_blocking(hand_over::retry).await;
        }
        Ok(())
    });
    if args.watch.is_empty() && args.from.is_none() {
        return Ok(services);
    }
    let counted = Arc::clone(meters);
    let feed = Feed {
        enqueuer: enqueuer_of(config, store.clone(), model_name),
        closing: closing.clone(),
        drain,
        tell: output::note,
        enqueued: Arc::new(move |jobs| counted.enqueued(jobs)),
    };
    // With `--drain` no later entries complete a partial slice.
    let how = EnqueueOptions { flush: feed.drain.is_some(), ..EnqueueOptions::default() };
    if !args.watch.is_empty() {
        for path in args.watch.iter().filter(|path| !path.exists()) {
            let path = path.display();
            output::note(&format!("{path}: is not there yet; it is followed once it is"));
        }
        let watch = Watch::start(&args.watch, Options::default());
        services.spawn(feed.clone().watching(watch, how.clone()));
    }
    if let Some(url) = &args.from {
        receive(url, feed, how, &mut services).await?;
    }
    Ok(services)
}

#[cfg(feature = "nats")]
async fn receive(
    url: &str,
    feed: Feed,
    how: EnqueueOptions,
    services: &mut Services,
) -> Result<(), Failure> {
    use crate::adapters::nats::{NatsUrl, Source, SourceConfig};
    let url = NatsUrl::parse(url).map_err(|error| Failure::usage(format!("--from: {error}")))?;
    let source = Source::connect(&url, SourceConfig::default()).await;
    let source = source.map_err(|error| Failure::failed(error.to_string()))?;
    services.spawn(feed.receiving(source, how));
    Ok(())
}

#[cfg(not(feature = "nats"))]
async fn receive(_: &str, _: Feed, _: EnqueueOptions, _: &mut Services) -> Result<(), Failure> {
    let how = "build it with `cargo build --release --features nats`";
    Err(Failure::usage(format!("--from: this program was built without NATS: {how}")))
}

/// Waits until all services have ended, and returns the first problem.
pub(super) async fn end(mut services: Services) -> Option<String> {
    let mut needs = None;
    while let Some(ended) = services.join_next().await {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(line)) => needs = needs.or(Some(line)),
            Err(died) => {
                if let Ok(panic) = died.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }
    needs
}
