//! Retries store operations while the store is unavailable: locked, full or restarting. Reports an outage once.

use crate::adapters::metrics::Meters;
use crate::llm::back_off;
use crate::store::{Store, StoreResult};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Maximum pause between two tries, so that pending work is stored soon after an outage.
const PAUSE_MAX: Duration = Duration::from_secs(5);

pub(crate) struct RetryingStore {
    /// The store without retries.
    pub(crate) inner: Store,
    policy: RetryPolicy,
    is_troubled: AtomicBool,
}

pub(crate) struct RetryPolicy {
    /// Maximum total pause; zero returns the first error.
    pub(crate) wait_max: Duration,
    /// The same once `closing` is cancelled.
    pub(crate) grace: Duration,
    pub(crate) closing: CancellationToken,
    pub(crate) tell: fn(&str),
    pub(crate) meters: Option<Arc<Meters>>,
}

impl RetryPolicy {
    /// Returns the first error at once, for commands that a person waits for.
    pub(crate) fn none() -> RetryPolicy {
        RetryPolicy {
            wait_max: Duration::ZERO,
            grace: Duration::ZERO,
            closing: CancellationToken::new(),
            tell: |_| {},
            meters: None,
        }
    }
}

impl RetryingStore {
    pub(crate) fn new(store: Store, policy: RetryPolicy) -> RetryingStore {
        RetryingStore { inner: store, policy, is_troubled: AtomicBool::new(false) }
    }

    /// Repeats `work` until the store accepts it. Fails with permanent errors, and those that outlast the policy's wait.
    pub(crate) async fn retry<'s, T, F>(&'s self, work: impl Fn(&'s Store) -> F) -> StoreResult<T>
    where
        F: Future<Output = StoreResult<T>>,
    {
        let RetryingStore { policy, is_troubled, .. } = self;
        let (mut waited, mut tries) = (Duration::ZERO, 0);
        loop {
            let error = match work(&self.inner).await {
                Ok(done) => {
                    if is_troubled.swap(false, Ordering::Relaxed) {
                        (policy.tell)("the store is available again");
                    }
                    return Ok(done);
                }
                Err(error) => error,
            };
            let closing = policy.closing.is_cancelled();
            let wait_max = if closing { policy.grace } else { policy.wait_max };
            if !error.is_transient() || wait_max <= waited {
                return Err(error);
            }
            if let Some(meters) = &policy.meters {
                meters.store_failed();
            }
            if !is_troubled.swap(true, Ordering::Relaxed) {
                let secs = policy.wait_max.as_secs();
                let kept = format!("{error}; work in progress is kept and retried for {secs} s");
                (policy.tell)(&kept);
            }
            tries += 1;
            let pause = back_off(tries, 0).min(PAUSE_MAX).min(wait_max - waited);
            waited += pause;
            tokio::time::sleep(pause).await;
        }
    }
}
