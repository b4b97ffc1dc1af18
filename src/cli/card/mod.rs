//! `annalist card`: memory cards of conversations. Asks no model, keeps nothing.

mod print;
mod read;

use super::enqueue::read_stdin;
use super::output::{self, Failure, RED, YELLOW, count};
use super::settings;
use crate::card::Ellipsis;
use crate::domain::Format;
use crate::edge::walk::{Candidate, open, walk};
use crate::privacy::Gate;
use clap::ValueEnum;
use print::Printer;
use read::{Cards, Ended, Stop};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What is read from standard input.
const EXPECTED: &str = "a transcript, or a session as JSON: {\"session_id\": …, \"messages\": […]}";
/// Findings of a file that are listed; the others are counted.
const LISTED_MAX: usize = 5;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist card session.jsonl                     seven fields, as YAML
  annalist card --format json - < session.json    {\"session_id\": …, \"messages\": […]} does as well
  annalist card ~/.claude/projects --check        whether every card is fit to be stored
  annalist card --session 079da                   of a session that was replayed or enqueued

Text passes the gate first. The same messages give the same bytes. Of an agent's log a card holds what \
the person and the assistant said; of a session as JSON every message but those of tools.")]
pub(super) struct Args {
    /// Transcripts, folders of them, or `-` for standard input; with --check also cards as JSON
    #[arg(required_unless_present = "session", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Sessions in the store, by their ids or the beginnings of them
    #[arg(long, value_name = "ID", conflicts_with = "from")]
    session: Vec<String>,
    /// How cards are printed: documents of YAML, or JSON, one card a line if there are several
    #[arg(long, value_enum, default_value_t = Style::Yaml, conflicts_with = "check")]
    format: Style,
    /// Which lines end with `...`: those that were cut, or all that neither ask nor exclaim
    #[arg(long, value_enum, default_value_t = Rule::Cut)]
    ellipsis: Rule,
    /// Print the checklist of each card instead, and fail where a check does
    #[arg(long)]
    check: bool,
    /// Read what is named as this transcript format instead of finding it out
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Style {
    Yaml,
    Json,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Rule {
    Cut,
    Template,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let stdin = args.files.iter().filter(|path| path.as_os_str() == "-").count();
    if stdin > 1 {
        return Err(Failure::usage("`-` is standard input and can be read once: name it once"));
    }
    let config = settings::load(file)?;
    let gate = Gate::new(&config.pii);
    let ellipsis = match args.ellipsis {
        Rule::Cut => Ellipsis::Cut,
        Rule::Template => Ellipsis::Template,
    };
    let mut printer = match (args.check, args.format) {
        (true, _) => Printer::check(&gate),
        (false, Style::Yaml) => Printer::yaml(),
        (false, Style::Json) => Printer::json(),
    };
    let mut whole = true;
    {
        let take = &mut |made| printer.take(made);
        let mut cards = Cards { gate: &gate, ellipsis, from: args.from, check: args.check, take };
        for path in &args.files {
            whole &= if path.as_os_str() == "-" {
                let bytes = read_stdin(EXPECTED)?;
                told("-", cards.read(Cursor::new(bytes), None, true))?
            } else {
                files(path, &mut cards)?
            };
        }
        for id in &args.session {
            cards.stored(id, &config)?;
        }
    }
    let all_hold = printer.end()?;
    Ok(ExitCode::from(if whole && all_hold { 0 } else { output::FAILED }))
}

/// Reads what is at a path; says whether all of it could be read.
fn files(path: &Path, cards: &mut Cards<'_>) -> Result<bool, Failure> {
    let (found, problems) = walk(&[path.to_owned()]);
    for (path, error) in &problems {
        problem(&path.display().to_string(), &format!("cannot be read: {error}"));
    }
    let (mut whole, mut passed_over) = (problems.is_empty(), 0);
    for Candidate { path, named, .. } in &found {
        let name = path.file_name().and_then(|name| name.to_str());
        let ended = match open(path) {
            Ok(input) => cards.read(input, name, *named),
            Err(error) => Err(Stop::Input(format!("cannot be read: {error}"))),
        };
        passed_over += u64::from(matches!(ended, Ok(Ended::PassedOver)));
        whole &= told(&path.display().to_string(), ended)?;
    }
    if passed_over > 0 && passed_over == found.len() as u64 {
        let looked = count(passed_over);
        problem(&path.display().to_string(), &format!("no transcripts in {looked} files"));
        whole = false;
    }
    Ok(whole)
}

/// Tells how reading ended, if there is anything to tell; says whether all could be read.
fn told(path: &str, ended: Result<Ended, Stop>) -> Result<bool, Failure> {
    match ended {
        Ok(Ended::Private) => {
            output::note(&format!("{path}: says `private: true` and is left out"));
        }
        Ok(Ended::Read(findings)) => {
            for finding in findings.iter().take(LISTED_MAX) {
                output::note(&format!("{YELLOW}warning:{YELLOW:#} {path}: {finding}"));
            }
            if let Some(more @ 1..) = findings.len().checked_sub(LISTED_MAX) {
                output::note(&format!("{path}: and {} more findings", count(more as u64)));
            }
        }
        Ok(Ended::PassedOver) => {}
        Err(Stop::Input(what)) => {
            problem(path, &what);
            return Ok(false);
        }
        Err(Stop::Output(failure)) => return Err(failure),
    }
    Ok(true)
}

fn problem(path: &str, what: &str) {
    output::note(&format!("{RED}error:{RED:#} {path}: {what}"));
}
