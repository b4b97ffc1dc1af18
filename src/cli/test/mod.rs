//! `annalist test`: prompt tests against gold, with recorded or live answers.

mod print;

use super::output::{self, DIM, Failure, GREEN, RED, Result, counted};
use super::progress::{self, OFTEN, Progress, cancelled_by_signal};
use super::{model_args, settings};
use crate::adapters::{clock, files};
use crate::config::Config;
use crate::eval::{
    CASE_EXAMPLE, CaseFolder, CaseOutcome, Comparison, EvalResult, EvalRun, LiveModel, Recording,
    Report, ReportFile, SCHEMA_VERSION, Scope, Variation, compare, find, junit, page,
    write_if_changed,
};
use crate::llm::prompt::read_extraction;
use crate::pipeline::Tally;
use crate::store::OpenMode;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const CASES: &str = "tests/fixtures/cases";
const STDOUT: &str = "-";
const BAR: &str = "{prefix:.dim} [{bar:24}] {percent:>3}% {wide_msg}";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A case is a folder with case.toml, transcript.*, gold.json and cassette/. Select it by its folder, \
by its name in tests/fixtures/cases, or by a folder above it.

A report names a case by its path below the nearest folder called `cases`, or else below the \
folder on the command line. Baselines are compared by these names.

Examples:
  annalist test                                   every case, on its recordings
  annalist test --json report.json                write a report, the baseline
  annalist test --baseline report.json            exits 1 if a case is worse
  annalist test --live --model small --model large --prompt prompts
                                                  ask both models, side by side
  annalist test --record && git status            record, review the changes

Offline runs call no model and open no store. Live answers are journaled in the store of the \
settings and paid for once. --record overwrites the file of the model in cassette/ of every case \
that was answered completely, and removes answers to the same requests from the other files there. \
Exit codes: 0 all pass, 1 a case failed, is stale or broken, none has gold or bars to be measured by, is worse than the baseline or missing \
from a folder on the command line, or no case of a model and prompt could be compared, 2 wrong \
usage.")]
pub(super) struct Args {
    /// Cases or folders of cases; tests/fixtures/cases by default
    #[arg(value_name = "CASE")]
    cases: Vec<PathBuf>,
    /// Use the recorded answers of the cases (the default)
    #[arg(long, conflicts_with_all = ["live", "record"])]
    cassette: bool,
    /// Ask the endpoint of the settings
    #[arg(long)]
    live: bool,
    /// Ask the endpoint, and overwrite the recordings of the cases
    #[arg(long)]
    record: bool,
    /// Model, instead of that of each case's recordings; repeat it to compare several
    #[arg(long = "model", value_name = "NAME")]
    models: Vec<String>,
    /// Prompt, instead of that of the settings: an extract.md, or a folder with extract.md,
    /// slice.md and retry.md, each built-in if missing; repeat it to compare several. Only extraction is
    /// tested: other prompts of a folder are checked but not used
    #[arg(long = "prompt", value_name = "FILE")]
    prompts: Vec<PathBuf>,
    /// Concurrent calls, instead of model.concurrency
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    concurrency: Option<u32>,
    /// Compare with the report of an earlier run
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the report as JSON to this file; without a file or with `-`, to stdout instead of the
    /// table
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STDOUT)]
    json: Option<PathBuf>,
    /// Write the report as JUnit XML to this file, for continuous integration
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the report as a web page to this file: measures, gold, records with their evidence, changes
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also describe cases that passed
    #[arg(short, long)]
    verbose: bool,
}

pub(super) async fn run(args: &Args, file: Option<&Path>) -> Result<()> {
    let mut config = settings::load(file)?;
    if let Some(concurrency) = args.concurrency {
        config.model.concurrency = concurrency as usize;
    }
    let baseline = args.baseline.as_deref().map(read_baseline).transpose()?;
    let live = args.live || args.record;
    let variations = variations(&config, &args.models, &args.prompts)?;
    let model = config.model.model.clone();
    let (cases, scope) = find_cases(&args.cases)?;
    let run = EvalRun { config, variations, cases };
    let written = [("--json", &args.json), ("--junit", &args.junit), ("--html", &args.html)];
    for (flag, path) in written {
        path.as_deref().map_or(Ok(()), |path| check_writable(flag, path))?;
    }
    let result = if live { run_live(run).await? } else { run.offline() };
    let comparison = baseline.map(|before| {
        let tolerances = |case: &str| result.tolerances.get(case).copied().unwrap_or_default();
        let compared = compare(&before, &result.report, &tolerances);
        // With a selection of models or prompts, the others are not missing.
        let partial = !args.models.is_empty() || !args.prompts.is_empty();
        Comparison { partial, ..compared.of_cases(&|name| scope.covers(name)) }
    });
    write_reports(args, &result, comparison.as_ref())?;
    if args.record {
        record(&result.recordings, &args.replaying(&model))?;
    }
    if let Some(reason) = &result.stopped {
        output::note(&format!("{RED}stopped:{RED:#} {reason}"));
    }
    let cases = result.report.variants.iter().flat_map(|variant| &variant.cases);
    let mut outcomes = cases.map(|case| case.outcome);
    let is_measured = outcomes.clone().any(|it| it != CaseOutcome::NotMeasured);
    let passed = is_measured
        && outcomes.all(|it| matches!(it, CaseOutcome::Passed | CaseOutcome::NotMeasured));
    let compared = comparison.is_none_or(|it| it.passes());
    let good = passed && compared && result.stopped.is_none();
    output::fail_if(!good)
}

impl Args {
    /// The command that tests the recordings of this run, which are of `model` unless models are named.
    fn replaying(&self, model: &str) -> String {
        let quoted = |word: &str| match word.contains(char::is_whitespace) {
            true => format!(" '{word}'"),
            false => format!(" {word}"),
        };
        let paths = |flag: &str, paths: &[PathBuf]| -> String {
            let words = paths.iter().map(|path| flag.to_owned() + &quoted(&path.to_string_lossy()));
            words.collect()
        };
        let named: Vec<&str> = match self.models.is_empty() {
            true => vec![model],
            false => self.models.iter().map(String::as_str).collect(),
        };
        let models: String = named.iter().map(|it| format!(" --model{}", quoted(it))).collect();
        let (cases, prompts) = (paths("", &self.cases), paths(" --prompt", &self.prompts));
        format!("annalist test{cases}{models}{prompts}")
    }
}

/// Finds the named cases: folders, or names in the default folder; by default all of that folder.
fn find_cases(named: &[PathBuf]) -> Result<(Vec<CaseFolder>, Scope)> {
    let default = Path::new(CASES);
    if named.is_empty() && !default.is_dir() {
        return Err(Failure::usage(format!(
            "{CASES}: no such folder: name a case or a folder of cases; {CASE_EXAMPLE}"
        )));
    }
    let resolve = |path: &PathBuf| {
        let inside = default.join(path);
        if !path.exists() && inside.exists() { inside } else { path.clone() }
    };
    let paths: Vec<PathBuf> = match named.is_empty() {
        true => vec![default.to_owned()],
        false => named.iter().map(resolve).collect(),
    };
    find(&paths).map_err(Failure::usage)
}

fn read_baseline(path: &Path) -> Result<Report> {
    let wrong = |what: String| Failure::usage(format!("{}: {what}", path.display()));
    let text =
        files::read_to_string(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let report: Report = serde_json::from_str(&text).map_err(|error| {
        wrong(format!("expected a report that `annalist test --json` wrote: {error}"))
    })?;
    if report.report != SCHEMA_VERSION {
        let version = report.report;
        return Err(wrong(format!(
            "is a report of version {version}, expected {SCHEMA_VERSION}: write a new baseline"
        )));
    }
    Ok(report)
}

/// Writes the reports, and prints the table unless the JSON goes to stdout.
fn write_reports(args: &Args, result: &EvalResult, comparison: Option<&Comparison>) -> Result<()> {
    let report = &result.report;
    let failed = |error: &dyn std::fmt::Display| {
        Failure::failed(format!("cannot write the report: {error}"))
    };
    let to_stdout = args.json.as_deref().is_some_and(|path| path.as_os_str() == STDOUT);
    if let Some(path) = &args.json {
        let written = ReportFile { report: report.clone(), comparison: comparison.cloned() };
        match to_stdout {
            true => output::json(&written)?,
            false => {
                let text =
                    serde_json::to_string_pretty(&written).map_err(|error| failed(&error))?;
                save(path, &(text + "\n"))?;
            }
        }
    }
    if let Some(path) = &args.junit {
        save(path, &junit(report, comparison).map_err(|error| failed(&error))?)?;
    }
    if let Some(path) = &args.html {
        let page = page(report, comparison);
        save(path, &page.map_err(|error| failed(&error))?)?;
    }
    match to_stdout {
        true => Ok(()),
        false => output::line(&print::run_lines(report, comparison, args.verbose).join("\n")),
    }
}

/// Checks an output path before anything is run or paid for.
fn check_writable(flag: &str, path: &Path) -> Result<()> {
    let shown = path.display();
    if path.is_dir() {
        return Err(Failure::usage(format!(
            "{flag} {shown}: is a folder: name a file, or put {flag} after the cases"
        )));
    }
    match path.parent().filter(|it| !it.as_os_str().is_empty() && !it.is_dir()) {
        None => Ok(()),
        Some(folder) => Err(Failure::usage(format!(
            "{flag} {shown}: there is no folder {}: create it, or name another file",
            folder.display()
        ))),
    }
}

fn save(path: &Path, text: &str) -> Result<()> {
    write_if_changed(path, text).map_err(output::unwritable(path))?;
    output::note(&format!("{DIM}wrote {}{DIM:#}", path.display()));
    Ok(())
}

/// Writes the recordings, and says which command tests them.
fn record(recordings: &[Recording], command: &str) -> Result<()> {
    let (mut written, mut unchanged) = (0, 0);
    for recording in recordings {
        match recording.write().map_err(Failure::failed)? {
            Some(path) => {
                output::note(&format!("{DIM}wrote {}{DIM:#}", path.display()));
                written += 1;
            }
            None => unchanged += 1,
        }
    }
    if unchanged > 0 {
        output::note(&format!("{} unchanged", counted(unchanged, "recording")));
    }
    if written > 0 {
        let written = counted(written, "recording");
        output::note(&format!(
            "{GREEN}{written} written:{GREEN:#} `git status` shows the files, `{command}` tests them"
        ));
    }
    Ok(())
}

/// Combinations of models and prompts.
fn variations(config: &Config, models: &[String], paths: &[PathBuf]) -> Result<Vec<Variation>> {
    let mut sets = Vec::new();
    for path in paths {
        let read = read_extraction(path).map_err(Failure::usage)?;
        sets.push((Some(label(path)), read));
    }
    if sets.is_empty() {
        sets.push((None, config.prompts.extraction()));
    }
    let models: Vec<Option<&String>> = match models.is_empty() {
        true => vec![None],
        false => models.iter().map(Some).collect(),
    };
    let (mut variations, mut names) = (Vec::new(), BTreeSet::new());
    for model in models {
        for (label, prompts) in &sets {
            let mut name = match (model, label) {
                (None, None) => "all".to_owned(),
                (Some(model), None) => model.clone(),
                (None, Some(label)) => label.clone(),
                (Some(model), Some(label)) => format!("{model}, {label}"),
            };
            if !names.insert(name.clone()) {
                name = format!("{name} ({:.8})", prompts.digest().to_string());
                if !names.insert(name.clone()) {
                    return Err(Failure::usage(format!(
                        "{name}: is named twice: name each model and each prompt once"
                    )));
                }
            }
            variations.push(Variation {
                name,
                model: model.cloned(),
                prompts: Arc::clone(prompts),
            });
        }
    }
    Ok(variations)
}

/// Label of a prompt in a table: its file, or its folder if the file has a standard name.
fn label(path: &Path) -> String {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let own = name(path).unwrap_or_else(|| path.display().to_string());
    let stem = own.strip_suffix(".md").unwrap_or(&own);
    match (stem, path.parent().and_then(name)) {
        ("extract" | "slice" | "retry", Some(folder)) => format!("{folder}/{stem}"),
        _ => stem.to_owned(),
    }
}

async fn run_live(run: EvalRun) -> Result<EvalResult> {
    let endpoint = model_args::endpoint(&run.config)?;
    let store = settings::open_store(&run.config, OpenMode::Create)?;
    let (cancel, tally) = (cancelled_by_signal()?, Arc::new(Tally::default()));
    let seen = Arc::clone(&tally);
    let state = move || {
        let totals = seen.totals();
        let tokens = totals.tokens.sent + totals.tokens.answered;
        let (done, all, cost) = (totals.slices_done, totals.slices, output::spent(totals.cost));
        let text = format!("{done}/{all} slices, {tokens} tokens{cost}");
        Progress { at: totals.slices_done, of: totals.slices, text }
    };
    let progress = progress::show(BAR, "asking".to_owned(), OFTEN, state);
    let stopped = cancel.clone();
    let model = LiveModel { endpoint, store, cancel, tally, clock: clock::now };
    let mut result = progress::during(progress, run.live(model)).await?;
    if stopped.is_cancelled() {
        let by_user = || "interrupted; answers are in the journal".to_owned();
        result.stopped.get_or_insert_with(by_user);
    }
    Ok(result)
}
