//! Finds the files that a command names: files as they are, folders walked, in one order everywhere.
//! What a walk comes by is decided here alone; whoever watches folders asks the same walk.

use crate::domain::Timestamp;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, FileType, Metadata};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Folders that hold no transcripts and a great many files.
const PASSED_OVER: [&str; 4] = [".git", "node_modules", "target", ".annalist"];
/// How deep folders are walked; a deeper tree is a loop of some kind.
const DEPTH_MAX: usize = 32;

/// A file to read.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Candidate {
    /// The path as it will be shown: what was given, and the way down from there.
    pub path: PathBuf,
    /// Whether it was named itself, not found in a folder.
    pub named: bool,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was last changed.
    pub changed_at: Option<Timestamp>,
}

impl Candidate {
    /// The file at `path`, of which the file system says `meta`.
    pub fn of(path: PathBuf, named: bool, meta: &Metadata) -> Candidate {
        let changed = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let changed_at = changed.and_then(|since| Timestamp::from_secs(since.as_secs_f64()));
        Candidate { path, named, bytes: meta.len(), changed_at }
    }
}

/// What a walk comes by.
#[derive(Debug)]
pub enum Met<'a> {
    /// A folder, before what is in it.
    Folder(&'a Path),
    /// A file to read.
    File {
        /// Where it is.
        path: &'a Path,
        /// What the file system says of it; of the file that is linked to, if it is a link.
        meta: &'a Metadata,
        /// Whether it is a link, found in a folder.
        is_link: bool,
    },
    /// What could not be looked at.
    Problem(&'a Path, io::Error),
}

/// Takes what a walk comes by, and may end the walk.
pub type See<'a> = dyn FnMut(Met<'_>) -> ControlFlow<()> + 'a;

/// Every file under `paths`, each once, the largest first, so that of two copies of a conversation the
/// longer one is met first; and what could not be looked at.
pub fn walk(paths: &[PathBuf]) -> (Vec<Candidate>, Vec<(PathBuf, io::Error)>) {
    let (mut found, mut problems, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    for path in paths {
        let mut here = Vec::new();
        let _ = visit(path, &mut |met| {
            match met {
                Met::Folder(_) => {}
                Met::File { path: file, meta, .. } => {
                    let named = file.as_os_str() == path.as_os_str();
                    here.push(Candidate::of(file.to_owned(), named, meta));
                }
                Met::Problem(at, error) => problems.push((at.to_owned(), error)),
            }
            ControlFlow::Continue(())
        });
        here.retain(|file| {
            seen.insert(fs::canonicalize(&file.path).unwrap_or_else(|_| file.path.clone()))
        });
        found.extend(here);
    }
    in_order(&mut found);
    (found, problems)
}

/// Puts files into the order of [`walk`].
pub fn in_order(files: &mut [Candidate]) {
    files.sort_by(|one, other| {
        (Reverse(one.bytes), &one.path).cmp(&(Reverse(other.bytes), &other.path))
    });
}

/// Shows `see` everything at and under `path`. Breaks if `see` did.
pub fn visit(path: &Path, see: &mut See<'_>) -> ControlFlow<()> {
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => folder(path, DEPTH_MAX, see),
        Ok(meta) => see(Met::File { path, meta: &meta, is_link: false }),
        Err(error) => see(Met::Problem(path, error)),
    }
}

/// As [`visit`] of `root`, but only what stands at and under `below` in it. Nothing is shown where
/// that visit would not come by, or where nothing is.
pub fn visit_below(root: &Path, below: &Path, see: &mut See<'_>) -> ControlFlow<()> {
    let (Some(way), Some(name)) = (below.parent(), below.file_name()) else {
        return if below.as_os_str().is_empty() { visit(root, see) } else { see_nothing() };
    };
    let (mut path, mut depth) = (root.to_owned(), DEPTH_MAX);
    for part in way.components() {
        path.push(part);
        let is_folder = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir());
        if depth == 0 || !is_folder || !is_entered(part.as_os_str()) {
            return see_nothing();
        }
        depth -= 1;
    }
    path.push(name);
    match fs::symlink_metadata(&path) {
        Ok(meta) => meet(&path, (meta.file_type(), || Ok(meta)), depth, see),
        Err(error) if error.kind() == io::ErrorKind::NotFound => see_nothing(),
        Err(error) => see(Met::Problem(&path, error)),
    }
}

fn see_nothing() -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn is_entered(name: &OsStr) -> bool {
    PASSED_OVER.iter().all(|passed_over| name != *passed_over)
}

fn folder(path: &Path, depth: usize, see: &mut See<'_>) -> ControlFlow<()> {
    see(Met::Folder(path))?;
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => return see(Met::Problem(path, error)),
    };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return see(Met::Problem(path, error)),
        };
        let Ok(kind) = entry.file_type() else { continue };
        meet(&entry.path(), (kind, || entry.metadata()), depth, see)?;
    }
    see_nothing()
}

/// Meets one entry of a folder, whose kind is known and whose own metadata can be asked for. `depth`
/// is how much deeper the walk may go.
fn meet(
    path: &Path,
    (kind, own): (FileType, impl FnOnce() -> io::Result<Metadata>),
    depth: usize,
    see: &mut See<'_>,
) -> ControlFlow<()> {
    if kind.is_dir() {
        let name = path.file_name().unwrap_or_default();
        return if depth > 0 && is_entered(name) {
            folder(path, depth - 1, see)
        } else {
            see_nothing()
        };
    }
    // Links to folders may lead back up; links to files are files.
    let is_link = kind.is_symlink();
    match if is_link { fs::metadata(path) } else { own() } {
        Ok(meta) if meta.is_file() => see(Met::File { path, meta: &meta, is_link }),
        Ok(_) => see_nothing(),
        // A link that leads nowhere is nobody's loss; neither is a file that is gone by now.
        Err(error) if is_link || error.kind() == io::ErrorKind::NotFound => see_nothing(),
        Err(error) => see(Met::Problem(path, error)),
    }
}

/// Whether both paths name files that are there, and not the same one.
pub fn is_other_file(one: &str, other: &str) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one != other,
        // A file that is gone was moved or renamed.
        _ => false,
    }
}

/// Opens a file to read it.
pub fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(visit: impl FnOnce(&mut See<'_>) -> ControlFlow<()>) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        let flow = visit(&mut |met| {
            if let Met::File { path, .. } = met {
                found.insert(path.to_owned());
            }
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
        found
    }

    /// Every path under `folder`, whatever it is, without following links.
    fn all(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            found.push(entry.path());
            if entry.file_type().unwrap().is_dir() {
                all(&entry.path(), found);
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn looking_at_every_path_below_finds_what_the_walk_finds_and_no_more() {
        let place = tempfile::tempdir().unwrap();
        let (root, beside) = (place.path().join("root"), place.path().join("beside"));
        let deepest = "d/".repeat(DEPTH_MAX);
        for path in ["a", "a/b", "node_modules/c", "a/.git", &deepest, &format!("{deepest}e")] {
            fs::create_dir_all(root.join(path)).unwrap();
            File::create(root.join(path).join("x.jsonl")).unwrap();
        }
        fs::create_dir(&beside).unwrap();
        File::create(beside.join("y.jsonl")).unwrap();
        for (to, link) in [("y.jsonl", "file"), ("", "folder"), ("gone", "nowhere")] {
            std::os::unix::fs::symlink(beside.join(to), root.join("a").join(link)).unwrap();
        }
        let walked = files(|see| super::visit(&root, see));
        let mut paths = vec![root.join("a/folder/y.jsonl"), root.join("not there")];
        all(&root, &mut paths);
        let mut found = BTreeSet::new();
        for path in paths {
            let below = path.strip_prefix(&root).unwrap();
            let here = files(|see| visit_below(&root, below, see));
            assert_eq!(
                here,
                walked.iter().filter(|file| file.starts_with(&path)).cloned().collect()
            );
            found.extend(here);
        }
        assert_eq!(found, walked);
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!(files(|see| visit_below(&root, Path::new(""), see)), walked);
        assert_eq!(walk(&[root]).0.len(), walked.len());
    }
}
