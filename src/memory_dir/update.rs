//! Changes of all files of a directory: what was rendered is laid over what people left, and entries about forgotten
//! records are struck out.

use super::document::{Document, Part};
use super::edit::Edits;
use super::kind::{Files, Kind};
use super::merge::{Conflict, Merged, PersonEdit, merge};
use super::render::Rendered;
use super::tag::{record_prefix, words_tag};
use crate::privacy::Gate;
use std::collections::BTreeSet;

/// A file that is to be written or taken away.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileChange {
    pub path: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// Changes to a directory and findings, each with its path.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Update {
    /// The files that change, by path.
    pub changes: Vec<FileChange>,
    /// Entries that both a person and we changed.
    pub conflicts: Vec<(String, Conflict)>,
    /// Edits by people.
    pub edits: Vec<(String, PersonEdit)>,
    /// Files that were left alone, with the rule that says why.
    pub held: Vec<(String, &'static str)>,
    /// Rendered files that a person deleted; they stay deleted.
    pub deleted: Vec<String>,
}

/// Merges rendered files into the directory. `base` holds the files as rendered last.
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
            (None, None) => update.change(path, None, Some(ours.clone())),
        }
    }
    let gone = base.iter().filter(|(path, _)| !met.contains(path.as_str()));
    for (path, before) in gone {
        let Some(theirs) = disk.get(path) else { continue };
        if before == theirs {
            update.change(path, Some(theirs), None);
        } else {
            // A person changed it: only the rendered entries go.
            update.join(path, [before, "", theirs], gate);
        }
    }
    update.changes.sort_by(|one, other| one.path.cmp(&other.path));
    update
}

impl Update {
    fn join(&mut self, path: &str, [base, ours, theirs]: [&str; 3], gate: &Gate) {
        let Merged { text, conflicts, edits, held } =
            merge(Kind::of_path(path), base, ours, theirs, gate);
        self.conflicts.extend(conflicts.into_iter().map(|it| (path.to_owned(), it)));
        self.edits.extend(edits.into_iter().map(|it| (path.to_owned(), it)));
        self.held.extend(held.map(|rule| (path.to_owned(), rule)));
        if text != theirs {
            self.change(path, Some(theirs), Some(text));
        }
    }

    fn change(&mut self, path: &str, before: Option<&str>, after: Option<String>) {
        let before = before.map(str::to_owned);
        self.changes.push(FileChange { path: path.to_owned(), before, after });
    }
}

/// Id prefixes of records that tags in these files name.
pub(crate) fn records_named(files: &Files) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for (path, text) in files {
        let (document, _) = Document::parse(Kind::of_path(path), text);
        for tag in document.entries().flat_map(|entry| document.tags(entry)) {
            named.extend(record_prefix(&tag).map(str::to_owned));
        }
    }
    named
}

/// Removes entries that name a record in `gone`, as [`records_named`] returned it. Private text and words of a person
/// stay.
pub(crate) fn strike(files: &Files, gone: &BTreeSet<String>) -> Vec<FileChange> {
    let mut changes = Vec::new();
    for (path, text) in files {
        let (document, _) = Document::parse(Kind::of_path(path), text);
        let mut edits = Edits::new(&document);
        for (at, block) in document.blocks().iter().enumerate() {
            let mut named = document.tags(block).filter_map(|tag| record_prefix(&tag));
            let written = words_tag(document.body(block));
            let is_as_written = document.tags(block).any(|tag| tag.value == written);
            let is_entry = matches!(block.part, Part::Entry(_)) && !document.holds_private(block);
            if is_entry && is_as_written && named.any(|record| gone.contains(record)) {
                edits.remove(at);
            }
        }
        if edits.is_empty() {
            continue;
        }
        // What is held stays, and the search for what was erased finds it there.
        let edited = edits.finish();
        if edited.held.is_none() {
            let (path, before) = (path.clone(), Some(text.clone()));
            changes.push(FileChange { path, before, after: Some(edited.text) });
        }
    }
    changes
}

#[cfg(test)]
mod strike_tests {
    use super::*;

    fn retro() -> String {
        let words = |entry| format!("{entry}\n<!-- @tag: {} -->", words_tag(entry));
        let (one, two) = (words("- one"), words("- two"));
        format!(
            "# Retrospective: 2026-11-01\n\n## Quality\n{one}\n<!-- @tag: record-0a1b2c3d4e -->\n- mine\n{two}\n\
            <!-- @category: quality -->\n<!-- @tag: record-ffffffffff -->\n<!-- @tag: record-0a1b2c3d4e -->\n"
        )
    }

    #[test]
    fn what_a_person_changed_stays() {
        let text = retro().replace("- one", "- one, says Ana").replace('\n', "\r\n");
        let files = Files::from([("sessions/2026-11-01-retro.md".to_owned(), text.clone())]);
        let changes = strike(&files, &BTreeSet::from(["0a1b2c3d4e".to_owned()]));
        let after = changes[0].after.as_deref().unwrap();
        assert!(text.starts_with(after) && after.ends_with("- mine\r\n"), "{after}");
    }

    #[test]
    fn entries_that_name_a_forgotten_record_go_and_nothing_else() {
        let files = Files::from([("sessions/2026-11-01-retro.md".to_owned(), retro())]);
        let named = records_named(&files);
        assert_eq!(Vec::from_iter(&named), ["0a1b2c3d4e", "ffffffffff"]);
        assert!(strike(&files, &BTreeSet::new()).is_empty());
        let left = |gone: &str| {
            let changes = strike(&files, &BTreeSet::from([gone.to_owned()]));
            changes.into_iter().next().unwrap().after.unwrap()
        };
        assert_eq!(left("0a1b2c3d4e"), "# Retrospective: 2026-11-01\n\n## Quality\n- mine\n");
        let (text, two) = (retro(), retro().find("- two").unwrap());
        let (kept, _) = text.split_at(two);
        assert_eq!(left("ffffffffff"), kept);
    }
}
