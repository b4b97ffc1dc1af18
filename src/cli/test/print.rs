//! Terminal output of a run: a line per case, the problems of cases that did not pass, the rates, and the changes
//! since a baseline.

use super::super::output::{self, BOLD, DIM, GREEN, RED, Wide, YELLOW, count, counted};
use crate::domain::RecordState;
use crate::eval::view::{
    Table, asked_text, by_kind, changes_by_kind, measure_change_text, rate_text, record_text,
    totals,
};
use crate::eval::{
    CaseComparison, CaseOutcome, CaseReport, Comparison, MeasureChange, RecordReport, Report,
    Trend, Variant, VariantComparison, headline,
};
use anstyle::Style;
use std::collections::BTreeSet;

const PROBLEM_LINES_MAX: usize = 40;
const LIST_MAX: usize = 20;

/// Formats a run. With `verbose`, passed cases are described like the others.
pub(super) fn run_lines(
    report: &Report,
    comparison: Option<&Comparison>,
    verbose: bool,
) -> Vec<String> {
    let several = report.variants.len() > 1;
    let mut lines = table_lines(&match report.variants.as_slice() {
        [variant] => cases(variant),
        variants => cases_side_by_side(variants),
    });
    for variant in &report.variants {
        let described = described_cases(variant, verbose);
        let is_named = several && !described.is_empty();
        lines.extend(is_named.then(|| format!("\n{BOLD}{}{BOLD:#}", one_line(&variant.name))));
        lines.extend(described);
    }
    let totals = totals(&report.variants);
    if !totals.rows.is_empty() {
        lines.push(String::new());
        lines.extend(table_lines(&totals));
    }
    for variant in &report.variants {
        lines.push(String::new());
        lines.extend(several.then(|| format!("{BOLD}{}{BOLD:#}", one_line(&variant.name))));
        if variant.summary.sums.asks.slices > 0 {
            lines.extend(table_lines(&by_kind(variant)));
            lines.push(String::new());
            lines.push(asked_text(&variant.summary.sums));
            let answers = variant.answers();
            let models = variant.cases.iter().map(|it| it.model.as_str());
            let models: BTreeSet<&str> = models.filter(|model| !model.is_empty()).collect();
            let models = one_line(&output::commas(models));
            let total = counted(answers.total(), "answer");
            lines.push(format!("{total} of {models}: {}", answers.text()));
        }
        lines.push(verdict(variant));
    }
    lines.extend(comparison.into_iter().flat_map(|it| comparison_lines(it, verbose)));
    lines
}

fn table_lines(table: &Table) -> Vec<String> {
    let header: Vec<&str> = table.header.iter().map(String::as_str).collect();
    let place = |name| header.iter().position(|it| *it == name);
    // F1 follows from precision and recall; unproven records are listed below as well.
    let spare: Vec<usize> = ["f1", "unproven"].into_iter().filter_map(place).collect();
    let cells = |row: &Vec<String>| row.iter().map(|cell| one_line(cell)).collect();
    let rows = table.rows.iter().map(cells).collect();
    let mut grid = output::fitted(&header, rows, Wide::names(0), &spare);
    // Names of models keep their case.
    if spare.is_empty() {
        let known = ["case", "measure", "rate"];
        let is_known = |name: &String| known.contains(&name.as_str());
        let name = |name| if is_known(name) { name.to_uppercase() } else { one_line(name) };
        grid.set_header(table.header.iter().map(name));
    }
    let text = grid.to_string();
    text.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()).collect()
}

fn cases(variant: &Variant) -> Table {
    let header = ["case", "outcome", "precision", "recall", "f1", "unproven", "unsaid"];
    let mut table = Table::new(&header);
    for case in &variant.cases {
        let mut cells = vec![case.outcome.name().to_owned()];
        if case.is_measured() {
            let tally = &case.sums.tally;
            cells.extend(tally.all().rates().map(rate_text));
            cells.extend([count(tally.quarantined.hits), rate_text(tally.restraint)]);
        }
        table.row(&case.name, cells);
    }
    table
}

fn cases_side_by_side(variants: &[Variant]) -> Table {
    let mut table = Table::new(&["case"]);
    table.header.extend(variants.iter().map(|it| it.name.clone()));
    let names: BTreeSet<&str> =
        variants.iter().flat_map(|it| &it.cases).map(|it| it.name.as_str()).collect();
    for name in names {
        let cell = |variant: &Variant| {
            let Some(case) = variant.cases.iter().find(|it| it.name == name) else {
                return "–".to_owned();
            };
            let outcome = case.outcome.name();
            match case.is_measured() {
                true => format!("{outcome} f1 {}", rate_text(case.sums.tally.all().f1())),
                false => outcome.to_owned(),
            }
        };
        table.row(name, variants.iter().map(cell));
    }
    table
}

/// Describes the problems of the cases that did not pass; with `verbose`, of all.
fn described_cases(variant: &Variant, verbose: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for case in &variant.cases {
        let passed = matches!(case.outcome, CaseOutcome::Passed | CaseOutcome::NotMeasured);
        if passed && !verbose {
            continue;
        }
        let described = case_lines(case);
        if !described.is_empty() {
            let (style, name) = (if passed { BOLD } else { RED }, one_line(&case.name));
            lines.push(format!("\n{style}{name}{style:#}  {}", case.outcome.name()));
            lines.extend(described);
        }
    }
    lines
}

fn case_lines(case: &CaseReport) -> Vec<String> {
    let mut lines = Vec::new();
    for problem in case.problems.iter().take(LIST_MAX) {
        let style = if problem.fails { RED } else { YELLOW };
        let mut details = problem.detail.lines();
        let first = details.next().unwrap_or_default();
        lines.push(format!("  {style}{}{style:#}: {}", problem.rule, one_line(first)));
        let more = details.clone().count().saturating_sub(PROBLEM_LINES_MAX);
        lines.extend(details.take(PROBLEM_LINES_MAX).map(difference_line));
        lines.extend((more > 0).then(|| format!("    {DIM}and {more} more lines{DIM:#}")));
    }
    if !case.is_measured() {
        return lines;
    }
    let text = |it: &RecordReport| format!("{} {}", it.kind.name(), headline(it.kind, &it.claim));
    let missed = case.items.iter().filter(|it| it.answered_by.is_none()).map(|it| {
        format!("{} {} {}: {}", it.importance.name(), it.kind.name(), it.id, it.statement)
    });
    list(&mut lines, "missed", RED, missed);
    let said = case.forbidden.iter().filter_map(|it| {
        let record = case.records.get(it.said_by?)?;
        let headline = headline(record.kind, &record.claim);
        Some(format!("{} {}: {headline}", it.why.name(), it.id))
    });
    list(&mut lines, "said", RED, said);
    let says_forbidden = |at: usize| case.forbidden.iter().any(|it| it.said_by == Some(at));
    let idle = case.records.iter().enumerate().filter(|(at, it)| {
        it.state == RecordState::Staged && it.answers.is_none() && !says_forbidden(*at)
    });
    list(&mut lines, "answers nothing", YELLOW, idle.map(|(_, it)| text(it)));
    let unproven = case.records.iter().filter(|it| it.state == RecordState::Quarantined);
    let unproven = unproven
        .map(|it| format!("{} ({})", text(it), it.reason.as_deref().unwrap_or("not proven")));
    list(&mut lines, "unproven", YELLOW, unproven);
    lines
}

/// Appends a line for each text, up to [`LIST_MAX`].
fn list(lines: &mut Vec<String>, name: &str, style: Style, texts: impl Iterator<Item = String>) {
    let mut more = 0;
    for (at, text) in texts.enumerate() {
        match at < LIST_MAX {
            true => lines.push(format!("  {style}{name}{style:#}: {}", one_line(&text))),
            false => more += 1,
        }
    }
    lines.extend((more > 0).then(|| format!("  {DIM}and {more} more{DIM:#}")));
}

fn difference_line(line: &str) -> String {
    let style = match line.as_bytes().first() {
        Some(b'-') => RED,
        Some(b'+') => GREEN,
        _ => DIM,
    };
    format!("    {style}{}{style:#}", one_line(line))
}

fn verdict(variant: &Variant) -> String {
    let cases = variant.summary.cases;
    let bad = [(cases.failed, "failed"), (cases.stale, "stale"), (cases.broken, "broken")];
    let bad = bad.iter().filter(|(number, _)| *number > 0);
    let bad: String = bad.map(|(number, name)| format!(", {} {name}", count(*number))).collect();
    let style = if bad.is_empty() { GREEN } else { RED };
    let (all, passed) = (counted(variant.cases.len() as u64, "case"), count(cases.passed));
    let unmeasured = match cases.not_measured {
        0 => String::new(),
        cases => {
            format!("; {YELLOW}{} not measured: without gold and bars{YELLOW:#}", count(cases))
        }
    };
    format!("{style}{all}: {passed} passed{bad}{style:#}{unmeasured}")
}

fn comparison_lines(it: &Comparison, verbose: bool) -> Vec<String> {
    let mut lines = vec![format!("\n{BOLD}against the baseline{BOLD:#}")];
    for variant in &it.variants {
        lines.extend(variant_lines(variant, verbose));
    }
    names(&mut lines, "not compared, no such variant in the baseline", YELLOW, &it.new);
    let (gone, style) = if it.partial { ("variant not run", DIM) } else { ("variant gone", RED) };
    names(&mut lines, gone, style, &it.gone);
    let uncompared = it.uncompared();
    if !uncompared.is_empty() {
        let what = "nothing could be compared, both runs measured no case of";
        lines.push(format!("{RED}{what}: {}{RED:#}", uncompared.join(", ")));
    }
    if it.worse() || uncompared.is_empty() {
        let (verdict, is_good) = it.verdict();
        let style = if is_good { GREEN } else { RED };
        lines.push(format!("{style}{verdict}{style:#}"));
    }
    lines
}

fn names(lines: &mut Vec<String>, what: &str, style: Style, names: &[String]) {
    if !names.is_empty() {
        lines.push(format!("{style}{what}{style:#}: {}", one_line(&names.join(", "))));
    }
}

fn variant_lines(it: &VariantComparison, verbose: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if it.before != it.after {
        lines.push(format!("{} → {}", one_line(&it.before), one_line(&it.after)));
    }
    it.cases.iter().for_each(|case| lines.extend(changed_case_lines(case, verbose)));
    names(&mut lines, "not compared, not in the baseline", YELLOW, &it.new);
    names(&mut lines, "gone", RED, &it.gone);
    names(&mut lines, "not run", DIM, &it.not_run);
    if it.all.before != it.all.after || !it.measures.is_empty() {
        lines.push(String::new());
        lines.extend(table_lines(&changes_by_kind(it)));
        lines.extend(it.measures.iter().map(measure_line));
    }
    let (before, after) = (it.asks.before, it.asks.after);
    if before != after {
        let dollars = |micros: u64| micros as f64 / 1e6;
        lines.push(format!(
            "  requests {} → {}, tokens sent {} → {}, answered {} → {}, cost ${:.4} → ${:.4}",
            before.requests,
            after.requests,
            before.tokens_sent,
            after.tokens_sent,
            before.tokens_answered,
            after.tokens_answered,
            dollars(before.cost_micros),
            dollars(after.cost_micros)
        ));
    }
    let worse = it.cases.iter().filter(|it| it.worse).count() as u64;
    let better = it.cases.iter().filter(|it| it.better).count() as u64;
    let (worse, measured) = (counted(worse, "case"), count(it.measured));
    lines.push(format!(
        "{worse} worse, {better} better; counts are of {measured} that both runs measured"
    ));
    lines
}

fn measure_line(it: &MeasureChange) -> String {
    let style = match it.trend {
        Trend::Better => GREEN,
        Trend::Same => DIM,
        Trend::Worse => RED,
    };
    format!("  {style}{}{style:#} {}", it.trend.name(), measure_change_text(it))
}

fn changed_case_lines(it: &CaseComparison, verbose: bool) -> Vec<String> {
    let (word, style) = match (it.worse, it.better) {
        (true, _) => ("worse", RED),
        (false, true) => ("better", GREEN),
        (false, false) => ("changed", YELLOW),
    };
    let outcome = match it.before == it.after {
        true => it.after.name().to_owned(),
        false => format!("{} → {}", it.before.name(), it.after.name()),
    };
    let mut lines = vec![format!("\n{style}{word}{style:#} {}  {outcome}", one_line(&it.name))];
    if it.gold_changed {
        lines.push(format!("  {YELLOW}the gold changed{YELLOW:#}"));
    }
    let measures = it.measures.iter().filter(|it| verbose || it.trend != Trend::Same);
    lines.extend(measures.map(measure_line));
    for (word, style, items) in
        [("missed now", RED, &it.missed), ("answered now", GREEN, &it.answered)]
    {
        let text = items.iter().map(|it| format!("{} {}: {}", it.kind.name(), it.id, it.statement));
        list(&mut lines, word, style, text);
    }
    for (word, style, all) in [("said now", RED, &it.said), ("not said now", GREEN, &it.unsaid)] {
        let text = all.iter().map(|it| format!("{} {}: {}", it.why.name(), it.id, it.statement));
        list(&mut lines, word, style, text);
    }
    let lost = it.lost.iter().map(|record| ("-", RED, record));
    let mut records: Vec<_> =
        lost.chain(it.gained.iter().map(|record| ("+", GREEN, record))).collect();
    records.sort_by_key(|(.., record)| record.kind);
    let shown = if verbose { records.len() } else { LIST_MAX };
    let more = records.len().saturating_sub(shown) as u64;
    for (sign, style, record) in records.into_iter().take(shown) {
        lines.push(format!("  {style}{sign} {}{style:#}", one_line(&changed_record(record))));
    }
    lines.extend(
        (more > 0)
            .then(|| format!("  {DIM}and {} more: --verbose{DIM:#}", counted(more, "record"))),
    );
    lines
}

fn changed_record(it: &RecordReport) -> String {
    let state = match it.state {
        RecordState::Staged => "",
        RecordState::Quarantined => " (unproven)",
        RecordState::Replaced => " (replaced)",
    };
    let answers = it.answers.as_ref().map(|it| format!(" [{it}]")).unwrap_or_default();
    format!("{}{state}{answers} {}", it.kind.name(), record_text(it))
}

/// Collapses a text into one line without control characters.
fn one_line(text: &str) -> String {
    let words = text.split(|it: char| it.is_whitespace() || it.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "print_tests.rs"]
mod tests;
