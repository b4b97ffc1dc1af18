//! One job, from its lease to the end of its claim. Decides the consequence of each outcome.

use super::state::{BreakerState, CallSlot, LeaseGuard, WorkerState};
use crate::adapters::metrics::Outcome as JobOutcome;
use crate::adapters::otel::JobSpan;
use crate::domain::{
    Claimed, ErrorKind, Finding, Job, ModelError, Retry, RunState, Session, Timestamp, Wait,
};
use crate::llm::back_off;
use crate::pipeline::budget::{CapOwner, cost, key};
use crate::pipeline::dialogue::Deferral;
use crate::pipeline::extractor::{
    CUT_IN_TWO, FailedExtraction, Outcome, RunAttempt, SliceRequest, job_of, run_id,
};
use crate::pipeline::model_client::{Billing, CallContext, Spending};
use crate::privacy::Redacted;
use crate::slicing::{Cutting, SliceCut, halve, rebuild};
use crate::store::{
    CapReached, CapScope, JobEnding, JobRelease, KnownRun, RunFailure, Staging, StoreErrorKind,
    StoreResult,
};
use std::sync::atomic::Ordering;
use tracing::Instrument;

enum ClaimEnd {
    /// Without a staging if an earlier run did the work, or if there is no slice.
    Ended(Option<Box<Staging>>, JobEnding),
    Released(JobRelease),
    /// Another worker has the job.
    Lost,
}

impl ClaimEnd {
    fn uncharged(wait: Option<(Wait, Timestamp, String)>) -> ClaimEnd {
        ClaimEnd::Released(JobRelease { wait, charged: false })
    }

    /// Stable name of the reason why the job is not done.
    fn reason(&self) -> Option<String> {
        match self {
            ClaimEnd::Ended(_, JobEnding::Dead { kind, .. }) => Some(kind.clone()),
            ClaimEnd::Released(JobRelease { wait: Some((wait, ..)), .. }) => {
                Some(wait.name().to_owned())
            }
            ClaimEnd::Ended(..) | ClaimEnd::Released(_) | ClaimEnd::Lost => None,
        }
    }
}

impl WorkerState {
    /// Works on a job until its claim ends. Only store errors are `Err`.
    pub(super) async fn work(&self, claimed: Claimed, slot: CallSlot) -> StoreResult<()> {
        let span = JobSpan::begin(claimed.job.id, claimed.attempt);
        let ended = self.process(claimed, slot).instrument(span.span()).await;
        if let Some(batch) = &self.batch {
            batch.ended();
        }
        let (outcome, reason) = ended?;
        span.ended(outcome, reason.as_deref());
        Ok(())
    }

    /// Returns the outcome, and a stable name of the reason why the job is not done.
    async fn process(
        &self,
        claimed: Claimed,
        slot: CallSlot,
    ) -> StoreResult<(JobOutcome, Option<String>)> {
        let began = self.now();
        let lease = self.leases.take(claimed.lease, &self.closing);
        let end = match self.extract(&claimed, &lease).await {
            // It was forgotten with its jobs.
            Err(error) if matches!(error.kind, StoreErrorKind::UnknownSession(_)) => {
                Ok(ClaimEnd::Lost)
            }
            end => end,
        };
        // Storing the outcome must not keep the endpoint waiting.
        drop(slot);
        let end = end?;
        let reason = end.reason();
        let outcome = self.write(&claimed, end).await?;
        if outcome == JobOutcome::Lost {
            self.note_forgotten(&claimed).await?;
            self.bill_cancelled(&claimed, began).await?;
        }
        self.counts.ended(outcome);
        let is_over = !matches!(outcome, JobOutcome::Retried | JobOutcome::Released);
        self.extractor.client.tally.with(|totals| {
            totals.slices_done += u64::from(is_over);
            // Two halves are open instead.
            totals.slices_halved += if outcome == JobOutcome::Cut { 2 } else { 0 };
        });
        let duration_ms = self.now().0 - began.0;
        tracing::info!(outcome = outcome.name(), why = reason, duration_ms, "job ended");
        Ok((outcome, reason))
    }

    async fn extract(&self, claimed: &Claimed, lease: &LeaseGuard<'_>) -> StoreResult<ClaimEnd> {
        let (session, mut cutting) = match self.load(claimed).await? {
            Ok(loaded) => loaded,
            Err(detail) => {
                let failure = RunFailure { kind: "unreadable".to_owned(), detail };
                return Ok(self.dead(failure, None));
            }
        };
        let run = run_id(self.extractor.asking, cutting.slice.id);
        let known = self.store().retry(|store| store.known_run(run)).await?;
        if let Some(end) = self.known(claimed, known.as_ref(), &cutting) {
            return Ok(end);
        }
        // An entry may be as long as thousands of slices. Only a slice that is too long needs its text again.
        cutting.entries.iter_mut().for_each(|entry| entry.text = Redacted::default());
        let (started_at, mut spent) = (self.now(), Spending::default());
        // Generations of this job follow those of replays.
        let before = known.map_or(0, |known| known.generation);
        let generation = before.saturating_add(claimed.generation);
        let slice = SliceRequest {
            session: &session,
            run,
            slice: &cutting.slice,
            before: claimed.job.context.as_ref(),
            generation,
        };
        let context = CallContext {
            cap_owner: CapOwner { namespace: &session.namespace, session: Some(session.id) },
            billing: Billing::Run(run),
            stop: &lease.stop,
            retry: self.retry,
            is_resumable: self.batch.is_none() && claimed.attempt < self.queue.attempts_max,
        };
        let outcome = self.extractor.extract(slice, context, &mut spent).await?;
        let attempt = RunAttempt { cutting, run, generation, spent, started_at };
        // An endpoint that stayed busy until the last try did not answer either.
        let given_up =
            self.batch.is_some() && matches!(outcome, Outcome::Deferred(Deferral::Unanswered(_)));
        if spent.answered && !given_up && self.breaker.answered() {
            (self.tell)("the endpoint answers again");
        }
        match outcome {
            Outcome::Deferred(Deferral::Stopped) if lease.is_lost() => Ok(ClaimEnd::Lost),
            Outcome::Deferred(why) => self.defer(claimed, attempt, why).await,
            Outcome::Extracted(proven) => {
                self.count_findings(&proven.findings);
                self.extractor.client.tally.with(|totals| {
                    totals.slices_extracted += 1;
                    totals.slices_empty += u64::from(proven.records.is_empty());
                });
                let staging = self.extractor.extracted(attempt, proven);
                Ok(ClaimEnd::Ended(Some(Box::new(staging)), JobEnding::Done))
            }
            Outcome::Failed(failed) => Ok(self.fail(attempt, failed)),
            Outcome::TooLong(failed) => self.cut(claimed, attempt, failed).await,
        }
    }

    /// Tells the user if a job was lost because its conversation was forgotten.
    async fn note_forgotten(&self, claimed: &Claimed) -> StoreResult<()> {
        let growth = self.store().retry(|store| store.growth(claimed.session)).await?;
        if growth.is_some_and(|it| it.forgotten)
            && !self.has_forgotten.swap(true, Ordering::Relaxed)
        {
            (self.tell)(
                "a conversation was forgotten meanwhile: answers about it are billed, but not kept",
            );
        }
        Ok(())
    }

    /// Bills the answers of an attempt that began at `began`, if its job was cancelled.
    async fn bill_cancelled(&self, claimed: &Claimed, began: Timestamp) -> StoreResult<()> {
        let run = run_id(self.extractor.asking, claimed.job.slice);
        let (job, price) = (claimed.lease.subject, self.extractor.client.price);
        let cost = move |usage| cost(usage, price);
        self.store().retry(|store| store.bill_cancelled(job, run, began, cost)).await
    }

    /// Loads the job's slice as it was cut. Returns a message if it cannot be rebuilt.
    async fn load(&self, claimed: &Claimed) -> StoreResult<Result<(Session, Cutting), String>> {
        let (session, entries) =
            self.store().retry(|store| store.work_of(claimed.session, &claimed.job)).await?;
        let Ok(cut) = serde_json::from_str::<SliceCut>(&claimed.job.cut) else {
            return Ok(Err("the stored slice boundaries are unreadable".to_owned()));
        };
        let cutting = rebuild(session.id, &cut, &entries).map_err(|error| error.to_string());
        Ok(cutting.map(|cutting| (session, cutting)))
    }

    /// Ends the job without a request if an earlier run did its work.
    fn known(
        &self,
        claimed: &Claimed,
        known: Option<&KnownRun>,
        cutting: &Cutting,
    ) -> Option<ClaimEnd> {
        let known = known.filter(|known| known.state == RunState::Done)?;
        if known.failure.as_deref() != Some(CUT_IN_TWO) {
            return Some(ClaimEnd::Ended(None, JobEnding::Done));
        }
        let halves = self.halves(claimed, cutting);
        (!halves.is_empty()).then_some(ClaimEnd::Ended(None, JobEnding::Cut(halves)))
    }

    /// Jobs for the halves of a slice, both with its preamble, since their entries belong together.
    fn halves(&self, claimed: &Claimed, cutting: &Cutting) -> Vec<Job> {
        let (preamble, asking) = (claimed.job.context.as_ref(), self.extractor.asking);
        halve(cutting).iter().map(|half| job_of(half, preamble.cloned(), asking)).collect()
    }

    /// Cuts a slice that was too long in two, unless it already has the minimum size. The halves replace the part of an
    /// answer that arrived.
    async fn cut(
        &self,
        claimed: &Claimed,
        attempt: RunAttempt,
        failed: FailedExtraction,
    ) -> StoreResult<ClaimEnd> {
        let loaded = self.load(claimed).await?;
        let halves = loaded.map(|(_, cutting)| self.halves(claimed, &cutting)).unwrap_or_default();
        if halves.is_empty() {
            return Ok(self.fail(attempt, failed));
        }
        let staging = self.extractor.cut_in_two(&attempt, failed.failure.detail);
        Ok(ClaimEnd::Ended(Some(Box::new(staging)), JobEnding::Cut(halves)))
    }

    fn fail(&self, attempt: RunAttempt, failed: impl Into<FailedExtraction>) -> ClaimEnd {
        let failed = failed.into();
        let failure = failed.failure.clone();
        self.count_findings(&failed.findings);
        // An entry in several parts counts once.
        let entries = attempt.cutting.slice.parts.iter().filter(|part| part.part == 0).count();
        self.extractor.client.tally.with(|totals| {
            let count = totals.failures.entry(failure.kind.clone()).or_default();
            count.slices += 1;
            count.entries += entries as u64;
            count.example.clone_from(&failure.detail);
        });
        let staging = self.extractor.failed(attempt, failed);
        self.dead(failure, Some(staging))
    }

    fn count_findings(&self, findings: &[Finding]) {
        findings.iter().for_each(|finding| self.extractor.client.tally.finding(finding));
    }

    fn dead(&self, failure: RunFailure, staging: Option<Staging>) -> ClaimEnd {
        let RunFailure { kind, detail } = failure;
        let ending = JobEnding::Dead { kind, detail, asking: self.extractor.asking };
        ClaimEnd::Ended(staging.map(Box::new), ending)
    }

    async fn defer(
        &self,
        claimed: &Claimed,
        attempt: RunAttempt,
        why: Deferral,
    ) -> StoreResult<ClaimEnd> {
        Ok(match why {
            Deferral::Stopped => ClaimEnd::uncharged(None),
            Deferral::Needs(error) => {
                self.stop(error.to_string());
                ClaimEnd::uncharged(None)
            }
            Deferral::Cap(reached) => ClaimEnd::Released(self.hold_back(&reached).await?),
            Deferral::Unanswered(error) if self.batch.is_some() => self.give_up(attempt, error),
            Deferral::Unanswered(error) => self.come_back(claimed, attempt, error),
        })
    }

    /// Fails a slice after all tries and waits of a replay. Several in a row mean an outage: then stops, because
    /// thousands of other slices would each try, wait and fail.
    fn give_up(&self, attempt: RunAttempt, error: ModelError) -> ClaimEnd {
        if self.breaker.unanswered() == BreakerState::Closed {
            return self.fail(attempt, error);
        }
        // This slice waits too, so that a number here would not be that of the failed ones.
        self.stop(format!(
            "several slices in a row had no answer: {error}; the rest waits, run the same command \
             again once the endpoint is reachable"
        ));
        ClaimEnd::uncharged(None)
    }

    fn come_back(&self, claimed: &Claimed, attempt: RunAttempt, error: ModelError) -> ClaimEnd {
        let Retry::After { wait, charged } = error.retry() else {
            return self.fail(attempt, error);
        };
        let wait = wait.unwrap_or_default();
        if !charged {
            let until = self.now().after(wait);
            if !self.is_limited.swap(true, Ordering::Relaxed) {
                (self.tell)(&format!("rate-limited until {until}: {error}"));
            }
            return ClaimEnd::uncharged(Some((Wait::RateLimited, until, error.to_string())));
        }
        let breaker = self.breaker.unanswered();
        if breaker == BreakerState::Opened {
            if error.kind == ErrorKind::NotAReply {
                self.no_model.get_or_init(|| error.to_string());
            }
            (self.tell)(&format!(
                "{error}; the endpoint is considered unreachable: jobs wait without using up \
                 attempts, and it is retried periodically"
            ));
        }
        let is_at_fault = self.breaker.is_at_fault(claimed.job.id);
        let charged = breaker == BreakerState::Closed && is_at_fault;
        if charged && claimed.attempt >= self.queue.attempts_max {
            return self.fail(attempt, error);
        }
        // Jitter, so that jobs that fail together do not return together.
        let pause = back_off(claimed.attempt, claimed.job.id.0.short()).max(wait);
        let wait = Some((Wait::BackOff, self.now().after(pause), error.to_string()));
        ClaimEnd::Released(JobRelease { wait, charged })
    }

    /// Holds back all jobs under the cap, so that they do not reach it one by one.
    async fn hold_back(&self, reached: &CapReached) -> StoreResult<JobRelease> {
        let now = self.now();
        let wait = Some((Wait::Cap, now.next_midnight(), reached.to_string()));
        let release = JobRelease { wait, charged: false };
        let namespace = match &reached.cap.scope {
            CapScope::Session(_) => return Ok(release),
            CapScope::NamespaceDay(namespace, _) => Some(namespace.clone()),
            CapScope::Day(_) => None,
        };
        if self.batch.is_some() && namespace.is_none() {
            // Claimed jobs may still fit: each slice has its own worst case.
            self.capped.get_or_init(|| format!("{reached}; the rest waits, nothing is lost"));
        }
        let held = self.store().retry(|store| {
            let (namespace, release) = (namespace.clone(), release.clone());
            store.hold_ready(namespace, self.batch_id(), release, now)
        });
        let jobs = held.await?;
        tracing::info!(cap = key(&reached.cap), jobs, "jobs wait at a cap");
        Ok(release)
    }

    async fn write(&self, claimed: &Claimed, end: ClaimEnd) -> StoreResult<JobOutcome> {
        let (lease, now) = (claimed.lease, self.now());
        let written = match end {
            ClaimEnd::Lost => return Ok(JobOutcome::Lost),
            ClaimEnd::Released(release) => {
                let outcome =
                    if release.charged { JobOutcome::Retried } else { JobOutcome::Released };
                self.store()
                    .retry(|store| store.release(lease, release.clone(), now))
                    .await
                    .map(|()| outcome)
            }
            ClaimEnd::Ended(staging, ending) => {
                let finished = self.store().retry(|store| {
                    let (staging, ending) = (staging.as_deref().cloned(), ending.clone());
                    store.finish(lease, staging, ending, now)
                });
                finished.await.map(|staged| {
                    let records = staging.as_deref().map_or(&[][..], |it| it.records.as_slice());
                    self.counts.staged(staged, records);
                    match &ending {
                        JobEnding::Done if staging.is_none() => JobOutcome::Known,
                        JobEnding::Done => JobOutcome::Done,
                        JobEnding::Cut(_) => JobOutcome::Cut,
                        JobEnding::Dead { kind, detail, .. } => {
                            self.counts.failed(kind, detail);
                            JobOutcome::Dead
                        }
                    }
                })
            }
        };
        match written {
            Err(error) if matches!(error.kind, StoreErrorKind::LeaseLost(_)) => {
                Ok(JobOutcome::Lost)
            }
            written => written,
        }
    }
}
