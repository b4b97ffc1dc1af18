//! The report of a run: written by `--json`, read by `--baseline`, shown in tables and pages.
//! Contains no times and no paths, so that equal runs give equal bytes.

use super::gold::{Importance, Why};
use super::measure::Sums;
use crate::domain::{ClaimKind, Match, RecordState, Speaker, named};
use crate::llm::Origins;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the published schemas of cases, gold and reports.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// A run of prompt tests.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Report {
    /// Version of this schema.
    pub report: u32,
    pub annalist: String,
    /// One for each model and prompt, in the order of the command line.
    pub variants: Vec<Variant>,
}

/// All cases with one model and one prompt.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Variant {
    pub name: String,
    /// Model for all cases; none if each case names its own.
    #[serde(default)]
    pub model: Option<String>,
    pub prompt: PromptName,
    /// Version of the schema of answers.
    pub schema: u32,
    pub summary: Summary,
    /// The cases in order of their names.
    pub cases: Vec<CaseReport>,
}

impl Variant {
    pub(crate) fn answers(&self) -> Origins {
        let mut all = Origins::default();
        self.cases.iter().for_each(|case| all += case.answers);
        all
    }
}

/// A prompt.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct PromptName {
    pub id: String,
    pub version: u32,
    pub digest: String,
}

/// Many cases together. Counts are added up before a rate is computed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Summary {
    pub cases: CaseCounts,
    /// Counts of all cases that were measured.
    pub sums: Sums,
}

impl Summary {
    /// Summarises cases; only measured ones count towards the sums.
    pub(crate) fn of(cases: &[CaseReport]) -> Summary {
        let mut summary = Summary::default();
        for case in cases {
            *match case.outcome {
                CaseOutcome::Passed => &mut summary.cases.passed,
                CaseOutcome::Failed => &mut summary.cases.failed,
                CaseOutcome::Stale => &mut summary.cases.stale,
                CaseOutcome::Broken => &mut summary.cases.broken,
                CaseOutcome::NotMeasured => &mut summary.cases.not_measured,
            } += 1;
            if case.is_measured() {
                summary.sums += case.sums;
            }
        }
        summary
    }
}

/// Number of cases by outcome.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct CaseCounts {
    /// Cases that reached their bars.
    pub passed: u64,
    /// Cases that did not.
    pub failed: u64,
    /// Cases with a request that no recording answers.
    pub stale: u64,
    /// Cases that could not be read, or whose model could not be asked.
    pub broken: u64,
    /// Cases without gold and bars.
    #[serde(default)]
    pub not_measured: u64,
}

named! {
    /// Outcome of a case.
    #[derive(Default, JsonSchema)]
    pub(crate) CaseOutcome {
        /// It reached its bars.
        #[default]
        Passed = "passed",
        Failed = "failed",
        /// No recording answers one of its requests.
        Stale = "stale",
        /// It could not be read, or the model could not be asked.
        Broken = "broken",
        /// It has neither gold nor bars.
        NotMeasured = "not measured",
    }
}

/// One case with one model and one prompt.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct CaseReport {
    pub name: String,
    pub about: String,
    pub format: String,
    pub language: String,
    /// Model whose answers were tested.
    #[serde(default)]
    pub model: String,
    pub answers: Origins,
    pub outcome: CaseOutcome,
    /// Reasons why it did not pass, and warnings.
    pub problems: Vec<Problem>,
    pub sums: Sums,
    /// Items of the gold, and the records that answer them.
    pub items: Vec<ItemReport>,
    /// Forbidden statements, and the records that make them.
    pub forbidden: Vec<ForbiddenReport>,
    /// Records in order of the transcript.
    pub records: Vec<RecordReport>,
}

impl CaseReport {
    /// True if its records were scored against its gold.
    pub(crate) fn is_measured(&self) -> bool {
        match self.outcome {
            CaseOutcome::Passed | CaseOutcome::Failed => true,
            CaseOutcome::Stale | CaseOutcome::Broken | CaseOutcome::NotMeasured => false,
        }
    }
}

/// A reason why a case did not pass, or a warning.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Problem {
    /// Stable name: `below-bar`, `stale`, `bad-gold`, a rule of an answer's findings.
    pub rule: String,
    /// True if the case does not pass because of it.
    pub fails: bool,
    /// Description; several lines for a difference of two requests.
    pub detail: String,
}

impl Problem {
    pub(crate) fn new(rule: &str, fails: bool, detail: impl Into<String>) -> Problem {
        Problem { rule: rule.to_owned(), fails, detail: detail.into() }
    }
}

/// An item of the gold.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct ItemReport {
    /// Name in the gold.
    pub id: String,
    /// Kind of record that says it.
    pub kind: ClaimKind,
    pub importance: Importance,
    pub statement: String,
    /// Index of the record that answers it.
    #[serde(default)]
    pub answered_by: Option<usize>,
}

/// A forbidden statement.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct ForbiddenReport {
    /// Name in the gold.
    pub id: String,
    pub why: Why,
    /// The statement; empty if the gold has none.
    pub statement: String,
    /// Index of the first record that makes it.
    #[serde(default)]
    pub said_by: Option<usize>,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct RecordReport {
    /// Id; the same claim has another one with another model or prompt.
    pub id: String,
    pub kind: ClaimKind,
    pub claim: Value,
    /// Staged or in quarantine.
    pub state: RecordState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Name of the item that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
    pub evidence: Vec<EvidenceReport>,
}

/// The string that best names a claim; empty if it has none.
pub(crate) fn headline(kind: ClaimKind, claim: &Value) -> &str {
    let field = match kind {
        ClaimKind::Decision => "chosen",
        ClaimKind::Discussion => "topic",
        ClaimKind::Attempt => "action",
        ClaimKind::Request => "summary",
    };
    claim.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Words that a record rests on.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct EvidenceReport {
    /// Field that it supports, such as `options[1]`.
    pub field: String,
    /// Ordinal of the entry in its conversation.
    pub entry: u32,
    /// First byte in the entry's text.
    pub from: u32,
    pub to: u32,
    pub speaker: Speaker,
    pub found: Match,
    /// The words, redacted.
    #[serde(default)]
    pub words: String,
}
