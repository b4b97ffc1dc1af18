//! What a run of prompt tests came to, as a file: what `--json` writes, `--baseline` reads, and tables and
//! pages show. It holds no times and no paths, so that the same run gives the same bytes.

use super::gold::{Importance, Why};
use super::interval::Interval;
use super::measure::{Measure, Sums};
use crate::domain::{ClaimKind, Match, RecordState, Speaker, named};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ops::AddAssign;

/// A run of prompt tests.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Report {
    /// The version of this shape.
    pub report: u32,
    /// The version of annalist.
    pub annalist: String,
    /// One for each model and prompt, in the order in which they were named.
    pub variants: Vec<Variant>,
}

/// All cases with one model and one prompt.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Variant {
    /// How it is told from the others in a table.
    pub name: String,
    /// The model that was named for all cases; none where each case names its own.
    #[serde(default)]
    pub model: Option<String>,
    /// The prompt that was used.
    pub prompt: PromptName,
    /// The version of the schema of answers.
    pub schema: u32,
    /// All cases together.
    pub summary: Summary,
    /// Each, in order of their names.
    pub cases: Vec<CaseReport>,
}

/// Which prompt.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct PromptName {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: u32,
    /// The digest of its texts.
    pub digest: String,
}

/// Many cases together. Counts are added up before a rate is taken, so that a long case weighs more.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Summary {
    /// Cases by what became of them.
    pub cases: CaseCounts,
    /// The counts of all cases that were measured.
    pub sums: Sums,
    /// How far rates may be off for the choice of cases: 95 of 100 draws of as many cases lie inside. Not of rates that
    /// fewer than ten cases have, nor of those that came out the same in all draws: there the counts say more.
    pub intervals: Vec<MeasuredInterval>,
}

/// The interval of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct MeasuredInterval {
    /// Of what.
    pub measure: Measure,
    /// From where to where.
    #[serde(flatten)]
    pub interval: Interval,
}

/// Cases by what became of them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct CaseCounts {
    /// See [`CaseOutcome::Passed`].
    pub passed: u64,
    /// See [`CaseOutcome::Failed`].
    pub failed: u64,
    /// See [`CaseOutcome::Stale`].
    pub stale: u64,
    /// See [`CaseOutcome::Broken`].
    pub broken: u64,
}

named! {
    /// What became of a case.
    #[derive(JsonSchema)]
    CaseOutcome {
        /// It reached its bars.
        Passed = "passed",
        /// It did not.
        Failed = "failed",
        /// A request was made that no recording answers.
        Stale = "stale",
        /// It could not be read, or the model could not be asked.
        Broken = "broken",
    }
}

/// One case with one model and one prompt.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct CaseReport {
    /// Its folder's name.
    pub name: String,
    /// What it shows.
    pub about: String,
    /// The format of its transcript.
    pub format: String,
    /// The language of its records.
    pub language: String,
    /// Where its answers come from.
    pub answers: Origins,
    /// What became of it.
    pub outcome: CaseOutcome,
    /// Why it did not pass, and what else is to be said of it.
    pub problems: Vec<Problem>,
    /// Its counts.
    pub sums: Sums,
    /// The gold, in its order, and what answers it.
    pub items: Vec<ItemReport>,
    /// What is not to be said, and what says it.
    pub forbidden: Vec<ForbiddenReport>,
    /// The records, in order of the transcript.
    pub records: Vec<RecordReport>,
}

impl CaseReport {
    /// Whether its records were measured against its gold.
    pub fn is_measured(&self) -> bool {
        match self.outcome {
            CaseOutcome::Passed | CaseOutcome::Failed => true,
            CaseOutcome::Stale | CaseOutcome::Broken => false,
        }
    }
}

/// The one string of a claim that names it best, as [`Claim::headline`](crate::domain::Claim::headline) of
/// claims that were written down; empty where it has none.
pub fn headline(kind: ClaimKind, claim: &Value) -> &str {
    let field = match kind {
        ClaimKind::Decision => "chosen",
        ClaimKind::Discussion => "topic",
        ClaimKind::Attempt => "action",
        ClaimKind::Request => "summary",
    };
    claim.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// How many recorded answers come from where.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Origins {
    /// From a model that annalist asked.
    pub recorded: u64,
    /// From a person.
    pub hand_written: u64,
    /// From a model that somebody else asked.
    pub imported: u64,
}

impl Origins {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.recorded + self.hand_written + self.imported
    }

    /// Those that there are, with what they are called.
    pub fn named(&self) -> impl Iterator<Item = (u64, &'static str)> {
        let all = [
            (self.hand_written, "hand-written"),
            (self.recorded, "recorded"),
            (self.imported, "imported"),
        ];
        all.into_iter().filter(|(number, _)| *number > 0)
    }
}

impl AddAssign for Origins {
    fn add_assign(&mut self, other: Origins) {
        self.recorded += other.recorded;
        self.hand_written += other.hand_written;
        self.imported += other.imported;
    }
}

impl Variant {
    /// Where the answers of all its cases come from.
    pub fn answers(&self) -> Origins {
        let mut all = Origins::default();
        self.cases.iter().for_each(|case| all += case.answers);
        all
    }
}

/// Something to be said of a case.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Problem {
    /// A stable name: `below-bar`, `stale`, `bad-gold`, a rule of an answer's findings.
    pub rule: String,
    /// Whether the case does not pass for it.
    pub fails: bool,
    /// What, for a person: in a few lines where it is a difference of two requests.
    pub detail: String,
}

/// An item of the gold.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ItemReport {
    /// Its name in the gold.
    pub id: String,
    /// What kind of record says it.
    pub kind: ClaimKind,
    /// How much it matters.
    pub importance: Importance,
    /// It, in a sentence.
    pub statement: String,
    /// The record that answers it, by its place among [`CaseReport::records`].
    pub answered_by: Option<usize>,
}

/// Something that is not to be said.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ForbiddenReport {
    /// Its name in the gold.
    pub id: String,
    /// Why it is not to be said.
    pub why: Why,
    /// It, in a sentence; empty where the gold has none.
    pub statement: String,
    /// The first record that says it, by its place among [`CaseReport::records`].
    pub said_by: Option<usize>,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct RecordReport {
    /// Its id; of another model or prompt the same claim has another.
    pub id: String,
    /// What kind it is.
    pub kind: ClaimKind,
    /// Its fields, as a model hands them over.
    pub claim: Value,
    /// Whether it is staged or in quarantine.
    pub state: RecordState,
    /// Why it is in quarantine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The item that it answers, by its name in the gold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
    /// What it rests on.
    pub evidence: Vec<EvidenceReport>,
}

/// A place that a record rests on.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct EvidenceReport {
    /// The field that it supports, such as `options[1]`.
    pub field: String,
    /// The entry's ordinal in its conversation.
    pub entry: u32,
    /// Where it begins in the entry's text, in bytes.
    pub from: u32,
    /// Where it ends.
    pub to: u32,
    /// Who said it.
    pub speaker: Speaker,
    /// How it was found.
    pub found: Match,
}

/// The conversation of a case, for a page that shows it; never part of a report's file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    /// Its entries, in order.
    pub entries: Vec<ShownEntry>,
}

/// An entry as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownEntry {
    /// Its ordinal in the conversation.
    pub ordinal: u32,
    /// Who speaks.
    pub speaker: Speaker,
    /// How it is headed: as in a slice, such as `ToolResult Bash`.
    pub label: String,
    /// Its text, behind the gate; evidence points into it.
    pub text: crate::privacy::Redacted,
}
