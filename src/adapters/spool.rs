//! Spool of transcripts that hooks handed over: one small file each, readable by its owner only, in
//! the user's data folder. It holds paths, times and problems, never conversation text.

use super::files;
use crate::domain::{Digest, Timestamp};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Folder name below annalist's data folder.
const FOLDER: &str = "spool";
const HAND_OVERS_MAX: usize = 1_000;
/// Lifetime of a hand-over. Claude Code deletes transcripts after thirty days.
const TTL: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Age at which a hand-over without a problem counts as abandoned by its process.
const UNDER_WAY: Duration = Duration::from_secs(10);

/// Transcript to be enqueued.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpooledHandOver {
    /// Transcript, folder of transcripts, or database of sessions.
    pub transcript: PathBuf,
    /// Session in the database.
    pub session: Option<String>,
    /// Folder from which settings and store are found.
    pub project: PathBuf,
    /// Settings file given on the command line.
    pub config: Option<PathBuf>,
    /// Digest of the settings in the hook's environment: others may name another store or namespace.
    #[serde(rename = "store")]
    pub environment: Option<String>,
    /// True if the last entries are enqueued without waiting for more.
    pub flush: bool,
    /// Time of the hook.
    pub at: Timestamp,
    /// Problem of the last attempt.
    pub problem: Option<String>,
}

impl SpooledHandOver {
    /// Returns the project or the transcript, if it is gone.
    pub(crate) fn gone(&self) -> Option<&Path> {
        [&*self.project, &*self.transcript].into_iter().find(|path| !path.exists())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Spool {
    path: PathBuf,
}

impl Spool {
    /// Returns the spool below `data`, annalist's data folder.
    pub(crate) fn new(data: &Path) -> Spool {
        Spool { path: data.join(FOLDER) }
    }

    /// Stores a hand-over, replacing an older one of the same transcript.
    ///
    /// # Errors
    /// Those of the file system; `QuotaExceeded` if the spool is full.
    pub(crate) fn put(&self, hand_over: &SpooledHandOver) -> io::Result<()> {
        let path = self.file(hand_over);
        let before = read(&path)?;
        if before.is_none() && HAND_OVERS_MAX <= self.files()?.count() {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let flush = hand_over.flush || before.is_some_and(|it| it.flush);
        let text = serde_json::to_string(&SpooledHandOver { flush, ..hand_over.clone() })?;
        files::replace_private(&path, &text)
    }

    /// Updates the problem of a hand-over that is still in the spool, unless a newer one replaced it.
    pub(crate) fn failed(&self, hand_over: &SpooledHandOver) -> io::Result<()> {
        let there = read(&self.file(hand_over))?;
        if there.is_some_and(|it| it.at <= hand_over.at) { self.put(hand_over) } else { Ok(()) }
    }

    /// Removes a finished hand-over, unless a newer one replaced it.
    pub(crate) fn done(&self, hand_over: &SpooledHandOver) -> io::Result<()> {
        let path = self.file(hand_over);
        if read(&path)?.is_some_and(|it| it.at <= hand_over.at) {
            files::remove_if_exists(&path)?;
        }
        Ok(())
    }

    /// Returns the hand-overs, oldest first. Removes expired ones.
    pub(crate) fn list(&self, now: Timestamp) -> io::Result<Vec<SpooledHandOver>> {
        let mut all = Vec::new();
        for path in self.files()? {
            match read(&path)? {
                Some(it) if now.since(it.at) < TTL => all.push(it),
                // Only annalist writes here, so an unreadable file is of another version.
                Some(_) | None => drop(files::remove_if_exists(&path)?),
            }
        }
        all.sort_by_key(|it| it.at);
        Ok(all)
    }

    /// Returns hand-overs that failed or were abandoned, oldest first.
    pub(crate) fn left_behind(&self, now: Timestamp) -> Vec<SpooledHandOver> {
        let mut all = self.list(now).unwrap_or_default();
        all.retain(|it| it.problem.is_some() || UNDER_WAY <= now.since(it.at));
        all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files().is_ok_and(|mut files| files.next().is_none())
    }

    fn files(&self) -> io::Result<impl Iterator<Item = PathBuf>> {
        let entries = files::if_exists(fs::read_dir(&self.path))?;
        let paths = entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        Ok(paths.filter(|path| path.extension().is_some_and(|it| it == "json")))
    }

    /// File of a hand-over in the spool.
    pub(crate) fn file(&self, hand_over: &SpooledHandOver) -> PathBuf {
        let SpooledHandOver { transcript, session, project, .. } = hand_over;
        let (transcript, project) = (transcript.to_string_lossy(), project.to_string_lossy());
        let parts = [&*transcript, &*project].into_iter().chain(session.as_deref());
        let digest = Digest::of(&parts.collect::<Vec<&str>>());
        self.path.join(format!("{digest}.json"))
    }
}

fn read(path: &Path) -> io::Result<Option<SpooledHandOver>> {
    Ok(files::read_if_exists(path)?.and_then(|text| serde_json::from_str(&text).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hand_over(n: usize, at: i64) -> SpooledHandOver {
        SpooledHandOver {
            transcript: format!("/t/{n}.jsonl").into(),
            session: None,
            project: "/p".into(),
            config: None,
            environment: None,
            flush: false,
            at: Timestamp(at),
            problem: None,
        }
    }

    #[test]
    fn a_transcript_is_kept_once_and_a_newer_hand_over_outlives_the_end_of_an_older() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(&folder.path().join("not/there/yet"));
        assert!(spool.is_empty() && spool.list(Timestamp(9)).unwrap().is_empty());
        let (first, second) = (SpooledHandOver { flush: true, ..hand_over(1, 1) }, hand_over(1, 2));
        spool.put(&first).unwrap();
        spool.put(&second).unwrap();
        let listed = spool.list(Timestamp(9)).unwrap();
        assert_eq!(listed, [SpooledHandOver { flush: true, ..second.clone() }]);
        spool.done(&first).unwrap();
        assert!(!spool.is_empty(), "the second is not done");
        spool.failed(&SpooledHandOver { problem: Some("late".to_owned()), ..first }).unwrap();
        assert_eq!(spool.list(Timestamp(9)).unwrap(), listed, "the second has no problem");
        spool.done(&second).unwrap();
        assert!(spool.is_empty());
    }

    #[test]
    fn the_spool_has_a_bound_in_number_and_in_time() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(folder.path());
        for n in 0..HAND_OVERS_MAX {
            let text = serde_json::to_string(&hand_over(n, 1)).unwrap();
            files::replace_private(&spool.file(&hand_over(n, 1)), &text).unwrap();
        }
        let full = spool.put(&hand_over(HAND_OVERS_MAX, 1)).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::QuotaExceeded);
        spool.put(&hand_over(0, 2)).unwrap();
        assert!(spool.list(Timestamp(3).after(TTL)).unwrap().is_empty());
        assert!(spool.is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn hand_overs_are_for_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(&folder.path().join("data"));
        spool.put(&hand_over(1, 1)).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&spool.path), mode(&spool.file(&hand_over(1, 1)))), (0o700, 0o600));
    }
}
