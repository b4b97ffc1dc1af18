//! Replays transcripts: one thread reads them into a batch of the queue while a worker of this process drains that
//! batch. The totals come from the store.

use super::extractor::{asking_digest, extraction_spec, run_id};
use super::ingest::{Asking, CountSink, ReadSession, ReplaySink};
use super::model_client::Model;
use super::preamble::PreambleSettings;
use super::reader::{Lookup, Reader, Reading, found};
use super::tally::{Tally, Totals};
use super::worker::{Batch, Consumer, Counts, End, Report, Until};
use super::{blocking, join_result};
use crate::adapters::process;
use crate::adapters::walk::Candidate;
use crate::config::Config;
use crate::domain::{
    CoverageState, Digest, Finding, Format, RunId, SessionId, Severity, Timestamp, estimate_tokens,
};
use crate::extract::tool;
use crate::llm::prompt::Form;
use crate::privacy::Gate;
use crate::store::{SessionEnd, SessionTotals, Store, StoreErrorKind, StoreResult, StoredCopy};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// Jobs that the reader may queue ahead in addition to twice the concurrency, so that claiming, decoding and storing
/// never keep the endpoint waiting.
const AHEAD_MORE: u32 = 32;
/// Maximum number of sessions closed concurrently; the store groups their commits.
const CLOSING_MAX: usize = 32;
/// Estimated tokens of an answer in a dry run; recorded answers of slices near the default budget have 200 to 600.
const ANSWER_TOKENS_ESTIMATE: u64 = 400;
/// Estimated tokens of adjudication per slice: some eight records, each shown with one or two memories.
const ADJUDICATION_SENT_ESTIMATE: u64 = 2_000;
const ADJUDICATION_ANSWER_ESTIMATE: u64 = 400;

#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub paths: Vec<PathBuf>,
    /// Reads the copies in the vault, too.
    pub vault: bool,
    /// Format of the named files; `None` detects it.
    pub format: Option<Format>,
    /// Leaves out sessions that began before this time.
    pub since: Option<Timestamp>,
    /// With `since`, reads sessions without a time too.
    pub undated: bool,
    pub sessions_max: Option<u64>,
    pub retry_failed: bool,
    pub also_forgotten: bool,
}

pub(crate) struct Replay {
    pub config: Config,
    pub model: Model,
    pub model_name: String,
    pub store: Store,
    pub cancel: CancellationToken,
    pub tally: Arc<Tally>,
    pub clock: fn() -> Timestamp,
}

/// A dry run: reads, redacts, slices and counts, but asks no model and stores nothing.
pub(crate) struct Plan {
    pub config: Config,
    pub model_name: String,
    pub cancel: CancellationToken,
    pub tally: Arc<Tally>,
}

impl Plan {
    /// Reads everything; `store` tells which slices are done.
    pub(crate) async fn run(self, options: Options, store: Option<Store>) -> StoreResult<()> {
        let copies = copies(&options, store.as_ref(), &self.tally).await?;
        let lookup = store.map(|store| Lookup::new(Handle::current(), store, None));
        blocking(move || self.read(&options, &copies, lookup)).await
    }

    fn read(
        &self,
        options: &Options,
        copies: &[StoredCopy],
        lookup: Option<Lookup>,
    ) -> StoreResult<()> {
        let files = find(options, &self.tally);
        let gate = Gate::new(&self.config.pii);
        let reading = reading(&self.config, options, true, self.cancel.clone());
        let tool = tool();
        let rules = self.config.prompts.extraction().rules(
            &self.config.language,
            Form::Tool,
            tool.schema(),
        );
        let overhead =
            u64::from(estimate_tokens(rules.as_str())) + u64::from(estimate_tokens(tool.schema()));
        let sink = CountSink {
            lookup,
            asking: asking(&self.config, &self.model_name, options),
            tally: &self.tally,
            overhead,
            sessions: HashMap::new(),
            open: None,
        };
        let mut reader = Reader::new(&reading, &gate, &self.tally, sink);
        // The sink's `finish` reports why the reading stopped.
        let _ = reader.all(&files, copies);
        let slices = reader.finish()?.finish()?;
        self.tally.with(|totals| {
            let judge = self.config.consolidate.model_name(&self.model_name);
            let judged = if judge.is_some() { slices } else { 0 };
            let sent = totals.tokens.estimated;
            totals.tokens.consolidation = judged * ADJUDICATION_SENT_ESTIMATE;
            let of = |name: &str| self.config.model.price_of(name);
            let price = of(&self.model_name);
            totals.count_cost(price);
            totals.cost = price.zip(of(judge.unwrap_or(&self.model_name))).map(|(price, judge)| {
                let answered = slices * ANSWER_TOKENS_ESTIMATE;
                price.of(sent, answered)
                    + judge.of(totals.tokens.consolidation, judged * ADJUDICATION_ANSWER_ESTIMATE)
            });
            let counted = totals.coverage.total();
            totals.coverage.add(CoverageState::Pending, totals.entries.saturating_sub(counted));
        });
        Ok(())
    }
}

fn asking(config: &Config, model: &str, options: &Options) -> Asking {
    let digest = asking_digest(&extraction_spec(config, model), config);
    Asking { digest, retry_failed: options.retry_failed }
}

fn reading(
    config: &Config,
    options: &Options,
    dry_run: bool,
    cancel: CancellationToken,
) -> Reading {
    Reading {
        format: options.format,
        namespace: config.namespace.clone(),
        since: options.since,
        undated: options.undated,
        sessions_max: options.sessions_max,
        slice: config.slice,
        session: None,
        preamble: (!dry_run).then(|| PreambleSettings::of(config)),
        cards: !dry_run,
        also_forgotten: options.also_forgotten,
        vault: config.vault.bound().filter(|_| !dry_run),
        dry_run,
        cancel,
    }
}

fn find(options: &Options, tally: &Tally) -> Vec<Candidate> {
    let files = found(&options.paths, tally);
    tally.with(|totals| {
        totals.files_planned = files.len() as u64;
        totals.bytes_planned = files.iter().map(|file| file.bytes).sum();
    });
    files
}

async fn copies(
    options: &Options,
    store: Option<&Store>,
    tally: &Tally,
) -> StoreResult<Vec<StoredCopy>> {
    let Some(store) = store.filter(|_| options.vault) else { return Ok(Vec::new()) };
    let copies = store.copies().await?;
    tally.with(|totals| {
        totals.files_planned += copies.len() as u64;
        totals.bytes_planned += copies.iter().map(|copy| copy.plain).sum::<u64>();
    });
    Ok(copies)
}

impl Replay {
    /// Replays everything that `options` names. Store errors end it early; content never does.
    pub(crate) async fn run(self, options: Options) -> StoreResult<End> {
        let Replay { config, model, model_name, store, cancel, tally, clock } = self;
        let calls = u32::try_from(config.model.concurrency).unwrap_or(u32::MAX);
        let ahead_max = calls.saturating_mul(2).saturating_add(AHEAD_MORE);
        let batch = Arc::new(Batch::new(process::name(), ahead_max));
        let asking = asking(&config, &model_name, &options);
        let closing = cancel.child_token();
        let lookup = Lookup::new(Handle::current(), store.clone(), Some(clock));
        let sink = ReplaySink {
            lookup,
            asking,
            batch: Arc::clone(&batch),
            tally: Arc::clone(&tally),
            closing: closing.clone(),
            clock,
            open: None,
            sessions: BTreeMap::new(),
        };
        let (files, how) =
            (find(&options, &tally), reading(&config, &options, false, closing.clone()));
        let copies = copies(&options, Some(&store), &tally).await?;
        let (gate, seen) = (Gate::new(&config.pii), Arc::clone(&tally));
        let ended = EndOfReading(Arc::clone(&batch));
        let reading = tokio::task::spawn_blocking(move || {
            let _ended = ended;
            let mut reader = Reader::new(&how, &gate, &seen, sink);
            // The sink's `finish` reports why the reading stopped.
            let _ = reader.all(&files, &copies);
            let read = reader.finish().and_then(ReplaySink::finish);
            read.inspect_err(|_| how.cancel.cancel())
        });
        let worker = Consumer {
            config,
            model,
            model_name,
            store: store.clone(),
            id: batch.id.clone(),
            until: Until::Drained,
            closing: closing.clone(),
            tally: Arc::clone(&tally),
            feeding: Weak::new(),
            counts: Arc::new(Counts::default()),
            tell: |_| {},
            clock,
        };
        let draining = async {
            let report = worker.work(Some(Arc::clone(&batch))).await;
            // If the worker ended early, nothing would process what is still read.
            closing.cancel();
            report
        };
        let (report, read) = tokio::join!(draining, reading);
        let (report, sessions) = (report?, join_result(read).unwrap_or(Ok(Vec::new()))?);
        let ending = Ending { store, batch: batch.id.clone(), asking: asking.digest, clock };
        ending.close(sessions, &tally).await?;
        count_pending(&tally, &report);
        Ok(match report.end {
            End::Needs(line) => End::Needs(line),
            End::Asked | End::Nothing if cancel.is_cancelled() => End::Asked,
            End::Asked | End::Nothing => End::Nothing,
        })
    }
}

/// Ends the reading of a batch when it is dropped, even after a panic.
struct EndOfReading(Arc<Batch>);

impl Drop for EndOfReading {
    fn drop(&mut self) {
        self.0.end_reading();
    }
}

/// Closes the sessions of a batch once its jobs have ended.
struct Ending {
    store: Store,
    batch: String,
    asking: Digest,
    clock: fn() -> Timestamp,
}

/// The runs of a session's jobs; `is_open` if some jobs have not ended.
#[derive(Debug, Default)]
struct BatchRuns {
    runs: Vec<RunId>,
    is_open: bool,
}

impl Ending {
    async fn close(self, sessions: Vec<ReadSession>, tally: &Tally) -> StoreResult<()> {
        let mut by_session: HashMap<SessionId, BatchRuns> = HashMap::new();
        for (session, slice, is_open) in self.store.batch_slices(self.batch.clone()).await? {
            let of = by_session.entry(session).or_default();
            of.runs.push(run_id(self.asking, slice));
            of.is_open |= is_open;
        }
        let closing = sessions.into_iter().map(|session| {
            let of = by_session.remove(&session.id).unwrap_or_default();
            tally.with(|totals| {
                totals.slices_known += session.slices_known;
                totals.sessions_read.insert(session.id);
            });
            let (reached, ended) = (session.reached, self.session(session, of));
            async move {
                match ended.await {
                    Err(error) if matches!(error.kind, StoreErrorKind::UnknownSession(_)) => {
                        Ok(forgotten(reached, tally))
                    }
                    ended => ended,
                }
            }
        });
        let closed = stream::iter(closing).buffer_unordered(CLOSING_MAX);
        let sums: Vec<SessionTotals> = closed.try_collect().await?;
        self.store.end_batch(self.batch.clone()).await?;
        tally.with(|totals| sums.into_iter().for_each(|sum| add(totals, sum)));
        Ok(())
    }

    /// Makes the runs of this replay the session's coverage if each of its slices has one; an interrupted session keeps
    /// its earlier runs. Returns the session's totals.
    async fn session(&self, session: ReadSession, of: BatchRuns) -> StoreResult<SessionTotals> {
        let ReadSession { id, reached, known, whole, is_copy, .. } = session;
        let Some((findings, masked)) = whole.filter(|_| !of.is_open) else {
            return self.store.session_totals(id, reached).await;
        };
        let runs = known.into_iter().chain(of.runs).collect();
        let at = (self.clock)();
        let end = SessionEnd { entries: reached, findings, masked, is_copy, runs, at };
        let (before, mut totals) = self.store.end_session(id, end).await?;
        // A failure in this replay counts even if an earlier extraction covers the slice.
        if totals.coverage.failed < before.failed {
            totals.coverage = before;
        }
        Ok(totals)
    }
}

/// Totals of a session of `entries` entries that was forgotten meanwhile.
fn forgotten(entries: u32, tally: &Tally) -> SessionTotals {
    let what = "forgotten while it was read; `--also-forgotten` reads it again";
    tally.finding(&Finding::new(Severity::Info, "forgotten", 0, what));
    let mut totals = SessionTotals::default();
    totals.coverage.add(CoverageState::Skipped, entries.into());
    totals
}

fn add(totals: &mut Totals, session: SessionTotals) {
    let (sum, more) = (&mut totals.coverage, session.coverage);
    sum.extracted += more.extracted;
    sum.nothing += more.nothing;
    sum.skipped += more.skipped;
    sum.failed += more.failed;
    totals.quarantined += session.quarantined;
    for (kind, count) in session.staged {
        totals.records.add(kind, count);
    }
}

/// Counts the remaining entries as pending if a stop, a cap or an unreadable file explains them. Otherwise the totals
/// do not balance, which the report shows.
fn count_pending(tally: &Tally, report: &Report) {
    tally.with(|totals| {
        if report.left.at_a_cap > 0 {
            let cap = report.left.cap.clone().unwrap_or_default();
            totals.waiting.insert(cap, report.left.at_a_cap);
        }
        if report.end != End::Nothing || !totals.waiting.is_empty() || !totals.problems.is_empty() {
            let waiting = totals.entries.saturating_sub(totals.coverage.total());
            totals.coverage.add(CoverageState::Pending, waiting);
        }
    });
}
