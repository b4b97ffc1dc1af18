//! Follows folders and says which files changed; it opens none of them. Telling a file twice costs a
//! reading, so changes are gathered; not telling one would lose it, so every doubt is told.
//!
//! Three things find changes, each behind the one before: events of the system, a check of the named
//! folders every second, and a look at everything now and then, which alone remains where there are
//! no events. All three only say where to look; what is new is what differs from the last look.

mod events;
mod gather;
mod hints;
mod lookout;
mod mount;
mod rounds;
mod seen;
#[cfg(test)]
mod tests;

use super::clock;
use super::walk::{Candidate, in_order};
use events::{Events, Open};
use gather::Gather;
use hints::Hints;
use lookout::{Look, Lookout, Report};
use rounds::{Round, Rounds};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The shortest time that counts as quiet. It is longer than the steps of file systems' clocks, so
/// that a file that is told cannot change afterwards and still look the same.
pub const QUIET_MIN: Duration = Duration::from_millis(100);
/// The shortest poll.
pub const POLL_MIN: Duration = Duration::from_millis(10);

/// How changes are found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Method {
    /// By the system's events; by polling, as [`Options::poll`] says, where they cannot be had.
    Events,
    /// By looking at everything, with so long a pause in between, or longer where looking is slow.
    Poll(Duration),
}

/// How folders are followed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    /// How changes are found.
    pub method: Method,
    /// How long a file must rest before it is told.
    pub quiet: Duration,
    /// How often a file is told that does not rest.
    pub busy_max: Duration,
    /// How often everything is looked at beside events, for what they missed.
    pub rescan: Duration,
    /// How often everything is looked at where events cannot be had.
    pub poll: Duration,
}

impl Default for Options {
    /// Two seconds of rest, since an agent writes an answer in several goes; half a minute at most for
    /// a busy session; a minute between rescans.
    fn default() -> Options {
        Options {
            method: Method::Events,
            quiet: Duration::from_secs(2),
            busy_max: Duration::from_secs(30),
            rescan: Duration::from_secs(60),
            poll: Duration::from_secs(2),
        }
    }
}

/// Why folders cannot be followed. What is wrong with a folder itself is no error but a problem of a
/// batch.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum WatchError {
    /// No path, or an empty one.
    #[error("nothing to watch: name at least one folder, none with an empty name")]
    NoPath,
    /// Settings that cannot be kept.
    #[error("`quiet` must be 100 ms or more, and `busy_max` no shorter than `quiet`")]
    Quiet,
    /// A poll or a rescan without a pause.
    #[error("polls and rescans must be 10 ms apart or more")]
    Interval,
}

/// What to read.
#[derive(Debug, Default)]
pub struct Batch {
    /// Files that changed, in the order of [`walk`](super::walk::walk). They were there a moment ago.
    pub files: Vec<Candidate>,
    /// What could not be looked at; told once, for as long as it stays so.
    pub problems: Vec<(PathBuf, io::Error)>,
}

/// Folders that are followed. Dropping it ends that.
#[derive(Debug)]
pub struct Watch {
    paths: Vec<PathBuf>,
    options: Options,
    hints: Arc<Hints>,
    /// At home between looks.
    lookout: Option<Lookout>,
    /// A look that is under way on another thread.
    looking: Option<Looking>,
    rounds: Rounds,
    gather: Gather,
    /// Files that are due and not yet looked at again.
    due: Vec<PathBuf>,
    polling: bool,
    began: bool,
    stop: CancellationToken,
    /// Ends a look that is under way.
    _guard: DropGuard,
}

#[derive(Debug)]
struct Looking {
    /// The round that it is; none if it looks again at what is due.
    round: Option<Round>,
    task: JoinHandle<(Lookout, Report, Duration)>,
}

impl Watch {
    /// Will follow `paths`, which need not be there yet. Files that are named themselves are followed
    /// by looking at them every second.
    ///
    /// # Errors
    /// Paths or options that make no sense.
    pub fn start(paths: &[PathBuf], options: Options) -> Result<Watch, WatchError> {
        Watch::start_with(paths, options, events::open)
    }

    fn start_with(paths: &[PathBuf], options: Options, open: Open) -> Result<Watch, WatchError> {
        check(paths, &options)?;
        let (hints, stop) = (Arc::new(Hints::default()), CancellationToken::new());
        let events = match options.method {
            Method::Events => Events::new(open, Arc::clone(&hints)),
            Method::Poll(_) => Events::off(Arc::clone(&hints)),
        };
        let lookout = Some(Lookout::new(paths, events, stop.clone()));
        let rounds = Rounds::new(options.rescan, Instant::now());
        let gather = Gather::new(options.quiet, options.busy_max);
        let (paths, due, guard) = (paths.to_vec(), Vec::new(), stop.clone().drop_guard());
        Ok(Watch {
            paths,
            options,
            hints,
            lookout,
            looking: None,
            rounds,
            gather,
            due,
            polling: false,
            began: false,
            stop,
            _guard: guard,
        })
    }

    /// Whether changes are found by looking alone, as was asked for or because there are no events.
    pub fn polls(&self) -> bool {
        self.polling
    }

    /// Waits for what to read next. The first batch is everything that is there, and comes at once even
    /// if that is nothing; the next ones are what changed since. None when the runtime ends.
    ///
    /// Nothing is lost if the future is dropped before it is ready.
    pub async fn next(&mut self) -> Option<Batch> {
        loop {
            if let Some(looking) = &mut self.looking {
                let ended = (&mut looking.task).await;
                let round = self.looking.take().and_then(|looking| looking.round);
                match ended {
                    Ok((lookout, report, took)) => {
                        self.lookout = Some(lookout);
                        if let Some(batch) = self.ended(round, report, took) {
                            return Some(batch);
                        }
                    }
                    Err(error) if error.is_panic() => self.start_over(),
                    Err(_) => return None,
                }
            }
            let now = Instant::now();
            if !self.polling {
                self.due.extend(self.gather.due(now));
            }
            if !self.begin(now) {
                self.rest().await;
            }
        }
    }

    /// Waits for a hint or the time of something to do.
    async fn rest(&mut self) {
        let told = self.gather.next_due().filter(|_| !self.polling);
        let wake = self.rounds.next();
        tokio::select! {
            () = self.hints.arrived.notified() => self.rounds.hinted(Instant::now()),
            () = tokio::time::sleep_until(told.map_or(wake, |told| told.min(wake))) => {}
        }
    }

    /// Begins the next look; false if none is due.
    fn begin(&mut self, now: Instant) -> bool {
        let (round, look) = if self.due.is_empty() {
            let Some(round) = self.rounds.due(now) else { return false };
            self.rounds.begun(round);
            match round {
                Round::All => {
                    // What was hinted so far is looked at with the rest.
                    self.hints.take();
                    (Some(round), Look::All)
                }
                Round::Roots => (Some(round), Look::Roots),
                Round::Hints => {
                    let hinted = self.hints.take();
                    if hinted.anywhere {
                        self.rounds.lost(now);
                        return true;
                    }
                    (Some(round), Look::Paths(hinted.paths))
                }
            }
        } else {
            (None, Look::Again(std::mem::take(&mut self.due)))
        };
        if let Some(mut lookout) = self.lookout.take() {
            let task = tokio::task::spawn_blocking(move || {
                let began = Instant::now();
                let report = lookout.look(look);
                (lookout, report, began.elapsed())
            });
            self.looking = Some(Looking { round, task });
        }
        true
    }

    /// Takes what a look found; gives what is to be told at once.
    fn ended(&mut self, round: Option<Round>, report: Report, took: Duration) -> Option<Batch> {
        let now = Instant::now();
        self.mind_polling();
        let Some(round) = round else { return batch(report.files, report.problems) };
        self.rounds.ended(round, took, now);
        if report.roots_changed {
            self.rounds.lost(now);
        }
        if !std::mem::replace(&mut self.began, true) {
            return Some(self.first(report, now));
        }
        if round == Round::All && !report.files.is_empty() && !self.polling {
            tracing::debug!(files = report.files.len(), "found by looking, not by an event");
        }
        for file in report.files {
            self.gather.changed(file.path, now);
        }
        // Without events, only a second look shows that a file rests.
        if self.polling && round == Round::All {
            self.due.extend(self.gather.due(now));
        }
        batch(Vec::new(), report.problems)
    }

    /// The first batch. A file that may be in the middle of a change is told again when it rests.
    fn first(&mut self, report: Report, now: Instant) -> Batch {
        let clock = clock::now().0;
        let quiet = i64::try_from(self.options.quiet.as_millis()).unwrap_or(i64::MAX);
        for file in &report.files {
            if file.changed_at.is_none_or(|at| (clock - at.0).abs() < quiet) {
                self.gather.changed(file.path.clone(), now);
            }
        }
        let Report { mut files, problems, .. } = report;
        in_order(&mut files);
        Batch { files, problems }
    }

    /// Changes the pace when events have come to an end.
    fn mind_polling(&mut self) {
        if !self.polling && self.lookout.as_ref().is_some_and(Lookout::polls) {
            self.polling = true;
            let every = match self.options.method {
                Method::Events => self.options.poll,
                Method::Poll(every) => every,
            };
            self.rounds.poll(every, Instant::now());
        }
    }

    /// After a panic of a look, which took its memory along: begins afresh, by polling.
    fn start_over(&mut self) {
        tracing::error!("following folders failed; it begins afresh, by polling");
        let events = Events::off(Arc::clone(&self.hints));
        self.lookout = Some(Lookout::new(&self.paths, events, self.stop.clone()));
        self.mind_polling();
        self.rounds.ended(Round::All, Duration::ZERO, Instant::now());
    }
}

fn batch(mut files: Vec<Candidate>, problems: Vec<(PathBuf, io::Error)>) -> Option<Batch> {
    in_order(&mut files);
    (!files.is_empty() || !problems.is_empty()).then_some(Batch { files, problems })
}

fn check(paths: &[PathBuf], options: &Options) -> Result<(), WatchError> {
    if paths.is_empty() || paths.iter().any(|path| path.as_os_str().is_empty()) {
        return Err(WatchError::NoPath);
    }
    if options.quiet < QUIET_MIN || options.busy_max < options.quiet {
        return Err(WatchError::Quiet);
    }
    let poll = match options.method {
        Method::Events => options.poll,
        Method::Poll(every) => every,
    };
    if poll < POLL_MIN || options.rescan < POLL_MIN {
        return Err(WatchError::Interval);
    }
    Ok(())
}
