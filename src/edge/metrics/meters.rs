//! What this process has done since it began: atomic counters that the worker bumps. Nothing here waits.

use super::label::{Counters, Labels, OK, Outcome, RECORD_STATES, RETRIED, SORTS};
use super::label::{counters, each, error_kinds};
use crate::domain::{ClaimKind, ErrorKind, RecordState, Timestamp, Usage};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};
use std::fmt;
use std::sync::atomic::AtomicU64;
use tokio::time::Instant;

/// Bounds of the histogram of calls, in seconds: from a small model on this machine to a large one that
/// thinks. A call that takes longer counts in the last bucket.
const CALL_SECS: [f64; 12] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0];

/// A number with a fraction.
type Float = Gauge<f64, AtomicU64>;

/// The counters of a process. Made once and shared.
#[derive(Debug)]
pub struct Meters {
    registry: Registry,
    claims: Counter,
    outcomes: Counters<1>,
    expired: Counter,
    calls: Counters<1>,
    call_duration: Histogram,
    in_flight: Gauge,
    limit: Gauge,
    last_success: Float,
    retries: Counters<1>,
    tokens: Counters<1>,
    cost: Counter<f64, AtomicU64>,
    store_errors: Counter,
    enqueued: Counter,
    records: Counters<2>,
}

impl Meters {
    /// Counters at zero, of a process of this `version` that began at `started`.
    pub fn new(version: &'static str, started: Timestamp) -> Meters {
        let mut registry = Registry::with_prefix("annalist");
        registry.register(
            "build",
            "The version of this process",
            Info::new([("version", version)]),
        );
        let start = Float::default();
        start.set(secs(started));
        registry.register("start_time_seconds", "When this process began, since 1970", start);
        let mut add = Add(&mut registry);
        Meters {
            claims: add.this("claims", "Jobs that this worker took", Counter::default()),
            outcomes: add.this(
                "outcomes",
                "How the jobs that it took ended",
                counters(each("outcome", Outcome::ALL.map(Outcome::name))),
            ),
            expired: add.this(
                "leases_expired",
                "Leases of any worker that ran out and that this one took back",
                Counter::default(),
            ),
            calls: add.this(
                "calls",
                "Calls of the model: ok, or the kind of the error",
                counters(each("result", std::iter::once(OK).chain(error_kinds()))),
            ),
            call_duration: add.this(
                "call_duration_seconds",
                "How long a call took, well or not",
                Histogram::new(CALL_SECS),
            ),
            in_flight: add.this("calls_in_flight", "Calls under way", Gauge::default()),
            limit: add.this(
                "concurrency_limit",
                "Calls that may be under way, as the endpoint bears them",
                Gauge::default(),
            ),
            last_success: add.this(
                "last_successful_call_timestamp_seconds",
                "When a call last went well, since 1970; 0 if none has",
                Float::default(),
            ),
            retries: add.this(
                "retries",
                "Calls that are made again, by what went wrong",
                counters(each("kind", RETRIED)),
            ),
            tokens: add.this(
                "tokens",
                "Tokens: sent, of those cached, and answered",
                counters(each("sort", SORTS)),
            ),
            cost: add.this(
                "cost_usd",
                "US dollars, by the prices of the settings",
                Counter::default(),
            ),
            store_errors: add.this(
                "store_errors",
                "What the store refused or failed to do",
                Counter::default(),
            ),
            enqueued: add.this(
                "slices_enqueued",
                "Slices that this process put into the queue",
                Counter::default(),
            ),
            records: add.this(
                "records",
                "Records that this worker stored: staged or quarantined, by kind",
                counters(ClaimKind::ALL.iter().flat_map(|kind| {
                    RECORD_STATES.map(|state| [("kind", kind.name()), ("state", state)])
                })),
            ),
            registry,
        }
    }

    /// So many jobs were claimed.
    pub fn claimed(&self, jobs: u64) {
        self.claims.inc_by(jobs);
    }

    /// So many leases were found run out and taken back: their workers died or stand still.
    pub fn expired(&self, leases: u64) {
        self.expired.inc_by(leases);
    }

    /// The claim of a job ended.
    pub fn ended(&self, outcome: Outcome) {
        bump(&self.outcomes, [("outcome", outcome.name())], 1);
    }

    /// A call of the model begins; what is returned ends it.
    pub fn call(&self) -> CallMeter<'_> {
        self.in_flight.inc();
        CallMeter { meters: self, begun: Instant::now(), result: ErrorKind::Cancelled.name() }
    }

    /// A call that failed in this way will be made again.
    pub fn retried(&self, kind: &ErrorKind) {
        bump(&self.retries, [("kind", kind.name())], 1);
    }

    /// How many calls may be under way from now on.
    pub fn limited(&self, calls: u32) {
        self.limit.set(i64::from(calls));
    }

    /// The store refused or failed to do something.
    pub fn store_failed(&self) {
        self.store_errors.inc();
    }

    /// So many slices were put into the queue that were not there before.
    pub fn enqueued(&self, slices: u64) {
        self.enqueued.inc_by(slices);
    }

    /// So many records of `kind` were stored. What a newer run replaced is none of them.
    pub fn stored(&self, kind: ClaimKind, state: RecordState, records: u64) {
        let state = match state {
            RecordState::Staged => "staged",
            RecordState::Quarantined => "quarantined",
            RecordState::Replaced => return,
        };
        bump(&self.records, [("kind", kind.name()), ("state", state)], records);
    }

    /// What is counted, for the page.
    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }
}

/// A call under way. Dropped without a verdict it counts as cancelled.
#[must_use = "a call ends when this is dropped"]
pub struct CallMeter<'a> {
    meters: &'a Meters,
    begun: Instant,
    result: &'static str,
}

impl CallMeter<'_> {
    /// It was answered at `now`, for this price in micro-dollars.
    pub fn answered(mut self, usage: Usage, cost_micros: u64, now: Timestamp) {
        let Meters { tokens, cost, last_success, .. } = self.meters;
        let counts = [usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens];
        for (sort, count) in SORTS.into_iter().zip(counts) {
            bump(tokens, [("sort", sort)], count);
        }
        cost.inc_by(cost_micros as f64 / 1e6);
        last_success.set(secs(now));
        self.result = OK;
    }

    /// It failed in this way.
    pub fn failed(mut self, kind: &ErrorKind) {
        self.result = kind.name();
    }
}

impl Drop for CallMeter<'_> {
    fn drop(&mut self) {
        self.meters.in_flight.dec();
        self.meters.call_duration.observe(self.begun.elapsed().as_secs_f64());
        bump(&self.meters.calls, [("result", self.result)], 1);
    }
}

impl fmt::Debug for CallMeter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallMeter({})", self.result)
    }
}

/// Registers a series and gives it back.
struct Add<'a>(&'a mut Registry);

impl Add<'_> {
    fn this<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(name, help, metric.clone());
        metric
    }
}

fn bump<const N: usize>(family: &Counters<N>, labels: Labels<N>, count: u64) {
    family.get_or_create(&labels).inc_by(count);
}

fn secs(at: Timestamp) -> f64 {
    at.0 as f64 / 1e3
}
