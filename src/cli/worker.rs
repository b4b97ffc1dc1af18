//! `annalist worker`: processes the queue, continuously or until it is empty.

use super::enqueue::enqueuer_of;
use super::model_args::{ModelArgs, call_rows, refuse_unpriced_cap};
use super::output::{self, Failure, GREEN, RED, Result, YELLOW, count, counted, pairs, remark};
use super::progress::{self, OFTEN, Progress, SELDOM, cancelled_with_note};
use super::serve::{meters, status_pages};
use super::{hand_over, settings};
use crate::adapters::http_server::HttpListener;
use crate::adapters::metrics::Meters;
use crate::adapters::watch::{Options, Watch};
use crate::adapters::{clock, process};
use crate::config::Config;
use crate::pipeline::{
    Consumer, Counts, End, EnqueueOptions, Feed, Jobs, Report, Tally, TokenTotals, Totals, Until,
    join_result,
};
use crate::store::{OpenMode, RemainingJobs, Store, is_lasting_cap};
use schemars::JsonSchema;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

const SPINNER: &str = "{spinner:.dim} {prefix:.dim} {wide_msg}";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annalist worker                                run until stopped
  annalist worker --drain                        empty the queue, then exit
  annalist worker --drain --concurrency 2 --json
  annalist worker --watch ~/.claude/projects     also watch folders
  annalist worker --from nats://127.0.0.1:4222/SLICES --metrics 127.0.0.1:9464
  annalist worker --drain --from nats://127.0.0.1:4222/SLICES
                                                 empty the stream, then exit

Any number of workers can share a store. Each slice is extracted effectively once, whatever \
crashes: answers are stored before they are used, and a job goes to another worker when its \
worker has been silent for queue.lease_secs.

Ctrl-C or SIGTERM once: takes no new jobs, lets calls in flight finish (queue.grace_secs), \
releases the rest, and exits 0. Twice: stops at once and exits 1; nothing is lost. Exits 1 if \
jobs died or wait at a cap (--drain, --once), if messages were rejected, or if something needs \
attention.")]
pub(super) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Exit when no job is left that can run, now or later; slices do not wait for more of their sessions
    #[arg(long)]
    drain: bool,
    /// Exit after one job
    #[arg(long, conflicts_with = "drain")]
    once: bool,
    /// Watch these folders and enqueue new entries of their transcripts
    #[arg(long, value_name = "DIR", num_args = 1..)]
    watch: Vec<PathBuf>,
    /// Take slices from a NATS JetStream stream: nats://HOST[:PORT]/STREAM
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Serve /metrics (Prometheus) and /healthz at this address, such as 127.0.0.1:9464
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,
    /// Print the results as one JSON object on stdout
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: &Args, file: Option<&Path>) -> Result<()> {
    let mut config = settings::load(file)?;
    args.model.override_settings(&mut config);
    let until = match (args.drain, args.once) {
        (true, _) => Until::Drained,
        (false, true) => Until::OneJob,
        (false, false) => Until::Stopped,
    };
    hand_over::retry();
    let (summary, totals, end) = work(args, config, until).await?;
    if args.json {
        output::json(&summary)?;
    } else if until != Until::Stopped {
        summary.print(&totals, args.model.is_recorded())?;
    }
    summary.notes();
    output::warn_of_empty_answers(&totals);
    if let End::Needs(line) = &end {
        output::note(&format!("{RED}stopped:{RED:#} {line}"));
    }
    output::fail_if(!summary.well)
}

async fn work(args: &Args, config: Config, until: Until) -> Result<(Summary, Totals, End)> {
    let meters = meters();
    let tally = Arc::new(Tally::metered(Arc::clone(&meters)));
    let counts = Arc::new(Counts::metered(Arc::clone(&meters)));
    let (model, model_name) = args.model.model(&config)?;
    if let Some(judge) =
        config.consolidate.model_name(&model_name).filter(|_| !args.model.is_recorded())
    {
        refuse_unpriced_cap(&config, judge)?;
    }
    let store = settings::open_store(&config, OpenMode::Create)?;
    super::memory::folder::finish_forgetting(&store, &config).await?;
    let secs = config.queue.grace.as_secs();
    let closing = cancelled_with_note(
        format!("stopping: calls in flight may finish within {secs} s (repeat to stop at once)"),
        || "jobs in progress are released when their leases expire".to_owned(),
    )?;
    let drain = (until == Until::Drained).then(Arc::default);
    let feeding = drain.as_ref().map(Arc::downgrade).unwrap_or_default();
    let rejected: Arc<AtomicU64> = Arc::default();
    let metered = Arc::clone(&meters);
    let feed = Feed {
        enqueuer: enqueuer_of(&config, store.clone(), &model_name),
        closing: closing.clone(),
        drain,
        tell: output::note_over_progress,
        enqueued: Arc::new(move |jobs| metered.enqueued(jobs)),
        rejected: Arc::clone(&rejected),
    };
    let services = start_services(args, &store, &meters, feed).await?;
    let state = || {
        let mut text = line(&counts.jobs(), &tally.totals());
        if counts.is_consolidating() {
            text.push_str(", consolidating");
        }
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
        tally: Arc::clone(&tally),
        counts: Arc::clone(&counts),
        tell: output::note_over_progress,
        clock: clock::now,
    };
    let ended = progress::during(progress, async {
        let report = consumer.run().await;
        // Stops the services of a worker that ended by itself.
        closing.cancel();
        let problem = end_services(services).await;
        report.map(|report| (report, problem))
    });
    let (mut report, problem) = ended.await?;
    if let Some(line) = problem {
        report.end = End::Needs(line);
    }
    let totals = tally.totals();
    let mut summary = Summary::of(&report, until, &counts.jobs(), &totals);
    summary.rejected = rejected.load(Ordering::Relaxed);
    summary.well &= summary.rejected == 0 || report.end == End::Asked;
    Ok((summary, totals, report.end))
}

const HAND_OVER_EVERY: Duration = Duration::from_secs(30);

/// Running services; each returns the problem that a person must solve, if there is one.
type Services = JoinSet<Result<(), String>>;

async fn start_services(
    args: &Args,
    store: &Store,
    meters: &Arc<Meters>,
    feed: Feed,
) -> Result<Services> {
    let closing = &feed.closing;
    let mut services = Services::new();
    if let Some(addr) = args.metrics {
        let listener = HttpListener::bind(addr).await;
        let listener = listener.map_err(|error| Failure::usage(format!("--metrics: {error}")))?;
        let open = listener.addr();
        output::note(&format!("metrics at http://{open}/metrics"));
        if !open.ip().is_loopback() {
            output::note(&output::warning(
                "the network can read them; use 127.0.0.1 for this machine only",
            ));
        }
        let pages = status_pages(store.clone(), Arc::clone(meters), closing.clone());
        let closing = closing.clone();
        services.spawn(async move {
            listener.serve(pages.router(), closing).await;
            Ok(())
        });
    }
    let stopping = closing.clone();
    services.spawn(async move {
        let pause = || tokio::time::sleep(HAND_OVER_EVERY);
        while stopping.run_until_cancelled(pause()).await.is_some() {
            let _ = tokio::task::spawn_blocking(hand_over::retry).await;
        }
        Ok(())
    });
    if args.watch.is_empty() && args.from.is_none() {
        return Ok(services);
    }
    // With `--drain` no later entries complete a partial slice.
    let how = EnqueueOptions { flush: feed.drain.is_some(), ..EnqueueOptions::default() };
    if !args.watch.is_empty() {
        for path in args.watch.iter().filter(|path| !path.exists()) {
            let path = path.display();
            output::note(&format!("{path}: does not exist yet; it is watched once it does"));
        }
        let watch = Watch::start(&args.watch, Options::default());
        services.spawn(feed.clone().watching(watch, how.clone()));
    }
    if let Some(url) = &args.from {
        receive(url, feed, how, &mut services).await?;
    }
    Ok(services)
}

#[cfg(feature = "nats")]
async fn receive(
    url: &str,
    feed: Feed,
    how: EnqueueOptions,
    services: &mut Services,
) -> Result<()> {
    use crate::adapters::nats::{NatsUrl, Source, SourceConfig};
    let url = NatsUrl::parse(url).map_err(|error| Failure::usage(format!("--from: {error}")))?;
    let source = Source::connect(&url, SourceConfig::default()).await;
    let source = source.map_err(|error| Failure::failed(error.to_string()))?;
    services.spawn(feed.receiving(source, how));
    Ok(())
}

#[cfg(not(feature = "nats"))]
async fn receive(_: &str, _: Feed, _: EnqueueOptions, _: &mut Services) -> Result<()> {
    let how = "build it with `cargo build --release --features nats`";
    Err(Failure::usage(format!("--from: this program was built without NATS: {how}")))
}

/// Waits until all services have ended, and returns the first problem.
async fn end_services(mut services: Services) -> Option<String> {
    let mut needs = None;
    while let Some(ended) = services.join_next().await {
        needs = needs.or(join_result(ended).and_then(Result::err));
    }
    needs
}

const LISTED_MAX: usize = 20;

/// Results of a worker.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Summary {
    /// True if nothing needs a person.
    well: bool,
    jobs: Jobs,
    /// Calls of the model, paid for.
    calls: u64,
    /// Answers taken from the journal instead.
    journaled: u64,
    tokens: TokenTotals,
    /// US dollars; `null` where the price of the model is not known.
    cost: Option<f64>,
    left: RemainingJobs,
    /// Messages of a stream that were set aside as dead letters.
    rejected: u64,
    /// Problem that stopped the worker.
    needs: Option<String>,
}

impl Summary {
    fn of(report: &Report, until: Until, jobs: &Jobs, totals: &Totals) -> Summary {
        let well = match (&report.end, until) {
            (End::Needs(_), _) => false,
            (End::Asked, _) => true,
            (End::Nothing, Until::OneJob) => jobs.dead + jobs.retried + jobs.released == 0,
            // Counts dead jobs of the whole queue, since other workers may have held them.
            (End::Nothing, Until::Drained | Until::Stopped) => {
                report.left.died + report.left.at_a_cap == 0
            }
        };
        let needs = match &report.end {
            End::Needs(line) => Some(line.clone()),
            End::Asked | End::Nothing => None,
        };
        Summary {
            well,
            jobs: jobs.clone(),
            calls: totals.calls,
            journaled: totals.journaled,
            tokens: totals.tokens,
            cost: totals.cost,
            left: report.left.clone(),
            rejected: 0,
            needs,
        }
    }

    fn print(&self, totals: &Totals, is_recorded: bool) -> Result<()> {
        let jobs = &self.jobs;
        let some = |jobs: u64| if jobs > 0 { count(jobs) } else { String::new() };
        let known = remark(jobs.known, "extracted before");
        let [calls, tokens] = call_rows(totals, is_recorded);
        pairs([
            ("jobs done", format!("{}{known}", count(jobs.done + jobs.known))),
            ("  split in two", some(jobs.cut)),
            ("  to retry", some(jobs.retried)),
            ("  released", some(jobs.released)),
            ("  taken by other workers", some(jobs.lost)),
            ("  dead", count(jobs.dead)),
            ("records", count(jobs.staged)),
            ("quarantined", count(jobs.quarantined)),
            ("messages rejected", some(self.rejected)),
            calls,
            tokens,
            ("cost", self.cost.map(|cost| format!("${cost:.4}")).unwrap_or_default()),
        ])
    }

    fn notes(&self) {
        for (kind, (jobs, example)) in self.jobs.failures.iter().take(LISTED_MAX) {
            let jobs = counted(*jobs, "job");
            output::note(&format!("{RED}dead:{RED:#} {jobs}, {kind}: {example}"));
        }
        if self.rejected > 0 {
            let messages = counted(self.rejected, "message");
            output::note(&format!(
                "{RED}rejected:{RED:#} {messages}: the dead letters of the stream hold them, with \
                 the reason"
            ));
        }
        let left = &self.left;
        if left.at_a_cap > 0 {
            let cap = left.cap.as_deref().unwrap_or("a cap is reached");
            let jobs = counted(left.at_a_cap, "job");
            let mend = match is_lasting_cap(left.cap.as_deref()) {
                true => "raise it, then run `annalist worker`",
                false => "resumes the next day (UTC), or when a worker starts with a higher cap",
            };
            output::note(&format!("{YELLOW}waiting:{YELLOW:#} {jobs}: {cap}; {mend}"));
        }
        if left.gathering > 0 {
            let sessions = counted(left.gathering, "session");
            output::note(&format!("gathering more entries before asking a model: {sessions}"));
        }
        let open = left.ready + left.leased + left.waiting;
        if open > 0 {
            output::note(&format!("left in the queue: {}", counted(open, "job")));
        } else if self.well && left.gathering == 0 {
            output::note(&format!("{GREEN}nothing is left to do{GREEN:#}"));
        }
        if left.dead > 0 {
            let jobs = counted(left.dead, "dead job");
            output::note(&format!(
                "{jobs} in the queue: `annalist jobs` shows why, `annalist jobs retry --all-dead` \
                 tries again"
            ));
        }
    }
}

fn line(jobs: &Jobs, totals: &Totals) -> String {
    let ended =
        [jobs.done, jobs.known, jobs.cut, jobs.dead, jobs.retried, jobs.released, jobs.lost];
    let under_way = jobs.claimed.saturating_sub(ended.iter().sum());
    let mut line = format!(
        "{} done, {} in progress, {}",
        counted(jobs.done + jobs.known, "job"),
        count(under_way),
        counted(jobs.staged, "record")
    );
    for (what, jobs) in [("dead", jobs.dead), ("to retry", jobs.retried)] {
        if jobs > 0 {
            line.push_str(&format!(", {} {what}", count(jobs)));
        }
    }
    line + &output::spent(totals.cost)
}
