//! `annalist replay`: extracts transcripts in this process.

use super::arguments::date;
use super::interrupt::cancelled_by_signal;
use super::model_args::ModelArgs;
use super::output::{
    self, BOLD, DIM, Failure, GREEN, RED, YELLOW, count, counted, numbers, pairs, remark, rules,
};
use super::progress::{self, OFTEN, Progress};
use super::settings;
use crate::adapters::clock;
use crate::config::Config;
use crate::domain::{Format, Timestamp};
use crate::pipeline::{End, Options, Plan, Replay, Tally, Totals};
use crate::store::OpenMode;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const BAR: &str = "{prefix:.dim} [{bar:24}] {percent:>3}% {msg} {eta_precise:.dim} left";
const LISTED_MAX: usize = 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist replay ~/.claude/projects ~/.codex/sessions --dry-run
  annalist replay session.jsonl --model gpt-5-mini
  annalist replay examples/sessions --cassette examples/cassette --show

What was done is kept: running it again goes on where it stopped and pays for nothing twice. \
Ctrl-C once finishes cleanly, twice stops at once.")]
pub(super) struct Args {
    /// Transcripts, or folders of them
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    model: ModelArgs,
    /// Read named files as this format instead of detecting it
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Leave out sessions that began before this day or time
    #[arg(long, value_name = "DATE", value_parser = date)]
    since: Option<Timestamp>,
    /// Read at most so many sessions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// The namespace of the records, instead of the folder the agent worked in
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Retry slices that failed
    #[arg(long)]
    retry_failed: bool,
    /// Read sessions again that were forgotten
    #[arg(long)]
    also_forgotten: bool,
    /// Read, mask, cut and count; ask nothing, keep nothing
    #[arg(long)]
    dry_run: bool,
    /// List the records when done
    #[arg(long, conflicts_with_all = ["json", "dry_run"])]
    show: bool,
    /// Print the totals as one JSON object on stdout
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let mut config = settings::load(file)?;
    args.model.override_settings(&mut config);
    if let Some(namespace) = &args.namespace {
        config.namespace = Some(namespace.clone());
    }
    let options = Options {
        paths: args.paths.clone(),
        format: args.format,
        since: args.since,
        sessions_max: args.limit,
        retry_failed: args.retry_failed,
        also_forgotten: args.also_forgotten,
    };
    let tally = Arc::new(Tally::default());
    let started = Instant::now();
    let end = if args.dry_run {
        let store = settings::known_store(&config)?;
        let model_name = args.model.name(&config)?;
        let (cancel, tally) = (CancellationToken::new(), Arc::clone(&tally));
        let plan = Plan { config, model_name, cancel, tally };
        settings::runtime()?.block_on(plan.run(options, store))?;
        End::Nothing
    } else {
        let runtime = settings::runtime()?;
        runtime.block_on(replay(config, &args, options, Arc::clone(&tally)))?
    };
    let totals = tally.totals();
    if args.json {
        output::json(&totals)?;
        list_problems(&totals);
    } else {
        list_problems(&totals);
        let forgotten = totals.findings.get("forgotten").copied().unwrap_or_default();
        if forgotten > 0 {
            super::enqueue::forgotten(forgotten);
        }
        if totals.sessions == 0 && totals.entries == 0 && forgotten == 0 {
            nothing_read(&totals);
        } else {
            print(&totals, args.dry_run, started.elapsed())?;
        }
    }
    if args.show {
        output::line("")?;
        super::records::list_all(file)?;
    }
    match &end {
        End::Needs(what) => output::note(&format!("{RED}stopped:{RED:#} {what}")),
        End::Asked => output::note(&format!(
            "{YELLOW}stopped{YELLOW:#}: {} entries wait; the same command goes on from here",
            count(totals.coverage.pending)
        )),
        End::Nothing => {}
    }
    if !totals.balance() {
        let (entries, counted) = (totals.entries, totals.coverage.total());
        output::note(&format!(
            "{RED}error:{RED:#} the totals do not balance: {entries} entries, {counted} accounted for"
        ));
    }
    let failed = totals.failed() || end != End::Nothing;
    Ok(ExitCode::from(if failed { output::FAILED } else { 0 }))
}

async fn replay(
    config: Config,
    args: &Args,
    options: Options,
    tally: Arc<Tally>,
) -> Result<End, Failure> {
    let (model, model_name) = args.model.model(&config)?;
    let store = settings::open_store(&config, OpenMode::Create)?;
    let cancel = cancelled_by_signal()?;
    let (seen, started) = (Arc::clone(&tally), Instant::now());
    let state = move || {
        let totals = seen.totals();
        let text = line(&totals, started.elapsed());
        Progress { at: totals.bytes, of: totals.bytes_planned, text }
    };
    let progress = progress::show(BAR, config.model.model.clone(), OFTEN, state);
    let clock = clock::now;
    let replay = Replay { config, model, model_name, store, cancel, tally, clock };
    Ok(progress::during(progress, replay.run(options)).await?)
}

fn line(totals: &Totals, elapsed: Duration) -> String {
    let done = totals.slices_done;
    let rate = done as f64 / elapsed.as_secs_f64().max(0.001);
    let cost = if totals.cost > 0.0 { format!(", ${:.2}", totals.cost) } else { String::new() };
    format!(
        "{}/{} files, {}/{} slices, {} tokens{cost}, {rate:.1} slices/s",
        count(totals.files + totals.files_passed_over),
        count(totals.files_planned),
        count(done),
        count(totals.slices),
        count(totals.tokens.sent + totals.tokens.answered),
    )
}

fn list_problems(totals: &Totals) {
    let problems = totals.problems.iter();
    let problems = problems.map(|it| format!("{RED}error:{RED:#} {}: {}", it.path, it.problem));
    output::notes(problems, LISTED_MAX, "more files");
    for (kind, failure) in totals.failures.iter().take(LISTED_MAX) {
        let (slices, entries) =
            (counted(failure.slices, "slice"), counted(failure.entries, "entry"));
        output::note(&format!(
            "{RED}failed:{RED:#} {slices} ({entries}) as {kind}: {}",
            failure.example
        ));
    }
    for (cap, slices) in &totals.waiting {
        let slices = counted(*slices, "slice");
        output::note(&format!("{YELLOW}waiting:{YELLOW:#} {slices}: {cap}"));
    }
    output::warn_of_empty_answers(totals);
}

/// A table of zeros says less than this.
fn nothing_read(totals: &Totals) {
    let passed_over = totals.files_passed_over;
    if passed_over > 0 || totals.problems.is_empty() {
        output::note(&format!(
            "no transcripts found: {} looked at; formats are found by content, --format names one",
            counted(passed_over + totals.files, "file")
        ));
    }
}

fn print(totals: &Totals, dry_run: bool, elapsed: Duration) -> Result<(), Failure> {
    let coverage = &totals.coverage;
    let known = coverage.extracted + coverage.nothing;
    let passed_over = remark(totals.files_passed_over, "passed over: no transcripts");
    let slices_known = remark(totals.slices_known, "done before");
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
        rows.push(("  done before", count(known)));
    }
    let reasons = numbers(totals.skipped.iter().map(|(reason, entries)| (reason, *entries)));
    let reasons = if reasons.is_empty() { reasons } else { format!(" ({reasons})") };
    rows.push(("  skipped", format!("{}{reasons}", count(coverage.skipped))));
    if dry_run {
        rows.push(("  to be read", count(coverage.pending)));
        let estimated = count(totals.tokens.estimated);
        rows.push(("tokens to send", format!("{estimated} (estimated)")));
    } else {
        rows.push(("  failed", count(coverage.failed)));
        if coverage.pending > 0 {
            rows.push(("  waiting", count(coverage.pending)));
        }
        let (records, tokens) = (&totals.records, &totals.tokens);
        let journaled = remark(totals.journaled, "from the journal");
        let (sent, answered) = (count(tokens.sent), count(tokens.answered));
        rows.extend([
            ("records", count(records.total())),
            ("  decisions", count(records.decisions)),
            ("  discussions", count(records.discussions)),
            ("  attempts", count(records.attempts)),
            ("  requests", count(records.requests)),
            ("quarantined", count(totals.quarantined)),
            ("calls", format!("{}{journaled}", count(totals.calls))),
            ("tokens", format!("{sent} sent, {answered} answered")),
        ]);
    }
    rows.push(("cost", format!("${:.4}", totals.cost)));
    rows.push(("masked", rules(totals.masked.iter().map(|(rule, times)| (rule, *times)))));
    rows.push(("findings", rules(totals.findings.iter().map(|(rule, times)| (rule, *times)))));
    pairs(rows)?;
    closing(totals, dry_run, elapsed);
    Ok(())
}

fn closing(totals: &Totals, dry_run: bool, elapsed: Duration) {
    let secs = elapsed.as_secs_f64();
    if dry_run {
        output::note(&format!("{DIM}nothing was asked and nothing was kept; {secs:.1} s{DIM:#}"));
    } else if totals.balance() && totals.coverage.failed == 0 && totals.coverage.pending == 0 {
        output::note(&format!(
            "{GREEN}every entry is accounted for{GREEN:#}; {secs:.1} s. Next: {BOLD}annalist records{BOLD:#}"
        ));
    }
}
