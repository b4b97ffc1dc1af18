//! What works beside the consumer: folders that are watched, a stream that is received, and the page that
//! shows numbers. All of it ends with the consumer.

use super::Args;
use crate::adapters::clock;
use crate::adapters::metrics::{Health, Jobs, Listener, Meters, Snapshot, StatusPages};
use crate::adapters::nats::{NatsUrl, Source, SourceConfig};
use crate::adapters::watch::{Options, Watch};
use crate::cli::output::{self, Failure};
use crate::config::Config;
use crate::domain::{Coverage, Timestamp};
use crate::pipeline::{Enqueuer, Feed, Gather, HandOver};
use crate::store::{Store, StoreError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How old the count of what became of every entry may be, in seconds: it reads all of them.
const COVERAGE_KEPT: Duration = Duration::from_secs(60);

/// What works beside the consumer; each says at its end what a person must do, if anything.
pub(super) type Beside = JoinSet<Result<(), String>>;

/// Starts what the flags ask for.
pub(super) async fn start(
    args: &Args,
    (config, model_name): (&Config, &str),
    (store, closing): (&Store, &CancellationToken),
    meters: &Arc<Meters>,
) -> Result<Beside, Failure> {
    let mut beside = Beside::new();
    if let Some(addr) = args.metrics {
        let listener = Listener::bind(addr).await;
        let listener = listener.map_err(|error| Failure::usage(format!("--metrics: {error}")))?;
        output::note(&format!("metrics at http://{}/metrics", listener.addr()));
        let pages = status_pages(store.clone(), Arc::clone(meters), closing.clone());
        let closing = closing.clone();
        beside.spawn(async move {
            listener.serve(pages, closing).await;
            Ok(())
        });
    }
    if args.watch.is_empty() && args.from.is_none() {
        return Ok(beside);
    }
    let gather = Gather { tokens: config.queue.gather_tokens, idle: config.queue.idle };
    let enqueuer = Enqueuer::new(config, model_name, gather, store.clone(), clock::now);
    let counted = Arc::clone(meters);
    let feed = Feed {
        enqueuer: Arc::new(enqueuer),
        closing: closing.clone(),
        tell: output::note,
        enqueued: Arc::new(move |jobs| counted.enqueued(jobs)),
    };
    if !args.watch.is_empty() {
        for path in args.watch.iter().filter(|path| !path.exists()) {
            let path = path.display();
            output::note(&format!("{path}: is not there yet; it is followed once it is"));
        }
        let watch = Watch::start(&args.watch, Options::default());
        beside.spawn(feed.clone().watching(watch, HandOver::default()));
    }
    if let Some(url) = &args.from {
        let url =
            NatsUrl::parse(url).map_err(|error| Failure::usage(format!("--from: {error}")))?;
        let source = Source::connect(&url, SourceConfig::default()).await;
        let source = source.map_err(|error| Failure::failed(error.to_string()))?;
        beside.spawn(feed.receiving(source, HandOver::default()));
    }
    Ok(beside)
}

/// Waits until all have ended; gives the first line that a person must read.
pub(super) async fn end(mut beside: Beside) -> Option<String> {
    let mut needs = None;
    while let Some(ended) = beside.join_next().await {
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

/// What was counted when.
type Kept = Arc<Mutex<Option<(Timestamp, Coverage)>>>;

fn status_pages(store: Store, meters: Arc<Meters>, closing: CancellationToken) -> StatusPages {
    let health = Arc::new(Health::default());
    let told = Arc::clone(&health);
    tokio::spawn(async move {
        closing.cancelled().await;
        told.ill("stopping");
    });
    let kept = Kept::default();
    StatusPages::new(meters, health, move || snapshot(store.clone(), Arc::clone(&kept)))
}

async fn snapshot(store: Store, kept: Kept) -> Result<Snapshot, StoreError> {
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
    snapshot.coverage = coverage(&store, now, &kept).await?;
    Ok(snapshot)
}

async fn coverage(store: &Store, now: Timestamp, kept: &Kept) -> Result<Coverage, StoreError> {
    let known = *kept.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((at, coverage)) = known
        && at <= now
        && now.since(at) < COVERAGE_KEPT
    {
        return Ok(coverage);
    }
    let mut sum = Coverage::default();
    for session in store.status().await?.sessions {
        sum.extracted += session.coverage.extracted;
        sum.nothing += session.coverage.nothing;
        sum.skipped += session.coverage.skipped;
        sum.failed += session.coverage.failed;
        sum.pending += session.coverage.pending;
    }
    *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, sum));
    Ok(sum)
}
