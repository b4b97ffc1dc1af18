//! Runs: one extraction of one slice with one prompt and model, and what it cost.

use super::bill;
use super::db::{Columns, Db, json, values};
use super::error::Fault;
use crate::domain::{
    Digest, ErrorKind, Finding, RunId, RunState, Rung, SessionId, SliceId, Timestamp, Usage,
};

/// A run that ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Run {
    /// Digest of slice, prompt, schema and model.
    pub id: RunId,
    /// The conversation.
    pub session: SessionId,
    /// What the model read.
    pub slice: SliceId,
    /// The slice's place among the session's slices, from 0.
    pub index: u32,
    /// Where the slice begins: the entry's ordinal and its part.
    pub first: (u32, u32),
    /// Where it ends, inclusive.
    pub last: (u32, u32),
    /// Digest of model, prompt and schema: equal for all runs that ask in the same way.
    pub asking: Digest,
    /// The model's name at the endpoint.
    pub model: String,
    /// The prompt's id.
    pub prompt_id: String,
    /// The prompt's version.
    pub prompt_version: u32,
    /// The version of the answer's schema.
    pub schema_version: u32,
    /// How the answer was asked for in the end.
    pub rung: Rung,
    /// 0, and one more each time the slice was asked afresh.
    pub generation: u32,
    /// Questions asked, those that the journal answered included.
    pub asks: u32,
    /// Questions that went to the endpoint.
    pub calls: u32,
    /// Tokens that they cost.
    pub usage: Usage,
    /// Money that they cost, in millionths of a dollar.
    pub cost_micros: u64,
    /// How it ended.
    pub state: RunState,
    /// Why, if it failed.
    pub failure: Option<Failure>,
    /// What was wrong with the answers; rules, no words.
    pub findings: Vec<Finding>,
    /// When the first question was asked.
    pub started_at: Timestamp,
    /// When the last answer was worked in.
    pub finished_at: Timestamp,
}

/// Why a run failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// A stable name, such as `too-long`.
    pub kind: String,
    /// A sentence for a person; no words of the conversation.
    pub detail: String,
}

/// A run in the store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoredRun {
    /// As it was staged; what it cost is the sum over its generations.
    pub run: Run,
    /// Whether it covers its entries now, or others took its place.
    pub current: bool,
}

/// A finished run of a session, so that a replay cuts at the same places and skips what is done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KnownRun {
    /// Its id.
    pub run: RunId,
    /// What the model read.
    pub slice: SliceId,
    /// Where the slice begins: the entry's ordinal and its part.
    pub first: (u32, u32),
    /// Where it ends, inclusive.
    pub last: (u32, u32),
    /// How it ended.
    pub state: RunState,
    /// 0, and one more each time the slice was asked afresh.
    pub generation: u32,
    /// The stable name of what failed, if something did.
    pub failure: Option<String>,
}

impl KnownRun {
    /// The generation under which it is asked about once more. Where no answer was kept, nobody was
    /// asked yet.
    pub fn afresh(&self) -> u32 {
        let asked = self.failure.as_deref() != Some(ErrorKind::Stale.name());
        self.generation + u32::from(asked)
    }
}

/// What was paid for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Spent {
    /// Questions that went to an endpoint.
    pub calls: u64,
    /// Tokens.
    pub usage: Usage,
    /// Money, in millionths of a dollar.
    pub cost_micros: u64,
}

impl Spent {
    /// Both together.
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

/// Columns of a run and its session's id, for [`read`].
pub(super) const COLUMNS: &str = "r.id, s.id, r.slice, r.slice_index, r.first_ordinal, \
     r.first_part, r.last_ordinal, r.last_part, r.asking, r.model, r.prompt_id, r.prompt_version, \
     r.schema_version, r.rung, r.generation, r.asks, r.calls, r.prompt_tokens, r.cached_tokens, \
     r.completion_tokens, r.cost_micros, r.state, r.error_kind, r.error_detail, r.findings, \
     r.started_at, r.finished_at, r.current";

pub(super) fn read(row: &mut Columns<'_>) -> Result<StoredRun, Fault> {
    let run = Run {
        id: RunId(row.next()?),
        session: SessionId(row.next()?),
        slice: SliceId(row.next()?),
        index: row.next()?,
        first: (row.next()?, row.next()?),
        last: (row.next()?, row.next()?),
        asking: row.next()?,
        model: row.next()?,
        prompt_id: row.next()?,
        prompt_version: row.next()?,
        schema_version: row.next()?,
        rung: row.named(Rung::of_name)?,
        generation: row.next()?,
        asks: row.next()?,
        calls: row.next()?,
        usage: usage(row)?,
        cost_micros: row.next()?,
        state: row.named(RunState::of_name)?,
        failure: failure(row)?,
        findings: row.json()?,
        started_at: row.next()?,
        finished_at: row.next()?,
    };
    Ok(StoredRun { run, current: row.next()? })
}

fn usage(row: &mut Columns<'_>) -> Result<Usage, Fault> {
    Ok(Usage {
        prompt_tokens: row.next()?,
        cached_tokens: row.next()?,
        completion_tokens: row.next()?,
    })
}

pub(super) fn failure(row: &mut Columns<'_>) -> Result<Option<Failure>, Fault> {
    let (kind, detail): (Option<String>, Option<String>) = (row.next()?, row.next()?);
    Ok(kind.map(|kind| Failure { kind, detail: detail.unwrap_or_default() }))
}

/// What was paid in one column: a later generation adds to it, the same one told again may only
/// know more.
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
         cost_micros, state, error_kind, error_detail, findings, started_at, finished_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
         ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27)
    ON CONFLICT (id) DO UPDATE SET
        slice_index = excluded.slice_index, rung = excluded.rung, state = excluded.state,
        error_kind = excluded.error_kind, error_detail = excluded.error_detail,
        findings = excluded.findings, started_at = excluded.started_at,
        finished_at = excluded.finished_at, generation = excluded.generation,
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

/// Writes a run, over an earlier one with its id, and gives its row number. A new generation adds to
/// what was paid; the same one told again does not.
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
    ];
    db.one(WRITE, row, |row| row.next())
}

/// Lets `run` take the place of what others that asked in another way made of the same entries. Where
/// only a part is the same, both stand until the session ends.
pub(super) fn replace_others(db: &mut Db, session_no: i64, run: &Run) -> Result<(), Fault> {
    let sql = "UPDATE runs SET current = 0
        WHERE session_no = ?1 AND current = 1 AND asking <> ?2
            AND (first_ordinal, first_part) >= (?3, ?4)
            AND (last_ordinal, last_part) <= (?5, ?6)";
    let (first, last) = (run.first, run.last);
    let values = values![session_no, &run.asking, first.0, first.1, last.0, last.1];
    db.send(sql, values)
}

/// Adds what a later generation cost to a run that stays as it is.
pub(super) fn add_cost(db: &mut Db, run_no: i64, run: &Run) -> Result<(), Fault> {
    let sql = "UPDATE runs SET generation = ?2, asks = asks + ?3, calls = calls + ?4,
            prompt_tokens = prompt_tokens + ?5, cached_tokens = cached_tokens + ?6,
            completion_tokens = completion_tokens + ?7, cost_micros = cost_micros + ?8,
            finished_at = ?9, current = 1
        WHERE no = ?1 AND generation < ?2";
    let values = values![
        run_no,
        run.generation,
        run.asks,
        run.calls,
        run.usage.prompt_tokens,
        run.usage.cached_tokens,
        run.usage.completion_tokens,
        run.cost_micros,
        run.finished_at,
    ];
    db.send(sql, values)
}

/// Finished runs that asked in this way, by position.
pub(super) fn known(
    db: &mut Db,
    session: SessionId,
    asking: Digest,
) -> Result<Vec<KnownRun>, Fault> {
    let sql = "SELECT r.id, r.slice, r.first_ordinal, r.first_part, r.last_ordinal, r.last_part,
            r.state, r.generation, r.error_kind
        FROM sessions s JOIN runs r ON r.session_no = s.no
        WHERE s.id = ?1 AND r.asking = ?2
        ORDER BY r.first_ordinal, r.first_part, r.no";
    db.all(sql, values![&session.0, &asking], read_known)
}

/// A finished run, if there is one.
pub(super) fn known_one(db: &mut Db, run: RunId) -> Result<Option<KnownRun>, Fault> {
    let sql = "SELECT id, slice, first_ordinal, first_part, last_ordinal, last_part, state,
            generation, error_kind
        FROM runs WHERE id = ?1";
    db.first(sql, values![&run.0], read_known)
}

fn read_known(row: &mut Columns<'_>) -> Result<KnownRun, Fault> {
    Ok(KnownRun {
        run: RunId(row.next()?),
        slice: SliceId(row.next()?),
        first: (row.next()?, row.next()?),
        last: (row.next()?, row.next()?),
        state: row.named(RunState::of_name)?,
        generation: row.next()?,
        failure: row.next()?,
    })
}

/// Runs of one session or of all, by session and position; at most `limit`. The order does not depend on
/// which session was written first.
pub(super) fn list(
    db: &mut Db,
    session: Option<SessionId>,
    limit: u32,
) -> Result<Vec<StoredRun>, Fault> {
    let sql = format!(
        "SELECT {COLUMNS} FROM sessions s JOIN runs r ON r.session_no = s.no
        WHERE s.id = ?1 OR ?1 IS NULL
        ORDER BY s.started_at NULLS FIRST, s.id, r.first_ordinal, r.first_part, r.no LIMIT ?2"
    );
    db.all(&sql, values![session.as_ref().map(|id| &id.0), limit], read)
}

/// One run by its id.
pub(super) fn find(db: &mut Db, id: RunId) -> Result<Option<StoredRun>, Fault> {
    let sql = format!(
        "SELECT {COLUMNS} FROM runs r JOIN sessions s ON s.no = r.session_no WHERE r.id = ?1"
    );
    db.first(&sql, values![&id.0], read)
}

/// What runs that finished at `since` or later cost.
pub(super) fn spent(
    db: &mut Db,
    since: Timestamp,
    namespace: Option<&str>,
    session: Option<SessionId>,
) -> Result<Spent, Fault> {
    // PostgreSQL adds whole numbers up to decimal ones.
    let sql = "SELECT CAST(coalesce(sum(r.calls), 0) AS BIGINT),
            CAST(coalesce(sum(r.prompt_tokens), 0) AS BIGINT),
            CAST(coalesce(sum(r.cached_tokens), 0) AS BIGINT),
            CAST(coalesce(sum(r.completion_tokens), 0) AS BIGINT),
            CAST(coalesce(sum(r.cost_micros), 0) AS BIGINT)
        FROM runs r JOIN sessions s ON s.no = r.session_no
        WHERE ?1 <= r.finished_at AND (s.namespace = ?2 OR ?2 IS NULL)
            AND (s.id = ?3 OR ?3 IS NULL)";
    let by = values![since, namespace, session.as_ref().map(|id| &id.0)];
    let runs = db.one(sql, by, read_spent)?;
    // What is no run's is about no single session.
    match session {
        Some(_) => Ok(runs),
        None => Ok(runs.and(&bill::spent(db, since, namespace)?)),
    }
}

/// Calls, tokens and money, in this order.
pub(super) fn read_spent(row: &mut Columns<'_>) -> Result<Spent, Fault> {
    Ok(Spent { calls: row.next()?, usage: usage(row)?, cost_micros: row.next()? })
}
