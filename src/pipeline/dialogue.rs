//! A dialogue with a model: asks until the dialogue ends, and lowers the output mode where the endpoint refuses one.
//! The only loop that asks a model; extraction, consolidation and prompt tests share it.

use super::model_client::{AskError, Billing, CallContext, Model, ModelClient, Spending};
use crate::domain::{
    Digest, ErrorKind, ModelError, OutputMode, Purpose, Reply, Request, RequestDigest, Retry,
    Timestamp,
};
use crate::llm::{ModelDialogue, Step};
use crate::store::{CapReached, StoreResult};

/// Time for which unusable answers about memory are reused, in milliseconds; then the same questions are asked and paid
/// for again.
const UNUSABLE_KEPT_MILLIS: i64 = 60 * 60 * 1000;

/// Source of replies: the journal and a model, or a cassette.
pub(crate) trait ReplySource {
    async fn answer(&mut self, request: &Request) -> Result<Reply, AskError>;
    /// True if no output mode worked before, so that it is not worth trying more than one.
    fn is_exhausted(&self) -> bool {
        false
    }
}

pub(crate) enum DialogueEnd<T> {
    Done(T),
    /// The request exceeds the context window.
    TooLong(ModelError),
    /// The request failed permanently.
    Failed(ModelError),
    Deferred(Deferral),
}

pub(crate) enum Deferral {
    Cap(CapReached),
    /// The endpoint is busy or unreachable.
    Unanswered(ModelError),
    /// The user must act first.
    Needs(ModelError),
    Stopped,
}

/// Runs a dialogue to its end; also returns true if the endpoint refused an output mode. `is_resumable` means that the
/// caller resumes the dialogue later if there is no answer now. Only store errors are `Err`.
pub(crate) async fn run<T: ModelDialogue>(
    dialogue: &mut T,
    first: Request,
    is_resumable: bool,
    source: &mut impl ReplySource,
) -> StoreResult<(DialogueEnd<T::Outcome>, bool)> {
    let (is_exhausted, first_mode) = (source.is_exhausted(), first.rung);
    let (mut step, mut refused) = (Step::Ask(first), false);
    loop {
        let request = match step {
            // No other mode worked before.
            Step::Ask(request)
                if is_exhausted && request.rung != first_mode && !dialogue.has_partial_result() =>
            {
                step = dialogue.stop();
                continue;
            }
            Step::Ask(request) => request,
            Step::Done(outcome) => return Ok((DialogueEnd::Done(outcome), refused)),
        };
        let error = match source.answer(&request).await {
            Ok(reply) => {
                step = dialogue.reply(&reply);
                continue;
            }
            Err(AskError::Store(error)) => return Err(error),
            Err(AskError::Cap(cap)) => {
                return Ok((DialogueEnd::Deferred(Deferral::Cap(cap)), refused));
            }
            Err(AskError::Model(error)) => error,
        };
        let end = match error.retry() {
            Retry::NextOutputMode => {
                refused = true;
                step = dialogue.output_mode_refused();
                continue;
            }
            Retry::After { .. } if is_resumable => {
                DialogueEnd::Deferred(Deferral::Unanswered(error))
            }
            // Earlier answers gave a partial result, which is better than none.
            Retry::Smaller | Retry::Never | Retry::After { .. }
                if dialogue.has_partial_result() =>
            {
                step = dialogue.stop();
                continue;
            }
            Retry::After { .. } => DialogueEnd::Deferred(Deferral::Unanswered(error)),
            Retry::Smaller => DialogueEnd::TooLong(error),
            Retry::Never => DialogueEnd::Failed(error),
            Retry::Stop if error.kind == ErrorKind::Cancelled => {
                DialogueEnd::Deferred(Deferral::Stopped)
            }
            Retry::Stop => DialogueEnd::Deferred(Deferral::Needs(error)),
        };
        return Ok((end, refused));
    }
}

struct ClientReplies<'a> {
    client: &'a ModelClient,
    context: CallContext<'a>,
    spent: &'a mut Spending,
    asked: Vec<RequestDigest>,
}

impl ReplySource for ClientReplies<'_> {
    async fn answer(&mut self, request: &Request) -> Result<Reply, AskError> {
        let digest = request.digest();
        let before = self.asked.iter().filter(|asked| **asked == digest).count() as u32;
        self.asked.push(digest);
        // A repeated request asks for another sample.
        let key = match before {
            0 => digest,
            _ => RequestDigest(Digest::of(&["sample", &digest.0.to_string(), &before.to_string()])),
        };
        self.client.ask(request, key, self.context, self.spent).await
    }

    fn is_exhausted(&self) -> bool {
        self.client.output_mode.is_exhausted()
    }
}

impl ModelClient {
    /// Runs a dialogue to its end and adds its cost to `spent`. Only store errors are `Err`.
    pub(crate) async fn run<T: ModelDialogue>(
        &self,
        dialogue: &mut T,
        first: Request,
        context: CallContext<'_>,
        spent: &mut Spending,
    ) -> StoreResult<DialogueEnd<T::Outcome>> {
        let mut source = ClientReplies { client: self, context, spent, asked: Vec::new() };
        let (end, refused) = run(dialogue, first, context.is_resumable, &mut source).await?;
        let asked = source.asked;
        spent.refused |= refused;
        if dialogue.is_exhausted() && matches!(end, DialogueEnd::Done(_)) {
            self.output_mode.exhaust();
            // A run has generations; pairs are asked about again in the same words, but not paid for in every run.
            if matches!(context.billing, Billing::Own { purpose: Purpose::Consolidate, .. }) {
                let end = Timestamp((self.clock)().0 - UNUSABLE_KEPT_MILLIS);
                self.store.retry(|store| store.discard_answers(asked.clone(), end)).await?;
            }
        }
        Ok(end)
    }

    /// Records the output mode that a dialogue with `model` ended in; a lower one is also stored.
    pub(crate) async fn learn(
        &self,
        model: &str,
        worked: OutputMode,
        refused: bool,
    ) -> StoreResult<()> {
        if self.output_mode.learn(worked, refused) && matches!(self.model, Model::Endpoint(_)) {
            let at = (self.clock)();
            self.store.retry(|store| store.learn(&self.base_url, model, worked, at)).await?;
        }
        Ok(())
    }
}
