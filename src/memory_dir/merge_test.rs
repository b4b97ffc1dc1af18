//! Tests of merging the changes of both sides.

use super::*;
use crate::memory_dir::laws::{file, kind};
use crate::memory_dir::tag::Tag;
use crate::privacy::{Pii, private_spans};
use proptest::prelude::*;

fn gate() -> Gate {
    Gate::new(&Pii::ALL)
}

fn merge(kind: Kind, base: &str, ours: &str, theirs: &str, gate: &Gate) -> Merged {
    Merge { kind, gate, wordings: &Wordings::new(), moved: &[] }.run(base, ours, theirs)
}

/// A list of ours; `a=x` is entry `a` with text `x`, `x` a person's entry, `!x` a private one.
fn list(entries: &str) -> String {
    let mut text = "# Active Context\n\n## Open Questions\n".to_owned();
    for entry in entries.split(' ').filter(|entry| !entry.is_empty()) {
        match (entry.split_once('='), entry.strip_prefix('!')) {
            (_, Some(words)) => text.push_str(&format!("<private>\n- {words}\n</private>\n")),
            (Some(("#", heading)), _) => text.push_str(&format!("\n## {heading}\n")),
            (Some((id, words)), _) => {
                text.push_str(&format!("- {words}\n<!-- @tag: src-0000000{id} -->\n"));
            }
            (None, _) => text.push_str(&format!("- {entry}\n")),
        }
    }
    text.push_str("\n---\n*Session: 2026-01-02*\n");
    text
}

#[track_caller]
fn join(base: &str, ours: &str, theirs: &str) -> Merged {
    merge(Kind::ActiveContext, &list(base), &list(ours), &list(theirs), &gate())
}

#[track_caller]
fn check(base: &str, ours: &str, theirs: &str, expected: &str) {
    let merged = join(base, ours, theirs);
    assert_eq!(merged.text, list(expected));
    assert_eq!(merged.conflicts, []);
}

#[test]
fn what_only_one_side_changed_is_changed() {
    check("a=1 b=1", "a=2 b=1", "a=1 b=9 mine", "a=2 b=9 mine");
    check("a=1 b=1", "a=1", "mine a=1 b=1", "mine a=1");
    check("a=1", "c=1 a=1 b=1", "mine a=1 yours", "mine c=1 a=1 b=1 yours");
}

#[test]
fn the_footer_stays_below_a_section_that_lost_its_entries() {
    check("a=1 #=Blockers b=1", "a=1 b=1", "mine a=1 #=Blockers b=1", "mine a=1 b=1");
    check("a=1 #=Blockers b=1", "a=1", "a=1 #=Blockers b=1 mine", "a=1 #=Blockers mine");
}

#[test]
fn a_section_comes_and_goes_with_its_blank_lines() {
    let both = "a=1 #=Blockers b=1";
    check("a=1", both, "a=1 mine", "a=1 mine #=Blockers b=1");
    check(both, "a=1", "a=1 mine #=Blockers b=1", "a=1 mine");
    check(both, "a=1 #=Notes c=1", "a=1 mine #=Blockers b=1", "a=1 mine #=Notes c=1");
    let (base, ours) = (list("a=1 #=Blockers b=1 #=Notes c=1"), list("a=1 #=Notes c=1"));
    let spaced = |text: &str| text.replace("Blockers\n", "Blockers\n\n");
    let merged = merge(Kind::ActiveContext, &base, &ours, &spaced(&base), &gate());
    assert_eq!(merged.text, ours);
    let twice = |text: &str| text.replace("\n---", "\n\n---");
    let merged = merge(Kind::ActiveContext, &ours, &base, &twice(&ours), &gate());
    assert_eq!(merged.text.matches("\n\n\n").count(), 1, "{}", merged.text);
}

#[test]
fn a_lost_heading_returns_above_its_entries_and_a_renamed_one_stays() {
    let both = "a=1 #=Blockers b=1 mine c=1";
    for (theirs, expected) in [
        ("a=1 b=1 mine c=1", both),
        ("a=1 mine b=1 c=1 #=Own own", "a=1 mine #=Blockers b=1 c=1 #=Own own"),
        ("a=1 #=blockers b=1 mine c=1", "a=1 #=blockers b=1 mine c=1"),
    ] {
        let merged = join(both, both, theirs);
        let lines =
            |text: &str| text.lines().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("\n");
        assert_eq!(lines(&merged.text), lines(&list(expected)));
        assert!(!merged.edits.iter().any(|it| matches!(it.1, PersonEdit::Moved(_))), "{theirs}");
    }
    let demoted = list("a=1 #=Blockers b=1").replace("## Blockers", "### Blockers");
    let known = list("a=1 #=Blockers b=1");
    let merged = merge(Kind::ActiveContext, &known, &known, &demoted, &gate());
    assert_eq!((merged.text, merged.edits), (known, vec![]));
    // A person moved it.
    let moved = join("a=1 #=Blockers b=1", "a=1 #=Blockers b=1", "b=1 a=1");
    assert_eq!((moved.text, moved.edits.len()), (list("b=1 a=1"), 1));
}

#[test]
fn a_lost_heading_moves_only_what_a_person_moved() {
    let both = "a=1 b=1 #=Blockers c=1 d=1 e=1";
    let moved = |theirs: &str| {
        let Merged { text, edits, held, .. } = join(both, both, theirs);
        let moves = edits.iter().filter(|it| matches!(it.1, PersonEdit::Moved(_))).count();
        let lines = text.lines().filter(|it| it.starts_with("- ") || it.starts_with("## "));
        (lines.map(str::to_owned).collect::<Vec<_>>().join(" "), moves, edits.len(), held)
    };
    // One was moved up.
    let text = "## Open Questions - 1 - 1 - 1 ## Blockers - 1 - 1".to_owned();
    assert_eq!(moved("c=1 a=1 b=1 d=1 e=1"), (text, 1, 1, None));
    // Others of both lists were moved, or have no heading.
    for theirs in ["a=1 c=1 b=1 d=1 e=1", "a=1 c=1 d=1 e=1 b=1"] {
        let text = "## Open Questions - 1 - 1 - 1 - 1 - 1".to_owned();
        assert_eq!(moved(theirs), (text, 0, 0, Some(HELD_HEADING)), "{theirs}");
    }
    // The only one was moved.
    let moved = join("a=1 b=1 #=Blockers c=1", "a=1 b=1 #=Blockers c=1", "a=1 c=1 b=1");
    assert_eq!((moved.text, moved.edits.len(), moved.held), (list("a=1 c=1 b=1"), 1, None));
    // The section above has no entry.
    let empty = "#=Blockers c=1";
    let merged = join(empty, empty, "c=1");
    assert_eq!((merged.edits, merged.held), (vec![], None));
    assert!(merged.text.contains("## Blockers\n- 1\n"), "{}", merged.text);
}

#[test]
fn an_entry_without_its_tag_is_known_by_its_words() {
    check("a=1 b=2", "a=1 b=2", "1 b=2", "a=1 b=2");
    check("a=1 b=2", "a=1 b=2", "mine 2 1", "mine b=2 a=1");
    check("a=1 b=2", "a=5 c=3", "1 2", "a=5 c=3");
    check("", "a=1", "1 mine", "a=1 mine");
    check("a=1", "a=1", "1 a=1", "1 a=1");
    assert_eq!(join("a=1 b=2", "a=1 b=2", "1 2").edits, []);
    let rewritten = join("a=1 b=2", "a=1 b=2", "9 2").edits;
    let deleted = |it: &(String, PersonEdit)| it.1 == PersonEdit::Deleted;
    assert_eq!(rewritten.iter().filter(|it| deleted(it)).count(), 1);
    let hidden = join("a=1", "a=1", "!1");
    assert_eq!(hidden.text, list("!1"), "private text keeps its bytes");
}

#[test]
fn an_entry_that_kept_another_tag_is_known_by_its_words() {
    let text = |tags: &str| {
        format!("# Active Context\n\n## Open Questions\n- 1\n{tags}\n---\n*Session: 2026-01-02*\n")
    };
    let category = "<!-- @category: decision -->\n";
    let tagged = text(&format!("{category}<!-- @tag: src-0000000a -->\n"));
    let check = |theirs: &str, expected: &str| {
        let merged = merge(Kind::ActiveContext, &tagged, &tagged, theirs, &gate());
        assert_eq!((&*merged.text, merged.edits), (expected, vec![]));
    };
    check(&text(category), &tagged);
    let own = "<!-- @tag: mine -->\n";
    check(&text(own), &text(&format!("{own}{category}<!-- @tag: src-0000000a -->\n")));
}

#[test]
fn an_entry_that_a_person_wrote_first_is_known_by_its_words_before_marks() {
    let ours = list("a=1").replace("- 1", "- 1 (2026-01-02)");
    let merged = merge(Kind::ActiveContext, &list(""), &ours, &list("1"), &gate());
    assert_eq!(merged.text, list("a=1"));
}

#[test]
fn a_row_without_its_tag_is_known_by_its_words() {
    let row = "| tile | a thing |";
    let table =
        |rows: &str| format!("# Glossary\n\n## Terms\n| Term | Definition |\n|---|---|\n{rows}\n");
    let tagged = table(&format!("{row} <!-- @tag: src-0000000a -->"));
    let merged = merge(Kind::Glossary, &tagged, &tagged, &table(row), &gate());
    assert_eq!((merged.text, merged.edits), (tagged, vec![]));
}

#[test]
fn what_a_person_took_out_stays_out() {
    check("a=1 b=1", "a=2 b=1 c=1", "b=1", "b=1 c=1");
}

#[test]
fn where_both_changed_an_entry_the_persons_stays_and_ours_is_told() {
    let merged = join("a=1 b=1", "a=2 c=1", "a=3 b=4");
    assert_eq!(merged.text, list("a=3 c=1 b=4"));
    let told: Vec<(Option<&str>, Option<&str>, &str)> = merged
        .conflicts
        .iter()
        .map(|it| {
            (it.tag.as_deref(), it.ours.as_ref().map(|ours| ours.as_str()), it.theirs.as_str())
        })
        .collect();
    assert_eq!(
        told,
        [(Some("src-0000000a"), Some("- 2"), "- 3"), (Some("src-0000000b"), None, "- 4")]
    );
}

#[test]
fn what_is_told_of_a_persons_heading_passed_the_gate() {
    let merged =
        join("#=For=ada@example.org a=1", "#=For=ada@example.org a=2", "#=For=ada@example.org a=3");
    assert_eq!(merged.conflicts[0].section.as_str(), "For=<EMAIL>");
}

#[test]
fn a_list_marker_and_marks_change_together_below_the_words_of_a_person() {
    let line = |line: &str| list("a=1").replace("- 1", line);
    let (base, ours) = ("- 1 (Graz) (possibly done by src-0000000b)", "- [x] 1 (Graz)");
    let person = "- 2 (Graz) (possibly done by src-0000000b)";
    let merged = merge(Kind::ActiveContext, &line(base), &line(ours), &line(person), &gate());
    assert_eq!((merged.text, merged.conflicts), (line("- [x] 2 (Graz)"), vec![]));
}

#[test]
fn what_moves_keeps_what_the_person_added_to_it() {
    check(
        "a=1 #=Blockers b=1", "#=Blockers a=2 b=1", "a=1 mine #=Blockers b=1",
        "mine #=Blockers a=2 b=1",
    );
    // The person moved it first.
    check("a=1 #=Blockers b=1", "a=2 #=Blockers b=1", "#=Blockers b=1 a=1", "#=Blockers b=1 a=2");
}

#[test]
fn tags_of_a_person_stay_when_the_words_change() {
    let base = list("a=1");
    let theirs = base.replace("a -->\n", "a -->\n<!-- @tag: payments -->\n");
    let merged = merge(Kind::ActiveContext, &base, &list("a=2"), &theirs, &gate());
    assert_eq!(merged.text, theirs.replace("- 1", "- 2"));
}

#[test]
fn line_ends_of_the_person_stay() {
    let theirs = list("a=1 mine").replace('\n', "\r\n");
    let merged = merge(Kind::ActiveContext, &list("a=1"), &list("a=2 b=1"), &theirs, &gate());
    assert_eq!(merged.text, list("a=2 b=1 mine").replace('\n', "\r\n"));
}

#[test]
fn the_first_time_what_a_person_wrote_stays_around_ours() {
    let theirs = "# My notes\n\nSome words.\n\n## Open Questions\n- mine\n";
    let merged = merge(Kind::ActiveContext, "", &list("a=1 #=Blockers b=1"), theirs, &gate());
    let expected = "# My notes\n\nSome words.\n\n## Open Questions\n- mine\n- 1\n<!-- @tag: src-0000000a -->\n\n\
        ## Blockers\n- 1\n<!-- @tag: src-0000000b -->\n\n";
    assert_eq!(merged.text, expected);
}

#[test]
fn an_entry_with_a_private_part_is_left_alone() {
    let theirs = list("a=1").replace("- 1", "- 1 <private>key</private>");
    let merged = merge(Kind::ActiveContext, &list("a=1"), &list("a=2"), &theirs, &gate());
    assert_eq!(merged.text, theirs);
    assert_eq!(merged.conflicts.len(), 1);
    assert!(!merged.conflicts[0].theirs.as_str().contains("key"));
}

#[test]
fn empty_lines_of_a_person_stay() {
    let merged = merge(Kind::ActiveContext, "", "", "\n", &gate());
    assert_eq!(merged.text, "\n");
}

#[test]
fn a_file_without_a_place_outside_of_what_is_private_is_left_alone() {
    let theirs = "---\ntitle: a\n<private>\n---\n## Open Questions\n- a\n";
    let merged = merge(Kind::ActiveContext, "", &list("a=1"), theirs, &gate());
    assert_eq!(
        (merged.text.as_str(), merged.held),
        (theirs, Some("a private block that begins in front matter is not closed"))
    );
}

#[test]
fn files_that_are_private_or_half_merged_are_left_alone() {
    for (theirs, rule) in [
        ("---\nprivate: true\n---\n- a\n".to_owned(), HELD_PRIVATE),
        (
            list("a=1").replace("- 1", "<<<<<<< HEAD\n- 1\n=======\n- 2\n>>>>>>> other"),
            HELD_MARKERS,
        ),
    ] {
        let merged = merge(Kind::ActiveContext, &list("a=1"), &list("a=2"), &theirs, &gate());
        assert_eq!((merged.text, merged.held), (theirs, Some(rule)));
    }
}

#[test]
fn what_a_person_did_is_told() {
    let merged = join(
        "a=1 b=1 c=1 #=Blockers d=1", "a=1 b=1 c=1 #=Blockers d=1", "a=1 b=2 mine #=Blockers d=1",
    );
    let tag = |id: &str| format!("src-0000000{id}");
    let text = |text: &str| gate().redact(text);
    assert_eq!(
        merged.edits,
        [(tag("b"), PersonEdit::Edited(text("- 2"))), (tag("c"), PersonEdit::Deleted),]
    );
}

/// Lines of `theirs` that are not in `base`, with repetitions.
fn own_lines(base: &str, theirs: &str) -> Vec<String> {
    let mut left: Vec<&str> = base.lines().map(str::trim_end).collect();
    let mut own = Vec::new();
    for line in theirs.lines().map(str::trim_end) {
        match left.iter().position(|it| *it == line) {
            Some(at) => {
                left.swap_remove(at);
            }
            None => own.push(line.to_owned()),
        }
    }
    own
}

/// Lines without the tags of entries.
fn untagged(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| Tag::parse(line).is_none());
    let cells = |line: &str| match Tag::of_line(line) {
        Some(_) => line.rfind("<!--").unwrap_or(line.len()),
        None => line.len(),
    };
    lines.map(|line| line.get(..cells(line)).unwrap_or(line).trim_end()).collect()
}

/// Some entries of ours, in any order, with varying text.
fn entries() -> impl Strategy<Value = String> {
    let ours = "([a-f]=[1-3])";
    let own = "[m-z]{1,3}|![m-z]{1,3}|#=Blockers|#=Own";
    proptest::collection::vec(prop_oneof![3 => ours, 1 => own], 0..9).prop_map(|it| it.join(" "))
}

proptest! {
    #[test]
    fn what_ours_did_not_change_is_theirs(base in file(), theirs in file(), kind in kind()) {
        prop_assume!(with_lost_headings(kind, &base, theirs.clone()) == theirs);
        let merged = merge(kind, &base, &base, &theirs, &gate());
        // Lost tags are put back.
        match merged.text.lines().filter_map(Tag::of_line).count() == theirs.lines().filter_map(Tag::of_line).count() {
            true => prop_assert_eq!(merged.text, theirs),
            false => prop_assert_eq!(untagged(&merged.text), untagged(&theirs)),
        }
        prop_assert!(merged.conflicts.is_empty());
    }

    #[test]
    fn what_theirs_did_not_change_is_ours(base in entries(), ours in entries()) {
        let merged = join(&base, &ours, &base);
        prop_assert_eq!(merged.text, list(&ours));
    }

    #[test]
    fn no_line_of_theirs_is_lost(base in entries(), ours in entries(), theirs in entries()) {
        let merged = join(&base, &ours, &theirs);
        let own = own_lines(&list(&base), &list(&theirs));
        let mut kept: Vec<&str> = merged.text.lines().map(str::trim_end).collect();
        for line in own {
            let at = kept.iter().position(|it| *it == line);
            prop_assert!(at.is_some(), "{} is lost: {}", line, merged.text);
            kept.swap_remove(at.unwrap());
        }
    }

    #[test]
    fn private_blocks_come_through_byte_for_byte(base in entries(), ours in entries(), theirs in entries()) {
        let blocks = |text: &str| -> Vec<String> {
            private_spans(text).0.into_iter().map(|span| text[span].to_owned()).collect()
        };
        // Rendered files have no private entries.
        let ours = ours.replace('!', "");
        let merged = join(&base, &ours, &theirs);
        prop_assert_eq!(blocks(&merged.text), blocks(&list(&theirs)));
    }

    #[test]
    fn a_second_run_changes_nothing(base in entries(), ours in entries(), theirs in entries()) {
        let merged = join(&base, &ours, &theirs);
        // A file that is held waits for a person.
        prop_assume!(merged.held.is_none());
        let once = merged.text;
        let twice = merge(Kind::ActiveContext, &list(&ours), &list(&ours), &once, &gate());
        prop_assert_eq!(twice.text, once);
    }

    #[test]
    fn any_texts_are_joined(base in file(), ours in file(), theirs in file(), kind in kind()) {
        let merged = merge(kind, &base, &ours, &theirs, &gate());
        prop_assert!(merged.text.len() <= base.len() + ours.len() + 2 * theirs.len() + 400);
    }
}
