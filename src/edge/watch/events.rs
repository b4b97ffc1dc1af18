//! The system's events, as long as they can be had. Where they cannot, this says so once and is silent
//! from then on: everything is then found by looking.

use super::hints::Hints;
use super::mount::shared_kind;
use notify::{ErrorKind, RecommendedWatcher, RecursiveMode, Watcher, WatcherKind};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What gives events.
pub(super) struct Source {
    /// Takes the folders; dropping it ends the events and their thread.
    pub(super) watcher: Box<dyn Watcher + Send>,
    /// Whether it follows whole trees, as most do. Linux follows single folders and has room for a
    /// bounded number, so each is named to it, and the walk decides which ones.
    pub(super) takes_trees: bool,
}

/// Begins to give events, as hints.
pub(super) type Open = fn(Arc<Hints>) -> notify::Result<Source>;

/// Opens what this system has.
pub(super) fn open(hints: Arc<Hints>) -> notify::Result<Source> {
    let takes_trees = RecommendedWatcher::kind() != WatcherKind::Inotify;
    let watcher = Box::new(notify::recommended_watcher(move |event| hints.note(event))?);
    Ok(Source { watcher, takes_trees })
}

/// Follows folders by events.
pub(super) struct Events {
    open: Open,
    hints: Arc<Hints>,
    state: State,
}

enum State {
    Fresh,
    Open(Source),
    /// Events cannot be had.
    Off,
}

impl Events {
    /// Nothing is opened yet.
    pub(super) fn new(open: Open, hints: Arc<Hints>) -> Events {
        Events { open, hints, state: State::Fresh }
    }

    /// None are wanted.
    pub(super) fn off(hints: Arc<Hints>) -> Events {
        Events { open, hints, state: State::Off }
    }

    /// Whether there are no events.
    pub(super) fn are_off(&self) -> bool {
        matches!(self.state, State::Off)
    }

    /// Forgets every folder and opens afresh: events of folders that were moved away or deleted are
    /// then nobody's. Off stays off.
    pub(super) fn reopen(&mut self) {
        if self.are_off() {
            return;
        }
        // The old ones go first: there may be no room for both.
        self.state = State::Fresh;
        match (self.open)(Arc::clone(&self.hints)) {
            Ok(source) => self.state = State::Open(source),
            Err(error) => self.give_up(&reason(&error)),
        }
    }

    /// Gives up where `folder` is shared with other machines.
    pub(super) fn check_mount(&mut self, folder: &Path) {
        if !self.are_off()
            && let Some(kind) = shared_kind(folder)
        {
            self.give_up(&format!(
                "a folder lies on {kind}, which may be written to from elsewhere"
            ));
        }
    }

    /// Follows a named folder, where whole trees are followed.
    pub(super) fn follow_tree(&mut self, folder: &Path) {
        self.watch(folder, true);
    }

    /// Follows a folder or a linked file on the walk, where each is named. One that is followed already
    /// is followed again: its watch may have gone with a folder of that name.
    pub(super) fn follow_one(&mut self, path: &Path) {
        self.watch(path, false);
    }

    fn watch(&mut self, path: &Path, is_tree: bool) {
        let State::Open(Source { watcher, takes_trees }) = &mut self.state else { return };
        if *takes_trees != is_tree {
            return;
        }
        let mode = if is_tree { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
        if let Err(error) = watcher.watch(path, mode)
            && !is_of_the_path(&error)
        {
            self.give_up(&reason(&error));
        }
    }

    fn give_up(&mut self, reason: &str) {
        self.state = State::Off;
        tracing::warn!(
            reason,
            "events of the file system cannot be had; folders are polled instead"
        );
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Fresh => "fresh",
            State::Open(_) => "open",
            State::Off => "off",
        };
        f.debug_tuple("Events").field(&state).finish()
    }
}

/// Whether it is about the path alone: gone by now, or closed to us. The walk comes by and tells.
fn is_of_the_path(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::PathNotFound | ErrorKind::WatchNotFound => true,
        ErrorKind::Io(error) => matches!(
            error.kind(),
            io::ErrorKind::NotFound
                | io::ErrorKind::PermissionDenied
                | io::ErrorKind::NotADirectory
        ),
        ErrorKind::Generic(_) | ErrorKind::InvalidConfig(_) | ErrorKind::MaxFilesWatch => false,
    }
}

/// Why there are no events. Without the path, which `notify` puts into its text.
fn reason(error: &notify::Error) -> String {
    match &error.kind {
        ErrorKind::MaxFilesWatch => {
            "no watches are left: raise fs.inotify.max_user_watches".to_owned()
        }
        // EMFILE: of instances, or of open files.
        ErrorKind::Io(error) if error.raw_os_error() == Some(24) => {
            "no instances are left: raise fs.inotify.max_user_instances or `ulimit -n`".to_owned()
        }
        ErrorKind::Io(error) => error.to_string(),
        ErrorKind::Generic(what) => what.clone(),
        ErrorKind::PathNotFound | ErrorKind::WatchNotFound | ErrorKind::InvalidConfig(_) => {
            "the system refuses to give them".to_owned()
        }
    }
}
