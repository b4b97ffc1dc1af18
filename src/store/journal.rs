//! The journal: a model's answer is stored before anything reads it, and the first answer wins. Also what endpoints
//! were found able to do.

use super::db::{Db, json, values};
use super::error::{Fault, StoreError};
use super::handle::Store;
use super::run::{self, Spent};
use crate::domain::{Digest, OutputMode, Purpose, Reply, RequestDigest, RunId, Timestamp, Usage};

/// An answer to keep.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct JournalEntry {
    pub digest: RequestDigest,
    pub run: RunId,
    pub model: String,
    pub rung: OutputMode,
    pub at: Timestamp,
    pub reply: Reply,
    pub request: Option<String>,
    pub bill: Option<Bill>,
    /// Cost that a run bears unless another answer was kept.
    pub spare_bill: Option<Bill>,
}

/// An answer that is kept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Journaled {
    pub run: RunId,
    pub reply: Reply,
}

pub(super) fn find(db: &mut Db, digest: RequestDigest) -> Result<Option<Journaled>, Fault> {
    let sql = "SELECT run, reply FROM journal WHERE digest = ?1";
    db.first(sql, values![&digest.0], |row| {
        Ok(Journaled { run: RunId(row.next()?), reply: row.json()? })
    })
}

/// Lines of the bill that are told, the latest first.
const LINES_MAX: u32 = 1_000;

/// Cost of a call that belongs to no run, written with its answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Bill {
    pub namespace: String,
    pub purpose: Purpose,
    pub usage: Usage,
    /// Money, in millionths of a dollar.
    pub cost_micros: u64,
    /// The records and memories that the answer is about; it is erased with any of them.
    pub about: Vec<Digest>,
}

/// Cost of one namespace for one purpose on one day.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BillLine {
    /// The day's midnight, UTC.
    pub day: Timestamp,
    /// Whose.
    pub namespace: String,
    /// For what.
    pub purpose: Purpose,
    /// Cost.
    pub spent: Spent,
}

/// Writes the bill of an answer that came now. Twice the same is once.
fn write_bill(db: &mut Db, entry: &JournalEntry, bill: Option<&Bill>) -> Result<(), Fault> {
    let Some(bill) = bill else { return Ok(()) };
    let sql = "INSERT INTO bills (digest, at, namespace, model, prompt_tokens, cached_tokens,
            completion_tokens, cost_micros, purpose)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (digest, at) DO NOTHING";
    let Usage { prompt_tokens, cached_tokens, completion_tokens } = bill.usage;
    let row = values![
        &entry.digest.0,
        entry.at,
        &bill.namespace,
        &entry.model,
        prompt_tokens,
        cached_tokens,
        completion_tokens,
        bill.cost_micros,
        bill.purpose.name(),
    ];
    db.run(sql, row)?;
    for about in &bill.about {
        let sql = "INSERT INTO answers_about (about, digest) VALUES (?1, ?2)
            ON CONFLICT (about, digest) DO NOTHING";
        db.run(sql, values![about, &entry.digest.0])?;
    }
    Ok(())
}

/// Erases the answers about a record or a memory; says how many there were.
pub(super) fn erase_answers(db: &mut Db, about: Digest) -> Result<u64, Fault> {
    let sql = "SELECT digest FROM answers_about WHERE about = ?1";
    let digests: Vec<Digest> = db.all(sql, values![&about], |row| row.next())?;
    let mut erased = 0;
    for digest in digests {
        erased += db.execute("DELETE FROM journal WHERE digest = ?1", values![&digest])?;
        db.run("DELETE FROM answers_about WHERE digest = ?1", values![&digest])?;
    }
    Ok(erased)
}

/// Cost of calls since then that belong to no run, of a namespace or of all.
pub(super) fn spent(
    db: &mut Db,
    since: Timestamp,
    namespace: Option<&str>,
) -> Result<Spent, Fault> {
    let sql = "SELECT count(*), CAST(coalesce(sum(prompt_tokens), 0) AS BIGINT),
            CAST(coalesce(sum(cached_tokens), 0) AS BIGINT),
            CAST(coalesce(sum(completion_tokens), 0) AS BIGINT),
            CAST(coalesce(sum(cost_micros), 0) AS BIGINT)
        FROM bills WHERE ?1 <= at AND (namespace = ?2 OR ?2 IS NULL)";
    db.one(sql, values![since, namespace], run::read_spent)
}

/// The bill by day, namespace and purpose, the latest day first.
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
    db.all(sql, values![LINES_MAX], |row| {
        let (day, namespace) = (row.next()?, row.next()?);
        let purpose = row.named(Purpose::of_name)?;
        Ok(BillLine { day, namespace, purpose, spent: run::read_spent(row)? })
    })
}

impl Store {
    /// The answer that was given to this question, if it was ever asked.
    pub(crate) async fn journaled(
        &self,
        digest: RequestDigest,
    ) -> Result<Option<Journaled>, StoreError> {
        self.read("reading the journal", move |from| find(from, digest)).await
    }

    /// Keeps an answer; it is on the disk when this returns. The first answer to a question wins: this gives the one
    /// that is kept.
    #[cfg(test)]
    pub(crate) async fn journal(&self, entry: JournalEntry) -> Result<Reply, StoreError> {
        let reply = entry.reply.clone();
        Ok(self.journal_unless(entry).await?.map_or(reply, |kept| kept.reply))
    }

    /// As [`Store::journal`]; returns the answer that is kept only if it is another one.
    pub(crate) async fn journal_unless(
        &self,
        entry: JournalEntry,
    ) -> Result<Option<Journaled>, StoreError> {
        self.write("journaling an answer", move |db: &mut Db| {
            let entry = &entry;
            let sql = "INSERT INTO journal (digest, run, model, rung, at, reply, request)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (digest) DO NOTHING";
            // Also where somebody else's answer came first: this one was paid for too.
            write_bill(db, entry, entry.bill.as_ref())?;
            let reply = json(&entry.reply)?;
            let row = values![
                &entry.digest.0,
                &entry.run.0,
                &entry.model,
                entry.rung.name(),
                entry.at,
                &reply,
                entry.request.as_ref(),
            ];
            if db.execute(sql, row)? == 1 {
                return Ok(None);
            }
            write_bill(db, entry, entry.spare_bill.as_ref())?;
            find(db, entry.digest)
        })
        .await
    }

    /// The best way of asking that worked at this endpoint, if it was found.
    pub(crate) async fn capability(
        &self,
        base_url: &str,
        model: &str,
    ) -> Result<Option<OutputMode>, StoreError> {
        let (base_url, model) = (base_url.to_owned(), model.to_owned());
        self.read("reading what the endpoint can do", move |db: &mut Db| {
            let base_url = &base_url;
            let model = &model;
            let sql = "SELECT rung FROM capabilities WHERE base_url = ?1 AND model = ?2";
            db.first(sql, values![base_url, model], |row| row.named(OutputMode::of_name))
        })
        .await
    }

    /// Remembers the best way of asking that worked at this endpoint.
    pub(crate) async fn learn(
        &self,
        base_url: &str,
        model: &str,
        rung: OutputMode,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let (base_url, model) = (base_url.to_owned(), model.to_owned());
        self.write("remembering what the endpoint can do", move |db: &mut Db| {
            let base_url = &base_url;
            let model = &model;
            let sql = "INSERT INTO capabilities (base_url, model, rung, at) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (base_url, model) DO UPDATE SET rung = excluded.rung, at = excluded.at";
            db.run(sql, values![base_url, model, rung.name(), at])
        })
        .await
    }
}
