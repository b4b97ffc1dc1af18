//! `annalist memory reflect`: writes a retrospective of the records.

use super::folder::{DirArgs, dir_sync_of, failure, namespace_of, unreadable};
use crate::adapters::clock;
use crate::adapters::memory_files::{MemoryFolder, WriteOutcome};
use crate::cli::arguments::{date, note_unknown};
use crate::cli::output::{self, BOLD, DIM, Failure, Result, counted, short, shorten};
use crate::cli::settings;
use crate::config::namespace_name;
use crate::consolidate::{Category, Note, Retrospective, reflect, standing};
use crate::domain::{RecordState, Timestamp};
use crate::memory_dir::{SESSIONS, record_tag, words_line, words_tag};
use crate::privacy::Gate;
use crate::store::{OpenMode, RecordFilter, Store};
use std::path::Path;

const NOTE_LETTERS: usize = 300;
/// Maximum letters of a note on a terminal.
const LINE_LETTERS: usize = 100;
const OF_DAY_MAX: u32 = 100;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory reflect --since 2026-11-01
  annalist memory reflect --write  write sessions/DAY-retro.md

Prints one retrospective per namespace: what the records show, by category, the most repeated \
first. `annalist why` shows the quotes of a record.")]
pub(super) struct Args {
    /// Only what was said on this day or later, such as today or 7d
    #[arg(long, value_name = "DATE", value_parser = date)]
    since: Option<Timestamp>,
    /// Only this namespace; with --write, the directory's by default
    #[arg(long, value_name = "NAME", value_parser = namespace_name)]
    namespace: Option<String>,
    /// Write the retrospective to the memory directory
    #[arg(long)]
    write: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dir: DirArgs,
}

pub(super) async fn run(args: &Args, file: Option<&Path>) -> Result<()> {
    let config = settings::load(file)?;
    let gate = Gate::new(&config.pii);
    let folder = args.write.then(|| args.dir.find()).transpose()?;
    let store = settings::open_store(&config, OpenMode::Existing)?;
    let mut named = args.namespace.clone();
    if let (None, Some(folder)) = (&named, &folder) {
        let own = namespace_of(&store, &config, folder).await?;
        let moved = match config.namespace.is_none() && !store.has_namespace(&own).await? {
            true => dir_sync_of(store.clone(), &config).origin(folder).await,
            false => Ok(None),
        };
        let moved = moved.map_err(|error| failure(folder, error))?;
        let moved = moved.filter(|(_, original)| original.is_none());
        named = Some(moved.map_or(own, |(old, _)| old));
    }
    let retrospectives = look_back(&store, named, args.since).await?;
    let is_empty = retrospectives.iter().all(|it| it.sessions == 0);
    if args.json {
        output::json(&retrospectives)?;
    } else if is_empty {
        output::note("no records to look back at: `annalist status` shows what was read");
    } else {
        for (n, retrospective) in retrospectives.iter().enumerate() {
            if n > 0 {
                output::line("")?;
            }
            print(retrospective)?;
        }
    }
    if let (Some(folder), [retrospective], false) = (folder, retrospectives.as_slice(), is_empty) {
        write(&folder, retrospective, &gate)?;
    }
    Ok(())
}

/// Retrospectives of the `named` namespace, or of all that have sessions.
async fn look_back(
    store: &Store,
    named: Option<String>,
    since: Option<Timestamp>,
) -> Result<Vec<Retrospective>> {
    note_unknown(store, named.as_deref()).await?;
    let all = named.is_none();
    let namespaces = match named {
        Some(named) => vec![named],
        None => store.namespaces().await?,
    };
    let mut retrospectives = Vec::new();
    for namespace in namespaces {
        let filter = RecordFilter {
            namespace: Some(namespace.clone()),
            since,
            states: vec![RecordState::Staged],
            ..RecordFilter::default()
        };
        let records = store.records(filter).await?;
        let discarded = records.iter().filter(|it| it.is_discarded);
        let discarded = discarded.map(|it| it.record.id).collect();
        let records = records.into_iter().map(|it| it.record).collect();
        let memories = store.memories(Some(&namespace)).await?;
        let retrospective = reflect(namespace, &standing(records, discarded, &memories));
        if !all || retrospective.sessions > 0 {
            retrospectives.push(retrospective);
        }
    }
    Ok(retrospectives)
}

fn print(looked_back: &Retrospective) -> Result<()> {
    let kinds: Vec<String> =
        looked_back.kinds.iter().map(|(kind, number)| counted(*number as u64, kind)).collect();
    let sessions = counted(looked_back.sessions as u64, "session");
    let failed = counted(looked_back.failed as u64, "attempt");
    output::line(&format!(
        "{BOLD}{}{BOLD:#}  {sessions}: {}; {failed} failed",
        looked_back.namespace,
        kinds.join(", ")
    ))?;
    for (category, notes) in by_category(looked_back) {
        output::line(&format!("\n{BOLD}{}{BOLD:#}", title(category)))?;
        for note in notes {
            let headline = shorten(note.headline.as_str(), LINE_LETTERS);
            let id = note.records.last().map(short).unwrap_or_default();
            output::line(&format!("  {headline}{}  {DIM}{id}{DIM:#}", times(note)))?;
        }
    }
    Ok(())
}

fn by_category(looked_back: &Retrospective) -> impl Iterator<Item = (Category, Vec<&Note>)> {
    let of = |it: Category| looked_back.notes.iter().filter(move |note| note.category == it);
    let all = Category::ALL.iter().map(move |it| (*it, of(*it).collect::<Vec<_>>()));
    all.filter(|(_, notes)| !notes.is_empty())
}

fn title(category: Category) -> &'static str {
    match category {
        Category::Efficiency => "Efficiency",
        Category::Quality => "Quality",
        Category::Ux => "User Experience",
        Category::Knowledge => "Knowledge",
        Category::Architecture => "Architecture",
    }
}

/// Number of occurrences, if it is worth printing.
fn times(note: &Note) -> String {
    match (note.records.len(), note.failed) {
        (1, 0) => String::new(),
        (1, _) => " (failed)".to_owned(),
        (times, 0) => format!(" ({times} times)"),
        (times, failed) => format!(" ({times} times, {failed} failed)"),
    }
}

fn page(looked_back: &Retrospective, day: &str, gate: &Gate) -> String {
    let mut page = format!("# Retrospective: {day}\n\nMade from the records by rule.\n");
    for (category, notes) in by_category(looked_back) {
        page.push_str(&format!("\n## {}\n", title(category)));
        for note in notes {
            let words = words_line(note.headline.as_str(), NOTE_LETTERS, gate);
            let entry = format!("- {words}{}", times(note));
            page.push_str(&format!("{entry}\n<!-- @category: {} -->\n", category.name()));
            if let Some(record) = note.records.last() {
                page.push_str(&format!("<!-- @tag: {} -->\n", record_tag(*record)));
            }
            page.push_str(&format!("<!-- @tag: {} -->\n", words_tag(&entry)));
        }
    }
    page
}

/// Writes the retrospective beside the sessions, under a new name if one exists.
fn write(folder: &MemoryFolder, looked_back: &Retrospective, gate: &Gate) -> Result<()> {
    let day = clock::now().day();
    let text = page(looked_back, &day, gate);
    for number in 1..=OF_DAY_MAX {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let path = format!("{SESSIONS}{day}{number}-retro.md");
        let whole = folder.path().join(&path);
        let written = folder.write(&path, None, Some(&text));
        match written.map_err(|error| unreadable(&whole, &error))? {
            WriteOutcome::Written => output::note(&format!("wrote {}", whole.display())),
            WriteOutcome::Unchanged => output::note(&format!("{} is up to date", whole.display())),
            WriteOutcome::ChangedMeanwhile => continue,
        }
        return Ok(());
    }
    Err(Failure::failed(format!("there are already {OF_DAY_MAX} retrospectives of {day}")))
}
