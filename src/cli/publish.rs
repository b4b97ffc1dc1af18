//! `annalist publish`: writes standing rules and current decisions into a file for all agents.

use super::context::{budget, directory, say_skipped};
use super::init::{self, Change};
use super::output::{self, Failure};
use super::settings;
use crate::adapters::files;
use crate::adapters::memory_files::PLACES;
use crate::context::{Block, Kind, assemble, for_agents, material, with_block};
use crate::domain::Tokens;
use crate::pipeline::{ProjectDirectory, ShownFiles};
use crate::privacy::Gate;
use crate::text::diff::difference;
use schemars::JsonSchema;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist publish                  write a block into AGENTS.md
  annalist publish CLAUDE.md        into another file of the project
  annalist publish --check          exit 1 if the block is out of date
  annalist publish --remove         remove the block

The block contains the standing rules and current decisions of the memory directory, redacted \
again; the same memory gives the same bytes. Everything outside it keeps every byte. The file is \
replaced as a whole, and never through a link that leaves the project.")]
pub(super) struct Args {
    /// File in the project folder
    #[arg(default_value = "AGENTS.md")]
    file: PathBuf,
    /// Maximum length: economy, light, standard, detailed, or a number of tokens
    #[arg(long, value_name = "BUDGET", default_value = "economy")]
    budget: String,
    /// Write nothing; exit 1 if the file would change
    #[arg(long)]
    check: bool,
    /// Remove the block from the file
    #[arg(long)]
    remove: bool,
    /// Project folder, instead of this folder and its parents
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A published block, as JSON.
#[derive(JsonSchema, Serialize)]
pub(super) struct PublishReport {
    /// The file.
    path: String,
    /// True if it was changed, or with `--check` would be.
    changed: bool,
    /// Length of the block.
    tokens: Tokens,
    /// Rules and decisions in it.
    entries: usize,
    /// Those that did not fit.
    omitted: usize,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<(), Failure> {
    let config = settings::load(file)?;
    let gate = Gate::new(&config.pii);
    let Some(directory) = directory(args.dir.as_deref())? else {
        let [first, second] = PLACES;
        return Err(Failure::usage(format!(
            "no memory directory: expected {first} or {second} in this folder or a parent; \
             `annalist memory init` creates one"
        )));
    };
    let block = block(&directory, args, &gate)?;
    if !args.remove && block.text.as_str().is_empty() && block.parts.iter().any(|it| it.omitted > 0)
    {
        let budget = &args.budget;
        return Err(Failure::usage(format!(
            "--budget {budget}: no rule or decision fits; choose a larger budget, or --remove"
        )));
    }
    let path = target(&directory, &args.file)?;
    let shown = args.file.display();
    let unreadable = |error: io::Error| Failure::failed(format!("{shown}: {error}"));
    let there = files::read_if_exists(&path).map_err(unreadable)?;
    let before = there.clone().unwrap_or_default();
    let text = for_agents(block.text.as_str());
    let text = Some(text.as_str()).filter(|text| !args.remove && !text.is_empty());
    let after =
        with_block(&before, text).map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
    let changed = before != after;
    if changed && !args.check {
        // A file that contained only the block is deleted.
        let after = (!after.is_empty()).then(|| after.clone());
        init::write(&Change { path, before: there.clone(), after })?;
    }
    if args.json {
        let count = |of: fn(&crate::context::Part) -> usize| block.parts.iter().map(of).sum();
        output::json(&PublishReport {
            path: shown.to_string(),
            changed,
            tokens: if text.is_some() { block.tokens } else { 0 },
            entries: count(|part| part.entries),
            omitted: count(|part| part.omitted),
        })?;
    } else if changed {
        output::line(gate.redact(&difference(&before, &after)).as_str().trim_end())?;
    }
    output::note(&match (changed, args.check) {
        (false, _) if there.is_none() && !args.remove => {
            "nothing to publish: the memory directory has no rules or decisions; \
             `annalist memory sync` fills it"
                .to_owned()
        }
        (false, _) => format!("{shown} is up to date"),
        (true, true) => format!("{shown} is out of date: `annalist publish {shown}` updates it"),
        (true, false) if text.is_none() => format!("removed the block from {shown}"),
        (true, false) => format!("wrote {shown}"),
    });
    output::fail_if(changed && args.check)
}

fn block(directory: &ProjectDirectory, args: &Args, gate: &Gate) -> Result<Block, Failure> {
    let budget = budget(&args.budget)?;
    let ShownFiles { files, skipped } = directory.read(false).map_err(|error| {
        Failure::failed(format!("{}: {error}", directory.folder.path().display()))
    })?;
    say_skipped(&skipped);
    let mut shown = material(&files, None, gate);
    shown.groups.retain(|group| matches!(group.kind, Kind::Rules | Kind::Decisions));
    Ok(assemble(&shown, &budget, gate))
}

/// Resolves a file in the project's folder; links must not leave it.
fn target(directory: &ProjectDirectory, file: &Path) -> Result<PathBuf, Failure> {
    let root = directory.folder.project();
    let path = root.join(file);
    let real = match path.symlink_metadata() {
        Ok(_) => path.canonicalize(),
        Err(_) => path.parent().unwrap_or(root).canonicalize().and_then(|folder| {
            let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
            Ok(folder.join(name))
        }),
    };
    let real = real.map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    if !real.starts_with(root) {
        return Err(Failure::usage(format!(
            "{}: is outside {}: expected a file in the project",
            file.display(),
            root.display()
        )));
    }
    Ok(real)
}
