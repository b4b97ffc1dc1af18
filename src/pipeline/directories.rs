//! Memory directories of this machine that show a namespace: read before a plan changes memory, synced after it.

use super::Consolidator;
use super::dir_sync::{DirSync, SyncError, SyncReport};
use super::forgetting::{ErasureProof, ForgetPlan, ForgetTarget, Forgotten};
use super::namespace::Namespaces;
use super::project::DirectoryNotes;
use super::searching::Note;
use crate::adapters::files::read_if_exists;
use crate::adapters::memory_files::MemoryFolder;
use crate::domain::{Change, Plan};
use crate::memory_dir::source_tags;
use crate::store::{Erased, StoreError};
use std::collections::BTreeMap;

/// Files of a project that agents read, and that usually have the published block.
pub(crate) const PUBLISHED_IN: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];

pub(crate) struct Directories {
    pub dir_sync: DirSync,
    /// Memory directory of the current project.
    pub here: Option<MemoryFolder>,
    /// Namespace from the settings, shown by `here`; if `None`, the folder determines it.
    pub namespace: Option<String>,
}

/// A directory after a sync, or after the preview of one.
pub(crate) struct SyncedDirectory {
    pub folder: MemoryFolder,
    pub report: SyncReport,
}

pub(crate) struct ForgetResult {
    pub erased: Erased,
    pub proof: ErasureProof,
    pub synced: Vec<SyncedDirectory>,
}

impl Directories {
    /// Imports people's edits, so that a plan sees them.
    pub(crate) async fn import_edits(&self, namespace: &str) -> Result<(), SyncError> {
        for folder in self.folders(namespace).await? {
            let imported = self.dir_sync.import_edits(&folder, namespace).await;
            imported.map_err(|error| inside(&folder, error))?;
        }
        Ok(())
    }

    /// Syncs the directories with the memories. Fails if another process holds the namespace.
    pub(crate) async fn renew(&self, namespace: &str) -> Result<Vec<SyncedDirectory>, SyncError> {
        let mut synced = Vec::new();
        for folder in self.folders(namespace).await? {
            let report = self.dir_sync.sync(&folder, namespace).await;
            let report = report.map_err(|error| inside(&folder, error))?;
            synced.push(SyncedDirectory { folder, report });
        }
        Ok(synced)
    }

    /// Previews the directories as they would be after `plan`; changes nothing.
    pub(crate) async fn preview(&self, plan: &Plan) -> Result<Vec<SyncedDirectory>, SyncError> {
        let mut synced = Vec::new();
        for folder in self.folders(&plan.namespace).await? {
            let report = self.dir_sync.preview(&folder, &plan.namespace, Some(plan)).await;
            let report = report.map_err(|error| inside(&folder, error))?;
            synced.push(SyncedDirectory { folder, report });
        }
        Ok(synced)
    }

    /// Erases `target` from the store and the directories, then searches both for its words.
    pub(crate) async fn forget(
        &self,
        consolidator: &Consolidator,
        found: &ForgetPlan,
        target: &ForgetTarget,
    ) -> Result<Forgotten<ForgetResult>, SyncError> {
        let namespace = &found.namespace;
        let (erased, passages) = match consolidator.forget(namespace, target).await? {
            Forgotten::Done(done) => done,
            Forgotten::Busy => return Ok(Forgotten::Busy),
            Forgotten::Moved(ids) => return Ok(Forgotten::Moved(ids)),
        };
        for folder in self.folders(namespace).await? {
            let renamed = self.dir_sync.rename_records(&folder, &retitled(found));
            renamed.map_err(|error| inside(&folder, error))?;
        }
        let synced = self.renew(namespace).await?;
        self.dir_sync.drop_absent(namespace).await?;
        let mut files = Vec::new();
        for SyncedDirectory { folder, .. } in &synced {
            let read = folder.read().map_err(|cause| SyncError::Disk {
                path: folder.path().display().to_string(),
                cause,
            })?;
            let named = |(path, text)| (self.shown(folder, path), text);
            files.extend(read.files.into_iter().map(named));
            // A published block repeats decisions.
            for path in PUBLISHED_IN {
                let text = read_if_exists(&folder.project().join(path)).ok().flatten();
                files.extend(text.map(|text| (path.to_owned(), text.into())));
            }
        }
        let proof = consolidator.prove(passages, &files).await?;
        Ok(Forgotten::Done(ForgetResult { erased, proof, synced }))
    }

    /// The entries that people wrote in the project's directory.
    pub(crate) async fn notes(&self) -> Result<Vec<Note>, SyncError> {
        let Some(folder) = &self.here else { return Ok(Vec::new()) };
        let DirSync { store, gate, .. } = &self.dir_sync;
        Ok(DirectoryNotes::read(folder, Some(store), gate).await?.notes)
    }

    /// Display path of a directory's file: relative if the directory is the project's own.
    pub(crate) fn shown(&self, folder: &MemoryFolder, path: String) -> String {
        match self.here.as_ref() == Some(folder) {
            true => path,
            false => format!("{}/{path}", folder.path().display()),
        }
    }

    async fn folders(&self, namespace: &str) -> Result<Vec<MemoryFolder>, StoreError> {
        let mut folders = self.dir_sync.folders(namespace).await?;
        if let Some(here) = self.here.as_ref().filter(|here| !folders.contains(here))
            && self.namespace_of(here).await? == namespace
        {
            folders.push(here.clone());
        }
        Ok(folders)
    }

    async fn namespace_of(&self, folder: &MemoryFolder) -> Result<String, StoreError> {
        if let Some(named) = &self.namespace {
            return Ok(named.clone());
        }
        let root = MemoryFolder::project_of(folder.path()).unwrap_or(folder.path());
        let DirSync { store, clock, gate, holder: _ } = &self.dir_sync;
        let namespaces = Namespaces { store, gate, clock: Some(*clock) };
        namespaces.of_folder(&root.display().to_string()).await
    }
}

/// Prefixes the error's path with the folder.
fn inside(folder: &MemoryFolder, error: SyncError) -> SyncError {
    match error {
        SyncError::Disk { path, cause } => {
            SyncError::Disk { path: folder.path().join(path).display().to_string(), cause }
        }
        error @ (SyncError::Store(_) | SyncError::Busy(_) | SyncError::OtherNamespace { .. }) => {
            error
        }
    }
}

/// New titles of decisions whose title changes, by tag; record files are named after the title.
fn retitled(found: &ForgetPlan) -> BTreeMap<String, String> {
    let both = |it: &Change| it.before.clone().zip(it.after.clone());
    let retitled = found.changes.iter().filter_map(both);
    let retitled =
        retitled.filter(|(before, after)| before.claim.headline() != after.claim.headline());
    // Where ids share a prefix, the real tag has more digits, and the file keeps its name until the next rename.
    let titles = retitled.map(|(_, after)| {
        let tags = source_tags([after.id]);
        (tags.into_values().collect::<String>(), after.claim.headline().to_owned())
    });
    titles.collect()
}
