//! Metrics of a worker: `/metrics` for Prometheus and `/healthz` for a supervisor. Contains names,
//! kinds and counts only: no session ids, namespaces or conversation text. `docs/metrics.md` lists
//! every series.

mod meters;

#[cfg(test)]
mod checker_test;
#[cfg(test)]
mod tests;

pub use meters::Outcome;
pub(crate) use meters::{Jobs, Meters, Snapshot};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Maximum wait for the store's numbers. Prometheus' default scrape timeout is 10 seconds.
const SNAPSHOT_WAIT_MAX: Duration = Duration::from_secs(2);
/// Cache lifetime of the store's numbers, or of the failure to read them.
const SNAPSHOT_KEPT: Duration = Duration::from_secs(1);
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
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(line);
    }

    fn reason(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
