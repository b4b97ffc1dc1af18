//! Files that are whole: a reader sees the old text or the new one, never a half.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::path::Path;

/// Replaces `path` with `text`, which is on the disk when this returns. A new file is readable by
/// its owner only; the old file's permissions are kept.
///
/// # Errors
/// Those of the file system; the old file is then untouched.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = folder_of(path)?;
    let mut temp = tempfile::NamedTempFile::new_in(folder)?;
    temp.write_all(text.as_bytes())?;
    match std::fs::metadata(path) {
        Ok(old) => temp.as_file().set_permissions(old.permissions())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    temp.as_file().sync_all()?;
    temp.persist(path)?;
    sync_folder(folder)
}

/// Writes a new file, whole; says whether it was not there before, and leaves it as it is if it was.
///
/// # Errors
/// Those of the file system.
pub fn create(path: &Path, text: &str) -> io::Result<bool> {
    std::fs::create_dir_all(folder_of(path)?)?;
    let mut draft = draft_of(path)?;
    draft.write_all(text.as_bytes())?;
    draft.as_file().sync_all()?;
    place_new(draft, path)
}

/// The text of `path`.
///
/// # Errors
/// Those of the file system; `InvalidData` if it is not UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}

/// The text of `path`; none if there is no such file.
///
/// # Errors
/// Those of the file system; `InvalidData` if it is not UTF-8.
pub fn read_if_there(path: &Path) -> io::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes the folder and those above it, for their owner only; folders that exist stay as they are.
///
/// # Errors
/// Those of the file system.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// An empty file beside `path`, for its owner only; gone when dropped, unless [`place_new`] takes
/// it. The folder is made if it is not there.
///
/// # Errors
/// Those of the file system.
pub fn draft_of(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let folder = folder_of(path)?;
    make_private_folder(folder)?;
    tempfile::NamedTempFile::new_in(folder)
}

/// Makes `draft`, whose contents are on the disk already, the file at `path`; false, and the draft
/// is gone, if there is one by now.
///
/// # Errors
/// Those of the file system.
pub fn place_new(draft: tempfile::NamedTempFile, path: &Path) -> io::Result<bool> {
    match draft.persist_noclobber(path) {
        Ok(_) => sync_folder(folder_of(path)?).map(|()| true),
        Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(failed) => Err(failed.error),
    }
}

/// The folder that `path` stands in; `.` for a bare name.
///
/// # Errors
/// `InvalidInput` if it can stand in none, such as `/`.
pub fn folder_of(path: &Path) -> io::Result<&Path> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
}

/// Makes a rename in `folder` survive a loss of power. Windows cannot open folders and needs not.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        assert_eq!(read_if_there(&path).unwrap(), None);
        replace(&path, "one\n").unwrap();
        replace(&path, "two\n").unwrap();
        assert_eq!(read_if_there(&path).unwrap().as_deref(), Some("two\n"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn what_we_make_is_for_its_owner_and_what_was_there_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/c");
        assert!(place_new(draft_of(&path).unwrap(), &path).unwrap());
        assert!(!place_new(draft_of(&path).unwrap(), &path).unwrap());
        assert_eq!((mode(&folder.path().join("a/b")), mode(&path)), (0o700, 0o600));
        assert_eq!(std::fs::read_dir(folder.path().join("a/b")).unwrap().count(), 1);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        replace(&path, "x").unwrap();
        assert_eq!(mode(&path), 0o644);
    }
}
