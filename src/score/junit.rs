//! A run of prompt tests as JUnit XML, which CI systems show. It holds no times, so the same run gives the same
//! bytes.

use super::compare::{CaseComparison, Comparison, MeasureChange, Trend, VariantComparison};
use super::measure::{Measure, Rate};
use super::report::{CaseOutcome, CaseReport, Problem, Report, Variant};

/// Bytes of a message, which CI systems show in a line.
const MESSAGE_BYTES_MAX: usize = 500;

/// A run as JUnit XML: a suite for each variant, a test case for each case. A case that did not reach its bars, is
/// stale or is worse than the baseline allows is a failure; one that is broken is an error. What is gone against the
/// baseline is a failure of its own, unless it was not to be run, and so is a variant that was compared with nothing.
pub fn junit(report: &Report, comparison: Option<&Comparison>) -> String {
    let suites: Vec<Suite> = report.variants.iter().map(|it| Suite::of(it, comparison)).collect();
    let gone = comparison.filter(|it| !it.partial).map(|it| it.gone.as_slice());
    let gone = Suite::of_gone("baseline", gone.unwrap_or_default(), "variant");
    let mut suites: Vec<Suite> = suites.into_iter().chain(gone).collect();
    let sum = |of: fn(&Suite) -> usize| suites.iter().map(of).sum::<usize>();
    let counts = (sum(|it| it.tests), sum(|it| it.failures), sum(|it| it.errors));
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    xml.push_str(&format!("<testsuites name=\"annalist\"{}>\n", counted(counts)));
    suites.iter_mut().for_each(|it| xml.push_str(&std::mem::take(&mut it.xml)));
    xml.push_str("</testsuites>\n");
    xml
}

/// A suite as it is written, and what it counts.
#[derive(Default)]
struct Suite {
    xml: String,
    tests: usize,
    failures: usize,
    errors: usize,
}

fn counted((tests, failures, errors): (usize, usize, usize)) -> String {
    format!(" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"0\"")
}

impl Suite {
    fn of(variant: &Variant, comparison: Option<&Comparison>) -> Suite {
        let mut suite = Suite::default();
        let compared = comparison.and_then(|it| it.variant(&variant.name));
        let mut cases = String::new();
        for case in &variant.cases {
            let change = compared.and_then(|it| it.case(&case.name));
            cases.push_str(&suite.case(&variant.name, case, change));
        }
        for name in compared.iter().flat_map(|it: &&VariantComparison| &it.gone) {
            cases.push_str(&suite.gone(&variant.name, name, "case"));
        }
        if comparison.is_some_and(|it| it.uncompared().contains(&variant.name.as_str())) {
            cases.push_str(&suite.uncompared(&variant.name));
        }
        let prompt = &variant.prompt;
        let mut properties = vec![
            ("prompt".to_owned(), format!("{} version {}", prompt.id, prompt.version)),
            ("prompt.digest".to_owned(), prompt.digest.clone()),
        ];
        properties.extend(variant.model.as_ref().map(|it| ("model".to_owned(), it.clone())));
        let rate = |it: &Measure| measured(*it, variant.summary.sums.rate(*it));
        properties.extend(Measure::ALL.iter().filter_map(rate));
        suite.close(&variant.name, &list(&properties), &cases)
    }

    /// What only the baseline has; none where nothing is.
    fn of_gone(name: &str, gone: &[String], what: &str) -> Option<Suite> {
        let mut suite = Suite::default();
        let cases: Vec<String> = gone.iter().map(|it| suite.gone(name, it, what)).collect();
        (!gone.is_empty()).then(|| suite.close(name, "", &cases.concat()))
    }

    fn close(mut self, name: &str, properties: &str, cases: &str) -> Suite {
        let counts = counted((self.tests, self.failures, self.errors));
        let name = escaped(name);
        self.xml =
            format!("<testsuite name=\"{name}\"{counts}>\n{properties}{cases}</testsuite>\n");
        self
    }

    fn case(&mut self, suite: &str, case: &CaseReport, change: Option<&CaseComparison>) -> String {
        let worse = change.filter(|it| it.worse);
        let bad = match (case.outcome, worse) {
            (CaseOutcome::Broken, _) => Some(("error", case.outcome.name())),
            (CaseOutcome::Failed | CaseOutcome::Stale, _) => Some(("failure", case.outcome.name())),
            (CaseOutcome::Passed, Some(_)) => Some(("failure", "worse")),
            (CaseOutcome::Passed, None) => None,
        };
        let mut body = String::new();
        if case.is_measured() {
            let rate = |it: &Measure| measured(*it, case.sums.rate(*it));
            body.push_str(&list(&Measure::ALL.iter().filter_map(rate).collect::<Vec<_>>()));
        }
        if let Some((element, kind)) = bad {
            body.push_str(&trouble(element, kind, &told(case, worse)));
        }
        let notes: Vec<String> = case.problems.iter().filter(|it| !it.fails).map(said).collect();
        if !notes.is_empty() {
            body.push_str(&format!("<system-out>{}</system-out>\n", escaped(&notes.join("\n"))));
        }
        self.count(bad.map(|(element, _)| element));
        test(suite, &case.name, &body)
    }

    fn gone(&mut self, suite: &str, name: &str, what: &str) -> String {
        self.count(Some("failure"));
        let text = format!("the baseline has this {what}, this run has not");
        test(suite, name, &trouble("failure", "gone", &text))
    }

    fn uncompared(&mut self, suite: &str) -> String {
        self.count(Some("failure"));
        let text = "nothing could be compared: there is no case that both runs measured";
        test(suite, "baseline", &trouble("failure", "not-compared", text))
    }

    fn count(&mut self, bad: Option<&str>) {
        self.tests += 1;
        self.failures += usize::from(bad == Some("failure"));
        self.errors += usize::from(bad == Some("error"));
    }
}

fn test(suite: &str, name: &str, body: &str) -> String {
    let (suite, name) = (escaped(suite), escaped(name));
    match body {
        "" => format!("<testcase classname=\"{suite}\" name=\"{name}\"/>\n"),
        _ => format!("<testcase classname=\"{suite}\" name=\"{name}\">\n{body}</testcase>\n"),
    }
}

/// A failure or an error: its first line is the message.
fn trouble(element: &str, kind: &str, text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    let message = first.get(..first.floor_char_boundary(MESSAGE_BYTES_MAX)).unwrap_or_default();
    let (message, text) = (escaped(message), escaped(text));
    format!("<{element} type=\"{kind}\" message=\"{message}\">{text}</{element}>\n")
}

/// Everything that made a case fail.
fn told(case: &CaseReport, worse: Option<&CaseComparison>) -> String {
    let mut lines: Vec<String> = case.problems.iter().filter(|it| it.fails).map(said).collect();
    let against = |it: &MeasureChange| {
        let (before, after) = (counts(it.before), counts(it.after));
        format!("worse than the baseline: {} {before} → {after}", it.measure.name())
    };
    let measures = worse.into_iter().flat_map(|it| &it.measures);
    lines.extend(measures.filter(|it| it.trend == Trend::Worse).map(against));
    if lines.is_empty() {
        lines.push(case.outcome.name().to_owned());
    }
    lines.join("\n")
}

fn said(it: &Problem) -> String {
    format!("{}: {}", it.rule, it.detail)
}

fn counts(rate: Rate) -> String {
    format!("{}/{}", rate.hits, rate.of)
}

fn measured(measure: Measure, rate: Rate) -> Option<(String, String)> {
    let text = format!("{:.4} ({})", rate.value()?, counts(rate));
    Some((measure.name().to_owned(), text))
}

fn list(properties: &[(String, String)]) -> String {
    if properties.is_empty() {
        return String::new();
    }
    let one = |(name, value): &(String, String)| {
        format!("<property name=\"{}\" value=\"{}\"/>\n", escaped(name), escaped(value))
    };
    let all: Vec<String> = properties.iter().map(one).collect();
    format!("<properties>\n{}</properties>\n", all.concat())
}

/// A text as it may stand in XML: no document may hold control characters, not even escaped.
fn escaped(text: &str) -> String {
    let mut to = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => to.push_str("&amp;"),
            '<' => to.push_str("&lt;"),
            '>' => to.push_str("&gt;"),
            '"' => to.push_str("&quot;"),
            '\'' => to.push_str("&apos;"),
            // A parser makes blanks of these in attributes.
            '\n' => to.push_str("&#10;"),
            '\t' => to.push_str("&#9;"),
            '\u{fffe}' | '\u{ffff}' => {}
            letter if letter.is_control() => {}
            letter => to.push(letter),
        }
    }
    to
}

#[cfg(test)]
mod tests {
    use super::super::Tolerances;
    use super::super::compare::compare;
    use super::super::testing::{HOSTILE, earlier, report, sample};
    use super::*;
    use proptest::prelude::*;

    fn against(before: &Report, after: &Report) -> String {
        junit(after, Some(&compare(before, after, &|_: &str| Tolerances::default())))
    }

    /// Reads XML as far as we write it: elements that are closed in order, and values in quotes.
    #[track_caller]
    fn check(xml: &str) {
        let body = xml.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").unwrap();
        let mut open: Vec<&str> = Vec::new();
        for piece in body.split('<').skip(1) {
            let (tag, text) = piece.split_once('>').expect("a < that opens nothing");
            let bare = |it: &str| it.split('&').skip(1).all(|it| it.contains(';'));
            assert!(bare(tag) && bare(text) && tag.matches('"').count() % 2 == 0, "{piece}");
            let name = tag.split(' ').next().unwrap();
            match name.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if tag.ends_with('/') => {}
                None => open.push(name),
            }
        }
        assert!(open.is_empty(), "{open:?}");
        assert!(!xml.contains(|it: char| it.is_control() && it != '\n'));
    }

    #[test]
    fn failed_and_stale_cases_are_failures_and_broken_ones_errors() {
        let xml = junit(&sample(), None);
        check(&xml);
        insta::assert_snapshot!("junit", xml);
    }

    #[test]
    fn what_is_worse_than_the_baseline_is_a_failure_even_where_it_passed() {
        let mut after = sample();
        after.variants[0].cases.retain(|it| it.name == "database-reversal");
        after.variants[0].cases[0].sums.tally.core.hits = 0;
        let xml = against(&earlier(), &after);
        check(&xml);
        let worse = "message=\"worse than the baseline: core_recall 2/2 → 0/2\"";
        assert!(xml.contains(worse) && xml.contains("type=\"gone\""), "{xml}");
        assert!(xml.contains(" tests=\"5\" failures=\"5\" errors=\"0\""), "{xml}");
        let apart = against(&report("one", vec![]), &Report { variants: vec![], ..sample() });
        assert!(apart.contains("<testsuite name=\"baseline\" tests=\"1\" failures=\"1\""));
        check(&apart);
    }

    proptest! {
        #[test]
        fn any_text_is_well_formed(text in any::<String>()) {
            let mut it = sample();
            it.variants[0].name = text.clone();
            let case = &mut it.variants[0].cases[1];
            (case.name, case.problems[0].detail) = (HOSTILE.to_owned(), text);
            check(&junit(&it, None));
            check(&against(&earlier(), &it));
        }
    }
}
