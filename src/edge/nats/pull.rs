//! One pull: wait for a first message, then take what else is there. Written on plain requests,
//! because the client's own batches end in the same way when nothing came and when nobody answered.

use super::error::{NatsError, NatsErrorKind};
use super::link::Link;
use super::{BATCH_BYTES_MAX, CONSUMER, GATHER_MS, GRACE_SECS};
use async_nats::client::Request;
use async_nats::connection::State;
use async_nats::jetstream::consumer::pull::BatchConfig;
use async_nats::{Message, StatusCode, Subscriber};
use futures_util::StreamExt;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

const DOING: &str = "fetching messages";

/// What a pull came to.
pub(super) enum Pulled {
    /// Messages, or none.
    Messages(Vec<Message>),
    /// Nobody answered for our consumer.
    Gone,
}

/// What the server sent.
enum Sent {
    Message(Message),
    /// No more for now.
    End,
    /// Our consumer is not there.
    Gone,
    /// The request was given up; another may be answered.
    GivenUp,
    /// The request is one that the server does not take.
    Refused,
}

impl Sent {
    fn of(message: Message) -> Sent {
        let said = message.description.as_deref().unwrap_or_default().to_ascii_lowercase();
        match message.status {
            None | Some(StatusCode::OK) => Sent::Message(message),
            Some(StatusCode::NOT_FOUND | StatusCode::TIMEOUT) => Sent::End,
            Some(StatusCode::NO_RESPONDERS) => Sent::Gone,
            // Why a request ended is told in words only.
            Some(StatusCode::REQUEST_TERMINATED) => {
                if said.contains("consumer deleted") || said.contains("push based") {
                    Sent::Gone
                } else if said.contains("message size") || said.contains("maxackpending") {
                    Sent::End
                } else if said.contains("exceeded maxrequest") {
                    Sent::Refused
                } else {
                    Sent::GivenUp
                }
            }
            Some(_) => Sent::Refused,
        }
    }
}

/// At most `max` messages; waits at most `wait` for the first.
pub(super) async fn pull(link: &Link, max: usize, wait: Duration) -> Result<Pulled, NatsError> {
    let mut health = link.health.clone();
    health.mark_unchanged();
    if link.client.connection_state() != State::Connected {
        return Err(link.silent(DOING));
    }
    let inbox = link.client.new_inbox();
    let subscribed = link.bounded(DOING, link.client.subscribe(inbox.clone())).await?;
    let mut answers =
        subscribed.map_err(|error| link.error(NatsErrorKind::Other, DOING).caused(error))?;
    let first = BatchConfig { batch: 1, expires: Some(wait), ..BatchConfig::default() };
    request(link, &inbox, &first).await?;
    let deadline = Instant::now() + wait + Duration::from_secs(GRACE_SECS);
    let sent = tokio::select! {
        // An older server is silent about a consumer that was removed.
        sent = next(&mut answers, deadline) => sent.unwrap_or(Sent::Gone),
        // What was asked over a lost connection is not answered over the next.
        _ = health.changed() => Sent::GivenUp,
    };
    match sent {
        Sent::Message(message) => {
            let messages = gather(link, (&mut answers, &inbox), message, max).await;
            Ok(Pulled::Messages(messages))
        }
        Sent::End => Ok(Pulled::Messages(Vec::new())),
        Sent::Gone => Ok(Pulled::Gone),
        Sent::Refused => Err(link.error(NatsErrorKind::Other, DOING)),
        Sent::GivenUp => Err(link.silent(DOING)),
    }
}

/// What is there beside the first message. A message that we have is worth more than an error about
/// those that we have not, so that trouble ends the gathering and the next pull tells it.
async fn gather(
    link: &Link,
    (answers, inbox): (&mut Subscriber, &str),
    first: Message,
    max: usize,
) -> Vec<Message> {
    let mut messages = vec![first];
    if max <= 1 {
        return messages;
    }
    let rest = BatchConfig {
        batch: max - 1,
        no_wait: true,
        max_bytes: BATCH_BYTES_MAX,
        ..BatchConfig::default()
    };
    if request(link, inbox, &rest).await.is_err() {
        return messages;
    }
    while messages.len() < max {
        let deadline = Instant::now() + Duration::from_millis(GATHER_MS);
        match next(answers, deadline).await {
            Some(Sent::Message(message)) => messages.push(message),
            Some(Sent::End | Sent::Gone | Sent::GivenUp | Sent::Refused) | None => break,
        }
    }
    messages
}

async fn next(answers: &mut Subscriber, deadline: Instant) -> Option<Sent> {
    tokio::select! {
        biased;
        message = answers.next() => message.map(Sent::of),
        () = sleep_until(deadline) => None,
    }
}

async fn request(link: &Link, inbox: &str, batch: &BatchConfig) -> Result<(), NatsError> {
    let other = || link.error(NatsErrorKind::Other, DOING);
    let question = serde_json::to_vec(batch).map_err(|error| other().caused(error))?;
    let subject = format!("CONSUMER.MSG.NEXT.{}.{CONSUMER}", link.url.stream());
    let request = Request::new().inbox(inbox.to_owned()).payload(question.into());
    let sent = link.bounded(DOING, link.context.send_request(subject, request)).await?;
    sent.map_err(|error| other().caused(error))
}
