//! NATS JetStream as a source of work: delivers payloads and takes acknowledgements, and ignores
//! the contents of payloads.

mod config;
mod connection;
mod delivery;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod outage_test;
#[cfg(test)]
mod tests;

pub(crate) use config::{NatsError, NatsUrl, SourceConfig};
pub(crate) use delivery::Delivery;

use async_nats::client::Request;
use async_nats::connection::State;
use async_nats::jetstream::consumer::pull::BatchConfig;
use async_nats::{Message, StatusCode, Subscriber};
use config::{
    BATCH_BYTES_MAX, BATCH_MAX, CONSUMER, NEXT_MESSAGE_WAIT_MAX, NatsErrorKind, REPLY_GRACE,
    WAIT_MAX, WAIT_MIN,
};
use connection::Connection;
use delivery::SourceLink;
use futures_util::StreamExt;
use futures_util::future::join_all;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Stream to take work from; clones share the connection, which reconnects by itself.
#[derive(Clone)]
pub(crate) struct Source {
    source_link: Arc<SourceLink>,
}

impl Source {
    /// Connects, finds the stream, and finds or creates consumer and dead letter stream.
    pub(crate) async fn connect(url: &NatsUrl, config: SourceConfig) -> Result<Source, NatsError> {
        let link = Connection::connect(url, config).await?;
        let stream = connection::stream(&link).await?;
        let dead = connection::dead_letters(&link, &stream).await?;
        connection::consumer(&link).await?;
        Ok(Source { source_link: Arc::new(SourceLink { link, dead }) })
    }

    /// Fetches at most `max` messages (capped at [`BATCH_MAX`] and about [`BATCH_BYTES_MAX`]);
    /// waits at most `wait` for the first (capped at [`WAIT_MAX`]). May return none. Cancel safe:
    /// messages in transit are redelivered.
    pub(crate) async fn fetch(
        &self,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, NatsError> {
        let link = &self.source_link.link;
        let wait = wait.clamp(WAIT_MIN, WAIT_MAX);
        let messages = pull(link, max.clamp(1, BATCH_MAX), wait).await?;
        let mut deliveries = Vec::with_capacity(messages.len());
        for message in messages {
            let is_dead_letter = message.subject.starts_with(connection::DEAD_PREFIX);
            let Some(delivery) = Delivery::of(message, &self.source_link) else {
                return Err(link.error(NatsErrorKind::Other, "reading where a message came from"));
            };
            if is_dead_letter {
                // The stream also holds dead letters, and retains them.
                let _ = delivery.ack().await;
            } else {
                deliveries.push(delivery);
            }
        }
        Ok(deliveries)
    }

    pub(crate) fn url(&self) -> &NatsUrl {
        &self.source_link.link.url
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({})", self.url())
    }
}

/// Acknowledges messages concurrently; tries all and returns the first error.
pub(crate) async fn ack_all(deliveries: Vec<Delivery>) -> Result<(), NatsError> {
    join_all(deliveries.into_iter().map(Delivery::ack)).await.into_iter().collect()
}

const DOING: &str = "fetching messages";

/// Message, or end of a request.
enum Answer {
    Message(Message),
    /// No more for now.
    End,
    /// The request was terminated; the consumer may be gone.
    GivenUp,
    /// The server rejects such requests.
    Refused,
}

impl Answer {
    fn of(message: Message) -> Answer {
        let reason = message.description.as_deref().unwrap_or_default().to_ascii_lowercase();
        match message.status {
            None | Some(StatusCode::OK) => Answer::Message(message),
            Some(StatusCode::NOT_FOUND | StatusCode::TIMEOUT) => Answer::End,
            Some(StatusCode::NO_RESPONDERS) => Answer::GivenUp,
            // Only the description gives the reason.
            Some(StatusCode::REQUEST_TERMINATED) => {
                if reason.contains("message size") || reason.contains("maxackpending") {
                    Answer::End
                } else if reason.contains("exceeded maxrequest") {
                    Answer::Refused
                } else {
                    Answer::GivenUp
                }
            }
            Some(_) => Answer::Refused,
        }
    }
}

/// Waits for a first message, at most `wait`, then takes what else is there, at most `max`. Uses plain
/// requests, because the client's batches end the same way whether there are no messages or no reply.
async fn pull(link: &Connection, max: usize, wait: Duration) -> Result<Vec<Message>, NatsError> {
    let mut health = link.health.clone();
    health.mark_unchanged();
    if link.client.connection_state() != State::Connected {
        return Err(link.no_reply_error(DOING));
    }
    let inbox = link.client.new_inbox();
    let subscribed = link.bounded(DOING, link.client.subscribe(inbox.clone())).await?;
    let mut answers =
        subscribed.map_err(|error| link.error(NatsErrorKind::Other, DOING).caused(error))?;
    let first = BatchConfig { batch: 1, expires: Some(wait), ..BatchConfig::default() };
    request(link, &inbox, &first).await?;
    let answer = tokio::select! {
        // Older servers send nothing for a removed consumer.
        answer = next(&mut answers, wait + REPLY_GRACE) => answer.unwrap_or(Answer::GivenUp),
        // Requests over a lost connection are never answered.
        _ = health.changed() => return Err(link.no_reply_error(DOING)),
    };
    let mut messages = match answer {
        Answer::Message(message) => vec![message],
        Answer::End => return Ok(Vec::new()),
        Answer::Refused => return Err(link.error(NatsErrorKind::Other, DOING)),
        Answer::GivenUp => {
            // Removed, or the server is starting. A new consumer begins at the first message.
            connection::consumer(link).await?;
            return Err(link.no_reply_error(DOING));
        }
    };
    let rest = BatchConfig {
        batch: max - 1,
        no_wait: true,
        max_bytes: BATCH_BYTES_MAX,
        ..BatchConfig::default()
    };
    // If this fails, return the first message; the next pull reports the error.
    if 1 < max && request(link, &inbox, &rest).await.is_ok() {
        while messages.len() < max
            && let Some(Answer::Message(message)) = next(&mut answers, NEXT_MESSAGE_WAIT_MAX).await
        {
            messages.push(message);
        }
    }
    Ok(messages)
}

async fn next(answers: &mut Subscriber, wait: Duration) -> Option<Answer> {
    timeout(wait, answers.next()).await.ok()?.map(Answer::of)
}

async fn request(link: &Connection, inbox: &str, batch: &BatchConfig) -> Result<(), NatsError> {
    let other = || link.error(NatsErrorKind::Other, DOING);
    let question = serde_json::to_vec(batch).map_err(|error| other().caused(error))?;
    let subject = format!("CONSUMER.MSG.NEXT.{}.{CONSUMER}", link.url.stream());
    let request = Request::new().inbox(inbox.to_owned()).payload(question.into());
    let sent = link.bounded(DOING, link.context.send_request(subject, request)).await?;
    sent.map_err(|error| other().caused(error))
}
