//! A question that several runs have at the same time is asked by one of them; the others wait and find the answer in
//! the journal.

use crate::domain::{Reply, Request};
use crate::edge::process;
use crate::edge::store::StoreError;
use crate::worker::asking::{Asker, For, NoAnswer, Paid};
use crate::worker::holding::{Asks, Held};
use std::time::Duration;
use tokio::sync::Semaphore;

/// How often we look whether somebody else has the answer.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Asks each question under a lease of its own.
pub(super) struct AskOnce {
    asker: Asker,
    /// Leases at once: one that waits for its call would be prolonged for nothing.
    leases: Semaphore,
}

impl AskOnce {
    /// With so many questions at once.
    pub(super) fn new(asker: Asker, questions: usize) -> AskOnce {
        AskOnce { asker, leases: Semaphore::new(questions.clamp(1, Semaphore::MAX_PERMITS)) }
    }

    /// The answer to `request`, and what it cost added to `paid`.
    pub(super) async fn ask(
        &self,
        request: &Request,
        whose: For<'_>,
        paid: &mut Paid,
    ) -> Result<Reply, NoAnswer> {
        // It is never closed.
        let _turn = self.leases.acquire().await.ok();
        let held = self.hold(request, whose).await?;
        // The journal is looked into again: who held it before may have been answered.
        let answer = self.asker.ask(request, whose, paid).await;
        if let Some(held) = held {
            held.end().await?;
        }
        answer
    }

    /// The lease of a question; none if its answer is kept, or if somebody asked to stop.
    async fn hold(&self, request: &Request, whose: For<'_>) -> Result<Option<Held>, StoreError> {
        let digest = request.digest();
        let store = self.asker.store();
        let name = format!("question {digest}");
        // Ends with the answer, the lease, or a stop; a lease ends with whoever holds it.
        loop {
            if store.journaled(digest).await?.is_some() || whose.stop.is_cancelled() {
                return Ok(None);
            }
            let (holder, clock) = (process::name(), self.asker.clock);
            let held = Asks { store, holder, clock, waits: false }.take(&name).await?;
            if held.is_some() {
                return Ok(held);
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = whose.stop.cancelled() => return Ok(None),
            }
        }
    }
}
