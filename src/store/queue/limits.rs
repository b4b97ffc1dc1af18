//! Limits shared by all workers: request rates of endpoints, and amounts spent or reserved under
//! caps. Rows are created on first use, and only where a limit is set.

use crate::domain::{Digest, Purpose, SessionId, Timestamp, Usage};
use crate::store::{Db, Result, Store, StoreResult, run, values};

/// Maximum burst, in microseconds of the rate: as much as a late worker may catch up on.
const BURST_MICROS: i64 = 1_000_000;
/// Microseconds of a minute.
const MINUTE_MICROS: i64 = 60_000_000;
/// Maximum time in microseconds that an allowance may be used up in advance. Each worker draws at
/// most one call ahead, so more means that the clock was set back.
const AHEAD_MICROS_MAX: i64 = 3_600_000_000;

/// Rate limits of an endpoint.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Rates {
    /// Name of the endpoint; callers that use the same name share its allowance.
    pub endpoint: String,
    /// Requests per minute; `None` is unlimited.
    pub requests_per_minute: Option<u32>,
    /// Tokens per minute, of requests and replies; `None` is unlimited.
    pub tokens_per_minute: Option<u64>,
}

/// An amount spent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Charge {
    pub tokens: u64,
    pub micros: u64,
}

/// End of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CallEnd {
    /// Answered; it is billed elsewhere.
    Paid(Charge),
    /// Refused, or not received.
    Failed,
    /// It may have been processed, but no answer was received: the reserved amount counts as spent.
    Unanswered,
}

/// A call that is about to be made, at its worst case.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SentCall {
    /// Unique.
    pub id: Digest,
    pub at: Timestamp,
    pub namespace: String,
    pub session: Option<SessionId>,
    pub usage: Usage,
    pub cost_micros: u64,
}

impl SentCall {
    fn charge(&self) -> Charge {
        let tokens = self.usage.prompt_tokens + self.usage.completion_tokens;
        Charge { tokens, micros: self.cost_micros }
    }

    /// Writes the bill of the call; false if it exists.
    fn write(&self, db: &mut Db, purpose: &str) -> Result<bool> {
        let sql = "INSERT INTO bills (digest, at, namespace, model, prompt_tokens, cached_tokens,
                completion_tokens, cost_micros, purpose, session)
            VALUES (?1, ?2, ?3, '', ?4, 0, ?5, ?6, ?7, ?8) ON CONFLICT (digest, at) DO NOTHING";
        let SentCall { id, at, namespace, session, usage, cost_micros } = self;
        let (sent, answered) = (usage.prompt_tokens, usage.completion_tokens);
        let row = values![id, *at, namespace, sent, answered, *cost_micros, purpose, session];
        Ok(db.execute(sql, row)? == 1)
    }
}

/// Purpose of the bill of a call that is being made; it is not counted yet.
const IN_FLIGHT: &str = "in-flight";

/// A spending cap.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Cap {
    pub scope: CapScope,
    pub sort: CapUnit,
    pub most: u64,
}

/// A cap that leaves no room for a call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct CapReached {
    pub cap: Cap,
    /// Worst case of the call, in the cap's unit.
    pub needed: u64,
    /// True if calls under way hold the room, so that it may become free.
    pub is_transient: bool,
}

/// Scope of a cap. Days are in UTC and identified by their midnight.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum CapScope {
    Session(SessionId),
    NamespaceDay(String, Timestamp),
    Day(Timestamp),
}

/// Unit of a cap.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CapUnit {
    Tokens,
    Micros,
}

impl CapUnit {
    fn name(self) -> &'static str {
        match self {
            CapUnit::Tokens => "tokens",
            CapUnit::Micros => "micros",
        }
    }

    /// Name of the row with the reserved amount.
    fn reserved(self) -> &'static str {
        match self {
            CapUnit::Tokens => "tokens reserved",
            CapUnit::Micros => "micros reserved",
        }
    }

    fn of(self, charge: Charge) -> u64 {
        match self {
            CapUnit::Tokens => charge.tokens,
            CapUnit::Micros => charge.micros,
        }
    }
}

/// Scope name prefixes of a day and of a namespace's day.
const DAYS: [&str; 2] = ["day ", "namespace-day "];

impl CapScope {
    fn name(&self) -> String {
        let [day, namespace_day] = DAYS;
        match self {
            CapScope::Session(id) => format!("session {id}"),
            CapScope::NamespaceDay(namespace, midnight) => {
                format!("{namespace_day}{} {namespace}", midnight.day())
            }
            CapScope::Day(midnight) => format!("{day}{}", midnight.day()),
        }
    }

    fn spent(&self, db: &mut Db) -> Result<Charge> {
        let (since, namespace, session) = match self {
            CapScope::Session(id) => (Timestamp(0), None, Some(*id)),
            CapScope::NamespaceDay(namespace, midnight) => (*midnight, Some(namespace), None),
            CapScope::Day(midnight) => (*midnight, None, None),
        };
        let spent = run::spent(db, since, namespace.map(String::as_str), session)?;
        let tokens = spent.usage.prompt_tokens + spent.usage.completion_tokens;
        Ok(Charge { tokens, micros: spent.cost_micros })
    }
}

/// One allowance of an endpoint, stored as the time until which it is used up.
#[derive(Clone, Copy)]
struct Rate {
    sort: &'static str,
    per_minute: i64,
}

impl Rate {
    /// Duration of `units` at a pace slow enough that no minute exceeds the limit, even with a burst.
    fn micros(self, units: u64) -> i64 {
        let minute = i128::from(MINUTE_MICROS + BURST_MICROS);
        let micros = i128::from(units) * minute / i128::from(self.per_minute);
        i64::try_from(micros).unwrap_or(i64::MAX / 4)
    }

    /// Maximum burst; at least one unit.
    fn burst(self) -> i64 {
        self.micros(1).max(BURST_MICROS)
    }
}

impl Rates {
    fn scope(&self) -> String {
        format!("endpoint {}", self.endpoint)
    }

    /// Allowances of requests and of tokens.
    fn rates(&self) -> [Option<Rate>; 2] {
        let rate = |sort, units: u64| Rate {
            sort,
            per_minute: i64::try_from(units).unwrap_or(i64::MAX).max(1),
        };
        let requests = self.requests_per_minute.map(|units| rate("requests", u64::from(units)));
        [requests, self.tokens_per_minute.map(|units| rate("tokens", units))]
    }
}

fn signed(cap: &Cap, charge: Charge) -> i64 {
    i64::try_from(cap.sort.of(charge)).unwrap_or(i64::MAX)
}

/// Deletes spent and reserved amounts, so that they are recomputed from the runs. The calls of
/// killed workers count as unanswered.
pub(super) fn forget(db: &mut Db) -> Result<u64> {
    let sql = "UPDATE bills SET purpose = ?1 WHERE purpose = ?2";
    db.run(sql, values![Purpose::Unanswered, IN_FLIGHT])?;
    db.execute("DELETE FROM allowances WHERE scope NOT LIKE 'endpoint %'", &[])
}

/// Returns the amount spent under `cap`. A new row starts with the cost of past runs and replaces
/// the rows of other days.
fn spent(db: &mut Db, cap: &Cap) -> Result<i64> {
    let (scope, locking) = (cap.scope.name(), db.locking());
    let sql = format!("SELECT amount FROM allowances WHERE scope = ?1 AND sort = ?2{locking}");
    if let Some(amount) = db.first(&sql, values![&scope, cap.sort.name()])? {
        return Ok(amount);
    }
    let before = cap.sort.of(cap.scope.spent(db)?);
    for begin in DAYS.iter().filter(|begin| scope.starts_with(**begin)) {
        let today = scope.get(..begin.len() + "2026-11-21".len()).unwrap_or_default();
        let sql = "DELETE FROM allowances WHERE scope LIKE ?1 AND scope NOT LIKE ?2";
        db.run(sql, values![&format!("{begin}%"), &format!("{today}%")])?;
    }
    let sql = "INSERT INTO allowances (scope, sort, amount) VALUES (?1, ?2, ?3)
        ON CONFLICT (scope, sort) DO NOTHING";
    db.run(sql, values![&scope, cap.sort.name(), before])?;
    amount(db, &scope, cap.sort.name())
}

/// Returns the amount of a row, which is created if missing so that it can be locked.
fn amount(db: &mut Db, scope: &str, sort: &str) -> Result<i64> {
    let sql = "INSERT INTO allowances (scope, sort, amount) VALUES (?1, ?2, 0)
        ON CONFLICT (scope, sort) DO UPDATE SET amount = allowances.amount RETURNING amount";
    db.one(sql, values![scope, sort])
}

/// Adds to a row if it exists; a deleted row is recomputed when next needed.
fn add(db: &mut Db, scope: &str, sort: &str, more: i64) -> Result<()> {
    let sql = "UPDATE allowances SET amount = amount + ?3 WHERE scope = ?1 AND sort = ?2";
    db.run(sql, values![scope, sort, more])
}

impl Store {
    /// Draws one request and `tokens` tokens from an endpoint's allowance. Returns the time from
    /// which they may be used; waiting until then keeps all callers together within the rates.
    pub(crate) async fn draw(
        &self,
        rates: Rates,
        tokens: u64,
        now: Timestamp,
    ) -> StoreResult<Timestamp> {
        self.write("taking from a minute's allowance", move |db: &mut Db| {
            let (now, scope) = (now.0.saturating_mul(1000), rates.scope());
            let (mut begin, mut taken) = (now, Vec::new());
            for (rate, units) in rates.rates().into_iter().zip([1, tokens]) {
                let Some(rate) = rate else { continue };
                let until = amount(db, &scope, rate.sort)?;
                let until = if until - now > AHEAD_MICROS_MAX { now } else { until };
                let cost = rate.micros(units);
                begin = begin.max(until - (rate.burst() - cost.min(rate.burst())));
                taken.push((rate, until, cost));
            }
            for (rate, until, cost) in taken {
                let sql = "UPDATE allowances SET amount = ?3 WHERE scope = ?1 AND sort = ?2";
                let until = until.max(begin).saturating_add(cost);
                db.run(sql, values![&scope, rate.sort, until])?;
            }
            // Rounded up: a call a fraction of a millisecond early would exceed the rate.
            Ok(Timestamp(begin.div_euclid(1000) + i64::from(begin.rem_euclid(1000) > 0)))
        })
        .await
    }

    /// Corrects the drawn tokens to those a call used; `None` returns everything because there was
    /// no call.
    pub(crate) async fn settle_rate(
        &self,
        rates: Rates,
        drawn: u64,
        used: Option<u64>,
    ) -> StoreResult<()> {
        self.write("settling a minute's allowance", move |db: &mut Db| {
            let ([requests, tokens], scope) = (rates.rates(), rates.scope());
            if let (Some(rate), None) = (requests, used) {
                add(db, &scope, rate.sort, -rate.micros(1))?;
            }
            if let Some(rate) = tokens {
                let more = rate.micros(used.unwrap_or(0)) - rate.micros(drawn);
                add(db, &scope, rate.sort, more)?;
            }
            Ok(())
        })
        .await
    }

    /// Reserves the cost of `call` under all of `caps`, or returns the first cap that it would exceed. Caps
    /// exceeded regardless of the calls under way come before those that may become free. The first
    /// use of a cap adds up past runs.
    pub(crate) async fn reserve(
        &self,
        caps: Vec<Cap>,
        call: SentCall,
    ) -> StoreResult<Option<CapReached>> {
        self.write("reserving the cost of a call", move |db: &mut Db| {
            let (mut busy, charge) = (None, call.charge());
            for cap in &caps {
                let spent = u64::try_from(spent(db, cap)?).unwrap_or(0);
                let reserved = amount(db, &cap.scope.name(), cap.sort.reserved())?;
                let needed = cap.sort.of(charge);
                let most = spent.saturating_add(needed);
                let reached = |is_transient| CapReached { cap: cap.clone(), needed, is_transient };
                if most > cap.most {
                    return Ok(Some(reached(false)));
                }
                let reserved = u64::try_from(reserved).unwrap_or(0);
                if most.saturating_add(reserved) > cap.most && busy.is_none() {
                    busy = Some(reached(true));
                }
            }
            if busy.is_none() && call.write(db, IN_FLIGHT)? {
                for cap in &caps {
                    add(db, &cap.scope.name(), cap.sort.reserved(), signed(cap, charge))?;
                }
            }
            Ok(busy)
        })
        .await
    }

    /// Replaces the amount reserved under `caps` with the actual cost.
    pub(crate) async fn settle(
        &self,
        caps: Vec<Cap>,
        call: SentCall,
        end: CallEnd,
    ) -> StoreResult<()> {
        self.write("settling the cost of a call", move |db| {
            let sql = "DELETE FROM bills WHERE digest = ?1 AND at = ?2 RETURNING purpose";
            let billed: Option<String> = db.first(sql, values![&call.id, call.at])?;
            let reserved = call.charge();
            let cost = match end {
                CallEnd::Paid(cost) => cost,
                CallEnd::Failed => {
                    let free = SentCall { usage: Usage::default(), cost_micros: 0, ..call.clone() };
                    free.write(db, Purpose::Failed.name())?;
                    Charge::default()
                }
                CallEnd::Unanswered => {
                    call.write(db, Purpose::Unanswered.name())?;
                    reserved
                }
            };
            let Some(billed) = billed else { return Ok(()) };
            for cap in &caps {
                let scope = cap.scope.name();
                // Another process may have taken this one for dead.
                let is_reserved = billed == IN_FLIGHT;
                let held = if is_reserved { cap.sort.reserved() } else { cap.sort.name() };
                add(db, &scope, held, -signed(cap, reserved))?;
                add(db, &scope, cap.sort.name(), signed(cap, cost))?;
            }
            Ok(())
        })
        .await
    }
}
