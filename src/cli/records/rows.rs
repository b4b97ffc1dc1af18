//! Records, runs and cards as JSON and as table rows.

use crate::cli::output::{
    BOLD, DIM, GREEN, Result, Row, YELLOW, day, dollars, json_row, line, short, shorten, time,
};
use crate::domain::{Digest, Finding, OutputMode, RecordState, RunState, Usage};
use crate::memory_card::Card;
use crate::privacy::Redacted;
use crate::rows::{RecordRow, kind_in_words};
use crate::store::{Run, RunFailure, StoredCard, StoredRecord, StoredRun};
use schemars::JsonSchema;
use serde::Serialize;

const HEADLINE_LETTERS: usize = 80;

json_row! {
    /// A run's prompt, with the digest of its text: an edited one may have kept its version.
    pub(super) struct RunPromptRow<'a> of run: &'a Run {
        id: &'a str = &run.prompt_id,
        version: u32 = run.prompt_version,
        digest: Option<String> = run.prompt_digest.map(|digest| digest.to_string()),
    }
}

impl Row for RecordRow<'_> {
    const HEADER: &'static [&'static str] =
        &["id", "when", "kind", "project", "session", "score", "claim"];
    const SPARE: &'static [usize] = &[3, 5, 4];

    fn cells(&self) -> Vec<String> {
        let mark = match self.state {
            RecordState::Quarantined => "? ",
            RecordState::Staged if self.discarded => "· ",
            RecordState::Staged | RecordState::Replaced => "",
        };
        vec![
            short(&self.id),
            day(self.at.as_deref()),
            self.kind_in_words.clone(),
            self.namespace.to_owned(),
            short(&self.session),
            format!("{:.2}", self.score),
            format!("{mark}{}", shorten(self.claim.headline(), HEADLINE_LETTERS)),
        ]
    }
}

json_row! {
    /// A run, as JSON and in a list.
    pub(crate) struct RunRow<'a> of it: &'a StoredRun {
        pub(super) run: Digest = it.run.id.0,
        session: Digest = it.run.session.0,
        pub(super) slice: Digest = it.run.slice.0,
        current: bool = it.current,
        entries: (u32, u32) = (it.run.first.0, it.run.last.0),
        pub(super) model: &'a str = &it.run.model,
        prompt: RunPromptRow<'a> = RunPromptRow::of(&it.run),
        #[serde(skip)]
        pub(super) prompt_in_words: String = it.run.prompt(),
        schema_version: u32 = it.run.schema_version,
        rung: OutputMode = it.run.rung,
        state: RunState = it.run.state,
        failure: Option<FailureRow<'a>> = it.run.failure.as_ref().map(FailureRow::of),
        asks: u32 = it.run.asks,
        calls: u32 = it.run.calls,
        usage: Usage = it.run.usage,
        cost: f64 = dollars(it.run.cost_micros),
        findings: &'a [Finding] = &it.run.findings,
        finished_at: String = it.run.finished_at.to_string(),
    }
}

json_row! {
    struct FailureRow<'a> of it: &'a RunFailure {
        kind: &'a str = &it.kind,
        detail: &'a str = &it.detail,
    }
}

impl Row for RunRow<'_> {
    const HEADER: &'static [&'static str] =
        &["run", "session", "entries", "model", "prompt", "state", "calls"];

    fn cells(&self) -> Vec<String> {
        let state = if self.current { self.state.name() } else { "replaced" };
        vec![
            short(&self.run),
            short(&self.session),
            format!("{}–{}", self.entries.0, self.entries.1),
            self.model.to_owned(),
            self.prompt_in_words.clone(),
            state.to_owned(),
            self.calls.to_string(),
        ]
    }
}

/// The difference of two runs, as JSON.
#[derive(JsonSchema, Serialize)]
pub(crate) struct RunDiff<'a> {
    pub(super) old: RunRow<'a>,
    pub(super) new: RunRow<'a>,
    pub(super) same: usize,
    pub(super) gone: Vec<RecordRow<'a>>,
    pub(super) added: Vec<RecordRow<'a>>,
}

json_row! {
    /// A session's memory card, as JSON.
    pub(crate) struct CardRow<'a> of it: (&'a StoredCard, Card) {
        pub(super) session: Digest = it.0.session.id.0,
        name: &'a Redacted = &it.0.session.native_id,
        pub(super) namespace: &'a str = &it.0.session.namespace,
        path: &'a str = &it.0.session.path,
        pub(super) started_at: Option<String> = time(it.0.session.started_at),
        entries: u32 = it.0.entries,
        pub(super) due: bool = it.0.due,
        pub(super) card: Card = it.1,
    }
}

pub(crate) fn print_claim(stored: &StoredRecord) -> Result<()> {
    let record = &stored.record;
    let state = match record.state {
        RecordState::Staged if stored.is_discarded => format!("{DIM}discarded{DIM:#}"),
        RecordState::Staged => format!("{GREEN}staged{GREEN:#}"),
        RecordState::Quarantined => format!("{YELLOW}quarantined{YELLOW:#}"),
        RecordState::Replaced => format!("{DIM}replaced{DIM:#}"),
    };
    line(&format!(
        "{BOLD}{}{BOLD:#} {}  {state}, score {:.2}",
        kind_in_words(&record.claim, record.is_noted()),
        record.id,
        record.score
    ))?;
    if let Some(reason) = &record.reason {
        line(&format!("  {YELLOW}{reason}{YELLOW:#}"))?;
    }
    let fields = record.claim.strings();
    fields.iter().try_for_each(|(field, text)| line(&format!("  {DIM}{field}{DIM:#} {text}")))
}
