//! `annalist memory`: the Markdown directory for people and agents, and its memories.

mod directory;
pub(super) mod folder;
mod memories;
mod reflect;
mod sync;
mod verdicts;

pub(super) use directory::LintReport;
pub(super) use memories::{HistoryRow, MissingRow, headline, undecided};
pub(super) use sync::{SyncReport, SyncWithPlans};
pub(super) use verdicts::VerdictRow;

use super::output::{self, Result, in_pages};
use crate::adapters::clock;
use crate::adapters::memory_files::{MemoryFolder, PLACES, WriteOutcome};
use crate::consolidate::PersonVerdict;
use crate::memory_dir::{Initial, initial_files};
use clap::Subcommand;
use folder::{DirArgs, project_directory, unreadable};
use std::path::Path;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory init              create the directory and its required files
  annalist memory sync              consolidate, and update the directory
  annalist memory lint --fix        find problems, and repair what it can
  annalist memory list              list current memories
  annalist memory at 2026-11-01     list the memories that held on a day
  annalist memory show 3fa9         show one memory and its sources

The directory is .claude/memory, or .ai/memory if only that exists, in this project or in --dir. Your \
edits are kept: an entry that you change is yours, and one that you delete does not come back.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create the directory and its missing files
    Init(InitArgs),
    /// Consolidate staged records, and update the directory
    Sync(sync::SyncArgs),
    /// Update the directory from the memories, and import people's edits
    Render(sync::RenderArgs),
    /// Find problems in the directory
    Lint(directory::LintArgs),
    /// Search the entries of the directory
    Search(directory::SearchArgs),
    /// List memories
    #[command(after_help = "Example: annalist memory list --all --namespace roofs")]
    List(memories::ListArgs),
    /// Show one memory in full
    Show(memories::MemoryArgs),
    /// Show what happened to a memory, and why
    History(memories::MemoryArgs),
    /// List the memories that held on a day
    At(memories::AtArgs),
    /// Decide that two memories both hold
    KeepBoth(verdicts::KeepBothArgs),
    /// Decide that one memory supersedes another
    Supersede(verdicts::SupersedeArgs),
    /// Decide that a request is fulfilled, a question answered or a failure solved
    Close(verdicts::OneArgs),
    /// Reopen a closed memory, or restore a superseded or retracted one
    Reopen(verdicts::OneArgs),
    /// Decide that a memory is wrong; nothing replaces it
    Retract(verdicts::OneArgs),
    /// Review open and contradictory memories one by one, and answer with a key
    Review(verdicts::ReviewArgs),
    /// Find memories that name code that no longer exists
    Verify(memories::VerifyArgs),
    /// Print a retrospective: what the records show about how the work went
    Reflect(reflect::Args),
}

pub(super) async fn run(args: &Args, file: Option<&Path>) -> Result<()> {
    use PersonVerdict::{Close, Reopen, Retract};
    match &args.command {
        Command::Init(args) => init(args),
        Command::Sync(args) => sync::sync(args, file).await,
        Command::Render(args) => sync::render(args, file).await,
        Command::Lint(args) => in_pages(directory::lint(args, file)).await,
        Command::Search(args) => in_pages(async { directory::search(args, file) }).await,
        Command::List(args) => in_pages(memories::list(args, file)).await,
        Command::Show(args) => in_pages(memories::show(args, file)).await,
        Command::History(args) => in_pages(memories::history(args, file)).await,
        Command::At(args) => in_pages(memories::at(args, file)).await,
        Command::KeepBoth(args) => verdicts::keep_both(args, file).await,
        Command::Supersede(args) => verdicts::supersede(args, file).await,
        Command::Close(args) => verdicts::one(args, |memory| Close { memory }, file).await,
        Command::Reopen(args) => verdicts::one(args, |memory| Reopen { memory }, file).await,
        Command::Retract(args) => verdicts::one(args, |memory| Retract { memory }, file).await,
        Command::Review(args) => verdicts::review(args, file).await,
        Command::Verify(args) => memories::verify(args, file).await,
        Command::Reflect(args) => in_pages(reflect::run(args, file)).await,
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory init --all
  annalist memory init --dir .  a directory of this folder's own

Below a project that has a directory, this adds the missing files to that one.")]
struct InitArgs {
    /// Create every file of the schema, and the directory's settings
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    dir: DirArgs,
}

fn init(args: &InitArgs) -> Result<()> {
    let mut root = args.dir.root();
    // What cannot be read cannot be written either, with an error that names the folder.
    let above = project_directory(&root).ok().flatten();
    if let Some(above) = above.filter(|_| !args.dir.is_named()) {
        root = above.project().to_owned();
    }
    let there = MemoryFolder::find(&root).ok().flatten();
    let place = there.map_or_else(|| root.join(PLACES[0]), |it| it.path().to_owned());
    let folder = MemoryFolder::make(&root).map_err(output::unwritable(&place))?;
    let which = if args.all { Initial::All } else { Initial::Required };
    let mut made = 0;
    let files = initial_files(which, &clock::now().day());
    for (path, _) in &files {
        folder.inside(path).map_err(|error| unreadable(folder.path(), &error))?;
    }
    for (path, text) in files {
        let written = folder.write(path, None, Some(&text));
        match written.map_err(output::unwritable(&folder.path().join(path)))? {
            WriteOutcome::Written => {
                made += 1;
                output::line(&format!("created {}", folder.path().join(path).display()))?;
            }
            WriteOutcome::Unchanged | WriteOutcome::ChangedMeanwhile => {}
        }
    }
    match made {
        0 => output::note(&format!("{}: no file is missing", folder.path().display())),
        _ => output::note("`annalist memory sync` fills it; keep it in git"),
    }
    Ok(())
}
