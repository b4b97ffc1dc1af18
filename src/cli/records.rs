//! `annalist records`: list, show, export, diff, runs, cards.

mod cards;
mod runs;

pub(super) use runs::run_json;

use super::output::{self, BOLD, DIM, Failure, GREEN, YELLOW, short, shorten};
use super::settings;
use crate::domain::{Claim, ClaimKind, Record, RecordState, Timestamp};
use crate::edge::store::{Found, IdPrefix, Open, RecordFilter, Store, StoredRecord};
use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

/// Letters of a claim in a list.
const HEADLINE_LETTERS: usize = 80;

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
        /// How
        #[arg(long, value_enum, default_value_t = Export::Jsonl)]
        format: Export,
    },
    /// Show what two runs of the same slice have in common and what not
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
        filter: cards::Filter,
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
    /// Only this kind
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

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// What was chosen, and why
    Decision,
    /// What was debated
    Discussion,
    /// What was tried
    Attempt,
    /// What was asked for
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

/// The beginning of an id as a person types it.
pub(super) fn prefix(text: &str) -> Result<IdPrefix, Failure> {
    text.parse().map_err(|error| Failure::usage(format!("`{text}`: {error}")))
}

/// The one thing that was found, or a line that says why there is not one.
pub(super) fn one<T, I: ToString>(found: Found<T, I>, what: &str, id: &str) -> Result<T, Failure> {
    match found {
        Found::One(one) => Ok(*one),
        Found::None => {
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
        Found::Many(ids) => {
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
    let store = settings::open_store(&config, Open::Existing)?;
    let runtime = settings::runtime()?;
    runtime.block_on(async {
        match args.command {
            None => list(&store, &args.filter, args.json).await,
            Some(Command::List { filter, json }) => list(&store, &filter, json).await,
            Some(Command::Show { id, json }) => show(&store, &id, json).await,
            Some(Command::Export { filter, format: Export::Jsonl }) => {
                export(&store, &filter).await
            }
            Some(Command::Diff { old, new, json }) => runs::diff(&store, &old, &new, json).await,
            Some(Command::Runs { json }) => runs::list(&store, json).await,
            Some(Command::Cards { filter, json }) => cards::list(&store, &filter, json).await,
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Lists every record of the store.
pub(super) fn list_all(file: Option<&Path>) -> Result<(), Failure> {
    let store = settings::open_store(&settings::load(file)?, Open::Existing)?;
    settings::runtime()?.block_on(list(&store, &Filter::default(), false))
}

async fn list(store: &Store, filter: &Filter, as_json: bool) -> Result<(), Failure> {
    let records = store.records(filter.read()?).await?;
    if as_json {
        let all: Vec<Value> = records.iter().map(to_json).collect();
        return output::json(&all);
    }
    if records.is_empty() {
        output::note("no records: `annalist status` shows what was read");
        return Ok(());
    }
    let mut table = output::table(&["id", "when", "kind", "score", "claim"]);
    for stored in &records {
        let record = &stored.record;
        let when = record.provenance.at.map(Timestamp::day).unwrap_or_default();
        let doubt = if record.state == RecordState::Quarantined { "? " } else { "" };
        table.add_row([
            short(&record.id),
            when,
            kind(&record.claim),
            format!("{:.2}", record.score),
            format!("{doubt}{}", shorten(record.claim.headline(), HEADLINE_LETTERS)),
        ]);
    }
    output::print_table(&table)?;
    let quarantined =
        records.iter().filter(|it| it.record.state == RecordState::Quarantined).count();
    if quarantined > 0 {
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

/// A record as other programs read it.
pub(super) fn to_json(stored: &StoredRecord) -> Value {
    let Record { id, claim, provenance, evidence, score, state, reason } = &stored.record;
    json!({
        "id": id,
        "kind": claim.kind(),
        "claim": claim,
        "state": state,
        "reason": reason,
        "score": (score * 1000.0).round() / 1000.0,
        "namespace": provenance.namespace,
        "session": provenance.session,
        "run": provenance.run,
        "slice": provenance.slice,
        "entries": [provenance.entries.0, provenance.entries.1],
        "at": provenance.at.map(|at| at.to_string()),
        "path": stored.path,
        "format": stored.format,
        "model": stored.model,
        "prompt": { "id": stored.prompt.0, "version": stored.prompt.1 },
        "extracted_at": stored.extracted_at.to_string(),
        "evidence": evidence.iter().map(|it| json!({
            "field": it.field, "entry": it.ordinal, "line": it.line,
            "bytes": [it.bytes.start, it.bytes.end],
            "speaker": it.speaker, "found": it.found, "words": it.words,
        })).collect::<Vec<_>>(),
    })
}

async fn show(store: &Store, id: &str, as_json: bool) -> Result<(), Failure> {
    let page = one(store.record(prefix(id)?).await?, "record", id)?;
    if as_json {
        return output::json(&to_json(&page.stored));
    }
    print_claim(&page.stored.record)?;
    output::note(&format!(
        "{DIM}annalist why {} shows the words it rests on{DIM:#}",
        short(&page.stored.record.id)
    ));
    Ok(())
}

/// A claim, field by field.
pub(super) fn print_claim(record: &Record) -> Result<(), Failure> {
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
    for (field, text) in record.claim.strings() {
        output::line(&format!("  {DIM}{field}{DIM:#} {text}"))?;
    }
    Ok(())
}

async fn export(store: &Store, filter: &Filter) -> Result<(), Failure> {
    let each = |failed: &mut Option<Failure>, stored: StoredRecord| match output::line(
        &to_json(&stored).to_string(),
    ) {
        Ok(()) => ControlFlow::Continue(()),
        Err(failure) => {
            *failed = Some(failure);
            ControlFlow::Break(())
        }
    };
    store.fold_records(filter.read()?, None, each).await?.map_or(Ok(()), Err)
}
