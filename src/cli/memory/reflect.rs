//! `annalist memory reflect`: a retrospective by rule, from the records.

use super::super::output::{self, BOLD, DIM, Failure, counted, short, shorten};
use super::super::settings;
use super::place::{Dir, namespace, unreadable};
use crate::consolidate::{Category, Note, Retrospective, reflect};
use crate::domain::{Record, RecordState, Timestamp};
use crate::edge::clock;
use crate::edge::memory_dir::{MemoryFolder, Written};
use crate::edge::store::{Open, RecordFilter, Store};
use crate::memory_dir::{SESSIONS, words_line};
use crate::privacy::Gate;
use std::path::Path;
use std::process::ExitCode;

/// Letters of a note.
const NOTE_LETTERS: usize = 300;
/// Letters of a note on a terminal.
const LINE_LETTERS: usize = 100;
/// Retrospectives of one day.
const OF_DAY_MAX: u32 = 100;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory reflect --since 2026-11-01
  annalist memory reflect --write            as a file of the directory, sessions/DAY-retro.md

It tells what the records show and concludes nothing that no record says; `annalist why` shows the words.")]
pub(super) struct Args {
    /// Only what was said on this day or later
    #[arg(long, value_name = "DATE", value_parser = super::super::replay::date)]
    since: Option<Timestamp>,
    /// Only this namespace; with --write that of the directory if it is not named
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Write it into the directory
    #[arg(long)]
    write: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dir: Dir,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let config = settings::load(file)?;
    let gate = Gate::new(&config.pii);
    let folder = args.write.then(|| args.dir.find()).transpose()?;
    let of = match &folder {
        Some(folder) => Some(namespace(args.namespace.as_deref(), (&config, &gate), folder)),
        None => args.namespace.clone(),
    };
    let store = settings::open_store(&config, Open::Existing)?;
    let told = settings::runtime()?.block_on(told(&store, of, args.since))?;
    if args.json {
        output::json(&told)?;
    } else {
        print(&told)?;
    }
    if let Some(folder) = folder {
        write(&folder, &told, &gate)?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn told(
    store: &Store,
    namespace: Option<String>,
    since: Option<Timestamp>,
) -> Result<Retrospective, Failure> {
    let filter =
        RecordFilter { namespace, since, states: vec![RecordState::Staged], ..Default::default() };
    let stored = store.records(filter).await?;
    let records: Vec<Record> = stored.into_iter().map(|it| it.record).collect();
    Ok(reflect(&records))
}

fn print(told: &Retrospective) -> Result<(), Failure> {
    let kinds: Vec<String> =
        told.kinds.iter().map(|(kind, number)| counted(*number as u64, kind)).collect();
    let sessions = counted(told.sessions as u64, "session");
    let failed = counted(told.failed as u64, "attempt");
    output::line(&format!("{sessions}: {}; {failed} failed", kinds.join(", ")))?;
    for category in Category::ALL {
        let notes = of(told, category);
        if notes.is_empty() {
            continue;
        }
        output::line(&format!("\n{BOLD}{}{BOLD:#}", title(category)))?;
        for note in notes {
            let headline = shorten(note.headline.as_str(), LINE_LETTERS);
            let last = note.records.last().map(short).unwrap_or_default();
            output::line(&format!("  {headline}{}  {DIM}{last}{DIM:#}", times(note)))?;
        }
    }
    Ok(())
}

fn of(told: &Retrospective, category: Category) -> Vec<&Note> {
    told.notes.iter().filter(|note| note.category == category).collect()
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

/// How often it happened, where that says something.
fn times(note: &Note) -> String {
    match (note.records.len(), note.failed) {
        (1, 0) => String::new(),
        (1, _) => " (failed)".to_owned(),
        (times, 0) => format!(" ({times} times)"),
        (times, failed) => format!(" ({times} times, {failed} failed)"),
    }
}

fn page(told: &Retrospective, day: &str, gate: &Gate) -> String {
    let mut page = format!("# Retrospective: {day}\n");
    for category in Category::ALL {
        let notes = of(told, category);
        if notes.is_empty() {
            continue;
        }
        page.push_str(&format!("\n## {}\n", title(category)));
        for note in notes {
            let words = words_line(note.headline.as_str(), NOTE_LETTERS, gate);
            let last = note.records.last().map(short).unwrap_or_default();
            page.push_str(&format!("- {words}{}\n", times(note)));
            page.push_str(&format!("<!-- @category: {} -->\n", category.name()));
            page.push_str(&format!("<!-- @tag: record-{last} -->\n"));
        }
    }
    page
}

/// Writes it beside the sessions; one that is there already stays as it is.
fn write(folder: &MemoryFolder, told: &Retrospective, gate: &Gate) -> Result<(), Failure> {
    let day = clock::now().day();
    let text = page(told, &day, gate);
    for number in 1..=OF_DAY_MAX {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let path = format!("{SESSIONS}{day}{number}-retro.md");
        let whole = folder.path().join(&path);
        let written = folder.write(&path, None, Some(&text));
        match written.map_err(|error| unreadable(&whole, &error))? {
            Written::Done => {
                output::note(&format!("wrote {}", whole.display()));
                return Ok(());
            }
            Written::Already => {
                output::note(&format!("{} says so already", whole.display()));
                return Ok(());
            }
            Written::Changed => {}
        }
    }
    Err(Failure::failed(format!("there are {OF_DAY_MAX} retrospectives of {day} already")))
}
