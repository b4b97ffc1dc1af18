//! Transcripts in client folders that were never read, found by name and time alone.

use super::super::clients::folder_of_user;
use super::super::output::{self, Failure, YELLOW, counted};
use crate::adapters::files;
use crate::adapters::walk::{Candidate, walk};
use crate::agents::{CLIENTS, Deletion, SETTINGS};
use crate::domain::{Session, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Days before a deletion from which the report warns.
const DAYS: u32 = 3;
const HOUR: Duration = Duration::from_secs(60 * 60);

/// Transcripts of clients that delete them.
#[derive(Debug, Default, JsonSchema, Serialize)]
pub(super) struct UnreadReport {
    /// Transcripts that were never read.
    transcripts: u64,
    /// Of these, those that their client will delete soon.
    deleted_soon: u64,
    /// Days from now that are soon.
    within_days: u32,
    /// Folders that they are in.
    folders: Vec<PathBuf>,
}

impl UnreadReport {
    /// Scans the folders of this user's clients.
    pub(super) fn of<'s>(
        sessions: impl Iterator<Item = &'s Session>,
        now: Timestamp,
    ) -> UnreadReport {
        let (mut paths, mut names) = (HashSet::new(), HashSet::new());
        for session in sessions {
            paths.insert(real(Path::new(&session.path)));
            names.insert(session.native_id.as_str());
        }
        let mut report = UnreadReport { within_days: DAYS, ..UnreadReport::default() };
        let is_read = |path: &Path| {
            let name = path.file_stem().and_then(|name| name.to_str());
            name.is_some_and(|name| names.contains(name)) || paths.contains(&real(path))
        };
        for client in CLIENTS {
            let Some(deletion) = client.deletion else { continue };
            if let Ok(folder) = folder_of_user(client) {
                report.look(&folder, deletion, now, is_read);
            }
        }
        report
    }

    fn look(
        &mut self,
        client: &Path,
        deletion: &Deletion,
        now: Timestamp,
        is_read: impl Fn(&Path) -> bool,
    ) {
        let folder = client.join(deletion.folder);
        if !folder.is_dir() {
            return;
        }
        let settings = files::read_if_exists(&client.join(SETTINGS)).ok().flatten();
        let hours = (deletion.hours)(&settings.unwrap_or_default());
        let end = now.after(HOUR * 24 * DAYS);
        let is_deleted_soon = |file: &Candidate| {
            let deleted = file.changed_at.zip(hours).map(|(at, hours)| at.after(HOUR * hours));
            deleted.is_some_and(|deleted| deleted <= end)
        };
        let (found, _) = walk(std::slice::from_ref(&folder));
        let unread = found.iter().filter(|it| (deletion.is_transcript)(&it.path));
        let unread: Vec<_> = unread.filter(|it| !is_read(&it.path)).collect();
        if !unread.is_empty() {
            self.transcripts += unread.len() as u64;
            self.deleted_soon += unread.iter().filter(|it| is_deleted_soon(it)).count() as u64;
            self.folders.push(folder);
        }
    }

    /// Prints one line, if there are unread transcripts.
    pub(super) fn print(&self) -> Result<(), Failure> {
        if self.transcripts == 0 {
            return Ok(());
        }
        let unread = counted(self.transcripts, "session");
        let soon = match self.deleted_soon {
            0 => String::new(),
            soon => format!(", {} of them will be deleted within {DAYS} days", output::count(soon)),
        };
        let folders: Vec<String> = self.folders.iter().map(|it| it.display().to_string()).collect();
        output::line(&format!(
            "{YELLOW}unread{YELLOW:#} {unread}{soon}: `annalist enqueue {}` reads them",
            folders.join(" ")
        ))
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
