//! Errors of NATS: a kind, and one line that says what to do, without passwords and words of messages.

use async_nats::jetstream::{Error as ServerError, ErrorCode};
use async_nats::{ConnectError, ConnectErrorKind};
use std::error::Error;
use std::time::Duration;

/// Pause before a retry; the client reconnects within four seconds.
const RETRY: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum NatsErrorKind {
    /// It is not the address of a stream; says why.
    #[error(
        "{0}; expected nats://[user:password@]host[:port]/STREAM, or tls:// for an encrypted one"
    )]
    BadUrl(&'static str),
    /// The server does not let this user in, or not do this.
    #[error("the server does not allow it; check user, password and permissions")]
    Unauthorised,
    /// The server speaks, but not JetStream.
    #[error("it has no JetStream; start it with `-js`, or enable JetStream for this account")]
    NoJetStream,
    /// There is no stream of that name.
    #[error(
        "there is no stream {stream}; make it with `nats stream add {stream}`, or name another"
    )]
    NoStream { stream: String },
    /// The consumer is there, but set up so that messages could be lost or never seen.
    #[error(
        "the consumer {consumer} of stream {stream} is set up otherwise: {difference}; fix it, \
         or remove it with `nats consumer rm {stream} {consumer}` and it is made again"
    )]
    OtherConsumer {
        stream: String,
        consumer: &'static str,
        /// Every difference: what it is, what it should be.
        difference: String,
    },
    /// No stream would keep dead letters; says why, and what to do.
    #[error("dead letters cannot be kept: {0}")]
    NoDeadLetters(String),
    /// A dead letter was not stored, so its message was not ended and comes back.
    #[error(
        "the dead letter was not stored, so the message comes back; see that a stream holds \
         {subject} with room, and that the server's max_payload leaves 4 KB beside the message"
    )]
    NotKept { subject: String },
    /// No answer in time; the connection mends itself.
    #[error("no answer; is the server up? Trying again is right")]
    Unavailable,
    /// Anything else, told by the cause.
    #[error("NATS failed; the cause is below")]
    Other,
}

/// A failed operation: what was done, where, what is wrong, what to do.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {at}{}{kind}", if at.is_empty() { "" } else { ": " })]
pub(crate) struct NatsError {
    pub kind: NatsErrorKind,
    pub doing: &'static str,
    /// Server and stream; empty where the address could not be read.
    pub at: String,
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl NatsError {
    /// Pause before a retry; `None` where an operator has to do something first.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        (self.kind == NatsErrorKind::Unavailable).then_some(RETRY)
    }
}

pub(super) fn kind_of_connect(error: &ConnectError) -> NatsErrorKind {
    match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            NatsErrorKind::Unauthorised
        }
        ConnectErrorKind::Dns
        | ConnectErrorKind::TimedOut
        | ConnectErrorKind::Io
        | ConnectErrorKind::MaxReconnects => NatsErrorKind::Unavailable,
        ConnectErrorKind::ServerParse | ConnectErrorKind::Tls => NatsErrorKind::Other,
    }
}

/// Kind of an error that JetStream answered about `stream`.
pub(super) fn kind_of_answer(error: &ServerError, stream: &str) -> NatsErrorKind {
    let code = error.error_code();
    let off = [ErrorCode::JETSTREAM_NOT_ENABLED, ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT];
    if code == ErrorCode::STREAM_NOT_FOUND {
        NatsErrorKind::NoStream { stream: stream.to_owned() }
    } else if off.contains(&code) {
        NatsErrorKind::NoJetStream
    } else if error.code() == 503 {
        // Everything that JetStream cannot do for now: no leader, starting up, shutting down.
        NatsErrorKind::Unavailable
    } else {
        NatsErrorKind::Other
    }
}

impl NatsError {
    pub(super) fn caused(self, source: impl Error + Send + Sync + 'static) -> NatsError {
        NatsError { source: Some(Box::new(source)), ..self }
    }
}
