//! NATS JetStream as a source of work: it hands over payloads and takes verdicts, and knows nothing of
//! what is in them. A message is acknowledged when its caller says so, and comes back until then.

mod delivery;
mod error;
mod link;
mod pull;
mod setup;
mod url;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod outage_test;
#[cfg(test)]
mod tests;

pub use delivery::Delivery;
pub use error::{NatsError, NatsErrorKind, RETRY_SECS};
pub use url::NatsUrl;

use delivery::Post;
use futures_util::future::join_all;
use link::Link;
use pull::Pulled;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The crate that is never let into a log, whatever the filter asks for: at its finest levels async-nats
/// logs whole messages, and the password that it logs in with.
pub const NEVER_LOGGED: &str = "async_nats";

/// The durable consumer that all workers on a stream share.
pub const CONSUMER: &str = "annalist";
/// The stream of dead letters, made where no other holds their subject, `annalist.dead.STREAM`.
pub const DEAD_STREAM: &str = "annalist-dead";

/// The most messages of one fetch: what a worker holds unacknowledged while it enqueues them.
pub const BATCH_MAX: usize = 256;
/// The most bytes of one fetch beside its first message: what a worker keeps in memory.
pub const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The longest wait of one fetch, in seconds, so that a server which stopped answering is noticed.
pub const WAIT_SECS_MAX: u64 = 30;
/// The shortest, in milliseconds: no wait at all would be asked as "for ever".
const WAIT_MS_MIN: u64 = 10;
/// How long after its wait an answer may take, in seconds: the way there and back.
const GRACE_SECS: u64 = 2;
/// How long we wait for the next message of those that are there, in milliseconds. The server sends
/// them in one go; it is silent only where it gives no more than workers already hold.
const GATHER_MS: u64 = 1000;

/// How long connecting may take, in seconds: a handshake over a slow line.
pub const CONNECT_SECS: u64 = 5;
/// How long an answer may take, in seconds: a cluster chooses a new leader in less.
pub const REQUEST_SECS: u64 = 5;
/// How long a message may be without a verdict, in seconds, before another worker gets it: a gate and
/// a commit take milliseconds, a database that restarts takes seconds.
pub const ACK_WAIT_SECS: u64 = 60;
/// How many messages all workers together may hold without a verdict: sixteen with full hands.
pub const ACK_PENDING_MAX: u32 = 4096;

/// How long a message stays away whose dead letter was not stored, in seconds: a person has to make
/// room.
const REJECT_RETRY_SECS: u64 = 30;
/// The longest reason of a dead letter, in bytes: a line.
pub const REASON_BYTES_MAX: usize = 512;
/// How long a second dead letter of the same message is recognised, in seconds: a day's outage between
/// storing the letter and ending the message.
const DEAD_WINDOW_SECS: u64 = 86_400;

const _: () = assert!(WAIT_MS_MIN < WAIT_SECS_MAX * 1000);
const _: () = assert!(WAIT_SECS_MAX < ACK_WAIT_SECS);
const _: () = assert!(REJECT_RETRY_SECS + ACK_WAIT_SECS < DEAD_WINDOW_SECS);
const _: () = assert!(BATCH_MAX <= ACK_PENDING_MAX as usize);

/// The bounds of a source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SourceConfig {
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long an answer may take.
    pub request_timeout: Duration,
    /// How long a message may be without a verdict; used where the consumer is made, and the value of
    /// an existing consumer counts.
    pub ack_wait: Duration,
    /// How many messages all workers together may hold; used where the consumer is made.
    pub ack_pending_max: u32,
}

impl Default for SourceConfig {
    fn default() -> SourceConfig {
        SourceConfig {
            connect_timeout: Duration::from_secs(CONNECT_SECS),
            request_timeout: Duration::from_secs(REQUEST_SECS),
            ack_wait: Duration::from_secs(ACK_WAIT_SECS),
            ack_pending_max: ACK_PENDING_MAX,
        }
    }
}

/// How much work there is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pending {
    /// Messages that nobody was given yet.
    pub waiting: u64,
    /// Messages that some worker holds without a verdict.
    pub held: u64,
}

/// A stream to take work from; clones share the connection. It reconnects by itself.
#[derive(Clone)]
pub struct Source {
    post: Arc<Post>,
    ack_wait: Duration,
}

impl Source {
    /// Connects, finds the stream, and finds or makes the consumer and the stream of dead letters.
    ///
    /// # Errors
    /// Every kind of [`NatsErrorKind`] but `BadUrl` and `NotKept`.
    pub async fn connect(url: &NatsUrl, config: SourceConfig) -> Result<Source, NatsError> {
        let link = Link::connect(url, config).await?;
        let stream = setup::stream(&link).await?;
        let dead = setup::dead_letters(&link, &stream).await?;
        let ack_wait = setup::consumer(&link).await?;
        Ok(Source { post: Arc::new(Post { link, dead }), ack_wait })
    }

    /// Takes at most `max` messages (no more than [`BATCH_MAX`], nor many more bytes than
    /// [`BATCH_BYTES_MAX`]); waits at most `wait` for the first (no longer than [`WAIT_SECS_MAX`]).
    /// None is an answer. Dropped while it waits, it loses nothing: what was on its way comes back.
    ///
    /// # Errors
    /// `Unavailable` where the server did not answer in time or the connection was lost meanwhile:
    /// wait for [`NatsError::retry_after`] and fetch again. `NoStream` where it was removed.
    pub async fn fetch(&self, max: usize, wait: Duration) -> Result<Vec<Delivery>, NatsError> {
        let link = &self.post.link;
        let (shortest, longest) =
            (Duration::from_millis(WAIT_MS_MIN), Duration::from_secs(WAIT_SECS_MAX));
        let wait = wait.clamp(shortest, longest);
        let messages = match pull::pull(link, max.clamp(1, BATCH_MAX), wait).await? {
            Pulled::Messages(messages) => messages,
            Pulled::Gone => {
                // Removed, or a server that starts up. Made anew, it begins at the stream's beginning.
                setup::consumer(link).await?;
                return Err(link.silent("fetching messages"));
            }
        };
        let mut deliveries = Vec::with_capacity(messages.len());
        for message in messages {
            let is_dead_letter = message.subject.starts_with(setup::DEAD_PREFIX);
            let Some(delivery) = Delivery::of(message, &self.post) else {
                return Err(link.error(NatsErrorKind::Other, "reading where a message came from"));
            };
            if is_dead_letter {
                // The stream holds dead letters too and keeps them. Unsaid, we skip it once more.
                let _ = delivery.ack().await;
            } else {
                deliveries.push(delivery);
            }
        }
        Ok(deliveries)
    }

    /// How many messages wait and how many are held, for all workers together.
    ///
    /// # Errors
    /// `Unavailable`, `NoStream`, `Other`.
    pub async fn pending(&self) -> Result<Pending, NatsError> {
        let doing = "counting messages";
        let link = &self.post.link;
        let info = setup::consumer_info(link, doing).await?;
        let info = info.map_err(|error| link.answer(error, doing))?;
        let held = u64::try_from(info.num_ack_pending).unwrap_or(u64::MAX);
        Ok(Pending { waiting: info.num_pending, held })
    }

    /// How long a message may be without a verdict; what takes longer calls [`Delivery::progress`].
    pub fn ack_wait(&self) -> Duration {
        self.ack_wait
    }

    /// Where it takes work from.
    pub fn url(&self) -> &NatsUrl {
        &self.post.link.url
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({})", self.url())
    }
}

/// Acknowledges many at once, in about the time of one; tries all, and gives the first error.
///
/// # Errors
/// As [`Delivery::ack`]; those that were not confirmed may come back.
pub async fn ack_all(deliveries: Vec<Delivery>) -> Result<(), NatsError> {
    join_all(deliveries.into_iter().map(Delivery::ack)).await.into_iter().collect()
}
