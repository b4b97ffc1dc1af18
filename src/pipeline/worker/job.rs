//! One job, from its lease to the end of its claim. What an outcome leads to is decided here.

use super::circuit_breaker::{BreakerState, UNANSWERED_MAX};
use super::leases::LeaseGuard;
use super::state::{CallSlot, WorkerState};
use crate::adapters::metrics::Outcome as Closed;
use crate::adapters::otel::JobSpan;
use crate::domain::{Claimed, Entry, ErrorKind, Finding, Job, ModelError, RunState, Session, Wait};
use crate::llm::back_off;
use crate::pipeline::budget::ReachedCap;
use crate::pipeline::cut::job_of;
use crate::pipeline::dialogue::Deferral;
use crate::pipeline::extractor::{About, Outcome, failure};
use crate::pipeline::model_client::Spending;
use crate::pipeline::stage::{CUT_IN_TWO, RunAttempt};
use crate::privacy::Redacted;
use crate::slicing::{Cutting, SliceCut, halve, rebuild};
use crate::store::{
    CapScope, JobEnding, JobRelease, KnownRun, RunFailure, Staging, Store, StoreError,
    StoreErrorKind,
};
use std::time::Duration;
use tracing::Instrument;

/// How the claim of a job ends.
enum ClaimEnd {
    /// The job ends with it.
    End(Option<Box<Staging>>, JobEnding, Closed),
    /// The job goes back.
    Back(JobRelease),
    /// Another worker has it.
    Lost,
}

impl ClaimEnd {
    /// A stable name for why the job is not done, if so.
    fn why(&self) -> Option<String> {
        match self {
            ClaimEnd::End(_, JobEnding::Dead { kind, .. }, _) => Some(kind.clone()),
            ClaimEnd::Back(JobRelease { wait: Some((wait, ..)), .. }) => {
                Some(wait.name().to_owned())
            }
            ClaimEnd::End(..) | ClaimEnd::Back(_) | ClaimEnd::Lost => None,
        }
    }
}

/// A job that failed for good.
struct Death {
    failure: RunFailure,
    staging: Option<Box<Staging>>,
}

impl WorkerState {
    /// Works on a job until its claim ends. Only the store's errors are errors.
    pub(super) async fn work(&self, claimed: Claimed, asking: CallSlot) -> Result<(), StoreError> {
        let span = JobSpan::begin(claimed.job.id, claimed.attempt);
        let ended = self.to_the_end(claimed, asking).instrument(span.span()).await;
        if let Some(batch) = &self.batch {
            batch.ended();
        }
        let (closed, why) = ended?;
        span.ended(closed, why.as_deref());
        Ok(())
    }

    /// How the claim ended, and a stable name for why the job is not done.
    async fn to_the_end(
        &self,
        claimed: Claimed,
        asking: CallSlot,
    ) -> Result<(Closed, Option<String>), StoreError> {
        let began = self.now();
        let lease = self.leases.take(claimed.lease, &self.closing);
        let close = self.close(&claimed, &lease).await;
        // Storing what came of it must not keep the endpoint waiting.
        drop(asking);
        let close = close?;
        let why = close.why();
        let closed = self.write(&claimed, close).await?;
        self.counts.ended(closed);
        self.extractor.client.tally.with(|totals| totals.slices_done += 1);
        let duration_ms = self.now().0 - began.0;
        tracing::info!(outcome = closed.name(), why, duration_ms, "job ended");
        Ok((closed, why))
    }

    async fn close(
        &self,
        claimed: &Claimed,
        lease: &LeaseGuard<'_>,
    ) -> Result<ClaimEnd, StoreError> {
        let load = |store: Store| async move { store.work_of(claimed.session, &claimed.job).await };
        let (session, entries) = self.store().retry(load).await?;
        let cutting = match cutting_of(claimed, &session, &entries) {
            Ok(cutting) => cutting,
            Err(detail) => {
                let failure = RunFailure { kind: "unreadable".to_owned(), detail };
                return Ok(self.dead(Death { failure, staging: None }));
            }
        };
        let run = self.extractor.run_id(cutting.slice.id);
        let known = |store: Store| async move { store.known_run(run).await };
        let known = self.store().retry(known).await?;
        let told = claimed.job.context.as_ref();
        if let Some(close) = self.known(known.as_ref(), (&cutting, told)) {
            return Ok(close);
        }
        let started_at = self.now();
        // What was asked afresh here is asked afresh beyond what a replay did.
        let before = known.map_or(0, |known| known.generation);
        let generation = before.saturating_add(claimed.generation);
        let returns = self.batch.is_none() && claimed.attempt < self.queue.attempts_max;
        let mut spent = Spending::default();
        let about = About { session: &session, run, slice: &cutting.slice, before: told };
        let context = about.asks(&lease.stop, returns);
        let outcome = self.extractor.extract(about, context, generation, &mut spent).await?;
        let of = RunAttempt { run, generation, spent, started_at };
        // Who gave up on a busy endpoint had no answer either.
        let given_up =
            self.batch.is_some() && matches!(outcome, Outcome::Deferred(Deferral::Unanswered(_)));
        if spent.answered && !given_up && self.breaker.answered() {
            (self.tell)("the endpoint answers again");
        }
        match outcome {
            Outcome::Deferred(Deferral::Stopped) if lease.is_lost() => Ok(ClaimEnd::Lost),
            Outcome::Deferred(why) => self.wait(claimed, (cutting, of), why).await,
            Outcome::Extracted { records, findings, rung } => {
                self.note_findings(&findings);
                let staging = self.extractor.extracted(cutting, of, (records, findings, rung));
                Ok(ClaimEnd::End(Some(Box::new(staging)), JobEnding::Done, Closed::Done))
            }
            Outcome::Failed(failure, findings) => Ok(self.fail(cutting, of, (failure, findings))),
            Outcome::TooLong(error) => Ok(self.cut((cutting, told), of, error)),
        }
    }

    /// What a run from before leads to: nothing is asked where it did its work.
    fn known(
        &self,
        known: Option<&KnownRun>,
        cutting: (&Cutting, Option<&Redacted>),
    ) -> Option<ClaimEnd> {
        let known = known.filter(|known| known.state == RunState::Done)?;
        if known.failure.as_deref() != Some(CUT_IN_TWO) {
            return Some(ClaimEnd::End(None, JobEnding::Done, Closed::Known));
        }
        let halves = self.halves(cutting);
        (!halves.is_empty()).then_some(ClaimEnd::End(None, JobEnding::Cut(halves), Closed::Cut))
    }

    /// Both are told what the whole was told: what stands between them is of one piece.
    fn halves(&self, (cutting, told): (&Cutting, Option<&Redacted>)) -> Vec<Job> {
        let asking = self.extractor.asking_digest;
        halve(cutting).iter().map(|half| job_of(half, told.cloned(), asking)).collect()
    }

    /// A slice that was too long is cut in two, unless it is the smallest already.
    fn cut(
        &self,
        (cutting, told): (Cutting, Option<&Redacted>),
        of: RunAttempt,
        error: ModelError,
    ) -> ClaimEnd {
        let halves = self.halves((&cutting, told));
        if halves.is_empty() {
            return self.fail(cutting, of, (failure(error), Vec::new()));
        }
        let staging = self.extractor.cut_in_two(&cutting.slice, of, error);
        ClaimEnd::End(Some(Box::new(staging)), JobEnding::Cut(halves), Closed::Cut)
    }

    fn fail(
        &self,
        cutting: Cutting,
        of: RunAttempt,
        (failure, findings): (RunFailure, Vec<Finding>),
    ) -> ClaimEnd {
        self.note_findings(&findings);
        // An entry in several parts fails once.
        let entries = cutting.slice.parts.iter().filter(|part| part.part == 0).count();
        self.extractor.client.tally.with(|totals| {
            let count = totals.failures.entry(failure.kind.clone()).or_default();
            count.slices += 1;
            count.entries += entries as u64;
            count.example.clone_from(&failure.detail);
        });
        let staging = self.extractor.failed(cutting, of, (failure.clone(), findings));
        self.dead(Death { failure, staging: Some(Box::new(staging)) })
    }

    fn note_findings(&self, findings: &[Finding]) {
        findings.iter().for_each(|finding| self.extractor.client.tally.finding(finding));
    }

    fn dead(&self, death: Death) -> ClaimEnd {
        let Death { failure: RunFailure { kind, detail }, staging } = death;
        let ending = JobEnding::Dead { kind, detail, asking: self.extractor.asking_digest };
        ClaimEnd::End(staging, ending, Closed::Dead)
    }

    /// Without an answer: until when, and whether the attempt counts.
    async fn wait(
        &self,
        claimed: &Claimed,
        (cutting, of): (Cutting, RunAttempt),
        why: Deferral,
    ) -> Result<ClaimEnd, StoreError> {
        let uncharged = |wait| ClaimEnd::Back(JobRelease { wait, charged: false });
        Ok(match why {
            Deferral::Stopped => uncharged(None),
            Deferral::Needs(error) => {
                self.stop(error.to_string());
                uncharged(None)
            }
            Deferral::Cap(reached) => ClaimEnd::Back(self.hold_back(&reached).await?),
            Deferral::Unanswered(error) if self.batch.is_some() => {
                self.given_up(cutting, of, error)
            }
            Deferral::Unanswered(error) => match error.kind {
                ErrorKind::RateLimited { wait } => {
                    let until = self.now().after(wait.unwrap_or_default());
                    uncharged(Some((Wait::RateLimited, until, error.to_string())))
                }
                ErrorKind::Unavailable { wait } => {
                    self.unanswered(claimed, (cutting, of), (error, wait))
                }
                ErrorKind::QuotaExhausted
                | ErrorKind::TooLong
                | ErrorKind::Unsupported
                | ErrorKind::Unauthorised
                | ErrorKind::NotFound
                | ErrorKind::BadRequest
                | ErrorKind::Stale
                | ErrorKind::Cancelled => self.fail(cutting, of, (failure(error), Vec::new())),
            },
        })
    }

    /// After all tries and waits: the slice failed, or, where it is not the only one, the endpoint is
    /// away and thousands of slices more would each try, wait and fail.
    fn given_up(&self, cutting: Cutting, of: RunAttempt, error: ModelError) -> ClaimEnd {
        if self.breaker.unanswered() == BreakerState::Closed {
            return self.fail(cutting, of, (failure(error), Vec::new()));
        }
        self.stop(format!(
            "{error}; {UNANSWERED_MAX} slices in a row had no answer: what is left waits, the same \
             command goes on when the endpoint is back"
        ));
        ClaimEnd::Back(JobRelease { wait: None, charged: false })
    }

    fn unanswered(
        &self,
        claimed: &Claimed,
        (cutting, of): (Cutting, RunAttempt),
        (error, wait): (ModelError, Option<Duration>),
    ) -> ClaimEnd {
        let breaker = self.breaker.unanswered();
        if breaker == BreakerState::Opened {
            (self.tell)(&format!(
                "{error}; the endpoint is held to be away: jobs wait and are charged nothing, it is \
                 tried again now and then"
            ));
        }
        let charged = breaker == BreakerState::Closed;
        if charged && claimed.attempt >= self.queue.attempts_max {
            return self.fail(cutting, of, (failure(error), Vec::new()));
        }
        let pause = back_off(claimed.attempt, seed_of(claimed)).max(wait.unwrap_or_default());
        let until = self.now().after(pause);
        ClaimEnd::Back(JobRelease {
            wait: Some((Wait::BackOff, until, error.to_string())),
            charged,
        })
    }

    /// At a cap of many sessions, others need not find out one by one.
    async fn hold_back(&self, reached: &ReachedCap) -> Result<JobRelease, StoreError> {
        let now = self.now();
        let wait = Some((Wait::Cap, now.next_midnight(), reached.to_string()));
        let release = JobRelease { wait, charged: false };
        let namespace = match &reached.scope {
            CapScope::Session(_) => return Ok(release),
            CapScope::NamespaceDay(namespace, _) => Some(namespace.clone()),
            CapScope::Day(_) => None,
        };
        if self.batch.is_some() && namespace.is_none() {
            // What is in hand may still fit: the worst case of each slice is its own.
            self.capped.get_or_init(|| format!("{reached}; what is left waits, nothing is lost"));
        }
        let hold = |store: Store| {
            let (namespace, release) = (namespace.clone(), release.clone());
            let batch = self.batch_id();
            async move { store.hold_ready(namespace, batch, release, now).await }
        };
        let jobs = self.store().retry(hold).await?;
        tracing::info!(cap = reached.key, jobs, "jobs wait at a cap");
        Ok(release)
    }

    /// Writes how the claim ended; says how it is counted.
    async fn write(&self, claimed: &Claimed, close: ClaimEnd) -> Result<Closed, StoreError> {
        let (lease, now) = (claimed.lease, self.now());
        let written = match close {
            ClaimEnd::Lost => return Ok(Closed::Lost),
            ClaimEnd::Back(release) => {
                let closed = if release.charged { Closed::Retried } else { Closed::Released };
                let give = |store: Store| {
                    let release = release.clone();
                    async move { store.release(lease, release, now).await }
                };
                self.store().retry(give).await.map(|()| closed)
            }
            ClaimEnd::End(staging, ending, closed) => {
                let end = |store: Store| {
                    let (staging, ending) = (staging.as_deref().cloned(), ending.clone());
                    async move { store.finish(lease, staging, ending, now).await }
                };
                self.store().retry(end).await.map(|staged| {
                    let records = staging.as_deref().map_or(&[][..], |it| it.records.as_slice());
                    self.counts.staged(staged, records);
                    if let JobEnding::Dead { kind, detail, .. } = &ending {
                        self.counts.failed(kind, detail);
                    }
                    closed
                })
            }
        };
        match written {
            Err(error) if matches!(error.kind, StoreErrorKind::LeaseLost(_)) => Ok(Closed::Lost),
            written => written,
        }
    }
}

/// The job's slice as it was cut.
fn cutting_of(claimed: &Claimed, session: &Session, entries: &[Entry]) -> Result<Cutting, String> {
    let cut: SliceCut =
        serde_json::from_str(&claimed.job.cut).map_err(|_| "how it was cut cannot be read")?;
    rebuild(session.id, &cut, entries).map_err(|error| error.to_string())
}

/// Jobs that fail together do not come back together.
fn seed_of(claimed: &Claimed) -> u64 {
    let mut seed = [0; 8];
    seed.copy_from_slice(&claimed.job.id.0.as_bytes()[..8]);
    u64::from_le_bytes(seed)
}
