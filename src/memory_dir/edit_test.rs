//! Tests of edits: what they change, and that they change nothing else.

use super::document::{Document, Part, Shape};
use super::edit::{Edited, Edits, HELD_TAG, HELD_UNCLOSED, NewEntry, Place};
use super::kind::Kind;
use super::laws::{file, let_through};
use crate::privacy::{is_private_file, private_spans};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn bullet(words: &str) -> NewEntry {
    NewEntry { shape: Shape::Bullet, lines: format!("- {words}\n<!-- @tag: src-0123abcd -->\n") }
}

#[track_caller]
fn check(kind: Kind, text: &str, edit: impl Fn(&mut Edits<'_, '_>), expected: &str) {
    let (document, _) = Document::parse(kind, text);
    let mut edits = Edits::new(&document);
    assert!(edits.is_empty());
    edit(&mut edits);
    assert_eq!(edits.finish().text, expected);
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
    let row = document.blocks.iter().position(|it| it.part == Part::Entry(Shape::Row)).unwrap();
    let (mut kept, mut edits) = (entries(text), Edits::new(&document));
    edits.remove(row);
    kept.retain(|(part, ..)| *part != Part::Entry(Shape::Row));
    assert_eq!(entries(&edits.finish().text), kept);
}

#[track_caller]
fn new_decision(text: &str, expected: &str) {
    let entry = bullet("new words");
    check(
        Kind::ActiveContext,
        text,
        |edits| {
            let heading = edits.section("Recent Decisions");
            let place = heading.map_or(Place::Last, Place::After);
            edits.insert("Recent Decisions", place, entry.clone());
        },
        &expected.replace("NEW", &entry.lines),
    );
}

#[test]
fn a_block_without_an_end_stays_behind_what_is_new() {
    new_decision(
        "## Recent Decisions\n- a\n<private>\n## Blockers\n- key\n",
        "## Recent Decisions\nNEW- a\n<private>\n## Blockers\n- key\n",
    );
    // The only such section is private, so a new one is made before it.
    new_decision(
        "# Active Context\n<private>\n## Recent Decisions\n- key\n",
        "# Active Context\n\n## Recent Decisions\nNEW\n<private>\n## Recent Decisions\n- key\n",
    );
    new_decision(
        "\u{feff}<private>\n- key\n",
        "\u{feff}## Recent Decisions\nNEW\n<private>\n- key\n",
    );
}

#[test]
fn what_is_private_ends_no_comment_and_no_code() {
    new_decision(
        "## Recent Decisions\n<!-- open\n# Active Context\n<PRIVATE >\n<!-- @category: decision -->\n</private>",
        "## Recent Decisions\nNEW\n<!-- open\n# Active Context\n<PRIVATE >\n<!-- @category: decision -->\n</private>",
    );
    let text = "```\n<private>\n```\n- key\n</private>\n```\n## Recent Decisions\n- a\n";
    new_decision(text, &text.replace("- a", "NEW- a"));
}

#[test]
fn front_matter_without_a_public_end_is_left_alone() {
    let text = "---\ntitle: a\n<private>\n---\n## Recent Decisions\n- a\n";
    let (document, _) = Document::parse(Kind::ActiveContext, text);
    let mut edits = Edits::new(&document);
    edits.insert("Recent Decisions", Place::Last, bullet("b"));
    let held = Some(HELD_UNCLOSED);
    assert_eq!(edits.finish(), Edited { text: text.to_owned(), held });
}

#[test]
fn a_tag_that_would_find_its_other_half_is_left_where_it_is() {
    let text = "- write `<private>` here\n- <private>a</private>\n- end </private>\n";
    let (document, _) = Document::parse(Kind::ActiveContext, "- a\n- end </private>\n");
    let mut edits = Edits::new(&document);
    edits.insert("", Place::Before(1), bullet("write `<private>` here"));
    assert_eq!(edits.finish().held, Some(HELD_TAG));
    // The same happened before any edit.
    let (document, _) = Document::parse(Kind::ActiveContext, text);
    assert!(document.entries().next().is_none());
}

#[test]
fn a_mark_of_byte_order_stays_first_and_changes_no_line() {
    for (first, part) in [
        ("```\n```\n- a\n", Part::Entry(Shape::Code)),
        ("|---|---|\n- a\n", Part::TableHead),
        ("=======\n- a\n", Part::Marker),
    ] {
        let text = format!("\u{feff}{first}");
        let (document, _) = Document::parse(Kind::Other, &text);
        assert_eq!(document.blocks.first().map(|it| it.part), Some(part));
        let mut edits = Edits::new(&document);
        edits.insert("", Place::Before(0), bullet("b"));
        let after = edits.finish().text;
        assert!(after.starts_with("\u{feff}- b\n") && after.ends_with(first), "{after:?}");
    }
}

#[test]
fn a_line_that_comes_to_the_top_begins_no_front_matter() {
    check(
        Kind::Other,
        "\u{feff}- a\n---\nprivate: true\n",
        |edits| edits.remove(0),
        "\u{feff}<!-- -->\n---\nprivate: true\n",
    );
}

/// Entries and their tags, as a reader sees them.
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
    document.blocks.iter().any(|block| block.part == Part::Footer)
}

/// Non-empty lines, without those of [`bullet`] and those inserted around it.
fn lines(text: &str) -> Vec<String> {
    let text = text.replace('\u{feff}', "");
    let lines = text.split('\n').map(|line| line.trim_end_matches('\r'));
    let new = ["- new words", TAG, "## Recent Decisions", "<!-- -->", ""];
    lines.filter(|line| !new.contains(line)).map(str::to_owned).collect()
}

fn private(text: &str) -> Vec<&str> {
    private_spans(text).0.into_iter().map(|span| &text[span]).collect()
}

fn holds_tag(text: &str) -> bool {
    text.to_lowercase().contains("private")
}

fn is_new(entry: &(Part, String, String)) -> bool {
    entry.1 == "- new words"
}

fn sorted(mut entries: Vec<(Part, String, String)>) -> Vec<(Part, String, String)> {
    entries.retain(|it| !is_new(it));
    entries.iter_mut().for_each(|it| it.1 = it.1.trim_start_matches('\u{feff}').to_owned());
    entries.sort_by(|a, b| a.1.cmp(&b.1));
    entries
}

fn places() -> impl Strategy<Value = Vec<(u8, prop::sample::Index)>> {
    prop::collection::vec((0..5_u8, any::<prop::sample::Index>()), 1..5)
}

proptest! {
    #[test]
    fn one_entry_more_and_all_else_as_it_was(text in file(), last in any::<bool>()) {
        let (document, _) = Document::parse(Kind::ActiveContext, &text);
        let mut edits = Edits::new(&document);
        let heading = edits.section("Recent Decisions").filter(|_| !last);
        let place = heading.map_or(Place::Last, Place::After);
        edits.insert("Recent Decisions", place, bullet("new words"));
        let Edited { text: after, held } = edits.finish();
        if let Some(rule) = held {
            // Edits are held only if front matter has an unclosed block, or if an entry before the
            // front matter of a private file would show the file.
            let is_front = document.blocks.first().is_some_and(|it| it.part == Part::FrontMatter);
            let is_unclosed = rule == HELD_UNCLOSED && is_front && document.open == Some(0);
            prop_assert!(is_unclosed || rule == HELD_TAG && document.is_private(), "{}", rule);
            prop_assert_eq!(text, after);
            return Ok(());
        }
        prop_assert_eq!(lines(&text), lines(&after));
        prop_assert_eq!(private(&text), private(&after));
        let now = entries(&after);
        prop_assert_eq!(now.iter().filter(|it| is_new(it)).count(), 1, "{:?}", &after);
        prop_assert_eq!(sorted(entries(&text)), sorted(now), "{:?}", &after);
        let mut shown = let_through(&after);
        prop_assert!(shown.iter().any(|line| line == "- new words"), "{:?}", &after);
        shown.retain(|line| !lines(line).is_empty());
        let mut before = let_through(&text);
        before.retain(|line| !lines(line).is_empty());
        prop_assert_eq!(before, shown);
    }

    #[test]
    fn many_changes_leave_private_what_is_private(text in file(), places in places()) {
        let (document, _) = Document::parse(Kind::ActiveContext, &text);
        let mut edits = Edits::new(&document);
        let (mut is_tagged, mut gone, mut new) = (false, BTreeSet::new(), 0);
        for (what, which) in places {
            let at = which.index(document.blocks.len() + 1);
            let block = document.blocks.get(at);
            match (what, block) {
                (0, Some(block)) => {
                    is_tagged |= holds_tag(document.raw(block)) || block.part == Part::FrontMatter;
                    gone.insert(at);
                    edits.remove(at);
                }
                (1, Some(block)) if matches!(block.part, Part::Entry(_)) => {
                    is_tagged |= holds_tag(document.raw(block));
                    gone.insert(at);
                    edits.replace_raw(at, "- other\n");
                }
                (2, Some(_)) => {
                    new += 1;
                    edits.insert("Blockers", Place::Before(at), bullet("new words"));
                }
                (3, Some(_)) => {
                    new += 1;
                    edits.insert("Blockers", Place::After(at), bullet("new words"));
                }
                _ => {
                    new += 1;
                    edits.insert("Blockers", Place::Last, bullet("new words"));
                }
            }
        }
        let blocks = document.blocks.iter().enumerate().filter(|(at, _)| !gone.contains(at));
        let kept: Vec<&str> =
            blocks.flat_map(|(_, it)| document.private_in(it)).map(|it| &text[it.clone()]).collect();
        let Edited { text: after, held } = edits.finish();
        if held.is_some() {
            prop_assert!(is_tagged || document.open == Some(0) || document.is_private(), "{held:?}");
            prop_assert_eq!(after, text);
            return Ok(());
        }
        prop_assert_eq!(private(&after), kept);
        prop_assert_eq!(is_private_file(&after), is_private_file(&text));
        let shown = let_through(&after);
        prop_assert_eq!(shown.iter().filter(|line| *line == "- new words").count(), new, "{:?}", &after);
    }

    #[test]
    fn entries_with_tags_of_their_own_hide_nothing_else(text in file(), words in "[a-z]{0,2}(<private>|</private>|<pri|vate>)[a-z]{0,2}(</private>)?") {
        let (document, _) = Document::parse(Kind::ActiveContext, &text);
        let mut edits = Edits::new(&document);
        edits.insert("Blockers", Place::Last, bullet(&words));
        let Edited { text: after, held } = edits.finish();
        if held.is_some() {
            prop_assert_eq!(&after, &text);
        }
        let own = private(&bullet(&words).lines).len();
        let all = private(&after);
        prop_assert!(private(&text).iter().all(|it| all.contains(it)));
        prop_assert!(all.len() <= private(&text).len() + own);
    }

    #[test]
    fn taking_an_entry_out_keeps_the_others(text in file(), which in any::<prop::sample::Index>()) {
        let (document, odd) = Document::parse(Kind::ActiveContext, &text);
        prop_assume!(odd.is_empty());
        let blocks = document.blocks.iter().enumerate();
        let all: Vec<usize> = blocks.filter(|(_, it)| matches!(it.part, Part::Entry(_))).map(|(at, _)| at).collect();
        prop_assume!(!all.is_empty());
        let mut edits = Edits::new(&document);
        let at = *which.get(&all);
        edits.remove(at);
        let Edited { text: after, held } = edits.finish();
        if held.is_some() {
            // Without the entry, the rest may begin with front matter that makes the file private.
            let raw = document.raw(&document.blocks[at]);
            let is_private = is_private_file(&text.replacen(raw, "", 1));
            prop_assert!(document.is_private() || holds_tag(raw) || is_private);
            prop_assert_eq!(after, text);
            return Ok(());
        }
        let mut kept = entries(&text);
        kept.remove(all.iter().position(|it| *it == at).unwrap());
        // A line after a rule becomes the footer once nothing follows it.
        prop_assume!(has_footer(&text) || !has_footer(&after));
        prop_assert_eq!(sorted(kept), sorted(entries(&after)), "{:?}", after);
    }
}
