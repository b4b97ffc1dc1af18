//! Works on the queue: claims as many jobs as the endpoint bears calls, and waits where there are none.

mod bench;
mod counts;
mod job;
mod keeper;
mod leases;
mod outage;
mod turn;

pub use counts::{Counts, End, Jobs, Report};

use super::asking::{Model, Patience};
use super::judging::Judge;
use super::setup::Setup;
use super::steady::{Bearing, Steady};
use super::tally::Tally;
use crate::config::Config;
use crate::domain::Timestamp;
use crate::edge::store::{Store, StoreError};
use bench::Bench;
use keeper::Keeper;
use leases::Leases;
use outage::Outage;
use std::sync::atomic::{AtomicI64, AtomicU32};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How long a store in trouble is tried again, in seconds: a database restarts in less, and a person
/// can make room on a disk.
const STORE_PATIENCE: Duration = Duration::from_secs(300);

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
        let (until, longest) = (self.until, self.config.limits.wait_max);
        let started_at = (self.clock)();
        let keeper = Keeper { id: self.id.clone(), started_at };
        let bench = &Arc::new(self.bench().await?);
        let asking = bench.extractor.asking_digest;
        let opening = |store: Store| async move {
            store.recover(started_at).await?;
            store.reopen(asking, started_at).await
        };
        let reopened = bench.steady().keep(opening).await?;
        bench.steady().keep(|_| keeper.say(bench)).await?;
        tracing::info!(worker.id = keeper.id, reopened, "working");
        let over = CancellationToken::new();
        let work = async {
            let end = turn::work(bench, (&keeper.id, until), longest).await;
            over.cancel();
            end
        };
        let (end, ()) = tokio::join!(work, keeper.beat(bench, &over));
        let end = end?;
        match &end {
            // Others, and people, see why.
            End::Needs(_) => bench.steady().keep(|_| keeper.say(bench)).await?,
            End::Asked | End::Nothing => {
                let id = keeper.id.as_str();
                bench.steady().keep(|store| async move { store.leave(id).await }).await?;
            }
        }
        let left = bench.steady().keep(|store| async move { store.left(started_at).await }).await?;
        Ok(Report { end, started_at, left })
    }

    async fn bench(self) -> Result<Bench, StoreError> {
        let Consumer { config, model, model_name, store, closing, tally, counts, .. } = self;
        let bearing = Bearing {
            patience: STORE_PATIENCE,
            grace: config.queue.grace,
            closing: closing.clone(),
            tell: self.tell,
            meters: tally.meters().cloned(),
        };
        let setup = Setup {
            config: &config,
            model,
            model_name: &model_name,
            steady: Steady::new(store, bearing),
            patience: Patience::ComesBack,
            tally,
            cancel: closing.clone(),
            grace: config.queue.grace,
            clock: self.clock,
        };
        let extractor = setup.extractor().await?;
        let judge = config
            .consolidate
            .model
            .as_deref()
            .map(|name| Arc::new(Judge::beside(Arc::clone(&extractor.asker), &config, name)));
        Ok(Bench {
            extractor,
            judge,
            queue: config.queue.clone(),
            thresholds: config.consolidate.thresholds,
            leases: Leases::default(),
            outage: Outage::default(),
            counts,
            closing,
            tell: self.tell,
            extended_at: AtomicI64::new((self.clock)().0),
            asking: AtomicU32::new(0),
            freed: Notify::new(),
            needs: Mutex::new(None),
        })
    }
}
