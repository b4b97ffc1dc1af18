//! Extracts one slice of a case, from recordings or with a model.

use super::measure::Asks;
use super::prepare::{CaseSlice, PreparedCase};
use crate::config::Price;
use crate::domain::{
    ErrorKind, Finding, ModelError, OutputMode, Purpose, Record, Reply, Request, Severity,
};
use crate::extract::Exchange;
use crate::llm::{Cassette, Origin, Origins};
use crate::pipeline::budget::{CapOwner, cost};
use crate::pipeline::dialogue::{self, Deferral, DialogueEnd, ReplySource};
use crate::pipeline::extractor::{Proven, SliceRequest, failure, run_id};
use crate::pipeline::model_client::OutputModeFallback;
use crate::pipeline::model_client::{
    AskError, Billing, CallContext, CallRetry, ModelClient, Spending, counted,
};
use crate::store::{RunFailure, StoreError};
use futures_util::FutureExt;
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

impl SliceResult {
    pub(super) fn unanswered(reason: &str) -> SliceResult {
        SliceResult { unanswered: Some(reason.to_owned()), ..SliceResult::default() }
    }
}

enum Source<'a> {
    Cassette(&'a Cassette),
    Model { client: &'a ModelClient, context: CallContext<'a>, spent: Spending },
}

struct Recorder<'a> {
    source: Source<'a>,
    price: Price,
    result: SliceResult,
}

impl ReplySource for Recorder<'_> {
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
                (client.ask(request, 0, *context, spent).await?, Origin::Recorded)
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
    let mut recorder = Recorder { source, price, result: SliceResult::default() };
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
            let Proven { records, findings, .. } = request.prove(&case.gate, extraction);
            (result.records, result.findings) = (records, findings);
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
