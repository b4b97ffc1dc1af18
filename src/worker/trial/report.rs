//! Cases together: the report of a run.

use super::{Trial, Tried, Unused, Variation};
use crate::extract::SCHEMA_VERSION as ANSWERS_VERSION;
use crate::score::{
    CaseOutcome, CaseReport, Measure, MeasuredInterval, PromptName, Report, SCHEMA_VERSION, Shown,
    Summary, Sums, Tally, Tolerances, Variant, interval,
};
use std::collections::BTreeMap;

/// Where the draws of intervals begin, so that the same run gives the same report.
const SEED: u64 = 42;

/// A case that was tried, with what a page shows of it and how much worse than a baseline it may be.
pub(super) struct Done {
    pub(super) report: CaseReport,
    pub(super) shown: Shown,
    pub(super) tolerances: Tolerances,
    /// Recordings that no request asks for.
    pub(super) unused: Unused,
}

/// The report of cases that are given by variation, in their order.
pub(super) fn report(trial: &Trial, done: Vec<Vec<Done>>) -> Tried {
    let (mut variants, mut shown) = (Vec::new(), Vec::new());
    let (mut tolerances, mut unused) = (BTreeMap::new(), BTreeMap::new());
    for (variation, done) in trial.variations.iter().zip(done) {
        let (mut cases, mut seen) = (Vec::new(), Vec::new());
        for it in done {
            tolerances.insert(it.report.name.clone(), it.tolerances);
            if !it.unused.is_empty() {
                unused.insert(it.report.name.clone(), it.unused);
            }
            cases.push(it.report);
            seen.push(it.shown);
        }
        variants.push(variant(variation, cases));
        shown.push(seen);
    }
    let annalist = env!("CARGO_PKG_VERSION").to_owned();
    let report = Report { report: SCHEMA_VERSION, annalist, variants };
    Tried { report, shown, tolerances, unused }
}

fn variant(variation: &Variation, cases: Vec<CaseReport>) -> Variant {
    let prompts = &variation.prompts;
    Variant {
        name: variation.name.clone(),
        model: variation.model.clone(),
        prompt: PromptName {
            id: prompts.id().to_owned(),
            version: prompts.version(),
            digest: prompts.digest().to_string(),
        },
        schema: ANSWERS_VERSION,
        summary: summary(&cases),
        cases,
    }
}

fn summary(cases: &[CaseReport]) -> Summary {
    let (mut summary, mut tallies) = (Summary::default(), Vec::new());
    for case in cases {
        let count = match case.outcome {
            CaseOutcome::Passed => &mut summary.cases.passed,
            CaseOutcome::Failed => &mut summary.cases.failed,
            CaseOutcome::Stale => &mut summary.cases.stale,
            CaseOutcome::Broken => &mut summary.cases.broken,
        };
        *count += 1;
        match case.outcome {
            CaseOutcome::Passed | CaseOutcome::Failed => {
                summary.sums += case.sums;
                tallies.push(case.sums.tally);
            }
            // Half of a case is no measure of it.
            CaseOutcome::Stale | CaseOutcome::Broken => {}
        }
    }
    let of = |measure: &Measure| {
        let rate = |tally: &Tally| Sums { tally: *tally, ..Sums::default() }.rate(*measure).value();
        let interval = interval(&tallies, SEED, rate)?;
        Some(MeasuredInterval { measure: *measure, interval })
    };
    // What answers were like is counted by slices, not drawn by cases.
    let drawn = Measure::ALL.iter().filter(|it| **it != Measure::Schema);
    summary.intervals = drawn.filter_map(of).collect();
    summary
}
