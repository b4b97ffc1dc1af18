//! File system events, as a signal that a scan is due.

use notify::event::{AccessKind, AccessMode, ModifyKind, RemoveKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher, WatcherKind};
use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// Signal from the event thread.
#[derive(Debug, Default)]
pub(super) struct Signal {
    pub(super) changed: Notify,
    /// True if a folder was removed or renamed, so that its path may now be another folder.
    moved: AtomicBool,
}

impl Signal {
    pub(super) fn note(&self, event: notify::Result<Event>) {
        let (is_change, moved) = match event.map(|event| event.kind) {
            // Reading a folder is an access event too.
            Ok(EventKind::Access(access)) => {
                (access == AccessKind::Close(AccessMode::Write), false)
            }
            Ok(EventKind::Remove(kind)) => (true, kind != RemoveKind::File),
            Ok(EventKind::Modify(kind)) => (true, matches!(kind, ModifyKind::Name(_))),
            Ok(EventKind::Create(_)) => (true, false),
            Ok(EventKind::Any | EventKind::Other) | Err(_) => (true, true),
        };
        if moved {
            self.moved.store(true, Ordering::Release);
        }
        if is_change {
            self.changed.notify_one();
        }
    }

    /// True if a folder was removed or renamed since the last call.
    pub(super) fn take_moved(&self) -> bool {
        self.moved.swap(false, Ordering::AcqRel)
    }
}

/// Watcher, and whether it watches whole trees. inotify watches a limited number of single folders,
/// so the scanner adds each one that it enters.
pub(super) struct Source {
    pub(super) watcher: Box<dyn Watcher + Send>,
    pub(super) takes_trees: bool,
}

pub(super) type Open = fn(Arc<Signal>) -> notify::Result<Source>;

pub(super) fn open(signal: Arc<Signal>) -> notify::Result<Source> {
    let takes_trees = RecommendedWatcher::kind() != WatcherKind::Inotify;
    let watcher = Box::new(notify::recommended_watcher(move |event| signal.note(event))?);
    Ok(Source { watcher, takes_trees })
}

pub(super) enum Events {
    /// Watched paths, with the identity that each had when it was added.
    On(Source, HashMap<PathBuf, Option<(u64, u64)>>),
    /// No events; scans find every change.
    Off,
}

impl Events {
    /// Opens an event source; logs a warning and returns `Off` if the system refuses.
    pub(super) fn open(open: Open, signal: &Arc<Signal>) -> Events {
        match open(Arc::clone(signal)) {
            Ok(source) => Events::On(source, HashMap::new()),
            Err(error) => Events::refused(&error),
        }
    }

    fn refused(error: &notify::Error) -> Events {
        tracing::warn!(
            reason = reason(error),
            "file system events are not available; folders are polled"
        );
        Events::Off
    }

    /// Forgets all paths, so that the next scan adds them again.
    pub(super) fn forget(&mut self) {
        if let Events::On(_, known) = self {
            known.clear();
        }
    }

    /// Adds a path found by a scan, unless it is watched already.
    pub(super) fn add(&mut self, path: &Path, is_root: bool) {
        let Events::On(Source { watcher, takes_trees }, known) = self else { return };
        if *takes_trees && !is_root {
            return;
        }
        let now = fs::metadata(path).ok().map(|meta| identity(&meta));
        if known.get(path) == Some(&now) {
            return;
        }
        let tree =
            if *takes_trees { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
        match watcher.watch(path, tree) {
            Ok(()) => {
                known.insert(path.to_owned(), now);
            }
            Err(error) if is_of_the_path(&error) => {}
            Err(error) => *self = Events::refused(&error),
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Events::Off) { "Off" } else { "On" })
    }
}

/// True if the error concerns only this path: gone or not readable. The scan reports it.
fn is_of_the_path(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::PathNotFound | notify::ErrorKind::WatchNotFound => true,
        notify::ErrorKind::Io(error) => matches!(
            error.kind(),
            io::ErrorKind::NotFound
                | io::ErrorKind::PermissionDenied
                | io::ErrorKind::NotADirectory
        ),
        notify::ErrorKind::Generic(_)
        | notify::ErrorKind::InvalidConfig(_)
        | notify::ErrorKind::MaxFilesWatch => false,
    }
}

/// Reason without the path, which `notify` includes in its text.
fn reason(error: &notify::Error) -> String {
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => {
            "no watches are left: raise fs.inotify.max_user_watches".to_owned()
        }
        // EMFILE: too many inotify instances or open files.
        notify::ErrorKind::Io(error) if error.raw_os_error() == Some(24) => {
            "no instances are left: raise fs.inotify.max_user_instances or `ulimit -n`".to_owned()
        }
        notify::ErrorKind::Io(error) => error.to_string(),
        notify::ErrorKind::Generic(reason) => reason.clone(),
        notify::ErrorKind::PathNotFound
        | notify::ErrorKind::WatchNotFound
        | notify::ErrorKind::InvalidConfig(_) => "the system refuses them".to_owned(),
    }
}

/// Identity of a file or folder: device and inode.
#[cfg(unix)]
pub(super) fn identity(meta: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (meta.dev(), meta.ino())
}

/// Identity of a file or folder, approximated by its creation time.
#[cfg(not(unix))]
pub(super) fn identity(meta: &fs::Metadata) -> (u64, u64) {
    let made = meta.created().ok();
    let since = made.and_then(|made| made.duration_since(std::time::UNIX_EPOCH).ok());
    (0, since.map_or(0, |since| since.as_secs()))
}
