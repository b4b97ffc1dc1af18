//! The right to change the memory of a namespace, for as long as it takes and not much longer: it is short, and is
//! prolonged while its holder lives. Who was killed holds others up for seconds, on the same machine not at all.

use crate::domain::Timestamp;
use crate::edge::process;
use crate::edge::store::{Store, StoreError, Tenure};
use std::time::Duration;
use tokio::task::JoinHandle;

/// How long a namespace is held without a sign of life.
const LEASE: Duration = Duration::from_secs(15);
/// How often it is prolonged: two may fail.
const RENEW_EVERY: Duration = Duration::from_secs(5);
/// How often we ask for a namespace that somebody else holds.
const ASKS_MAX: u32 = 100;
/// How long we wait between two asks: with [`ASKS_MAX`] twenty seconds in all, longer than a dead one holds it.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// Who asks for it.
#[derive(Clone, Copy)]
pub(super) struct Asks<'a> {
    pub(super) store: &'a Store,
    /// Its name, by which others find out whether it lives.
    pub(super) holder: &'a str,
    pub(super) clock: fn() -> Timestamp,
    /// Whether it waits for somebody else.
    pub(super) waits: bool,
}

/// The right, until it is left.
pub(super) struct Held {
    pub(super) tenure: Tenure,
    store: Store,
    renewing: JoinHandle<()>,
}

impl Asks<'_> {
    /// None where somebody else has it.
    pub(super) async fn take(self, namespace: &str) -> Result<Option<Held>, StoreError> {
        let asks = if self.waits { ASKS_MAX } else { 1 };
        for ask in 0..asks {
            if ask > 0 {
                tokio::time::sleep(ASK_EVERY).await;
            }
            let now = (self.clock)();
            let until = (self.holder, now.after(LEASE));
            let taken = self.store.take_tenure(namespace, until, (now, process::is_gone)).await?;
            if let Some(tenure) = taken {
                let renewing = renewing(self.store.clone(), tenure.clone(), self.clock);
                return Ok(Some(Held { tenure, store: self.store.clone(), renewing }));
            }
        }
        Ok(None)
    }
}

impl Held {
    /// Gives it back; `done_at` says that everything that waited was looked at.
    pub(super) async fn leave(self, done_at: Option<Timestamp>) -> Result<(), StoreError> {
        self.renewing.abort();
        self.store.leave_tenure(&self.tenure, done_at).await
    }

    /// Gives back what nobody will ask for again, and leaves no trace of it.
    pub(super) async fn end(self) -> Result<(), StoreError> {
        self.renewing.abort();
        self.store.end_tenure(&self.tenure).await
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

fn renewing(store: Store, tenure: Tenure, clock: fn() -> Timestamp) -> JoinHandle<()> {
    tokio::spawn(async move {
        // Ends with its holder, or when somebody else took it.
        loop {
            tokio::time::sleep(RENEW_EVERY).await;
            // A store in trouble is told by who changes it; the next try may do.
            if let Ok(false) = store.renew_tenure(&tenure, clock().after(LEASE)).await {
                return;
            }
        }
    })
}
