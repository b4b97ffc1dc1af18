//! `case.toml`: the purpose of a case, its settings, and the rates that it must reach.

use super::measure::{Measure, Sums};
use crate::domain::{Finding, Severity};
use schemars::JsonSchema;
use serde::Deserialize;

/// Tables of `config.toml` that a case may override: how the transcript is read, cut and presented.
const CASE_SETTINGS: [&str; 4] = ["slice", "conversation", "dialog", "privacy"];

/// Contents of `case.toml`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// Purpose of the case in one line, for people.
    pub about: String,
    /// Language of the records; by default that of the settings.
    #[serde(default)]
    pub language: Option<String>,
    /// Conversation of the transcript, by its id or its number in the file, if it holds several.
    #[serde(default)]
    pub conversation: Option<String>,
    /// Model that the recorded requests name; by default that of the settings.
    #[serde(default)]
    pub model: Option<String>,
    /// Settings that differ: tables `slice`, `conversation`, `dialog` and `privacy` of `config.toml`.
    #[serde(default)]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub settings: toml::Table,
    /// Rates that must be reached.
    #[serde(default)]
    pub bars: Bars,
    /// Regressions against a baseline that are allowed.
    #[serde(default)]
    pub tolerances: Tolerances,
}

macro_rules! per_measure {
    ($(#[$doc:meta])* $name:ident: $type:ty { $($(#[$field_doc:meta])* $field:ident: $measure:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct $name { $($(#[$field_doc])* pub $field: $type),* }

        impl $name {
            pub(crate) fn of(&self, measure: Measure) -> $type {
                match measure { $(Measure::$measure => self.$field),* }
            }
        }
    };
}

per_measure! {
    /// Rates from 0 to 1 that must be reached. A bar is missed if there is nothing to measure.
    Bars: Option<f64> {
        /// Records that answer an item, of all records: at least.
        precision: Precision,
        /// Items that are answered: at least.
        recall: Recall,
        /// Harmonic mean of both: at least.
        f1: F1,
        /// Core items that are answered: at least.
        core_recall: CoreRecall,
        /// Attempts with the right outcome: at least.
        succeeded: Succeeded,
        /// Strings of staged records with evidence: at least.
        grounded: Grounded,
        /// Forbidden statements that no record makes: at least.
        restraint: Restraint,
        /// Questions whose item is among the first five records that a search finds: at least.
        found: Found,
        /// Records in quarantine: at most.
        quarantined_max: Quarantined,
        /// Slices whose first answer fitted the schema: at least.
        schema: Schema,
    }
}

per_measure! {
    /// Regressions against a baseline that are allowed, from 0 to 1; 0 by default.
    Tolerances: f64 {
        precision: Precision,
        recall: Recall,
        f1: F1,
        core_recall: CoreRecall,
        succeeded: Succeeded,
        grounded: Grounded,
        restraint: Restraint,
        found: Found,
        quarantined: Quarantined,
        schema: Schema,
    }
}

impl Case {
    /// Parses `case.toml`.
    pub(crate) fn read(text: &str) -> Result<Case, Finding> {
        let bad = |line: usize, detail: String| {
            let line = u32::try_from(line).unwrap_or(u32::MAX);
            Finding::new(Severity::Error, "bad-case", line, detail)
        };
        let case: Case = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
            bad(before.matches('\n').count() + 1, error.message().to_owned())
        })?;
        if let Some(key) = case.settings.keys().find(|key| !CASE_SETTINGS.contains(&key.as_str())) {
            let known = CASE_SETTINGS.join(", ");
            return Err(bad(0, format!("settings.{key}: expected one of {known}")));
        }
        for measure in Measure::ALL {
            let values = [case.bars.of(*measure), Some(case.tolerances.of(*measure))];
            let wrong = values.into_iter().flatten().find(|value| !(0.0..=1.0).contains(value));
            if let Some(value) = wrong {
                let name = measure.name();
                return Err(bad(0, format!("{name} {value}: expected a rate from 0 to 1")));
            }
        }
        Ok(case)
    }
}

impl Bars {
    /// One line for each bar that `sums` miss. Compares rates at the precision at which they are printed.
    pub(crate) fn missed(&self, sums: &Sums) -> Vec<String> {
        let missed = |measure: &Measure| {
            let (bar, rate) = (self.of(*measure)?, sums.rate(*measure));
            let is_maximum = *measure == Measure::Quarantined;
            let reached = match rate.value() {
                Some(value) if is_maximum => rounded(value) <= rounded(bar),
                Some(value) => rounded(bar) <= rounded(value),
                // Without records, none is in quarantine.
                None => is_maximum,
            };
            let value =
                rate.value().map_or("nothing to measure".to_owned(), |it| format!("{it:.4}"));
            let (name, least) = (measure.name(), if is_maximum { "at most" } else { "at least" });
            let (hits, of) = (rate.hits, rate.of);
            (!reached)
                .then(|| format!("{name} is {value} ({hits} of {of}); the bar is {least} {bar}"))
        };
        Measure::ALL.iter().filter_map(missed).collect()
    }
}

/// A rate in ten-thousandths: 2/3 reaches a bar of 0.6667.
pub(crate) fn rounded(rate: f64) -> i64 {
    (rate * 10_000.0).round() as i64
}
