//! Leases, fenced by a token that is checked in the transaction that commits the work.
//!
//! The lease of a namespace's memory is short and renewed while its holder lives. A killed holder
//! blocks others for seconds, or not at all on the same machine.

use super::{Db, Result, Row, Store, StoreErrorKind, StoreResult, Value, query, values};
use crate::adapters::process;
use crate::domain::{Lease, Timestamp};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Time to live of a lease without renewal.
const LEASE: Duration = Duration::from_secs(15);
/// Maximum clock skew between machines. A time further ahead came from a wrong clock.
pub(super) const SKEW: Duration = Duration::from_secs(60);
/// Renewal interval; two renewals may fail.
const RENEW_EVERY: Duration = Duration::from_secs(5);
const ATTEMPTS_MAX: u32 = 100;
/// Pause between attempts; over [`ATTEMPTS_MAX`] attempts twenty seconds, longer than a dead holder blocks.
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) type NamespaceLease = Lease<String>;

/// Reads the leased row that `sql` selects by `key`, its token first; `None` if the lease was lost. Nobody else can take
/// the lease until the transaction ends.
pub(super) fn check<T: Row>(
    db: &mut Db,
    sql: &str,
    key: Value<'_>,
    token: u64,
) -> Result<Option<T>> {
    let row: Option<(u64, T)> = db.first(&format!("{sql}{}", db.locking()), &[key])?;
    Ok(row.filter(|(current, _)| *current == token).map(|(_, row)| row))
}

pub(super) fn check_namespace(db: &mut Db, lease: &NamespaceLease) -> Result<()> {
    let sql = "SELECT token, holder FROM consolidating WHERE namespace = ?1";
    let holder: Option<String> = check(db, sql, Value::from(&lease.subject), lease.token)?;
    let lost = || StoreErrorKind::NamespaceLeaseLost(lease.subject.clone()).into();
    holder.map(drop).ok_or_else(lost)
}

#[derive(Clone, Copy)]
pub(crate) struct LeaseRequest<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) holder: &'a str,
    pub(crate) clock: fn() -> Timestamp,
    pub(crate) waits: bool,
}

/// A lease that is renewed until it is released or dropped.
pub(crate) struct HeldLease {
    pub(crate) lease: NamespaceLease,
    store: Store,
    renewing: JoinHandle<()>,
}

impl HeldLease {
    /// Releases the lease. `done_at` records that the whole backlog was consolidated.
    pub(crate) async fn release(self, done_at: Option<Timestamp>) -> StoreResult<()> {
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
    ) -> StoreResult<Option<HeldLease>> {
        let asks = if request.waits { ATTEMPTS_MAX } else { 1 };
        for ask in 0..asks {
            if ask > 0 {
                tokio::time::sleep(ATTEMPT_INTERVAL).await;
            }
            let now = (request.clock)();
            if let Some(lease) = self.lease_namespace(request, now, now.after(LEASE)).await? {
                let renewing = tokio::spawn(renew(self.clone(), lease.clone(), request.clock));
                return Ok(Some(HeldLease { lease, store: self.clone(), renewing }));
            }
        }
        Ok(None)
    }

    /// Acquires the namespace lease until `until` unless a possibly live holder has it.
    pub(super) async fn lease_namespace(
        &self,
        request: LeaseRequest<'_>,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Option<NamespaceLease>> {
        let (namespace, holder) = (request.namespace.to_owned(), request.holder.to_owned());
        self.write("acquiring the lease of a namespace's memory", move |to| {
            let sql = "SELECT holder FROM consolidating WHERE namespace = ?1 AND until > ?2";
            let other: Option<String> = to.first(sql, values![&namespace, now])?;
            // The default is safe: no holder has an empty name.
            let gone = other.filter(|other| process::is_gone(other)).unwrap_or_default();
            let sql =
                "INSERT INTO consolidating (namespace, token, holder, until) VALUES (?1, 1, ?2, ?3)
                ON CONFLICT (namespace) DO UPDATE SET token = consolidating.token + 1,
                    holder = excluded.holder, until = excluded.until
                    WHERE consolidating.until <= ?4 OR consolidating.holder = ?5
                        OR ?6 < consolidating.until
                RETURNING token";
            // Later than any lease taken with a correct clock.
            let late = now.after(LEASE).after(SKEW);
            let row = values![&namespace, &holder, until, now, &gone, late];
            let token = to.first(sql, row)?;
            Ok(token.map(|token| Lease { subject: namespace.clone(), token, until }))
        })
        .await
    }

    /// Renews a lease; returns `false` if it was lost.
    pub(super) async fn renew_namespace(
        &self,
        lease: &NamespaceLease,
        until: Timestamp,
    ) -> StoreResult<bool> {
        let sql = "UPDATE consolidating SET until = ?3
            WHERE namespace = ?1 AND token = ?2 AND until > 0";
        let row = values![&lease.subject, lease.token, until];
        Ok(self
            .write("renewing the lease of a namespace's memory", query(sql, row, Db::execute))
            .await?
            > 0)
    }

    pub(super) async fn release_namespace(
        &self,
        lease: &NamespaceLease,
        done_at: Option<Timestamp>,
    ) -> StoreResult<()> {
        let sql = "UPDATE consolidating SET until = 0, done_at = coalesce(?3, done_at)
            WHERE namespace = ?1 AND token = ?2";
        let row = values![&lease.subject, lease.token, done_at];
        self.write("releasing the lease of a namespace's memory", query(sql, row, Db::run)).await
    }
}

async fn renew(store: Store, lease: NamespaceLease, clock: fn() -> Timestamp) {
    loop {
        tokio::time::sleep(RENEW_EVERY).await;
        // The work under the lease reports store errors; the next renewal may succeed.
        if let Ok(false) = store.renew_namespace(&lease, clock().after(LEASE)).await {
            return;
        }
    }
}
