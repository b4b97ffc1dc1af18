//! A run as one self-contained HTML page: the measures, and for each case the transcript with its evidence marked.
//! Transcripts contain hostile text: the template escapes everything, and the content security policy allows only
//! the page's own style and script.

use super::compare::{CaseComparison, Comparison, MeasureChange, VariantComparison};
use super::report::{
    CaseOutcome, CaseReport, RecordReport, Report, ShownEntries, ShownEntry, Variant,
};
use super::tables::{
    Table, asked_text, by_kind, changes_by_kind, measure_change_text, other_measures, side_by_side,
    side_text,
};
use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, Value, context};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

const STYLE: &str = include_str!("style.css");
/// Filters cases by name; the page is complete without it.
const SCRIPT: &str = include_str!("script.js");
const TEMPLATE: &str = include_str!("page.html");

const CASES_MAX: usize = 1_000;
/// Maximum number of cases for which long texts are shown.
const CASES_AT_LENGTH: usize = 50;
/// Ranges of a text that are closer than this are merged.
const GAP_BYTES_MIN: usize = 80;

/// Bounds of the shown parts of a case, so that a page stays below 20 MB.
#[derive(Clone, Copy, Debug, Serialize)]
struct Detail {
    /// Maximum bytes of a text outside the transcript.
    text: usize,
    problem: usize,
    list: usize,
    entries: usize,
    /// True if entries without evidence are shown.
    plain: bool,
    /// Maximum bytes of an entry that is shown whole.
    whole: usize,
    /// Bytes shown at the start and end of a longer entry, and around evidence.
    head: usize,
    tail: usize,
    around: usize,
}

const AT_LENGTH: Detail = Detail {
    text: 1_500,
    problem: 8_000,
    list: 100,
    entries: 200,
    plain: true,
    whole: 3_000,
    head: 900,
    tail: 450,
    around: 250,
};
const IN_SHORT: Detail = Detail {
    text: 160,
    problem: 800,
    list: 8,
    entries: 16,
    plain: false,
    whole: 0,
    head: 80,
    tail: 0,
    around: 80,
};

#[derive(Serialize)]
struct VariantView<'r> {
    index: usize,
    variant: &'r Variant,
    answers: String,
    asked: String,
    by_kind: Table,
    other_measures: Table,
    change: Option<ChangeView<'r>>,
    cases: Vec<CaseView<'r>>,
    hidden: usize,
}

#[derive(Serialize)]
struct ChangeView<'r> {
    comparison: &'r VariantComparison,
    by_kind: Table,
    measures: Vec<(&'static str, String)>,
}

#[derive(Serialize)]
struct CaseView<'r> {
    /// Prefix of every id of the case.
    key: String,
    case: &'r CaseReport,
    answers: String,
    asked: String,
    is_measured: bool,
    /// Change against the baseline, in full and as one word.
    change: Option<&'r CaseComparison>,
    change_state: &'static str,
    measures: Vec<(&'static str, String)>,
    changed_records: Vec<ChangedRecord>,
    records: Vec<RecordView>,
    entries: Vec<EntryView<'r>>,
    hidden_entries: usize,
}

#[derive(Serialize)]
struct ChangedRecord {
    kind: &'static str,
    before: Option<String>,
    after: Option<String>,
    /// Index of the record in this run.
    at: Option<usize>,
}

#[derive(Serialize)]
struct RecordView {
    /// Index of the item that it answers.
    item: Option<usize>,
    says: Vec<String>,
    evidence: Vec<Mark>,
}

/// Evidence of a record at one range, for one or more fields.
#[derive(Clone, Debug, Serialize)]
struct Mark {
    id: usize,
    record: usize,
    entry: u32,
    from: usize,
    to: usize,
    fields: String,
    how: String,
    /// True if the entry is shown, so that links to it work.
    is_shown: bool,
}

#[derive(Debug, Serialize)]
struct EntryView<'r> {
    ordinal: u32,
    speaker: &'static str,
    label: &'r str,
    parts: Vec<Part<'r>>,
    /// Bytes omitted at the end.
    gap: usize,
}

/// Part of a text without mark boundaries inside.
#[derive(Debug, Serialize)]
struct Part<'r> {
    /// Bytes omitted before it.
    gap: usize,
    text: &'r str,
    marks: usize,
    ends: Vec<Mark>,
}

/// Renders a run as HTML. `shown` holds the conversations by variant and case.
pub(crate) fn page(
    report: &Report,
    shown: &[Vec<ShownEntries>],
    comparison: Option<&Comparison>,
) -> Result<String, minijinja::Error> {
    let number: usize = report.variants.iter().map(|it| it.cases.len()).sum();
    let detail = if number <= CASES_AT_LENGTH { AT_LENGTH } else { IN_SHORT };
    let variants = report.variants.iter().enumerate().map(|(index, variant)| {
        let shown = shown.get(index).map(Vec::as_slice).unwrap_or_default();
        variant_view(index, variant, shown, comparison, detail)
    });
    let variants: Vec<VariantView<'_>> = variants.collect();
    let side_by_side = (report.variants.len() > 1).then(|| side_by_side(&report.variants));
    let mut engine = Environment::empty();
    engine.set_auto_escape_callback(|_| AutoEscape::Html);
    engine.add_filter("cut", cut);
    engine.add_filter("count", |list: Value| list.len());
    engine.add_filter("items", fields);
    engine.add_filter("lines", |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>());
    engine.add_filter("texts", texts);
    engine.add_test("none", |value: Value| value.is_none() || value.is_undefined());
    let page = engine.template_from_str(TEMPLATE)?.render(context! {
        style => Value::from_safe_string(STYLE.to_owned()),
        script => Value::from_safe_string(SCRIPT.to_owned()),
        annalist => report.annalist.as_str(),
        several => report.variants.len() > 1,
        verdict => Value::from(Serde(comparison.map(Comparison::verdict))),
        uncompared => comparison.map(|it| it.uncompared().join(", ")),
        comparison => Value::from(Serde(comparison)),
        side_by_side => Value::from(Serde(side_by_side)),
        variants => Value::from(Serde(variants)),
        detail => Value::from(Serde(detail)),
    })?;
    // HTML must not contain control characters.
    let legal = |it: char| if it.is_control() && it != '\n' { '\u{fffd}' } else { it };
    Ok(page.chars().map(legal).collect())
}

fn fields(claim: &Value) -> Result<Vec<(Value, Value)>, minijinja::Error> {
    let pair = |name: Value| Ok((name.clone(), claim.get_item(&name)?));
    claim.try_iter()?.map(pair).collect()
}

fn texts(value: &Value) -> Vec<String> {
    let kind = value.kind();
    if kind == ValueKind::Seq {
        value.try_iter().into_iter().flatten().map(|it| it.to_string()).collect()
    } else if kind == ValueKind::Bool {
        vec![if value.is_true() { "yes" } else { "no" }.to_owned()]
    } else if kind == ValueKind::None {
        vec!["–".to_owned()]
    } else {
        vec![value.to_string()]
    }
}

/// Truncates a text and appends the number of omitted bytes.
fn cut(text: String, bytes: usize) -> String {
    let end = text.floor_char_boundary(bytes);
    match text.len() - end {
        0 => text,
        more => format!("{} … {more} bytes more", &text[..end]),
    }
}

fn variant_view<'r>(
    index: usize,
    variant: &'r Variant,
    shown: &'r [ShownEntries],
    comparison: Option<&'r Comparison>,
    detail: Detail,
) -> VariantView<'r> {
    let compared = comparison.and_then(|it| it.variant(&variant.name));
    let change = |it: &CaseReport| compared.and_then(|all| all.case(&it.name));
    let mut order: Vec<(usize, &CaseReport)> = variant.cases.iter().enumerate().collect();
    order.sort_by_key(|(_, it)| match it.outcome {
        CaseOutcome::Failed => 0,
        CaseOutcome::Stale => 1,
        CaseOutcome::Broken => 2,
        CaseOutcome::Passed if change(it).is_some_and(|it| it.worse) => 3,
        CaseOutcome::NotMeasured => 4,
        CaseOutcome::Passed => 5,
    });
    let hidden = order.len().saturating_sub(CASES_MAX);
    order.truncate(CASES_MAX);
    let case = |(at, case): (usize, &'r CaseReport)| {
        let entries = shown.get(at).map(Vec::as_slice).unwrap_or_default();
        let change = change(case);
        let change_state = match (change, compared) {
            (Some(it), _) if it.worse => "worse",
            (Some(_), _) => "changed",
            (None, Some(all)) if !all.new.contains(&case.name) => "same",
            (None, _) => "new",
        };
        let view = case_view(format!("v{index}c{at}"), case, entries, change, detail);
        CaseView { change_state, ..view }
    };
    let change_view = |it: &'r VariantComparison| ChangeView {
        by_kind: changes_by_kind(it),
        measures: measure_texts(&it.measures),
        comparison: it,
    };
    VariantView {
        index,
        variant,
        answers: variant.answers().text(),
        asked: asked_text(&variant.summary.sums),
        by_kind: by_kind(variant),
        other_measures: other_measures(variant),
        change: compared.map(change_view),
        cases: order.into_iter().map(case).collect(),
        hidden,
    }
}

fn case_view<'r>(
    key: String,
    case: &'r CaseReport,
    entries: &'r [ShownEntry],
    change: Option<&'r CaseComparison>,
    detail: Detail,
) -> CaseView<'r> {
    let mut marks = marks(case, entries, detail.list);
    let (entries, hidden_entries) = entry_views(entries, &marks, detail);
    let visible: BTreeSet<usize> =
        entries.iter().flat_map(|it| &it.parts).flat_map(|it| &it.ends).map(|it| it.id).collect();
    marks.iter_mut().for_each(|it| it.is_shown = visible.contains(&it.id));
    let record = |(at, record): (usize, &RecordReport)| RecordView {
        item: case.items.iter().position(|it| record.answers.as_ref() == Some(&it.id)),
        says: case
            .forbidden
            .iter()
            .filter(|it| it.said_by == Some(at))
            .map(|it| format!("{} ({})", it.id, it.why.name()))
            .collect(),
        evidence: marks.iter().filter(|it| it.record == at).take(detail.list).cloned().collect(),
    };
    let changed = change.into_iter().flat_map(|it| &it.records).map(|it| ChangedRecord {
        kind: it.kind.name(),
        before: it.before.as_ref().map(|side| side_text(it, side)),
        after: it.after.as_ref().map(|side| side_text(it, side)),
        at: it.after.as_ref().map(|side| side.at).filter(|at| *at < detail.list),
    });
    CaseView {
        key,
        case,
        answers: case.answers.text(),
        asked: asked_text(&case.sums),
        is_measured: case.is_measured(),
        measures: change.map(|it| measure_texts(&it.measures)).unwrap_or_default(),
        changed_records: changed.take(detail.list).collect(),
        change,
        change_state: "new",
        records: case.records.iter().enumerate().take(detail.list).map(record).collect(),
        entries,
        hidden_entries,
    }
}

fn measure_texts(changes: &[MeasureChange]) -> Vec<(&'static str, String)> {
    changes.iter().map(|it| (it.trend.name(), measure_change_text(it))).collect()
}

/// Marks for the evidence of the first `records` records of a case.
fn marks(case: &CaseReport, entries: &[ShownEntry], records: usize) -> Vec<Mark> {
    let texts: BTreeMap<u32, &str> =
        entries.iter().map(|it| (it.ordinal, it.text.as_str())).collect();
    let mut marks: Vec<Mark> = Vec::new();
    for (record, it) in case.records.iter().enumerate().take(records) {
        let first = marks.len();
        for evidence in &it.evidence {
            let text = texts.get(&evidence.entry).copied().unwrap_or_default();
            let from = text.floor_char_boundary(evidence.from as usize);
            let to = text.floor_char_boundary(evidence.to as usize);
            let key = (evidence.entry, from, to);
            let same = marks.iter_mut().skip(first).find(|it| (it.entry, it.from, it.to) == key);
            match same {
                Some(mark) => {
                    mark.fields.push_str(", ");
                    mark.fields.push_str(&evidence.field);
                }
                None => marks.push(Mark {
                    id: marks.len(),
                    record,
                    entry: evidence.entry,
                    from,
                    to,
                    fields: evidence.field.clone(),
                    how: format!("{}, {}", evidence.speaker.name(), evidence.found.name()),
                    is_shown: from < to,
                }),
            }
        }
    }
    marks
}

fn entry_views<'r>(
    entries: &'r [ShownEntry],
    marks: &[Mark],
    detail: Detail,
) -> (Vec<EntryView<'r>>, usize) {
    let mut views = Vec::new();
    for entry in entries {
        let marks: Vec<&Mark> =
            marks.iter().filter(|it| it.is_shown && it.entry == entry.ordinal).collect();
        if views.len() == detail.entries || marks.is_empty() && !detail.plain {
            continue;
        }
        let text = entry.text.as_str();
        let (mut parts, mut seen) = (Vec::new(), 0);
        for range in ranges(text, &marks, detail) {
            let gap = range.start - seen;
            seen = range.end;
            let first = parts.len();
            parts.extend(parts_of(text, range, &marks));
            if let Some(part) = parts.get_mut(first) {
                part.gap = gap;
            }
        }
        views.push(EntryView {
            ordinal: entry.ordinal,
            speaker: entry.speaker.name(),
            label: &entry.label,
            parts,
            gap: text.len() - seen,
        });
    }
    let hidden = entries.len() - views.len();
    (views, hidden)
}

fn ranges(text: &str, marks: &[&Mark], detail: Detail) -> Vec<Range<usize>> {
    if text.len() <= detail.whole {
        return std::iter::once(0..text.len()).filter(|it| !it.is_empty()).collect();
    }
    let mut all = vec![0..detail.head, text.len().saturating_sub(detail.tail)..text.len()];
    for mark in marks {
        // Only the ends of long evidence are shown.
        let (from, to) = (mark.from.saturating_sub(detail.around), mark.to + detail.around);
        all.push(from..to.min(mark.from + 2 * detail.around));
        all.push(from.max(mark.to.saturating_sub(2 * detail.around))..to);
    }
    all.sort_by_key(|it| it.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for it in all {
        let start = text.floor_char_boundary(it.start);
        let end = text.ceil_char_boundary(it.end.min(text.len()));
        match merged.last_mut() {
            Some(last) if start <= last.end + GAP_BYTES_MIN => last.end = last.end.max(end),
            _ => merged.push(start..end),
        }
    }
    merged.retain(|it| !it.is_empty());
    merged
}

/// Splits a range of a text at the boundaries of marks.
fn parts_of<'r>(text: &'r str, range: Range<usize>, marks: &[&Mark]) -> Vec<Part<'r>> {
    let mut bounds: Vec<usize> = marks.iter().flat_map(|it| [it.from, it.to]).collect();
    bounds.retain(|it| range.contains(it));
    bounds.extend([range.start, range.end]);
    bounds.sort_unstable();
    bounds.dedup();
    let part = |[from, to]: &[usize; 2]| Part {
        gap: 0,
        text: text.get(*from..*to).unwrap_or_default(),
        marks: marks.iter().filter(|it| it.from <= *from && *to <= it.to).count(),
        ends: marks.iter().filter(|it| it.to == *to).map(|it| (*it).clone()).collect(),
    };
    bounds.array_windows().map(part).collect()
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
