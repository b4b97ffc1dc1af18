//! Strikes out what rests on a record that was forgotten: retrospectives name the records that they are made from.

use super::document::{Document, Part};
use super::edit::Edits;
use super::kind::Kind;
use super::tag::record_prefix;
use super::{FileChange, Files};
use std::collections::BTreeSet;

/// What the tags of records in these files say of their ids.
pub fn records_named(files: &Files) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for (path, text) in files {
        let (document, _) = Document::parse(Kind::of_path(path), text);
        for tag in document.entries().flat_map(|entry| document.tags(entry)) {
            named.extend(record_prefix(&tag).map(str::to_owned));
        }
    }
    named
}

/// Takes the entries out that name one of `gone`, as [`records_named`] gave it. What is private stays: nobody knows what
/// it says.
pub fn strike(files: &Files, gone: &BTreeSet<String>) -> Vec<FileChange> {
    let mut changes = Vec::new();
    for (path, text) in files {
        let (document, _) = Document::parse(Kind::of_path(path), text);
        let mut edits = Edits::new(&document);
        for (at, block) in document.blocks().iter().enumerate() {
            let mut named = document.tags(block).filter_map(|tag| record_prefix(&tag));
            let is_entry = matches!(block.part, Part::Entry(_)) && !document.holds_private(block);
            if is_entry && named.any(|record| gone.contains(record)) {
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
mod tests {
    use super::*;

    const RETRO: &str = "# Retrospective: 2026-11-01\n\n## Quality\n- one\n<!-- @tag: record-0a1b2c3d4e -->\n- mine\n\
        - two\n<!-- @category: quality -->\n<!-- @tag: record-ffffffffff -->\n<!-- @tag: record-0a1b2c3d4e -->\n";

    #[test]
    fn entries_that_name_a_forgotten_record_go_and_nothing_else() {
        let files = Files::from([("sessions/2026-11-01-retro.md".to_owned(), RETRO.to_owned())]);
        let named = records_named(&files);
        assert_eq!(Vec::from_iter(&named), ["0a1b2c3d4e", "ffffffffff"]);
        assert!(strike(&files, &BTreeSet::new()).is_empty());
        let left = |gone: &str| {
            let changes = strike(&files, &BTreeSet::from([gone.to_owned()]));
            changes.into_iter().next().unwrap().after.unwrap()
        };
        assert_eq!(left("0a1b2c3d4e"), "# Retrospective: 2026-11-01\n\n## Quality\n- mine\n");
        let (kept, _) = RETRO.split_at(RETRO.find("- two").unwrap());
        assert_eq!(left("ffffffffff"), kept);
    }
}
