//! Looks at files and folders and says what differs from the last look. It blocks, so it is done on a
//! thread that may; it is the only part that touches the file system.

use super::events::Events;
use super::seen::Seen;
use crate::edge::walk::{Candidate, Met, visit, visit_below};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// What to look at.
#[derive(Debug)]
pub(super) enum Look {
    /// Everything.
    All,
    /// Files and folders that events named.
    Paths(HashSet<PathBuf>),
    /// Whether the named folders are there and are the same; files that were named.
    Roots,
    /// Files that are to be told, whether they are still there.
    Again(Vec<PathBuf>),
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Files that are new or different; after [`Look::Again`], those that are there.
    pub(super) files: Vec<Candidate>,
    /// What could not be looked at, and was not told before.
    pub(super) problems: Vec<(PathBuf, io::Error)>,
    /// Whether a named folder came, went or was replaced, so that everything is to be looked at.
    pub(super) roots_changed: bool,
}

/// Looks, and remembers the last look.
#[derive(Debug)]
pub(super) struct Lookout {
    roots: Vec<Root>,
    events: Events,
    seen: Seen,
    problems: HashMap<PathBuf, io::ErrorKind>,
    /// Ends a look early.
    stop: CancellationToken,
}

/// A path that was named.
#[derive(Clone, Debug)]
struct Root {
    given: PathBuf,
    /// What is there, if anything is.
    place: Option<Place>,
}

/// What stands at a path.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Place {
    /// Its path without links: so events name it, and so one file is known by two ways to it.
    real: PathBuf,
    /// Which folder it is; none for a file, which may be replaced as often as it likes.
    folder: Option<(u64, u64)>,
}

impl Lookout {
    /// Looks at what is at and under `paths`, until `stop`.
    pub(super) fn new(paths: &[PathBuf], events: Events, stop: CancellationToken) -> Lookout {
        let root = |path: &PathBuf| Root { given: path.clone(), place: None };
        let roots = paths.iter().map(root).collect();
        Lookout { roots, events, seen: Seen::default(), problems: HashMap::new(), stop }
    }

    /// Whether there are no events, so that looking must find everything.
    pub(super) fn polls(&self) -> bool {
        self.events.are_off()
    }

    /// Looks.
    pub(super) fn look(&mut self, look: Look) -> Report {
        let mut report = Report::default();
        match look {
            Look::All => self.look_at_all(&mut report),
            Look::Paths(paths) => self.look_at_paths(&paths, &mut report),
            Look::Roots => self.look_at_roots(&mut report),
            Look::Again(paths) => report.files = self.look_again(paths),
        }
        report
    }

    fn look_at_all(&mut self, report: &mut Report) {
        let told = std::mem::take(&mut self.problems);
        self.settle_roots(report);
        self.seen.begin_all();
        for root in self.roots.clone() {
            if self.look_below(&root, Path::new(""), report).is_break() {
                break;
            }
        }
        self.seen.end_all();
        report.problems.retain(|(path, error)| told.get(path) != Some(&error.kind()));
    }

    fn look_at_paths(&mut self, paths: &HashSet<PathBuf>, report: &mut Report) {
        for path in paths {
            // Two roots may hold it, and the walk from one of them may pass it over.
            for root in self.roots.clone() {
                let Some(below) = root.way_to(path) else { continue };
                if below.as_os_str().is_empty() && !path.exists() {
                    self.forget(&root);
                } else if self.look_below(&root, below, report).is_break() {
                    return;
                }
            }
        }
    }

    /// A root went. If it is made again, even at once, it is not taken for the same one.
    fn forget(&mut self, gone: &Root) {
        for root in self.roots.iter_mut().filter(|root| root.place == gone.place) {
            root.place = None;
        }
    }

    fn look_at_roots(&mut self, report: &mut Report) {
        for root in self.roots.clone() {
            let place = place_at(&root.given).unwrap_or_default();
            report.roots_changed |= place != root.place;
            if place == root.place && place.is_some_and(|place| place.folder.is_none()) {
                let _ = self.look_below(&root, Path::new(""), report);
            }
        }
    }

    /// What went before it was told is news again, should it come back as it was.
    fn look_again(&mut self, paths: Vec<PathBuf>) -> Vec<Candidate> {
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            let named = self.roots.iter().any(|root| root.given.as_os_str() == path.as_os_str());
            if let Ok(meta) = fs::metadata(&path)
                && (meta.is_file() || named && !meta.is_dir())
            {
                files.push(Candidate::of(path, named, &meta));
            } else {
                self.seen.forget(&path);
            }
        }
        files
    }

    /// Finds out what stands at the named paths, and follows it.
    fn settle_roots(&mut self, report: &mut Report) {
        let mut roots = std::mem::take(&mut self.roots);
        let (mut changed, mut waiting) = (false, 0);
        for root in &mut roots {
            let place = place_at(&root.given).unwrap_or_else(|error| {
                self.trouble(root.given.clone(), error, report);
                None
            });
            waiting += usize::from(place.is_none());
            changed |= place != root.place;
            root.place = place;
        }
        self.roots = roots;
        if !changed {
            return;
        }
        if waiting > 0 {
            tracing::info!(folders = waiting, "what is not there yet is waited for");
        }
        self.events.reopen();
        for place in self.roots.iter().filter_map(|root| root.place.as_ref()) {
            self.events.check_mount(&place.real);
            if place.folder.is_some() {
                self.events.follow_tree(&place.real);
            }
        }
    }

    /// Looks at what stands at and under `below` in a root.
    fn look_below(&mut self, root: &Root, below: &Path, report: &mut Report) -> ControlFlow<()> {
        let Some(Place { real, folder }) = &root.place else { return ControlFlow::Continue(()) };
        let mut see = |met: Met<'_>| {
            self.see(root, real, met, report);
            if self.stop.is_cancelled() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        if folder.is_some() { visit_below(real, below, &mut see) } else { visit(real, &mut see) }
    }

    fn see(&mut self, root: &Root, real: &Path, met: Met<'_>, report: &mut Report) {
        match met {
            // Followed before it is listed: what comes in between is then told by an event.
            Met::Folder(path) => self.events.follow_one(path),
            Met::File { path, meta, is_link } => {
                let target = is_link.then(|| fs::canonicalize(path).ok()).flatten();
                if target.is_some() {
                    self.events.follow_one(path);
                }
                if self.seen.is_news(target.as_deref().unwrap_or(path), meta) {
                    let (path, named) = (root.shown(real, path), path == real);
                    report.files.push(Candidate::of(path, named, meta));
                }
            }
            Met::Problem(path, error) => self.trouble(root.shown(real, path), error, report),
        }
    }

    /// Reports what could not be looked at, unless it is gone or was told before.
    fn trouble(&mut self, path: PathBuf, error: io::Error, report: &mut Report) {
        let kind = error.kind();
        if kind != io::ErrorKind::NotFound && self.problems.insert(path.clone(), kind) != Some(kind)
        {
            report.problems.push((path, error));
        }
    }
}

impl Root {
    /// The way down to `path`, which an event named, if it is at or under this one.
    fn way_to<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        path.strip_prefix(&self.place.as_ref()?.real).ok()
    }

    /// A path under `real` as it is shown.
    fn shown(&self, real: &Path, path: &Path) -> PathBuf {
        match path.strip_prefix(real) {
            Ok(below) if below.as_os_str().is_empty() => self.given.clone(),
            Ok(below) => self.given.join(below),
            Err(_) => path.to_owned(),
        }
    }
}

/// What stands at `path`; none if nothing does.
fn place_at(path: &Path) -> io::Result<Option<Place>> {
    let found = fs::canonicalize(path).and_then(|real| Ok((fs::metadata(&real)?, real)));
    match found {
        Ok((meta, real)) => {
            Ok(Some(Place { real, folder: meta.is_dir().then(|| identity(&meta)) }))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Tells a folder from another one that took its place.
#[cfg(unix)]
fn identity(meta: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (meta.dev(), meta.ino())
}

/// Tells a folder from another one that took its place.
#[cfg(not(unix))]
fn identity(meta: &fs::Metadata) -> (u64, u64) {
    let made = meta.created().ok();
    let since = made.and_then(|made| made.duration_since(std::time::UNIX_EPOCH).ok());
    (0, since.map_or(0, |since| since.as_secs()))
}
