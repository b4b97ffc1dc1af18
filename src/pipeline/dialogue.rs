//! A talk with a model, whatever it is about: asks until the talk says that it is over, goes down the output modes where the
//! endpoint refuses a way of asking, and remembers what worked. The one loop in which a model is asked.

use super::budget::ReachedCap;
use super::model_client::{AskError, CallContext, Model, ModelClient, Spending};
use crate::domain::{ErrorKind, ModelError, OutputMode, Reply, Request, RequestDigest, Retry};
use crate::store::{Store, StoreError};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Talks in a row that must be answered on a lower rung before the next ones begin there, where the
/// endpoint did not refuse a higher one: a model may have had a bad moment.
const LOWER_MIN: u32 = 3;

/// A talk without I/O: it says what to ask, and is handed the reply. It ends by itself.
pub(crate) trait ModelDialogue {
    /// What it comes to.
    type End;

    /// Takes the reply to the last request.
    fn reply(&mut self, reply: &Reply) -> DialogueStep<Self::End>;
    /// The endpoint does not take this way of asking.
    fn rung_refused(&mut self) -> DialogueStep<Self::End>;
    /// The last request cannot be made: ends with what there is.
    fn stop(&mut self) -> DialogueStep<Self::End>;
    /// Whether earlier answers gave something that is worth ending with.
    fn has_kept(&self) -> bool;
}

/// Who answers: the journal and a model, or a cassette.
pub(crate) trait ReplySource {
    /// The answer to `request`, or why there is none.
    async fn answer(&mut self, request: &Request) -> Result<Reply, AskError>;
}

/// Whether the endpoint refused a way of asking.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused(pub(crate) bool);

/// What a talk does next.
pub(crate) enum DialogueStep<T> {
    /// This is asked.
    Ask(Request),
    /// It is over.
    End(T),
}

/// How a talk ended.
pub(crate) enum DialogueEnd<T> {
    /// By itself.
    Done(T),
    /// The question is longer than the model reads.
    TooLong(ModelError),
    /// The question is refused for good.
    Failed(ModelError),
    /// There is no answer now.
    Deferred(Deferral),
}

/// Why there is no answer now.
pub(crate) enum Deferral {
    /// A cap on tokens or money is reached.
    Cap(ReachedCap),
    /// The endpoint is busy or away.
    Unanswered(ModelError),
    /// Nothing will work until a person mends it.
    Needs(ModelError),
    /// Somebody asked to stop.
    Stopped,
}

/// Where talks begin.
pub(crate) struct OutputModeFallback {
    rung: Mutex<OutputMode>,
    /// Talks in a row that were answered on a lower rung than they began on.
    lower: AtomicU32,
}

/// Talks until it is known what it comes to; `returns` says whether it is taken up again later if there is no answer
/// now. Only the store's errors are errors. The worker, consolidation and prompt tests share it.
pub(crate) async fn talk<T: ModelDialogue>(
    (talk, first): (&mut T, Request),
    returns: bool,
    answers: &mut impl ReplySource,
) -> Result<(DialogueEnd<T::End>, Refused), StoreError> {
    let (mut next, mut refused) = (DialogueStep::Ask(first), Refused(false));
    // The talk itself is bounded by ASKS_MAX.
    loop {
        let request = match next {
            DialogueStep::Ask(request) => request,
            DialogueStep::End(end) => return Ok((DialogueEnd::Done(end), refused)),
        };
        let error = match answers.answer(&request).await {
            Ok(reply) => {
                next = talk.reply(&reply);
                continue;
            }
            Err(AskError::Store(error)) => return Err(error),
            Err(AskError::Cap(reached)) => {
                return Ok((DialogueEnd::Deferred(Deferral::Cap(reached)), refused));
            }
            Err(AskError::Model(error)) => error,
        };
        let ended = match error.retry() {
            Retry::NextOutputMode => {
                refused = Refused(true);
                next = talk.rung_refused();
                continue;
            }
            Retry::After { .. } if returns => DialogueEnd::Deferred(Deferral::Unanswered(error)),
            // What was kept of earlier answers is worth more than a new question.
            Retry::Smaller | Retry::Never | Retry::After { .. } if talk.has_kept() => {
                next = talk.stop();
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
        return Ok((ended, refused));
    }
}

/// The journal and the model, for somebody who pays.
struct JournaledReplies<'a> {
    client: &'a ModelClient,
    context: CallContext<'a>,
    spent: &'a mut Spending,
    /// What was asked so far: bounded by ASKS_MAX.
    asked: Vec<RequestDigest>,
}

impl ReplySource for JournaledReplies<'_> {
    async fn answer(&mut self, request: &Request) -> Result<Reply, AskError> {
        let digest = request.digest();
        let before = self.asked.iter().filter(|asked| **asked == digest).count() as u32;
        self.asked.push(digest);
        self.client.sample(request, before, self.context, self.spent).await
    }
}

impl ModelClient {
    /// Talks until it is known what it comes to; adds what that cost to `paid`. Only the store's errors are errors.
    pub(crate) async fn talk<T: ModelDialogue>(
        &self,
        about: &mut T,
        first: Request,
        context: CallContext<'_>,
        spent: &mut Spending,
    ) -> Result<DialogueEnd<T::End>, StoreError> {
        let mut answers = JournaledReplies { client: self, context, spent, asked: Vec::new() };
        let (ended, refused) = talk((about, first), context.returns, &mut answers).await?;
        spent.refused |= refused.0;
        Ok(ended)
    }

    /// Begins lower from now on with `model`, if this way of asking is no use at this endpoint.
    pub(crate) async fn learn(
        &self,
        model: &str,
        (worked, refused): (OutputMode, bool),
    ) -> Result<(), StoreError> {
        if self.output_modes.learn(worked, refused) && matches!(self.model, Model::Endpoint(_)) {
            let (at, base_url) = ((self.clock)(), &self.base_url);
            let learn =
                |store: Store| async move { store.learn(base_url, model, worked, at).await };
            self.store.retry(learn).await?;
        }
        Ok(())
    }
}

impl OutputModeFallback {
    /// Begins on `rung`.
    pub(crate) fn new(rung: OutputMode) -> OutputModeFallback {
        OutputModeFallback { rung: Mutex::new(rung), lower: AtomicU32::new(0) }
    }

    /// The rung that the next talk begins on.
    pub(crate) fn rung(&self) -> OutputMode {
        *self.locked()
    }

    /// Takes the rung that a talk ended on; says whether the next ones begin lower.
    pub(crate) fn learn(&self, worked: OutputMode, refused: bool) -> bool {
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

    fn locked(&self) -> MutexGuard<'_, OutputMode> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
