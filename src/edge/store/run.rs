//! Runs: one extraction of one slice with one prompt and model, and what it cost.

use super::column::{Columns, int, json};
use super::error::Fault;
use crate::domain::{Digest, Finding, RunId, RunState, Rung, SessionId, SliceId, Timestamp, Usage};
use rusqlite::{Connection, OptionalExtension, params};

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

/// Columns of a run and its session's id, for [`read`].
pub(super) const COLUMNS: &str = "r.id, s.id, r.slice, r.slice_index, r.first_ordinal, \
     r.first_part, r.last_ordinal, r.last_part, r.asking, r.model, r.prompt_id, r.prompt_version, \
     r.schema_version, r.rung, r.generation, r.asks, r.calls, r.prompt_tokens, r.cached_tokens, \
     r.completion_tokens, r.cost_micros, r.state, r.error_kind, r.error_detail, r.findings, \
     r.started_at, r.finished_at, r.current";

pub(super) fn read(row: &mut Columns<'_>) -> rusqlite::Result<StoredRun> {
    let run = Run {
        id: RunId(row.digest()?),
        session: SessionId(row.digest()?),
        slice: SliceId(row.digest()?),
        index: row.next()?,
        first: (row.next()?, row.next()?),
        last: (row.next()?, row.next()?),
        asking: row.digest()?,
        model: row.next()?,
        prompt_id: row.next()?,
        prompt_version: row.next()?,
        schema_version: row.next()?,
        rung: row.named(Rung::of_name)?,
        generation: row.next()?,
        asks: row.next()?,
        calls: row.next()?,
        usage: usage(row)?,
        cost_micros: row.count()?,
        state: row.named(RunState::of_name)?,
        failure: failure(row)?,
        findings: row.json()?,
        started_at: row.time()?,
        finished_at: row.time()?,
    };
    Ok(StoredRun { run, current: row.next()? })
}

fn usage(row: &mut Columns<'_>) -> rusqlite::Result<Usage> {
    Ok(Usage {
        prompt_tokens: row.count()?,
        cached_tokens: row.count()?,
        completion_tokens: row.count()?,
    })
}

pub(super) fn failure(row: &mut Columns<'_>) -> rusqlite::Result<Option<Failure>> {
    let (kind, detail): (Option<String>, Option<String>) = (row.next()?, row.next()?);
    Ok(kind.map(|kind| Failure { kind, detail: detail.unwrap_or_default() }))
}

/// Writes a run, over an earlier one with its id. A new generation adds to what was paid; the same
/// one told again does not.
pub(super) fn write(connection: &Connection, session_no: i64, run: &Run) -> Result<(), Fault> {
    const SQL: &str = "INSERT INTO runs
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
            asks = excluded.asks + iif(generation < excluded.generation, asks, 0),
            calls = max(excluded.calls + iif(generation < excluded.generation, calls, 0), calls),
            prompt_tokens = max(excluded.prompt_tokens
                + iif(generation < excluded.generation, prompt_tokens, 0), prompt_tokens),
            cached_tokens = max(excluded.cached_tokens
                + iif(generation < excluded.generation, cached_tokens, 0), cached_tokens),
            completion_tokens = max(excluded.completion_tokens
                + iif(generation < excluded.generation, completion_tokens, 0), completion_tokens),
            cost_micros = max(excluded.cost_micros
                + iif(generation < excluded.generation, cost_micros, 0), cost_micros),
            current = 1";
    connection.prepare_cached(SQL)?.execute(params![
        run.id.0.as_bytes(),
        session_no,
        run.slice.0.as_bytes(),
        run.index,
        run.first.0,
        run.first.1,
        run.last.0,
        run.last.1,
        run.asking.as_bytes(),
        run.model,
        run.prompt_id,
        run.prompt_version,
        run.schema_version,
        run.rung.name(),
        run.generation,
        run.asks,
        run.calls,
        int(run.usage.prompt_tokens),
        int(run.usage.cached_tokens),
        int(run.usage.completion_tokens),
        int(run.cost_micros),
        run.state.name(),
        run.failure.as_ref().map(|failure| &failure.kind),
        run.failure.as_ref().map(|failure| &failure.detail),
        json(&run.findings)?,
        run.started_at.0,
        run.finished_at.0,
    ])?;
    Ok(())
}

/// Adds what a later generation cost to a run that stays as it is.
/// Lets `run` take the place of what others that asked in another way made of the same entries. Where
/// only a part is the same, both stand until the session ends.
pub(super) fn replace_others(
    connection: &Connection,
    session_no: i64,
    run: &Run,
) -> Result<(), Fault> {
    let sql = "UPDATE runs SET current = 0
        WHERE session_no = ?1 AND current = 1 AND asking <> ?2
            AND (first_ordinal, first_part) >= (?3, ?4)
            AND (last_ordinal, last_part) <= (?5, ?6)";
    connection.prepare_cached(sql)?.execute(params![
        session_no,
        run.asking.as_bytes(),
        run.first.0,
        run.first.1,
        run.last.0,
        run.last.1,
    ])?;
    Ok(())
}

pub(super) fn add_cost(connection: &Connection, run_no: i64, run: &Run) -> Result<(), Fault> {
    let sql = "UPDATE runs SET generation = ?2, asks = asks + ?3, calls = calls + ?4,
            prompt_tokens = prompt_tokens + ?5, cached_tokens = cached_tokens + ?6,
            completion_tokens = completion_tokens + ?7, cost_micros = cost_micros + ?8,
            finished_at = ?9, current = 1
        WHERE no = ?1 AND generation < ?2";
    connection.prepare_cached(sql)?.execute(params![
        run_no,
        run.generation,
        run.asks,
        run.calls,
        int(run.usage.prompt_tokens),
        int(run.usage.cached_tokens),
        int(run.usage.completion_tokens),
        int(run.cost_micros),
        run.finished_at.0,
    ])?;
    Ok(())
}

/// Finished runs that asked in this way, by position.
pub(super) fn known(
    connection: &Connection,
    session: SessionId,
    asking: Digest,
) -> Result<Vec<KnownRun>, Fault> {
    let sql = "SELECT r.id, r.slice, r.first_ordinal, r.first_part, r.last_ordinal, r.last_part,
            r.state, r.generation, r.error_kind
        FROM sessions s JOIN runs r ON r.session_no = s.no
        WHERE s.id = ?1 AND r.asking = ?2
        ORDER BY r.first_ordinal, r.first_part, r.no";
    let mut select = connection.prepare_cached(sql)?;
    let rows = select.query_map(params![session.0.as_bytes(), asking.as_bytes()], |row| {
        let mut row = Columns::of(row);
        Ok(KnownRun {
            run: RunId(row.digest()?),
            slice: SliceId(row.digest()?),
            first: (row.next()?, row.next()?),
            last: (row.next()?, row.next()?),
            state: row.named(RunState::of_name)?,
            generation: row.next()?,
            failure: row.next()?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Runs of one session or of all, by session and position; at most `limit`.
pub(super) fn list(
    connection: &Connection,
    session: Option<SessionId>,
    limit: u32,
) -> Result<Vec<StoredRun>, Fault> {
    let sql = format!(
        "SELECT {COLUMNS} FROM sessions s JOIN runs r ON r.session_no = s.no
        WHERE ?1 IS NULL OR s.id = ?1
        ORDER BY s.no, r.first_ordinal, r.first_part, r.no LIMIT ?2"
    );
    let mut select = connection.prepare_cached(&sql)?;
    let session = session.map(|id| *id.0.as_bytes());
    let rows = select.query_map(params![session, limit], |row| read(&mut Columns::of(row)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// One run by its id.
pub(super) fn find(connection: &Connection, id: RunId) -> Result<Option<StoredRun>, Fault> {
    let sql = format!(
        "SELECT {COLUMNS} FROM runs r JOIN sessions s ON s.no = r.session_no WHERE r.id = ?1"
    );
    let mut find = connection.prepare_cached(&sql)?;
    Ok(find.query_row([id.0.as_bytes()], |row| read(&mut Columns::of(row))).optional()?)
}

/// What runs that finished at `since` or later cost.
pub(super) fn spent(
    connection: &Connection,
    since: Timestamp,
    namespace: Option<&str>,
    session: Option<SessionId>,
) -> Result<Spent, Fault> {
    let sql = "SELECT coalesce(sum(r.calls), 0), coalesce(sum(r.prompt_tokens), 0),
            coalesce(sum(r.cached_tokens), 0), coalesce(sum(r.completion_tokens), 0),
            coalesce(sum(r.cost_micros), 0)
        FROM runs r JOIN sessions s ON s.no = r.session_no
        WHERE ?1 <= r.finished_at AND (?2 IS NULL OR s.namespace = ?2)
            AND (?3 IS NULL OR s.id = ?3)";
    let mut select = connection.prepare_cached(sql)?;
    let session = session.map(|id| *id.0.as_bytes());
    let spent = select.query_row(params![since.0, namespace, session], |row| {
        let mut row = Columns::of(row);
        Ok(Spent { calls: row.count()?, usage: usage(&mut row)?, cost_micros: row.count()? })
    })?;
    Ok(spent)
}
