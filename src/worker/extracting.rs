//! One slice from question to records: ask, decode, ground. Stores nothing but answers; what a slice
//! came to is its caller's to store.

use super::asking::{Asker, For, Model, NoAnswer, Paid};
use super::budget::Reached;
use crate::domain::{
    Digest, ErrorKind, Finding, ModelError, Provenance, Record, Retry, RunId, Rung, Session, Slice,
    SliceId,
};
use crate::edge::store::{Failure, Store, StoreError};
use crate::extract::{Asking, Exchange, Extraction, Step};
use crate::grounding::ground;
use crate::privacy::{Gate, Redacted};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Slices in a row that must be answered on a lower rung before the next ones begin there, where the
/// endpoint did not refuse a higher one: a model may have had a bad moment.
const LOWER_MIN: u32 = 3;

/// What slices are asked about with.
pub(super) struct Extractor {
    pub(super) asker: Asker,
    pub(super) asking: Arc<Asking>,
    /// Everything that makes two answers to one slice comparable.
    pub(super) asking_digest: Digest,
    pub(super) gate: Gate,
    pub(super) base_url: String,
    pub(super) ladder: Ladder,
}

/// Where exchanges begin.
pub(super) struct Ladder {
    rung: Mutex<Rung>,
    /// Slices in a row that were answered on a lower rung than they began on.
    lower: AtomicU32,
}

/// What a slice came to.
pub(super) enum Outcome {
    /// There is an extraction; it may be empty.
    Extracted {
        /// Its claims, proven or quarantined.
        records: Vec<Record>,
        /// What was wrong with the answers.
        findings: Vec<Finding>,
        /// The rung that worked.
        rung: Rung,
    },
    /// It failed for good.
    Failed(Failure, Vec<Finding>),
    /// It is longer than the model reads.
    TooLong(ModelError),
    /// There is no answer now.
    Waits(Waiting),
}

/// Why there is no answer now.
pub(super) enum Waiting {
    /// A cap on tokens or money is reached.
    Cap(Reached),
    /// The endpoint is busy or away.
    Unanswered(ModelError),
    /// Nothing will work until a person mends it.
    Needs(ModelError),
    /// Somebody asked to stop.
    Stopped,
}

impl Extractor {
    /// The id of the run that asks about `slice` in our way.
    pub(super) fn run_id(&self, slice: SliceId) -> RunId {
        RunId(Digest::of(&["run", &slice.to_string(), &self.asking_digest.to_string()]))
    }

    /// Asks about `slice`, told of what is `before` it, until it is known what it comes to; adds what that cost to `paid`. Only the
    /// store's errors are errors.
    pub(super) async fn extract(
        &self,
        (slice, before): (&Slice, Option<&Redacted>),
        whose: For<'_>,
        generation: u32,
        paid: &mut Paid,
    ) -> Result<Outcome, StoreError> {
        let start = self.ladder.rung();
        let (mut exchange, request) =
            Exchange::start(&self.asking, slice, before, start, generation);
        let mut step = Step::Ask(request);
        // The exchange itself is bounded by ASKS_MAX.
        loop {
            let request = match step {
                Step::Ask(request) => request,
                Step::Done(extraction) => {
                    self.learn(extraction.rung, paid.refused).await?;
                    return Ok(self.ground(slice, whose, extraction));
                }
                Step::Stuck(stuck) => {
                    let kind = stuck.kind.name().to_owned();
                    let failure = Failure { kind, detail: stuck.detail };
                    return Ok(Outcome::Failed(failure, stuck.findings));
                }
            };
            step = match self.asker.ask(&request, whose, paid).await {
                Ok(reply) => exchange.reply(&reply),
                Err(NoAnswer::Store(error)) => return Err(error),
                Err(NoAnswer::Cap(reached)) => return Ok(Outcome::Waits(Waiting::Cap(reached))),
                Err(NoAnswer::Model(error)) => match error.retry() {
                    Retry::NextRung => {
                        paid.refused = true;
                        exchange.rung_refused()
                    }
                    Retry::After { .. } if whose.returns => {
                        return Ok(Outcome::Waits(Waiting::Unanswered(error)));
                    }
                    // What was kept of earlier answers is worth more than a new question.
                    Retry::Smaller | Retry::Never | Retry::After { .. } if exchange.kept() > 0 => {
                        exchange.stop()
                    }
                    Retry::After { .. } => {
                        return Ok(Outcome::Waits(Waiting::Unanswered(error)));
                    }
                    Retry::Smaller => return Ok(Outcome::TooLong(error)),
                    Retry::Never => return Ok(Outcome::Failed(failure(error), Vec::new())),
                    Retry::Stop if error.kind == ErrorKind::Cancelled => {
                        return Ok(Outcome::Waits(Waiting::Stopped));
                    }
                    Retry::Stop => return Ok(Outcome::Waits(Waiting::Needs(error))),
                },
            };
        }
    }

    fn ground(&self, slice: &Slice, whose: For<'_>, extraction: Extraction) -> Outcome {
        let from = provenance(whose.session, slice, whose.run);
        // What a model wrote in escapes passed the gate unseen; its words pass it again.
        let pass = |text: &str| self.gate.redact(text).as_str().to_owned();
        let claims = extraction.claims.into_iter().map(|claim| claim.map(&pass)).collect();
        Outcome::Extracted {
            records: ground(slice, claims, &from),
            findings: extraction.findings,
            rung: extraction.rung,
        }
    }

    /// Begins lower from now on, if this way of asking is no use at this endpoint.
    async fn learn(&self, worked: Rung, refused: bool) -> Result<(), StoreError> {
        if self.ladder.learn(worked, refused) && matches!(self.asker.model, Model::Endpoint(_)) {
            let (at, model) = ((self.asker.clock)(), &self.asking.model);
            let learn =
                |store: Store| async move { store.learn(&self.base_url, model, worked, at).await };
            self.asker.steady.keep(learn).await?;
        }
        Ok(())
    }
}

impl Ladder {
    /// Begins on `rung`.
    pub(super) fn new(rung: Rung) -> Ladder {
        Ladder { rung: Mutex::new(rung), lower: AtomicU32::new(0) }
    }

    /// The rung that the next exchange begins on.
    pub(super) fn rung(&self) -> Rung {
        *self.locked()
    }

    /// Takes the rung that an exchange ended on; says whether the next ones begin lower.
    fn learn(&self, worked: Rung, refused: bool) -> bool {
        let mut rung = self.locked();
        if worked <= *rung {
            self.lower.store(0, Ordering::Relaxed);
            return false;
        }
        let times = self.lower.fetch_add(1, Ordering::Relaxed) + 1;
        let lower = refused || times >= LOWER_MIN;
        *rung = if lower { worked } else { *rung };
        lower
    }

    fn locked(&self) -> MutexGuard<'_, Rung> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A failed call as the failure of its slice.
pub(super) fn failure(error: ModelError) -> Failure {
    Failure { kind: error.kind.name().to_owned(), detail: error.detail }
}

fn provenance(session: &Session, slice: &Slice, run: RunId) -> Provenance {
    Provenance {
        namespace: session.namespace.clone(),
        session: session.id,
        slice: slice.id,
        run,
        entries: slice.range(),
        at: slice.parts.iter().find_map(|part| part.at),
    }
}
