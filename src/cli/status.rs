//! `annalist status`: the state of every entry and of the queue.

mod queue;

use super::init::folder_of_user;
use super::model_args::CallUsage;
use super::output::{
    self, BOLD, DIM, GREEN, RED, Result, Wide, YELLOW, count, counted, dollars, json_row, short,
    shorten, tail,
};
use super::{hand_over, settings};
use crate::adapters::clock;
use crate::adapters::files;
use crate::adapters::repository::project_of;
use crate::adapters::spool::SpooledHandOver;
use crate::adapters::walk::{Candidate, walk};
use crate::agents::{CLIENTS, Deletion, SETTINGS, quoted};
use crate::config::Config;
use crate::domain::{
    ClaimKind, Coverage, Finding, Format, Purpose, RunId, Session, SessionId, Timestamp,
};
use crate::pipeline::{namespace_of_folder, spooled_line};
use crate::privacy::{Gate, Redacted};
use crate::store::{ABANDONED, BillLine, FailedRun, QueueStats, SessionStatus, Status, Store};
use crate::text::lenient_json::beginning;
use queue::{LINE_LETTERS, QueueReport};
pub(super) use queue::{dead, in_line};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

const PATH_LETTERS: usize = 48;
const NUMBERS_FROM: usize = 3;
const SESSIONS_MAX: usize = 20;
const FAILED_MAX: usize = 10;
const SPOOLED_MAX: usize = 5;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exits 1 if something needs attention: a failed slice, a dead job, a stopped worker, ready jobs \
without a worker, a session at its cap, a transcript that a hook of this project failed to \
enqueue, or entries that do not add up. Retries what hooks failed to enqueue.")]
pub(super) struct Args {
    /// List every session and every failed slice
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: &Args, file: Option<&Path>) -> Result<()> {
    let mut spooled = hand_over::retry();
    spooled.sort_by_key(|it| !settings::is_of_project(&it.project));
    if !args.json {
        print_spooled(&spooled)?;
    }
    let (config, store) = settings::existing_store(file)?;
    let (status, depth) = (store.status().await?, store.depth(clock::now()).await?);
    let unscrubbed = !store.unscrubbed().await?.is_empty();
    if unscrubbed {
        output::note(
            "an erasure was interrupted: the store's file still contains its text until the next \
             `annalist forget`, replay, sync or consolidation",
        );
    }
    let known = KnownTranscripts::of(&store, &config, &status.sessions).await?;
    let unread = UnreadReport::of(&known, clock::now());
    if args.json {
        output::json(&StatusReport {
            sessions: status.sessions.iter().map(SessionRow::of).collect(),
            coverage: status.coverage(),
            failed: status.failed.iter().map(FailedRow::of).collect(),
            spent: CallUsage::of(&status.spent),
            bill: status.bill.iter().map(BillRow::of).collect(),
            queue: QueueReport::of(&depth),
            spooled: spooled.iter().map(SpooledRow::of).collect(),
            unread,
            settings: &config.source,
            store: store.place(),
        })?;
    } else {
        print(&status, &depth, args.all)?;
        unread.print()?;
        let (settings, store) = (&config.source, store.place());
        output::note(&format!("{DIM}settings: {settings}; store: {store}{DIM:#}"));
    }
    let unbalanced = status.sessions.iter().any(|it| it.entries.is_some() && !it.is_balanced());
    let failed = status.coverage().failed > 0 || !status.failed.is_empty() || unbalanced;
    let is_late = spooled.iter().any(|it| settings::is_of_project(&it.project));
    let is_ill = failed || unscrubbed || depth.needs_person() || is_late;
    output::fail_if(is_ill)
}

/// The state of every session and of the queue, as JSON.
#[derive(JsonSchema, Serialize)]
pub(super) struct StatusReport<'a> {
    sessions: Vec<SessionRow<'a>>,
    coverage: Coverage,
    failed: Vec<FailedRow<'a>>,
    spent: CallUsage,
    bill: Vec<BillRow<'a>>,
    queue: QueueReport<'a>,
    /// Hand-overs of hooks that failed.
    spooled: Vec<SpooledRow<'a>>,
    /// Transcripts in the folders of clients that were never read.
    unread: UnreadReport,
    settings: &'a str,
    store: &'a str,
}

json_row! {
    struct SessionRow<'a> of it: &'a SessionStatus {
        session: SessionId = it.session.id,
        native_id: &'a Redacted = &it.session.native_id,
        path: &'a str = &it.session.path,
        format: Format = it.session.format,
        namespace: &'a str = &it.session.namespace,
        title: Option<&'a Redacted> = it.session.title.as_ref(),
        started_at: Option<String> = output::time(it.session.started_at),
        entries: Option<u64> = it.entries,
        coverage: Coverage = it.totals.coverage,
        balanced: bool = it.is_balanced(),
        records: &'a BTreeMap<ClaimKind, u64> = &it.totals.staged,
        quarantined: u64 = it.totals.quarantined,
        runs: RunCounts = RunCounts::of(it),
        findings: &'a [Finding] = &it.findings,
        masked: &'a BTreeMap<String, u64> = &it.masked,
    }
}

json_row! {
    struct RunCounts of it: &SessionStatus {
        done: u64 = it.runs_done,
        failed: u64 = it.runs_failed,
    }
}

json_row! {
    struct FailedRow<'a> of it: &'a FailedRun {
        run: RunId = it.run,
        session: SessionId = it.session,
        path: &'a str = &it.path,
        entries: (u32, u32) = it.entries,
        kind: &'a str = &it.failure.kind,
        detail: &'a str = &it.failure.detail,
        at: String = it.at.to_string(),
    }
}

json_row! {
    struct BillRow<'a> of it: &'a BillLine {
        day: String = it.day.day(),
        namespace: &'a str = &it.namespace,
        #[serde(rename = "for")]
        purpose: Purpose = it.purpose,
        #[serde(flatten)]
        usage: CallUsage = CallUsage::of(&it.spent),
    }
}

json_row! {
    struct SpooledRow<'a> of it: &'a SpooledHandOver {
        path: String = it.transcript.display().to_string(),
        since: String = it.at.to_string(),
        problem: Option<&'a str> = it.problem.as_deref(),
    }
}

fn print_spooled(spooled: &[SpooledHandOver]) -> Result<()> {
    // Those of this project come first.
    let Some(oldest) = spooled.first() else { return Ok(()) };
    let count = counted(spooled.len() as u64, "transcript");
    let Some(spool) = hand_over::spool() else { return Ok(()) };
    let line = |it: &SpooledHandOver| spooled_line(&spool, it);
    output::line(&format!(
        "{RED}spooled{RED:#} {count} from hooks since {}, retried automatically: {}",
        oldest.at,
        line(oldest)
    ))?;
    for it in spooled.iter().take(SPOOLED_MAX).skip(1) {
        output::line(&format!("  and {}", line(it)))?;
    }
    match spooled.len().saturating_sub(SPOOLED_MAX) {
        0 => Ok(()),
        more => output::line(&format!("  … and {more} more: --json lists them")),
    }
}

fn print(status: &Status, depth: &QueueStats, all: bool) -> Result<()> {
    if status.sessions.is_empty() {
        output::line("nothing read yet: `annalist replay PATH` reads transcripts")?;
        return queue::print(depth);
    }
    let sum = status.coverage();
    let mut header = vec![
        "session", "transcript", "entries", "extracted", "nothing", "skipped", "pending", "failed",
        "records", "quarantined",
    ];
    let shown = if all { status.sessions.len() } else { SESSIONS_MAX };
    let newest = status.sessions.iter().rev().take(shown);
    let mut rows: Vec<Vec<String>> = newest.map(row).collect();
    // A terminal omits columns of zeros.
    for at in (NUMBERS_FROM..header.len()).rev() {
        let may_go = output::window().is_some() || header[at] == "pending" && sum.pending == 0;
        if may_go && rows.iter().all(|row| row[at] == "0") {
            header.remove(at);
            rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
    }
    let spare = ["quarantined", "skipped", "nothing"].into_iter();
    let place = |name| header.iter().position(|it| *it == name);
    let spare: Vec<usize> = spare.filter_map(place).collect();
    output::print_table(&output::fitted(&header, rows, Wide::paths(1), &spare))?;
    if status.sessions.len() > shown {
        let more = counted((status.sessions.len() - shown) as u64, "session");
        output::note(&format!("{more} not shown: --all lists them"));
    }
    let pending = match sum.pending {
        0 => String::new(),
        pending => format!("{} pending, ", count(pending)),
    };
    output::line(&format!(
        "\n{BOLD}{}{BOLD:#}: {} extracted, {} nothing worth keeping, {} skipped, {pending}\
         {} failed; {}{}",
        counted(sum.total(), "entry"),
        count(sum.extracted),
        count(sum.nothing),
        count(sum.skipped),
        count(sum.failed),
        counted(status.spent.calls, "call"),
        match status.sessions.iter().map(|it| it.runs_uncalled).sum() {
            // The journal only holds replies of calls, so these come from recordings.
            slices @ 1.. if status.spent.calls == 0 =>
                format!(", {} answered from recordings", counted(slices, "slice")),
            _ => output::paid(status.spent.cost_micros),
        }
    ))?;
    print_bill(status, all)?;
    queue::print(depth)?;
    print_state(status, depth, all)
}

/// Prints calls other than extraction; with `all`, the whole bill by day, namespace and purpose.
fn print_bill(status: &Status, all: bool) -> Result<()> {
    if all && !status.bill.is_empty() {
        let mut table = output::table(&["day", "namespace", "for", "calls", "tokens", "cost"]);
        for BillLine { day, namespace, purpose, spent } in &status.bill {
            table.add_row([
                day.day(),
                namespace.clone(),
                purpose.name().to_owned(),
                count(spent.calls),
                count(spent.usage.prompt_tokens + spent.usage.completion_tokens),
                format!("${:.4}", dollars(spent.cost_micros)),
            ]);
        }
        return output::print_table(&table);
    }
    let (mut calls, mut micros) = (Vec::new(), 0);
    for purpose in Purpose::ALL {
        let own = status.bill.iter().filter(|it| it.purpose == *purpose).map(|it| it.spent);
        let cost: u64 = own.clone().map(|it| it.cost_micros).sum();
        let number = match own.map(|it| it.calls).sum() {
            0 => continue,
            number => counted(number, "call"),
        };
        if *purpose == Purpose::Unanswered {
            let at_most = dollars(cost);
            output::line(&format!("{number} without an answer, counted at up to ${at_most:.4}"))?;
        } else if *purpose == Purpose::Failed {
            output::line(&format!("{number} failed, counted at no cost"))?;
        } else if ![Purpose::Extract, Purpose::Cancelled].contains(purpose) {
            calls.push(format!("{number} to {}", purpose.name()));
            micros += cost;
        }
    }
    if !calls.is_empty() {
        output::line(&format!(
            "of these {}{}; --all shows the cost by day and namespace",
            calls.join(", "),
            output::paid(micros)
        ))?;
    }
    Ok(())
}

fn row(it: &SessionStatus) -> Vec<String> {
    let staged: u64 = ClaimKind::ALL.iter().filter_map(|kind| it.totals.staged.get(kind)).sum();
    vec![
        short(&it.session.id),
        tail(&it.session.path, PATH_LETTERS),
        it.entries.map_or("unfinished".to_owned(), count),
        count(it.totals.coverage.extracted),
        count(it.totals.coverage.nothing),
        count(it.totals.coverage.skipped),
        count(it.totals.coverage.pending),
        count(it.totals.coverage.failed),
        count(staged),
        count(it.totals.quarantined),
    ]
}

fn print_state(status: &Status, depth: &QueueStats, all: bool) -> Result<()> {
    let shown = if all { status.failed.len() } else { FAILED_MAX };
    for it in status.failed.iter().take(shown) {
        output::line(&format!(
            "{RED}failed{RED:#} {} entries {}–{} of {}: {}: {}",
            short(&it.run),
            it.entries.0,
            it.entries.1,
            tail(&it.path, PATH_LETTERS),
            it.failure.kind,
            shorten(&it.failure.detail, LINE_LETTERS)
        ))?;
    }
    let failed: u64 = status.sessions.iter().map(|it| it.runs_failed).sum();
    let more = failed.saturating_sub(shown as u64);
    if more > 0 {
        let hint = if all { "" } else { ": --all lists them" };
        output::note(&format!("and {} more failed{hint}", count(more)));
    }
    // Dead jobs have their own retry command.
    let dead: u64 = depth.dead.iter().filter(|it| it.kind != ABANDONED).map(|it| it.jobs).sum();
    if dead < failed {
        output::note("replay the same path to retry; --retry-failed also retries unusable answers");
    }
    let unbalanced = || status.sessions.iter().filter(|it| !it.is_balanced());
    let shown = if all { status.sessions.len() } else { FAILED_MAX };
    for it in unbalanced().take(shown) {
        let (id, path) = (short(&it.session.id), tail(&it.session.path, PATH_LETTERS));
        match it.entries {
            None => {
                let how = match it.totals.coverage.pending {
                    0 => "its replay was stopped; replaying it again finishes it",
                    _ => {
                        "some slices have no answer yet; replaying it again also runs its waiting \
                         jobs"
                    }
                };
                output::line(&format!("{YELLOW}unfinished{YELLOW:#} {id} {path}: {how}"))?;
            }
            Some(entries) => output::line(&format!(
                "{RED}unbalanced{RED:#} {id} {path}: {entries} entries, {} accounted for",
                it.totals.coverage.total()
            ))?,
        }
    }
    let more = unbalanced().count().saturating_sub(shown);
    if more > 0 {
        output::note(&format!("and {} more to resume: --all lists them", count(more as u64)));
    }
    if status.failed.is_empty() && unbalanced().next().is_none() {
        output::line(&match status.coverage().pending {
            0 => format!("{GREEN}every entry is accounted for{GREEN:#}"),
            _ => format!("{GREEN}every entry is accounted for or in the queue{GREEN:#}"),
        })?;
    }
    Ok(())
}

/// Days before a deletion from which the report warns.
const DAYS: u32 = 3;
const HOUR: Duration = Duration::from_secs(60 * 60);

/// Transcripts that need no reading into this store.
struct KnownTranscripts {
    /// File of this store; `None` on a server.
    store: Option<PathBuf>,
    paths: HashSet<PathBuf>,
    names: HashSet<String>,
    namespaces: Vec<String>,
    forgotten: HashSet<SessionId>,
    gate: Gate,
}

impl KnownTranscripts {
    async fn of(store: &Store, config: &Config, sessions: &[SessionStatus]) -> Result<Self> {
        let (mut paths, mut names) = (HashSet::new(), HashSet::new());
        for SessionStatus { session, .. } in sessions {
            paths.insert(real(Path::new(&session.path)));
            names.insert(session.native_id.as_str().to_owned());
        }
        let mut namespaces = store.namespaces().await?;
        namespaces.extend(config.namespace.clone());
        Ok(KnownTranscripts {
            store: config.store_url.strip_prefix("sqlite:").map(|path| real(Path::new(path))),
            paths,
            names,
            namespaces,
            forgotten: store.forgotten_sessions().await?.into_iter().collect(),
            gate: Gate::new(&config.pii),
        })
    }

    fn is_read(&self, transcript: &Path) -> bool {
        self.names.contains(name_of(transcript)) || self.paths.contains(&real(transcript))
    }

    fn is_forgotten(&self, transcript: &Path, folder: Option<&Path>) -> bool {
        if self.forgotten.is_empty() {
            return false;
        }
        let name = name_of(transcript);
        let own = folder.map(|it| namespace_of_folder(&it.display().to_string(), &self.gate));
        self.namespaces.iter().chain(&own).any(|namespace| {
            let id = |format: &Format| Session::id_of(namespace, *format, name);
            Format::ALL.iter().any(|format| self.forgotten.contains(&id(format)))
        })
    }

    /// True if `folder` is of a project with another store.
    fn is_elsewhere(&self, folder: &Path) -> bool {
        let own = settings::store_of(folder);
        own.exists() && Some(real(&own)) != self.store
    }
}

/// Name of a conversation, by the file of its transcript.
fn name_of(transcript: &Path) -> &str {
    transcript.file_stem().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Folder in which a conversation began, as its transcript or its client's folder names it.
fn working_folder(transcript: &Path) -> Option<PathBuf> {
    /// Maximum size of the lines before the first one with the folder.
    const HEAD_BYTES_MAX: u64 = 256 * 1024;
    let head = BufReader::new(File::open(transcript).ok()?.take(HEAD_BYTES_MAX));
    let mut lines = head.split(b'\n').map_while(Result::ok);
    let named = lines
        .find_map(|line| Some(beginning(&String::from_utf8_lossy(&line))["cwd"].as_str()?.into()));
    named.or_else(|| project_of(transcript))
}

/// Transcripts of clients that delete them.
#[derive(Debug, Default, JsonSchema, Serialize)]
struct UnreadReport {
    /// Transcripts that were never read, without those of projects with another store.
    transcripts: u64,
    /// Of these, those that their client will delete soon.
    deleted_soon: u64,
    /// Days from now that are soon.
    within_days: u32,
    /// Folders that they are in.
    folders: Vec<PathBuf>,
}

impl UnreadReport {
    fn of(known: &KnownTranscripts, now: Timestamp) -> UnreadReport {
        let mut report = UnreadReport { within_days: DAYS, ..UnreadReport::default() };
        for client in CLIENTS {
            let Some(deletion) = client.deletion else { continue };
            if let Ok(folder) = folder_of_user(client) {
                report.look(&folder, deletion, now, known);
            }
        }
        report
    }

    fn look(
        &mut self,
        client: &Path,
        deletion: &Deletion,
        now: Timestamp,
        known: &KnownTranscripts,
    ) {
        let folder = client.join(deletion.folder);
        if !folder.is_dir() {
            return;
        }
        let settings = files::read_if_exists(&client.join(SETTINGS)).ok().flatten();
        let hours = (deletion.hours)(&settings.unwrap_or_default());
        let end = now.after(HOUR * 24 * DAYS);
        let is_deleted_soon = |file: &Candidate| {
            let deleted = file.changed_at.zip(hours).map(|(at, hours)| at.after(HOUR * hours));
            deleted.is_some_and(|deleted| deleted <= end)
        };
        let (found, _) = walk(std::slice::from_ref(&folder));
        let found = found.iter().filter(|it| (deletion.is_transcript)(&it.path));
        let (mut folders, mut has_others) = (BTreeSet::new(), false);
        // Many transcripts share a folder.
        let mut elsewhere: HashMap<PathBuf, bool> = HashMap::new();
        for file in found.filter(|it| !known.is_read(&it.path)) {
            let works_in = working_folder(&file.path);
            let mut is_elsewhere = |folder: &PathBuf| {
                *elsewhere.entry(folder.clone()).or_insert_with(|| known.is_elsewhere(folder))
            };
            if works_in.as_ref().is_some_and(&mut is_elsewhere) {
                has_others = true;
            } else if !known.is_forgotten(&file.path, works_in.as_deref()) {
                self.transcripts += 1;
                self.deleted_soon += u64::from(is_deleted_soon(file));
                // The client has a folder for each project.
                let project = file.path.strip_prefix(&folder).ok().and_then(|it| it.iter().next());
                folders.extend(project.map(|name| folder.join(name)));
            }
        }
        if !has_others && !folders.is_empty() {
            folders = BTreeSet::from([folder]);
        }
        self.folders.extend(folders);
    }

    fn print(&self) -> Result<()> {
        if self.transcripts == 0 {
            return Ok(());
        }
        let unread = counted(self.transcripts, "session");
        let soon = match self.deleted_soon {
            0 => String::new(),
            soon => format!(", {} of them will be deleted within {DAYS} days", output::count(soon)),
        };
        let folders = self.folders.iter().map(|it| quoted(&it.to_string_lossy()));
        let folders: Vec<String> = folders.collect();
        output::line(&format!(
            "{YELLOW}unread{YELLOW:#} {unread}{soon}: `annalist enqueue {}` reads them",
            folders.join(" ")
        ))
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
