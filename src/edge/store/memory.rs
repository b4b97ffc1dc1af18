//! Memory in the store: kept facts, what waits to become some, who may plan, what people made of them, and the
//! ledger.

use super::db::{Columns, Db, json, values};
use super::error::{Fault, StoreErrorKind};
use super::prefix::{self, Found, IdPrefix};
use super::{Store, StoreError, record};
use crate::domain::{Memory, MemoryId, MemoryMap, PlanId, Record, RecordId, Timestamp};

/// The right to change the memory of a namespace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tenure {
    /// Whose memory.
    pub namespace: String,
    /// Grows with each; one that is older is lost.
    pub token: u64,
}

/// Staged records without a disposition, by namespace.
const WAITING: &str = "SELECT s.namespace, count(*) AS records, sum(length(c.body)) AS bytes,
            max(r.finished_at) AS staged_at
        FROM records c JOIN runs r ON r.no = c.run_no JOIN sessions s ON s.no = r.session_no
            LEFT JOIN dispositions d ON d.record = c.id AND d.withdrawn_no IS NULL
        WHERE r.current = 1 AND c.state = 'staged' AND d.record IS NULL GROUP BY s.namespace";

/// The same of records that count no more and that memories rest on.
fn withdrawn() -> String {
    format!(
        "SELECT s.namespace, count(*), sum(length(c.body)), max(r.finished_at)
        FROM ({OUTDATED}) o JOIN records c ON c.no = o.no
            JOIN runs r ON r.no = c.run_no JOIN sessions s ON s.no = r.session_no
            JOIN dispositions d ON d.record = c.id AND d.withdrawn_no IS NULL
            JOIN memories m ON m.id = d.memory AND m.state <> 'retracted' GROUP BY s.namespace",
        OUTDATED = record::OUTDATED,
    )
}

/// What waits to be consolidated in a namespace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Backlog {
    /// Whose memory.
    pub namespace: String,
    /// Staged records without a disposition, and those with one that count no more.
    pub records: u64,
    /// What their claims take, in bytes.
    pub bytes: u64,
    /// When the last of them was staged.
    pub staged_at: Timestamp,
    /// When the namespace was last consolidated.
    pub done_at: Option<Timestamp>,
}

/// A line of the ledger.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Deed {
    /// When.
    pub at: Timestamp,
    /// What was done: apply, undo, confirm, forget.
    pub deed: String,
    /// By which plan.
    pub plan: Option<PlanId>,
    /// With which record.
    pub record: Option<RecordId>,
    /// To which memory.
    pub memory: Option<MemoryId>,
    /// By which rule.
    pub rule: Option<String>,
}

impl Store {
    /// Takes the right to change the memory of `namespace` until `until`, unless somebody else has it of whom it is
    /// not certain that they are gone.
    pub async fn take_tenure(
        &self,
        namespace: &str,
        (holder, until): (&str, Timestamp),
        (now, is_gone): (Timestamp, fn(&str) -> bool),
    ) -> Result<Option<Tenure>, StoreError> {
        let (namespace, holder) = (namespace.to_owned(), holder.to_owned());
        self.write("taking the lease of a namespace's memory", move |to| {
            let sql = "SELECT holder FROM consolidating WHERE namespace = ?1 AND until > ?2";
            let other: Option<String> =
                to.first(sql, values![&namespace, now], |row| row.next())?;
            // No holder has an empty name.
            let gone = other.filter(|other| is_gone(other)).unwrap_or_default();
            let sql =
                "INSERT INTO consolidating (namespace, token, holder, until) VALUES (?1, 1, ?2, ?3)
                ON CONFLICT (namespace) DO UPDATE SET token = consolidating.token + 1,
                    holder = excluded.holder, until = excluded.until
                    WHERE consolidating.until <= ?4 OR consolidating.holder = ?5
                RETURNING token";
            let token =
                to.first(sql, values![&namespace, &holder, until, now, &gone], |row| row.next())?;
            Ok(token.map(|token| Tenure { namespace: namespace.clone(), token }))
        })
        .await
    }

    /// Prolongs the right; says whether it is still ours.
    pub async fn renew_tenure(
        &self,
        tenure: &Tenure,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let tenure = tenure.clone();
        self.write("prolonging the lease of a namespace's memory", move |to| {
            let sql = "UPDATE consolidating SET until = ?3
                WHERE namespace = ?1 AND token = ?2 AND until > 0";
            Ok(to.execute(sql, values![&tenure.namespace, tenure.token, until])? > 0)
        })
        .await
    }

    /// Gives the right back; `done_at` says that everything that waited was looked at.
    pub async fn leave_tenure(
        &self,
        tenure: &Tenure,
        done_at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let tenure = tenure.clone();
        self.write("giving back the lease of a namespace's memory", move |to| {
            let sql = "UPDATE consolidating SET until = 0, done_at = coalesce(?3, done_at)
                WHERE namespace = ?1 AND token = ?2";
            to.send(sql, values![&tenure.namespace, tenure.token, done_at])
        })
        .await
    }

    /// Gives back the right to something that is done once, as a question is asked, and takes its row away.
    pub async fn end_tenure(&self, tenure: &Tenure) -> Result<(), StoreError> {
        let tenure = tenure.clone();
        self.write("giving back the lease of a question", move |to| {
            let sql = "DELETE FROM consolidating
                WHERE namespace = ?1 AND token = ?2 AND done_at IS NULL";
            to.send(sql, values![&tenure.namespace, tenure.token])
        })
        .await
    }

    /// A number that grows with every record and every run that is staged.
    pub async fn last_record(&self) -> Result<i64, StoreError> {
        let sql = "SELECT (SELECT coalesce(max(no), 0) FROM records)
            + (SELECT coalesce(max(no), 0) FROM runs)";
        let read = move |from: &mut Db| Ok(from.first(sql, &[], |row| row.next())?.unwrap_or(0));
        self.look("looking for new records", read).await
    }

    /// What waits to be consolidated, by namespace.
    pub async fn backlog(&self) -> Result<Vec<Backlog>, StoreError> {
        self.read("counting what waits to be consolidated", |from: &mut Db| {
            let sql = format!(
                "SELECT w.namespace, CAST(sum(w.records) AS BIGINT), CAST(sum(w.bytes) AS BIGINT),
                    max(w.staged_at),
                    (SELECT done_at FROM consolidating k WHERE k.namespace = w.namespace)
                FROM ({WAITING} UNION ALL {WITHDRAWN}) w GROUP BY w.namespace ORDER BY w.namespace",
                WITHDRAWN = withdrawn(),
            );
            from.all(&sql, &[], |row| {
                let (namespace, records) = (row.next()?, row.next()?);
                let (bytes, staged_at) = (row.next()?, row.next()?);
                Ok(Backlog { namespace, records, bytes, staged_at, done_at: row.next()? })
            })
        })
        .await
    }

    /// Staged records of a namespace without a disposition, in the order of staging; `limit` at most.
    pub async fn waiting_records(
        &self,
        namespace: &str,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        let namespace = namespace.to_owned();
        let read = move |from: &mut Db| record::waiting(from, &namespace, limit);
        self.read("reading what waits to be consolidated", read).await
    }

    /// Records of a namespace that a plan dealt with and that count no more, since their conversation was read anew; each
    /// with the memory that came of it, in the order of staging; `limit` at most.
    pub async fn outdated_records(
        &self,
        namespace: &str,
        limit: u32,
    ) -> Result<Vec<(Record, MemoryId)>, StoreError> {
        let namespace = namespace.to_owned();
        let read = move |from: &mut Db| record::outdated(from, &namespace, limit);
        self.read("reading what was read anew", read).await
    }

    /// The memories of a namespace, or of all, by id.
    pub async fn memories(&self, namespace: Option<&str>) -> Result<MemoryMap, StoreError> {
        let namespace = namespace.map(str::to_owned);
        let read = move |from: &mut Db| {
            let sql = match namespace {
                Some(_) => "SELECT body FROM memories WHERE namespace = ?1",
                None => "SELECT body FROM memories WHERE ?1 = ''",
            };
            let all = from.all(sql, values![namespace.as_deref().unwrap_or_default()], memory)?;
            Ok(all.into_iter().map(|memory| (memory.id, memory)).collect())
        };
        self.read("reading memories", read).await
    }

    /// The memory whose id begins so.
    pub async fn memory(&self, prefix: IdPrefix) -> Result<Found<Memory, MemoryId>, StoreError> {
        let read = move |from: &mut Db| {
            prefix::find(
                from,
                "memories",
                &prefix,
                (MemoryId, |from: &mut Db, id| {
                    from.first("SELECT body FROM memories WHERE id = ?1", values![&id], memory)
                }),
            )
        };
        self.read("looking up a memory", read).await
    }

    /// What was done to one memory, or to all of them, the earliest first.
    pub async fn ledger(&self, memory: Option<MemoryId>) -> Result<Vec<Deed>, StoreError> {
        let read = move |from: &mut Db| {
            let columns = "SELECT at, deed, plan, record, memory, rule FROM ledger";
            match &memory {
                Some(MemoryId(id)) => {
                    let sql = format!("{columns} WHERE memory = ?1 ORDER BY no");
                    from.all(&sql, values![id], deed)
                }
                None => from.all(&format!("{columns} ORDER BY no"), &[], deed),
            }
        };
        self.read("reading the ledger", read).await
    }

    /// Writes what people made of memories in the directory; says no, with those that are no longer as
    /// `before` has them.
    ///
    /// # Errors
    /// As [`Store::apply_plan`].
    pub async fn amend_memories(
        &self,
        tenure: &Tenure,
        changes: Vec<(Memory, Memory)>,
        (rule, at): (&'static str, Timestamp),
    ) -> Result<Result<(), Vec<MemoryId>>, StoreError> {
        let tenure = tenure.clone();
        self.write("writing what people changed", move |to| {
            hold(to, &tenure)?;
            let mut moved = Vec::new();
            for (before, after) in &changes {
                let now = find(to, before.id)?;
                if now.as_ref() != Some(before) && now.as_ref() != Some(after) {
                    moved.push(before.id);
                }
            }
            if !moved.is_empty() {
                return Ok(Err(moved));
            }
            for (_, after) in &changes {
                put(to, after)?;
                let sql = "INSERT INTO ledger (at, namespace, deed, memory, rule)
                    VALUES (?1, ?2, 'confirm', ?3, ?4)";
                to.send(sql, values![at, &after.namespace, &after.id.0, rule])?;
            }
            Ok(Ok(()))
        })
        .await
    }
}

fn memory(row: &mut Columns<'_>) -> Result<Memory, Fault> {
    row.json()
}

fn deed(row: &mut Columns<'_>) -> Result<Deed, Fault> {
    Ok(Deed {
        at: row.next()?,
        deed: row.next()?,
        plan: row.next::<Option<_>>()?.map(PlanId),
        record: row.next::<Option<_>>()?.map(RecordId),
        memory: row.next::<Option<_>>()?.map(MemoryId),
        rule: row.next()?,
    })
}

/// Whether the right is still ours; nobody takes it until the transaction ends.
pub(super) fn hold(db: &mut Db, tenure: &Tenure) -> Result<(), Fault> {
    let sql = format!("SELECT token FROM consolidating WHERE namespace = ?1{}", db.locking());
    let token: Option<u64> = db.first(&sql, values![&tenure.namespace], |row| row.next())?;
    match token {
        Some(token) if token == tenure.token => Ok(()),
        Some(_) | None => Err(StoreErrorKind::TenureLost(tenure.namespace.clone()).into()),
    }
}

pub(super) fn find(db: &mut Db, id: MemoryId) -> Result<Option<Memory>, Fault> {
    db.first("SELECT body FROM memories WHERE id = ?1", values![&id.0], memory)
}

pub(super) fn put(db: &mut Db, memory: &Memory) -> Result<(), Fault> {
    let sql = "INSERT INTO memories (id, namespace, state, body) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (id) DO UPDATE SET state = excluded.state, body = excluded.body";
    let body = json(memory)?;
    db.send(sql, values![&memory.id.0, &memory.namespace, memory.state.name(), &body])
}
