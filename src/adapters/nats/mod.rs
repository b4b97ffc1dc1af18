//! NATS JetStream as a source of work: delivers payloads and takes acknowledgements, and ignores
//! the contents of payloads.

mod config;
mod connection;
mod delivery;
mod error;
mod pull;
mod setup;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod outage_test;
#[cfg(test)]
mod tests;

pub(crate) use config::{NatsUrl, SourceConfig};
pub(crate) use delivery::Delivery;
pub(crate) use error::NatsError;

use config::{BATCH_MAX, WAIT_MAX, WAIT_MIN};
use connection::Connection;
use delivery::SourceLink;
use error::NatsErrorKind;
use futures_util::future::join_all;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Stream to take work from; clones share the connection, which reconnects by itself.
#[derive(Clone)]
pub(crate) struct Source {
    source_link: Arc<SourceLink>,
}

impl Source {
    /// Connects, finds the stream, and finds or creates consumer and dead letter stream.
    pub(crate) async fn connect(url: &NatsUrl, config: SourceConfig) -> Result<Source, NatsError> {
        let link = Connection::connect(url, config).await?;
        let stream = setup::stream(&link).await?;
        let dead = setup::dead_letters(&link, &stream).await?;
        setup::consumer(&link).await?;
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
        let messages = pull::pull(link, max.clamp(1, BATCH_MAX), wait).await?;
        let mut deliveries = Vec::with_capacity(messages.len());
        for message in messages {
            let is_dead_letter = message.subject.starts_with(setup::DEAD_PREFIX);
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
