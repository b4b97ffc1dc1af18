//! What must reach the store although it is in trouble for a while: locked, full, restarting. Tried
//! again until it is kept, within a bound, and said once.

use crate::adapters::metrics::Meters;
use crate::llm::back_off;
use crate::store::{Store, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The longest pause between two tries, in seconds: what is in hand should be kept soon after the
/// trouble is over.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A store that is asked again.
#[derive(Clone)]
pub(crate) struct RetryingStore {
    store: Store,
    shared: Arc<Shared>,
}

struct Shared {
    policy: RetryPolicy,
    troubled: AtomicBool,
}

/// How much trouble is borne.
pub(crate) struct RetryPolicy {
    /// For how long it is tried again; nothing gives up at the first error.
    pub(crate) patience: Duration,
    /// For how long once somebody asked to stop.
    pub(crate) grace: Duration,
    /// Somebody asked to stop.
    pub(crate) closing: CancellationToken,
    /// Says a line to a person.
    pub(crate) tell: fn(&str),
    /// Counts what the store failed to do, if somebody looks.
    pub(crate) meters: Option<Arc<Meters>>,
}

impl RetryingStore {
    pub(crate) fn new(store: Store, policy: RetryPolicy) -> RetryingStore {
        let troubled = AtomicBool::new(false);
        RetryingStore { store, shared: Arc::new(Shared { policy, troubled }) }
    }

    /// The store without retries.
    pub(crate) fn inner(&self) -> &Store {
        &self.store
    }

    /// Repeats `work` until the store accepts it.
    ///
    /// # Errors
    /// Those that do not pass, or not in time.
    pub(crate) async fn retry<T, F>(&self, work: impl Fn(Store) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let policy = &self.shared.policy;
        let (mut waited, mut tries) = (Duration::ZERO, 0);
        loop {
            let error = match work(self.store.clone()).await {
                Ok(done) => {
                    self.over();
                    return Ok(done);
                }
                Err(error) => error,
            };
            let closing = policy.closing.is_cancelled();
            let patience = if closing { policy.grace } else { policy.patience };
            if !error.is_passing() || patience <= waited {
                return Err(error);
            }
            if let Some(meters) = &policy.meters {
                meters.store_failed();
            }
            self.trouble(&error);
            tries += 1;
            let pause = back_off(tries, 0).min(PAUSE_MAX).min(patience - waited);
            waited += pause;
            tokio::time::sleep(pause).await;
        }
    }

    fn trouble(&self, error: &StoreError) {
        if !self.shared.troubled.swap(true, Ordering::Relaxed) {
            let secs = self.shared.policy.patience.as_secs();
            let line = format!("{error}; what is in hand is kept and tried again for {secs} s");
            (self.shared.policy.tell)(&line);
        }
    }

    fn over(&self) {
        if self.shared.troubled.swap(false, Ordering::Relaxed) {
            (self.shared.policy.tell)("the store takes what it is given again");
        }
    }
}
