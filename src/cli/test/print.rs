//! What a person sees after a run of prompt tests: a line for each case, what is wrong with those that did not
//! pass, and the counts behind every rate.

use super::super::output::{BOLD, DIM, GREEN, RED, YELLOW, count, counted};
use super::changes;
use super::grid::{Cell, Grid, cut};
use crate::domain::{ClaimKind, CoverageState, RecordState};
use crate::score::{
    Asks, CaseOutcome, CaseReport, Comparison, Interval, Measure, Rate, RecordReport, Report, Sums,
    Variant, Why, headline,
};
use anstyle::Style;

/// Cases below which a rate says little without how far it may be off.
const FEW_CASES: usize = 100;
/// Lines of a problem that are shown: a difference of two requests has many.
const PROBLEM_LINES_MAX: usize = 40;
/// Problems, items or records of a case that are shown of one sort.
const LISTED_MAX: usize = 20;
/// Measures of all kinds together that the table by kind does not show.
const OTHER_MEASURES: [Measure; 6] = [
    Measure::CoreRecall,
    Measure::Succeeded,
    Measure::Grounded,
    Measure::Restraint,
    Measure::Quarantined,
    Measure::Schema,
];

/// What a run came to, as lines no wider than `width` columns but for what is wrong, of which no word is lost. `verbose` tells of cases that passed what it
/// tells of the others: what they missed, and what of theirs answers nothing.
pub(super) fn table(
    report: &Report,
    comparison: Option<&Comparison>,
    width: usize,
    verbose: bool,
) -> String {
    let mut lines = Vec::new();
    match report.variants.as_slice() {
        [] => lines.push("nothing was run".to_owned()),
        [variant] => {
            lines.extend(cases(variant, width));
            lines.extend(troubles(variant, width, verbose));
            // A table of nothing says less than none.
            if is_measured(variant) {
                lines.push(String::new());
                lines.extend(by_kind(variant, width));
            }
        }
        several => {
            lines.extend(beside(several, width));
            for variant in several {
                let troubles = troubles(variant, width, verbose);
                if !troubles.is_empty() {
                    lines.push(format!("\n{BOLD}{}{BOLD:#}", cut(&variant.name, width)));
                    lines.extend(troubles);
                }
            }
            lines.push(String::new());
            lines.extend(side_by_side(several, width));
        }
    }
    for variant in &report.variants {
        lines.extend(ending(variant, report.variants.len() > 1));
    }
    lines.extend(comparison.into_iter().flat_map(|it| changes::lines(it, width, verbose)));
    lines.join("\n")
}

/// The word for what became of a case, in its colour.
fn state(outcome: CaseOutcome) -> Cell {
    let style = match outcome {
        CaseOutcome::Passed => GREEN,
        CaseOutcome::Failed | CaseOutcome::Broken => RED,
        CaseOutcome::Stale => YELLOW,
    };
    Cell::styled(outcome.name(), style)
}

/// A rate with the counts behind it; a bar where there is nothing to take it of.
pub(super) fn rate(rate: Rate) -> String {
    match rate.value() {
        Some(value) => format!("{}/{} {:.1}%", count(rate.hits), count(rate.of), value * 100.0),
        None => "–".to_owned(),
    }
}

fn bare(rate: Rate) -> String {
    if rate.of == 0 { "–".to_owned() } else { format!("{}/{}", count(rate.hits), count(rate.of)) }
}

/// A line for each case of one variant; where that is too wide, counts without what they come to.
fn cases(variant: &Variant, width: usize) -> Vec<String> {
    let grid = case_grid(variant, rate);
    if grid.width(1) <= width {
        return grid.lines(1, width);
    }
    case_grid(variant, bare).lines(1, width)
}

fn case_grid(variant: &Variant, rate: fn(Rate) -> String) -> Grid {
    let header = ["", "case", "precision", "recall", "f1", "unproven", "unsaid"];
    let mut grid = Grid::new(&header);
    for case in &variant.cases {
        let mut row = vec![state(case.outcome), Cell::new(&case.name)];
        if case.is_measured() {
            let measured = [Measure::Precision, Measure::Recall, Measure::F1];
            row.extend(measured.map(|it| Cell::new(rate(case.sums.rate(it)))));
            row.push(Cell::new(count(case.sums.tally.quarantined.hits)));
            row.push(broken_restraint(case.sums.tally.restraint));
        }
        grid.row(row);
    }
    grid
}

fn broken_restraint(restraint: Rate) -> Cell {
    let style = if restraint.hits < restraint.of { RED } else { Style::new() };
    Cell::styled(bare(restraint), style)
}

/// The same of several variants, a column each.
fn beside(variants: &[Variant], width: usize) -> Vec<String> {
    let mut grid = Grid::beside("case", variants.iter().map(|it| it.name.as_str()));
    let mut names: Vec<&str> =
        variants.iter().flat_map(|it| it.cases.iter().map(|it| it.name.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let mut row = vec![Cell::new(name)];
        for variant in variants {
            let case = variant.cases.iter().find(|it| it.name == name);
            row.push(case.map_or_else(Cell::default, in_short));
        }
        grid.row(row);
    }
    grid.lines(0, width)
}

/// What became of a case, and how it did, in a cell.
fn in_short(case: &CaseReport) -> Cell {
    let Cell { .. } = state(case.outcome);
    let style = match case.outcome {
        CaseOutcome::Passed => Style::new(),
        CaseOutcome::Failed | CaseOutcome::Broken => RED,
        CaseOutcome::Stale => YELLOW,
    };
    let text = match case.is_measured() {
        true => format!("{} f1 {}", case.outcome.name(), rate(case.sums.rate(Measure::F1))),
        false => case.outcome.name().to_owned(),
    };
    Cell::styled(text, style)
}

/// What is wrong with the cases that did not pass; with `verbose` what is to be said of all.
fn troubles(variant: &Variant, width: usize, verbose: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for case in &variant.cases {
        let fails = case.outcome != CaseOutcome::Passed;
        let told = trouble(case, width);
        if !told.is_empty() && (fails || verbose) {
            let style = if fails { RED } else { BOLD };
            lines.push(format!("\n{style}{}{style:#}  {}", case.name, case.outcome.name()));
            lines.extend(told);
        }
    }
    lines
}

fn trouble(case: &CaseReport, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for problem in case.problems.iter().take(LISTED_MAX) {
        let style = if problem.fails { RED } else { YELLOW };
        let mut details = problem.detail.lines();
        let first = details.next().unwrap_or_default();
        lines.push(format!("  {style}{}{style:#}: {}", problem.rule, cut(first, usize::MAX)));
        let more = details.clone().count().saturating_sub(PROBLEM_LINES_MAX);
        lines.extend(details.take(PROBLEM_LINES_MAX).map(|line| difference(line, width)));
        lines.extend((more > 0).then(|| format!("    {DIM}and {more} lines more{DIM:#}")));
    }
    if !case.is_measured() {
        return lines;
    }
    let missed = case.items.iter().filter(|it| it.answered_by.is_none());
    let missed = missed.map(|it| {
        let what =
            format!("{} {} {}: {}", it.importance.name(), it.kind.name(), it.id, it.statement);
        ("missed", RED, what)
    });
    let said = case.forbidden.iter().filter_map(|it| {
        let record = case.records.get(it.said_by?)?;
        let what = format!("{} {}: {}", it.why.name(), it.id, text(record));
        Some(("said", RED, what))
    });
    let staged = case.records.iter().filter(|it| it.state == RecordState::Staged);
    let says = |it: &RecordReport| {
        let records = case.forbidden.iter().filter_map(|it| case.records.get(it.said_by?));
        records.into_iter().any(|said| std::ptr::eq(said, it))
    };
    // What breaks a ban is told by the ban.
    let idle = staged.filter(|it| it.answers.is_none() && !says(it));
    let idle =
        idle.map(|it| ("answers nothing", YELLOW, format!("{} {}", it.kind.name(), text(it))));
    let doubted = case.records.iter().filter(|it| it.state == RecordState::Quarantined);
    let doubted = doubted.map(|it| {
        let reason = it.reason.as_deref().unwrap_or("not proven");
        ("unproven", YELLOW, format!("{} {} ({reason})", it.kind.name(), text(it)))
    });
    lines.extend(listed(missed, width));
    lines.extend(listed(said, width));
    lines.extend(listed(idle, width));
    lines.extend(listed(doubted, width));
    lines
}

/// Things of one sort, a line each, so many at most.
fn listed(all: impl Iterator<Item = (&'static str, Style, String)>, width: usize) -> Vec<String> {
    let all: Vec<_> = all.collect();
    let line = |(name, style, what): &(&str, Style, String)| {
        let room = width.saturating_sub(name.len() + 4);
        format!("  {style}{name}{style:#}: {}", cut(what, room))
    };
    let mut lines: Vec<String> = all.iter().take(LISTED_MAX).map(line).collect();
    let more = all.len().saturating_sub(LISTED_MAX);
    lines.extend((more > 0).then(|| format!("  {DIM}and {more} more{DIM:#}")));
    lines
}

fn text(record: &RecordReport) -> &str {
    headline(record.kind, &record.claim)
}

/// A line of a difference: what goes red, what comes green.
fn difference(line: &str, width: usize) -> String {
    let style = match line.as_bytes().first() {
        Some(b'-') => RED,
        Some(b'+') => GREEN,
        _ => DIM,
    };
    format!("    {style}{}{style:#}", cut(line, width.saturating_sub(4)))
}

/// The counts of one variant by kind, and of everything together.
fn by_kind(variant: &Variant, width: usize) -> Vec<String> {
    let mut grid = Grid::new(&["kind", "precision", "recall", "f1"]);
    let sums = &variant.summary.sums;
    for kind in ClaimKind::ALL {
        let counts = sums.tally.of(*kind);
        let rates = [counts.precision(), counts.recall(), counts.f1()].map(rate);
        grid.row([format!("{}s", kind.name())].into_iter().chain(rates).map(Cell::new).collect());
    }
    let mut all = vec![Cell::styled("all", BOLD)];
    for measure in [Measure::Precision, Measure::Recall, Measure::F1] {
        all.push(Cell::styled(rate(sums.rate(measure)), BOLD));
    }
    grid.row(all);
    let off = |measure| interval(variant, measure).map(between).unwrap_or_default();
    let intervals = [Measure::Precision, Measure::Recall, Measure::F1].map(off);
    if intervals.iter().any(|it| !it.is_empty()) && variant.cases.len() < FEW_CASES {
        let row = ["95% of draws".to_owned()].into_iter().chain(intervals);
        grid.row(row.map(|it| Cell::styled(it, DIM)).collect());
    }
    let mut lines = grid.lines(0, width);
    let offs = OTHER_MEASURES
        .map(|it| if variant.cases.len() < FEW_CASES { off(it) } else { String::new() });
    let header = if offs.iter().any(|it| !it.is_empty()) { "95% of draws" } else { "" };
    let mut others = Grid::new(&["measure", "rate", header]);
    for (measure, off) in OTHER_MEASURES.into_iter().zip(offs) {
        let of = sums.rate(measure);
        if of.of > 0 {
            let row = [measure_name(measure), &rate(of)].map(Cell::new);
            others.row(row.into_iter().chain([Cell::styled(off, DIM)]).collect());
        }
    }
    for why in Why::ALL {
        let of = sums.tally.restraints.of(*why);
        if of.of > 0 {
            others.row(vec![Cell::new(format!("  not {}", why.name())), Cell::new(rate(of))]);
        }
    }
    if !others.is_empty() {
        lines.push(String::new());
        lines.extend(others.lines(0, width));
    }
    lines
}

pub(super) fn measure_name(measure: Measure) -> &'static str {
    match measure {
        Measure::Precision => "precision",
        Measure::Recall => "recall",
        Measure::F1 => "f1",
        Measure::CoreRecall => "core recall",
        Measure::Succeeded => "outcomes told right",
        Measure::Grounded => "grounded",
        Measure::Restraint => "restraint",
        Measure::Quarantined => "quarantined",
        Measure::Schema => "fitted the schema",
    }
}

/// From where to where a measure may lie for the choice of cases.
fn interval(variant: &Variant, measure: Measure) -> Option<Interval> {
    let mut all = variant.summary.intervals.iter();
    all.find(|it| it.measure == measure).map(|it| it.interval)
}

fn between(it: Interval) -> String {
    format!("{:.0}–{:.0}%", it.low * 100.0, it.high * 100.0)
}

/// The rates of several variants, a column each.
fn side_by_side(variants: &[Variant], width: usize) -> Vec<String> {
    let mut grid = Grid::beside("measure", variants.iter().map(|it| it.name.as_str()));
    let mut add = |name: String, of: &dyn Fn(&Sums) -> Rate| {
        let rates: Vec<Rate> = variants.iter().map(|it| of(&it.summary.sums)).collect();
        if rates.iter().any(|it| it.of > 0) {
            let row = [name].into_iter().chain(rates.into_iter().map(rate));
            grid.row(row.map(Cell::new).collect());
        }
    };
    for kind in ClaimKind::ALL {
        add(format!("{}s precision", kind.name()), &|sums| sums.tally.of(*kind).precision());
        add(format!("{}s recall", kind.name()), &|sums| sums.tally.of(*kind).recall());
        add(format!("{}s f1", kind.name()), &|sums| sums.tally.of(*kind).f1());
    }
    for measure in [Measure::Precision, Measure::Recall, Measure::F1].iter().chain(&OTHER_MEASURES)
    {
        add(measure_name(*measure).to_owned(), &|sums| sums.rate(*measure));
    }
    for why in Why::ALL {
        add(format!("  not {}", why.name()), &|sums| sums.tally.restraints.of(*why));
    }
    /// Something that is no rate.
    type Number = (&'static str, fn(&Asks) -> String);
    let numbers: [Number; 4] = [
        ("requests", |it| count(it.requests)),
        ("tokens sent", |it| count(it.tokens_sent)),
        ("tokens answered", |it| count(it.tokens_answered)),
        ("cost", |it| dollars(it.cost_micros)),
    ];
    for (name, number) in numbers {
        let row = variants.iter().map(|it| number(&it.summary.sums.asks));
        grid.row([name.to_owned()].into_iter().chain(row).map(Cell::new).collect());
    }
    grid.lines(0, width)
}

pub(super) fn dollars(micros: u64) -> String {
    format!("${:.4}", micros as f64 / 1e6)
}

/// The last lines: what was asked, where entries ended, whose answers these are, what became of the cases.
fn ending(variant: &Variant, is_named: bool) -> Vec<String> {
    let Sums { asks, coverage, .. } = &variant.summary.sums;
    let mut lines = vec![String::new()];
    lines.extend(is_named.then(|| format!("{BOLD}{}{BOLD:#}", variant.name)));
    if !is_measured(variant) {
        lines.push(verdict(variant));
        return lines;
    }
    let failed = if asks.failed > 0 { format!(", {} failed", asks.failed) } else { String::new() };
    lines.push(format!(
        "{}: {} fitted at once, {} after asking again{failed}; {}, {}",
        counted(asks.slices, "slice"),
        count(asks.fitted),
        count(asks.repaired),
        counted(asks.requests, "request"),
        counted(asks.repairs, "repair"),
    ));
    lines.push(format!(
        "{} tokens sent, {} of them cached, {} answered; {}",
        count(asks.tokens_sent),
        count(asks.tokens_cached),
        count(asks.tokens_answered),
        dollars(asks.cost_micros)
    ));
    let ends = CoverageState::ALL.iter().filter(|it| coverage.of(**it) > 0);
    let ends: Vec<String> =
        ends.map(|it| format!("{} {}", count(coverage.of(*it)), it.name())).collect();
    lines.push(format!("{}: {}", counted(coverage.total(), "entry"), ends.join(", ")));
    lines.push(origins(variant));
    lines.push(verdict(variant));
    lines
}

/// Whether anything of it was measured.
fn is_measured(variant: &Variant) -> bool {
    variant.summary.sums.asks.slices > 0
}

/// Whose answers a score is of: it says as little of a model as they do.
fn origins(variant: &Variant) -> String {
    let (all, number) = (variant.answers(), variant.answers().total());
    let parts: Vec<String> =
        all.named().map(|(number, name)| format!("{} {name}", count(number))).collect();
    let what = if parts.is_empty() { "none".to_owned() } else { parts.join(", ") };
    format!("{}: {what}", counted(number, "answer"))
}

fn verdict(variant: &Variant) -> String {
    let cases = variant.summary.cases;
    let bad = [(cases.failed, "failed"), (cases.stale, "stale"), (cases.broken, "broken")];
    let bad: Vec<String> = bad
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, name)| format!("{} {name}", count(number)))
        .collect();
    let all = counted(variant.cases.len() as u64, "case");
    let passed = count(cases.passed);
    match bad.is_empty() {
        true => format!("{GREEN}{all}: {passed} passed{GREEN:#}"),
        false => format!("{RED}{all}: {passed} passed, {}{RED:#}", bad.join(", ")),
    }
}

#[cfg(test)]
#[path = "print_tests.rs"]
mod tests;
