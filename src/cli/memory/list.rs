//! `annalist memory list`: memories as people read them.

use super::super::output::{self, Failure, short, shorten};
use super::super::settings;
use crate::domain::{Memory, MemoryMap, MemoryState};
use crate::edge::store::Open;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

/// Letters of a claim in a list.
const HEADLINE_LETTERS: usize = 80;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist memory list
  annalist memory list --all --namespace roofs")]
pub(super) struct Args {
    /// Superseded and retracted ones too
    #[arg(long)]
    all: bool,
    /// Only this namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let store = settings::open_store(&settings::load(file)?, Open::Existing)?;
    let memories = settings::runtime()?.block_on(store.memories(args.namespace.as_deref()))?;
    print(&memories, args.all, args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints those that are believed, or all, by namespace and time.
pub(super) fn print(memories: &MemoryMap, all: bool, as_json: bool) -> Result<(), Failure> {
    let mut listed: Vec<&Memory> =
        memories.values().filter(|it| all || it.state == MemoryState::Active).collect();
    listed.sort_by_key(|it| (&it.namespace, it.valid_from, it.id));
    if as_json {
        return output::json(&listed.iter().map(|it| to_json(it)).collect::<Vec<_>>());
    }
    if listed.is_empty() {
        output::note("no memories: `annalist consolidate` makes them of records");
        return Ok(());
    }
    let mut table = output::table(&["id", "namespace", "kind", "stage", "since", "claim"]);
    for memory in listed {
        let stage = match memory.state {
            MemoryState::Active => memory.stage.name(),
            MemoryState::Superseded | MemoryState::Retracted => memory.state.name(),
        };
        table.add_row([
            short(&memory.id),
            memory.namespace.clone(),
            memory.claim.kind().name().to_owned(),
            stage.to_owned(),
            memory.valid_from.map_or_else(|| "–".to_owned(), |at| at.day()),
            shorten(memory.claim.headline(), HEADLINE_LETTERS),
        ]);
    }
    output::print_table(&table)
}

/// A memory for other programs.
pub(super) fn to_json(memory: &Memory) -> Value {
    json!({
        "id": memory.id,
        "namespace": memory.namespace,
        "kind": memory.claim.kind(),
        "claim": memory.claim,
        "stage": memory.stage,
        "state": memory.state,
        "said_by": memory.said_by,
        "confirmed": memory.confirmed,
        "edited": memory.edited,
        "valid_from": memory.valid_from.map(|at| at.to_string()),
        "valid_until": memory.valid_until.map(|at| at.to_string()),
        "superseded_by": memory.superseded_by,
        "reason": memory.reason,
        "records": memory.sources,
    })
}
