//! One pull: waits for a first message, then takes what else is there. Uses plain requests, because
//! the client's batches end the same way whether there are no messages or no reply.

use super::config::{BATCH_BYTES_MAX, CONSUMER, NEXT_MESSAGE_WAIT_MAX, REPLY_GRACE};
use super::connection::Connection;
use super::error::{NatsError, NatsErrorKind};
use super::setup;
use async_nats::client::Request;
use async_nats::connection::State;
use async_nats::jetstream::consumer::pull::BatchConfig;
use async_nats::{Message, StatusCode, Subscriber};
use futures_util::StreamExt;
use std::time::Duration;
use tokio::time::timeout;

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

/// Returns at most `max` messages; waits at most `wait` for the first.
pub(super) async fn pull(
    link: &Connection,
    max: usize,
    wait: Duration,
) -> Result<Vec<Message>, NatsError> {
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
            setup::consumer(link).await?;
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
