//! All files of a directory at once.

use super::{Conflict, Merged, PersonEdit, merge};
use crate::memory_dir::Files;
use crate::memory_dir::kind::Kind;
use crate::memory_dir::project::Rendered;
use crate::privacy::Gate;
use std::collections::BTreeSet;

/// A file that is to be written or taken away.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileChange {
    /// Where it lies in the directory.
    pub path: String,
    /// What it held when the change was planned; none if it was not there. Who writes checks it again.
    pub before: Option<String>,
    /// What it is to hold; none if it is to go.
    pub after: Option<String>,
}

/// What is to be done to a directory, and what was found on the way. Each finding stands with its path.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Update {
    /// The files that change, by path.
    pub changes: Vec<FileChange>,
    /// Where a person and we changed the same.
    pub conflicts: Vec<(String, Conflict)>,
    /// What people did.
    pub edits: Vec<(String, PersonEdit)>,
    /// Files that were left alone, with the rule that says why.
    pub held: Vec<(String, &'static str)>,
    /// Files of ours that a person took away; they stay away.
    pub deleted: Vec<String>,
}

/// Lays what was rendered over what lies in the directory. `base` is what was rendered the last time.
pub fn update(base: &Files, rendered: &Rendered, disk: &Files, gate: &Gate) -> Update {
    let mut update = Update::default();
    let mut met: BTreeSet<&str> = BTreeSet::new();
    for (path, ours) in &rendered.files {
        let old = rendered.renamed.get(path).unwrap_or(path);
        met.extend([path.as_str(), old.as_str()]);
        let before = base.get(old).map(String::as_str);
        match (before, disk.get(path)) {
            (_, Some(theirs)) => {
                update.join(path, [before.unwrap_or_default(), ours, theirs], gate);
            }
            (Some(_), None) => update.deleted.push(path.clone()),
            (None, None) => update.changes.push(FileChange {
                path: path.clone(),
                before: None,
                after: Some(ours.clone()),
            }),
        }
    }
    let gone = base.iter().filter(|(path, _)| !met.contains(path.as_str()));
    for (path, before) in gone {
        let Some(theirs) = disk.get(path) else { continue };
        update.take_away(path, before, theirs, gate);
    }
    update.changes.sort_by(|one, other| one.path.cmp(&other.path));
    update
}

impl Update {
    fn join(&mut self, path: &str, [base, ours, theirs]: [&str; 3], gate: &Gate) {
        let merged = merge(Kind::of_path(path), base, ours, theirs, gate);
        self.add(path, theirs, merged);
    }

    fn add(&mut self, path: &str, theirs: &str, merged: Merged) {
        let Merged { text, conflicts, edits, held } = merged;
        let at = |it| (path.to_owned(), it);
        self.conflicts.extend(conflicts.into_iter().map(at));
        self.edits.extend(edits.into_iter().map(|edit| (path.to_owned(), edit)));
        self.held.extend(held.map(|rule| (path.to_owned(), rule)));
        if text != theirs {
            let (before, after) = (Some(theirs.to_owned()), Some(text));
            self.changes.push(FileChange { path: path.to_owned(), before, after });
        }
    }

    /// A file of ours that is to go: if a person changed it, only what is ours goes.
    fn take_away(&mut self, path: &str, base: &str, theirs: &str, gate: &Gate) {
        if base == theirs {
            let before = Some(theirs.to_owned());
            self.changes.push(FileChange { path: path.to_owned(), before, after: None });
            return;
        }
        self.join(path, [base, "", theirs], gate);
    }
}
