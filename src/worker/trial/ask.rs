//! Asks about one slice of a case and keeps account of it.

use super::ask_once::AskOnce;
use super::prepare::Prepared;
use crate::config::Price;
use crate::domain::{
    ErrorKind, Finding, ModelError, Purpose, Record, Reply, Request, RequestDigest, Retry, RunId,
    Rung, Session, Severity, SliceId, Vector,
};
use crate::edge::model::{Cassette, KeptTalk, Origin};
use crate::edge::store::{Failure, StoreError};
use crate::extract::Exchange;
use crate::privacy::Redacted;
use crate::score::{Asks, Origins, Vectors, texts_to_embed};
use crate::slice::Cutting;
use crate::worker::asking::{Account, For, NoAnswer, Paid, Payer, cost, counted};
use crate::worker::extracting::{failure, prove, run_id, stuck};
use crate::worker::talk::{Answers, Ended, Refused, Waiting, talk};
use std::collections::BTreeSet;
use tokio_util::sync::CancellationToken;

/// What a slice of a case came to.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Its records, proven or quarantined.
    pub(super) records: Vec<Record>,
    /// What was wrong with the answers.
    pub(super) findings: Vec<Finding>,
    /// Why it failed for good.
    pub(super) failure: Option<Failure>,
    /// Why there is no answer now.
    pub(super) waits: Option<String>,
    /// Whether only a person can mend that, so that the others need not be tried.
    pub(super) stops: bool,
    /// The request that no recording answers.
    pub(super) stale: Option<Request>,
    /// Texts whose embeddings no recording answers.
    pub(super) unembedded: usize,
    pub(super) asks: Asks,
    pub(super) answers: Origins,
    /// The requests that a recording answered.
    pub(super) asked: BTreeSet<RequestDigest>,
    /// What was asked and answered, where that is to be kept.
    pub(super) exchanges: Vec<(Request, Reply)>,
    /// Where texts stand among others, if the case compares them so: with the last slice, for all.
    pub(super) vectors: Vectors,
}

impl Heard {
    /// The recorded answer to a request, with a note that it was asked for.
    fn kept<'c>(
        &mut self,
        cassette: &'c Cassette,
        request: &Request,
    ) -> Option<(&'c Reply, Origin)> {
        let digest = request.digest();
        let kept = cassette.kept_by(&digest)?;
        self.asked.insert(digest);
        Some(kept)
    }

    /// Notes that no recording answers a request.
    fn stale(&mut self, request: &Request) -> NoAnswer {
        self.stale = Some(request.clone());
        NoAnswer::Model(ModelError::new(ErrorKind::Stale, "no answer kept"))
    }
}

/// A slice with what it is told, and whose it is.
pub(super) type Of<'a> = (&'a Session, &'a Cutting, Option<&'a Redacted>);

/// Who answers, with an account of it.
struct Answering<'a> {
    by: By<'a>,
    price: Price,
    /// Whether exchanges of a cassette are kept too.
    keeps: bool,
    heard: Heard,
}

enum By<'a> {
    Cassette(&'a Cassette),
    /// One recorded reply after another, whatever is asked.
    Talk(std::vec::IntoIter<(Reply, Origin)>),
    Model(&'a AskOnce, For<'a>, Paid),
}

impl Answers for Answering<'_> {
    async fn answer(&mut self, request: &Request) -> Result<Reply, NoAnswer> {
        self.heard.asks.requests += 1;
        let (reply, origin) = match &mut self.by {
            By::Cassette(cassette) => match self.heard.kept(cassette, request) {
                Some((reply, origin)) => {
                    let reply = reply.clone();
                    if self.keeps {
                        self.heard.exchanges.push((request.clone(), reply.clone()));
                    }
                    (reply, origin)
                }
                None => return Err(self.heard.stale(request)),
            },
            By::Talk(replies) => match replies.next() {
                Some(answer) => answer,
                None => return Err(self.heard.stale(request)),
            },
            By::Model(asker, whose, paid) => {
                let reply = asker.ask(request, *whose, paid).await?;
                self.heard.exchanges.push((request.clone(), reply.clone()));
                (reply, Origin::Recorded)
            }
        };
        let usage = counted(&reply, request);
        self.heard.asks.tokens_sent += usage.prompt_tokens;
        self.heard.asks.tokens_cached += usage.cached_tokens;
        self.heard.asks.tokens_answered += usage.completion_tokens;
        self.heard.asks.cost_micros += cost(usage, self.price);
        match origin {
            Origin::Recorded => self.heard.answers.recorded += 1,
            Origin::HandWritten => self.heard.answers.hand_written += 1,
            Origin::Imported => self.heard.answers.imported += 1,
        }
        Ok(reply)
    }
}

/// Asks the cassette of a case about one of its slices. It never waits.
///
/// # Errors
/// None; the type is the worker's.
pub(super) async fn cassette(case: &Prepared, of: Of<'_>) -> Result<Heard, StoreError> {
    let (_, cutting, before) = of;
    let begin = |rung| Exchange::start(&case.asking, &cutting.slice, before, rung, 0);
    if let Some(like) = &case.like {
        let first = begin(case.cassette.rung().unwrap_or(Rung::ForcedTool)).1;
        let talk = case.cassette.talk_like(&first, like);
        let KeptTalk { rung, replies } = talk.unwrap_or_default();
        let by = (By::Talk(replies.into_iter()), rung.unwrap_or(first.rung));
        return about(case, of, by).await.map(|(heard, _)| heard);
    }
    // What a model was asked in vain is not kept, so that its answers may begin further down.
    let held = |rung: &&Rung| case.cassette.kept(&begin(**rung).1).is_some();
    let rung = Rung::ALL.iter().find(held).copied();
    let rung = rung.or(case.cassette.rung()).unwrap_or(Rung::ForcedTool);
    about(case, of, (By::Cassette(&case.cassette), rung)).await.map(|(heard, _)| heard)
}

/// Asks a model about a slice, beginning with `rung`; says on which rung it answered and whether it refused
/// one.
///
/// # Errors
/// The store's.
pub(super) async fn model(
    case: &Prepared,
    of: Of<'_>,
    (asker, rung, stop): (&AskOnce, Rung, &CancellationToken),
) -> Result<(Heard, Option<(Rung, Refused)>), StoreError> {
    let run = run_id(case.asking_digest, of.1.slice.id);
    let whose = whose(of.0, run, stop);
    about(case, of, (By::Model(asker, whose, Paid::default()), rung)).await
}

fn whose<'a>(session: &'a Session, task: RunId, stop: &'a CancellationToken) -> For<'a> {
    For {
        payer: Payer { namespace: &session.namespace, session: Some(session.id) },
        // No run is staged that could have the bill. The answer is nobody's, so that forgetting takes it along.
        account: Account::Own { task, purpose: Purpose::Test, about: &[] },
        stop,
        patience: None,
        returns: false,
    }
}

async fn about(
    case: &Prepared,
    (session, cutting, before): Of<'_>,
    (by, rung): (By<'_>, Rung),
) -> Result<(Heard, Option<(Rung, Refused)>), StoreError> {
    let price = case.config.model.price;
    let mut answering = Answering { by, price, keeps: case.keeps, heard: Heard::default() };
    let (mut exchange, first) = Exchange::start(&case.asking, &cutting.slice, before, rung, 0);
    let (ended, refused) = talk((&mut exchange, first), false, &mut answering).await?;
    let mut heard = answering.heard;
    let answers = heard.answers.total();
    heard.asks.slices = 1;
    let mut worked = None;
    match ended {
        Ended::Done(Ok(extraction)) => {
            worked = Some((extraction.rung, refused));
            let whole = extraction.findings.is_empty();
            heard.asks.fitted = u64::from(answers == 1 && whole);
            heard.asks.repaired = u64::from(answers > 1);
            let of = (session, run_id(case.asking_digest, cutting.slice.id));
            (heard.records, heard.findings) = prove(&case.gate, &cutting.slice, of, extraction);
        }
        Ended::Done(Err(why)) => {
            heard.asks.failed = 1;
            let (failure, findings) = stuck(why);
            (heard.failure, heard.findings) = (Some(failure), findings);
        }
        Ended::Failed(error) => {
            heard.asks.failed = 1;
            heard.failure = Some(failure(error));
        }
        Ended::TooLong(error) => {
            heard.asks.failed = 1;
            let detail = format!(
                "{}; a worker would cut it in two, a case is asked about as it is cut: lower \
                 slice.tokens in its settings",
                error.detail
            );
            heard.failure = Some(Failure { kind: error.kind.name().to_owned(), detail });
        }
        Ended::Waits(waiting) => (heard.waits, heard.stops) = why(waiting),
    }
    let mended = heard.findings.iter().filter(|it| it.severity < Severity::Error).count();
    heard.asks.repairs = mended as u64;
    Ok((heard, worked))
}

/// Asks for the vectors of what is compared by them, where the case wants that; from the cassette, or from a model.
/// What is missing is on the account of the last slice.
///
/// # Errors
/// The store's.
pub(super) async fn vectors(
    case: &Prepared,
    heard: &mut [Heard],
    by: Option<(&AskOnce, &CancellationToken)>,
) -> Result<(), StoreError> {
    let Some(model) = &case.case.embeddings else { return Ok(()) };
    let records: Vec<Record> = heard.iter().flat_map(|it| it.records.iter().cloned()).collect();
    let (Some(last), Some((session, ..))) = (heard.last_mut(), case.slices().next()) else {
        return Ok(());
    };
    let price = case.config.model.price;
    for text in texts_to_embed(&case.gold, &records) {
        let request = Request::embedding(model, case.gate.redact(&text));
        let by = match by {
            None => By::Cassette(&case.cassette),
            Some((asker, stop)) => {
                let whose = whose(session, run_id(case.asking_digest, SliceId(session.id.0)), stop);
                By::Model(asker, whose, Paid::default())
            }
        };
        let mut asked = Answering { by, price, keeps: case.keeps, heard: Heard::default() };
        let answer = asked.answer(&request).await;
        let Answering { heard, .. } = asked;
        last.asks += heard.asks;
        last.answers += heard.answers;
        last.exchanges.extend(heard.exchanges);
        last.asked.extend(heard.asked);
        match answer {
            Ok(reply) => {
                last.vectors.extend(Vector::read(reply.content.as_str()).map(|it| (text, it)));
            }
            Err(NoAnswer::Store(error)) => return Err(error),
            Err(NoAnswer::Cap(reached)) => {
                (last.waits, last.stops) = why(Waiting::Cap(reached));
                break;
            }
            Err(NoAnswer::Model(error)) if error.kind == ErrorKind::Stale => {
                last.stale.get_or_insert(request);
                last.unembedded += 1;
            }
            Err(NoAnswer::Model(error)) => {
                let stops = error.retry() == Retry::Stop;
                (last.waits, last.stops) = (Some(format!("embeddings: {error}")), stops);
                break;
            }
        }
    }
    Ok(())
}

/// Why there is no answer now, and whether only a person can mend that.
fn why(waiting: Waiting) -> (Option<String>, bool) {
    match waiting {
        Waiting::Cap(reached) => (Some(format!("{reached}; the same command goes on")), true),
        Waiting::Unanswered(error) => (Some(error.to_string()), false),
        Waiting::Needs(error) => (Some(error.to_string()), true),
        Waiting::Stopped => (Some("stopped before it was answered".to_owned()), false),
    }
}
