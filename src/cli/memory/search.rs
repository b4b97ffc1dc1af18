//! `annalist memory search`: entries by their words, the fitting ones first; never what is private.

use super::super::output::{self, BOLD, DIM, Failure};
use super::super::settings;
use super::place::{Dir, name_of, read};
use crate::domain::Timestamp;
use crate::memory_dir::{Category, HITS_MAX, Hit, Kind, Literal, Query, literal, search};
use crate::privacy::Gate;
use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory search job queue
  annalist memory search --category decision --since 2026-11-01
  annalist memory search --literal \"token budget\"

Private blocks and private files are never searched. --literal finds a text letter by letter and prints it as \
ConKeeper's own search does; sessions only with --sessions.")]
pub(super) struct Args {
    /// Words in any case and order; an entry needs one of them
    words: Vec<String>,
    /// Only entries with this category
    #[arg(long, value_name = "CATEGORY", value_parser = category)]
    category: Option<Category>,
    /// Only entries with this tag
    #[arg(long, value_name = "TAG", conflicts_with = "literal")]
    tag: Option<String>,
    /// Only files of this kind, such as decision, session or patterns
    #[arg(long, value_name = "KIND", value_parser = kind, conflicts_with = "literal")]
    kind: Option<Kind>,
    /// Only files of this day or later
    #[arg(long, value_name = "DATE", value_parser = super::super::replay::date)]
    since: Option<Timestamp>,
    /// At most so many entries
    #[arg(long, value_name = "N", default_value_t = HITS_MAX, conflicts_with = "literal")]
    limit: usize,
    /// Find the text letter by letter, with its capitals
    #[arg(long, requires = "words")]
    literal: bool,
    /// Search sessions too
    #[arg(long, requires = "literal")]
    sessions: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "literal")]
    json: bool,
    #[command(flatten)]
    dir: Dir,
}

fn category(name: &str) -> Result<Category, String> {
    Category::of_name(name).ok_or_else(|| expected(Category::ALL.iter().map(|it| it.name())))
}

fn kind(name: &str) -> Result<Kind, String> {
    Kind::of_name(name).ok_or_else(|| expected(Kind::ALL.iter().map(|it| it.name())))
}

fn expected(names: impl Iterator<Item = &'static str>) -> String {
    format!("expected one of {}", names.collect::<Vec<_>>().join(", "))
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let config = settings::load(file)?;
    let folder = args.dir.find()?;
    let files = read(&folder)?.files;
    let gate = Gate::new(&config.pii);
    let words = args.words.join(" ");
    let since = args.since.map(Timestamp::day);
    if args.literal {
        let root = format!("{}/", name_of(&folder));
        let query = Literal {
            text: &words,
            sessions: args.sessions,
            since: since.as_deref(),
            category: args.category.map(Category::name),
            root: &root,
        };
        return output::bytes(literal(&files, &query, &gate).page.as_str().as_bytes());
    }
    let (category, tag, kind) = (args.category, args.tag.clone(), args.kind);
    let query =
        Query { words, category, tag, kind, since, hits_max: args.limit, ..Query::default() };
    let hits = search(&files, &query, &gate);
    if args.json {
        output::json(&hits)?;
    } else {
        hits.iter().try_for_each(print)?;
        if hits.is_empty() {
            output::note("nothing found");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(hit: &Hit) -> Result<(), Failure> {
    output::line(&format!(
        "{BOLD}{}:{}{BOLD:#}  {DIM}{}{DIM:#}",
        hit.path,
        hit.line,
        hit.section.as_str()
    ))?;
    for (number, line) in &hit.lines {
        output::line(&format!("  {DIM}{number:>4}{DIM:#}  {}", line.as_str()))?;
    }
    output::line("")
}
