//! Services of a worker: folders that are watched, a stream that is received, the metrics page. They end with
//! the worker.

use crate::adapters::clock;
use crate::adapters::metrics::{Health, Jobs, Listener, Meters, Snapshot, StatusPages};
use crate::adapters::watch::{Options, Watch};
use crate::cli::hand_over;
use crate::cli::output::{self, Failure};
use crate::config::Config;
use crate::domain::{Coverage, Timestamp};
use crate::pipeline::{Enqueuer, Feed, Gather, HandOver};
use crate::store::{Store, StoreError};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Maximum age of the entry counts of a page; counting reads every session.
const COVERAGE_AGE_MAX: Duration = Duration::from_secs(60);

/// Interval between two looks at what hooks could not hand over.
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

/// The worker that services run for.
pub(super) struct WorkerContext<'a> {
    pub(super) config: &'a Config,
    pub(super) model_name: &'a str,
    pub(super) store: &'a Store,
    pub(super) closing: &'a CancellationToken,
    pub(super) meters: &'a Arc<Meters>,
    /// Held by each folder and stream until its end, if they are not followed any further.
    pub(super) drain: Option<Arc<()>>,
}

/// Running services; each ends with the problem that a person must solve, if there is one.
pub(super) type Services = JoinSet<Result<(), String>>;

pub(super) async fn start(
    args: &ServiceArgs,
    worker: WorkerContext<'_>,
) -> Result<Services, Failure> {
    let WorkerContext { config, model_name, store, closing, meters, drain } = worker;
    let mut services = Services::new();
    if let Some(addr) = args.metrics {
        let listener = Listener::bind(addr).await;
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
            listener.serve(pages, closing).await;
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
    let gather = Gather { tokens: config.queue.gather_tokens, idle: config.queue.idle };
    let enqueuer = Enqueuer::new(config, model_name, gather, store.clone(), clock::now);
    let counted = Arc::clone(meters);
    let feed = Feed {
        enqueuer: Arc::new(enqueuer),
        closing: closing.clone(),
        drain,
        tell: output::note,
        enqueued: Arc::new(move |jobs| counted.enqueued(jobs)),
    };
    // Nobody is there to cut later what would wait for more of its session.
    let how = HandOver { flush: feed.drain.is_some(), ..HandOver::default() };
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
    how: HandOver,
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
async fn receive(_: &str, _: Feed, _: HandOver, _: &mut Services) -> Result<(), Failure> {
    let how = "build it with `cargo build --release --features nats`";
    Err(Failure::usage(format!("--from: this program was built without NATS: {how}")))
}

/// Waits until all services have ended; returns the first problem.
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

/// The last entry counts, with their time.
type CachedCoverage = Arc<Mutex<Option<(Timestamp, Coverage)>>>;

fn status_pages(store: Store, meters: Arc<Meters>, closing: CancellationToken) -> StatusPages {
    let health = Arc::new(Health::default());
    let told = Arc::clone(&health);
    tokio::spawn(async move {
        closing.cancelled().await;
        told.ill("stopping");
    });
    let cache = CachedCoverage::default();
    StatusPages::new(meters, health, move || snapshot(store.clone(), Arc::clone(&cache)))
}

async fn snapshot(store: Store, cache: CachedCoverage) -> Result<Snapshot, StoreError> {
    let now = clock::now();
    let depth = store.depth(now).await?;
    let mut snapshot = Snapshot::default();
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
    snapshot.jobs.insert(crate::domain::JobState::Dead, dead);
    let cancelled = Jobs { jobs: depth.cancelled, oldest: None };
    snapshot.jobs.insert(crate::domain::JobState::Cancelled, cancelled);
    snapshot.coverage = coverage(&store, now, &cache).await?;
    Ok(snapshot)
}

async fn coverage(
    store: &Store,
    now: Timestamp,
    cache: &CachedCoverage,
) -> Result<Coverage, StoreError> {
    let known = *cache.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((at, coverage)) = known
        && at <= now
        && now.since(at) < COVERAGE_AGE_MAX
    {
        return Ok(coverage);
    }
    let sum = store.status().await?.coverage();
    *cache.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, sum));
    Ok(sum)
}
