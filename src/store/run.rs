//! Runs: one extraction of one slice with one prompt and model, and what it cost.

use super::db::Db;
use super::error::{Fault, StoreError};
use super::handle::Store;
use super::prefix::{self, IdPrefix, PrefixLookup};
use super::spend::read_usage;
use super::value::{Columns, json, values};
use crate::domain::{
    Digest, ErrorKind, Finding, OutputMode, RunId, RunState, SessionId, SliceId, Timestamp, Usage,
};

/// A run that ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Run {
    /// Digest of slice, prompt, schema and model.
    pub id: RunId,
    /// The conversation.
    pub session: SessionId,
    /// Slice that the model read.
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
    /// The digest of the prompt's text; none for runs of versions that did not keep it.
    pub prompt_digest: Option<Digest>,
    /// The version of the answer's schema.
    pub schema_version: u32,
    /// Output mode of the last question.
    pub rung: OutputMode,
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
    /// Final state.
    pub state: RunState,
    /// Why, if it failed.
    pub failure: Option<RunFailure>,
    /// Findings in the answers; rules, no words.
    pub findings: Vec<Finding>,
    /// When the first question was asked.
    pub started_at: Timestamp,
    /// When the last answer was worked in.
    pub finished_at: Timestamp,
}

/// Why a run failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RunFailure {
    /// A stable name, such as `too-long`.
    pub kind: String,
    /// A sentence for a person; no words of the conversation.
    pub detail: String,
}

impl Run {
    /// The prompt for a person: id, version and the first letters of its digest, since an edited prompt
    /// may have kept its version.
    pub fn prompt(&self) -> String {
        let digest = self.prompt_digest.map(|digest| format!(" ({:.8})", digest.to_string()));
        format!("{} v{}{}", self.prompt_id, self.prompt_version, digest.unwrap_or_default())
    }
}

/// A run in the store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct StoredRun {
    /// As it was staged; what it cost is the sum over its generations.
    pub run: Run,
    pub current: bool,
}

/// As much of a finished run as shows whether its slice is to be asked about again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct KnownRun {
    pub run: RunId,
    pub state: RunState,
    pub generation: u32,
    /// Kind of the failure, if it failed.
    pub failure: Option<String>,
}

impl KnownRun {
    /// The generation of the next question. Where no answer was kept, nobody was asked yet.
    pub(crate) fn afresh(&self) -> u32 {
        let asked = self.failure.as_deref() != Some(ErrorKind::Stale.name());
        self.generation + u32::from(asked)
    }
}

/// Columns of a run and its session's id, for [`read`].
pub(super) const COLUMNS: &str = "r.id, s.id, r.slice, r.slice_index, r.first_ordinal, \
     r.first_part, r.last_ordinal, r.last_part, r.asking, r.model, r.prompt_id, r.prompt_version, \
     r.schema_version, r.rung, r.generation, r.asks, r.calls, r.prompt_tokens, r.cached_tokens, \
     r.completion_tokens, r.cost_micros, r.state, r.error_kind, r.error_detail, r.findings, \
     r.started_at, r.finished_at, r.prompt_digest, r.current";

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
        rung: row.named(OutputMode::of_name)?,
        generation: row.next()?,
        asks: row.next()?,
        calls: row.next()?,
        usage: read_usage(row)?,
        cost_micros: row.next()?,
        state: row.named(RunState::of_name)?,
        failure: failure(row)?,
        findings: row.json()?,
        started_at: row.next()?,
        finished_at: row.next()?,
        prompt_digest: row.next()?,
    };
    Ok(StoredRun { run, current: row.next()? })
}

pub(super) fn failure(row: &mut Columns<'_>) -> Result<Option<RunFailure>, Fault> {
    let (kind, detail): (Option<String>, Option<String>) = (row.next()?, row.next()?);
    Ok(kind.map(|kind| RunFailure { kind, detail: detail.unwrap_or_default() }))
}

/// Update of one cost column: a later generation adds to it, the same one told again may only know more.
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

/// Writes a run, over an earlier one with its id, and gives its row number. A new generation adds to what was paid;
/// the same one told again does not.
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
    db.one(WRITE, row, |row| row.next())
}

const KNOWN_COLUMNS: &str = "id, state, generation, error_kind";

fn read_known(row: &mut Columns<'_>) -> Result<KnownRun, Fault> {
    Ok(KnownRun {
        run: RunId(row.next()?),
        state: row.named(RunState::of_name)?,
        generation: row.next()?,
        failure: row.next()?,
    })
}

pub(super) fn find(db: &mut Db, id: RunId) -> Result<Option<StoredRun>, Fault> {
    let sql = format!(
        "SELECT {COLUMNS} FROM runs r JOIN sessions s ON s.no = r.session_no WHERE r.id = ?1"
    );
    db.first(&sql, values![&id.0], read)
}

impl Store {
    /// The finished runs of a session that asked in this way, replaced ones too.
    pub(crate) async fn known_runs(
        &self,
        session: SessionId,
        asking: Digest,
    ) -> Result<Vec<KnownRun>, StoreError> {
        self.read("reading known runs", move |db| {
            let sql = format!(
                "SELECT {KNOWN_COLUMNS} FROM runs
                WHERE session_no = (SELECT no FROM sessions WHERE id = ?1) AND asking = ?2"
            );
            db.all(&sql, values![&session.0, &asking], read_known)
        })
        .await
    }

    pub(crate) async fn known_run(&self, run: RunId) -> Result<Option<KnownRun>, StoreError> {
        self.read("looking for a run", move |db| {
            let sql = format!("SELECT {KNOWN_COLUMNS} FROM runs WHERE id = ?1");
            db.first(&sql, values![&run.0], read_known)
        })
        .await
    }

    pub(crate) async fn run(
        &self,
        prefix: IdPrefix,
    ) -> Result<PrefixLookup<StoredRun>, StoreError> {
        self.read("looking up a run", move |db| {
            prefix::find(db, "runs", &prefix, |db, id| find(db, RunId(id)))
        })
        .await
    }

    /// Runs of one session or of all, replaced ones too, by time of session and position; `limit` at most.
    pub(crate) async fn runs(
        &self,
        session: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<StoredRun>, StoreError> {
        self.read("reading runs", move |db| {
            let sql = format!(
                "SELECT {COLUMNS} FROM sessions s JOIN runs r ON r.session_no = s.no
                WHERE s.id = ?1 OR ?1 IS NULL
                ORDER BY s.started_at NULLS FIRST, s.id, r.first_ordinal, r.first_part, r.no LIMIT ?2"
            );
            db.all(&sql, values![session.as_ref().map(|id| &id.0), limit], read)
        })
        .await
    }
}
