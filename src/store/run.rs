//! Runs: extractions of one slice with one prompt and model. Their cost, and that of calls outside
//! runs, in tokens and money.

use super::{
    Columns, Db, IdPrefix, PrefixLookup, Result, Row, Store, StoreResult, json, row_of, values,
};
use crate::domain::{
    Digest, ErrorKind, Finding, OutputMode, Purpose, RunId, RunState, SessionId, SliceId,
    Timestamp, Usage,
};
use std::sync::LazyLock;

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
    fn read(row: &mut Columns<'_>) -> Result<Option<RunFailure>> {
        let (kind, detail): (Option<String>, Option<String>) = row.next()?;
        Ok(kind.map(|kind| RunFailure { kind, detail: detail.unwrap_or_default() }))
    }
}

/// Writes a run. A new generation adds to the costs, a repeated one keeps the larger values.
static WRITE: LazyLock<String> = LazyLock::new(|| {
    let costs = ["calls", "prompt_tokens", "cached_tokens", "completion_tokens", "cost_micros"];
    let costs = costs.map(|cost| {
        format!(
            "{cost} = CASE WHEN runs.generation < excluded.generation
                THEN runs.{cost} + excluded.{cost}
                WHEN runs.{cost} < excluded.{cost} THEN excluded.{cost} ELSE runs.{cost} END"
        )
    });
    format!(
        "INSERT INTO runs
            (id, session_no, slice, slice_index, first_ordinal, first_part, last_ordinal,
             last_part, asking, model, prompt_id, prompt_version, schema_version, rung,
             generation, asks, calls, prompt_tokens, cached_tokens, completion_tokens, cost_micros,
             state, error_kind, error_detail, findings, started_at, finished_at, prompt_digest)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
             ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)
        ON CONFLICT (id) DO UPDATE SET
            slice_index = excluded.slice_index, rung = excluded.rung, state = excluded.state,
            error_kind = excluded.error_kind, error_detail = excluded.error_detail,
            findings = excluded.findings, started_at = excluded.started_at,
            finished_at = excluded.finished_at, prompt_digest = excluded.prompt_digest,
            generation = excluded.generation,
            asks = CASE WHEN runs.generation < excluded.generation THEN runs.asks + excluded.asks
                ELSE excluded.asks END, {}, current = 1 RETURNING no",
        costs.join(", ")
    )
});

/// Writes a run, replacing an earlier one with its id, and returns its row number. A new generation
/// adds to the cost; repeating one does not.
pub(super) fn write(db: &mut Db, session_no: i64, run: &Run) -> Result<i64> {
    let findings = json(&run.findings)?;
    let (kind, detail) = run.failure.as_ref().map(|it| (&it.kind, &it.detail)).unzip();
    let usage = &run.usage;
    let row = values![
        &run.id, session_no, &run.slice, run.index, run.first.0, run.first.1, run.last.0,
        run.last.1, &run.asking, &run.model, &run.prompt_id, run.prompt_version,
        run.schema_version, run.rung, run.generation, run.asks, run.calls, usage.prompt_tokens,
        usage.cached_tokens, usage.completion_tokens, run.cost_micros, run.state, kind, detail,
        &findings, run.started_at, run.finished_at, &run.prompt_digest,
    ];
    db.one(&WRITE, row)
}

const KNOWN_COLUMNS: &str = "id, state, generation, error_kind";

row_of! { KnownRun { run, state, generation, failure } }

pub(super) fn find(db: &mut Db, id: RunId) -> Result<Option<StoredRun>> {
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
    ) -> StoreResult<Vec<KnownRun>> {
        let sql = format!(
            "SELECT {KNOWN_COLUMNS} FROM runs
            WHERE session_no = (SELECT no FROM sessions WHERE id = ?1) AND asking = ?2"
        );
        self.all("reading known runs", &sql, values![&session.0, &asking]).await
    }

    pub(crate) async fn known_run(&self, run: RunId) -> StoreResult<Option<KnownRun>> {
        let sql = format!("SELECT {KNOWN_COLUMNS} FROM runs WHERE id = ?1");
        self.first("looking for a run", &sql, values![&run.0]).await
    }

    pub(crate) async fn run(&self, prefix: IdPrefix) -> StoreResult<PrefixLookup<StoredRun>> {
        self.lookup("looking up a run", "runs", prefix, |db, id| find(db, RunId(id))).await
    }

    /// Returns up to `limit` runs of one session or all, with replaced ones, by session start and place.
    pub(crate) async fn runs(
        &self,
        session: Option<SessionId>,
        limit: u32,
    ) -> StoreResult<Vec<StoredRun>> {
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
    pub usage: Usage,
    /// Cost in millionths of a dollar.
    pub cost_micros: u64,
}

/// Cost of one namespace for one purpose on one day.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BillLine {
    /// Midnight of the day, UTC.
    pub day: Timestamp,
    pub namespace: String,
    pub purpose: Purpose,
    pub spent: Spent,
}

/// Sums of a [`Spent`]. PostgreSQL's `sum` of integers is a decimal.
const SUMS: &str = "CAST(coalesce(sum(calls), 0) AS BIGINT), \
     CAST(coalesce(sum(prompt_tokens), 0) AS BIGINT), \
     CAST(coalesce(sum(cached_tokens), 0) AS BIGINT), \
     CAST(coalesce(sum(completion_tokens), 0) AS BIGINT), \
     CAST(coalesce(sum(cost_micros), 0) AS BIGINT)";
/// Costs of runs, and of calls outside runs.
const COSTS: &str = "(
    SELECT r.finished_at AS at, s.namespace, s.id AS session, 'extract' AS purpose, r.calls,
        r.prompt_tokens, r.cached_tokens, r.completion_tokens, r.cost_micros
    FROM runs r JOIN sessions s ON s.no = r.session_no
    UNION ALL
    SELECT at, namespace, session, purpose, 1, prompt_tokens, cached_tokens, completion_tokens,
        cost_micros
    FROM bills WHERE purpose <> 'in-flight') AS line";

/// Cost of runs that finished at `since` or later, and of calls outside runs.
pub(super) fn spent(
    db: &mut Db,
    since: Timestamp,
    namespace: Option<&str>,
    session: Option<SessionId>,
) -> Result<Spent> {
    let sql = format!(
        "SELECT {SUMS} FROM {COSTS} WHERE ?1 <= at AND (namespace = ?2 OR ?2 IS NULL)
            AND (session = ?3 OR ?3 IS NULL)"
    );
    db.one(&sql, values![since, namespace, session.as_ref()])
}

row_of! { Spent { calls, usage, cost_micros } }
row_of! { BillLine { day, namespace, purpose, spent } }
row_of! { Usage { prompt_tokens, cached_tokens, completion_tokens } }

/// The bill by day, namespace and purpose, latest day first.
pub(super) fn bill(db: &mut Db) -> Result<Vec<BillLine>> {
    // A day has 86,400,000 milliseconds.
    let sql = format!(
        "SELECT at - at % 86400000 AS day, namespace, purpose, {SUMS} FROM {COSTS}
        GROUP BY day, namespace, purpose HAVING sum(calls) > 0
        ORDER BY day DESC, namespace, purpose LIMIT ?1"
    );
    db.all(&sql, values![LINES_MAX])
}
