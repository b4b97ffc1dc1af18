//! `annalist memory lint`: what is wrong with a directory, and repairs.

use super::super::output::{self, Failure, YELLOW, counted};
use super::super::settings;
use super::place::{Dir, name_of, read, unreadable};
use crate::config::Config;
use crate::domain::{MemoryId, MemoryState, Severity};
use crate::edge::clock;
use crate::edge::memory_dir::{MemoryFolder, Read, Written};
use crate::edge::store::{Open, Store, StoreErrorKind};
use crate::memory_dir::{Files, Issue, Linting, fix, lint, print_json, print_sarif, print_text};
use crate::privacy::Gate;
use clap::ValueEnum;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

/// The rule of files that are not there.
const MISSING_FILE: &str = "missing-file";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory lint
  annalist memory lint --fix
  annalist memory lint --format sarif > memory.sarif

Exits with 1 if an error is left. Where there is a store, tags that name a memory are looked up in it.")]
pub(super) struct Args {
    /// Repair what can be repaired without asking; nothing is taken away but what stands twice
    #[arg(long)]
    fix: bool,
    /// How issues are printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    dir: Dir,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// One line an issue
    Text,
    /// The issues, and how many there are
    Json,
    /// SARIF 2.1.0, which code hosts show beside the lines
    Sarif,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let config = settings::load(file)?;
    let folder = args.dir.find()?;
    let Read { mut files, skipped } = read(&folder)?;
    let gate = Gate::new(&config.pii);
    let known = known(&config)?;
    let today = clock::now();
    if args.fix {
        let linting = Linting { files: &files, known: known.as_ref(), today, gate: &gate };
        let fixed = fix(&linting);
        repair(&folder, &mut files, fixed)?;
    }
    let mut issues = lint(&Linting { files: &files, known: known.as_ref(), today, gate: &gate });
    // It is there, and was told of as it was read.
    let is_there = |path: &str| skipped.iter().any(|(left_out, _)| left_out == path);
    issues.retain(|issue| issue.rule != MISSING_FILE || !is_there(&issue.path));
    print(&issues, args.format, &folder)?;
    let errors = issues.iter().any(|issue| issue.severity == Severity::Error);
    let failed = errors || !skipped.is_empty();
    Ok(if failed { ExitCode::from(output::FAILED) } else { ExitCode::SUCCESS })
}

/// Writes what was repaired, and puts it into `files`.
fn repair(folder: &MemoryFolder, files: &mut Files, fixed: Files) -> Result<(), Failure> {
    for (path, text) in fixed {
        let before = files.get(&path).map(String::as_str);
        let written = folder.write(&path, before, Some(&text));
        match written.map_err(|error| unreadable(&folder.path().join(&path), &error))? {
            Written::Done | Written::Already => {
                output::note(&format!("repaired {path}"));
                files.insert(path, text);
            }
            Written::Changed => output::note(&format!(
                "{YELLOW}{path}: somebody changed it meanwhile: left as it is{YELLOW:#}"
            )),
        }
    }
    Ok(())
}

fn print(issues: &[Issue], format: Format, folder: &MemoryFolder) -> Result<(), Failure> {
    match format {
        Format::Json => output::json(&print_json(issues)),
        Format::Sarif => output::json(&print_sarif(issues, name_of(folder))),
        Format::Text => {
            output::bytes(print_text(issues).as_bytes())?;
            let fixable = issues.iter().filter(|issue| issue.fixable).count() as u64;
            let found = counted(issues.len() as u64, "issue");
            output::note(&match fixable {
                0 => found,
                fixable => format!("{found}; --fix repairs {fixable}"),
            });
            Ok(())
        }
    }
}

/// The memories of the store, if there is a store: without one nobody can say which there are.
fn known(config: &Config) -> Result<Option<BTreeMap<MemoryId, MemoryState>>, Failure> {
    let store = match Store::open(&config.store_url, Open::Existing) {
        Ok(store) => store,
        Err(error) if matches!(error.kind, StoreErrorKind::Missing) => return Ok(None),
        Err(error) => {
            let why = Failure::from(error).line;
            output::note(&format!(
                "{YELLOW}tags that name memories are not checked: {why}{YELLOW:#}"
            ));
            return Ok(None);
        }
    };
    let memories = settings::runtime()?.block_on(store.memories(None))?;
    Ok(Some(memories.into_iter().map(|(id, memory)| (id, memory.state)).collect()))
}
