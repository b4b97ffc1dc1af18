//! Makes a cassette out of an answer that somebody recorded elsewhere for a whole transcript: the
//! transcript is cut as it would be cut here, and each claim goes to the slice that supports it best.

use super::reader::{Before, Desk, Reader, Reading, Work};
use super::setup::asking_of;
use super::tally::Tally;
use super::told::Telling;
use crate::config::Config;
use crate::domain::{
    Call, Claim, Finding, Finish, Provenance, RecordState, Reply, RunId, Rung, Session, Severity,
    Slice, Usage, WriteExtracted,
};
use crate::edge::model::{CassetteFile, Origin};
use crate::edge::walk::Candidate;
use crate::extract::{Exchange, TOOL_NAME, decode, validate};
use crate::grounding::ground;
use crate::privacy::{Gate, Redacted};
use serde_json::Value;
use std::ops::ControlFlow;
use std::sync::Arc;

/// An answer for a whole conversation.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Which conversation of the transcript; none means all that it holds.
    pub conversation: Option<String>,
    /// The arguments of the tool call.
    pub arguments: Value,
    /// Where it comes from.
    pub origin: Origin,
    /// The same, for people.
    pub about: String,
}

/// What an import came to.
#[derive(Debug)]
pub struct Imported {
    /// The cassette.
    pub file: CassetteFile,
    /// Claims that were taken over.
    pub claims: usize,
    /// Slices that answers were made for.
    pub slices: usize,
    /// What was wrong with the answer.
    pub findings: Vec<Finding>,
}

/// Why nothing could be imported: one line.
pub type ImportError = String;

/// Distributes `answer` over the slices of `transcript`, asked for as `model`.
///
/// # Errors
/// If the transcript cannot be read, or does not hold the conversation.
pub fn import(
    config: &Config,
    transcript: &Candidate,
    answer: &Answer,
    model: &str,
) -> Result<Imported, ImportError> {
    let slices = slices(config, transcript, answer.conversation.as_deref())?;
    let gate = Gate::new(&config.pii);
    let text = gate.redact(&answer.arguments.to_string());
    let (value, repairs) = decode(text.as_str());
    let checked = validate(value);
    let mut findings: Vec<Finding> = repairs.iter().map(|repair| repair.finding()).collect();
    findings.extend(checked.findings);
    let broken = checked.problems.into_iter();
    findings.extend(broken.map(|what| Finding::new(Severity::Error, "broken-claim", 0, what)));
    let claims = checked.claims;
    let count = claims.len();
    let mut shares: Vec<Vec<Claim>> = vec![Vec::new(); slices.len()];
    for claim in claims {
        if let Some(share) = best(&slices, &claim).and_then(|at| shares.get_mut(at)) {
            share.push(claim);
        }
    }
    let asking = asking_of(config, model);
    let mut file = CassetteFile::new(answer.origin, answer.about.clone());
    for ((slice, before), claims) in slices.iter().zip(shares) {
        let rung = Rung::ForcedTool;
        let (_, request) = Exchange::start(&asking, slice, before.as_ref(), rung, 0);
        file.push(&request, &reply(claims, &gate));
    }
    Ok(Imported { file, claims: count, slices: slices.len(), findings })
}

/// The slice that supports a claim best; the first of equals.
fn best(slices: &[(Slice, Option<Redacted>)], claim: &Claim) -> Option<usize> {
    let nobody = crate::domain::Digest::of(&[]);
    let grade = |slice: &Slice| {
        let from = Provenance {
            namespace: String::new(),
            session: slice.session,
            slice: slice.id,
            run: RunId(nobody),
            entries: slice.range(),
            at: None,
        };
        let record = ground(slice, vec![claim.clone()], &from).pop();
        record.map_or(0.0, |it| it.score + f64::from(u8::from(it.state == RecordState::Staged)))
    };
    let grades: Vec<f64> = slices.iter().map(|(slice, _)| grade(slice)).collect();
    let most = grades.iter().copied().fold(f64::MIN, f64::max);
    grades.iter().position(|grade| *grade == most)
}

fn reply(claims: Vec<Claim>, gate: &Gate) -> Reply {
    let mut extracted = WriteExtracted::default();
    for claim in claims {
        match claim {
            Claim::Decision(it) => extracted.decisions.push(it),
            Claim::Discussion(it) => extracted.discussions.push(it),
            Claim::Attempt(it) => extracted.attempts.push(it),
            Claim::Request(it) => extracted.requests.push(it),
        }
    }
    let arguments = serde_json::to_string(&extracted).unwrap_or_default();
    Reply {
        calls: vec![Call { name: TOOL_NAME.to_owned(), arguments: gate.redact(&arguments) }],
        content: Redacted::default(),
        refusal: None,
        finish: Finish::ToolCalls,
        usage: Usage::default(),
    }
}

fn slices(
    config: &Config,
    transcript: &Candidate,
    conversation: Option<&str>,
) -> Result<Vec<(Slice, Option<Redacted>)>, ImportError> {
    let reading = Reading {
        format: None,
        namespace: config.namespace.clone(),
        since: None,
        sessions_max: None,
        slice: config.slice,
        session: None,
        telling: Some(Telling::of(config)),
        cards: false,
        dry_run: true,
    };
    let (gate, tally) = (Gate::new(&config.pii), Tally::default());
    let desk = Collector { conversation, wanted: false, slices: Vec::new() };
    let mut reader = Reader::new(&reading, &gate, &tally, desk);
    // Everything is collected; nothing stops it early.
    let _ = reader.file(transcript);
    if let Some(problem) = tally.totals().problems.first() {
        return Err(format!("{}: {}", problem.path, problem.problem));
    }
    let slices = reader.into_desk().slices;
    match (slices.is_empty(), conversation) {
        (false, _) => Ok(slices),
        (true, Some(id)) => {
            Err(format!("{}: holds no conversation `{id}`", transcript.path.display()))
        }
        (true, None) => Err(format!("{}: holds nothing to ask about", transcript.path.display())),
    }
}

/// Keeps the slices of one conversation.
struct Collector<'a> {
    conversation: Option<&'a str>,
    wanted: bool,
    slices: Vec<(Slice, Option<Redacted>)>,
}

impl Collector<'_> {
    /// A conversation is named by its id, or by its number in the file.
    fn is_wanted(&self, session: &Session) -> bool {
        let id = session.native_id.as_str();
        self.conversation.is_none_or(|wanted| {
            id == wanted || id.rsplit_once('#').is_some_and(|(_, number)| number == wanted)
        })
    }
}

impl Desk for Collector<'_> {
    fn before(&mut self, _session: &Session) -> Before {
        Before::default()
    }

    fn hand(&mut self, work: Work) -> ControlFlow<()> {
        match work {
            Work::Begin(session) => self.wanted = self.is_wanted(&Arc::clone(&session)),
            Work::Slice(cutting, before) if self.wanted => {
                self.slices.push((cutting.slice, before));
            }
            Work::Slice(..) | Work::Skipped(_) | Work::End(_) => {}
        }
        ControlFlow::Continue(())
    }
}
