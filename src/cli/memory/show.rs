//! `annalist memory show`: one memory with what it rests on and what took its place.

use super::super::output::{self, BOLD, DIM, Failure, GREEN, YELLOW, short, shorten};
use super::super::records::{one, prefix};
use super::super::settings;
use super::list::to_json;
use crate::domain::{Memory, MemoryId, MemoryState};
use crate::edge::store::{Found, Open, Store};
use std::path::Path;
use std::process::ExitCode;

/// Lines that are shown of what a person made of a memory.
const EDITED_LINES_MAX: usize = 20;
/// Letters of another memory's claim.
const HEADLINE_LETTERS: usize = 80;
/// Records that are listed; the others are counted.
const RECORDS_MAX: usize = 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: annalist memory show 3fa9

The digits behind src- in a tag of the directory are the beginning of an id.")]
pub(super) struct Args {
    /// Its id, the beginning of it, or its tag
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let store = settings::open_store(&settings::load(file)?, Open::Existing)?;
    settings::runtime()?.block_on(async {
        let memory = named(&store, &args.id).await?;
        if args.json {
            output::json(&to_json(&memory))?;
        } else {
            print(&store, &memory).await?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The memory that a person names, by id or by tag.
pub(super) async fn named(store: &Store, id: &str) -> Result<Memory, Failure> {
    let digits = id.strip_prefix(crate::memory_dir::SOURCE).unwrap_or(id);
    one(store.memory(prefix(digits)?).await?, "memory", id)
}

async fn print(store: &Store, memory: &Memory) -> Result<(), Failure> {
    let state = match memory.state {
        MemoryState::Active => format!("{GREEN}{}{GREEN:#}", memory.stage.name()),
        MemoryState::Superseded | MemoryState::Retracted => {
            format!("{YELLOW}{}{YELLOW:#}, was {}", memory.state.name(), memory.stage.name())
        }
    };
    let kind = memory.claim.kind().name();
    output::line(&format!("{BOLD}{kind}{BOLD:#} {}  {state}", memory.id))?;
    for (field, text) in memory.claim.strings() {
        output::line(&format!("  {DIM}{field}:{DIM:#} {text}"))?;
    }
    if let Some(edited) = &memory.edited {
        output::line(&format!("\n  {BOLD}as a person changed it:{BOLD:#}"))?;
        for line in edited.lines().take(EDITED_LINES_MAX) {
            output::line(&format!("  {line}"))?;
        }
        if edited.lines().count() > EDITED_LINES_MAX {
            output::line(&format!("  {DIM}… the directory has all of it{DIM:#}"))?;
        }
    }
    output::line("")?;
    let mut table = output::table(&[]);
    let mut row = |name: &str, value: String| {
        table.add_row([name.to_owned(), value]);
    };
    row("namespace", memory.namespace.clone());
    row("said by", memory.said_by.name().to_owned());
    if memory.confirmed {
        row("confirmed", "by a person, in the directory".to_owned());
    }
    let day = |at: Option<crate::domain::Timestamp>| at.map(|at| at.to_string());
    row("since", day(memory.valid_from).unwrap_or_else(|| "nobody knows when".to_owned()));
    if let Some(until) = day(memory.valid_until) {
        row("until", until);
    }
    if let Some(reason) = &memory.reason {
        row("because of", reason.clone());
    }
    if let Some(next) = memory.superseded_by {
        row("in its place", headline(store, next).await?);
    }
    output::print_table(&table)?;
    output::line("")?;
    for record in memory.sources.iter().take(RECORDS_MAX) {
        output::line(&format!("annalist why {}", short(record)))?;
    }
    if let Some(more) = memory.sources.len().checked_sub(RECORDS_MAX).filter(|more| *more > 0) {
        output::line(&format!("{DIM}and {} more{DIM:#}", output::counted(more as u64, "record")))?;
    }
    Ok(())
}

async fn headline(store: &Store, id: MemoryId) -> Result<String, Failure> {
    Ok(match store.memory(id.0.into()).await? {
        Found::One(memory) => {
            format!("{}  {}", short(&id), shorten(memory.claim.headline(), HEADLINE_LETTERS))
        }
        Found::None | Found::Many(_) => short(&id),
    })
}
