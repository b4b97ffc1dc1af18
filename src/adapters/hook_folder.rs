//! State of hooks between runs, in `$XDG_STATE_HOME/annalist/hooks`: `SESSION.json` is a session's
//! state, `SESSION.synced` the time of its last sync. Also reads clients' files for hooks.

use super::files;
use crate::domain::Timestamp;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Folder name below annalist's state folder.
const FOLDER: &str = "hooks";
/// Extension of a session's state.
const STATE: &str = "json";
/// Extension of the time of a session's last sync.
const SYNCED: &str = "synced";
/// Maximum length of a session's name in bytes; fits every file system with an extension.
const NAME_BYTES_MAX: usize = 200;
/// Maximum size of a file that is read here, in bytes; a state has a few hundred.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// Maximum number of files per sweep, which runs at a session's start and delays it.
const SWEPT_MAX: usize = 1_000;

/// Folder with the hooks' state of sessions. An unsafe session name is `InvalidInput`, content that
/// is not text `InvalidData`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HookFolder {
    path: PathBuf,
}

impl HookFolder {
    /// Returns the folder below `state`, annalist's state folder; it is created on the first write.
    pub fn new(state: &Path) -> HookFolder {
        HookFolder { path: state.join(FOLDER) }
    }

    /// True if a session's name, which the client chose, is safe in a path.
    pub fn is_name(session: &str) -> bool {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        (1..=NAME_BYTES_MAX).contains(&session.len()) && session.bytes().all(is_part)
    }

    /// Reads the state of a session, if there is one.
    pub fn state(&self, session: &str) -> io::Result<Option<String>> {
        small(&self.file(session, STATE)?)
    }

    /// Writes the state of a session.
    pub fn keep_state(&self, session: &str, text: &str) -> io::Result<()> {
        files::replace_private(&self.file(session, STATE)?, text)
    }

    /// Returns the time of a session's last sync, if known.
    pub fn synced_at(&self, session: &str) -> io::Result<Option<Timestamp>> {
        let text = small(&self.file(session, SYNCED)?)?;
        Ok(text.and_then(|text| Timestamp::parse(text.trim())))
    }

    /// Writes the time of the last sync, which unblocks prompts.
    pub fn note_synced(&self, session: &str, at: Timestamp) -> io::Result<()> {
        files::replace_private(&self.file(session, SYNCED)?, &format!("{at}\n"))
    }

    /// Removes files whose last write is at least `ttl` before `now`.
    pub fn sweep(&self, now: Timestamp, ttl: Duration) -> io::Result<()> {
        let entries = files::if_exists(fs::read_dir(&self.path))?;
        for entry in entries.into_iter().flatten().take(SWEPT_MAX) {
            let path = entry?.path();
            let ours = path.extension().is_some_and(|it| it == STATE || it == SYNCED);
            let Ok(meta) = path.symlink_metadata() else { continue };
            let is_old =
                files::changed_at(&meta).is_some_and(|at| at <= now && ttl <= now.since(at));
            if ours && meta.is_file() && is_old {
                files::remove_if_exists(&path)?;
            }
        }
        Ok(())
    }

    fn file(&self, session: &str, ending: &str) -> io::Result<PathBuf> {
        match HookFolder::is_name(session) {
            true => Ok(self.path.join(format!("{session}.{ending}"))),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}

/// Reads a small regular file, if there is one.
fn small(path: &Path) -> io::Result<Option<String>> {
    match files::if_exists(fs::symlink_metadata(path))? {
        Some(meta) if meta.is_file() && meta.len() <= FILE_BYTES_MAX => files::read_if_exists(path),
        Some(_) | None => Ok(None),
    }
}

/// Reads a client's settings file, if it is a small regular file.
pub(crate) fn client_settings(path: &Path) -> Option<String> {
    small(path).ok().flatten()
}

/// Reader of the tail of a growing file.
#[derive(Debug)]
pub(crate) struct GrowingFile {
    file: File,
    bytes: u64,
}

impl GrowingFile {
    pub(crate) fn open(path: &Path) -> io::Result<GrowingFile> {
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file"));
        }
        let file = File::open(path)?;
        let meta = file.metadata()?;
        Ok(GrowingFile { file, bytes: meta.len() })
    }

    /// Size when it was opened.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads the last `most` bytes; true if that is the whole file.
    pub(crate) fn tail(&mut self, most: u64) -> io::Result<(Vec<u8>, bool)> {
        let length = most.min(self.bytes);
        self.file.seek(SeekFrom::Start(self.bytes - length))?;
        let mut tail = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
        self.file.by_ref().take(length).read_to_end(&mut tail)?;
        Ok((tail, length == self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp(1_767_355_200_000);

    #[test]
    fn what_is_kept_of_a_session_is_read_again() {
        let root = tempfile::tempdir().unwrap();
        let folder = HookFolder::new(&root.path().join("not/there/yet"));
        assert_eq!(folder.state("s-1").unwrap(), None);
        assert_eq!(folder.synced_at("s-1").unwrap(), None);
        folder.keep_state("s-1", "{}").unwrap();
        folder.note_synced("s-1", NOON).unwrap();
        assert_eq!(folder.state("s-1").unwrap().as_deref(), Some("{}"));
        assert_eq!(folder.synced_at("s-1").unwrap(), Some(NOON));
        assert_eq!(folder.synced_at("s-2").unwrap(), None);
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let folder = HookFolder::new(root.path());
        for name in ["", "../x", "a/b", "a.b", "ü", &"a".repeat(201)] {
            let error = folder.note_synced(name, NOON).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_sweep_takes_what_is_old_and_ours() {
        let root = tempfile::tempdir().unwrap();
        let folder = HookFolder::new(root.path());
        let hour = Duration::from_secs(3_600);
        folder.sweep(NOON, hour).unwrap();
        folder.keep_state("s-1", "{}").unwrap();
        files::replace(&folder.path.join("notes.txt"), "theirs").unwrap();
        let written = fs::metadata(folder.path.join("s-1.json")).unwrap().modified().unwrap();
        let written = written.duration_since(std::time::UNIX_EPOCH).unwrap();
        let at = Timestamp(i64::try_from(written.as_millis()).unwrap());
        folder.sweep(at.after(Duration::from_secs(3_590)), hour).unwrap();
        assert!(folder.state("s-1").unwrap().is_some());
        folder.sweep(at.after(Duration::from_secs(3_610)), hour).unwrap();
        assert_eq!(folder.state("s-1").unwrap(), None);
        assert!(folder.path.join("notes.txt").exists());
    }

    #[test]
    fn the_end_of_a_file_is_read_and_told_from_the_whole() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a.jsonl");
        files::replace(&path, "one\ntwo\n").unwrap();
        let mut file = GrowingFile::open(&path).unwrap();
        assert_eq!((file.bytes(), file.tail(4).unwrap()), (8, (b"two\n".to_vec(), false)));
        assert_eq!(file.tail(100).unwrap(), (b"one\ntwo\n".to_vec(), true));
        assert_eq!(GrowingFile::open(root.path()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[cfg(unix)]
    #[test]
    fn settings_behind_a_link_are_not_read() {
        let root = tempfile::tempdir().unwrap();
        let (path, link) = (root.path().join("a.json"), root.path().join("b.json"));
        files::replace(&path, "{}").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(client_settings(&path).as_deref(), Some("{}"));
        assert_eq!(client_settings(&link), None);
    }
}
