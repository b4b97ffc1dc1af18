//! The connection: made once, mended by the client beneath, and asked with a bound. It notices when
//! it was lost, because what was asked before that is never answered.

use super::SourceConfig;
use super::error::{NatsError, NatsErrorKind, kind_of_answer, kind_of_connect};
use super::url::{Login, NatsUrl};
use async_nats::jetstream::context::{ContextBuilder, RequestError, RequestErrorKind};
use async_nats::jetstream::response::Response;
use async_nats::jetstream::{Context, Error as ServerError, ErrorCode};
use async_nats::{Client, ClientError, ConnectOptions, Event, ServerError as Complaint};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::future::Future;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How often a silent server is asked whether it is there, in seconds; after two silences the
/// connection counts as lost. A host that vanished closes nothing.
const PING_SECS: u64 = 10;

/// What is known of the connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Health {
    /// How often it was lost.
    pub(super) losses: u64,
    /// Whether the server refused something since it was last made.
    pub(super) denied: bool,
}

/// A connection to one server, for one stream.
pub(super) struct Link {
    pub(super) url: NatsUrl,
    pub(super) config: SourceConfig,
    pub(super) client: Client,
    pub(super) context: Context,
    pub(super) health: watch::Receiver<Health>,
}

impl Link {
    pub(super) async fn connect(url: &NatsUrl, config: SourceConfig) -> Result<Link, NatsError> {
        let doing = "connecting to NATS";
        let failed = |kind| NatsError { kind, doing, at: url.to_string(), source: None };
        let (sender, health) = watch::channel(Health::default());
        let server = url.server();
        let connecting = options(url, config, sender).connect(server.as_str());
        let client = match timeout(config.connect_timeout, connecting).await {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Err(failed(kind_of_connect(&error)).caused(error)),
            Err(late) => return Err(failed(NatsErrorKind::Unavailable).caused(late)),
        };
        let bounds = ContextBuilder::new().timeout(config.request_timeout);
        let context = bounds.build(client.clone());
        Ok(Link { url: url.clone(), config, client, context, health })
    }

    /// Asks JetStream's interface; an answer that is an error is the inner one.
    pub(super) async fn ask<Q: Serialize, A: DeserializeOwned>(
        &self,
        doing: &'static str,
        subject: String,
        question: &Q,
    ) -> Result<Result<A, ServerError>, NatsError> {
        match self.bounded(doing, self.context.request(subject, question)).await? {
            Ok(Response::Ok(answer)) => Ok(Ok(answer)),
            Ok(Response::Err { error }) => Ok(Err(error)),
            Err(error) => Err(self.error(self.kind_of_request(&error), doing).caused(error)),
        }
    }

    /// Waits for something that the client does, no longer than for a request: while the connection
    /// is lost the client queues, and once its queue is full it waits for ever.
    pub(super) async fn bounded<T>(
        &self,
        doing: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T, NatsError> {
        // Twice, because the client's own bound knows more and comes first.
        let bound = self.config.request_timeout.saturating_mul(2);
        timeout(bound, work).await.map_err(|late| self.silent(doing).caused(late))
    }

    pub(super) fn error(&self, kind: NatsErrorKind, doing: &'static str) -> NatsError {
        NatsError { kind, doing, at: self.url.to_string(), source: None }
    }

    /// What JetStream answered about our stream, as an error.
    pub(super) fn answer(&self, error: ServerError, doing: &'static str) -> NatsError {
        self.error(kind_of_answer(&error, self.url.stream()), doing).caused(error)
    }

    /// The error of an answer that did not come.
    pub(super) fn silent(&self, doing: &'static str) -> NatsError {
        self.error(self.silence(), doing)
    }

    /// What silence means. A server refuses beside the request, not in answer to it, so that what it
    /// refused looks like silence.
    pub(super) fn silence(&self) -> NatsErrorKind {
        let denied = self.health.borrow().denied;
        if denied { NatsErrorKind::Unauthorised } else { NatsErrorKind::Unavailable }
    }

    fn kind_of_request(&self, error: &RequestError) -> NatsErrorKind {
        match error.kind() {
            RequestErrorKind::TimedOut => self.silence(),
            // Nobody listens to JetStream's interface.
            RequestErrorKind::NoResponders => NatsErrorKind::NoJetStream,
            RequestErrorKind::InvalidSubject | RequestErrorKind::Other => NatsErrorKind::Other,
        }
    }
}

impl NatsError {
    pub(super) fn caused(self, source: impl Error + Send + Sync + 'static) -> NatsError {
        NatsError { source: Some(Box::new(source)), ..self }
    }
}

/// Whether JetStream says that there is no such consumer.
pub(super) fn no_consumer(error: &ServerError) -> bool {
    error.error_code() == ErrorCode::CONSUMER_NOT_FOUND
}

fn options(url: &NatsUrl, config: SourceConfig, health: watch::Sender<Health>) -> ConnectOptions {
    let shown = url.to_string();
    let options = ConnectOptions::new()
        .name(concat!("annalist/", env!("CARGO_PKG_VERSION")))
        .require_tls(url.tls())
        .connection_timeout(config.connect_timeout)
        .request_timeout(Some(config.request_timeout))
        .ping_interval(Duration::from_secs(PING_SECS))
        .event_callback(move |event| {
            notice(&event, &shown, &health);
            std::future::ready(())
        });
    match &url.login {
        Login::None => options,
        Login::Token(token) => options.token(token.clone()),
        Login::User { name, password } => options.user_and_password(name.clone(), password.clone()),
    }
}

/// Keeps what happened to the connection, and logs it: the client's own log is never heard.
fn notice(event: &Event, at: &str, health: &watch::Sender<Health>) {
    match event {
        Event::Connected => {
            tracing::info!(at, "NATS connected");
            health.send_modify(|it| it.denied = false);
        }
        Event::Disconnected | Event::Closed => {
            tracing::warn!(at, "NATS connection lost");
            health.send_modify(|it| *it = Health { losses: it.losses + 1, denied: false });
        }
        Event::ServerError(Complaint::AuthorizationViolation) => denied(at, health),
        Event::ServerError(Complaint::Other(said))
        | Event::ClientError(ClientError::Other(said)) => {
            let said = said.to_ascii_lowercase();
            let refusals = ["permissions violation", "authorization", "authentication"];
            if refusals.iter().any(|refusal| said.contains(refusal)) {
                denied(at, health);
            }
        }
        Event::ServerError(Complaint::SlowConsumer(_)) | Event::SlowConsumer(_) => {
            tracing::warn!(at, "NATS sends faster than we read");
        }
        Event::LameDuckMode => tracing::info!(at, "NATS server shuts down"),
        Event::Draining
        | Event::ClientError(ClientError::MaxReconnects | ClientError::ServerNotInPool) => {}
    }
}

fn denied(at: &str, health: &watch::Sender<Health>) {
    tracing::warn!(at, "NATS server refuses; check user, password and permissions");
    health.send_modify(|it| it.denied = true);
}
