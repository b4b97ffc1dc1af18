//! `annalist memory reflect`: a retrospective from the records, by rule or by a model.

use super::super::consolidate::consolidator;
use super::super::judges::{self, Judges};
use super::super::output::{self, BOLD, DIM, Failure, counted, short, shorten};
use super::super::settings;
use super::place::{Dir, namespace, unreadable};
use crate::consolidate::{Category, Made, Note, Retrospective};
use crate::domain::{RecordId, Timestamp};
use crate::edge::clock;
use crate::edge::memory_dir::{MemoryFolder, Written};
use crate::edge::store::{Open, Store};
use crate::memory_dir::{SESSIONS, record_tag, words_line, words_tag};
use crate::privacy::Gate;
use crate::worker::{Consolidator, Halt, LookedBack, Reflection, Reflector};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

/// Letters of a note.
const NOTE_LETTERS: usize = 300;
/// Letters of a rule's note on a terminal, which is a headline. A lesson is shown whole.
const LINE_LETTERS: usize = 100;
/// Letters of a model's name in the directory.
const NAME_LETTERS: usize = 80;
/// Retrospectives of one day.
const OF_DAY_MAX: u32 = 100;
/// Findings of one namespace that are listed.
const FINDINGS_SHOWN_MAX: usize = 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory reflect --since 2026-11-01
  annalist memory reflect --model qwen3:8b   lessons that a model draws from the records
  annalist memory reflect --write            as a file of the directory, sessions/DAY-retro.md

One retrospective for each namespace; each says how it was made. By rule it lists what the records show. \
A model is asked only where --model, --cassette or consolidate.model name one. It is shown what records \
claim, under ids that mean nothing outside of the question; a lesson stands only if half of its words and \
every name, number and negation are in the records that it names: so nothing is made up, but whether it draws \
the right conclusion is for a person to judge. Without a usable answer the retrospective is made by rule, and \
a line says why. Neither concludes what no record says; `annalist why` shows the words of a record. \
What was taken back out of memory is not looked back at. Answers are kept: the same records are asked \
about and paid for once. `annalist status --all` has the bill.

Exits 1 if the model needs a person (a key, a name), or somebody else changes the memory.")]
pub(super) struct Args {
    /// Only what was said on this day or later
    #[arg(long, value_name = "DATE", value_parser = super::super::replay::date)]
    since: Option<Timestamp>,
    /// Only this namespace; with --write that of the directory if it is not named
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    judges: Judges,
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
    let told = settings::runtime()?.block_on(async {
        let reflector = args.judges.reflector(&config, &store).await?;
        told(&store, of, args.since, reflector.as_ref()).await
    })?;
    let is_empty = told.iter().all(|looked| looked.retrospective.sessions == 0);
    if args.json {
        output::json(&told.iter().map(to_json).collect::<Vec<_>>())?;
    } else if is_empty {
        output::note("there are no records to look back at: `annalist status` shows what is there");
    } else {
        for (n, looked) in told.iter().enumerate() {
            if n > 0 {
                output::line("")?;
            }
            print(looked)?;
        }
    }
    told.iter().for_each(notes);
    if let (Some(folder), [told], false) = (folder, told.as_slice(), is_empty) {
        write(&folder, &told.retrospective, &gate)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One retrospective for the namespace that was named, or one for each that has records.
async fn told(
    store: &Store,
    named: Option<String>,
    since: Option<Timestamp>,
    reflector: Option<&Reflector>,
) -> Result<Vec<LookedBack>, Failure> {
    let all = named.is_none();
    let namespaces = match named {
        Some(named) => vec![named],
        None => store.namespaces().await?,
    };
    let by = consolidator(store.clone(), None);
    let mut told = Vec::new();
    for namespace in namespaces {
        let one = look_back(&by, &namespace, since, reflector).await?;
        if !all || one.retrospective.sessions > 0 {
            told.push(one);
        }
    }
    Ok(told)
}

async fn look_back(
    by: &Consolidator,
    namespace: &str,
    since: Option<Timestamp>,
    reflector: Option<&Reflector>,
) -> Result<LookedBack, Failure> {
    let why = match by.reflect(namespace, since, reflector).await? {
        Reflection::Done(told) => return Ok(*told),
        Reflection::Busy => "another process changes its memory now; try again".to_owned(),
        Reflection::Halted(Halt::Needs(line)) => {
            format!("{line}; no retrospective was made (--no-model makes it by rule)")
        }
        Reflection::Halted(Halt::Stopped) => {
            "stopped; answers are kept and the same command goes on".to_owned()
        }
    };
    Err(Failure::failed(format!("namespace `{namespace}`: {why}")))
}

fn to_json(told: &LookedBack) -> Value {
    let LookedBack { namespace, retrospective, findings, shown, asked } = told;
    let (_, usage) = judges::to_json(asked);
    json!({
        "namespace": namespace,
        "made": retrospective.made,
        "sessions": retrospective.sessions,
        "kinds": retrospective.kinds,
        "failed": retrospective.failed,
        "notes": retrospective.notes,
        "findings": findings,
        "asked": {
            "records": shown, "questions": asked.questions, "journaled": asked.journaled,
        },
        "usage": usage,
    })
}

fn print(looked: &LookedBack) -> Result<(), Failure> {
    let told = &looked.retrospective;
    let kinds: Vec<String> =
        told.kinds.iter().map(|(kind, number)| counted(*number as u64, kind)).collect();
    let sessions = counted(told.sessions as u64, "session");
    let failed = counted(told.failed as u64, "attempt");
    output::line(&format!(
        "{BOLD}{}{BOLD:#}  {sessions}: {}; {failed} failed  {DIM}{}{DIM:#}",
        looked.namespace,
        kinds.join(", "),
        made(told)
    ))?;
    for category in Category::ALL {
        let notes = of(told, category);
        if notes.is_empty() {
            continue;
        }
        output::line(&format!("\n{BOLD}{}{BOLD:#}", title(category)))?;
        for note in notes {
            let letters = match told.made {
                Made::Rule => LINE_LETTERS,
                Made::Model { .. } => NOTE_LETTERS,
            };
            let headline = shorten(note.headline.as_str(), letters);
            let ids: Vec<String> = shown(told, note).iter().map(short).collect();
            let ids = ids.join(" ");
            output::line(&format!("  {headline}{}  {DIM}{ids}{DIM:#}", times(told, note)))?;
        }
    }
    Ok(())
}

/// What a person should know beside it: what was odd, why it was made by rule, what was asked.
fn notes(told: &LookedBack) {
    for finding in told.findings.iter().take(FINDINGS_SHOWN_MAX) {
        output::note(&format!("{}: {finding}", told.namespace));
    }
    if told.findings.len() > FINDINGS_SHOWN_MAX {
        let more = told.findings.len() - FINDINGS_SHOWN_MAX;
        output::note(&format!("{}: and {more} more findings: --json", told.namespace));
    }
    if told.asked.questions > 0 {
        let records = counted(told.shown, "record");
        output::note(&format!("{}: {}", told.namespace, judges::line(&records, &told.asked)));
    }
}

fn made(told: &Retrospective) -> String {
    match &told.made {
        Made::Rule => "by rule".to_owned(),
        Made::Model { model } => format!("by the model {model}"),
    }
}

/// The records that are named with a note: a headline is its latest one's, a lesson is all of theirs.
fn shown<'n>(told: &Retrospective, note: &'n Note) -> &'n [RecordId] {
    match told.made {
        Made::Rule => note.records.last().map(std::slice::from_ref).unwrap_or_default(),
        Made::Model { .. } => &note.records,
    }
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

/// How often it happened, where that says something. A lesson says so itself.
fn times(told: &Retrospective, note: &Note) -> String {
    match (&told.made, note.records.len(), note.failed) {
        (Made::Model { .. }, ..) | (Made::Rule, 1, 0) => String::new(),
        (Made::Rule, 1, _) => " (failed)".to_owned(),
        (Made::Rule, times, 0) => format!(" ({times} times)"),
        (Made::Rule, times, failed) => format!(" ({times} times, {failed} failed)"),
    }
}

fn page(told: &Retrospective, day: &str, gate: &Gate) -> String {
    let made = match &told.made {
        Made::Rule => "rule".to_owned(),
        Made::Model { model } => format!("the model {}", words_line(model, NAME_LETTERS, gate)),
    };
    let mut page = format!("# Retrospective: {day}\n\nMade from the records by {made}.\n");
    for category in Category::ALL {
        let notes = of(told, category);
        if notes.is_empty() {
            continue;
        }
        page.push_str(&format!("\n## {}\n", title(category)));
        for note in notes {
            let words = words_line(note.headline.as_str(), NOTE_LETTERS, gate);
            let entry = format!("- {words}{}", times(told, note));
            page.push_str(&format!("{entry}\n<!-- @category: {} -->\n", category.name()));
            for record in shown(told, note) {
                page.push_str(&format!("<!-- @tag: {} -->\n", record_tag(*record)));
            }
            page.push_str(&format!("<!-- @tag: {} -->\n", words_tag(&entry)));
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
