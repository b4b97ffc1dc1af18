//! What a case came to: records against gold, bars, where the entries ended, and what is to be said of it.

use super::ask::Heard;
use super::expected;
use super::prepare::{Broken, Prepared};
use super::quotes;
use crate::domain::{CoverageState, Entry, Record, RecordId, RecordState, Severity};
use crate::score::{
    Below, CaseOutcome, CaseReport, EvidenceReport, ForbiddenReport, ItemReport, Measure, Origins,
    Problem, Rate, RecordReport, Score, Shown, ShownEntry, Sums, Vectors, score_by,
};
use crate::slice::heading;
use crate::worker::collect::Collected;
use std::collections::{BTreeMap, BTreeSet};

/// Stale requests of a case that are told; of the first in full, of the others in a line.
const STALE_MAX: usize = 5;

/// The report of a case that could not be asked about.
pub(super) fn broken(name: &str, why: Broken) -> CaseReport {
    CaseReport {
        name: name.to_owned(),
        about: why.about,
        format: String::new(),
        language: String::new(),
        answers: Origins::default(),
        outcome: CaseOutcome::Broken,
        problems: vec![problem("broken", true, why.what)],
        sums: Sums::default(),
        items: Vec::new(),
        forbidden: Vec::new(),
        records: Vec::new(),
    }
}

/// Judges a case by what was `heard` of its slices, in their order.
pub(super) fn judge(case: &Prepared, heard: Vec<Heard>) -> (CaseReport, Shown) {
    let (mut sums, mut answers) = (Sums::default(), Origins::default());
    let entries = Entries::of(&case.conversations);
    let mut problems: Vec<Problem> = case.findings.iter().map(of_cassette).collect();
    problems.extend(of_transcript(&case.conversations));
    problems.extend(quotes::problems(case));
    problems.extend(stale(case, &heard));
    let is_stale = heard.iter().any(|it| it.stale.is_some());
    let mut is_broken = false;
    let (mut states, mut records) = (BTreeMap::new(), Vec::new());
    let mut vectors = Vectors::new();
    let slices = case.conversations.iter().enumerate();
    let slices =
        slices.flat_map(|(at, it)| it.slices.iter().map(move |(cutting, _)| (at, cutting)));
    for (number, ((of, cutting), heard)) in (1..).zip(slices.zip(heard)) {
        sums.asks += heard.asks;
        answers += heard.answers;
        let used: BTreeSet<u32> =
            heard.records.iter().flat_map(|it| &it.evidence).map(|it| it.ordinal).collect();
        for entry in &cutting.entries {
            let state = match (&heard.failure, &heard.waits, &heard.stale) {
                (_, _, Some(_)) | (_, Some(_), _) => CoverageState::Pending,
                (Some(_), None, None) => CoverageState::Failed,
                (None, None, None) if used.contains(&entry.ordinal) => CoverageState::Extracted,
                (None, None, None) => CoverageState::Nothing,
            };
            let place = states.entry((of, entry.ordinal)).or_insert(state);
            // One in several parts is what its worst part is.
            *place = if badness(*place) < badness(state) { state } else { *place };
        }
        if let (Some(failure), None) = (&heard.failure, &heard.stale) {
            let detail = format!("slice {number}: {}: {}", failure.kind, failure.detail);
            problems.push(problem("slice-failed", true, detail));
        }
        if let Some(why) = &heard.waits {
            is_broken = true;
            problems.push(problem("not-answered", true, format!("slice {number}: {why}")));
        }
        let said = heard.findings.iter();
        problems.extend(said.map(|it| problem(&it.rule, false, format!("slice {number}: {it}"))));
        vectors.extend(heard.vectors);
        records.extend(heard.records.into_iter().map(|record| (of, record)));
    }
    let skipped: u64 = case.conversations.iter().map(|it| it.skipped.len() as u64).sum();
    states.values().for_each(|state| sums.coverage.add(*state, 1));
    sums.coverage.add(CoverageState::Skipped, skipped);
    records.sort_by_key(|(of, record)| entries.place(*of, first_entry(record)));
    let of: Vec<usize> = records.iter().map(|(of, _)| *of).collect();
    let records: Vec<Record> = records.into_iter().map(|(_, record)| record).collect();
    let scored = score_by(&case.gold, &records, &vectors);
    sums.tally = scored.tally;
    if !is_stale && !is_broken {
        let below = case.case.bars.below(&sums);
        problems.extend(below.iter().map(|it| below_bar(it, sums.rate(it.measure))));
        problems.extend(expected::problems(case, &records));
    }
    let outcome = match (is_broken, is_stale, problems.iter().any(|it| it.fails)) {
        (true, _, _) => CaseOutcome::Broken,
        (false, true, _) => CaseOutcome::Stale,
        (false, false, true) => CaseOutcome::Failed,
        (false, false, false) => CaseOutcome::Passed,
    };
    let (items, forbidden) = against(case, &scored, &records);
    let reports = records.iter().zip(of);
    let report = CaseReport {
        name: case.name.clone(),
        about: case.case.about.clone(),
        format: case.format.name().to_owned(),
        language: case.config.language.clone(),
        answers,
        outcome,
        problems,
        sums,
        items,
        forbidden,
        records: reports.map(|(it, of)| record(it, of, &entries, &scored)).collect(),
    };
    (report, entries.shown())
}

pub(super) fn problem(rule: &str, fails: bool, detail: String) -> Problem {
    Problem { rule: rule.to_owned(), fails, detail }
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

/// A cassette that is partly unreadable answers less than a person believes.
fn of_cassette(finding: &crate::domain::Finding) -> Problem {
    problem(&finding.rule, finding.severity == Severity::Error, finding.to_string())
}

fn of_transcript(conversations: &[Collected]) -> Vec<Problem> {
    let findings = conversations.iter().flat_map(|it| &it.findings);
    let findings = findings.filter(|it| it.severity >= Severity::Warning);
    findings.map(|it| problem(&it.rule, false, format!("transcript: {it}"))).collect()
}

/// The requests that no recording answers, and in what they differ from those that one does.
fn stale(case: &Prepared, heard: &[Heard]) -> Vec<Problem> {
    let slices = heard.len();
    let stale = (1..).zip(heard).filter_map(|(at, it)| Some((at, it.stale.as_ref()?)));
    let stale = stale.filter(|(_, request)| !request.is_embedding());
    let all = stale.clone().count();
    let mut problems = Vec::new();
    let model = &case.asking.model;
    if all > 0 && !case.cassette.names(model) {
        let detail = format!(
            "nothing is recorded for the model {model}: `annalist test --record --model {model}`"
        );
        problems.push(problem("stale", true, detail));
    }
    for (nth, (at, request)) in stale.take(STALE_MAX).enumerate() {
        let difference = case.cassette.difference(request);
        // The lines are those of a local file, which a person may have edited past the gate.
        let difference = case.gate.redact(&difference);
        let shown = match nth {
            0 => difference.as_str(),
            _ => difference.as_str().lines().next().unwrap_or_default(),
        };
        problems.push(problem(
            "stale",
            true,
            format!("slice {at} of {slices}: no answer; {shown}"),
        ));
    }
    let unembedded: usize = heard.iter().map(|it| it.unembedded).sum();
    if let (Some(embedder), 1..) = (&case.case.embeddings, unembedded) {
        // The texts of a question that has no answer are not all known.
        let least = if all > 0 { "at least " } else { "" };
        let texts = if unembedded == 1 { "text" } else { "texts" };
        let detail = format!(
            "the embeddings of {least}{unembedded} {texts} by {embedder} have no recording: `annalist test --record`"
        );
        problems.push(problem("stale", true, detail));
    }
    if all > STALE_MAX {
        let more = format!("and {} slices more", all - STALE_MAX);
        problems.push(problem("stale", true, more));
    }
    problems
}

fn below_bar(below: &Below, rate: Rate) -> Problem {
    let is = below.is.map_or("nothing to measure".to_owned(), |is| format!("{is:.4}"));
    let Rate { hits, of } = rate;
    let most = if below.measure == Measure::Quarantined { "at most" } else { "at least" };
    let detail = format!(
        "{} is {is} ({hits} of {of}); the bar is {most} {}",
        below.measure.name(),
        below.bar
    );
    problem("below-bar", true, detail)
}

/// The gold, each with the record that answers or says it.
fn against(
    case: &Prepared,
    scored: &Score,
    records: &[Record],
) -> (Vec<ItemReport>, Vec<ForbiddenReport>) {
    let places: BTreeMap<RecordId, usize> =
        records.iter().enumerate().rev().map(|(at, record)| (record.id, at)).collect();
    let place = |pairs: &[(String, RecordId)], id: &str| {
        let pair = pairs.iter().find(|(item, _)| item == id)?;
        places.get(&pair.1).copied()
    };
    let item = |it: &crate::score::Item| ItemReport {
        id: it.id.clone(),
        kind: it.kind,
        importance: it.importance,
        statement: it.statement.clone(),
        answered_by: place(&scored.answered, &it.id),
    };
    let forbidden = |it: &crate::score::Forbidden| ForbiddenReport {
        id: it.id.clone(),
        why: it.why,
        statement: it.statement.clone(),
        said_by: place(&scored.violated, &it.id),
    };
    (
        case.gold.items.iter().map(item).collect(),
        case.gold.forbidden.iter().map(forbidden).collect(),
    )
}

fn record(record: &Record, of: usize, entries: &Entries<'_>, scored: &Score) -> RecordReport {
    let answers = scored.answered.iter().find(|(_, by)| *by == record.id);
    let staged = record.state == RecordState::Staged;
    let evidence = record.evidence.iter().map(|it| EvidenceReport {
        field: it.field.clone(),
        entry: entries.place(of, it.ordinal),
        from: u32::try_from(it.bytes.start).unwrap_or(u32::MAX),
        to: u32::try_from(it.bytes.end).unwrap_or(u32::MAX),
        speaker: it.speaker,
        found: it.found,
    });
    RecordReport {
        id: record.id.to_string(),
        kind: record.claim.kind(),
        claim: record.claim.to_json(),
        state: record.state,
        reason: record.reason.clone(),
        answers: answers.filter(|_| staged).map(|(item, _)| item.clone()),
        evidence: evidence.collect(),
    }
}

/// The first entry that a record rests on; of its slice, if it rests on none.
fn first_entry(record: &Record) -> u32 {
    let first = record.evidence.iter().map(|it| it.ordinal).min();
    first.unwrap_or(record.provenance.entries.0)
}

/// The entries of all conversations of a case, numbered through.
struct Entries<'a> {
    by_place: BTreeMap<u32, &'a Entry>,
    /// The number of the first entry of each conversation.
    firsts: Vec<u32>,
}

impl<'a> Entries<'a> {
    fn of(conversations: &'a [Collected]) -> Entries<'a> {
        let mut entries = Entries { by_place: BTreeMap::new(), firsts: Vec::new() };
        let mut next = 0;
        for it in conversations {
            entries.firsts.push(next);
            let cut = it.slices.iter().flat_map(|(cutting, _)| &cutting.entries);
            for entry in cut.chain(&it.skipped) {
                entries.by_place.insert(next.saturating_add(entry.ordinal), entry);
            }
            let last = entries.by_place.last_key_value();
            next = last.map_or(0, |(place, _)| place.saturating_add(1));
        }
        entries
    }

    fn place(&self, conversation: usize, ordinal: u32) -> u32 {
        self.firsts.get(conversation).copied().unwrap_or_default().saturating_add(ordinal)
    }

    fn shown(&self) -> Shown {
        let entry = |(place, entry): (&u32, &&Entry)| ShownEntry {
            ordinal: *place,
            speaker: entry.speaker,
            label: heading(entry),
            text: entry.text.clone(),
        };
        Shown { entries: self.by_place.iter().map(entry).collect() }
    }
}
