//! `annalist enqueue`: adds transcripts to the queue for workers. Calls no model.

use super::arguments::{named_or_here, namespace_or_here};
use super::namespace::warn_of_twin;
use super::output::{self, DIM, Failure, RED, Result, counted};
use super::session_input::read_stdin;
use super::settings;
use crate::adapters::clock;
use crate::config::Config;
use crate::domain::{Format, Timestamp};
use crate::pipeline::{
    EnqueueOptions, Enqueuer, Gather, IntakeReport, IntakeSource, SessionIntake,
};
use crate::store::{FailedRun, OpenMode, Store};
use clap::builder::NonEmptyStringValueParser;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const EXPECTED: &str = "a slice as JSON (`annalist schema slice.v1.json`) or a transcript";
const LISTED_MAX: usize = 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist enqueue ~/.claude/projects/roofs/session.jsonl    enqueue what is new
  annalist enqueue ~/.claude/projects --flush                enqueue all at once
  annalist enqueue - < examples/slice.json                   read a JSON slice

Enqueueing the same thing twice adds nothing, and says so. A session that grew only a little \
waits until it is idle for queue.idle_secs or closed, or for --flush; what arrives meanwhile is \
merged. `annalist worker` processes the jobs, `annalist jobs` lists them.")]
pub(super) struct Args {
    /// Transcripts, folders of them, or `-` for standard input
    #[arg(required = true, value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    /// Name of the conversation, instead of the one in the transcript
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    session: Option<String>,
    /// Namespace of the conversation, instead of that of the folder the agent worked in; `.` for the current folder's
    #[arg(long, value_name = "NAME", value_parser = namespace_or_here)]
    namespace: Option<String>,
    /// Priority within the namespace, highest first
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = clap::value_parser!(i32).range(-100..=100))]
    priority: Option<i32>,
    /// Extract the last entries at once, however few
    #[arg(long)]
    flush: bool,
    /// Read the input as this format instead of detecting it
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Enqueue forgotten sessions again
    #[arg(long)]
    also_forgotten: bool,
    /// Model for workers to ask, instead of model.model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Print the result as one JSON object on stdout
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: &Args, file: Option<&Path>) -> Result<()> {
    let from_stdin = args.paths.iter().any(|path| path.as_os_str() == "-");
    if from_stdin && args.paths.len() > 1 {
        return Err(Failure::usage(
            "`-` is standard input and must be the only path: enqueue files separately",
        ));
    }
    let input = from_stdin.then(|| read_stdin(EXPECTED)).transpose()?;
    let config = settings::load(file)?;
    let store = settings::open_store(&config, OpenMode::Create)?;
    let model = args.model.as_deref().unwrap_or(&config.model.model);
    let enqueuer = enqueuer_of(&config, store.clone(), model);
    let namespace = named_or_here(args.namespace.as_deref(), Some(&store), &config).await?;
    warn_of_twin(&store, namespace.as_deref().or(config.namespace.as_deref())).await?;
    let how = EnqueueOptions {
        session: args.session.clone(),
        namespace,
        priority: args.priority,
        flush: args.flush,
        format: args.format,
        also_forgotten: args.also_forgotten,
    };
    let input = match input {
        Some(bytes) => IntakeSource::Bytes("-".to_owned(), bytes),
        None => IntakeSource::Paths(args.paths.clone()),
    };
    let taken = enqueuer.enqueue_files(input, how, CancellationToken::new()).await?;
    match args.json {
        true => output::json(&taken)?,
        false => print(&taken)?,
    }
    output::note_files(&taken.problems, &taken.empty, &taken.files_not_read);
    output::note_places(&taken.places);
    if taken.forgotten > 0 {
        forgotten(taken.forgotten);
    }
    super::vault::note(taken.copies_evicted, taken.copies_failed);
    let depth = store.depth(clock::now()).await?;
    super::status::dead(&depth).iter().for_each(|line| output::note(line));
    let mut runs = store.failed_runs().await?;
    runs.retain(|run| taken.sessions.iter().any(|it| it.session == run.session));
    if depth.dead_jobs() < runs.len() as u64 {
        note_failed(&runs, &args.paths);
    }
    let all_empty = taken.files > 0 && taken.empty.len() as u64 == taken.files;
    let mut failed = all_empty || !taken.problems.is_empty();
    if !failed && taken.sessions.is_empty() && taken.forgotten + taken.copies == 0 {
        output::no_transcript(&args.paths, taken.files + taken.files_passed_over);
        failed = true;
    }
    output::fail_if(failed)
}

/// Notes slices of an earlier `annalist replay` that failed, by kind, and the command that tries them again.
fn note_failed(runs: &[FailedRun], paths: &[PathBuf]) {
    let mut by_kind = BTreeMap::<&str, (u64, &str)>::new();
    for FailedRun { failure, .. } in runs {
        by_kind.entry(&failure.kind).or_insert((0, &failure.detail)).0 += 1;
    }
    for (kind, (slices, detail)) in by_kind {
        let slices = counted(slices, "slice");
        output::note(&format!("{RED}failed{RED:#} {slices} earlier, {kind}: {detail}"));
    }
    let paths: Vec<String> = paths.iter().map(|it| it.display().to_string()).collect();
    output::note(&format!("  annalist replay --retry-failed {}", paths.join(" ")));
}

pub(super) fn forgotten(sessions: u64) {
    output::note(&format!(
        "{} erased by `annalist forget` and skipped; --also-forgotten reads them again",
        counted(sessions, "session")
    ));
}

/// Creates the enqueuer for workers that call `model`.
pub(super) fn enqueuer_of(config: &Config, store: Store, model: &str) -> Arc<Enqueuer> {
    let gather = Gather { tokens: config.queue.gather_tokens, idle: config.queue.idle };
    Arc::new(Enqueuer::new(config, model, gather, store, clock::now))
}

fn print(taken: &IntakeReport) -> Result<()> {
    let changed = |session: &&SessionIntake| session.entries > 0 || session.jobs > 0;
    let sessions: Vec<&SessionIntake> = taken.sessions.iter().filter(changed).collect();
    sessions.iter().take(LISTED_MAX).try_for_each(|session| output::line(&line(session)))?;
    if sessions.len() > LISTED_MAX {
        let more = counted((sessions.len() - LISTED_MAX) as u64, "session");
        output::line(&format!("{more} not shown"))?;
    }
    if taken.is_nothing_new() {
        if !taken.sessions.is_empty() {
            let sessions = counted(taken.sessions.len() as u64, "session");
            output::line(&format!("nothing new in {sessions}"))?;
        }
        return Ok(());
    }
    output::line(&format!(
        "{}, {}, of {}",
        counted(sessions.iter().map(|session| jobs(session)).sum(), "job"),
        counted(taken.entries, "entry"),
        counted(sessions.len() as u64, "session")
    ))
}

/// Number of jobs, with the one that waits for more entries.
fn jobs(session: &SessionIntake) -> u64 {
    u64::from(session.jobs) + u64::from(session.gathers_until.is_some())
}

fn line(session: &SessionIntake) -> String {
    let mut said = vec![counted(jobs(session), "job"), counted(session.entries.into(), "entry")];
    if session.known > 0 {
        said.push(format!("{} already known", counted(session.known.into(), "job")));
    }
    if let Some(until) = session.gathers_until {
        let until = Timestamp(until.0 - until.0.rem_euclid(1000));
        said.push(format!("the last job waits for more entries until {until}"));
    }
    let name = session.name.as_str();
    format!("{name} {DIM}({}){DIM:#}: {}", session.namespace, said.join(", "))
}
