//! Plans in the store. A plan, its changes to memory, the dispositions of its records and its
//! ledger entries are one transaction.

use super::lease::check_namespace;
use super::memory_index::{find, write_memories};
use super::{
    AuditEntry, Db, IdPrefix, NamespaceLease, PageRange, PrefixLookup, Result, Store, StoreResult,
    json, query, record, row_of, values,
};
use crate::domain::{
    Change, Digest, Disposition, MemoryId, MemoryMap, Moved, Operation, Plan, PlanId, Record,
    RecordId, Settlement, Timestamp,
};
use std::collections::BTreeSet;

/// A plan that was applied, and possibly undone since.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredPlan {
    pub plan: Plan,
    pub at: Timestamp,
    /// The same as `at` for a plan that was refused.
    pub undone_at: Option<Timestamp>,
}

row_of! { StoredPlan { plan, at, undone_at } }

/// Maximum size of plans listed with their operations, in bytes.
const LISTED_BYTES_MAX: u64 = 64 * 1024;

/// A plan in a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlanEntry {
    pub id: PlanId,
    pub namespace: String,
    pub at: Timestamp,
    pub undone_at: Option<Timestamp>,
    /// The plan itself, if it is short.
    pub plan: Option<Plan>,
}

row_of! { PlanEntry { id, namespace, at, undone_at, plan } }

/// Last applications of the plans whose ids are from `?1` to `?2`, by id.
const LAST_NAMED: &str = "plans p WHERE p.id BETWEEN ?1 AND ?2
    AND NOT EXISTS (SELECT 1 FROM plans later WHERE later.id = p.id AND p.no < later.no)
    ORDER BY p.id";

/// Statements that undo plan `?1`, after its changes to memories.
const UNDO: [&str; 7] = [
    "UPDATE dispositions SET disposition = 'undone', memory = NULL, undone_no = ?1
        WHERE plan_no = ?1",
    // Drops newer undone dispositions, since the older one becomes valid again.
    "DELETE FROM dispositions WHERE undone_no IS NOT NULL
        AND record IN (SELECT record FROM dispositions WHERE withdrawn_no = ?1)",
    "UPDATE dispositions SET withdrawn_no = NULL, undone_no = ?1 WHERE withdrawn_no = ?1",
    // Removes the pairs that the plan left open and reopens those it settled.
    "DELETE FROM open_pairs WHERE plan_no = ?1",
    "UPDATE open_pairs SET settled_no = NULL, undone_no = ?1 WHERE settled_no = ?1",
    "DELETE FROM contradictions WHERE plan_no = ?1",
    "UPDATE contradictions SET ended_no = NULL WHERE ended_no = ?1",
];

impl Store {
    /// Applies a plan and records `asked`, the pairs that a model left undecided. If memories
    /// changed in the meantime, writes nothing and returns their ids.
    pub(crate) async fn apply_plan(
        &self,
        lease: &NamespaceLease,
        plan: &Plan,
        asked: &[AskedPair],
        at: Timestamp,
    ) -> StoreResult<Result<(), Vec<MemoryId>>> {
        let (lease, plan, asked) = (lease.clone(), plan.clone(), asked.to_vec());
        self.write("applying a plan", move |db| {
            check_namespace(db, &lease)?;
            if standing(db, &plan)?.is_some() {
                return Ok(Ok(()));
            }
            if let Err(moved) = change(db, &plan, |state| plan.apply(state))? {
                return Ok(Err(moved));
            }
            let sql = "INSERT INTO plans (id, namespace, at, body) VALUES (?1, ?2, ?3, ?4)
                RETURNING no";
            let body = json(&plan)?;
            let no = db.one(sql, values![&plan.id.0, &plan.namespace, at, &body])?;
            for operation in &plan.operations {
                dispose(db, operation, no)?;
                let Operation { record, disposition, rule, .. } = operation;
                AuditEntry {
                    plan: Some(plan.id),
                    record: Some(*record),
                    memory: disposition.home().or(disposition.other()),
                    rule: Some(rule.to_string()),
                    ..AuditEntry::new(at, disposition.name())
                }
                .write(db, &plan.namespace)?;
            }
            write_open_pairs(db, &plan, no)?;
            write_contradictions(db, &plan, no)?;
            note(db, &asked)?;
            Ok(Ok(()))
        })
        .await
    }

    /// Undoes a plan. If memories changed since, or newer verdicts about them stand, writes nothing and returns their
    /// ids: a verdict rests on what the plan made.
    pub(crate) async fn undo_plan(
        &self,
        lease: &NamespaceLease,
        plan: &Plan,
        at: Timestamp,
    ) -> StoreResult<Result<(), Vec<MemoryId>>> {
        let (lease, plan) = (lease.clone(), plan.clone());
        self.write("undoing a plan", move |db| {
            check_namespace(db, &lease)?;
            let Some(no) = standing(db, &plan)? else { return Ok(Ok(())) };
            let decided = decided_since(db, &plan, no)?;
            if !decided.is_empty() {
                return Ok(Err(decided));
            }
            if let Err(moved) = change(db, &plan, |state| plan.undo(state))? {
                return Ok(Err(moved));
            }
            db.run("UPDATE plans SET undone_at = ?2 WHERE no = ?1", values![no, at])?;
            for sql in UNDO {
                db.run(sql, values![no])?;
            }
            let entry = AuditEntry { plan: Some(plan.id), ..AuditEntry::new(at, "undo") };
            entry.write(db, &plan.namespace)?;
            Ok(Ok(()))
        })
        .await
    }

    /// Clears the undone mark of a plan: its records wait again and its pairs may be asked about
    /// again. Returns the number of records.
    pub(crate) async fn release_undone(
        &self,
        lease: &NamespaceLease,
        plan: PlanId,
        at: Timestamp,
    ) -> StoreResult<u64> {
        let lease = lease.clone();
        self.write("releasing the records of a plan", move |db| {
            check_namespace(db, &lease)?;
            let sql = "SELECT no, body FROM plans WHERE id = ?1 AND undone_at IS NOT NULL
                ORDER BY no DESC LIMIT 1";
            let undone: Option<(i64, Plan)> = db.first(sql, values![&plan.0])?;
            let Some((no, undone)) = undone else { return Ok(0) };
            // A memory that a person edited still rests on its records.
            for Operation { record, disposition, .. } in &undone.operations {
                let home = disposition.home().map(|id| find(db, id)).transpose()?.flatten();
                let kept = home.filter(|it| it.sources.contains(record));
                let sql = "UPDATE dispositions SET disposition = ?3, memory = ?4, undone_no = NULL
                    WHERE plan_no = ?1 AND record = ?2 AND undone_no = ?1";
                let name = disposition.name();
                kept.map_or(Ok(()), |it| db.run(sql, values![no, &record.0, name, &it.id]))?;
            }
            let open = "UPDATE records SET settled = 0 WHERE id IN
                (SELECT record FROM dispositions WHERE plan_no = ?1 AND undone_no = ?1)";
            db.run(open, values![no])?;
            let own = "DELETE FROM dispositions WHERE plan_no = ?1 AND undone_no = ?1";
            let waiting = db.execute(own, values![no])?;
            for table in ["dispositions", "open_pairs"] {
                let sql = format!("UPDATE {table} SET undone_no = NULL WHERE undone_no = ?1");
                db.run(&sql, values![no])?;
            }
            let entry = AuditEntry { plan: Some(plan), ..AuditEntry::new(at, "release") };
            entry.write(db, &lease.subject)?;
            Ok(waiting)
        })
        .await
    }

    /// Returns the plans of a namespace, or of all, earliest first, including undone ones.
    pub(crate) async fn plans(&self, namespace: Option<&str>) -> StoreResult<Vec<StoredPlan>> {
        let sql = "SELECT body, at, undone_at FROM plans WHERE ?1 IN ('', namespace) ORDER BY no";
        self.all("reading plans", sql, values![namespace.unwrap_or_default()]).await
    }

    /// Returns the undone plans of a namespace, or of all, that set records aside, and how many, earliest first.
    pub(crate) async fn set_aside(
        &self,
        namespace: Option<&str>,
    ) -> StoreResult<Vec<(PlanId, u64)>> {
        let sql = "SELECT p.id, count(*) FROM plans p
            JOIN dispositions d ON d.plan_no = p.no AND d.undone_no = p.no
            JOIN records c ON c.id = d.record
            WHERE ?1 IN ('', p.namespace) GROUP BY p.no, p.id ORDER BY p.no";
        self.all("reading which records are set aside", sql, values![namespace.unwrap_or_default()])
            .await
    }

    /// Returns the size of all plans of a namespace, in bytes.
    pub(crate) async fn plan_bytes(&self, namespace: &str) -> StoreResult<u64> {
        let sql = "SELECT CAST(coalesce(sum(octet_length(body)), 0) AS BIGINT) FROM plans
            WHERE namespace = ?1";
        self.read("measuring plans", query(sql, values![namespace], Db::one)).await
    }

    /// Returns a page of plans, latest first, with the operations of short ones; of a plan that was redone, its last
    /// application.
    pub(crate) async fn latest_plans(&self, range: PageRange) -> StoreResult<Vec<PlanEntry>> {
        let sql = "SELECT id, namespace, at, undone_at,
                CASE WHEN octet_length(body) <= ?3 THEN body END
            FROM plans p WHERE p.undone_at IS NULL OR NOT EXISTS (
                SELECT 1 FROM plans later WHERE later.id = p.id AND p.no < later.no)
            ORDER BY no DESC LIMIT ?1 OFFSET ?2";
        self.all("listing plans", sql, values![range.take, range.skip, LISTED_BYTES_MAX]).await
    }

    /// Looks up a plan by id prefix; returns the last application of a plan applied more than once.
    pub(crate) async fn plan(&self, prefix: IdPrefix) -> StoreResult<PrefixLookup<StoredPlan>> {
        let read = move |from: &mut Db| {
            let (low, high) = prefix.bounds();
            let sql = format!("SELECT body, at, undone_at FROM {LAST_NAMED}");
            let found = from.all(&sql, values![low, high])?;
            Ok(PrefixLookup::of(found, |it: &StoredPlan| it.plan.id.0))
        };
        self.read("looking up a plan", read).await
    }

    /// Like [`plan`](Store::plan), without the operations of a plan of more than `bytes_max`.
    pub(crate) async fn plan_entry(
        &self,
        prefix: IdPrefix,
        bytes_max: u64,
    ) -> StoreResult<PrefixLookup<PlanEntry>> {
        let read = move |from: &mut Db| {
            let (low, high) = prefix.bounds();
            let sql = format!(
                "SELECT id, namespace, at, undone_at,
                    CASE WHEN octet_length(body) <= ?3 THEN body END FROM {LAST_NAMED}"
            );
            let found = from.all(&sql, values![low, high, bytes_max])?;
            Ok(PrefixLookup::of(found, |it: &PlanEntry| it.id.0))
        };
        self.read("looking up a plan", read).await
    }

    /// Returns up to `limit` open pairs of a namespace, earliest first; if `suspected`, without those that are only possibly
    /// related.
    pub(crate) async fn open_pairs(
        &self,
        namespace: &str,
        suspected: bool,
        limit: u32,
    ) -> StoreResult<Vec<StoredOpenPair>> {
        let are = if suspected { SUSPECTED } else { "TRUE" };
        let sql = format!(
            "SELECT o.record, d.memory, o.memory, o.rule, o.asked, o.undone_no IS NOT NULL
            FROM {OPEN_PAIRS}
            WHERE o.namespace = ?1 AND o.settled_no IS NULL AND {are}
            ORDER BY o.no LIMIT ?2"
        );
        self.all("reading what was left open", &sql, values![namespace, limit]).await
    }

    /// Returns contradictions that involve any of `memories`, and undecided pairs in which something may have changed one
    /// of them: what may have, and the one.
    pub(crate) async fn pairs_of(&self, memories: BTreeSet<MemoryId>) -> StoreResult<MemoryPairs> {
        self.read("reading what contradicts memories", move |from| {
            let mut pairs = MemoryPairs::default();
            let certain = "SELECT one, other FROM contradictions
                WHERE (one = ?1 OR other = ?1) AND ended_no IS NULL";
            let open = format!(
                "SELECT d.memory, o.memory, o.rule FROM {OPEN_PAIRS}
                WHERE o.memory = ?1 AND o.settled_no IS NULL AND {SUSPECTED} ORDER BY o.no"
            );
            for id in &memories {
                pairs.certain.extend(from.all::<(MemoryId, MemoryId)>(certain, values![&id.0])?);
                pairs.open.extend(from.all::<(MemoryId, MemoryId, String)>(&open, values![&id.0])?);
            }
            Ok(pairs)
        })
        .await
    }

    /// Like [`pairs_of`](Store::pairs_of) for one memory, with the undecided pairs in which it may have changed the other.
    pub(crate) async fn pairs_with(&self, memory: MemoryId) -> StoreResult<MemoryPairs> {
        let mut pairs = self.pairs_of(BTreeSet::from([memory])).await?;
        let sql = format!(
            "SELECT d.memory, o.memory, o.rule FROM {OPEN_PAIRS}
            WHERE d.memory = ?1 AND o.settled_no IS NULL AND {SUSPECTED} ORDER BY o.no"
        );
        let later: Vec<_> = self.all("reading pairs", &sql, values![&memory.0]).await?;
        pairs.open.extend(later);
        Ok(pairs)
    }

    /// Returns contradicting pairs of active memories of a namespace, smaller id first.
    pub(crate) async fn contradictions(
        &self,
        namespace: &str,
    ) -> StoreResult<BTreeSet<(MemoryId, MemoryId)>> {
        let sql = "SELECT c.one, c.other FROM contradictions c
                JOIN memories m ON m.id = c.one AND m.state = 'active'
                JOIN memories n ON n.id = c.other AND n.state = 'active'
            WHERE c.namespace = ?1 AND c.ended_no IS NULL";
        Ok(self.all("reading contradictions", sql, values![namespace]).await?.into_iter().collect())
    }

    /// Returns the namespaces with open pairs.
    pub(crate) async fn open_namespaces(&self) -> StoreResult<Vec<String>> {
        let sql = "SELECT namespace FROM consolidating k WHERE EXISTS (SELECT 1 FROM open_pairs o
            WHERE o.namespace = k.namespace AND o.settled_no IS NULL) ORDER BY namespace";
        self.all("reading what was left open", sql, &[]).await
    }

    /// Returns those of these records that exist, in the order of `ids`.
    pub(crate) async fn records_of(&self, ids: Vec<RecordId>) -> StoreResult<Vec<Record>> {
        self.read("reading records", move |from| {
            let mut found = Vec::with_capacity(ids.len());
            for id in &ids {
                found.extend(record::find(from, id.0)?.map(|stored| stored.record));
            }
            Ok(found)
        })
        .await
    }

    /// Records pairs that a model left undecided, if there is no plan to record them with.
    pub(crate) async fn note_asked(
        &self,
        lease: &NamespaceLease,
        asked: Vec<AskedPair>,
    ) -> StoreResult<()> {
        let lease = lease.clone();
        self.write("recording the pairs asked about", move |to| {
            check_namespace(to, &lease)?;
            note(to, &asked)
        })
        .await
    }
}

fn dispose(db: &mut Db, operation: &Operation, no: i64) -> Result<()> {
    let Operation { record, disposition, rule, .. } = operation;
    if matches!(disposition, Disposition::Withdraw { .. }) {
        let sql = "UPDATE dispositions SET withdrawn_no = ?2
            WHERE record = ?1 AND withdrawn_no IS NULL";
        db.run(sql, values![&record.0, no])?;
        return db.run("UPDATE records SET settled = 0 WHERE id = ?1", values![&record.0]);
    }
    // The disposition from an earlier plan stays.
    if disposition.is_revision() {
        return Ok(());
    }
    let home = disposition.home();
    let sql = "INSERT INTO dispositions (record, plan_no, disposition, rule, memory)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    let (name, home) = (disposition.name(), home.as_ref());
    db.run(sql, values![&record.0, no, name, &**rule, home])?;
    db.run("UPDATE records SET settled = 1 WHERE id = ?1", values![&record.0])
}

/// Memories that a plan changed and about which a person decided in plans after `no` that stand.
fn decided_since(db: &mut Db, plan: &Plan, no: i64) -> Result<Vec<MemoryId>> {
    let sql = "SELECT body FROM plans WHERE namespace = ?1 AND no > ?2 AND undone_at IS NULL";
    let newer: Vec<Plan> = db.all(sql, values![&plan.namespace, no])?;
    let verdicts = newer.iter().flat_map(|it| &it.operations).filter(|it| it.is_by_person());
    let decided: BTreeSet<MemoryId> = verdicts.flat_map(Operation::touches).collect();
    let changed = plan.changes().into_iter().map(|it| it.memory);
    Ok(changed.filter(|id| decided.contains(id)).collect())
}

fn standing(db: &mut Db, plan: &Plan) -> Result<Option<i64>> {
    let sql = "SELECT no FROM plans WHERE id = ?1 AND undone_at IS NULL";
    db.first(sql, values![&plan.id.0])
}

fn change(
    db: &mut Db,
    plan: &Plan,
    work: impl FnOnce(&mut MemoryMap) -> Result<(), Moved>,
) -> Result<Result<(), Vec<MemoryId>>> {
    let mut state = MemoryMap::new();
    for touched in plan.changes() {
        if let Some(memory) = find(db, touched.memory)? {
            state.insert(memory.id, memory);
        }
    }
    let before = state.clone();
    if let Err(moved) = work(&mut state) {
        return Ok(Err(moved.0));
    }
    let ids: BTreeSet<MemoryId> = before.keys().chain(state.keys()).copied().collect();
    let change = |memory: MemoryId| Change {
        memory,
        before: before.get(&memory).cloned(),
        after: state.get(&memory).cloned(),
    };
    let mut changes: Vec<Change> = ids.into_iter().map(change).collect();
    changes.retain(|it| it.before != it.after);
    write_memories(db, &plan.namespace, &changes)?;
    Ok(Ok(()))
}

/// An open pair whose two memories are active.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct StoredOpenPair {
    pub record: RecordId,
    pub home: MemoryId,
    pub memory: MemoryId,
    pub rule: String,
    pub asked: Option<Digest>,
    /// True if a person undid how it was settled; models are not asked about it again.
    pub is_undone: bool,
}

row_of! { StoredOpenPair { record, home, memory, rule, asked, is_undone } }

/// Condition of open pairs that are more than possibly related. Matches a partial index.
const SUSPECTED: &str = "o.rule <> 'related'";
/// Open pairs joined with the active memories on both sides.
const OPEN_PAIRS: &str = "open_pairs o
    JOIN dispositions d ON d.record = o.record AND d.memory <> o.memory AND d.withdrawn_no IS NULL
    JOIN memories h ON h.id = d.memory AND h.state = 'active'
    JOIN memories m ON m.id = o.memory AND m.state = 'active'
    JOIN records c ON c.id = o.record AND c.state = 'staged'
    JOIN runs r ON r.no = c.run_no AND r.current = 1";

/// Pairs of memories that contradict each other, and open pairs with their rule, the later record's memory first.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryPairs {
    pub certain: BTreeSet<(MemoryId, MemoryId)>,
    pub open: Vec<(MemoryId, MemoryId, String)>,
}

/// A pair that stays open although a model was asked about it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct AskedPair {
    pub record: RecordId,
    pub memory: MemoryId,
    pub question: Digest,
}

/// Stores the pairs that `plan` leaves open and closes those it settles.
fn write_open_pairs(db: &mut Db, plan: &Plan, no: i64) -> Result<()> {
    for left in &plan.left_open {
        let sql = "INSERT INTO open_pairs (record, memory, namespace, plan_no, rule)
            VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT (record, memory) DO UPDATE SET plan_no = excluded.plan_no,
                rule = excluded.rule, asked = NULL, settled_no = NULL, undone_no = NULL";
        let (record, memory) = (&left.record.0, &left.memory.0);
        db.run(sql, values![record, memory, &plan.namespace, no, &*left.rule])?;
    }
    for operation in &plan.operations {
        if let Disposition::Settle { with, how, .. } = operation.disposition {
            let sql =
                "INSERT INTO open_pairs (record, memory, namespace, plan_no, rule, settled_no)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (record, memory) DO UPDATE SET
                    rule = CASE WHEN excluded.settled_no IS NULL THEN excluded.rule
                        ELSE open_pairs.rule END,
                    settled_no = coalesce(excluded.settled_no, open_pairs.settled_no)";
            // What is changed in part stays beside the change, marked.
            let settled_no = (how != Settlement::Partly).then_some(no);
            let (record, rule) = (&operation.record.0, &*operation.rule);
            db.run(sql, values![record, &with.0, &plan.namespace, no, rule, settled_no])?;
        }
    }
    Ok(())
}

/// Stores the contradictions that `plan` finds and ends those it resolves.
fn write_contradictions(db: &mut Db, plan: &Plan, no: i64) -> Result<()> {
    for operation in &plan.operations {
        let (with, memory, stands) = match operation.disposition {
            Disposition::Conflict { with, memory } => (with, memory, true),
            Disposition::Settle { memory, with, how } => (with, memory, how == Settlement::Beside),
            Disposition::Add { .. }
            | Disposition::Merge { .. }
            | Disposition::Supersede { .. }
            | Disposition::Discard
            | Disposition::Duplicate { .. }
            | Disposition::Withdraw { .. }
            | Disposition::Restate { .. }
            | Disposition::Decide { .. } => continue,
        };
        let (one, other) = (with.min(memory), with.max(memory));
        if stands {
            let sql = "INSERT INTO contradictions (namespace, one, other, plan_no)
                VALUES (?1, ?2, ?3, ?4)";
            db.run(sql, values![&plan.namespace, &one.0, &other.0, no])?;
        } else {
            let sql = "UPDATE contradictions SET ended_no = ?3
                WHERE one = ?1 AND other = ?2 AND ended_no IS NULL";
            db.run(sql, values![&one.0, &other.0, no])?;
        }
    }
    Ok(())
}

fn note(db: &mut Db, asked: &[AskedPair]) -> Result<()> {
    for pair in asked {
        let sql = "UPDATE open_pairs SET asked = ?3 WHERE record = ?1 AND memory = ?2";
        db.run(sql, values![&pair.record.0, &pair.memory.0, &pair.question])?;
    }
    Ok(())
}
