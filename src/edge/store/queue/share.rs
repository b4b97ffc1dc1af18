//! The doors to what workers share: allowances, and who is about.

use super::super::db::Db;
use super::super::{Store, StoreError};
use super::allowance::{self, Cap, Charge, Rates};
use super::presence::{self, Presence};
use crate::domain::Timestamp;

impl Store {
    /// Takes a request and `tokens` tokens of an endpoint's allowance of a minute; gives the time from
    /// which on they may be used. Whoever waits until then keeps the rates, together with all others.
    pub async fn draw(
        &self,
        rates: Rates,
        tokens: u64,
        now: Timestamp,
    ) -> Result<Timestamp, StoreError> {
        let draw = move |to: &mut Db| allowance::draw(to, &rates, tokens, now);
        self.write("taking of a minute's allowance", draw).await
    }

    /// Replaces the tokens that were drawn by those that a call used; none gives everything back,
    /// where there was no call.
    pub async fn settle_rate(
        &self,
        rates: Rates,
        drawn: u64,
        used: Option<u64>,
    ) -> Result<(), StoreError> {
        let settle = move |to: &mut Db| allowance::settle_rate(to, &rates, (drawn, used));
        self.write("settling a minute's allowance", settle).await
    }

    /// Reserves `charge` under all of `caps`, or none of it: then gives the first cap that it would go
    /// beyond. A cap that is new begins with what the runs of its scope cost.
    pub async fn reserve(&self, caps: Vec<Cap>, charge: Charge) -> Result<Option<Cap>, StoreError> {
        let reserve = move |to: &mut Db| allowance::reserve(to, &caps, charge);
        self.write("reserving what a call may cost", reserve).await
    }

    /// Replaces what was reserved under `caps` by what it cost.
    pub async fn settle(
        &self,
        caps: Vec<Cap>,
        reserved: Charge,
        cost: Charge,
    ) -> Result<(), StoreError> {
        let settle = move |to: &mut Db| allowance::settle(to, &caps, (reserved, cost));
        self.write("settling what a call cost", settle).await
    }

    /// Adds up afresh what was spent, for whoever begins: somebody may have died with something
    /// reserved. While a worker is about, what it reserved stands.
    pub async fn recount(&self, now: Timestamp) -> Result<(), StoreError> {
        self.write("adding up what was spent", move |to| presence::recount(to, now)).await
    }

    /// Writes that a worker is about, or why it stopped; forgets those that are long gone.
    pub async fn seen(&self, worker: Presence) -> Result<(), StoreError> {
        self.write("saying that a worker is here", move |to| presence::seen(to, &worker)).await
    }

    /// Writes that a worker ended well.
    pub async fn leave(&self, worker: &str) -> Result<(), StoreError> {
        let id = worker.to_owned();
        self.write("ending the work", move |to| presence::leave(to, &id)).await
    }

    /// The workers that are about, that vanished, or that stopped for a reason, by when they began.
    pub async fn workers(&self) -> Result<Vec<Presence>, StoreError> {
        self.read("reading who works", presence::list).await
    }
}
