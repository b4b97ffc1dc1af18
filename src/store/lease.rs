//! Lease of a namespace's memory, fenced by a token. It is short, and renewed while its holder lives: a holder that
//! was killed blocks others for seconds, on the same machine not at all.

use super::db::{Db, values};
use super::error::{Fault, StoreError, StoreErrorKind};
use super::handle::Store;
use crate::adapters::process;
use crate::domain::Timestamp;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Time that a lease lasts without renewal.
const LEASE: Duration = Duration::from_secs(15);
/// Renewal interval: two may fail.
const RENEW_EVERY: Duration = Duration::from_secs(5);
const ASKS_MAX: u32 = 100;
/// Pause between two asks: with [`ASKS_MAX`] twenty seconds in all, longer than a dead holder blocks.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// The right to change the memory of a namespace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct NamespaceLease {
    pub(crate) namespace: String,
    pub(crate) token: u64,
}

impl NamespaceLease {
    /// Fails if the lease was lost; nobody takes it until the transaction ends.
    pub(super) fn check(&self, db: &mut Db) -> Result<(), Fault> {
        let sql = format!("SELECT token FROM consolidating WHERE namespace = ?1{}", db.locking());
        let token: Option<u64> = db.first(&sql, values![&self.namespace], |row| row.next())?;
        match token {
            Some(token) if token == self.token => Ok(()),
            Some(_) | None => {
                Err(StoreErrorKind::NamespaceLeaseLost(self.namespace.clone()).into())
            }
        }
    }
}

/// Request for the lease of a namespace.
#[derive(Clone, Copy)]
pub(crate) struct LeaseRequest<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) holder: &'a str,
    pub(crate) clock: fn() -> Timestamp,
    pub(crate) waits: bool,
}

/// One attempt to acquire a lease.
#[derive(Clone, Copy)]
pub(super) struct LeaseAttempt<'a> {
    pub(super) namespace: &'a str,
    pub(super) holder: &'a str,
    pub(super) now: Timestamp,
    pub(super) until: Timestamp,
    pub(super) is_gone: fn(&str) -> bool,
}

/// A lease that is renewed until it is released or dropped.
pub(crate) struct HeldLease {
    pub(crate) lease: NamespaceLease,
    store: Store,
    renewing: JoinHandle<()>,
}

impl HeldLease {
    /// Releases the lease; `done_at` notes that everything that waited was consolidated.
    pub(crate) async fn release(self, done_at: Option<Timestamp>) -> Result<(), StoreError> {
        self.renewing.abort();
        self.store.release_namespace(&self.lease, done_at).await
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

impl Store {
    /// Acquires the lease of a namespace and keeps it renewed; `None` while another process holds it.
    pub(crate) async fn hold_namespace(
        &self,
        request: LeaseRequest<'_>,
    ) -> Result<Option<HeldLease>, StoreError> {
        let asks = if request.waits { ASKS_MAX } else { 1 };
        for ask in 0..asks {
            if ask > 0 {
                tokio::time::sleep(ASK_EVERY).await;
            }
            let now = (request.clock)();
            let LeaseRequest { namespace, holder, .. } = request;
            let is_gone = process::is_gone;
            let attempt = LeaseAttempt { namespace, holder, now, until: now.after(LEASE), is_gone };
            if let Some(lease) = self.lease_namespace(attempt).await? {
                let renewing = tokio::spawn(renew(self.clone(), lease.clone(), request.clock));
                return Ok(Some(HeldLease { lease, store: self.clone(), renewing }));
            }
        }
        Ok(None)
    }

    /// Acquires the namespace lease until `until` unless a possibly live holder has it.
    pub(super) async fn lease_namespace(
        &self,
        attempt: LeaseAttempt<'_>,
    ) -> Result<Option<NamespaceLease>, StoreError> {
        let LeaseAttempt { now, until, is_gone, .. } = attempt;
        let (namespace, holder) = (attempt.namespace.to_owned(), attempt.holder.to_owned());
        self.write("acquiring the lease of a namespace's memory", move |to| {
            let sql = "SELECT holder FROM consolidating WHERE namespace = ?1 AND until > ?2";
            let other: Option<String> =
                to.first(sql, values![&namespace, now], |row| row.next())?;
            // No holder has an empty name.
            let gone = other.filter(|other| is_gone(other)).unwrap_or_default();
            let sql =
                "INSERT INTO consolidating (namespace, token, holder, until) VALUES (?1, 1, ?2, ?3)
                ON CONFLICT (namespace) DO UPDATE SET token = consolidating.token + 1,
                    holder = excluded.holder, until = excluded.until
                    WHERE consolidating.until <= ?4 OR consolidating.holder = ?5
                RETURNING token";
            let token =
                to.first(sql, values![&namespace, &holder, until, now, &gone], |row| row.next())?;
            Ok(token.map(|token| NamespaceLease { namespace: namespace.clone(), token }))
        })
        .await
    }

    /// Renews a lease; `false` if it was lost.
    pub(super) async fn renew_namespace(
        &self,
        lease: &NamespaceLease,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let lease = lease.clone();
        self.write("renewing the lease of a namespace's memory", move |to| {
            let sql = "UPDATE consolidating SET until = ?3
                WHERE namespace = ?1 AND token = ?2 AND until > 0";
            Ok(to.execute(sql, values![&lease.namespace, lease.token, until])? > 0)
        })
        .await
    }

    pub(super) async fn release_namespace(
        &self,
        lease: &NamespaceLease,
        done_at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let lease = lease.clone();
        self.write("releasing the lease of a namespace's memory", move |to| {
            let sql = "UPDATE consolidating SET until = 0, done_at = coalesce(?3, done_at)
                WHERE namespace = ?1 AND token = ?2";
            to.run(sql, values![&lease.namespace, lease.token, done_at])
        })
        .await
    }
}

async fn renew(store: Store, lease: NamespaceLease, clock: fn() -> Timestamp) {
    loop {
        tokio::time::sleep(RENEW_EVERY).await;
        // The change that the lease protects reports a store in trouble; here the next renewal may succeed.
        if let Ok(false) = store.renew_namespace(&lease, clock().after(LEASE)).await {
            return;
        }
    }
}
