//! Trial extraction of a tiny conversation, along the usual path: shows whether a model can fill the tool.

use super::dialogue::{self, Deferral, DialogueEnd, ReplySource};
use super::import::unstored;
use super::model_client::AskError;
use super::setup::extraction_spec;
use crate::config::Config;
use crate::domain::{
    ClaimKind, Digest, EntryKind, LanguageModel, OutputMode, Reply, Request, SessionId, Speaker,
};
use crate::extract::Exchange;
use crate::grounding::ground;
use crate::llm::Endpoint;
use crate::privacy::{Gate, Report};
use crate::slicing::Slicer;
use crate::transcripts::{RawEntry, redact_entry};
use std::collections::BTreeSet;

/// A conversation with one decision.
const TALK: [(Speaker, EntryKind, &str); 3] = [
    (
        Speaker::Person,
        EntryKind::Prompt,
        "Shall the cache of the importer be in Redis or in SQLite?",
    ),
    (
        Speaker::Assistant,
        EntryKind::Text,
        "SQLite is one file and needs no server; Redis is faster.",
    ),
    (Speaker::Person, EntryKind::Prompt, "We chose SQLite over Redis because it needs no server."),
];

impl ReplySource for &Endpoint {
    async fn answer(&mut self, request: &Request) -> Result<Reply, AskError> {
        self.call(request).await.map_err(AskError::Model)
    }
}

/// Asks `model` about a conversation with one decision.
///
/// # Errors
/// A one-line reason why the decision was not found.
pub(crate) async fn trial(
    config: &Config,
    mut endpoint: &Endpoint,
    model: &str,
    output_mode: OutputMode,
) -> Result<(), String> {
    let gate = Gate::new(&config.pii);
    let id = SessionId(Digest::of(&["trial"]));
    let mut slicer = Slicer::new(id, config.slice, BTreeSet::new());
    for (ordinal, (speaker, kind, text)) in (0..).zip(TALK) {
        let raw = RawEntry::new(ordinal + 1, speaker, kind, text);
        slicer.push(redact_entry(raw, ordinal, &gate, &mut Report::default()));
    }
    let Some(cutting) = slicer.finish().pop() else { return Err("there is no slice".to_owned()) };
    let slice = &cutting.slice;
    let spec = extraction_spec(config, model);
    let (mut exchange, first) = Exchange::start(&spec, slice, None, output_mode, 0);
    let end = dialogue::run(&mut exchange, first, false, &mut endpoint).await;
    let extraction = match end.map_err(|error| error.to_string())?.0 {
        DialogueEnd::Done(Ok(extraction)) => extraction,
        DialogueEnd::Done(Err(why)) => return Err(why.detail),
        DialogueEnd::TooLong(error)
        | DialogueEnd::Failed(error)
        | DialogueEnd::Deferred(Deferral::Unanswered(error) | Deferral::Needs(error)) => {
            return Err(error.to_string());
        }
        DialogueEnd::Deferred(Deferral::Cap(_) | Deferral::Stopped) => {
            return Err("stopped".to_owned());
        }
    };
    let records = ground(slice, None, extraction.claims, &unstored(slice)).records;
    let decided = records.iter().filter(|record| record.claim.kind() == ClaimKind::Decision);
    let mut evidence = decided.flat_map(|record| &record.evidence);
    // Only `chosen` counts: the reason may be in another language than the conversation.
    match evidence.any(|it| it.field == "chosen") {
        true => Ok(()),
        false => Err(format!(
            "{model} does not find the decision in three lines that hold one; choose a model that can \
             call tools (model.model)"
        )),
    }
}
