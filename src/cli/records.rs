//! `annalist records`: list, show, export, diff, runs, cards; and `annalist why`.

use super::output::{self, BOLD, DIM, Failure, GREEN, RED, Row, YELLOW, pairs, short, shorten};
use super::settings;
use crate::domain::{
    Claim, ClaimKind, Digest, Entry, EntryKind, Evidence, Finding, Format, Match, OutputMode,
    Record, RecordState, RunState, Speaker, Timestamp, Usage,
};
use crate::memory_card::Card;
use crate::privacy::Redacted;
use crate::store::{
    IdPrefix, OpenMode, PrefixLookup, RecordFilter, RecordSources, Store, StoredCard, StoredRecord,
    StoredRun,
};
use clap::{Subcommand, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

/// Letters of a claim in a list.
const HEADLINE_LETTERS: usize = 80;
/// Letters of a card's title, and of the words below it.
const CARD_LETTERS: usize = 100;
/// Letters of an entry before and after the words of evidence.
const AROUND_LETTERS: usize = 60;
/// Maximum number of runs in a list.
const RUNS_MAX: u32 = 100_000;

#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  annalist records --kind decision --since 2026-11-01
  annalist records show 3fa9
  annalist records export --format jsonl > records.jsonl
  annalist records diff OLD_RUN NEW_RUN
  annalist records cards --namespace roofs"
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    filter: Filter,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List records (the default)
    List {
        #[command(flatten)]
        filter: Filter,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one record whole
    Show {
        /// Its id, or the beginning of it
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write records for other programs
    Export {
        #[command(flatten)]
        filter: Filter,
        /// Output format
        #[arg(long, value_enum, default_value_t = Export::Jsonl)]
        format: Export,
    },
    /// Show what two runs of the same slice have in common and where they differ
    Diff {
        /// The older run, or the beginning of its id
        old: String,
        /// The newer run
        new: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the memory cards of sessions: what each was about
    Cards {
        #[command(flatten)]
        filter: CardFilter,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List runs
    Runs {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Export {
    /// One JSON object a line
    Jsonl,
}

#[derive(Debug, Default, clap::Args)]
struct Filter {
    /// Only records of this kind
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Only sessions whose id begins so
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only what was said on this day or later
    #[arg(long, value_name = "DATE", value_parser = super::replay::date)]
    since: Option<Timestamp>,
    /// Only this namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Only records in this state, instead of staged and quarantined
    #[arg(long, value_enum)]
    state: Option<State>,
    /// At most so many
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
}

#[derive(Debug, Default, clap::Args)]
struct CardFilter {
    /// Only sessions whose id begins so
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only this namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// A choice and its reason
    Decision,
    /// A debate
    Discussion,
    /// Something that was tried
    Attempt,
    /// Something that was asked for
    Request,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum State {
    /// Proven
    Staged,
    /// Not proven
    Quarantined,
    /// Of a run that a newer one replaced
    Replaced,
}

impl Filter {
    fn read(&self) -> Result<RecordFilter, Failure> {
        let kind = self.kind.map(|kind| match kind {
            Kind::Decision => ClaimKind::Decision,
            Kind::Discussion => ClaimKind::Discussion,
            Kind::Attempt => ClaimKind::Attempt,
            Kind::Request => ClaimKind::Request,
        });
        let state = self.state.map(|state| match state {
            State::Staged => RecordState::Staged,
            State::Quarantined => RecordState::Quarantined,
            State::Replaced => RecordState::Replaced,
        });
        Ok(RecordFilter {
            kind,
            session: self.session.as_deref().map(prefix).transpose()?,
            since: self.since,
            namespace: self.namespace.clone(),
            states: state.into_iter().collect(),
            limit: self.limit,
        })
    }
}

/// A record, as JSON and in a list.
#[derive(JsonSchema, Serialize)]
pub(super) struct RecordRow<'a> {
    id: Digest,
    kind: ClaimKind,
    claim: &'a Claim,
    state: RecordState,
    reason: Option<&'a str>,
    score: f64,
    namespace: &'a str,
    session: Digest,
    run: Digest,
    slice: Digest,
    entries: (u32, u32),
    at: Option<String>,
    path: &'a str,
    format: Format,
    model: &'a str,
    prompt: PromptRow<'a>,
    extracted_at: String,
    evidence: Vec<EvidenceRow<'a>>,
}

#[derive(JsonSchema, Serialize)]
struct PromptRow<'a> {
    id: &'a str,
    version: u32,
}

/// A run's prompt, with the digest of its text: an edited one may have kept its version.
#[derive(JsonSchema, Serialize)]
struct RunPromptRow<'a> {
    id: &'a str,
    version: u32,
    digest: Option<String>,
}

impl RunPromptRow<'_> {
    fn line(&self) -> String {
        let digest = self.digest.as_ref().map(|digest| format!(" ({digest:.8})"));
        format!("{} v{}{}", self.id, self.version, digest.unwrap_or_default())
    }
}

#[derive(JsonSchema, Serialize)]
struct EvidenceRow<'a> {
    field: &'a str,
    entry: u32,
    line: u32,
    bytes: (usize, usize),
    speaker: Speaker,
    found: Match,
    words: &'a Redacted,
}

impl<'a> RecordRow<'a> {
    pub(super) fn of(stored: &'a StoredRecord) -> RecordRow<'a> {
        let Record { id, claim, provenance, evidence, score, state, reason } = &stored.record;
        let evidence = evidence.iter().map(|it| EvidenceRow {
            field: &it.field,
            entry: it.ordinal,
            line: it.line,
            bytes: (it.bytes.start, it.bytes.end),
            speaker: it.speaker,
            found: it.found,
            words: &it.words,
        });
        RecordRow {
            id: id.0,
            kind: claim.kind(),
            claim,
            state: *state,
            reason: reason.as_deref(),
            score: (score * 1000.0).round() / 1000.0,
            namespace: &provenance.namespace,
            session: provenance.session.0,
            run: provenance.run.0,
            slice: provenance.slice.0,
            entries: provenance.entries,
            at: provenance.at.map(|at| at.to_string()),
            path: &stored.path,
            format: stored.format,
            model: &stored.model,
            prompt: PromptRow { id: &stored.prompt.0, version: stored.prompt.1 },
            extracted_at: stored.extracted_at.to_string(),
            evidence: evidence.collect(),
        }
    }
}

impl Row for RecordRow<'_> {
    const HEADER: &'static [&'static str] = &["id", "when", "kind", "score", "claim"];

    fn cells(&self) -> Vec<String> {
        let doubt = if self.state == RecordState::Quarantined { "? " } else { "" };
        vec![
            short(&self.id),
            self.at.as_deref().and_then(|at| at.get(..10)).unwrap_or_default().to_owned(),
            kind(self.claim),
            format!("{:.2}", self.score),
            format!("{doubt}{}", shorten(self.claim.headline(), HEADLINE_LETTERS)),
        ]
    }
}

/// A run, as JSON and in a list.
#[derive(JsonSchema, Serialize)]
pub(super) struct RunRow<'a> {
    run: Digest,
    session: Digest,
    slice: Digest,
    current: bool,
    entries: (u32, u32),
    model: &'a str,
    prompt: RunPromptRow<'a>,
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
    pub(super) fn of(stored: &'a StoredRun) -> RunRow<'a> {
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
            cost: run.cost_micros as f64 / 1e6,
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
pub(super) struct RunDiff<'a> {
    old: RunRow<'a>,
    new: RunRow<'a>,
    same: usize,
    gone: Vec<RecordRow<'a>>,
    added: Vec<RecordRow<'a>>,
}

/// A session's memory card, as JSON.
#[derive(JsonSchema, Serialize)]
pub(super) struct CardRow<'a> {
    session: Digest,
    name: &'a Redacted,
    namespace: &'a str,
    path: &'a str,
    started_at: Option<String>,
    entries: u32,
    due: bool,
    card: Card,
}

/// A record with the entries that it rests on, as JSON.
#[derive(JsonSchema, Serialize)]
pub(super) struct WhyRow<'a> {
    #[serde(flatten)]
    record: RecordRow<'a>,
    sources: Vec<Option<EntryRow<'a>>>,
    schema_version: u32,
    rung: OutputMode,
}

#[derive(JsonSchema, Serialize)]
struct EntryRow<'a> {
    entry: u32,
    line: u32,
    speaker: Speaker,
    kind: EntryKind,
    at: Option<String>,
    text: &'a Redacted,
}

/// Reads the beginning of an id.
pub(super) fn prefix(text: &str) -> Result<IdPrefix, Failure> {
    text.parse().map_err(|error| Failure::usage(format!("`{text}`: {error}")))
}

/// The one match of an id's beginning, or why there is not exactly one.
pub(super) fn one<T>(found: PrefixLookup<T>, what: &str, id: &str) -> Result<T, Failure> {
    match found {
        PrefixLookup::One(one) => Ok(*one),
        PrefixLookup::None => {
            let list = match what {
                "run" => "records runs",
                "job" => "jobs",
                "plan" => "consolidate log",
                "memory" => "memory list",
                "session" => "status --all",
                _ => "records",
            };
            Err(Failure::usage(format!(
                "no {what} begins with `{id}`: `annalist {list}` lists them"
            )))
        }
        PrefixLookup::Many(ids) => {
            let ids: Vec<String> = ids.iter().map(short).collect();
            Err(Failure::usage(format!(
                "`{id}` fits more than one {what}: {}: give more digits",
                ids.join(", ")
            )))
        }
    }
}

pub(super) fn run(args: Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let config = settings::load(file)?;
    let store = settings::open_store(&config, OpenMode::Existing)?;
    settings::runtime()?.block_on(async {
        match args.command {
            None => list(&store, &args.filter, args.json).await,
            Some(Command::List { filter, json }) => list(&store, &filter, json).await,
            Some(Command::Show { id, json }) => show(&store, &id, json).await,
            Some(Command::Export { filter, format: Export::Jsonl }) => {
                export(&store, &filter).await
            }
            Some(Command::Diff { old, new, json }) => diff(&store, &old, &new, json).await,
            Some(Command::Runs { json }) => {
                let runs = store.runs(None, RUNS_MAX).await?;
                let rows: Vec<RunRow<'_>> = runs.iter().map(RunRow::of).collect();
                output::rows(&rows, json, "no runs: `annalist status` shows what was read")
            }
            Some(Command::Cards { filter, json }) => cards(&store, &filter, json).await,
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Lists every record of the store.
pub(super) fn list_all(file: Option<&Path>) -> Result<(), Failure> {
    let store = settings::open_store(&settings::load(file)?, OpenMode::Existing)?;
    settings::runtime()?.block_on(list(&store, &Filter::default(), false))
}

async fn list(store: &Store, filter: &Filter, as_json: bool) -> Result<(), Failure> {
    let records = store.records(filter.read()?).await?;
    let rows: Vec<RecordRow<'_>> = records.iter().map(RecordRow::of).collect();
    output::rows(&rows, as_json, "no records: `annalist status` shows what was read")?;
    let quarantined = rows.iter().filter(|it| it.state == RecordState::Quarantined).count();
    if quarantined > 0 && !as_json {
        output::note(&format!(
            "{YELLOW}?{YELLOW:#} {quarantined} quarantined: not proven, never used; \
             `annalist why ID` says why"
        ));
    }
    Ok(())
}

fn kind(claim: &Claim) -> String {
    match claim {
        Claim::Attempt(attempt) if attempt.succeeded => "attempt ✓".to_owned(),
        Claim::Attempt(_) => "attempt ✗".to_owned(),
        Claim::Decision(_) | Claim::Discussion(_) | Claim::Request(_) => {
            claim.kind().name().to_owned()
        }
    }
}

async fn show(store: &Store, id: &str, as_json: bool) -> Result<(), Failure> {
    let page = one(store.record(prefix(id)?).await?, "record", id)?;
    if as_json {
        return output::json(&RecordRow::of(&page.stored));
    }
    print_claim(&page.stored.record)?;
    output::note(&format!(
        "{DIM}annalist why {} shows the words it rests on{DIM:#}",
        short(&page.stored.record.id)
    ));
    Ok(())
}

/// Prints a record's claim, field by field.
fn print_claim(record: &Record) -> Result<(), Failure> {
    let state = match record.state {
        RecordState::Staged => format!("{GREEN}staged{GREEN:#}"),
        RecordState::Quarantined => format!("{YELLOW}quarantined{YELLOW:#}"),
        RecordState::Replaced => format!("{DIM}replaced{DIM:#}"),
    };
    output::line(&format!(
        "{BOLD}{}{BOLD:#} {}  {state}, score {:.2}",
        kind(&record.claim),
        record.id,
        record.score
    ))?;
    if let Some(reason) = &record.reason {
        output::line(&format!("  {YELLOW}{reason}{YELLOW:#}"))?;
    }
    let fields = record.claim.strings();
    fields
        .iter()
        .try_for_each(|(field, text)| output::line(&format!("  {DIM}{field}{DIM:#} {text}")))
}

async fn export(store: &Store, filter: &Filter) -> Result<(), Failure> {
    let each = |failed: &mut Option<Failure>, stored: StoredRecord| match output::json_line(
        &RecordRow::of(&stored),
    ) {
        Ok(()) => ControlFlow::Continue(()),
        Err(failure) => {
            *failed = Some(failure);
            ControlFlow::Break(())
        }
    };
    store.fold_records(filter.read()?, None, each).await?.map_or(Ok(()), Err)
}

async fn diff(store: &Store, old: &str, new: &str, as_json: bool) -> Result<(), Failure> {
    let from = one(store.run(prefix(old)?).await?, "run", old)?;
    let to = one(store.run(prefix(new)?).await?, "run", new)?;
    let (before, after) = store.diff(from.run.id, to.run.id).await?;
    let has = |list: &[StoredRecord], it: &StoredRecord| {
        list.iter().any(|other| other.record.claim == it.record.claim)
    };
    let gone = before.iter().filter(|it| !has(&after, it)).map(RecordRow::of);
    let added: Vec<_> = after.iter().filter(|it| !has(&before, it)).map(RecordRow::of).collect();
    let diff = RunDiff {
        old: RunRow::of(&from),
        new: RunRow::of(&to),
        same: after.len() - added.len(),
        gone: gone.collect(),
        added,
    };
    if as_json {
        return output::json(&diff);
    }
    let about = |it: &RunRow<'_>| format!("{} {} {}", short(&it.run), it.model, it.prompt.line());
    output::line(&format!(
        "{RED}- {}{RED:#}\n{GREEN}+ {}{GREEN:#}",
        about(&diff.old),
        about(&diff.new)
    ))?;
    if diff.old.slice != diff.new.slice {
        output::note("the two runs read different slices");
    }
    for (sign, style, list) in [("-", RED, &diff.gone), ("+", GREEN, &diff.added)] {
        for it in list {
            let (kind, headline) = (kind(it.claim), it.claim.headline());
            output::line(&format!("{style}{sign} {kind}: {headline}{style:#}"))?;
        }
    }
    output::note(&format!("{} the same", diff.same));
    Ok(())
}

async fn cards(store: &Store, filter: &CardFilter, as_json: bool) -> Result<(), Failure> {
    let id = filter.session.as_deref().map(prefix).transpose()?;
    let stored = store.cards(id, filter.namespace.clone()).await?;
    let row = |it: &'_ StoredCard| -> Result<Card, Failure> {
        serde_json::from_str(&it.card).map_err(|error| {
            let id = short(&it.session.id);
            Failure::failed(format!("the card of session {id} cannot be read: {error}"))
        })
    };
    let cards = stored.iter().map(row).collect::<Result<Vec<Card>, Failure>>()?;
    let rows = stored.iter().zip(cards).map(|(stored, card)| CardRow {
        session: stored.session.id.0,
        name: &stored.session.native_id,
        namespace: &stored.session.namespace,
        path: &stored.session.path,
        started_at: stored.session.started_at.map(|at| at.to_string()),
        entries: stored.entries,
        due: stored.due,
        card,
    });
    let rows: Vec<CardRow<'_>> = rows.collect();
    if as_json {
        return output::json(&rows);
    }
    if rows.is_empty() {
        output::note("no cards: `annalist replay` and `annalist worker` keep one of each session");
    }
    rows.iter().try_for_each(print_card)
}

fn print_card(row: &CardRow<'_>) -> Result<(), Failure> {
    let due = if row.due { ", has grown since" } else { "" };
    output::line(&format!("{BOLD}{}{BOLD:#}", shorten(row.card.title.as_str(), CARD_LETTERS)))?;
    let day = row.started_at.as_deref().and_then(|at| at.get(..10)).unwrap_or_default();
    let id = short(&row.session);
    let about: Vec<&str> =
        [id.as_str(), day, row.namespace].into_iter().filter(|it| !it.is_empty()).collect();
    output::line(&format!("  {DIM}{}{due}{DIM:#}", about.join("  ")))?;
    for (name, items) in [("decided", &row.card.decisions), ("to do", &row.card.todos)] {
        for item in items {
            let item = shorten(item.as_str(), CARD_LETTERS);
            output::line(&format!("  {DIM}{name}{DIM:#} {item}"))?;
        }
    }
    let names: Vec<&str> = row.card.entities.iter().map(Redacted::as_str).collect();
    match names.is_empty() {
        true => Ok(()),
        false => output::line(&format!("  {DIM}names{DIM:#} {}", names.join(", "))),
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: annalist why 3fa9")]
pub(super) struct WhyArgs {
    /// The record's id, or the beginning of it
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn why(args: &WhyArgs, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let config = settings::load(file)?;
    let store = settings::open_store(&config, OpenMode::Existing)?;
    let found = settings::runtime()?.block_on(store.why(prefix(&args.id)?))?;
    let why = one(found, "record", &args.id)?;
    if args.json { output::json(&why_row(&why)) } else { print_why(&why) }?;
    Ok(ExitCode::SUCCESS)
}

fn why_row(why: &RecordSources) -> WhyRow<'_> {
    let sources = why.entries.iter().map(|entry| {
        entry.as_ref().map(|it| EntryRow {
            entry: it.ordinal,
            line: it.line,
            speaker: it.speaker,
            kind: it.kind,
            at: it.at.map(|at| at.to_string()),
            text: &it.text,
        })
    });
    let run = &why.page.run.run;
    WhyRow {
        record: RecordRow::of(&why.page.stored),
        sources: sources.collect(),
        schema_version: run.schema_version,
        rung: run.rung,
    }
}

fn print_why(why: &RecordSources) -> Result<(), Failure> {
    let stored = &why.page.stored;
    print_claim(&stored.record)?;
    output::line("")?;
    for (evidence, entry) in stored.record.evidence.iter().zip(&why.entries) {
        let when = entry.as_ref().and_then(|entry| entry.at);
        let when = when.map(|at| format!(", {at}")).unwrap_or_default();
        output::line(&format!(
            "{BOLD}{}{BOLD:#} {DIM}rests on entry {} ({}:{}), said by {}{when}, found as {}{DIM:#}",
            evidence.field,
            evidence.ordinal,
            stored.path,
            evidence.line,
            evidence.speaker.name(),
            evidence.found.name()
        ))?;
        let (before, after) = around(entry.as_ref(), evidence);
        let words = evidence.words.as_str().replace('\n', "\n    ");
        output::line(&format!("    {DIM}{before}{DIM:#}{words}{DIM}{after}{DIM:#}"))?;
    }
    if stored.record.evidence.is_empty() {
        output::line("nothing in the slice supports it")?;
    }
    let (run, session) = (&why.page.run.run, &why.page.session);
    output::line("")?;
    let title = session.title.as_ref().map(|title| format!(" “{}”", title.as_str()));
    let (name, title) = (session.native_id.as_str(), title.unwrap_or_default());
    let prompt = run.prompt();
    let schema = run.schema_version;
    pairs([
        ("session", format!("{name} {}{title}", session.format)),
        ("namespace", session.namespace.clone()),
        ("run", format!("{}, entries {}–{}", run.id, run.first.0, run.last.0)),
        ("model", run.model.clone()),
        ("prompt", format!("{prompt}, schema version {schema}")),
        ("extracted", run.finished_at.to_string()),
    ])
}

/// The line around the words of evidence, as far as it is short.
fn around(entry: Option<&Entry>, evidence: &Evidence) -> (String, String) {
    let Some(text) = entry.map(|entry| entry.text.as_str()) else { return Default::default() };
    // The entry must still have the words that were copied.
    if text.get(evidence.bytes.clone()) != Some(evidence.words.as_str()) {
        return Default::default();
    }
    let in_line = |letter: &char| *letter != '\n';
    let before = text[..evidence.bytes.start].chars().rev().take_while(in_line);
    let before: Vec<char> = before.take(AROUND_LETTERS).collect();
    let after = text[evidence.bytes.end..].chars().take_while(in_line);
    (before.into_iter().rev().collect(), after.take(AROUND_LETTERS).collect())
}
