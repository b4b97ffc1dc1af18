//! Consolidates the memory of a namespace: takes its lease, reads what waits and what is known, plans, asks a model
//! about what no rule decides if there is one, and applies the plan in one transaction. Knows no files: what a
//! directory shows is made of the memories after it.

use super::holding::{Asks, Held};
use super::judging::{Asked, Halt, Heard, Judge};
use super::sessions::go_down;
use crate::config::Thresholds;
use crate::consolidate::{
    Batch, Memories, OpenPair, Verdicts, Withdrawn, consolidate_with, offer, rests_on_nothing_else,
    withdraw,
};
use crate::domain::{
    Disposition, Finding, LeftOpen, MemoryId, MemoryMap, Plan, Record, RecordId, Severity,
    Timestamp,
};
use crate::edge::store::{AskedPair, Backlog, LeftPair, Store, StoreError, StoredPlan, Tenure};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Records of one plan: what is more goes into the next. So many and as many memories take less than 500 MB.
const PLAN_RECORDS_MAX: u32 = 100_000;
/// Pairs of earlier plans that are put to a model for one plan: some twenty batches. The others come next time.
const PLAN_PAIRS_MAX: usize = 400;
/// Open pairs of a namespace that are looked at.
const PAIRS_MAX: u32 = 10_000;
/// Times that a plan is made and what it leaves open is asked about: a verdict may open what it stood before.
const ROUNDS_MAX: u32 = 4;

/// Who consolidates.
#[derive(Clone)]
pub struct Consolidator {
    /// Where records and memories are.
    pub store: Store,
    /// Its name, for those who find a namespace held.
    pub holder: String,
    /// Tells the time.
    pub clock: fn() -> Timestamp,
    /// Whether it waits, some seconds, for somebody else who changes the same memory.
    pub waits: bool,
    /// Is asked what no rule decides; where there is none, that stays open.
    pub judge: Option<Arc<Judge>>,
}

/// What became of an attempt to change a namespace's memory.
#[derive(Debug)]
pub enum Outcome {
    /// It was done, or nothing was to be done; on a dry run, this is what would be.
    Done(Box<Planned>),
    /// Somebody else is at it.
    Busy,
    /// These memories were changed by something else meanwhile; nothing was written.
    Moved(Vec<MemoryId>),
    /// The model cannot be asked until a person mends something, or somebody asked to stop. Nothing was written: who
    /// asked for a model's verdicts gets no plan without them. Answers that came are kept, and records wait.
    Halted(Halt),
}

/// A plan with what a reader needs to follow it.
#[derive(Debug)]
pub struct Planned {
    /// It.
    pub plan: Plan,
    /// What was odd about the records and about a model's answers; rules and places.
    pub findings: Vec<Finding>,
    /// Every memory as it is after the plan.
    pub memories: MemoryMap,
    /// Whether more waits than one plan takes.
    pub goes_on: bool,
    /// What was put to a model.
    pub asked: Asked,
    /// What is open after it: of this plan, and of earlier ones as far as a model was to be asked about them.
    pub left_open: Vec<LeftOpen>,
    /// Questions that came to nothing.
    in_vain: Vec<AskedPair>,
}

/// What a plan is made of.
struct Material {
    memories: Memories,
    known: MemoryMap,
    records: Vec<Record>,
    /// What earlier plans left open.
    open: Vec<OpenPair>,
    goes_on: bool,
    /// Whether more is open than one plan asks about.
    more_open: bool,
    /// What counts no more, since its conversation was read anew, and the plans that stand, where there is any.
    outdated: Vec<Withdrawn>,
    plans: Vec<Plan>,
}

impl Consolidator {
    /// The namespaces that `thresholds` say are due; none if nothing waits in any.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn due(
        &self,
        thresholds: &Thresholds,
    ) -> Result<Option<Vec<String>>, StoreError> {
        let now = (self.clock)();
        let backlog = self.store.backlog().await?;
        if backlog.is_empty() {
            return Ok(None);
        }
        let due = backlog.into_iter().filter(|it| is_due(it, thresholds, now));
        Ok(Some(due.map(|it| it.namespace).collect()))
    }

    /// Plans what becomes of the records that wait in `namespace`, without changing anything. A model's answers are
    /// kept, so that applying it asks for nothing again.
    ///
    /// # Errors
    /// The store's.
    pub async fn plan(&self, namespace: &str) -> Result<Outcome, StoreError> {
        // Of two who ask the same one pays, and the other finds the answer.
        let held = match &self.judge {
            None => None,
            Some(_) => match self.hold(namespace).await? {
                None => return Ok(Outcome::Busy),
                held => held,
            },
        };
        let planned = self.planned(namespace).await;
        if let Some(held) = held {
            held.leave(None).await?;
        }
        Ok(match planned? {
            Ok(planned) => Outcome::Done(Box::new(planned)),
            Err(halt) => Outcome::Halted(halt),
        })
    }

    async fn planned(&self, namespace: &str) -> Result<Result<Planned, Halt>, StoreError> {
        let mut material = self.material(namespace).await?;
        let mut heard = Heard::default();
        if let Some(judge) = &self.judge {
            for _ in 0..ROUNDS_MAX {
                let batches;
                (material, batches) = blocking(material, &heard, open_batches).await;
                if batches.is_empty() || heard.waits {
                    break;
                }
                if let Err(halt) = judge.ask(namespace, batches, &mut heard).await? {
                    return Ok(Err(halt));
                }
            }
        }
        let mut planned = blocking(material, &heard, finished).await;
        if let Some(judge) = &self.judge {
            let settled = settled(&planned.plan);
            let in_vain = heard.judged.iter().filter(|pair| !settled.contains(pair));
            let in_vain = in_vain.filter_map(|(record, memory)| {
                let question = judge.question(*record, planned.memories.get(memory)?);
                Some(AskedPair { record: *record, memory: *memory, question })
            });
            planned.in_vain = in_vain.collect();
        }
        Ok(Ok(planned))
    }

    async fn material(&self, namespace: &str) -> Result<Material, StoreError> {
        let store = &self.store;
        let known = store.memories(Some(namespace)).await?;
        let records = store.waiting_records(namespace, PLAN_RECORDS_MAX).await?;
        let outdated = store.outdated_records(namespace, PLAN_RECORDS_MAX).await?;
        let goes_on = records.len().max(outdated.len()) == PLAN_RECORDS_MAX as usize;
        let outdated = outdated.into_iter().map(|(record, memory)| Withdrawn { record, memory });
        let outdated: Vec<Withdrawn> = outdated.collect();
        let plans = match outdated.is_empty() {
            true => Vec::new(),
            false => store.plans(Some(namespace)).await?,
        };
        let plans = plans.into_iter().filter(|plan| plan.undone_at.is_none());
        let plans = plans.map(|plan| plan.plan).collect();
        let mut pairs = match &self.judge {
            Some(_) => store.open_pairs(namespace, PAIRS_MAX).await?,
            None => Vec::new(),
        };
        // The same was asked already, and came to nothing.
        pairs.retain(|pair| {
            let memory = known.get(&pair.memory);
            let now = self.judge.as_ref().zip(memory);
            now.is_some_and(|(judge, it)| pair.asked != Some(judge.question(pair.record, it)))
        });
        let more_open = pairs.len() > PLAN_PAIRS_MAX;
        pairs.truncate(PLAN_PAIRS_MAX);
        let open = self.open(&known, &pairs).await?;
        let namespace = namespace.to_owned();
        let material = move || Material {
            memories: Memories::of(namespace, &known),
            known,
            records,
            open,
            goes_on,
            more_open,
            outdated,
            plans,
        };
        // Seconds for a hundred thousand: others get their turn meanwhile.
        Ok(done(tokio::task::spawn_blocking(material)).await)
    }

    /// Open pairs with their records.
    async fn open(
        &self,
        known: &MemoryMap,
        pairs: &[LeftPair],
    ) -> Result<Vec<OpenPair>, StoreError> {
        let first = |pair: &LeftPair| known.get(&pair.memory)?.sources.first().copied();
        let ids = pairs.iter().flat_map(|pair| [Some(pair.record), first(pair)]);
        let ids: BTreeSet<RecordId> = ids.flatten().collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let records = self.store.records_of(ids.into_iter().collect()).await?;
        let by_id: BTreeMap<RecordId, Record> =
            records.into_iter().map(|record| (record.id, record)).collect();
        let open = pairs.iter().filter_map(|pair| {
            Some(OpenPair {
                record: by_id.get(&pair.record)?.clone(),
                home: pair.home,
                memory: pair.memory,
                first: first(pair).and_then(|id| by_id.get(&id).cloned()),
                rule: pair.rule.clone(),
            })
        });
        Ok(open.collect())
    }

    /// Plans and applies, under the lease of `namespace`.
    ///
    /// # Errors
    /// The store's; nothing was written of a plan that failed.
    pub async fn run(&self, namespace: &str) -> Result<Outcome, StoreError> {
        let Some(held) = self.hold(namespace).await? else { return Ok(Outcome::Busy) };
        let done = self.under(&held.tenure).await;
        let whole = matches!(&done, Ok(Outcome::Done(planned)) if !planned.goes_on);
        let left = held.leave(whole.then(|| (self.clock)())).await;
        let outcome = done?;
        left.map(|()| outcome)
    }

    async fn under(&self, tenure: &Tenure) -> Result<Outcome, StoreError> {
        let planned = match self.planned(&tenure.namespace).await? {
            Ok(planned) => planned,
            Err(halt) => return Ok(Outcome::Halted(halt)),
        };
        let asked = planned.in_vain.as_slice();
        if planned.plan.is_empty() {
            if !asked.is_empty() {
                self.store.note_asked(tenure, asked.to_vec()).await?;
            }
            return Ok(Outcome::Done(Box::new(planned)));
        }
        let plan = (&planned.plan, asked);
        let applied = self.store.apply_judged(tenure, plan, (self.clock)()).await?;
        Ok(match applied {
            Ok(()) => Outcome::Done(Box::new(planned)),
            Err(moved) => Outcome::Moved(moved),
        })
    }

    /// Takes a plan back.
    ///
    /// # Errors
    /// The store's.
    pub async fn undo(&self, stored: &StoredPlan) -> Result<Outcome, StoreError> {
        let namespace = &stored.plan.namespace;
        let Some(held) = self.hold(namespace).await? else { return Ok(Outcome::Busy) };
        let undone = self.store.undo_plan(&held.tenure, &stored.plan, (self.clock)()).await;
        held.leave(None).await?;
        if let Err(moved) = undone? {
            return Ok(Outcome::Moved(moved));
        }
        let memories = self.store.memories(Some(namespace)).await?;
        let left_open = stored.plan.left_open.clone();
        Ok(Outcome::Done(Box::new(Planned {
            plan: stored.plan.clone(),
            findings: Vec::new(),
            memories,
            goes_on: false,
            asked: Asked::default(),
            left_open,
            in_vain: Vec::new(),
        })))
    }

    pub(super) async fn hold(&self, namespace: &str) -> Result<Option<Held>, StoreError> {
        let Consolidator { store, holder, clock, waits, judge: _ } = self;
        Asks { store, holder, clock: *clock, waits: *waits }.take(namespace).await
    }
}

/// Does `work` beside the others.
async fn blocking<T: Send + 'static>(
    material: Material,
    heard: &Heard,
    work: fn(Material, Heard) -> T,
) -> T {
    let heard = heard.clone();
    done(tokio::task::spawn_blocking(move || work(material, heard))).await
}

async fn done<T>(work: tokio::task::JoinHandle<T>) -> T {
    match work.await {
        Ok(done) => done,
        Err(died) => {
            go_down(died);
            // It did not begin, because the runtime ends, and this with it.
            std::future::pending().await
        }
    }
}

/// What the plan leaves open that nobody was asked about.
fn open_batches(material: Material, heard: Heard) -> (Material, Vec<Batch>) {
    let Material { memories, records, open, outdated, .. } = &material;
    let (plan, _) = consolidate_with(records, open, memories, &heard.verdicts);
    let mut out: BTreeSet<(RecordId, MemoryId)> =
        settled(&plan).union(&heard.judged).copied().collect();
    // What goes out of use with this plan need not be asked about.
    let gone: BTreeSet<RecordId> = outdated.iter().map(|it| it.record.id).collect();
    let goes = |id: MemoryId| memories.get(id).is_some_and(|it| rests_on_nothing_else(it, &gone));
    out.extend(plan.left_open.iter().filter(|it| goes(it.memory)).map(|it| (it.record, it.memory)));
    let batches = offer((&plan, records), open, memories, &out);
    (material, batches)
}

/// The pairs of earlier plans that `plan` decides.
fn settled(plan: &Plan) -> BTreeSet<(RecordId, MemoryId)> {
    let settles = plan.operations.iter().filter_map(|it| match it.disposition {
        Disposition::Settle { with, .. } => Some((it.record, with)),
        Disposition::Add { .. }
        | Disposition::Merge { .. }
        | Disposition::Supersede { .. }
        | Disposition::Conflict { .. }
        | Disposition::Discard
        | Disposition::Duplicate { .. }
        | Disposition::Withdraw { .. }
        | Disposition::Restate { .. } => None,
    });
    settles.collect()
}

/// The plan with every verdict.
fn finished(material: Material, heard: Heard) -> Planned {
    let Material { memories, records, open, known, goes_on, more_open, outdated, plans } = material;
    let (mut plan, refused) = consolidate_with(&records, &open, &memories, &heard.verdicts);
    let mut findings = heard.findings;
    findings.extend(refused);
    if !heard.verdicts.is_empty() {
        let fresh = records.iter().map(|it| it.id).filter(|id| !memories.has_taken(*id));
        let wrong = plan.check(&fresh.collect::<Vec<_>>(), &known);
        // No verdict can make such a plan. If one does all the same, it costs the verdicts and no memory.
        if !wrong.is_empty() {
            findings.extend(wrong);
            let detail = "the verdicts came to a plan that breaks a rule; they are left out";
            findings.push(Finding::new(Severity::Error, "verdicts-dropped", 0, detail));
            plan = consolidate_with(&records, &[], &memories, &Verdicts::none()).0;
        }
    }
    let plan = withdraw(plan, &outdated, &known, plans);
    let settled = settled(&plan);
    let still = open.iter().filter(|it| !settled.contains(&(it.record.id, it.memory)));
    let earlier = still.map(|it| LeftOpen {
        record: it.record.id,
        memory: it.memory,
        rule: it.rule.clone().into(),
    });
    let left_open = plan.left_open.iter().cloned().chain(earlier).collect();
    let mut after = known;
    // It was made of these very memories.
    let _ = plan.apply(&mut after);
    Planned {
        plan,
        findings,
        memories: after,
        // What waits for an answer is not asked about at once again.
        goes_on: goes_on || (more_open && !heard.waits && !heard.judged.is_empty()),
        asked: heard.asked,
        left_open,
        in_vain: Vec::new(),
    }
}

/// Whether a namespace is consolidated now.
fn is_due(backlog: &Backlog, thresholds: &Thresholds, now: Timestamp) -> bool {
    let cooled = backlog.done_at.is_none_or(|at| at.after(thresholds.cool_down) <= now);
    let many = 0 < thresholds.records && thresholds.records <= backlog.records;
    let long = 0 < thresholds.bytes && thresholds.bytes <= backlog.bytes;
    let waits = !thresholds.idle.is_zero();
    let idle = waits && backlog.staged_at.after(thresholds.idle) <= now;
    backlog.records > 0 && cooled && (many || long || idle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn records_wait_until_they_are_many_or_long_or_nothing_came_and_it_has_cooled_down() {
        const SECS: fn(u64) -> Duration = Duration::from_secs;
        let thresholds =
            Thresholds { records: 10, bytes: 1_000, idle: SECS(60), cool_down: SECS(30) };
        let backlog = Backlog {
            namespace: "roofs".to_owned(),
            records: 3,
            bytes: 300,
            staged_at: Timestamp(100_000),
            done_at: None,
        };
        let check = |backlog: Backlog, now, expected| {
            assert_eq!(
                is_due(&backlog, &thresholds, Timestamp(now)),
                expected,
                "{backlog:?} {now}"
            );
        };
        check(backlog.clone(), 100_001, false);
        check(Backlog { records: 10, ..backlog.clone() }, 100_001, true);
        check(Backlog { bytes: 1_000, ..backlog.clone() }, 100_001, true);
        check(backlog.clone(), 160_000, true);
        check(Backlog { records: 0, ..backlog.clone() }, 160_000, false);
        let done = Backlog { records: 10, done_at: Some(Timestamp(90_000)), ..backlog.clone() };
        check(done.clone(), 119_999, false);
        check(done, 120_000, true);
        let never = Thresholds { records: 0, bytes: 0, idle: SECS(0), cool_down: SECS(0) };
        let many = Backlog { records: u64::MAX, bytes: u64::MAX, ..backlog };
        assert!(!is_due(&many, &never, Timestamp(i64::MAX)));
    }
}
