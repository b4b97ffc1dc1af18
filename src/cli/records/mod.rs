//! `annalist records` and `annalist why`.

mod rows;
mod why;
mod why_code;

pub(super) use rows::{CardRow, RunDiff, RunRow};
pub(super) use why::{WhyArgs, WhyReport, why};
pub(super) use why_code::WhyCodeReport;

use super::arguments::{
    date, limit, named, named_or_here, namespace_or_here, note_unknown, one, prefix, session_of,
};
use super::output::{self, BOLD, DIM, Failure, GREEN, RED, Result, YELLOW, commas, short, shorten};
use super::settings;
use crate::domain::{ClaimKind, RecordState, SessionId, Timestamp};
use crate::memory_card::Card;
use crate::memory_dir::SOURCE;
use crate::pipeline::why as lookup;
use crate::privacy::{Gate, Redacted};
use crate::rows::RecordRow;
use crate::store::{RecordFilter, RecordPage, Store, StoredCard, StoredRecord};
use clap::builder::TypedValueParser;
use clap::{Subcommand, ValueEnum};
use rows::print_claim;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

const CARD_LETTERS: usize = 100;
const RUNS_MAX: u32 = 100_000;

#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  annalist records --kind decision --since 2026-11-01
  annalist records show 3fa9 --in-transcript
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
    /// List records, newest first (the default)
    List {
        #[command(flatten)]
        filter: Filter,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one record in full
    Show {
        /// ID or ID prefix of a record, or of a memory to show the records behind it
        id: String,
        /// Print the entries with its evidence and those around them, quotes marked
        #[arg(long, conflicts_with = "json")]
        in_transcript: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Export records for other programs
    Export {
        #[command(flatten)]
        filter: Filter,
        /// Output format
        #[arg(long, value_enum, default_value_t = Export::Jsonl)]
        format: Export,
    },
    /// Compare the records of two runs of the same slice
    Diff {
        /// ID or ID prefix of the older run
        old: String,
        /// ID or ID prefix of the newer run
        new: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the memory cards of sessions: what each was about
    Cards {
        /// Only this session, by annalist's ID, the client's ID, or a prefix of either
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Only this namespace; `.` for the current folder's
        #[arg(long, value_name = "NAME", value_parser = namespace_or_here)]
        namespace: Option<String>,
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
    /// One JSON object per line
    Jsonl,
}

#[derive(Debug, Default, clap::Args)]
struct Filter {
    /// Only records of this kind
    #[arg(long, value_parser = named(ClaimKind::ALL, ClaimKind::name))]
    kind: Option<ClaimKind>,
    /// Only this session, by annalist's ID, the client's ID, or a prefix of either
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only what was said on this day or later, such as today or 7d
    #[arg(long, value_name = "DATE", value_parser = date)]
    since: Option<Timestamp>,
    /// Only this namespace; `.` for the current folder's
    #[arg(long, value_name = "NAME", value_parser = namespace_or_here)]
    namespace: Option<String>,
    /// Only records in this state, instead of staged (proven) and quarantined (not proven);
    /// replaced records are from a run that a newer run replaced
    #[arg(long, value_parser = named(RecordState::ALL, RecordState::name))]
    state: Option<RecordState>,
    /// Maximum number of records
    #[arg(long, value_name = "N", value_parser = limit().try_map(u32::try_from))]
    limit: Option<u32>,
}

impl Filter {
    async fn read(&self, store: &Store) -> Result<RecordFilter> {
        let session = session_of(store, self.session.as_deref()).await?;
        Ok(RecordFilter {
            kind: self.kind,
            session: session.map(|it| it.id.0.into()),
            since: self.since,
            namespace: self.namespace.clone(),
            states: self.state.into_iter().collect(),
            newest_first: false,
            limit: self.limit,
        })
    }
}

pub(super) async fn run(mut args: Args, file: Option<&Path>) -> Result<()> {
    let (config, store) = settings::existing_store(file)?;
    let named = match &mut args.command {
        Some(Command::Cards { namespace, .. }) => namespace,
        Some(Command::List { filter, .. } | Command::Export { filter, .. }) => {
            &mut filter.namespace
        }
        None | Some(Command::Show { .. } | Command::Diff { .. } | Command::Runs { .. }) => {
            &mut args.filter.namespace
        }
    };
    *named = named_or_here(named.as_deref(), Some(&store), &config).await?;
    match args.command {
        None => list(&store, &args.filter, args.json).await,
        Some(Command::List { filter, json }) => list(&store, &filter, json).await,
        Some(Command::Show { id, in_transcript: true, .. }) => {
            for page in pages(&store, &id).await? {
                print_claim(&page.stored)?;
                why::print_in_transcript(&store, &page, &Gate::new(&config.pii)).await?;
            }
            Ok(())
        }
        Some(Command::Show { id, json, .. }) => show(&store, &id, json).await,
        Some(Command::Export { filter, format: Export::Jsonl }) => export(&store, &filter).await,
        Some(Command::Diff { old, new, json }) => diff(&store, &old, &new, json).await,
        Some(Command::Runs { json }) => {
            let runs = store.runs(None, RUNS_MAX).await?;
            let rows: Vec<RunRow<'_>> = runs.iter().map(RunRow::of).collect();
            output::rows(&rows, json, "no runs: `annalist status` shows what was read")
        }
        Some(Command::Cards { session, namespace, json }) => {
            cards(&store, session.as_deref(), namespace, json).await
        }
    }
}

/// Lists the records of these sessions.
pub(super) async fn list_of(sessions: &BTreeSet<SessionId>, file: Option<&Path>) -> Result<()> {
    let (_, store) = settings::existing_store(file)?;
    let all = RecordFilter { newest_first: true, ..RecordFilter::default() };
    let mut records = store.records(all).await?;
    records.retain(|it| sessions.contains(&it.record.provenance.session));
    print(&records, false)
}

async fn list(store: &Store, filter: &Filter, as_json: bool) -> Result<()> {
    let named = filter.namespace.as_deref();
    let is_unknown = note_unknown(store, named).await?;
    let filter = RecordFilter { newest_first: true, ..filter.read(store).await? };
    let records = store.records(filter).await?;
    if let (true, false, Some(namespace)) = (records.is_empty(), as_json, named) {
        if !is_unknown {
            output::note(&format!("no records in namespace `{namespace}` match"));
        }
        return Ok(());
    }
    print(&records, as_json)
}

fn print(records: &[StoredRecord], as_json: bool) -> Result<()> {
    let rows: Vec<RecordRow<'_>> = records.iter().map(RecordRow::of).collect();
    output::rows(&rows, as_json, "no records match: `annalist status` shows what was read")?;
    let quarantined = rows.iter().filter(|it| it.state == RecordState::Quarantined).count();
    let is_discarded = |it: &&RecordRow<'_>| it.state == RecordState::Staged && it.discarded;
    let discarded = rows.iter().filter(is_discarded).count();
    if discarded > 0 && !as_json {
        output::note(&format!("· {discarded} discarded: by a rule or an undo, so not in memory"));
    }
    if quarantined > 0 && !as_json {
        output::note(&format!(
            "{YELLOW}?{YELLOW:#} {quarantined} quarantined: not proven, so not in memory; \
             `annalist why ID` shows why"
        ));
    }
    Ok(())
}

async fn show(store: &Store, id: &str, as_json: bool) -> Result<()> {
    for page in pages(store, id).await? {
        if as_json {
            output::json(&RecordRow::of(&page.stored))?;
            continue;
        }
        print_claim(&page.stored)?;
        output::note(&format!(
            "{DIM}annalist why {} shows its evidence{DIM:#}",
            short(&page.stored.record.id)
        ));
    }
    Ok(())
}

/// The record with this id, or those that the memory with this id or tag rests on.
async fn pages(store: &Store, id: &str) -> Result<Vec<RecordPage>> {
    let what = if id.starts_with(SOURCE) { "memory" } else { "record" };
    let found = one(lookup(store, id).await?, what, id)?;
    Ok(found.records.into_iter().map(|it| it.page).collect())
}

async fn export(store: &Store, filter: &Filter) -> Result<()> {
    let each = |failed: &mut Option<Failure>, stored: StoredRecord| {
        *failed = output::json_line(&RecordRow::of(&stored)).err();
        if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    store.fold_records(filter.read(store).await?, None, each).await?.map_or(Ok(()), Err)
}

async fn diff(store: &Store, old: &str, new: &str, as_json: bool) -> Result<()> {
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
    let about = |it: &RunRow<'_>| format!("{} {} {}", short(&it.run), it.model, it.prompt_in_words);
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
            let (kind, headline) = (&it.kind_in_words, it.claim.headline());
            output::line(&format!("{style}{sign} {kind}: {headline}{style:#}"))?;
        }
    }
    output::note(&format!("{} the same", diff.same));
    Ok(())
}

async fn cards(
    store: &Store,
    session: Option<&str>,
    namespace: Option<String>,
    as_json: bool,
) -> Result<()> {
    let id = session_of(store, session).await?.map(|it| it.id.0.into());
    let stored = store.cards(id, namespace).await?;
    let row = |it: &'_ StoredCard| -> Result<Card> {
        serde_json::from_str(&it.card).map_err(|error| {
            let id = short(&it.session.id);
            Failure::failed(format!("the card of session {id} cannot be read: {error}"))
        })
    };
    let cards = stored.iter().map(row).collect::<Result<Vec<Card>>>()?;
    let rows: Vec<CardRow<'_>> = stored.iter().zip(cards).map(CardRow::of).collect();
    if as_json {
        return output::json(&rows);
    }
    if rows.is_empty() {
        output::note("no cards: `annalist replay` and `annalist worker` create one per session");
    }
    rows.iter().try_for_each(print_card)
}

fn print_card(row: &CardRow<'_>) -> Result<()> {
    let due = if row.due { ", has grown since" } else { "" };
    output::line(&format!("{BOLD}{}{BOLD:#}", shorten(row.card.title.as_str(), CARD_LETTERS)))?;
    let day = row.started_at.as_deref().map(|at| output::day(Some(at))).unwrap_or_default();
    let id = short(&row.session);
    let about: Vec<&str> = [id.as_str(), day.as_str(), row.namespace]
        .into_iter()
        .filter(|it| !it.is_empty())
        .collect();
    output::line(&format!("  {DIM}{}{due}{DIM:#}", about.join("  ")))?;
    for (name, items) in [("decided", &row.card.decisions), ("to do", &row.card.todos)] {
        for item in items {
            let item = shorten(item.as_str(), CARD_LETTERS);
            output::line(&format!("  {DIM}{name}{DIM:#} {item}"))?;
        }
    }
    match commas(row.card.entities.iter().map(Redacted::as_str)).as_str() {
        "" => Ok(()),
        names => output::line(&format!("  {DIM}names{DIM:#} {names}")),
    }
}
