//! The state of a directory between two runs: what was rendered, what its files held when the last run left them, and what
//! a run that did not end was about to write. Only what passed the gate is kept.

use super::people::tags_of_memories;
use crate::domain::Digest;
use crate::memory_dir::{
    ACTIVE_CONTEXT, FileChange, Files, GLOSSARY, Initial, PATTERNS, PROGRESS, initial_files, is_day,
};
use crate::privacy::Gate;
use crate::store::{Store, StoreError};

/// Suffix of the key of what the files held when they were last seen.
const SEEN: &str = "#seen";
/// Suffix of the key of files rendered by an unfinished run.
const NEXT: &str = "#next";
/// Suffix of the key of digests of what the files are to hold. A file that goes is not listed.
const AFTER: &str = "#after";
/// Entries whose removal all at once means a new directory.
const ANEW_MIN: usize = 3;

/// The saved state of one directory.
pub(super) struct SyncState<'a> {
    pub(super) store: &'a Store,
    pub(super) gate: &'a Gate,
    pub(super) dir: String,
}

/// Known versions of the files of a directory.
pub(super) struct KnownFiles {
    pub(super) base: Files,
    /// As they were when they were last seen, as the gate lets them through.
    pub(super) seen: Files,
}

impl SyncState<'_> {
    /// The known files: those that an unfinished run wrote as that run rendered them, the others as the run before left
    /// them.
    pub(super) async fn known_files(&self, disk: &Files) -> Result<KnownFiles, StoreError> {
        let mut base = self.store.rendered(&self.dir).await?;
        let mut seen = self.store.rendered(&self.key(SEEN)).await?;
        let after = self.store.rendered(&self.key(AFTER)).await?;
        if !after.is_empty() {
            let next = self.store.rendered(&self.key(NEXT)).await?;
            for (path, after) in &after {
                let text = disk.get(path).filter(|text| digest(text) == *after);
                let (Some(text), Some(rendered)) = (text, next.get(path)) else { continue };
                base.insert(path.clone(), rendered.clone());
                seen.insert(path.clone(), self.gate.redact(text).as_str().to_owned());
            }
            // What it took away is gone from both.
            base.retain(|path, _| next.contains_key(path) || disk.contains_key(path));
        }
        // A directory that was made anew is filled anew.
        let before = tags_of_memories(&base);
        if before.len() >= ANEW_MIN && tags_of_memories(disk).is_disjoint(&before) {
            (base, seen) = (Files::new(), Files::new());
        }
        Ok(KnownFiles { base: with_initial(base, disk), seen })
    }

    /// Saves the changes before they are written.
    pub(super) async fn begin(
        &self,
        changes: &[FileChange],
        next: &Files,
    ) -> Result<(), StoreError> {
        let after = |it: &FileChange| Some((it.path.clone(), digest(it.after.as_deref()?)));
        let after: Files = changes.iter().filter_map(after).collect();
        if after.is_empty() {
            return Ok(());
        }
        self.store.keep_rendered(&self.key(NEXT), next).await?;
        self.store.keep_rendered(&self.key(AFTER), &after).await
    }

    /// Saves the files after everything was written.
    pub(super) async fn end(&self, files: &KnownFiles) -> Result<(), StoreError> {
        let none = Files::new();
        for (kind, files) in [(SEEN, &files.seen), ("", &files.base), (AFTER, &none), (NEXT, &none)]
        {
            if self.store.rendered(&self.key(kind)).await? != *files {
                self.store.keep_rendered(&self.key(kind), files).await?;
            }
        }
        Ok(())
    }

    fn key(&self, kind: &str) -> String {
        format!("{}{kind}", self.dir)
    }
}

fn digest(text: &str) -> String {
    Digest::of_bytes(text.as_bytes()).to_string()
}

/// Adds untouched initial files to `base`.
fn with_initial(mut base: Files, disk: &Files) -> Files {
    for path in [ACTIVE_CONTEXT, PROGRESS, PATTERNS, GLOSSARY] {
        let Some(text) = disk.get(path).filter(|_| !base.contains_key(path)) else { continue };
        // The day of an initial file stands in its last line.
        let last = text.lines().next_back().unwrap_or_default();
        let mut days = last.split([' ', '*']).filter(|word| is_day(word));
        let is_initial = |day| {
            let files = initial_files(Initial::All, day);
            files.iter().any(|(name, first)| *name == path && first == text)
        };
        if days.any(is_initial) {
            base.insert(path.to_owned(), text.clone());
        }
    }
    base
}
