//! `annalist memory lint` and `search`: commands on the files of the directory.

use super::folder::{DirArgs, place_of, read, unreadable};
use crate::adapters::clock;
use crate::adapters::memory_files::{DirectoryRead, MemoryFolder, WriteOutcome};
use crate::cli::arguments::{date, limit};
use crate::cli::output::{self, BOLD, DIM, Failure, Result, YELLOW, counted};
use crate::cli::settings;
use crate::config::Config;
use crate::domain::{MemoryId, MemoryState, Severity, Timestamp};
use crate::memory_dir::{
    Category, Files, HITS_MAX, Hit, Issue, Linting, LiteralQuery, Query, fix, lint as issues_of,
    literal, print_text, search as hits_of,
};
use crate::pipeline::directory_of;
use crate::privacy::Gate;
use crate::search::{self, NO_WORDS};
use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

const MISSING_FILE: &str = "missing-file";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory lint
  annalist memory lint --fix
  annalist memory lint --format json

Exits 1 if an error remains. If there is a store, tags that name a memory are looked up in it.")]
pub(super) struct LintArgs {
    /// Repair what can be repaired without asking; only duplicates are deleted
    #[arg(long)]
    fix: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    dir: DirArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// One line per issue
    Text,
    /// The issues and their counts
    Json,
}

/// The issues with their numbers by severity, as JSON.
#[derive(JsonSchema, Serialize)]
pub(crate) struct LintReport<'a> {
    issues: &'a [Issue],
    errors: usize,
    warnings: usize,
    infos: usize,
    fixable: usize,
}

impl LintReport<'_> {
    fn of(issues: &[Issue]) -> LintReport<'_> {
        let count = |wanted| issues.iter().filter(|issue| issue.severity == wanted).count();
        LintReport {
            issues,
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            infos: count(Severity::Info),
            fixable: issues.iter().filter(|issue| issue.fixable).count(),
        }
    }
}

pub(super) async fn lint(args: &LintArgs, file: Option<&Path>) -> Result<()> {
    let config = settings::load(file)?;
    let folder = args.dir.find()?;
    let read = folder.read().map_err(|error| unreadable(folder.path(), &error))?;
    let DirectoryRead { mut files, skipped, .. } = read;
    let gate = Gate::new(&config.pii);
    let (known, rendered) = known_memories(&config, &folder).await?.unzip();
    let (known, rendered, today) = (known.as_ref(), &rendered.unwrap_or_default(), clock::now());
    if args.fix {
        let fixed = fix(&Linting { files: &files, known, rendered, today, gate: &gate });
        write_fixed(&folder, &mut files, fixed)?;
    }
    let linting = Linting { files: &files, known, rendered, today, gate: &gate };
    let mut issues = issues_of(&linting);
    // A skipped file exists.
    let is_skipped = |path: &str| skipped.iter().any(|(skipped, _)| skipped == path);
    issues.retain(|issue| issue.rule != MISSING_FILE || !is_skipped(&issue.path));
    issues.extend(folder.missing_folders().map(Issue::missing_folder));
    issues.extend(skipped.iter().map(|(path, reason)| Issue::unreadable(path, reason)));
    issues.sort();
    let report = LintReport::of(&issues);
    match args.format {
        Format::Json => output::json(&report)?,
        Format::Text => {
            output::bytes(print_text(&issues).as_bytes())?;
            let found = counted(issues.len() as u64, "issue");
            output::note(&match report.fixable {
                0 => found,
                left if args.fix => format!("{found}; {left} that --fix could not repair"),
                fixable => format!("{found}; --fix repairs {fixable}"),
            });
        }
    }
    output::fail_if(report.errors > 0)
}

fn write_fixed(folder: &MemoryFolder, files: &mut Files, fixed: Files) -> Result<()> {
    for (path, text) in fixed {
        let before = files.get(&path).map(|it| &**it);
        let written = folder.write(&path, before, Some(&text));
        match written.map_err(|error| unreadable(&folder.path().join(&path), &error))? {
            WriteOutcome::Written | WriteOutcome::Unchanged => {
                output::note(&format!("repaired {path}"));
                files.insert(path, text);
            }
            WriteOutcome::ChangedMeanwhile => output::note(&format!(
                "{YELLOW}{path}: changed in the meantime; not repaired{YELLOW:#}"
            )),
        }
    }
    Ok(())
}

/// States of all memories, and the directory as rendered last.
type Known = (BTreeMap<MemoryId, MemoryState>, Files);

async fn known_memories(config: &Config, folder: &MemoryFolder) -> Result<Option<Known>> {
    let store = settings::known_store(config).unwrap_or_else(|error| {
        let why = Failure::from(error).line;
        output::note(&format!("{YELLOW}tags that name memories are not checked: {why}{YELLOW:#}"));
        None
    });
    let Some(store) = store else { return Ok(None) };
    let memories = store.memories(None).await?;
    let states = memories.into_iter().map(|(id, memory)| (id, memory.state)).collect();
    Ok(Some((states, store.rendered(&directory_of(folder).dir).await?)))
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory search job queue
  annalist memory search --literal \"token budget\"

Searches the directory's files, best match first; `annalist search` finds records and memories \
too. --literal finds an exact text and prints it as ConKeeper's own search does; it searches \
sessions only with --sessions. Private blocks and private files are never searched.")]
pub(super) struct SearchArgs {
    /// Words in any case and order
    #[arg(required = true)]
    words: Vec<String>,
    /// Find the exact text, case-sensitively
    #[arg(long)]
    literal: bool,
    /// Search sessions too
    #[arg(long, requires = "literal")]
    sessions: bool,
    /// Only entries with this category
    #[arg(long, value_name = "CATEGORY", value_parser = category, requires = "literal")]
    category: Option<Category>,
    /// Only entries of this day or later, such as today or 7d
    #[arg(long, value_name = "DATE", value_parser = date, requires = "literal")]
    since: Option<Timestamp>,
    /// Show at most N entries
    #[arg(long, value_name = "N", default_value_t = HITS_MAX, value_parser = limit(), conflicts_with = "literal")]
    limit: usize,
    /// Print JSON
    #[arg(long, conflicts_with = "literal")]
    json: bool,
    #[command(flatten)]
    dir: DirArgs,
}

fn category(name: &str) -> Result<Category, String> {
    let names = || output::commas(Category::ALL.iter().map(|it| it.name()));
    Category::of_name(name).ok_or_else(|| format!("expected one of {}", names()))
}

pub(super) fn search(args: &SearchArgs, file: Option<&Path>) -> Result<()> {
    let config = settings::load(file)?;
    let words = args.words.join(" ");
    if words.trim().is_empty() || !args.literal && search::Query::of(&words).is_empty() {
        return Err(Failure::usage(NO_WORDS));
    }
    let folder = args.dir.find()?;
    let files = read(&folder)?.files;
    let gate = Gate::new(&config.pii);
    if args.literal {
        let root = format!("{}/", place_of(&folder));
        let since = args.since.map(Timestamp::day);
        let query = LiteralQuery {
            text: &words,
            sessions: args.sessions,
            since: since.as_deref(),
            category: args.category.map(Category::name),
            root: &root,
        };
        return output::bytes(literal(&files, &query, &gate).page.as_str().as_bytes());
    }
    let hits = hits_of(&files, &Query { words, hits_max: args.limit, ..Query::default() }, &gate);
    if args.json {
        output::json(&hits)?;
    } else {
        hits.iter().try_for_each(print_hit)?;
    }
    if hits.is_empty() {
        output::note("nothing found; `annalist search` also searches records and memories");
    }
    output::fail_if(hits.is_empty())
}

fn print_hit(hit: &Hit) -> Result<()> {
    let Hit { path, line, section, lines, .. } = hit;
    output::line(&format!("{BOLD}{path}:{line}{BOLD:#}  {DIM}{}{DIM:#}", section.as_str()))?;
    for (number, line) in lines {
        output::line(&format!("  {DIM}{number:>4}{DIM:#}  {}", line.as_str()))?;
    }
    output::line("")
}
