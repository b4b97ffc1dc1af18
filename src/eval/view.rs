//! A report for people, as tables and lines that are identical on a terminal and on a page, and as a self-contained HTML
//! page; and for continuous integration, as JUnit XML without times: equal runs give equal bytes. Records contain hostile
//! text: the page's template escapes everything, and the content security policy allows only the page's own style.

use super::compare::{CaseComparison, Comparison, MeasureChange, Trend, VariantComparison};
use super::measure::{Counts, Measure, Rate, Sums};
use super::report::{CaseOutcome, CaseReport, Problem, RecordReport, Report, Variant, headline};
use crate::domain::{ClaimKind, CoverageState};
use crate::text::phrase::{commas, counted};
use crate::text::truncate;
use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, Value, context};
use quick_junit::{NonSuccessKind, Property, SerializeError, TestCase, TestCaseStatus, TestSuite};
use serde::Serialize;

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Table {
    pub header: Vec<String>,
    /// Rows; the first cell is the row's name.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(header: &[&str]) -> Table {
        Table { header: header.iter().map(|it| (*it).to_owned()).collect(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, name: &str, cells: impl IntoIterator<Item = String>) {
        self.rows.push([name.to_owned()].into_iter().chain(cells).collect());
    }
}

/// A rate with its counts: "2/3 66.7%"; a dash without trials.
pub(crate) fn rate_text(rate: Rate) -> String {
    match rate.value() {
        Some(value) => format!("{}/{} {:.1}%", rate.hits, rate.of, value * 100.0),
        None => "–".to_owned(),
    }
}

fn change_text(before: Rate, after: Rate) -> String {
    match before == after {
        true => rate_text(after),
        false => format!("{} → {}", rate_text(before), rate_text(after)),
    }
}

/// Text of a measure's change, without the trend.
pub(crate) fn measure_change_text(it: &MeasureChange) -> String {
    let change = change_text(it.before, it.after);
    let allowed = match it.tolerance > 0.0 {
        true => format!(", {:.1}% allowed", it.tolerance * 100.0),
        false => String::new(),
    };
    format!("{} {change}{allowed}", it.measure.label())
}

pub(crate) fn by_kind(variant: &Variant) -> Table {
    let mut table = Table::new(&["kind", "precision", "recall", "f1"]);
    let tally = &variant.summary.sums.tally;
    for kind in ClaimKind::ALL {
        table.row(&format!("{}s", kind.name()), tally.of(*kind).rates().map(rate_text));
    }
    table
}

/// Rates of each variant over all its cases.
pub(crate) fn totals(variants: &[Variant]) -> Table {
    let mut table = Table::new(&["measure"]);
    match variants {
        [_] => table.header.push("rate".to_owned()),
        _ => table.header.extend(variants.iter().map(|it| it.name.clone())),
    }
    for measure in Measure::ALL {
        let rates = variants.iter().map(|it| it.summary.sums.rate(*measure));
        if rates.clone().any(|it| it.of > 0) {
            table.row(measure.label(), rates.map(rate_text));
        }
    }
    table
}

pub(crate) fn changes_by_kind(it: &VariantComparison) -> Table {
    let mut table = Table::new(&["kind", "precision", "recall", "f1"]);
    let texts = |before: Counts, after: Counts| {
        let rates = before.rates().into_iter().zip(after.rates());
        rates.map(|(before, after)| change_text(before, after)).collect::<Vec<_>>()
    };
    for kind in &it.kinds {
        let name = format!("{}s", kind.kind.name());
        table.row(&name, texts(kind.counts.before, kind.counts.after));
    }
    table.row("all", texts(it.all.before, it.all.after));
    table
}

/// A record as one text: its headline, then its other fields.
pub(crate) fn record_text(it: &RecordReport) -> String {
    let own = headline(it.kind, &it.claim);
    let fields = it.claim.as_object().into_iter().flatten();
    let others = fields.filter(|(_, value)| !value.is_null() && value.as_str() != Some(own));
    let others = others.map(|(name, value)| match value.as_str() {
        Some(text) => format!("; {name}: {text}"),
        None => format!("; {name}: {value}"),
    });
    [own.to_owned()].into_iter().chain(others).collect()
}

pub(crate) fn asked_text(sums: &Sums) -> String {
    let asks = &sums.asks;
    let states = CoverageState::ALL.iter().filter(|it| sums.coverage.of(**it) > 0);
    let states = states.map(|it| format!("{} {}", sums.coverage.of(*it), it.name()));
    let states = commas(states);
    let states = if states.is_empty() { states } else { format!(" ({states})") };
    format!(
        "{}: {} valid at once, {} after a retry, {} failed; {}, {}; tokens: {} sent ({} cached), \
         {} answered; ${:.4}; {}{states}",
        counted(asks.slices, "slice"),
        asks.fitted,
        asks.repaired,
        asks.failed,
        counted(asks.requests, "request"),
        counted(asks.repairs, "repair"),
        asks.tokens_sent,
        asks.tokens_cached,
        asks.tokens_answered,
        asks.cost_micros as f64 / 1e6,
        counted(sums.coverage.total(), "entry"),
    )
}

const STYLE: &str = include_str!("style.css");
const TEMPLATE: &str = include_str!("page.html");
/// Maximum bytes of one text of a page.
const TEXT_BYTES_MAX: usize = 2_000;

pub(crate) fn page(
    report: &Report,
    comparison: Option<&Comparison>,
) -> Result<String, minijinja::Error> {
    let mut engine = Environment::empty();
    engine.set_auto_escape_callback(|_| AutoEscape::Html);
    engine.add_filter("text", text);
    engine.add_test("none", |value: Value| value.is_none() || value.is_undefined());
    let several = report.variants.len() > 1;
    let variants = report.variants.iter().map(|it| variant_view(it, comparison));
    let page = engine.template_from_str(TEMPLATE)?.render(context! {
        style => Value::from_safe_string(STYLE.to_owned()),
        annalist => report.annalist.as_str(),
        several,
        verdict => Value::from(Serde(comparison.map(Comparison::verdict))),
        uncompared => comparison.map(|it| it.uncompared().join(", ")),
        comparison => Value::from(Serde(comparison)),
        totals => Value::from(Serde(totals(&report.variants))),
        variants => variants.collect::<Vec<Value>>(),
    })?;
    // HTML must not contain control characters.
    let legal = |it: char| if it.is_control() && it != '\n' { '\u{fffd}' } else { it };
    Ok(page.chars().map(legal).collect())
}

/// Formats a field of a claim or a text of the report on at most [`TEXT_BYTES_MAX`] bytes.
fn text(value: &Value) -> Result<String, minijinja::Error> {
    let all: String = match value.kind() == ValueKind::Seq {
        true => value.try_iter()?.map(|it| it.to_string()).collect::<Vec<_>>().join("; "),
        false => value.to_string(),
    };
    let shown = truncate::bytes(&all, TEXT_BYTES_MAX);
    Ok(if shown.len() < all.len() { format!("{shown} …") } else { all })
}

fn variant_view(variant: &Variant, comparison: Option<&Comparison>) -> Value {
    let compared = comparison.and_then(|it| it.variant(&variant.name));
    let case = |case: &CaseReport| {
        let change = compared.and_then(|all| all.case(&case.name));
        let view = context! {
            answered => case.answers.text(),
            asked => asked_text(&case.sums),
            measured => case.is_measured(),
            change => Value::from(Serde(change)),
            measures => change.map(|it| measure_texts(&it.measures)),
            ..Value::from(Serde(case))
        };
        let passed = matches!(case.outcome, CaseOutcome::Passed | CaseOutcome::NotMeasured);
        ((passed, !change.is_some_and(|it| it.worse)), view)
    };
    let mut cases: Vec<((bool, bool), Value)> = variant.cases.iter().map(case).collect();
    // Cases that need attention come first.
    cases.sort_by_key(|(order, _)| *order);
    context! {
        answered => variant.answers().text(),
        asked => asked_text(&variant.summary.sums),
        by_kind => Value::from(Serde(by_kind(variant))),
        compared => Value::from(Serde(compared)),
        changes => Value::from(Serde(compared.map(changes_by_kind))),
        measures => compared.map(|it| measure_texts(&it.measures)),
        cases => cases.into_iter().map(|(_, view)| view).collect::<Vec<Value>>(),
        ..Value::from(Serde(variant))
    }
}

fn measure_texts(changes: &[MeasureChange]) -> Vec<Vec<String>> {
    changes.iter().map(|it| vec![it.trend.name().to_owned(), measure_change_text(it)]).collect()
}

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
#[path = "view_tests.rs"]
mod tests;
