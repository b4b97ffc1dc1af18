//! Counters that the worker bumps, and the page they make with what the store holds. Nothing here waits.

use crate::domain::{
    ClaimKind, Coverage, CoverageState, ErrorKind, JobState, RecordState, Timestamp, Usage, Wait,
};
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::time::Instant;

/// Bounds of the histogram of calls, in seconds: from a small local model to a large one that thinks.
const CALL_SECS: [f64; 12] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0];
/// Result of a call that was answered.
const OK: &str = "ok";
/// Kinds of tokens, in the order of [`Usage`].
const TOKENS: [&str; 3] = ["sent", "cached", "answered"];
/// States of a new record.
const RECORD_STATES: [&str; 2] = ["staged", "quarantined"];
/// Errors after which a call is repeated, by [`ErrorKind::name`].
const RETRIED: [&str; 2] = ["rate-limited", "unavailable"];

type Float = Gauge<f64, AtomicU64>;
type Labels<const N: usize> = [(&'static str, &'static str); N];
/// Counters by label. A label's value is text of this program, never of what it reads, so that the number
/// of series is bounded.
type Counters<const N: usize> = Family<Labels<N>, Counter>;

/// Outcome of a claimed job.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// Its records are stored, be it none.
    Done,
    /// Its slice had been extracted before; no call was made.
    Known,
    /// It was too long and became two jobs or more.
    Cut,
    /// It had no answer and is tried again later; the attempt counts.
    Retried,
    /// It was given back and the attempt does not count: a cap, a rate limit, a stop.
    Released,
    /// It failed for good.
    Dead,
    /// Its lease expired and another worker took it; nothing of this worker was stored.
    Lost,
}

impl Outcome {
    /// Every value.
    pub const ALL: [Outcome; 7] = [
        Outcome::Done,
        Outcome::Known,
        Outcome::Cut,
        Outcome::Retried,
        Outcome::Released,
        Outcome::Dead,
        Outcome::Lost,
    ];

    /// Name in metrics and traces.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Known => "known",
            Outcome::Cut => "cut",
            Outcome::Retried => "retried",
            Outcome::Released => "released",
            Outcome::Dead => "dead",
            Outcome::Lost => "lost",
        }
    }
}

/// Counters of a process. Made once and shared.
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
        let all = &mut registry;
        all.register("build", "The version of this process", Info::new([("version", version)]));
        let start: Float = add_default(all, "start_time_seconds", "When this process began");
        start.set(secs(started));
        let claims = add_default(all, "claims", "Jobs that this worker took");
        let outcomes = Outcome::ALL.map(Outcome::name);
        let outcomes = counters("outcome", outcomes);
        let outcomes = add(all, "outcomes", "How the jobs that it took ended", outcomes);
        let help = "Leases of any worker that ran out and that this one took back";
        let expired = add_default(all, "leases_expired", help);
        let results = counters("result", [OK].into_iter().chain(error_kinds()));
        let help = "Calls of the model: ok, or the kind of the error";
        let calls = add(all, "calls", help, results);
        let duration = Histogram::new(CALL_SECS);
        let help = "How long a call took, well or not";
        let call_duration = add(all, "call_duration_seconds", help, duration);
        let in_flight = add_default(all, "calls_in_flight", "Calls under way");
        let help = "Calls that may be under way, as the endpoint bears them";
        let limit = add_default(all, "concurrency_limit", help);
        let help = "When a call last went well, since 1970; 0 if none has";
        let last_success = add_default(all, "last_successful_call_timestamp_seconds", help);
        let help = "Calls that are made again, by what went wrong";
        let retries = add(all, "retries", help, counters("kind", RETRIED));
        let help = "Tokens: sent, of those cached, and answered";
        let tokens = add(all, "tokens", help, counters("sort", TOKENS));
        let cost = add_default(all, "cost_usd", "US dollars, by the prices of the settings");
        let help = "What the store refused or failed to do";
        let store_errors = add_default(all, "store_errors", help);
        let help = "Slices that this process put into the queue";
        let enqueued = add_default(all, "slices_enqueued", help);
        let by_kind = Counters::<2>::default();
        for kind in ClaimKind::ALL {
            for state in RECORD_STATES {
                bump(&by_kind, [("kind", kind.name()), ("state", state)], 0);
            }
        }
        let help = "Records that this worker stored: staged or quarantined, by kind";
        let records = add(all, "records", help, by_kind);
        Meters {
            registry,
            claims,
            outcomes,
            expired,
            calls,
            call_duration,
            in_flight,
            limit,
            last_success,
            retries,
            tokens,
            cost,
            store_errors,
            enqueued,
            records,
        }
    }

    /// Counts claimed jobs.
    pub fn claimed(&self, jobs: u64) {
        self.claims.inc_by(jobs);
    }

    /// Counts expired leases that were taken back.
    pub fn expired(&self, leases: u64) {
        self.expired.inc_by(leases);
    }

    /// Counts the outcome of a claimed job.
    pub fn ended(&self, outcome: Outcome) {
        bump(&self.outcomes, [("outcome", outcome.name())], 1);
    }

    /// Begins a call of the model, which the returned meter ends.
    pub fn call(&self) -> CallMeter<'_> {
        self.in_flight.inc();
        CallMeter { meters: self, begun: Instant::now(), result: ErrorKind::Cancelled.name() }
    }

    /// Counts a call that failed in this way and will be repeated.
    pub fn retried(&self, kind: &ErrorKind) {
        bump(&self.retries, [("kind", kind.name())], 1);
    }

    /// Sets the number of calls that may be in flight.
    pub fn limited(&self, calls: u32) {
        self.limit.set(i64::from(calls));
    }

    /// Counts a failure of the store.
    pub fn store_failed(&self) {
        self.store_errors.inc();
    }

    /// Counts new slices in the queue.
    pub fn enqueued(&self, slices: u64) {
        self.enqueued.inc_by(slices);
    }

    /// Counts stored records; those that a newer run replaced are left out.
    pub fn stored(&self, kind: ClaimKind, state: RecordState, records: u64) {
        let state = match state {
            RecordState::Staged => "staged",
            RecordState::Quarantined => "quarantined",
            RecordState::Replaced => return,
        };
        bump(&self.records, [("kind", kind.name()), ("state", state)], records);
    }

    /// The page: these counters, and the store's if it answered.
    pub(super) fn page(&self, store: Option<&Snapshot>) -> Result<String, fmt::Error> {
        let mut page = String::new();
        text::encode_registry(&mut page, &self.registry)?;
        text::encode_registry(&mut page, &store_registry(store))?;
        text::encode_eof(&mut page)?;
        Ok(page)
    }
}

/// A call in flight. Dropped without a result it counts as cancelled.
#[must_use = "a call ends when this is dropped"]
pub struct CallMeter<'a> {
    meters: &'a Meters,
    begun: Instant,
    result: &'static str,
}

impl CallMeter<'_> {
    /// Ends the call with an answer at `now`, for this price in micro-dollars.
    pub fn answered(mut self, usage: Usage, cost_micros: u64, now: Timestamp) {
        let Meters { tokens, cost, last_success, .. } = self.meters;
        let counts = [usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens];
        for (sort, count) in TOKENS.into_iter().zip(counts) {
            bump(tokens, [("sort", sort)], count);
        }
        cost.inc_by(cost_micros as f64 / 1e6);
        last_success.set(secs(now));
        self.result = OK;
    }

    /// Ends the call with an error.
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

/// Contents of the store at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Snapshot {
    /// Jobs by state; a state that is left out has none.
    pub jobs: BTreeMap<JobState, Jobs>,
    /// Waiting jobs by reason; a reason that is left out has none.
    pub waiting: BTreeMap<Wait, u64>,
    /// Entries by state.
    pub coverage: Coverage,
}

/// Jobs in one state.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Jobs {
    /// Their number.
    pub jobs: u64,
    /// Age of the oldest, where it matters.
    pub oldest: Option<Duration>,
}

/// The series of the store; only `store_up` where it did not answer.
fn store_registry(snapshot: Option<&Snapshot>) -> Registry {
    let mut registry = Registry::with_prefix("annalist");
    let all = &mut registry;
    let up: Gauge = add_default(all, "store_up", "1 if the store answered for this page");
    up.set(i64::from(snapshot.is_some()));
    let Some(Snapshot { jobs, waiting, coverage }) = snapshot else { return registry };
    let of = |state: &JobState| jobs.get(state).copied().unwrap_or_default();
    // Finished jobs are not counted: there may be millions of them.
    let open = JobState::ALL.iter().filter(|it| !matches!(it, JobState::Done | JobState::Cut));
    let count = open.clone().map(|state| (state.name(), of(state).jobs));
    let help = "Jobs in the store that are open, dead or called off";
    add(all, "jobs", help, gauges("state", count));
    let help = "Age of the oldest job; 0 where there is none";
    let ages: Family<Labels<1>, Float> = add_default(all, "oldest_job_age_seconds", help);
    for state in open {
        let secs = of(state).oldest.unwrap_or_default().as_secs_f64();
        ages.get_or_create(&[("state", state.name())]).set(secs);
    }
    let held = |reason: &Wait| waiting.get(reason).copied().unwrap_or_default();
    let count = Wait::ALL.iter().map(|reason| (reason.name(), held(reason)));
    add(all, "waiting_jobs", "Jobs that wait, by why", gauges("reason", count));
    let Coverage { extracted, nothing, skipped, failed, pending } = *coverage;
    let count = [
        (CoverageState::Extracted, extracted),
        (CoverageState::Nothing, nothing),
        (CoverageState::Skipped, skipped),
        (CoverageState::Failed, failed),
        (CoverageState::Pending, pending),
    ]
    .map(|(state, count)| (state.name(), count));
    let help = "Entries in the store, by what became of them";
    add(all, "entries", help, gauges("state", count));
    registry
}

fn add<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

fn add_default<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    add(registry, name, help, M::default())
}

/// Counters by one label, every series at zero: an alert on a missing one would stay silent.
fn counters(label: &'static str, values: impl IntoIterator<Item = &'static str>) -> Counters<1> {
    let family = Counters::default();
    values.into_iter().for_each(|value| bump(&family, [(label, value)], 0));
    family
}

fn bump<const N: usize>(family: &Counters<N>, labels: Labels<N>, count: u64) {
    family.get_or_create(&labels).inc_by(count);
}

fn gauges(
    label: &'static str,
    counts: impl IntoIterator<Item = (&'static str, u64)>,
) -> Family<Labels<1>, Gauge> {
    let family = Family::<Labels<1>, Gauge>::default();
    for (value, count) in counts {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        family.get_or_create(&[(label, value)]).set(count);
    }
    family
}

/// Names of the kinds of errors. One that is missing here is counted all the same.
fn error_kinds() -> [&'static str; 10] {
    let wait = None;
    [
        ErrorKind::RateLimited { wait },
        ErrorKind::QuotaExhausted,
        ErrorKind::Unavailable { wait },
        ErrorKind::TooLong,
        ErrorKind::Unsupported,
        ErrorKind::Unauthorised,
        ErrorKind::NotFound,
        ErrorKind::BadRequest,
        ErrorKind::Stale,
        ErrorKind::Cancelled,
    ]
    .map(|kind| kind.name())
}

fn secs(at: Timestamp) -> f64 {
    at.0 as f64 / 1e3
}
