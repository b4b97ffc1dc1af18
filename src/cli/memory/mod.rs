//! `annalist memory`: the Markdown directory that people read and an agent starts with, and the memories behind it.

mod count;
mod init;
mod keep;
mod lint;
mod list;
mod past;
mod place;
mod reflect;
mod search;
mod show;

pub(super) use keep::{after_plan, before_plan};

use super::output::Failure;
use clap::Subcommand;
use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory init                  make the directory, with the files that must be there
  annalist memory sync                  make memory of what waits, and bring the directory in step
  annalist memory search job queue      entries with these words, the fitting ones first
  annalist memory lint --fix            what is wrong, and repair what can be repaired
  annalist memory list                  what is believed now
  annalist memory at 2026-11-01         what was believed then
  annalist memory show 3fa9             one memory, with the records that it rests on

The directory is .claude/memory, or .ai/memory where that is there, of this project or of --dir. What people write in \
it stays: an entry of ours that they change is theirs, one that they take out does not come back.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make the directory, and the files that are not there yet
    Init(init::Args),
    /// Make memory of the records that wait, and bring the directory in step
    Sync(keep::SyncArgs),
    /// Bring the directory in step with the memories, and take up what people did to it
    Render(keep::RenderArgs),
    /// Find what is wrong with the directory
    Lint(lint::Args),
    /// Find entries of the directory by their words
    Search(search::Args),
    /// Count the tags of the directory
    Tags(count::Args),
    /// Count the tokens of the directory, by file, beside what they may be
    Tokens(count::Args),
    /// List memories
    List(list::Args),
    /// Show one memory whole
    Show(show::Args),
    /// Show what happened to a memory, and why
    History(past::HistoryArgs),
    /// List what was believed on a day
    At(past::AtArgs),
    /// Look back: what the records show about how the work went
    Reflect(reflect::Args),
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::Init(args) => init::run(args),
        Command::Sync(args) => keep::sync(args, file),
        Command::Render(args) => keep::render(args, file),
        Command::Lint(args) => lint::run(args, file),
        Command::Search(args) => search::run(args, file),
        Command::Tags(args) => count::tags(args),
        Command::Tokens(args) => count::tokens(args),
        Command::List(args) => list::run(args, file),
        Command::Show(args) => show::run(args, file),
        Command::History(args) => past::history(args, file),
        Command::At(args) => past::at(args, file),
        Command::Reflect(args) => reflect::run(args, file),
    }
}
