//! HTTP/1.1 for two pages. One request a connection, everything bounded, nothing read beyond a request's
//! head; what a peer does wrong is its own affair and is not logged.

use super::panel::Panel;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Connections that are served at once; more wait in the system's queue. A few scrapers and a person.
const CONNECTIONS_MAX: usize = 32;
/// How long a request's head may take to arrive: it fits one packet.
const HEAD_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long a connection may take in all, the reading of the page included.
const CONNECTION_MAX: Duration = Duration::from_secs(20);
/// The largest head of a request, in bytes: a scraper sends a few hundred. Its body is never read.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// The most headers of a request; a scraper sends ten.
const HEADERS_MAX: usize = 64;
/// The pause after a connection could not be taken, as when this process has no files left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const _: () = assert!(
    HEAD_WAIT_MAX.as_secs() + 2 * super::SNAPSHOT_WAIT_MAX.as_secs() < CONNECTION_MAX.as_secs()
);

/// OpenMetrics 1.0, what `prometheus-client` writes.
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// Why nobody can be listened to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BindErrorKind {
    /// Somebody listens there already.
    InUse,
    /// This user may not listen there.
    Forbidden,
    /// The address is none of this machine's.
    NotHere,
    /// Anything else.
    Other(io::ErrorKind),
}

/// An address that cannot be listened on.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("cannot serve metrics on {addr}: {}", kind.mend())]
pub struct BindError {
    /// The address that was asked for.
    pub addr: SocketAddr,
    /// Why.
    pub kind: BindErrorKind,
}

impl BindErrorKind {
    fn mend(self) -> String {
        match self {
            BindErrorKind::InUse => {
                "the address is in use by another process; choose another port, or 0 for any that \
                 is free"
                    .to_owned()
            }
            BindErrorKind::Forbidden => {
                "this user may not listen there; choose a port from 1024 up".to_owned()
            }
            BindErrorKind::NotHere => {
                "no interface of this machine has the address; 127.0.0.1 is for this machine alone, \
                 0.0.0.0 for every network"
                    .to_owned()
            }
            BindErrorKind::Other(kind) => kind.to_string(),
        }
    }
}

/// A port that is listened on.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    addr: SocketAddr,
}

impl Listener {
    /// Listens on `addr`; port 0 takes any that is free. Needs a tokio runtime.
    ///
    /// # Errors
    /// One line that says why, and what to do.
    pub async fn bind(addr: SocketAddr) -> Result<Listener, BindError> {
        let bound = TcpListener::bind(addr).await.and_then(|tcp| Ok((tcp.local_addr()?, tcp)));
        let (addr, tcp) = bound.map_err(|error| BindError { addr, kind: kind_of(&error) })?;
        Ok(Listener { tcp, addr })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Shows `panel` to whoever asks, until `until` is cancelled or the future is dropped; who is being
    /// served then is cut off.
    pub async fn serve(self, panel: Panel, until: CancellationToken) {
        let panel = Arc::new(panel);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = until.cancelled() => break,
                Some(_) = connections.join_next() => {}
                accepted = self.tcp.accept(), if connections.len() < CONNECTIONS_MAX => {
                    match accepted {
                        Ok((stream, _)) => {
                            connections.spawn(attend(stream, Arc::clone(&panel)));
                        }
                        Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                    }
                }
            }
        }
    }
}

fn kind_of(error: &io::Error) -> BindErrorKind {
    let kind = error.kind();
    if kind == io::ErrorKind::AddrInUse {
        BindErrorKind::InUse
    } else if kind == io::ErrorKind::PermissionDenied {
        BindErrorKind::Forbidden
    } else if kind == io::ErrorKind::AddrNotAvailable {
        BindErrorKind::NotHere
    } else {
        BindErrorKind::Other(kind)
    }
}

async fn attend(stream: TcpStream, panel: Arc<Panel>) {
    let answer = service_fn(move |request| {
        let panel = Arc::clone(&panel);
        async move { Ok::<_, Infallible>(answer(&request, &panel).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(2 * HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        // An idle connection would keep the place of somebody who asks.
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer);
    let _ = tokio::time::timeout(CONNECTION_MAX, connection).await;
}

async fn answer(request: &Request<Incoming>, panel: &Panel) -> Response<String> {
    let path = request.uri().path();
    if !matches!(path, "/metrics" | "/healthz") {
        return page(StatusCode::NOT_FOUND, PLAIN, "not found: /metrics, /healthz\n".to_owned());
    }
    // Of HEAD hyper sends no body.
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = page(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "GET or HEAD\n".to_owned());
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    if path == "/healthz" {
        return match panel.illness() {
            None => page(StatusCode::OK, PLAIN, "ok\n".to_owned()),
            Some(reason) => page(StatusCode::SERVICE_UNAVAILABLE, PLAIN, format!("{reason}\n")),
        };
    }
    match panel.page().await {
        Ok(text) => page(StatusCode::OK, OPEN_METRICS, text),
        // Writing to memory does not fail; hyper must be answered all the same.
        Err(_) => page(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, "no page\n".to_owned()),
    }
}

fn page(status: StatusCode, kind: HeaderValue, body: String) -> Response<String> {
    let mut page = Response::new(body);
    *page.status_mut() = status;
    page.headers_mut().insert(CONTENT_TYPE, kind);
    page
}
