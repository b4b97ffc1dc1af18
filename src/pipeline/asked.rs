//! Rebuilds the requests of an extraction from the stored entries and answers, as the worker builds them. Asks nothing.

use super::extractor::extraction_spec;
use super::preamble::{Preamble, PreambleSettings};
use crate::config::Config;
use crate::domain::{Request, RequestDigest, Session};
use crate::extract::Exchange;
use crate::llm::{ModelDialogue, Step};
use crate::slicing::{Cutting, Slicer, halve};
use crate::store::{KeptAnswer, PrefixLookup, Run, Store, StoreResult};

/// Entries behind a slice that may decide where it ends: more than two slices hold.
const BEHIND_MAX: u32 = 4_096;

/// A request with its answer. A request without one was not answered, was answered from a recording, or differs from
/// the one that was sent, because the settings or the prompt have changed since.
pub(crate) struct Asked {
    pub request: Option<Request>,
    pub answer: Option<KeptAnswer>,
}

/// Requests of `run`, then the answers whose requests cannot be rebuilt. With other settings of slices there is no request.
pub(crate) async fn asked(store: &Store, config: &Config, run: &Run) -> StoreResult<Vec<Asked>> {
    let mut answers = store.answers_of(run.id).await?;
    let mut asked = Vec::new();
    if let PrefixLookup::One(session) = store.session_named(&run.session.to_string()).await?
        && let Some(cutting) = cutting(store, config, &session, run).await?
    {
        let settings = PreambleSettings::of(config);
        let first = run.first.0;
        let mut preamble = Preamble::upto(store, &settings, &session, None, first).await?;
        let rung = answers.first().map_or(run.rung, |it| it.rung);
        let spec = extraction_spec(config, &run.model);
        let before = preamble.before(first);
        let (mut exchange, request) =
            Exchange::start(&spec, &cutting.slice, before.as_ref(), rung, run.generation);
        let mut next = Some(request);
        while let Some(request) = next.take() {
            let digest = request.digest();
            let own = answers.iter().position(|it| RequestDigest(it.digest) == digest);
            let answer = own.map(|own| answers.remove(own));
            if let Some(Step::Ask(request)) = answer.as_ref().map(|it| exchange.reply(&it.reply)) {
                next = Some(request);
            }
            asked.push(Asked { request: Some(request), answer });
        }
    }
    asked.extend(answers.into_iter().map(|it| Asked { request: None, answer: Some(it) }));
    Ok(asked)
}

/// Cuts the stored entries of `session` again, up to the slice of `run`.
async fn cutting(
    store: &Store,
    config: &Config,
    session: &Session,
    run: &Run,
) -> StoreResult<Option<Cutting>> {
    let growth = store.growth(session.id).await?.unwrap_or_default();
    let mut slicer = Slicer::new(session.id, config.slice, growth.ends.into_iter().collect());
    let upto = run.last.0.saturating_add(BEHIND_MAX);
    let entries = store.entries_of(session.id, 0..upto).await?.into_iter();
    let mut slices = entries.filter(|it| it.skip.is_none()).flat_map(|it| slicer.push(it));
    let found = slices.find_map(|it| part(it, run));
    Ok(found.or_else(|| slicer.finish().into_iter().find_map(|it| part(it, run))))
}

/// Returns the slice of `run`: `cutting`, or a part of it if it was too long for the model.
fn part(cutting: Cutting, run: &Run) -> Option<Cutting> {
    let (first, last) = cutting.slice.range();
    if cutting.slice.id == run.slice {
        return Some(cutting);
    }
    let is_in = first <= run.first.0 && run.last.0 <= last;
    is_in.then(|| halve(&cutting)).into_iter().flatten().find_map(|it| part(it, run))
}
