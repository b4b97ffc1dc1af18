//! HTTP/1.1 listener that only this machine reaches, for requests that carry a token. What it serves is the caller's.

use hyper::body::{Body, Bytes, Incoming};
use hyper::header::AUTHORIZATION;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Maximum connections at a time; others wait.
const CONNECTIONS_MAX: usize = 64;
/// Maximum wait for a request's head.
const HEAD_WAIT_MAX: Duration = Duration::from_secs(10);
/// Pause after a failed accept, as when this process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct LoopbackListener {
    tcp: TcpListener,
    addr: SocketAddr,
}

/// Access to a listener: the path that it serves, and the token of its clients.
pub(crate) struct Access {
    pub path: &'static str,
    pub token: String,
}

impl Access {
    /// The status of a refusal, if the request has no access.
    fn refusal<B>(&self, request: &Request<B>) -> Option<StatusCode> {
        let sent = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes());
        let sent = sent.and_then(|value| value.strip_prefix(b"Bearer ")).unwrap_or_default();
        // Hashes are compared in constant time.
        if blake3::hash(sent) != blake3::hash(self.token.as_bytes()) {
            return Some(StatusCode::UNAUTHORIZED);
        }
        (request.uri().path() != self.path).then_some(StatusCode::NOT_FOUND)
    }
}

impl LoopbackListener {
    /// Listens on `addr`; port 0 takes any that is free. Needs a tokio runtime.
    ///
    /// # Errors
    /// One line, if others could reach the address or it cannot be listened on.
    pub(crate) async fn bind(addr: SocketAddr) -> Result<LoopbackListener, String> {
        if !addr.ip().is_loopback() {
            return Err(format!("{addr}: the network can reach it: expected 127.0.0.1 or [::1]"));
        }
        let bound = TcpListener::bind(addr).await.and_then(|tcp| Ok((tcp.local_addr()?, tcp)));
        let (addr, tcp) = bound.map_err(|error| format!("{addr}: {error}: choose another port"))?;
        Ok(LoopbackListener { tcp, addr })
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Answers requests until `until` is cancelled; open connections are cut off.
    pub(crate) async fn serve<F, R, B>(self, access: Access, answer: F, until: CancellationToken)
    where
        F: Fn(Request<Incoming>) -> R + Clone + Send + 'static,
        R: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes> + Default + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let access = Arc::new(access);
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = until.cancelled() => break,
                Some(_) = connections.join_next() => {}
                accepted = self.tcp.accept() => {
                    let Ok((stream, _)) = accepted else {
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                        continue;
                    };
                    let (access, answer) = (Arc::clone(&access), answer.clone());
                    let slots = Arc::clone(&slots);
                    connections.spawn(async move {
                        let Ok(_slot) = slots.acquire().await else { return };
                        let service = service_fn(move |request| {
                            let allowed = access.refusal(&request).map_or_else(|| Ok(answer(request)), Err);
                            async move {
                                Ok::<_, Infallible>(match allowed {
                                    Ok(answered) => answered.await,
                                    Err(status) => refused(status),
                                })
                            }
                        });
                        let mut http = http1::Builder::new();
                        http.timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT_MAX);
                        // A peer that goes away is no failure of ours.
                        let _ = http.serve_connection(TokioIo::new(stream), service).await;
                    });
                }
            }
        }
    }
}

fn refused<B: Default>(status: StatusCode) -> Response<B> {
    let mut response = Response::new(B::default());
    *response.status_mut() = status;
    response
}
