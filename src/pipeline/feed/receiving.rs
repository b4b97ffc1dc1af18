//! Received streams: each message is a slice document, and is acknowledged after its content is in the store.

use super::{Feed, RETRY};
use crate::adapters::nats::{Delivery, NatsError, Source, ack_all};
use crate::domain::SessionId;
use crate::pipeline::ingest::{Document, DocumentError, EnqueueOptions};
use crate::store::StoreError;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Maximum number of messages in a batch, whose intakes share commits.
const BATCH: usize = 128;
/// Maximum wait of a fetch for its first message.
const WAIT: Duration = Duration::from_secs(5);
/// Maximum number of deliveries of a message whose session lacks earlier entries: some ten seconds.
const EARLY_MAX: u64 = 6;

#[derive(Default)]
struct Handled {
    taken: Vec<Delivery>,
    jobs: u64,
    /// Number of messages to be redelivered.
    back: u32,
    verdict: Option<NatsError>,
    failed: Option<StoreError>,
}

impl Feed {
    /// Enqueues messages of `source`, until it is closed or drained. Fails with the action for the user, in one line.
    pub(crate) async fn receiving(self, source: Source, how: EnqueueOptions) -> Result<(), String> {
        let from = source.url().to_string();
        loop {
            let fetched = tokio::select! {
                () = self.closing.cancelled() => return Ok(()),
                fetched = source.fetch(BATCH, WAIT) => fetched,
            };
            let handled = match fetched {
                Ok(deliveries) if deliveries.is_empty() && self.drain.is_some() => {
                    match source.is_drained().await {
                        Ok(true) => return Ok(()),
                        // Another worker holds messages, or did and is gone: they are redelivered if it fails.
                        held => held.map(drop),
                    }
                }
                Ok(deliveries) => self.batch(deliveries, &from, &how).await,
                Err(error) => Err(error),
            };
            if let Err(error) = handled {
                let Some(pause) = error.retry_after() else {
                    return Err(self.give_up(error.to_string()));
                };
                if self.drain.is_some() {
                    return Err(error.to_string());
                }
                tracing::warn!(%error, "stream unavailable");
                if !self.pause(pause).await {
                    return Ok(());
                }
            }
        }
    }

    /// Enqueues a batch: sessions concurrently, the messages of each in order.
    pub(super) async fn batch(
        &self,
        deliveries: Vec<Delivery>,
        from: &str,
        how: &EnqueueOptions,
    ) -> Result<(), NatsError> {
        let mut sessions: BTreeMap<SessionId, Vec<(Delivery, Document)>> = BTreeMap::new();
        for delivery in deliveries {
            match self.enqueuer.open(delivery.payload(), from, how) {
                Ok(document) => {
                    let session = document.session.id;
                    sessions.entry(session).or_default().push((delivery, document));
                }
                Err(bad) => self.reject(delivery, &bad.to_string()).await?,
            }
        }
        let sessions = sessions.into_values().map(|opened| self.session(opened, how));
        let mut all = Handled::default();
        for handled in join_all(sessions).await {
            all.taken.extend(handled.taken);
            all.jobs += handled.jobs;
            all.back += handled.back;
            all.verdict = all.verdict.or(handled.verdict);
            all.failed = all.failed.or(handled.failed);
        }
        let messages = all.taken.len();
        if messages > 0 {
            // Before the acknowledgement: redelivered messages bring no jobs.
            (self.enqueued)(all.jobs);
            ack_all(all.taken).await?;
            tracing::info!(from, messages, jobs = all.jobs, "messages enqueued");
        }
        if let Some(error) = all.failed {
            tracing::warn!(%error, messages = all.back, "messages wait for the store");
            // A permanent failure stops the worker, which reports it.
            let _ = self.pause(RETRY).await;
        }
        all.verdict.map_or(Ok(()), Err)
    }

    /// Enqueues the messages of one session. After one that is to be redelivered, so are all later ones, which keeps
    /// their order.
    async fn session(&self, opened: Vec<(Delivery, Document)>, how: &EnqueueOptions) -> Handled {
        let mut handled = Handled::default();
        let last = opened.len().saturating_sub(1);
        for (at, (delivery, document)) in opened.into_iter().enumerate() {
            if handled.back > 0 {
                self.again(delivery, &mut handled).await;
                continue;
            }
            // Only the last message flushes, which makes fewer slices.
            let how = EnqueueOptions { flush: how.flush && at == last, ..how.clone() };
            match self.enqueuer.document(document, &how).await {
                Ok(taken) => {
                    handled.jobs += u64::from(taken.jobs);
                    handled.taken.push(delivery);
                }
                // Later messages may be the ones that it waits for.
                Err(DocumentError::Early(_)) if delivery.deliveries() < EARLY_MAX => {
                    let _ = delivery.nak(RETRY).await;
                }
                Err(DocumentError::Refused(line) | DocumentError::Early(line)) => {
                    if let Err(error) = self.reject(delivery, &line).await {
                        handled.verdict = Some(error);
                    }
                }
                Err(DocumentError::Busy) => self.again(delivery, &mut handled).await,
                Err(DocumentError::Store(error)) => {
                    handled.failed = Some(error);
                    self.again(delivery, &mut handled).await;
                }
            }
        }
        handled
    }

    async fn again(&self, delivery: Delivery, handled: &mut Handled) {
        handled.back += 1;
        // If this fails, the server redelivers it anyway, later.
        let _ = delivery.nak(RETRY).await;
    }

    async fn reject(&self, delivery: Delivery, reason: &str) -> Result<(), NatsError> {
        (self.tell)(&format!("message {} is rejected: {reason}", delivery.sequence()));
        self.rejected.fetch_add(1, Ordering::Relaxed);
        delivery.reject(reason).await
    }
}
