//! Watches folders and reports changed files; opens none of them.
//!
//! A thread scans the folders regularly. A file is changed if it differs from the last scan, and is
//! reported once it has been quiet. Reporting a file twice costs a read; missing one would lose it.

#[cfg(test)]
mod tests;

use super::walk::{Candidate, Visited, in_order, visit};
use super::{clock, files};
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Pause after a scan as a multiple of its duration: scans use at most one percent of a core.
const PAUSE_FACTOR: u32 = 100;
/// Maximum pause after a slow scan.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Options of a [`Watch`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Options {
    /// Debounce interval. Longer than the timestamp granularity of file systems, so that a file
    /// cannot change after it was reported and still look the same.
    pub quiet: Duration,
    /// Interval at which a file that keeps changing is reported.
    pub busy_max: Duration,
    /// Interval of scans.
    pub poll: Duration,
}

impl Default for Options {
    /// Two seconds to debounce, since an agent writes an answer in several steps; half a minute for
    /// a busy session.
    fn default() -> Options {
        Options {
            quiet: Duration::from_secs(2),
            busy_max: Duration::from_secs(30),
            poll: Duration::from_secs(1),
        }
    }
}

/// Files to read.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Changed files, in the order of [`walk`](super::walk::walk).
    pub files: Vec<Candidate>,
    /// Unreadable paths, each reported once until it changes.
    pub problems: Vec<(PathBuf, io::Error)>,
}

/// Watched folders. Dropping it stops the watch.
pub(crate) struct Watch {
    batches: mpsc::Receiver<Batch>,
    thread: JoinHandle<()>,
}

impl Watch {
    /// Watches `paths`, which need not exist yet.
    pub(crate) fn start(paths: &[PathBuf], options: Options) -> Watch {
        let (reports, batches) = mpsc::channel(1);
        let scanner = Scanner::new(paths, reports);
        Watch { batches, thread: thread::spawn(move || follow(scanner, options)) }
    }

    /// Waits for the next batch. The first contains all files and comes at once even if it is
    /// empty; later ones contain changes. `None` if scanning has failed.
    ///
    /// Cancel safe: nothing is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> Option<Batch> {
        self.batches.recv().await
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.batches.close();
        self.thread.thread().unpark();
    }
}

/// Scans until the watch is dropped.
fn follow(mut scanner: Scanner, options: Options) {
    let mut pending = PendingFiles::new();
    let mut is_first = true;
    while let Some(scan) = scanner.scan() {
        let (began, now) = (scan.began, Instant::now());
        // A file that was removed and reappears unchanged is new.
        pending.retain(|key, _| scanner.seen.contains_key(key));
        let batch = batch(scan, &mut pending, options, is_first);
        let is_due = is_first || !batch.files.is_empty() || !batch.problems.is_empty();
        is_first = false;
        if is_due && scanner.reports.blocking_send(batch).is_err() {
            return;
        }
        let due = |it: &Pending| (it.last + options.quiet).min(it.since + options.busy_max);
        let due = pending.values().map(due).min().map(|due| due.saturating_duration_since(now));
        let pause = due.map_or(options.poll, |due| due.min(options.poll));
        thread::park_timeout(pause.max(((now - began) * PAUSE_FACTOR).min(PAUSE_MAX)));
    }
}

/// Changed files not reported yet.
type PendingFiles = HashMap<FileKey, Pending>;

#[derive(Debug)]
struct Pending {
    file: Candidate,
    /// Time of the first unreported change.
    since: Instant,
    last: Instant,
}

/// Processes a scan and returns the files and problems to report.
fn batch(scan: Scan, pending: &mut PendingFiles, options: Options, is_first: bool) -> Batch {
    let now = Instant::now();
    let Options { quiet, busy_max, .. } = options;
    if !is_first && !scan.changed.is_empty() {
        tracing::trace!(files = scan.changed.len(), "changed");
    }
    let mut files = Vec::new();
    for (key, file) in scan.changed {
        if is_first {
            files.push(file.clone());
            if !may_be_changing(&file, quiet) {
                continue;
            }
        }
        let pending = pending.entry(key);
        let pending = pending.or_insert(Pending { file: file.clone(), since: now, last: now });
        (pending.file, pending.last) = (file, now);
    }
    pending.retain(|_, pending| {
        // Only a scan that began after the interval proves that there was no change in it.
        let rests = pending.last + quiet <= scan.began;
        if rests || pending.since + busy_max <= now {
            files.push(pending.file.clone());
            pending.since = now;
        }
        !rests
    });
    in_order(&mut files);
    Batch { files, problems: scan.problems }
}

/// True if the first scan may have happened during a change of `file`.
fn may_be_changing(file: &Candidate, quiet: Duration) -> bool {
    let quiet = i64::try_from(quiet.as_millis()).unwrap_or(i64::MAX);
    file.changed_at.is_none_or(|at| (clock::now().0 - at.0).abs() < quiet)
}

/// Hash of a file's real path.
type FileKey = u64;

#[derive(Debug)]
struct Scan {
    began: Instant,
    /// Files that are new or differ from the last scan.
    changed: Vec<(FileKey, Candidate)>,
    /// Paths that have become unreadable.
    problems: Vec<(PathBuf, io::Error)>,
}

/// Watched paths and their last scan.
struct Scanner {
    paths: Vec<PathBuf>,
    /// Hash of each file's state, by the hash of its path: sixteen bytes per file. The odds that
    /// two of 50,000 paths collide are one in ten billion.
    seen: HashMap<FileKey, u64>,
    digest: RandomState,
    problems: HashMap<PathBuf, io::ErrorKind>,
    /// Closed when the watch is dropped.
    reports: mpsc::Sender<Batch>,
}

impl Scanner {
    fn new(paths: &[PathBuf], reports: mpsc::Sender<Batch>) -> Scanner {
        let (seen, problems) = Default::default();
        Scanner { paths: paths.to_vec(), seen, digest: RandomState::new(), problems, reports }
    }

    /// Scans everything; `None` if the watch is dropped.
    fn scan(&mut self) -> Option<Scan> {
        let mut scan = Scan { began: Instant::now(), changed: Vec::new(), problems: Vec::new() };
        let seen = HashMap::with_capacity(self.seen.len());
        let before = std::mem::replace(&mut self.seen, seen);
        let problems = std::mem::take(&mut self.problems);
        for given in self.paths.clone() {
            match files::if_exists(fs::canonicalize(&given)) {
                Ok(None) => {}
                Ok(Some(real)) => self.below(&given, &real, &before, &mut scan),
                Err(error) => self.problem(given, error, &mut scan),
            }
        }
        scan.problems.retain(|(path, error)| problems.get(path) != Some(&error.kind()));
        (!self.reports.is_closed()).then_some(scan)
    }

    /// Scans `real`, the path without links, which identifies a file that two paths lead to.
    fn below(
        &mut self,
        given: &Path,
        real: &Path,
        before: &HashMap<FileKey, u64>,
        scan: &mut Scan,
    ) {
        let shown = |path: &Path| match path.strip_prefix(real) {
            Ok(below) if below.as_os_str().is_empty() => given.to_owned(),
            Ok(below) => given.join(below),
            Err(_) => path.to_owned(),
        };
        let _ = visit(real, &mut |met| {
            match met {
                Visited::File { path, meta, is_link } => {
                    let linked = is_link.then(|| fs::canonicalize(path).ok()).flatten();
                    let key = self.digest.hash_one(linked.as_deref().unwrap_or(path).as_os_str());
                    let state = self.digest.hash_one(file_state(meta));
                    let is_second = self.seen.insert(key, state).is_some();
                    if !is_second && before.get(&key) != Some(&state) {
                        let file = Candidate::of(shown(path), path == real, meta);
                        scan.changed.push((key, file));
                    }
                }
                Visited::Problem(path, error) => self.problem(shown(path), error, scan),
            }
            match self.reports.is_closed() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
    }

    fn problem(&mut self, path: PathBuf, error: io::Error, scan: &mut Scan) {
        let kind = error.kind();
        if kind != io::ErrorKind::NotFound && self.problems.insert(path.clone(), kind).is_none() {
            scan.problems.push((path, error));
        }
    }
}

/// Metadata that changes with a file, including permissions, since it may have become readable.
#[cfg(unix)]
fn file_state(meta: &Metadata) -> impl std::hash::Hash {
    use std::os::unix::fs::MetadataExt;
    let file = (meta.dev(), meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec());
    (file, meta.mode(), meta.uid(), meta.gid())
}

#[cfg(not(unix))]
fn file_state(meta: &Metadata) -> impl std::hash::Hash {
    (meta.len(), meta.modified().ok(), meta.created().ok())
}
