//! `annalist why`: the evidence for a record, or the conversation behind a line of code.

use super::rows::print_claim;
use super::why_code::{self, Subject};
use crate::cli::arguments::{limit, one};
use crate::cli::memory::folder::tag_or_id;
use crate::cli::memory::{headline, settled};
use crate::cli::output::{self, BOLD, DIM, Failure, pairs};
use crate::cli::settings;
use crate::domain::{Entry, EntryKind, Evidence, Match, Memory, OutputMode, Speaker};
use crate::memory_dir::{SOURCE, source_tag};
use crate::pipeline::{Why, why as lookup};
use crate::privacy::Redacted;
use crate::rows::RecordRow;
use crate::store::{RecordSources, Store};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

/// Letters of an entry shown before and after a quote.
const AROUND_LETTERS: usize = 60;
/// Default maximum of records for a line of code.
const RELATED_MAX: usize = 10;
/// Maximum number of superseded memories to list.
const REPLACED_MAX: u32 = 10;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist why 3fa9             one record
  annalist why src-1b0c22d4     the records behind a memory
  annalist why src/queue.rs:42  the conversation that produced this line
  annalist why --commit HEAD~2  the same for a commit

A line leads to its commit, and the commit to the session that was active then, with a confidence \
based on its time, its branch and what its tools wrote. Shows records that name the file or the \
code, or that come from where it was written. Exits with 1 if nothing is found.")]
pub(in crate::cli) struct WhyArgs {
    /// ID or ID prefix of a record or memory, a tag of the directory, a label such as ADR-013, or
    /// FILE:LINE
    #[arg(required_unless_present = "commit", value_name = "ID|FILE:LINE")]
    id: Option<String>,
    /// A commit, in any form that git accepts
    #[arg(long, value_name = "COMMIT", conflicts_with = "id")]
    commit: Option<String>,
    /// Maximum number of records for a line or a commit
    #[arg(long, value_name = "N", default_value_t = RELATED_MAX, value_parser = limit())]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A record with the entries that it rests on, as JSON.
#[derive(JsonSchema, Serialize)]
pub(in crate::cli) struct WhyRow<'a> {
    #[serde(flatten)]
    record: RecordRow<'a>,
    sources: Vec<Option<EntryRow<'a>>>,
    schema_version: u32,
    rung: OutputMode,
}

/// One record, or the records that a memory rests on, as JSON.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub(in crate::cli) enum WhyReport<'a> {
    Record(Box<WhyRow<'a>>),
    Memory(Vec<WhyRow<'a>>),
}

#[derive(JsonSchema, Serialize)]
struct EntryRow<'a> {
    entry: u32,
    line: u32,
    speaker: Speaker,
    kind: EntryKind,
    at: Option<String>,
    text: &'a Redacted,
}

pub(in crate::cli) fn why(args: &WhyArgs, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let id = args.id.as_deref().unwrap_or_default();
    let subject = match &args.commit {
        Some(commit) => Some(Subject::Commit(commit.clone())),
        None => Subject::parse(id)?,
    };
    if let Some(subject) = subject {
        return why_code::run(subject, args.limit, args.json, file);
    }
    let (_, store) = settings::existing_store(file)?;
    let id = &*tag_or_id(id)?;
    let found = settings::runtime()?.block_on(lookup(&store, id))?;
    let what = if id.starts_with(SOURCE) { "memory" } else { "record" };
    let Why { records: all, memory } = one(found, what, id)?;
    if args.json {
        match (all.as_slice(), memory) {
            ([why], None) => output::json(&WhyReport::Record(Box::new(why_row(why))))?,
            (all, _) => output::json(&WhyReport::Memory(all.iter().map(why_row).collect()))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    for (number, why) in all.iter().enumerate() {
        if number > 0 {
            output::line("")?;
        }
        print_why(why)?;
    }
    settings::runtime()?.block_on(print_standing(&store, memory, &all))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the memory of a record and its state, what took its place or settled it, and what it took the place of.
async fn print_standing(
    store: &Store,
    memory: Option<Memory>,
    records: &[RecordSources],
) -> Result<(), Failure> {
    let memory = match (memory, records) {
        (None, [record]) => store.memory_on(record.page.stored.record.id).await?,
        (memory, _) => memory,
    };
    let Some(memory) = memory else { return Ok(()) };
    let standing = format!("{}, {}", source_tag(memory.id), memory.state.name());
    let mut rows = vec![
        ("memory", standing),
        ("replaced by", headline(store, memory.superseded_by).await?),
        (settled(&memory), headline(store, memory.settler()).await?),
    ];
    for old in store.replaced_by(memory.id, REPLACED_MAX).await? {
        rows.push(("replaces", headline(store, Some(old.id)).await?));
    }
    output::line("")?;
    pairs(rows)
}

fn why_row(why: &RecordSources) -> WhyRow<'_> {
    let sources = why.entries.iter().map(|entry| {
        entry.as_ref().map(|it| EntryRow {
            entry: it.ordinal,
            line: it.line,
            speaker: it.speaker,
            kind: it.kind,
            at: it.at.map(|at| at.to_string()),
            text: &it.text,
        })
    });
    let run = &why.page.run.run;
    WhyRow {
        record: RecordRow::of(&why.page.stored),
        sources: sources.collect(),
        schema_version: run.schema_version,
        rung: run.rung,
    }
}

fn print_why(why: &RecordSources) -> Result<(), Failure> {
    let stored = &why.page.stored;
    print_claim(&stored.record)?;
    output::line("")?;
    for (evidence, entry) in stored.record.evidence.iter().zip(&why.entries) {
        let when = entry.as_ref().and_then(|entry| entry.at);
        let when = when.map(|at| format!(", {at}")).unwrap_or_default();
        let name = evidence.name.as_ref().map(|name| format!("{}, a ", name.as_str()));
        output::line(&format!(
            "{BOLD}{}{BOLD:#} {DIM}from entry {} ({}:{}), said by {}{}{when}, found {}{DIM:#}",
            evidence.field,
            evidence.ordinal,
            stored.path,
            evidence.line,
            name.unwrap_or_default(),
            evidence.speaker.name(),
            match evidence.found {
                Match::Exact => "word for word",
                Match::Folded => "word for word except for case and punctuation",
                Match::Literal => "by a name or number",
                Match::Overlap => "by shared words",
                Match::Noted => "as a note",
            }
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
    let title = session.title.as_ref().map(|title| format!(" “{}”", title.as_str()));
    let (name, title) = (session.native_id.as_str(), title.unwrap_or_default());
    let prompt = run.prompt();
    let schema = run.schema_version;
    pairs([
        ("session", format!("{name} {}{title}", session.format)),
        ("namespace", session.namespace.clone()),
        ("run", format!("{}, entries {}–{}", run.id, run.first.0, run.last.0)),
        ("model", run.model.clone()),
        ("prompt", format!("{prompt}, schema version {schema}")),
        ("extracted", run.finished_at.to_string()),
    ])
}

/// Rest of the line around a quote, truncated.
fn around(entry: Option<&Entry>, evidence: &Evidence) -> (String, String) {
    let Some(text) = entry.map(|entry| entry.text.as_str()) else { return Default::default() };
    // Empty if the entry no longer contains the quote.
    if text.get(evidence.bytes.clone()) != Some(evidence.words.as_str()) {
        return Default::default();
    }
    let in_line = |letter: &char| *letter != '\n';
    let before = text[..evidence.bytes.start].chars().rev().take_while(in_line);
    let before: Vec<char> = before.take(AROUND_LETTERS).collect();
    let after = text[evidence.bytes.end..].chars().take_while(in_line);
    (before.into_iter().rev().collect(), after.take(AROUND_LETTERS).collect())
}
