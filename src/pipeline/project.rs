//! The project of a folder: its namespace, its memory directory, and what people wrote there.

use super::dir_sync::{SyncError, dir_of, stamps_of};
use super::namespace::Namespaces;
use super::searching::Note;
use crate::adapters::memory_files::MemoryFolder;
use crate::config::Config;
use crate::context::{Block, Budget, assemble, material, shown_files};
use crate::memory_dir::{
    CONFIG, Document, Files, Kind, MemoryConfig, Readable, SOURCE, Tag, adr_number, readable,
};
use crate::privacy::Gate;
use crate::store::{Store, StoreError};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::Path;

/// The namespace of the settings, or of the first of `folders` that the store knows.
pub(crate) async fn project_namespace<'f>(
    namespaces: Namespaces<'_>,
    config: &Config,
    folders: impl Iterator<Item = &'f Path>,
) -> Result<Option<String>, StoreError> {
    if config.namespace.is_some() {
        return Ok(config.namespace.clone());
    }
    for folder in folders {
        let namespace = namespaces.of_folder(&folder.display().to_string()).await?;
        if namespaces.store.has_namespace(&namespace).await? {
            return Ok(Some(namespace));
        }
    }
    Ok(None)
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
        let read = folder.read_but(&stamps);
        let read = read.map_err(|cause| SyncError::Disk { path: dir.clone(), cause })?;
        if let Some(store) = store {
            rendered = Some(store.rendered_but(&dir, read.known).await?);
        }
        let notes = notes(&read.files, rendered.as_ref(), gate);
        Ok(DirectoryNotes { notes, skipped: read.skipped })
    }
}

/// Entries in `files`; given the `rendered` files, only those that annalist did not write.
fn notes(files: &Files, rendered: Option<&Files>, gate: &Gate) -> Vec<Note> {
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
        let is_tagged = |it: &Readable| it.tag.is_some() || it.is_unedited;
        let is_ours = |it: &Readable| rendered.is_some() && is_tagged(it) || is_written(it.line);
        let own = entries.into_iter().filter(|it| !it.is_head && !is_ours(it));
        notes.extend(own.map(|it| Note { path: path.clone(), line: it.line, text: it.text }));
    }
    notes
}

/// Finds the tag of the memory that the record with this number in `folder` shows.
pub(crate) fn record_tag(folder: &MemoryFolder, number: u32) -> io::Result<Option<String>> {
    for name in folder.names()?.iter().filter(|name| adr_number(name) == Some(number)) {
        // An unreadable file shows no memory.
        let text = folder.file(name).ok().flatten().unwrap_or_default();
        let mut tags = text.lines().filter_map(Tag::of_line);
        let tag = tags.find_map(|tag| tag.ours().filter(|tag| tag.starts_with(SOURCE)));
        if let Some(tag) = tag {
            return Ok(Some(tag.to_owned()));
        }
    }
    Ok(None)
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
