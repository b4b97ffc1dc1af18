//! Works on the queue: claims as many jobs as the endpoint bears calls, and waits where there are none.

mod batch;
mod state;
mod counts;
mod job;
mod heartbeat;
mod leases;
mod circuit_breaker;
mod claim_loop;

pub(super) use batch::Batch;
pub use counts::{Counts, End, Jobs, Report};

use super::adjudicate::Adjudicator;
use super::model_client::{CallRetry, Model};
use super::retrying_store::{RetryPolicy, RetryingStore};
use super::setup::Setup;
use super::tally::Tally;
use crate::adapters::process;
use crate::config::Config;
use crate::domain::Timestamp;
use crate::store::{Store, StoreError};
use circuit_breaker::CircuitBreaker;
use heartbeat::Heartbeat;
use leases::Leases;
use state::WorkerState;
use std::sync::atomic::{AtomicI64, AtomicU32};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How long a store in trouble is tried again, in seconds: a database restarts in less, and a person
/// can make room on a disk.
const STORE_PATIENCE: Duration = Duration::from_secs(300);

/// How long a call of a replay is waited for once somebody asked to stop.
const GRACE: Duration = Duration::from_secs(5);

/// When a worker is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Until {
    /// When somebody stops it.
    Stopped,
    /// When nothing is left that could be done, now or after a while.
    Drained,
    /// After one job.
    OneJob,
}

/// What a worker works with.
pub struct Consumer {
    /// Settings.
    pub config: Config,
    /// What answers.
    pub model: Model,
    /// The model's name: in requests and in runs.
    pub model_name: String,
    /// The queue, and where what is found is kept.
    pub store: Store,
    /// Its name among the workers.
    pub id: String,
    /// When it is done.
    pub until: Until,
    /// Cancelled, it claims no more, lets calls under way end, and gives back the rest.
    pub closing: CancellationToken,
    /// Counts calls and what they cost.
    pub tally: Arc<Tally>,
    /// Counts jobs.
    pub counts: Arc<Counts>,
    /// Says a line to a person.
    pub tell: fn(&str),
    /// Tells the time.
    pub clock: fn() -> Timestamp,
}

impl Consumer {
    /// Works until it is done.
    ///
    /// # Errors
    /// The store's, if they do not pass.
    pub async fn run(self) -> Result<Report, StoreError> {
        self.work(None).await
    }

    /// As [`Consumer::run`], on the jobs of a batch alone.
    pub(super) async fn drain(self, batch: Arc<Batch>) -> Result<Report, StoreError> {
        self.work(Some(batch)).await
    }

    async fn work(self, batch: Option<Arc<Batch>>) -> Result<Report, StoreError> {
        let (until, longest) = (self.until, self.config.limits.wait_max);
        let started_at = (self.clock)();
        let heartbeat = Heartbeat { id: self.id.clone(), started_at };
        let state = &Arc::new(self.state(batch).await?);
        let asking = state.extractor.asking_digest;
        let reopens = state.batch.is_none();
        let opening = |store: Store| async move {
            let gone = store.holders().await?.into_iter().filter(|it| process::is_gone(it));
            store.abandon_leases(gone.collect(), started_at).await?;
            store.recover(started_at).await?;
            if reopens { store.reopen(asking, started_at).await } else { Ok(0) }
        };
        let reopened = state.store().retry(opening).await?;
        state.store().retry(|_| heartbeat.say(state)).await?;
        tracing::info!(worker.id = heartbeat.id, reopened, "working");
        let over = CancellationToken::new();
        let work = async {
            let end = claim_loop::run(state, (&heartbeat.id, until), longest).await;
            over.cancel();
            end
        };
        let (end, ()) = tokio::join!(work, heartbeat.beat(state, &over));
        let end = end?;
        match &end {
            // Others, and people, see why.
            End::Needs(_) if state.batch.is_none() => {
                state.store().retry(|_| heartbeat.say(state)).await?;
            }
            End::Needs(_) | End::Asked | End::Nothing => {
                let id = heartbeat.id.as_str();
                state.store().retry(|store| async move { store.leave(id).await }).await?;
            }
        }
        let left = state.left(started_at).await?;
        Ok(Report { end, started_at, left })
    }

    async fn state(self, batch: Option<Arc<Batch>>) -> Result<WorkerState, StoreError> {
        let Consumer { config, model, model_name, store, closing, tally, counts, .. } = self;
        // Somebody waits for a replay: a store in trouble is told at once, and calls are tried again
        // at once instead of later.
        let waits = batch.is_some();
        let (store_patience, grace, patience) = if waits {
            let (tries_max, wait_max) = (config.limits.tries_max, config.limits.wait_max);
            (Duration::ZERO, GRACE, CallRetry::Waits { tries_max, wait_max })
        } else {
            (STORE_PATIENCE, config.queue.grace, CallRetry::ComesBack)
        };
        let policy = RetryPolicy {
            patience: store_patience,
            grace: if waits { Duration::ZERO } else { grace },
            closing: closing.clone(),
            tell: self.tell,
            meters: tally.meters().cloned(),
        };
        let setup = Setup {
            config: &config,
            model,
            model_name: &model_name,
            store: RetryingStore::new(store, policy),
            patience,
            tally,
            cancel: closing.clone(),
            grace,
            clock: self.clock,
        };
        let extractor = setup.extractor().await?;
        let adjudicator = config.consolidate.model.as_deref().filter(|_| !waits).map(|name| {
            Arc::new(Adjudicator::beside(Arc::clone(&extractor.client), &config, name))
        });
        Ok(WorkerState {
            extractor,
            adjudicator,
            queue: config.queue.clone(),
            batch,
            thresholds: config.consolidate.thresholds,
            leases: Leases::default(),
            breaker: CircuitBreaker::default(),
            counts,
            closing,
            tell: self.tell,
            extended_at: AtomicI64::new((self.clock)().0),
            asking: AtomicU32::new(0),
            freed: Notify::new(),
            capped: OnceLock::new(),
            needs: Mutex::new(None),
        })
    }
}
