//! Brings slices into the queue: what a transcript grew by since it was last handed over becomes jobs.
//! Handing over the same thing twice changes nothing; nothing of it is asked about here.

mod batch;
mod intake_sink;
mod document;
#[cfg(test)]
mod document_tests;
mod documents;
mod known;
mod replay;
mod report;
mod rules;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;

pub(crate) use document::{Document, NotTaken};
pub(crate) use report::{Taken, TakenIn};
pub(crate) use rules::Gather;

use super::preamble::PreambleSettings;
use super::reader::{Bytes, Reader, Reading};
use super::setup::{asking_digest, extraction_spec};
use super::stop::resume_panic;
use super::tally::{FileProblem, Tally};
use crate::adapters::walk::{Candidate, walk};
use crate::config::Config;
use crate::domain::{Digest, Format, Timestamp};
use crate::privacy::Gate;
use crate::slicing;
use crate::store::{Store, StoreError};
use documents::Documents;
use intake_sink::IntakeSink;
pub(super) use known::Lookup;
pub(super) use replay::{Asking, CountSink, ReadSession, ReplaySink};
use rules::{BATCH_BYTES_MAX, Rules};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// How often a file is read again because somebody else took in more of it at the same time, or because
/// it was rewritten. Each time means that another process got on with it.
const PASSES_MAX: u32 = 16;

/// Takes in what is handed over.
pub(crate) struct Enqueuer {
    store: Store,
    gate: Gate,
    settings: slicing::SliceSettings,
    gather: Gather,
    asking: Digest,
    preamble: Arc<PreambleSettings>,
    namespace: Option<String>,
    batch_bytes_max: usize,
    clock: fn() -> Timestamp,
}

/// How something is handed over.
#[derive(Clone, Debug, Default)]
pub(crate) struct HandOver {
    /// The conversation's name, instead of the one that a transcript gives it.
    pub session: Option<String>,
    /// Whose memory it becomes, instead of what the settings say.
    pub namespace: Option<String>,
    /// The highest goes first, within its namespace; over what a document says.
    pub priority: Option<i32>,
    /// Whether the last entries are asked about at once, however few they are.
    pub flush: bool,
    /// The format of files that are named; found out otherwise.
    pub format: Option<Format>,
    /// Whether sessions are taken in again that were forgotten.
    pub also_forgotten: bool,
}

impl Enqueuer {
    /// Takes in for workers that ask `model` under these settings.
    pub(crate) fn new(
        config: &Config,
        model: &str,
        gather: Gather,
        (store, clock): (Store, fn() -> Timestamp),
    ) -> Enqueuer {
        Enqueuer {
            store,
            gate: Gate::new(&config.pii),
            settings: config.slice,
            gather,
            asking: asking_digest(&extraction_spec(config, model), config),
            preamble: PreambleSettings::of(config),
            namespace: config.namespace.clone(),
            batch_bytes_max: BATCH_BYTES_MAX,
            clock,
        }
    }

    /// Takes in what the files and folders of `paths` grew by.
    ///
    /// # Errors
    /// The store's. What is wrong with a file is told in the report and keeps no other from being read.
    pub(crate) async fn files(
        self: Arc<Self>,
        paths: Vec<PathBuf>,
        how: HandOver,
        cancel: CancellationToken,
    ) -> Result<TakenIn, StoreError> {
        let handle = Handle::current();
        off_thread(move || {
            let (files, problems) = walk(&paths);
            let tally = Tally::default();
            let problem = |(path, error): (PathBuf, std::io::Error)| FileProblem {
                path: path.display().to_string(),
                problem: error.to_string(),
            };
            tally.with(|totals| totals.problems.extend(problems.into_iter().map(problem)));
            let files = files.iter().map(|file| (file, Bytes::OnDisk));
            self.read(files, &how, (&handle, &cancel, &tally))
        })
        .await
    }

    /// Takes in what files grew by that somebody found already.
    ///
    /// # Errors
    /// As [`Enqueuer::files`].
    pub(crate) async fn found(
        self: Arc<Self>,
        files: Vec<Candidate>,
        how: HandOver,
        cancel: CancellationToken,
    ) -> Result<TakenIn, StoreError> {
        let handle = Handle::current();
        off_thread(move || {
            let files = files.iter().map(|file| (file, Bytes::OnDisk));
            self.read(files, &how, (&handle, &cancel, &Tally::default()))
        })
        .await
    }

    /// Takes in what the transcript in `bytes` holds that is not taken in yet. `name` says where they
    /// come from.
    ///
    /// # Errors
    /// The store's. What is wrong with the bytes is told in the report.
    pub(crate) async fn bytes(
        self: Arc<Self>,
        (name, bytes): (String, Vec<u8>),
        how: HandOver,
        cancel: CancellationToken,
    ) -> Result<TakenIn, StoreError> {
        let handle = Handle::current();
        let (path, length) = (PathBuf::from(name), bytes.len() as u64);
        let file = Candidate { path, named: true, bytes: length, changed_at: None };
        off_thread(move || {
            let files = std::iter::once((&file, Bytes::AtHand(&bytes)));
            self.read(files, &how, (&handle, &cancel, &Tally::default()))
        })
        .await
    }

    /// Blocks its thread.
    fn read<'f>(
        &self,
        files: impl Iterator<Item = (&'f Candidate, Bytes<'f>)>,
        how: &HandOver,
        (handle, cancel, tally): (&Handle, &CancellationToken, &Tally),
    ) -> Result<TakenIn, StoreError> {
        let reading = self.reading(how);
        let lookup = Lookup::new(handle.clone(), self.store.clone());
        let sink = IntakeSink::new(lookup, self.rules(how), cancel);
        let mut reader = Reader::new(&reading, &self.gate, tally, sink);
        for (file, bytes) in files {
            match documents::are_in((file, bytes), how.format) {
                Ok(true) => {
                    let report = &mut reader.sink().report;
                    let enqueuer = self;
                    Documents { enqueuer, how, handle, cancel, tally, report }
                        .take_in(file, bytes)?;
                }
                // What cannot be read is told below.
                Ok(false) | Err(_) => take_in(&mut reader, (file, bytes), tally),
            }
            if reader.sink().is_over() {
                break;
            }
        }
        let sink = reader.into_sink();
        match sink.failed {
            Some(error) => Err(error),
            None => Ok(sink.report.closed(tally)),
        }
    }

    fn reading(&self, how: &HandOver) -> Reading {
        Reading {
            format: how.format,
            namespace: how.namespace.clone().or_else(|| self.namespace.clone()),
            since: None,
            sessions_max: None,
            slice: self.settings,
            session: how.session.clone(),
            preamble: Some(Arc::clone(&self.preamble)),
            cards: false,
            also_forgotten: how.also_forgotten,
            dry_run: false,
        }
    }

    fn rules(&self, how: &HandOver) -> Rules {
        Rules {
            asking: self.asking,
            gather: self.gather,
            flush: how.flush,
            priority: how.priority.unwrap_or_default(),
            now: (self.clock)(),
            batch_bytes_max: self.batch_bytes_max,
        }
    }
}

/// Reads a file until all that it grew by is taken in.
fn take_in(
    reader: &mut Reader<'_, IntakeSink<'_>>,
    (file, bytes): (&Candidate, Bytes<'_>),
    tally: &Tally,
) {
    let before = tally.totals();
    reader.next_file();
    for _ in 0..PASSES_MAX {
        // Where the reading breaks off, the sink knows why.
        let _ = reader.read(file, bytes);
        if reader.sink().is_over() || !reader.sink().is_to_be_read_again() {
            return;
        }
        reader.same_file();
        tally.with(|totals| totals.clone_from(&before));
    }
    let path = file.path.display().to_string();
    let problem = "others take it in at the same time; try again".to_owned();
    tally.with(|totals| totals.problems.push(FileProblem { path, problem }));
}

/// Does `work` on a thread on which blocking is allowed.
async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(died) => {
            resume_panic(died);
            // It did not begin, because the runtime ends, and this with it.
            std::future::pending().await
        }
    }
}
