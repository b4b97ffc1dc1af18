//! The connection: the client reconnects by itself, and every request has a timeout. Requests sent
//! before a connection loss are never answered, so losses are tracked. Sets up the stream, the consumer
//! and the stream of dead letters; anything that could lose a message is an error.

use super::config::{
    CONSUMER, DEAD_STREAM, DEAD_WINDOW, Login, NatsError, NatsErrorKind, NatsUrl, PING_EVERY,
    SourceConfig, kind_of_answer, kind_of_connect,
};
use async_nats::jetstream::consumer::{
    AckPolicy, Config as ConsumerConfig, DeliverPolicy, Info as ConsumerInfo, PullConsumer, pull,
};
use async_nats::jetstream::context::{ContextBuilder, RequestError, RequestErrorKind};
use async_nats::jetstream::response::Response;
use async_nats::jetstream::stream::{
    Config as StreamConfig, DiscardPolicy, Info as StreamInfo, RetentionPolicy, StorageType,
};
use async_nats::jetstream::{Context, Error as ServerError, ErrorCode};
use async_nats::{Client, ClientError, ConnectOptions, Event, ServerError as Complaint};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
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

/// Prefix of subjects of dead letters; the stream's name follows.
pub(super) const DEAD_PREFIX: &str = "annalist.dead.";

#[derive(Clone, Debug)]
pub(super) struct DeadLetterTarget {
    pub(super) subject: String,
    pub(super) stream: String,
}

pub(super) async fn stream(link: &Connection) -> Result<StreamInfo, NatsError> {
    let doing = "looking for the stream";
    let subject = format!("STREAM.INFO.{}", link.url.stream());
    // Older servers accept `{}` but not `null`.
    link.request(doing, subject, &json!({})).await?.map_err(|error| link.answer(error, doing))
}

/// Finds or creates the consumer.
pub(super) async fn consumer(link: &Connection) -> Result<PullConsumer, NatsError> {
    let stream = link.url.stream();
    let doing = "looking for the consumer";
    let info = match consumer_info(link, doing).await? {
        Ok(info) => info,
        Err(error) if is_consumer_not_found(&error) => create_consumer(link).await?,
        Err(error) => return Err(link.answer(error, doing)),
    };
    let difference = differences(&info.config).join(", ");
    if !difference.is_empty() {
        let stream = stream.to_owned();
        let kind = NatsErrorKind::OtherConsumer { stream, consumer: CONSUMER, difference };
        return Err(link.error(kind, doing));
    }
    Ok(PullConsumer::new(pull::Config::default(), info, link.context.clone()))
}

pub(super) async fn consumer_info(
    link: &Connection,
    doing: &'static str,
) -> Result<Result<ConsumerInfo, async_nats::jetstream::Error>, NatsError> {
    let subject = format!("CONSUMER.INFO.{}.{CONSUMER}", link.url.stream());
    link.request(doing, subject, &json!({})).await
}

async fn create_consumer(link: &Connection) -> Result<ConsumerInfo, NatsError> {
    let doing = "making the consumer";
    let stream_name = link.url.stream();
    let config = ConsumerConfig {
        durable_name: Some(CONSUMER.to_owned()),
        description: Some("hands work to annalist".to_owned()),
        deliver_policy: DeliverPolicy::All,
        ack_policy: AckPolicy::Explicit,
        ack_wait: link.config.ack_wait,
        max_ack_pending: i64::from(link.config.ack_pending_max),
        // The worker rejects messages with a reason; a limit would drop them silently.
        max_deliver: -1,
        ..ConsumerConfig::default()
    };
    let subject = format!("CONSUMER.CREATE.{stream_name}.{CONSUMER}");
    let asked = json!({"stream_name": stream_name, "config": config});
    let made = link.request(doing, subject, &asked).await?;
    made.map_err(|error| link.answer(error, doing))
}

/// Returns settings with which a consumer would lose messages or never deliver them.
fn differences(it: &ConsumerConfig) -> Vec<String> {
    let mut found = Vec::new();
    let mut expect = |fine: bool, is: String| {
        if !fine {
            found.push(is);
        }
    };
    expect(it.deliver_subject.is_none(), "a push consumer, expected a pull consumer".to_owned());
    let policy = it.ack_policy;
    expect(policy == AckPolicy::Explicit, format!("ack policy {policy:?}, expected Explicit"));
    let policy = it.deliver_policy;
    expect(policy == DeliverPolicy::All, format!("deliver policy {policy:?}, expected All"));
    expect(it.max_deliver <= 0, format!("max deliver {}, expected no limit", it.max_deliver));
    let filters = usize::from(!it.filter_subject.is_empty()) + it.filter_subjects.len();
    expect(filters == 0, format!("{filters} subject filters, expected none"));
    expect(!it.headers_only, "headers only, expected whole messages".to_owned());
    let inactive = it.inactive_threshold;
    expect(inactive.is_zero(), format!("forgotten when idle for {inactive:?}, expected never"));
    found
}

#[derive(Deserialize)]
struct Names {
    /// Null if there are none.
    streams: Option<Vec<String>>,
}

/// Finds or creates the stream that keeps the dead letters of `source`.
pub(super) async fn dead_letters(
    link: &Connection,
    source: &StreamInfo,
) -> Result<DeadLetterTarget, NatsError> {
    let doing = "looking for the stream of dead letters";
    let name = link.url.stream();
    let unfit = |why: String| link.error(NatsErrorKind::NoDeadLetterStream(why), doing);
    if name == DEAD_STREAM {
        return Err(unfit(format!(
            "dead letters go to {name}; to process one again, publish it to the subject in its \
             header Annalist-Subject"
        )));
    }
    let subject = format!("{DEAD_PREFIX}{name}");
    let mut refusal = None;
    let stream = match holder(link, &subject).await? {
        Some(stream) => stream,
        None => {
            refusal = create_dead_letter_stream(link, source.config.num_replicas).await?;
            // Another worker may have been first, so ask again who holds the subject.
            holder(link, &subject).await?.unwrap_or_default()
        }
    };
    if stream.is_empty() {
        let why = format!(
            "no stream holds {subject}, and {DEAD_STREAM} could not be created; create it with \
             `nats stream add {DEAD_STREAM} --subjects '{DEAD_PREFIX}*'`"
        );
        let error = unfit(why);
        return Err(match refusal {
            Some(cause) => error.caused(cause),
            None => error,
        });
    }
    // Skipping dead letters in the source stream acknowledges them, which here would delete them.
    if stream == name && source.config.retention != RetentionPolicy::Limits {
        return Err(unfit(format!(
            "{name} holds {subject} too and deletes what was acknowledged; narrow its subjects"
        )));
    }
    Ok(DeadLetterTarget { subject, stream })
}

async fn holder(link: &Connection, subject: &str) -> Result<Option<String>, NatsError> {
    let doing = "looking for the stream of dead letters";
    let names: Names = link
        .request(doing, "STREAM.NAMES".to_owned(), &json!({"subject": subject}))
        .await?
        .map_err(|error| link.answer(error, doing))?;
    Ok(names.streams.and_then(|names| names.into_iter().next()))
}

/// Creates the stream of dead letters with the source's replication; returns the refusal, if any.
async fn create_dead_letter_stream(
    link: &Connection,
    num_replicas: usize,
) -> Result<Option<async_nats::jetstream::Error>, NatsError> {
    let config = StreamConfig {
        name: DEAD_STREAM.to_owned(),
        description: Some("what annalist could not use, with the reason".to_owned()),
        subjects: vec![format!("{DEAD_PREFIX}*")],
        retention: RetentionPolicy::Limits,
        // Never discards an old letter for a new one.
        discard: DiscardPolicy::New,
        storage: StorageType::File,
        num_replicas,
        duplicate_window: DEAD_WINDOW,
        ..StreamConfig::default()
    };
    let subject = format!("STREAM.CREATE.{DEAD_STREAM}");
    let made = link.request("making the stream of dead letters", subject, &config).await?;
    Ok(made.map(|_: StreamInfo| ()).err())
}
