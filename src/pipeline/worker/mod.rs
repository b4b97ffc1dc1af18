//! The worker: claims as many jobs as the endpoint can take calls, and waits when there are none.

mod claim_loop;
mod job;
mod state;
mod tasks;

pub(super) use state::Batch;
pub use state::{Counts, Until};
pub(crate) use state::{End, Jobs, Report};

use super::adjudicate::Adjudicator;
use super::extractor::{Extractor, ModelSource};
use super::model_client::{CallRetry, Model};
use super::retrying_store::RetryPolicy;
use super::tally::Tally;
use crate::adapters::clock::Drift;
use crate::adapters::process;
use crate::config::Config;
use crate::domain::Timestamp;
use crate::store::{Store, StoreResult, WorkerStatus};
use state::{CircuitBreaker, Leases, WorkerState};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Maximum time to retry an unavailable store: a database restarts in less, and a person can free disk space.
const STORE_RETRY_MAX: Duration = Duration::from_secs(300);

/// Grace period for a replay's calls in flight after a stop.
const GRACE: Duration = Duration::from_secs(5);

/// A worker before it runs.
pub struct Consumer {
    /// Settings.
    pub config: Config,
    /// Source of answers.
    pub model: Model,
    /// The model's name, in requests and in runs.
    pub model_name: String,
    /// The queue and the records.
    pub store: Store,
    /// Its name among the workers.
    pub id: String,
    /// Condition on which it ends.
    pub until: Until,
    /// When cancelled, it claims no more jobs, lets calls in flight end, and releases the rest.
    pub closing: CancellationToken,
    /// Held by the feeds that fill the queue; the worker is not drained before they end.
    pub feeding: Weak<()>,
    /// Counts calls and their cost.
    pub tally: Arc<Tally>,
    /// Counts jobs.
    pub counts: Arc<Counts>,
    /// Prints a line for the user.
    pub tell: fn(&str),
    /// The clock.
    pub clock: fn() -> Timestamp,
}

impl Consumer {
    /// Works until the condition in `until` is met.
    ///
    /// # Errors
    /// Permanent store errors.
    pub async fn run(self) -> StoreResult<Report> {
        self.work(None).await
    }

    /// As [`Consumer::run`], but only for the jobs of `batch`, if there is one.
    pub(super) async fn work(self, batch: Option<Arc<Batch>>) -> StoreResult<Report> {
        let (until, outage_max) = (self.until, self.config.limits.wait_max);
        let state = &Arc::new(self.state(batch).await?);
        let started_at = state.started_at;
        let asking = state.extractor.asking;
        let reopens = state.batch.is_none();
        let reopened = state.store().retry(|store| async move {
            let gone = store.holders().await?.into_iter().filter(|it| process::is_gone(it));
            store.abandon_leases(gone.collect(), started_at).await?;
            store.recover(started_at).await?;
            if reopens { store.reopen(asking, started_at).await } else { Ok(0) }
        });
        let reopened = reopened.await?;
        state.store().retry(|_| state.report()).await?;
        tracing::info!(worker.id = state.id, reopened, "worker started");
        let over = CancellationToken::new();
        let work = async {
            let end = claim_loop::run(state, until, outage_max).await;
            over.cancel();
            end
        };
        let (end, ()) = tokio::join!(work, state.beat(&over));
        let end = end?;
        match &end {
            // Keeps the status, so that other processes show the reason. The cap of a replay is the status of its jobs.
            End::Needs(_) if state.batch.is_none() || state.capped.get().is_none() => {
                state.store().retry(|_| state.report()).await?;
            }
            End::Needs(_) | End::Asked | End::Nothing => {
                state.store().retry(|store| store.leave(&state.id)).await?;
            }
        }
        let left = state.left(started_at).await?;
        Ok(Report { end, left })
    }

    async fn state(self, batch: Option<Arc<Batch>>) -> StoreResult<WorkerState> {
        let Consumer { config, model, model_name, store, id, closing, feeding, tally, .. } = self;
        // A user waits for a replay, so store errors are reported at once, and calls are retried at once instead of
        // later.
        let waits = batch.is_some();
        let policy = RetryPolicy {
            wait_max: if waits { Duration::ZERO } else { STORE_RETRY_MAX },
            grace: if waits { Duration::ZERO } else { config.queue.grace },
            closing: closing.clone(),
            tell: self.tell,
            meters: tally.meters.clone(),
        };
        let retry = if waits { CallRetry::within(&config.limits) } else { CallRetry::Defer };
        let source = ModelSource {
            config: &config,
            model,
            model_name: &model_name,
            store,
            cancel: closing.clone(),
            clock: self.clock,
        };
        let grace = if waits { GRACE } else { config.queue.grace };
        let client = Arc::new(source.client(policy, tally, grace).await?);
        let extractor = Extractor::new(client, &config, &model_name);
        let adjudicating = config.consolidate.model_name(&model_name).filter(|_| !waits);
        let adjudicator = adjudicating.map(|name| {
            Arc::new(Adjudicator::with_client(Arc::clone(&extractor.client), &config, name))
        });
        Ok(WorkerState {
            id,
            started_at: (self.clock)(),
            extractor,
            retry,
            adjudicator,
            queue: config.queue.clone(),
            batch,
            thresholds: config.consolidate.thresholds,
            leases: Leases::default(),
            breaker: CircuitBreaker::default(),
            counts: self.counts,
            closing,
            feeding,
            tell: self.tell,
            extended_at: AtomicI64::new((self.clock)().0),
            calling: AtomicU32::new(0),
            freed: Notify::new(),
            capped: OnceLock::new(),
            no_model: OnceLock::new(),
            is_limited: AtomicBool::new(false),
            has_forgotten: AtomicBool::new(false),
            needs: OnceLock::new(),
        })
    }
}

/// Beats per lease, so that two may be missed.
const BEATS: u32 = 3;
/// Maximum interval: a worker is shown as gone if a few beats are missing.
const BEAT_MAX: Duration = Duration::from_secs(10);
/// Interval after a failed beat.
const BEAT_AGAIN: Duration = Duration::from_secs(1);
/// Maximum step back, in milliseconds, that is a normal clock correction; a longer one means the clock was set.
const BACK_MILLIS: i64 = 2_000;

impl WorkerState {
    async fn report(&self) -> StoreResult<()> {
        let presence = WorkerStatus {
            id: self.id.clone(),
            started_at: self.started_at,
            seen_at: self.now(),
            stopped: self.needs(),
        };
        self.store().inner.seen(presence).await
    }

    /// Extends the leases, watches the clock and reports the worker's presence, until `over`.
    async fn beat(&self, over: &CancellationToken) {
        let whole = (self.queue.lease / BEATS).min(BEAT_MAX);
        let (mut pause, mut drift) = (whole, Drift::new(self.now()));
        loop {
            tokio::select! {
                () = over.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = match self.beat_once(&mut drift).await {
                Ok(()) => whole,
                Err(error) => {
                    tracing::warn!(kind = ?error.kind, doing = error.doing, "heartbeat failed");
                    whole.min(BEAT_AGAIN)
                }
            };
        }
    }

    async fn beat_once(&self, drift: &mut Drift) -> StoreResult<()> {
        let now = self.now();
        let ahead = drift.since_last(now);
        self.extend().await?;
        if ahead < -BACK_MILLIS {
            // Times stored earlier are in the future now.
            let jobs = self.store().inner.recover(now).await?;
            tracing::warn!(millis = -ahead, jobs, "the clock went backwards");
        }
        self.report().await
    }
}
