//! Errors of NATS: a kind, and one line with advice, without passwords and message text.

use async_nats::jetstream::{Error as ServerError, ErrorCode};
use async_nats::{ConnectError, ConnectErrorKind};
use std::error::Error;
use std::time::Duration;

/// Pause before a retry; the client reconnects within four seconds.
const RETRY: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum NatsErrorKind {
    /// Not the URL of a stream, with the reason.
    #[error(
        "{0}; expected nats://[user:password@]host[:port]/STREAM, or tls:// for an encrypted one"
    )]
    BadUrl(&'static str),
    /// The server denies this user access or the operation.
    #[error("the server does not allow it; check user, password and permissions")]
    Unauthorised,
    /// The server has no JetStream.
    #[error("it has no JetStream; start it with `-js`, or enable JetStream for this account")]
    NoJetStream,
    /// No stream of that name.
    #[error(
        "there is no stream {stream}; make it with `nats stream add {stream}`, or name another"
    )]
    NoStream { stream: String },
    /// The existing consumer's settings could lose messages or never deliver them.
    #[error(
        "the consumer {consumer} of stream {stream} is set up otherwise: {difference}; fix it, \
         or remove it with `nats consumer rm {stream} {consumer}` and it is made again"
    )]
    OtherConsumer {
        stream: String,
        consumer: &'static str,
        /// All differences between actual and expected settings.
        difference: String,
    },
    /// No stream would keep dead letters; contains the reason and advice.
    #[error("dead letters cannot be kept: {0}")]
    NoDeadLetterStream(String),
    /// A dead letter was not stored, so its message was not ended and is redelivered.
    #[error(
        "the dead letter was not stored, so the message comes back; see that a stream holds \
         {subject} with room, and that the server's max_payload leaves 4 KB beside the message"
    )]
    DeadLetterNotStored { subject: String },
    /// No reply in time; the connection recovers by itself.
    #[error("no answer; is the server up? Trying again is right")]
    Unavailable,
    /// Any other error, described by its source.
    #[error("NATS failed; the cause is below")]
    Other,
}

/// Failed operation: what, where, why, and advice.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {at}{}{kind}", if at.is_empty() { "" } else { ": " })]
pub(crate) struct NatsError {
    pub kind: NatsErrorKind,
    pub doing: &'static str,
    /// Server and stream; empty if the URL could not be parsed.
    pub at: String,
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl NatsError {
    /// Pause before a retry; `None` if an operator has to act first.
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

/// Kind of an error that JetStream returned about `stream`.
pub(super) fn kind_of_answer(error: &ServerError, stream: &str) -> NatsErrorKind {
    let code = error.error_code();
    let off = [ErrorCode::JETSTREAM_NOT_ENABLED, ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT];
    if code == ErrorCode::STREAM_NOT_FOUND {
        NatsErrorKind::NoStream { stream: stream.to_owned() }
    } else if off.contains(&code) {
        NatsErrorKind::NoJetStream
    } else if error.code() == 503 {
        // Temporary conditions: no leader, starting up, shutting down.
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
