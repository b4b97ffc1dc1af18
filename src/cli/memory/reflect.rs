//! `annalist memory reflect`: writes a retrospective of the records, by rule or with a model.

use super::folder::{DirArgs, namespace_of, unreadable};
use crate::adapters::clock;
use crate::adapters::memory_files::{MemoryFolder, WriteOutcome};
use crate::cli::arguments::date;
use crate::cli::consolidate::consolidator;
use crate::cli::model_args::{self, AdjudicationArgs, CallUsage};
use crate::cli::output::{self, BOLD, DIM, Failure, counted, json_row, short, shorten};
use crate::cli::settings;
use crate::config::namespace_name;
use crate::consolidate::{Category, Made, Note, Retrospective};
use crate::domain::{Finding, RecordId, Timestamp};
use crate::memory_dir::{SESSIONS, record_tag, words_line, words_tag};
use crate::pipeline::{Consolidator, Halt, Reflector, RetrospectiveOutcome, RetrospectiveReport};
use crate::privacy::Gate;
use crate::store::{OpenMode, Store};
use std::collections::BTreeMap;
use std::path::Path;

const NOTE_LETTERS: usize = 300;
/// Maximum letters of a rule's note on a terminal, which is a headline. Lessons are not truncated.
const LINE_LETTERS: usize = 100;
const NAME_LETTERS: usize = 80;
const OF_DAY_MAX: u32 = 100;
const FINDINGS_MAX: usize = 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory reflect --since 2026-11-01
  annalist memory reflect --model qwen3:8b  draw lessons with a model
  annalist memory reflect --write           write sessions/DAY-retro.md

Prints one retrospective per namespace. By rule, it lists what the records show. A model is asked \
only if --model, --cassette or consolidate.model names one. A lesson is kept only if half of its \
words and every name, number and negation are in the records that it cites, so nothing is made \
up, but a person must judge its conclusion. Without a usable answer, the retrospective is made by \
rule, and a line says why. `annalist why` shows the quotes of a record. Answers are kept: the \
same records are paid for once. `annalist status --all` shows the cost.

Exits 1 if the model needs attention (key, name), or if another process is changing the memory.")]
pub(super) struct Args {
    /// Only what was said on this day or later
    #[arg(long, value_name = "DATE", value_parser = date)]
    since: Option<Timestamp>,
    /// Only this namespace; with --write, the directory's by default
    #[arg(long, value_name = "NAME", value_parser = namespace_name)]
    namespace: Option<String>,
    #[command(flatten)]
    adjudication: AdjudicationArgs,
    /// Write the retrospective to the memory directory
    #[arg(long)]
    write: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dir: DirArgs,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<(), Failure> {
    let config = settings::load(file)?;
    let gate = Gate::new(&config.pii);
    let folder = args.write.then(|| args.dir.find()).transpose()?;
    let store = settings::open_store(&config, OpenMode::Existing)?;
    let looked_back = settings::runtime()?.block_on(async {
        let mut named = args.namespace.clone();
        if let (None, Some(folder)) = (&named, &folder) {
            named = Some(namespace_of(&store, &config, folder).await?);
        }
        let reflector = args.adjudication.reflector(&config, &store).await?;
        look_back_all(&store, named, args.since, reflector.as_ref()).await
    })?;
    let is_empty = looked_back.iter().all(|looked| looked.retrospective.sessions == 0);
    if args.json {
        output::json(&looked_back.iter().map(RetrospectiveRow::of).collect::<Vec<_>>())?;
    } else if is_empty {
        output::note("no records to look back at: `annalist status` shows what was read");
    } else {
        for (n, looked) in looked_back.iter().enumerate() {
            if n > 0 {
                output::line("")?;
            }
            print(looked)?;
        }
    }
    looked_back.iter().for_each(notes);
    if let (Some(folder), [looked_back], false) = (folder, looked_back.as_slice(), is_empty) {
        write(&folder, &looked_back.retrospective, &gate)?;
    }
    Ok(())
}

async fn look_back_all(
    store: &Store,
    named: Option<String>,
    since: Option<Timestamp>,
    reflector: Option<&Reflector>,
) -> Result<Vec<RetrospectiveReport>, Failure> {
    let all = named.is_none();
    let namespaces = match named {
        Some(named) => vec![named],
        None => store.namespaces().await?,
    };
    let by = consolidator(store.clone(), None);
    let mut looked_back = Vec::new();
    for namespace in namespaces {
        let one = look_back(&by, &namespace, since, reflector).await?;
        if !all || one.retrospective.sessions > 0 {
            looked_back.push(one);
        }
    }
    Ok(looked_back)
}

async fn look_back(
    by: &Consolidator,
    namespace: &str,
    since: Option<Timestamp>,
    reflector: Option<&Reflector>,
) -> Result<RetrospectiveReport, Failure> {
    let why = match by.reflect(namespace, since, reflector).await? {
        RetrospectiveOutcome::Done(looked_back) => return Ok(*looked_back),
        RetrospectiveOutcome::Busy => return Err(output::busy(&[namespace])),
        RetrospectiveOutcome::Halted(Halt::Needs(line)) => {
            format!("{line}; no retrospective was made (--no-model makes it by rule)")
        }
        RetrospectiveOutcome::Halted(Halt::Stopped) => {
            "stopped; answers are kept; run the same command again to resume".to_owned()
        }
    };
    Err(Failure::failed(format!("namespace `{namespace}`: {why}")))
}

json_row! {
    /// A retrospective, as JSON.
    pub(in crate::cli) struct RetrospectiveRow<'a> of it: &'a RetrospectiveReport {
        namespace: &'a str = &it.namespace,
        made: &'a Made = &it.retrospective.made,
        sessions: usize = it.retrospective.sessions,
        kinds: &'a BTreeMap<&'static str, usize> = &it.retrospective.kinds,
        failed: usize = it.retrospective.failed,
        notes: &'a [Note] = &it.retrospective.notes,
        findings: &'a [Finding] = &it.findings,
        asked: AskedRecords = AskedRecords::of(it),
        usage: CallUsage = CallUsage::of(&it.usage),
    }
}

json_row! {
    struct AskedRecords of it: &RetrospectiveReport {
        records: u64 = it.shown,
        questions: u64 = it.usage.questions,
        journaled: u64 = it.usage.journaled,
    }
}

fn print(looked: &RetrospectiveReport) -> Result<(), Failure> {
    let looked_back = &looked.retrospective;
    let kinds: Vec<String> =
        looked_back.kinds.iter().map(|(kind, number)| counted(*number as u64, kind)).collect();
    let sessions = counted(looked_back.sessions as u64, "session");
    let failed = counted(looked_back.failed as u64, "attempt");
    output::line(&format!(
        "{BOLD}{}{BOLD:#}  {sessions}: {}; {failed} failed  {DIM}{}{DIM:#}",
        looked.namespace,
        kinds.join(", "),
        made(looked_back)
    ))?;
    for (category, notes) in by_category(looked_back) {
        output::line(&format!("\n{BOLD}{}{BOLD:#}", title(category)))?;
        let letters = match looked_back.made {
            Made::Rule => LINE_LETTERS,
            Made::Model { .. } => NOTE_LETTERS,
        };
        for note in notes {
            let headline = shorten(note.headline.as_str(), letters);
            let ids: Vec<String> = shown(looked_back, note).iter().map(short).collect();
            let ids = ids.join(" ");
            output::line(&format!("  {headline}{}  {DIM}{ids}{DIM:#}", times(looked_back, note)))?;
        }
    }
    Ok(())
}

/// Notes findings and questions, regardless of the output on stdout.
fn notes(looked_back: &RetrospectiveReport) {
    let findings = looked_back.findings.iter().map(|it| format!("{}: {it}", looked_back.namespace));
    output::notes(findings, FINDINGS_MAX, "more findings: --json");
    if looked_back.usage.questions > 0 {
        let records = counted(looked_back.shown, "record");
        let line = model_args::asked_line(&records, &looked_back.usage);
        output::note(&format!("{}: {line}", looked_back.namespace));
    }
}

fn made(looked_back: &Retrospective) -> String {
    match &looked_back.made {
        Made::Rule => "by rule".to_owned(),
        Made::Model { model } => format!("by the model {model}"),
    }
}

/// Records to list with a note: the latest for a headline, all for a lesson.
fn shown<'n>(looked_back: &Retrospective, note: &'n Note) -> &'n [RecordId] {
    match looked_back.made {
        Made::Rule => note.records.last().map(std::slice::from_ref).unwrap_or_default(),
        Made::Model { .. } => &note.records,
    }
}

/// Categories that have notes.
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

/// Number of occurrences, if it is worth printing; a lesson mentions it in its text.
fn times(looked_back: &Retrospective, note: &Note) -> String {
    match (&looked_back.made, note.records.len(), note.failed) {
        (Made::Model { .. }, ..) | (Made::Rule, 1, 0) => String::new(),
        (Made::Rule, 1, _) => " (failed)".to_owned(),
        (Made::Rule, times, 0) => format!(" ({times} times)"),
        (Made::Rule, times, failed) => format!(" ({times} times, {failed} failed)"),
    }
}

fn page(looked_back: &Retrospective, day: &str, gate: &Gate) -> String {
    let made = match &looked_back.made {
        Made::Rule => "rule".to_owned(),
        Made::Model { model } => format!("the model {}", words_line(model, NAME_LETTERS, gate)),
    };
    let mut page = format!("# Retrospective: {day}\n\nMade from the records by {made}.\n");
    for (category, notes) in by_category(looked_back) {
        page.push_str(&format!("\n## {}\n", title(category)));
        for note in notes {
            let words = words_line(note.headline.as_str(), NOTE_LETTERS, gate);
            let entry = format!("- {words}{}", times(looked_back, note));
            page.push_str(&format!("{entry}\n<!-- @category: {} -->\n", category.name()));
            for record in shown(looked_back, note) {
                page.push_str(&format!("<!-- @tag: {} -->\n", record_tag(*record)));
            }
            page.push_str(&format!("<!-- @tag: {} -->\n", words_tag(&entry)));
        }
    }
    page
}

/// Writes the retrospective beside the sessions, under a new name if one exists.
fn write(folder: &MemoryFolder, looked_back: &Retrospective, gate: &Gate) -> Result<(), Failure> {
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
