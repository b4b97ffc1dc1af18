//! Keeps a memory directory in step with the memories of a namespace: takes up what people did to it since, renders
//! the memories, lays that around what people wrote, and writes file by file. It can be killed between any two
//! writes: what is about to be written is saved first, and the next run goes on from what really lies there.

pub(super) mod notes;
mod people;
mod started;
#[cfg(test)]
mod tests;

use super::holding::{Asks, Held};
use crate::domain::{Memory, MemoryMap, Timestamp};
use crate::edge::memory_dir::{MemoryFolder, Read, Written};
use crate::edge::process;
use crate::edge::store::{Directory, Store, StoreError, Tenure};
use crate::memory_dir::{
    Conflict, Facts, FileChange, Files, Rendered, Update, records_named, render, strike, update,
};
use crate::privacy::Gate;
use people::Amendment;
use started::{Before, Started};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// How often a directory is planned anew because somebody wrote in it meanwhile.
const PASSES_MAX: u32 = 3;

/// Who keeps directories.
pub struct Keeper {
    /// Where memories are, and what was rendered.
    pub store: Store,
    /// Its name, for those who find a namespace held.
    pub holder: String,
    /// Tells the time.
    pub clock: fn() -> Timestamp,
    /// What is rendered passes it once more.
    pub gate: Gate,
}

/// What became of a directory.
#[derive(Debug, Default)]
pub struct Kept {
    /// The files that were written or taken away, by path; on a dry run, that would be.
    pub changes: Vec<FileChange>,
    /// What people did to memories by editing, with the memories as they are after it.
    pub people: Vec<(&'static str, Memory)>,
    /// Where a person and we changed the same; theirs stayed.
    pub conflicts: Vec<(String, Conflict)>,
    /// Files that were left alone, with the reason.
    pub left: Vec<(String, &'static str)>,
    /// Files of ours that a person took away; they stay away.
    pub deleted: Vec<String>,
    /// Active memories that no file shows.
    pub unplaced: usize,
}

/// How keeping a directory ended.
#[derive(Debug)]
pub enum Keeping {
    /// It was done.
    Done(Box<Kept>),
    /// Somebody else changes the memory of the namespace all the time.
    Busy,
}

/// Why a directory could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The store's.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file system's.
    #[error("{path}: {cause}")]
    Disk {
        /// Where.
        path: String,
        /// What it says.
        cause: io::Error,
    },
}

/// What is to be done about a directory.
struct Draft {
    amendments: Vec<Amendment>,
    rendered: Rendered,
    update: Update,
    before: Before,
    disk: Read,
}

impl Keeper {
    /// What [`Keeper::keep`] would do, with these memories in the place of those of the store if there are any;
    /// changes nothing.
    ///
    /// # Errors
    /// The store's, and those of the file system.
    pub async fn look(
        &self,
        folder: &MemoryFolder,
        namespace: &str,
        memories: Option<MemoryMap>,
    ) -> Result<Kept, KeepError> {
        let draft = self.draft(folder, namespace, memories).await?;
        let kept = Kept { changes: draft.changes(), people: draft.people(), ..Kept::default() };
        Ok(kept.of(&draft))
    }

    /// The directories on this machine that show `namespace` and are still there.
    ///
    /// # Errors
    /// The store's.
    pub async fn folders(&self, namespace: &str) -> Result<Vec<MemoryFolder>, StoreError> {
        let directories = self.store.directories(namespace).await?.into_iter();
        let here = directories.filter(|it| it.host == process::host());
        Ok(here.filter_map(|it| MemoryFolder::at(Path::new(&it.dir))).collect())
    }

    /// Brings `folder` in step with the memories of `namespace`. Done twice it changes nothing.
    ///
    /// # Errors
    /// The store's, and those of the file system. What was done until then stays, and is taken up by the next run.
    pub async fn keep(&self, folder: &MemoryFolder, namespace: &str) -> Result<Keeping, KeepError> {
        let Some(held) = self.hold(namespace).await? else { return Ok(Keeping::Busy) };
        let write =
            |it: &FileChange| folder.write(&it.path, it.before.as_deref(), it.after.as_deref());
        let directory = directory_of(folder);
        self.store.note_directory(&directory, namespace).await?;
        let done = self.under(&held.tenure, folder, &write).await;
        let left = held.leave(None).await;
        let kept = done?;
        left?;
        Ok(Keeping::Done(Box::new(kept)))
    }

    /// Takes up what people did to memories by editing `folder`, and writes no file: who plans does so first, so that
    /// what they changed or confirmed since is theirs before anything else changes it. Gives what was taken up; where
    /// somebody else changes the memory of the namespace, that is left to them.
    ///
    /// # Errors
    /// The store's, and those of the file system.
    pub async fn hear(
        &self,
        folder: &MemoryFolder,
        namespace: &str,
    ) -> Result<Vec<(&'static str, Memory)>, KeepError> {
        let Some(held) = self.hold(namespace).await? else { return Ok(Vec::new()) };
        let heard = self.heard(&held.tenure, folder).await;
        held.leave(None).await?;
        heard
    }

    async fn heard(
        &self,
        tenure: &Tenure,
        folder: &MemoryFolder,
    ) -> Result<Vec<(&'static str, Memory)>, KeepError> {
        for _ in 0..PASSES_MAX {
            let draft = self.draft(folder, &tenure.namespace, None).await?;
            let now = (self.clock)();
            if people::amend(&self.store, tenure, &draft.amendments, now).await? {
                return Ok(draft.people());
            }
        }
        Ok(Vec::new())
    }

    async fn hold(&self, namespace: &str) -> Result<Option<Held>, StoreError> {
        let Keeper { store, holder, clock, gate: _ } = self;
        Asks { store, holder, clock: *clock, waits: true }.take(namespace).await
    }

    async fn under(
        &self,
        tenure: &Tenure,
        folder: &MemoryFolder,
        write: &dyn Fn(&FileChange) -> io::Result<Written>,
    ) -> Result<Kept, KeepError> {
        let at = |cause| KeepError::Disk { path: dir_of(folder), cause };
        folder.sweep().map_err(at)?;
        let started = self.started(folder);
        let mut kept = Kept::default();
        for _ in 0..PASSES_MAX {
            // What is planned anew is told anew.
            kept.left.clear();
            let draft = self.draft(folder, &tenure.namespace, None).await?;
            let whole =
                people::amend(&self.store, tenure, &draft.amendments, (self.clock)()).await?;
            if !whole {
                continue;
            }
            kept.people.extend(draft.people());
            self.strike(&draft.disk.files, write, &mut kept).await?;
            let changes = draft.changes();
            let (mut next, mut seen) = (draft.next(), draft.seen(&self.gate));
            started.begin(&changes, &next).await?;
            let mut is_disturbed = false;
            for change in &changes {
                let written = write(change)
                    .map_err(|cause| KeepError::Disk { path: change.path.clone(), cause })?;
                match written {
                    Written::Done => kept.changes.push(change.clone()),
                    Written::Already => {}
                    Written::Changed => {
                        is_disturbed = true;
                        draft.keep_base(&change.path, &mut next);
                        draft.keep_seen(&change.path, &mut seen);
                        kept.left.push((change.path.clone(), "changed-meanwhile"));
                    }
                }
            }
            started.end(&next, &seen).await?;
            kept = kept.of(&draft);
            if !is_disturbed {
                return Ok(kept);
            }
        }
        Ok(kept)
    }

    /// Takes out what retrospectives say of records that were forgotten. Where somebody writes in a file meanwhile it
    /// is done by the next run.
    async fn strike(
        &self,
        files: &Files,
        write: &dyn Fn(&FileChange) -> io::Result<Written>,
        kept: &mut Kept,
    ) -> Result<(), KeepError> {
        let named = records_named(files);
        if named.is_empty() {
            return Ok(());
        }
        let gone = self.store.forgotten_records(named).await?;
        for change in strike(files, &gone) {
            let written = write(&change)
                .map_err(|cause| KeepError::Disk { path: change.path.clone(), cause })?;
            if written == Written::Done {
                kept.changes.push(change);
            }
        }
        Ok(())
    }

    fn started(&self, folder: &MemoryFolder) -> Started<'_> {
        Started { store: &self.store, gate: &self.gate, dir: dir_of(folder) }
    }

    /// Reads everything and plans; writes nothing.
    async fn draft(
        &self,
        folder: &MemoryFolder,
        namespace: &str,
        memories: Option<MemoryMap>,
    ) -> Result<Draft, KeepError> {
        let disk =
            folder.read().map_err(|cause| KeepError::Disk { path: dir_of(folder), cause })?;
        let started = self.started(folder);
        let before = started.before(&disk.files).await?;
        let mut known = match memories {
            Some(memories) => memories,
            None => self.store.memories(Some(namespace)).await?,
        };
        let of_sessions = notes::sources(&self.store, namespace, &known).await?;
        let lay = |memories: &[Memory]| {
            let sessions = notes::notes(&of_sessions, memories);
            let today = (self.clock)();
            let facts =
                Facts { memories, sessions: &sessions, terms: &[], today, gate: &self.gate };
            let rendered = render(&facts, &before.base, &disk.files);
            let update = update(&before.base, &rendered, &disk.files, &self.gate);
            (rendered, update)
        };
        let memories: Vec<Memory> = known.values().cloned().collect();
        let (rendered, update) = lay(&memories);
        let edits = people::edits(&before.seen, (&rendered, &update), &disk.files, &self.gate);
        let now = (self.clock)();
        let amendments = people::amendments(&memories, (&rendered, &edits), &disk, now);
        if amendments.is_empty() {
            return Ok(Draft { amendments, rendered, update, before, disk });
        }
        known.extend(amendments.iter().map(|it| (it.after.id, it.after.clone())));
        let memories: Vec<Memory> = known.into_values().collect();
        let (rendered, update) = lay(&memories);
        Ok(Draft { amendments, rendered, update, before, disk })
    }
}

impl Draft {
    /// What people did, and to which memories.
    fn people(&self) -> Vec<(&'static str, Memory)> {
        self.amendments.iter().map(|it| (it.rule, it.after.clone())).collect()
    }

    /// The files to write: of what could not be read nothing is.
    fn changes(&self) -> Vec<FileChange> {
        let skipped: BTreeSet<&str> = self.disk.skipped.iter().map(|(it, _)| it.as_str()).collect();
        let changes = self.update.changes.iter();
        changes.filter(|it| !skipped.contains(it.path.as_str())).cloned().collect()
    }

    /// What the next run starts from. Where a file is left alone, that is what was rendered when it was written.
    fn next(&self) -> Files {
        let mut next = self.rendered.files.clone();
        let left = self.update.held.iter().chain(&self.disk.skipped);
        left.for_each(|(path, _)| self.keep_base(path, &mut next));
        next
    }

    /// What the files of ours hold once everything is written, as the gate lets it through.
    fn seen(&self, gate: &Gate) -> Files {
        let after: BTreeMap<&str, Option<&str>> =
            self.update.changes.iter().map(|it| (it.path.as_str(), it.after.as_deref())).collect();
        let mut seen = Files::new();
        for path in self.rendered.files.keys() {
            let there = self.disk.files.get(path).map(String::as_str);
            if let Some(text) = after.get(path.as_str()).copied().unwrap_or(there) {
                seen.insert(path.clone(), gate.redact(text).as_str().to_owned());
            }
        }
        let left = self.update.held.iter().chain(&self.disk.skipped);
        left.for_each(|(path, _)| self.keep_seen(path, &mut seen));
        seen
    }

    fn keep_base(&self, path: &str, next: &mut Files) {
        self.as_before(path, &self.before.base, next);
    }

    fn keep_seen(&self, path: &str, seen: &mut Files) {
        self.as_before(path, &self.before.seen, seen);
    }

    /// Lets `path` have in `now` what it had in `before`.
    fn as_before(&self, path: &str, before: &Files, now: &mut Files) {
        let old = self.rendered.renamed.get(path).map_or(path, String::as_str);
        now.remove(path);
        if let Some(text) = before.get(old) {
            now.insert(path.to_owned(), text.clone());
        }
    }
}

impl Kept {
    fn of(mut self, draft: &Draft) -> Kept {
        self.conflicts.extend(draft.update.conflicts.iter().cloned());
        self.left.extend(draft.update.held.iter().chain(&draft.disk.skipped).cloned());
        self.deleted.clone_from(&draft.update.deleted);
        self.unplaced = draft.rendered.unplaced.len();
        self
    }

    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.people.is_empty()
    }
}

/// What a directory is known by: its path without links.
fn dir_of(folder: &MemoryFolder) -> String {
    folder.path().display().to_string()
}

/// The same for those on other machines.
fn directory_of(folder: &MemoryFolder) -> Directory {
    Directory { host: process::host().to_owned(), dir: dir_of(folder) }
}

/// The namespace that the directory of the project at `root` belongs to where nothing else is said: that of what
/// agents said who worked there.
pub fn directory_namespace(root: &Path, gate: &Gate) -> String {
    super::reader::namespace_of_folder(&root.display().to_string(), gate)
}
