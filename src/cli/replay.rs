//! `annalist replay`: extracts transcripts in this process.

use super::arguments::{date, limit, named_or_here, namespace_or_here};
use super::model_args::{self, ModelArgs};
use super::namespace::warn_of_twin;
use super::output::{
    self, BOLD, DIM, GREEN, RED, Result, YELLOW, count, counted, in_pages, lasting, numbers, pairs,
    remark, rules,
};
use super::progress::{self, OFTEN, Progress, cancelled_with_note};
use super::settings;
use crate::adapters::clock;
use crate::config::Config;
use crate::domain::{Format, Timestamp};
use crate::pipeline::{End, Options, Plan, Replay, Tally, Totals};
use crate::store::OpenMode;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Style of the bar; a narrow terminal truncates the end, so the least important comes last.
const BAR: &str = "[{bar:12}] {percent:>3}% {wide_msg}";
const LISTED_MAX: usize = 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist replay ~/.claude/projects ~/.codex/sessions --dry-run
  annalist replay session.jsonl --model gpt-5-mini
  annalist replay examples/sessions --cassette examples/cassette --show
  annalist replay vault   read the vault's copies, even of deleted files

Finished work is kept: run it again to resume; nothing is paid for twice. \
Ctrl-C once stops cleanly, twice stops at once.")]
pub(super) struct Args {
    /// Transcripts or folders of them; `vault` for the vault's copies (`./vault` for a folder)
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    model: ModelArgs,
    /// Read named files as this format instead of detecting it
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Skip sessions that began before this day or time, such as today or 7d
    #[arg(long, value_name = "DATE", value_parser = date)]
    since: Option<Timestamp>,
    /// With --since, also read sessions without a time
    #[arg(long, requires = "since")]
    undated: bool,
    /// Read at most N sessions
    #[arg(long, value_name = "N", value_parser = limit())]
    limit: Option<usize>,
    /// Namespace of the records, instead of that of the agent's folder; `.` for the current folder's
    #[arg(long, value_name = "NAME", value_parser = namespace_or_here)]
    namespace: Option<String>,
    /// Retry slices that failed
    #[arg(long)]
    retry_failed: bool,
    /// Read forgotten sessions again
    #[arg(long)]
    also_forgotten: bool,
    /// Read, mask, slice and count; send nothing, store nothing
    #[arg(long)]
    dry_run: bool,
    /// List the records of these conversations when done
    #[arg(long, conflicts_with_all = ["json", "dry_run"])]
    show: bool,
    /// Print the totals as one JSON object on stdout
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, file: Option<&Path>) -> Result<()> {
    let mut config = settings::load(file)?;
    args.model.override_settings(&mut config);
    if let Some(named) = args.namespace.as_deref() {
        let store = settings::known_store(&config)?;
        config.namespace = named_or_here(Some(named), store.as_ref(), &config).await?;
    }
    let options = Options {
        paths: args.paths.iter().filter(|it| !is_vault(it)).cloned().collect(),
        vault: args.paths.iter().any(|it| is_vault(it)),
        format: args.format,
        since: args.since,
        undated: args.undated,
        sessions_max: args.limit.map(|it| it as u64),
        retry_failed: args.retry_failed,
        also_forgotten: args.also_forgotten,
    };
    let tally = Arc::new(Tally::default());
    let started = Instant::now();
    let mut end = End::Nothing;
    if args.dry_run {
        let store = settings::known_store(&config)?;
        let model_name = args.model.name(&config)?;
        let unpriced = model_args::unpriced_cap(&config, &model_name);
        unpriced.into_iter().for_each(|what| output::note(&output::warning(&what)));
        let (cancel, tally) = (CancellationToken::new(), Arc::clone(&tally));
        let plan = Plan { config, model_name, cancel, tally };
        plan.run(options, store).await?;
    } else {
        end = replay(config, &args, options, Arc::clone(&tally)).await?;
    }
    let totals = tally.totals();
    let forgotten = totals.findings.get("forgotten").copied().unwrap_or_default();
    let nothing = totals.sessions == 0 && totals.entries == 0 && forgotten == 0;
    let mut failed = totals.failed() || end != End::Nothing;
    if args.json {
        output::json(&totals)?;
    }
    list_problems(&totals);
    if !args.json {
        if forgotten > 0 {
            super::enqueue::forgotten(forgotten);
        }
        if totals.sessions_undated > 0 {
            let sessions = counted(totals.sessions_undated, "session");
            output::note(&format!("{sessions} without a time: skipped; --undated reads them too"));
        }
    }
    if nothing && !failed {
        failed = nothing_read(&totals, &args);
    } else if !args.json && end != End::Nothing {
        print_stopped(&totals, args.model.is_recorded())?;
    } else if !args.json && !nothing {
        print(&totals, args.dry_run, args.model.is_recorded())?;
        closing(&totals, args.dry_run, started.elapsed());
    }
    if args.show {
        output::line("")?;
        in_pages(super::records::list_of(&totals.sessions_read, file)).await?;
    }
    match &end {
        End::Needs(what) => output::note(&format!("{RED}stopped:{RED:#} {what}")),
        End::Asked => output::note(&format!(
            "{YELLOW}stopped{YELLOW:#}: {}; run the same command again to resume",
            left(&totals)
        )),
        End::Nothing => {}
    }
    if !totals.balance() {
        let (entries, counted) = (totals.entries, totals.coverage.total());
        output::note(&output::error(&format!(
            "the totals do not balance: {entries} entries, {counted} accounted for"
        )));
    }
    output::fail_if(failed)
}

fn is_vault(path: &Path) -> bool {
    path.as_os_str() == "vault"
}

async fn replay(config: Config, args: &Args, options: Options, tally: Arc<Tally>) -> Result<End> {
    let (model, model_name) = args.model.model(&config)?;
    let store = settings::open_store(&config, OpenMode::Create)?;
    warn_of_twin(&store, config.namespace.as_deref()).await?;
    super::memory::folder::finish_forgetting(&store, &config).await?;
    let (seen, started) = (Arc::clone(&tally), Instant::now());
    let at_second_signal = Arc::clone(&tally);
    let cancel = cancelled_with_note(
        "stopping: calls in flight may finish and are kept (Ctrl-C again stops at once)".to_owned(),
        move || left(&at_second_signal.totals()),
    )?;
    let state = move || state(&seen.totals(), started.elapsed());
    let progress = progress::show(BAR, String::new(), OFTEN, state);
    let clock = clock::now;
    let replay = Replay { config, model, model_name, store, cancel, tally, clock };
    Ok(progress::during(progress, replay.run(options)).await?)
}

/// Progress by slices. While files are read, the total is extrapolated from the bytes.
fn state(totals: &Totals, elapsed: Duration) -> Progress {
    let (read, planned) = (totals.bytes.max(1), totals.bytes_planned);
    let is_reading = totals.bytes < planned;
    let done = totals.slices_done;
    let known = done + totals.slices_open();
    let expected = u128::from(known) * u128::from(planned.max(read)) / u128::from(read);
    let all = if is_reading { u64::try_from(expected).unwrap_or(u64::MAX) } else { known };
    let about = if is_reading { "about " } else { "" };
    let mut text = format!("{}/{about}{}", count(done), counted(all, "slice"));
    if done > 0 && done < all {
        let secs = elapsed.as_secs_f64() * (all - done) as f64 / done as f64;
        text.push_str(&format!(", {} left", lasting(Duration::from_secs_f64(secs.ceil()))));
    }
    text.push_str(&format!(
        ", {} tokens{}, {}/{}",
        count(totals.tokens.sent + totals.tokens.answered),
        output::spent(totals.cost),
        count(totals.files + totals.files_passed_over),
        counted(totals.files_planned, "file"),
    ));
    // An unknown total must not show as complete.
    Progress { at: done, of: all.max(u64::from(is_reading)), text }
}

fn left(totals: &Totals) -> String {
    let waiting = counted(totals.slices_open(), "slice");
    let read = if totals.bytes < totals.bytes_planned { " and files not read yet" } else { "" };
    format!("{waiting}{read} left, answers received are kept")
}

fn list_problems(totals: &Totals) {
    output::note_files(&totals.problems, &totals.empty, &totals.files_not_read);
    output::note_places(&totals.places);
    for (kind, failure) in totals.failures.iter().take(LISTED_MAX) {
        let slices = counted(failure.slices, "slice");
        let (entries, example) = (counted(failure.entries, "entry"), &failure.example);
        output::note(&format!("{RED}failed:{RED:#} {slices} ({entries}), {kind}: {example}"));
    }
    for (cap, slices) in &totals.waiting {
        let slices = counted(*slices, "slice");
        let mend = "raise it and run the same command again";
        output::note(&format!("{YELLOW}waiting:{YELLOW:#} {slices}: {cap}; {mend}"));
    }
    let found = |rule: &str| totals.findings.get(rule).copied().unwrap_or_default();
    super::vault::note(found("vault-full"), found("vault-failed"));
    if totals.sessions_unfiled > 0 {
        let sessions = counted(totals.sessions_unfiled, "session");
        output::note(&format!(
            "{sessions} of no known folder: namespace `default`; `annalist namespace move default \
             NAME` files them under a project"
        ));
    }
    output::warn_of_empty_answers(totals);
}

/// Notes why nothing was read. Returns true if that is a failure.
fn nothing_read(totals: &Totals, args: &Args) -> bool {
    if args.paths.iter().all(|it| is_vault(it)) {
        output::note("the vault is empty: `annalist vault` says whether it is enabled");
        return false;
    }
    if args.since.is_some() && totals.files > 0 {
        let files = counted(totals.files, "transcript");
        output::note(&format!("nothing read: --since excludes all of {files}"));
        return false;
    }
    output::no_transcript(&args.paths, totals.files_passed_over + totals.files);
    true
}

fn print(totals: &Totals, dry_run: bool, is_recorded: bool) -> Result<()> {
    let coverage = &totals.coverage;
    let known = coverage.extracted + coverage.nothing;
    let passed_over = remark(totals.files_passed_over, "skipped: not read");
    let slices_known = remark(totals.slices_known, "already done");
    let mut rows = vec![
        ("files", format!("{}{passed_over}", count(totals.files))),
        ("sessions", count(totals.sessions)),
        ("slices", format!("{}{slices_known}", count(totals.slices))),
        ("entries", count(totals.entries)),
    ];
    if !dry_run {
        rows.push(("  extracted", count(coverage.extracted)));
        rows.push(("  nothing worth keeping", count(coverage.nothing)));
    } else if known > 0 {
        rows.push(("  already done", count(known)));
    }
    let reasons = numbers(totals.skipped.iter().map(|(reason, entries)| (reason, *entries)));
    let reasons = if reasons.is_empty() { reasons } else { format!(" ({reasons})") };
    rows.push(("  skipped", format!("{}{reasons}", count(coverage.skipped))));
    if dry_run {
        rows.push(("  to read", count(coverage.pending)));
        let estimated = count(totals.tokens.estimated);
        rows.push(("tokens to send", format!("{estimated} (estimated)")));
        if totals.tokens.consolidation > 0 {
            let later = count(totals.tokens.consolidation);
            rows.push(("  to consolidate", format!("{later} more (estimated)")));
        }
    } else {
        rows.push(("  failed", count(coverage.failed)));
        if coverage.pending > 0 {
            rows.push(("  waiting", count(coverage.pending)));
        }
        let records = &totals.records;
        rows.extend([
            ("records", count(records.total())),
            ("  decisions", count(records.decisions)),
            ("  discussions", count(records.discussions)),
            ("  attempts", count(records.attempts)),
            ("  requests", count(records.requests)),
            ("quarantined", count(totals.quarantined)),
        ]);
        rows.extend(model_args::call_rows(totals, is_recorded));
    }
    rows.push(("cost", cost(totals, dry_run)));
    rows.push(("masked", rules(totals.masked.iter().map(|(rule, times)| (rule, *times)))));
    rows.push(("findings", rules(totals.findings.iter().map(|(rule, times)| (rule, *times)))));
    pairs(rows)
}

/// Prints the work of a stopped run. The store's totals would include earlier runs.
fn print_stopped(totals: &Totals, is_recorded: bool) -> Result<()> {
    let some = |slices: u64| if slices > 0 { count(slices) } else { String::new() };
    let read = [
        ("files read", count(totals.files)),
        ("slices read", count(totals.slices)),
        ("  extracted now", count(totals.slices_extracted)),
        ("  failed", some(totals.failures.values().map(|it| it.slices).sum())),
        ("  waiting", some(totals.slices_open())),
    ];
    let cost = ("cost", cost(totals, false));
    pairs(read.into_iter().chain(model_args::call_rows(totals, is_recorded)).chain([cost]))
}

fn cost(totals: &Totals, dry_run: bool) -> String {
    let read_on = totals.price_read_on.map(|day| format!(" (list price of {day})"));
    match totals.cost {
        Some(cost) => format!("${cost:.4}{}", read_on.unwrap_or_default()),
        None if dry_run || totals.calls > 0 => model_args::PRICE_UNKNOWN.to_owned(),
        None => String::new(),
    }
}

fn closing(totals: &Totals, dry_run: bool, elapsed: Duration) {
    let secs = elapsed.as_secs_f64();
    if dry_run {
        output::note(&format!("{DIM}nothing was sent or stored; {secs:.1} s{DIM:#}"));
    } else if totals.balance()
        && totals.coverage.failed == 0
        && totals.coverage.pending == 0
        && (totals.entries > 0 || !totals.failed())
    {
        let read = if totals.empty.is_empty() { "" } else { " that was read" };
        output::note(&format!(
            "{GREEN}every entry{read} is accounted for{GREEN:#}; {secs:.1} s. Next: {BOLD}annalist records{BOLD:#}"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_and_time_left_come_from_slices() {
        let mut totals = Totals {
            slices: 59,
            slices_done: 16,
            files: 11,
            files_planned: 11,
            ..Totals::default()
        };
        let shown = state(&totals, Duration::from_secs(160));
        assert_eq!((shown.at, shown.of), (16, 59));
        assert_eq!(shown.text, "16/59 slices, 7 min left, 0 tokens, 11/11 files");
        (totals.bytes, totals.bytes_planned, totals.files) = (100, 400, 3);
        let shown = state(&totals, Duration::from_secs(160));
        assert_eq!((shown.at, shown.of), (16, 236));
        assert!(shown.text.starts_with("16/about 236 slices"), "{}", shown.text);
        let nothing = Totals { bytes_planned: 9, files_planned: 1, ..Totals::default() };
        let shown = state(&nothing, Duration::ZERO);
        assert_eq!((shown.at, shown.of), (0, 1));
        assert_eq!(shown.text, "0/about 0 slices, 0 tokens, 0/1 file");
    }

    #[test]
    fn second_signal_says_what_is_left() {
        let totals = Totals { slices: 3, slices_done: 2, ..Totals::default() };
        assert_eq!(left(&totals), "1 slice left, answers received are kept");
        let cut = Totals { slices_done: 3, slices_halved: 2, ..totals };
        assert_eq!(left(&cut), "2 slices left, answers received are kept");
    }
}
