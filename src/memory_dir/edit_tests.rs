//! What changes, and that nothing else does.

use super::document::{Document, Part, Shape};
use super::edit::{Edits, NewEntry, Place};
use super::kind::Kind;
use super::laws::file;
use proptest::prelude::*;

fn bullet(words: &str) -> NewEntry {
    NewEntry { shape: Shape::Bullet, lines: format!("- {words}\n<!-- @tag: src-0123abcd -->\n") }
}

#[track_caller]
fn check(kind: Kind, text: &str, edit: impl Fn(&mut Edits<'_, '_>), expected: &str) {
    let (document, _) = Document::parse(kind, text);
    let mut edits = Edits::new(&document);
    assert!(edits.is_empty());
    edit(&mut edits);
    assert_eq!(edits.finish(), expected);
}

const TAG: &str = "<!-- @tag: src-0123abcd -->";

#[test]
fn an_entry_goes_to_the_end_of_its_section() {
    check(
        Kind::ActiveContext,
        "# Active Context\r\n\r\n## Open Questions\r\n- a\r\n\r\n---\r\n*Session: 2026-01-02*",
        |edits| edits.insert("Open Questions", Place::Last, bullet("b")),
        &format!(
            "# Active Context\r\n\r\n## Open Questions\r\n- a\r\n- b\r\n{TAG}\r\n\r\n---\r\n*Session: 2026-01-02*"
        ),
    );
}

#[test]
fn the_first_place_is_behind_the_hint() {
    check(
        Kind::ActiveContext,
        "## Blockers\n<!-- What stands in the way. -->\n\n- a\n",
        |edits| edits.insert("Blockers", Place::First, bullet("b")),
        &format!("## Blockers\n<!-- What stands in the way. -->\n\n- b\n{TAG}\n- a\n"),
    );
}

#[test]
fn a_section_that_is_missing_is_made_where_the_schema_has_it() {
    check(
        Kind::Progress,
        "# Progress Tracker\n\n## In Progress\n- [ ] a\n## Backlog\n- c\n",
        |edits| edits.insert("Completed (Recent)", Place::Last, bullet("b")),
        &format!(
            "# Progress Tracker\n\n## In Progress\n- [ ] a\n\n## Completed (Recent)\n- b\n{TAG}\n\n## Backlog\n- c\n"
        ),
    );
    check(
        Kind::Progress,
        "# Progress Tracker\n\n---\n*Last updated: 2026-01-02*\n",
        |edits| edits.make_section("Backlog"),
        "# Progress Tracker\n\n## Backlog\n\n---\n*Last updated: 2026-01-02*\n",
    );
}

#[test]
fn what_is_taken_out_leaves_its_neighbours_apart() {
    check(
        Kind::Other,
        "- mine\n- yours\n<!-- @tag: x -->\nwords\n",
        |edits| edits.remove(1),
        "- mine\n\nwords\n",
    );
}

#[test]
fn a_file_without_a_line_end_gets_one_before_what_is_new() {
    check(
        Kind::Other,
        "## A\n- a",
        |edits| edits.insert("A", Place::Last, bullet("b")),
        &format!("## A\n- a\n- b\n{TAG}\n"),
    );
}

#[test]
fn the_body_changes_and_the_tags_stay() {
    check(
        Kind::Other,
        "- a\n<!-- @tag: x -->\n",
        |edits| edits.replace_body(0, "- b\n"),
        "- b\n<!-- @tag: x -->\n",
    );
}

#[test]
fn what_is_indented_does_not_become_part_of_another_item() {
    let tagged = "- b\n<!-- @category: decision -->\n";
    check(
        Kind::ActiveContext,
        &format!("- a\n{tagged}  more\n"),
        |edits| edits.remove(1),
        "- a\n\n<!-- -->\n  more\n",
    );
    check(
        Kind::ActiveContext,
        "- a\n| b |\n\n  more\n",
        |edits| edits.remove(1),
        "- a\n\n<!-- -->\n  more\n",
    );
    let (document, _) = Document::parse(Kind::ActiveContext, "- a\n\n<!-- -->\n  more\n");
    assert_eq!(document.entries().count(), 2);
}

#[test]
fn a_line_behind_a_mark_of_byte_order_is_no_continuation() {
    let text = "- a\n| a | b |\n\u{feff}---\n# Active Context\n# Active Context";
    let (document, _) = Document::parse(Kind::ActiveContext, text);
    let row = document.blocks().iter().position(|it| it.part == Part::Entry(Shape::Row)).unwrap();
    let (mut kept, mut edits) = (entries(text), Edits::new(&document));
    edits.remove(row);
    kept.retain(|(part, ..)| *part != Part::Entry(Shape::Row));
    assert_eq!(entries(&edits.finish()), kept);
}

/// The entries and their tags, as a reader sees them.
fn entries(text: &str) -> Vec<(Part, String, String)> {
    let (document, _) = Document::parse(Kind::ActiveContext, text);
    let shown = document.entries().map(|block| {
        let tags: Vec<&str> = document.tags(block).map(|tag| tag.value).collect();
        (block.part, document.body(block).trim_end().to_owned(), tags.join(","))
    });
    shown.collect()
}

fn has_footer(text: &str) -> bool {
    let (document, _) = Document::parse(Kind::ActiveContext, text);
    document.blocks().iter().any(|block| block.part == Part::Footer)
}

proptest! {
    #[test]
    fn one_entry_more_and_all_else_as_it_was(text in file(), last in any::<bool>()) {
        let (document, _) = Document::parse(Kind::ActiveContext, &text);
        let mut edits = Edits::new(&document);
        // Not solved: where one of several private blocks does not end and another begins in a comment or in code, that
        // one may take in what is put behind it.
        let private = text.to_lowercase().matches("<private").count();
        prop_assume!(document.open().is_none() || private == 1);
        // A private block that begins in front matter takes all the rest, wherever something is put.
        let is_front = document.blocks().first().is_some_and(|it| it.part == Part::FrontMatter);
        prop_assume!(!(is_front && document.open() == Some(0)));
        let place = if last { Place::Last } else { Place::First };
        edits.insert("Recent Decisions", place, bullet("new words"));
        let after = edits.finish();
        let new = |line: &&str| !matches!(*line, "- new words" | "<!-- @tag: src-0123abcd -->" | "## Recent Decisions" | "<!-- -->" | "");
        let lines = |text: &str| -> Vec<String> {
            text.split('\n').map(|line| line.trim_end_matches('\r')).filter(new).map(str::to_owned).collect()
        };
        prop_assert_eq!(lines(&text), lines(&after));
        let (mut before, mut now) = (entries(&text), entries(&after));
        let is_new = |it: &(Part, String, String)| it.1 == "- new words";
        prop_assert_eq!(now.iter().filter(|it| is_new(it)).count(), 1, "{:?}", &after);
        now.retain(|it| !is_new(it));
        before.sort_by(|a, b| a.1.cmp(&b.1));
        now.sort_by(|a, b| a.1.cmp(&b.1));
        prop_assert_eq!(before, now, "{:?}", &after);
    }

    #[test]
    fn taking_an_entry_out_keeps_the_others(text in file(), which in any::<prop::sample::Index>()) {
        let (document, odd) = Document::parse(Kind::ActiveContext, &text);
        prop_assume!(odd.is_empty());
        let blocks = document.blocks().iter().enumerate();
        let all: Vec<usize> = blocks.filter(|(_, it)| matches!(it.part, Part::Entry(_))).map(|(at, _)| at).collect();
        prop_assume!(!all.is_empty());
        let mut edits = Edits::new(&document);
        let at = *which.get(&all);
        edits.remove(at);
        // A tag that was taken out may have closed another one.
        prop_assume!(!document.raw(&document.blocks()[at]).to_lowercase().contains("private"));
        let mut kept = entries(&text);
        kept.remove(all.iter().position(|it| *it == at).unwrap());
        let after = edits.finish();
        // What stands at the very beginning may become front matter.
        prop_assume!(!after.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).starts_with("---"));
        // A line below a rule is the footer once nothing stands behind it.
        prop_assume!(has_footer(&text) || !has_footer(&after));
        prop_assert_eq!(kept, entries(&after));
    }
}
