//! State that all jobs of a worker share: its leases, the batch of a replay, the circuit breaker and the job counts; its
//! condition to end, and its final report.

use crate::adapters::metrics::{Meters, Outcome};
use crate::config::{Queue, Thresholds};
use crate::domain::{JobId, Lease, Record, Timestamp};
use crate::pipeline::adjudicate::Adjudicator;
use crate::pipeline::extractor::Extractor;
use crate::pipeline::model_client::CallRetry;
use crate::pipeline::retrying_store::RetryingStore;
use crate::store::{RemainingJobs, Staged, StoreResult};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub(super) struct WorkerState {
    /// The worker's name, in leases.
    pub(super) id: String,
    pub(super) started_at: Timestamp,
    pub(super) extractor: Extractor,
    pub(super) retry: CallRetry,
    /// Adjudicates candidate pairs, if the settings name a model for it.
    pub(super) adjudicator: Option<Arc<Adjudicator>>,
    pub(super) queue: Queue,
    /// The batch of a replay; only its jobs are worked on.
    pub(super) batch: Option<Arc<Batch>>,
    /// Backlog that makes a namespace due for consolidation.
    pub(super) thresholds: Thresholds,
    pub(super) leases: Leases,
    pub(super) breaker: CircuitBreaker,
    pub(super) counts: Arc<Counts>,
    /// When cancelled, nothing new starts, and calls in flight complete.
    pub(super) closing: CancellationToken,
    /// Held by the feeds that fill the queue.
    pub(super) feeding: Weak<()>,
    pub(super) tell: fn(&str),
    /// Time of the last extension of the leases, in milliseconds.
    pub(super) extended_at: AtomicI64,
    /// Jobs that call a model, or wait for their call.
    pub(super) calling: AtomicU32,
    /// Notified when a call slot was freed.
    pub(super) freed: Notify,
    /// Daily cap that a replay reached: claimed jobs still try, nothing more is claimed.
    pub(super) capped: OnceLock<String>,
    /// Error of an endpoint that answers repeatedly, but not as a model.
    pub(super) no_model: OnceLock<String>,
    /// True once the user was told that the endpoint limits the rate.
    pub(super) is_limited: AtomicBool,
    /// True once the user was told that a conversation of its jobs was forgotten.
    pub(super) has_forgotten: AtomicBool,
    /// Message of the first problem that only a person can fix.
    pub(super) needs: OnceLock<String>,
}

/// A job's share of the concurrency, until it is dropped.
pub(super) struct CallSlot(Arc<WorkerState>);

impl WorkerState {
    pub(super) fn now(&self) -> Timestamp {
        (self.extractor.client.clock)()
    }

    pub(super) fn store(&self) -> &RetryingStore {
        &self.extractor.client.store
    }

    pub(super) fn batch_id(&self) -> Option<String> {
        self.batch.as_ref().map(|batch| batch.id.clone())
    }

    /// Remaining jobs; of the dead, those that died at `since` or later.
    pub(super) async fn left(&self, since: Timestamp) -> StoreResult<RemainingJobs> {
        self.store().retry(|store| store.left(since, self.batch_id())).await
    }

    pub(super) async fn extend(&self) -> StoreResult<()> {
        let (now, leases) = (self.now(), self.leases.all());
        if !leases.is_empty() {
            let until = now.after(self.queue.lease);
            let lost = self.store().inner.extend(leases.clone(), until, now).await?;
            let lost = self.leases.lose(&leases, &lost);
            if lost > 0 {
                tracing::warn!(leases = lost, "leases were lost to other workers");
            }
        }
        self.extended_at.store(now.0, Ordering::Relaxed);
        Ok(())
    }

    /// True if the leases may have expired because the machine slept or the store was unavailable. A claim would then
    /// take the worker's own jobs a second time.
    pub(super) fn is_late(&self) -> bool {
        let at = Timestamp(self.extended_at.load(Ordering::Relaxed));
        at.after(self.queue.lease / 2) < self.now()
    }

    /// Number of jobs that may be claimed now, by the limit on concurrency.
    pub(super) fn room(&self) -> u32 {
        if self.capped.get().is_some() {
            return 0;
        }
        let limit = self.extractor.client.concurrency.limit();
        // A replay claims some jobs ahead, so that a busy store does not keep the endpoint waiting.
        let ahead = if self.batch.is_some() { limit / 2 + 1 } else { 0 };
        (limit + ahead).saturating_sub(self.calling.load(Ordering::Relaxed))
    }

    pub(super) fn take_slot(self: &Arc<WorkerState>) -> CallSlot {
        self.calling.fetch_add(1, Ordering::Relaxed);
        CallSlot(Arc::clone(self))
    }

    /// Stops the worker because of a problem that only a person can fix.
    pub(super) fn stop(&self, line: String) {
        self.needs.get_or_init(|| line);
        self.closing.cancel();
    }

    /// Message of the problem that only a person can fix: it stopped the worker, or keeps consolidation waiting.
    pub(super) fn needs(&self) -> Option<String> {
        self.needs.get().cloned().or_else(|| self.adjudicator.as_ref()?.needs())
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        self.0.calling.fetch_sub(1, Ordering::Relaxed);
        self.0.freed.notify_one();
    }
}

/// Leases of the jobs in progress, by job and fencing token, and what stops each job.
#[derive(Debug, Default)]
pub(super) struct Leases(Mutex<HashMap<(JobId, u64), (Lease, CancellationToken)>>);

/// A held lease. Dropping it ends its extensions, whatever the state of the job in the store.
#[derive(Debug)]
pub(super) struct LeaseGuard<'a> {
    leases: &'a Leases,
    lease: Lease,
    /// Cancelled when the lease is lost or the worker stops.
    pub(super) stop: CancellationToken,
    closing: CancellationToken,
}

impl Leases {
    pub(super) fn take(&self, lease: Lease, closing: &CancellationToken) -> LeaseGuard<'_> {
        let stop = closing.child_token();
        self.0.lock().insert((lease.subject, lease.token), (lease, stop.clone()));
        LeaseGuard { leases: self, lease, stop, closing: closing.clone() }
    }

    pub(super) fn all(&self) -> Vec<Lease> {
        self.0.lock().values().map(|(lease, _)| *lease).collect()
    }

    /// Stops the jobs whose leases were lost to other workers. Returns their number, without jobs that ended meanwhile
    /// and dropped their leases.
    pub(super) fn lose(&self, extended: &[Lease], lost: &[JobId]) -> usize {
        let mut held = self.0.lock();
        let lost = extended.iter().filter(|lease| lost.contains(&lease.subject));
        let gone = lost.filter_map(|lease| held.remove(&(lease.subject, lease.token)));
        gone.map(|(_, stop)| stop.cancel()).count()
    }
}

impl LeaseGuard<'_> {
    /// True if another worker may have the job.
    pub(super) fn is_lost(&self) -> bool {
        self.stop.is_cancelled() && !self.closing.is_cancelled()
    }
}

impl Drop for LeaseGuard<'_> {
    fn drop(&mut self) {
        self.leases.0.lock().remove(&(self.lease.subject, self.lease.token));
    }
}

/// The batch of a replay. It is read and worked on at the same time; reading never runs far ahead of the model.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) id: String,
    /// Enqueued jobs that have not ended.
    ahead: AtomicU32,
    ahead_max: u32,
    pub(super) is_read: AtomicBool,
    /// Notified when the reader enqueued something or ended.
    pub(super) news: Notify,
    /// Notified when a job ended.
    room: Notify,
}

impl Batch {
    /// Creates a batch whose reader stays at most about `ahead_max` jobs ahead.
    pub(crate) fn new(id: &str, ahead_max: u32) -> Batch {
        Batch {
            id: id.to_owned(),
            ahead: AtomicU32::new(0),
            ahead_max,
            is_read: AtomicBool::new(false),
            news: Notify::new(),
            room: Notify::new(),
        }
    }

    pub(crate) fn enqueued(&self, jobs: usize) {
        self.ahead.fetch_add(u32::try_from(jobs).unwrap_or(u32::MAX), Ordering::Relaxed);
        self.news.notify_one();
    }

    pub(crate) fn end_reading(&self) {
        self.is_read.store(true, Ordering::SeqCst);
        self.news.notify_one();
    }

    /// Waits until the reader may go on.
    pub(crate) async fn room(&self, cancel: &CancellationToken) {
        while self.ahead_max <= self.ahead.load(Ordering::Relaxed) && !cancel.is_cancelled() {
            tokio::select! {
                () = cancel.cancelled() => {}
                () = self.room.notified() => {}
            }
        }
    }

    pub(super) fn ended(&self) {
        let less = |ahead: u32| Some(ahead.saturating_sub(1));
        // The closure always returns a value.
        let _ = self.ahead.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.room.notify_one();
    }

    /// Resets the count when nothing is left to claim: the enqueued jobs ended elsewhere or wait.
    pub(super) fn idle(&self) {
        self.ahead.store(0, Ordering::Relaxed);
        self.room.notify_one();
    }
}

/// Consecutive unanswered jobs that open the breaker.
const UNANSWERED_MAX: u32 = 3;
/// Maximum number of unanswered jobs that are remembered.
const SUSPECTS_MAX: usize = 1_000;

/// Detects an outage of the endpoint. An unanswered job may be the job's own fault if it had no answer before either and
/// the endpoint answered others; several in a row are not, and charging them an attempt would kill the queue's jobs one
/// after another.
#[derive(Debug, Default)]
pub(super) struct CircuitBreaker(Mutex<BreakerCounts>);

#[derive(Debug, Default)]
struct BreakerCounts {
    has_answered: bool,
    unanswered: u32,
    probes: u32,
    /// Jobs without an answer since the last outage.
    suspects: HashSet<JobId>,
}

/// State of the breaker after an unanswered job.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum BreakerState {
    Closed,
    /// This job opened the breaker.
    Opened,
    Open,
}

impl CircuitBreaker {
    /// Closes the breaker; returns true if it was open.
    pub(super) fn answered(&self) -> bool {
        let mut counts = self.0.lock();
        (counts.has_answered, counts.probes) = (true, 0);
        let was_open = std::mem::take(&mut counts.unanswered) >= UNANSWERED_MAX;
        if was_open {
            counts.suspects.clear();
        }
        was_open
    }

    /// Returns true if `job`, which had no answer, had none before either, while the endpoint ever answered this worker.
    pub(super) fn is_at_fault(&self, job: JobId) -> bool {
        let mut counts = self.0.lock();
        if counts.suspects.len() >= SUSPECTS_MAX {
            counts.suspects.clear();
        }
        !counts.suspects.insert(job) && counts.has_answered
    }

    pub(super) fn unanswered(&self) -> BreakerState {
        let mut counts = self.0.lock();
        counts.unanswered = counts.unanswered.saturating_add(1);
        match counts.unanswered {
            ..UNANSWERED_MAX => BreakerState::Closed,
            UNANSWERED_MAX => BreakerState::Opened,
            _ => BreakerState::Open,
        }
    }

    /// Number of the next probe, from 1; `None` while the breaker is closed.
    pub(super) fn next_probe(&self) -> Option<u32> {
        let mut counts = self.0.lock();
        if counts.unanswered < UNANSWERED_MAX {
            return None;
        }
        counts.probes = counts.probes.saturating_add(1);
        Some(counts.probes)
    }
}

/// Jobs by what became of them.
#[derive(Clone, Debug, Default, Eq, PartialEq, JsonSchema, Serialize)]
pub struct Jobs {
    /// Claims.
    pub claimed: u64,
    /// Extracted now.
    pub done: u64,
    /// Found extracted from before.
    pub known: u64,
    /// Too long, and two or more jobs now.
    pub cut: u64,
    /// Without an answer, to be tried again.
    pub retried: u64,
    /// Given back unasked.
    pub released: u64,
    /// Failed for good.
    pub dead: u64,
    /// Taken by others meanwhile.
    pub lost: u64,
    /// Leases of others that had run out.
    pub expired: u64,
    /// Dead ones by kind, with what happened to one of them.
    pub failures: BTreeMap<String, (u64, String)>,
    /// Records that are staged.
    pub staged: u64,
    /// Records that were not proven.
    pub quarantined: u64,
}

/// Shared job counts. A lock suffices for a few additions per job.
#[derive(Debug, Default)]
pub struct Counts {
    jobs: Mutex<Jobs>,
    is_consolidating: AtomicBool,
    meters: Option<Arc<Meters>>,
}

impl Counts {
    /// Creates counts that are also reported to `meters`.
    pub fn metered(meters: Arc<Meters>) -> Counts {
        Counts { meters: Some(meters), ..Counts::default() }
    }

    /// Returns a snapshot of the counts.
    pub fn jobs(&self) -> Jobs {
        self.with(|jobs| jobs.clone())
    }

    /// True while memory is consolidated.
    pub fn is_consolidating(&self) -> bool {
        self.is_consolidating.load(Ordering::Relaxed)
    }

    pub(super) fn consolidate(&self, is_under_way: bool) {
        self.is_consolidating.store(is_under_way, Ordering::Relaxed);
    }

    pub(super) fn claimed(&self, claims: usize, expired: u32) {
        self.with(|jobs| {
            jobs.claimed += claims as u64;
            jobs.expired += u64::from(expired);
        });
        if let Some(meters) = &self.meters {
            meters.claimed(claims as u64);
            meters.expired(u64::from(expired));
        }
    }

    pub(super) fn ended(&self, outcome: Outcome) {
        self.with(|jobs| {
            *match outcome {
                Outcome::Done => &mut jobs.done,
                Outcome::Known => &mut jobs.known,
                Outcome::Cut => &mut jobs.cut,
                Outcome::Retried => &mut jobs.retried,
                Outcome::Released => &mut jobs.released,
                Outcome::Dead => &mut jobs.dead,
                Outcome::Lost => &mut jobs.lost,
            } += 1;
        });
        if let Some(meters) = &self.meters {
            meters.ended(outcome);
        }
    }

    pub(super) fn staged(&self, staged: Staged, records: &[Record]) {
        if let Some(meters) = &self.meters {
            records.iter().for_each(|it| meters.stored(it.claim.kind(), it.state, 1));
        }
        self.with(|jobs| {
            jobs.staged += u64::from(staged.staged);
            jobs.quarantined += u64::from(staged.quarantined);
        });
    }

    pub(super) fn failed(&self, kind: &str, detail: &str) {
        self.with(|jobs| {
            let (count, example) = jobs.failures.entry(kind.to_owned()).or_default();
            *count += 1;
            detail.clone_into(example);
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut Jobs) -> T) -> T {
        change(&mut self.jobs.lock())
    }
}

/// Condition on which a worker ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Until {
    /// Until it is stopped.
    Stopped,
    /// Until nothing is left to do, now or after a wait.
    Drained,
    /// After one job.
    OneJob,
}

/// Final report of a worker.
#[derive(Clone, Debug)]
pub struct Report {
    /// Reason.
    pub end: End,
    pub(crate) left: RemainingJobs,
}

/// Reason for the end of a worker.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum End {
    /// It was asked to stop.
    Asked,
    /// No work was left.
    Nothing,
    /// Only a person can fix the problem; the message says how.
    Needs(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Digest;

    #[test]
    fn only_several_in_a_row_are_an_outage_and_one_answer_ends_it() {
        let breaker = CircuitBreaker::default();
        assert_eq!([breaker.unanswered(), breaker.unanswered()], [BreakerState::Closed; 2]);
        assert!(!breaker.answered());
        assert_eq!([breaker.unanswered(), breaker.unanswered()], [BreakerState::Closed; 2]);
        assert_eq!(breaker.next_probe(), None);
        assert_eq!(
            [breaker.unanswered(), breaker.unanswered()],
            [BreakerState::Opened, BreakerState::Open]
        );
        assert_eq!([breaker.next_probe(), breaker.next_probe()], [Some(1), Some(2)]);
        assert!(breaker.answered());
        assert_eq!(breaker.next_probe(), None);
    }

    #[test]
    fn a_job_is_at_fault_if_it_has_no_answer_again_from_an_endpoint_that_answers() {
        let (breaker, [one, other]) = (CircuitBreaker::default(), ["1", "2"].map(job));
        assert_eq!([one, one].map(|it| breaker.is_at_fault(it)), [false; 2]);
        breaker.answered();
        assert_eq!([one, other, other].map(|it| breaker.is_at_fault(it)), [true, false, true]);
        // The end of an outage.
        (0..UNANSWERED_MAX).for_each(|_| _ = breaker.unanswered());
        assert!(breaker.answered() && !breaker.is_at_fault(one));
    }

    fn job(name: &str) -> JobId {
        JobId(Digest::of(&[name]))
    }
}
