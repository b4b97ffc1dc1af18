//! A run of prompt tests as one page that a browser shows without a network: what was measured, and for each case
//! the transcript with the words that records rest on. Transcripts hold hostile text, so everything is escaped
//! by the writer ([`html`]), and the page's policy lets nothing run but its own few lines.

mod case;
mod changes;
mod html;
mod summary;
#[cfg(test)]
mod tests;
mod transcript;

use super::compare::Comparison;
use super::report::{CaseOutcome, CaseReport, Report, Shown, Variant};
use html::Html;

/// The look of the page.
const STYLE: &str = include_str!("style.css");
/// Finds cases by name; the page says everything without it.
const SCRIPT: &str = include_str!("script.js");
/// Bytes that all cases together may take, about; a fifth of 20 MB is left for what stands around them.
const CASES_BYTES_MAX: usize = 16_000_000;
/// Bytes that one case may take, about, where there are few.
const CASE_BYTES_MAX: usize = 400_000;

/// A run as an HTML page. `shown` holds the conversations by variant, then by case; what is missing there is not
/// shown. What a case takes is bounded, so that 500 of them stay below 20 MB: of long entries the parts around
/// the marks are shown, and what is left out is said.
pub fn page(report: &Report, shown: &[Vec<Shown>], comparison: Option<&Comparison>) -> String {
    let mut html = Html::default();
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.open("meta", &[("http-equiv", "Content-Security-Policy"), ("content", POLICY)]);
    html.raw("\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.raw(
        "<meta name=\"referrer\" content=\"no-referrer\">\n<title>Prompt tests</title>\n<style>",
    );
    html.raw(STYLE).raw("</style>\n</head>\n<body>\n");
    html.raw("<a class=\"skip\" href=\"#cases\">To the cases</a>\n");
    summary::head(&mut html, report);
    html.raw("<main>\n");
    summary::summary(&mut html, report);
    if let Some(comparison) = comparison {
        changes::against(&mut html, report, comparison);
    }
    cases(&mut html, report, shown, comparison);
    html.raw("</main>\n<footer><p>Made by annalist ");
    html.text(&report.annalist).raw(" from transcripts, behind its privacy gate.</p></footer>\n");
    html.raw("<script>").raw(SCRIPT).raw("</script>\n</body>\n</html>\n");
    html.into_text()
}

/// What the page may do: show its own style and run its own script, by their digests, and nothing else.
const POLICY: &str = "default-src 'none'; \
     style-src 'sha256-gZQy1RoHIcm1EJdIreNluOZHOnBspqc4gGFmtaFgmiM='; \
     script-src 'sha256-pUTGq15rUje6ghzwk9Ef85MbXQdrf4iFp8QkqBgzOoQ='; \
     base-uri 'none'; form-action 'none'";

fn cases(html: &mut Html, report: &Report, shown: &[Vec<Shown>], comparison: Option<&Comparison>) {
    let number: usize = report.variants.iter().map(|it| it.cases.len()).sum();
    let room = CASES_BYTES_MAX.checked_div(number).unwrap_or_default().min(CASE_BYTES_MAX);
    html.raw(
        "<section id=\"cases\" aria-labelledby=\"cases-head\">\n<h2 id=\"cases-head\">Cases</h2>\n",
    );
    filter(html, comparison.is_some());
    for (at, variant) in report.variants.iter().enumerate() {
        if report.variants.len() > 1 {
            html.element("h2", &[("id", &format!("v{at}"))], &variant.name).raw("\n");
        }
        let none = Shown::default();
        let shown = shown.get(at).map(Vec::as_slice).unwrap_or_default();
        for place in order(variant, comparison) {
            let Some(case) = variant.cases.get(place) else { continue };
            let compared = comparison.and_then(|it| it.variant(&variant.name));
            let one = case::One {
                key: format!("v{at}c{place}"),
                case,
                shown: shown.get(place).unwrap_or(&none),
                change: compared.and_then(|it| it.case(&case.name)),
                is_compared: compared.is_some_and(|it| !it.new.contains(&case.name)),
                room,
            };
            one.write(html);
        }
    }
    html.raw("</section>\n");
}

/// The places of the cases: those first that need somebody.
fn order(variant: &Variant, comparison: Option<&Comparison>) -> Vec<usize> {
    let compared = comparison.and_then(|it| it.variant(&variant.name));
    let is_worse =
        |it: &CaseReport| compared.and_then(|all| all.case(&it.name)).is_some_and(|it| it.worse);
    let rank = |it: &CaseReport| match it.outcome {
        CaseOutcome::Failed => 0,
        CaseOutcome::Stale => 1,
        CaseOutcome::Broken => 2,
        CaseOutcome::Passed if is_worse(it) => 3,
        CaseOutcome::Passed => 4,
    };
    let mut places: Vec<usize> = (0..variant.cases.len()).collect();
    places.sort_by_key(|at| variant.cases.get(*at).map(&rank));
    places
}

fn filter(html: &mut Html, is_compared: bool) {
    html.raw("<fieldset class=\"filter\"><legend>Which cases are shown</legend>\n");
    let mut choices = vec![("show-all", "all"), ("show-bad", "not passed")];
    if is_compared {
        choices.extend([("show-changed", "changed"), ("show-worse", "worse")]);
    }
    for (id, name) in choices {
        html.raw("<label>");
        let mut attributes = vec![("type", "radio"), ("name", "show"), ("id", id)];
        attributes.extend((id == "show-all").then_some(("checked", "checked")));
        html.open("input", &attributes).text(name).raw("</label>\n");
    }
    // A script that may not run leaves no field that does nothing.
    html.raw(
        "<label hidden>Find <input type=\"search\" id=\"find\" autocomplete=\"off\"></label>\n",
    );
    html.close("fieldset");
}
