//! `annalist context`: the block at the start of an agent's session; `annalist publish`: standing rules and current
//! decisions in a file for all agents.

use super::init::{self, Change};
use super::memory::folder::{no_directory, unreadable};
use super::output::{self, Failure, Result};
use super::session_input::StoredSession;
use super::settings;
use crate::adapters::files;
use crate::adapters::memory_files::MemoryFolder;
use crate::config::Config;
use crate::context::{
    Block, Budget, Kind, Material, Part, assemble, for_agents, material, with_block,
};
use crate::dialog_summary::DialogRules;
use crate::domain::{Severity, Tokens};
use crate::memory_card::Card;
use crate::memory_dir::Kind as FileKind;
use crate::pipeline::{ProjectDirectory, ShownFiles};
use crate::privacy::Gate;
use crate::text::diff::difference;
use schemars::JsonSchema;
use serde::Serialize;
use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};

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

pub(super) async fn run(args: &Args, file: Option<&Path>) -> Result<()> {
    let named = args.budget.as_deref().map(budget).transpose()?;
    let config = settings::load(file)?;
    let gate = Gate::new(&config.pii);
    let query = args.query.as_deref().filter(|words| !words.trim().is_empty());
    let directory = directory(args.dir.as_deref())?;
    let kept = directory.as_ref().map(|it| it.settings.token_budget);
    let budget = named.or_else(|| kept.map(Budget::of)).unwrap_or_default();
    let mut shown = Material::default();
    if let Some(directory) = &directory {
        let read = directory.read(query.is_some()).map_err(output::unreadable(path(directory)));
        let ShownFiles { files, skipped } = read?;
        say_skipped(&skipped);
        shown = material(&files, query, &gate);
    }
    if let Some(id) = &args.session {
        add_session(&mut shown, id, &config, &gate).await?;
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

fn budget(text: &str) -> Result<Budget> {
    let (budget, findings) = Budget::parse(text);
    for finding in findings {
        if finding.severity > Severity::Info {
            return Err(Failure::usage(format!("--budget {text}: expected {}", Budget::EXPECTED)));
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
        (None, None) => no_directory(args.dir.as_deref()),
    }
}

pub(super) fn say_skipped(skipped: &[(String, &'static str)]) {
    let line = |(path, why): &(String, &str)| output::warning(&format!("{path}: {why}"));
    output::notes(skipped.iter().map(line), LISTED_MAX, "more files were left out");
}

async fn add_session(shown: &mut Material, id: &str, config: &Config, gate: &Gate) -> Result<()> {
    let stored = StoredSession::find(id, config, None).await?;
    let rules = DialogRules { gate, limits: config.dialog };
    let block = stored.dialog.block(&stored.records.iter().collect::<Vec<_>>(), rules);
    shown.dialog = Some(block.text).filter(|text| !text.is_empty());
    // The next worker replaces a card that another version wrote.
    shown.card = stored.card.and_then(|card| serde_json::from_str::<Card>(&card).ok());
    Ok(())
}

pub(super) fn directory(dir: Option<&Path>) -> Result<Option<ProjectDirectory>> {
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
pub(super) struct PublishArgs {
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

pub(super) fn publish(args: &PublishArgs, file: Option<&Path>) -> Result<()> {
    let config = settings::load(file)?;
    let gate = Gate::new(&config.pii);
    let Some(directory) = directory(args.dir.as_deref())? else {
        return Err(Failure::usage(no_directory(args.dir.as_deref())));
    };
    let block = block(&directory, args, &gate)?;
    if !args.remove && block.text.as_str().is_empty() && block.parts.iter().any(|it| it.omitted > 0)
    {
        let budget = &args.budget;
        return Err(Failure::usage(format!(
            "--budget {budget}: no rule or decision fits; choose a larger budget, or --remove"
        )));
    }
    let path = target(&directory, args)?;
    let shown = args.file.display();
    let there = files::read_if_exists(&path).map_err(|error| unreadable(&args.file, &error))?;
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
        let count = |of: fn(&Part) -> usize| block.parts.iter().map(of).sum();
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
        (false, _) if args.remove => match there {
            Some(_) => format!("{shown} contains no block to remove"),
            None => format!("{shown} does not exist: there is no block to remove"),
        },
        (false, _) if there.is_none() => {
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

fn block(directory: &ProjectDirectory, args: &PublishArgs, gate: &Gate) -> Result<Block> {
    let budget = budget(&args.budget)?;
    let read = directory.read(false);
    let ShownFiles { files, skipped } =
        read.map_err(|error| unreadable(directory.folder.path(), &error))?;
    let kinds = [FileKind::ActiveContext, FileKind::Patterns, FileKind::Decision, FileKind::Other];
    let feeds = |path: &str| kinds.contains(&FileKind::of_path(path));
    if let Some((path, why)) = skipped.iter().find(|(path, _)| feeds(path) && !args.remove) {
        return Err(Failure::failed(format!(
            "{path}: {why}: expected its rules or decisions for {}, which stays as it is; repair or delete {path}",
            args.file.display()
        )));
    }
    say_skipped(&skipped);
    let mut shown = material(&files, None, gate);
    shown.groups.retain(|group| matches!(group.kind, Kind::Rules | Kind::Decisions));
    Ok(assemble(&shown, &budget, gate))
}

/// File name extensions of texts that agents read; `.cursorrules` has none.
const TEXTS: [&str; 7] = ["md", "mdc", "mdx", "markdown", "txt", "rst", "adoc"];

/// Resolves a file in the project's folder; links must not leave it. Git's own files and the memory directory have no
/// block, but `--remove` takes one out of them.
fn target(directory: &ProjectDirectory, args: &PublishArgs) -> Result<PathBuf> {
    let (file, root) = (&args.file, directory.folder.project());
    let no_text = || {
        let expected = "expected a text that agents read, such as AGENTS.md";
        Failure::usage(format!("{}: {expected}", file.display()))
    };
    let is_text = |end: &OsStr| TEXTS.iter().any(|it| end.eq_ignore_ascii_case(it));
    if !file.extension().is_none_or(is_text) {
        return Err(no_text());
    }
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
    let is_git = |it: Component<'_>| it.as_os_str().eq_ignore_ascii_case(".git");
    // Each line of .gitignore and .gitattributes is a rule.
    let is_rules = real.file_name().is_some_and(|it| it.as_encoded_bytes().starts_with(b".git"));
    let is_reserved =
        is_rules || real.starts_with(directory.folder.path()) || real.components().any(is_git);
    if is_reserved && !args.remove { Err(no_text()) } else { Ok(real) }
}
