//! Tables and lines of a report, identical on a terminal and on a page.

use super::compare::{MeasureChange, VariantComparison};
use super::measure::{Counts, Measure, Rate, Sums};
use super::report::{RecordReport, Variant, headline};
use crate::domain::{ClaimKind, CoverageState};
use crate::text::phrase::{commas, counted};
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
