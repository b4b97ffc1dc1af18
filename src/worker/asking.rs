//! One question at a time: from the journal if it was paid for already, else from the model, within
//! the pace, the rates, the caps and the bounds on tries. The answer is stored before anybody reads it.

use super::budget::{Budget, Reached};
use super::rates::Meter;
use super::steady::Steady;
use super::talk::Ladder;
use super::tally::Tally;
use crate::config::Price;
use crate::domain::{
    Digest, ErrorKind, LanguageModel, ModelError, Purpose, Reply, Request, Retry, RunId, SessionId,
    Timestamp, Usage, estimate_tokens,
};
use crate::edge::model::{Cassette, Endpoint, Pace, Permit, back_off};
use crate::edge::store::{Bill, Charge, JournalEntry, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The shortest wait that an endpoint is believed, in milliseconds: one that asks for none at all,
/// say by a date that has passed, and goes on refusing would be asked without end.
const WAIT_LEAST: Duration = Duration::from_millis(50);

/// What answers.
pub enum Model {
    /// A server.
    Endpoint(Box<Endpoint>),
    /// Recorded answers.
    Cassette(Box<Cassette>),
}

/// Asks with a memory: journal, pace, rates, caps.
pub(super) struct Asker {
    pub(super) model: Model,
    pub(super) steady: Steady,
    pub(super) pace: Pace,
    pub(super) meter: Meter,
    pub(super) budget: Budget,
    pub(super) patience: Patience,
    pub(super) price: Price,
    pub(super) tally: Arc<Tally>,
    /// Where the endpoint is, by which what it can do is remembered.
    pub(super) base_url: String,
    pub(super) ladder: Ladder,
    /// Somebody asked to stop.
    pub(super) cancel: CancellationToken,
    /// How long a call under way is waited for then.
    pub(super) grace: Duration,
    pub(super) clock: fn() -> Timestamp,
}

/// What is done where an endpoint is busy or away.
#[derive(Clone, Copy, Debug)]
pub(super) enum Patience {
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
pub(super) struct Payer<'a> {
    pub(super) namespace: &'a str,
    /// None where it is about no single conversation.
    pub(super) session: Option<SessionId>,
}

/// On which bill a call stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Account<'a> {
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

impl Account<'_> {
    fn run(self) -> RunId {
        match self {
            Account::Run(run) => run,
            Account::Own { task, .. } => task,
        }
    }
}

/// For whom a question is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct For<'a> {
    pub(super) payer: Payer<'a>,
    pub(super) account: Account<'a>,
    /// Cancelled with the asker's, or alone: then no call begins, and one under way ends well.
    pub(super) stop: &'a CancellationToken,
    /// What is done where the endpoint is busy or away, if not what the asker does.
    pub(super) patience: Option<Patience>,
    /// Whether it is asked again later if there is no answer now.
    pub(super) returns: bool,
}

/// What a question has cost so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Paid {
    pub(super) asks: u32,
    pub(super) calls: u32,
    /// Answers of the journal.
    pub(super) journaled: u32,
    pub(super) usage: Usage,
    pub(super) cost_micros: u64,
    /// Whether the endpoint refused a way of asking.
    pub(super) refused: bool,
    /// Whether the endpoint said anything at all, be it no.
    pub(super) answered: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// The model or the endpoint.
    Model(ModelError),
    /// A cap; the work waits.
    Cap(Reached),
    /// The store, which ends everything.
    Store(StoreError),
}

impl From<StoreError> for NoAnswer {
    fn from(error: StoreError) -> NoAnswer {
        NoAnswer::Store(error)
    }
}

impl Asker {
    /// Where everything is kept.
    pub(super) fn store(&self) -> &Store {
        self.steady.store()
    }

    /// The answer to `request`, and what it cost added to `paid`.
    pub(super) async fn ask(
        &self,
        request: &Request,
        whose: For<'_>,
        paid: &mut Paid,
    ) -> Result<Reply, NoAnswer> {
        paid.asks += 1;
        let endpoint = match &self.model {
            // A cassette is a journal itself.
            Model::Cassette(cassette) => {
                let reply = cassette.call(request).await.map_err(NoAnswer::Model)?;
                // Shown, since somebody paid for it once; not billed, since nobody does now.
                self.tally.call(counted(&reply, request), 0);
                return Ok(reply);
            }
            Model::Endpoint(endpoint) => endpoint,
        };
        let digest = request.digest();
        let journaled = |store: Store| async move { store.journaled(digest).await };
        if let Some(kept) = self.steady.keep(journaled).await? {
            self.tally.with(|totals| totals.journaled += 1);
            paid.journaled += 1;
            if matches!(whose.account, Account::Run(run) if run == kept.run) {
                // Paid by this very run, which ended before it was staged: it stands on its bill.
                self.bill(&kept.reply, request, paid);
            }
            return Ok(kept.reply);
        }
        let sent = estimate(request);
        let steady = &self.steady;
        let reserved = self.budget.reserve(steady, whose.payer, (sent, (self.clock)())).await?;
        let reserved = reserved.map_err(NoAnswer::Cap)?;
        let reply = match self.call(endpoint, request, whose).await {
            Ok(reply) => {
                paid.answered = true;
                reply
            }
            Err(error) => {
                paid.answered |= says_something(&error);
                self.budget.settle(steady, reserved, Charge::default()).await?;
                return Err(error);
            }
        };
        let (usage, cost_micros) = self.count(&reply, request, paid);
        let tokens = usage.prompt_tokens + usage.completion_tokens;
        let charge = Charge { tokens, micros: cost_micros };
        // What was paid for is kept before anything else is done.
        let kept = self.journal(request, whose, (&reply, usage, cost_micros)).await?;
        self.budget.settle(steady, reserved, charge).await?;
        let used = sent + reply.usage.completion_tokens;
        self.meter.settle(steady, sent, Some(used)).await?;
        Ok(kept)
    }

    async fn journal(
        &self,
        request: &Request,
        whose: For<'_>,
        (reply, usage, cost_micros): (&Reply, Usage, u64),
    ) -> Result<Reply, StoreError> {
        let (digest, at, run) = (request.digest(), (self.clock)(), whose.account.run());
        let bill = match whose.account {
            Account::Run(_) => None,
            Account::Own { purpose, about, .. } => {
                let namespace = whose.payer.namespace.to_owned();
                Some(Bill { namespace, purpose, usage, cost_micros, about: about.to_vec() })
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
            };
            async move { store.journal(entry).await }
        };
        self.steady.keep(keep).await
    }

    /// Counts a call that was made now.
    fn count(&self, reply: &Reply, request: &Request, paid: &mut Paid) -> (Usage, u64) {
        let (usage, cost_micros) = self.bill(reply, request, paid);
        self.tally.call(usage, cost_micros);
        (usage, cost_micros)
    }

    fn bill(&self, reply: &Reply, request: &Request, paid: &mut Paid) -> (Usage, u64) {
        let usage = counted(reply, request);
        let cost_micros = cost(usage, self.price);
        paid.calls += 1;
        paid.usage.prompt_tokens += usage.prompt_tokens;
        paid.usage.cached_tokens += usage.cached_tokens;
        paid.usage.completion_tokens += usage.completion_tokens;
        paid.cost_micros += cost_micros;
        (usage, cost_micros)
    }

    async fn call(
        &self,
        endpoint: &Endpoint,
        request: &Request,
        whose: For<'_>,
    ) -> Result<Reply, NoAnswer> {
        let (mut failures, mut tries, mut waited) = (0_u32, 0, Duration::ZERO);
        let seed = u64::from_le_bytes(first_bytes(request.digest().0.as_bytes()));
        let error = loop {
            let Some((permit, result)) = self.once(endpoint, request, whose).await? else {
                break cancelled();
            };
            let error = match result {
                Ok(reply) => {
                    permit.ok();
                    return Ok(reply);
                }
                Err(error) => error,
            };
            let Retry::After { wait, charged } = error.retry() else {
                // The endpoint answered; it is the request that is wrong.
                permit.ok();
                break error;
            };
            if let Some(meters) = self.tally.meters() {
                meters.retried(&error.kind);
            }
            let asked_for = wait.filter(|wait| WAIT_LEAST <= *wait);
            let patience = whose.patience.unwrap_or(self.patience);
            let Patience::Waits { tries_max, wait_max } = patience else {
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
                    () = whose.stop.cancelled() => break cancelled(),
                }
            }
        };
        Err(NoAnswer::Model(error))
    }

    /// Makes one call when it may be made; none if it was stopped before.
    async fn once(
        &self,
        endpoint: &Endpoint,
        request: &Request,
        whose: For<'_>,
    ) -> Result<Option<(Permit<'_>, Result<Reply, ModelError>)>, StoreError> {
        let sent = estimate(request);
        let permit = tokio::select! {
            biased;
            () = whose.stop.cancelled() => return Ok(None),
            permit = self.pace.acquire() => permit,
        };
        if !self.meter.draw(&self.steady, sent, whose.stop).await? {
            return Ok(None);
        }
        // Somebody may have been told to wait meanwhile.
        tokio::select! {
            biased;
            () = whose.stop.cancelled() => {
                self.meter.settle(&self.steady, sent, None).await?;
                return Ok(None);
            }
            () = self.pace.released() => {}
        }
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
        Ok(Some((permit, result)))
    }
}

/// Whether an endpoint that answers was heard.
fn says_something(error: &NoAnswer) -> bool {
    match error {
        NoAnswer::Model(error) => match error.kind {
            ErrorKind::Unavailable { .. } | ErrorKind::Stale | ErrorKind::Cancelled => false,
            ErrorKind::RateLimited { .. }
            | ErrorKind::QuotaExhausted
            | ErrorKind::TooLong
            | ErrorKind::Unsupported
            | ErrorKind::Unauthorised
            | ErrorKind::NotFound
            | ErrorKind::BadRequest => true,
        },
        NoAnswer::Cap(_) | NoAnswer::Store(_) => false,
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
pub(super) fn estimate(request: &Request) -> u64 {
    request.messages.iter().map(|m| u64::from(estimate_tokens(m.content.as_str()))).sum()
}

/// What the endpoint counted, or our estimate where it did not count.
pub(super) fn counted(reply: &Reply, request: &Request) -> Usage {
    if reply.usage != Usage::default() {
        return reply.usage;
    }
    let arguments = reply.calls.iter().map(|call| estimate_tokens(call.arguments.as_str()));
    let answered = arguments.sum::<u32>() + estimate_tokens(reply.content.as_str());
    let completion_tokens = u64::from(answered);
    Usage { prompt_tokens: estimate(request), cached_tokens: 0, completion_tokens }
}

/// Micro-dollars: dollars for a million tokens are micro-dollars for one.
pub(super) fn cost(usage: Usage, price: Price) -> u64 {
    let fresh = usage.prompt_tokens.saturating_sub(usage.cached_tokens) as f64;
    let sum = fresh * price.sent
        + usage.cached_tokens as f64 * price.cached
        + usage.completion_tokens as f64 * price.answered;
    sum.round() as u64
}
