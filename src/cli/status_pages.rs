//! Store metrics for `/metrics`, and the health of the process.

use crate::adapters::clock;
use crate::adapters::metrics::{Health, Jobs, Meters, Snapshot, StatusPages};
use crate::domain::{Coverage, Timestamp};
use crate::store::{Store, StoreError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Maximum age of cached entry counts; counting reads every session.
const COVERAGE_AGE_MAX: Duration = Duration::from_secs(60);

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
    let cache = CachedCoverage::default();
    StatusPages::new(meters, health, move || snapshot(store.clone(), Arc::clone(&cache)))
}

/// Last entry counts and their time.
type CachedCoverage = Arc<Mutex<Option<(Timestamp, Coverage)>>>;

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
