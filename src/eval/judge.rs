//! The verdict on a case: records against gold, bars, entry states, warnings.

use super::case::Bars;
use super::extraction::SliceResult;
use super::gold::{Forbidden, Gold, Item};
use super::measure::Sums;
use super::prepare::{Broken, PreparedCase};
use super::report::{
    CaseOutcome, CaseReport, EvidenceReport, ForbiddenReport, ItemReport, Problem, RecordReport,
};
use super::score::{Score, score};
use crate::domain::{CoverageState, Record, RecordId, RecordState, Severity};
use crate::llm::Origins;
use crate::pipeline::import::Collected;
use crate::text::phrase::counted;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of stale requests that are described: the first with its diff, others in a line.
const STALE_MAX: usize = 5;

pub(super) fn broken(name: &str, broken: Broken) -> CaseReport {
    CaseReport {
        name: name.to_owned(),
        about: broken.about,
        outcome: CaseOutcome::Broken,
        problems: vec![Problem::new("broken", true, broken.reason)],
        ..CaseReport::default()
    }
}

pub(super) fn judge(case: &PreparedCase, results: Vec<SliceResult>) -> CaseReport {
    let contents = &case.contents;
    let firsts = first_entries(&contents.conversations);
    let (mut sums, mut answers) = (Sums::default(), Origins::default());
    let mut problems = warnings(case);
    problems.extend(stale(case, &results));
    let is_stale = results.iter().any(|it| it.stale.is_some());
    let is_broken = results.iter().any(|it| it.unanswered.is_some());
    let (mut states, mut records) = (BTreeMap::new(), Vec::new());
    for (number, (slice, result)) in (1..).zip(case.slices().zip(results)) {
        sums.asks += result.asks;
        answers += result.answers;
        let evidence = result.records.iter().flat_map(|it| &it.evidence);
        let used: BTreeSet<u32> = evidence.map(|it| it.ordinal).collect();
        for entry in &slice.cutting.entries {
            let state = if result.stale.is_some() || result.unanswered.is_some() {
                CoverageState::Pending
            } else if result.failure.is_some() {
                CoverageState::Failed
            } else if used.contains(&entry.ordinal) {
                CoverageState::Extracted
            } else {
                CoverageState::Nothing
            };
            // An entry in several parts has the worst state of its parts.
            let known = states.entry((slice.conversation, entry.ordinal)).or_insert(state);
            *known = if badness(*known) < badness(state) { state } else { *known };
        }
        problems.extend(slice_problems(number, &result));
        let first = firsts.get(slice.conversation).copied().unwrap_or_default();
        records.extend(result.records.into_iter().map(|record| (first, record)));
    }
    let skipped: usize = contents.conversations.iter().map(|it| it.skipped.len()).sum();
    states.values().for_each(|state| sums.coverage.add(*state, 1));
    sums.coverage.add(CoverageState::Skipped, skipped as u64);
    records.sort_by_key(|(first, record)| {
        let ordinal = record.evidence.iter().map(|it| it.ordinal).min();
        first.saturating_add(ordinal.unwrap_or(record.provenance.entries.0))
    });
    let (firsts, records): (Vec<u32>, Vec<Record>) = records.into_iter().unzip();
    let scored = score(&contents.gold, &records);
    sums.tally = scored.tally;
    let unfound = scored
        .unfound
        .iter()
        .map(|it| format!("no answer to `{it}` is among the first five results"));
    if !is_stale && !is_broken {
        problems.extend(unfound.map(|it| Problem::new("not-found", false, it)));
        let missed = contents.case.bars.missed(&sums);
        problems.extend(missed.into_iter().map(|it| Problem::new("below-bar", true, it)));
    }
    let Gold { items, forbidden, .. } = &contents.gold;
    let is_measured =
        !items.is_empty() || !forbidden.is_empty() || contents.case.bars != Bars::default();
    let outcome = match (is_broken, is_stale, problems.iter().any(|it| it.fails)) {
        (true, ..) => CaseOutcome::Broken,
        (false, true, _) => CaseOutcome::Stale,
        (false, false, true) => CaseOutcome::Failed,
        (false, false, false) if is_measured => CaseOutcome::Passed,
        (false, false, false) => CaseOutcome::NotMeasured,
    };
    let (items, forbidden) = gold_reports(case, &scored, &records);
    let reports = records.iter().zip(firsts);
    let reports = reports.map(|(it, first)| record_report(it, first, &scored));
    CaseReport {
        name: case.name.clone(),
        about: contents.case.about.clone(),
        format: case.format.name().to_owned(),
        language: contents.config.language.clone(),
        model: case.asking.model.clone(),
        answers,
        outcome,
        problems,
        sums,
        items,
        forbidden,
        records: reports.collect(),
    }
}

fn slice_problems(number: usize, result: &SliceResult) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let (Some(failure), None) = (&result.failure, &result.stale) {
        let detail = format!("slice {number}: {}: {}", failure.kind, failure.detail);
        problems.push(Problem::new("slice-failed", true, detail));
    }
    if let Some(reason) = &result.unanswered {
        problems.push(Problem::new("not-answered", true, format!("slice {number}: {reason}")));
    }
    let findings = result.findings.iter();
    problems
        .extend(findings.map(|it| Problem::new(&it.rule, false, format!("slice {number}: {it}"))));
    problems
}

fn badness(state: CoverageState) -> u8 {
    match state {
        CoverageState::Nothing => 0,
        CoverageState::Extracted => 1,
        CoverageState::Skipped => 2,
        CoverageState::Pending => 3,
        CoverageState::Failed => 4,
    }
}

/// Findings about the cassette and the transcript, and quotes of the gold that no entry contains.
fn warnings(case: &PreparedCase) -> Vec<Problem> {
    let of_cassette = case.cassette_findings.iter();
    // An unreadable recording answers less than the user expects.
    let of_cassette = of_cassette
        .map(|it| Problem::new(&it.rule, it.severity == Severity::Error, it.to_string()));
    let conversations = &case.contents.conversations;
    let of_transcript = conversations.iter().flat_map(|it| &it.findings);
    let of_transcript = of_transcript.filter(|it| it.severity >= Severity::Warning);
    let of_transcript =
        of_transcript.map(|it| Problem::new(&it.rule, false, format!("transcript: {it}")));
    let mut problems: Vec<Problem> = of_cassette.chain(of_transcript).collect();
    let cut = conversations.iter().flat_map(|it| &it.slices);
    let cut = cut.flat_map(|(cutting, _)| &cutting.entries);
    let all = cut.chain(conversations.iter().flat_map(|it| &it.skipped));
    let texts: Vec<&str> = all.map(|entry| entry.text.as_str()).collect();
    let is_there = |quote: &str| texts.iter().any(|text| text.contains(quote));
    for item in &case.contents.gold.items {
        let Some(quote) = item.quote.as_deref().map(str::trim) else { continue };
        // A quote of Markdown may start with a speaker mark, which entries do not have.
        if !is_there(quote) && !is_there(quote.trim_start_matches(['#', '>', ' ', '\n'])) {
            let what = "its quote is not in the transcript: expected text of one entry";
            problems.push(Problem::new("quote-not-found", false, format!("{}: {what}", item.id)));
        }
    }
    problems
}

fn stale(case: &PreparedCase, results: &[SliceResult]) -> Vec<Problem> {
    let stale: Vec<_> =
        (1..).zip(results).filter_map(|(at, it)| Some((at, it.stale.as_ref()?))).collect();
    let mut details = Vec::new();
    let model = &case.asking.model;
    if !stale.is_empty() && !case.cassette.has_model(model) {
        details.push(format!(
            "no recordings for the model {model}: run `annalist test --record --model {model}`"
        ));
    }
    for (nth, (at, request)) in stale.iter().take(STALE_MAX).enumerate() {
        // The file may have been edited after redaction.
        let difference = case.gate.redact(&case.cassette.difference(request));
        let shown = match nth {
            0 => difference.as_str(),
            _ => difference.as_str().lines().next().unwrap_or_default(),
        };
        details.push(format!("slice {at} of {}: no answer; {shown}", results.len()));
    }
    if stale.len() > STALE_MAX {
        details.push(format!("and {} more", counted((stale.len() - STALE_MAX) as u64, "slice")));
    }
    details.into_iter().map(|detail| Problem::new("stale", true, detail)).collect()
}

/// The gold, each item with the record that matches it.
fn gold_reports(
    case: &PreparedCase,
    scored: &Score,
    records: &[Record],
) -> (Vec<ItemReport>, Vec<ForbiddenReport>) {
    let index = |pairs: &[(String, RecordId)], id: &str| {
        let (_, record) = pairs.iter().find(|(item, _)| item == id)?;
        records.iter().position(|it| it.id == *record)
    };
    let item = |it: &Item| ItemReport {
        id: it.id.clone(),
        kind: it.kind,
        importance: it.importance,
        statement: it.statement.clone(),
        answered_by: index(&scored.answered, &it.id),
    };
    let forbidden = |it: &Forbidden| ForbiddenReport {
        id: it.id.clone(),
        why: it.why,
        statement: it.statement.clone(),
        said_by: index(&scored.violated, &it.id),
    };
    let gold = &case.contents.gold;
    (gold.items.iter().map(item).collect(), gold.forbidden.iter().map(forbidden).collect())
}

/// `first` is the number of the first entry of the record's conversation.
fn record_report(record: &Record, first: u32, scored: &Score) -> RecordReport {
    let answers = scored.answered.iter().find(|(_, by)| *by == record.id);
    let is_staged = record.state == RecordState::Staged;
    let evidence = record.evidence.iter().map(|it| EvidenceReport {
        field: it.field.clone(),
        entry: first.saturating_add(it.ordinal),
        from: u32::try_from(it.bytes.start).unwrap_or(u32::MAX),
        to: u32::try_from(it.bytes.end).unwrap_or(u32::MAX),
        speaker: it.speaker,
        found: it.found,
        words: it.words.as_str().to_owned(),
    });
    RecordReport {
        id: record.id.to_string(),
        kind: record.claim.kind(),
        claim: record.claim.to_json(),
        state: record.state,
        reason: record.reason.clone(),
        answers: answers.filter(|_| is_staged).map(|(item, _)| item.clone()),
        evidence: evidence.collect(),
    }
}

/// Number of the first entry of each conversation, as the entries of all are numbered consecutively.
fn first_entries(conversations: &[Collected]) -> Vec<u32> {
    let mut next: u32 = 0;
    let first = |it: &Collected| {
        let first = next;
        let cut = it.slices.iter().flat_map(|(cutting, _)| &cutting.entries);
        let ends = cut.chain(&it.skipped).map(|entry| entry.ordinal.saturating_add(1));
        next = next.saturating_add(ends.max().unwrap_or(0));
        first
    };
    conversations.iter().map(first).collect()
}
