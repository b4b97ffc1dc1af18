//! The project of a folder: its namespace and the memory directories of this machine that show it, which are read before
//! a plan changes memory and synced after it, and what people wrote there.

use super::Consolidator;
use super::dir_sync::{
    DirSync, SyncError, SyncReport, dir_of, directory_of, disk_error, stamps_of,
};
use super::forgetting::{ErasedSources, ErasureProof, ForgetPlan, ForgetTarget, Forgotten};
use super::lookup::{LookupError, memory_named};
use super::namespace::Namespaces;
use super::searching::Note;
use crate::adapters::files::read_if_exists;
use crate::adapters::memory_files::MemoryFolder;
use crate::config::Config;
use crate::context::{Block, Budget, assemble, material, shown_files};
use crate::domain::{Change, Plan};
use crate::memory_dir::{
    CONFIG, Document, Files, Kind, MemoryConfig, Readable, SOURCE, readable, source_tags, tags_in,
};
use crate::privacy::Gate;
use crate::store::{Directory, Erased, PrefixLookup, Store, StoreResult};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::path::Path;

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
            self.dir_sync.import_edits(&folder, namespace).await?;
        }
        Ok(())
    }

    /// Syncs the directories with the memories. Fails if another process holds the namespace.
    pub(crate) async fn renew(&self, namespace: &str) -> Result<Vec<SyncedDirectory>, SyncError> {
        let mut synced = Vec::new();
        for folder in self.folders(namespace).await? {
            let report = self.dir_sync.sync(&folder, namespace).await?;
            synced.push(SyncedDirectory { folder, report });
        }
        Ok(synced)
    }

    /// Previews the directories as they would be after `plan`; changes nothing.
    pub(crate) async fn preview(&self, plan: &Plan) -> Result<Vec<SyncedDirectory>, SyncError> {
        let mut synced = Vec::new();
        for folder in self.folders(&plan.namespace).await? {
            let report = self.dir_sync.preview(&folder, &plan.namespace, Some(plan)).await?;
            synced.push(SyncedDirectory { folder, report });
        }
        Ok(synced)
    }

    /// Erases `target` from the store and the directories, then searches both for its words.
    pub(crate) async fn forget(
        &self,
        consolidator: &Consolidator,
        namespace: &str,
        target: &ForgetTarget,
    ) -> Result<Forgotten<ForgetResult>, SyncError> {
        self.leave_to_other_stores(namespace).await?;
        let ErasedSources { erased, changes, passages } =
            match consolidator.forget(namespace, target).await? {
                Forgotten::Done(done) => done,
                Forgotten::Busy => return Ok(Forgotten::Busy),
                Forgotten::Moved(ids) => return Ok(Forgotten::Moved(ids)),
            };
        for folder in self.folders(namespace).await? {
            self.dir_sync.rename_records(&folder, &retitled(&changes))?;
        }
        let synced = self.renew(namespace).await?;
        self.dir_sync.drop_absent(namespace).await?;
        let mut files = Vec::new();
        for SyncedDirectory { folder, .. } in &synced {
            let read = folder.read().map_err(|cause| disk_error(folder, cause))?;
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

    /// Finishes erasures in `namespaces` that were interrupted: syncs their directories and scrubs the store. Returns
    /// false if another process holds a namespace or still reads the store's file as it was.
    pub(crate) async fn finish_forgetting(&self, namespaces: &[String]) -> Result<bool, SyncError> {
        for namespace in namespaces.iter().filter(|it| !it.is_empty()) {
            match self.renew(namespace).await {
                Err(SyncError::Busy(_)) => return Ok(false),
                synced => synced?,
            };
            self.dir_sync.drop_absent(namespace).await?;
        }
        Ok(self.dir_sync.store.scrub().await?)
    }

    /// Files of the directories that show a memory that `found` would erase or change, by path.
    pub(crate) async fn files_with(&self, found: &ForgetPlan) -> Result<Vec<String>, SyncError> {
        let changes = found.erasure.changes.iter();
        let ids: BTreeSet<String> = changes.map(|it| format!("{SOURCE}{}", it.memory)).collect();
        // A tag is the beginning of an id.
        let is_any = |tag: &str| {
            ids.range(tag.to_owned()..).next().is_some_and(|first| first.starts_with(tag))
        };
        let mut paths = Vec::new();
        for folder in self.folders(&found.namespace).await? {
            let read = folder.read().map_err(|cause| disk_error(&folder, cause))?;
            let own = read.files.into_iter().filter(|(_, text)| tags_in(text).any(is_any));
            paths.extend(own.map(|(path, _)| self.shown(&folder, path)));
        }
        Ok(paths)
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

    async fn folders(&self, namespace: &str) -> Result<Vec<MemoryFolder>, SyncError> {
        let mut folders = self.dir_sync.folders(namespace).await?;
        folders.retain(|folder| self.has_this_store(folder) != Some(false));
        if let Some(here) = self.here.as_ref().filter(|here| !folders.contains(here))
            && self.namespace_of(here).await? == namespace
            && left_behind(&self.dir_sync, here, namespace).await?.is_none()
        {
            folders.push(here.clone());
        }
        Ok(folders)
    }

    /// Leaves the directories of projects with another store to that store. A store that records one was copied from it:
    /// then the directory beside this store is a copy too, and takes its place.
    async fn leave_to_other_stores(&self, namespace: &str) -> StoreResult<()> {
        let store = &self.dir_sync.store;
        let is_beside = |here: &&MemoryFolder| self.has_this_store(here) == Some(true);
        let mut free = self.here.as_ref().filter(is_beside).map(directory_of);
        if let Some(here) = &free
            && store.shown_namespace(here).await?.is_some()
        {
            free = None;
        }
        for folder in self.dir_sync.folders(namespace).await? {
            if self.has_this_store(&folder) == Some(false) {
                let here = free.take().map(|here| here.dir);
                store.leave_directory(&directory_of(&folder), here).await?;
            }
        }
        Ok(())
    }

    /// True if the store in the project of `folder` is this one; `None` if the project has none.
    fn has_this_store(&self, folder: &MemoryFolder) -> Option<bool> {
        let own = folder.project().join(".annalist/annalist.db").canonicalize().ok()?;
        let this = Path::new(self.dir_sync.store.place()).canonicalize();
        Some(this.is_ok_and(|this| own == this))
    }

    async fn namespace_of(&self, folder: &MemoryFolder) -> StoreResult<String> {
        if let Some(named) = &self.namespace {
            return Ok(named.clone());
        }
        let root = MemoryFolder::project_of(folder.path()).unwrap_or(folder.path());
        let DirSync { store, gate, .. } = &self.dir_sync;
        let namespaces = Namespaces { store, gate };
        namespaces.of_folder(&root.display().to_string()).await
    }
}

/// Returns the namespace that `folder` showed before its project was moved or copied here, and the original if it is still
/// there; `None` if it was synced with `namespace` since.
pub(crate) async fn left_behind(
    sync: &DirSync,
    folder: &MemoryFolder,
    namespace: &str,
) -> Result<Option<(String, Option<Directory>)>, SyncError> {
    if sync.store.directories(namespace).await?.contains(&directory_of(folder)) {
        return Ok(None);
    }
    Ok(sync.origin(folder).await?.filter(|(old, _)| old != namespace))
}

/// New titles of decisions whose title changes, by tag; record files are named after the title.
fn retitled(changes: &[Change]) -> BTreeMap<String, String> {
    let both = |it: &Change| it.before.clone().zip(it.after.clone());
    let retitled = changes.iter().filter_map(both);
    let retitled =
        retitled.filter(|(before, after)| before.claim.headline() != after.claim.headline());
    // Where ids share a prefix, the real tag has more digits, and the file keeps its name until the next rename.
    let titles = retitled.map(|(_, after)| {
        let tags = source_tags([after.id]);
        (tags.into_values().collect::<String>(), after.claim.headline().to_owned())
    });
    titles.collect()
}

/// The namespace of the settings, or of the first of `folders` that the store knows.
pub(crate) async fn project_namespace<'f>(
    namespaces: Namespaces<'_>,
    config: &Config,
    folders: impl Iterator<Item = &'f Path>,
) -> StoreResult<Option<String>> {
    if config.namespace.is_some() {
        return Ok(config.namespace.clone());
    }
    let mut is_own = false;
    for folder in folders {
        let namespace = namespaces.of_folder(&folder.display().to_string()).await?;
        // The root folder shares its namespace with conversations without a folder.
        if folder.parent().is_some() && namespaces.store.has_namespace(&namespace).await? {
            return Ok(Some(namespace));
        }
        let own = format!("sqlite:{}", folder.join(".annalist").display());
        is_own |= config.store_url.starts_with(&own);
    }
    // The only namespace of the project's own store is the project's, also after it was moved or copied.
    if is_own { namespaces.store.only_namespace().await } else { Ok(None) }
}

pub(crate) struct DirectoryNotes {
    pub(crate) notes: Vec<Note>,
    pub(crate) skipped: Vec<(String, &'static str)>,
}

impl DirectoryNotes {
    /// Reads the entries of `folder`; with a store, only those that annalist did not write.
    pub(crate) async fn read(
        folder: &MemoryFolder,
        store: Option<&Store>,
        gate: &Gate,
    ) -> Result<DirectoryNotes, SyncError> {
        let (mut stamps, mut rendered, dir) = (BTreeMap::new(), None, dir_of(folder));
        if let Some(store) = store {
            stamps = stamps_of(store, &dir).await?;
        }
        let read = folder.read_but(&stamps).map_err(|cause| disk_error(folder, cause))?;
        if let Some(store) = store {
            rendered = Some(store.rendered_but(&dir, read.known).await?);
        }
        let mut found = notes(&read.files, rendered.as_ref(), gate);
        if let Some(store) = store {
            let mut foreign: HashMap<String, bool> = HashMap::new();
            for tag in found.iter().filter_map(|it| it.tag.as_ref()) {
                if !foreign.contains_key(tag) {
                    let is_unknown = match memory_named(store, tag).await {
                        Ok(found) => matches!(found, PrefixLookup::None),
                        Err(LookupError::Store(error)) => return Err(error.into()),
                        // The tag of a session, which annalist wrote.
                        Err(LookupError::Name(_)) => false,
                    };
                    foreign.insert(tag.clone(), is_unknown);
                }
            }
            found.retain(|it| it.tag.as_ref().is_none_or(|tag| foreign.get(tag) == Some(&true)));
        }
        let notes = found.into_iter().map(|it| it.note).collect();
        Ok(DirectoryNotes { notes, skipped: read.skipped })
    }
}

/// An entry of a file that annalist did not write there.
struct FoundNote {
    note: Note,
    /// Tag of its memory, which another store may have written.
    tag: Option<String>,
}

/// Entries in `files`; given the `rendered` files, only those that annalist did not write.
fn notes(files: &Files, rendered: Option<&Files>, gate: &Gate) -> Vec<FoundNote> {
    let mut notes = Vec::new();
    for (path, text) in files {
        let kind = Kind::of_path(path);
        let written = rendered.and_then(|it| it.get(path));
        if kind == Kind::Config || written == Some(text) {
            continue;
        }
        let (document, _) = Document::parse(kind, text);
        let lines: Vec<&str> = text.lines().collect();
        let entries = readable(&document, gate);
        // Entries of a record have no tags of their own; one rendered elsewhere is ours by its heading.
        let is_copied = kind == Kind::Decision && rendered.is_some() && written.is_none();
        if is_copied && entries.first().is_some_and(|it| it.is_head && it.tag.is_some()) {
            continue;
        }
        let written: HashSet<&str> = written.into_iter().flat_map(|it| it.lines()).collect();
        let is_written = |line: u32| {
            let at = (line as usize).saturating_sub(1);
            lines.get(at).is_some_and(|line| written.contains(line))
        };
        let is_ours = |it: &Readable| rendered.is_some() && it.is_unedited || is_written(it.line);
        let own = entries.into_iter().filter(|it| !it.is_head && !is_ours(it));
        notes.extend(own.map(|it| FoundNote {
            note: Note { path: path.clone(), line: it.line, text: it.unmarked() },
            tag: it.tag,
        }));
    }
    notes
}

/// A memory directory that is read for a block.
pub(crate) struct ProjectDirectory {
    pub(crate) folder: MemoryFolder,
    pub(crate) settings: MemoryConfig,
}

/// Files that were read for a block, and the skipped ones with the reason.
#[derive(Default)]
pub(crate) struct ShownFiles {
    pub(crate) files: Files,
    pub(crate) skipped: Vec<(String, &'static str)>,
}

impl ProjectDirectory {
    pub(crate) fn new(folder: MemoryFolder) -> ProjectDirectory {
        // Unreadable settings fall back to the defaults.
        let text = folder.file(CONFIG).ok().flatten().unwrap_or_default();
        ProjectDirectory { settings: MemoryConfig::parse(&text).0, folder }
    }

    pub(crate) fn block(
        &self,
        query: Option<&str>,
        budget: &Budget,
        gate: &Gate,
    ) -> io::Result<Block> {
        let shown = self.read(query.is_some())?;
        Ok(assemble(&material(&shown.files, query, gate), budget, gate))
    }

    /// Reads the files that a block may show; sessions and the archive only for a query.
    pub(crate) fn read(&self, is_query: bool) -> io::Result<ShownFiles> {
        let names = self.folder.names()?;
        let mut shown = ShownFiles::default();
        for name in shown_files(&names, is_query) {
            match self.folder.file(name) {
                // Every file that annalist creates has a title.
                Ok(Some(text)) if text.trim().is_empty() && Kind::of_path(name) != Kind::Other => {
                    shown.skipped.push((name.to_owned(), "is empty"));
                }
                Ok(Some(text)) => {
                    shown.files.insert(name.to_owned(), text.into());
                }
                // It was deleted meanwhile.
                Ok(None) => {}
                Err(why) => shown.skipped.push((name.to_owned(), why)),
            }
        }
        Ok(shown)
    }
}
