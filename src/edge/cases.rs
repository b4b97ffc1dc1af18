//! Folders of prompt tests on the disk: which there are, what each holds, and how a new one is made. What
//! the files say is for others to read.

use super::case_names::{self, Scope};
use super::disk;
use super::walk::Candidate;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What makes a folder a case.
pub const CASE_FILE: &str = "case.toml";
/// The gold of a case.
pub const GOLD_FILE: &str = "gold.json";
/// Answers to the whole transcript, of which the cassette is made.
pub const ANSWERS_FILE: &str = "answers.json";
/// Accepted recordings.
pub const CASSETTE: &str = "cassette";
/// Recordings that wait for a person's word.
pub const CASSETTE_NEW: &str = "cassette.new";
/// The memory directory that the records must come to.
pub const EXPECTED: &str = "expected";
/// What a transcript's name begins with, before the dot.
const TRANSCRIPT: &str = "transcript";
/// How deep cases may stand below a folder that is named.
pub(super) const DEPTH_MAX: usize = 4;
/// What the name of a gold file of a suite ends with.
pub(super) const GOLD_OF_SUITE: &str = ".gold.json";
/// Cases of one run; more are a mistake in the folder that was named.
const CASES_MAX: usize = 100_000;
/// The largest file of a case that is read as text, in bytes; transcripts and cassettes have bounds of their own.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Files of an expected directory.
const EXPECTED_MAX: usize = 1_000;

/// Where a case is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CasePlace {
    /// What it is called: its folder's name, with those of the folders between it and the folder of cases.
    pub name: String,
    /// What there is of it.
    pub is: Place,
}

/// What there is of a case.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Place {
    /// A folder of its own.
    Folder(PathBuf),
    /// A gold file in a suite: a folder with `gold`, `transcripts` and `answers`.
    Suite {
        /// The suite.
        root: PathBuf,
        /// The gold file.
        gold: PathBuf,
    },
}

/// The files of a case, unread where others read them.
#[derive(Clone, Debug)]
pub struct CaseFiles {
    /// `case.toml`.
    pub case: String,
    /// `gold.json`.
    pub gold: String,
    /// The transcript.
    pub transcript: Candidate,
    /// `answers.json`, if there is one.
    pub answers: Option<String>,
    /// Files of `expected`, if there is such a folder, by their paths in it.
    pub expected: Option<BTreeMap<String, String>>,
}

/// What could not be used, and why.
pub type Unusable = (PathBuf, String);

/// The cases at and below `paths`, in order of their names; which cases that covers, whether they are there or not;
/// and what was named and holds none.
pub fn find(paths: &[PathBuf]) -> (Vec<CasePlace>, Scope, Vec<Unusable>) {
    let (mut by_path, mut wrong) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    for path in paths {
        let mut here = Vec::new();
        if let Err(error) = look(path, "", DEPTH_MAX, &mut here) {
            let what = match path.is_dir() {
                true => format!("cannot be read: {error}"),
                false => "there is no such folder: name a case or a folder of cases".to_owned(),
            };
            wrong.push((path.clone(), what));
            continue;
        }
        if here.is_empty() {
            let what = "holds no prompt test: a case is a folder with case.toml, transcript.* and gold.json";
            wrong.push((path.clone(), format!("{what}; `annalist test new` makes one")));
        }
        here.retain(|it| {
            seen.insert(it.is.path().canonicalize().unwrap_or_else(|_| it.is.path().to_owned()))
        });
        by_path.push((path.clone(), here));
    }
    let (mut found, scope) = case_names::name(by_path);
    found.sort_by(|one, other| one.name.cmp(&other.name));
    if found.len() > CASES_MAX {
        let what = format!("{} prompt tests; {CASES_MAX} at most are run at once", found.len());
        wrong.extend(paths.first().map(|path| (path.clone(), what)));
        found.truncate(CASES_MAX);
    }
    (found, scope, wrong)
}

impl Place {
    /// The folder, or the gold file.
    pub fn path(&self) -> &Path {
        match self {
            Place::Folder(path) => path,
            Place::Suite { gold, .. } => gold,
        }
    }
}

fn look(path: &Path, name: &str, depth: usize, found: &mut Vec<CasePlace>) -> io::Result<()> {
    if path.join(CASE_FILE).is_file() {
        let own =
            || path.canonicalize().ok()?.file_name().map(|it| it.to_string_lossy().into_owned());
        let name = if name.is_empty() { own().unwrap_or_default() } else { name.to_owned() };
        found.push(CasePlace { name, is: Place::Folder(path.to_owned()) });
        return Ok(());
    }
    if ["gold", "transcripts", "answers"].iter().all(|it| path.join(it).is_dir()) {
        return suite(path, name, found);
    }
    let mut below: Vec<(String, PathBuf)> = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let inner = entry.file_name().to_string_lossy().into_owned();
        if !inner.starts_with('.') && entry.path().is_dir() {
            below.push((inner, entry.path()));
        }
    }
    below.sort();
    if depth == 0 {
        return Ok(());
    }
    for (inner, path) in below {
        let name = if name.is_empty() { inner } else { format!("{name}/{inner}") };
        // A case that nobody can see must not pass.
        let at = |error| io::Error::other(format!("{}: {error}", path.display()));
        look(&path, &name, depth - 1, found).map_err(at)?;
    }
    Ok(())
}

fn suite(root: &Path, name: &str, found: &mut Vec<CasePlace>) -> io::Result<()> {
    for entry in fs::read_dir(root.join("gold"))? {
        let gold = entry?.path();
        let file = gold.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(stem) = file.strip_suffix(GOLD_OF_SUITE) else { continue };
        let name = if name.is_empty() { stem.to_owned() } else { format!("{name}/{stem}") };
        found.push(CasePlace { name, is: Place::Suite { root: root.to_owned(), gold } });
    }
    Ok(())
}

/// Reads the files of a case in a folder.
///
/// # Errors
/// One line: which file, and what is wrong with it.
pub fn read(folder: &Path) -> Result<CaseFiles, String> {
    let expected = folder.join(EXPECTED);
    Ok(CaseFiles {
        case: needed(&folder.join(CASE_FILE))?,
        gold: needed(&folder.join(GOLD_FILE))?,
        transcript: transcript(folder)?,
        answers: text(&folder.join(ANSWERS_FILE))?,
        expected: if expected.is_dir() { Some(directory(&expected)?) } else { None },
    })
}

/// The text of a file that must be there.
///
/// # Errors
/// One line: which file, and what is wrong with it.
pub fn needed(path: &Path) -> Result<String, String> {
    text(path)?.ok_or_else(|| format!("{}: is missing", path.display()))
}

/// A file that others will read.
///
/// # Errors
/// One line: which file, and what is wrong with it.
pub fn candidate(path: &Path) -> Result<Candidate, String> {
    match fs::metadata(path) {
        Ok(meta) if meta.is_file() => Ok(Candidate::of(path.to_owned(), true, &meta)),
        Ok(_) => Err(format!("{}: is no file", path.display())),
        Err(error) => Err(format!("{}: cannot be read: {error}", path.display())),
    }
}

fn text(path: &Path) -> Result<Option<String>, String> {
    let bytes = fs::metadata(path).map_or(0, |meta| meta.len());
    if bytes > FILE_BYTES_MAX {
        return Err(format!(
            "{}: {bytes} bytes; {FILE_BYTES_MAX} at most are read",
            path.display()
        ));
    }
    disk::read_if_there(path)
        .map_err(|error| format!("{}: cannot be read: {error}", path.display()))
}

/// The one file of a folder that is called `transcript.*`.
fn transcript(folder: &Path) -> Result<Candidate, String> {
    let entries = fs::read_dir(folder)
        .map_err(|error| format!("{}: cannot be read: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = paths
        .filter(|path| path.file_stem().is_some_and(|stem| stem == TRANSCRIPT) && path.is_file())
        .collect();
    found.sort();
    match found.as_slice() {
        [path] => candidate(path),
        [] => Err(format!("{}: expected one transcript.*, found none", folder.display())),
        [one, other, ..] => Err(format!(
            "{}: expected one transcript.*, found {} and {}",
            folder.display(),
            one.file_name().unwrap_or_default().to_string_lossy(),
            other.file_name().unwrap_or_default().to_string_lossy()
        )),
    }
}

/// The Markdown files of a folder and of those in it, by their paths.
fn directory(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let wrong = |path: &Path, error: &str| format!("{}: cannot be read: {error}", path.display());
    let mut files = BTreeMap::new();
    let mut waiting = vec![(root.to_owned(), String::new(), 0)];
    // Bounded by DEPTH_MAX and EXPECTED_MAX.
    while let Some((folder, before, depth)) = waiting.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| wrong(&folder, &error.to_string()))?;
        for entry in entries {
            let entry = entry.map_err(|error| wrong(&folder, &error.to_string()))?;
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() && depth < DEPTH_MAX {
                waiting.push((path, format!("{before}{name}/"), depth + 1));
            } else if path.is_file() && path.extension().is_some_and(|it| it == "md") {
                let text = disk::read_to_string(&path);
                let text = text.map_err(|error| wrong(&path, &error.to_string()))?;
                files.insert(format!("{before}{name}"), text);
            }
            if files.len() > EXPECTED_MAX {
                return Err(wrong(root, &format!("more than {EXPECTED_MAX} files")));
            }
        }
    }
    Ok(files)
}

/// Writes `text` to `path`, and the folders to it, unless it is so already; says whether it was not.
///
/// # Errors
/// Those of the file system.
pub fn bring(path: &Path, text: &str) -> io::Result<bool> {
    // A pipe or a device has no text to compare with.
    if path.is_file() && disk::read_if_there(path)?.as_deref() == Some(text) {
        return Ok(false);
    }
    fs::create_dir_all(disk::folder_of(path)?)?;
    disk::replace(path, text)?;
    Ok(true)
}

/// Takes a file away; says whether it was there.
///
/// # Errors
/// Those of the file system.
pub fn take_away(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes the folder of a new case; false, and nothing is done, if there is something by that name.
///
/// # Errors
/// Those of the file system.
pub fn make(folder: &Path) -> io::Result<bool> {
    fs::create_dir_all(disk::folder_of(folder)?)?;
    match fs::create_dir(folder) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Copies a transcript into the folder of a case, under the name that it has there.
///
/// # Errors
/// Those of the file system.
pub fn copy_transcript(from: &Path, folder: &Path) -> io::Result<PathBuf> {
    let mut to = folder.join(TRANSCRIPT);
    if let Some(extension) = from.extension() {
        to.set_extension(extension);
    }
    fs::copy(from, &to)?;
    Ok(to)
}

/// The recordings in a folder, by the names of their files without `.json`; none if there is no folder.
///
/// # Errors
/// Those of the file system.
pub fn recordings(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// Takes away what waits in `from`; the folder goes with its last file.
///
/// # Errors
/// Those of the file system.
pub fn drop_new(from: &Path, name: &str) -> io::Result<()> {
    take_away(&from.join(format!("{name}.json")))?;
    leave(from);
    Ok(())
}

/// Takes away a folder that is empty.
fn leave(folder: &Path) {
    // One that is not empty stays.
    let _ = fs::remove_dir(folder);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &Path, name: &str) {
        bring(&folder.join(name), "x\n").unwrap();
    }

    #[test]
    fn cases_are_found_below_what_is_named_and_called_by_their_way_down() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for case in ["b", "group/a", "group/b", "deep/1/2/3/4/5"] {
            put(root, &format!("{case}/case.toml"));
        }
        put(root, "b/cassette/inner/case.toml");
        let names = |paths: &[PathBuf]| -> Vec<String> {
            find(paths).0.into_iter().map(|it| it.name).collect()
        };
        assert_eq!(names(&[root.to_owned()]), ["b", "group/a", "group/b"]);
        assert_eq!(
            names(&[root.join("group"), root.join("group/a"), root.join("b")]),
            ["a", "b", "b"]
        );
        let (found, _, wrong) =
            find(&[root.join("no"), root.join("deep/1/2/3/4/5"), root.join("deep")]);
        assert_eq!((found.len(), wrong.len()), (1, 2), "{wrong:?}");
    }

    #[test]
    fn a_suite_has_a_case_for_each_gold_file() {
        let place = tempfile::tempdir().unwrap();
        for file in
            ["gold/a.md.gold.json", "gold/README.md", "transcripts/a.md", "answers/a.md.json"]
        {
            put(place.path(), file);
        }
        let (found, ..) = find(&[place.path().to_owned()]);
        assert_eq!(found.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["a.md"]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("case");
        assert!(make(&folder).unwrap() && !make(&folder).unwrap());
        for (file, missing) in [("case.toml", "case.toml"), ("gold.json", "gold.json")] {
            assert!(read(&folder).unwrap_err().contains(missing));
            put(&folder, file);
        }
        assert!(read(&folder).unwrap_err().contains("found none"));
        put(&folder, "transcript.md");
        put(&folder, "expected/sessions/one.md");
        let files = read(&folder).unwrap();
        assert!(files.expected.unwrap().contains_key("sessions/one.md") && files.answers.is_none());
        put(&folder, "transcript.txt");
        let error = read(&folder).unwrap_err();
        assert!(error.contains("transcript.md and transcript.txt"), "{error}");
    }

    #[test]
    fn recordings_wait_until_they_go_and_their_folder_with_the_last() {
        let place = tempfile::tempdir().unwrap();
        let new = place.path().join(CASSETTE_NEW);
        for name in ["a.json", "b.json"] {
            assert!(bring(&new.join(name), "{}").unwrap());
        }
        assert!(!bring(&new.join("a.json"), "{}").unwrap(), "twice writes nothing");
        drop_new(&new, "a").unwrap();
        assert_eq!(recordings(&new).unwrap(), ["b"]);
        drop_new(&new, "b").unwrap();
        assert!(!new.exists() && recordings(&new).unwrap().is_empty());
    }
}
