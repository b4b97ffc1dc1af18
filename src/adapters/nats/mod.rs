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

use async_nats::connection::State;
use async_nats::jetstream::Message;
use config::{
    BATCH_BYTES_MAX, BATCH_MAX, NEXT_MESSAGE_WAIT_MAX, NatsErrorKind, REPLY_GRACE, WAIT_MAX,
    WAIT_MIN,
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
        let consumer = connection::consumer(&link).await?;
        let (ours, theirs) = (link.config.ack_wait, consumer.cached_info().config.ack_wait);
        if ours != theirs {
            tracing::warn!(%url, ?ours, ?theirs, "the consumer's own ack_wait counts");
        }
        Ok(Source { source_link: Arc::new(SourceLink { link, dead, consumer }) })
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
        let messages = pull(&self.source_link, max.clamp(1, BATCH_MAX), wait).await?;
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

    /// True if no message waits to be delivered, by this or another worker, or to be acknowledged.
    pub(crate) async fn is_drained(&self) -> Result<bool, NatsError> {
        let link = &self.source_link.link;
        let info = connection::consumer_info(link, COUNTING).await?;
        let info = info.map_err(|error| link.answer(error, COUNTING))?;
        Ok(info.num_pending == 0 && info.num_ack_pending == 0)
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

const COUNTING: &str = "counting messages";
const DOING: &str = "fetching messages";

/// Waits for a first message, at most `wait`, then takes what else is there, at most `max`.
async fn pull(link: &SourceLink, max: usize, wait: Duration) -> Result<Vec<Message>, NatsError> {
    let SourceLink { link, consumer, .. } = link;
    let mut health = link.health.clone();
    health.mark_unchanged();
    if link.client.connection_state() != State::Connected {
        return Err(link.no_reply_error(DOING));
    }
    let asked = consumer.batch().max_messages(1).expires(wait).messages();
    let asked = link.bounded(DOING, asked).await?;
    let mut first = asked.map_err(|error| link.error(NatsErrorKind::Other, DOING).caused(error))?;
    let answer = tokio::select! {
        answer = timeout(wait + REPLY_GRACE, first.next()) => answer.ok().flatten(),
        // Requests over a lost connection are never answered.
        _ = health.changed() => return Err(link.no_reply_error(DOING)),
    };
    let Some(Ok(message)) = answer else {
        // The client's batch ends the same way whether there are no messages or no consumer.
        if answer.is_none() && connection::consumer_info(link, DOING).await?.is_ok() {
            return Ok(Vec::new());
        }
        // A new consumer begins at the first message.
        connection::consumer(link).await?;
        let source = answer.and_then(Result::err);
        return Err(NatsError { source, ..link.no_reply_error(DOING) });
    };
    let mut messages = vec![message];
    let rest = consumer.fetch().max_messages(max - 1).max_bytes(BATCH_BYTES_MAX).messages();
    // If this fails, return the first message; the next pull reports the error.
    if 1 < max
        && let Ok(Ok(mut rest)) = link.bounded(DOING, rest).await
    {
        while let Ok(Some(Ok(message))) = timeout(NEXT_MESSAGE_WAIT_MAX, rest.next()).await {
            messages.push(message);
        }
    }
    Ok(messages)
}
