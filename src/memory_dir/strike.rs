//! Strikes out what rests on a record that was forgotten: retrospectives name the records that they are made from.

use super::document::{Document, Part};
use super::edit::Edits;
use super::kind::Kind;
use super::tag::{record_prefix, words_tag};
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

/// Takes the entries out that name one of `gone`, as [`records_named`] gave it. What is private stays, since nobody knows
/// what it says, and so do words that a person put there.
pub fn strike(files: &Files, gone: &BTreeSet<String>) -> Vec<FileChange> {
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
mod tests {
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
