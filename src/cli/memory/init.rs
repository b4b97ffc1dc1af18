//! `annalist memory init`: the directory with the files that must be there.

use super::super::output::{self, Failure};
use super::place::{Dir, unreadable};
use crate::edge::clock;
use crate::edge::memory_dir::{MemoryFolder, Written};
use crate::memory_dir::{Initial, initial_files};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: annalist memory init --all")]
pub(super) struct Args {
    /// Every file of the schema, and the settings
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    dir: Dir,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let root = args.dir.root();
    let folder = MemoryFolder::make(&root).map_err(|error| unreadable(&root, &error))?;
    let which = if args.all { Initial::All } else { Initial::Required };
    let mut made = 0;
    for (path, text) in initial_files(which, &clock::now().day()) {
        let written = folder.write(path, None, Some(&text));
        match written.map_err(|error| unreadable(&folder.path().join(path), &error))? {
            Written::Done => {
                made += 1;
                output::line(&format!("made {}", folder.path().join(path).display()))?;
            }
            Written::Already | Written::Changed => {}
        }
    }
    if made == 0 {
        output::note(&format!("{}: everything is there already", folder.path().display()));
    } else {
        output::note("`annalist memory sync` fills it; keep it in git");
    }
    Ok(ExitCode::SUCCESS)
}
