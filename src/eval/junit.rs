//! A run as JUnit XML for continuous integration. Contains no times, so that equal runs give equal bytes.

use super::compare::{CaseComparison, Comparison, Trend};
use super::measure::{Measure, Sums};
use super::report::{CaseOutcome, CaseReport, Problem, Report, Variant};
use quick_junit::{NonSuccessKind, Property, SerializeError, TestCase, TestCaseStatus, TestSuite};

/// Maximum bytes of a message, which is shown on one line.
const MESSAGE_BYTES_MAX: usize = 500;

/// Renders a run as JUnit XML: one suite per variant, one test case per case. A case that misses its bars, is stale
/// or is worse than the baseline allows is a failure; a broken one is an error. Missing cases and variants, and
/// variants with nothing to compare, are separate failures.
pub(crate) fn junit(
    report: &Report,
    comparison: Option<&Comparison>,
) -> Result<String, SerializeError> {
    let mut xml = quick_junit::Report::new("annalist");
    xml.add_test_suites(report.variants.iter().map(|it| suite(it, comparison)));
    let gone = comparison.filter(|it| !it.partial).map(|it| it.gone.as_slice());
    let gone = gone.unwrap_or_default();
    if !gone.is_empty() {
        let mut suite = TestSuite::new("baseline");
        suite.add_test_cases(gone.iter().map(|name| missing("baseline", name, "variant")));
        xml.add_test_suite(suite);
    }
    xml.to_string()
}

fn suite(variant: &Variant, comparison: Option<&Comparison>) -> TestSuite {
    let mut suite = TestSuite::new(variant.name.as_str());
    let prompt = &variant.prompt;
    suite.add_property(("prompt", format!("{} version {}", prompt.id, prompt.version).as_str()));
    suite.add_property(("prompt.digest", prompt.digest.as_str()));
    suite.add_properties(variant.model.as_ref().map(|it| Property::new("model", it.as_str())));
    suite.add_properties(rates(&variant.summary.sums));
    let compared = comparison.and_then(|it| it.variant(&variant.name));
    for case in &variant.cases {
        let change = compared.and_then(|it| it.case(&case.name));
        suite.add_test_case(test_case(&variant.name, case, change));
    }
    let gone = compared.into_iter().flat_map(|it| &it.gone);
    suite.add_test_cases(gone.map(|name| missing(&variant.name, name, "case")));
    if comparison.is_some_and(|it| it.uncompared().contains(&variant.name.as_str())) {
        let text = "nothing could be compared: both runs measured no common case";
        suite.add_test_case(failure(&variant.name, "baseline", "not-compared", text));
    }
    suite
}

fn test_case(suite: &str, case: &CaseReport, change: Option<&CaseComparison>) -> TestCase {
    let worse = change.filter(|it| it.worse);
    let unsuccessful = |kind, name| status(kind, name, &reasons(case, worse));
    let status = match case.outcome {
        CaseOutcome::Passed if worse.is_none() => TestCaseStatus::success(),
        CaseOutcome::NotMeasured => TestCaseStatus::skipped(),
        CaseOutcome::Passed => unsuccessful(NonSuccessKind::Failure, "worse"),
        CaseOutcome::Broken => unsuccessful(NonSuccessKind::Error, case.outcome.name()),
        CaseOutcome::Failed | CaseOutcome::Stale => {
            unsuccessful(NonSuccessKind::Failure, case.outcome.name())
        }
    };
    let mut test = TestCase::new(case.name.as_str(), status);
    test.set_classname(suite);
    if case.is_measured() {
        test.add_properties(rates(&case.sums));
    }
    let warnings: Vec<String> = case.problems.iter().filter(|it| !it.fails).map(line).collect();
    if !warnings.is_empty() {
        test.set_system_out(warnings.join("\n").as_str());
    }
    test
}

fn missing(suite: &str, name: &str, what: &str) -> TestCase {
    failure(suite, name, "gone", &format!("the baseline has this {what}, this run does not"))
}

fn failure(suite: &str, name: &str, kind: &str, text: &str) -> TestCase {
    let mut test = TestCase::new(name, status(NonSuccessKind::Failure, kind, text));
    test.set_classname(suite);
    test
}

/// A failure or an error, with the first line of `text` as its message.
fn status(kind: NonSuccessKind, name: &str, text: &str) -> TestCaseStatus {
    let first = text.lines().next().unwrap_or_default();
    let message = first.get(..first.floor_char_boundary(MESSAGE_BYTES_MAX)).unwrap_or_default();
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(name).set_message(message).set_description(text);
    status
}

fn reasons(case: &CaseReport, worse: Option<&CaseComparison>) -> String {
    let mut lines: Vec<String> = case.problems.iter().filter(|it| it.fails).map(line).collect();
    let measures = worse.into_iter().flat_map(|it| &it.measures);
    for it in measures.filter(|it| it.trend == Trend::Worse) {
        let (name, before, after) = (it.measure.name(), it.before, it.after);
        lines.push(format!(
            "worse than the baseline: {name} {}/{} → {}/{}",
            before.hits, before.of, after.hits, after.of
        ));
    }
    if lines.is_empty() {
        lines.push(case.outcome.name().to_owned());
    }
    lines.join("\n")
}

fn line(it: &Problem) -> String {
    format!("{}: {}", it.rule, it.detail)
}

fn rates(sums: &Sums) -> Vec<Property> {
    let property = |measure: &Measure| {
        let rate = sums.rate(*measure);
        let text = format!("{:.4} ({}/{})", rate.value()?, rate.hits, rate.of);
        Some(Property::new(measure.name(), text.as_str()))
    };
    Measure::ALL.iter().filter_map(property).collect()
}

#[cfg(test)]
mod tests {
    use super::super::case::Tolerances;
    use super::super::compare::compare;
    use super::super::testing::{HOSTILE, earlier, report, sample};
    use super::*;
    use proptest::prelude::*;

    fn against(before: &Report, after: &Report) -> String {
        junit(after, Some(&compare(before, after, &|_: &str| Tolerances::default()))).unwrap()
    }

    /// Checks that elements are closed in order.
    #[track_caller]
    fn check(xml: &str) {
        let mut open: Vec<&str> = Vec::new();
        let body = xml.split_once("?>").unwrap().1;
        for piece in body.split('<').skip(1) {
            let (tag, _) = piece.split_once('>').expect("a < that opens nothing");
            assert!(tag.matches('"').count() % 2 == 0, "{piece}");
            let name = tag.split([' ', '\n']).next().unwrap();
            match name.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if tag.ends_with('/') => {}
                None => open.push(name),
            }
        }
        assert!(open.is_empty(), "{open:?}");
        assert!(!xml.contains(|it: char| "\u{0}\u{1b}\u{8}".contains(it)));
    }

    #[test]
    fn failed_and_stale_cases_are_failures_and_broken_ones_errors() {
        let xml = junit(&sample(), None).unwrap();
        check(&xml);
        insta::assert_snapshot!("junit", xml);
    }

    #[test]
    fn a_regression_is_a_failure_even_if_the_case_passed() {
        let mut after = sample();
        after.variants[0].cases.retain(|it| it.name == "database-reversal");
        after.variants[0].cases[0].sums.tally.core.hits = 0;
        let xml = against(&earlier(), &after);
        check(&xml);
        let worse = "worse than the baseline: core_recall 2/2 → 0/2";
        assert!(xml.contains(worse) && xml.contains("type=\"gone\""), "{xml}");
        assert!(xml.contains(" tests=\"5\" skipped=\"0\" failures=\"5\" errors=\"0\""), "{xml}");
        let apart = against(&report("one", vec![]), &Report { variants: vec![], ..sample() });
        assert!(apart.contains("<testsuite name=\"baseline\" tests=\"1\""), "{apart}");
        check(&apart);
    }

    proptest! {
        #[test]
        fn any_text_is_well_formed(text in any::<String>()) {
            let mut it = sample();
            it.variants[0].name = text.clone();
            let case = &mut it.variants[0].cases[1];
            (case.name, case.problems[0].detail) = (HOSTILE.to_owned(), text);
            check(&junit(&it, None).unwrap());
            check(&against(&earlier(), &it));
        }
    }
}
