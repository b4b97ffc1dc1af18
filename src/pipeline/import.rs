//! Slices a transcript without a store, and makes a cassette from an answer that another program recorded for a whole
//! transcript: assigns each claim to the slice that supports it best.

use super::extractor::{extraction_spec, unstored};
use super::namespace::NAMESPACE_DEFAULT;
use super::preamble::PreambleSettings;
use super::reader::{Reader, Reading, SliceSink, Work};
use super::tally::Tally;
use crate::adapters::walk::Candidate;
use crate::config::Config;
use crate::domain::{
    Call, Claim, Discussion, Entry, Finding, Finish, OutputMode, Part, RecordState, Reply, Session,
    Severity, Slice, Usage, WriteExtracted,
};
use crate::extract::{Exchange, TOOL_NAME, decode, validate};
use crate::grounding::ground;
use crate::llm::tool::published_of;
use crate::llm::{CassetteFile, Origin};
use crate::privacy::{Gate, Redacted, Woven};
use crate::slicing::Cutting;
use crate::store::StoreResult;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Model name in requests that an unknown model answered.
pub(crate) const MODEL_UNKNOWN: &str = "recorded-elsewhere";

/// An answer to a whole transcript as its file has it; other fields are for people.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct AnswerFile {
    /// The transcript, relative to the folder of transcripts.
    #[serde(default)]
    pub transcript: Option<PathBuf>,
    /// Conversation of the transcript, by its id or its number; all of it by default.
    #[serde(default)]
    pub conversation: Option<Value>,
    /// Origin of the answer; `imported` by default.
    #[serde(default = "imported")]
    pub origin: Origin,
    /// Purpose, for people.
    #[serde(default)]
    pub about: Option<String>,
    /// Arguments of the tool call.
    pub arguments: Value,
}

fn imported() -> Origin {
    Origin::Imported
}

/// Name and content of the published JSON schema of answer files.
pub(crate) fn answers_schema_file() -> (String, String) {
    ("answers.v1.json".to_owned(), published_of::<AnswerFile>())
}

impl AnswerFile {
    /// Parses an answer file; an error is one line.
    pub(crate) fn read(text: &str) -> Result<AnswerFile, String> {
        serde_json::from_str(text)
            .map_err(|error| format!("not an answer file: {error}: expected transcript, arguments"))
    }

    pub(crate) fn conversation(&self) -> Option<String> {
        match self.conversation.as_ref()? {
            Value::String(id) => Some(id.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Imported {
    pub file: CassetteFile,
    pub claims: usize,
    pub slices: usize,
    pub findings: Vec<Finding>,
}

/// Distributes an answer over the slices of `transcript`, with requests that name `model`. Fails if the transcript
/// cannot be read, or does not contain the conversation.
pub(crate) fn import(
    config: &Config,
    transcript: &Candidate,
    answer: &AnswerFile,
    model: &str,
) -> Result<Imported, String> {
    let wanted = answer.conversation();
    let conversations = collect(config, transcript, wanted.as_deref())?;
    let asking = extraction_spec(config, model);
    let name = answer.transcript.as_deref().map(|it| it.display().to_string());
    let about = answer.about.clone().unwrap_or_else(|| {
        let name = name.unwrap_or_else(|| "a transcript".to_owned());
        format!("recorded elsewhere for the whole of {name}")
    });
    let slices: Vec<&(Cutting, Option<Redacted>)> =
        conversations.iter().flat_map(|it| &it.slices).collect();
    let gate = Gate::new(&config.pii);
    let text = gate.redact_json(&answer.arguments.to_string());
    let (value, repairs) = decode(text.as_str());
    let checked = validate(value);
    let mut findings: Vec<Finding> = repairs.iter().map(|repair| repair.finding()).collect();
    findings.extend(checked.findings);
    let broken = checked.problems.into_iter();
    findings.extend(broken.map(|what| Finding::new(Severity::Error, "broken-claim", 0, what)));
    let claims = checked.claims;
    let count = claims.len();
    let mut shares: Vec<Vec<Claim>> = vec![Vec::new(); slices.len()];
    for (claim, at) in claims.iter().zip(places(&slices, &claims)) {
        if let Some(share) = shares.get_mut(at) {
            share.push(claim.clone());
        }
    }
    let mut file = CassetteFile::new(answer.origin, about);
    for ((cutting, before), claims) in slices.iter().zip(shares) {
        let rung = OutputMode::ForcedTool;
        let (_, request) = Exchange::start(&asking, &cutting.slice, before.as_ref(), rung, 0);
        file.push(&request, &reply(claims, &gate));
    }
    Ok(Imported { file, claims: count, slices: slices.len(), findings })
}

/// Bonus of the slice with most of a claim's words in one window; less than the 1 for grounding the claim.
const WINDOW_GRADE: f64 = 0.5;

/// Index of the slice that supports each claim best, the first among equals. A slice scores if it grounds the claim
/// and if it has the window with most of the claim's words.
fn places(slices: &[&(Cutting, Option<Redacted>)], claims: &[Claim]) -> Vec<usize> {
    let ground =
        |slice: &Slice, claims: Vec<Claim>| ground(slice, None, claims, &unstored(slice)).records;
    let mut grades = vec![vec![0.0; slices.len()]; claims.len()];
    for (at, (cutting, _)) in slices.iter().enumerate() {
        for (grades, record) in grades.iter_mut().zip(ground(&cutting.slice, claims.to_vec())) {
            grades[at] = record.score + f64::from(u8::from(record.state == RecordState::Staged));
        }
    }
    let words = |claim: &Claim| {
        let topic = claim.strings().iter().map(|(_, text)| *text).collect::<Vec<_>>().join(" ");
        Claim::Discussion(Discussion { topic, points: Vec::new() })
    };
    let words = claims.iter().map(words).collect();
    let windows = slices.first().map(|(first, _)| ground(&joined(&first.slice, slices), words));
    for (grades, record) in grades.iter_mut().zip(windows.unwrap_or_default()) {
        let window = record.evidence.first();
        if let Some(grade) = window.and_then(|it| grades.get_mut(it.ordinal as usize)) {
            *grade += WINDOW_GRADE;
        }
    }
    let best = |grades: Vec<f64>| {
        let most = grades.iter().copied().fold(f64::MIN, f64::max);
        grades.iter().position(|grade| *grade == most).unwrap_or_default()
    };
    grades.into_iter().map(best).collect()
}

/// Joins `slices` into one, in which the ordinal of an entry is the index of its slice.
fn joined(first: &Slice, slices: &[&(Cutting, Option<Redacted>)]) -> Slice {
    let (mut parts, mut texts, mut length) = (Vec::new(), Vec::new(), 0);
    for (ordinal, (cutting, _)) in (0..).zip(slices) {
        let Slice { text, parts: own, .. } = &cutting.slice;
        let moved = |part: &Part| Part {
            ordinal,
            span: part.span.start + length..part.span.end + length,
            ..part.clone()
        };
        parts.extend(own.iter().map(moved));
        texts.push(Woven::Passed(text));
        length += text.len();
    }
    Slice { text: Redacted::weave(&texts), parts, ..first.clone() }
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
        calls: vec![Call { name: TOOL_NAME.to_owned(), arguments: gate.redact_json(&arguments) }],
        content: Redacted::default(),
        refusal: None,
        finish: Finish::ToolCalls,
        usage: Usage::default(),
    }
}

#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) session: Arc<Session>,
    pub(crate) slices: Vec<(Cutting, Option<Redacted>)>,
    pub(crate) skipped: Vec<Entry>,
    pub(crate) findings: Vec<Finding>,
}

/// Reads one conversation by its id or number, or all conversations of the transcript. Fails with a one-line message if
/// the transcript cannot be read or has nothing to extract.
pub(crate) fn collect(
    config: &Config,
    transcript: &Candidate,
    conversation: Option<&str>,
) -> Result<Vec<Collected>, String> {
    let reading = Reading {
        format: None,
        // Must not depend on the machine's folders.
        namespace: config.namespace.clone().or_else(|| Some(NAMESPACE_DEFAULT.to_owned())),
        since: None,
        undated: true,
        sessions_max: None,
        slice: config.slice,
        session: None,
        preamble: Some(PreambleSettings::of(config)),
        cards: false,
        also_forgotten: true,
        vault: None,
        dry_run: true,
        cancel: CancellationToken::new(),
    };
    let (gate, tally) = (Gate::new(&config.pii), Tally::default());
    let sink = Collector { conversation, wanted: false, found: Vec::new() };
    let mut reader = Reader::new(&reading, &gate, &tally, sink);
    // The collector never stops the reading.
    let _ = reader.file(transcript);
    if let Some(problem) = tally.totals().problems.first() {
        return Err(format!("{}: {}", problem.path, problem.problem));
    }
    let mut found = reader.finish().map_err(|error| error.to_string())?.found;
    found.retain(|it| !it.slices.is_empty());
    let path = transcript.path.display();
    match (found.is_empty(), conversation) {
        (false, _) => Ok(found),
        (true, Some(id)) => Err(format!("{path}: contains no conversation `{id}`")),
        (true, None) => Err(format!("{path}: contains nothing to extract")),
    }
}

struct Collector<'a> {
    /// Id of the conversation, or its number in the file.
    conversation: Option<&'a str>,
    wanted: bool,
    found: Vec<Collected>,
}

impl SliceSink for Collector<'_> {
    fn hand(&mut self, work: Work) -> StoreResult<ControlFlow<()>> {
        if let Work::Begin(session) = work {
            let id = session.native_id.as_str();
            self.wanted = self.conversation.is_none_or(|wanted| {
                id == wanted || id.rsplit_once('#').is_some_and(|(_, number)| number == wanted)
            });
            if self.wanted {
                self.found.push(Collected {
                    session,
                    slices: Vec::new(),
                    skipped: Vec::new(),
                    findings: Vec::new(),
                });
            }
            return Ok(ControlFlow::Continue(()));
        }
        if let Some(open) = self.found.last_mut().filter(|_| self.wanted) {
            match work {
                Work::Begin(_) | Work::Left => {}
                Work::Slice(cutting, before) => open.slices.push((*cutting, before)),
                Work::Skipped(entry) => open.skipped.push(*entry),
                Work::End(ended) => open.findings = ended.findings,
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
