//! Client of the model: takes an answer from the journal if it was already paid for, else calls within the limits on
//! concurrency, rates, caps and tries. An answer is journaled before it is used.

use super::budget::{Budget, CapOwner, Overrun, RateLimit, Reservation, cost};
use super::retrying_store::RetryingStore;
use super::tally::Tally;
use crate::config::{Limits, Price};
use crate::domain::{
    Digest, ErrorKind, LanguageModel, ModelError, OutputMode, Purpose, Reply, Request,
    RequestDigest, Retry, RunId, Timestamp, Usage, estimate_tokens,
};
use crate::llm::{CallPermit, Cassette, ConcurrencyLimit, Endpoint, back_off};
use crate::store::{
    Bill, CallEnd, CapReached, Charge, JournalEntry, Journaled, Journaling, StoreError, StoreResult,
};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Shortest wait that is accepted from an endpoint. One that keeps naming a date in the past would otherwise be called
/// in a busy loop.
const WAIT_MIN: Duration = Duration::from_millis(50);
/// Poll interval for cap space that another process may free.
const CAP_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum number of polls: a reservation held for ten minutes belongs to a process that died.
const CAP_POLLS_MAX: u32 = 3_000;

/// Maximum tokens that an endpoint may count beyond the visible text, for its own prompt or for reasoning.
const UNSEEN_TOKENS_MAX: u64 = 131_072;

/// Source of answers.
pub enum Model {
    /// A server.
    Endpoint(Box<Endpoint>),
    /// Recorded answers.
    Cassette(Box<Cassette>),
    /// A server that does not respond, with the reason: answers it gave before are in the journal.
    Unavailable(String),
}

pub(crate) struct ModelClient {
    pub(crate) model: Model,
    pub(crate) store: RetryingStore,
    pub(crate) concurrency: ConcurrencyLimit,
    pub(crate) rate_limit: RateLimit,
    pub(crate) budget: Budget,
    pub(crate) price: Price,
    pub(crate) tally: Arc<Tally>,
    /// The endpoint's URL, under which its capabilities are stored.
    pub(crate) base_url: String,
    pub(crate) output_mode: OutputModeFallback,
    pub(crate) cancel: CancellationToken,
    /// Grace period for a call in flight after `cancel`.
    pub(crate) grace: Duration,
    pub(crate) clock: fn() -> Timestamp,
    /// Use of answered calls beyond their estimates, by model.
    pub(crate) overruns: Mutex<HashMap<String, Overrun>>,
    /// Held by a call under a cap until its model has an overrun: until then, one call is in flight.
    pub(crate) first_call: tokio::sync::Mutex<()>,
    /// Notified when a call is settled against its caps.
    pub(crate) settled: Notify,
    /// Requests in flight; an identical request waits for the first one's answer.
    pub(crate) in_flight: Mutex<HashMap<RequestDigest, Weak<tokio::sync::Mutex<()>>>>,
}

/// Policy for an endpoint that is busy or unreachable.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallRetry {
    /// Retries within the same request.
    InPlace {
        /// Maximum number of tries; rate-limited ones do not count.
        tries_max: u32,
        wait_max: Duration,
    },
    /// Returns the error; the caller retries later.
    Defer,
}

impl CallRetry {
    pub(crate) fn within(limits: &Limits) -> CallRetry {
        CallRetry::InPlace { tries_max: limits.tries_max, wait_max: limits.wait_max }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Billing<'a> {
    /// A run, which is staged with the cost of its answers.
    Run(RunId),
    /// A separate bill, written together with the answer.
    Own {
        task: RunId,
        purpose: Purpose,
        /// The records and memories in the prompt: the answer is erased with any of them.
        about: &'a [Digest],
    },
}

/// Context of a request, constant for a whole dialogue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallContext<'a> {
    pub(crate) cap_owner: CapOwner<'a>,
    pub(crate) billing: Billing<'a>,
    /// Cancelled with the client's token or alone. Then no call starts, but one in flight completes.
    pub(crate) stop: &'a CancellationToken,
    pub(crate) retry: CallRetry,
    /// True if the caller asks again later when there is no answer now.
    pub(crate) is_resumable: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spending {
    pub(crate) asks: u32,
    pub(crate) calls: u32,
    pub(crate) journaled: u32,
    pub(crate) usage: Usage,
    pub(crate) cost_micros: u64,
    /// True if the endpoint refused an output mode.
    pub(crate) refused: bool,
    /// True if the endpoint responded, even with a refusal.
    pub(crate) answered: bool,
}

impl Spending {
    fn add(&mut self, usage: Usage, cost_micros: u64) {
        self.calls += 1;
        self.usage += usage;
        self.cost_micros += cost_micros;
    }
}

#[derive(Debug)]
pub(crate) enum AskError {
    Model(ModelError),
    Cap(CapReached),
    Store(StoreError),
}

impl From<StoreError> for AskError {
    fn from(error: StoreError) -> AskError {
        AskError::Store(error)
    }
}

/// A call with its result.
type FinishedCall<'a> = (CallPermit<'a>, Reservation, Result<Reply, ModelError>);

impl ModelClient {
    /// Returns the answer to `request`, and adds its cost to `spent`. The journal has it under `digest`.
    pub(crate) async fn ask(
        &self,
        request: &Request,
        digest: RequestDigest,
        context: CallContext<'_>,
        spent: &mut Spending,
    ) -> Result<Reply, AskError> {
        spent.asks += 1;
        let endpoint = match &self.model {
            // A cassette needs no journal.
            Model::Cassette(cassette) => {
                let reply = cassette.call(request).await.map_err(AskError::Model)?;
                // Counted, but not billed: it was paid for when it was recorded.
                self.tally.call(counted(&reply, request), 0);
                return Ok(reply);
            }
            Model::Endpoint(endpoint) => Ok(endpoint),
            Model::Unavailable(why) => Err(ModelError::new(ErrorKind::NotFound, why.as_str())),
        };
        let in_flight = self.in_flight(digest);
        let _turn = tokio::select! {
            biased;
            () = context.stop.cancelled() => return Err(AskError::Model(cancelled())),
            turn = in_flight.lock() => turn,
        };
        if let Some(kept) = self.store.retry(|store| store.journaled(digest)).await? {
            self.tally.with(|totals| totals.journaled += 1);
            spent.journaled += 1;
            self.bill_journaled(&kept, request, context, spent);
            return Ok(kept.reply);
        }
        let _first = tokio::select! {
            biased;
            () = context.stop.cancelled() => return Err(AskError::Model(cancelled())),
            turn = self.first_call(&request.model) => turn,
        };
        let called = match endpoint {
            Ok(endpoint) => self.call(endpoint, request, digest, context).await,
            Err(error) => {
                // Only the journal was looked at.
                spent.asks -= 1;
                Err(AskError::Model(error))
            }
        };
        spent.answered |= called.as_ref().map_or_else(is_response, |_| true);
        let (reply, reservation) = called?;
        let usage = counted(&reply, request);
        let cost_micros = cost(usage, self.price);
        self.tally.call(usage, cost_micros);
        // Journal a paid answer before anything else can fail.
        let journaling = self.journal(request, digest, context, &reply).await?;
        let tokens = usage.prompt_tokens + usage.completion_tokens;
        // Before the room of this call becomes free for others.
        self.overruns
            .lock()
            .entry(request.model.clone())
            .or_default()
            .include(worst_case(request), usage);
        self.settle(reservation, CallEnd::Paid(Charge { tokens, micros: cost_micros })).await?;
        let sent = estimate(request);
        let used = sent + usage.completion_tokens;
        self.rate_limit.settle(&self.store, sent, Some(used)).await?;
        match journaling {
            Journaling::Kept => {
                spent.add(usage, cost_micros);
                Ok(reply)
            }
            // Another process's answer came first; this one was billed separately.
            Journaling::Earlier(kept) => {
                self.bill_journaled(&kept, request, context, spent);
                Ok(kept.reply)
            }
            Journaling::Forgotten => Err(AskError::Model(cancelled())),
        }
    }

    /// Adds the cost of a journaled answer that the same run paid for in an earlier attempt.
    fn bill_journaled(
        &self,
        kept: &Journaled,
        request: &Request,
        context: CallContext<'_>,
        spent: &mut Spending,
    ) {
        if matches!(context.billing, Billing::Run(run) if run == kept.run && !kept.is_billed) {
            let usage = counted(&kept.reply, request);
            spent.add(usage, cost(usage, self.price));
        }
    }

    /// Waits until no other call is the first of `model` under a cap; returns the turn if this one is.
    async fn first_call(&self, model: &str) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        let is_known = || !self.budget.is_set() || self.overruns.lock().contains_key(model);
        if is_known() {
            return None;
        }
        let turn = self.first_call.lock().await;
        (!is_known()).then_some(turn)
    }

    fn in_flight(&self, digest: RequestDigest) -> Arc<tokio::sync::Mutex<()>> {
        let mut in_flight = self.in_flight.lock();
        in_flight.retain(|_, lock| lock.strong_count() > 0);
        let known = in_flight.get(&digest).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let lock = Arc::default();
            in_flight.insert(digest, Arc::downgrade(&lock));
            lock
        })
    }

    async fn journal(
        &self,
        request: &Request,
        digest: RequestDigest,
        context: CallContext<'_>,
        reply: &Reply,
    ) -> StoreResult<Journaling> {
        let usage = counted(reply, request);
        let bill = |purpose, about| Bill {
            namespace: context.cap_owner.namespace.to_owned(),
            purpose,
            usage,
            cost_micros: cost(usage, self.price),
            about,
        };
        let (run, bill, spare_bill) = match context.billing {
            Billing::Run(run) => (run, None, Some(bill(Purpose::Extract, Vec::new()))),
            Billing::Own { task, purpose, about } => {
                (task, Some(bill(purpose, about.to_vec())), None)
            }
        };
        let entry = JournalEntry {
            digest,
            run,
            session: context.cap_owner.session,
            model: request.model.clone(),
            rung: request.rung,
            at: (self.clock)(),
            reply: reply.clone(),
            bill,
            spare_bill,
        };
        self.store.retry(|store| store.journal(entry.clone())).await
    }

    async fn settle(&self, reservation: Reservation, end: CallEnd) -> StoreResult<()> {
        self.budget.settle(&self.store, reservation, end).await?;
        self.settled.notify_waiters();
        Ok(())
    }

    async fn call(
        &self,
        endpoint: &Endpoint,
        request: &Request,
        digest: RequestDigest,
        context: CallContext<'_>,
    ) -> Result<(Reply, Reservation), AskError> {
        let (mut failures, mut tries, mut waited) = (0_u32, 0, Duration::ZERO);
        let seed = digest.0.short();
        let error = loop {
            let call = self.once(endpoint, request, context).await?;
            let Some((permit, reservation, result)) = call else { break cancelled() };
            let error = match result {
                Ok(reply) => {
                    permit.ok();
                    return Ok((reply, reservation));
                }
                Err(error) => error,
            };
            let end = if error.is_unanswered { CallEnd::Unanswered } else { CallEnd::Failed };
            self.settle(reservation, end).await?;
            let Retry::After { wait, charged } = error.retry() else {
                // The endpoint responded; the request is wrong.
                permit.ok();
                break error;
            };
            if let Some(meters) = &self.tally.meters {
                meters.retried(&error.kind);
            }
            let asked_for = wait.filter(|wait| WAIT_MIN <= *wait);
            let CallRetry::InPlace { tries_max, wait_max } = context.retry else {
                let pause =
                    asked_for.unwrap_or_else(|| back_off(self.concurrency.slowed() + 1, seed));
                permit.slow_down((!charged).then_some(pause));
                break with_wait(error, pause);
            };
            // Bounded by the total wait: every pause is longer than zero.
            failures += 1;
            tries += u32::from(charged);
            let pause = asked_for.unwrap_or_else(|| back_off(failures, seed));
            if tries >= tries_max || waited + pause > wait_max {
                permit.slow_down(None);
                let why = match tries >= tries_max {
                    true => "limits.tries_max".to_owned(),
                    false => format!("limits.wait_secs_max; it asks to wait {} s", pause.as_secs()),
                };
                let tries = crate::text::phrase::counted(failures.into(), "try");
                let (secs, detail) = (waited.as_secs(), error.detail);
                let detail =
                    format!("{detail}; gave up after {tries} and {secs} s of waiting ({why})");
                break ModelError { detail, ..error };
            }
            waited += pause;
            // A rate limit slows every call; other failures delay only this one.
            permit.slow_down((!charged).then_some(pause));
            if charged {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = context.stop.cancelled() => break cancelled(),
                }
            }
        };
        Err(AskError::Model(error))
    }

    /// Makes one call as soon as the limits allow; `None` if stopped before.
    async fn once(
        &self,
        endpoint: &Endpoint,
        request: &Request,
        context: CallContext<'_>,
    ) -> Result<Option<FinishedCall<'_>>, AskError> {
        let sent = estimate(request);
        let permit = tokio::select! {
            biased;
            () = context.stop.cancelled() => return Ok(None),
            permit = self.concurrency.acquire() => permit,
        };
        if !self.rate_limit.draw(&self.store, sent, context.stop).await? {
            return Ok(None);
        }
        // The endpoint may have begun to rate-limit meanwhile.
        let reserved = tokio::select! {
            biased;
            () = context.stop.cancelled() => Ok(None),
            () = self.concurrency.released() => self.reserve(request, context).await,
        };
        let Ok(Some(reservation)) = reserved else {
            self.rate_limit.settle(&self.store, sent, None).await?;
            return reserved.map(|_| None);
        };
        // A sent request is paid for, so wait for its answer within the grace period.
        let grace = async {
            self.cancel.cancelled().await;
            tokio::time::sleep(self.grace).await;
        };
        let meter = self.tally.meters.as_ref().map(|meters| {
            meters.limited(self.concurrency.limit());
            meters.call()
        });
        let result = tokio::select! {
            biased;
            result = endpoint.call(request) => result,
            () = grace => Err(ModelError { is_unanswered: true, ..cancelled() }),
        };
        match (meter, &result) {
            (Some(meter), Ok(reply)) => {
                let usage = counted(reply, request);
                meter.answered(usage, cost(usage, self.price), (self.clock)());
            }
            (Some(meter), Err(error)) => meter.failed(&error.kind),
            (None, _) => {}
        }
        Ok(Some((permit, reservation, result)))
    }

    /// Reserves the worst case of a call under its caps. Waits while calls in flight hold the rest of a cap; `None` if
    /// stopped before.
    async fn reserve(
        &self,
        request: &Request,
        context: CallContext<'_>,
    ) -> Result<Option<Reservation>, AskError> {
        let overrun = self.overruns.lock().get(&request.model).copied().unwrap_or_default();
        let (worst, mut looks) = (overrun.bound(worst_case(request)), 0);
        loop {
            let settled = self.settled.notified();
            let (owner, now) = (context.cap_owner, (self.clock)());
            match self.budget.reserve(&self.store, owner, worst, now).await? {
                Ok(reservation) => return Ok(Some(reservation)),
                Err(reached) if !reached.is_transient || CAP_POLLS_MAX <= looks => {
                    return Err(AskError::Cap(reached));
                }
                Err(_) => {}
            }
            tokio::select! {
                biased;
                () = context.stop.cancelled() => return Ok(None),
                () = settled => {}
                () = tokio::time::sleep(CAP_POLL_INTERVAL) => looks += 1,
            }
        }
    }
}

/// True if the error is a response of the endpoint.
fn is_response(error: &AskError) -> bool {
    let AskError::Model(error) = error else { return false };
    let none = [ErrorKind::NotAReply, ErrorKind::Stale, ErrorKind::Cancelled];
    !matches!(error.kind, ErrorKind::Unavailable { .. }) && !none.contains(&error.kind)
}

fn with_wait(error: ModelError, pause: Duration) -> ModelError {
    if !matches!(error.kind, ErrorKind::RateLimited { .. }) {
        return error;
    }
    ModelError { kind: ErrorKind::RateLimited { wait: Some(pause) }, ..error }
}

fn cancelled() -> ModelError {
    ModelError::new(ErrorKind::Cancelled, "stopped before the answer came")
}

/// Estimated tokens of a request, for the rate limit. The reply is not counted: few reach the maximum length.
pub(crate) fn estimate(request: &Request) -> u64 {
    request.messages.iter().map(|m| u64::from(estimate_tokens(m.content.as_str()))).sum()
}

/// Estimated upper bound of a call: the longest reply, and a margin on the estimated prompt, since tokenisers differ.
fn worst_case(request: &Request) -> Usage {
    let tool = [request.tool.schema(), request.tool.description.as_str()];
    let offered: u64 = tool.iter().map(|text| u64::from(estimate_tokens(text))).sum();
    let sent = estimate(request) + offered;
    Usage {
        prompt_tokens: sent + sent / 3,
        cached_tokens: 0,
        completion_tokens: u64::from(request.reply_tokens_max),
    }
}

/// Token usage as the endpoint reports it, or an estimate where that is missing or implausible.
pub(crate) fn counted(reply: &Reply, request: &Request) -> Usage {
    let arguments = reply.calls.iter().map(|call| estimate_tokens(call.arguments.as_str()));
    let answered = arguments.sum::<u32>() + estimate_tokens(reply.content.as_str());
    let prompt_tokens = plausible(reply.usage.prompt_tokens, estimate(request));
    Usage {
        prompt_tokens,
        cached_tokens: reply.usage.cached_tokens.min(prompt_tokens),
        completion_tokens: plausible(reply.usage.completion_tokens, u64::from(answered)),
    }
}

/// Returns `count`, or `estimate` if the endpoint counted nothing or implausibly much.
pub(super) fn plausible(count: u64, estimate: u64) -> u64 {
    // An estimated token has at most four bytes, and a real one at least one.
    if (1..=4 * estimate + UNSEEN_TOKENS_MAX).contains(&count) { count } else { estimate }
}

/// Consecutive dialogues that must end in a lower mode before new ones start there. One alone may be a fluke; a refusal
/// by the endpoint needs no repetition.
const LOWER_MIN: u32 = 3;

/// The output mode that dialogues start in.
pub(crate) struct OutputModeFallback(Mutex<ModeState>);

struct ModeState {
    current: OutputMode,
    /// Consecutive dialogues that ended in a lower mode.
    lower: u32,
    /// True if the last dialogue failed in every mode.
    is_exhausted: bool,
}

impl OutputModeFallback {
    pub(crate) fn new(current: OutputMode) -> OutputModeFallback {
        OutputModeFallback(Mutex::new(ModeState { current, lower: 0, is_exhausted: false }))
    }

    pub(crate) fn current(&self) -> OutputMode {
        self.0.lock().current
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.0.lock().is_exhausted
    }

    /// Records that a dialogue failed in every mode.
    pub(super) fn exhaust(&self) {
        self.0.lock().is_exhausted = true;
    }

    /// Records the mode that a dialogue ended in; returns true if later dialogues start lower.
    pub(crate) fn learn(&self, worked: OutputMode, refused: bool) -> bool {
        let mut state = self.0.lock();
        let ModeState { current, lower, is_exhausted } = &mut *state;
        *is_exhausted = false;
        *lower = if worked <= *current { 0 } else { *lower + 1 };
        let falls = *lower > 0 && (refused || LOWER_MIN <= *lower);
        if falls {
            *current = worked;
        }
        falls
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Finish, OutputMode};
    use crate::llm::question;
    use crate::privacy::Gate;

    #[test]
    fn tokens_that_an_endpoint_did_not_or_cannot_have_counted_are_estimated() {
        let request = question(OutputMode::ForcedTool);
        let sent = estimate(&request);
        let counts = |prompt_tokens, completion_tokens| {
            let reply = Reply {
                calls: Vec::new(),
                content: Gate::new(&[]).redact("eightish"),
                refusal: None,
                finish: Finish::Stop,
                usage: Usage { prompt_tokens, cached_tokens: u64::MAX, completion_tokens },
            };
            let usage = counted(&reply, &request);
            assert!(usage.cached_tokens <= usage.prompt_tokens);
            (usage.prompt_tokens, usage.completion_tokens)
        };
        assert_eq!(counts(0, 0), (sent, 2));
        assert_eq!(counts(0, 70), (sent, 70));
        assert_eq!(counts(900, 7), (900, 7));
        assert_eq!(counts(u64::MAX, 1 << 40), (sent, 2));
    }
}
