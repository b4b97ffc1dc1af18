//! One question at a time: from the journal if it was paid for already, else from the model, within
//! the pace, the rates, the caps and the bounds on tries. The answer is stored before anybody reads it.

use super::budget::{Budget, ReachedCap, Refusal, Reservation};
use super::dialogue::OutputModeFallback;
use super::rate_limit::RateLimit;
use super::retrying_store::RetryingStore;
use super::tally::Tally;
use crate::config::Price;
use crate::domain::{
    Digest, ErrorKind, LanguageModel, ModelError, Purpose, Reply, Request, RequestDigest, Retry,
    RunId, SessionId, Timestamp, Usage, estimate_tokens,
};
use crate::llm::{CallPermit, Cassette, ConcurrencyLimit, Endpoint, back_off};
use crate::store::{Bill, Charge, JournalEntry, Journaled, Store, StoreError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The shortest wait that an endpoint is believed, in milliseconds: one that asks for none at all,
/// say by a date that has passed, and goes on refusing would be asked without end.
const WAIT_LEAST: Duration = Duration::from_millis(50);
/// Interval of looking whether a call of another process has left room under a cap.
const SETTLED_LOOK: Duration = Duration::from_millis(200);
/// Maximum number of looks; what is reserved for longer than ten minutes belongs to a process that died.
const SETTLED_LOOKS_MAX: u32 = 3_000;

/// What answers.
pub enum Model {
    /// A server.
    Endpoint(Box<Endpoint>),
    /// Recorded answers.
    Cassette(Box<Cassette>),
}

/// Asks with a memory: journal, pace, rates, caps.
pub(crate) struct ModelClient {
    pub(crate) model: Model,
    pub(crate) store: RetryingStore,
    pub(crate) pace: ConcurrencyLimit,
    pub(crate) rate_limit: RateLimit,
    pub(crate) budget: Budget,
    pub(crate) patience: CallRetry,
    pub(crate) price: Price,
    pub(crate) tally: Arc<Tally>,
    /// Where the endpoint is, by which what it can do is remembered.
    pub(crate) base_url: String,
    pub(crate) output_modes: OutputModeFallback,
    /// Somebody asked to stop.
    pub(crate) cancel: CancellationToken,
    /// How long a call under way is waited for then.
    pub(crate) grace: Duration,
    pub(crate) clock: fn() -> Timestamp,
    /// A call under a cap was settled.
    pub(crate) settled: Notify,
    /// The questions that are being asked.
    pub(crate) flights: Mutex<HashMap<RequestDigest, Weak<tokio::sync::Mutex<()>>>>,
}

/// What is done where an endpoint is busy or away.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallRetry {
    /// It is asked again, so often and for so long in all.
    Waits {
        /// Tries of one question; rate limits do not count.
        tries_max: u32,
        /// The longest wait, all together.
        wait_max: Duration,
    },
    /// Whoever asks comes back later.
    ComesBack,
}

/// Whose caps a question counts for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapOwner<'a> {
    pub(crate) namespace: &'a str,
    /// None where it is about no single conversation.
    pub(crate) session: Option<SessionId>,
}

/// On which bill a call stands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Billing<'a> {
    /// On a run's, which is staged with what its answers cost.
    Run(RunId),
    /// On its own, which is written with the answer.
    Own {
        /// What is worked on.
        task: RunId,
        purpose: Purpose,
        /// The records and memories that are shown: the answer is erased with any of them.
        about: &'a [Digest],
    },
}

impl Billing<'_> {
    fn run(self) -> RunId {
        match self {
            Billing::Run(run) => run,
            Billing::Own { task, .. } => task,
        }
    }
}

/// For whom a question is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallContext<'a> {
    pub(crate) cap_owner: CapOwner<'a>,
    pub(crate) billing: Billing<'a>,
    /// Cancelled with the client's, or alone: then no call begins, and one under way ends well.
    pub(crate) stop: &'a CancellationToken,
    /// What is done where the endpoint is busy or away, if not what the client does.
    pub(crate) patience: Option<CallRetry>,
    /// Whether it is asked again later if there is no answer now.
    pub(crate) returns: bool,
}

/// What a question has cost so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spending {
    pub(crate) asks: u32,
    pub(crate) calls: u32,
    /// Answers of the journal.
    pub(crate) journaled: u32,
    pub(crate) usage: Usage,
    pub(crate) cost_micros: u64,
    /// Whether the endpoint refused a way of asking.
    pub(crate) refused: bool,
    /// Whether the endpoint said anything at all, be it no.
    pub(crate) answered: bool,
}

impl Spending {
    /// A call more.
    fn add(&mut self, usage: Usage, cost_micros: u64) {
        self.calls += 1;
        self.usage.prompt_tokens += usage.prompt_tokens;
        self.usage.cached_tokens += usage.cached_tokens;
        self.usage.completion_tokens += usage.completion_tokens;
        self.cost_micros += cost_micros;
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum AskError {
    /// The model or the endpoint.
    Model(ModelError),
    /// A cap; the work waits.
    Cap(ReachedCap),
    /// The store, which ends everything.
    Store(StoreError),
}

impl From<StoreError> for AskError {
    fn from(error: StoreError) -> AskError {
        AskError::Store(error)
    }
}

impl ModelClient {
    /// The answer to `request`, and what it cost added to `paid`.
    pub(crate) async fn ask(
        &self,
        request: &Request,
        context: CallContext<'_>,
        spent: &mut Spending,
    ) -> Result<Reply, AskError> {
        self.sample(request, 0, context, spent).await
    }

    /// As [`ModelClient::ask`], of a question that was asked `before` so often: another answer to it.
    pub(crate) async fn sample(
        &self,
        request: &Request,
        before: u32,
        context: CallContext<'_>,
        spent: &mut Spending,
    ) -> Result<Reply, AskError> {
        spent.asks += 1;
        let endpoint = match &self.model {
            // A cassette is a journal itself.
            Model::Cassette(cassette) => {
                let reply = cassette.call(request).await.map_err(AskError::Model)?;
                // Shown, since somebody paid for it once; not billed, since nobody does now.
                self.tally.call(counted(&reply, request), 0);
                return Ok(reply);
            }
            Model::Endpoint(endpoint) => endpoint,
        };
        let digest = sample_digest(request, before);
        // Who asks the same at the same time waits for this answer.
        let flight = self.flight(digest);
        let _flies = tokio::select! {
            biased;
            () = context.stop.cancelled() => return Err(AskError::Model(cancelled())),
            flies = flight.lock() => flies,
        };
        let journaled = |store: Store| async move { store.journaled(digest).await };
        if let Some(kept) = self.store.retry(journaled).await? {
            self.tally.with(|totals| totals.journaled += 1);
            spent.journaled += 1;
            self.bill_kept(&kept, request, context, spent);
            return Ok(kept.reply);
        }
        let (reply, reserved) = match self.call(endpoint, request, context).await {
            Ok(called) => {
                spent.answered = true;
                called
            }
            Err(error) => {
                spent.answered |= says_something(&error);
                return Err(error);
            }
        };
        let usage = counted(&reply, request);
        let cost_micros = cost(usage, self.price);
        self.tally.call(usage, cost_micros);
        // What was paid for is kept before anything else is done.
        let kept = self.journal((request, digest), context, (&reply, usage, cost_micros)).await?;
        let store = &self.store;
        let tokens = usage.prompt_tokens + usage.completion_tokens;
        self.budget.settle(store, reserved, Charge { tokens, micros: cost_micros }).await?;
        self.settled.notify_waiters();
        let sent = estimate(request);
        let used = sent + reply.usage.completion_tokens;
        self.rate_limit.settle(store, sent, Some(used)).await?;
        match kept {
            None => {
                spent.add(usage, cost_micros);
                Ok(reply)
            }
            // Somebody's answer came first, and this one stands on a bill of its own.
            Some(kept) => {
                self.bill_kept(&kept, request, context, spent);
                Ok(kept.reply)
            }
        }
    }

    /// What an answer of the journal cost, if this very run paid for it before it was staged.
    fn bill_kept(
        &self,
        kept: &Journaled,
        request: &Request,
        context: CallContext<'_>,
        spent: &mut Spending,
    ) {
        if matches!(context.billing, Billing::Run(run) if run == kept.run) {
            let usage = counted(&kept.reply, request);
            spent.add(usage, cost(usage, self.price));
        }
    }

    /// The lock of a question that is being asked.
    fn flight(&self, digest: RequestDigest) -> Arc<tokio::sync::Mutex<()>> {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        flights.retain(|_, flight| flight.strong_count() > 0);
        let known = flights.get(&digest).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let flight = Arc::default();
            flights.insert(digest, Arc::downgrade(&flight));
            flight
        })
    }

    /// Keeps the answer; gives the one that is kept instead, if somebody's came first.
    async fn journal(
        &self,
        (request, digest): (&Request, RequestDigest),
        context: CallContext<'_>,
        (reply, usage, cost_micros): (&Reply, Usage, u64),
    ) -> Result<Option<Journaled>, StoreError> {
        let (at, run) = ((self.clock)(), context.billing.run());
        let namespace = context.cap_owner.namespace.to_owned();
        let (bill, spare_bill) = match context.billing {
            Billing::Run(_) => {
                let (purpose, about) = (Purpose::Extract, Vec::new());
                (None, Some(Bill { namespace, purpose, usage, cost_micros, about }))
            }
            Billing::Own { purpose, about, .. } => {
                let about = about.to_vec();
                (Some(Bill { namespace, purpose, usage, cost_micros, about }), None)
            }
        };
        let keep = |store: Store| {
            let entry = JournalEntry {
                digest,
                run,
                model: request.model.clone(),
                rung: request.rung,
                at,
                reply: reply.clone(),
                request: None,
                bill: bill.clone(),
                spare_bill: spare_bill.clone(),
            };
            async move { store.journal(entry).await }
        };
        self.store.retry(keep).await
    }

    async fn call(
        &self,
        endpoint: &Endpoint,
        request: &Request,
        context: CallContext<'_>,
    ) -> Result<(Reply, Reservation), AskError> {
        let (mut failures, mut tries, mut waited) = (0_u32, 0, Duration::ZERO);
        let seed = u64::from_le_bytes(first_bytes(request.digest().0.as_bytes()));
        let error = loop {
            let Some((permit, reserved, result)) = self.once(endpoint, request, context).await?
            else {
                break cancelled();
            };
            let error = match result {
                Ok(reply) => {
                    permit.ok();
                    return Ok((reply, reserved));
                }
                Err(error) => error,
            };
            self.budget.settle(&self.store, reserved, Charge::default()).await?;
            self.settled.notify_waiters();
            let Retry::After { wait, charged } = error.retry() else {
                // The endpoint answered; it is the request that is wrong.
                permit.ok();
                break error;
            };
            if let Some(meters) = self.tally.meters() {
                meters.retried(&error.kind);
            }
            let asked_for = wait.filter(|wait| WAIT_LEAST <= *wait);
            let patience = context.patience.unwrap_or(self.patience);
            let CallRetry::Waits { tries_max, wait_max } = patience else {
                let pause = asked_for.unwrap_or_else(|| back_off(self.pace.slowed() + 1, seed));
                permit.slow_down((!charged).then_some(pause));
                break with_wait(error, pause);
            };
            // Bounded by the sum of the waits, each longer than nothing.
            failures += 1;
            tries += u32::from(charged);
            let pause = asked_for.unwrap_or_else(|| back_off(failures, seed));
            if tries >= tries_max || waited + pause > wait_max {
                permit.slow_down(None);
                break given_up(error, failures, (waited, pause));
            }
            waited += pause;
            // Rate limits are everybody's; other failures are this call's alone.
            permit.slow_down(if charged { None } else { Some(pause) });
            if charged {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = context.stop.cancelled() => break cancelled(),
                }
            }
        };
        Err(AskError::Model(error))
    }

    /// Makes one call when it may be made; none if it was stopped before.
    async fn once(
        &self,
        endpoint: &Endpoint,
        request: &Request,
        context: CallContext<'_>,
    ) -> Result<Option<Called<'_>>, AskError> {
        let sent = estimate(request);
        let permit = tokio::select! {
            biased;
            () = context.stop.cancelled() => return Ok(None),
            permit = self.pace.acquire() => permit,
        };
        if !self.rate_limit.draw(&self.store, sent, context.stop).await? {
            return Ok(None);
        }
        // Somebody may have been told to wait meanwhile.
        tokio::select! {
            biased;
            () = context.stop.cancelled() => {
                self.rate_limit.settle(&self.store, sent, None).await?;
                return Ok(None);
            }
            () = self.pace.released() => {}
        }
        let Some(reserved) = self.reserve(request, context).await? else {
            return Ok(None);
        };
        // What was sent will be paid for: its answer is waited for, though not for ever.
        let patience = async {
            self.cancel.cancelled().await;
            tokio::time::sleep(self.grace).await;
        };
        let meters = self.tally.meters();
        let meter = meters.map(|meters| {
            meters.limited(self.pace.limit());
            meters.call()
        });
        let result = tokio::select! {
            biased;
            result = endpoint.call(request) => result,
            () = patience => Err(cancelled()),
        };
        if let Some(meter) = meter {
            match &result {
                Ok(reply) => {
                    let usage = counted(reply, request);
                    meter.answered(usage, cost(usage, self.price), (self.clock)());
                }
                Err(error) => meter.failed(&error.kind),
            }
        }
        Ok(Some((permit, reserved, result)))
    }

    /// Reserves the worst case of a call under its caps. Waits while calls under way hold what is left
    /// of one; none if it was stopped before.
    async fn reserve(
        &self,
        request: &Request,
        context: CallContext<'_>,
    ) -> Result<Option<Reservation>, AskError> {
        let worst = worst_case(request);
        let mut looks = 0;
        loop {
            let settled = self.settled.notified();
            let now = (self.clock)();
            let why =
                match self.budget.reserve(&self.store, context.cap_owner, (worst, now)).await? {
                    Ok(reserved) => return Ok(Some(reserved)),
                    Err(why) => why,
                };
            let stopped = match why {
                Refusal::Passes(_) if looks < SETTLED_LOOKS_MAX => tokio::select! {
                    biased;
                    () = context.stop.cancelled() => true,
                    () = settled => false,
                    () = tokio::time::sleep(SETTLED_LOOK) => {
                        looks += 1;
                        false
                    }
                },
                Refusal::Passes(reached) | Refusal::Reached(reached) => {
                    self.rate_limit.settle(&self.store, estimate(request), None).await?;
                    return Err(AskError::Cap(reached));
                }
            };
            if stopped {
                self.rate_limit.settle(&self.store, estimate(request), None).await?;
                return Ok(None);
            }
        }
    }
}

/// A call that was made, with what is reserved for it.
type Called<'a> = (CallPermit<'a>, Reservation, Result<Reply, ModelError>);

/// The digest under which the answer to a request is journaled that was asked `before` so often in one
/// dialogue: asking again is asking for another answer.
fn sample_digest(request: &Request, before: u32) -> RequestDigest {
    let digest = request.digest();
    match before {
        0 => digest,
        _ => RequestDigest(Digest::of(&["sample", &digest.0.to_string(), &before.to_string()])),
    }
}

/// Whether an endpoint that answers was heard.
fn says_something(error: &AskError) -> bool {
    match error {
        AskError::Model(error) => match error.kind {
            ErrorKind::Unavailable { .. } | ErrorKind::Stale | ErrorKind::Cancelled => false,
            ErrorKind::RateLimited { .. }
            | ErrorKind::QuotaExhausted
            | ErrorKind::TooLong
            | ErrorKind::Unsupported
            | ErrorKind::Unauthorised
            | ErrorKind::NotFound
            | ErrorKind::BadRequest => true,
        },
        AskError::Cap(_) | AskError::Store(_) => false,
    }
}

/// A rate limit with the wait that is kept.
fn with_wait(error: ModelError, pause: Duration) -> ModelError {
    match error.kind {
        ErrorKind::RateLimited { .. } => {
            ModelError { kind: ErrorKind::RateLimited { wait: Some(pause) }, ..error }
        }
        ErrorKind::QuotaExhausted
        | ErrorKind::Unavailable { .. }
        | ErrorKind::TooLong
        | ErrorKind::Unsupported
        | ErrorKind::Unauthorised
        | ErrorKind::NotFound
        | ErrorKind::BadRequest
        | ErrorKind::Stale
        | ErrorKind::Cancelled => error,
    }
}

fn cancelled() -> ModelError {
    ModelError::new(ErrorKind::Cancelled, "stopped before the answer came")
}

fn given_up(error: ModelError, tries: u32, (waited, next): (Duration, Duration)) -> ModelError {
    let detail = format!(
        "{}; given up after {tries} tries and {} s of waiting, the next wait would be {} s \
         (limits.tries_max, limits.wait_secs_max)",
        error.detail,
        waited.as_secs(),
        next.as_secs()
    );
    ModelError { kind: error.kind, detail }
}

fn first_bytes(bytes: &[u8; 16]) -> [u8; 8] {
    let mut first = [0; 8];
    first.copy_from_slice(&bytes[..8]);
    first
}

/// What a request may cost, in tokens: what is sent, and the longest answer is seldom given.
pub(crate) fn estimate(request: &Request) -> u64 {
    request.messages.iter().map(|m| u64::from(estimate_tokens(m.content.as_str()))).sum()
}

/// The most that a call may take: the longest answer, and more tokens than we estimate for what is
/// sent, since tokenisers differ.
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

/// What the endpoint counted, or our estimate where it did not count.
pub(crate) fn counted(reply: &Reply, request: &Request) -> Usage {
    if reply.usage != Usage::default() {
        return reply.usage;
    }
    let arguments = reply.calls.iter().map(|call| estimate_tokens(call.arguments.as_str()));
    let answered = arguments.sum::<u32>() + estimate_tokens(reply.content.as_str());
    let completion_tokens = u64::from(answered);
    Usage { prompt_tokens: estimate(request), cached_tokens: 0, completion_tokens }
}

/// Micro-dollars: dollars for a million tokens are micro-dollars for one.
pub(crate) fn cost(usage: Usage, price: Price) -> u64 {
    let fresh = usage.prompt_tokens.saturating_sub(usage.cached_tokens) as f64;
    let sum = fresh * price.sent
        + usage.cached_tokens as f64 * price.cached
        + usage.completion_tokens as f64 * price.answered;
    sum.round() as u64
}
