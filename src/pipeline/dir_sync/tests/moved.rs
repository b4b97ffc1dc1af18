//! Entries that people move to other files.

use super::*;

const LISTS: &str = "active-context.md";
const RULES: &str = "patterns.md";
const OWN: &str = "notes.md";

/// The entry that contains `words`, with its tags.
fn entry(text: &str, words: &str) -> String {
    let mut is_in = false;
    let lines = text.split_inclusive('\n').filter(|line| {
        is_in = line.contains(words) || is_in && line.starts_with("<!-- @");
        is_in
    });
    lines.collect()
}

/// A directory in which `words` were moved to the end of `path`, synced.
fn moved_to(path: &str, words: &str) -> Scene {
    let scene = scene();
    scene.apply(first());
    scene.apply(vec![operation("fire", asked("From now on put out the fire"), None)]);
    scene.sync();
    let lines = entry(&scene.files()[LISTS], words);
    scene.take_out(LISTS, words);
    match scene.files().contains_key(path) {
        true => scene.edit(path, |text| format!("{text}\n## Own\n{lines}")),
        false => {
            let text = format!("## Own\n\n- mine\n{lines}");
            scene.folder.write(path, None, Some(&text)).unwrap();
        }
    }
    assert_eq!(scene.sync().people, [], "moving is no edit");
    assert!(scene.sync().is_empty());
    scene
}

fn rules(report: &SyncReport) -> Vec<&'static str> {
    report.people.iter().map(|it| it.0).collect()
}

#[test]
fn an_edit_of_a_moved_line_counts_once() {
    for path in [RULES, OWN] {
        let scene = moved_to(path, "Names in snake_case");
        scene.edit(path, |text| text.replace("Names in", "All names in"));
        assert_eq!(rules(&scene.sync()), [PERSON_EDITED], "{path}");
        assert!(scene.memory("names").edited.unwrap().contains("All names in"), "{path}");
        assert!(scene.sync().is_empty());
        let text = scene.files()[path].clone();
        assert!(text.contains("All names in") && !scene.files()[LISTS].contains("names in"));
    }
}

#[test]
fn a_line_that_is_edited_and_moved_at_once_is_edited() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    let lines = entry(&scene.files()[LISTS], "Names in").replace("Names in", "All names in");
    scene.take_out(LISTS, "Names in");
    scene.folder.write(OWN, None, Some(&lines)).unwrap();
    assert_eq!(rules(&scene.sync()), [PERSON_EDITED]);
    assert!(scene.memory("names").edited.unwrap().contains("All names in"));
    assert!(scene.sync().is_empty());
}

#[test]
fn a_moved_line_that_is_removed_retracts_its_memory() {
    for path in [RULES, OWN] {
        let scene = moved_to(path, "Names in snake_case");
        scene.take_out(path, "Names in");
        assert_eq!(rules(&scene.sync()), ["person-removed"], "{path}");
        assert_eq!(scene.memory("names").reason.as_deref(), Some("person-removed"));
        assert!(scene.sync().is_empty());
    }
    let scene = moved_to(OWN, "Names in snake_case");
    let text = scene.files()[OWN].clone();
    scene.folder.write(OWN, Some(&text), None).unwrap();
    assert_eq!(rules(&scene.sync()), ["person-removed"]);
}

#[test]
fn a_moved_line_goes_once_its_memory_ends_and_nothing_else_does() {
    for (path, edits) in [(RULES, false), (OWN, false), (RULES, true), (OWN, true)] {
        let scene = moved_to(path, "Names in snake_case");
        if edits {
            scene.edit(path, |text| text.replace("Names in", "All names in"));
            scene.sync();
        }
        let before = scene.files()[path].clone();
        let lines = entry(&before, "ames in");
        scene.amend("names", |it| it.state = MemoryState::Retracted);
        let report = scene.sync();
        assert_eq!((report.people, report.conflicts), (vec![], vec![]));
        let after = scene.files()[path].clone();
        assert_eq!(*after, *before.replace(&lines, ""), "{path}");
        assert!(scene.sync().is_empty());
    }
}

#[test]
fn a_moved_line_has_the_marks_of_its_memory() {
    let scene = moved_to(OWN, "Names in snake_case");
    let mut camel = operation("camel", decided("Names in camelCase", &[]), None);
    camel.disposition = Disposition::Conflict { with: id("names"), memory: id("camel") };
    scene.apply(vec![camel]);
    scene.sync();
    assert!(scene.files()[OWN].contains("(1970-01-01; conflicts with src-"));
    assert!(!scene.files()[LISTS].contains("- Names in snake_case"));
    assert!(scene.sync().is_empty());
}

#[test]
fn a_moved_line_of_a_superseded_memory_is_not_put_back() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    let lines = entry(&scene.files()[LISTS], "Names in");
    scene.take_out(LISTS, "Names in");
    scene.folder.write(OWN, None, Some(&format!("- mine\n{lines}"))).unwrap();
    scene.apply(second());
    assert_eq!(scene.sync().people, []);
    assert_eq!(scene.memory("names").state, MemoryState::Superseded);
    assert_eq!(&*scene.files()[OWN], "- mine\n");
}

#[test]
fn a_moved_line_of_a_settled_question_goes_as_one_in_its_list_does() {
    for path in [RULES, OWN] {
        let scene = moved_to(path, "Who pays for it");
        scene.amend("who", |it| it.stage = it.stage_once(true).unwrap());
        let report = scene.sync();
        assert_eq!((report.people, report.conflicts), (vec![], vec![]));
        let files = scene.files();
        assert!(!files[path].contains("Who pays for it"), "{}", files[path]);
        assert!(files["archive/1970-01.md"].contains("Who pays for it"));
        assert!(scene.sync().is_empty());
    }
}

#[test]
fn a_moved_line_stays_although_its_list_is_full() {
    let scene = moved_to(OWN, "Who pays for it");
    let more =
        |n: u32| operation(&format!("q{n}"), open_question(&format!("Which nail {n}")), None);
    let mut more: Vec<Operation> = (0..20).map(more).collect();
    more.iter_mut().for_each(|it| it.facts.at = Some(Timestamp(5)));
    scene.apply(more);
    scene.sync();
    assert!(scene.files()[OWN].contains("Who pays for it"));
    assert!(scene.files()["archive/1970-01.md"].contains("Who pays for it"));
}
