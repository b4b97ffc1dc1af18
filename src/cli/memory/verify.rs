//! `annalist memory verify`: finds memories that name code which no longer exists.

use super::folder::{DirArgs, namespace_of};
use crate::cli::output::{self, Failure, Row, short, shorten};
use crate::cli::settings;
use crate::domain::{MemoryId, MemoryMap};
use crate::pipeline::{MissingName, Verification, VerifyError};
use crate::store::OpenMode;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

const HEADLINE_LETTERS: usize = 70;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: annalist memory verify --json

Paths, symbols, commands, versions and ports that a memory names are looked up in the working tree and in \
git. Only what stood there once can be missed. No memory is changed: `annalist memory supersede`, `close` \
or an edit of its line does that.")]
pub(super) struct Args {
    /// The namespace, instead of that of the settings or of the project's folder
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dir: DirArgs,
}

/// A name that the code no longer has, as JSON and in a list.
#[derive(JsonSchema, Serialize)]
pub(in crate::cli) struct MissingRow {
    memory: MemoryId,
    claim: String,
    name: String,
    since: String,
}

impl Row for MissingRow {
    const HEADER: &'static [&'static str] = &["memory", "claim", "not found in the code", "since"];

    fn cells(&self) -> Vec<String> {
        let claim = shorten(&self.claim, HEADLINE_LETTERS);
        vec![short(&self.memory), claim, self.name.clone(), self.since.clone()]
    }
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let config = settings::load(file)?;
    let folder = args.dir.find()?;
    let store = settings::open_store(&config, OpenMode::Existing)?;
    let rows = settings::runtime()?.block_on(async {
        let namespace = match &args.namespace {
            Some(named) => named.clone(),
            None => namespace_of(&store, &config, &folder).await?,
        };
        let memories = store.memories(Some(&namespace)).await?;
        let dir = folder.path().display().to_string();
        let root = folder.path().ancestors().nth(2).unwrap_or(folder.path());
        let verification = Verification { store: &store, dir: &dir, root, is_forced: true };
        match verification.run(memories.values()).await {
            Ok(found) => Ok(rows(&found, &memories)),
            Err(VerifyError::Store(error)) => Err(error.into()),
            Err(VerifyError::Code(error)) => Err(Failure::usage(error.to_string())),
        }
    })?;
    output::rows(
        &rows,
        args.json,
        "the code has everything that memories name and that it once had",
    )?;
    Ok(ExitCode::SUCCESS)
}

fn rows(found: &[MissingName], memories: &MemoryMap) -> Vec<MissingRow> {
    let row = |it: &MissingName| {
        let claim = memories.get(&it.memory)?.claim.headline().to_owned();
        let MissingName { memory, name, commit } = it.clone();
        Some(MissingRow { memory, claim, name, since: commit })
    };
    found.iter().filter_map(row).collect()
}
