//! Running totals of a replay. The progress bar reads them; the closing table prints them.

use crate::adapters::metrics::Meters;
use crate::config::Price;
use crate::domain::{
    ClaimKind, Coverage, CoverageState, Finding, SessionId, Severity, Skip, Usage,
};
use crate::privacy::Gate;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Minimum number of empty extractions that makes a model suspect; fewer may be chance.
const EMPTY_ANSWERS_MIN: u64 = 10;

/// Shared running totals. A lock suffices for a few additions per slice.
#[derive(Debug, Default)]
pub struct Tally {
    totals: Mutex<Totals>,
    pub(super) meters: Option<Arc<Meters>>,
}

/// Records by kind.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, JsonSchema, Serialize)]
pub struct ByKind {
    /// Staged decisions.
    pub decisions: u64,
    /// Staged discussions.
    pub discussions: u64,
    /// Staged attempts.
    pub attempts: u64,
    /// Staged requests.
    pub requests: u64,
}

impl ByKind {
    /// Sum of all kinds.
    pub fn total(&self) -> u64 {
        self.decisions + self.discussions + self.attempts + self.requests
    }

    /// Adds `count` records of `kind`.
    pub fn add(&mut self, kind: ClaimKind, count: u64) {
        *match kind {
            ClaimKind::Decision => &mut self.decisions,
            ClaimKind::Discussion => &mut self.discussions,
            ClaimKind::Attempt => &mut self.attempts,
            ClaimKind::Request => &mut self.requests,
        } += count;
    }
}

/// Tokens that went over the wire, as the endpoint counted them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, JsonSchema, Serialize)]
pub struct TokenTotals {
    /// Sent.
    pub sent: u64,
    /// Of those, cached by the provider.
    pub cached: u64,
    /// Answered.
    pub answered: u64,
    /// In a dry run: what would be sent, estimated.
    pub estimated: u64,
    /// In a dry run: what consolidation would send later, estimated.
    pub consolidation: u64,
}

/// A file that could not be read, or not whole.
#[derive(Clone, Debug, Eq, PartialEq, JsonSchema, Serialize)]
pub struct FileProblem {
    /// The file.
    pub path: String,
    /// The problem with it.
    pub problem: String,
}

/// A finding and its place.
#[derive(Clone, Debug, Eq, PartialEq, JsonSchema, Serialize)]
pub struct FindingPlace {
    /// The file.
    pub path: String,
    /// Line number, from 1, or 0 for the whole file.
    pub line: u32,
    /// Severity of the finding.
    pub severity: Severity,
    /// Rule of the finding.
    pub rule: String,
    /// The expectation.
    pub detail: String,
}

/// Number of failed slices of one kind, with an example.
#[derive(Clone, Debug, Default, Eq, PartialEq, JsonSchema, Serialize)]
pub struct FailureCount {
    /// Number of slices.
    pub slices: u64,
    /// Number of entries.
    pub entries: u64,
    /// Detail of one of these failures.
    pub example: String,
}

/// Everything that was counted.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct Totals {
    /// Files that were read.
    pub files: u64,
    /// Files that were passed over: not a transcript.
    pub files_passed_over: u64,
    /// The same files by reason: the client or kind of file that is not read, or what is wrong.
    pub files_not_read: BTreeMap<&'static str, u64>,
    /// Files that will be read.
    #[serde(skip)]
    pub files_planned: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Bytes that will be read.
    #[serde(skip)]
    pub bytes_planned: u64,
    /// Conversations.
    pub sessions: u64,
    /// Their ids.
    #[serde(skip)]
    pub sessions_read: BTreeSet<SessionId>,
    /// Conversations without a time, which `--since` left out.
    pub sessions_undated: u64,
    /// Conversations that name no folder, so that they are in namespace `default`.
    pub sessions_unfiled: u64,
    /// Entries of them.
    pub entries: u64,
    /// Slices that were cut.
    pub slices: u64,
    /// Of those, found done from before.
    pub slices_known: u64,
    /// Of those, done or failed now.
    #[serde(skip)]
    pub slices_done: u64,
    /// Slices more than those because a slice that was too long was cut in two.
    #[serde(skip)]
    pub slices_halved: u64,
    /// Of those, extracted now.
    #[serde(skip)]
    pub slices_extracted: u64,
    /// Of those, without a record, staged or quarantined.
    #[serde(skip)]
    pub slices_empty: u64,
    /// Calls of the model, paid for.
    pub calls: u64,
    /// Answers taken from the journal instead.
    pub journaled: u64,
    /// What became of every entry.
    pub coverage: Coverage,
    /// Staged records by kind.
    pub records: ByKind,
    /// Records that were not proven.
    pub quarantined: u64,
    /// Tokens.
    pub tokens: TokenTotals,
    /// US dollars; `null` where the price of the model is not known.
    pub cost: Option<f64>,
    /// Day on which the price was read, if it is a list price.
    #[serde(skip)]
    pub price_read_on: Option<&'static str>,
    /// What the gate masked, by rule.
    pub masked: BTreeMap<&'static str, u64>,
    /// Findings by rule.
    pub findings: BTreeMap<String, u64>,
    /// The places of the first findings, the most severe first.
    pub places: Vec<FindingPlace>,
    /// Skipped entries by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Failed slices by kind.
    pub failures: BTreeMap<String, FailureCount>,
    /// Slices that wait at a cap, by cap.
    pub waiting: BTreeMap<String, u64>,
    /// Files with problems.
    pub problems: Vec<FileProblem>,
    /// Readable files without a single entry.
    pub empty: Vec<FileProblem>,
}

/// Maximum number of places of findings to keep.
const PLACES_MAX: usize = 100;

impl Tally {
    /// Creates a tally that also reports calls to `meters`.
    pub fn metered(meters: Arc<Meters>) -> Tally {
        Tally { totals: Mutex::default(), meters: Some(meters) }
    }

    /// Changes the counts.
    pub fn with<T>(&self, change: impl FnOnce(&mut Totals) -> T) -> T {
        change(&mut self.totals.lock())
    }

    /// Returns a snapshot of the counts.
    pub fn totals(&self) -> Totals {
        self.with(|totals| totals.clone())
    }

    /// Records a problem of a file.
    pub(crate) fn problem(&self, path: &str, problem: String) {
        let [path, problem] =
            [path, &problem].map(|it| Gate::new(&[]).redact(it).as_str().to_owned());
        self.with(|totals| totals.problems.push(FileProblem { path, problem }));
    }

    /// Counts a finding.
    pub fn finding(&self, finding: &Finding) {
        self.with(|totals| *totals.findings.entry(finding.rule.to_string()).or_default() += 1);
    }

    /// Counts a finding in a file and keeps its place, in order of severity.
    pub(crate) fn finding_in(&self, path: &str, finding: &Finding) {
        self.finding(finding);
        let Finding { severity, line, .. } = *finding;
        let last = self.with(|totals| totals.places.get(PLACES_MAX - 1).map(|it| it.severity));
        // Files without entries have their own list.
        if finding.rule == "no-entries" || last.is_some_and(|last| severity <= last) {
            return;
        }
        let [path, detail] =
            [path, &finding.detail].map(|it| Gate::new(&[]).redact(it).as_str().to_owned());
        let rule = finding.rule.to_string();
        let place = FindingPlace { path, line, severity, rule, detail };
        self.with(|Totals { places, .. }| {
            if !places.contains(&place) {
                let at = places.partition_point(|it| severity <= it.severity);
                places.insert(at, place);
                places.truncate(PLACES_MAX);
            }
        });
    }

    /// Counts a paid call.
    pub fn call(&self, usage: Usage, cost_micros: u64) {
        self.with(|totals| {
            totals.calls += 1;
            totals.tokens.sent += usage.prompt_tokens;
            totals.tokens.cached += usage.cached_tokens;
            totals.tokens.answered += usage.completion_tokens;
            if let Some(cost) = &mut totals.cost {
                *cost += cost_micros as f64 / 1e6;
            }
        });
    }
}

impl Totals {
    /// Rewinds to `before`, the totals before a file was read. The `entries` and `slices` of
    /// the same session that it counts from another file become copies of what this file has.
    pub(crate) fn read_again(&mut self, before: &Totals, entries: u64, slices: u64) {
        self.files = before.files;
        self.bytes = before.bytes;
        self.sessions = before.sessions - u64::from(entries > 0);
        self.entries = before.entries;
        self.slices = before.slices - slices;
        self.masked.clone_from(&before.masked);
        self.skipped.clone_from(&before.skipped);
        self.coverage = before.coverage;
        if entries > 0 {
            self.coverage.add(CoverageState::Skipped, entries);
            *self.skipped.entry(Skip::Copied.name()).or_default() += entries;
        }
    }

    /// Starts counting cost, if the price is known.
    pub(crate) fn count_cost(&mut self, price: Option<Price>) {
        if let Some(price) = price {
            self.cost.get_or_insert_default();
            self.price_read_on = price.read_on;
        }
    }

    /// True if enough answers came and all were empty, which makes the model suspect.
    pub fn only_empty_answers(&self) -> bool {
        EMPTY_ANSWERS_MIN <= self.slices_extracted && self.slices_empty == self.slices_extracted
    }

    /// Slices that have not ended.
    pub fn slices_open(&self) -> u64 {
        (self.slices + self.slices_halved).saturating_sub(self.slices_done)
    }

    /// True if every entry is accounted for.
    pub fn balance(&self) -> bool {
        self.coverage.total() == self.entries
    }

    /// True if something needs a person's attention.
    pub fn failed(&self) -> bool {
        let waits = !self.waiting.is_empty() || self.entries == 0 && !self.empty.is_empty();
        self.coverage.failed > 0 || waits || !self.problems.is_empty() || !self.balance()
    }
}
