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
pub(crate) struct Steady {
    store: Store,
    shared: Arc<Shared>,
}

struct Shared {
    bearing: Bearing,
    troubled: AtomicBool,
}

/// How much trouble is borne.
pub(crate) struct Bearing {
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

impl Steady {
    pub(crate) fn new(store: Store, bearing: Bearing) -> Steady {
        let troubled = AtomicBool::new(false);
        Steady { store, shared: Arc::new(Shared { bearing, troubled }) }
    }

    /// The store itself.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Does `work` until the store takes it.
    ///
    /// # Errors
    /// The store's, if it does not pass, or not in time.
    pub(crate) async fn keep<T, F>(&self, work: impl Fn(Store) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let bearing = &self.shared.bearing;
        let (mut waited, mut tries) = (Duration::ZERO, 0);
        loop {
            let error = match work(self.store.clone()).await {
                Ok(done) => {
                    self.over();
                    return Ok(done);
                }
                Err(error) => error,
            };
            let closing = bearing.closing.is_cancelled();
            let patience = if closing { bearing.grace } else { bearing.patience };
            if !error.is_passing() || patience <= waited {
                return Err(error);
            }
            if let Some(meters) = &bearing.meters {
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
            let secs = self.shared.bearing.patience.as_secs();
            let line = format!("{error}; what is in hand is kept and tried again for {secs} s");
            (self.shared.bearing.tell)(&line);
        }
    }

    fn over(&self) {
        if self.shared.troubled.swap(false, Ordering::Relaxed) {
            (self.shared.bearing.tell)("the store takes what it is given again");
        }
    }
}
