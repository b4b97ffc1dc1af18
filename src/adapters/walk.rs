//! Finds the files given to a command: files as they are, folders recursively, in the same order on
//! every system. Watched folders use the same walk.

use super::{client_files, files};
use crate::domain::Timestamp;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs::{self, DirEntry, File, Metadata};
use std::io::{self, Read, Seek};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Folders with many files and no transcripts.
const PASSED_OVER: [&str; 4] = [".git", "node_modules", "target", ".annalist"];
/// Maximum depth of folders; a deeper tree is a loop.
const DEPTH_MAX: usize = 32;

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Candidate {
    /// Path as shown to users: the given path, and the way down from it.
    pub path: PathBuf,
    /// True if the path itself was given, false if it was found in a folder.
    pub named: bool,
    /// Size in bytes.
    pub bytes: u64,
    /// Modification time.
    pub changed_at: Option<Timestamp>,
}

impl Candidate {
    /// Creates a candidate from a path and its metadata.
    pub(crate) fn of(path: PathBuf, named: bool, meta: &Metadata) -> Candidate {
        Candidate { path, named, bytes: meta.len(), changed_at: files::changed_at(meta) }
    }
}

#[derive(Debug)]
pub(crate) enum Visited<'a> {
    File {
        path: &'a Path,
        /// Metadata, of the target if the path is a link.
        meta: &'a Metadata,
        /// True for a link found in a folder.
        is_link: bool,
    },
    Problem(&'a Path, io::Error),
}

pub(crate) type Visitor<'a> = dyn FnMut(Visited<'_>) -> ControlFlow<()> + 'a;

/// Returns every file under `paths` once, largest first, so that the longer of two copies of a
/// conversation comes first; and the paths that could not be read.
pub(crate) fn walk(paths: &[PathBuf]) -> (Vec<Candidate>, Vec<(PathBuf, io::Error)>) {
    let (mut found, mut problems, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    for path in paths {
        let mut here = Vec::new();
        let _ = visit(path, &mut |met| {
            match met {
                Visited::File { path: file, meta, .. } => {
                    let named = file.as_os_str() == path.as_os_str();
                    here.push(Candidate::of(file.to_owned(), named, meta));
                }
                Visited::Problem(at, error) => problems.push((at.to_owned(), error)),
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

/// Sorts files into the order of [`walk`].
pub(crate) fn in_order(files: &mut [Candidate]) {
    files.sort_by(|one, other| {
        (Reverse(one.bytes), &one.path).cmp(&(Reverse(other.bytes), &other.path))
    });
}

/// Calls `see` with everything at and under `path`. Breaks if `see` breaks.
pub(crate) fn visit(path: &Path, see: &mut Visitor<'_>) -> ControlFlow<()> {
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => folder(path, DEPTH_MAX, see),
        Ok(meta) => see(Visited::File { path, meta: &meta, is_link: false }),
        Err(error) => see(Visited::Problem(path, error)),
    }
}

fn folder(path: &Path, depth: usize, see: &mut Visitor<'_>) -> ControlFlow<()> {
    let has_events = client_files::is_openhands_folder(path);
    if has_events && let Ok(meta) = fs::metadata(path) {
        see(Visited::File { path, meta: &meta, is_link: false })?;
    }
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => return see(Visited::Problem(path, error)),
    };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return see(Visited::Problem(path, error)),
        };
        if !has_events || !client_files::is_openhands_event(&entry.path()) {
            show(&entry, depth, see)?;
        }
    }
    ControlFlow::Continue(())
}

/// Visits one entry of a folder; the walk may go `depth` levels deeper.
fn show(entry: &DirEntry, depth: usize, see: &mut Visitor<'_>) -> ControlFlow<()> {
    let nothing = ControlFlow::Continue(());
    let Ok(kind) = entry.file_type() else { return nothing };
    let path = &entry.path();
    if kind.is_dir() {
        let is_entered = depth > 0 && PASSED_OVER.iter().all(|name| entry.file_name() != *name);
        return if is_entered { folder(path, depth - 1, see) } else { nothing };
    }
    // Links to folders may form cycles; links to files count as files.
    let is_link = kind.is_symlink();
    match if is_link { fs::metadata(path) } else { entry.metadata() } {
        Ok(meta) if meta.is_file() => see(Visited::File { path, meta: &meta, is_link }),
        Ok(_) => nothing,
        // Dangling links and files deleted meanwhile are not problems.
        Err(error) if is_link || error.kind() == io::ErrorKind::NotFound => nothing,
        Err(error) => see(Visited::Problem(path, error)),
    }
}

/// True if both paths exist and are different files.
pub(crate) fn is_other_file(one: &str, other: &str) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one != other,
        // A missing file was moved or renamed.
        _ => false,
    }
}

/// Input that can be read twice.
pub(crate) trait Input: Read + Seek {}

impl<R: Read + Seek> Input for R {}

/// Opens a file, the records of a database or a folder of events. Rejects pipes: they cannot be read twice, and opening one waits for its writer.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn Input + Send>> {
    if client_files::is_openhands_folder(path) {
        return Ok(Box::new(client_files::openhands_records(path)?));
    }
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other(
            "not a regular file; copy it into one, or pipe it into `annalist enqueue -`",
        ));
    }
    let mut file = File::open(path)?;
    if let Some(records) = client_files::opencode_records(path, &mut file)? {
        return Ok(Box::new(records));
    }
    file.rewind()?;
    Ok(Box::new(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn linked_files_are_found_and_linked_folders_are_not_entered() {
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
        let found = walk(std::slice::from_ref(&root)).0;
        let found: BTreeSet<PathBuf> =
            found.iter().map(|it| it.path.strip_prefix(&root).unwrap().to_owned()).collect();
        let deepest = format!("{deepest}x.jsonl");
        let expected = ["a/file", "a/x.jsonl", "a/b/x.jsonl", &deepest];
        assert_eq!(found, expected.map(PathBuf::from).into());
    }
}
