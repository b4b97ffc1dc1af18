//! Makes a cassette out of an answer that somebody recorded elsewhere for a whole transcript: the
//! transcript is cut as it would be cut here, and each claim goes to the slice that supports it best.

use super::collect::{Cards, Collected, collect};
use super::setup::asking_of;
use crate::config::Config;
use crate::domain::{
    Call, Claim, Finding, Finish, Provenance, RecordState, Reply, RunId, Rung, Severity, Slice,
    Usage, WriteExtracted,
};
use crate::edge::model::{CassetteFile, Origin};
use crate::edge::walk::Candidate;
use crate::extract::{Asking, Exchange, TOOL_NAME, decode, validate};
use crate::grounding::ground;
use crate::privacy::{Gate, Redacted};
use crate::slice::Cutting;
use crate::tool::published_of;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;
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

/// The model's name in requests whose answers were recorded elsewhere, by a model unknown to us.
pub const MODEL_UNKNOWN: &str = "recorded-elsewhere";

/// An answer as its file has it; other fields are for people.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct AnswerFile {
    /// The transcript, from the folder of transcripts; a case's own stands beside the file.
    #[serde(default)]
    pub transcript: Option<PathBuf>,
    /// Which conversation of it, by its id or its number; all of it where it is left out.
    #[serde(default)]
    pub conversation: Option<Value>,
    /// Where the answer comes from; recorded elsewhere if nothing is said.
    #[serde(default = "imported")]
    pub origin: Origin,
    /// What it shows, for people.
    #[serde(default)]
    pub about: Option<String>,
    /// The arguments of the tool call.
    pub arguments: Value,
}

/// The file that is published in `schemas/` for answer files, name and content.
pub fn answers_schema_file() -> (String, String) {
    ("answers.v1.json".to_owned(), published_of::<AnswerFile>())
}

fn imported() -> Origin {
    Origin::Imported
}

impl AnswerFile {
    /// Reads an answer file.
    ///
    /// # Errors
    /// One line: what is wrong with it.
    pub fn read(text: &str) -> Result<AnswerFile, ImportError> {
        serde_json::from_str(text)
            .map_err(|error| format!("not an answer file: {error}: expected transcript, arguments"))
    }

    /// The answer, for the transcript that is called `transcript`.
    pub fn answer(self, transcript: &str) -> Answer {
        let conversation = self.conversation.as_ref().and_then(conversation);
        let recorded = || format!("recorded elsewhere for the whole of {transcript}");
        let about = self.about.unwrap_or_else(recorded);
        Answer { conversation, arguments: self.arguments, origin: self.origin, about }
    }
}

/// A conversation as a file names it: by its id, or by its number.
pub(super) fn conversation(value: &Value) -> Option<String> {
    match value {
        Value::String(id) => Some(id.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
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
    let conversations = collect(config, transcript, answer.conversation.as_deref(), Cards::None)?;
    Ok(spread(config, &conversations, answer, &asking_of(config, model)))
}

/// Distributes `answer` over the slices of `conversations`, each asked about with `asking`.
pub(super) fn spread(
    config: &Config,
    conversations: &[Collected],
    answer: &Answer,
    asking: &Arc<Asking>,
) -> Imported {
    let slices: Vec<&(Cutting, Option<Redacted>)> =
        conversations.iter().flat_map(|it| &it.slices).collect();
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
    let mut file = CassetteFile::new(answer.origin, answer.about.clone());
    for ((cutting, before), claims) in slices.iter().zip(shares) {
        let rung = Rung::ForcedTool;
        let (_, request) = Exchange::start(asking, &cutting.slice, before.as_ref(), rung, 0);
        file.push(&request, &reply(claims, &gate));
    }
    Imported { file, claims: count, slices: slices.len(), findings }
}

/// The slice that supports a claim best; the first of equals.
fn best(slices: &[&(Cutting, Option<Redacted>)], claim: &Claim) -> Option<usize> {
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
    let grades: Vec<f64> = slices.iter().map(|(cutting, _)| grade(&cutting.slice)).collect();
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
