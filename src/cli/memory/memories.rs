//! `annalist memory list`, `show`, `history`, `at` and `verify`: the memories behind the directory.

use super::folder::{DirArgs, namespace_of, tag_or_id};
use crate::adapters::clock;
use crate::cli::arguments::{date_end, limit, note_unknown, one};
use crate::cli::output::{
    self, BOLD, DIM, Failure, GREEN, Result, Row, YELLOW, counted, json_row, pairs, short, shorten,
};
use crate::cli::settings;
use crate::config::namespace_name;
use crate::domain::{
    Digest, Memory, MemoryId, MemoryMap, MemoryState, RecordId, Stage, Timestamp, shown_words,
};
use crate::memory_dir::standing;
use crate::pipeline::{
    self, MemoryChange, MissingName, Verification, VerifyError, hit_of_memory, marked, memories_at,
    memory_history, memory_named, rule_in_words,
};
use crate::rows::{MemoryRow, kind_in_words};
use crate::store::{OpenMode, PrefixLookup, Store};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

const HEADLINE_LETTERS: usize = 80;
const TITLE_LETTERS: usize = 100;
const CLAIM_LETTERS: usize = 70;
const EDITED_LINES_MAX: usize = 20;
const RECORDS_MAX: usize = 20;

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Include superseded and retracted memories
    #[arg(long)]
    all: bool,
    /// Only this namespace
    #[arg(long, value_name = "NAME", value_parser = namespace_name)]
    namespace: Option<String>,
    /// List only the N newest
    #[arg(long, value_name = "N", value_parser = limit())]
    limit: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  annalist memory show 3fa9
  annalist memory history ADR-013

The digits after src- in a tag of the directory are an ID prefix.")]
pub(super) struct MemoryArgs {
    /// ID or ID prefix, tag, or label of its record, such as ADR-013
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory at 2026-11-01
  annalist memory at 2026-11-01T12:00:00Z --namespace roofs

What counts is when something was said, not when it was read. Anything without a known time \
counts as said before that day.")]
pub(super) struct AtArgs {
    /// A day (until its end) or an RFC 3339 time
    #[arg(value_parser = date_end)]
    date: Timestamp,
    #[command(flatten)]
    list: ListArgs,
}

impl Row for MemoryRow<'_> {
    const HEADER: &'static [&'static str] = &["id", "namespace", "kind", "stage", "since", "claim"];
    const SPARE: &'static [usize] = &[1];

    fn cells(&self) -> Vec<String> {
        vec![
            short(&self.id),
            self.namespace.to_owned(),
            kind_in_words(self.claim, false),
            self.standing_in_words(),
            output::day(self.valid_from.as_deref()),
            shorten(shown_words(self.edited, self.claim), HEADLINE_LETTERS),
        ]
    }
}

json_row! {
    /// A change of a memory, as JSON.
    pub(crate) struct HistoryRow of it: &MemoryChange {
        at: String = it.entry.at.to_string(),
        deed: String = it.entry.deed.clone(),
        rule: Option<String> = it.entry.rule.clone(),
        record: Option<RecordId> = it.entry.record,
        /// Set for changes by plans that were not undone, as are `stage` and `state`.
        #[serde(skip_serializing_if = "Option::is_none")]
        said_at: Option<Option<String>> = it.event.as_ref().map(|it| output::time(it.at)),
        plan: Option<Digest> = it.entry.plan.map(|plan| plan.0),
        #[serde(skip_serializing_if = "Option::is_none")]
        stage: Option<Stage> = it.event.as_ref().map(|it| it.stage),
        #[serde(skip_serializing_if = "Option::is_none")]
        state: Option<MemoryState> = it.event.as_ref().map(|it| it.state),
        /// The memory that took its place, or answered a question.
        #[serde(skip_serializing_if = "Option::is_none")]
        superseded_by: Option<MemoryId> = it.event.as_ref().and_then(|it| it.superseded_by),
    }
}

/// Formats a change of a memory; `by` is the memory that took its place.
fn history_line(change: &MemoryChange, by: &str) -> String {
    let entry = &change.entry;
    let outcome = change.event.as_ref().map(|it| match by.is_empty() {
        true => format!(": {}", it.standing),
        false => format!(": {} by {by}", it.standing),
    });
    let record = entry.record.zip(change.event.as_ref()).map(|(id, event)| {
        let said = event.at.map(|at| format!(", said {at}")).unwrap_or_default();
        format!("record {}{said}", short(&id))
    });
    let plan = entry.plan.map(|plan| format!("plan {}", short(&plan)));
    let sources: Vec<String> = record.into_iter().chain(plan).collect();
    let sources = match sources.is_empty() {
        true => String::new(),
        false => format!("  {DIM}{}{DIM:#}", sources.join(", ")),
    };
    let rule = entry.rule.as_deref().map(|rule| format!(" ({})", rule_in_words(rule)));
    let rule = rule.unwrap_or_default();
    let (at, deed) = (entry.at, change.in_words());
    format!("  {at}  {deed}{rule}{}{sources}", outcome.unwrap_or_default())
}

pub(super) async fn list(args: &ListArgs, file: Option<&Path>) -> Result<()> {
    let (_, store) = settings::existing_store(file)?;
    let memories = store.memories(args.namespace.as_deref()).await?;
    print_list(&store, memories, args, clock::now()).await
}

async fn print_list(
    store: &Store,
    memories: MemoryMap,
    args: &ListArgs,
    on: Timestamp,
) -> Result<()> {
    note_unknown(store, args.namespace.as_deref()).await?;
    let is_listed = |it: &&Memory| args.all || it.state == MemoryState::Active;
    let mut listed: Vec<&Memory> = memories.values().filter(is_listed).collect();
    listed.sort_by_key(|it| std::cmp::Reverse((it.valid_from, it.id)));
    listed.truncate(args.limit.unwrap_or(usize::MAX));
    listed.sort_by_key(|it| (&it.namespace, it.valid_from, it.id));
    let listed = listed.into_iter().cloned().collect();
    let hits = marked(store, listed, Some(memories), on).await?;
    let rows: Vec<MemoryRow<'_>> = hits.iter().filter_map(MemoryRow::of_hit).collect();
    output::rows(&rows, args.json, "no memories: `annalist consolidate` creates them from records")
}

pub(super) async fn at(args: &AtArgs, file: Option<&Path>) -> Result<()> {
    let (_, store) = settings::existing_store(file)?;
    let namespace = args.list.namespace.as_deref();
    let memories = memories_at(&store, namespace, args.date).await?;
    print_list(&store, memories, &args.list, args.date).await
}

pub(super) async fn history(args: &MemoryArgs, file: Option<&Path>) -> Result<()> {
    let (_, store) = settings::existing_store(file)?;
    let memory = named(&store, &args.id).await?;
    let changes = memory_history(&store, &memory).await?;
    if args.json {
        return output::json(&changes.iter().map(HistoryRow::of).collect::<Vec<_>>());
    }
    let words = shorten(memory.words(), TITLE_LETTERS);
    output::line(&format!("{BOLD}{words}{BOLD:#}"))?;
    for change in &changes {
        let by = headline(&store, change.event.as_ref().and_then(|it| it.superseded_by)).await?;
        output::line(&history_line(change, &by))?;
    }
    Ok(())
}

pub(super) async fn show(args: &MemoryArgs, file: Option<&Path>) -> Result<()> {
    let (_, store) = settings::existing_store(file)?;
    let memory = named(&store, &args.id).await?;
    match args.json {
        true => output::json(&MemoryRow::of_hit(&hit_of_memory(&store, memory).await?)),
        false => print(&store, &memory).await,
    }
}

/// Finds a memory by id, id prefix, tag of the directory or label of a record.
pub(super) async fn named(store: &Store, id: &str) -> Result<Memory> {
    one(memory_named(store, &tag_or_id(id)?).await?, "memory", id)
}

async fn print(store: &Store, memory: &Memory) -> Result<()> {
    let state = match memory.state {
        MemoryState::Active => format!("{GREEN}{}{GREEN:#}", standing(memory)),
        _ if memory.is_answered() => format!("{GREEN}{}{GREEN:#}", memory.standing()),
        MemoryState::Superseded | MemoryState::Retracted => {
            let stage = memory.stage_in_words();
            format!("{YELLOW}{}{YELLOW:#}, was: {stage}", memory.standing())
        }
    };
    let kind = memory.claim.kind().name();
    output::line(&format!("{BOLD}{kind}{BOLD:#} {}  {state}", memory.id))?;
    for (field, text) in memory.claim.strings() {
        output::line(&format!("  {DIM}{field}:{DIM:#} {text}"))?;
    }
    if let Some(edited) = &memory.edited {
        output::line(&format!("\n  {BOLD}as edited by a person:{BOLD:#}"))?;
        for line in edited.lines().take(EDITED_LINES_MAX) {
            output::line(&format!("  {line}"))?;
        }
        if edited.lines().count() > EDITED_LINES_MAX {
            output::line(&format!("  {DIM}… the directory has the full text{DIM:#}"))?;
        }
    }
    output::line("")?;
    let confirmed = match &memory.decided {
        Some(it) => format!("{} by a person, {}", rule_in_words(&it.rule), it.at),
        None if memory.confirmed => "by a person, in the directory".to_owned(),
        None => String::new(),
    };
    let replaced_by = headline(store, memory.replaced_by()).await?;
    let settled_by = headline(store, memory.settler()).await?;
    let undecided = undecided(store, memory).await?;
    let rows = [
        ("namespace", memory.namespace.clone()),
        ("said by", memory.said_by.name().to_owned()),
        ("confirmed", confirmed),
        ("since", output::time(memory.valid_from).unwrap_or_else(|| "an unknown time".to_owned())),
        ("until", output::time(memory.valid_until).unwrap_or_default()),
        ("reason", memory.reason.as_deref().map(rule_in_words).unwrap_or_default()),
        ("replaced by", replaced_by),
        (memory.settled_in_words(), settled_by),
    ];
    pairs(rows.into_iter().chain(undecided))?;
    output::line("")?;
    for record in memory.sources.iter().take(RECORDS_MAX) {
        output::line(&format!("annalist why {}", short(record)))?;
    }
    match memory.sources.len().saturating_sub(RECORDS_MAX) as u64 {
        0 => Ok(()),
        more => output::line(&format!("{DIM}and {} more{DIM:#}", counted(more, "record"))),
    }
}

/// Undecided pairs of a memory: the words for each, and the other one.
pub(crate) async fn undecided(
    store: &Store,
    memory: &Memory,
) -> Result<Vec<(&'static str, String)>> {
    let pairs = pipeline::undecided(store, memory).await?.into_iter();
    let row = |by: Memory| format!("{}  {}", short(&by.id), shorten(by.words(), HEADLINE_LETTERS));
    Ok(pairs.map(|(words, by)| (words, row(by))).collect())
}

/// Short id and words of a memory; empty without an id.
pub(crate) async fn headline(store: &Store, id: Option<MemoryId>) -> Result<String> {
    let Some(id) = id else { return Ok(String::new()) };
    Ok(match store.memory(id.0.into()).await? {
        PrefixLookup::One(memory) => {
            format!("{}  {}", short(&id), shorten(memory.words(), HEADLINE_LETTERS))
        }
        PrefixLookup::None | PrefixLookup::Many(_) => short(&id),
    })
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: annalist memory verify --json

Looks up paths, symbols, commands, versions and ports that memories name in the working tree and \
in git. Reports only names that the code once had. Changes no memory: to change one, use \
`annalist memory supersede` or `close`, or edit its line.")]
pub(super) struct VerifyArgs {
    /// Namespace, instead of the one from the settings or the project folder
    #[arg(long, value_name = "NAME", value_parser = namespace_name)]
    namespace: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dir: DirArgs,
}

/// A name that the code no longer has, as JSON and in a list.
#[derive(JsonSchema, Serialize)]
pub(crate) struct MissingRow {
    memory: MemoryId,
    claim: String,
    name: String,
    since: String,
}

impl Row for MissingRow {
    const HEADER: &'static [&'static str] = &["memory", "claim", "not found in the code", "since"];

    fn cells(&self) -> Vec<String> {
        let claim = shorten(&self.claim, CLAIM_LETTERS);
        vec![short(&self.memory), claim, self.name.clone(), self.since.clone()]
    }
}

pub(super) async fn verify(args: &VerifyArgs, file: Option<&Path>) -> Result<()> {
    let config = settings::load(file)?;
    let folder = args.dir.find()?;
    let store = settings::open_store(&config, OpenMode::Existing)?;
    let namespace = match &args.namespace {
        Some(named) => named.clone(),
        None => namespace_of(&store, &config, &folder).await?,
    };
    let memories = store.memories(Some(&namespace)).await?;
    let dir = folder.path().display().to_string();
    let root = folder.path().ancestors().nth(2).unwrap_or(folder.path());
    let verification = Verification { store: &store, dir: &dir, root, is_forced: true };
    let found = verification.run(memories.values()).await.map_err(|error| match error {
        VerifyError::Store(error) => Failure::from(error),
        VerifyError::Code(error) => Failure::usage(error.to_string()),
    })?;
    let row = |MissingName { memory, name, commit }: MissingName| {
        let claim = memories.get(&memory)?.words().to_owned();
        Some(MissingRow { memory, claim, name, since: commit })
    };
    let rows: Vec<MissingRow> = found.into_iter().filter_map(row).collect();
    output::rows(&rows, args.json, "no memory names code that no longer exists")
}
