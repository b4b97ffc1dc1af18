//! The bill: what calls cost that are no run's, and all calls by day, namespace and what they were for.

use super::db::{Db, values};
use super::error::Fault;
use super::journal::JournalEntry;
use super::{Spent, run};
use crate::domain::{Digest, Purpose, Timestamp, Usage};

/// Lines of the bill that are told, the latest first.
const LINES_MAX: u32 = 1_000;

/// What a call costs that is no run's, written with its answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bill {
    /// Whose.
    pub namespace: String,
    /// For what.
    pub purpose: Purpose,
    /// What the call took.
    pub usage: Usage,
    /// Money, in millionths of a dollar.
    pub cost_micros: u64,
    /// The records and memories that the answer is about; it is erased with any of them.
    pub about: Vec<Digest>,
}

/// What one namespace spent for one purpose on one day.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BillLine {
    /// The day's midnight, UTC.
    pub day: Timestamp,
    /// Whose.
    pub namespace: String,
    /// For what.
    pub purpose: Purpose,
    /// How much.
    pub spent: Spent,
}

/// Writes the bill of an answer that came now. Twice the same is once.
pub(super) fn write(db: &mut Db, entry: &JournalEntry) -> Result<(), Fault> {
    let Some(bill) = &entry.bill else { return Ok(()) };
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
    db.send(sql, row)?;
    for about in &bill.about {
        let sql = "INSERT INTO answers_about (about, digest) VALUES (?1, ?2)
            ON CONFLICT (about, digest) DO NOTHING";
        db.send(sql, values![about, &entry.digest.0])?;
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
        db.send("DELETE FROM answers_about WHERE digest = ?1", values![&digest])?;
    }
    Ok(erased)
}

/// What calls of a namespace, or of all, cost since then that are no run's.
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
