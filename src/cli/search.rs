//! `annalist search`: full-text search of records, memories and notes of the directory; `open`, `today`, `yesterday` and
//! `week`: open items, and recent records by project.

use super::arguments::{
    date, date_end, limit, named, namespace_of, namespace_or_here, note_unknown, session_of,
    unknown,
};
use super::memory::folder::{DirArgs, left_out, project_directory};
use super::model_args::embedder;
use super::output::{self, BOLD, DIM, Failure, Result, count, counted};
use super::settings;
use crate::adapters::memory_files::MemoryFolder;
use crate::config::{Config, namespace_name};
use crate::domain::{ClaimKind, Format, Timestamp};
use crate::memory_dir::inline;
use crate::pipeline::{
    DayHits, DirectoryNotes, HitState, Namespaces, SearchHit, SearchRequest, project_namespace,
    search, search_days, undated_left_out,
};
use crate::privacy::Gate;
use crate::rows::{SearchRow, outcome};
use crate::search::Query;
use crate::store::{SearchFilter, Store, Undated};
use crate::text::phrase::in_one_line;
use clap::ValueEnum;
use std::path::Path;

const HITS_MAX: usize = 10;
const LINE_LETTERS: usize = 160;
/// Minimum letters for text beside the state; a narrower terminal shows it on the next line.
const WORDS_LETTERS_MIN: usize = 44;
const INDENT: &str = "  ";
const CELL_LETTERS: usize = 300;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist search retry queue              what was said about it
  annalist search --open --since 7d        open items of the last week
  annalist search timeout --failed         failed attempts
  annalist search lease --path src/queue.rs --format md

Finds records, the memories based on them, and what people wrote in the directory. A superseded \
memory ranks below its replacement. English synonyms, such as `ship` for `deploy`, are found too, \
and rank lower. `annalist why ID` shows the evidence of a hit. Exits with 1 if nothing is \
found.")]
#[command(group = clap::ArgGroup::new("range").args(["since", "until"]).multiple(true))]
pub(super) struct Args {
    /// Words in any case, form and order; without words, the newest items are listed
    words: Vec<String>,
    /// Only this kind
    #[arg(long, value_parser = named(ClaimKind::ALL, ClaimKind::name))]
    kind: Option<ClaimKind>,
    /// Only this state
    #[arg(long, value_parser = named(HitState::ALL, HitState::name))]
    state: Option<HitState>,
    /// Only open requests, questions and failures
    #[arg(long)]
    open: bool,
    /// Only failed attempts
    #[arg(long)]
    failed: bool,
    /// Only contradictions
    #[arg(long, conflicts_with = "state")]
    conflicting: bool,
    /// Only this session, by annalist's ID, the client's ID, or a prefix of either
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only sessions of this format
    #[arg(long, value_name = "FORMAT", value_parser = named(Format::ALL, Format::name))]
    client: Option<Format>,
    /// Only what was said on this date or later: a date, today, 7d
    #[arg(long, value_name = "DATE", value_parser = date)]
    since: Option<Timestamp>,
    /// Only what was said on this date or earlier
    #[arg(long, value_name = "DATE", value_parser = date_end)]
    until: Option<Timestamp>,
    /// With --since or --until, also records without a time
    #[arg(long, requires = "range")]
    undated: bool,
    /// Only what names this file in its claim or quotes, or comes from this transcript; `annalist why FILE:LINE` also
    /// knows the files that tools wrote
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    #[command(flatten)]
    scope: Scope,
    /// Maximum number of hits
    #[arg(long, value_name = "N", default_value_t = HITS_MAX, value_parser = limit())]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print a table in this format
    #[arg(long, value_enum, conflicts_with = "json")]
    format: Option<TableFormat>,
}

#[derive(Debug, clap::Args)]
struct Scope {
    /// Only this namespace, instead of the project's; `.` for the current folder's, of a known project or not
    #[arg(long, value_name = "NAME", value_parser = namespace_or_here)]
    namespace: Option<String>,
    /// All namespaces, as in a folder of no known project
    #[arg(long, conflicts_with = "namespace")]
    all: bool,
    #[command(flatten)]
    dir: DirArgs,
}

/// Namespaces that are searched.
#[derive(Debug, Default)]
struct Searched {
    /// `None` for all.
    namespace: Option<String>,
    /// Line on a project or namespace that the store does not know.
    unknown: Option<String>,
}

impl Scope {
    /// Returns the namespace of the arguments or settings, or of this folder or its nearest parent known to the store.
    async fn searched(&self, store: &Store, config: &Config) -> Result<Searched> {
        let named = self.namespace.as_deref().filter(|name| *name != ".");
        if self.all || named.is_some() {
            let unknown = unknown(store, named).await?;
            return Ok(Searched { namespace: named.map(str::to_owned), unknown });
        }
        let root = self.dir.root();
        let root = std::path::absolute(&root).unwrap_or(root);
        let gate = Gate::new(&config.pii);
        let namespaces = Namespaces { store, gate: &gate };
        let namespace = project_namespace(namespaces, config, root.ancestors()).await?;
        if namespace.is_some() {
            return Ok(Searched { namespace, unknown: None });
        }
        let what = "this folder is of no known project";
        if self.namespace.is_some() {
            let own = namespace_of(&root, Some(store), config).await?;
            return Ok(Searched { namespace: Some(own), unknown: Some(what.to_owned()) });
        }
        let unknown = Some(format!("all namespaces are searched, since {what}"));
        Ok(Searched { namespace: None, unknown })
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TableFormat {
    /// Markdown
    Md,
    /// Comma-separated values
    Csv,
}

impl SearchRow<'_> {
    /// Id, day, kind, state, quote and claim.
    pub(super) fn cells(&self) -> [String; 6] {
        [
            self.id.clone(),
            output::day(self.at.as_deref()),
            self.kind_in_words.clone(),
            self.standing.clone(),
            on_a_line(self.words),
            on_a_line(self.wording),
        ]
    }
}

/// Replaces line breaks and other control characters with blanks.
fn on_a_line(text: &str) -> String {
    let letters = text.chars().map(|it| if it.is_control() { ' ' } else { it });
    in_one_line(&letters.collect::<String>())
}

pub(super) async fn run(args: &Args, file: Option<&Path>) -> Result<()> {
    let config = settings::load(file)?;
    let store = settings::known_store(&config)?;
    let embedder = embedder(&config)?;
    let words = args.words.join(" ");
    let query = Query::parse(&words).map_err(|why| {
        Failure::usage(format!("`{}`: {why}", output::shorten(&words, WORDS_LETTERS_MIN)))
    })?;
    if args.since.zip(args.until).is_some_and(|(since, until)| until < since) {
        return Err(Failure::usage("--since is later than --until: exchange them"));
    }
    let (mut searched, mut session) = (Searched::default(), args.session.clone());
    if let Some(store) = &store {
        searched = args.scope.searched(store, &config).await?;
        session = session_of(store, session.as_deref()).await?.map(|it| it.id.to_string());
    }
    let Searched { namespace, unknown } = searched;
    let Args { kind, client, since, until, open, failed, .. } = *args;
    let path = args.path.as_deref().map(|path| in_project(path, &args.scope.dir.root()));
    let filter = SearchFilter {
        namespace: namespace.clone(),
        kind,
        session,
        client,
        since,
        until,
        undated: if args.undated { Undated::Included } else { Undated::LeftOut },
        path,
        open,
        failed,
        ..SearchFilter::default()
    };
    let here = directory(&args.scope.dir);
    let mut request = SearchRequest {
        words,
        filter,
        state: args.state.or(args.conflicting.then_some(HitState::Conflicting)),
        limit: args.limit.saturating_add(1),
        here: here.as_ref().ok().cloned().flatten(),
        ..SearchRequest::default()
    };
    if let (Some(store), Some(embedder)) = (&store, &embedder) {
        let note = embedder.prepare(store, &mut request).await;
        note.iter().for_each(|note| output::note(note));
    }
    let mut notes = Vec::new();
    if !request.excludes_notes()
        && let Some(folder) = here?
    {
        let gate = Gate::new(&config.pii);
        let read = DirectoryNotes::read(&folder, store.as_ref(), &gate).await?;
        left_out(&read.skipped);
        notes = read.notes;
    }
    let mut hits = search(store.as_ref(), &request, notes).await?;
    let is_more = hits.len() > args.limit;
    hits.truncate(args.limit);
    let rows: Vec<SearchRow<'_>> = hits.iter().map(|hit| SearchRow::of(hit, &query)).collect();
    unknown.iter().filter(|_| !rows.is_empty()).for_each(|line| output::note(line));
    match args.format {
        _ if args.json => output::json(&rows)?,
        Some(format) => output::line(&table(&rows, format))?,
        None if rows.is_empty() => {}
        None => output::paged(&lines(&rows)).await?,
    }
    if is_more {
        output::note(&format!("the best {} only: --limit N lists more", rows.len()));
    }
    note_undated(store.as_ref(), &request).await?;
    if !rows.is_empty() {
        return Ok(());
    }
    output::note(&nothing_found(store.is_some(), unknown, namespace));
    output::fail_if(true)
}

fn nothing_found(has_store: bool, unknown: Option<String>, namespace: Option<String>) -> String {
    match (unknown, namespace) {
        _ if !has_store => {
            "nothing found: no store yet; `annalist replay PATH` creates one".to_owned()
        }
        (Some(unknown), _) => format!("nothing found: {unknown}"),
        (None, Some(name)) => {
            format!("nothing found in namespace `{name}`: try other words, fewer filters, or --all")
        }
        (None, None) => "nothing found in all namespaces: `annalist records` lists all".to_owned(),
    }
}

async fn note_undated(store: Option<&Store>, request: &SearchRequest) -> Result<()> {
    let Some(store) = store else { return Ok(()) };
    let left_out = undated_left_out(store, request).await?;
    if left_out > 0 {
        let records = counted(left_out, "record");
        output::note(&format!("{records} without a time left out: --undated lists them too"));
    }
    Ok(())
}

/// Path as transcripts name it: without a leading `./`, and without the project's folder.
fn in_project(path: &str, root: &Path) -> String {
    let named = Path::new(path);
    let absolute = std::path::absolute(root).ok();
    let below = absolute.as_deref().and_then(|root| named.strip_prefix(root).ok());
    let below = below.unwrap_or(named.strip_prefix(".").unwrap_or(named));
    below.display().to_string()
}

/// The named directory, or that of the project, if it has one.
fn directory(dir: &DirArgs) -> Result<Option<MemoryFolder>> {
    if dir.is_named() { dir.find().map(Some) } else { project_directory(&dir.root()) }
}

/// Formats each hit with its claim and its quote: on one line, or on a terminal with the quote below it; a narrow one
/// shows the claim below the state, too.
fn lines(rows: &[SearchRow<'_>]) -> String {
    let window = output::window().map(|(width, _)| width);
    let cells: Vec<[String; 6]> = rows.iter().map(SearchRow::cells).collect();
    let wide = |at: usize, most: usize| {
        let letters = cells.iter().filter_map(|row| row.get(at)).map(|it| it.chars().count());
        letters.filter(|letters| *letters <= most).max().unwrap_or_default()
    };
    // Longer cells shift only their own line.
    let [ids, states] = [wide(0, 14), wide(3, 11)];
    let mut text = String::new();
    for [id, day, kind, state, words, claim] in &cells {
        let head = format!("{id:<ids$}  {day:<10}  {kind:<10}  {state:<states$}  ");
        let left = |width: usize| width.saturating_sub(head.chars().count() + 1);
        let Some(width) = window else {
            let short = output::shorten(claim, left(LINE_LETTERS).max(WORDS_LETTERS_MIN));
            let quote = match words == claim {
                true => String::new(),
                false => format!("  “{}”", output::shorten(words, LINE_LETTERS)),
            };
            text.push_str(&format!("{head}{short}{quote}\n"));
            continue;
        };
        let whole = width.saturating_sub(INDENT.len() + 1);
        if left(width) < WORDS_LETTERS_MIN {
            let claim = output::shorten(claim, whole);
            text.push_str(&format!("{}\n{INDENT}{claim}\n", head.trim_end()));
        } else {
            text.push_str(&format!("{head}{}\n", output::shorten(claim, left(width))));
        }
        if words != claim {
            text.push_str(&format!("{INDENT}{DIM}{}{DIM:#}\n", output::shorten(words, whole)));
        }
    }
    text
}

fn table(rows: &[SearchRow<'_>], format: TableFormat) -> String {
    const HEADER: [&str; 6] = ["id", "date", "kind", "state", "words", "claim"];
    let line = |cells: [String; 6]| match format {
        TableFormat::Md => format!("| {} |", cells.map(|it| it.replace('|', "\\|")).join(" | ")),
        TableFormat::Csv => cells.map(|it| format!("\"{}\"", it.replace('"', "\"\""))).join(","),
    };
    let mut lines = vec![line(HEADER.map(str::to_owned))];
    if matches!(format, TableFormat::Md) {
        lines.push("|---|---|---|---|---|---|".to_owned());
    }
    lines.extend(rows.iter().map(|row| {
        let [id, day, kind, state, words, claim] = row.cells();
        let [words, claim] = [words, claim].map(|it| output::shorten(&it, CELL_LETTERS));
        let [words, claim] = match format {
            TableFormat::Md => [words, claim].map(|it| inline(&it)),
            TableFormat::Csv => [words, claim],
        };
        line([id, day, kind, state, words, claim])
    }));
    lines.join("\n")
}

const ITEMS_MAX: usize = 2_000;
const SHOWN_MAX: usize = 100;
const ITEM_LETTERS: usize = 200;

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
    #[arg(long, value_name = "NAME", value_parser = namespace_name)]
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

pub(super) async fn open(args: &OpenArgs, file: Option<&Path>) -> Result<()> {
    let (config, store) = settings::existing_store(file)?;
    let Searched { namespace, unknown } = args.scope.searched(&store, &config).await?;
    let none = match (&unknown, &namespace) {
        (Some(unknown), _) => format!("nothing is open: {unknown}"),
        (None, Some(name)) => format!("nothing is open in namespace `{name}`; --all searches all"),
        (None, None) => "nothing is open in any namespace".to_owned(),
    };
    let filter =
        SearchFilter { namespace, open: true, oldest_first: true, ..SearchFilter::default() };
    // One more than is shown, to detect that there are more.
    let limit = args.shown.limit.saturating_add(1);
    let request = SearchRequest { filter, limit, ..SearchRequest::default() };
    let mut hits = search(Some(&store), &request, Vec::new()).await?;
    hits.sort_by_key(|hit| (hit.at().is_none(), hit.at()));
    let rows = rows(&hits, args.shown.limit);
    unknown.iter().filter(|_| !rows.is_empty()).for_each(|line| output::note(line));
    if args.shown.json {
        output::json(&rows)?;
    } else if hits.is_empty() {
        output::note(&none);
    } else {
        let items = rows.iter().map(|row| item(row, &row.kind_in_words));
        let more = if rows.len() < hits.len() { "and more: --limit N" } else { "" };
        output::paged(&(items.collect::<String>() + more)).await?;
    }
    Ok(())
}

/// Lists what was said from one day to another, such as `yesterday`.
pub(super) async fn days(args: &DayArgs, from: &str, to: &str, file: Option<&Path>) -> Result<()> {
    let (_, store) = settings::existing_store(file)?;
    let since = date(from).map_err(Failure::usage)?;
    let until = date_end(to).map_err(Failure::usage)?;
    note_unknown(&store, args.namespace.as_deref()).await?;
    let found = search_days(&store, args.namespace.clone(), since..=until, ITEMS_MAX);
    let DayHits { hits, undated } = found.await?;
    let all = hits.len();
    let mut rows = rows(&hits, args.shown.limit);
    if args.shown.json {
        output::json(&rows)?;
    } else if all == 0 {
        output::note("no records for these days: `annalist status` shows what was read");
    } else {
        rows.sort_by_key(|row| (row.namespace, order(row.kind)));
        let more = match all.saturating_sub(rows.len()) as u64 {
            0 => String::new(),
            more => format!("and {} more: --limit N\n", count(more)),
        };
        output::paged(&(by_project(&rows) + &more)).await?;
    }
    if let Some(undated) = undated {
        output::note(&format!("{undated}: `annalist records` lists all"));
    }
    Ok(())
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
        let deed = if row.noted { "noted" } else { DEEDS[order(row.kind)] };
        text.push_str(&item(row, &format!("{deed}{}", outcome(row.succeeded))));
    }
    text
}

const WORDS_COLUMN: usize = 24;

fn item(row: &SearchRow<'_>, kind: &str) -> String {
    let [id, day, _, state, ..] = row.cells();
    let state = match matches!(row.state, HitState::Current | HitState::Staged) {
        true => row.possibly.map(|it| format!(" ({it})")).unwrap_or_default(),
        false => format!(" ({state})"),
    };
    let edited = row.edited.then(|| "  edited by a person".to_owned());
    let place = row.path.zip(row.line).map(|(path, line)| format!("  {path}:{line}"));
    let words = format!("{}{state}", output::shorten(&on_a_line(row.wording), ITEM_LETTERS));
    format!(
        "{day:<10}  {kind:<10}  {}\n{:12}{DIM}{id}{}{DIM:#}\n",
        output::hanging(&words, WORDS_COLUMN),
        "",
        place.or(edited).unwrap_or_default()
    )
}
