//! A run: which cases, models and prompts, who answers, and what is written of it.

use super::super::output::{self, DIM, Failure, GREEN, RED, counted};
use super::super::progress::{self, Look, OFTEN};
use super::super::settings;
use super::super::signals::Signals;
use super::{find, print, print_lines, update, width};
use crate::config::Config;
use crate::domain::RequestDigest;
use crate::edge::cases::{CASSETTE_NEW, Place, bring};
use crate::edge::model::Kept;
use crate::edge::store::Open;
use crate::edge::{clock, disk, prompts};
use crate::score::{
    CaseOutcome, Comparison, Report, SCHEMA_VERSION, Written, compare, junit, page,
};
use crate::worker::{LiveModel, Recording, Recordings, Tally, Trial, Tried, Variation};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// How progress looks on a terminal.
const BAR: &str = "{prefix:.dim} [{bar:24}] {percent:>3}% {msg}";
/// What stands for standard output.
const STDOUT: &str = "-";

#[derive(Debug, clap::Args)]
pub(super) struct Run {
    /// Cases, folders of them, or suites; tests/fixtures/cases by default
    #[arg(value_name = "CASE")]
    cases: Vec<PathBuf>,
    /// Take the answers from the cases' cassettes and ask nobody, which is the default
    #[arg(long, conflicts_with_all = ["live", "record"])]
    cassette: bool,
    /// Ask the endpoint of the settings
    #[arg(long)]
    live: bool,
    /// Ask the endpoint, and keep the answers beside the accepted ones until `annalist test review`
    #[arg(long)]
    record: bool,
    /// A model, instead of the one of each case's recordings; several stand side by side
    #[arg(long = "model", value_name = "NAME")]
    models: Vec<String>,
    /// A prompt, instead of the one of the settings: an extract.md, or a folder with extract.md, slice.md
    /// and again.md, of which what is missing is the built-in; several stand side by side. Tests are of
    /// extraction: other prompts of a folder are checked and not asked with
    #[arg(long = "prompt", value_name = "FILE")]
    prompts: Vec<PathBuf>,
    /// Calls at the same time, instead of model.concurrency
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    concurrency: Option<u32>,
    /// Compare with the report of an earlier run
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the report as JSON into the file; instead of the table to stdout where none is named, or `-`
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STDOUT)]
    json: Option<PathBuf>,
    /// Write the report as JUnit XML into the file, for continuous integration
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the report as a page into the file: transcripts with the evidence marked, records, gold
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Tell of cases that passed what is told of the others
    #[arg(short, long)]
    verbose: bool,
    /// Make the cassettes of cases with answers.json anew, and expected/ of those that have it; run nothing
    #[arg(long, conflicts_with_all = ["live", "record", "baseline", "json", "junit", "html"])]
    update: bool,
}

pub(super) fn run(args: &Run, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let mut config = settings::load(file)?;
    if let Some(concurrency) = args.concurrency {
        config.model.concurrency = concurrency as usize;
    }
    let baseline = args.baseline.as_deref().map(baseline).transpose()?;
    let live = args.live || args.record;
    let variations = variations(&config, &args.models, &args.prompts)?;
    let (cases, scope) = find(&args.cases)?;
    let trial = Trial {
        variations,
        cases,
        recordings: if live { Recordings::Live } else { Recordings::Accepted },
        config,
    };
    if args.update {
        return update::run(&trial);
    }
    let written = [("--json", &args.json), ("--junit", &args.junit), ("--html", &args.html)];
    for (flag, path) in written {
        path.as_deref().map_or(Ok(()), |path| writable(flag, path))?;
    }
    if args.record {
        recordable(&trial)?;
    }
    let (tried, recordings, stop) = match live {
        false => (trial.offline(), Vec::new(), None),
        true => ask(trial)?,
    };
    let compared = baseline.map(|before| {
        let compared = compare(&before, &tried.report, &|case| tried.tolerances_of(case));
        let compared = compared.of_cases(&|name| scope.covers(name));
        // Who names models or prompts leaves others out on purpose.
        let whole = args.models.is_empty() && args.prompts.is_empty();
        if whole { compared } else { compared.of_some_variants() }
    });
    write(args, &tried, compared.as_ref())?;
    // Who names prompts asks with others than usual on purpose.
    if args.prompts.is_empty() {
        tell_unused(&tried);
    }
    if args.record {
        keep(args, &recordings)?;
    }
    if let Some(why) = &stop {
        output::note(&format!("{RED}stopped:{RED:#} {why}"));
    }
    let worse = compared.is_some_and(|it| !it.passes());
    let failed = worse || stop.is_some() || !passed(&tried.report);
    Ok(ExitCode::from(if failed { output::FAILED } else { 0 }))
}

/// The models and prompts that are named, each model with each prompt.
pub(super) fn variations(
    config: &Config,
    models: &[String],
    paths: &[PathBuf],
) -> Result<Vec<Variation>, Failure> {
    let mut sets = Vec::new();
    for path in paths {
        let read = prompts::read_extraction(path).map_err(Failure::usage)?;
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

/// What a prompt is called in a table: its file, or its folder where the file is called as all are.
fn label(path: &Path) -> String {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let own = name(path).unwrap_or_else(|| path.display().to_string());
    let stem = own.strip_suffix(".md").unwrap_or(&own);
    match (stem, path.parent().and_then(name)) {
        ("extract" | "slice" | "again", Some(folder)) => format!("{folder}/{stem}"),
        _ => stem.to_owned(),
    }
}

fn baseline(path: &Path) -> Result<Report, Failure> {
    let wrong = |what: String| Failure::usage(format!("{}: {what}", path.display()));
    let text =
        disk::read_to_string(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
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

fn recordable(trial: &Trial) -> Result<(), Failure> {
    let suite = trial.cases.iter().find(|it| matches!(it.is, Place::Suite { .. }));
    match suite {
        None => Ok(()),
        Some(case) => Err(Failure::usage(format!(
            "{}: a suite has no folder for recordings: use --live, or make cases of it",
            case.is.path().display()
        ))),
    }
}

/// Asks the endpoint, with progress, until it is done or somebody stops it.
pub(super) fn ask(trial: Trial) -> Result<(Tried, Vec<Recording>, Option<String>), Failure> {
    let runtime = settings::runtime()?;
    runtime.block_on(async {
        let endpoint = super::super::doctor::endpoint(&trial.config)?;
        let store = settings::open_store(&trial.config, Open::Create)?;
        let (cancel, tally) = (CancellationToken::new(), Arc::new(Tally::default()));
        let signals = Signals::new()?;
        let told = cancel.clone();
        tokio::spawn(signals.hear(move || {
            told.cancel();
            output::note("stopping: calls under way may finish (Ctrl-C again stops at once)");
        }));
        let seen = Arc::clone(&tally);
        let look = move || {
            let totals = seen.totals();
            let tokens = totals.tokens.sent + totals.tokens.answered;
            let text = format!(
                "{}/{} slices, {} tokens, ${:.2}",
                totals.slices_done, totals.slices, tokens, totals.cost
            );
            Look { at: totals.slices_done, of: totals.slices, text }
        };
        let shown = tokio::spawn(progress::show((BAR, "asking".to_owned()), OFTEN, look));
        let stopped = cancel.clone();
        let asked = LiveModel { endpoint, store, cancel, tally, clock: clock::now };
        let done = trial.live(asked).await;
        shown.abort();
        // It was told to end; it has nothing to say.
        let _ = shown.await;
        let (tried, recordings, why) = done?;
        let asked_to = || "you asked for it; what was answered is in the journal".to_owned();
        Ok((tried, recordings, why.or(stopped.is_cancelled().then(asked_to))))
    })
}

fn passed(report: &Report) -> bool {
    let cases = report.variants.iter().flat_map(|variant| &variant.cases);
    cases.into_iter().all(|case| case.outcome == CaseOutcome::Passed)
}

/// Writes what was asked for, and the table where nothing else goes to stdout.
fn write(args: &Run, tried: &Tried, compared: Option<&Comparison>) -> Result<(), Failure> {
    let mut to_stdout = false;
    if let Some(path) = &args.json {
        let written = Written { report: tried.report.clone(), comparison: compared.cloned() };
        if path.as_os_str() == STDOUT {
            to_stdout = true;
            output::json(&written)?;
        } else {
            let text = serde_json::to_string_pretty(&written)
                .map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))?;
            save(path, &(text + "\n"))?;
        }
    }
    if let Some(path) = &args.junit {
        save(path, &junit(&tried.report, compared))?;
    }
    if let Some(path) = &args.html {
        save(path, &page(&tried.report, &tried.shown, compared))?;
    }
    if !to_stdout {
        print_lines(&print::table(&tried.report, compared, width(), args.verbose))?;
    }
    Ok(())
}

/// Whether a report can stand there; asked before anything is run, or paid for.
fn writable(flag: &str, path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    if path.is_dir() {
        return Err(Failure::usage(format!(
            "{flag} {shown}: is a folder: name a file, or put {flag} behind the cases"
        )));
    }
    match path.parent().filter(|it| !it.as_os_str().is_empty() && !it.is_dir()) {
        None => Ok(()),
        Some(folder) => Err(Failure::usage(format!(
            "{flag} {shown}: there is no folder {}: make it, or name another file",
            folder.display()
        ))),
    }
}

fn save(path: &Path, text: &str) -> Result<(), Failure> {
    bring(path, text).map_err(|error| {
        Failure::failed(format!("{}: cannot be written: {error}", path.display()))
    })?;
    output::note(&format!("{DIM}wrote {}{DIM:#}", path.display()));
    Ok(())
}

/// Names the cases with recordings that no request asks for, and those with recordings of other prompts.
fn tell_unused(tried: &Tried) {
    for (case, unused) in &tried.unused {
        let of = |some: &[(String, RequestDigest)]| counted(some.len() as u64, "recording");
        if !unused.recordings.is_empty() {
            let unused = of(&unused.recordings);
            output::note(&format!(
                "{case}: {unused} that no request asks for any more; `annalist test review` takes away"
            ));
        }
        if !unused.of_other_prompts.is_empty() {
            let others = of(&unused.of_other_prompts);
            output::note(&format!(
                "{case}: {others} of another prompt; `annalist test review --other-prompts` shows"
            ));
        }
    }
}

/// Puts recordings beside the accepted ones, and to those that wait already.
fn keep(args: &Run, recordings: &[Recording]) -> Result<(), Failure> {
    let mut new = 0;
    for it in recordings.iter().filter(|it| !it.known) {
        let folder = it.folder.join(CASSETTE_NEW);
        let waiting = Kept::load(&folder).map_err(Failure::failed)?;
        let all = waiting.accepting(&it.name, &it.file, &[]).map_err(Failure::failed)?;
        all.kept.write(&folder, &waiting).map_err(|error| {
            Failure::failed(format!("{}: cannot be written: {error}", folder.display()))
        })?;
        new += 1;
    }
    let known = recordings.len() as u64 - new;
    if known > 0 {
        let known = counted(known, "recording");
        output::note(&format!("{known} came out as the accepted ones are; nothing to review"));
    }
    if new > 0 {
        let new = counted(new, "recording");
        output::note(&format!("{GREEN}{new} to review:{GREEN:#} {}", review_of(args)));
    }
    Ok(())
}

/// The command that shows what was recorded, with the prompts that it was recorded with.
fn review_of(args: &Run) -> String {
    let word = |path: &PathBuf| {
        let word = path.display().to_string();
        let plain = |it: char| it.is_ascii_alphanumeric() || "/._-".contains(it);
        if word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    let mut command = "annalist test review".to_owned();
    args.cases.iter().for_each(|it| command.push_str(&format!(" {}", word(it))));
    args.prompts.iter().for_each(|it| command.push_str(&format!(" --prompt {}", word(it))));
    command
}
