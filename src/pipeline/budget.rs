//! Limits on calls, kept in the store for all processes that share it: hard caps on tokens and money, and rates per
//! minute. The worst case of a call is reserved before it is made, so that concurrent workers cannot exceed a cap.

use super::retrying_store::RetryingStore;
use crate::adapters::process;
use crate::config::{Config, Limits, Price};
use crate::domain::{Digest, SessionId, Timestamp, Usage};
use crate::store::{CallEnd, Cap, CapReached, CapScope, CapUnit, Rates, SentCall, StoreResult};
use crate::text::phrase::count;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(crate) struct Budget {
    pub(super) limits: Limits,
    price: Price,
}

/// Namespace and session whose caps a call counts against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapOwner<'a> {
    pub(crate) namespace: &'a str,
    /// `None` if the call is not about a single conversation.
    pub(crate) session: Option<SessionId>,
}

/// Worst-case charge of a call, held against its caps until the call is settled.
#[derive(Debug)]
#[must_use = "what is reserved and never settled counts as spent"]
pub(super) struct Reservation {
    caps: Vec<Cap>,
    call: SentCall,
}

/// Largest use of a model's answered calls beyond their estimated upper bound.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Overrun {
    prompt: Excess,
    completion: Excess,
}

/// Largest use beyond an estimate, and its largest ratio: an endpoint may add a prompt of its own, or count in other
/// tokens.
#[derive(Clone, Copy, Debug, Default)]
struct Excess {
    tokens: u64,
    ratio: f64,
}

impl Excess {
    fn include(&mut self, estimate: u64, used: u64) {
        if estimate < used {
            self.tokens = self.tokens.max(used);
            self.ratio = self.ratio.max(used as f64 / estimate.max(1) as f64);
        }
    }

    fn bound(self, estimate: u64) -> u64 {
        // Rounded up; a conversion to an integer saturates.
        let scaled = (estimate as f64 * self.ratio).ceil() as u64;
        estimate.max(self.tokens).max(scaled)
    }
}

impl Overrun {
    pub(super) fn include(&mut self, estimate: Usage, used: Usage) {
        self.prompt.include(estimate.prompt_tokens, used.prompt_tokens);
        self.completion.include(estimate.completion_tokens, used.completion_tokens);
    }

    pub(super) fn bound(self, estimate: Usage) -> Usage {
        Usage {
            prompt_tokens: self.prompt.bound(estimate.prompt_tokens),
            cached_tokens: 0,
            completion_tokens: self.completion.bound(estimate.completion_tokens),
        }
    }
}

impl fmt::Display for CapReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, needed) = (key(&self.cap), self.needed);
        match self.cap.sort {
            _ if needed <= self.cap.most => write!(f, "{key} is reached"),
            CapUnit::Tokens => {
                write!(f, "{key} is too small: one call needs up to {} tokens", count(needed))
            }
            CapUnit::Micros => {
                let dollars = needed as f64 / 1e6;
                write!(f, "{key} is too small: one call may cost ${dollars:.4}")
            }
        }
    }
}

impl Budget {
    pub(super) fn new(limits: &Limits, price: Price) -> Budget {
        Budget { limits: limits.clone(), price }
    }

    pub(super) fn is_set(&self) -> bool {
        let limits = &self.limits;
        let tokens = [limits.session_tokens, limits.day_tokens, limits.namespace_day_tokens];
        let micros = [limits.session_micros, limits.day_micros, limits.namespace_day_micros];
        tokens.iter().chain(&micros).any(Option::is_some)
    }

    pub(super) async fn reserve(
        &self,
        store: &RetryingStore,
        owner: CapOwner<'_>,
        worst: Usage,
        now: Timestamp,
    ) -> StoreResult<Result<Reservation, CapReached>> {
        // Only makes ids unique.
        static CALLS: AtomicU64 = AtomicU64::new(0);
        let number = CALLS.fetch_add(1, Ordering::Relaxed).to_string();
        let call = SentCall {
            id: Digest::of(&["call", process::name(), &number]),
            at: now,
            namespace: owner.namespace.to_owned(),
            session: owner.session,
            usage: worst,
            cost_micros: cost(worst, self.price),
        };
        let caps = self.caps(owner, now);
        if caps.is_empty() {
            return Ok(Ok(Reservation { caps, call }));
        }
        let reached = store.retry(|store| store.reserve(caps.clone(), call.clone())).await?;
        Ok(reached.map_or(Ok(Reservation { caps, call }), Err))
    }

    /// Replaces the reserved charge with the actual one.
    pub(super) async fn settle(
        &self,
        store: &RetryingStore,
        reserved: Reservation,
        end: CallEnd,
    ) -> StoreResult<()> {
        let Reservation { caps, call } = reserved;
        if caps.is_empty() && matches!(end, CallEnd::Paid(_)) {
            return Ok(());
        }
        store.retry(|store| store.settle(caps.clone(), call.clone(), end)).await
    }

    fn caps(&self, owner: CapOwner<'_>, now: Timestamp) -> Vec<Cap> {
        let (limits, midnight) = (&self.limits, now.midnight());
        let namespace = || Some(CapScope::NamespaceDay(owner.namespace.to_owned(), midnight));
        let session = || owner.session.map(CapScope::Session);
        let set = [
            (limits.day_tokens, CapUnit::Tokens, Some(CapScope::Day(midnight))),
            (limits.day_micros, CapUnit::Micros, Some(CapScope::Day(midnight))),
            (limits.namespace_day_tokens, CapUnit::Tokens, namespace()),
            (limits.namespace_day_micros, CapUnit::Micros, namespace()),
            (limits.session_tokens, CapUnit::Tokens, session()),
            (limits.session_micros, CapUnit::Micros, session()),
        ];
        let cap = |(most, sort, scope): (Option<u64>, CapUnit, Option<CapScope>)| {
            Some(Cap { scope: scope?, sort, most: most? })
        };
        set.into_iter().filter_map(cap).collect()
    }
}

pub(super) fn key(cap: &Cap) -> &'static str {
    match (&cap.scope, cap.sort) {
        (CapScope::Day(_), CapUnit::Tokens) => "limits.day_tokens_max",
        (CapScope::Day(_), CapUnit::Micros) => "limits.day_usd_max",
        (CapScope::NamespaceDay(..), CapUnit::Tokens) => "limits.namespace_day_tokens_max",
        (CapScope::NamespaceDay(..), CapUnit::Micros) => "limits.namespace_day_usd_max",
        (CapScope::Session(_), CapUnit::Tokens) => "limits.session_tokens_max",
        (CapScope::Session(_), CapUnit::Micros) => "limits.session_usd_max",
    }
}

/// Cost in micro-dollars. Prices are dollars per million tokens, which equals micro-dollars per token.
pub(crate) fn cost(usage: Usage, price: Price) -> u64 {
    let fresh = usage.prompt_tokens.saturating_sub(usage.cached_tokens) as f64;
    let sum = fresh * price.sent
        + usage.cached_tokens as f64 * price.cached
        + usage.completion_tokens as f64 * price.answered;
    sum.round() as u64
}

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
    ) -> StoreResult<bool> {
        let Some(rates) = &self.rates else { return Ok(true) };
        let _turn = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(false),
            turn = self.turn.lock() => turn,
        };
        let now = (self.clock)();
        let begin = store.retry(|store| store.draw(rates.clone(), tokens, now)).await?;
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
    ) -> StoreResult<()> {
        let Some(rates) = &self.rates else { return Ok(()) };
        store.retry(|store| store.settle_rate(rates.clone(), drawn, used)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(prompt_tokens: u64, completion_tokens: u64) -> Usage {
        Usage { prompt_tokens, cached_tokens: 0, completion_tokens }
    }

    #[test]
    fn a_bound_is_no_less_than_the_largest_excess_in_tokens_and_in_proportion() {
        let mut overrun = Overrun::default();
        assert_eq!(overrun.bound(usage(100, 10)), usage(100, 10));
        overrun.include(usage(100, 10), usage(50, 1));
        assert_eq!(overrun.bound(usage(100, 10)), usage(100, 10), "less than estimated");
        overrun.include(usage(100, 10), usage(200, 40));
        overrun.include(usage(100, 10), usage(100, 10));
        assert_eq!(overrun.bound(usage(10, 10)), usage(200, 40), "a prompt of its own");
        assert_eq!(overrun.bound(usage(1_000, 10)), usage(2_000, 40), "other tokens");
    }
}
