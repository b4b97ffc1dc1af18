//! The heartbeat of a worker: extends its leases, watches the clock and reports its presence, until the last job has
//! ended.

use super::state::WorkerState;
use crate::adapters::clock::Drift;
use crate::domain::Timestamp;
use crate::store::{StoreError, WorkerStatus};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Beats per lease, so that two may be missed.
const BEATS: u32 = 3;
/// Maximum interval: a worker is shown as gone if a few beats are missing.
const BEAT_MAX: Duration = Duration::from_secs(10);
/// Interval after a failed beat.
const BEAT_AGAIN: Duration = Duration::from_secs(1);
/// Maximum step back, in milliseconds, that is a normal clock correction; a longer one means the clock was set.
const BACK_MILLIS: i64 = 2_000;

#[derive(Clone, Debug)]
pub(super) struct Heartbeat {
    pub(super) id: String,
    pub(super) started_at: Timestamp,
}

impl Heartbeat {
    /// Reports that the worker is alive, or why it stopped.
    pub(super) async fn report(&self, state: &WorkerState) -> Result<(), StoreError> {
        let presence = WorkerStatus {
            id: self.id.clone(),
            started_at: self.started_at,
            seen_at: state.now(),
            stopped: state.needs(),
        };
        state.store().inner().seen(presence).await
    }

    pub(super) async fn beat(&self, state: &WorkerState, over: &CancellationToken) {
        let whole = (state.queue.lease / BEATS).min(BEAT_MAX);
        let (mut pause, mut drift) = (whole, Drift::new(state.now()));
        loop {
            tokio::select! {
                () = over.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = match self.once(state, &mut drift).await {
                Ok(()) => whole,
                Err(error) => {
                    tracing::warn!(kind = ?error.kind, doing = error.doing, "a beat failed");
                    whole.min(BEAT_AGAIN)
                }
            };
        }
    }

    async fn once(&self, state: &WorkerState, drift: &mut Drift) -> Result<(), StoreError> {
        let now = state.now();
        let ahead = drift.since_last(now);
        state.extend().await?;
        if ahead < -BACK_MILLIS {
            // Times stored earlier are in the future now.
            let jobs = state.store().inner().recover(now).await?;
            tracing::warn!(millis = -ahead, jobs, "the clock went back");
        }
        self.report(state).await
    }
}
