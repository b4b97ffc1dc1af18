//! Plans in the store: a plan, what it changes, what became of each record and what the ledger says of it are one
//! transaction.

use super::db::{Columns, Db, json, values};
use super::error::{Fault, StoreErrorKind};
use super::memory::{Tenure, find, hold, put};
use super::open_pair::{self, AskedPair};
use super::prefix::{Found, IdPrefix};
use super::{Store, StoreError};
use crate::domain::{Disposition, MemoryId, MemoryMap, Operation, Plan, PlanId, Timestamp};
use std::collections::BTreeMap;

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

impl Store {
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
}

fn stored_plan(row: &mut Columns<'_>) -> Result<StoredPlan, Fault> {
    Ok(StoredPlan { plan: row.json()?, at: row.next()?, undone_at: row.next()? })
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
        dispose(db, operation, no)?;
        let Operation { record, disposition, rule, .. } = operation;
        let memory = disposition.home().or(disposition.other());
        let memory = memory.as_ref().map(|id| &id.0);
        let sql = "INSERT INTO ledger (at, namespace, deed, plan, record, memory, rule)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let (name, namespace) = (disposition.name(), &plan.namespace);
        db.send(sql, values![at, namespace, name, &plan.id.0, &record.0, memory, &**rule])?;
    }
    open_pair::apply(db, (plan, no), asked)?;
    Ok(Ok(()))
}

/// Notes what became of a record.
fn dispose(db: &mut Db, operation: &Operation, no: i64) -> Result<(), Fault> {
    let Operation { record, disposition, rule, .. } = operation;
    if matches!(disposition, Disposition::Withdraw { .. }) {
        let sql = "UPDATE dispositions SET withdrawn_no = ?2
            WHERE record = ?1 AND withdrawn_no IS NULL";
        return db.send(sql, values![&record.0, no]);
    }
    // What an earlier plan made of it stands.
    if disposition.is_revision() {
        return Ok(());
    }
    let home = disposition.home();
    let sql = "INSERT INTO dispositions (record, plan_no, disposition, rule, memory)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    let (name, home) = (disposition.name(), home.as_ref().map(|id| &id.0));
    db.send(sql, values![&record.0, no, name, &**rule, home])
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
    let sql = "UPDATE dispositions SET withdrawn_no = NULL WHERE withdrawn_no = ?1";
    db.send(sql, values![no])?;
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
