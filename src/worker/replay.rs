//! Replays transcripts: one thread reads, many slices are asked about at once, sessions end in order
//! of their own. Stopping leaves the store as if the rest had not been read yet.

use super::asking::{Asker, Model};
use super::budget::{Budget, Charge};
use super::reader::{Before, Desk, Reader, Reading, Work};
use super::runner::Runner;
use super::sessions::{Line, Sessions, go_down};
use super::tally::{FileProblem, Tally, Totals};
use crate::config::Config;
use crate::domain::{
    CoverageState, Digest, Format, Rung, Session, SessionId, Timestamp, estimate_tokens,
};
use crate::edge::model::{Pace, PaceConfig};
use crate::edge::store::{Store, StoreError};
use crate::edge::walk::{Candidate, walk};
use crate::extract::{Asking, SCHEMA_VERSION, tool};
use crate::privacy::Gate;
use crate::prompt::{Form, Prompts};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// Slices that are worked on at once beyond those that are being asked about: decoding, grounding
/// and storing must not keep the endpoint waiting.
const IN_FLIGHT_MORE: usize = 32;
/// What the reader may be ahead, in handings-over.
const READ_AHEAD: usize = 8;
/// What a slice is answered with in a dry run's estimate, in tokens: recorded answers of slices near
/// the default budget have 200 to 600.
const ANSWER_TOKENS_ESTIMATE: u64 = 400;

/// What to replay.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Files and folders.
    pub paths: Vec<PathBuf>,
    /// The format of files that are named; found out otherwise.
    pub format: Option<Format>,
    /// Leaves out sessions that began before.
    pub since: Option<Timestamp>,
    /// The most sessions that are read.
    pub sessions_max: Option<u64>,
    /// Asks afresh about slices that failed.
    pub retry_failed: bool,
}

/// Why a replay ended early.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Stop {
    /// Somebody asked for it.
    Asked,
    /// Something that only a person can mend, and how.
    Needs(String),
}

/// What a replay works with.
pub struct Replay {
    /// Settings.
    pub config: Config,
    /// What answers.
    pub model: Model,
    /// The model's name: in requests and in runs.
    pub model_name: String,
    /// Where it is kept.
    pub store: Store,
    /// Stops it.
    pub cancel: CancellationToken,
    /// Counts it.
    pub tally: Arc<Tally>,
    /// Tells the time.
    pub clock: fn() -> Timestamp,
}

/// A dry run: reads, masks, cuts and counts; asks nothing, keeps nothing.
pub struct Plan {
    /// Settings.
    pub config: Config,
    /// Stops it.
    pub cancel: CancellationToken,
    /// Counts it.
    pub tally: Arc<Tally>,
}

impl Plan {
    /// Reads everything; blocks the thread.
    pub fn run(&self, options: &Options) {
        let files = find(options, &self.tally);
        let gate = Gate::new(&self.config.pii);
        let reading = reading(&self.config, options, true);
        let tool = tool();
        let rules = Prompts::built_in().rules(&self.config.language, Form::Tool, tool.schema());
        let overhead =
            u64::from(estimate_tokens(rules.as_str())) + u64::from(estimate_tokens(tool.schema()));
        let desk = Counter { tally: &self.tally, cancel: &self.cancel, overhead };
        let mut reader = Reader::new(&reading, &gate, &self.tally, desk);
        for file in &files {
            if reader.file(file).is_break() {
                break;
            }
        }
        self.tally.with(|totals| {
            let (sent, answered) =
                (totals.tokens.estimated, totals.slices * ANSWER_TOKENS_ESTIMATE);
            let price = self.config.model.price;
            totals.cost = (sent as f64 * price.sent + answered as f64 * price.answered) / 1e6;
            let counted = totals.coverage.total();
            totals.coverage.add(CoverageState::Pending, totals.entries.saturating_sub(counted));
        });
    }
}

/// Counts what would be asked.
struct Counter<'a> {
    tally: &'a Tally,
    cancel: &'a CancellationToken,
    overhead: u64,
}

impl Desk for Counter<'_> {
    fn before(&mut self, _session: &Session) -> Before {
        Before::default()
    }

    fn hand(&mut self, work: Work) -> ControlFlow<()> {
        match work {
            Work::Slice(cutting) => {
                let tokens = u64::from(cutting.slice.tokens) + self.overhead;
                self.tally.with(|totals| totals.tokens.estimated += tokens);
            }
            Work::Begin(_) | Work::Skipped(_) | Work::End(_) => {}
        }
        go_on(self.cancel)
    }
}

pub(super) fn go_on(cancel: &CancellationToken) -> ControlFlow<()> {
    if cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

fn reading(config: &Config, options: &Options, dry_run: bool) -> Reading {
    Reading {
        format: options.format,
        namespace: config.namespace.clone(),
        since: options.since,
        sessions_max: options.sessions_max,
        slice: config.slice,
        dry_run,
    }
}

fn find(options: &Options, tally: &Tally) -> Vec<Candidate> {
    let (files, problems) = walk(&options.paths);
    tally.with(|totals| {
        totals.files_planned = files.len() as u64;
        totals.bytes_planned = files.iter().map(|file| file.bytes).sum();
        for (path, error) in problems {
            let path = path.display().to_string();
            totals.problems.push(FileProblem { path, problem: error.to_string() });
        }
    });
    files
}

impl Replay {
    /// Replays everything that `options` names. Content never ends it; the store's errors do.
    pub async fn run(self, options: Options) -> Result<Option<Stop>, StoreError> {
        let files = find(&options, &self.tally);
        let gate = Gate::new(&self.config.pii);
        let reading = reading(&self.config, &options, false);
        let (cancel, tally) = (self.cancel.clone(), Arc::clone(&self.tally));
        let in_flight = Arc::new(Semaphore::new(self.config.model.concurrency + IN_FLIGHT_MORE));
        let store = self.store.clone();
        let runner = Arc::new(self.runner(&options).await?);
        let (sender, mut receiver) = mpsc::channel(READ_AHEAD);
        let asking = runner.asking_digest;
        let (closing, counted) = (runner.closing.clone(), Arc::clone(&tally));
        let reader = tokio::task::spawn_blocking(move || {
            let desk = Line::new(store, asking, sender, closing);
            let mut reader = Reader::new(&reading, &gate, &counted, desk);
            for file in &files {
                if reader.file(file).is_break() {
                    break;
                }
            }
            reader.into_desk().failed
        });
        let mut sessions = Sessions::new(Arc::clone(&runner), in_flight);
        while let Some(work) = receiver.recv().await {
            sessions.take(work).await;
        }
        let read = reader.await.unwrap_or_else(|died| {
            go_down(died);
            None
        });
        sessions.finish().await?;
        if let Some(error) = read {
            return Err(error);
        }
        balance(&tally, runner.closing.is_cancelled());
        let needs = runner.stop.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(match needs {
            Some(needs) => Some(Stop::Needs(needs)),
            None => cancel.is_cancelled().then_some(Stop::Asked),
        })
    }

    async fn runner(self, options: &Options) -> Result<Runner, StoreError> {
        let Replay { config, model, model_name, store, cancel, tally, clock } = self;
        let now = clock();
        let asking = asking_of(&config, &model_name);
        let rung = match &model {
            // What an endpoint can do says nothing of recorded answers.
            Model::Cassette(cassette) => cassette.rung(),
            Model::Endpoint(_) => {
                let known = store.capability(&config.model.base_url, &model_name).await?;
                config.model.rung.or(known)
            }
        };
        let rung = rung.unwrap_or(Rung::ForcedTool);
        let today = match config.limits.day_tokens.is_some() || config.limits.day_micros.is_some() {
            true => spent(&store, Some(midnight(now)), None).await?,
            false => Charge::default(),
        };
        let pace = Pace::new(PaceConfig {
            calls_max: u32::try_from(config.model.concurrency).unwrap_or(u32::MAX),
            requests_per_minute: config.limits.requests_per_minute,
            tokens_per_minute: config.limits.tokens_per_minute.map(u64::from),
        });
        let budget = Budget::new(&config.limits, config.model.price, now, today);
        let asking_digest = asking_digest(&asking, &config);
        Ok(Runner {
            asker: Asker {
                model,
                store,
                pace,
                budget,
                limits: config.limits.clone(),
                price: config.model.price,
                cancel: cancel.clone(),
                clock,
            },
            asking,
            asking_digest,
            gate: Gate::new(&config.pii),
            tally,
            base_url: config.model.base_url.clone(),
            retry_failed: options.retry_failed,
            closing: cancel.child_token(),
            cancel,
            unanswered: AtomicU32::new(0),
            rung: Mutex::new(rung),
            lower: AtomicU32::new(0),
            stop: Mutex::new(None),
        })
    }
}

/// How slices are asked about under these settings.
pub(super) fn asking_of(config: &Config, model: &str) -> Arc<Asking> {
    let mut asking = Asking::new(model, &config.language, Arc::new(Prompts::built_in()));
    asking.reply_tokens_max = config.model.reply_tokens_max;
    asking.temperature = config.model.temperature;
    Arc::new(asking)
}

/// Everything that makes two answers to one slice comparable: who is asked what, and how slices are
/// cut.
fn asking_digest(asking: &Asking, config: &Config) -> Digest {
    let prompts = asking.prompts();
    let prompts = format!("{} {} {}", prompts.id(), prompts.version(), prompts.digest());
    let slices = format!("{} {}", config.slice.tokens, config.slice.tool_tokens);
    let schema = SCHEMA_VERSION.to_string();
    Digest::of(&["asking", &asking.model, &prompts, &schema, asking.language(), &slices])
}

fn midnight(now: Timestamp) -> Timestamp {
    /// Milliseconds of a day.
    const DAY_MILLIS: i64 = 86_400_000;
    Timestamp(now.0 - now.0.rem_euclid(DAY_MILLIS))
}

pub(super) async fn spent(
    store: &Store,
    since: Option<Timestamp>,
    session: Option<SessionId>,
) -> Result<Charge, StoreError> {
    let spent = store.spent(since.unwrap_or(Timestamp(0)), None, session).await?;
    let tokens = spent.usage.prompt_tokens + spent.usage.completion_tokens;
    Ok(Charge { tokens, micros: spent.cost_micros })
}

/// What was read and is not accounted for waits, where there is a reason to wait: somebody stopped it,
/// a cap was reached, a file could not be read to its end. Else the totals do not balance, and say so.
fn balance(tally: &Tally, stopped: bool) {
    tally.with(|totals: &mut Totals| {
        if stopped || !totals.waiting.is_empty() || !totals.problems.is_empty() {
            let waiting = totals.entries.saturating_sub(totals.coverage.total());
            totals.coverage.add(CoverageState::Pending, waiting);
        }
    });
}
