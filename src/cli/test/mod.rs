//! `annalist test`: prompt tests, against gold, on recorded answers or live.

mod changes;
mod grid;
mod new;
mod print;
mod review;
mod run;
mod update;

use super::output::{self, Failure};
use crate::edge::case_names::Scope;
use crate::edge::cases::{self, CasePlace};
use clap::Subcommand;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where cases are looked for if none are named.
const CASES: &str = "tests/fixtures/cases";

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
A case is a folder with case.toml, transcript.*, gold.json and cassette/. It is named by its folder, by its name in \
tests/fixtures/cases, or by a folder above it. A folder with gold/, transcripts/ and answers/ is a suite of answers that \
were recorded for whole transcripts.

A report calls a case by its way below the next folder above it that is called `cases`, whichever folder was
named, or else below the folder that was named; by these names it is compared with a baseline.

Examples:
  annalist test                                   every case, on its recordings
  annalist test --json report.json                and write the report: a baseline of the next run
  annalist test --baseline report.json            what changed since; exits 1 if a case is worse
  annalist test --live --model small --model large --prompt prompts --prompt tried/prompts
                                                  ask both models with both prompts, side by side
  annalist test --record && annalist test review  record a model's answers, look, accept them
  annalist test new two-choices --from session.jsonl
  annalist test --update                          make cassettes of answers.json, and expected/, anew

Offline nothing is asked and no store is opened. Live answers are journaled in the store of the settings and paid for \
once, also where several runs ask the same at the same time. Exit codes: 0 all pass, 1 a case failed, is stale or \
broken, is worse than the baseline or gone from a folder that was named, or nothing of a model and prompt could be \
compared, 2 wrong usage.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: run::Run,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a case of a transcript: its folder, a case.toml with comments, a gold.json to fill in
    New(new::Args),
    /// Look at new recordings, and accept or reject them
    Review(review::Args),
}

pub(super) fn run(args: Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    match args.command {
        Some(Command::New(args)) => new::run(&args, file),
        Some(Command::Review(args)) => review::run(&args, file),
        None => run::run(&args.run, file),
    }
}

/// The cases that are named: folders, or names in the usual place; all of that if none are. And which that covers.
fn find(named: &[PathBuf]) -> Result<(Vec<CasePlace>, Scope), Failure> {
    let usual = Path::new(CASES);
    if named.is_empty() && !usual.is_dir() {
        return Err(Failure::usage(format!(
            "{CASES}: there is no such folder: name a case or a folder of cases, or make one with \
             `annalist test new`"
        )));
    }
    let place = |path: &PathBuf| {
        let inside = usual.join(path);
        if !path.exists() && inside.exists() { inside } else { path.clone() }
    };
    let paths: Vec<PathBuf> = match named.is_empty() {
        true => vec![usual.to_owned()],
        false => named.iter().map(place).collect(),
    };
    let (found, scope, wrong) = cases::find(&paths);
    if let Some((path, why)) = wrong.first() {
        return Err(Failure::usage(format!("{}: {why}", path.display())));
    }
    let twice = found.windows(2).find(|pair| pair[0].name == pair[1].name);
    if let Some(pair) = twice {
        let (name, one, other) = (&pair[0].name, pair[0].is.path(), pair[1].is.path());
        return Err(Failure::usage(format!(
            "two cases are called {name}: {} and {}: name a folder above both, or run them apart",
            one.display(),
            other.display()
        )));
    }
    Ok((found, scope))
}

/// How wide the terminal is. Whoever reads from a file or a pipe misses nothing.
fn width() -> usize {
    let size = terminal_size::terminal_size_of(std::io::stdout());
    size.map_or(usize::MAX, |(width, _)| usize::from(width.0))
}

/// Prints lines that may be styled.
fn print_lines(text: &str) -> Result<(), Failure> {
    output::line(text.trim_end_matches('\n'))
}
