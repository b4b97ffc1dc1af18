//! Limits of a source, its URL, which is displayed without the login, and its errors: a kind, and one
//! line with advice, without passwords and message text.

use async_nats::jetstream::{Error as ServerError, ErrorCode};
use async_nats::{ConnectError, ConnectErrorKind};
use percent_encoding::percent_decode_str;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// Durable consumer shared by all workers on a stream.
pub(crate) const CONSUMER: &str = "annalist";
/// Stream of dead letters, created if no other holds their subject, `annalist.dead.STREAM`.
pub(crate) const DEAD_STREAM: &str = "annalist-dead";

/// Maximum number of messages per fetch, unacknowledged while the worker enqueues them.
pub(crate) const BATCH_MAX: usize = 256;
/// Maximum number of bytes per fetch after the first message.
pub(super) const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum wait of a fetch, so that an unresponsive server is noticed.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(30);
/// Minimum wait; the server treats zero as infinite.
pub(super) const WAIT_MIN: Duration = Duration::from_millis(10);
/// Extra time for the reply after the wait.
pub(super) const REPLY_GRACE: Duration = Duration::from_secs(2);
/// Wait for each further available message; the server is silent when workers hold the maximum.
pub(super) const NEXT_MESSAGE_WAIT_MAX: Duration = Duration::from_secs(1);

/// Redelivery delay of a message whose dead letter was not stored; an operator has to make room.
pub(super) const REJECT_RETRY: Duration = Duration::from_secs(30);
pub(crate) const REASON_BYTES_MAX: usize = 512;
/// Deduplication window of dead letters: covers a day's outage between storing a letter and ending
/// its message.
pub(super) const DEAD_WINDOW: Duration = Duration::from_secs(86_400);
/// Ping interval; after two unanswered pings the connection counts as lost.
pub(super) const PING_EVERY: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SourceConfig {
    /// Connect timeout.
    pub connect_timeout: Duration,
    /// Request timeout; electing a new leader takes a cluster less.
    pub request_timeout: Duration,
    /// Deadline after which another worker gets a message; an existing consumer keeps its own.
    pub ack_wait: Duration,
    /// Maximum unacknowledged messages of all workers; an existing consumer keeps its own.
    pub ack_pending_max: u32,
}

impl Default for SourceConfig {
    fn default() -> SourceConfig {
        SourceConfig {
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(5),
            ack_wait: Duration::from_secs(60),
            ack_pending_max: 4096,
        }
    }
}

const PORT: u16 = 4222;
/// Maximum length of a stream's name, set by the server.
const STREAM_BYTES_MAX: usize = 255;

#[derive(Clone, Eq, PartialEq)]
pub(super) enum Login {
    None,
    /// NATS' form for a token: a user without password in the URL.
    Token(String),
    User {
        name: String,
        password: String,
    },
}

/// URL of a stream: `nats://[user:password@]host[:port]/STREAM`, or `tls://`.
///
/// `Display` and `Debug` omit user and password.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct NatsUrl {
    tls: bool,
    host: String,
    port: u16,
    stream: String,
    pub(super) login: Login,
}

impl NatsUrl {
    pub(crate) fn parse(text: &str) -> Result<NatsUrl, NatsError> {
        NatsUrl::read(text).map_err(|why| NatsError {
            kind: NatsErrorKind::BadUrl(why),
            doing: "reading an address of NATS",
            at: String::new(),
            source: None,
        })
    }

    fn read(text: &str) -> Result<NatsUrl, &'static str> {
        let url = reqwest::Url::parse(text.trim()).map_err(|_| "it is not a URL")?;
        let tls = match url.scheme() {
            "nats" => false,
            "tls" => true,
            _ => return Err("it begins with neither nats:// nor tls://"),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or("it has no host")?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err("it has a `?` or `#`, which is written %3F or %23 in a password");
        }
        let plain = |part: &str| {
            let decoded = percent_decode_str(part).decode_utf8();
            decoded.map(String::from).map_err(|_| "a part of it is not UTF-8")
        };
        let (name, password) = (plain(url.username())?, url.password().map(plain).transpose()?);
        let login = match password {
            Some(password) => Login::User { name, password },
            None if name.is_empty() => Login::None,
            None => Login::Token(name),
        };
        let stream = plain(url.path().strip_prefix('/').unwrap_or_default())?;
        stream_name(&stream)?;
        let port = url.port().unwrap_or(PORT);
        Ok(NatsUrl { tls, host: host.to_owned(), port, stream, login })
    }

    pub(crate) fn stream(&self) -> &str {
        &self.stream
    }

    pub(super) fn tls(&self) -> bool {
        self.tls
    }

    /// URL of the server, without login and stream.
    pub(super) fn server(&self) -> String {
        let scheme = if self.tls { "tls" } else { "nats" };
        format!("{scheme}://{}:{}", self.host, self.port)
    }
}

fn stream_name(name: &str) -> Result<(), &'static str> {
    let unlawful = |c: char| ".*>/\\".contains(c) || c.is_whitespace() || c.is_control();
    if name.is_empty() {
        return Err("it names no stream");
    }
    if name.len() > STREAM_BYTES_MAX {
        return Err("the stream's name is longer than 255 bytes");
    }
    if name.contains(unlawful) {
        return Err(
            "a stream's name has no `.`, `*`, `>`, `/`, `\\`, no space and no control sign",
        );
    }
    Ok(())
}

impl fmt::Display for NatsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.server(), self.stream)
    }
}

impl fmt::Debug for NatsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NatsUrl({self})")
    }
}

/// Pause before a retry; the client reconnects within four seconds.
const RETRY: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum NatsErrorKind {
    /// Not the URL of a stream, with the reason.
    #[error(
        "{0}; expected nats://HOST/STREAM or nats://USER:PASSWORD@HOST:PORT/STREAM, or tls:// \
         for an encrypted one"
    )]
    BadUrl(&'static str),
    #[error("the server denies access; check the user, password and permissions")]
    Unauthorised,
    #[error("it has no JetStream; start it with `-js`, or enable JetStream for this account")]
    NoJetStream,
    #[error(
        "there is no stream {stream}; create it with `nats stream add {stream}`, or name another"
    )]
    NoStream { stream: String },
    /// The existing consumer's settings could lose messages or never deliver them.
    #[error(
        "the consumer {consumer} of stream {stream} has other settings: {difference}; fix it, \
         or remove it with `nats consumer rm {stream} {consumer}`, and it is created again"
    )]
    OtherConsumer { stream: String, consumer: &'static str, difference: String },
    /// No stream would keep dead letters; contains the reason and advice.
    #[error("dead letters cannot be kept: {0}")]
    NoDeadLetterStream(String),
    /// A dead letter was not stored, so its message was not ended and is redelivered.
    #[error(
        "the dead letter was not stored, so the message is redelivered; check that a stream with free \
         space holds {subject}, and that the server's max_payload is 4 KB larger than the message"
    )]
    DeadLetterNotStored { subject: String },
    /// No reply in time; the connection recovers by itself.
    #[error("no answer; check that the server is running, and try again")]
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

    pub(super) fn caused(self, source: impl Error + Send + Sync + 'static) -> NatsError {
        NatsError { source: Some(Box::new(source)), ..self }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::Gate;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, shown: &str, login: Login) {
        let url = NatsUrl::parse(text).unwrap();
        assert_eq!(url.to_string(), shown);
        assert!(url.login == login, "another login in {shown}");
        assert_eq!(url.to_string(), NatsUrl::parse(shown).unwrap().to_string());
    }

    #[test]
    fn server_login_and_stream_are_read_and_the_login_is_not_shown() {
        check("nats://here/WORK", "nats://here:4222/WORK", Login::None);
        check(" tls://[::1]:99/W-1_x ", "tls://[::1]:99/W-1_x", Login::None);
        let user = Login::User { name: "me".to_owned(), password: "a/b@c?".to_owned() };
        check("nats://me:a%2Fb%40c%3F@here:1/W", "nats://here:1/W", user);
        check("nats://t0ken@here/W", "nats://here:4222/W", Login::Token("t0ken".to_owned()));
    }

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        let said = NatsUrl::parse(text).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
        assert!(said.contains("nats://HOST/STREAM or nats://USER:PASSWORD@HOST:"), "{said}");
        assert_eq!(Gate::new(&[]).redact(&said).as_str(), said, "nothing of ours is masked");
        assert!(!said.contains('\n') && !said.contains("hush"), "{said}");
    }

    #[test]
    fn wrong_address_is_one_line_that_says_what_was_expected() {
        refused("", "not a URL");
        refused("hush", "not a URL");
        refused("nats://me:hush:77777777/W", "not a URL");
        refused("http://me:hush@here/W", "neither nats:// nor tls://");
        refused("nats://me:hush@here", "names no stream");
        refused("nats://me:hush@here/", "names no stream");
        refused("nats://me:hush@/W", "not a URL");
        refused("nats:/W", "no host");
        refused("nats://me:hush@here/a.b", "a stream's name");
        refused("nats://me:hush@here/W/x", "a stream's name");
        refused("nats://me:hush@here/W%0Ax", "a stream's name");
        refused("nats://me:1#hush@here/W", "%23");
        refused("nats://me:hush@here/W?x=1", "%3F");
        refused("nats://me:hush%FF@here/W", "not UTF-8");
        refused(&format!("nats://here/{}", "W".repeat(256)), "255 bytes");
    }

    proptest! {
        #[test]
        fn no_text_breaks_it_and_no_error_repeats_a_password(password in "[A-Z]{8}", rest in ".*") {
            let text = format!("nats://me:{password}{rest}");
            let shown = match NatsUrl::parse(&text) {
                Ok(url) => format!("{url} {url:?}"),
                Err(error) => format!("{error} {error:?}"),
            };
            prop_assert!(!shown.contains(&password), "{}", shown);
        }
    }
}
