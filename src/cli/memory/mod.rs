//! `annalist memory`: the Markdown directory that people read and an agent starts with, and the memories
//! behind it.

mod directory;
mod memories;
mod reflect;
mod sync;

pub(super) use directory::{LintReport, TokensReport};
pub(super) use memories::{HistoryRow, MemoryRow};
pub(super) use reflect::RetrospectiveRow;
pub(super) use sync::{SyncReport, SyncWithPlans, after_plan, before_plan};

use super::output::{self, Failure, YELLOW};
use super::settings;
use crate::adapters::clock;
use crate::adapters::memory_files::{DirectoryRead, MemoryFolder, PLACES, WriteOutcome};
use crate::config::Config;
use crate::memory_dir::{Initial, initial_files};
use crate::pipeline::directory_namespace;
use crate::privacy::Gate;
use clap::Subcommand;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory init              make the directory, with its required files
  annalist memory sync              consolidate waiting records, update the directory
  annalist memory search job queue  entries with these words, best match first
  annalist memory lint --fix        find problems, and repair what can be repaired
  annalist memory list              what is believed now
  annalist memory at 2026-11-01     what was believed then
  annalist memory show 3fa9         one memory, with the records that it rests on

The directory is .claude/memory, or .ai/memory where that exists, of this project or of --dir. What \
people write in it stays: an entry of ours that they change is theirs, one that they delete does not \
come back.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make the directory and its missing files
    Init(InitArgs),
    /// Consolidate the records that wait, and update the directory
    Sync(sync::SyncArgs),
    /// Update the directory from the memories, and take over people's edits
    Render(sync::RenderArgs),
    /// Find problems in the directory
    Lint(directory::LintArgs),
    /// Find entries of the directory by their words
    Search(directory::SearchArgs),
    /// Count the tags of the directory
    Tags(directory::CountArgs),
    /// Count the tokens of each file of the directory, and compare them with its budget
    Tokens(directory::CountArgs),
    /// List memories
    #[command(after_help = "Example: annalist memory list --all --namespace roofs")]
    List(memories::ListArgs),
    /// Show one memory whole
    Show(memories::MemoryArgs),
    /// Show what happened to a memory, and why
    History(memories::MemoryArgs),
    /// List what was believed on a day
    At(memories::AtArgs),
    /// Look back: what the records show about how the work went
    Reflect(reflect::Args),
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::Init(args) => init(args),
        Command::Sync(args) => sync::sync(args, file),
        Command::Render(args) => sync::render(args, file),
        Command::Lint(args) => directory::lint(args, file),
        Command::Search(args) => directory::search(args, file),
        Command::Tags(args) => directory::tags(args),
        Command::Tokens(args) => directory::tokens(args),
        Command::List(args) => memories::list(args, file),
        Command::Show(args) => memories::show(args, file),
        Command::History(args) => memories::history(args, file),
        Command::At(args) => memories::at(args, file),
        Command::Reflect(args) => reflect::run(args, file),
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: annalist memory init --all")]
struct InitArgs {
    /// Make every file of the schema, and the directory's settings
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    dir: DirArgs,
}

fn init(args: &InitArgs) -> Result<ExitCode, Failure> {
    let root = args.dir.root();
    let folder = MemoryFolder::make(&root).map_err(|error| unreadable(&root, &error))?;
    let which = if args.all { Initial::All } else { Initial::Required };
    let mut made = 0;
    for (path, text) in initial_files(which, &clock::now().day()) {
        let written = folder.write(path, None, Some(&text));
        match written.map_err(|error| unreadable(&folder.path().join(path), &error))? {
            WriteOutcome::Written => {
                made += 1;
                output::line(&format!("made {}", folder.path().join(path).display()))?;
            }
            WriteOutcome::Unchanged | WriteOutcome::ChangedMeanwhile => {}
        }
    }
    match made {
        0 => output::note(&format!("{}: no file is missing", folder.path().display())),
        _ => output::note("`annalist memory sync` fills it; keep it in git"),
    }
    Ok(ExitCode::SUCCESS)
}

/// The flag that names the directory.
#[derive(Debug, Default, clap::Args)]
struct DirArgs {
    /// The project's folder, or its memory directory, instead of the project of this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl DirArgs {
    /// The folder of the project.
    fn root(&self) -> PathBuf {
        let named = self.dir.as_deref().unwrap_or(Path::new("."));
        if !PLACES.iter().any(|place| named.ends_with(place)) {
            return named.to_owned();
        }
        let root = named.ancestors().nth(2).unwrap_or(named);
        if root.as_os_str().is_empty() { PathBuf::from(".") } else { root.to_owned() }
    }

    /// The directory, which must exist.
    fn find(&self) -> Result<MemoryFolder, Failure> {
        let root = self.root();
        let found = match self.dir {
            Some(_) => MemoryFolder::find(&root).map_err(|error| unreadable(&root, &error))?,
            None => project_directory(&root)?,
        };
        found.ok_or_else(|| {
            Failure::usage(format!(
                "{}: there is no memory directory ({}): `annalist memory init` makes one",
                root.display(),
                PLACES.join(" or ")
            ))
        })
    }
}

/// The directory of the project that a folder belongs to, if it has one.
fn project_directory(folder: &Path) -> Result<Option<MemoryFolder>, Failure> {
    let found = MemoryFolder::find_above(folder, settings::home().as_deref());
    found.map_err(|error| unreadable(folder, &error))
}

/// The files of a directory; unreadable ones are noted.
fn read(folder: &MemoryFolder) -> Result<DirectoryRead, Failure> {
    let read = folder.read().map_err(|error| unreadable(folder.path(), &error))?;
    for (path, reason) in &read.skipped {
        output::note(&format!("{YELLOW}{path}: {reason}: left out{YELLOW:#}"));
    }
    Ok(read)
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("{}: {error}", path.display()))
}

/// The one of [`PLACES`] that a directory is.
fn place_of(folder: &MemoryFolder) -> &'static str {
    PLACES.into_iter().find(|place| folder.path().ends_with(place)).unwrap_or(PLACES[0])
}

/// The namespace of a directory: the one of the settings, or that of the folder.
fn namespace_of(config: &Config, gate: &Gate, folder: &MemoryFolder) -> String {
    let root = folder.path().ancestors().nth(2).unwrap_or(folder.path());
    config.namespace.clone().unwrap_or_else(|| directory_namespace(root, gate))
}
