//! Watches folders and reports changed files; opens none of them.
//!
//! File system events only signal that a scan is due. A file is changed if it differs from the last
//! scan, and is reported once it has been quiet. Periodic rescans find what events missed; without
//! events, scans alone find every change. Reporting a file twice costs a read; missing one would
//! lose it.

mod scanner;
#[cfg(test)]
mod tests;

use super::clock;
use super::walk::{Candidate, in_order};
use scanner::{Events, Open, Scan, Scanner, Signal};
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Interval of checks for replaced or missing roots, which no event reports.
const ROOTS_EVERY: Duration = Duration::from_secs(1);
/// Pause after a scan as a multiple of its duration: scans use at most five percent of a core when
/// events request them, half a percent otherwise.
const PAUSE_FACTOR: u32 = 20;
const IDLE_PAUSE_FACTOR: u32 = 200;
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
    /// Interval of rescans, which find what events missed.
    pub rescan: Duration,
    /// Interval of scans if events are not available.
    pub poll: Duration,
}

impl Default for Options {
    /// Two seconds to debounce, since an agent writes an answer in several steps; half a minute for
    /// a busy session; a minute between rescans.
    fn default() -> Options {
        Options {
            quiet: Duration::from_secs(2),
            busy_max: Duration::from_secs(30),
            rescan: Duration::from_secs(60),
            poll: Duration::from_secs(2),
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
    options: Options,
    signal: Arc<Signal>,
    /// Scanner; owned by `scanning` during a scan.
    scanner: Option<Scanner>,
    scanning: Option<JoinHandle<(Scanner, Option<Scan>)>>,
    /// Changed files not reported yet, by [`FileKey`](scanner::FileKey).
    pending: HashMap<u64, Pending>,
    polling: bool,
    began: bool,
    scan_at: Instant,
    /// Earliest time of the next requested scan.
    free_at: Instant,
    roots_at: Instant,
    _stop: DropGuard,
}

#[derive(Debug)]
struct Pending {
    file: Candidate,
    /// Time of the first unreported change.
    since: Instant,
    last: Instant,
}

impl Watch {
    /// Watches `paths`, which need not exist yet. Files among them are checked every second.
    pub(crate) fn start(paths: &[PathBuf], options: Options) -> Watch {
        Watch::start_with(paths, options, scanner::open)
    }

    fn start_with(paths: &[PathBuf], options: Options, open: Open) -> Watch {
        let (signal, stop) = (Arc::new(Signal::default()), CancellationToken::new());
        let events = Events::open(open, &signal);
        let now = Instant::now();
        Watch {
            options,
            scanner: Some(Scanner::new(paths, events, Arc::clone(&signal), stop.clone())),
            signal,
            scanning: None,
            pending: HashMap::new(),
            polling: false,
            began: false,
            scan_at: now,
            free_at: now,
            roots_at: now,
            _stop: stop.drop_guard(),
        }
    }

    /// Waits for the next batch. The first contains all files and returns at once even if it is
    /// empty; later ones contain changes. `None` when the runtime shuts down.
    ///
    /// Cancel safe: nothing is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> Option<Batch> {
        loop {
            if let Some(scanning) = &mut self.scanning {
                let (scanner, scan) = match scanning.await {
                    Ok(ended) => ended,
                    Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                    Err(_) => return None,
                };
                self.scanning = None;
                self.polling = scanner.polls();
                self.scanner = Some(scanner);
                self.roots_at = Instant::now() + ROOTS_EVERY;
                if let Some(batch) = scan.and_then(|scan| self.batch(scan)) {
                    return Some(batch);
                }
            }
            let now = Instant::now();
            if self.scan_at <= now {
                self.scan(Scanner::scan);
            } else if self.roots_at <= now {
                self.scan(Scanner::scan_if_roots_changed);
            } else {
                self.rest().await;
            }
        }
    }

    async fn rest(&mut self) {
        tokio::select! {
            () = self.signal.changed.notified(), if !self.polling => {
                // A quarter of the debounce interval lets many events share a scan.
                let soon = Instant::now() + self.options.quiet / 4;
                self.scan_at = self.scan_at.min(soon.max(self.free_at));
            }
            () = tokio::time::sleep_until(self.scan_at.min(self.roots_at)) => {}
        }
    }

    fn scan(&mut self, scan: fn(&mut Scanner) -> Option<Scan>) {
        if let Some(mut scanner) = self.scanner.take() {
            self.scanning = Some(tokio::task::spawn_blocking(move || {
                let scan = scan(&mut scanner);
                (scanner, scan)
            }));
        }
    }

    /// Processes a scan and returns the files and problems to report.
    fn batch(&mut self, scan: Scan) -> Option<Batch> {
        let now = Instant::now();
        let is_first = !std::mem::replace(&mut self.began, true);
        if !is_first && !scan.changed.is_empty() {
            tracing::trace!(files = scan.changed.len(), "changed");
        }
        let mut files = Vec::new();
        // A file that was removed and reappears unchanged is new.
        self.pending.retain(|key, _| self.scanner.as_ref().is_some_and(|it| it.knows(*key)));
        for (key, file) in scan.changed {
            if is_first {
                files.push(file.clone());
                if !self.may_be_changing(&file) {
                    continue;
                }
            }
            let pending = self.pending.entry(key);
            let pending = pending.or_insert(Pending { file: file.clone(), since: now, last: now });
            (pending.file, pending.last) = (file, now);
        }
        let Options { quiet, busy_max, .. } = self.options;
        self.pending.retain(|_, pending| {
            // Only a scan that began after the interval proves that there was no change in it.
            let rests = pending.last + quiet <= scan.began;
            if rests || pending.since + busy_max <= now {
                files.push(pending.file.clone());
                pending.since = now;
            }
            !rests
        });
        self.plan(now, scan.began);
        in_order(&mut files);
        let batch = Batch { files, problems: scan.problems };
        (is_first || !batch.files.is_empty() || !batch.problems.is_empty()).then_some(batch)
    }

    fn plan(&mut self, now: Instant, began: Instant) {
        let took = now - began;
        let Options { quiet, busy_max, rescan, poll } = self.options;
        let every = if self.polling { poll } else { rescan };
        let due = |it: &Pending| (it.last + quiet).min(it.since + busy_max);
        self.free_at = now + (took * PAUSE_FACTOR).min(PAUSE_MAX);
        self.scan_at = now + every.max((took * IDLE_PAUSE_FACTOR).min(PAUSE_MAX));
        if let Some(due) = self.pending.values().map(due).min() {
            self.scan_at = self.scan_at.min(due.max(self.free_at));
        }
    }

    /// True if the first scan may have happened during a change of `file`.
    fn may_be_changing(&self, file: &Candidate) -> bool {
        let quiet = i64::try_from(self.options.quiet.as_millis()).unwrap_or(i64::MAX);
        file.changed_at.is_none_or(|at| (clock::now().0 - at.0).abs() < quiet)
    }
}
