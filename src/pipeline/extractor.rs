//! One slice from question to records: ask, decode, ground. Stores nothing but answers; what a slice
//! came to is its caller's to store.

use super::dialogue::{Deferral, DialogueEnd, DialogueStep, ModelDialogue};
use super::model_client::{Billing, CallContext, CapOwner, ModelClient, Spending};
use crate::domain::{
    Digest, Finding, ModelError, OutputMode, Provenance, Record, Reply, RunId, Session, Slice,
    SliceId,
};
use crate::extract::{self, Exchange, Extraction, ExtractionSpec, Step};
use crate::grounding::ground;
use crate::privacy::{Gate, Redacted};
use crate::store::{RunFailure, StoreError};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What slices are asked about with.
pub(crate) struct Extractor {
    pub(crate) client: Arc<ModelClient>,
    pub(crate) asking: Arc<ExtractionSpec>,
    /// Everything that makes two answers to one slice comparable.
    pub(crate) asking_digest: Digest,
    pub(crate) gate: Gate,
}

/// A slice, and what it is told.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) session: &'a Session,
    pub(crate) run: RunId,
    pub(crate) slice: &'a Slice,
    /// What went before it.
    pub(crate) before: Option<&'a Redacted>,
}

impl<'a> About<'a> {
    /// Who asks: its session pays, and its run has the bill.
    pub(crate) fn asks(&self, stop: &'a CancellationToken, returns: bool) -> CallContext<'a> {
        let cap_owner =
            CapOwner { namespace: &self.session.namespace, session: Some(self.session.id) };
        CallContext { cap_owner, billing: Billing::Run(self.run), stop, patience: None, returns }
    }
}

/// What a slice came to.
pub(crate) enum Outcome {
    /// There is an extraction; it may be empty.
    Extracted {
        /// Its claims, proven or quarantined.
        records: Vec<Record>,
        /// What was wrong with the answers.
        findings: Vec<Finding>,
        /// The rung that worked.
        rung: OutputMode,
    },
    /// It failed for good.
    Failed(RunFailure, Vec<Finding>),
    /// It is longer than the model reads.
    TooLong(ModelError),
    /// There is no answer now.
    Deferred(Deferral),
}

impl Extractor {
    /// The id of the run that asks about `slice` in our way.
    pub(crate) fn run_id(&self, slice: SliceId) -> RunId {
        run_id(self.asking_digest, slice)
    }

    /// Asks about a slice until it is known what it comes to; adds what that cost to `paid`. Only the
    /// store's errors are errors.
    pub(crate) async fn extract(
        &self,
        about: About<'_>,
        context: CallContext<'_>,
        generation: u32,
        spent: &mut Spending,
    ) -> Result<Outcome, StoreError> {
        let (slice, start) = (about.slice, self.client.output_modes.rung());
        let (mut exchange, request) =
            Exchange::start(&self.asking, slice, about.before, start, generation);
        Ok(match self.client.talk(&mut exchange, request, context, spent).await? {
            DialogueEnd::Done(Ok(extraction)) => {
                let rung = extraction.rung;
                self.client.learn(&self.asking.model, (rung, spent.refused)).await?;
                let of = (about.session, about.run);
                let (records, findings) = prove(&self.gate, slice, of, extraction);
                Outcome::Extracted { records, findings, rung }
            }
            DialogueEnd::Done(Err(why)) => {
                let (failure, findings) = stuck(why);
                Outcome::Failed(failure, findings)
            }
            DialogueEnd::TooLong(error) => Outcome::TooLong(error),
            DialogueEnd::Failed(error) => Outcome::Failed(failure(error), Vec::new()),
            DialogueEnd::Deferred(why) => Outcome::Deferred(why),
        })
    }
}

impl ModelDialogue for Exchange {
    type End = Result<Extraction, extract::Failure>;

    fn reply(&mut self, reply: &Reply) -> DialogueStep<Self::End> {
        next(Exchange::reply(self, reply))
    }

    fn rung_refused(&mut self) -> DialogueStep<Self::End> {
        next(Exchange::rung_refused(self))
    }

    fn stop(&mut self) -> DialogueStep<Self::End> {
        next(Exchange::stop(self))
    }

    fn has_kept(&self) -> bool {
        self.kept() > 0
    }
}

fn next(step: Step) -> DialogueStep<Result<Extraction, extract::Failure>> {
    match step {
        Step::Ask(request) => DialogueStep::Ask(request),
        Step::Done(extraction) => DialogueStep::End(Ok(extraction)),
        Step::Stuck(stuck) => DialogueStep::End(Err(stuck)),
    }
}

/// A failed call as the failure of its slice.
pub(crate) fn failure(error: ModelError) -> RunFailure {
    RunFailure { kind: error.kind.name().to_owned(), detail: error.detail }
}

/// A talk that came to nothing as the failure of its slice.
pub(crate) fn stuck(why: extract::Failure) -> (RunFailure, Vec<Finding>) {
    (RunFailure { kind: why.kind.name().to_owned(), detail: why.detail }, why.findings)
}

/// The records that an extraction of `slice` comes to, proven or quarantined, and what was wrong with the answers.
pub(crate) fn prove(
    gate: &Gate,
    slice: &Slice,
    (session, run): (&Session, RunId),
    extraction: Extraction,
) -> (Vec<Record>, Vec<Finding>) {
    let from = Provenance {
        namespace: session.namespace.clone(),
        session: session.id,
        slice: slice.id,
        run,
        entries: slice.range(),
        at: slice.parts.iter().find_map(|part| part.at),
    };
    // What a model wrote in escapes passed the gate unseen; its words pass it again.
    let pass = |text: &str| gate.redact(text).as_str().to_owned();
    let claims = extraction.claims.into_iter().map(|claim| claim.map(&pass)).collect();
    (ground(slice, claims, &from), extraction.findings)
}

/// The id of the run that asks about `slice` in the way that `asking` digests.
pub(crate) fn run_id(asking: Digest, slice: SliceId) -> RunId {
    RunId(Digest::of(&["run", &slice.to_string(), &asking.to_string()]))
}
