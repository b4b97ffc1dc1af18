//! `annalist worker`: processes the queue, continuously or until it is empty.

mod services;
mod summary;

use super::interrupt::cancelled_with_note;
use super::model_args::ModelArgs;
use super::output::{self, Failure, RED};
use super::progress::{self, OFTEN, Progress, SELDOM};
use super::{hand_over, settings};
use crate::adapters::metrics::Meters;
use crate::adapters::{clock, process};
use crate::config::Config;
use crate::pipeline::{Consumer, Counts, End, Report, Tally, Until};
use crate::store::OpenMode;
use services::{ServiceArgs, WorkerContext};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
pub(super) use summary::Summary;

const SPINNER: &str = "{spinner:.dim} {prefix:.dim} {wide_msg}";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist worker                                until it is stopped
  annalist worker --drain                        what waits now, then end
  annalist worker --drain --concurrency 2 --json
  annalist worker --watch ~/.claude/projects     follow folders while it works
  annalist worker --from nats://127.0.0.1:4222/SLICES --metrics 127.0.0.1:9464
  annalist worker --drain --from nats://127.0.0.1:4222/SLICES
                                                 what the stream holds now, then end

Any number of workers may share a store. Each slice is extracted once in effect, whatever dies in \
between: answers are kept before they are used, and a job that a worker holds goes to another when \
the worker was silent for queue.lease_secs.

Ctrl-C or SIGTERM once: no new jobs, calls under way may end (queue.grace_secs), the rest goes back; \
exits 0. Twice: stops at once and exits 1; nothing is lost. \
Exits 1 if jobs died or wait at a cap (--drain, --once), or if something needs a person.")]
pub(super) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// End when no job is left that can be done, now or later
    #[arg(long)]
    drain: bool,
    /// End after one job
    #[arg(long, conflicts_with = "drain")]
    once: bool,
    #[command(flatten)]
    services: ServiceArgs,
    /// Print the results as one JSON object on stdout
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let mut config = settings::load(file)?;
    args.model.override_settings(&mut config);
    let until = match (args.drain, args.once) {
        (true, _) => Until::Drained,
        (false, true) => Until::OneJob,
        (false, false) => Until::Stopped,
    };
    let meters = Arc::new(Meters::new(env!("CARGO_PKG_VERSION"), clock::now()));
    let tally = Arc::new(Tally::metered(Arc::clone(&meters)));
    let counts = Arc::new(Counts::metered(Arc::clone(&meters)));
    hand_over::retry();
    let runtime = settings::runtime()?;
    let work = Work { args, config, until, tally: &tally, counts: &counts, meters: &meters };
    let report = runtime.block_on(work.run())?;
    let summary = Summary::of(&report, until, &counts.jobs(), &tally.totals());
    if args.json {
        output::json(&summary)?;
    } else if until != Until::Stopped {
        summary.print()?;
    }
    summary.notes();
    output::warn_of_empty_answers(&tally.totals());
    if let End::Needs(line) = &report.end {
        output::note(&format!("{RED}stopped:{RED:#} {line}"));
    }
    Ok(ExitCode::from(if summary.well { 0 } else { output::FAILED }))
}

/// Worker to run, with its counters.
struct Work<'a> {
    args: &'a Args,
    config: Config,
    until: Until,
    tally: &'a Arc<Tally>,
    counts: &'a Arc<Counts>,
    meters: &'a Arc<Meters>,
}

impl Work<'_> {
    async fn run(self) -> Result<Report, Failure> {
        let Work { args, config, until, tally, counts, meters } = self;
        let (model, model_name) = args.model.model(&config)?;
        let store = settings::open_store(&config, OpenMode::Create)?;
        let secs = config.queue.grace.as_secs();
        let closing = cancelled_with_note(
            format!("stopping: calls under way may end within {secs} s (again stops at once)"),
            || "jobs under way are free again when their leases end".to_owned(),
        )?;
        let drain = (until == Until::Drained).then(Arc::default);
        let feeding = drain.as_ref().map(Arc::downgrade).unwrap_or_default();
        let context = WorkerContext {
            drain,
            config: &config,
            model_name: &model_name,
            store: &store,
            closing: &closing,
            meters,
        };
        let services = services::start(&args.services, context).await?;
        let state = || {
            let text = summary::line(&counts.jobs(), &tally.totals());
            Progress { at: 0, of: 1, text }
        };
        let every = if until == Until::Stopped { SELDOM } else { OFTEN };
        let progress = progress::show(SPINNER, model_name.clone(), every, state);
        let consumer = Consumer {
            config,
            model,
            model_name,
            store,
            id: process::name().to_owned(),
            until,
            closing: closing.clone(),
            feeding,
            tally: Arc::clone(tally),
            counts: Arc::clone(counts),
            tell: output::note,
            clock: clock::now,
        };
        progress::during(progress, async {
            let report = consumer.run().await;
            // Stops the services of a worker that ended by itself.
            closing.cancel();
            let problem = services::end(services).await;
            let mut report = report?;
            if let Some(line) = problem {
                report.end = End::Needs(line);
            }
            Ok(report)
        })
        .await
    }
}
