//! Records, runs and cards as JSON and as table rows.

use crate::cli::output::{
    BOLD, DIM, Failure, GREEN, Row, YELLOW, day, dollars, line, short, shorten,
};
use crate::domain::{Claim, Digest, Finding, OutputMode, Record, RecordState, RunState, Usage};
use crate::memory_card::Card;
use crate::privacy::Redacted;
use crate::rows::RecordRow;
use crate::store::StoredRun;
use schemars::JsonSchema;
use serde::Serialize;

const HEADLINE_LETTERS: usize = 80;

/// A run's prompt, with the digest of its text: an edited one may have kept its version.
#[derive(JsonSchema, Serialize)]
pub(super) struct RunPromptRow<'a> {
    id: &'a str,
    version: u32,
    digest: Option<String>,
}

impl RunPromptRow<'_> {
    pub(super) fn line(&self) -> String {
        let digest = self.digest.as_ref().map(|digest| format!(" ({digest:.8})"));
        format!("{} v{}{}", self.id, self.version, digest.unwrap_or_default())
    }
}

impl Row for RecordRow<'_> {
    const HEADER: &'static [&'static str] =
        &["id", "when", "kind", "project", "session", "score", "claim"];
    const SPARE: &'static [usize] = &[3, 5, 4];

    fn cells(&self) -> Vec<String> {
        let doubt = if self.state == RecordState::Quarantined { "? " } else { "" };
        vec![
            short(&self.id),
            day(self.at.as_deref()),
            kind(self.claim),
            self.namespace.to_owned(),
            short(&self.session),
            format!("{:.2}", self.score),
            format!("{doubt}{}", shorten(self.claim.headline(), HEADLINE_LETTERS)),
        ]
    }
}

/// A run, as JSON and in a list.
#[derive(JsonSchema, Serialize)]
pub(in crate::cli) struct RunRow<'a> {
    pub(super) run: Digest,
    session: Digest,
    pub(super) slice: Digest,
    current: bool,
    entries: (u32, u32),
    pub(super) model: &'a str,
    pub(super) prompt: RunPromptRow<'a>,
    schema_version: u32,
    rung: OutputMode,
    state: RunState,
    failure: Option<FailureRow<'a>>,
    asks: u32,
    calls: u32,
    usage: Usage,
    cost: f64,
    findings: &'a [Finding],
    finished_at: String,
}

#[derive(JsonSchema, Serialize)]
struct FailureRow<'a> {
    kind: &'a str,
    detail: &'a str,
}

impl<'a> RunRow<'a> {
    pub(in crate::cli) fn of(stored: &'a StoredRun) -> RunRow<'a> {
        let run = &stored.run;
        let failure = run.failure.as_ref();
        RunRow {
            run: run.id.0,
            session: run.session.0,
            slice: run.slice.0,
            current: stored.current,
            entries: (run.first.0, run.last.0),
            model: &run.model,
            prompt: RunPromptRow {
                id: &run.prompt_id,
                version: run.prompt_version,
                digest: run.prompt_digest.map(|digest| digest.to_string()),
            },
            schema_version: run.schema_version,
            rung: run.rung,
            state: run.state,
            failure: failure.map(|it| FailureRow { kind: &it.kind, detail: &it.detail }),
            asks: run.asks,
            calls: run.calls,
            usage: run.usage,
            cost: dollars(run.cost_micros),
            findings: &run.findings,
            finished_at: run.finished_at.to_string(),
        }
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
            self.prompt.line(),
            state.to_owned(),
            self.calls.to_string(),
        ]
    }
}

/// The difference of two runs, as JSON.
#[derive(JsonSchema, Serialize)]
pub(in crate::cli) struct RunDiff<'a> {
    pub(super) old: RunRow<'a>,
    pub(super) new: RunRow<'a>,
    pub(super) same: usize,
    pub(super) gone: Vec<RecordRow<'a>>,
    pub(super) added: Vec<RecordRow<'a>>,
}

/// A session's memory card, as JSON.
#[derive(JsonSchema, Serialize)]
pub(in crate::cli) struct CardRow<'a> {
    pub(super) session: Digest,
    pub(super) name: &'a Redacted,
    pub(super) namespace: &'a str,
    pub(super) path: &'a str,
    pub(super) started_at: Option<String>,
    pub(super) entries: u32,
    pub(super) due: bool,
    pub(super) card: Card,
}

pub(in crate::cli) fn kind(claim: &Claim) -> String {
    match claim {
        Claim::Attempt(attempt) if attempt.succeeded => "attempt ✓".to_owned(),
        Claim::Attempt(_) => "attempt ✗".to_owned(),
        Claim::Decision(_) | Claim::Discussion(_) | Claim::Request(_) => {
            claim.kind().name().to_owned()
        }
    }
}

pub(in crate::cli) fn print_claim(record: &Record) -> Result<(), Failure> {
    let state = match record.state {
        RecordState::Staged => format!("{GREEN}staged{GREEN:#}"),
        RecordState::Quarantined => format!("{YELLOW}quarantined{YELLOW:#}"),
        RecordState::Replaced => format!("{DIM}replaced{DIM:#}"),
    };
    line(&format!(
        "{BOLD}{}{BOLD:#} {}  {state}, score {:.2}",
        kind(&record.claim),
        record.id,
        record.score
    ))?;
    if let Some(reason) = &record.reason {
        line(&format!("  {YELLOW}{reason}{YELLOW:#}"))?;
    }
    let fields = record.claim.strings();
    fields.iter().try_for_each(|(field, text)| line(&format!("  {DIM}{field}{DIM:#} {text}")))
}
