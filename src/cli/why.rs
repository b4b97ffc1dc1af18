//! `annalist why`: the words that a record rests on.

use super::output::{self, BOLD, DIM, Failure};
use super::records::{one, prefix, print_claim, to_json};
use super::settings;
use crate::domain::{Entry, Evidence};
use crate::edge::store::{Open, Why};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

/// Letters of the entry shown before and behind the words.
const AROUND_LETTERS: usize = 60;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: annalist why 3fa9")]
pub(super) struct Args {
    /// The record's id, or the beginning of it
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let config = settings::load(file)?;
    let store = settings::open_store(&config, Open::Existing)?;
    let runtime = settings::runtime()?;
    let found = runtime.block_on(store.why(prefix(&args.id)?))?;
    let why = one(found, "record", &args.id)?;
    if args.json { print_json(&why) } else { print(&why) }?;
    Ok(ExitCode::SUCCESS)
}

fn print(why: &Why) -> Result<(), Failure> {
    let stored = &why.page.stored;
    print_claim(&stored.record)?;
    output::line("")?;
    for (evidence, entry) in stored.record.evidence.iter().zip(&why.entries) {
        let when = entry.as_ref().and_then(|entry| entry.at);
        let when = when.map(|at| format!(", {at}")).unwrap_or_default();
        output::line(&format!(
            "{BOLD}{}{BOLD:#} {DIM}rests on entry {} ({}:{}), said by {}{when}, found as {}{DIM:#}",
            evidence.field,
            evidence.ordinal,
            stored.path,
            evidence.line,
            evidence.speaker.name(),
            evidence.found.name()
        ))?;
        let (before, after) = around(entry.as_ref(), evidence);
        let words = evidence.words.as_str().replace('\n', "\n    ");
        output::line(&format!("    {DIM}{before}{DIM:#}{words}{DIM}{after}{DIM:#}"))?;
    }
    if stored.record.evidence.is_empty() {
        output::line("nothing in the slice supports it")?;
    }
    let (run, session) = (&why.page.run.run, &why.page.session);
    output::line("")?;
    let mut table = output::table(&[]);
    let title = session.title.as_ref().map(|title| format!(" “{}”", title.as_str()));
    let rows = [
        (
            "session",
            format!(
                "{} {}{}",
                session.native_id.as_str(),
                session.format,
                title.unwrap_or_default()
            ),
        ),
        ("namespace", session.namespace.clone()),
        ("run", format!("{}, entries {}–{}", run.id, run.first.0, run.last.0)),
        ("model", run.model.clone()),
        (
            "prompt",
            format!(
                "{} version {}, schema version {}",
                run.prompt_id, run.prompt_version, run.schema_version
            ),
        ),
        ("extracted", run.finished_at.to_string()),
    ];
    for (name, value) in rows {
        table.add_row([name.to_owned(), value]);
    }
    output::print_table(&table)
}

/// The line around the words, as far as it is short.
fn around(entry: Option<&Entry>, evidence: &Evidence) -> (String, String) {
    let Some(text) = entry.map(|entry| entry.text.as_str()) else { return Default::default() };
    // What stands there must still be what was copied.
    if text.get(evidence.bytes.clone()) != Some(evidence.words.as_str()) {
        return Default::default();
    }
    let before: Vec<char> = text[..evidence.bytes.start]
        .chars()
        .rev()
        .take_while(|letter| *letter != '\n')
        .take(AROUND_LETTERS)
        .collect();
    let behind = text[evidence.bytes.end..].chars().take_while(|letter| *letter != '\n');
    (before.into_iter().rev().collect(), behind.take(AROUND_LETTERS).collect())
}

fn print_json(why: &Why) -> Result<(), Failure> {
    let run = &why.page.run.run;
    let mut whole = to_json(&why.page.stored);
    let entries: Vec<_> = why
        .entries
        .iter()
        .map(|entry| {
            entry.as_ref().map(|it| {
                json!({
                    "entry": it.ordinal, "line": it.line, "speaker": it.speaker, "kind": it.kind,
                    "at": it.at.map(|at| at.to_string()), "text": it.text,
                })
            })
        })
        .collect();
    whole["sources"] = json!(entries);
    whole["schema_version"] = json!(run.schema_version);
    whole["rung"] = json!(run.rung);
    output::json(&whole)
}
