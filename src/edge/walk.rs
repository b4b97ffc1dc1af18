//! Finds the files that a command names: files as they are, folders walked, in one order everywhere.

use crate::domain::Timestamp;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
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

/// Every file under `paths`, each once, the largest first, so that of two copies of a conversation the
/// longer one is met first; and what could not be looked at.
pub fn walk(paths: &[PathBuf]) -> (Vec<Candidate>, Vec<(PathBuf, io::Error)>) {
    let (mut found, mut problems, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    for path in paths {
        let mut here = Vec::new();
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => folder(path, DEPTH_MAX, &mut here, &mut problems),
            Ok(meta) => here.push(candidate(path.clone(), true, &meta)),
            Err(error) => problems.push((path.clone(), error)),
        }
        here.retain(|file| {
            seen.insert(fs::canonicalize(&file.path).unwrap_or_else(|_| file.path.clone()))
        });
        found.extend(here);
    }
    found.sort_by(|one, other| {
        (Reverse(one.bytes), &one.path).cmp(&(Reverse(other.bytes), &other.path))
    });
    (found, problems)
}

fn folder(
    path: &Path,
    depth: usize,
    found: &mut Vec<Candidate>,
    problems: &mut Vec<(PathBuf, io::Error)>,
) {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => return problems.push((path.to_owned(), error)),
    };
    for entry in entries.flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        let passed_over = PASSED_OVER.iter().any(|name| entry.file_name() == *name);
        // Links to folders may lead back up; links to files are files.
        if kind.is_dir() && !passed_over && depth > 0 {
            folder(&path, depth - 1, found, problems);
        } else if !kind.is_dir()
            && let Ok(meta) = fs::metadata(&path)
            && meta.is_file()
        {
            found.push(candidate(path, false, &meta));
        }
    }
}

fn candidate(path: PathBuf, named: bool, meta: &fs::Metadata) -> Candidate {
    let changed = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let changed_at = changed.and_then(|since| Timestamp::from_secs(since.as_secs_f64()));
    Candidate { path, named, bytes: meta.len(), changed_at }
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
