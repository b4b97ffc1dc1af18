//! Hard caps on tokens and money: which of them a call is under, and what it may cost. What a call may
//! cost is reserved in the store before it is made, so that many calls at once, of many workers, do
//! not run past a cap together.

use super::model_client::{CapOwner, cost};
use super::retrying_store::RetryingStore;
use crate::config::{Limits, Price};
use crate::domain::{Timestamp, Usage};
use crate::store::{Cap, CapReached, CapScope, CapUnit, Charge, StoreError};
use std::fmt;

/// The caps of the settings.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    price: Price,
}

/// What is reserved for a call.
#[derive(Debug)]
#[must_use = "what is reserved and never settled counts as spent"]
pub(super) struct Reservation {
    caps: Vec<Cap>,
    charge: Charge,
}

/// Why nothing was reserved.
#[derive(Debug)]
pub(super) enum Refusal {
    /// A cap is reached.
    Reached(ReachedCap),
    /// Calls under way hold what is left under this cap, and may leave some of it.
    Passes(ReachedCap),
}

/// A cap that a call would go beyond.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ReachedCap {
    /// The key of the settings.
    pub(super) key: &'static str,
    /// Whose cap it is.
    pub(super) scope: CapScope,
}

impl fmt::Display for ReachedCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is reached", self.key)
    }
}

impl Budget {
    pub(super) fn new(limits: &Limits, price: Price) -> Budget {
        Budget { limits: limits.clone(), price }
    }

    /// Whether there is any cap.
    pub(super) fn is_set(&self) -> bool {
        let Limits {
            requests_per_minute: _,
            tokens_per_minute: _,
            session_tokens,
            day_tokens,
            namespace_day_tokens,
            session_micros,
            day_micros,
            namespace_day_micros,
            tries_max: _,
            wait_max: _,
        } = &self.limits;
        let caps = [session_tokens, day_tokens, namespace_day_tokens];
        let money = [session_micros, day_micros, namespace_day_micros];
        caps.into_iter().chain(money).any(Option::is_some)
    }

    /// Reserves the worst case of a call for `cap_owner`, or says at which cap it waits.
    pub(super) async fn reserve(
        &self,
        store: &RetryingStore,
        cap_owner: CapOwner<'_>,
        (worst, now): (Usage, Timestamp),
    ) -> Result<Result<Reservation, Refusal>, StoreError> {
        let tokens = worst.prompt_tokens + worst.completion_tokens;
        let charge = Charge { tokens, micros: cost(worst, self.price) };
        let caps = self.caps(cap_owner, now);
        if caps.is_empty() {
            return Ok(Ok(Reservation { caps, charge }));
        }
        let reached = store.retry(|store| {
            let caps = caps.clone();
            async move { store.reserve(caps, charge).await }
        });
        Ok(match reached.await? {
            None => Ok(Reservation { caps, charge }),
            Some(CapReached { cap, passes }) => {
                let reached = ReachedCap { key: key(&cap), scope: cap.scope };
                Err(if passes { Refusal::Passes(reached) } else { Refusal::Reached(reached) })
            }
        })
    }

    /// Replaces what was reserved by what the call cost.
    pub(super) async fn settle(
        &self,
        store: &RetryingStore,
        reserved: Reservation,
        cost: Charge,
    ) -> Result<(), StoreError> {
        let Reservation { caps, charge } = reserved;
        if caps.is_empty() {
            return Ok(());
        }
        let settle = |store: crate::store::Store| {
            let caps = caps.clone();
            async move { store.settle(caps, charge, cost).await }
        };
        store.retry(settle).await
    }

    /// The caps that a call for `cap_owner` is under now; those of a session where it is about one.
    fn caps(&self, cap_owner: CapOwner<'_>, now: Timestamp) -> Vec<Cap> {
        let (limits, midnight) = (&self.limits, now.midnight());
        let namespace = || Some(CapScope::NamespaceDay(cap_owner.namespace.to_owned(), midnight));
        let session = || cap_owner.session.map(CapScope::Session);
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

/// The key that sets this cap.
fn key(cap: &Cap) -> &'static str {
    match (&cap.scope, cap.sort) {
        (CapScope::Day(_), CapUnit::Tokens) => "limits.day_tokens_max",
        (CapScope::Day(_), CapUnit::Micros) => "limits.day_usd_max",
        (CapScope::NamespaceDay(..), CapUnit::Tokens) => "limits.namespace_day_tokens_max",
        (CapScope::NamespaceDay(..), CapUnit::Micros) => "limits.namespace_day_usd_max",
        (CapScope::Session(_), CapUnit::Tokens) => "limits.session_tokens_max",
        (CapScope::Session(_), CapUnit::Micros) => "limits.session_usd_max",
    }
}
