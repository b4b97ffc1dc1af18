//! HTTP/1.1 listener for `/metrics` and `/healthz`. One request a connection, everything bounded; errors
//! of a peer are not logged.

use super::meters::{Meters, Snapshot};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// Maximum wait for the store's numbers. Prometheus gives a page 10 seconds by default.
const SNAPSHOT_WAIT_MAX: Duration = Duration::from_secs(2);
/// Time for which the store's numbers are cached, or the failure to read them.
pub(super) const SNAPSHOT_KEPT: Duration = Duration::from_secs(1);
/// Maximum connections at a time; one more ends the oldest, so that slow clients never keep out others.
pub(super) const CONNECTIONS_MAX: usize = 128;
/// Maximum wait for a request's head.
const HEAD_WAIT_MAX: Duration = Duration::from_secs(5);
/// Maximum duration of a connection, the reading of the page included.
const CONNECTION_MAX: Duration = Duration::from_secs(20);
/// Maximum size of a request's head; a scraper sends a few hundred bytes. The body is never read.
const HEAD_BYTES_MAX: usize = 8 * 1024;
const HEADERS_MAX: usize = 64;
/// Pause after a failed accept, as when this process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Maximum length of the reason in `/healthz`.
const REASON_BYTES_MAX: usize = 300;

/// OpenMetrics 1.0, which `prometheus-client` writes.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

type Asked = Pin<Box<dyn Future<Output = Result<Snapshot, String>> + Send>>;

/// Health of the process; good at first.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<Option<String>>);

impl Health {
    /// Marks the process as unhealthy: one line without words of a conversation, cut at 300 bytes.
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
    /// Pages of `meters`, `health`, and what `ask` counts in the store when a page is read. `ask` may
    /// fail and may be dropped while it waits; its error is logged, so it holds no words.
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

    /// The page for Prometheus, in twice [`SNAPSHOT_WAIT_MAX`] at the latest, whatever the store does.
    pub(super) async fn metrics(&self) -> Result<String, fmt::Error> {
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
        // Logged once for each outage, not for each page.
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

#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("cannot serve metrics on {addr}: {kind}; choose another address or port")]
pub(crate) struct BindError {
    pub(super) addr: SocketAddr,
    pub(super) kind: io::ErrorKind,
}

#[derive(Debug)]
pub(crate) struct Listener {
    tcp: TcpListener,
    addr: SocketAddr,
}

impl Listener {
    /// Listens on `addr`; port 0 takes any that is free. Needs a tokio runtime.
    pub(crate) async fn bind(addr: SocketAddr) -> Result<Listener, BindError> {
        let bound = TcpListener::bind(addr).await.and_then(|tcp| Ok((tcp.local_addr()?, tcp)));
        let (addr, tcp) = bound.map_err(|error| BindError { addr, kind: error.kind() })?;
        Ok(Listener { tcp, addr })
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves `pages` until `until` is cancelled or the future is dropped; open connections are cut off.
    pub(crate) async fn serve(self, pages: StatusPages, until: CancellationToken) {
        let pages = Arc::new(pages);
        let mut connections = JoinSet::new();
        let mut by_age: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            tokio::select! {
                () = until.cancelled() => break,
                Some(_) = connections.join_next() => {}
                accepted = self.tcp.accept() => {
                    match accepted {
                        Ok((stream, _)) => {
                            by_age.retain(|connection| !connection.is_finished());
                            if CONNECTIONS_MAX <= by_age.len()
                                && let Some(oldest) = by_age.pop_front()
                            {
                                oldest.abort();
                            }
                            let connection = serve_connection(stream, Arc::clone(&pages));
                            by_age.push_back(connections.spawn(connection));
                        }
                        Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                    }
                }
            }
        }
    }
}

async fn serve_connection(stream: TcpStream, pages: Arc<StatusPages>) {
    let answer = service_fn(move |request| {
        let pages = Arc::clone(&pages);
        async move { Ok::<_, Infallible>(answer(&request, &pages).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(2 * HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        // An idle connection would take the slot of another client.
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer);
    let _ = timeout(CONNECTION_MAX, connection).await;
}

async fn answer(request: &Request<Incoming>, pages: &StatusPages) -> Response<String> {
    let path = request.uri().path();
    if !matches!(path, "/metrics" | "/healthz") {
        return page(StatusCode::NOT_FOUND, PLAIN, "not found: /metrics, /healthz\n".to_owned());
    }
    // hyper sends no body in answer to HEAD.
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = page(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "GET or HEAD\n".to_owned());
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    if path == "/healthz" {
        return match pages.health.reason() {
            None => page(StatusCode::OK, PLAIN, "ok\n".to_owned()),
            Some(reason) => page(StatusCode::SERVICE_UNAVAILABLE, PLAIN, format!("{reason}\n")),
        };
    }
    match pages.metrics().await {
        Ok(text) => page(StatusCode::OK, OPEN_METRICS, text),
        Err(_) => page(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, "no page\n".to_owned()),
    }
}

fn page(status: StatusCode, content_type: &'static str, body: String) -> Response<String> {
    let mut page = Response::new(body);
    *page.status_mut() = status;
    page.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    page
}
