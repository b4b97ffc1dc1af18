//! HTTP/1.1 listener for an axum router. Every resource of a connection is bounded, so that slow clients cannot lock
//! out others. Authorization is up to the router.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::ServiceExt;

/// Maximum number of open connections. A further connection closes the oldest idle one; if none is idle, it waits
/// until one is.
const CONNECTIONS_MAX: usize = 256;
/// Maximum wait for the head of a request, including the first byte of the next request.
const HEAD_WAIT_MAX: Duration = Duration::from_secs(5);
const HEAD_BYTES_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 64;
/// Initial time for a request body, and the minimum transfer rate that extends it.
const BODY_WAIT: Duration = Duration::from_secs(10);
const BODY_BYTES_PER_SEC_MIN: u32 = 8 * 1024;
/// Maximum time without write progress, for clients that stop reading the response.
const WRITE_WAIT_MAX: Duration = Duration::from_secs(5);
/// Limits on draining a refused body. A client that sends the whole body first can then still read the response.
const REST_WAIT_MAX: Duration = Duration::from_secs(30);
const REST_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Maximum lifetime of a connection, for clients that never finish reading a response.
const CONNECTION_MAX: Duration = Duration::from_secs(3600);
/// Grace period for requests in flight on shutdown.
const STOP_WAIT_MAX: Duration = Duration::from_secs(5);
/// Pause after a failed accept, for example when the process has no file descriptors left.
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

struct Connection {
    task: AbortHandle,
    requests: Requests,
}

impl HttpListener {
    /// Listens on `addr`; port 0 picks a free port. Needs a tokio runtime.
    pub(crate) async fn bind(addr: SocketAddr) -> Result<HttpListener, BindError> {
        let bound = TcpListener::bind(addr).await.and_then(|tcp| Ok((tcp.local_addr()?, tcp)));
        let (addr, tcp) = bound.map_err(|error| BindError { addr, kind: error.kind() })?;
        Ok(HttpListener { tcp, addr })
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves `router` until `until` is cancelled. Requests that were fully received get [`STOP_WAIT_MAX`] to finish.
    /// Dropping the future aborts them.
    pub(crate) async fn serve(self, router: Router, until: CancellationToken) {
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let idle = Arc::new(Notify::new());
        let mut tasks = JoinSet::new();
        let mut by_age: VecDeque<Connection> = VecDeque::new();
        loop {
            let accepted = tokio::select! {
                () = until.cancelled() => break,
                Some(_) = tasks.join_next() => continue,
                accepted = self.tcp.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let slot = until.run_until_cancelled(free_slot(&slots, &mut by_age, &idle)).await;
            let Some(slot) = slot else { break };
            let requests = Requests { under_way: Arc::default(), idle: Arc::clone(&idle) };
            let served = serve_connection(stream, router.clone(), requests.clone(), until.clone());
            let task = tasks.spawn(async move {
                let _slot = slot;
                served.await;
            });
            by_age.push_back(Connection { task, requests });
        }
        drop(self.tcp);
        while tasks.join_next().await.is_some() {}
    }
}

/// Waits for a slot. If none is free, closes the oldest idle connection as soon as there is one.
async fn free_slot(
    slots: &Arc<Semaphore>,
    by_age: &mut VecDeque<Connection>,
    idle: &Notify,
) -> Option<OwnedSemaphorePermit> {
    by_age.retain(|connection| !connection.task.is_finished());
    loop {
        if slots.available_permits() == 0 {
            end_oldest_idle(by_age);
        }
        tokio::select! {
            slot = Arc::clone(slots).acquire_owned() => return slot.ok(),
            () = idle.notified() => {}
        }
    }
}

/// Closes the oldest idle connection, if there is one.
fn end_oldest_idle(by_age: &mut VecDeque<Connection>) {
    let idle = |it: &Connection| it.requests.under_way.load(Ordering::Relaxed) == 0;
    let oldest = by_age.iter().position(idle).and_then(|at| by_age.remove(at));
    oldest.into_iter().for_each(|connection| connection.task.abort());
}

async fn serve_connection(
    stream: TcpStream,
    router: Router,
    requests: Requests,
    until: CancellationToken,
) {
    let of_connection = requests.clone();
    let stop = until.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let under_way = UnderWay::new(&of_connection);
        let body = |body| Body::new(PacedBody::new(body, stop.clone()));
        let answer = router.clone().oneshot(request.map(body));
        Box::pin(async move {
            // The guard lives as long as the body.
            let guarded = |body: Body| {
                body.map_err(move |error| {
                    let _ = &under_way;
                    error
                })
            };
            Ok::<_, std::convert::Infallible>(answer.await?.map(guarded))
        })
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(4 * HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(TimedStream::new(stream, requests.clone())), service);
    // A peer that disconnects is not an error of the server.
    let served = poll_fn(|context| connection.poll_without_shutdown(context));
    match until.run_until_cancelled(timeout(CONNECTION_MAX, served)).await {
        Some(Ok(served)) => {
            // hyper has refused a head that it cannot parse, by a status without a body.
            if served.is_ok() || served.is_err_and(|error| error.is_parse()) {
                let rest = discard_rest(connection.into_parts().io.into_inner().stream);
                let _ = until.run_until_cancelled(timeout(REST_WAIT_MAX, rest)).await;
            }
        }
        Some(Err(_)) => {}
        None => {
            Pin::new(&mut connection).graceful_shutdown();
            let ended = poll_fn(|context| {
                let polled = Pin::new(&mut connection).poll(context);
                let waits = requests.under_way.load(Ordering::Relaxed) > 0;
                if polled.is_pending() && waits { Poll::Pending } else { Poll::Ready(()) }
            });
            let _ = timeout(STOP_WAIT_MAX, ended).await;
        }
    }
}

/// Shuts down the write side and drains the read side. Closing a socket with unread bytes resets
/// the connection, and the client may then lose the response.
async fn discard_rest(mut stream: TcpStream) -> io::Result<()> {
    poll_fn(|context| Pin::new(&mut stream).poll_shutdown(context)).await?;
    let (mut buffer, mut rest) = (vec![0; 64 * 1024], REST_BYTES_MAX);
    while rest > 0 {
        stream.readable().await?;
        match stream.try_read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => rest = rest.saturating_sub(read as u64),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Stream whose writes fail when the peer accepts nothing for [`WRITE_WAIT_MAX`].
struct TimedStream {
    stream: TcpStream,
    requests: Requests,
    /// Timeout of a blocked write. Its guard keeps the connection busy even if the handler is done.
    blocked: Option<(Pin<Box<Sleep>>, UnderWay)>,
}

impl TimedStream {
    fn new(stream: TcpStream, requests: Requests) -> TimedStream {
        TimedStream { stream, requests, blocked: None }
    }

    fn timed<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.blocked = None;
            return written;
        }
        let (wait, _) = self.blocked.get_or_insert_with(|| {
            (Box::pin(sleep(WRITE_WAIT_MAX)), UnderWay::new(&self.requests))
        });
        wait.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.timed(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Counter of a connection's requests in flight.
#[derive(Clone)]
struct Requests {
    under_way: Arc<AtomicU32>,
    /// Notifies the listener when a request ends.
    idle: Arc<Notify>,
}

/// Guard that counts a request as in flight until its response is sent.
struct UnderWay(Requests);

impl UnderWay {
    fn new(requests: &Requests) -> UnderWay {
        requests.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay(requests.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
        self.0.idle.notify_one();
    }
}

/// Reason to stop reading a request body.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GivenUp {
    #[error("the body came at less than {BODY_BYTES_PER_SEC_MIN} bytes a second")]
    TooSlow,
    #[error("the server ends before the body does")]
    Stopping,
}

/// Request body that fails when it is too slow or the server shuts down.
struct PacedBody {
    body: Incoming,
    deadline: Pin<Box<Sleep>>,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl PacedBody {
    fn new(body: Incoming, stop: CancellationToken) -> PacedBody {
        let stop = Box::pin(stop.cancelled_owned());
        PacedBody { body, deadline: Box::pin(sleep(BODY_WAIT)), stop }
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
                // Excludes time spent by the handler; unused time does not accumulate.
                let now = Instant::now();
                let deadline = self.deadline.deadline().max(now) + earned;
                self.deadline.as_mut().reset(deadline.min(now + BODY_WAIT));
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending if self.stop.as_mut().poll(context).is_ready() => {
                Poll::Ready(Some(Err(GivenUp::Stopping.into())))
            }
            Poll::Pending => {
                self.deadline.as_mut().poll(context).map(|()| Some(Err(GivenUp::TooSlow.into())))
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

#[cfg(test)]
mod tests;
