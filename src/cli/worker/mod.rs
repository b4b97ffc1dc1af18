//! `annalist worker`: works on the queue, beside an agent or until nothing is left.

mod beside;
mod summary;

use super::interrupt::Signals;
use super::model_args::ModelArgs;
use super::output::{self, Failure, RED};
use super::progress::{self, Look, OFTEN, SELDOM};
use super::settings;
use crate::adapters::metrics::Meters;
use crate::adapters::{clock, process};
use crate::config::Config;
use crate::pipeline::{Consumer, Counts, End, Report, Tally, Until};
use crate::store::OpenMode;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use summary::Summary;
use tokio_util::sync::CancellationToken;

/// How progress looks on a terminal.
const LINE: &str = "{spinner:.dim} {prefix:.dim} {msg}";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist worker                                beside an agent, until it is stopped
  annalist worker --drain                        what waits now, then end
  annalist worker --drain --concurrency 2 --json
  annalist worker --watch ~/.claude/projects     follow folders while it works
  annalist worker --from nats://127.0.0.1:4222/SLICES --metrics 127.0.0.1:9464

Any number of workers may share a store. Each slice is extracted once in effect, whatever dies in \
between: answers are kept before they are used, and a job that a worker holds goes to another when \
the worker was silent for queue.lease_secs.

Ctrl-C or SIGTERM once: no new jobs, calls under way may end (queue.grace_secs), the rest goes back; \
exits 0. Twice: stops at once and exits 1; nothing is lost. \
Exits 1 if jobs died or wait at a cap (--drain, --once), or if something needs a person.")]
pub(super) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// End when nothing is left that could be done, now or after a while
    #[arg(long)]
    drain: bool,
    /// End after one job
    #[arg(long, conflicts_with = "drain")]
    once: bool,
    /// Follow these folders and hand over what their transcripts grow by
    #[arg(long, value_name = "DIR", num_args = 1..)]
    watch: Vec<PathBuf>,
    /// Take slices from a NATS JetStream stream: nats://HOST[:PORT]/STREAM
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Serve /metrics (Prometheus) and /healthz at this address, such as 127.0.0.1:9464
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,
    /// Print what was done as one JSON object on stdout
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
    let runtime = settings::runtime()?;
    let counted = (Arc::clone(&tally), Arc::clone(&counts), meters);
    let work = work(args, config, until, counted);
    let report = runtime.block_on(work)?;
    let summary = Summary::of(&report, until, (&counts.jobs(), &tally.totals()));
    if args.json {
        output::json(&summary)?;
    } else if until != Until::Stopped {
        summary.print()?;
    }
    summary.notes();
    if let End::Needs(line) = &report.end {
        output::note(&format!("{RED}stopped:{RED:#} {line}"));
    }
    Ok(ExitCode::from(if summary.is_well() { 0 } else { output::FAILED }))
}

async fn work(
    args: &Args,
    config: Config,
    until: Until,
    (tally, counts, meters): (Arc<Tally>, Arc<Counts>, Arc<Meters>),
) -> Result<Report, Failure> {
    let (model, model_name) = args.model.model(&config)?;
    let store = settings::open_store(&config, OpenMode::Create)?;
    let closing = CancellationToken::new();
    let (signals, told, secs) = (Signals::new()?, closing.clone(), config.queue.grace.as_secs());
    tokio::spawn(signals.hear(move || {
        told.cancel();
        output::note(&format!(
            "stopping: calls under way may end within {secs} s (again stops at once)"
        ));
    }));
    let (jobs, calls) = (Arc::clone(&counts), Arc::clone(&tally));
    let look = move || {
        let text = summary::line(&jobs.jobs(), &calls.totals());
        Look { at: 0, of: 1, text }
    };
    let every = if until == Until::Stopped { SELDOM } else { OFTEN };
    let shown = tokio::spawn(progress::show(LINE, model_name.clone(), every, look));
    let beside = beside::start(args, (&config, &model_name), (&store, &closing), &meters).await?;
    let consumer = Consumer {
        config,
        model,
        model_name,
        store,
        id: process::name().to_owned(),
        until,
        closing: closing.clone(),
        tally,
        counts,
        tell: output::note,
        clock: clock::now,
    };
    let report = consumer.run().await;
    // Where the consumer had no more to do, nobody has cancelled it yet.
    closing.cancel();
    let needs = beside::end(beside).await;
    shown.abort();
    // It was told to end; it has nothing to say.
    let _ = shown.await;
    let mut report = report?;
    if let Some(line) = needs {
        report.end = End::Needs(line);
    }
    Ok(report)
}
