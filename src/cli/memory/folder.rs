//! Memory directories of this machine: finds, reads and syncs them before and after a plan.

use crate::adapters::memory_files::{DirectoryRead, MemoryFolder, PLACES};
use crate::adapters::{clock, process};
use crate::cli::output::{self, Failure, Result, YELLOW};
use crate::cli::settings;
use crate::config::Config;
use crate::memory_dir::{FileChange, label_number};
use crate::pipeline::{
    self, DirSync, Directories, Namespaces, SyncError, SyncedDirectory, directory_of,
};
use crate::privacy::Gate;
use crate::store::Store;
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

const CHANGES_MAX: usize = 30;

/// The flag that names the directory.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct DirArgs {
    /// Project folder or its memory directory, instead of the current project
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl DirArgs {
    pub(crate) fn root(&self) -> PathBuf {
        let named = self.dir.as_deref().unwrap_or(Path::new("."));
        if !PLACES.iter().any(|place| named.ends_with(place)) {
            return named.to_owned();
        }
        let root = named.ancestors().nth(2).unwrap_or(named);
        if root.as_os_str().is_empty() { PathBuf::from(".") } else { root.to_owned() }
    }

    pub(crate) fn is_named(&self) -> bool {
        self.dir.is_some()
    }

    pub(crate) fn find(&self) -> Result<MemoryFolder> {
        let root = self.root();
        let found = match self.dir {
            Some(_) => MemoryFolder::find(&root).map_err(|error| unreadable(&root, &error))?,
            None => project_directory(&root)?,
        };
        found.ok_or_else(|| Failure::usage(no_directory(self.dir.is_some().then_some(&root))))
    }
}

/// Says that `dir`, or the current project, has no memory directory.
pub(crate) fn no_directory(dir: Option<&Path>) -> String {
    if let Some(error) = MemoryFolder::link_out(dir.unwrap_or(Path::new("."))) {
        return error.to_string();
    }
    let project = || "in this folder or a parent".to_owned();
    let place = dir.map_or_else(project, |dir| format!("in {}", dir.display()));
    let [first, second] = PLACES;
    format!(
        "no memory directory: expected {first} or {second} {place}; `annalist memory init` creates one"
    )
}

pub(crate) fn project_directory(folder: &Path) -> Result<Option<MemoryFolder>> {
    let found = MemoryFolder::find_above(folder, settings::home().as_deref());
    found.map_err(|error| unreadable(folder, &error))
}

/// Replaces a label or a tag by what the store knows, in the current project.
pub(crate) fn tag_or_id(id: &str) -> Result<Cow<'_, str>> {
    let here = label_number(id).map(|_| DirArgs::default().find()).transpose()?;
    Ok(pipeline::tag_or_id(here.as_ref(), id)?)
}

pub(crate) fn read(folder: &MemoryFolder) -> Result<DirectoryRead> {
    let read = folder.read().map_err(|error| unreadable(folder.path(), &error))?;
    left_out(&read.skipped);
    Ok(read)
}

pub(crate) fn left_out(files: &[(String, &'static str)]) {
    for (path, reason) in files {
        output::note(&format!("{YELLOW}{path}: {reason}: skipped{YELLOW:#}"));
    }
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("{}: {error}", path.display()))
}

pub(super) fn place_of(folder: &MemoryFolder) -> &'static str {
    PLACES.into_iter().find(|place| folder.path().ends_with(place)).unwrap_or(PLACES[0])
}

/// Namespace of a directory: that of the settings, or of the folder.
pub(super) async fn namespace_of(
    store: &Store,
    config: &Config,
    folder: &MemoryFolder,
) -> Result<String> {
    if let Some(named) = &config.namespace {
        return Ok(named.clone());
    }
    if let Some(shown) = store.shown_namespace(&directory_of(folder)).await? {
        return Ok(shown);
    }
    let root = MemoryFolder::project_of(folder.path()).unwrap_or(folder.path());
    let gate = Gate::new(&config.pii);
    let namespaces = Namespaces { store, gate: &gate };
    Ok(namespaces.of_folder(&root.display().to_string()).await?)
}

pub(super) fn dir_sync_of(store: Store, config: &Config) -> DirSync {
    DirSync {
        store,
        holder: process::name().to_owned(),
        clock: clock::now,
        gate: Gate::new(&config.pii),
    }
}

pub(super) fn failure(folder: &MemoryFolder, error: SyncError) -> Failure {
    match error {
        SyncError::Disk { path, cause } => unreadable(&folder.path().join(path), &cause),
        error @ (SyncError::Store(_) | SyncError::Busy(_) | SyncError::OtherNamespace { .. }) => {
            error.into()
        }
    }
}

pub(crate) fn directories(store: &Store, config: &Config) -> Result<Directories> {
    Ok(Directories {
        dir_sync: dir_sync_of(store.clone(), config),
        here: project_directory(Path::new("."))?,
        namespace: config.namespace.clone(),
    })
}

pub(crate) const UNSCRUBBED: &str = "the store's file still contains erased text, because \
    another process uses the store: once it has ended, `annalist forget` or the next replay, sync \
    or consolidation removes the text";

/// Finishes erasures that were interrupted and returns their namespaces. Their text may still be in directories and in
/// the store's file.
pub(crate) async fn finish_forgetting(store: &Store, config: &Config) -> Result<Vec<String>> {
    let unfinished = store.unscrubbed().await?;
    if !unfinished.is_empty() {
        let is_done = directories(store, config)?.finish_forgetting(&unfinished).await?;
        output::note(match is_done {
            true => "an interrupted erasure was finished: its text is gone from the store",
            false => UNSCRUBBED,
        });
    }
    Ok(unfinished)
}

/// Updates this machine's directories of `namespaces` after a plan was applied or undone. Notes changed files.
pub(crate) async fn after_plan(store: &Store, config: &Config, namespaces: &[&str]) -> Result<()> {
    let directories = directories(store, config)?;
    for shown in namespaces {
        note_files(&directories, &directories.renew(shown).await?)?;
    }
    Ok(())
}

pub(crate) fn note_files(directories: &Directories, synced: &[SyncedDirectory]) -> Result<()> {
    for SyncedDirectory { folder, report } in synced {
        let told = |change: &FileChange| {
            format!("{}: {}", directories.shown(folder, change.path.clone()), became(change))
        };
        output::notes(report.changes.iter().map(told), CHANGES_MAX, "more files");
        left_out(&report.skipped);
    }
    Ok(())
}

/// Imports edits by people from this machine's directories of `shown`, before a plan is made.
pub(crate) async fn before_plan(store: &Store, config: &Config, shown: &str) -> Result<()> {
    Ok(directories(store, config)?.import_edits(shown).await?)
}

pub(super) fn became(change: &FileChange) -> &'static str {
    match (&change.before, &change.after) {
        (None, _) => "created",
        (Some(_), Some(_)) => "changed",
        (Some(_), None) => "removed",
    }
}
