//! Hard caps on tokens and money: which of them a call is under, and what it may cost. What a call may
//! cost is reserved in the store before it is made, so that many calls at once, of many workers, do
//! not run past a cap together.

use super::asking::{Payer, cost};
use super::steady::Steady;
use crate::config::{Limits, Price};
use crate::domain::{Timestamp, Usage};
use crate::edge::store::{Cap, Charge, Scope, Sort, StoreError};
use std::fmt;

/// The caps of the settings.
#[derive(Debug)]
pub(super) struct Budget {
    limits: Limits,
    price: Price,
}

/// What is reserved for a call.
#[derive(Debug)]
#[must_use = "what is reserved and never settled counts as spent"]
pub(super) struct Reserved {
    caps: Vec<Cap>,
    charge: Charge,
}

/// A cap that a call would go beyond.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Reached {
    /// The key of the settings.
    pub(super) key: &'static str,
    /// Whose cap it is.
    pub(super) scope: Scope,
}

impl fmt::Display for Reached {
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

    /// Reserves `tokens` to be sent for `payer`, or says at which cap it waits.
    pub(super) async fn reserve(
        &self,
        steady: &Steady,
        payer: Payer<'_>,
        (tokens, now): (u64, Timestamp),
    ) -> Result<Result<Reserved, Reached>, StoreError> {
        let sent = Usage { prompt_tokens: tokens, ..Usage::default() };
        let charge = Charge { tokens, micros: cost(sent, self.price) };
        let caps = self.caps(payer, now);
        if caps.is_empty() {
            return Ok(Ok(Reserved { caps, charge }));
        }
        let reached = steady.keep(|store| {
            let caps = caps.clone();
            async move { store.reserve(caps, charge).await }
        });
        Ok(match reached.await? {
            None => Ok(Reserved { caps, charge }),
            Some(cap) => Err(Reached { key: key(&cap), scope: cap.scope }),
        })
    }

    /// Replaces what was reserved by what the call cost.
    pub(super) async fn settle(
        &self,
        steady: &Steady,
        reserved: Reserved,
        cost: Charge,
    ) -> Result<(), StoreError> {
        let Reserved { caps, charge } = reserved;
        if caps.is_empty() {
            return Ok(());
        }
        let settle = |store: crate::edge::store::Store| {
            let caps = caps.clone();
            async move { store.settle(caps, charge, cost).await }
        };
        steady.keep(settle).await
    }

    /// The caps that a call for `payer` is under now; those of a session where it is about one.
    fn caps(&self, payer: Payer<'_>, now: Timestamp) -> Vec<Cap> {
        let (limits, midnight) = (&self.limits, now.midnight());
        let namespace = || Some(Scope::NamespaceDay(payer.namespace.to_owned(), midnight));
        let session = || payer.session.map(Scope::Session);
        let set = [
            (limits.day_tokens, Sort::Tokens, Some(Scope::Day(midnight))),
            (limits.day_micros, Sort::Micros, Some(Scope::Day(midnight))),
            (limits.namespace_day_tokens, Sort::Tokens, namespace()),
            (limits.namespace_day_micros, Sort::Micros, namespace()),
            (limits.session_tokens, Sort::Tokens, session()),
            (limits.session_micros, Sort::Micros, session()),
        ];
        let cap = |(most, sort, scope): (Option<u64>, Sort, Option<Scope>)| {
            Some(Cap { scope: scope?, sort, most: most? })
        };
        set.into_iter().filter_map(cap).collect()
    }
}

/// The key that sets this cap.
fn key(cap: &Cap) -> &'static str {
    match (&cap.scope, cap.sort) {
        (Scope::Day(_), Sort::Tokens) => "limits.day_tokens_max",
        (Scope::Day(_), Sort::Micros) => "limits.day_usd_max",
        (Scope::NamespaceDay(..), Sort::Tokens) => "limits.namespace_day_tokens_max",
        (Scope::NamespaceDay(..), Sort::Micros) => "limits.namespace_day_usd_max",
        (Scope::Session(_), Sort::Tokens) => "limits.session_tokens_max",
        (Scope::Session(_), Sort::Micros) => "limits.session_usd_max",
    }
}
