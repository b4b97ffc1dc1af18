//! Atomic file operations: a reader sees the old text or the new one, never a part. Uploaded bytes.

use super::process;
use crate::domain::Timestamp;
use parking_lot::Mutex;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::UNIX_EPOCH;
use tempfile::SpooledTempFile;

/// Replaces the contents of `path` durably. Keeps an old file's permissions; a new file follows the
/// umask. Replaces the target of a link; writes into `/dev/null` and pipes.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let (path, permissions) = match if_exists(std::fs::metadata(path))? {
        Some(old) if old.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Some(old) if !old.is_file() => {
            return OpenOptions::new().append(true).open(path)?.write_all(text.as_bytes());
        }
        Some(old) => (path.canonicalize()?, Some(old.permissions())),
        None => (path.to_owned(), None),
    };
    let folder = folder_of(&path)?;
    let mut temp = temporary(folder, PUBLIC)?;
    temp.write_all(text.as_bytes())?;
    if let Some(permissions) = permissions {
        temp.as_file().set_permissions(permissions)?;
    }
    temp.as_file().sync_all()?;
    temp.persist(&path)?;
    sync_folder(folder)
}

/// Replaces the contents of `path` with a file readable by its owner only, creating its folder if
/// needed. Not durable: hooks run at every turn, and the client would wait for the disk.
pub(crate) fn replace_private(path: &Path, text: &str) -> io::Result<()> {
    let mut draft = temp_file_beside(path)?;
    draft.write_all(text.as_bytes())?;
    draft.persist(path)?;
    Ok(())
}

/// Creates a complete file; returns false and changes nothing if it already exists.
pub(crate) fn create(path: &Path, text: &str) -> io::Result<bool> {
    let folder = folder_of(path)?;
    std::fs::create_dir_all(folder)?;
    let mut draft = temporary(folder, PUBLIC)?;
    draft.write_all(text.as_bytes())?;
    draft.as_file().sync_all()?;
    persist_new(draft, path)
}

pub(crate) fn read_to_string(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}

/// Returns the text of `path`, or `None` if there is no such file.
pub(crate) fn read_if_exists(path: &Path) -> io::Result<Option<String>> {
    if_exists(std::fs::read_to_string(path))
}

/// Returns `None` in place of the error that a file or a folder does not exist.
pub(crate) fn if_exists<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Modification time of a file, if the system tells it.
pub(crate) fn changed_at(meta: &Metadata) -> Option<Timestamp> {
    let since = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Timestamp::from_secs(since.as_secs_f64())
}

/// Creates a folder and its ancestors with mode 0700; existing folders stay unchanged.
pub(crate) fn create_private_dir_all(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Creates an empty file beside `path`, accessible to its owner only, and its folder if needed. The
/// file is deleted on drop unless [`persist_new`] takes it.
pub(crate) fn temp_file_beside(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let folder = folder_of(path)?;
    create_private_dir_all(folder)?;
    temporary(folder, PRIVATE)
}

/// Mode of a file for all users, subject to the umask.
const PUBLIC: u32 = 0o666;
/// Mode of a file for its owner only.
const PRIVATE: u32 = 0o600;
/// Prefix and suffix of temporary files.
const TEMPORARY: (&str, &str) = (".annalist-", ".tmp");

/// Creates a file to be renamed later; its name contains the process that owns it.
fn temporary(folder: &Path, mode: u32) -> io::Result<tempfile::NamedTempFile> {
    // Not every file system allows a colon in names.
    let prefix = format!("{}{}~", TEMPORARY.0, process::name().replace(':', "+"));
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(TEMPORARY.1);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    let _ = mode;
    builder.tempfile_in(folder).map_err(|error| {
        // The caller names the file that the user knows; the path of this one has no other source.
        let text = error.to_string();
        io::Error::new(error.kind(), text.split(" at path ").next().unwrap_or_default())
    })
}

/// Deletes temporary files in `folder` of processes that were killed while writing.
pub(crate) fn sweep(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let inside = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY.0));
        let inside = inside.and_then(|name| name.strip_suffix(TEMPORARY.1));
        let owner = inside.and_then(|name| name.rsplit_once('~')).map(|(owner, _)| owner);
        if owner.is_some_and(|owner| process::is_gone(&owner.replace('+', ":"))) {
            // Another process may have deleted it.
            let _ = std::fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// Moves `draft`, whose contents are already synced, to `path`. If that file exists by now, deletes
/// the draft and returns false.
pub(crate) fn persist_new(draft: tempfile::NamedTempFile, path: &Path) -> io::Result<bool> {
    match draft.persist_noclobber(path) {
        Ok(_) => sync_folder(folder_of(path)?).map(|()| true),
        Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(failed) => Err(failed.error),
    }
}

/// Parent folder of `path`; `.` for a bare name.
pub(crate) fn folder_of(path: &Path) -> io::Result<&Path> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
}

/// URI of an SQLite database that nobody writes; only a URI can say so.
pub(crate) fn immutable_uri(path: &Path) -> String {
    let path = path.to_string_lossy();
    let path = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{path}?immutable=1")
}

/// Makes a rename in `folder` survive a power failure. Windows cannot open folders and need not.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Removes a file; returns whether it existed.
pub(crate) fn remove_if_exists(path: &Path) -> io::Result<bool> {
    Ok(if_exists(std::fs::remove_file(path))?.is_some())
}

/// Maximum number of uploaded bytes kept in memory.
const MEMORY_BYTES_MAX: usize = 256 * 1024;

/// Uploaded bytes: in memory while they are few, then in an unnamed temporary file that only this
/// process can read.
#[derive(Debug)]
pub(crate) struct Upload {
    file: Mutex<SpooledTempFile>,
    bytes: u64,
}

impl Upload {
    pub(crate) fn new() -> Upload {
        Upload { file: Mutex::new(SpooledTempFile::new(MEMORY_BYTES_MAX)), bytes: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.file.lock().write_all(bytes)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Read for &Upload {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.lock().read(buffer)
    }
}

impl Seek for &Upload {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.lock().seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_new_file_is_for_all_whom_the_mask_lets_and_a_draft_for_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (ours, plain) = (folder.path().join("ours.md"), folder.path().join("plain"));
        File::create(&plain).unwrap();
        assert!(create(&ours, "a").unwrap());
        assert_eq!(mode(&ours), mode(&plain));
        assert_eq!(mode(temp_file_beside(&ours).unwrap().path()), 0o600);
    }

    #[test]
    fn what_a_process_left_that_was_killed_is_swept_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let (own, gone) = (std::process::id().to_string(), ended.id().to_string());
        ended.wait().unwrap();
        let mine = temporary(folder.path(), PUBLIC).unwrap();
        let name = mine.path().file_name().unwrap().to_str().unwrap().to_owned();
        let others = [name.replace(&format!("+{own}+"), &format!("+{gone}+")), "a.tmp".to_owned()];
        others.iter().for_each(|name| drop(File::create(folder.path().join(name)).unwrap()));
        sweep(folder.path()).unwrap();
        let is_there = |name: &str| folder.path().join(name).exists();
        assert!(is_there(&name) && is_there("a.tmp"));
        let is_told =
            process::is_gone(&process::name().replace(&format!(":{own}:"), &format!(":{gone}:")));
        assert_eq!(is_there(&others[0]), !is_told, "where the system tells nothing, nothing goes");
    }

    #[test]
    fn an_error_names_no_temporary_file() {
        let path = tempfile::tempdir().unwrap().path().join("gone/a.md");
        for error in [replace(&path, "").unwrap_err(), temporary(&path, PUBLIC).unwrap_err()] {
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            assert!(!error.to_string().contains("annalist"), "{error}");
        }
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        assert_eq!(read_if_exists(&path).unwrap(), None);
        replace(&path, "one\n").unwrap();
        replace(&path, "two\n").unwrap();
        assert_eq!(read_if_exists(&path).unwrap().as_deref(), Some("two\n"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// Otherwise root would replace `/dev/null` for the whole machine.
    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_a_pipe_a_pipe() {
        use std::os::unix::fs::{FileTypeExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        replace(&at("file"), "one").unwrap();
        symlink("file", at("link")).unwrap();
        replace(&at("link"), "two").unwrap();
        assert_eq!(std::fs::read_link(at("link")).unwrap(), Path::new("file"));
        assert_eq!(read_to_string(&at("file")).unwrap(), "two");
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
        assert!(made.success());
        // Open for reading, so that the writer does not block.
        let mut reader = OpenOptions::new().read(true).write(true).open(at("pipe")).unwrap();
        replace(&at("pipe"), "three").unwrap();
        let mut told = [0; 5];
        reader.read_exact(&mut told).unwrap();
        assert_eq!(&told, b"three");
        assert!(std::fs::symlink_metadata(at("pipe")).unwrap().file_type().is_fifo());
        assert_eq!(replace(folder.path(), "").unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[cfg(unix)]
    #[test]
    fn what_we_make_is_for_its_owner_and_what_was_there_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/c");
        assert!(persist_new(temp_file_beside(&path).unwrap(), &path).unwrap());
        assert!(!persist_new(temp_file_beside(&path).unwrap(), &path).unwrap());
        assert_eq!((mode(&folder.path().join("a/b")), mode(&path)), (0o700, 0o600));
        assert_eq!(std::fs::read_dir(folder.path().join("a/b")).unwrap().count(), 1);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        replace(&path, "x").unwrap();
        assert_eq!(mode(&path), 0o644);
    }

    #[test]
    fn what_was_sent_is_read_however_much_it_is() {
        for bytes in [0, 10, 3 * MEMORY_BYTES_MAX] {
            let sent: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
            let mut upload = Upload::new();
            sent.chunks(1_000).for_each(|chunk| upload.push(chunk).unwrap());
            assert_eq!(upload.bytes(), bytes as u64);
            for _ in 0..2 {
                let mut read = Vec::new();
                (&upload).rewind().unwrap();
                (&upload).read_to_end(&mut read).unwrap();
                assert_eq!(read, sent);
            }
        }
    }
}
