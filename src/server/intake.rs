//! HTTP intake: enqueues bodies like `annalist enqueue` does files, while the queue has room.

use super::error::{ApiError, Result};
use crate::adapters::files::Upload;
use crate::adapters::http_server::GivenUp;
use crate::adapters::metrics::Meters;
use crate::domain::Timestamp;
use crate::pipeline::{EnqueueOptions, Enqueuer, IntakeReport, IntakeSource};
use crate::store::{Store, StoreError};
use axum::body::Body;
use axum::http::StatusCode;
use futures_util::StreamExt;
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum number of bodies that are received; half of the connections stays for other requests.
const UPLOADS_MAX: usize = 128;
/// Maximum number of bodies that are received from one token; the other slots stay for other senders.
const RECEIVED_MAX: usize = 32;
/// Maximum number of bodies ingested at the same time; others wait in temporary files.
const RUNNING_MAX: usize = 8;
/// Maximum age of the cached queue length; counting reads every open job.
const LENGTH_AGE_MAX: Duration = Duration::from_secs(1);

/// `expected` of the error for a body with nothing usable.
const EXPECTED: &str = "a slice document (schemas/slice.v1.json), or a supported transcript, of \
                        opencode the output of `opencode export ID`";

pub(crate) struct Intake {
    parts: IntakeParts,
    running: Semaphore,
    uploads: Semaphore,
    /// Slots of the tokens from which bodies are received.
    senders: parking_lot::Mutex<HashMap<String, Arc<Semaphore>>>,
    /// Cached queue length in jobs, and the time of the count.
    length: Mutex<Option<(u64, Instant)>>,
}

pub(crate) struct IntakeParts {
    pub enqueuer: Arc<Enqueuer>,
    pub store: Store,
    pub clock: fn() -> Timestamp,
    /// Queue length at which the intake refuses more.
    pub jobs_max: u32,
    pub meters: Arc<Meters>,
    /// Stops an intake between two documents.
    pub closing: CancellationToken,
}

impl Intake {
    pub(crate) fn new(parts: IntakeParts) -> Intake {
        let [running, uploads] = [RUNNING_MAX, UPLOADS_MAX].map(Semaphore::new);
        let (senders, length) = (parking_lot::Mutex::default(), Mutex::new(None));
        Intake { parts, running, uploads, senders, length }
    }

    /// # Errors
    /// If the queue is full.
    pub(super) async fn check_room(&self) -> Result<()> {
        let (jobs, most) = (self.jobs().await?, self.parts.jobs_max);
        if jobs < u64::from(most) {
            return Ok(());
        }
        let what = format!("{jobs} jobs are waiting");
        let expected = format!("fewer than {most} (queue.intake_jobs_max): send it again later");
        Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, &what, "the queue", &expected))
    }

    async fn jobs(&self) -> Result<u64, StoreError> {
        let mut length = self.length.lock().await;
        if let Some((jobs, _)) = length.filter(|(_, at)| at.elapsed() < LENGTH_AGE_MAX) {
            return Ok(jobs);
        }
        let depth = self.parts.store.depth((self.parts.clock)()).await?;
        let jobs = depth.open.iter().map(|open| open.jobs).sum();
        *length = Some((jobs, Instant::now()));
        Ok(jobs)
    }

    /// Receives a body of at most `bytes_max` from the token named `sender`.
    ///
    /// # Errors
    /// If the body is too large, too slow or incomplete, the server shuts down, or the sender has too many others in
    /// flight.
    pub(super) async fn receive(&self, sender: &str, body: Body, bytes_max: u64) -> Result<Upload> {
        let _of_sender = self.slot_of(sender)?;
        let _slot = self.uploads.try_acquire().map_err(|_| too_many(UPLOADS_MAX, ""))?;
        let mut upload = Upload::new();
        let mut chunks = body.into_data_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| broken(&error))?;
            if bytes_max < upload.bytes() + chunk.len() as u64 {
                return Err(too_large(bytes_max));
            }
            upload.push(&chunk).map_err(|error| {
                tracing::error!(%error, "a body cannot be stored");
                let (status, what) =
                    (StatusCode::INSUFFICIENT_STORAGE, "the body cannot be stored");
                ApiError::new(status, what, "the server", "space in its temporary folder")
            })?;
        }
        Ok(upload)
    }

    fn slot_of(&self, sender: &str) -> Result<OwnedSemaphorePermit> {
        let mut senders = self.senders.lock();
        senders.retain(|_, slots| slots.available_permits() < RECEIVED_MAX);
        let slots = senders.entry(sender.to_owned());
        let slots = slots.or_insert_with(|| Arc::new(Semaphore::new(RECEIVED_MAX)));
        let slot = Arc::clone(slots).try_acquire_owned();
        slot.map_err(|_| too_many(RECEIVED_MAX, "of this token "))
    }

    /// Enqueues the new content of `upload`, attributed to `name`.
    ///
    /// # Errors
    /// If nothing in it is usable, with the first reason.
    pub(super) async fn enqueue(
        &self,
        upload: Upload,
        name: String,
        how: EnqueueOptions,
    ) -> Result<IntakeReport> {
        // The semaphore is never closed.
        let _running = self.running.acquire().await;
        let source = IntakeSource::Upload(name, upload);
        let IntakeParts { enqueuer, meters, closing, .. } = &self.parts;
        let taken = Arc::clone(enqueuer).enqueue_files(source, how, closing.clone()).await?;
        meters.enqueued(taken.jobs);
        tracing::info!(
            sessions = taken.sessions.len(),
            jobs = taken.jobs,
            entries = taken.entries,
            problems = taken.problems.len(),
            findings = taken.places.len(),
            "enqueued"
        );
        refusal(&taken).map_or(Ok(taken), Err)
    }
}

/// Returns the error for a body with nothing usable.
fn refusal(taken: &IntakeReport) -> Option<ApiError> {
    if !taken.sessions.is_empty() {
        return None;
    }
    let mut problems = taken.problems.iter().chain(&taken.empty);
    let bad = |what: &str| ApiError::new(StatusCode::BAD_REQUEST, what, "body", EXPECTED);
    let Some(first) = problems.next() else {
        return (taken.forgotten + taken.copies == 0).then(|| bad("nothing in it"));
    };
    let more = problems.count();
    let what = match more {
        0 => first.problem.clone(),
        more => format!("{} (and {more} more)", first.problem),
    };
    let mut error = bad(&what);
    error.status = match more as u64 + 1 {
        all if all == taken.too_large => StatusCode::PAYLOAD_TOO_LARGE,
        all if all == taken.busy => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    };
    Some(error)
}

pub(super) fn too_many(bodies_max: usize, whose: &str) -> ApiError {
    let what = format!("{bodies_max} bodies {whose}are in progress");
    let expected = "fewer at a time: send it again later";
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, &what, "body", expected)
}

pub(super) fn too_large(bytes_max: u64) -> ApiError {
    let expected = format!("at most {bytes_max} bytes");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "it is too large", "body", &expected)
}

fn broken(error: &(dyn Error + 'static)) -> ApiError {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(given_up) = error.downcast_ref() {
            let (status, expected) = match given_up {
                GivenUp::TooSlow => (StatusCode::REQUEST_TIMEOUT, "a faster upload"),
                GivenUp::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "send it again"),
            };
            return ApiError::new(status, &error.to_string(), "body", expected);
        }
        cause = error.source();
    }
    let what = "it is incomplete";
    ApiError::new(StatusCode::BAD_REQUEST, what, "body", "a complete body")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::FileProblem;

    #[test]
    fn a_body_is_worth_another_try_only_if_others_were_in_its_way() {
        let status = |problems: usize, busy: u64| {
            let mut taken = IntakeReport::default();
            let problem = FileProblem { path: "p".to_owned(), problem: "x".to_owned() };
            taken.problems = vec![problem; problems];
            taken.busy = busy;
            refusal(&taken).unwrap().status.as_u16()
        };
        assert_eq!(
            [(2, 2), (2, 1), (1, 0), (0, 0)].map(|(all, busy)| status(all, busy)),
            [503, 400, 400, 400]
        );
    }
}
