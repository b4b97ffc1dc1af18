//! Replays transcripts: one thread reads, many slices are asked about at once, sessions end in order
//! of their own. Stopping leaves the store as if the rest had not been read yet.

use super::asking::{Model, Patience};
use super::reader::{Before, Desk, Reader, Reading, Work};
use super::runner::Runner;
use super::sessions::{Line, Sessions, go_down};
use super::setup::Setup;
use super::steady::{Bearing, Steady};
use super::tally::{FileProblem, Tally, Totals};
use super::told::Telling;
use crate::config::Config;
use crate::domain::{CoverageState, Format, Session, Timestamp, estimate_tokens};
use crate::edge::store::{Store, StoreError};
use crate::edge::walk::{Candidate, walk};
use crate::extract::tool;
use crate::privacy::Gate;
use crate::prompt::Form;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// Slices that are worked on at once beyond those that are being asked about: decoding, grounding
/// and storing must not keep the endpoint waiting.
const IN_FLIGHT_MORE: usize = 32;
/// What the reader may be ahead, in handings-over.
const READ_AHEAD: usize = 8;
/// How long a call under way is waited for once somebody asked to stop.
const GRACE: Duration = Duration::from_secs(5);
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
    /// Reads sessions again that were forgotten.
    pub also_forgotten: bool,
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
        let rules = self.config.prompts.extraction().rules(
            &self.config.language,
            Form::Tool,
            tool.schema(),
        );
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
            Work::Slice(cutting, _) => {
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
        session: None,
        telling: (!dry_run).then(|| Telling::of(config)),
        cards: !dry_run,
        also_forgotten: options.also_forgotten,
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
        let asking = runner.extractor.asking_digest;
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
        // Somebody waits for a replay: a store in trouble is told at once.
        let bearing = Bearing {
            patience: Duration::ZERO,
            grace: Duration::ZERO,
            closing: cancel.clone(),
            tell: |_| {},
            meters: None,
        };
        let setup = Setup {
            config: &config,
            model,
            model_name: &model_name,
            steady: Steady::new(store, bearing),
            patience: Patience::Waits {
                tries_max: config.limits.tries_max,
                wait_max: config.limits.wait_max,
            },
            tally: Arc::clone(&tally),
            cancel: cancel.clone(),
            grace: GRACE,
            clock,
        };
        Ok(Runner {
            extractor: setup.extractor().await?,
            tally,
            retry_failed: options.retry_failed,
            closing: cancel.child_token(),
            cancel,
            unanswered: AtomicU32::new(0),
            stop: Mutex::new(None),
        })
    }
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
