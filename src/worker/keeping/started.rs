//! What was rendered of a directory, and what a run that did not end was about to write.

use crate::edge::store::{Store, StoreError};
use crate::memory_dir::{
    ACTIVE_CONTEXT, FileChange, Files, GLOSSARY, Initial, PATTERNS, PROGRESS, initial_files, is_day,
};

/// Behind the name of a directory: what is rendered by a run that is not over.
const NEXT: &str = "#next";
/// The same: what its files are to hold. A file that goes is not listed, since then it is as it was or gone.
const AFTER: &str = "#after";

/// The account of one directory.
pub(super) struct Started<'a> {
    pub(super) store: &'a Store,
    pub(super) dir: String,
}

impl Started<'_> {
    /// What was rendered of each file as it lies there: of those that a run which did not end wrote, what it rendered;
    /// of the others what the run before it did.
    pub(super) async fn base(&self, disk: &Files) -> Result<Files, StoreError> {
        let mut base = self.store.rendered(&self.dir).await?;
        let after = self.store.rendered(&self.key(AFTER)).await?;
        if after.is_empty() {
            return Ok(base);
        }
        let next = self.store.rendered(&self.key(NEXT)).await?;
        for (path, after) in &after {
            let Some(rendered) = next.get(path).filter(|_| disk.get(path) == Some(after)) else {
                continue;
            };
            base.insert(path.clone(), rendered.clone());
        }
        // What it took away is gone from both.
        base.retain(|path, _| next.contains_key(path) || disk.contains_key(path));
        Ok(base)
    }

    /// Saves what is about to be written.
    pub(super) async fn begin(
        &self,
        changes: &[FileChange],
        next: &Files,
    ) -> Result<(), StoreError> {
        let after = |it: &FileChange| Some((it.path.clone(), it.after.clone()?));
        let after: Files = changes.iter().filter_map(after).collect();
        if after.is_empty() {
            return Ok(());
        }
        self.store.keep_rendered(&self.key(NEXT), next).await?;
        self.store.keep_rendered(&self.key(AFTER), &after).await
    }

    /// Everything was written; `before` is what [`Started::base`] gave.
    pub(super) async fn end(&self, next: &Files, before: &Files) -> Result<(), StoreError> {
        if next != before || self.store.rendered(&self.dir).await? != *next {
            self.store.keep_rendered(&self.dir, next).await?;
        }
        for kind in [AFTER, NEXT] {
            if !self.store.rendered(&self.key(kind)).await?.is_empty() {
                self.store.keep_rendered(&self.key(kind), &Files::new()).await?;
            }
        }
        Ok(())
    }

    fn key(&self, kind: &str) -> String {
        format!("{}{kind}", self.dir)
    }
}

/// `base`, with the files that are as they begin: those are ours too, whoever asked for them. And where many entries
/// were rendered and none is left, the directory was made anew, and is filled anew.
pub(super) fn begun(base: Files, disk: &Files) -> Files {
    let mut base = if is_anew(&base, disk) { Files::new() } else { base };
    for path in [ACTIVE_CONTEXT, PROGRESS, PATTERNS, GLOSSARY] {
        let Some(text) = disk.get(path).filter(|_| !base.contains_key(path)) else { continue };
        let is_first = days(text).any(|day| {
            initial_files(Initial::All, day)
                .iter()
                .any(|(name, first)| *name == path && first == text)
        });
        if is_first {
            base.insert(path.to_owned(), text.clone());
        }
    }
    base
}

/// Entries of which a person takes out all without wanting them back.
const ANEW_MIN: usize = 3;

fn is_anew(base: &Files, disk: &Files) -> bool {
    let before = super::people::sources(base);
    before.len() >= ANEW_MIN && super::people::sources(disk).is_disjoint(&before)
}

/// The days in the last line of a text.
fn days(text: &str) -> impl Iterator<Item = &str> {
    let last = text.lines().next_back().unwrap_or_default();
    last.split([' ', '*']).filter(|word| is_day(word))
}
