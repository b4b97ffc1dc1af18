//! The head of the page and its tables: verdict, rates with the counts behind them, what was asked.

use super::html::Html;
use crate::domain::{ClaimKind, CoverageState};
use crate::score::gold::Why;
use crate::score::interval::Interval;
use crate::score::measure::{Asks, Measure, Rate, Sums};
use crate::score::report::{Origins, Report, Variant};

/// How a measure is called on the page.
pub(super) fn name(measure: Measure) -> &'static str {
    match measure {
        Measure::Precision => "Precision",
        Measure::Recall => "Recall",
        Measure::F1 => "F1",
        Measure::CoreRecall => "Core recall",
        Measure::Succeeded => "Outcomes told right",
        Measure::Grounded => "Grounded",
        Measure::Restraint => "Restraint",
        Measure::Quarantined => "Quarantined",
        Measure::Schema => "Fitted the schema",
    }
}

/// How records of a kind are called.
pub(super) fn kinds(kind: ClaimKind) -> &'static str {
    match kind {
        ClaimKind::Decision => "Decisions",
        ClaimKind::Discussion => "Discussions",
        ClaimKind::Attempt => "Attempts",
        ClaimKind::Request => "Requests",
    }
}

/// A rate as people read it.
pub(super) fn percent(rate: Rate) -> String {
    rate.value().map_or("–".to_owned(), |it| format!("{:.1}%", it * 100.0))
}

/// A rate with its counts, as one string.
pub(super) fn whole(rate: Rate) -> String {
    match rate.of {
        0 => "–".to_owned(),
        _ => format!("{} ({}/{})", percent(rate), rate.hits, rate.of),
    }
}

/// A cell with a rate, its counts, and how far it may be off.
fn cell(html: &mut Html, of: &str, rate: Rate, interval: Option<Interval>) {
    html.open("td", &[("data-of", of)]).classed("span", "p", &percent(rate));
    if rate.of > 0 {
        html.raw(" ").classed("span", "n", &format!("{}/{}", rate.hits, rate.of));
    }
    if let Some(it) = interval {
        let text = format!("{:.0}–{:.0}%", it.low * 100.0, it.high * 100.0);
        html.raw(" ").classed("span", "n", &text);
    }
    html.close("td");
}

pub(super) fn head(html: &mut Html, report: &Report) {
    html.raw("<header class=\"top\">\n<h1>Prompt tests</h1>\n");
    for variant in &report.variants {
        let prompt = &variant.prompt;
        html.raw("<p class=\"meta\">");
        if report.variants.len() > 1 {
            html.raw("<b>").text(&variant.name).raw("</b>: ");
        }
        let digest: String = prompt.digest.chars().take(10).collect();
        html.text(&format!("prompt {} version {} ({digest})", prompt.id, prompt.version));
        match &variant.model {
            Some(model) => html.text(&format!(", model {model}")),
            None => html.raw(", the model that each case names"),
        };
        html.text(&format!(", schema {}", variant.schema)).raw("</p>\n");
    }
    html.close("header");
}

pub(super) fn summary(html: &mut Html, report: &Report) {
    html.raw("<section aria-labelledby=\"summary\">\n<h2 id=\"summary\">Summary</h2>\n");
    for variant in &report.variants {
        verdict(html, variant, report.variants.len() > 1);
    }
    match report.variants.as_slice() {
        [] => {
            html.raw("<p>Nothing was run.</p>\n");
        }
        [variant] => {
            by_kind(html, variant);
            by_measure(html, report, &OTHERS);
        }
        several => {
            by_measure(html, report, Measure::ALL);
            for variant in several {
                by_kind(html, variant);
            }
        }
    }
    html.close("section");
}

/// Measures that the table by kind does not show.
const OTHERS: [Measure; 6] = [
    Measure::CoreRecall,
    Measure::Succeeded,
    Measure::Grounded,
    Measure::Restraint,
    Measure::Quarantined,
    Measure::Schema,
];

fn verdict(html: &mut Html, variant: &Variant, is_named: bool) {
    let cases = variant.summary.cases;
    html.raw("<p class=\"verdict\">");
    if is_named {
        html.raw("<b>").text(&variant.name).raw("</b>: ");
    }
    html.text(&format!("{} of {} cases passed", cases.passed, variant.cases.len()));
    let bad = [(cases.failed, "failed"), (cases.stale, "stale"), (cases.broken, "broken")];
    for (number, name) in bad.into_iter().filter(|(number, _)| *number > 0) {
        html.raw(", ").classed("span", "bad", &format!("{number} {name}"));
    }
    html.raw("</p>\n<p class=\"meta\">").text(&origins(variant)).raw(" ");
    html.text(&asked(&variant.summary.sums)).raw("</p>\n");
}

/// Whose answers these scores are of.
fn origins(variant: &Variant) -> String {
    answers(variant.answers())
}

/// How many answers come from where.
pub(super) fn answers(all: Origins) -> String {
    let number = all.total();
    let of: Vec<String> = all.named().map(|(number, name)| format!("{number} {name}")).collect();
    match (number, of.is_empty()) {
        (_, true) => "No answers.".to_owned(),
        (1, false) => format!("1 answer: {}.", of.join(", ")),
        (_, false) => format!("{number} answers: {}.", of.join(", ")),
    }
}

/// What was asked, and where the entries ended.
pub(super) fn asked(sums: &Sums) -> String {
    let Asks { slices, fitted, repaired, failed, requests, repairs, .. } = sums.asks;
    let Asks { tokens_sent, tokens_cached, tokens_answered, cost_micros, .. } = sums.asks;
    let ends = CoverageState::ALL.iter().filter(|it| sums.coverage.of(**it) > 0);
    let ends: Vec<String> =
        ends.map(|it| format!("{} {}", sums.coverage.of(*it), it.name())).collect();
    format!(
        "Slices: {slices}, of which {fitted} fitted at once, {repaired} after asking again, {failed} failed; \
         requests: {requests}; repairs: {repairs}. Tokens: {tokens_sent} sent, {tokens_cached} of them cached, \
         {tokens_answered} answered; ${:.4}. Entries: {}{}.",
        cost_micros as f64 / 1e6,
        sums.coverage.total(),
        if ends.is_empty() { String::new() } else { format!(" ({})", ends.join(", ")) }
    )
}

fn by_kind(html: &mut Html, variant: &Variant) {
    html.raw("<div class=\"wide\"><table class=\"rates\"><caption>By kind");
    html.text(&format!(", {}", variant.name));
    html.raw(": records that answer an item, and items that are answered</caption>\n<thead><tr>");
    html.raw(
        "<th scope=\"col\">Kind</th><th scope=\"col\">Precision</th><th scope=\"col\">Recall</th>",
    );
    html.raw("<th scope=\"col\">F1</th></tr></thead>\n<tbody>\n");
    for kind in ClaimKind::ALL {
        let counts = variant.summary.sums.tally.of(*kind);
        html.raw("<tr>").element("th", &[("scope", "row")], kinds(*kind));
        cell(html, "Precision", counts.precision(), None);
        cell(html, "Recall", counts.recall(), None);
        cell(html, "F1", counts.f1(), None);
        html.close("tr");
    }
    let all = [Measure::Precision, Measure::Recall, Measure::F1];
    let with = all.iter().any(|it| interval(variant, *it).is_some());
    html.raw("<tr class=\"all\"><th scope=\"row\">").raw(if with {
        "All, and 95% of draws"
    } else {
        "All"
    });
    html.raw("</th>");
    for measure in all {
        let rate = variant.summary.sums.rate(measure);
        cell(html, name(measure), rate, interval(variant, measure));
    }
    html.raw("</tr>\n</tbody></table></div>\n");
}

fn interval(variant: &Variant, measure: Measure) -> Option<Interval> {
    let mut all = variant.summary.intervals.iter();
    all.find(|it| it.measure == measure).map(|it| it.interval)
}

/// The measures of all variants, a column each.
fn by_measure(html: &mut Html, report: &Report, measures: &[Measure]) {
    html.raw("<div class=\"wide\"><table class=\"rates\"><caption>Measures, their counts");
    if report.variants.iter().any(|it| !it.summary.intervals.is_empty()) {
        html.raw(", and where 95% of draws of as many cases lie");
    }
    html.raw("</caption>\n<thead><tr><th scope=\"col\">Measure</th>");
    for variant in &report.variants {
        html.element("th", &[("scope", "col")], &variant.name);
    }
    html.raw("</tr></thead>\n<tbody>\n");
    for measure in measures {
        let rates = report.variants.iter().map(|it| it.summary.sums.rate(*measure));
        if rates.into_iter().all(|it| it.of == 0) {
            continue;
        }
        html.raw("<tr>").element("th", &[("scope", "row")], name(*measure));
        for variant in &report.variants {
            let rate = variant.summary.sums.rate(*measure);
            cell(html, &variant.name, rate, interval(variant, *measure));
        }
        html.close("tr");
    }
    for why in Why::ALL {
        let rate = |it: &Variant| it.summary.sums.tally.restraints.of(*why);
        if report.variants.iter().all(|it| rate(it).of == 0) {
            continue;
        }
        html.raw("<tr><th scope=\"row\">Not ").text(why.name()).raw("</th>");
        report.variants.iter().for_each(|it| cell(html, &it.name, rate(it), None));
        html.close("tr");
    }
    html.raw("</tbody></table></div>\n");
}
