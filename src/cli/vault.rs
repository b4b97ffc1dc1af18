//! `annalist vault`: shows and clears the redacted copies of transcripts.

use super::arguments::is_agreed;
use super::memory::folder::{UNSCRUBBED, finish_forgetting};
use super::output::{self, Result, Row, count, counted, in_pages, json_row, time};
use super::settings;
use crate::config::Config;
use crate::domain::Format;
use crate::store::{Store, VaultTotals};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist vault
  annalist replay vault    read the copies again with the current prompts
  annalist vault --clear

With `[vault] enabled = true` in the settings, a masked, compressed and deduplicated copy of each \
session is kept when it is read. Clients delete transcripts after weeks; a copy has the \
same entries. `annalist forget` also erases copies.")]
pub(super) struct Args {
    /// Remove all copies
    #[arg(long)]
    clear: bool,
    /// Remove without asking
    #[arg(long, requires = "clear")]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The copies, as JSON.
#[derive(JsonSchema, Serialize)]
pub(super) struct VaultReport {
    /// Copies are kept of what is read.
    enabled: bool,
    /// Bytes that the copies take.
    bytes: u64,
    /// Most that they may take; beyond it those that were read longest ago go.
    bytes_max: u64,
    clients: Vec<CopiesRow>,
}

json_row! {
    /// The copies of one client's sessions, as JSON and in a list.
    struct CopiesRow of it: (Format, VaultTotals) {
        client: Format = it.0,
        sessions: u64 = it.1.sessions,
        entries: u64 = it.1.entries,
        /// Bytes of the copies, before what they share is stored once and compressed.
        bytes_before: u64 = it.1.plain,
        bytes: u64 = it.1.bytes,
        /// Time of the reading of the oldest copy.
        oldest: Option<String> = time(it.1.oldest),
        /// Time of the reading of the newest copy.
        newest: Option<String> = time(it.1.newest),
    }
}

impl Row for CopiesRow {
    const HEADER: &'static [&'static str] =
        &["client", "sessions", "entries", "before", "kept", "oldest", "newest"];

    fn cells(&self) -> Vec<String> {
        let day = |at: &Option<String>| {
            at.as_deref().and_then(|at| at.get(..10)).unwrap_or_default().to_owned()
        };
        vec![
            self.client.to_string(),
            count(self.sessions),
            count(self.entries),
            size(self.bytes_before),
            size(self.bytes),
            day(&self.oldest),
            day(&self.newest),
        ]
    }
}

pub(super) async fn run(args: &Args, file: Option<&Path>) -> Result<()> {
    let (config, store) = settings::existing_store(file)?;
    if args.clear && !clear(&store, &config, args.yes).await? {
        return output::fail_if(true);
    }
    let clients = store.vault_totals().await?.into_iter();
    let clients: Vec<CopiesRow> = clients.map(CopiesRow::of).collect();
    let bytes = clients.iter().map(|it| it.bytes).sum();
    let (enabled, bytes_max) = (config.vault.enabled, config.vault.bytes_max());
    let report = VaultReport { enabled, bytes, bytes_max, clients };
    if args.json {
        return output::json(&report);
    }
    in_pages(async { print(&report, &config) }).await
}

pub(super) fn note(evicted: u64, failed: u64) {
    if evicted > 0 {
        let copies = counted(evicted, "copy");
        output::note(&format!(
            "the vault is full (vault.max_mb): removed {copies} read longest ago"
        ));
    }
    if failed > 0 {
        let sessions = counted(failed, "session");
        output::note(&format!("no copy was kept of {sessions}: ANNALIST_LOG=warn shows why"));
    }
}

/// Removes all copies; false if the user did not confirm, or the store's file still contains some.
async fn clear(store: &Store, config: &Config, is_agreed_to: bool) -> Result<bool> {
    finish_forgetting(store, config).await?;
    let kept = store.vault_totals().await?;
    if kept.is_empty() {
        return Ok(store.unscrubbed().await?.is_empty());
    }
    let copies = counted(kept.values().map(|it| it.sessions).sum(), "copy");
    let refusal =
        format!("{copies} would be removed permanently: no terminal to confirm on; add --yes");
    if !is_agreed_to && !is_agreed(&format!("remove {copies} permanently?"), refusal)? {
        output::note("nothing was removed");
        return Ok(false);
    }
    store.clear_vault().await?;
    let is_scrubbed = store.scrub().await?;
    output::note(&format!("removed: {copies}"));
    if !is_scrubbed {
        output::note(UNSCRUBBED);
    }
    Ok(is_scrubbed)
}

fn print(report: &VaultReport, config: &Config) -> Result<()> {
    output::rows(&report.clients, false, "the vault has no copies")?;
    output::note(&match report.enabled {
        true => format!(
            "{} of at most {}; beyond that, the copies read longest ago are removed",
            size(report.bytes),
            size(report.bytes_max)
        ),
        false => format!(
            "no copies are kept: set `enabled = true` under `[vault]` in the settings to keep \
             copies of sessions read from then on (settings: {})",
            config.source
        ),
    });
    Ok(())
}

fn size(bytes: u64) -> String {
    const MB: u64 = 1024 * 1024;
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..MB => format!("{} KB", bytes / 1024),
        _ => format!("{:.1} MB", bytes as f64 / MB as f64),
    }
}
