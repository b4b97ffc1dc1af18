//! What a run changed against its baseline, as lines: what is worse, what is better, and the very records.

use super::super::output::{BOLD, DIM, GREEN, RED, YELLOW, count, counted};
use super::grid::{Cell, Grid, cut};
use super::print::{dollars, measure_name, rate};
use crate::domain::RecordState;
use crate::score::{
    CaseComparison, Comparison, CountsChange, MeasureChange, Rate, RecordChange, RecordSide, Trend,
    VariantComparison, headline,
};
use anstyle::Style;

/// Records of a case that are shown without `--verbose`.
const RECORDS_MAX: usize = 20;

/// The lines of a comparison, no wider than `width`.
pub(super) fn lines(comparison: &Comparison, width: usize, verbose: bool) -> Vec<String> {
    let mut lines = vec![format!("\n{BOLD}against the baseline{BOLD:#}")];
    for variant in &comparison.variants {
        lines.extend(of_variant(variant, width, verbose));
    }
    lines.extend(names(&comparison.new, "not compared, no such variant in the baseline", YELLOW));
    let style = if comparison.partial { DIM } else { RED };
    let gone = if comparison.partial { "variant not run" } else { "variant gone" };
    lines.extend(names(&comparison.gone, gone, style));
    let uncompared = comparison.uncompared();
    if !uncompared.is_empty() {
        let what = "nothing could be compared, both runs measured no case of";
        lines.push(format!("{RED}{what}: {}{RED:#}", uncompared.join(", ")));
    }
    lines.extend(match (comparison.worse(), comparison.passes(), comparison.is_empty()) {
        (true, ..) => Some(format!("{RED}worse than the baseline{RED:#}")),
        (false, false, _) => None,
        (false, true, true) => Some(format!("{GREEN}nothing changed{GREEN:#}")),
        (false, true, false) => {
            Some(format!("{GREEN}nothing is worse than the tolerances allow{GREEN:#}"))
        }
    });
    lines
}

fn names(names: &[String], what: &str, style: Style) -> Option<String> {
    (!names.is_empty()).then(|| format!("{style}{what}{style:#}: {}", names.join(", ")))
}

fn of_variant(it: &VariantComparison, width: usize, verbose: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if it.before != it.after {
        lines.push(format!("{} → {}", it.before, it.after));
    }
    for case in &it.cases {
        lines.extend(of_case(case, width, verbose));
    }
    lines.extend(names(&it.new, "not compared, not in the baseline", YELLOW));
    lines.extend(names(&it.gone, "gone", RED));
    lines.extend(names(&it.not_run, "not run", DIM));
    if it.all.before != it.all.after || !it.measures.is_empty() {
        lines.push(String::new());
        lines.extend(by_kind(it, width));
        lines.extend(it.measures.iter().map(measure));
    }
    let (before, after) = (it.asks.before, it.asks.after);
    if before != after {
        lines.push(format!(
            "  requests {} → {}, tokens sent {} → {}, answered {} → {}, cost {} → {}",
            count(before.requests),
            count(after.requests),
            count(before.tokens_sent),
            count(after.tokens_sent),
            count(before.tokens_answered),
            count(after.tokens_answered),
            dollars(before.cost_micros),
            dollars(after.cost_micros)
        ));
    }
    let (worse, better) = (
        it.cases.iter().filter(|it| it.worse).count() as u64,
        it.cases.iter().filter(|it| it.better).count() as u64,
    );
    lines.push(format!(
        "{} worse, {} better; counts are of {} that both runs measured",
        counted(worse, "case"),
        count(better),
        count(it.measured)
    ));
    lines
}

/// A rate then and now.
fn then_and_now(before: Rate, after: Rate) -> String {
    match before == after {
        true => rate(after),
        false => format!("{} → {}", rate(before), rate(after)),
    }
}

fn by_kind(it: &VariantComparison, width: usize) -> Vec<String> {
    let mut grid = Grid::new(&["kind", "precision", "recall", "f1"]);
    let mut add = |name: String, CountsChange { before, after }: CountsChange| {
        let rates = [
            then_and_now(before.precision(), after.precision()),
            then_and_now(before.recall(), after.recall()),
            then_and_now(before.f1(), after.f1()),
        ];
        grid.row([name].into_iter().chain(rates).map(Cell::new).collect());
    };
    for kind in &it.kinds {
        add(format!("{}s", kind.kind.name()), kind.counts);
    }
    add("all".to_owned(), it.all);
    grid.lines(0, width)
}

fn measure(it: &MeasureChange) -> String {
    let style = match it.trend {
        Trend::Better => GREEN,
        Trend::Same => DIM,
        Trend::Worse => RED,
    };
    let allowed = match it.tolerance > 0.0 {
        true => format!(", {:.1}% allowed", it.tolerance * 100.0),
        false => String::new(),
    };
    let (name, change) = (measure_name(it.measure), then_and_now(it.before, it.after));
    format!("  {style}{}{style:#} {name} {change}{allowed}", it.trend.name())
}

fn of_case(it: &CaseComparison, width: usize, verbose: bool) -> Vec<String> {
    let (word, style) = match (it.worse, it.better) {
        (true, _) => ("worse", RED),
        (false, true) => ("better", GREEN),
        (false, false) => ("changed", YELLOW),
    };
    let outcome = match it.before == it.after {
        true => it.after.name().to_owned(),
        false => format!("{} → {}", it.before.name(), it.after.name()),
    };
    let mut lines = vec![format!("\n{style}{word}{style:#} {}  {outcome}", it.name)];
    if it.gold_changed {
        lines.push(format!("  {YELLOW}the gold is another one{YELLOW:#}"));
    }
    lines.extend(it.measures.iter().filter(|it| verbose || it.trend != Trend::Same).map(measure));
    let mut add = |style: Style, word: &str, what: String| {
        let room = width.saturating_sub(word.len() + 4);
        lines.push(format!("  {style}{word}{style:#}: {}", cut(&what, room)));
    };
    for (word, style, items) in
        [("missed now", RED, &it.missed), ("answered now", GREEN, &it.answered)]
    {
        for item in items {
            add(style, word, format!("{} {}: {}", item.kind.name(), item.id, item.statement));
        }
    }
    for (word, style, all) in [("said now", RED, &it.said), ("not said now", GREEN, &it.unsaid)] {
        for said in all {
            add(style, word, format!("{} {}: {}", said.why.name(), said.id, said.statement));
        }
    }
    let shown = if verbose { it.records.len() } else { RECORDS_MAX };
    lines.extend(it.records.iter().take(shown).flat_map(|it| record(it, width)));
    let more = it.records.len().saturating_sub(shown);
    lines.extend((more > 0).then(|| {
        let what = if more == 1 { "record" } else { "records" };
        format!("  {DIM}and {} more {what}: --verbose{DIM:#}", count(more as u64))
    }));
    lines
}

/// A record that was gained, lost, or changed: two lines for the last.
fn record(it: &RecordChange, width: usize) -> Vec<String> {
    let line = |sign: &str, style: Style, side: &RecordSide| {
        let state = match side.state {
            RecordState::Staged => "",
            RecordState::Quarantined => " (unproven)",
            RecordState::Replaced => " (replaced)",
        };
        let answers = side.answers.as_ref().map(|it| format!(" [{it}]")).unwrap_or_default();
        let kind = it.kind.name();
        let text = format!("{kind} {}{state}{answers}", whole(it, side));
        format!("  {style}{sign} {}{style:#}", cut(&text, width.saturating_sub(4)))
    };
    match (&it.before, &it.after) {
        (Some(before), Some(after)) => {
            vec![line("~", YELLOW, before), line("→", YELLOW, after)]
        }
        (Some(before), None) => vec![line("-", RED, before)],
        (None, Some(after)) => vec![line("+", GREEN, after)],
        (None, None) => Vec::new(),
    }
}

/// What a record says: its headline, and where that is the same then and now, the first field that is not.
fn whole(it: &RecordChange, side: &RecordSide) -> String {
    let own = headline(it.kind, &side.claim);
    let (Some(before), Some(after)) = (&it.before, &it.after) else { return own.to_owned() };
    if headline(it.kind, &before.claim) != headline(it.kind, &after.claim) {
        return own.to_owned();
    }
    let fields = side.claim.as_object().into_iter().flatten();
    let differs = |name: &str| before.claim.get(name) != after.claim.get(name);
    let changed: Vec<String> = fields
        .filter(|(name, _)| differs(name))
        .map(|(name, value)| match value.as_str() {
            Some(text) => format!("{name}: {text}"),
            None => format!("{name}: {value}"),
        })
        .collect();
    format!("{own} ({})", changed.join("; ")).replace(" ()", "")
}
