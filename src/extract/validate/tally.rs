//! What was put right, counted by rule: one finding a rule, however often it fired.

use crate::domain::{Finding, Severity};

macro_rules! rules {
    ($($rule:literal, $severity:ident, $detail:literal;)*) => {
        fn describe(rule: &'static str) -> (Severity, &'static str) {
            match rule {
                $($rule => (Severity::$severity, $detail),)*
                other => (Severity::Warning, other),
            }
        }
    };
}

rules! {
    "unknown-field", Warning, "fields that the schema does not have, dropped";
    "model-provenance", Warning, "fields that only the host may fill, dropped";
    "missing-array", Warning, "lists that are missing, taken as empty";
    "empty-item", Info, "items without words in a list of texts, dropped";
    "too-many-items", Warning, "lists of options or points that are too long, cut";
    "cut-string", Warning, "texts that are too long, cut";
    "too-many-claims", Warning, "claims beyond the most that are kept, dropped";
    "duplicate-claim", Info, "claims that were handed over twice, kept once";
}

/// Counts, in the order in which the rules first fired.
#[derive(Default)]
pub(super) struct Tally(Vec<(&'static str, u64, String)>);

impl Tally {
    /// Counts `rule` at element `n` of `list`.
    pub(super) fn count(&mut self, rule: &'static str, list: &str, n: usize) {
        self.at(rule, || format!("{list}[{n}]"));
    }

    /// Counts `rule`; only the first place is remembered.
    pub(super) fn at(&mut self, rule: &'static str, place: impl FnOnce() -> String) {
        match self.0.iter_mut().find(|(known, ..)| *known == rule) {
            Some((_, count, _)) => *count += 1,
            None => self.0.push((rule, 1, place())),
        }
    }

    pub(super) fn into_findings(self) -> Vec<Finding> {
        let finding = |(rule, count, place): (&'static str, u64, String)| {
            let (severity, detail) = describe(rule);
            Finding::new(severity, rule, 0, format!("{count} {detail}; first at {place}"))
        };
        self.0.into_iter().map(finding).collect()
    }
}
