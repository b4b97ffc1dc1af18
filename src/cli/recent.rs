//! `annalist open`, `today`, `yesterday` and `week`: open items, and recent records by project.

use super::arguments::{date, date_end, limit};
use super::output::{self, BOLD, DIM, Failure, count};
use super::search::{Scope, on_a_line, shortened};
use super::settings;
use crate::domain::{ClaimKind, Timestamp};
use crate::pipeline::{HitState, SearchHit, SearchRequest, search};
use crate::rows::SearchRow;
use crate::search::Query;
use crate::store::{SearchFilter, Store};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

/// Maximum items searched.
const ITEMS_MAX: usize = 2_000;
/// Default maximum of items shown.
const SHOWN_MAX: usize = 100;
/// Maximum letters of an item.
const WORDS_LETTERS: usize = 200;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist open        requests, questions and failures of this project
  annalist open --all  of all projects")]
pub(super) struct OpenArgs {
    #[command(flatten)]
    scope: Scope,
    #[command(flatten)]
    shown: Shown,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Days are in this machine's time zone, as with --since.")]
pub(super) struct DayArgs {
    /// Only this namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    shown: Shown,
}

#[derive(Debug, clap::Args)]
struct Shown {
    /// Maximum number of items
    #[arg(long, value_name = "N", default_value_t = SHOWN_MAX, value_parser = limit())]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Days {
    Today,
    Yesterday,
    Week,
}

impl Days {
    /// Start and end of the period.
    fn span(self) -> Result<(Timestamp, Timestamp), Failure> {
        let (from, to) = match self {
            Days::Today => ("today", "today"),
            Days::Yesterday => ("yesterday", "yesterday"),
            Days::Week => ("6d", "today"),
        };
        Ok((date(from).map_err(Failure::usage)?, date_end(to).map_err(Failure::usage)?))
    }
}

pub(super) fn open(args: &OpenArgs, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let (config, store) = settings::existing_store(file)?;
    let mut hits = settings::runtime()?.block_on(async {
        let namespace = args.scope.namespace(&store, &config).await?;
        let filter = SearchFilter { namespace, open: true, ..SearchFilter::default() };
        found(&store, SearchRequest { filter, ..SearchRequest::default() }).await
    })?;
    hits.sort_by_key(|hit| (hit.at().is_none(), hit.at()));
    let rows = rows(&hits, args.shown.limit);
    if args.shown.json {
        output::json(&rows)?;
    } else if hits.is_empty() {
        output::note("nothing is open here; --all searches all projects");
    } else {
        let items = rows.iter().map(|row| item(row, row.kind.map_or("note", ClaimKind::name)));
        let text = items.collect::<String>() + &rest(hits.len(), rows.len());
        output::paged(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn days(args: &DayArgs, days: Days, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let (_, store) = settings::existing_store(file)?;
    let (since, until) = days.span()?;
    let filter = SearchFilter {
        namespace: args.namespace.clone(),
        since: Some(since),
        until: Some(until),
        undated: true,
        ..SearchFilter::default()
    };
    let request = SearchRequest { filter, ..SearchRequest::default() };
    let mut hits = settings::runtime()?.block_on(found(&store, request))?;
    hits.retain(|hit| !hit.state.is_void());
    // Undated records match by the time at which they were read, not by when they were said.
    let undated = hits.iter().filter(|hit| hit.at().is_none()).filter_map(SearchHit::record);
    let undated: BTreeSet<_> = undated.map(|it| it.record.provenance.session).collect();
    // A successor is found together with the memory it replaced, whatever its date.
    hits.retain(|hit| hit.at().is_some_and(|at| since <= at && at <= until));
    hits.sort_by_key(|hit| std::cmp::Reverse(hit.at()));
    let all = hits.len();
    let mut rows = rows(&hits, args.shown.limit);
    if args.shown.json {
        output::json(&rows)?;
    } else if all == 0 {
        output::note("no records for these days: `annalist status` shows what was read");
    } else {
        rows.sort_by_key(|row| (row.namespace, order(row.kind)));
        output::paged(&(by_project(&rows) + &rest(all, rows.len())))?;
    }
    let what = match undated.len() as u64 {
        0 => return Ok(ExitCode::SUCCESS),
        1 => "1 undated conversation is".to_owned(),
        more => format!("{} undated conversations are", count(more)),
    };
    output::note(&format!("{what} not shown: `annalist records` lists all"));
    Ok(ExitCode::SUCCESS)
}

async fn found(store: &Store, request: SearchRequest) -> Result<Vec<SearchHit>, Failure> {
    let request = SearchRequest { limit: ITEMS_MAX, ..request };
    Ok(search(Some(store), &request, Vec::new()).await?)
}

fn rows(hits: &[SearchHit], limit: usize) -> Vec<SearchRow<'_>> {
    hits.iter().take(limit).map(|hit| SearchRow::of(hit, &Query::default())).collect()
}

/// Sort key: decisions, attempts, requests, discussions.
fn order(kind: Option<ClaimKind>) -> usize {
    match kind {
        Some(ClaimKind::Decision) => 0,
        Some(ClaimKind::Attempt) => 1,
        Some(ClaimKind::Request) => 2,
        Some(ClaimKind::Discussion) | None => 3,
    }
}

fn by_project(rows: &[SearchRow<'_>]) -> String {
    const DEEDS: [&str; 4] = ["decided", "tried", "asked", "discussed"];
    let (mut text, mut project) = (String::new(), None);
    for row in rows {
        if project != Some(row.namespace) {
            let gap = if project.is_some() { "\n" } else { "" };
            text.push_str(&format!("{gap}{BOLD}{}{BOLD:#}\n", row.namespace.unwrap_or("notes")));
            project = Some(row.namespace);
        }
        text.push_str(&item(row, if row.is_noted { "noted" } else { DEEDS[order(row.kind)] }));
    }
    text
}

/// Column in which the words of an item begin.
const WORDS_COLUMN: usize = 24;

/// Formats an item with its source.
fn item(row: &SearchRow<'_>, kind: &str) -> String {
    let [id, day, _, state, ..] = row.cells();
    let state = match row.state {
        HitState::Current | HitState::Staged => {
            row.possibly.map(|it| format!(" ({it})")).unwrap_or_default()
        }
        HitState::Completed
        | HitState::Conflicting
        | HitState::Superseded
        | HitState::Retracted
        | HitState::Discarded
        | HitState::Quarantined
        | HitState::Note => format!(" ({state})"),
    };
    let place = row.path.zip(row.line).map(|(path, line)| format!("  {path}:{line}"));
    let words = format!("{}{state}", shortened(&on_a_line(row.wording), WORDS_LETTERS));
    format!(
        "{day:<10}  {kind:<10}  {}\n{:12}{DIM}{id}{}{DIM:#}\n",
        output::hanging(&words, WORDS_COLUMN),
        "",
        place.unwrap_or_default()
    )
}

fn rest(all: usize, shown: usize) -> String {
    match all.saturating_sub(shown) as u64 {
        0 => String::new(),
        more => format!("and {} more: --limit N\n", count(more)),
    }
}
