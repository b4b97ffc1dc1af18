//! A message and its acknowledgements. No outcome loses it: an unacknowledged message is
//! redelivered, and a rejected one is stored as a dead letter before it is ended.

use super::config::{NatsError, NatsErrorKind, REASON_BYTES_MAX, REJECT_RETRY};
use super::connection::{Connection, DeadLetterTarget};
use crate::privacy::{Gate, Pii};
use crate::text::truncate;
use async_nats::client::Request;
use async_nats::header::{HeaderMap, HeaderValue, NATS_EXPECTED_STREAM, NATS_MESSAGE_ID};
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{AckKind, Message};
use async_nats::{RequestErrorKind, Subject};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Message to be acknowledged. If dropped, it is redelivered after the consumer's `ack_wait`.
#[must_use = "an unacknowledged delivery comes back"]
pub(crate) struct Delivery {
    message: Message,
    reply: Subject,
    sequence: u64,
    pub(super) deliveries: u64,
    /// Time at which the server stored the message, in nanoseconds since 1970.
    stored: i128,
    source_link: Arc<SourceLink>,
}

/// Connection, destination of dead letters, and consumer.
pub(super) struct SourceLink {
    pub(super) link: Connection,
    pub(super) dead: DeadLetterTarget,
    pub(super) consumer: PullConsumer,
}

impl Delivery {
    /// Creates the delivery of a pulled message; `None` if it is not a JetStream message.
    pub(super) fn of(message: Message, source_link: &Arc<SourceLink>) -> Option<Delivery> {
        let info = message.info().ok()?;
        let (sequence, deliveries) = (info.stream_sequence, u64::try_from(info.delivered).ok()?);
        let stored = info.published.unix_timestamp_nanos();
        let reply = message.reply.clone()?;
        Some(Delivery {
            message,
            reply,
            sequence,
            deliveries,
            stored,
            source_link: Arc::clone(source_link),
        })
    }

    pub(crate) fn payload(&self) -> &[u8] {
        &self.message.payload
    }

    /// Id set by the sender in the header `Nats-Msg-Id`.
    pub(crate) fn id(&self) -> Option<&str> {
        self.message.headers.as_ref()?.get(NATS_MESSAGE_ID).map(HeaderValue::as_str)
    }

    /// Sequence number in the stream, 1-based.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Number of deliveries, including this one.
    pub(crate) fn deliveries(&self) -> u64 {
        self.deliveries
    }

    /// Acknowledges the message and waits for the server's confirmation.
    pub(crate) async fn ack(self) -> Result<(), NatsError> {
        self.acknowledge(AckKind::Ack, "acknowledging a message").await
    }

    /// Returns the message for redelivery after `delay`.
    pub(crate) async fn nak(self, delay: Duration) -> Result<(), NatsError> {
        self.acknowledge(AckKind::Nak(Some(delay)), "giving a message back").await
    }

    /// Ends an unusable message. First stores its redacted payload as a dead letter with `reason`
    /// and origin; idempotent. `reason` is shown to users, cut at [`REASON_BYTES_MAX`], and must
    /// not contain text of the payload.
    pub(crate) async fn reject(self, reason: &str) -> Result<(), NatsError> {
        if let Err(error) = self.store_dead_letter(reason).await {
            if matches!(error.kind, NatsErrorKind::DeadLetterNotStored { .. }) {
                // If this fails too, the message is redelivered sooner.
                let nak = AckKind::Nak(Some(REJECT_RETRY));
                let _ = self.acknowledge(nak, "giving a message back").await;
            }
            return Err(error);
        }
        self.acknowledge(AckKind::Term, "ending a rejected message").await
    }

    pub(super) async fn store_dead_letter(&self, reason: &str) -> Result<(), NatsError> {
        let doing = "storing a dead letter";
        let SourceLink { link, dead, .. } = self.source_link.as_ref();
        let letter = PublishMessage::build()
            .payload(masked(self.payload()).into())
            .headers(self.letter_headers(reason));
        let stored = link.bounded(doing, async {
            link.context.send_publish(dead.subject.clone(), letter).await?.await
        });
        let error = match stored.await? {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        Err(link.error(self.kind_of_publish(&error), doing).caused(error))
    }

    fn kind_of_publish(&self, error: &PublishError) -> NatsErrorKind {
        match error.kind() {
            PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe => {
                self.source_link.link.no_reply_kind()
            }
            PublishErrorKind::StreamNotFound
            | PublishErrorKind::WrongLastMessageId
            | PublishErrorKind::WrongLastSequence
            | PublishErrorKind::MaxAckPending
            | PublishErrorKind::MaxPayloadExceeded
            | PublishErrorKind::Other => NatsErrorKind::DeadLetterNotStored {
                subject: self.source_link.dead.subject.clone(),
            },
        }
    }

    /// The sender's headers except those with meaning to a server, and annalist's.
    fn letter_headers(&self, reason: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, values) in self.message.headers.iter().flat_map(HeaderMap::iter) {
            let lower = name.to_string().to_ascii_lowercase();
            if !lower.starts_with("nats-") && !lower.starts_with("annalist-") {
                let lines = values.iter().map(|it| format!("{lower}: {}", it.as_str()));
                lines.for_each(|line| headers.append(name.clone(), masked_header(&line)));
            }
        }
        let SourceLink { link, dead, .. } = self.source_link.as_ref();
        let stream = link.url.stream();
        let mut put = |name: &'static str, value: &str| {
            headers.insert(name, one_line(value));
        };
        put("Annalist-Reason", truncate::bytes(reason, REASON_BYTES_MAX));
        put("Annalist-Subject", &self.message.subject);
        put("Annalist-Stream", stream);
        put("Annalist-Sequence", &self.sequence.to_string());
        if let Some(id) = self.id() {
            put("Annalist-Msg-Id", id);
        }
        // A recreated stream counts from one again; the time keeps the ids distinct.
        let letter = format!("annalist-{stream}-{}-{}", self.sequence, self.stored);
        headers.insert(NATS_MESSAGE_ID, one_line(&letter));
        headers.insert(NATS_EXPECTED_STREAM, one_line(&dead.stream));
        headers
    }

    /// Sends an acknowledgement and waits for the confirmation.
    async fn acknowledge(&self, ack: AckKind, doing: &'static str) -> Result<(), NatsError> {
        let link = &self.source_link.link;
        // The client's `double_ack` treats "no responders" as a confirmation.
        let request = Request::new().payload(ack.into());
        let told = link.client.send_request(self.reply.clone(), request);
        let error = match link.bounded(doing, told).await? {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        Err(match error.kind() {
            RequestErrorKind::TimedOut => link.no_reply_error(doing).caused(error),
            // The consumer was deleted, and the delivery with it.
            RequestErrorKind::NoResponders => {
                link.error(NatsErrorKind::Unavailable, doing).caused(error)
            }
            RequestErrorKind::InvalidSubject
            | RequestErrorKind::MaxPayloadExceeded
            | RequestErrorKind::Other => link.error(NatsErrorKind::Other, doing).caused(error),
        })
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sequence, bytes) = (self.sequence, self.payload().len());
        write!(f, "Delivery({sequence}, {bytes} bytes, delivery {})", self.deliveries)
    }
}

/// Redacts a payload, since others may read the stream of dead letters.
fn masked(payload: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(payload);
    Gate::new(&Pii::ALL).redact_json(&text).as_str().to_owned().into_bytes()
}

/// Redacts the value of `name: value`; the name can identify a secret.
fn masked_header(line: &str) -> HeaderValue {
    let masked = Gate::new(&Pii::ALL).redact(line);
    one_line(masked.as_str().split_once(": ").map_or("", |(_, value)| value))
}

/// Header value with control characters replaced by spaces.
fn one_line(text: &str) -> HeaderValue {
    let line = text.replace(|c: char| c.is_control(), " ");
    line.parse().unwrap_or_default()
}
