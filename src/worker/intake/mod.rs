//! Brings slices into the queue: what a transcript grew by since it was last handed over becomes jobs.
//! Handing over the same thing twice changes nothing; nothing of it is asked about here.

mod batch;
mod desk;
mod report;
mod rules;

pub use report::{Taken, TakenIn};
pub use rules::Gather;

use super::reader::{Reader, Reading};
use super::replay::{asking_digest, asking_of};
use super::tally::{FileProblem, Tally};
use crate::config::Config;
use crate::domain::{Digest, Format, Timestamp};
use crate::edge::store::{Store, StoreError};
use crate::edge::walk::{Candidate, walk};
use crate::privacy::Gate;
use crate::slice;
use desk::Taker;
use rules::Rules;
use std::path::PathBuf;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// How often a file is read again because somebody else took in more of it at the same time, or because
/// it was rewritten. Each time means that another process got on with it.
const PASSES_MAX: u32 = 16;

/// Takes in what is handed over.
pub struct Enqueuer {
    store: Store,
    gate: Gate,
    settings: slice::Settings,
    gather: Gather,
    asking: Digest,
    namespace: Option<String>,
    clock: fn() -> Timestamp,
}

/// How something is handed over.
#[derive(Clone, Debug, Default)]
pub struct HandOver {
    /// The conversation's name, instead of the one that a transcript gives it.
    pub session: Option<String>,
    /// Whose memory it becomes, instead of what the settings say.
    pub namespace: Option<String>,
    /// The highest goes first, within its namespace.
    pub priority: i32,
    /// Whether the last entries are asked about at once, however few they are.
    pub flush: bool,
    /// The format of files that are named; found out otherwise.
    pub format: Option<Format>,
}

impl Enqueuer {
    /// Takes in for workers that ask `model` under these settings.
    pub fn new(
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
            asking: asking_digest(&asking_of(config, model), config),
            namespace: config.namespace.clone(),
            clock,
        }
    }

    /// Takes in what the files and folders of `paths` grew by. Blocks its thread, which must be one of
    /// the runtime of `handle` on which that is allowed.
    ///
    /// # Errors
    /// The store's. What is wrong with a file is told in the report and keeps no other from being read.
    pub fn read(
        &self,
        paths: &[PathBuf],
        how: &HandOver,
        (handle, cancel): (Handle, &CancellationToken),
    ) -> Result<TakenIn, StoreError> {
        let (files, problems) = walk(paths);
        let tally = Tally::default();
        tally.with(|totals| {
            totals.problems.extend(problems.into_iter().map(|(path, error)| FileProblem {
                path: path.display().to_string(),
                problem: error.to_string(),
            }));
        });
        let reading = self.reading(how);
        let desk = Taker::new(handle, &self.store, self.rules(how), cancel);
        let mut reader = Reader::new(&reading, &self.gate, &tally, desk);
        for file in &files {
            take_in(&mut reader, file, &tally);
            if reader.desk().is_over() {
                break;
            }
        }
        let desk = reader.into_desk();
        match desk.failed {
            Some(error) => Err(error),
            None => Ok(desk.report.closed(&tally)),
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
            dry_run: false,
        }
    }

    fn rules(&self, how: &HandOver) -> Rules {
        Rules {
            asking: self.asking,
            gather: self.gather,
            flush: how.flush,
            priority: how.priority,
            now: (self.clock)(),
        }
    }
}

/// Reads a file until all that it grew by is taken in.
fn take_in(reader: &mut Reader<'_, Taker<'_>>, file: &Candidate, tally: &Tally) {
    // Where the reading breaks off the desk knows why.
    let _ = reader.file(file);
    for _ in 1..PASSES_MAX {
        if reader.desk().is_over() || !reader.desk().is_to_be_read_again() {
            return;
        }
        let _ = reader.file_again(file);
    }
    if reader.desk().is_to_be_read_again() {
        let path = file.path.display().to_string();
        let problem = "others take it in at the same time; try again".to_owned();
        tally.with(|totals| totals.problems.push(FileProblem { path, problem }));
    }
}
