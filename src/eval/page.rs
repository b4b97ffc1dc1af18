//! A run as one self-contained HTML page: the measures, and each case with its gold, its records and what changed.
//! Records contain hostile text: the template escapes everything, and the content security policy allows only
//! the page's own style.

use super::compare::{Comparison, MeasureChange};
use super::report::{CaseOutcome, CaseReport, Report, Variant};
use super::tables::{asked_text, by_kind, changes_by_kind, measure_change_text, totals};
use crate::text::truncate;
use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, Value, context};

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

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
