//! Metrics of a worker: `/metrics` for Prometheus and `/healthz` for a supervisor. Contains names,
//! kinds and counts only: no session ids, namespaces or conversation text. `docs/metrics.md` lists
//! every series. Counting never blocks.

#[cfg(test)]
mod checker_test;
#[cfg(test)]
mod tests;

use crate::domain::{
    ClaimKind, Coverage, CoverageState, ErrorKind, JobState, RecordState, Timestamp, Usage, Wait,
    named,
};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use parking_lot::Mutex;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Maximum wait for the store's numbers. Prometheus' default scrape timeout is 10 seconds.
const SNAPSHOT_WAIT_MAX: Duration = Duration::from_secs(2);
/// Cache lifetime of the store's numbers, which are counted over all sessions, or of the failure to read them.
const SNAPSHOT_KEPT: Duration = Duration::from_secs(30);
/// Maximum length of the reason in `/healthz`.
const REASON_BYTES_MAX: usize = 300;

/// Content type of OpenMetrics 1.0, which `prometheus-client` writes.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Asked = Pin<Box<dyn Future<Output = Result<Snapshot, String>> + Send>>;

/// Health of the process; initially good.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<Option<String>>);

impl Health {
    /// Marks the process as unhealthy. `reason` has no conversation text and is cut at 300 bytes.
    pub(crate) fn ill(&self, reason: &str) {
        let mut line = reason.replace(char::is_control, " ");
        line.truncate(line.floor_char_boundary(REASON_BYTES_MAX));
        *self.0.lock() = Some(line);
    }

    fn reason(&self) -> Option<String> {
        self.0.lock().clone()
    }
}

pub(crate) struct StatusPages {
    meters: Arc<Meters>,
    health: Arc<Health>,
    ask: Box<dyn Fn() -> Asked + Send + Sync>,
    cached: tokio::sync::Mutex<Option<Cached>>,
}

struct Cached {
    at: Instant,
    snapshot: Option<Arc<Snapshot>>,
}

impl StatusPages {
    /// Creates the pages. `ask` reads the store's numbers for a page; it may fail and may be
    /// dropped. Its error is logged, so it contains no conversation text.
    pub(crate) fn new<F, E>(
        meters: Arc<Meters>,
        health: Arc<Health>,
        ask: impl Fn() -> F + Send + Sync + 'static,
    ) -> StatusPages
    where
        F: Future<Output = Result<Snapshot, E>> + Send + 'static,
        E: fmt::Display,
    {
        let ask = move || -> Asked {
            let asked = ask();
            Box::pin(async move { asked.await.map_err(|error| error.to_string()) })
        };
        StatusPages { meters, health, ask: Box::new(ask), cached: tokio::sync::Mutex::new(None) }
    }

    pub(crate) fn router(self) -> Router {
        let pages = Router::new().route("/metrics", get(metrics)).route("/healthz", get(healthz));
        pages.with_state(Arc::new(self))
    }

    /// Renders the page for Prometheus; takes at most twice [`SNAPSHOT_WAIT_MAX`].
    async fn metrics(&self) -> Result<String, fmt::Error> {
        let snapshot = match timeout(SNAPSHOT_WAIT_MAX, self.cached.lock()).await {
            Ok(mut cached) => self.refresh(&mut cached).await,
            Err(_) => None,
        };
        self.meters.page(snapshot.as_deref())
    }

    async fn refresh(&self, cached: &mut Option<Cached>) -> Option<Arc<Snapshot>> {
        if let Some(cached) = cached.as_ref().filter(|it| it.at.elapsed() < SNAPSHOT_KEPT) {
            return cached.snapshot.clone();
        }
        let asked = timeout(SNAPSHOT_WAIT_MAX, (self.ask)()).await;
        let asked = asked.unwrap_or_else(|_| Err("it took too long".to_owned()));
        // Logged once per outage, not per page.
        if let Err(error) = &asked
            && cached.as_ref().is_none_or(|it| it.snapshot.is_some())
        {
            tracing::warn!(error, "metrics without the store");
        }
        let snapshot = asked.ok().map(Arc::new);
        *cached = Some(Cached { at: Instant::now(), snapshot: snapshot.clone() });
        snapshot
    }
}

async fn healthz(State(pages): State<Arc<StatusPages>>) -> (StatusCode, String) {
    match pages.health.reason() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}

async fn metrics(State(pages): State<Arc<StatusPages>>) -> Response {
    match pages.metrics().await {
        Ok(text) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "no page\n").into_response(),
    }
}

/// Histogram bounds for calls, in seconds: from a small local model to a large reasoning model.
const CALL_SECS: [f64; 12] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0];
/// Result label of an answered call.
const OK: &str = "ok";
/// Kinds of tokens, in the order of [`Usage`].
const TOKENS: [&str; 3] = ["sent", "cached", "answered"];
const RECORD_STATES: [RecordState; 2] = [RecordState::Staged, RecordState::Quarantined];
/// Errors after which a call is retried, by [`ErrorKind::name`].
const RETRIED: [&str; 2] = ["rate-limited", "unavailable"];

type Float = Gauge<f64, AtomicU64>;
type Labels<const N: usize> = [(&'static str, &'static str); N];
/// Counters by label. Label values are constants of this program, never input, which bounds the
/// number of series.
type Counters<const N: usize> = Family<Labels<N>, Counter>;

named! {
    /// Outcome of a claimed job.
    pub Outcome {
        /// Its records are stored, be it none.
        Done = "done",
        /// Its slice had been extracted before; no call was made.
        Known = "known",
        /// It was too long and became two jobs or more.
        Cut = "cut",
        /// It had no answer and is tried again later; the attempt counts.
        Retried = "retried",
        /// It was given back and the attempt does not count: a cap, a rate limit, a stop.
        Released = "released",
        /// It failed for good.
        Dead = "dead",
        /// Its lease expired and another worker took it; nothing of this worker was stored.
        Lost = "lost",
    }
}

/// Counters of a process. Created once and shared.
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
    /// Creates zeroed counters for a process of this `version` that started at `started`.
    pub fn new(version: &'static str, started: Timestamp) -> Meters {
        let mut registry = Registry::with_prefix("annalist");
        let all = &mut registry;
        all.register("build", "The version of this process", Info::new([("version", version)]));
        let start = "Start time of this process, as a Unix timestamp";
        let start: Float = add_default(all, "start_time_seconds", start);
        start.set(secs(started));
        let by_kind = Counters::<2>::default();
        for kind in ClaimKind::ALL {
            for state in RECORD_STATES {
                bump(&by_kind, [("kind", kind.name()), ("state", state.name())], 0);
            }
        }
        let outcomes = counters("outcome", Outcome::ALL.iter().map(|it| it.name()));
        let results = counters("result", [OK].into_iter().chain(error_kinds()));
        let (retries, tokens) = (counters("kind", RETRIED), counters("sort", TOKENS));
        let durations = Histogram::new(CALL_SECS);
        // Help texts that do not fit beside their names.
        let ended = "Outcomes of the claimed jobs; lost counts lost leases";
        let reclaimed = "Expired leases, of any worker, that this worker reclaimed";
        let lasted = "Duration of successful and failed calls";
        let limit = "Current limit of concurrent calls, adapted to the endpoint";
        let last = "Time of the last successful call, as a Unix timestamp; 0 if there was none";
        let spent = "Tokens: sent, the cached part of sent, and answered";
        let cost = "Cost in US dollars, by the configured prices or the price list";
        let stored = "Records stored by this worker, by kind, staged or quarantined";
        Meters {
            claims: add_default(all, "claims", "Jobs claimed by this worker"),
            outcomes: add(all, "outcomes", ended, outcomes),
            expired: add_default(all, "leases_expired", reclaimed),
            calls: add(all, "calls", "Model calls by result: ok or the kind of the error", results),
            call_duration: add(all, "call_duration_seconds", lasted, durations),
            in_flight: add_default(all, "calls_in_flight", "Calls in progress"),
            limit: add_default(all, "concurrency_limit", limit),
            last_success: add_default(all, "last_successful_call_timestamp_seconds", last),
            retries: add(all, "retries", "Repeated calls by kind of error", retries),
            tokens: add(all, "tokens", spent, tokens),
            cost: add_default(all, "cost_usd", cost),
            store_errors: add_default(all, "store_errors", "Failed store operations"),
            enqueued: add_default(all, "slices_enqueued", "Slices enqueued by this process"),
            records: add(all, "records", stored, by_kind),
            registry,
        }
    }

    pub fn claimed(&self, jobs: u64) {
        self.claims.inc_by(jobs);
    }

    pub fn expired(&self, leases: u64) {
        self.expired.inc_by(leases);
    }

    pub fn ended(&self, outcome: Outcome) {
        bump(&self.outcomes, [("outcome", outcome.name())], 1);
    }

    /// Starts a call of the model; the returned meter ends it.
    pub fn call(&self) -> CallMeter<'_> {
        self.in_flight.inc();
        CallMeter { meters: self, begun: Instant::now(), result: ErrorKind::Cancelled.name() }
    }

    /// Counts a failed call that will be retried.
    pub fn retried(&self, kind: &ErrorKind) {
        bump(&self.retries, [("kind", kind.name())], 1);
    }

    pub fn limited(&self, calls: u32) {
        self.limit.set(i64::from(calls));
    }

    pub fn store_failed(&self) {
        self.store_errors.inc();
    }

    pub fn enqueued(&self, slices: u64) {
        self.enqueued.inc_by(slices);
    }

    /// Counts stored records, except those replaced by a newer run.
    pub fn stored(&self, kind: ClaimKind, state: RecordState, records: u64) {
        if RECORD_STATES.contains(&state) {
            bump(&self.records, [("kind", kind.name()), ("state", state.name())], records);
        }
    }

    /// Renders the page: these counters, and the store's numbers if available.
    pub(super) fn page(&self, store: Option<&Snapshot>) -> Result<String, fmt::Error> {
        let mut page = String::new();
        text::encode_registry(&mut page, &self.registry)?;
        text::encode_registry(&mut page, &store_registry(store))?;
        text::encode_eof(&mut page)?;
        Ok(page)
    }
}

/// Call in flight. Counts as cancelled if dropped without a result.
#[must_use = "a call ends when this is dropped"]
pub struct CallMeter<'a> {
    meters: &'a Meters,
    begun: Instant,
    result: &'static str,
}

impl CallMeter<'_> {
    /// Ends a call answered at `now`, with its cost in micro-dollars.
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

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Snapshot {
    /// Jobs by state; absent states have none.
    pub jobs: BTreeMap<JobState, Jobs>,
    /// Waiting jobs by reason; absent reasons have none.
    pub waiting: BTreeMap<Wait, u64>,
    pub coverage: Coverage,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Jobs {
    pub jobs: u64,
    /// Age of the oldest job, where it matters.
    pub oldest: Option<Duration>,
}

/// Series of the store; only `store_up` if the store did not answer.
fn store_registry(snapshot: Option<&Snapshot>) -> Registry {
    let mut registry = Registry::with_prefix("annalist");
    let all = &mut registry;
    let up: Gauge = add_default(all, "store_up", "1 if the store answered");
    up.set(i64::from(snapshot.is_some()));
    let Some(Snapshot { jobs, waiting, coverage }) = snapshot else { return registry };
    let of = |state: &JobState| jobs.get(state).copied().unwrap_or_default();
    // Finished jobs are not counted, because there may be millions.
    let open = JobState::ALL.iter().filter(|it| !matches!(it, JobState::Done | JobState::Cut));
    let count = open.clone().map(|state| (state.name(), of(state).jobs));
    let help = "Jobs in the store that are open, dead or cancelled";
    add(all, "jobs", help, gauges("state", count));
    let help = "Age of the oldest job; 0 if there is none";
    let ages: Family<Labels<1>, Float> = add_default(all, "oldest_job_age_seconds", help);
    for state in open {
        let secs = of(state).oldest.unwrap_or_default().as_secs_f64();
        ages.get_or_create(&[("state", state.name())]).set(secs);
    }
    let held = |reason: &Wait| waiting.get(reason).copied().unwrap_or_default();
    let count = Wait::ALL.iter().map(|reason| (reason.name(), held(reason)));
    add(all, "waiting_jobs", "Waiting jobs by reason", gauges("reason", count));
    let Coverage { extracted, nothing, skipped, failed, pending } = *coverage;
    let count = [
        (CoverageState::Extracted, extracted),
        (CoverageState::Nothing, nothing),
        (CoverageState::Skipped, skipped),
        (CoverageState::Failed, failed),
        (CoverageState::Pending, pending),
    ]
    .map(|(state, count)| (state.name(), count));
    let help = "Entries in the store by state";
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

/// Counters by one label, all initialised to zero: an alert on a missing series would never fire.
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

/// Names of error kinds. A kind that is missing here is counted nevertheless.
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
