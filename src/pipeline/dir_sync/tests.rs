//! A run that ends at any write is completed by the next; people's edits are imported once.

use super::*;
use crate::domain::{
    Attempt, Claim, Decision, Digest, Discussion, Disposition, Effect, MemoryId, MemoryState,
    Operation, PERSON_EDITED, PersonRequest, Plan, RecordId, Speaker, Stage,
};
use crate::memory_dir::source_tags;
use crate::privacy::Pii;
use crate::store::{Erasure, OpenMode};
use std::cell::Cell;
use tempfile::TempDir;

mod checkouts;
mod moved;

const NAMESPACE: &str = "roofs";

/// Always 2026-11-21.
fn noon() -> Timestamp {
    Timestamp(1_795_262_400_000)
}

struct Scene {
    root: TempDir,
    dir_sync: DirSync,
    folder: MemoryFolder,
    runtime: tokio::runtime::Runtime,
}

fn scene() -> Scene {
    let root = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", root.path().join("a.db").display());
    let store = Store::open(&url, OpenMode::Create).unwrap();
    let gate = Gate::new(&Pii::ALL);
    let dir_sync = DirSync { store, holder: "test".into(), clock: noon, gate };
    let folder = MemoryFolder::make(root.path()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    Scene { root, dir_sync, folder, runtime }
}

fn decided(chosen: &str, options: &[&str]) -> Claim {
    let options = options.iter().map(|it| (*it).to_owned()).collect();
    Claim::Decision(Decision { options, chosen: chosen.into(), rationale: "It is simpler".into() })
}

fn record(name: &str) -> RecordId {
    RecordId(Digest::of(&[name]))
}

fn id(name: &str) -> MemoryId {
    Memory::id_of(NAMESPACE, record(name))
}

fn operation(name: &str, claim: Claim, old: Option<&str>) -> Operation {
    let disposition = match old {
        Some(old) => Disposition::Supersede { old: id(old), memory: id(name) },
        None => Disposition::Add { memory: id(name) },
    };
    let stage = match &claim {
        Claim::Decision(_) => Stage::Decided,
        Claim::Attempt(_) => Stage::Attempted,
        Claim::Discussion(_) | Claim::Request(_) => Stage::Proposed,
    };
    let facts = crate::domain::Facts {
        claim,
        stage,
        said_by: Speaker::Person,
        at: Some(Timestamp(1)),
        ends: None,
    };
    Operation { record: record(name), disposition, rule: "new".into(), facts, effects: Vec::new() }
}

fn open_question(topic: &str) -> Claim {
    Claim::Discussion(Discussion { topic: topic.into(), points: Vec::new() })
}

fn failed(action: &str) -> Claim {
    let result = "it leaked".into();
    Claim::Attempt(Attempt { action: action.into(), result, succeeded: false })
}

fn first() -> Vec<Operation> {
    vec![
        operation("db", decided("Use Postgres", &["Use Postgres", "Use SQLite"]), None),
        operation("names", decided("Names in snake_case", &[]), None),
        operation("seal", failed("Seal it with tar"), None),
        operation("who", open_question("Who pays for it"), None),
    ]
}

fn second() -> Vec<Operation> {
    vec![
        operation("db2", decided("Use SQLite", &["Use Postgres", "Use SQLite"]), Some("db")),
        operation("kebab", decided("Names in kebab-case", &[]), Some("names")),
        operation("tiles", decided("Red tiles", &["Red tiles", "Black tiles"]), None),
        operation("when", open_question("When it is dry"), None),
    ]
}

impl Scene {
    fn apply(&self, operations: Vec<Operation>) -> Plan {
        let state = self.runtime.block_on(self.dir_sync.store.memories(Some(NAMESPACE))).unwrap();
        let before = state.into_values().collect();
        let plan = Plan::new(NAMESPACE.into(), operations, before, Vec::new());
        self.apply_or_undo(&plan, true);
        plan
    }

    /// A decision to close at `name` that conflicts with that on `other`.
    fn apply_conflict(&self, name: &str, other: &str) {
        let mut it = operation(name, decided(&format!("Close at {name}"), &[]), None);
        it.disposition = Disposition::Conflict { with: id(other), memory: id(name) };
        self.apply(vec![it]);
    }

    /// The mark of a conflict with the decision to close at `name`.
    fn conflict(&self, name: &str) -> String {
        format!("; conflicts with {} “Close at {name}”", source_tags([id(name)])[&id(name)])
    }

    fn apply_or_undo(&self, plan: &Plan, applies: bool) {
        self.runtime.block_on(async {
            let store = &self.dir_sync.store;
            let held = self.dir_sync.hold(NAMESPACE).await.unwrap().unwrap();
            // A plan that was undone keeps its records until they are released.
            store.release_undone(&held.lease, plan.id, noon()).await.unwrap();
            let done = match applies {
                true => store.apply_plan(&held.lease, plan, &[], noon()).await,
                false => store.undo_plan(&held.lease, plan, noon()).await,
            };
            done.unwrap().unwrap();
            held.release(None).await.unwrap();
        });
    }

    fn sync(&self) -> SyncReport {
        self.runtime.block_on(self.dir_sync.sync(&self.folder, NAMESPACE)).unwrap()
    }

    /// Runs a sync that fails after `writes` writes, like one that is killed.
    fn keep_until(&self, writes: usize) {
        let left = Cell::new(writes);
        let write = |it: &FileChange| {
            if left.get() == 0 {
                let cause = io::ErrorKind::Interrupted.into();
                return Err(SyncError::Disk { path: it.path.clone(), cause });
            }
            left.set(left.get() - 1);
            super::write(&self.folder, it)
        };
        self.runtime.block_on(async {
            let held = self.dir_sync.hold(NAMESPACE).await.unwrap().unwrap();
            let done = self.dir_sync.write(&held.lease, &self.folder, &write).await;
            assert!(matches!(done, Err(SyncError::Disk { .. })));
            // As when the lease expires.
            held.release(None).await.unwrap();
        });
    }

    fn files(&self) -> Files {
        self.folder.read().unwrap().files
    }

    fn memory(&self, name: &str) -> Memory {
        let all = self.runtime.block_on(self.dir_sync.store.memories(None)).unwrap();
        all[&id(name)].clone()
    }

    /// Edits a file as a person does.
    fn edit(&self, path: &str, edit: impl Fn(&str) -> String) {
        let before = self.files()[path].clone();
        let after = edit(&before);
        assert_ne!(*before, *after, "an edit that changes nothing");
        self.folder.write(path, Some(&before), Some(&after)).unwrap();
    }

    /// Removes the entry that contains `words`, with its tags.
    fn take_out(&self, path: &str, words: &str) {
        self.edit(path, |text| {
            let mut is_in = false;
            let report = text.split_inclusive('\n').filter(|line| {
                is_in = line.contains(words) || is_in && line.starts_with("<!-- @");
                !is_in
            });
            report.collect()
        });
    }

    /// Everything that a later run depends on.
    fn state(&self) -> (Files, MemoryMap, Files) {
        let store = &self.dir_sync.store;
        let memories = self.runtime.block_on(store.memories(None)).unwrap();
        let base = self.runtime.block_on(store.rendered(&dir_of(&self.folder))).unwrap();
        (self.files(), memories, base)
    }
}

/// Two plans with a person's edits in between; the files of the second are not written yet.
fn in_between() -> Scene {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    scene.edit("active-context.md", |text| {
        text.replace(
            "## Open Questions\n",
            "## Open Questions\n- Mine\n\n<private>\nx\n</private>\n",
        )
    });
    scene.apply(second());
    scene
}

#[test]
fn what_a_plan_leaves_in_conflict_is_marked_on_both_lines() {
    let scene = scene();
    let mut clash = operation("kebab", decided("Names in kebab-case", &[]), None);
    clash.disposition = Disposition::Conflict { with: id("names"), memory: id("kebab") };
    scene.apply(vec![operation("names", decided("Names in snake_case", &[]), None), clash]);
    scene.sync();
    let text = scene.folder.read().unwrap().files["active-context.md"].clone();
    assert_eq!(text.matches("; conflicts with src-").count(), 2, "{text}");
}

#[test]
fn a_run_that_ends_at_any_write_is_taken_up_to_the_same_end() {
    let whole = in_between();
    let writes = whole.sync().changes.len();
    assert!(writes >= 4, "{writes}");
    assert!(whole.sync().is_empty(), "the second run has nothing to do");
    let expected = whole.state();
    for at in 0..writes {
        let scene = in_between();
        scene.keep_until(at);
        scene.sync();
        assert_eq!(scene.state(), expected, "ended before write {at}");
        assert!(scene.sync().is_empty());
    }
}

#[test]
fn what_we_take_out_ourselves_is_nobodys_removal() {
    let scene = in_between();
    scene.keep_until(2);
    scene.sync();
    let old = scene.memory("names");
    assert_eq!((old.state, old.superseded_by), (MemoryState::Superseded, Some(id("kebab"))));
    assert_eq!(scene.memory("kebab").state, MemoryState::Active);
}

#[test]
fn an_entry_that_is_nowhere_any_more_takes_its_memory_back_until_it_is_back() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    let before = scene.files();
    scene.take_out("active-context.md", "Who pays for it");
    let without = scene.files();
    let report = scene.sync();
    assert_eq!(report.people.iter().filter(|(rule, _)| *rule == "person-removed").count(), 1);
    let memory = scene.memory("who");
    assert_eq!(memory.reason.as_deref(), Some("person-removed"));
    assert_eq!(memory.state, MemoryState::Retracted);
    assert!(scene.sync().is_empty());
    assert_eq!(scene.files(), without, "nothing else changes by it");
    scene.edit("active-context.md", |_| before["active-context.md"].to_string());
    scene.sync();
    let memory = scene.memory("who");
    assert_eq!((memory.state, memory.reason, memory.confirmed), (MemoryState::Active, None, true));
    assert_eq!(scene.files(), before);
}

#[test]
fn an_entry_that_stands_somewhere_else_still_is_no_removal() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    // The record of the decision stays.
    scene.take_out("active-context.md", "Use Postgres");
    scene.sync();
    assert_eq!(scene.memory("db").state, MemoryState::Active);
    assert!(!scene.files()["active-context.md"].contains("Use Postgres"));
    assert!(scene.sync().is_empty());
}

#[test]
fn a_file_that_a_person_takes_away_stays_away_and_takes_back_nothing() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    let path = "decisions/ADR-001-use-postgres.md";
    let text = scene.files()[path].clone();
    scene.folder.write(path, Some(&text), None).unwrap();
    let report = scene.sync();
    assert_eq!((report.deleted, report.changes), (vec![path.to_owned()], vec![]));
    assert_eq!(report.left, [(path.to_owned(), people::RECORD_DELETED)]);
    assert_eq!(scene.sync().left, [], "told once");
    assert_eq!(scene.memory("db").state, MemoryState::Active);
}

#[test]
fn a_file_that_was_emptied_or_overwritten_takes_back_nothing() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    let before = scene.files();
    for ruined in ["", "\n", "core dumped\n- at 0x0\n"] {
        for path in ["active-context.md", "decisions/ADR-001-use-postgres.md"] {
            scene.edit(path, |_| ruined.to_owned());
            let report = scene.sync();
            assert!(report.people.is_empty(), "{:?}", report.people);
            assert_eq!(report.left.len(), 1, "{:?}", report.left);
            assert_eq!(report.left[0].0, path);
            assert_eq!(&*scene.files()[path], ruined, "left as it is");
            scene.edit(path, |_| before[path].to_string());
            scene.sync();
            assert_eq!(scene.files(), before);
        }
    }
    // The entries of the ruined file count as shown; those taken out of another one do not.
    scene.apply(vec![operation("gutter", asked("Clean the gutter"), None)]);
    scene.sync();
    scene.edit("active-context.md", |_| String::new());
    scene.take_out("progress.md", "Clean the gutter");
    scene.sync();
    assert_eq!(scene.memory("gutter").reason.as_deref(), Some("person-removed"));
    for name in ["db", "who", "seal"] {
        assert_eq!(scene.memory(name).state, MemoryState::Active, "{name}");
    }
    // A person who removes the entries and leaves the title means it.
    scene.edit("active-context.md", |_| "# Active Context\n".to_owned());
    scene.sync();
    assert_eq!(scene.memory("who").reason.as_deref(), Some("person-removed"));
}

#[test]
fn a_decision_that_a_person_removes_file_by_file_is_taken_back() {
    let record = "decisions/ADR-001-use-postgres.md";
    for is_line_first in [true, false] {
        let scene = scene();
        scene.apply(first());
        scene.sync();
        for is_line in [is_line_first, !is_line_first] {
            assert_eq!(scene.memory("db").state, MemoryState::Active);
            if is_line {
                scene.take_out("active-context.md", "Use Postgres");
            } else {
                let text = scene.files()[record].clone();
                scene.folder.write(record, Some(&text), None).unwrap();
            }
            scene.sync();
        }
        assert_eq!(scene.memory("db").reason.as_deref(), Some("person-removed"));
    }
}

#[test]
fn what_a_person_writes_as_the_decision_of_a_record_is_its_wording() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    let record = "decisions/ADR-001-use-postgres.md";
    let shown = |scene: &Scene| {
        let memory = scene.memory("db");
        crate::domain::shown_words(memory.edited.as_deref(), &memory.claim).to_owned()
    };
    scene.edit(record, |text| text.replace("# ADR-001: Use Postgres", "# ADR-001: Take Postgres"));
    scene.sync();
    assert_eq!(shown(&scene), "Take Postgres");
    let decided =
        |text: &str| text.replace("## Decision\nTake Postgres", "## Decision\nUse Postgres 17");
    scene.edit(record, decided);
    scene.sync();
    assert_eq!(shown(&scene), "Use Postgres 17");
    scene.edit(record, |text| format!("{text}\nAna was against it.\n"));
    scene.sync();
    assert_eq!(shown(&scene), "Use Postgres 17");
    assert!(scene.memory("db").confirmed);
}

#[test]
fn a_paragraph_beside_the_decision_of_a_record_is_no_wording_of_it() {
    let record = "decisions/ADR-001-use-postgres.md";
    for (from, to) in [
        ("## Decision\n", "## Decision\nWe discussed this for two weeks.\n\n"),
        ("## Decision\nUse Postgres\n", "## Decision\nUse Postgres\n\nEverybody agreed.\n"),
        ("## Decision\nUse Postgres\n", "## Decision\nUse\nPostgres\n"),
    ] {
        let scene = scene();
        scene.apply(first());
        scene.sync();
        scene.edit(record, |text| text.replace(from, to));
        let report = scene.sync();
        assert_eq!(scene.memory("db").edited, None, "{to}");
        assert_eq!(report.conflicts, [], "{to}");
        let files = scene.files();
        assert!(files[record].starts_with("# ADR-001: Use Postgres\n"), "{}", files[record]);
        let own = to.rsplit("\n").find(|it| it.ends_with('.')).unwrap_or("Postgres");
        assert!(files[record].contains(own), "{}", files[record]);
        assert!(scene.sync().is_empty(), "{to}");
    }
}

#[test]
fn a_line_between_an_entry_and_its_tag_is_a_note_of_the_person() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    let (path, entry) = ("active-context.md", "Names in snake_case");
    scene.edit(path, |text| {
        let at = text.find(entry).and_then(|at| Some(at + text[at..].find('\n')? + 1)).unwrap();
        format!("{}- Buy printers\n{}", &text[..at], &text[at..])
    });
    scene.sync();
    assert_eq!(scene.memory("names").edited, None);
    let text = &scene.files()[path];
    assert!(text.contains(" -->\n- Buy printers\n"), "{text}");
    assert!(scene.sync().is_empty());
}

#[test]
fn an_entry_whose_words_go_is_taken_back_though_its_tag_stays() {
    for words in ["", "- \n"] {
        let scene = scene();
        scene.apply(first());
        scene.sync();
        let is_list = |path: &str| !path.starts_with("sessions/");
        let has_it = |it: &(&String, &Arc<str>)| it.1.contains("Who pays for it") && is_list(it.0);
        let paths: Vec<String> =
            scene.files().iter().filter(has_it).map(|it| it.0.clone()).collect();
        assert!(!paths.is_empty());
        for path in &paths {
            scene.edit(path, |text| {
                let line = text.lines().find(|it| it.contains("Who pays for it")).unwrap();
                text.replacen(&format!("{line}\n"), words, 1)
            });
        }
        scene.sync();
        assert_eq!(scene.memory("who").state, MemoryState::Retracted, "{words:?}");
        assert!(scene.sync().is_empty());
    }
}

#[test]
fn a_correction_in_one_file_is_shown_in_all() {
    let record = "decisions/ADR-001-use-postgres.md";
    let edits: [(&str, &str, &str); 2] = [
        ("active-context.md", "- ADR-001: Use Postgres", "- ADR-001: Use Postgres 17"),
        (record, "## Decision\nUse Postgres", "## Decision\nUse Postgres 17"),
    ];
    for (path, from, to) in edits {
        let scene = scene();
        scene.apply(first());
        scene.sync();
        scene.edit(path, |text| text.replace(from, to));
        let report = scene.sync();
        assert_eq!(report.conflicts, [], "{path}");
        let files = scene.files();
        assert!(files["active-context.md"].contains("- ADR-001: Use Postgres 17 (1970-01-01)\n"));
        assert!(files[record].starts_with("# ADR-001: Use Postgres 17\n"), "{}", files[record]);
        assert!(files[record].contains("## Decision\nUse Postgres 17\n"), "{}", files[record]);
        assert!(scene.sync().is_empty());
        // The words are corrected once more, in the other file.
        let (path, other) =
            if path == record { (edits[0].0, record) } else { (record, edits[0].0) };
        scene.edit(path, |text| text.replace("Use Postgres 17", "Use Postgres 18"));
        assert_eq!(scene.sync().conflicts, [], "{path}");
        let files = scene.files();
        for path in [path, other] {
            assert!(!files[path].contains("Postgres 17"), "{}", files[path]);
        }
        assert!(scene.sync().is_empty());
    }
}

#[test]
fn a_correction_with_masked_words_keeps_the_line_of_the_person() {
    let scene = scene();
    scene.apply(vec![operation("gutter", asked("Mend the gutter"), None)]);
    scene.amend("gutter", |it| it.stage = Stage::Attempted);
    scene.sync();
    scene.edit("progress.md", |text| text.replace("the gutter", "the gutter, ada@example.org"));
    let report = scene.sync();
    assert_eq!((report.people.len(), report.conflicts), (1, vec![]));
    let files = scene.files();
    assert!(files["progress.md"].contains("- [ ] Mend the gutter, ada@example.org (1970-01-01)"));
    let focus = below(&files["active-context.md"], "Current Focus");
    assert_eq!(focus, ["- Mend the gutter, <EMAIL>"]);
    assert!(scene.sync().is_empty());
    scene.amend("gutter", |it| it.stage = Stage::Decided);
    assert_eq!(scene.sync().conflicts, []);
    let done = below(&scene.files()["progress.md"], "Completed (Recent)");
    assert_eq!(done, ["- [x] Mend the gutter, ada@example.org (1970-01-01)"]);
}

#[test]
fn what_a_person_decided_in_files_that_were_never_seen_counts() {
    let first = || {
        let mut all = first();
        all.push(operation("gutter", asked("Mend the gutter"), None));
        all.push(operation("slates", asked("Order slates"), None));
        all
    };
    let scene = scene();
    scene.apply(first());
    scene.sync();
    scene.edit("active-context.md", |text| text.replace("Who pays", "Who in the end pays"));
    scene.edit("progress.md", |text| text.replace("- Mend", "- [x] Mend"));
    scene.edit("decisions/ADR-001-use-postgres.md", |text| {
        text.replace("## Decision\nUse Postgres", "## Decision\nUse Postgres 17")
    });
    scene.take_out("active-context.md", "Seal it");
    let other = self::scene();
    other.apply(first());
    other.check_out(&scene.files());
    let report = other.sync();
    let mut rules: Vec<&str> = report.people.iter().map(|it| it.0).collect();
    rules.sort_unstable();
    assert_eq!(rules, ["person-closed", PERSON_EDITED, PERSON_EDITED]);
    assert!(other.memory("who").edited.unwrap().contains("Who in the end pays"));
    assert_eq!(other.memory("gutter").stage, Stage::Decided);
    assert_eq!(other.memory("db").edited.as_deref(), Some("Use Postgres 17"));
    let untouched = ["names", "seal", "slates"].map(|it| other.memory(it));
    assert!(untouched.iter().all(|it| !it.confirmed && it.state == MemoryState::Active));
    assert!(other.sync().is_empty());
    // Once something was forgotten, files that were never seen may have words of it.
    let forgetful = self::scene();
    forgetful.apply(first());
    forgetful.runtime.block_on(async {
        let held = forgetful.dir_sync.hold(NAMESPACE).await.unwrap().unwrap();
        let erasure = Erasure { records: vec![record("gutter")], ..Erasure::default() };
        let store = &forgetful.dir_sync.store;
        store.erase(&held.lease, erasure, noon()).await.unwrap().unwrap();
        held.release(None).await.unwrap();
        assert!(store.has_forgotten().await.unwrap());
    });
    forgetful.check_out(&scene.files());
    assert_eq!(forgetful.sync().people, []);
    // Files of an older state of the memory decide nothing.
    let old = self::scene();
    old.apply(first());
    old.sync();
    let later = self::scene();
    later.apply(first());
    later.apply(second());
    later.amend("gutter", |it| it.stage = Stage::Decided);
    later.check_out(&old.files());
    assert_eq!(later.sync().people, []);
    assert_eq!(later.memory("gutter").stage, Stage::Decided);
    assert_eq!(later.memory("db").state, MemoryState::Superseded);
}

#[test]
fn a_line_that_goes_while_its_record_still_holds_is_told_once() {
    let record = "decisions/ADR-001-use-postgres.md";
    for hides in [false, true] {
        let scene = scene();
        scene.apply(first());
        scene.sync();
        if hides {
            scene.edit("active-context.md", |text| {
                let hidden = text.replace("- ADR-001", "<private>\n- ADR-001");
                hidden.replace("\n## Open Questions", "</private>\n\n## Open Questions")
            });
        } else {
            scene.take_out("active-context.md", "Use Postgres");
        }
        let left = scene.sync().left;
        assert_eq!(left, [(record.to_owned(), people::RECORD_HOLDS)]);
        assert_eq!(scene.sync().left, []);
        assert_eq!(scene.memory("db").state, MemoryState::Active);
    }
}

#[test]
fn a_directory_that_lost_all_its_entries_is_made_anew() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    let before = scene.files();
    for (path, text) in &before {
        scene.folder.write(path, Some(text), None).unwrap();
    }
    scene.sync();
    assert_eq!(scene.files(), before);
    assert_eq!(scene.memory("who").state, MemoryState::Active);
}

impl Scene {
    /// Changes a memory as a plan does.
    fn amend(&self, name: &str, change: impl Fn(&mut Memory)) {
        let before = self.memory(name);
        let mut after = before.clone();
        change(&mut after);
        self.runtime.block_on(async {
            let held = self.dir_sync.hold(NAMESPACE).await.unwrap().unwrap();
            let changes = vec![(before, after)];
            let store = &self.dir_sync.store;
            store.amend_memories(&held.lease, changes, "test", noon()).await.unwrap().unwrap();
            held.release(None).await.unwrap();
        });
    }

    /// Puts the directory back to earlier files, as a checkout does.
    fn check_out(&self, files: &Files) {
        let now = self.files();
        for (path, text) in &now {
            self.folder.write(path, Some(text), files.get(path).map(|it| &**it)).unwrap();
        }
        for (path, text) in files.iter().filter(|(path, _)| !now.contains_key(*path)) {
            self.folder.write(path, None, Some(text)).unwrap();
        }
    }

    /// Checks earlier files out, twice: nobody edited them, and a sync restores what was there.
    #[track_caller]
    fn restores_after_checkout(&self, old: &Files) {
        let (files, memories, _) = self.state();
        for _ in 0..2 {
            self.check_out(old);
            assert_eq!(self.sync().people, []);
            let (again, same, _) = self.state();
            assert_eq!((again, same), (files.clone(), memories.clone()));
        }
        assert!(self.sync().is_empty());
    }
}

#[test]
fn a_checkout_of_older_files_is_nobodys_edit() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    let old = scene.files();
    scene.apply(second());
    scene.sync();
    assert_eq!(scene.memory("names").state, MemoryState::Superseded);
    scene.restores_after_checkout(&old);
}

#[test]
fn a_checkout_of_older_files_keeps_what_people_added() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    scene.edit("active-context.md", |text| text.replace("## Blockers\n", "## Blockers\n- mine\n"));
    scene.edit("active-context.md", |text| format!("{text}\n## Own\n\n- yours\n"));
    scene.sync();
    let old = scene.files();
    scene.apply(second());
    scene.sync();
    let files = scene.files();
    scene.check_out(&old);
    assert_eq!(scene.sync().people, []);
    assert_eq!(scene.files(), files);
}

#[test]
fn a_file_that_was_deleted_and_made_anew_takes_back_nothing() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    let before = scene.files();
    let path = "active-context.md";
    scene.folder.write(path, Some(&before[path]), None).unwrap();
    scene.sync();
    let initial = "# Active Context\n\n## Recent Decisions\n\n## Open Questions\n";
    scene.folder.write(path, None, Some(initial)).unwrap();
    assert_eq!(scene.sync().people, []);
    assert!(scene.files()[path].contains("- Who pays for it"));
}

#[test]
fn an_edited_line_leaves_once_its_memory_is_superseded_or_solved() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    scene.edit("active-context.md", |text| {
        text.replace("Names in snake_case", "All names in snake_case")
            .replace("Seal it", "Seal all")
    });
    scene.sync();
    let edited = scene.files()["active-context.md"].clone();
    scene.amend("names", |it| {
        (it.state, it.superseded_by) = (MemoryState::Superseded, Some(id("db")));
    });
    scene.amend("seal", |it| it.stage = it.stage_once(true).unwrap());
    assert_eq!(scene.sync().conflicts, []);
    let text = scene.files()["active-context.md"].clone();
    assert!(!text.contains("snake_case") && !text.contains("Seal all"), "{text}");
    scene.amend("names", Memory::reinstate);
    scene.amend("seal", |it| it.stage = it.stage_once(false).unwrap());
    assert_eq!(scene.sync().people, []);
    let text = scene.files()["active-context.md"].replace("## Blockers\n\n-", "## Blockers\n-");
    assert_eq!(*text, *edited, "the wording is back as well");
}

#[test]
fn an_edit_counts_although_the_project_was_moved_before_the_sync() {
    let mut scene = scene();
    scene.apply(first());
    scene.sync();
    let moved = scene.root.path().join("moved");
    std::fs::create_dir(&moved).unwrap();
    std::fs::rename(scene.root.path().join(".claude"), moved.join(".claude")).unwrap();
    scene.folder = MemoryFolder::find(&moved).unwrap().unwrap();
    scene
        .edit("active-context.md", |text| text.replace("Who pays for it", "Who pays for the roof"));
    let report = scene.sync();
    assert_eq!(report.people.len(), 1);
    assert!(scene.memory("who").edited.unwrap().contains("Who pays for the roof"));
    let folders = scene.runtime.block_on(scene.dir_sync.folders(NAMESPACE)).unwrap();
    assert_eq!(folders, [scene.folder.clone()]);
    assert!(scene.sync().is_empty());
}

#[test]
fn an_entry_that_is_hidden_is_not_taken_back() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    scene.edit("active-context.md", |text| {
        let hidden = text.replace("- Who pays", "<private>\n- Who pays");
        hidden.replace("\n## Blockers", "</private>\n\n## Blockers")
    });
    let hidden = scene.files();
    scene.sync();
    assert_eq!(scene.memory("who").state, MemoryState::Active);
    assert_eq!(scene.files(), hidden);
}

#[test]
fn somebody_who_writes_meanwhile_is_not_written_over() {
    let scene = in_between();
    let is_first = Cell::new(true);
    let write = |it: &FileChange| {
        if it.path == "active-context.md" && is_first.replace(false) {
            scene.edit(&it.path, |text| text.replace("- Mine\n", "- Mine\n- Mine too\n"));
        }
        super::write(&scene.folder, it)
    };
    let report = scene.runtime.block_on(async {
        let held = scene.dir_sync.hold(NAMESPACE).await.unwrap().unwrap();
        let report = scene.dir_sync.write(&held.lease, &scene.folder, &write).await.unwrap();
        held.release(None).await.unwrap();
        report
    });
    assert_eq!(report.left, []);
    let text = &scene.files()["active-context.md"];
    assert!(text.contains("- Mine\n- Mine too\n") && text.contains("When it is dry"), "{text}");
    assert!(scene.root.path().exists() && scene.sync().is_empty());
}

#[test]
fn an_unfinished_merge_holds_a_file_and_nothing_of_it_counts_as_removed() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    scene.edit("active-context.md", |text| {
        text.replace("- Who pays", "<<<<<<< HEAD\n=======\n>>>>>>> other\n- Who pays")
    });
    scene.apply(second());
    let report = scene.sync();
    assert_eq!(report.left.len(), 1);
    assert_eq!(report.left[0].0, "active-context.md");
    scene.edit("active-context.md", |text| {
        text.replace("<<<<<<< HEAD\n=======\n>>>>>>> other\n", "")
    });
    scene.sync();
    let text = &scene.files()["active-context.md"];
    assert!(text.contains("When it is dry") && text.contains("Who pays"), "{text}");
    assert_eq!(scene.memory("when").state, MemoryState::Active);
    assert_eq!(scene.memory("who").state, MemoryState::Active);
}

#[test]
fn editing_a_line_confirms_that_entry_alone() {
    let scene = in_between();
    scene.edit("active-context.md", |text| text.replace("Who pays for it", "Who pays for that"));
    let report = scene.sync();
    assert_eq!(report.people.iter().map(|it| it.0).collect::<Vec<_>>(), [PERSON_EDITED]);
    let confirmed: Vec<&str> = ["db", "names", "seal", "who"]
        .into_iter()
        .filter(|it| scene.memory(it).confirmed)
        .collect();
    assert_eq!(confirmed, ["who"]);
    assert_eq!(scene.memory("who").edited.as_deref(), Some("- Who pays for that (1970-01-01)"));
}

fn asked(summary: &str) -> Claim {
    let (intent, summary) = (summary.to_owned(), summary.to_owned());
    Claim::Request(PersonRequest { intent, target: None, summary })
}

/// The lines below `heading`, without tags.
fn below(text: &str, heading: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| line.trim_start_matches('#').trim() != heading);
    let lines = lines.skip(1).take_while(|line| !line.starts_with('#'));
    lines.filter(|it| it.starts_with('-') && *it != "---").map(str::to_owned).collect()
}

#[test]
fn a_tick_closes_a_request_and_taking_it_away_opens_it_again() {
    let scene = scene();
    scene.apply(vec![
        operation("gutter", asked("Mend the gutter"), None),
        operation("tiles", asked("Order tiles"), None),
    ]);
    scene.sync();
    scene.edit("progress.md", |text| text.replace("- Mend the", "- [x] Mend the"));
    let report = scene.sync();
    assert_eq!(report.people.iter().map(|it| it.0).collect::<Vec<_>>(), ["person-closed"]);
    let (memory, other) = (scene.memory("gutter"), scene.memory("tiles"));
    assert_eq!((memory.stage, memory.edited), (Stage::Decided, None));
    assert_eq!((other.stage, other.confirmed), (Stage::Proposed, false));
    let shown = |heading| below(&scene.files()["progress.md"], heading);
    assert_eq!(shown("Completed (Recent)"), ["- [x] Mend the gutter (1970-01-01)"]);
    assert!(scene.sync().is_empty());
    scene.edit("progress.md", |text| text.replace("- [x] Mend", "- [ ] Mend"));
    scene.sync();
    let memory = scene.memory("gutter");
    let rule = memory.decided.map(|it| it.rule.into_owned());
    assert_eq!((memory.stage, rule.as_deref()), (Stage::Proposed, Some("person-reopened")));
    assert_eq!(shown("Backlog").len(), 2, "{}", scene.files()["progress.md"]);
    assert_eq!(shown("Completed (Recent)"), [""; 0]);
    assert!(scene.sync().is_empty());
    // A person who moves it says that it was begun.
    let line = "- Mend the gutter (1970-01-01)\n";
    scene.edit("progress.md", |text| {
        let tag = text.split_once(line).unwrap().1.lines().next().unwrap();
        let entry = format!("{line}{tag}\n");
        format!("{}\n## In Progress\n{entry}", text.replace(&entry, ""))
    });
    scene.sync();
    assert_eq!(scene.memory("gutter").stage, Stage::Attempted);
    assert_eq!(shown("In Progress"), ["- [ ] Mend the gutter (1970-01-01)"]);
    let focus = below(&scene.files()["active-context.md"], "Current Focus");
    assert_eq!(focus, ["- Mend the gutter"]);
    assert!(scene.sync().is_empty());
}

#[test]
fn words_and_ticks_in_the_current_focus_count_and_its_removal_does_not() {
    let scene = scene();
    scene.apply(vec![operation("gutter", asked("Clean the gutter"), None)]);
    scene.amend("gutter", |it| it.stage = Stage::Attempted);
    scene.sync();
    let path = "active-context.md";
    scene.edit(path, |text| text.replace("Clean the gutter", "Clean both gutters"));
    scene.sync();
    assert_eq!(scene.memory("gutter").words(), "Clean both gutters");
    assert!(scene.files()["progress.md"].contains("- [ ] Clean both gutters"));
    assert!(scene.sync().is_empty());
    let before = scene.files();
    scene.take_out(path, "Clean both gutters");
    assert_eq!(scene.sync().people, []);
    scene.edit(path, |_| before[path].to_string());
    scene.sync();
    scene.edit(path, |text| text.replace("- Clean both", "- [x] Clean both"));
    scene.sync();
    assert_eq!(scene.memory("gutter").stage, Stage::Decided);
    let files = scene.files();
    assert!(!files[path].contains("Clean both"), "{}", files[path]);
    assert!(files["progress.md"].contains("- [x] Clean both gutters"));
}

#[test]
fn a_heading_that_is_lost_or_renamed_changes_no_memory() {
    let scene = scene();
    scene.apply(vec![
        operation("gutter", asked("Clean the gutter"), None),
        operation("moss", asked("Remove the moss"), None),
        operation("who", open_question("Who pays for it"), None),
        operation("seal", failed("Seal it with tar"), None),
    ]);
    scene.sync();
    scene.edit("progress.md", |text| text.replace("- Remove the moss", "- [x] Remove the moss"));
    scene.sync();
    let before = scene.state();
    for (path, heading) in [
        ("progress.md", "## Completed (Recent)\n"),
        ("progress.md", "## Backlog\n"),
        ("active-context.md", "## Open Questions\n"),
        ("active-context.md", "## Blockers\n"),
    ] {
        scene.edit(path, |text| text.replace(heading, ""));
        assert_eq!(scene.sync().people, [], "{heading}");
        assert_eq!(scene.state(), before, "{heading}");
    }
    scene.edit("progress.md", |text| text.replace("## Completed (Recent)", "## Done"));
    scene.edit("active-context.md", |text| text.replace("## Blockers", "## In the way"));
    assert_eq!(scene.sync().people, []);
    assert_eq!(scene.state().1, before.1);
}

#[test]
fn a_heading_that_is_lost_with_a_line_that_was_moved_closes_nothing() {
    let scene = scene();
    let asked = ["gutter", "moss", "ridge", "slates"].map(|it| operation(it, asked(it), None));
    scene.apply(asked.into());
    scene.sync();
    for done in ["gutter", "moss"] {
        scene.edit("progress.md", |text| {
            text.replace(&format!("- {done}"), &format!("- [x] {done}"))
        });
    }
    scene.sync();
    let before = scene.files()["progress.md"].clone();
    // Between the completed ones, and without its heading.
    let at = before.find("- ridge").unwrap();
    let lines = before[at..].lines().take(2).map(|it| format!("{it}\n")).collect::<String>();
    let second = before.rfind("- [x]").unwrap();
    let text = before.replace(&lines, "").replace("## Backlog\n", "");
    let text = format!("{}{lines}{}", &text[..second], &text[second..]);
    assert!(second < at, "{before}");
    scene.edit("progress.md", |_| text.clone());
    let report = scene.sync();
    assert_eq!((report.people, report.left.len()), (vec![], 1));
    assert_eq!(*scene.files()["progress.md"], *text, "left as it is");
    assert!(["ridge", "slates"].iter().all(|it| scene.memory(it).is_open()));
    scene.edit("progress.md", |_| before.to_string());
    assert!(scene.sync().is_empty());
}

#[test]
fn a_capital_tick_is_a_tick_and_a_mark_reaches_an_edited_line() {
    let scene = scene();
    scene.apply(vec![operation("gutter", asked("Mend the gutter"), None)]);
    scene.apply(first());
    scene.sync();
    scene.edit("progress.md", |text| text.replace("- Mend the", "- [X] Mend the"));
    assert_eq!(scene.sync().conflicts, []);
    let shown = below(&scene.files()["progress.md"], "Completed (Recent)");
    assert_eq!(shown, ["- [x] Mend the gutter (1970-01-01)"]);
    let named = "active-context.md";
    scene.edit(named, |text| text.replace("Names in snake_case", "Names in snake_case, mostly"));
    scene.sync();
    let mut camel = operation("camel", decided("Names in camelCase", &[]), None);
    camel.disposition = Disposition::Conflict { with: id("names"), memory: id("camel") };
    scene.apply(vec![camel]);
    assert_eq!(scene.sync().conflicts, []);
    let shown = below(&scene.files()[named], "Recent Decisions");
    let marked = "- Names in snake_case, mostly – It is simpler (1970-01-01; conflicts with src-";
    assert!(shown.iter().any(|line| line.starts_with(marked)), "{shown:#?}");
    assert!(scene.sync().is_empty());
}

#[test]
fn an_open_question_and_a_blocker_are_ticked_off_too() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    scene.edit("active-context.md", |text| {
        text.replace("- Who pays", "- [x] Who pays").replace("- Seal it", "- [x] Seal it")
    });
    let report = scene.sync();
    assert_eq!(report.conflicts, []);
    assert_eq!([scene.memory("who").stage, scene.memory("seal").stage], [Stage::Decided; 2]);
    let text = &scene.files()["active-context.md"];
    assert!(!text.contains("Who pays") && !text.contains("Seal it"), "{text}");
    assert!(scene.sync().is_empty());
}

#[test]
fn a_deed_closes_a_request_visibly_also_where_a_person_edited_its_line() {
    let scene = scene();
    scene.apply(vec![operation("gutter", asked("Mend the gutter"), None)]);
    scene.sync();
    scene.edit("progress.md", |text| text.replace("the gutter", "the gutter in the north"));
    scene.sync();
    let claim = Claim::Attempt(Attempt {
        action: "Mended the gutter".into(),
        result: "it is tight".into(),
        succeeded: true,
    });
    let mut deed = operation("mended", claim, None);
    deed.effects = vec![Effect {
        memory: id("gutter"),
        by: id("mended"),
        stage: Some(Stage::Decided),
        supersedes: false,
        restores: false,
        retracts: false,
        at: Some(Timestamp(2)),
        rule: "completed".into(),
    }];
    scene.apply(vec![deed]);
    assert_eq!(scene.sync().conflicts, []);
    let text = &scene.files()["progress.md"];
    assert_eq!(
        below(text, "Completed (Recent)"),
        ["- [x] Mend the gutter in the north (1970-01-01)"]
    );
    assert_eq!(below(text, "Backlog"), [""; 0]);
    assert!(scene.sync().is_empty());
}

#[test]
fn entries_keep_the_tags_that_a_formatter_put_apart() {
    let scene = scene();
    scene.apply(first());
    scene.apply(vec![operation("gutter", asked("Mend the gutter"), None)]);
    scene.sync();
    for path in ["active-context.md", "progress.md", "decisions/ADR-001-use-postgres.md"] {
        // As Prettier writes a list with comments in it.
        scene.edit(path, |text| {
            let lines = text.lines().scan("", |above, line| {
                let is_apart = line.starts_with("<!-- @") != above.starts_with("<!-- @");
                *above = line;
                Some(format!("{}{line}\n", if is_apart { "\n" } else { "" }))
            });
            lines.collect()
        });
    }
    let files = scene.files();
    let report = scene.sync();
    assert!(report.is_empty() && report.left.is_empty(), "{report:?}");
    assert_eq!(scene.files(), files);
    scene.edit("progress.md", |text| text.replace("- Mend the", "-[x] Mend at once the"));
    scene.edit("active-context.md", |text| text.replace("in snake_case", "in snake case"));
    let rules: BTreeSet<&str> = scene.sync().people.iter().map(|it| it.0).collect();
    assert_eq!(Vec::from_iter(rules), ["person-closed", PERSON_EDITED]);
    assert!(scene.memory("names").edited.unwrap().contains("Names in snake case"));
    let shown = below(&scene.files()["progress.md"], "Completed (Recent)");
    assert_eq!(shown, ["- [x] Mend at once the gutter (1970-01-01)"]);
    scene.apply(second());
    assert_eq!(scene.sync().conflicts, []);
    let text = scene.files()["active-context.md"].clone();
    assert!(!text.contains("Use Postgres") && !text.contains("Names in snake"), "{text}");
    assert!(scene.sync().is_empty());
}

#[test]
fn a_line_that_is_put_back_revives_its_memory_and_not_the_successor() {
    for takes_out in [false, true] {
        let scene = scene();
        scene.apply(first());
        scene.sync();
        scene.apply(second());
        scene.sync();
        assert_eq!(scene.memory("names").state, MemoryState::Superseded);
        if takes_out {
            scene.take_out("active-context.md", "Names in kebab-case");
        }
        let tag = &source_tags([id("names")])[&id("names")];
        let line = format!("## Recent Decisions\n- Names in snake_case\n<!-- @tag: {tag} -->\n");
        scene.edit("active-context.md", |text| text.replace("## Recent Decisions\n", &line));
        scene.sync();
        let (old, new) = (scene.memory("names"), scene.memory("kebab"));
        assert_eq!((old.state, old.superseded_by), (MemoryState::Active, None));
        let left = if takes_out { MemoryState::Retracted } else { MemoryState::Active };
        assert_eq!(new.state, left);
        assert_eq!(new.superseded_by, None);
        assert!(scene.files()["active-context.md"].contains("- Names in snake_case"));
        assert!(scene.sync().is_empty());
    }
}

#[test]
fn a_changed_status_of_a_record_is_a_decision_on_its_memory() {
    let scene = scene();
    scene.apply(first());
    scene.apply(vec![operation("db2", decided("Use Redis", &["Use Redis", "Use Postgres"]), None)]);
    scene.sync();
    let files = scene.files();
    let ends_with = |end: &str| files.keys().find(|path| path.ends_with(end)).unwrap();
    let (path, other) = (ends_with("use-postgres.md"), ends_with("use-redis.md"));
    let by_other = format!("Superseded by {}", other.get(10..17).unwrap());
    let set = |from: &str, to: &str| {
        let line = |status: &str| format!("**Status:** {status}\n");
        scene.edit(path, |text| text.replace(&line(from), &line(to)));
        scene.sync();
        assert!(scene.sync().is_empty());
        assert!(scene.files()[path].contains(&line(to)), "{}", scene.files()[path]);
        let memory = scene.memory("db");
        assert_eq!(memory.edited, None);
        (memory.state, memory.superseded_by)
    };
    let (active, superseded) = (MemoryState::Active, MemoryState::Superseded);
    assert_eq!(set("Accepted", "Deprecated"), (MemoryState::Retracted, None));
    assert_eq!(set("Deprecated", &by_other), (superseded, Some(id("db2"))));
    assert_eq!(set(&by_other, "Accepted"), (active, None));
    assert_eq!(scene.memory("db2").state, active);
}

#[test]
fn records_do_not_supersede_each_other_or_by_one_that_is_not_there() {
    let scene = scene();
    scene.apply(first());
    scene.apply(vec![operation("db2", decided("Use Redis", &["Use Redis", "Use Postgres"]), None)]);
    scene.sync();
    let files = scene.files();
    let ends_with = |end: &str| files.keys().find(|path| path.ends_with(end)).unwrap();
    let paths = [ends_with("use-postgres.md"), ends_with("use-redis.md")];
    let set = |path: &str, by: &str| {
        scene.edit(path, |text| {
            text.replace("Status:** Accepted", &format!("Status:** Superseded by {by}"))
        });
    };
    let states = || ["db", "db2"].map(|name| scene.memory(name).state);
    set(paths[0], "ADR-099");
    for _ in 0..2 {
        assert_eq!(scene.sync().left, [(paths[0].clone(), people::NO_RECORD)]);
        assert_eq!(states(), [MemoryState::Active; 2]);
    }
    scene.edit(paths[0], |text| text.replace("Superseded by ADR-099", "Rejected"));
    for _ in 0..2 {
        assert_eq!(scene.sync().left, [(paths[0].clone(), people::NO_STATUS)]);
    }
    scene.edit(paths[0], |text| text.replace("Rejected", "Accepted"));
    assert_eq!(scene.sync().left, []);
    set(paths[0], &paths[1][10..17]);
    set(paths[1], &paths[0][10..17]);
    for _ in 0..2 {
        let left = scene.sync().left;
        assert!(matches!(left.as_slice(), [(_, people::CIRCLE)]), "{left:?}");
    }
    let active = states().iter().filter(|it| **it == MemoryState::Active).count();
    assert_eq!(active, 1, "{:?}", states());
    assert!(scene.sync().is_empty());
}

#[test]
fn a_mark_of_a_contradiction_that_is_taken_away_keeps_both() {
    let scene = scene();
    scene.apply(vec![operation("nine", decided("Close at nine", &[]), None)]);
    let mut ten = operation("ten", decided("Close at ten", &[]), None);
    ten.disposition = Disposition::Conflict { with: id("nine"), memory: id("ten") };
    scene.apply(vec![ten]);
    scene.sync();
    let tag = source_tags([id("nine")])[&id("nine")].clone();
    let mark = format!("; conflicts with {tag} “Close at nine”");
    scene.edit("active-context.md", |text| text.replacen(&mark, "", 1));
    scene.sync();
    let text = &scene.files()["active-context.md"];
    assert!(!text.contains("conflicts with"), "{text}");
    for name in ["nine", "ten"] {
        let memory = scene.memory(name);
        assert_eq!((memory.state, memory.edited), (MemoryState::Active, None));
        assert_eq!(memory.decided.unwrap().rule, "person-kept-both");
    }
    assert!(scene.sync().is_empty());
}

#[test]
fn a_mark_of_a_contradiction_that_is_put_back_takes_back_that_both_hold() {
    for is_first in [true, false] {
        let scene = scene();
        scene.apply(vec![operation("nine", decided("Close at nine", &[]), None)]);
        let mut ten = operation("ten", decided("Close at ten", &[]), None);
        ten.disposition = Disposition::Conflict { with: id("nine"), memory: id("ten") };
        scene.apply(vec![ten]);
        scene.sync();
        let marked = scene.state();
        let mark = |name| {
            let tag = source_tags([id(name)])[&id(name)].clone();
            format!("; conflicts with {tag} “Close at {name}”")
        };
        scene.edit("active-context.md", |text| text.replacen(&mark("nine"), "", 1));
        scene.sync();
        assert!(!scene.files()["active-context.md"].contains("conflicts with"));
        let (line, other) = if is_first { ("nine", "ten") } else { ("ten", "nine") };
        scene.edit("active-context.md", |text| {
            let at = text.find(&format!("Close at {line}")).unwrap();
            let end = at + text[at..].find(')').unwrap();
            format!("{}{}{}", &text[..end], mark(other), &text[end..])
        });
        let report = scene.sync();
        let rules: Vec<&str> = report.people.iter().map(|it| it.0).collect();
        assert_eq!(rules, ["person-took-back"]);
        assert_eq!(scene.state(), marked, "{is_first}");
        assert!(scene.sync().is_empty());
    }
}

#[test]
fn a_mark_of_a_contradiction_that_is_put_back_too_late_is_reported() {
    let scene = scene();
    let path = "active-context.md";
    scene.apply(vec![operation("nine", decided("Close at nine", &[]), None)]);
    for name in ["ten", "six"] {
        scene.apply_conflict(name, "nine");
    }
    scene.sync();
    let mark = scene.conflict("nine");
    let edit = |name: &str, from: &str, to: &str| {
        scene.edit(path, |text| {
            let at = text.find(&format!("- Close at {name}")).unwrap();
            format!("{}{}", &text[..at], text[at..].replacen(from, to, 1))
        });
    };
    for name in ["ten", "six"] {
        edit(name, &mark, "");
        assert_eq!(scene.sync().people[0].0, KEPT_BOTH, "{name}");
    }
    edit("ten", ")", &format!("{mark})"));
    let report = scene.sync();
    assert_eq!((report.people, report.left), (vec![], vec![(path.to_owned(), TOO_LATE)]));
    assert!(!scene.files()[path].contains("conflicts with"));
    assert!(scene.sync().left.is_empty());
}

#[test]
fn tags_that_are_left_of_a_removed_line_are_not_those_of_the_entry_above() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    scene.edit("active-context.md", |text| text.replace("- Names in", "- mine\n\n- Names in"));
    scene.sync();
    scene.edit("active-context.md", |text| {
        let lines = text.lines().filter(|line| !line.contains("Names in"));
        lines.map(|line| format!("{line}\n")).collect()
    });
    scene.sync();
    assert_eq!(scene.memory("names").edited, None);
    assert!(scene.files()["active-context.md"].contains("- mine\n"));
    let retract = |it: &mut Memory| it.state = MemoryState::Retracted;
    scene.amend("names", retract);
    scene.sync();
    assert!(scene.files()["active-context.md"].contains("- mine\n"));
}

#[test]
fn nothing_private_gets_into_the_store() {
    let scene = scene();
    scene.apply(first());
    scene.sync();
    scene.edit("active-context.md", |text| format!("{text}\n<private>\nzqxsecret\n</private>\n"));
    scene.apply(second());
    scene.keep_until(1);
    scene.sync();
    let (files, ..) = scene.state();
    assert!(files["active-context.md"].contains("zqxsecret"));
    drop(scene.dir_sync);
    let database = std::fs::read(scene.root.path().join("a.db")).unwrap();
    assert!(!String::from_utf8_lossy(&database).contains("zqxsecret"));
}

#[cfg(unix)]
#[test]
fn a_link_in_the_directory_stops_a_sync_before_anything_is_written() {
    let scene = scene();
    scene.apply(first());
    let (decisions, other) = (scene.folder.path().join("decisions"), scene.root.path().join("d"));
    std::fs::rename(&decisions, &other).unwrap();
    std::os::unix::fs::symlink(&other, &decisions).unwrap();
    let done = scene.runtime.block_on(scene.dir_sync.sync(&scene.folder, NAMESPACE));
    let error = done.unwrap_err().to_string();
    assert!(error.contains("decisions is a link"), "{error}");
    assert_eq!(scene.files(), Files::new());
}
