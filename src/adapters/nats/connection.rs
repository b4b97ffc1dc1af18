//! The connection: the client reconnects by itself, and every request has a timeout. Requests sent
//! before a connection loss are never answered, so losses are tracked.

use super::config::{
    Login, NatsError, NatsErrorKind, NatsUrl, PING_EVERY, SourceConfig, kind_of_answer,
    kind_of_connect,
};
use async_nats::jetstream::context::{ContextBuilder, RequestError, RequestErrorKind};
use async_nats::jetstream::response::Response;
use async_nats::jetstream::{Context, Error as ServerError, ErrorCode};
use async_nats::{Client, ClientError, ConnectOptions, Event, ServerError as Complaint};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use tokio::sync::watch;
use tokio::time::timeout;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Health {
    pub(super) losses: u64,
    /// True if the server refused something since the last connect.
    pub(super) denied: bool,
}

pub(super) struct Connection {
    pub(super) url: NatsUrl,
    pub(super) config: SourceConfig,
    pub(super) client: Client,
    pub(super) context: Context,
    pub(super) health: watch::Receiver<Health>,
}

impl Connection {
    pub(super) async fn connect(
        url: &NatsUrl,
        config: SourceConfig,
    ) -> Result<Connection, NatsError> {
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
        Ok(Connection { url: url.clone(), config, client, context, health })
    }

    /// Sends a JetStream API request; the inner error is the server's reply.
    pub(super) async fn request<Q: Serialize, A: DeserializeOwned>(
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

    /// Bounds an operation of the client, which queues while the connection is lost and blocks
    /// forever once its queue is full.
    pub(super) async fn bounded<T>(
        &self,
        doing: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T, NatsError> {
        // Doubled, so that the client's own timeout, which has more detail, fires first.
        let bound = self.config.request_timeout.saturating_mul(2);
        timeout(bound, work).await.map_err(|late| self.no_reply_error(doing).caused(late))
    }

    pub(super) fn error(&self, kind: NatsErrorKind, doing: &'static str) -> NatsError {
        NatsError { kind, doing, at: self.url.to_string(), source: None }
    }

    /// Error that JetStream returned about this stream.
    pub(super) fn answer(&self, error: ServerError, doing: &'static str) -> NatsError {
        self.error(kind_of_answer(&error, self.url.stream()), doing).caused(error)
    }

    pub(super) fn no_reply_error(&self, doing: &'static str) -> NatsError {
        self.error(self.no_reply_kind(), doing)
    }

    /// Cause of a missing reply. The server reports a refusal separately, not as the reply.
    pub(super) fn no_reply_kind(&self) -> NatsErrorKind {
        let denied = self.health.borrow().denied;
        if denied { NatsErrorKind::Unauthorised } else { NatsErrorKind::Unavailable }
    }

    fn kind_of_request(&self, error: &RequestError) -> NatsErrorKind {
        match error.kind() {
            RequestErrorKind::TimedOut => self.no_reply_kind(),
            // JetStream's API has no subscribers.
            RequestErrorKind::NoResponders => NatsErrorKind::NoJetStream,
            RequestErrorKind::InvalidSubject | RequestErrorKind::Other => NatsErrorKind::Other,
        }
    }
}

pub(super) fn is_consumer_not_found(error: &ServerError) -> bool {
    error.error_code() == ErrorCode::CONSUMER_NOT_FOUND
}

fn options(url: &NatsUrl, config: SourceConfig, health: watch::Sender<Health>) -> ConnectOptions {
    let shown = url.to_string();
    let options = ConnectOptions::new()
        .name(concat!("annalist/", env!("CARGO_PKG_VERSION")))
        .require_tls(url.tls())
        .connection_timeout(config.connect_timeout)
        .request_timeout(Some(config.request_timeout))
        .ping_interval(PING_EVERY)
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
