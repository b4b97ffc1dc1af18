//! Pairs of memories that plans left open: kept until a later plan settles them, so that a model can be asked about
//! them then; and which question about them a model had no use for, so that it is not asked twice.

use super::db::{Db, values};
use super::error::Fault;
use super::memory::{Tenure, hold};
use super::{Store, StoreError, record};
use crate::domain::{Digest, Disposition, MemoryId, Plan, Record, RecordId};

/// A pair that is open, both sides of it in use.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LeftPair {
    /// The record.
    pub record: RecordId,
    /// The memory that rests on it.
    pub home: MemoryId,
    /// The memory that it may touch.
    pub memory: MemoryId,
    /// The rule that could not decide.
    pub rule: String,
    /// The question that a model had no use for last.
    pub asked: Option<Digest>,
}

/// A pair that a model was asked about and that is open nevertheless.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AskedPair {
    /// The record.
    pub record: RecordId,
    /// The memory that it may touch.
    pub memory: MemoryId,
    /// Stands for the question.
    pub question: Digest,
}

impl Store {
    /// Pairs of a namespace that are open, the earliest first; `limit` at most.
    pub async fn open_pairs(
        &self,
        namespace: &str,
        limit: u32,
    ) -> Result<Vec<LeftPair>, StoreError> {
        let namespace = namespace.to_owned();
        self.read("reading what was left open", move |from| {
            let sql = "SELECT o.record, d.memory, o.memory, o.rule, o.asked FROM open_pairs o
                    JOIN dispositions d ON d.record = o.record AND d.memory <> o.memory
                        AND d.withdrawn_no IS NULL
                    JOIN memories h ON h.id = d.memory AND h.state = 'active'
                    JOIN memories m ON m.id = o.memory AND m.state = 'active'
                    JOIN records c ON c.id = o.record AND c.state = 'staged'
                    JOIN runs r ON r.no = c.run_no AND r.current = 1
                WHERE o.namespace = ?1 AND o.settled_no IS NULL ORDER BY o.no LIMIT ?2";
            from.all(sql, values![&namespace, limit], |row| {
                Ok(LeftPair {
                    record: RecordId(row.next()?),
                    home: MemoryId(row.next()?),
                    memory: MemoryId(row.next()?),
                    rule: row.next()?,
                    asked: row.next()?,
                })
            })
        })
        .await
    }

    /// Namespaces in which a pair may be open.
    pub async fn open_namespaces(&self) -> Result<Vec<String>, StoreError> {
        self.read("reading what was left open", |from| {
            let sql = "SELECT DISTINCT namespace FROM open_pairs WHERE settled_no IS NULL
                ORDER BY namespace";
            from.all(sql, &[], |row| row.next())
        })
        .await
    }

    /// These records, as far as they are there, in the order of `ids`.
    pub async fn records_of(&self, ids: Vec<RecordId>) -> Result<Vec<Record>, StoreError> {
        self.read("reading records", move |from| {
            let mut found = Vec::with_capacity(ids.len());
            for id in &ids {
                found.extend(record::one(from, *id)?);
            }
            Ok(found)
        })
        .await
    }

    /// Notes which questions came to nothing, where there is no plan to note them with.
    ///
    /// # Errors
    /// As [`Store::apply_plan`].
    pub async fn note_asked(
        &self,
        tenure: &Tenure,
        asked: Vec<AskedPair>,
    ) -> Result<(), StoreError> {
        let tenure = tenure.clone();
        self.write("noting what was asked", move |to| {
            hold(to, &tenure)?;
            note(to, &asked)
        })
        .await
    }
}

/// Keeps what `plan` leaves open, and ends what it settles.
pub(super) fn apply(
    db: &mut Db,
    (plan, no): (&Plan, i64),
    asked: &[AskedPair],
) -> Result<(), Fault> {
    for left in &plan.left_open {
        let sql = "INSERT INTO open_pairs (record, memory, namespace, plan_no, rule)
            VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT (record, memory) DO UPDATE SET plan_no = excluded.plan_no,
                rule = excluded.rule, asked = NULL, settled_no = NULL";
        let (record, memory) = (&left.record.0, &left.memory.0);
        db.send(sql, values![record, memory, &plan.namespace, no, &*left.rule])?;
    }
    for operation in &plan.operations {
        if let Disposition::Settle { with, .. } = operation.disposition {
            let sql = "UPDATE open_pairs SET settled_no = ?3 WHERE record = ?1 AND memory = ?2";
            db.send(sql, values![&operation.record.0, &with.0, no])?;
        }
    }
    note(db, asked)
}

/// What the plan had left open is gone with it, and what it had settled is open again.
pub(super) fn undo(db: &mut Db, no: i64) -> Result<(), Fault> {
    db.send("DELETE FROM open_pairs WHERE plan_no = ?1", values![no])?;
    db.send("UPDATE open_pairs SET settled_no = NULL WHERE settled_no = ?1", values![no])
}

/// Erases the pairs of a record.
pub(super) fn erase_record(db: &mut Db, id: RecordId) -> Result<(), Fault> {
    db.send("DELETE FROM open_pairs WHERE record = ?1", values![&id.0])
}

/// Erases the pairs of a memory that is gone.
pub(super) fn erase_memory(db: &mut Db, id: MemoryId) -> Result<(), Fault> {
    db.send("DELETE FROM open_pairs WHERE memory = ?1", values![&id.0])
}

fn note(db: &mut Db, asked: &[AskedPair]) -> Result<(), Fault> {
    for pair in asked {
        let sql = "UPDATE open_pairs SET asked = ?3 WHERE record = ?1 AND memory = ?2";
        db.send(sql, values![&pair.record.0, &pair.memory.0, &pair.question])?;
    }
    Ok(())
}
