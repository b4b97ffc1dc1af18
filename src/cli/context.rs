//! `annalist context`: the block at the start of an agent's session.

use super::output::{self, Failure};
use super::session_input::StoredSession;
use super::settings;
use crate::adapters::memory_files::{MemoryFolder, PLACES};
use crate::config::Config;
use crate::context::{Budget, Material, assemble, material};
use crate::dialog_summary::DialogRules;
use crate::domain::Severity;
use crate::memory_card::Card;
use crate::pipeline::{ProjectDirectory, ShownFiles};
use crate::privacy::Gate;
use std::path::{Path, PathBuf};

const LISTED_MAX: usize = 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist context                        the block that an agent starts with
  annalist context --budget economy       2,000 tokens; light has 3,000,
                                          standard 4,000, detailed 6,000
  annalist context --query \"retry queue\"  also matching records
  annalist context --session 079da        also the last turns of a session
  annalist context --json                 with its parts, and what did not fit

Shows rules, decisions, contradictions, open requests, open questions, blockers, lessons and \
terms, one line each with its day and source. Reads .claude/memory or .ai/memory in this folder, \
or in a parent up to the root of the repository. Private text is left out, lines are never \
truncated, omissions are marked, and the same files give the same bytes. Calls no model, and opens \
the store only for --session.")]
pub(super) struct Args {
    /// Maximum length: economy, light, standard, detailed, or a number of tokens; default: that of
    /// .memory-config.md
    #[arg(long, value_name = "BUDGET")]
    budget: Option<String>,
    /// Add the last turns and the card of a session, by ID or ID prefix
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Prefer entries with these words; also show sessions, records and the archive
    #[arg(long, value_name = "WORDS")]
    query: Option<String>,
    /// Project folder, instead of this folder and its parents
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print the block and its parts as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<(), Failure> {
    let named = args.budget.as_deref().map(budget).transpose()?;
    let config = settings::load(file)?;
    let gate = Gate::new(&config.pii);
    let query = args.query.as_deref().filter(|words| !words.trim().is_empty());
    let directory = directory(args.dir.as_deref())?;
    let kept = directory.as_ref().map(|it| it.settings.token_budget);
    let budget = named.or_else(|| kept.map(Budget::of)).unwrap_or_default();
    let mut shown = Material::default();
    if let Some(directory) = &directory {
        let read = directory.read(query.is_some());
        let ShownFiles { files, skipped } = read.map_err(|error| {
            Failure::failed(format!("{}: cannot be read: {error}", path(directory)))
        })?;
        say_skipped(&skipped);
        shown = material(&files, query, &gate);
    }
    if let Some(id) = &args.session {
        add_session(&mut shown, id, &config, &gate)?;
    }
    let block = assemble(&shown, &budget, &gate);
    if block.text.is_empty() {
        output::note(&why_nothing(directory.as_ref(), args));
    }
    if args.json {
        return output::json(&block);
    }
    // An agent reads the bytes, a person in a terminal reads lines.
    match output::window() {
        Some(_) => output::line(block.text.as_str().trim_end()),
        None => output::bytes(block.text.as_str().as_bytes()),
    }
}

pub(super) fn budget(text: &str) -> Result<Budget, Failure> {
    let (budget, findings) = Budget::parse(text);
    for finding in findings {
        if finding.severity > Severity::Info {
            return Err(Failure::usage(format!(
                "--budget {text}: expected economy, light, standard, detailed or a number of tokens"
            )));
        }
        output::note(&format!("--budget {text}: {}", finding.detail));
    }
    Ok(budget)
}

fn why_nothing(directory: Option<&ProjectDirectory>, args: &Args) -> String {
    match (directory, &args.session) {
        (Some(it), None) => {
            format!("nothing to show: {} is empty, or nothing fits the budget", path(it))
        }
        (Some(_) | None, Some(_)) => "nothing to show, or nothing fits the budget".to_owned(),
        (None, None) => {
            let place = args.dir.as_ref().map_or_else(
                || "in this folder or a parent".to_owned(),
                |dir| format!("in {}", dir.display()),
            );
            let [first, second] = PLACES;
            format!(
                "no memory directory: expected {first} or {second} {place}; \
                 `annalist memory init` creates one"
            )
        }
    }
}

pub(super) fn say_skipped(skipped: &[(String, &'static str)]) {
    let line = |(path, why): &(String, &str)| output::warning(&format!("{path}: {why}"));
    output::notes(skipped.iter().map(line), LISTED_MAX, "more files were left out");
}

fn add_session(
    shown: &mut Material,
    id: &str,
    config: &Config,
    gate: &Gate,
) -> Result<(), Failure> {
    let stored = StoredSession::find(id, config, None)?;
    let rules = DialogRules { gate, limits: config.dialog };
    let block = stored.dialog.block(&stored.records.iter().collect::<Vec<_>>(), rules);
    shown.dialog = Some(block.text).filter(|text| !text.is_empty());
    // The next worker replaces a card that another version wrote.
    shown.card = stored.card.and_then(|card| serde_json::from_str::<Card>(&card).ok());
    Ok(())
}

pub(super) fn directory(dir: Option<&Path>) -> Result<Option<ProjectDirectory>, Failure> {
    let found = match dir {
        Some(dir) => MemoryFolder::find(dir),
        None => MemoryFolder::find_above(Path::new("."), settings::home().as_deref()),
    };
    let found = found.map_err(|error| {
        let place = dir.unwrap_or(Path::new(".")).display();
        Failure::usage(format!("{place}: cannot be read: {error}"))
    })?;
    Ok(found.map(ProjectDirectory::new))
}

fn path(directory: &ProjectDirectory) -> String {
    directory.folder.path().display().to_string()
}
