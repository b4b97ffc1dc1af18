//! What is known of a directory between two runs: what was rendered, what its files held when the last run left them,
//! and what a run that did not end was about to write. Of what people wrote only what passed the gate is kept.

use crate::domain::Digest;
use crate::edge::store::{Store, StoreError};
use crate::memory_dir::{
    ACTIVE_CONTEXT, FileChange, Files, GLOSSARY, Initial, PATTERNS, PROGRESS, initial_files, is_day,
};
use crate::privacy::Gate;

/// Behind the name of a directory: what its files held when they were last seen, as the gate lets it through.
const SEEN: &str = "#seen";
/// The same: what is rendered by a run that is not over.
const NEXT: &str = "#next";
/// The same: digests of what its files are to hold. A file that goes is not listed: it is as it was, or gone.
const AFTER: &str = "#after";

/// The account of one directory.
pub(super) struct Started<'a> {
    pub(super) store: &'a Store,
    pub(super) gate: &'a Gate,
    pub(super) dir: String,
}

/// What is known of the files that lie there.
pub(super) struct Before {
    /// What was rendered of them.
    pub(super) base: Files,
    /// What they held when they were last seen, as the gate lets it through.
    pub(super) seen: Files,
}

impl Started<'_> {
    /// What is known: of the files that a run which did not end wrote, what it rendered; of the others what the run
    /// before it left.
    pub(super) async fn before(&self, disk: &Files) -> Result<Before, StoreError> {
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
        if is_anew(&base, disk) {
            (base, seen) = (Files::new(), Files::new());
        }
        Ok(Before { base: begun(base, disk), seen })
    }

    /// Saves what is about to be written.
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

    /// Everything was written: `next` is what was rendered, `seen` what lies there.
    pub(super) async fn end(&self, next: &Files, seen: &Files) -> Result<(), StoreError> {
        let none = Files::new();
        let kept = [(SEEN, seen), ("", next), (AFTER, &none), (NEXT, &none)];
        for (kind, files) in kept {
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

/// `base`, with the files that are as they begin: those are ours too, whoever asked for them.
fn begun(mut base: Files, disk: &Files) -> Files {
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

/// Whether the directory was made anew, and is to be filled anew.
fn is_anew(base: &Files, disk: &Files) -> bool {
    let before = super::people::sources(base);
    before.len() >= ANEW_MIN && super::people::sources(disk).is_disjoint(&before)
}

/// The days in the last line of a text.
fn days(text: &str) -> impl Iterator<Item = &str> {
    let last = text.lines().next_back().unwrap_or_default();
    last.split([' ', '*']).filter(|word| is_day(word))
}
