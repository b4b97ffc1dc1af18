//! A case as its `case.toml` describes it: what it shows, how it is asked about, what it must reach.

use super::measure::{Measure, Sums};
use crate::domain::{Finding, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the published schemas of cases, of gold and of reports.
pub const SCHEMA_VERSION: u32 = 1;

/// What `case.toml` holds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What the case shows, in a line, for people.
    pub about: String,
    /// Language of the records; that of the settings where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Which conversation of the transcript, by its id or its number in the file, where it holds several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The model that the recorded requests name; that of the settings where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The model of embeddings at the endpoint by which records are compared with statements, instead of their
    /// words; none where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<String>,
    /// Settings that differ: tables `slice`, `conversation`, `dialog` and `privacy` of `config.toml`.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub settings: toml::Table,
    /// What must be reached.
    #[serde(default)]
    pub bars: Bars,
    /// How much worse than the baseline it may be.
    #[serde(default)]
    pub tolerances: Tolerances,
}

/// Tables of `config.toml` that a case may change: how the transcript is read, cut and told. What is asked,
/// where and at what cost is not a case's to say.
pub const CASE_SETTINGS: [&str; 4] = ["slice", "conversation", "dialog", "privacy"];

/// Rates from 0 to 1 that must be reached; where there is nothing to measure a bar is not reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bars {
    /// Records that answer an item, of all records: at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// Items that are answered: at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall: Option<f64>,
    /// The harmonic mean of both: at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub f1: Option<f64>,
    /// Core items that are answered: at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_recall: Option<f64>,
    /// Outcomes of attempts that are told right: at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<f64>,
    /// Strings of staged records with evidence: at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grounded: Option<f64>,
    /// Things not to be said that are not: at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restraint: Option<f64>,
    /// Records in quarantine: at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantined_max: Option<f64>,
    /// Slices whose first answer fitted the schema: at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<f64>,
}

/// How much worse than the baseline a rate may be, from 0 to 1; nothing where it is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tolerances {
    /// See [`Bars::precision`].
    pub precision: f64,
    /// See [`Bars::recall`].
    pub recall: f64,
    /// See [`Bars::f1`].
    pub f1: f64,
    /// See [`Bars::core_recall`].
    pub core_recall: f64,
    /// See [`Bars::succeeded`].
    pub succeeded: f64,
    /// See [`Bars::grounded`].
    pub grounded: f64,
    /// See [`Bars::restraint`].
    pub restraint: f64,
    /// How much more may be in quarantine.
    pub quarantined: f64,
    /// See [`Bars::schema`].
    pub schema: f64,
}

/// A bar that is not reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Below {
    /// What was measured.
    pub measure: Measure,
    /// What it came to; none where there is nothing to take it of.
    pub is: Option<f64>,
    /// What it must come to: at least, or at most for [`Measure::Quarantined`].
    pub bar: f64,
}

impl Case {
    /// Reads `case.toml`; none if it is none, and then the finding, with the rule `bad-case`, says where.
    pub fn read(text: &str) -> (Option<Case>, Vec<Finding>) {
        let bad = |line: usize, detail: String| {
            let line = u32::try_from(line).unwrap_or(u32::MAX);
            (None, vec![Finding::new(Severity::Error, "bad-case", line, detail)])
        };
        let case: Case = match toml::from_str(text) {
            Ok(case) => case,
            Err(error) => {
                let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
                return bad(before.matches('\n').count() + 1, error.message().to_owned());
            }
        };
        let unknown = case.settings.keys().find(|key| !CASE_SETTINGS.contains(&key.as_str()));
        if let Some(unknown) = unknown {
            let known = CASE_SETTINGS.join(", ");
            return bad(0, format!("settings.{unknown}: expected one of {known}"));
        }
        let wrong = Measure::ALL.iter().find_map(|measure| {
            let values = [case.bars.of(*measure), Some(case.tolerances.of(*measure))];
            let wrong = values.into_iter().flatten().find(|value| !(0.0..=1.0).contains(value));
            wrong.map(|value| format!("{} {value}: expected a rate from 0 to 1", measure.name()))
        });
        match wrong {
            Some(wrong) => bad(0, wrong),
            None => (Some(case), Vec::new()),
        }
    }
}

impl Bars {
    /// The bar of a measure; of [`Measure::Quarantined`] it is the most.
    pub fn of(&self, measure: Measure) -> Option<f64> {
        match measure {
            Measure::Precision => self.precision,
            Measure::Recall => self.recall,
            Measure::F1 => self.f1,
            Measure::CoreRecall => self.core_recall,
            Measure::Succeeded => self.succeeded,
            Measure::Grounded => self.grounded,
            Measure::Restraint => self.restraint,
            Measure::Quarantined => self.quarantined_max,
            Measure::Schema => self.schema,
        }
    }

    /// The bars that `sums` do not reach. Rates are compared as they are printed, in hundredths of a percent.
    pub fn below(&self, sums: &Sums) -> Vec<Below> {
        let below = |measure: &Measure| {
            let bar = self.of(*measure)?;
            let is = sums.rate(*measure).value();
            let reached = match measure {
                // Where there are no records none is in quarantine.
                Measure::Quarantined => rounded(is.unwrap_or(0.0)) <= rounded(bar),
                Measure::Precision
                | Measure::Recall
                | Measure::F1
                | Measure::CoreRecall
                | Measure::Succeeded
                | Measure::Grounded
                | Measure::Restraint
                | Measure::Schema => is.is_some_and(|is| rounded(bar) <= rounded(is)),
            };
            (!reached).then_some(Below { measure: *measure, is, bar })
        };
        Measure::ALL.iter().filter_map(below).collect()
    }
}

impl Tolerances {
    /// The tolerance of a measure.
    pub fn of(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Precision => self.precision,
            Measure::Recall => self.recall,
            Measure::F1 => self.f1,
            Measure::CoreRecall => self.core_recall,
            Measure::Succeeded => self.succeeded,
            Measure::Grounded => self.grounded,
            Measure::Restraint => self.restraint,
            Measure::Quarantined => self.quarantined,
            Measure::Schema => self.schema,
        }
    }
}

/// In ten-thousandths: 2/3 reaches a bar of 0.6667.
pub(super) fn rounded(rate: f64) -> i64 {
    (rate * 10_000.0).round() as i64
}
