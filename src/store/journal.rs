//! Journal of model answers: an answer is stored before anything reads it, and the first answer
//! wins. Also stores the capabilities of endpoints.

use super::session::{is_forgotten, lock_session};
use super::{Db, Result, Store, StoreResult, json, query, row_of, values};
use crate::domain::{
    Digest, JobId, OutputMode, Purpose, Reply, RequestDigest, RunId, SessionId, Timestamp, Usage,
};

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct JournalEntry {
    pub digest: RequestDigest,
    pub run: RunId,
    /// Conversation that the answer is about, if it is one.
    pub session: Option<SessionId>,
    pub model: String,
    pub rung: OutputMode,
    pub at: Timestamp,
    pub reply: Reply,
    pub bill: Option<Bill>,
    /// Cost charged to a run, written only if this answer is not kept.
    pub spare_bill: Option<Bill>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Journaled {
    pub run: RunId,
    pub reply: Reply,
    /// True if it was billed when its job was cancelled.
    pub is_billed: bool,
}

row_of! { Journaled { run, reply, is_billed } }

/// Result of storing an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Journaling {
    Kept,
    /// The answer that came first.
    Earlier(Journaled),
    /// Not kept, since its conversation was forgotten meanwhile.
    Forgotten,
}

pub(super) fn find(db: &mut Db, digest: RequestDigest) -> Result<Option<Journaled>> {
    let sql = "SELECT run, reply, EXISTS (
            SELECT 1 FROM bills b WHERE b.digest = journal.digest AND b.purpose = ?2)
        FROM journal WHERE digest = ?1";
    db.first(sql, values![&digest.0, Purpose::Cancelled])
}

/// Cost of a call outside any run, written with its answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Bill {
    pub namespace: String,
    pub purpose: Purpose,
    pub usage: Usage,
    /// Cost in millionths of a dollar.
    pub cost_micros: u64,
    /// Records and memories that the answer is about; erasing any of them erases the answer.
    pub about: Vec<Digest>,
}

/// Writes the bill of a new answer. Idempotent.
pub(super) fn write_bill(
    db: &mut Db,
    asked: RequestDigest,
    model: &str,
    at: Timestamp,
    bill: &Bill,
) -> Result<()> {
    let sql = "INSERT INTO bills (digest, at, namespace, model, prompt_tokens, cached_tokens,
            completion_tokens, cost_micros, purpose)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (digest, at) DO NOTHING";
    let Bill { namespace, purpose, usage, cost_micros, about } = bill;
    let Usage { prompt_tokens, cached_tokens, completion_tokens } = *usage;
    let row = values![
        &asked.0, at, namespace, model, prompt_tokens, cached_tokens, completion_tokens,
        *cost_micros, *purpose,
    ];
    db.run(sql, row)?;
    for about in about {
        let sql = "INSERT INTO answers_about (about, digest) VALUES (?1, ?2)
            ON CONFLICT (about, digest) DO NOTHING";
        db.run(sql, values![about, &asked.0])?;
    }
    Ok(())
}

/// A stored answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct KeptAnswer {
    /// Digest of the request.
    pub digest: Digest,
    pub at: Timestamp,
    pub model: String,
    pub rung: OutputMode,
    pub reply: Reply,
}

row_of! { KeptAnswer { digest, at, model, rung, reply } }

/// Maximum number of answers to one request that are bought in a row without a usable one.
const PURCHASES_MAX: u32 = 2;

impl Store {
    /// Returns the answers of a run, earliest first.
    pub(crate) async fn answers_of(&self, run: RunId) -> StoreResult<Vec<KeptAnswer>> {
        let sql = "SELECT digest, at, model, rung, reply FROM journal WHERE run = ?1 ORDER BY no";
        self.all("reading the journal", sql, values![&run.0]).await
    }

    /// Deletes answers that were of no use, so that the same requests are made again: at most [`PURCHASES_MAX`] times,
    /// and again once the answers are from before `end`. They stay billed.
    pub(crate) async fn discard_answers(
        &self,
        asked: Vec<RequestDigest>,
        end: Timestamp,
    ) -> StoreResult<()> {
        self.write("discarding answers", move |db| {
            for RequestDigest(digest) in &asked {
                let sql = "DELETE FROM journal WHERE digest = ?1 AND (at < ?2
                    OR (SELECT count(*) FROM bills b WHERE b.digest = ?1) < ?3)";
                if db.execute(sql, values![digest, end, PURCHASES_MAX])? > 0 {
                    db.run("DELETE FROM answers_about WHERE digest = ?1", values![digest])?;
                }
            }
            Ok(())
        })
        .await
    }

    /// Bills the answers for `run` since `from` that `job` does not pay, because it was cancelled meanwhile.
    pub(crate) async fn bill_cancelled(
        &self,
        job: JobId,
        run: RunId,
        from: Timestamp,
        cost: impl Fn(Usage) -> u64 + Send + Sync + 'static,
    ) -> StoreResult<()> {
        self.write("billing a cancelled job", move |db| {
            let sql = "SELECT s.namespace FROM jobs j JOIN sessions s ON s.no = j.session_no
                WHERE j.id = ?1 AND j.state = 'cancelled'";
            let Some(namespace) = db.first::<String>(sql, values![&job.0])? else { return Ok(()) };
            let sql = "SELECT digest, at, model, rung, reply FROM journal
                WHERE run = ?1 AND ?2 <= at";
            let answers: Vec<KeptAnswer> = db.all(sql, values![&run.0, from])?;
            for KeptAnswer { digest, at, model, reply, .. } in answers {
                let usage = reply.usage;
                let cost_micros = cost(usage);
                let (namespace, about) = (namespace.clone(), Vec::new());
                let purpose = Purpose::Cancelled;
                let bill = Bill { namespace, purpose, usage, cost_micros, about };
                write_bill(db, RequestDigest(digest), &model, at, &bill)?;
            }
            Ok(())
        })
        .await
    }

    /// Returns the stored answer to this request, if any.
    pub(crate) async fn journaled(&self, digest: RequestDigest) -> StoreResult<Option<Journaled>> {
        self.read("reading the journal", move |from| find(from, digest)).await
    }

    /// Stores an answer durably, unless another one to the same request came first or its conversation was forgotten.
    /// It is billed in any case, since it was paid for.
    pub(crate) async fn journal(&self, entry: JournalEntry) -> StoreResult<Journaling> {
        self.write("journaling an answer", move |db| {
            let write = |db: &mut Db, bill: &Option<Bill>| match bill {
                Some(bill) => write_bill(db, entry.digest, &entry.model, entry.at, bill),
                None => Ok(()),
            };
            write(db, &entry.bill)?;
            if let Some(session) = entry.session
                && !lock_session(db, session)?
                && is_forgotten(db, session)?
            {
                write(db, &entry.spare_bill)?;
                return Ok(Journaling::Forgotten);
            }
            let sql = "INSERT INTO journal (digest, run, model, rung, at, reply)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (digest) DO NOTHING";
            let reply = json(&entry.reply)?;
            let JournalEntry { digest, run, model, rung, at, .. } = &entry;
            let row = values![&digest.0, run, model, *rung, *at, &reply];
            if db.execute(sql, row)? == 1 {
                return Ok(Journaling::Kept);
            }
            write(db, &entry.spare_bill)?;
            Ok(find(db, entry.digest)?.map_or(Journaling::Kept, Journaling::Earlier))
        })
        .await
    }

    /// Returns the best output mode known to work at this endpoint.
    pub(crate) async fn capability(
        &self,
        base_url: &str,
        model: &str,
    ) -> StoreResult<Option<OutputMode>> {
        let sql = "SELECT rung FROM capabilities WHERE base_url = ?1 AND model = ?2";
        self.first("reading the endpoint's capabilities", sql, values![base_url, model]).await
    }

    /// Stores the best output mode known to work at this endpoint.
    pub(crate) async fn learn(
        &self,
        base_url: &str,
        model: &str,
        rung: OutputMode,
        at: Timestamp,
    ) -> StoreResult<()> {
        let sql = "INSERT INTO capabilities (base_url, model, rung, at) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (base_url, model) DO UPDATE SET rung = excluded.rung, at = excluded.at";
        let row = values![base_url, model, rung, at];
        self.write("storing the endpoint's capabilities", query(sql, row, Db::run)).await
    }
}
