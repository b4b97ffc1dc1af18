//! Limits on requests and tokens per minute, shared by all processes that call the same endpoint through this store.

use super::retrying_store::RetryingStore;
use crate::config::Config;
use crate::domain::Timestamp;
use crate::store::{Rates, StoreError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub(crate) struct RateLimit {
    rates: Option<Rates>,
    /// Held by the one call of this process that waits for its slot.
    turn: tokio::sync::Mutex<()>,
    clock: fn() -> Timestamp,
}

impl RateLimit {
    pub(super) fn of(config: &Config, clock: fn() -> Timestamp) -> RateLimit {
        let limits = &config.limits;
        let limited = limits.requests_per_minute.is_some() || limits.tokens_per_minute.is_some();
        let rates = limited.then(|| Rates {
            endpoint: config.model.base_url.clone(),
            requests_per_minute: limits.requests_per_minute,
            tokens_per_minute: limits.tokens_per_minute.map(u64::from),
        });
        RateLimit { rates, turn: tokio::sync::Mutex::new(()), clock }
    }

    /// Waits until a call of `tokens` tokens may begin; returns false if it was stopped before.
    pub(super) async fn draw(
        &self,
        store: &RetryingStore,
        tokens: u64,
        stop: &CancellationToken,
    ) -> Result<bool, StoreError> {
        let Some(rates) = &self.rates else { return Ok(true) };
        let _turn = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(false),
            turn = self.turn.lock() => turn,
        };
        let now = (self.clock)();
        let begin = store.retry(|| store.inner().draw(rates.clone(), tokens, now)).await?;
        let wait = u64::try_from(begin.0 - (self.clock)().0).unwrap_or(0);
        tokio::select! {
            biased;
            () = stop.cancelled() => {
                self.settle(store, tokens, None).await?;
                Ok(false)
            }
            () = tokio::time::sleep(Duration::from_millis(wait)) => Ok(true),
        }
    }

    /// Replaces the drawn tokens with those used; `None` if no call was made.
    pub(super) async fn settle(
        &self,
        store: &RetryingStore,
        drawn: u64,
        used: Option<u64>,
    ) -> Result<(), StoreError> {
        let Some(rates) = &self.rates else { return Ok(()) };
        store.retry(|| store.inner().settle_rate(rates.clone(), drawn, used)).await
    }
}
