//! Tests that each rule finds violations and that its fix leaves none.

use super::fix::fix_rule;
use super::*;
use crate::domain::{MemoryId, MemoryState, Timestamp};
use crate::memory_dir::kind::CONFIG;
use crate::memory_dir::laws::file;
use crate::memory_dir::{Files, Initial, initial_files};
use crate::privacy::{Gate, Pii};
use proptest::prelude::*;
use std::collections::BTreeMap;

const TODAY: Timestamp = Timestamp(1_800_000_000_000);

fn fresh() -> Files {
    initial_files(Initial::All, "2026-11-21")
        .into_iter()
        .map(|(path, text)| (path.to_owned(), text.into()))
        .collect()
}

/// A directory with an entry below each of two headings.
fn rendered() -> Files {
    let entry = |name: &str, tag| format!("## {name}\n- {name}\n<!-- @tag: src-{tag} -->\n");
    let two = |path: &str, one, other| {
        let text = fresh()[path].replace(&format!("## {one}\n"), &entry(one, "abababab"));
        let text = text.replace(&format!("## {other}\n"), &entry(other, "ab000000"));
        (path.to_owned(), text.into())
    };
    let active = two("active-context.md", "Recent Decisions", "Blockers");
    Files::from([active, two("progress.md", "Completed (Recent)", "Backlog")])
}

fn linted<T>(files: &Files, with: impl Fn(&Linting<'_>) -> T) -> T {
    let gate = Gate::new(&Pii::ALL);
    let id = |byte| MemoryId(crate::domain::Digest::from_bytes([byte; 16]));
    let known = BTreeMap::from([
        (id(0xab), MemoryState::Active),
        (id(0xcd), MemoryState::Superseded),
        (id(0xef), MemoryState::Retracted),
    ]);
    with(&Linting { files, known: Some(&known), rendered: &rendered(), today: TODAY, gate: &gate })
}

const RECORD: &str = "# ADR-001: Use it\n\n**Status:** Accepted\n**Date:** 2026-01-02\n**Tags:** a\n\n## Context\n\n\
    ## Decision\n\n## Rationale\n\n## Consequences\n\n## Alternatives Considered\n";

/// Checks the issues in a fresh directory with this file.
#[track_caller]
fn check(path: &str, text: &str, expected: &[&str]) {
    let mut files = fresh();
    files.insert(path.to_owned(), text.into());
    let found: Vec<String> = linted(&files, lint)
        .iter()
        .filter(|issue| issue.path == path || issue.path == ".")
        .map(|issue| format!("{}:{} {}", issue.line, issue.column, issue.rule))
        .collect();
    assert_eq!(found, expected, "{text}");
}

fn active(entries: &str) -> String {
    fresh()["active-context.md"].replace("## Blockers\n", &format!("## Blockers\n{entries}\n"))
}

/// First line of an entry in [`active`].
const AT: u32 = 13;

#[track_caller]
fn entry(entries: &str, expected: &[(u32, &str)]) {
    let expected: Vec<String> =
        expected.iter().map(|(at, rule)| format!("{} {rule}", at + AT)).collect();
    let expected: Vec<String> = expected.iter().map(|it| it.replacen(' ', ":0 ", 1)).collect();
    check(
        "active-context.md",
        &active(entries),
        &expected.iter().map(String::as_str).collect::<Vec<_>>(),
    );
}

#[test]
fn a_fresh_directory_is_clean() {
    assert_eq!(linted(&fresh(), lint), []);
    assert_eq!(linted(&Files::new(), lint).len(), 2);
}

#[test]
fn headings_and_last_lines_are_those_of_the_kind() {
    let footer = "\n---\n*Last updated: 2026-11-21*\n";
    check(
        "progress.md",
        &format!("# Progress\n\n## Backlog\n\n## In Progress\n\n## Completed (Recent)\n{footer}"),
        &["1:0 missing-title"],
    );
    check(
        "progress.md",
        "# Progress Tracker\n\n## In Progress\n\n## Backlog\n",
        &["0:0 missing-footer"],
    );
    check(
        "active-context.md",
        "# Active Context\n\n## Current Focus\n\n## Recent Decisions\n\n## Blockers\n\n---\n*Session: 2026-11-21*\n",
        &["0:0 missing-heading"],
    );
    check(
        "glossary.md",
        "# Project Glossary\n\n## Terms\n\n## Abbreviations\n\n---\n*Last updated: soon*\n",
        &["8:0 bad-footer"],
    );
}

#[test]
fn a_lost_heading_returns_above_the_entries_that_it_had() {
    for (path, name) in [("active-context.md", "Recent Decisions"), ("progress.md", "Backlog")] {
        let before = rendered();
        let mut files = before.clone();
        let text = before[path].replace(&format!("## {name}\n"), "");
        files.insert(path.to_owned(), text.into());
        let rules = |files: &Files| {
            let issues = linted(files, lint).into_iter();
            issues.filter(|it| it.rule == "missing-heading").count()
        };
        assert_eq!(rules(&files), 1, "{path}");
        assert_eq!(fixed(&files)[path], before[path]);
    }
}

#[test]
fn a_heading_of_the_kind_stands_once() {
    let footer = "\n---\n*Last updated: 2026-11-21*\n";
    let text = format!(
        "# Progress Tracker\n\n## In Progress\n\n## Completed (Recent)\n\n## Backlog\n\n## Backlog\n\n## Mine\n\n\
         ## Mine\n\n## In Progress\n{footer}"
    );
    check("progress.md", &text, &["9:0 duplicate-heading", "15:0 duplicate-heading"]);
}

#[test]
fn records_are_numbered_named_and_have_a_status() {
    check("decisions/ADR-001-use-it.md", RECORD, &[]);
    check("decisions/ADR-003-use-it.md", RECORD, &["1:0 adr-title"]);
    check("decisions/ADR-1-use-it.md", RECORD, &["0:0 file-name"]);
    check("decisions/ADR-001-use-it.md", &RECORD.replace("Accepted", "Done"), &["3:0 adr-status"]);
    check(
        "decisions/ADR-001-use-it.md",
        &RECORD.replace("Accepted", "Superseded by ADR-009"),
        &["3:0 adr-successor-missing"],
    );
    check(
        "decisions/ADR-001-use-it.md",
        &RECORD.replace("**Date:** 2026-01-02\n", ""),
        &["0:0 adr-date"],
    );
    for (date, issues) in [("some day", &["4:0 adr-date"][..]), ("unknown", &[])] {
        check("decisions/ADR-001-use-it.md", &RECORD.replace("2026-01-02", date), issues);
    }
    let mut files = fresh();
    files.insert("decisions/ADR-001-use-it.md".into(), RECORD.into());
    files.insert("decisions/ADR-001-use-that.md".into(), RECORD.replace("it", "that").into());
    let rules: Vec<&str> = linted(&files, lint).iter().map(|issue| issue.rule).collect();
    assert_eq!(rules, ["adr-number-twice"]);
}

#[test]
fn tags_are_written_and_placed_as_the_schema_says() {
    entry("- a\n<!-- @category: decision -->\n<!-- @tag: src-abababab -->", &[]);
    entry("- a\n<!-- @category: discussion -->", &[(1, "bad-category")]);
    entry("- a\n<!-- @category: ux -->", &[(1, "other-category")]);
    entry("- a\n<!--@tag: Payments-->", &[(1, "bad-tag")]);
    entry("- a\n<!-- @tag: src-deadbeef -->", &[(1, "unknown-source")]);
    entry("- a\n\n<!-- @tag: lost -->", &[(2, "stray-tag")]);
    entry("- a\n<!-- @tag: src-cdcdcdcd -->", &[(1, "retired-source")]);
    entry("- a\n<!-- @tag: src-efefefef -->", &[(1, "retired-source")]);
    entry("- ~~a~~ (2026-01-02)\n<!-- @tag: src-efefefef -->", &[]);
    check(
        "decisions/ADR-001-use-it.md",
        &format!("{RECORD}\n- a\n<!-- @tag: src-cdcdcdcd -->\n"),
        &[],
    );
    let long = format!("- a\n<!-- @tag: {} -->", "x".repeat(70));
    check("active-context.md", &active(&long), &["14:81 long-tag"]);
}

#[test]
fn private_tags_are_closed_and_stand_alone() {
    check(
        "active-context.md",
        &active("<private>\n- a"),
        &["13:1 private-unclosed", "18:0 bad-footer"],
    );
    check(
        "active-context.md",
        &active("- <private>a"),
        &["13:3 private-unclosed", "17:0 bad-footer"],
    );
    check("active-context.md", &active("- say `<private>` here"), &["13:8 private-mention"]);
    check("active-context.md", &active("- my <private> pin"), &["13:6 private-mention"]);
    check("active-context.md", &active("- a <private>b</private>"), &["13:5 private-inline"]);
    check(
        "active-context.md",
        &active("<private>\n<private>\nb\n</private>\n</private>"),
        &["14:1 private-nested"],
    );
    check("active-context.md", &active("</private>"), &["13:1 private-tag"]);
}

#[test]
fn what_the_gate_masks_is_named_and_not_shown() {
    let files = Files::from([(
        "a.md".to_owned(),
        "- write to ada@example.com\n<private>\nbob@example.com\n</private>\n".into(),
    )]);
    let issues = linted(&files, lint);
    let issue = issues.iter().find(|issue| issue.rule == "personal-data").unwrap();
    assert_eq!((issue.line, issue.message.contains("email")), (1, true));
    assert!(!print_text(&issues).contains("ada@"));
    assert_eq!(issues.iter().filter(|issue| issue.rule == "personal-data").count(), 1);
}

#[test]
fn links_lead_somewhere() {
    entry("- see ADR-001 and [it](decisions/ADR-001-x.md)", &[(0, "dead-link"), (0, "dead-link")]);
}

#[test]
fn doubles_and_unfinished_merges_are_found() {
    entry("- a\n- a", &[(1, "duplicate-entry")]);
    entry(
        "<<<<<<< HEAD\n- a\n=======\n- b\n>>>>>>> x",
        &[(0, "conflict-markers"), (2, "conflict-markers"), (4, "conflict-markers")],
    );
}

#[test]
fn what_is_too_long_for_its_budget_is_told() {
    check(
        "patterns.md",
        &fresh()["patterns.md"]
            .replace("## Testing", &format!("- {}\n## Testing", "word ".repeat(600))),
        &["0:0 over-budget"],
    );
    check(
        ".memory-config.md",
        "---\ntoken_budget: compact\nx: 1\n---\n",
        &["2:0 config-alias", "3:0 config-unknown-key"],
    );
}

#[test]
fn both_sides_of_a_merge_are_kept_once() {
    let text =
        active("<<<<<<< HEAD\n- a\n- both\n||||||| base\n- old\n=======\n- b\n- both\n>>>>>>> x");
    let files = Files::from([("active-context.md".to_owned(), text.as_str().into())]);
    let fixed =
        linted(&files, |linting| fix_rule("conflict-markers", "active-context.md", &text, linting));
    assert_eq!(fixed, active("- a\n- both\n- b"));
}

#[test]
fn two_versions_of_one_entry_are_left_to_a_person() {
    let tag = "<!-- @tag: src-0a1b2c3d -->";
    let within = format!("<<<<<<< HEAD\n- mine\n{tag}\n=======\n- theirs\n{tag}\n>>>>>>> x");
    let below = format!("<<<<<<< HEAD\n- mine\n=======\n- theirs\n>>>>>>> x\n{tag}");
    for text in [active(&within), active(&below)] {
        let files = Files::from([("active-context.md".to_owned(), text.as_str().into())]);
        let path = "active-context.md";
        let fixed = linted(&files, |linting| fix_rule("conflict-markers", path, &text, linting));
        assert_eq!(fixed, text);
        let markers = |it: &Issue| it.rule == "conflict-markers" && it.fixable;
        assert!(!linted(&files, lint).iter().any(markers), "{text}");
    }
}

#[test]
fn text_and_json_say_where_and_what() {
    let mut files = fresh();
    files.insert("a.md".into(), "- a\n\n<!-- @tag: x -->\n".into());
    let issues = linted(&files, lint);
    let line =
        "a.md:3: warning: expected a heading or an item directly above: put it there [stray-tag]\n";
    assert_eq!(print_text(&issues), line);
    let json = serde_json::to_value(&issues).unwrap();
    assert_eq!((&json[0]["severity"], &json[0]["rule"]), (&"warning".into(), &"stray-tag".into()));
}

#[test]
fn what_is_repaired_is_clean() {
    for (rule, text) in [
        ("missing-heading", active("- a").replace("## Open Questions\n", "")),
        ("missing-footer", active("- a").replace("*Session: 2026-11-21*", "")),
        ("bad-tag", active("- a\n<!--@tag:Third Party-->\n<!-- @category:decision -->")),
        (
            "private-unclosed",
            active("- a").replace("---\n*Session: 2026-11-21*\n", "<private>\n<private>\n- key"),
        ),
        ("duplicate-entry", active("- a\n- b\n- a")),
        ("conflict-markers", active("<<<<<<< HEAD\n- a\n=======\n- b\n>>>>>>> x")),
    ] {
        let path = "active-context.md";
        let of_rule = |text: &str| {
            let mut files = fresh();
            files.insert(path.to_owned(), text.into());
            linted(&files, lint).iter().filter(|issue| issue.rule == rule).count()
        };
        assert_ne!(of_rule(&text), 0, "{rule}");
        let fixed = linted(&fresh(), |linting| fix_rule(rule, path, &text, linting));
        assert_eq!(of_rule(&fixed), 0, "{rule}: {fixed}");
        assert!(fixed.contains("- a"), "{rule}");
    }
    let emptied = |linting: &Linting<'_>| fix_rule("missing-footer", "progress.md", "", linting);
    assert_eq!(linted(&fresh(), emptied), "");
    let files =
        Files::from([(CONFIG.to_owned(), "---\ntoken_budget: compact # small\n---\n".into())]);
    let fixed = linted(&files, fix);
    assert_eq!(&*fixed[CONFIG], "---\ntoken_budget: economy # small\n---\n");
}

/// The directory after [`fix`].
fn fixed(files: &Files) -> Files {
    let mut after = files.clone();
    after.extend(linted(files, fix));
    after
}

#[test]
fn a_last_line_is_never_put_in_twice() {
    let path = "active-context.md";
    let after = |text: &str| {
        let mut files = fresh();
        files.insert(path.to_owned(), text.into());
        fixed(&files)[path].to_string()
    };
    let open = active("<private>\n- key");
    assert_eq!(after(&open), format!("{open}</private>\n"));
    // A person closes the block where it ends, and leaves the inserted closing tag.
    let closed = after(&open).replace("- key\n", "- key\n</private>\n");
    assert_eq!(after(&closed), closed);
    let bare = active("<private>\n- key").replace("\n---\n*Session: 2026-11-21*\n", "");
    assert_eq!(after(&bare).matches("*Session:").count(), 1);
    assert_eq!(after(&after(&bare)), after(&bare));
}

#[test]
fn a_private_block_gets_as_many_ends_as_it_needs() {
    let files = fresh();
    let fix = |text: &str| {
        linted(&files, |linting| fix_rule("private-unclosed", "active-context.md", text, linting))
    };
    for (text, ends) in [
        ("<private>\n<private>\n</private>\n- a", 1),
        ("<private>\n<privateer>\n<private\n- a\n", 1),
        ("<private>\n<PR\u{130}VATE>\n- a\n", 2),
        ("<pri<private>y</private>vate>\n- a\n  <private>", 2),
    ] {
        let gap = if text.ends_with('\n') { "" } else { "\n" };
        assert_eq!(fix(text), format!("{text}{gap}{}", "</private>\n".repeat(ends)), "{text}");
    }
}

#[test]
fn markers_that_others_hid_are_repaired_with_them() {
    let text = "<<<<<<< HEAD\n\u{feff}---\n```\n---\n<<<<<<< HEAD";
    let files = fresh();
    let fix = |text: &str| {
        linted(&files, |linting| fix_rule("conflict-markers", "active-context.md", text, linting))
    };
    assert_eq!(fix(text), fix(&fix(text)));
}

proptest! {
    #![proptest_config(crate::testing::cases(128))]

    #[test]
    fn a_repair_leaves_nothing_to_repair(text in file(), which in any::<prop::sample::Index>()) {
        let files = fresh();
        let paths: Vec<&String> = files.keys().collect();
        let path = which.get(&paths).as_str();
        for rule in FIXABLE {
            let once = linted(&files, |linting| fix_rule(rule, path, &text, linting));
            let twice = linted(&files, |linting| fix_rule(rule, path, &once, linting));
            prop_assert_eq!(&once, &twice, "{}", rule);
        }
    }

    #[test]
    fn a_repaired_directory_has_nothing_to_repair(texts in prop::collection::vec(file(), 1..4), from in 0..8_usize) {
        let mut files = fresh();
        let paths: Vec<String> = files.keys().cloned().cycle().skip(from).take(texts.len()).collect();
        files.extend(paths.into_iter().zip(texts.into_iter().map(Into::into)));
        let once = fixed(&files);
        prop_assert_eq!(&fixed(&once), &once);
    }

    #[test]
    fn any_file_is_checked(text in file(), path in "(decisions/|sessions/)?[a-zA-Z0-9 -]{1,9}\\.md") {
        let files = Files::from([(path, text.into())]);
        let issues = linted(&files, lint);
        prop_assert!(issues.is_sorted());
        prop_assert!(print_text(&issues).lines().count() == issues.len());
    }
}

#[test]
fn two_entries_of_one_memory_are_a_finding() {
    let tag = "<!-- @tag: src-abababab -->";
    entry(&format!("- a\n{tag}\n- b\n{tag}"), &[(2, "duplicate-tag")]);
    entry(&format!("- a\n{tag}\n- a\n{tag}"), &[(2, "duplicate-entry")]);
}

#[test]
fn an_entry_of_two_memories_is_a_finding() {
    let tags = "<!-- @tag: src-abababab -->\n<!-- @tag: src-ab000000 -->";
    entry(&format!("- a and b\n{tags}"), &[(0, "several-tags"), (2, "unknown-source")]);
}

#[test]
fn a_fix_repairs_what_is_outside_of_an_unfinished_merge() {
    let tag = "<!-- @tag: src-abababab -->";
    let merge = format!("<<<<<<< HEAD\n- mine\n{tag}\n=======\n- theirs\n{tag}\n>>>>>>> x\n");
    let text = active(&format!("- a\n<!--@category:Decision-->\n- b\n- b\n{merge}"));
    let text = text.replace("\n## Current Focus\n", "");
    let expected = text.replace("<!--@category:Decision-->", "<!-- @category: decision -->");
    let expected = expected.replace("- b\n- b\n", "- b\n");
    let fixed = linted(&fresh(), |linting| fix::fix_file("active-context.md", &text, linting));
    assert!(fixed.contains(&merge) && fixed.contains("## Current Focus\n"), "{fixed}");
    assert!(
        fixed.contains("- a\n<!-- @category: decision -->\n- b\n<<<<<<<"),
        "{fixed}\n{expected}"
    );
    let within = active(
        "<<<<<<< HEAD\n- mine\n- c\n=======\n- theirs\n- c\n>>>>>>> x\n<!-- @tag: src-abababab -->",
    );
    let fixed = linted(&fresh(), |linting| fix::fix_file("active-context.md", &within, linting));
    assert_eq!(fixed, within);
}
