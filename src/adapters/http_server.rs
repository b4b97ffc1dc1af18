//! HTTP/1.1 listener for an axum router. Everything about a connection is bounded, so that slow clients never keep out
//! others; who may ask for what is the router's matter.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::error::Error;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Maximum connections at a time. One more ends the oldest that waits for a request; if none does, it waits itself.
const CONNECTIONS_MAX: usize = 256;
/// Maximum wait for a request's head, and for the next request of a connection.
const HEAD_WAIT_MAX: Duration = Duration::from_secs(5);
/// Maximum size of a request's head.
const HEAD_BYTES_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 64;
/// Time for a request's body, and the rate that earns it more.
const BODY_WAIT: Duration = Duration::from_secs(10);
const BODY_BYTES_PER_SEC_MIN: u32 = 4 * 1024;
/// Maximum duration of a connection, for clients that never read an answer.
const CONNECTION_MAX: Duration = Duration::from_secs(3600);
/// Maximum wait for requests under way at the end.
const STOP_WAIT_MAX: Duration = Duration::from_secs(5);
/// Pause after a failed accept, as when this process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("cannot listen on {addr}: {kind}; choose another address or port")]
pub(crate) struct BindError {
    addr: SocketAddr,
    kind: io::ErrorKind,
}

#[derive(Debug)]
pub(crate) struct HttpListener {
    tcp: TcpListener,
    addr: SocketAddr,
}

/// A connection, for its end.
struct Connection {
    task: AbortHandle,
    requests: Arc<AtomicU32>,
}

impl HttpListener {
    /// Listens on `addr`; port 0 takes any that is free. Needs a tokio runtime.
    pub(crate) async fn bind(addr: SocketAddr) -> Result<HttpListener, BindError> {
        let bound = TcpListener::bind(addr).await.and_then(|tcp| Ok((tcp.local_addr()?, tcp)));
        let (addr, tcp) = bound.map_err(|error| BindError { addr, kind: error.kind() })?;
        Ok(HttpListener { tcp, addr })
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves `router` until `until` is cancelled; requests under way may end for [`STOP_WAIT_MAX`]. Dropping the
    /// future cuts them off.
    pub(crate) async fn serve(self, router: Router, until: CancellationToken) {
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut tasks = JoinSet::new();
        let mut by_age: VecDeque<Connection> = VecDeque::new();
        loop {
            by_age.retain(|connection| !connection.task.is_finished());
            if slots.available_permits() == 0 {
                end_oldest_idle(&mut by_age);
            }
            // The slot comes first: a connection that is accepted is served.
            let accepted = async {
                let slot = Arc::clone(&slots).acquire_owned().await;
                (slot, self.tcp.accept().await)
            };
            tokio::select! {
                () = until.cancelled() => break,
                Some(_) = tasks.join_next() => {}
                (slot, accepted) = accepted => {
                    let Ok((stream, _)) = accepted else {
                        sleep(ACCEPT_PAUSE).await;
                        continue;
                    };
                    let requests = Arc::new(AtomicU32::new(0));
                    let served =
                        serve_connection(stream, router.clone(), Arc::clone(&requests), until.clone());
                    let task = tasks.spawn(async move {
                        let _slot = slot;
                        served.await;
                    });
                    by_age.push_back(Connection { task, requests });
                }
            }
        }
        drop(self.tcp);
        while tasks.join_next().await.is_some() {}
    }
}

/// Ends the oldest connection that waits for a request, if there is one.
fn end_oldest_idle(by_age: &mut VecDeque<Connection>) {
    let idle = |it: &Connection| it.requests.load(Ordering::Relaxed) == 0;
    let oldest = by_age.iter().position(idle).and_then(|at| by_age.remove(at));
    oldest.into_iter().for_each(|connection| connection.task.abort());
}

async fn serve_connection(
    stream: TcpStream,
    router: Router,
    requests: Arc<AtomicU32>,
    until: CancellationToken,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let under_way = UnderWay::new(&requests);
        let answer = router.clone().oneshot(request.map(|body| Body::new(PacedBody::new(body))));
        async move {
            Ok::<_, std::convert::Infallible>(
                answer.await?.map(|body| AnswerBody { body, _under_way: under_way }),
            )
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(4 * HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    // A peer that goes away is no failure of ours.
    let ended = until.run_until_cancelled(timeout(CONNECTION_MAX, connection.as_mut())).await;
    if ended.is_none() {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(STOP_WAIT_MAX, connection).await;
    }
}

/// Counts a request of a connection until its answer was sent.
struct UnderWay(Arc<AtomicU32>);

impl UnderWay {
    fn new(requests: &Arc<AtomicU32>) -> UnderWay {
        requests.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(requests))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Body of an answer.
struct AnswerBody {
    body: Body,
    _under_way: UnderWay,
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A request's body came too slowly.
#[derive(Debug, thiserror::Error)]
#[error("the body came at less than {BODY_BYTES_PER_SEC_MIN} bytes a second")]
pub(crate) struct TooSlow;

/// Body of a request, which fails with [`TooSlow`] when its time is up.
struct PacedBody {
    body: Incoming,
    deadline: Pin<Box<Sleep>>,
}

impl PacedBody {
    fn new(body: Incoming) -> PacedBody {
        PacedBody { body, deadline: Box::pin(sleep(BODY_WAIT)) }
    }
}

impl HttpBody for PacedBody {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len) as f64;
                let earned = Duration::from_secs_f64(bytes / f64::from(BODY_BYTES_PER_SEC_MIN));
                // What was read slowly here is not the client's fault, and nothing is saved up.
                let now = Instant::now();
                let deadline = self.deadline.deadline().max(now) + earned;
                self.deadline.as_mut().reset(deadline.min(now + BODY_WAIT));
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => {
                self.deadline.as_mut().poll(context).map(|()| Some(Err(TooSlow.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
