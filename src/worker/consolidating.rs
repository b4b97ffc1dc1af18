//! Consolidates the memory of a namespace: takes its lease, reads what waits and what is known, plans, and
//! applies the plan in one transaction. Knows no files: what a directory shows is made of the memories after it.

use super::sessions::go_down;
use crate::config::Thresholds;
use crate::consolidate::{Memories, Verdicts, consolidate};
use crate::domain::{Finding, MemoryId, MemoryMap, Plan, Timestamp};
use crate::edge::store::{Backlog, Store, StoreError, StoredPlan, Tenure};
use std::time::Duration;

/// Records of one plan: what is more goes into the next. So many and as many memories take less than 500 MB.
const PLAN_RECORDS_MAX: u32 = 100_000;
/// How long a namespace is held for one plan: ten times what the largest takes.
const TENURE: Duration = Duration::from_secs(600);

/// Who consolidates.
#[derive(Clone)]
pub struct Consolidator {
    /// Where records and memories are.
    pub store: Store,
    /// Its name, for those who find a namespace held.
    pub holder: String,
    /// Tells the time.
    pub clock: fn() -> Timestamp,
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
}

/// A plan with what a reader needs to follow it.
#[derive(Debug)]
pub struct Planned {
    /// It.
    pub plan: Plan,
    /// What was odd about the records; rules and places.
    pub findings: Vec<Finding>,
    /// Every memory as it is after the plan.
    pub memories: MemoryMap,
    /// Whether more waits than one plan takes.
    pub goes_on: bool,
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

    /// Plans what becomes of the records that wait in `namespace`, without changing anything.
    ///
    /// # Errors
    /// The store's.
    pub async fn plan(&self, namespace: &str) -> Result<Planned, StoreError> {
        let known = self.store.memories(Some(namespace)).await?;
        let records = self.store.waiting_records(namespace, PLAN_RECORDS_MAX).await?;
        let goes_on = records.len() == PLAN_RECORDS_MAX as usize;
        let namespace = namespace.to_owned();
        // Seconds for a hundred thousand: others get their turn meanwhile.
        let planning = tokio::task::spawn_blocking(move || {
            let memories = Memories::of(namespace, &known);
            let (plan, findings) = consolidate(&records, &memories, &Verdicts::none());
            let mut after = known;
            // It was made of these very memories.
            let _ = plan.apply(&mut after);
            Planned { plan, findings, memories: after, goes_on }
        });
        match planning.await {
            Ok(planned) => Ok(planned),
            Err(died) => {
                go_down(died);
                // It did not begin, because the runtime ends, and this with it.
                std::future::pending().await
            }
        }
    }

    /// Plans and applies, under the lease of `namespace`.
    ///
    /// # Errors
    /// The store's; nothing was written of a plan that failed.
    pub async fn run(&self, namespace: &str) -> Result<Outcome, StoreError> {
        let Some(tenure) = self.tenure(namespace).await? else { return Ok(Outcome::Busy) };
        let done = self.under(&tenure).await;
        let whole = matches!(&done, Ok(Outcome::Done(planned)) if !planned.goes_on);
        let done_at = whole.then(|| (self.clock)());
        let left = self.store.leave_tenure(&tenure, done_at).await;
        let outcome = done?;
        left.map(|()| outcome)
    }

    async fn under(&self, tenure: &Tenure) -> Result<Outcome, StoreError> {
        let planned = self.plan(&tenure.namespace).await?;
        if planned.plan.is_empty() {
            return Ok(Outcome::Done(Box::new(planned)));
        }
        let applied = self.store.apply_plan(tenure, &planned.plan, (self.clock)()).await?;
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
        let Some(tenure) = self.tenure(namespace).await? else { return Ok(Outcome::Busy) };
        let undone = self.store.undo_plan(&tenure, &stored.plan, (self.clock)()).await;
        self.store.leave_tenure(&tenure, None).await?;
        if let Err(moved) = undone? {
            return Ok(Outcome::Moved(moved));
        }
        let memories = self.store.memories(Some(namespace)).await?;
        let (plan, findings) = (stored.plan.clone(), Vec::new());
        Ok(Outcome::Done(Box::new(Planned { plan, findings, memories, goes_on: false })))
    }

    pub(super) async fn tenure(&self, namespace: &str) -> Result<Option<Tenure>, StoreError> {
        let now = (self.clock)();
        self.store.take_tenure(namespace, (&self.holder, now.after(TENURE)), now).await
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
