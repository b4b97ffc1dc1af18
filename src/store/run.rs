//! Runs: one extraction of one slice with one prompt and model, and what it cost.

use super::db::{Columns, Db, json, values};
use super::entry::{self, CoveredEntry};
use super::error::{Fault, StoreError, StoreErrorKind};
use super::handle::Store;
use super::prefix::{self, IdPrefix, PrefixLookup};
use super::{journal, queue, record};
use crate::domain::{
    Digest, ErrorKind, Finding, OutputMode, Record, RecordState, RunId, RunState, SessionId,
    SliceId, Timestamp, Usage,
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

/// A finished run of a session, so that a replay cuts at the same places and skips what is done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct KnownRun {
    pub run: RunId,
    pub slice: SliceId,
    pub first: (u32, u32),
    /// Where it ends, inclusive.
    pub last: (u32, u32),
    pub state: RunState,
    pub generation: u32,
    pub failure: Option<String>,
}

impl KnownRun {
    /// The generation under which it is asked about once more. Where no answer was kept, nobody was asked yet.
    pub(crate) fn afresh(&self) -> u32 {
        let asked = self.failure.as_deref() != Some(ErrorKind::Stale.name());
        self.generation + u32::from(asked)
    }
}

/// Calls, tokens and money.
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
        usage: usage(row)?,
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

fn usage(row: &mut Columns<'_>) -> Result<Usage, Fault> {
    Ok(Usage {
        prompt_tokens: row.next()?,
        cached_tokens: row.next()?,
        completion_tokens: row.next()?,
    })
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

/// Lets `run` take the place of what others that asked in another way made of the same entries. Where only a part is
/// the same, both stand until the session ends.
pub(super) fn replace_others(db: &mut Db, session_no: i64, run: &Run) -> Result<(), Fault> {
    let sql = "UPDATE runs SET current = 0
        WHERE session_no = ?1 AND current = 1 AND asking <> ?2
            AND (first_ordinal, first_part) >= (?3, ?4)
            AND (last_ordinal, last_part) <= (?5, ?6)";
    let (first, last) = (run.first, run.last);
    let values = values![session_no, &run.asking, first.0, first.1, last.0, last.1];
    db.run(sql, values)
}

/// Adds what a later generation cost to a run that stays as it is.
pub(super) fn add_cost(db: &mut Db, run_no: i64, run: &Run) -> Result<(), Fault> {
    let sql = "UPDATE runs SET generation = ?2, asks = asks + ?3, calls = calls + ?4,
            prompt_tokens = prompt_tokens + ?5, cached_tokens = cached_tokens + ?6,
            completion_tokens = completion_tokens + ?7, cost_micros = cost_micros + ?8,
            finished_at = ?9, current = 1
        WHERE no = ?1 AND generation < ?2";
    let values = values![
        run_no, run.generation, run.asks, run.calls, run.usage.prompt_tokens,
        run.usage.cached_tokens, run.usage.completion_tokens, run.cost_micros, run.finished_at,
    ];
    db.run(sql, values)
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

pub(super) fn find(db: &mut Db, id: RunId) -> Result<Option<StoredRun>, Fault> {
    let sql = format!(
        "SELECT {COLUMNS} FROM runs r JOIN sessions s ON s.no = r.session_no WHERE r.id = ?1"
    );
    db.first(&sql, values![&id.0], read)
}

/// Cost of runs that finished at `since` or later.
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
        None => Ok(runs.and(&journal::spent(db, since, namespace)?)),
    }
}

pub(super) fn read_spent(row: &mut Columns<'_>) -> Result<Spent, Fault> {
    Ok(Spent { calls: row.next()?, usage: usage(row)?, cost_micros: row.next()? })
}

/// A run with all that it came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Staging {
    /// The run.
    pub run: Run,
    /// The entries of its slice and what became of each. An entry may stand here more than once, once a part; it is
    /// then what its worst part is.
    pub entries: Vec<CoveredEntry>,
    /// Its records, in the order in which they are listed.
    pub records: Vec<Record>,
}

/// Effect of staging.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Staged {
    /// Records that the store did not hold before.
    pub new_records: u32,
    /// Records of the run that are staged now.
    pub staged: u32,
    /// Records of the run that are quarantined now.
    pub quarantined: u32,
    /// The run had been done before and failed now: the earlier extraction stays, and only the cost was added.
    pub earlier_kept: bool,
}

/// Source of the entries of a staging.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Texts {
    New,
    Stored,
}

pub(super) fn stage(db: &mut Db, staging: &Staging, texts: Texts) -> Result<Staged, Fault> {
    let run = &staging.run;
    // Two who stage one run for the first time would each find nothing to set aside.
    db.alone(&run.id.0)?;
    let (session_no, earlier) = found(db, run)?;
    if let (Some((run_no, true)), RunState::Failed) = (earlier, run.state) {
        add_cost(db, run_no, run)?;
        let counts = count(db, run_no)?;
        return Ok(Staged { new_records: 0, earlier_kept: true, ..counts.staged });
    }
    let run_no = write(db, session_no, run)?;
    let mut before = 0;
    if earlier.is_some() {
        entry::uncover(db, session_no, run_no, (run.first.0, run.last.0))?;
        before = replace_records(db, run_no)?;
    }
    if run.state == RunState::Done && run.failure.is_none() {
        replace_others(db, session_no, run)?;
        // A job of these entries may have died before a run said anything of them.
        entry::uncover_open(db, session_no, (run.first.0, run.last.0))?;
        queue::outdo(db, session_no, run)?;
    }
    match texts {
        Texts::New => entry::write(db, session_no, run_no, &staging.entries)?,
        Texts::Stored => entry::cover(db, session_no, run_no, &staging.entries)?,
    }
    let written = record::write(db, run_no, &staging.records)?;
    let counts = match earlier {
        None => Counts::of(&written),
        Some(_) => count(db, run_no)?,
    };
    Ok(Staged { new_records: counts.all.saturating_sub(before), ..counts.staged })
}

/// The row number of a run's session, and that of the run if it is there, with whether it was done.
fn found(db: &mut Db, run: &Run) -> Result<(i64, Option<(i64, bool)>), Fault> {
    let sql = "SELECT s.no, r.no, r.state FROM sessions s LEFT JOIN runs r ON r.id = ?2
        WHERE s.id = ?1";
    let found = db.first(sql, values![&run.session.0, &run.id.0], |row| {
        let (session_no, run_no): (i64, Option<i64>) = (row.next()?, row.next()?);
        let state: Option<String> = row.next()?;
        let done = state.as_deref() == Some(RunState::Done.name());
        Ok((session_no, run_no.map(|run_no| (run_no, done))))
    })?;
    found.ok_or_else(|| StoreErrorKind::UnknownSession(run.session).into())
}

/// Sets the records of an earlier staging aside, and says how many there are.
fn replace_records(db: &mut Db, run_no: i64) -> Result<u32, Fault> {
    let sql = "UPDATE records SET state = 'replaced' WHERE run_no = ?1";
    let replaced = db.execute(sql, values![run_no])?;
    Ok(u32::try_from(replaced).unwrap_or(u32::MAX))
}

struct Counts {
    all: u32,
    staged: Staged,
}

impl Counts {
    fn of(written: &[&Record]) -> Counts {
        let of = |state| written.iter().filter(|record| record.state == state).count() as u32;
        let (staged, quarantined) = (of(RecordState::Staged), of(RecordState::Quarantined));
        let staged = Staged { staged, quarantined, ..Staged::default() };
        Counts { all: written.len() as u32, staged }
    }
}

fn count(db: &mut Db, run_no: i64) -> Result<Counts, Fault> {
    let sql = "SELECT count(*), count(*) FILTER (WHERE state = ?2),
        count(*) FILTER (WHERE state = ?3) FROM records WHERE run_no = ?1";
    let states = (RecordState::Staged.name(), RecordState::Quarantined.name());
    db.one(sql, values![run_no, states.0, states.1], |row| {
        let all = row.next()?;
        let staged = Staged { staged: row.next()?, quarantined: row.next()?, ..Staged::default() };
        Ok(Counts { all, staged })
    })
}

impl Store {
    /// The finished runs of a session that asked in this way, replaced ones too, by position.
    pub(crate) async fn known_runs(
        &self,
        session: SessionId,
        asking: Digest,
    ) -> Result<Vec<KnownRun>, StoreError> {
        self.read("reading known runs", move |db: &mut Db| {
            let sql =
                "SELECT r.id, r.slice, r.first_ordinal, r.first_part, r.last_ordinal, r.last_part,
            r.state, r.generation, r.error_kind
        FROM sessions s JOIN runs r ON r.session_no = s.no
        WHERE s.id = ?1 AND r.asking = ?2
        ORDER BY r.first_ordinal, r.first_part, r.no";
            db.all(sql, values![&session.0, &asking], read_known)
        })
        .await
    }

    pub(crate) async fn known_run(&self, run: RunId) -> Result<Option<KnownRun>, StoreError> {
        self.read("looking for a run", move |db: &mut Db| {
            let sql = "SELECT id, slice, first_ordinal, first_part, last_ordinal, last_part, state,
            generation, error_kind
        FROM runs WHERE id = ?1";
            db.first(sql, values![&run.0], read_known)
        })
        .await
    }

    /// Writes a run with its entries, coverage and records. Twice is the same as once; a run that is staged anew
    /// replaces what it came to before, unless it was done then and failed now.
    pub async fn stage(&self, staging: Staging) -> Result<Staged, StoreError> {
        self.write("staging a slice", move |to: &mut Db| stage(to, &staging, Texts::New)).await
    }

    /// Cost of runs that finished at `since` or later, replaced ones too, and calls that are no run's; of one
    /// namespace, of one session, or of all.
    #[cfg(test)]
    pub(crate) async fn spent(
        &self,
        since: Timestamp,
        namespace: Option<&str>,
        session: Option<SessionId>,
    ) -> Result<Spent, StoreError> {
        let namespace = namespace.map(str::to_owned);
        self.read("adding up what was spent", move |from: &mut Db| {
            spent(from, since, namespace.as_deref(), session)
        })
        .await
    }

    pub(crate) async fn run(
        &self,
        prefix: IdPrefix,
    ) -> Result<PrefixLookup<StoredRun>, StoreError> {
        let read = move |from: &mut Db| {
            prefix::find(from, "runs", &prefix, |from, id| find(from, RunId(id)))
        };
        self.read("looking up a run", read).await
    }

    /// Runs of one session or of all, replaced ones too, by time of session and position; `limit` at most.
    pub(crate) async fn runs(
        &self,
        session: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<StoredRun>, StoreError> {
        self.read("reading runs", move |db: &mut Db| {
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
