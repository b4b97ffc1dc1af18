//! Runs: extractions of one slice with one prompt and model. Their cost, and that of calls outside
//! runs, in tokens and money.

use super::db::Db;
use super::error::{Fault, StoreError};
use super::handle::Store;
use super::prefix::{IdPrefix, PrefixLookup};
use super::value::{Columns, Row, json, row_of, values};
use crate::domain::{
    Digest, ErrorKind, Finding, OutputMode, Purpose, RunId, RunState, SessionId, SliceId,
    Timestamp, Usage,
};

/// A finished run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Run {
    /// Digest of slice, prompt, schema and model.
    pub id: RunId,
    /// The conversation.
    pub session: SessionId,
    /// Slice that the model read.
    pub slice: SliceId,
    /// Position among the session's slices, from 0.
    pub index: u32,
    /// Start of the slice: the entry's ordinal and part.
    pub first: (u32, u32),
    /// End of the slice, inclusive.
    pub last: (u32, u32),
    /// Digest of model, prompt and schema, equal for all runs with the same ones.
    pub asking: Digest,
    /// Model name at the endpoint.
    pub model: String,
    /// Prompt id.
    pub prompt_id: String,
    /// Prompt version.
    pub prompt_version: u32,
    /// Digest of the prompt's text; `None` for runs of older versions, which did not store it.
    pub prompt_digest: Option<Digest>,
    /// Version of the answer's schema.
    pub schema_version: u32,
    /// Output mode of the last request.
    pub rung: OutputMode,
    /// Number of times the slice was extracted afresh.
    pub generation: u32,
    /// Number of requests, including those answered by the journal.
    pub asks: u32,
    /// Number of requests sent to the endpoint.
    pub calls: u32,
    /// Tokens used.
    pub usage: Usage,
    /// Cost in millionths of a dollar.
    pub cost_micros: u64,
    /// Final state.
    pub state: RunState,
    /// Cause, if it failed.
    pub failure: Option<RunFailure>,
    /// Findings in the answers; rules, no conversation text.
    pub findings: Vec<Finding>,
    /// Time of the first request.
    pub started_at: Timestamp,
    /// Time at which the last answer was processed.
    pub finished_at: Timestamp,
}

/// Cause of a failed run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RunFailure {
    /// Stable name, such as `too-long`.
    pub kind: String,
    /// Description for a person, without conversation text.
    pub detail: String,
}

impl Run {
    /// The prompt for display: id, version and first digits of its digest, since an edited prompt
    /// may keep its version.
    pub fn prompt(&self) -> String {
        let digest = self.prompt_digest.map(|digest| format!(" ({:.8})", digest.to_string()));
        format!("{} v{}{}", self.prompt_id, self.prompt_version, digest.unwrap_or_default())
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct StoredRun {
    /// The run as staged, with its cost summed over its generations.
    pub run: Run,
    pub current: bool,
}

/// The part of a finished run that decides if its slice is extracted again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct KnownRun {
    pub run: RunId,
    pub state: RunState,
    pub generation: u32,
    pub failure: Option<String>,
}

impl KnownRun {
    /// Returns the next generation; the same one if no model was asked (stale).
    pub(crate) fn afresh(&self) -> u32 {
        let asked = self.failure.as_deref() != Some(ErrorKind::Stale.name());
        self.generation + u32::from(asked)
    }
}

/// Columns of a run and its session's id, of a [`StoredRun`].
pub(super) const COLUMNS: &str = "r.id, s.id, r.slice, r.slice_index, r.first_ordinal, \
     r.first_part, r.last_ordinal, r.last_part, r.asking, r.model, r.prompt_id, r.prompt_version, \
     r.schema_version, r.rung, r.generation, r.asks, r.calls, r.prompt_tokens, r.cached_tokens, \
     r.completion_tokens, r.cost_micros, r.state, r.error_kind, r.error_detail, r.findings, \
     r.started_at, r.finished_at, r.prompt_digest, r.current";

row_of! {
    Run {
        id, session, slice, index, first, last, asking, model, prompt_id, prompt_version,
        schema_version, rung, generation, asks, calls, usage, cost_micros, state, failure, findings,
        started_at, finished_at, prompt_digest
    }
}
row_of! { StoredRun { run, current } }

impl Row for Option<RunFailure> {
    fn read(row: &mut Columns<'_>) -> Result<Option<RunFailure>, Fault> {
        let (kind, detail): (Option<String>, Option<String>) = row.next()?;
        Ok(kind.map(|kind| RunFailure { kind, detail: detail.unwrap_or_default() }))
    }
}

/// Update of a cost column: a new generation adds to it, a repeated one keeps the larger value.
macro_rules! paid {
    ($column:literal) => {
        concat!(
            $column,
            " = CASE WHEN runs.generation < excluded.generation THEN runs.",
            $column,
            " + excluded.",
            $column,
            " WHEN runs.",
            $column,
            " < excluded.",
            $column,
            " THEN excluded.",
            $column,
            " ELSE runs.",
            $column,
            " END"
        )
    };
}

const WRITE: &str = concat!(
    "INSERT INTO runs
        (id, session_no, slice, slice_index, first_ordinal, first_part, last_ordinal,
         last_part, asking, model, prompt_id, prompt_version, schema_version, rung,
         generation, asks, calls, prompt_tokens, cached_tokens, completion_tokens,
         cost_micros, state, error_kind, error_detail, findings, started_at, finished_at, prompt_digest)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
         ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)
    ON CONFLICT (id) DO UPDATE SET
        slice_index = excluded.slice_index, rung = excluded.rung, state = excluded.state,
        error_kind = excluded.error_kind, error_detail = excluded.error_detail,
        findings = excluded.findings, started_at = excluded.started_at,
        finished_at = excluded.finished_at, prompt_digest = excluded.prompt_digest, generation = excluded.generation,
        asks = CASE WHEN runs.generation < excluded.generation THEN runs.asks + excluded.asks
            ELSE excluded.asks END, ",
    paid!("calls"),
    ", ",
    paid!("prompt_tokens"),
    ", ",
    paid!("cached_tokens"),
    ", ",
    paid!("completion_tokens"),
    ", ",
    paid!("cost_micros"),
    ", current = 1 RETURNING no"
);

/// Writes a run, replacing an earlier one with its id, and returns its row number. A new generation
/// adds to the cost; repeating one does not.
pub(super) fn write(db: &mut Db, session_no: i64, run: &Run) -> Result<i64, Fault> {
    let findings = json(&run.findings)?;
    let row = values![
        &run.id.0,
        session_no,
        &run.slice.0,
        run.index,
        run.first.0,
        run.first.1,
        run.last.0,
        run.last.1,
        &run.asking,
        &run.model,
        &run.prompt_id,
        run.prompt_version,
        run.schema_version,
        run.rung.name(),
        run.generation,
        run.asks,
        run.calls,
        run.usage.prompt_tokens,
        run.usage.cached_tokens,
        run.usage.completion_tokens,
        run.cost_micros,
        run.state.name(),
        run.failure.as_ref().map(|failure| &failure.kind),
        run.failure.as_ref().map(|failure| &failure.detail),
        &findings,
        run.started_at,
        run.finished_at,
        run.prompt_digest.as_ref(),
    ];
    db.one(WRITE, row)
}

const KNOWN_COLUMNS: &str = "id, state, generation, error_kind";

row_of! { KnownRun { run, state, generation, failure } }

pub(super) fn find(db: &mut Db, id: RunId) -> Result<Option<StoredRun>, Fault> {
    let sql = format!(
        "SELECT {COLUMNS} FROM runs r JOIN sessions s ON s.no = r.session_no WHERE r.id = ?1"
    );
    db.first(&sql, values![&id.0])
}

impl Store {
    /// Returns all finished runs of a session under `asking`, including replaced ones.
    pub(crate) async fn known_runs(
        &self,
        session: SessionId,
        asking: Digest,
    ) -> Result<Vec<KnownRun>, StoreError> {
        let sql = format!(
            "SELECT {KNOWN_COLUMNS} FROM runs
            WHERE session_no = (SELECT no FROM sessions WHERE id = ?1) AND asking = ?2"
        );
        self.all("reading known runs", &sql, values![&session.0, &asking]).await
    }

    pub(crate) async fn known_run(&self, run: RunId) -> Result<Option<KnownRun>, StoreError> {
        let sql = format!("SELECT {KNOWN_COLUMNS} FROM runs WHERE id = ?1");
        self.first("looking for a run", &sql, values![&run.0]).await
    }

    pub(crate) async fn run(
        &self,
        prefix: IdPrefix,
    ) -> Result<PrefixLookup<StoredRun>, StoreError> {
        self.lookup("looking up a run", "runs", prefix, |db, id| find(db, RunId(id))).await
    }

    /// Returns up to `limit` runs of one session or all, with replaced ones, by session start and place.
    pub(crate) async fn runs(
        &self,
        session: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<StoredRun>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM sessions s JOIN runs r ON r.session_no = s.no
            WHERE s.id = ?1 OR ?1 IS NULL
            ORDER BY s.started_at NULLS FIRST, s.id, r.first_ordinal, r.first_part, r.no LIMIT ?2"
        );
        self.all("reading runs", &sql, values![session.as_ref(), limit]).await
    }
}

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
    let by = values![since, namespace, session.as_ref()];
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
pub(super) fn bill(db: &mut Db) -> Result<Vec<BillLine>, Fault> {
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
