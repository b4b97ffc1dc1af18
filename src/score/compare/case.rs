//! What changed of one case: its outcome, its measures, its items, and the very records.

use super::super::case::{Tolerances, rounded};
use super::super::gold::{Importance, Why};
use super::super::measure::{Measure, Rate, Sums};
use super::super::report::{CaseOutcome, CaseReport, ForbiddenReport, ItemReport, RecordReport};
use super::pair::pair;
use crate::domain::{ClaimKind, RecordState, named};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

named! {
    /// Which way a measure went.
    #[derive(JsonSchema)]
    Trend {
        /// It is better by more than the tolerance.
        Better = "better",
        /// It is as good, as far as the tolerance goes.
        Same = "same",
        /// It is worse by more than the tolerance.
        Worse = "worse",
    }
}

/// A measure whose counts changed.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct MeasureChange {
    /// Which.
    pub measure: Measure,
    /// Its counts in the earlier run.
    pub before: Rate,
    /// Its counts in this one.
    pub after: Rate,
    /// How much worse it may be.
    pub tolerance: f64,
    /// Which way it went.
    pub trend: Trend,
}

/// What changed of a case.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct CaseComparison {
    /// Its name.
    pub name: String,
    /// What became of it in the earlier run.
    pub before: CaseOutcome,
    /// What became of it in this one.
    pub after: CaseOutcome,
    /// Whether it is worse than its tolerances allow, fails newly or cannot be measured any more.
    pub worse: bool,
    /// Whether a measure is better by more than its tolerance, or it passes newly.
    pub better: bool,
    /// Whether its gold is another one, so that rates are not of the same things.
    pub gold_changed: bool,
    /// The measures whose counts changed; none where one of the runs could not measure the case.
    pub measures: Vec<MeasureChange>,
    /// Items that have an answer now, and had none.
    pub answered: Vec<ItemChange>,
    /// Items that had an answer, and have none now.
    pub missed: Vec<ItemChange>,
    /// What is not to be said, is said now, and was not.
    pub said: Vec<ForbiddenChange>,
    /// What is not to be said, was said, and is not now.
    pub unsaid: Vec<ForbiddenChange>,
    /// Records that are not as they were, by kind.
    pub records: Vec<RecordChange>,
}

/// An item that is answered in one of the runs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ItemChange {
    /// Its name in the gold.
    pub id: String,
    /// What kind of record says it.
    pub kind: ClaimKind,
    /// How much it matters.
    pub importance: Importance,
    /// It, in a sentence.
    pub statement: String,
}

/// Something not to be said that is said in one of the runs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ForbiddenChange {
    /// Its name in the gold.
    pub id: String,
    /// Why it is not to be said.
    pub why: Why,
    /// It, in a sentence.
    pub statement: String,
}

/// A record that is not as it was: gained where it was not before, lost where it is no more, else changed.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct RecordChange {
    /// What kind it is.
    pub kind: ClaimKind,
    /// It in the earlier run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<RecordSide>,
    /// It in this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<RecordSide>,
}

/// A record as one of the runs has it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct RecordSide {
    /// Its place among [`CaseReport::records`].
    pub at: usize,
    /// Its fields.
    pub claim: Value,
    /// Whether it is staged or in quarantine.
    pub state: RecordState,
    /// The item that it answers, by its name in the gold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
}

impl MeasureChange {
    /// What changed of a measure from the first counts to the second; none where its counts are the same.
    pub(super) fn of(
        measure: Measure,
        (before, after): (&Sums, &Sums),
        tolerance: f64,
    ) -> Option<MeasureChange> {
        let (before, after) = (before.rate(measure), after.rate(measure));
        let trend = trend(measure, before, after, tolerance);
        (before != after).then_some(MeasureChange { measure, before, after, tolerance, trend })
    }
}

/// What a measure counts as where there is nothing to take it of; none where it is not compared then.
fn empty(measure: Measure) -> Option<f64> {
    match measure {
        Measure::Recall | Measure::CoreRecall | Measure::Restraint | Measure::Quarantined => {
            Some(0.0)
        }
        Measure::F1 => Some(1.0),
        Measure::Precision | Measure::Succeeded | Measure::Grounded | Measure::Schema => None,
    }
}

fn trend(measure: Measure, before: Rate, after: Rate, tolerance: f64) -> Trend {
    let value = |rate: Rate| rate.value().or(empty(measure)).map(rounded);
    let (before_hits, after_hits) = (before.hits, after.hits);
    let (Some(before), Some(after)) = (value(before), value(after)) else { return Trend::Same };
    let gain = match measure {
        // As many of fewer records are a higher rate, but not more.
        Measure::Quarantined if before_hits.cmp(&after_hits) == before.cmp(&after) => {
            before - after
        }
        Measure::Quarantined => 0,
        Measure::Precision
        | Measure::Recall
        | Measure::F1
        | Measure::CoreRecall
        | Measure::Succeeded
        | Measure::Grounded
        | Measure::Restraint
        | Measure::Schema => after - before,
    };
    let tolerance = rounded(tolerance);
    match gain {
        gain if gain < -tolerance => Trend::Worse,
        gain if tolerance < gain => Trend::Better,
        _ => Trend::Same,
    }
}

impl CaseComparison {
    /// Compares a case with itself in an earlier run; none where nothing changed.
    pub(super) fn of(
        before: &CaseReport,
        after: &CaseReport,
        tolerances: &Tolerances,
    ) -> Option<CaseComparison> {
        let mut it = CaseComparison {
            name: after.name.clone(),
            before: before.outcome,
            after: after.outcome,
            worse: before.outcome == CaseOutcome::Passed && after.outcome != CaseOutcome::Passed,
            better: before.outcome != CaseOutcome::Passed && after.outcome == CaseOutcome::Passed,
            gold_changed: false,
            measures: Vec::new(),
            answered: Vec::new(),
            missed: Vec::new(),
            said: Vec::new(),
            unsaid: Vec::new(),
            records: Vec::new(),
        };
        match (before.is_measured(), after.is_measured()) {
            (true, true) => it.measure((before, after), tolerances),
            (true, false) => it.worse = true,
            (false, true) => it.better = true,
            (false, false) => {}
        }
        (!it.is_empty()).then_some(it)
    }

    fn measure(&mut self, (before, after): (&CaseReport, &CaseReport), tolerances: &Tolerances) {
        self.gold_changed = is_other_gold(before, after);
        let sums = (&before.sums, &after.sums);
        let change = |measure: &Measure| MeasureChange::of(*measure, sums, tolerances.of(*measure));
        self.measures = Measure::ALL.iter().filter_map(change).collect();
        self.worse |= self.measures.iter().any(|it| it.trend == Trend::Worse);
        self.better |= self.measures.iter().any(|it| it.trend == Trend::Better);
        self.answered = items(before, after);
        self.missed = items(after, before);
        self.said = forbidden(before, after);
        self.unsaid = forbidden(after, before);
        self.records = pair(&before.records, &after.records);
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.before == self.after
            && !self.gold_changed
            && self.measures.is_empty()
            && self.answered.is_empty()
            && self.missed.is_empty()
            && self.said.is_empty()
            && self.unsaid.is_empty()
            && self.records.is_empty()
    }

    /// Whether it passed, and does not now.
    pub fn fails_newly(&self) -> bool {
        self.before == CaseOutcome::Passed && self.after != CaseOutcome::Passed
    }
}

impl RecordSide {
    pub(super) fn of(at: usize, record: &RecordReport) -> RecordSide {
        RecordSide {
            at,
            claim: record.claim.clone(),
            state: record.state,
            answers: record.answers.clone(),
        }
    }
}

/// Whether items or what is not to be said are not the same in both.
fn is_other_gold(before: &CaseReport, after: &CaseReport) -> bool {
    fn item(it: &ItemReport) -> (&str, ClaimKind, Importance, &str) {
        (&it.id, it.kind, it.importance, &it.statement)
    }
    fn said(it: &ForbiddenReport) -> (&str, Why, &str) {
        (&it.id, it.why, &it.statement)
    }
    !before.items.iter().map(item).eq(after.items.iter().map(item))
        || !before.forbidden.iter().map(said).eq(after.forbidden.iter().map(said))
}

/// The items that `other` has an answer to, and `one` has as well, but no answer to.
fn items(one: &CaseReport, other: &CaseReport) -> Vec<ItemChange> {
    let open = one.items.iter().filter(|it| it.answered_by.is_none());
    let open: BTreeMap<&str, &ItemReport> = open.map(|it| (it.id.as_str(), it)).collect();
    let answered = other.items.iter().filter(|it| it.answered_by.is_some());
    let changed = answered.filter(|it| open.contains_key(it.id.as_str()));
    let change = |it: &ItemReport| ItemChange {
        id: it.id.clone(),
        kind: it.kind,
        importance: it.importance,
        statement: it.statement.clone(),
    };
    changed.map(change).collect()
}

/// What `other` says, and `one` knows as not to be said as well, but does not say.
fn forbidden(one: &CaseReport, other: &CaseReport) -> Vec<ForbiddenChange> {
    let kept = one.forbidden.iter().filter(|it| it.said_by.is_none());
    let kept: BTreeMap<&str, &ForbiddenReport> = kept.map(|it| (it.id.as_str(), it)).collect();
    let said = other.forbidden.iter().filter(|it| it.said_by.is_some());
    let changed = said.filter(|it| kept.contains_key(it.id.as_str()));
    let change = |it: &ForbiddenReport| ForbiddenChange {
        id: it.id.clone(),
        why: it.why,
        statement: it.statement.clone(),
    };
    changed.map(change).collect()
}
