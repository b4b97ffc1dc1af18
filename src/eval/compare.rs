//! Compares a run with an earlier one, its baseline: which cases became worse, and the records that explain it.
//!
//! Without trials, recall, core recall, restraint and quarantined count as 0 and F1 as 1. Precision, succeeded,
//! grounded, found and schema are then not compared, since recall already shows the loss.

use super::case::{Tolerances, rounded};
use super::measure::{Asks, Counts, Measure, Rate, Sums};
use super::report::{
    CaseOutcome, CaseReport, ForbiddenReport, ItemReport, RecordReport, Report, Variant,
};
use crate::domain::{ClaimKind, named};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Output of `--json`: the report, and the comparison with a baseline. It can be read as a [`Report`].
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct ReportFile {
    #[serde(flatten)]
    pub report: Report,
    /// Changes against the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

/// Changes from an earlier run to this one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Comparison {
    /// True if models or prompts were chosen, so that other variants were not to be run.
    pub partial: bool,
    pub variants: Vec<VariantComparison>,
    /// Variants that the earlier run lacks.
    pub new: Vec<String>,
    /// Variants that this run lacks.
    pub gone: Vec<String>,
}

/// Changes with one model and one prompt.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct VariantComparison {
    /// Name in the earlier run.
    pub before: String,
    /// Name in this run.
    pub after: String,
    /// Number of cases that both runs measured; the counts here are of these.
    pub measured: u64,
    pub all: Change<Counts>,
    pub kinds: Vec<KindChange>,
    pub measures: Vec<MeasureChange>,
    pub asks: Change<Asks>,
    pub cases: Vec<CaseComparison>,
    /// Cases that the earlier run lacks.
    pub new: Vec<String>,
    /// Cases that this run lacks and was to run.
    pub gone: Vec<String>,
    /// Cases that this run lacks and was not to run.
    #[serde(default)]
    pub not_run: Vec<String>,
}

/// A value in both runs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Change<T> {
    /// In the earlier run.
    pub before: T,
    pub after: T,
}

/// The counts of a kind in both runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct KindChange {
    pub kind: ClaimKind,
    #[serde(flatten)]
    pub counts: Change<Counts>,
}

named! {
    /// Direction of a change.
    #[derive(JsonSchema)]
    pub(crate) Trend {
        /// Better by more than the tolerance.
        Better = "better",
        Same = "same",
        /// Worse by more than the tolerance.
        Worse = "worse",
    }
}

/// A measure whose counts changed.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct MeasureChange {
    pub measure: Measure,
    /// Counts in the earlier run.
    pub before: Rate,
    /// Counts in this run.
    pub after: Rate,
    pub tolerance: f64,
    pub trend: Trend,
}

/// Changes of a case.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct CaseComparison {
    pub name: String,
    /// Outcome in the earlier run.
    pub before: CaseOutcome,
    /// Outcome in this run.
    pub after: CaseOutcome,
    /// True if it is worse than its tolerances allow, fails newly or cannot be measured any more.
    pub worse: bool,
    /// True if a measure is better by more than its tolerance, or it passes newly.
    pub better: bool,
    /// True if its gold changed, so that rates are not of the same items.
    pub gold_changed: bool,
    /// Measures whose counts changed; none unless both runs measured the case.
    pub measures: Vec<MeasureChange>,
    pub answered: Vec<ItemReport>,
    /// Items that are not answered any more.
    pub missed: Vec<ItemReport>,
    /// Forbidden statements that are made newly.
    pub said: Vec<ForbiddenReport>,
    /// Forbidden statements that are not made any more.
    pub unsaid: Vec<ForbiddenReport>,
    /// Records that this run lacks; a changed record is lost and gained.
    pub lost: Vec<RecordReport>,
    /// Records that the earlier run lacks.
    pub gained: Vec<RecordReport>,
}

/// Compares a run with an earlier one; `tolerances` returns those of a case by name. Variants are matched by name;
/// if one variant of each run remains, these two are matched.
pub(crate) fn compare(
    before: &Report,
    after: &Report,
    tolerances: &dyn Fn(&str) -> Tolerances,
) -> Comparison {
    let named = |report: &Report, name: &str| report.variants.iter().any(|it| it.name == name);
    let old: Vec<&Variant> = before.variants.iter().filter(|it| !named(after, &it.name)).collect();
    let new: Vec<&Variant> = after.variants.iter().filter(|it| !named(before, &it.name)).collect();
    let renamed = match (old.as_slice(), new.as_slice()) {
        ([old], [new]) => Some((*old, *new)),
        _ => None,
    };
    let mut comparison = Comparison::default();
    for variant in &after.variants {
        let same = before.variants.iter().find(|it| it.name == variant.name);
        let renamed = renamed.filter(|(_, new)| new.name == variant.name).map(|(old, _)| old);
        match same.or(renamed) {
            Some(earlier) => {
                comparison.variants.push(VariantComparison::of(earlier, variant, tolerances));
            }
            None => comparison.new.push(variant.name.clone()),
        }
    }
    if renamed.is_none() {
        comparison.gone.extend(old.into_iter().map(|it| it.name.clone()));
    }
    comparison
}

impl Comparison {
    /// Moves missing cases that the run did not cover to `not_run`.
    pub(crate) fn of_cases(mut self, covers: &dyn Fn(&str) -> bool) -> Comparison {
        for variant in &mut self.variants {
            let gone = std::mem::take(&mut variant.gone);
            (variant.gone, variant.not_run) = gone.into_iter().partition(|name| covers(name));
        }
        self
    }

    /// True if a case is worse than its tolerances allow, or something that was to be run is missing.
    pub(crate) fn worse(&self) -> bool {
        let gone = !self.gone.is_empty() && !self.partial;
        let worse =
            |it: &VariantComparison| !it.gone.is_empty() || it.cases.iter().any(|it| it.worse);
        gone || self.variants.iter().any(worse)
    }

    pub(crate) fn uncompared(&self) -> Vec<&str> {
        let empty = self.variants.iter().filter(|it| it.measured == 0).map(|it| &it.after);
        self.new.iter().chain(empty).map(String::as_str).collect()
    }

    /// True if every variant was compared and nothing is worse. Comparing zero cases is a failure.
    pub(crate) fn passes(&self) -> bool {
        !self.worse() && self.uncompared().is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        let changed = |it: &VariantComparison| {
            !it.cases.is_empty() || !it.new.is_empty() || !it.gone.is_empty()
        };
        self.new.is_empty() && self.gone.is_empty() && !self.variants.iter().any(changed)
    }

    pub(crate) fn verdict(&self) -> (&'static str, bool) {
        match (self.worse(), self.passes(), self.is_empty()) {
            (true, ..) => ("worse than the baseline", false),
            (false, false, _) => ("not compared", false),
            (false, true, true) => ("nothing changed", true),
            (false, true, false) => ("no case is worse than the tolerances allow", true),
        }
    }

    pub(crate) fn variant(&self, name: &str) -> Option<&VariantComparison> {
        self.variants.iter().find(|it| it.after == name)
    }
}

impl VariantComparison {
    fn of(
        before: &Variant,
        after: &Variant,
        tolerances: &dyn Fn(&str) -> Tolerances,
    ) -> VariantComparison {
        fn by_name(variant: &Variant) -> BTreeMap<&str, &CaseReport> {
            variant.cases.iter().map(|it| (it.name.as_str(), it)).collect()
        }
        fn missing(
            from: &BTreeMap<&str, &CaseReport>,
            all: &BTreeMap<&str, &CaseReport>,
        ) -> Vec<String> {
            all.keys().filter(|it| !from.contains_key(*it)).map(|it| (*it).to_owned()).collect()
        }
        let (earlier, later) = (by_name(before), by_name(after));
        let mut it = VariantComparison {
            before: before.name.clone(),
            after: after.name.clone(),
            new: missing(&earlier, &later),
            gone: missing(&later, &earlier),
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
            it.cases.extend(CaseComparison::of(earlier, case, &tolerances(name)));
        }
        it.all = Change { before: then.tally.all(), after: now.tally.all() };
        let kind = |kind: &ClaimKind| KindChange {
            kind: *kind,
            counts: Change { before: then.tally.of(*kind), after: now.tally.of(*kind) },
        };
        it.kinds = ClaimKind::ALL.iter().map(kind).collect();
        it.measures = measure_changes(&then, &now, &Tolerances::default());
        it.asks = Change { before: then.asks, after: now.asks };
        it
    }

    pub(crate) fn case(&self, name: &str) -> Option<&CaseComparison> {
        self.cases.iter().find(|it| it.name == name)
    }
}

fn measure_changes(before: &Sums, after: &Sums, tolerances: &Tolerances) -> Vec<MeasureChange> {
    let change = |measure: &Measure| {
        let (before, after) = (before.rate(*measure), after.rate(*measure));
        let tolerance = tolerances.of(*measure);
        let trend = trend(*measure, Change { before, after }, tolerance);
        let change = MeasureChange { measure: *measure, before, after, tolerance, trend };
        (before != after).then_some(change)
    };
    Measure::ALL.iter().filter_map(change).collect()
}

fn trend(measure: Measure, rates: Change<Rate>, tolerance: f64) -> Trend {
    // Values without trials.
    let empty = match measure {
        Measure::Recall | Measure::CoreRecall | Measure::Restraint | Measure::Quarantined => {
            Some(0.0)
        }
        Measure::F1 => Some(1.0),
        Measure::Precision
        | Measure::Succeeded
        | Measure::Grounded
        | Measure::Found
        | Measure::Schema => None,
    };
    let value = |rate: Rate| rate.value().or(empty).map(rounded);
    let (Some(before), Some(after)) = (value(rates.before), value(rates.after)) else {
        return Trend::Same;
    };
    let mut gain = after - before;
    if measure == Measure::Quarantined {
        // With fewer records the same count is a higher rate, but not a regression.
        let same_direction = rates.before.hits.cmp(&rates.after.hits) == before.cmp(&after);
        gain = if same_direction { -gain } else { 0 };
    }
    match rounded(tolerance) {
        tolerance if gain < -tolerance => Trend::Worse,
        tolerance if tolerance < gain => Trend::Better,
        _ => Trend::Same,
    }
}

impl CaseComparison {
    /// Compares a case with an earlier run of it; `None` if nothing changed.
    fn of(
        before: &CaseReport,
        after: &CaseReport,
        tolerances: &Tolerances,
    ) -> Option<CaseComparison> {
        let passed = |it: &CaseReport| it.outcome == CaseOutcome::Passed;
        let mut it = CaseComparison {
            name: after.name.clone(),
            before: before.outcome,
            after: after.outcome,
            worse: passed(before) && !passed(after) || before.is_measured() && !after.is_measured(),
            better: !passed(before) && passed(after)
                || !before.is_measured() && after.is_measured(),
            ..CaseComparison::default()
        };
        if before.is_measured() && after.is_measured() {
            it.gold_changed = gold_changed(before, after);
            it.measures = measure_changes(&before.sums, &after.sums, tolerances);
            it.worse |= it.measures.iter().any(|it| it.trend == Trend::Worse);
            it.better |= it.measures.iter().any(|it| it.trend == Trend::Better);
            (it.answered, it.missed) =
                (newly_answered(before, after), newly_answered(after, before));
            (it.said, it.unsaid) = (newly_said(before, after), newly_said(after, before));
            it.lost = without(&before.records, &after.records);
            it.gained = without(&after.records, &before.records);
        }
        let unchanged = it.before == it.after && !it.gold_changed && it.measures.is_empty();
        let same_items = it.answered.is_empty() && it.missed.is_empty();
        let same_forbidden = it.said.is_empty() && it.unsaid.is_empty();
        let same_records = it.lost.is_empty() && it.gained.is_empty();
        let same = unchanged && same_items && same_forbidden && same_records;
        (!same).then_some(it)
    }
}

fn gold_changed(before: &CaseReport, after: &CaseReport) -> bool {
    let items = |case: &CaseReport| -> Vec<ItemReport> {
        case.items.iter().map(|it| ItemReport { answered_by: None, ..it.clone() }).collect()
    };
    let forbidden = |case: &CaseReport| -> Vec<ForbiddenReport> {
        case.forbidden.iter().map(|it| ForbiddenReport { said_by: None, ..it.clone() }).collect()
    };
    items(before) != items(after) || forbidden(before) != forbidden(after)
}

/// Items of both cases that only `after` answers.
fn newly_answered(before: &CaseReport, after: &CaseReport) -> Vec<ItemReport> {
    let open = |id: &str| before.items.iter().any(|it| it.id == id && it.answered_by.is_none());
    let answered = after.items.iter().filter(|it| it.answered_by.is_some() && open(&it.id));
    answered.cloned().collect()
}

/// Forbidden statements of both cases that only `after` makes.
fn newly_said(before: &CaseReport, after: &CaseReport) -> Vec<ForbiddenReport> {
    let unsaid = |id: &str| before.forbidden.iter().any(|it| it.id == id && it.said_by.is_none());
    after.forbidden.iter().filter(|it| it.said_by.is_some() && unsaid(&it.id)).cloned().collect()
}

/// Records of `records` that `others` lack. Ids cannot match them, because they depend on the prompt: records are the
/// same if they make the same claim in the same state.
fn without(records: &[RecordReport], others: &[RecordReport]) -> Vec<RecordReport> {
    let mut rest: Vec<&RecordReport> = others.iter().collect();
    let is_missing = |it: &&RecordReport| {
        let same = |other: &&RecordReport| {
            (it.kind, it.state, &it.claim) == (other.kind, other.state, &other.claim)
        };
        rest.iter().position(same).map(|at| rest.remove(at)).is_none()
    };
    records.iter().filter(is_missing).cloned().collect()
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
