//! Extracts one slice of a case, from recordings or with a model, and records the replies of a model: plain files of
//! the case's cassette, matched by request digest. Recording overwrites the model's file; version control shows the
//! changes.

use super::case::{CASSETTE, write_if_changed};
use super::measure::Asks;
use super::prepare::{CaseSlice, PreparedCase};
use crate::adapters::files;
use crate::config::Price;
use crate::domain::{
    ErrorKind, Finding, ModelError, OutputMode, Purpose, Record, Reply, Request, RequestDigest,
    Severity,
};
use crate::extract::{Exchange, Failure};
use crate::llm::{Cassette, CassetteFile, Origin, Origins};
use crate::pipeline::budget::{CapOwner, cost};
use crate::pipeline::dialogue::{self, Deferral, DialogueEnd, ReplySource};
use crate::pipeline::extractor::{Proven, SliceRequest, failure, run_id};
use crate::pipeline::model_client::{
    AskError, Billing, CallContext, CallRetry, ModelClient, OutputModeFallback, Spending, counted,
};
use crate::privacy::Gate;
use crate::store::{RunFailure, StoreError};
use futures_util::FutureExt;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub(super) struct SliceResult {
    pub(super) records: Vec<Record>,
    pub(super) findings: Vec<Finding>,
    pub(super) failure: Option<RunFailure>,
    /// Reason why there is no reply yet.
    pub(super) unanswered: Option<String>,
    /// True if an operator must intervene, so that no other slice is tried.
    pub(super) stops: bool,
    /// Request that no recording answers.
    pub(super) stale: Option<Request>,
    pub(super) asks: Asks,
    pub(super) answers: Origins,
    pub(super) exchanges: Vec<(Request, Reply)>,
}

enum Source<'a> {
    Cassette(&'a Cassette),
    Model { client: &'a ModelClient, context: CallContext<'a>, spent: Spending },
}

struct RecordingSource<'a> {
    source: Source<'a>,
    price: Price,
    result: SliceResult,
}

impl ReplySource for RecordingSource<'_> {
    async fn answer(&mut self, request: &Request) -> Result<Reply, AskError> {
        self.result.asks.requests += 1;
        let (reply, origin) = match &mut self.source {
            Source::Cassette(cassette) => match cassette.recorded(request) {
                Some((reply, origin)) => (reply.clone(), origin),
                None => {
                    self.result.stale = Some(request.clone());
                    let stale = ModelError::new(ErrorKind::Stale, "no recording answers it");
                    return Err(AskError::Model(stale));
                }
            },
            Source::Model { client, context, spent } => {
                (client.ask(request, request.digest(), *context, spent).await?, Origin::Recorded)
            }
        };
        let usage = counted(&reply, request);
        let asks = &mut self.result.asks;
        asks.tokens_sent += usage.prompt_tokens;
        asks.tokens_cached += usage.cached_tokens;
        asks.tokens_answered += usage.completion_tokens;
        asks.cost_micros += cost(usage, self.price);
        self.result.answers.count(origin);
        self.result.exchanges.push((request.clone(), reply.clone()));
        Ok(reply)
    }
}

pub(super) fn from_recordings(case: &PreparedCase) -> Vec<SliceResult> {
    let one = |slice: CaseSlice<'_>| {
        // Refusals are not recorded, so the recordings may start at a lower output mode.
        let begin =
            |rung| Exchange::start(&case.asking, &slice.cutting.slice, slice.before, rung, 0);
        let is_recorded = |rung: &&OutputMode| case.cassette.recorded(&begin(**rung).1).is_some();
        let rung = OutputMode::ALL.iter().find(is_recorded).copied();
        let rung = rung.or(case.cassette.rung()).unwrap_or(OutputMode::ForcedTool);
        // A cassette never waits, and there is no store that could fail.
        let result = extract(case, slice, Source::Cassette(&case.cassette), rung).now_or_never()?;
        result.ok().map(|(result, _)| result)
    };
    case.slices().filter_map(one).collect()
}

/// Extracts a slice with a model and remembers the output mode that worked.
pub(super) async fn from_model(
    case: &PreparedCase,
    slice: CaseSlice<'_>,
    client: &ModelClient,
    output_mode: &OutputModeFallback,
    stop: &CancellationToken,
) -> Result<SliceResult, StoreError> {
    let session = slice.session;
    let task = run_id(case.asking_digest, slice.cutting.slice.id);
    let context = CallContext {
        cap_owner: CapOwner { namespace: &session.namespace, session: Some(session.id) },
        // There is no staged run to bill.
        billing: Billing::Own { task, purpose: Purpose::Test, about: &[] },
        stop,
        retry: CallRetry::within(&case.contents.config.limits),
        is_resumable: false,
    };
    let source = Source::Model { client, context, spent: Spending::default() };
    let (result, worked) = extract(case, slice, source, output_mode.current()).await?;
    if let Some((rung, refused)) = worked {
        output_mode.learn(rung, refused);
    }
    Ok(result)
}

/// Extracts a slice. Also returns the output mode that worked and whether another one was refused.
async fn extract(
    case: &PreparedCase,
    slice: CaseSlice<'_>,
    source: Source<'_>,
    rung: OutputMode,
) -> Result<(SliceResult, Option<(OutputMode, bool)>), StoreError> {
    let price = case.contents.config.model.price_of(&case.asking.model).unwrap_or_default();
    let mut recorder = RecordingSource { source, price, result: SliceResult::default() };
    let cut = &slice.cutting.slice;
    let (mut exchange, first) = Exchange::start(&case.asking, cut, slice.before, rung, 0);
    let (end, refused) = dialogue::run(&mut exchange, first, false, &mut recorder).await?;
    let mut result = recorder.result;
    result.asks.slices = 1;
    let mut worked = None;
    match end {
        DialogueEnd::Done(Ok(extraction)) => {
            worked = Some((extraction.rung, refused));
            let answers = result.answers.total();
            result.asks.fitted = u64::from(answers == 1 && extraction.findings.is_empty());
            result.asks.repaired = u64::from(answers > 1);
            let request = SliceRequest {
                session: slice.session,
                run: run_id(case.asking_digest, cut.id),
                slice: cut,
                before: slice.before,
                generation: 0,
            };
            let is_cut = extraction.is_cut;
            let Proven { records, findings, .. } = request.prove(&case.gate, extraction);
            (result.records, result.findings) = (records, findings);
            if is_cut {
                let Failure { kind, detail, .. } = Failure::cut_off(Vec::new());
                result.failure = Some(RunFailure { kind: kind.name().to_owned(), detail });
            }
        }
        DialogueEnd::Done(Err(why)) => {
            let failure = RunFailure { kind: why.kind.name().to_owned(), detail: why.detail };
            (result.failure, result.findings) = (Some(failure), why.findings);
        }
        DialogueEnd::Failed(error) => result.failure = Some(failure(error)),
        DialogueEnd::TooLong(error) => {
            let detail = format!(
                "{}; a worker would split the slice, a test does not: lower slice.tokens in \
                 the settings of the case",
                error.detail
            );
            result.failure = Some(RunFailure { kind: error.kind.name().to_owned(), detail });
        }
        DialogueEnd::Deferred(waiting) => {
            result.stops = matches!(waiting, Deferral::Cap(_) | Deferral::Needs(_));
            result.unanswered = Some(match waiting {
                Deferral::Cap(reached) => format!("{reached}; the same command resumes"),
                Deferral::Unanswered(error) | Deferral::Needs(error) => error.to_string(),
                Deferral::Stopped => "stopped before it was answered".to_owned(),
            });
        }
    }
    result.asks.failed = u64::from(result.failure.is_some());
    let repairs = result.findings.iter().filter(|it| it.severity < Severity::Error).count();
    result.asks.repairs = repairs as u64;
    Ok((result, worked))
}

const NAME_LETTERS_MAX: usize = 100;

/// All replies of one model about one case, with every prompt of the run.
#[derive(Clone, Debug)]
pub(crate) struct Recording {
    pub folder: PathBuf,
    /// File name without `.json`, derived from the model.
    pub name: String,
    pub file: CassetteFile,
}

impl Recording {
    /// Overwrites the model's file and removes replies to the same requests from the other files of the cassette.
    /// Returns the file if it changed.
    pub(crate) fn write(&self) -> Result<Option<PathBuf>, String> {
        let folder = self.folder.join(CASSETTE);
        let path = folder.join(format!("{}.json", self.name));
        let wrong = |path: &Path, error: io::Error| {
            format!("{}: cannot be written: {error}", path.display())
        };
        let requests: BTreeSet<RequestDigest> = self.file.requests().collect();
        let written = write_if_changed(&path, &self.file.text()).map_err(|it| wrong(&path, it))?;
        let others = fs::read_dir(&folder).map_err(|error| wrong(&folder, error))?;
        for other in others.flatten().map(|entry| entry.path()) {
            let is_recording = other.extension().is_some_and(|it| it == "json") && other != path;
            if !is_recording {
                continue;
            }
            let mut file = Cassette::read_file(&other)?;
            if !file.requests().any(|it| requests.contains(&it)) {
                continue;
            }
            file.remove(&requests);
            let result = match file.is_empty() {
                true => files::remove_if_exists(&other).map(|_| ()),
                false => files::replace(&other, &file.text()),
            };
            result.map_err(|error| wrong(&other, error))?;
        }
        Ok(written.then_some(path))
    }
}

#[derive(Default)]
pub(super) struct Recorder(BTreeMap<(PathBuf, String), Recording>);

impl Recorder {
    /// Adds the replies about a case if every slice was answered.
    pub(super) fn add(&mut self, case: &PreparedCase, results: &[SliceResult]) {
        if results.iter().any(|it| it.unanswered.is_some() || it.stale.is_some()) {
            return;
        }
        let model = &case.asking.model;
        let name = file_name(model);
        let recording = self.0.entry((case.folder.clone(), name.clone())).or_insert_with(|| {
            let file = CassetteFile::new(Origin::Recorded, format!("recorded from {model}"));
            Recording { folder: case.folder.clone(), name, file }
        });
        for (request, reply) in results.iter().flat_map(|it| &it.exchanges) {
            recording.file.push(request, &redacted(reply, &case.gate));
        }
    }

    pub(super) fn finish(self) -> Vec<Recording> {
        self.0.into_values().collect()
    }
}

/// Redacts a reply by the case's gate, which may mask more than that of the settings.
fn redacted(reply: &Reply, gate: &Gate) -> Reply {
    let mut reply = reply.clone();
    for call in &mut reply.calls {
        call.arguments = gate.redact_json(call.arguments.as_str());
    }
    reply.content = gate.redact_json(reply.content.as_str());
    reply.refusal = reply.refusal.map(|words| gate.redact(words.as_str()));
    reply
}

fn file_name(model: &str) -> String {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let letters = model.chars().map(|letter| if is_allowed(letter) { letter } else { '-' });
    let name: String = letters.take(NAME_LETTERS_MAX).collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() { "model".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_name_becomes_a_valid_file_name() {
        let names = ["gpt-5-mini", "vendor/large:8b", "../up", "", "..."].map(file_name);
        assert_eq!(names, ["gpt-5-mini", "vendor-large-8b", "-up", "model", "model"]);
        assert_eq!(file_name(&"x".repeat(300)).len(), NAME_LETTERS_MAX);
    }
}
