//! What a run of prompt tests changed against an earlier one, which is its baseline. It tells what became worse
//! and by which records; it does not say whether that is wanted.
//!
//! A measure that has nothing to be taken of counts as follows:
//!
//! | measure | counts as | since |
//! |---|---|---|
//! | recall, core recall, restraint | 0 | they are taken of the gold: without items nothing is shown any more |
//! | F1 | 1 | neither items nor records: nothing was to be said, and nothing was |
//! | quarantined | 0 | no records, so none of them in quarantine |
//! | precision, succeeded, grounded, schema | not compared | they are taken of what was said: recall tells what is lost with it |

mod case;
mod pair;
#[cfg(test)]
mod tests;

pub use case::{
    CaseComparison, ForbiddenChange, ItemChange, MeasureChange, RecordChange, RecordSide, Trend,
};

use super::case::Tolerances;
use super::measure::{Asks, Counts, Measure, Sums};
use super::report::{CaseReport, Report, Variant};
use crate::domain::ClaimKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What changed from an earlier run to this one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Comparison {
    /// Whether models or prompts were chosen on purpose, so that a variant that is gone was only not run.
    pub partial: bool,
    /// The variants that both runs have.
    pub variants: Vec<VariantComparison>,
    /// Variants that the earlier run did not have, by name.
    pub new: Vec<String>,
    /// Variants that only the earlier run has.
    pub gone: Vec<String>,
}

/// What changed with one model and one prompt.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct VariantComparison {
    /// Its name in the earlier run.
    pub before: String,
    /// Its name in this one.
    pub after: String,
    /// Cases that both runs could measure; the counts here are of these.
    pub measured: u64,
    /// Counts of all kinds together.
    pub all: CountsChange,
    /// Counts by kind, all four of them.
    pub kinds: Vec<KindChange>,
    /// The measures whose counts changed.
    pub measures: Vec<MeasureChange>,
    /// What it took to have them.
    pub asks: AsksChange,
    /// The cases that changed.
    pub cases: Vec<CaseComparison>,
    /// Cases that the earlier run did not have, by name.
    pub new: Vec<String>,
    /// Cases that only the earlier run has, and that this one should have run.
    pub gone: Vec<String>,
    /// Cases that only the earlier run has, and that this one was not to run.
    #[serde(default)]
    pub not_run: Vec<String>,
}

/// Counts then and now.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct CountsChange {
    /// In the earlier run.
    pub before: Counts,
    /// In this one.
    pub after: Counts,
}

/// The counts of a kind then and now.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct KindChange {
    /// Of which kind.
    pub kind: ClaimKind,
    /// The counts.
    #[serde(flatten)]
    pub counts: CountsChange,
}

/// What was asked then and now.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct AsksChange {
    /// In the earlier run.
    pub before: Asks,
    /// In this one.
    pub after: Asks,
}

/// What `--json` writes: the report, and what it changed where there is a baseline. It reads as a [`Report`] too.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Written {
    /// The report.
    #[serde(flatten)]
    pub report: Report,
    /// What changed against the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

/// Compares a run with an earlier one; `tolerances` are those of the case with this name. Variants meet by
/// name; where each run has one left, these two meet. Cases meet by name.
pub fn compare(
    before: &Report,
    after: &Report,
    tolerances: &dyn Fn(&str) -> Tolerances,
) -> Comparison {
    let named = |report: &Report, name: &str| report.variants.iter().any(|it| it.name == name);
    let left: Vec<&Variant> = before.variants.iter().filter(|it| !named(after, &it.name)).collect();
    let come: Vec<&Variant> = after.variants.iter().filter(|it| !named(before, &it.name)).collect();
    let renamed = match (left.as_slice(), come.as_slice()) {
        ([left], [come]) => Some((*left, *come)),
        _ => None,
    };
    let mut comparison = Comparison::default();
    for variant in &after.variants {
        let same = before.variants.iter().find(|it| it.name == variant.name);
        let by_place = renamed.filter(|(_, come)| come.name == variant.name).map(|(left, _)| left);
        match same.or(by_place) {
            Some(earlier) => {
                comparison.variants.push(VariantComparison::of(earlier, variant, tolerances));
            }
            None => comparison.new.push(variant.name.clone()),
        }
    }
    if renamed.is_none() {
        comparison.gone.extend(left.into_iter().map(|it| it.name.clone()));
    }
    comparison
}

impl Comparison {
    /// The same of a run that left out variants on purpose: one that is gone is then not worse.
    pub fn of_some_variants(mut self) -> Comparison {
        self.partial = true;
        self
    }

    /// The same of a run of the cases whose names `covers` takes: another one that is gone was not to be run.
    pub fn of_cases(mut self, covers: &dyn Fn(&str) -> bool) -> Comparison {
        for variant in &mut self.variants {
            let gone = std::mem::take(&mut variant.gone);
            (variant.gone, variant.not_run) = gone.into_iter().partition(|name| covers(name));
        }
        self
    }

    /// Whether a case is worse than its tolerances allow, or something is gone that was to be run.
    pub fn worse(&self) -> bool {
        let gone = !self.gone.is_empty() && !self.partial;
        let worse =
            |it: &VariantComparison| !it.gone.is_empty() || it.cases.iter().any(|it| it.worse);
        gone || self.variants.iter().any(worse)
    }

    /// The variants of this run that were compared with nothing: the earlier run does not have them, or there is no
    /// case that both runs measured.
    pub fn uncompared(&self) -> Vec<&str> {
        let empty = self.variants.iter().filter(|it| it.measured == 0).map(|it| &it.after);
        self.new.iter().chain(empty).map(String::as_str).collect()
    }

    /// Whether every variant was compared with something, and nothing is worse: what was compared with nothing has
    /// shown nothing.
    pub fn passes(&self) -> bool {
        !self.worse() && self.uncompared().is_empty()
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        let changed = |it: &VariantComparison| {
            !it.cases.is_empty() || !it.new.is_empty() || !it.gone.is_empty()
        };
        self.new.is_empty() && self.gone.is_empty() && !self.variants.iter().any(changed)
    }

    /// What changed of the variant with this name in the later run.
    pub fn variant(&self, name: &str) -> Option<&VariantComparison> {
        self.variants.iter().find(|it| it.after == name)
    }
}

impl VariantComparison {
    fn of(
        before: &Variant,
        after: &Variant,
        tolerances: &dyn Fn(&str) -> Tolerances,
    ) -> VariantComparison {
        let earlier: BTreeMap<&str, &CaseReport> =
            before.cases.iter().map(|it| (it.name.as_str(), it)).collect();
        let later: BTreeMap<&str, &CaseReport> =
            after.cases.iter().map(|it| (it.name.as_str(), it)).collect();
        let only = |these: &BTreeMap<&str, &CaseReport>, others: &BTreeMap<&str, &CaseReport>| {
            let only = these.keys().filter(|name| !others.contains_key(*name));
            only.map(|name| (*name).to_owned()).collect()
        };
        let mut it = VariantComparison {
            before: before.name.clone(),
            after: after.name.clone(),
            new: only(&later, &earlier),
            gone: only(&earlier, &later),
            ..VariantComparison::default()
        };
        let (mut then, mut now) = (Sums::default(), Sums::default());
        for (name, case) in &later {
            let Some(earlier) = earlier.get(name) else { continue };
            if earlier.is_measured() && case.is_measured() {
                it.measured += 1;
                then += earlier.sums;
                now += case.sums;
            }
            let changed = CaseComparison::of(earlier, case, &tolerances(name));
            it.cases.extend(changed);
        }
        it.all = CountsChange { before: then.tally.all(), after: now.tally.all() };
        let kind = |kind: &ClaimKind| KindChange {
            kind: *kind,
            counts: CountsChange { before: then.tally.of(*kind), after: now.tally.of(*kind) },
        };
        it.kinds = ClaimKind::ALL.iter().map(kind).collect();
        let change = |measure: &Measure| MeasureChange::of(*measure, (&then, &now), 0.0);
        it.measures = Measure::ALL.iter().filter_map(change).collect();
        it.asks = AsksChange { before: then.asks, after: now.asks };
        it
    }

    /// What changed of the case with this name.
    pub fn case(&self, name: &str) -> Option<&CaseComparison> {
        self.cases.iter().find(|it| it.name == name)
    }
}
