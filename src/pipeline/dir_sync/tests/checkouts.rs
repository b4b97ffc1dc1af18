//! Checkouts of older files, as when a person switches branches, and reverts of a person's own edits.

use super::*;

const LISTS: &str = "active-context.md";

#[test]
fn a_checkout_of_lines_that_a_run_only_removed_is_nobodys_edit() {
    let ends: [fn(&mut Memory); 2] = [
        |it| (it.state, it.superseded_by) = (MemoryState::Superseded, Some(id("db"))),
        |it| (it.state, it.reason) = (MemoryState::Retracted, Some("person-retracted".into())),
    ];
    for end in ends {
        let scene = scene();
        scene.apply(first());
        scene.sync();
        let old = scene.files();
        scene.amend("names", end);
        scene.sync();
        scene.restores_after_checkout(&old);
    }
}

#[test]
fn a_checkout_of_older_files_keeps_the_wording_of_a_person() {
    let scene = scene();
    scene.apply(first());
    scene.apply(vec![operation("gutter", asked("Mend the gutter"), None)]);
    scene.sync();
    scene.edit(LISTS, |text| text.replace("Who pays", "Who in the end pays"));
    scene.edit("progress.md", |text| text.replace("- Mend the", "- [x] Mend at once the"));
    let edited = scene.files();
    scene.apply(second());
    scene.sync();
    let (files, memories, _) = scene.state();
    let shown = below(&files["progress.md"], "Completed (Recent)");
    assert_eq!(shown, ["- [x] Mend at once the gutter (1970-01-01)"]);
    scene.check_out(&edited);
    assert_eq!(scene.sync().people, []);
    let (again, same, _) = scene.state();
    // The number of empty lines above the end is nobody's claim.
    let lines = |files: &Files| {
        let lines = files.values().flat_map(|text| text.lines());
        lines.filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&again), lines(&files));
    assert_eq!(same, memories);
}

#[test]
fn a_checkout_after_an_undo_brings_back_no_record_and_numbers_are_kept() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    let before = scene.files();
    let two = |name: &str, what: &str| operation(name, decided(what, &[what, "Other"]), None);
    let second = scene.apply(vec![two("tiles", "Red tiles"), two("walls", "White walls")]);
    scene.sync();
    let old = scene.files();
    scene.apply_or_undo(&second, false);
    scene.sync();
    assert_eq!(scene.files(), before);
    scene.restores_after_checkout(&old);
    scene.apply(vec![two("doors", "Blue doors")]);
    scene.sync();
    let path = "decisions/ADR-004-blue-doors.md";
    assert!(scene.files().contains_key(path), "{:?}", scene.files().keys());
    scene.apply_or_undo(&second, true);
    scene.sync();
    let files = scene.files();
    assert!(old.keys().all(|path| files.contains_key(path)), "{:?}", files.keys());
    assert!(files.contains_key(path) && scene.sync().is_empty());
}

#[test]
fn a_person_who_reverts_an_edit_of_theirs_means_it() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    let old = scene.files();
    scene.apply(second());
    scene.sync();
    scene.check_out(&old);
    scene.sync();
    // The file is at its last version again, which has been replaced once.
    let last = scene.files();
    scene.edit(LISTS, |text| text.replace("When it is dry", "When it rains"));
    scene.sync();
    scene.check_out(&last);
    assert_eq!(scene.sync().people.len(), 1);
    let edited = scene.memory("when").edited.unwrap();
    assert!(edited.contains("When it is dry"), "{edited}");
    scene.take_out(LISTS, "When it is dry");
    scene.sync();
    assert_eq!(scene.memory("when").reason.as_deref(), Some("person-removed"));
    scene.check_out(&last);
    scene.sync();
    assert_eq!(scene.memory("when").state, MemoryState::Active);
}

#[test]
fn an_edit_in_a_new_checkout_stands_and_nothing_else_in_it_is_one() {
    let record = "decisions/ADR-001-use-postgres.md";
    let edits = [
        (LISTS, "- ADR-001: Use Postgres", "- ADR-001: Use Postgres 17"),
        (record, "## Decision\nUse Postgres", "## Decision\nUse Postgres 17"),
    ];
    for ((path, from, to), imports) in edits.into_iter().flat_map(|it| [(it, true), (it, false)]) {
        let scene = scene();
        scene.apply(first());
        scene.sync();
        let mut files = scene.files();
        files.insert(path.to_owned(), files[path].replace(from, to).into());
        files.insert("glossary.md".to_owned(), "# Glossary\n".into());
        let other = self::scene();
        other.apply(first());
        other.check_out(&files);
        let mut people = Vec::new();
        if imports {
            let import = other.dir_sync.import_edits(&other.folder, NAMESPACE);
            people = other.runtime.block_on(import).unwrap();
        }
        let report = other.sync();
        people.extend(report.people);
        let rules: Vec<&str> = people.iter().map(|it| it.0).collect();
        assert_eq!((rules, report.conflicts), (vec![PERSON_EDITED], vec![]), "{path}");
        let shown = other.files();
        assert!(shown[LISTS].contains("- ADR-001: Use Postgres 17 ("), "{}", shown[LISTS]);
        assert!(shown[record].contains("## Decision\nUse Postgres 17\n"), "{}", shown[record]);
        assert!(other.sync().is_empty());
    }
}

#[test]
fn files_that_come_back_with_a_merge_are_nobodys_edit() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    let main = scene.files();
    let plan = scene.apply(second());
    scene.sync();
    let branch = scene.files();
    scene.check_out(&main);
    scene.apply_or_undo(&plan, false);
    scene.sync();
    assert_eq!(scene.files(), main);
    scene.restores_after_checkout(&branch);
}

impl Scene {
    /// Logs that git made another commit the current one, or leaves a merge unfinished. Its index names the directory.
    fn note_git(&self, what: &str) {
        let logs = self.root.path().join(".git/logs");
        let inside = self.folder.path().strip_prefix(self.folder.project()).unwrap();
        let index = format!("DIRC{}/{LISTS}", inside.display());
        std::fs::create_dir_all(&logs).unwrap();
        crate::adapters::files::replace(&logs.join("../index"), &index).unwrap();
        if what.is_empty() {
            return crate::adapters::files::replace(&logs.join("../MERGE_HEAD"), "2\n").unwrap();
        }
        let log = std::fs::read_to_string(logs.join("HEAD")).unwrap_or_default();
        let line = format!("{:040} {:040} A <a@b> 1795262400 +0000\t{what}\n", 1, 2);
        crate::adapters::files::replace(&logs.join("HEAD"), &(log + &line)).unwrap();
    }
}

/// A checkout in a repository that does not track the directory.
const UNTRACKED: &str = "checkout: moving from main to other";

#[test]
fn what_a_checkout_or_a_merge_brings_back_is_no_restored_entry() {
    let back = [
        "checkout: moving from main to 0123456",
        "merge other: Merge made by the 'ort' strategy.",
        "commit (merge): Merge branch 'other'",
        "rebase (start): checkout main",
        "",
    ];
    let not_back = [
        "commit: checkout: x", "merge other: Fast-forward", "revert: Revert \"x\"",
        // Git does not tell one that touches no file from others.
        "reset: moving to HEAD~1", UNTRACKED,
    ];
    let all = back.into_iter().map(|it| (it, false)).chain(not_back.map(|it| (it, true)));
    for (what, counts) in all {
        let scene = scene();
        scene.note_git("commit: first");
        scene.apply(first());
        scene.sync();
        let old = scene.files();
        scene.take_out(LISTS, "Who pays for it");
        scene.amend("names", |it| {
            (it.state, it.superseded_by) = (MemoryState::Superseded, Some(id("db")));
        });
        scene.sync();
        let now = scene.state();
        scene.note_git(what);
        if what == UNTRACKED {
            let index = scene.root.path().join(".git/index");
            crate::adapters::files::replace(&index, "DIRCsrc/main.rs").unwrap();
        }
        if what.is_empty() {
            // A merge goes on for more than one sync.
            scene.sync();
        }
        // As a merge leaves it: no version of the file that anybody wrote.
        let entry = |text: &str, words: &str| {
            let at = text.find(words).unwrap();
            let tag = at + text[at..].find("<!-- @tag").unwrap();
            text[at..=tag + text[tag..].find('\n').unwrap()].to_owned()
        };
        let [who, names] = ["- Who pays for it", "- Names in"].map(|it| entry(&old[LISTS], it));
        scene.edit(LISTS, |text| {
            text.replace("## Open Questions\n", &format!("## Open Questions\n{who}"))
                .replace("## Blockers\n", &format!("## Blockers\n{names}- mine\n"))
        });
        let report = scene.sync();
        assert_eq!(report.people.len(), if counts { 2 } else { 0 }, "{what}");
        if !counts {
            let (files, memories, _) = scene.state();
            assert_eq!(memories, now.1, "{what}");
            let text = now.0[LISTS].replace("## Blockers\n", "## Blockers\n- mine\n");
            assert_eq!(*files[LISTS], *text, "{what}");
        }
        assert!(scene.sync().is_empty());
    }
}

#[test]
fn a_mark_of_a_contradiction_that_git_takes_away_is_no_verdict() {
    let scene = scene();
    scene.note_git("commit: first");
    scene.apply(vec![operation("nine", decided("Close at nine", &[]), None)]);
    scene.sync();
    scene.apply_conflict("ten", "nine");
    scene.sync();
    let (files, memories, _) = scene.state();
    scene.note_git("commit (merge): Merge branch 'other'");
    scene.edit(LISTS, |text| text.replacen(&scene.conflict("nine"), "", 1));
    assert_eq!(scene.sync().people, []);
    let (again, same, _) = scene.state();
    assert_eq!((again, same), (files, memories));
}

#[test]
fn a_line_that_a_person_deleted_stays_deleted_in_an_older_checkout() {
    let scene = scene();
    scene.note_git("commit: first");
    scene.apply(first());
    scene.sync();
    let old = scene.files();
    scene.take_out(LISTS, "Who pays for it");
    scene.edit(LISTS, |text| text.replace("Names in snake_case", "Names in snake case"));
    scene.sync();
    scene.note_git("commit: without");
    let memories = scene.state().1;
    scene.note_git("checkout: moving from main to 0123456");
    scene.check_out(&old);
    assert_eq!(scene.sync().people, []);
    assert_eq!(scene.state().1, memories);
    let text = scene.files()[LISTS].clone();
    assert!(text.contains("in snake case") && !text.contains("Who pays"), "{text}");
    assert!(scene.sync().is_empty());
}

#[test]
fn an_edit_in_a_checkout_of_older_files_is_the_only_one_in_it() {
    let scene = scene();
    scene.apply(first());
    scene.apply(vec![operation("gutter", asked("Mend the gutter"), None)]);
    scene.sync();
    let main = scene.files();
    scene.apply(second());
    scene.apply(vec![operation("roof", asked("Mend the roof"), None)]);
    scene.sync();
    let expected = scene.files();
    scene.check_out(&main);
    scene.edit(LISTS, |text| text.replace("Who pays", "Who in the end pays"));
    let rules: Vec<&str> = scene.sync().people.iter().map(|it| it.0).collect();
    assert_eq!(rules, [PERSON_EDITED]);
    assert_eq!(scene.memory("names").state, MemoryState::Superseded);
    assert_eq!(scene.memory("when").state, MemoryState::Active);
    let edited = expected[LISTS].replace("Who pays", "Who in the end pays");
    let lines = |text: &str| {
        let mut lines: Vec<_> =
            text.lines().filter(|it| !it.is_empty()).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&scene.files()[LISTS]), lines(&edited));
    assert!(scene.sync().is_empty());
}

#[test]
fn marks_that_come_and_go_with_a_merge_are_no_wording() {
    let (mark, other) = ("; superseded by src-0e46d575", "; possibly settled by src-0e46d575");
    let scene = scene();
    scene.apply(first());
    scene.sync();
    let files = scene.files();
    scene.edit(LISTS, |text| {
        text.replace("simpler (1970-01-01", &format!("simpler (1970-01-01{mark}"))
            .replace("for it (1970-01-01", &format!("for it (1970-01-01{other}"))
    });
    assert_eq!(scene.sync().people, []);
    assert_eq!(scene.files(), files, "a sync writes the marks that hold");
    scene.edit(LISTS, |text| {
        text.replace("for it (1970-01-01", &format!("for that (1970-01-01{other}"))
    });
    scene.sync();
    assert_eq!(scene.memory("who").edited.as_deref(), Some("- Who pays for that (1970-01-01)"));
    assert!(!scene.files()[LISTS].contains(other));
    assert!(scene.sync().is_empty());
}

#[test]
fn a_line_that_is_struck_through_ends_its_memory() {
    let scene = scene();
    scene.apply(first());
    scene.apply(vec![operation("gutter", asked("Mend the gutter"), None)]);
    scene.sync();
    scene.edit(LISTS, |text| {
        text.replace("- Names in snake_case – It is simpler", "- ~~Names in snake_case~~")
            .replace("- Who pays for it (1970-01-01)", "- ~~Who pays for it (1970-01-01)~~")
            .replace("Seal it with tar", "~~Seal~~ mend it with tar")
    });
    scene.edit("progress.md", |text| {
        text.replace("Mend the gutter (1970-01-01)", "~~Mend the gutter~~ (1970-01-01)")
    });
    let files = scene.files();
    let report = scene.sync();
    assert_eq!((report.people.len(), report.conflicts), (4, vec![]));
    for name in ["names", "who", "gutter"] {
        assert_eq!(scene.memory(name).reason.as_deref(), Some("person-removed"), "{name}");
    }
    assert_eq!(scene.memory("seal").state, MemoryState::Active);
    let report = scene.sync();
    assert!(report.is_empty() && report.conflicts.is_empty());
    assert_eq!(scene.files()[LISTS], files[LISTS]);
    scene.edit(LISTS, |text| text.replace("~~Names in snake_case~~", "Names in snake_case"));
    scene.sync();
    assert_eq!(scene.memory("names").state, MemoryState::Active);
}

#[test]
fn a_ticked_line_moves_in_a_clone_too() {
    let clone = || {
        let scene = scene();
        scene.apply(vec![operation("gutter", asked("Mend the gutter"), None)]);
        scene
    };
    let scene = clone();
    scene.sync();
    let mut files = scene.files();
    let ticked = files["progress.md"].replace("- Mend", "- [x] Mend");
    files.insert("progress.md".to_owned(), ticked.into());
    let other = clone();
    other.check_out(&files);
    other.sync();
    let shown = below(&other.files()["progress.md"], "Completed (Recent)");
    assert_eq!(shown, ["- [x] Mend the gutter (1970-01-01)"]);
    assert!(other.sync().is_empty());
}

#[test]
fn a_sync_names_files_that_have_a_tag_twice() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    scene.edit(LISTS, |text| {
        let from = text.find("- Names in").unwrap();
        let end = from + text[from..].find("src-").unwrap();
        let end = end + text[end..].find('\n').unwrap() + 1;
        let copy = text[from..end].replace("Names in", "Files in");
        format!("{}{copy}{}", &text[..end], &text[end..])
    });
    for _ in 0..2 {
        let left = scene.sync().left;
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!(left[0].0, LISTS);
    }
}
