//! Cost of runs, and of calls outside runs, in tokens and money.

use super::db::Db;
use super::error::Fault;
use super::value::{row_of, values};
use crate::domain::{Purpose, SessionId, Timestamp, Usage};

/// Maximum number of bill lines reported, latest first.
const LINES_MAX: u32 = 1_000;

/// Calls, tokens and money.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Spent {
    /// Number of requests sent to an endpoint.
    pub calls: u64,
    /// Tokens.
    pub usage: Usage,
    /// Cost in millionths of a dollar.
    pub cost_micros: u64,
}

impl Spent {
    fn and(self, other: &Spent) -> Spent {
        Spent {
            calls: self.calls + other.calls,
            usage: Usage {
                prompt_tokens: self.usage.prompt_tokens + other.usage.prompt_tokens,
                cached_tokens: self.usage.cached_tokens + other.usage.cached_tokens,
                completion_tokens: self.usage.completion_tokens + other.usage.completion_tokens,
            },
            cost_micros: self.cost_micros + other.cost_micros,
        }
    }
}

/// Cost of one namespace for one purpose on one day.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BillLine {
    /// Midnight of the day, UTC.
    pub day: Timestamp,
    /// Namespace.
    pub namespace: String,
    /// Purpose.
    pub purpose: Purpose,
    /// Cost.
    pub spent: Spent,
}

/// Cost of runs that finished at `since` or later, and of calls outside runs.
pub(super) fn spent(
    db: &mut Db,
    since: Timestamp,
    namespace: Option<&str>,
    session: Option<SessionId>,
) -> Result<Spent, Fault> {
    // PostgreSQL's `sum` of integers is a decimal.
    let sql = "SELECT CAST(coalesce(sum(r.calls), 0) AS BIGINT),
            CAST(coalesce(sum(r.prompt_tokens), 0) AS BIGINT),
            CAST(coalesce(sum(r.cached_tokens), 0) AS BIGINT),
            CAST(coalesce(sum(r.completion_tokens), 0) AS BIGINT),
            CAST(coalesce(sum(r.cost_micros), 0) AS BIGINT)
        FROM runs r JOIN sessions s ON s.no = r.session_no
        WHERE ?1 <= r.finished_at AND (s.namespace = ?2 OR ?2 IS NULL)
            AND (s.id = ?3 OR ?3 IS NULL)";
    let by = values![since, namespace, session.as_ref().map(|id| &id.0)];
    let runs: Spent = db.one(sql, by)?;
    // Calls outside runs belong to no session.
    match session {
        Some(_) => Ok(runs),
        None => Ok(runs.and(&of_bills(db, since, namespace)?)),
    }
}

row_of! { Spent { calls, usage, cost_micros } }
row_of! { BillLine { day, namespace, purpose, spent } }
row_of! { Usage { prompt_tokens, cached_tokens, completion_tokens } }

/// Cost of calls outside runs since `since`, of one namespace or of all.
fn of_bills(db: &mut Db, since: Timestamp, namespace: Option<&str>) -> Result<Spent, Fault> {
    let sql = "SELECT count(*), CAST(coalesce(sum(prompt_tokens), 0) AS BIGINT),
            CAST(coalesce(sum(cached_tokens), 0) AS BIGINT),
            CAST(coalesce(sum(completion_tokens), 0) AS BIGINT),
            CAST(coalesce(sum(cost_micros), 0) AS BIGINT)
        FROM bills WHERE ?1 <= at AND (namespace = ?2 OR ?2 IS NULL)";
    db.one(sql, values![since, namespace])
}

/// The bill by day, namespace and purpose, latest day first.
pub(super) fn lines(db: &mut Db) -> Result<Vec<BillLine>, Fault> {
    // A day has 86,400,000 milliseconds.
    let sql = "SELECT day, namespace, purpose, CAST(sum(calls) AS BIGINT),
            CAST(sum(prompt_tokens) AS BIGINT), CAST(sum(cached_tokens) AS BIGINT),
            CAST(sum(completion_tokens) AS BIGINT), CAST(sum(cost_micros) AS BIGINT)
        FROM (
            SELECT r.finished_at - r.finished_at % 86400000 AS day, s.namespace, 'extract' AS purpose,
                r.calls, r.prompt_tokens, r.cached_tokens, r.completion_tokens, r.cost_micros
            FROM runs r JOIN sessions s ON s.no = r.session_no
            UNION ALL
            SELECT at - at % 86400000, namespace, purpose, 1, prompt_tokens, cached_tokens,
                completion_tokens, cost_micros
            FROM bills) AS line
        GROUP BY day, namespace, purpose HAVING sum(calls) > 0
        ORDER BY day DESC, namespace, purpose LIMIT ?1";
    db.all(sql, values![LINES_MAX])
}
