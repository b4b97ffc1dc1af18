//! The two pages. What stands in the store is asked for when somebody looks, and kept for a moment, so
//! that no number of readers loads the store.

use super::health::Health;
use super::meters::Meters;
use super::snapshot::{self, Snapshot};
use prometheus_client::encoding::text;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// How long the store may take for a snapshot. Prometheus gives a page 10 seconds by default.
pub const SNAPSHOT_WAIT_MAX: Duration = Duration::from_secs(2);
/// How long a snapshot is kept, and a failure to make one: whoever asks meanwhile gets the same.
pub const SNAPSHOT_KEPT: Duration = Duration::from_secs(1);

// A reader waits for another one's snapshot, then perhaps for its own.
const _: () = assert!(2 * SNAPSHOT_WAIT_MAX.as_secs() < 10);

type Asked = Pin<Box<dyn Future<Output = Result<Snapshot, String>> + Send>>;

/// What is shown, and where it comes from.
pub struct Panel {
    meters: Arc<Meters>,
    health: Arc<Health>,
    ask: Box<dyn Fn() -> Asked + Send + Sync>,
    kept: Mutex<Option<Kept>>,
}

struct Kept {
    at: Instant,
    snapshot: Option<Arc<Snapshot>>,
}

impl Panel {
    /// Shows `meters`, `health`, and what `ask` counts in the store when a page is read. `ask` may fail
    /// and may be dropped while it waits; its error is logged, so it holds no words.
    pub fn new<F, E>(
        meters: Arc<Meters>,
        health: Arc<Health>,
        ask: impl Fn() -> F + Send + Sync + 'static,
    ) -> Panel
    where
        F: Future<Output = Result<Snapshot, E>> + Send + 'static,
        E: fmt::Display,
    {
        let ask = move || -> Asked {
            let asked = ask();
            Box::pin(async move { asked.await.map_err(|error| error.to_string()) })
        };
        Panel { meters, health, ask: Box::new(ask), kept: Mutex::new(None) }
    }

    /// The page for Prometheus. Comes in twice [`SNAPSHOT_WAIT_MAX`] at the latest, whatever the store
    /// does.
    pub(super) async fn page(&self) -> Result<String, fmt::Error> {
        let snapshot = timeout(SNAPSHOT_WAIT_MAX, self.kept.lock()).await;
        let snapshot = match snapshot {
            Ok(kept) => self.fresh(kept).await,
            Err(_) => None,
        };
        let mut page = String::new();
        text::encode_registry(&mut page, self.meters.registry())?;
        text::encode_registry(&mut page, &snapshot::registry(snapshot.as_deref()))?;
        text::encode_eof(&mut page)?;
        Ok(page)
    }

    /// Why the process is of no use, if it is not.
    pub(super) fn illness(&self) -> Option<String> {
        self.health.reason()
    }

    async fn fresh(
        &self,
        mut kept: tokio::sync::MutexGuard<'_, Option<Kept>>,
    ) -> Option<Arc<Snapshot>> {
        if let Some(kept) = kept.as_ref().filter(|kept| kept.at.elapsed() < SNAPSHOT_KEPT) {
            return kept.snapshot.clone();
        }
        let was_up = kept.as_ref().is_none_or(|kept| kept.snapshot.is_some());
        let snapshot = match timeout(SNAPSHOT_WAIT_MAX, (self.ask)()).await {
            Ok(Ok(snapshot)) => Some(Arc::new(snapshot)),
            // Said once for each time that the store goes away, not for each page.
            Ok(Err(error)) => {
                if was_up {
                    tracing::warn!(error, "metrics without the store: it did not answer");
                }
                None
            }
            Err(_) => {
                if was_up {
                    let secs = SNAPSHOT_WAIT_MAX.as_secs();
                    tracing::warn!(secs, "metrics without the store: it took too long");
                }
                None
            }
        };
        *kept = Some(Kept { at: Instant::now(), snapshot: snapshot.clone() });
        snapshot
    }
}

impl fmt::Debug for Panel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Panel").field("health", &self.health).finish_non_exhaustive()
    }
}
