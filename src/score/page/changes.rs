//! What changed against the baseline: over all cases, and of one.

use super::html::{Html, cut};
use super::summary::{kinds, name, whole};
use crate::score::compare::{
    CaseComparison, Comparison, CountsChange, MeasureChange, RecordChange, RecordSide, Trend,
};
use crate::score::measure::Rate;
use crate::score::report::{Report, Variant, headline};

/// Bytes of a text that are shown in a list.
const TEXT_BYTES_MAX: usize = 400;
/// Items of a case that are named in a list.
const LISTED_MAX: usize = 100;
/// Cases that are named in a list.
const NAMES_MAX: usize = 1_000;

/// The section on the baseline.
pub(super) fn against(html: &mut Html, report: &Report, comparison: &Comparison) {
    html.raw(
        "<section aria-labelledby=\"baseline\">\n<h2 id=\"baseline\">Against the baseline</h2>\n",
    );
    names(html, "Nothing could be compared of", &comparison.uncompared());
    match (comparison.worse(), comparison.passes(), comparison.is_empty()) {
        (true, ..) => html.raw("<p class=\"verdict bad\">Worse than the baseline.</p>\n"),
        (false, false, _) => html.raw("<p class=\"verdict bad\">Not compared.</p>\n"),
        (false, true, true) => html.raw("<p class=\"verdict good\">Nothing changed.</p>\n"),
        (false, true, false) => {
            html.raw("<p class=\"verdict good\">Nothing is worse than the tolerances allow.</p>\n")
        }
    };
    for (at, variant) in report.variants.iter().enumerate() {
        of_variant(html, at, variant, comparison);
    }
    let gone = if comparison.partial { "Variants not run" } else { "Variants gone" };
    names(html, gone, &comparison.gone);
    names(html, "Not compared, no such variant in the baseline", &comparison.new);
    html.close("section");
}

fn of_variant(html: &mut Html, at: usize, variant: &Variant, comparison: &Comparison) {
    let Some(it) = comparison.variant(&variant.name) else { return };
    if comparison.variants.len() > 1 || it.before != it.after {
        html.element("h3", &[], &format!("{} → {}", it.before, it.after));
    }
    if it.all.before != it.all.after {
        html.raw(
            "<div class=\"wide\"><table class=\"rates\"><caption>Cases that both runs measured: ",
        );
        html.text(&it.measured.to_string())
            .raw("</caption>\n<thead><tr><th scope=\"col\">Kind</th>");
        html.raw("<th scope=\"col\">Precision</th><th scope=\"col\">Recall</th><th scope=\"col\">F1</th>");
        html.raw("</tr></thead>\n<tbody>\n");
        for kind in &it.kinds {
            row(html, kinds(kind.kind), kind.counts);
        }
        row(html, "All", it.all);
        html.raw("</tbody></table></div>\n");
    }
    measures(html, &it.measures);
    names(html, "Gone", &it.gone);
    names(html, "Not run", &it.not_run);
    names(html, "Not compared, not in the baseline", &it.new);
    for (word, is_one) in [
        ("Worse", (|it| it.worse) as fn(&CaseComparison) -> bool),
        ("Better", |it| it.better && !it.worse),
        ("Changed", |it| !it.better && !it.worse),
    ] {
        let cases: Vec<&CaseComparison> = it.cases.iter().filter(|it| is_one(it)).collect();
        if cases.is_empty() {
            continue;
        }
        html.raw("<p><b>").text(word).raw("</b> (").text(&cases.len().to_string()).raw("): ");
        for (n, case) in cases.iter().take(NAMES_MAX).enumerate() {
            html.raw(if n == 0 { "" } else { ", " });
            match variant.cases.iter().position(|it| it.name == case.name) {
                Some(place) => {
                    html.element("a", &[("href", &format!("#v{at}c{place}"))], &case.name)
                }
                None => html.text(&case.name),
            };
        }
        html.close("p");
    }
}

fn names(html: &mut Html, what: &'static str, all: &[impl AsRef<str>]) {
    if !all.is_empty() {
        html.raw("<p><b>").raw(what).raw("</b>: ");
        let shown: Vec<&str> = all.iter().take(NAMES_MAX).map(AsRef::as_ref).collect();
        html.text(&shown.join(", ")).close("p");
    }
}

fn row(html: &mut Html, name: &'static str, CountsChange { before, after }: CountsChange) {
    html.raw("<tr>").element("th", &[("scope", "row")], name);
    let rates = [
        ("Precision", before.precision(), after.precision()),
        ("Recall", before.recall(), after.recall()),
        ("F1", before.f1(), after.f1()),
    ];
    for (of, before, after) in rates {
        html.element("td", &[("data-of", of)], &then_and_now(before, after));
    }
    html.close("tr");
}

fn then_and_now(before: Rate, after: Rate) -> String {
    match before == after {
        true => whole(after),
        false => format!("{} → {}", whole(before), whole(after)),
    }
}

/// Measures that changed; which way is said in a word and by a colour.
fn measures(html: &mut Html, all: &[MeasureChange]) {
    if all.is_empty() {
        return;
    }
    html.raw("<ul class=\"plain\">\n");
    for it in all {
        let class = match it.trend {
            Trend::Better => "badge good",
            Trend::Same => "badge",
            Trend::Worse => "badge bad",
        };
        html.raw("<li>").classed("span", class, it.trend.name()).raw(" ").raw(name(it.measure));
        html.raw(" ").text(&then_and_now(it.before, it.after));
        if it.tolerance > 0.0 {
            html.text(&format!(", {:.1}% allowed", it.tolerance * 100.0));
        }
        html.close("li");
    }
    html.close("ul");
}

/// What changed of a case, in `room` bytes about.
pub(super) fn of_case(html: &mut Html, it: &CaseComparison, key: &str, room: usize) {
    let end = html.len() + room;
    html.raw("<section><h4>Against the baseline</h4>\n");
    if it.before != it.after {
        html.raw("<p>").text(&format!("{} → {}", it.before.name(), it.after.name())).close("p");
    }
    if it.gold_changed {
        html.raw("<p>The gold is another one: rates are not of the same items.</p>\n");
    }
    measures(html, &it.measures);
    html.raw("<ul class=\"plain\">\n");
    for (word, class, items) in
        [("missed now", "badge bad", &it.missed), ("answered now", "badge good", &it.answered)]
    {
        for item in items.iter().take(LISTED_MAX) {
            html.raw("<li>").classed("span", class, word).raw(" ");
            cut(
                html,
                &format!("{} {}: {}", item.kind.name(), item.id, item.statement),
                TEXT_BYTES_MAX,
            );
            html.close("li");
        }
    }
    for (word, class, all) in
        [("said now", "badge bad", &it.said), ("not said now", "badge good", &it.unsaid)]
    {
        for said in all.iter().take(LISTED_MAX) {
            html.raw("<li>").classed("span", class, word).raw(" ");
            cut(
                html,
                &format!("{} {}: {}", said.why.name(), said.id, said.statement),
                TEXT_BYTES_MAX,
            );
            html.close("li");
        }
    }
    for (n, change) in it.records.iter().enumerate() {
        if end < html.len() {
            let left = it.records.len() - n;
            html.raw("<li>").classed("span", "out", &format!("{left} more left out")).close("li");
            break;
        }
        record(html, change, key);
    }
    html.raw("</ul>\n").close("section");
}

fn record(html: &mut Html, it: &RecordChange, key: &str) {
    let (sign, class, word) = match (&it.before, &it.after) {
        (Some(_), Some(_)) => ("~", "badge warn", "changed"),
        (Some(_), None) => ("−", "badge bad", "lost"),
        (None, _) => ("+", "badge good", "gained"),
    };
    html.raw("<li>").open("span", &[("class", class)]).classed("span", "sign", sign).raw(" ");
    html.text(word).raw("</span> ").text(it.kind.name()).raw(" ");
    if let Some(side) = &it.before {
        said(html, it, side);
    }
    if it.before.is_some() && it.after.is_some() {
        html.raw(" → ");
    }
    if let Some(side) = &it.after {
        said(html, it, side);
        let record = format!("#{key}r{}", side.at);
        html.raw(" ").element("a", &[("href", &record)], &format!("record {}", side.at + 1));
    }
    html.close("li");
}

/// What a record says; where its headline is the same then and now, all of its fields.
fn said(html: &mut Html, it: &RecordChange, side: &RecordSide) {
    let own = headline(it.kind, &side.claim);
    cut(html, own, TEXT_BYTES_MAX);
    if let (Some(before), Some(after)) = (&it.before, &it.after) {
        if headline(it.kind, &before.claim) == headline(it.kind, &after.claim) {
            for (name, value) in side.claim.as_object().into_iter().flatten() {
                if before.claim.get(name) != after.claim.get(name) {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    html.text(&format!(" ({name}: "));
                    cut(html, &text, TEXT_BYTES_MAX);
                    html.raw(")");
                }
            }
        }
        if before.state != after.state {
            html.text(&format!(" [{}]", side.state.name()));
        }
    }
}
