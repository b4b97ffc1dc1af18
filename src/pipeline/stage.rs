//! What a slice came to, as it is stored: the run, what became of each entry, the records.

use super::cut::places;
use super::extractor::Extractor;
use super::model_client::Spending;
use crate::domain::{
    CoverageState, Entry, Finding, ModelError, OutputMode, Record, RunId, RunState, Slice,
    Timestamp,
};
use crate::extract::SCHEMA_VERSION;
use crate::slicing::Cutting;
use crate::store::{CoveredEntry, Run, RunFailure, Staging};
use std::collections::BTreeSet;

/// The name under which a slice is stored that was cut in two.
pub(super) const CUT_IN_TWO: &str = "cut-in-two";

/// One asking about a slice: which run, which try, and what it cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunAttempt {
    pub(super) run: RunId,
    /// 0, and one more each time the slice was asked afresh.
    pub(super) generation: u32,
    pub(super) spent: Spending,
    pub(super) started_at: Timestamp,
}

impl Extractor {
    /// `cutting` was extracted, be it to nothing.
    pub(super) fn extracted(
        &self,
        cutting: Cutting,
        of: RunAttempt,
        (records, findings, rung): (Vec<Record>, Vec<Finding>, OutputMode),
    ) -> Staging {
        let mut run = self.run(&cutting.slice, of);
        (run.rung, run.findings) = (rung, findings);
        Staging { run, entries: covered(cutting.entries, &records), records }
    }

    /// `cutting` failed for good.
    pub(super) fn failed(
        &self,
        cutting: Cutting,
        of: RunAttempt,
        (failure, findings): (RunFailure, Vec<Finding>),
    ) -> Staging {
        let mut run = self.run(&cutting.slice, of);
        let entries = failed(cutting.entries, &failure.kind);
        (run.state, run.findings, run.failure) = (RunState::Failed, findings, Some(failure));
        Staging { run, entries, records: Vec::new() }
    }

    /// `slice` was too long; others take its place and cover its entries.
    pub(super) fn cut_in_two(&self, slice: &Slice, of: RunAttempt, error: ModelError) -> Staging {
        let mut run = self.run(slice, of);
        run.failure = Some(RunFailure { kind: CUT_IN_TWO.to_owned(), detail: error.detail });
        Staging { run, entries: Vec::new(), records: Vec::new() }
    }

    fn run(&self, slice: &Slice, of: RunAttempt) -> Run {
        let (first, last) = places(slice);
        Run {
            id: of.run,
            session: slice.session,
            slice: slice.id,
            index: slice.index,
            first,
            last,
            asking: self.asking_digest,
            model: self.asking.model.clone(),
            prompt_id: self.asking.prompts().id().to_owned(),
            prompt_version: self.asking.prompts().version(),
            prompt_digest: Some(self.asking.prompts().digest()),
            schema_version: SCHEMA_VERSION,
            rung: self.client.output_modes.rung(),
            generation: of.generation,
            asks: of.spent.asks,
            calls: of.spent.calls,
            usage: of.spent.usage,
            cost_micros: of.spent.cost_micros,
            state: RunState::Done,
            failure: None,
            findings: Vec::new(),
            started_at: of.started_at,
            finished_at: (self.client.clock)(),
        }
    }
}

/// An entry that a record rests on is extracted; of the others the model kept nothing.
fn covered(entries: Vec<Entry>, records: &[Record]) -> Vec<CoveredEntry> {
    let evidence = records.iter().flat_map(|record| &record.evidence);
    let used: BTreeSet<u32> = evidence.map(|evidence| evidence.ordinal).collect();
    let state = |entry: &Entry| match used.contains(&entry.ordinal) {
        true => CoverageState::Extracted,
        false => CoverageState::Nothing,
    };
    let cover = |entry: Entry| CoveredEntry { state: state(&entry), entry, reason: None };
    entries.into_iter().map(cover).collect()
}

fn failed(entries: Vec<Entry>, kind: &str) -> Vec<CoveredEntry> {
    let (state, reason) = (CoverageState::Failed, Some(kind.to_owned()));
    let cover = |entry| CoveredEntry { entry, state, reason: reason.clone() };
    entries.into_iter().map(cover).collect()
}
