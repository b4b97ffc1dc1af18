//! Scans the watched paths and compares them with the last scan; file system events signal that a scan
//! is due. Blocking, so it runs on its own thread; only this module touches the file system.

use crate::adapters::files;
use crate::adapters::walk::{Candidate, Visited, visit};
use notify::event::{AccessKind, AccessMode, ModifyKind, RemoveKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher, WatcherKind};
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Hash of a file's real path.
pub(super) type FileKey = u64;

#[derive(Debug)]
pub(super) struct Scan {
    pub(super) began: Instant,
    /// Files that are new or differ from the last scan.
    pub(super) changed: Vec<(FileKey, Candidate)>,
    /// Paths that have become unreadable.
    pub(super) problems: Vec<(PathBuf, io::Error)>,
}

/// Watched paths and their last scan.
pub(super) struct Scanner {
    roots: Vec<Root>,
    events: Events,
    signal: Arc<Signal>,
    /// Hash of each file's state, by the hash of its path: sixteen bytes per file. The odds that
    /// two of 50,000 paths collide are one in ten billion.
    seen: HashMap<FileKey, u64>,
    digest: RandomState,
    problems: HashMap<PathBuf, io::ErrorKind>,
    stop: CancellationToken,
}

#[derive(Clone, Debug)]
struct Root {
    given: PathBuf,
    target: Option<Target>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Target {
    /// Path without links, which identifies a file that two paths lead to.
    real: PathBuf,
    is_folder: bool,
    /// Hash of a folder's identity, or of a file's state.
    state: u64,
}

impl Scanner {
    pub(super) fn new(
        paths: &[PathBuf],
        events: Events,
        signal: Arc<Signal>,
        stop: CancellationToken,
    ) -> Scanner {
        let root = |path: &PathBuf| Root { given: path.clone(), target: None };
        Scanner {
            roots: paths.iter().map(root).collect(),
            events,
            signal,
            seen: HashMap::new(),
            digest: RandomState::new(),
            problems: HashMap::new(),
            stop,
        }
    }

    pub(super) fn polls(&self) -> bool {
        matches!(self.events, Events::Off)
    }

    pub(super) fn knows(&self, file: FileKey) -> bool {
        self.seen.contains_key(&file)
    }

    /// Scans if a root folder was added, removed or replaced, or a root file changed.
    pub(super) fn scan_if_roots_changed(&mut self) -> Option<Scan> {
        let same = |root: &Root| self.target(&root.given).unwrap_or_default() == root.target;
        if self.roots.iter().all(same) { None } else { self.scan() }
    }

    /// Scans everything; `None` if stopped.
    pub(super) fn scan(&mut self) -> Option<Scan> {
        let mut scan = Scan { began: Instant::now(), changed: Vec::new(), problems: Vec::new() };
        let seen = HashMap::with_capacity(self.seen.len());
        let before = std::mem::replace(&mut self.seen, seen);
        let problems = std::mem::take(&mut self.problems);
        if self.signal.take_moved() {
            self.events.forget();
        }
        for at in 0..self.roots.len() {
            let given = self.roots[at].given.clone();
            let target = self.target(&given).unwrap_or_else(|error| {
                self.problem(given.clone(), error, &mut scan);
                None
            });
            self.roots[at].target.clone_from(&target);
            let Some(target) = target else { continue };
            if self.below(&given, &target, &before, &mut scan).is_break() {
                return None;
            }
        }
        scan.problems.retain(|(path, error)| problems.get(path) != Some(&error.kind()));
        Some(scan)
    }

    fn below(
        &mut self,
        given: &Path,
        target: &Target,
        before: &HashMap<FileKey, u64>,
        scan: &mut Scan,
    ) -> ControlFlow<()> {
        let real = target.real.as_path();
        let shown = |path: &Path| match path.strip_prefix(real) {
            Ok(below) if below.as_os_str().is_empty() => given.to_owned(),
            Ok(below) => given.join(below),
            Err(_) => path.to_owned(),
        };
        visit(real, &mut |met| {
            match met {
                // Watched before it is listed, so that changes in between cause an event.
                Visited::Folder(path) => self.events.add(path, path == real),
                Visited::File { path, meta, is_link } => {
                    let linked = is_link.then(|| fs::canonicalize(path).ok()).flatten();
                    if linked.is_some() {
                        self.events.add(path, false);
                    }
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
            match self.stop.is_cancelled() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
    }

    fn problem(&mut self, path: PathBuf, error: io::Error, scan: &mut Scan) {
        let kind = error.kind();
        if kind != io::ErrorKind::NotFound && self.problems.insert(path.clone(), kind).is_none() {
            scan.problems.push((path, error));
        }
    }

    /// Target of `path`; `None` if it does not exist.
    fn target(&self, path: &Path) -> io::Result<Option<Target>> {
        let found = fs::canonicalize(path).and_then(|real| Ok((fs::metadata(&real)?, real)));
        let Some((meta, real)) = files::if_exists(found)? else { return Ok(None) };
        let is_folder = meta.is_dir();
        let state = match is_folder {
            true => self.digest.hash_one(identity(&meta)),
            false => self.digest.hash_one(file_state(&meta)),
        };
        Ok(Some(Target { real, is_folder, state }))
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
