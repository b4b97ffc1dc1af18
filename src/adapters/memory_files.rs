//! The memory directory on disk: its location, its files, and how they are written.

use super::{files, process};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// Locations in a project; the first that exists wins.
pub(crate) use crate::text::own_output::MEMORY_FOLDERS as PLACES;
/// Folders of records and sessions.
const FOLDERS: [&str; 2] = ["decisions", "sessions"];
/// Maximum number of files read per directory; 2,000 records and 2,000 sessions are many.
pub(crate) const FILES_MAX: usize = 20_000;
pub(crate) const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
const DEPTH_MAX: usize = 4;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct MemoryFolder {
    root: PathBuf,
    path: PathBuf,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct DirectoryRead {
    /// Texts by path in the directory.
    pub files: BTreeMap<String, Arc<str>>,
    /// Stamps of these files, taken before reading.
    pub stamps: BTreeMap<String, String>,
    /// Files not read because their stamps were known.
    pub known: BTreeSet<String>,
    /// Skipped files, with the reason.
    pub skipped: Vec<(String, &'static str)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WriteOutcome {
    Written,
    /// The file already had this content.
    Unchanged,
    /// Another program changed the file since the change was planned; left alone.
    ChangedMeanwhile,
}

impl MemoryFolder {
    /// Returns the directory of the project at `root`; `None` if there is none, or a link leads out
    /// of the project.
    pub(crate) fn find(root: &Path) -> io::Result<Option<MemoryFolder>> {
        let root = root.canonicalize()?;
        for place in PLACES {
            let path = root.join(place);
            let real = files::if_exists(path.canonicalize())?;
            if let Some(path) = real.filter(|real| real.is_dir() && real.starts_with(&root)) {
                return Ok(Some(MemoryFolder { root, path }));
            }
        }
        Ok(None)
    }

    /// The error of a project whose directory is behind a link out of it; `None` if no place has one.
    pub(crate) fn link_out(root: &Path) -> Option<io::Error> {
        let mut places = PLACES.iter().map(|place| root.join(place));
        places.find(|it| it.is_dir() || it.is_symlink()).map(|it| refused(&it, LINK_OUT))
    }

    /// Reopens the directory at `path`, an earlier result of [`path`](MemoryFolder::path); `None`
    /// if it is gone or another directory takes precedence.
    pub(crate) fn at(path: &Path) -> Option<MemoryFolder> {
        let found = MemoryFolder::find(MemoryFolder::project_of(path)?).ok().flatten()?;
        (found.path == path).then_some(found)
    }

    /// Folder of the project, with links resolved.
    pub(crate) fn project(&self) -> &Path {
        &self.root
    }

    /// Folder of the project whose directory would be `path`.
    pub(crate) fn project_of(path: &Path) -> Option<&Path> {
        let place = PLACES.iter().find(|place| path.ends_with(place))?;
        path.ancestors().nth(Path::new(place).iter().count())
    }

    /// Returns the directory of the nearest ancestor of `folder` that has one, stopping at a folder
    /// with a `.git`, which is a whole project. The directory in `home` belongs to all projects and
    /// counts only if `folder` is `home`.
    pub(crate) fn find_above(
        folder: &Path,
        home: Option<&Path>,
    ) -> io::Result<Option<MemoryFolder>> {
        let folder = folder.canonicalize()?;
        let home = home.and_then(|home| home.canonicalize().ok());
        // Ends at the root of the file system.
        for above in folder.ancestors() {
            if above != folder && home.as_deref() == Some(above) {
                break;
            }
            let found = MemoryFolder::find(above)?;
            if found.is_some() {
                return Ok(found);
            }
            if above.join(".git").exists() {
                break;
            }
        }
        Ok(None)
    }

    /// Creates the directory at the first of [`PLACES`] unless it exists, and its two folders. Fails if a link leads
    /// out of the project.
    pub(crate) fn make(root: &Path) -> io::Result<MemoryFolder> {
        let (there, root) = (MemoryFolder::find(root)?, &root.canonicalize()?);
        let path = there.map_or_else(|| root.join(PLACES[0]), |there| there.path);
        let nearest = path.ancestors().find(|it| it.symlink_metadata().is_ok()).unwrap_or(root);
        if !nearest.canonicalize().is_ok_and(|real| real.starts_with(root)) {
            return Err(refused(nearest, LINK_OUT));
        }
        for folder in FOLDERS {
            std::fs::create_dir_all(path.join(folder))?;
        }
        MemoryFolder::find(root)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Missing folders of records and sessions.
    pub(crate) fn missing_folders(&self) -> impl Iterator<Item = &'static str> {
        FOLDERS.into_iter().filter(|folder| !self.path.join(folder).is_dir())
    }

    /// Reads every Markdown file but large ones, ones not in UTF-8, and links out of the project.
    pub(crate) fn read(&self) -> io::Result<DirectoryRead> {
        self.read_but(&BTreeMap::new())
    }

    /// Like [`read`](MemoryFolder::read), but skips files whose stamps are in `known`.
    pub(crate) fn read_but(&self, known: &BTreeMap<String, Arc<str>>) -> io::Result<DirectoryRead> {
        let mut read = DirectoryRead::default();
        self.visit(&self.path, "", DEPTH_MAX, &mut |path, place| {
            let stamp = stamp(&place);
            if stamp.is_some() && stamp.as_deref() == known.get(&path).map(|it| &**it) {
                read.known.insert(path);
                return;
            }
            if read.files.len() >= FILES_MAX {
                read.skipped.push((path, "too many files"));
                return;
            }
            match self.text(&place) {
                Ok(text) => {
                    read.stamps.extend(stamp.map(|stamp| (path.clone(), stamp)));
                    read.files.insert(path, text.into());
                }
                Err(reason) => read.skipped.push((path, reason)),
            }
        })?;
        read.skipped.sort();
        Ok(read)
    }

    pub(crate) fn stamp(&self, path: &str) -> Option<String> {
        stamp(&self.inside(path).ok()?)
    }

    /// Removes temporary files of processes that were killed while writing.
    pub(crate) fn sweep(&self) -> io::Result<()> {
        let mut folders = vec![(self.path.clone(), DEPTH_MAX)];
        // Bounded by the number of folders and by their depth.
        while let Some((folder, depth)) = folders.pop() {
            files::sweep(&folder)?;
            for entry in std::fs::read_dir(&folder)? {
                let entry = entry?;
                let is_ours = !entry.file_name().to_string_lossy().starts_with('.');
                if is_ours && depth > 0 && entry.file_type()?.is_dir() {
                    folders.push((entry.path(), depth - 1));
                }
            }
        }
        Ok(())
    }

    /// Returns the sorted paths of the Markdown files; reads none.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        self.visit(&self.path, "", DEPTH_MAX, &mut |name, _| names.push(name))?;
        names.sort();
        names.truncate(FILES_MAX);
        Ok(names)
    }

    /// Returns the text of the file at `path`, or `None` if it does not exist.
    pub(crate) fn file(&self, path: &str) -> Result<Option<String>, &'static str> {
        let whole = match Path::new(path).parent().map(|folder| self.inside(folder)) {
            Some(Ok(folder)) => folder.join(Path::new(path).file_name().unwrap_or_default()),
            Some(Err(_)) | None => return Err("leads out of the directory"),
        };
        if whole.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(None);
        }
        self.text(&whole).map(Some)
    }

    /// Calls `see` with every Markdown file under `folder`: path in the directory, path on disk.
    fn visit(
        &self,
        folder: &Path,
        prefix: &str,
        depth: usize,
        see: &mut dyn FnMut(String, PathBuf),
    ) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            // Hidden folders, such as `.git`, belong to other tools. A folder is no file, whatever its name.
            if name.ends_with(".md") {
                see(path, entry.path());
            } else if kind.is_dir() && depth > 0 && !name.starts_with('.') {
                self.visit(&entry.path(), &format!("{path}/"), depth - 1, see)?;
            }
        }
        Ok(())
    }

    fn text(&self, path: &Path) -> Result<String, &'static str> {
        // No folder on the path is a link, and canonicalizing costs more than reading the file.
        let is_link = path.symlink_metadata().is_ok_and(|it| it.file_type().is_symlink());
        let real = match is_link {
            true => path.canonicalize().map_err(|_| "leads nowhere")?,
            false => path.to_owned(),
        };
        if !real.starts_with(&self.root) {
            return Err("leads out of the project");
        }
        let size = std::fs::metadata(&real).map_err(|_| "cannot be read")?;
        match (size.is_file(), size.len() <= FILE_BYTES_MAX) {
            (true, true) => files::read_to_string(&real).map_err(|error| {
                let is_binary = error.kind() == io::ErrorKind::InvalidData;
                if is_binary { "is not UTF-8 text" } else { "cannot be read" }
            }),
            (true, false) => Err("is too large"),
            (false, _) => Err("is not a regular file"),
        }
    }

    /// Replaces the file at `path` by `after` (`None`: removes it) if it still holds `before`
    /// (`None`: is absent). A new file never overwrites one that another process created meanwhile.
    pub(crate) fn write(
        &self,
        path: &str,
        before: Option<&str>,
        after: Option<&str>,
    ) -> io::Result<WriteOutcome> {
        let path = self.inside(path)?;
        let now = files::read_if_exists(&path)?;
        if now.as_deref() == after {
            return Ok(WriteOutcome::Unchanged);
        }
        if now.as_deref() != before {
            return Ok(WriteOutcome::ChangedMeanwhile);
        }
        let is_done = match (before, after) {
            (None, Some(text)) => files::create(&path, text)?,
            (Some(_), Some(text)) => files::replace(&path, text).map(|()| true)?,
            (_, None) => std::fs::remove_file(&path).map(|()| true)?,
        };
        Ok(if is_done { WriteOutcome::Written } else { WriteOutcome::ChangedMeanwhile })
    }

    /// Absolute path of a file. No component may be a link, or the write would go elsewhere.
    pub(crate) fn inside(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        let mut whole = self.path.clone();
        for part in path.as_ref().components() {
            match part {
                Component::Normal(name) => whole.push(name),
                Component::Prefix(_)
                | Component::RootDir
                | Component::CurDir
                | Component::ParentDir => return Err(io::ErrorKind::InvalidInput.into()),
            }
            if whole.symlink_metadata().is_ok_and(|it| it.file_type().is_symlink()) {
                return Err(refused(&whole, LINK));
            }
        }
        Ok(whole)
    }
}

const LINK: &str = "is a link, through which nothing is written: replace it by a folder or file";
const LINK_OUT: &str = "is a link that leads out of the project: replace it by a folder";

fn refused(path: &Path, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{} {what}", path.display()))
}

/// Identity of the program: version, size and time of its file. If that is unknown, no two processes have the same.
pub(crate) fn program() -> &'static str {
    static PROGRAM: LazyLock<String> = LazyLock::new(|| {
        let file = std::env::current_exe().and_then(std::fs::canonicalize).ok();
        let stamp = file.and_then(|path| stamp(&path));
        let stamp = stamp.unwrap_or_else(|| process::name().to_owned());
        format!("{} {stamp}", env!("CARGO_PKG_VERSION"))
    });
    &PROGRAM
}

/// Size and modification time of a file, to detect changes; `None` for a link.
fn stamp(path: &Path) -> Option<String> {
    let file = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    let changed = file.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(format!("{:x}:{:x}", file.len(), changed.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_that_is_there_wins() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(MemoryFolder::find(root.path()).unwrap(), None);
        std::fs::create_dir_all(root.path().join(".ai/memory")).unwrap();
        let found = MemoryFolder::find(root.path()).unwrap().unwrap();
        assert!(found.path().ends_with(".ai/memory"));
        std::fs::create_dir_all(root.path().join(".claude/memory")).unwrap();
        let found = MemoryFolder::find(root.path()).unwrap().unwrap();
        assert!(found.path().ends_with(".claude/memory"));
    }

    #[test]
    fn the_directory_of_the_nearest_folder_above_is_found_and_not_that_of_everybody() {
        let root = tempfile::tempdir().unwrap();
        let (home, deep) = (root.path().join("home"), root.path().join("home/work/app/src"));
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::create_dir_all(home.join(".claude/memory")).unwrap();
        let found = |from: &Path| {
            let found = MemoryFolder::find_above(from, Some(&home)).unwrap();
            found.map(|it| {
                it.path().strip_prefix(root.path().canonicalize().unwrap()).unwrap().to_owned()
            })
        };
        assert_eq!(found(&deep), None);
        assert_eq!(found(&home), Some("home/.claude/memory".into()));
        MemoryFolder::make(&home.join("work/app")).unwrap();
        assert_eq!(found(&deep), Some("home/work/app/.claude/memory".into()));
        // Folders above a repository belong to another project.
        std::fs::create_dir(deep.join(".git")).unwrap();
        assert_eq!(found(&deep), None);
    }

    #[test]
    fn files_are_listed_and_read_one_by_one() {
        let root = tempfile::tempdir().unwrap();
        let folder = MemoryFolder::make(root.path()).unwrap();
        folder.write("sessions/b.md", None, Some("b")).unwrap();
        folder.write("a.md", None, Some("a")).unwrap();
        assert_eq!(folder.names().unwrap(), ["a.md", "sessions/b.md"]);
        assert_eq!(folder.file("sessions/b.md"), Ok(Some("b".to_owned())));
        assert_eq!(folder.file("c.md"), Ok(None));
        assert!(folder.file("../a.md").is_err());
    }

    #[test]
    fn a_file_whose_stamp_is_known_is_read_when_it_changed() {
        let root = tempfile::tempdir().unwrap();
        let folder = MemoryFolder::make(root.path()).unwrap();
        folder.write("a.md", None, Some("a")).unwrap();
        folder.write("b.md", None, Some("b")).unwrap();
        let stamps = folder.read().unwrap().stamps;
        assert_eq!(folder.stamp("a.md").as_ref(), stamps.get("a.md"));
        let known = stamps.into_iter().map(|(path, stamp)| (path, stamp.into())).collect();
        folder.write("b.md", Some("b"), Some("longer")).unwrap();
        let read = folder.read_but(&known).unwrap();
        assert_eq!(Vec::from_iter(read.files.into_values()), [Arc::from("longer")]);
        assert_eq!(Vec::from_iter(read.known), ["a.md"]);
    }

    #[test]
    fn what_is_written_is_read() {
        let root = tempfile::tempdir().unwrap();
        let folder = MemoryFolder::make(root.path()).unwrap();
        let path = "decisions/ADR-001-x.md";
        assert_eq!(folder.write(path, None, Some("one\n")).unwrap(), WriteOutcome::Written);
        assert_eq!(folder.write(path, None, Some("one\n")).unwrap(), WriteOutcome::Unchanged);
        assert_eq!(
            folder.write(path, None, Some("two\n")).unwrap(),
            WriteOutcome::ChangedMeanwhile
        );
        let second = folder.write(path, Some("one\n"), Some("two\n"));
        assert_eq!(second.unwrap(), WriteOutcome::Written);
        assert_eq!(
            folder.write(path, Some("one\n"), None).unwrap(),
            WriteOutcome::ChangedMeanwhile
        );
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        files::create(&folder.path().join(".git/a.md"), "x").unwrap();
        files::create(&folder.path().join("a.txt"), "x").unwrap();
        let read = folder.read().unwrap();
        assert_eq!(read.files, BTreeMap::from([(path.to_owned(), "two\n".into())]));
        assert_eq!(folder.write(path, Some("two\n"), None).unwrap(), WriteOutcome::Written);
        assert_eq!(folder.read().unwrap(), DirectoryRead::default());
    }

    #[test]
    fn paths_that_lead_out_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let folder = MemoryFolder::make(root.path()).unwrap();
        for path in ["../x.md", "/x.md", "decisions/../../x.md"] {
            let error = folder.write(path, None, Some("x")).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_out_of_the_project_are_not_followed() {
        use std::os::unix::fs::symlink;
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        files::create(&other.path().join("secret.md"), "secret").unwrap();
        std::fs::create_dir(root.path().join(".claude")).unwrap();
        symlink(other.path(), root.path().join(".claude/memory")).unwrap();
        assert_eq!(MemoryFolder::find(root.path()).unwrap(), None);
        std::fs::create_dir_all(root.path().join(".ai/memory")).unwrap();
        let folder = MemoryFolder::find(root.path()).unwrap().unwrap();
        symlink(other.path().join("secret.md"), folder.path().join("a.md")).unwrap();
        symlink(other.path(), folder.path().join("sessions")).unwrap();
        let read = folder.read().unwrap();
        assert_eq!(read.files, BTreeMap::new());
        assert_eq!(read.skipped, [("a.md".to_owned(), "leads out of the project")]);
        let into = folder.write("sessions/x.md", None, Some("x"));
        let error = into.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains("sessions is a link"), "{error}");
        assert!(!other.path().join("x.md").exists());
    }

    #[cfg(unix)]
    #[test]
    fn no_directory_is_made_through_a_link_out_of_the_project() {
        use std::os::unix::fs::symlink;
        for place in [".claude", ".claude/memory"] {
            let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let link = root.path().join(place);
            std::fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(other.path(), &link).unwrap();
            let error = MemoryFolder::make(root.path()).unwrap_err().to_string();
            assert!(error.contains(&format!("{place} is a link")), "{error}");
            assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0, "{place}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_skipped_file_has_the_right_reason() {
        let root = tempfile::tempdir().unwrap();
        let folder = MemoryFolder::make(root.path()).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("s.md")).unwrap();
        std::fs::create_dir(folder.path().join("t.md")).unwrap();
        let read = folder.read().unwrap();
        let why = |path: &str| (path.to_owned(), "is not a regular file");
        assert_eq!(read.skipped, [why("s.md"), why("t.md")]);
    }
}
