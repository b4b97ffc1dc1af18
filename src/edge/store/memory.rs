//! Memory in the store: kept facts, the plans that made them, what became of each record, and who may
//! plan. A plan, what it changes and what is said of it are one transaction.

use super::db::{Columns, Db, json, values};
use super::error::{Fault, StoreErrorKind};
use super::open_pair::{self, AskedPair};
use super::prefix::{self, Found, IdPrefix};
use super::{Store, StoreError, record};
use crate::domain::{Memory, MemoryId, MemoryMap, Plan, PlanId, Record, RecordId, Timestamp};
use std::collections::BTreeMap;

/// The right to change the memory of a namespace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tenure {
    /// Whose memory.
    pub namespace: String,
    /// Grows with each; one that is older is lost.
    pub token: u64,
}

/// A plan that was applied.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredPlan {
    /// It.
    pub plan: Plan,
    /// When it was applied.
    pub at: Timestamp,
    /// When it was undone, if it was.
    pub undone_at: Option<Timestamp>,
}

/// What waits to be consolidated in a namespace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Backlog {
    /// Whose memory.
    pub namespace: String,
    /// Staged records without a disposition.
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

    /// A number that grows with every record that is staged.
    pub async fn last_record(&self) -> Result<i64, StoreError> {
        let sql = "SELECT coalesce(max(no), 0) FROM records";
        let read = move |from: &mut Db| Ok(from.first(sql, &[], |row| row.next())?.unwrap_or(0));
        self.look("looking for new records", read).await
    }

    /// What waits to be consolidated, by namespace.
    pub async fn backlog(&self) -> Result<Vec<Backlog>, StoreError> {
        self.read("counting what waits to be consolidated", |from: &mut Db| {
            let sql = "SELECT s.namespace, count(*), sum(length(c.body)), max(r.finished_at),
                    (SELECT done_at FROM consolidating k WHERE k.namespace = s.namespace)
                FROM records c JOIN runs r ON r.no = c.run_no JOIN sessions s ON s.no = r.session_no
                    LEFT JOIN dispositions d ON d.record = c.id
                WHERE r.current = 1 AND c.state = 'staged' AND d.record IS NULL
                GROUP BY s.namespace ORDER BY s.namespace";
            from.all(sql, &[], |row| {
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

    /// Applies a plan: what it changes, what became of its records, the ledger. The same plan again,
    /// while it stands, changes nothing. Says no, with the memories that are no longer as the plan found
    /// them, and nothing is written then.
    ///
    /// # Errors
    /// [`TenureLost`](StoreErrorKind::TenureLost) if somebody else may change the namespace by now.
    pub async fn apply_plan(
        &self,
        tenure: &Tenure,
        plan: &Plan,
        at: Timestamp,
    ) -> Result<Result<(), Vec<MemoryId>>, StoreError> {
        self.apply_judged(tenure, (plan, &[]), at).await
    }

    /// As [`Store::apply_plan`], and notes which questions about pairs that stay open came to nothing.
    ///
    /// # Errors
    /// As [`Store::apply_plan`].
    pub async fn apply_judged(
        &self,
        tenure: &Tenure,
        (plan, asked): (&Plan, &[AskedPair]),
        at: Timestamp,
    ) -> Result<Result<(), Vec<MemoryId>>, StoreError> {
        let (tenure, plan, asked) = (tenure.clone(), plan.clone(), asked.to_vec());
        self.write("applying a plan", move |to| apply(to, &tenure, (&plan, &asked), at)).await
    }

    /// Takes a plan back. Says no, with the memories that were changed since, and nothing is written then.
    ///
    /// # Errors
    /// As [`Store::apply_plan`].
    pub async fn undo_plan(
        &self,
        tenure: &Tenure,
        plan: &Plan,
        at: Timestamp,
    ) -> Result<Result<(), Vec<MemoryId>>, StoreError> {
        let (tenure, plan) = (tenure.clone(), plan.clone());
        self.write("undoing a plan", move |to| undo(to, &tenure, &plan, at)).await
    }

    /// Plans of a namespace, or of all, the earliest first; undone ones too.
    pub async fn plans(&self, namespace: Option<&str>) -> Result<Vec<StoredPlan>, StoreError> {
        let namespace = namespace.map(str::to_owned);
        let read = move |from: &mut Db| {
            let sql = match namespace {
                Some(_) => "SELECT body, at, undone_at FROM plans WHERE namespace = ?1 ORDER BY no",
                None => "SELECT body, at, undone_at FROM plans WHERE ?1 = '' ORDER BY no",
            };
            from.all(sql, values![namespace.as_deref().unwrap_or_default()], stored_plan)
        };
        self.read("reading plans", read).await
    }

    /// The plan whose id begins so; of one that was applied again after it was undone, the last.
    pub async fn plan(&self, prefix: IdPrefix) -> Result<Found<StoredPlan, PlanId>, StoreError> {
        let read = move |from: &mut Db| {
            let (low, high) = prefix.bounds();
            let sql =
                "SELECT body, at, undone_at FROM plans WHERE id BETWEEN ?1 AND ?2 ORDER BY no";
            let all = from.all(sql, values![low, high], stored_plan)?;
            let mut by_id: BTreeMap<PlanId, StoredPlan> = BTreeMap::new();
            by_id.extend(all.into_iter().map(|stored| (stored.plan.id, stored)));
            Ok(match by_id.len() {
                0 => Found::None,
                1 => by_id.into_values().next().map_or(Found::None, |it| Found::One(Box::new(it))),
                _ => Found::Many(by_id.into_keys().collect()),
            })
        };
        self.read("looking up a plan", read).await
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

fn stored_plan(row: &mut Columns<'_>) -> Result<StoredPlan, Fault> {
    Ok(StoredPlan { plan: row.json()?, at: row.next()?, undone_at: row.next()? })
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

fn apply(
    db: &mut Db,
    tenure: &Tenure,
    (plan, asked): (&Plan, &[AskedPair]),
    at: Timestamp,
) -> Result<Result<(), Vec<MemoryId>>, Fault> {
    hold(db, tenure)?;
    if standing(db, plan)?.is_some() {
        return Ok(Ok(()));
    }
    if let Err(moved) = change(db, plan, |state| plan.apply(state).map_err(|moved| moved.0))? {
        return Ok(Err(moved));
    }
    let sql = "INSERT INTO plans (id, namespace, at, body) VALUES (?1, ?2, ?3, ?4) RETURNING no";
    let body = json(plan)?;
    let row = values![&plan.id.0, &plan.namespace, at, &body];
    let no: i64 = db.first(sql, row, |row| row.next())?.ok_or(StoreErrorKind::Other)?;
    for operation in &plan.operations {
        let home = operation.disposition.home();
        let home = home.as_ref().map(|id| &id.0);
        let (record, name) = (&operation.record.0, operation.disposition.name());
        // What is settled was dealt with by an earlier plan; that stands.
        if !operation.disposition.is_settlement() {
            let sql = "INSERT INTO dispositions (record, plan_no, disposition, rule, memory)
                VALUES (?1, ?2, ?3, ?4, ?5)";
            db.send(sql, values![record, no, name, &*operation.rule, home])?;
        }
        let sql = "INSERT INTO ledger (at, namespace, deed, plan, record, memory, rule)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let row = values![at, &plan.namespace, name, &plan.id.0, record, home, &*operation.rule];
        db.send(sql, row)?;
    }
    open_pair::apply(db, (plan, no), asked)?;
    Ok(Ok(()))
}

fn undo(
    db: &mut Db,
    tenure: &Tenure,
    plan: &Plan,
    at: Timestamp,
) -> Result<Result<(), Vec<MemoryId>>, Fault> {
    hold(db, tenure)?;
    let Some(no) = standing(db, plan)? else { return Ok(Ok(())) };
    if let Err(moved) = change(db, plan, |state| plan.undo(state).map_err(|moved| moved.0))? {
        return Ok(Err(moved));
    }
    db.send("UPDATE plans SET undone_at = ?2 WHERE no = ?1", values![no, at])?;
    db.send("DELETE FROM dispositions WHERE plan_no = ?1", values![no])?;
    open_pair::undo(db, no)?;
    let sql = "INSERT INTO ledger (at, namespace, deed, plan) VALUES (?1, ?2, 'undo', ?3)";
    db.send(sql, values![at, &plan.namespace, &plan.id.0])?;
    Ok(Ok(()))
}

/// The row of the plan if it was applied and not undone.
fn standing(db: &mut Db, plan: &Plan) -> Result<Option<i64>, Fault> {
    let sql = "SELECT no FROM plans WHERE id = ?1 AND undone_at IS NULL";
    db.first(sql, values![&plan.id.0], |row| row.next())
}

/// Changes the memories that a plan touches, and no others.
fn change(
    db: &mut Db,
    plan: &Plan,
    work: impl FnOnce(&mut MemoryMap) -> Result<(), Vec<MemoryId>>,
) -> Result<Result<(), Vec<MemoryId>>, Fault> {
    let mut state = MemoryMap::new();
    for touched in plan.changes() {
        if let Some(memory) = find(db, touched.memory)? {
            state.insert(memory.id, memory);
        }
    }
    let before = state.clone();
    if let Err(moved) = work(&mut state) {
        return Ok(Err(moved));
    }
    for (id, _) in before.iter().filter(|(id, _)| !state.contains_key(id)) {
        db.send("DELETE FROM memories WHERE id = ?1", values![&id.0])?;
    }
    for memory in state.values().filter(|memory| before.get(&memory.id) != Some(memory)) {
        put(db, memory)?;
    }
    Ok(Ok(()))
}
