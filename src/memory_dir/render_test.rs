//! Tests of rendered memories.

use super::*;
use crate::domain::{
    Attempt, Decision, Digest, Discussion, PersonRequest, RecordId, SessionId, Speaker, Stage,
    Timestamp,
};
use crate::memory_dir::{
    Contradiction, Document, Kind, LESSONS, LastRun, Linting, Part, Update, lint, source_tag,
    update,
};
use crate::privacy::{Gate, Pii, Redacted, private_spans};
use proptest::prelude::*;

const DAY: i64 = 86_400_000;
const TODAY: Timestamp = Timestamp(1_800_000_000_000);

fn memory(name: &str, day: i64, claim: Claim, stage: Stage) -> Memory {
    Memory {
        id: MemoryId(Digest::of(&[name])),
        namespace: "n".into(),
        claim,
        stage,
        state: MemoryState::Active,
        said_by: Speaker::Person,
        confirmed: false,
        decided: None,
        valid_from: Some(Timestamp(1_767_355_200_000 + day * DAY)),
        last_said: None,
        valid_until: None,
        superseded_by: None,
        settled_by: None,
        settled_as: None,
        ends: None,
        edited: None,
        reason: None,
        sources: vec![RecordId(Digest::of(&[name, "record"]))],
    }
}

fn decision(chosen: &str, options: &[&str], rationale: &str) -> Claim {
    let options = options.iter().map(|it| (*it).to_owned()).collect();
    Claim::Decision(Decision { options, chosen: chosen.into(), rationale: rationale.into() })
}

fn request(summary: &str) -> Claim {
    let summary = summary.to_owned();
    Claim::Request(PersonRequest { intent: summary.clone(), target: None, summary })
}

fn attempt(action: &str, result: &str, succeeded: bool) -> Claim {
    Claim::Attempt(Attempt { action: action.into(), result: result.into(), succeeded })
}

fn discussion(topic: &str, points: &[&str]) -> Claim {
    let points = points.iter().map(|it| (*it).to_owned()).collect();
    Claim::Discussion(Discussion { topic: topic.into(), points })
}

fn one_of_each() -> Vec<Memory> {
    vec![
        memory(
            "postgres",
            0,
            decision("Use PostgreSQL", &["Use PostgreSQL", "Use SQLite"], "Many write at once."),
            Stage::Decided,
        ),
        memory(
            "snake",
            1,
            decision("Name files in snake_case.", &[], "The linter asks for it"),
            Stage::Decided,
        ),
        memory(
            "cache",
            2,
            discussion("Where to cache?", &["Memory is small", "Disks are slow."]),
            Stage::Proposed,
        ),
        memory("settled", 2, discussion("Which database? (left open)", &[]), Stage::Decided),
        memory(
            "vacuum",
            3,
            attempt("Vacuum at night", "It blocked the queue", false),
            Stage::Refuted,
        ),
        memory(
            "upgrade",
            4,
            attempt("Upgrade the driver", "The build fails", false),
            Stage::Attempted,
        ),
        memory("index", 4, attempt("Add an index", "Ten times as fast", true), Stage::Decided),
        memory("retry", 5, request("Retry failed jobs"), Stage::Attempted),
        memory("docs", 6, request("Write the manual"), Stage::Proposed),
        memory("ci", 7, request("Run tests on macOS"), Stage::Decided),
    ]
}

#[test]
fn a_wish_that_a_decision_ended_is_marked_with_it() {
    let widget = decision("The planner shows the weather", &[], "");
    let by = memory("weather", 1, widget, Stage::Decided);
    let mut wish = memory("widget", 0, request("Add a weather widget"), Stage::Decided);
    (wish.settled_by, wish.settled_as) = (Some(by.id), Some("judged-granted".into()));
    let all = rendered(&[wish, by.clone()], &[], &Files::new(), &Files::new());
    let tag = crate::memory_dir::source_tag(by.id);
    let expected = format!("- [x] Add a weather widget (2026-01-02; decided by {tag})");
    assert!(all.files[kind::PROGRESS].contains(&expected), "{:#?}", all.files);
}

#[test]
fn a_rejected_option_has_the_words_that_a_person_gave_the_decision_for_it() {
    let options = ["Keep jobs in Redis", "Keep jobs in Postgres"];
    let chosen = |at: usize| decision(options[at], &options, "It is there");
    let mut old = memory("old", 0, chosen(0), Stage::Decided);
    let new = memory("new", 3, chosen(1), Stage::Decided);
    (old.state, old.superseded_by) = (MemoryState::Superseded, Some(new.id));
    old.edited = Some("- Keep jobs in Valkey (2026-01-02)".to_owned());
    let all = rendered(&[old, new], &[], &Files::new(), &Files::new());
    let path = "decisions/ADR-002-keep-jobs-in-postgres.md";
    let others = entries(&all.files, path, "Alternatives Considered");
    assert_eq!(others, ["- Keep jobs in Valkey"]);
}

fn gate() -> Gate {
    Gate::new(&Pii::ALL)
}

fn note(memories: &[Memory]) -> SessionNote {
    SessionNote {
        id: SessionId(Digest::of(&["session"])),
        began: Timestamp(1_767_355_200_000),
        ended: Some(Timestamp(1_767_355_200_000 + 5_400_000)),
        topic: Some(Redacted::reopened("The queue".to_owned())),
        memories: memories.iter().map(|memory| memory.id).collect(),
    }
}

fn rendered(memories: &[Memory], sessions: &[SessionNote], base: &Files, disk: &Files) -> Rendered {
    let gate = gate();
    let facts = Facts {
        memories,
        sessions,
        contradictions: &[],
        missing: &[],
        last: &LastRun::default(),
        today: TODAY,
        gate: &gate,
    };
    render(&facts, base, disk)
}

/// Entries of a section of a file.
#[track_caller]
fn entries(files: &Files, path: &str, section: &str) -> Vec<String> {
    let text = files.get(path).unwrap_or_else(|| panic!("{path} is not there: {files:?}"));
    let (document, _) = Document::parse(Kind::of_path(path), text);
    let of_section = document.entries().filter(|block| document.section(block) == section);
    of_section.map(|block| document.body(block).trim_end().to_owned()).collect()
}

#[test]
fn each_kind_of_memory_has_its_place() {
    let memories = one_of_each();
    let all = rendered(&memories, &[note(&memories)], &Files::new(), &Files::new());
    let files = &all.files;
    let session = "sessions/2026-01-02-the-queue.md";
    for (path, section, expected) in [
        ("active-context.md", "Current Focus", vec!["- Retry failed jobs"]),
        (
            "active-context.md",
            "Recent Decisions",
            vec![
                "- Name files in snake_case – The linter asks for it (2026-01-03)",
                "- ADR-001: Use PostgreSQL (2026-01-02)",
            ],
        ),
        (
            "active-context.md",
            "Open Questions",
            vec!["- Where to cache? Memory is small; Disks are slow (2026-01-04)"],
        ),
        (
            "active-context.md",
            "Blockers",
            vec!["- Upgrade the driver – The build fails (2026-01-06)"],
        ),
        ("patterns.md", "Lessons", vec!["- Vacuum at night – It blocked the queue (2026-01-05)"]),
        ("progress.md", "In Progress", vec!["- [ ] Retry failed jobs (2026-01-07)"]),
        ("progress.md", "Backlog", vec!["- Write the manual (2026-01-08)"]),
        ("progress.md", "Completed (Recent)", vec!["- [x] Run tests on macOS (2026-01-09)"]),
        ("archive/2026-01.md", "Discussions", vec!["- Which database? (2026-01-04)"]),
        (session, "Work Completed", vec!["- Add an index – Ten times as fast (2026-01-06)"]),
        (
            session,
            "Decisions Made",
            vec![
                "- ADR-001: Use PostgreSQL (2026-01-02)",
                "- Name files in snake_case – The linter asks for it (2026-01-03)",
            ],
        ),
        (
            session,
            "Context for Next Session",
            vec![
                "- Upgrade the driver – The build fails (2026-01-06)",
                "- [ ] Retry failed jobs (2026-01-07)",
                "- [ ] Write the manual (2026-01-08)",
            ],
        ),
        ("decisions/ADR-001-use-postgresql.md", "Context", vec!["- Many write at once."]),
        ("decisions/ADR-001-use-postgresql.md", "Decision", vec!["Use PostgreSQL"]),
        ("decisions/ADR-001-use-postgresql.md", "Alternatives Considered", vec!["- Use SQLite"]),
    ] {
        assert_eq!(entries(files, path, section), expected, "{path} {section}");
    }
    assert!(files[session].ends_with("*Session duration: ~1h 30m*\n"));
    let summary = "Decided: Use PostgreSQL; Name files in snake_case. Done: Add an index. Failed: Vacuum at night; \
                   Upgrade the driver. Asked for: Retry failed jobs; Write the manual; Run tests on macOS.";
    assert_eq!(entries(files, session, "Summary"), [summary]);
    assert!(files["decisions/ADR-001-use-postgresql.md"].contains("**Tags:** postgresql\n"));
    assert_eq!(all.unplaced, []);
}

#[test]
fn a_decision_whose_own_words_end_before_today_is_marked() {
    let until = |key: &str, text: &str| memory(key, 0, decision(text, &[], ""), Stage::Decided);
    let asked = memory("asked", 0, request("List the debts until 3 January"), Stage::Proposed);
    let edited = |key: &str, text: &str, words: &str| Memory {
        edited: Some(words.to_owned()),
        ..until(key, text)
    };
    let memories = [
        until("past", "Debug logs until 3 January"),
        until("lasting", "Freeze the prices until 3 December 2099"),
        asked,
        edited(
            "spelt",
            "Keep the olld tills until 4 January",
            "Keep the old tills until 4 January",
        ),
        edited("later", "Lend bikes until 5 January", "Lend bikes until Friday"),
    ];
    // It replaced a part of what lasts, for a time.
    let (one, other) = (memories[1].id, memories[0].id);
    let contradictions = [Contradiction { one, other, is_certain: false, is_partly: true }];
    let gate = gate();
    let facts = Facts {
        memories: &memories,
        sessions: &[],
        contradictions: &contradictions,
        missing: &[],
        last: &LastRun::default(),
        today: TODAY,
        gate: &gate,
    };
    let files = render(&facts, &Files::new(), &Files::new()).files;
    let decisions = entries(&files, "active-context.md", "Recent Decisions").join("\n");
    assert!(
        decisions.contains("Debug logs until 3 January (2026-01-02; past: until 2026-01-03)"),
        "{decisions}"
    );
    assert!(
        decisions.contains("Freeze the prices until 3 December 2099 (2026-01-02)"),
        "{decisions}"
    );
    let spelt = "Keep the old tills until 4 January (2026-01-02; past: until 2026-01-04)";
    assert!(decisions.contains(spelt), "{decisions}");
    assert!(decisions.contains("Lend bikes until Friday (2026-01-02)"), "an edit of another day");
    let open = entries(&files, "progress.md", "Backlog").join("\n");
    assert!(open.contains("List the debts until 3 January (2026-01-02)"), "{open}");
    let weighed = decision("Debug logs until 3 January", &["debug", "info"], "for the tests");
    let files =
        rendered(&[memory("adr", 0, weighed, Stage::Decided)], &[], &Files::new(), &Files::new());
    let record = files.files.iter().find(|(path, _)| path.starts_with("decisions/ADR-"));
    assert!(record.unwrap().1.contains("**Status:** Accepted (past: until 2026-01-03)"));
}

#[test]
fn rules_terms_and_lessons_have_lists_of_their_own() {
    let mut failed =
        memory("failed", 3, attempt("Pack it with tar", "It leaked", false), Stage::Attempted);
    let worked =
        memory("worked", 4, attempt("Pack it with zip", "All there", true), Stage::Decided);
    failed.state = MemoryState::Superseded;
    failed.superseded_by = Some(worked.id);
    let mut hearsay =
        memory("hearsay", 5, decision("caches are always cold", &[], ""), Stage::Decided);
    hearsay.said_by = Speaker::Tool;
    let memories = [
        memory(
            "utc",
            0,
            decision("Times are always in UTC", &[], "Times are in UTC"),
            Stage::Decided,
        ),
        memory("tests", 1, decision("each bug must have a test", &[], ""), Stage::Decided),
        memory("depot", 2, decision("a depot is a place | for trams", &[], ""), Stage::Decided),
        memory(
            "sla",
            2,
            decision("SLA stands for service level agreement", &[], ""),
            Stage::Decided,
        ),
        failed,
        worked,
        hearsay,
    ];
    let files = rendered(&memories, &[], &Files::new(), &Files::new()).files;
    for (path, section, expected) in [
        ("patterns.md", "Code Conventions", "- Times are always in UTC (2026-01-02)"),
        ("patterns.md", "Testing Patterns", "- each bug must have a test (2026-01-03)"),
        (
            "patterns.md",
            "Lessons",
            "- Pack it with tar – It leaked; what worked: Pack it with zip – All there (2026-01-05)",
        ),
        ("glossary.md", "Terms", "| depot | a place \\| for trams |"),
        ("glossary.md", "Abbreviations", "| SLA | service level agreement |"),
        ("active-context.md", "Recent Decisions", "- caches are always cold (2026-01-07)"),
        ("archive/2026-01.md", "Attempts", "- Pack it with zip – All there (2026-01-06)"),
    ] {
        assert_eq!(entries(&files, path, section), [expected], "{path} {section}");
    }
    assert!(files["patterns.md"].contains("UTC (2026-01-02)\n<!-- @category: pattern -->\n"));
    assert_eq!(entries(&files, "active-context.md", "Blockers"), [""; 0]);
}

#[test]
fn a_lesson_says_what_worked_in_the_end_however_many_attempts_that_took() {
    let tar = format!("Pack it with tar, {}", "and with more options, ".repeat(20));
    let mut first = memory("first", 1, attempt(&tar, "It leaked", false), Stage::Refuted);
    let mut second =
        memory("second", 2, attempt("Pack it with rar", "It hung", false), Stage::Refuted);
    let worked =
        memory("worked", 3, attempt("Pack it with zip", "All there", true), Stage::Decided);
    first.settled_by = Some(second.id);
    second.settled_by = Some(worked.id);
    let files = rendered(&[first, second, worked], &[], &Files::new(), &Files::new()).files;
    let lessons = entries(&files, "patterns.md", "Lessons");
    let expected = "; what worked: Pack it with zip – All there (2026-01-0";
    assert_eq!(lessons.len(), 1, "{lessons:?}");
    assert!(
        lessons[0].contains("Pack it with rar") && lessons[0].contains(expected),
        "{lessons:?}"
    );
}

#[test]
fn a_lesson_keeps_what_worked_then_though_something_else_took_its_place() {
    let mut failed = memory("failed", 1, attempt("Ran gcc", "not found", false), Stage::Refuted);
    let mut cure = memory("cure", 2, attempt("Took a driver in Go", "ok", true), Stage::Decided);
    let later = memory("later", 9, attempt("Moved to a server", "ok", true), Stage::Decided);
    failed.settled_by = Some(cure.id);
    (cure.state, cure.superseded_by) = (MemoryState::Superseded, Some(later.id));
    let files = rendered(&[failed, cure, later], &[], &Files::new(), &Files::new()).files;
    let lessons = entries(&files, "patterns.md", "Lessons");
    let expected = "- Ran gcc – not found; what worked then: Took a driver in Go (2026-01-03)";
    assert_eq!(lessons, [expected]);
}

#[test]
fn a_failure_that_is_retracted_is_no_lesson() {
    for (stage, state) in [
        (Stage::Refuted, MemoryState::Retracted),
        (Stage::Attempted, MemoryState::Retracted),
        (Stage::Refuted, MemoryState::Active),
    ] {
        let mut failed = memory("failed", 1, attempt("Ran gcc", "not found", false), stage);
        let cure = memory("cure", 2, attempt("Took a driver in Go", "ok", true), Stage::Decided);
        (failed.state, failed.settled_by) = (state, Some(cure.id));
        let files = rendered(&[failed, cure], &[], &Files::new(), &Files::new()).files;
        let is_shown = files.values().any(|text| text.contains("Ran gcc"));
        assert_eq!(is_shown, state == MemoryState::Active, "{files:?}");
    }
}

#[test]
fn a_result_is_shown_although_it_repeats_words_of_the_action() {
    let tried = attempt("Tried 7 rows of 3 on a sheet", "all rows are on the sheet", false);
    let failed = memory("rows", 1, tried, Stage::Attempted);
    let files = rendered(&[failed], &[], &Files::new(), &Files::new()).files;
    let shown = entries(&files, "active-context.md", "Blockers");
    let expected = "- Tried 7 rows of 3 on a sheet – all rows are on the sheet (2026-01-03)";
    assert_eq!(shown, [expected]);
}

#[test]
fn a_rule_that_was_laid_down_is_no_completed_task() {
    let asked = |it| memory(it, 1, request(it), Stage::Decided);
    let memories = [asked("Never touch vendor/"), asked("Add a page of statistics")];
    let files = rendered(&memories, &[], &Files::new(), &Files::new()).files;
    let done = entries(&files, "progress.md", "Completed (Recent)");
    assert_eq!(done, ["- [x] Add a page of statistics (2026-01-03)"]);
    let archived = entries(&files, "archive/2026-01.md", "Requests");
    assert_eq!(archived, ["- [x] Never touch vendor/ (2026-01-03)"]);
}

#[test]
fn a_record_whose_words_are_a_fragment_has_the_reason_in_its_title() {
    let memories = [memory(
        "five",
        0,
        decision("5 attempts", &["3 attempts", "5 attempts"], "mail hosts are slow"),
        Stage::Decided,
    )];
    let files = rendered(&memories, &[], &Files::new(), &Files::new()).files;
    let lines = entries(&files, "active-context.md", "Recent Decisions");
    assert_eq!(lines, ["- ADR-001: 5 attempts – mail hosts are slow (2026-01-02)"]);
    let record = &files["decisions/ADR-001-5-attempts-mail-hosts-are-slow.md"];
    assert!(record.starts_with("# ADR-001: 5 attempts – mail hosts are slow\n"), "{record}");
}

#[test]
fn lines_that_contradict_one_another_name_each_other() {
    let memories = [
        memory("by-hand", 1, decision("ghosts are cleared; by hand", &[], ""), Stage::Decided),
        memory("nightly", 0, decision("ghosts are cleared every night", &[], ""), Stage::Decided),
        memory("port", 0, decision("the port is 80", &[], ""), Stage::Decided),
        memory("other-port", 2, decision("the port is 8080", &[], ""), Stage::Decided),
    ];
    let pair = |one: usize, other: usize, is_certain| Contradiction {
        one: memories[one].id,
        other: memories[other].id,
        is_certain,
        is_partly: false,
    };
    let (gate, contradictions) = (gate(), [pair(0, 1, true), pair(3, 2, false)]);
    let (sessions, today) = (&[][..], TODAY);
    let facts = Facts {
        memories: &memories,
        sessions,
        contradictions: &contradictions,
        missing: &[],
        last: &LastRun::default(),
        today,
        gate: &gate,
    };
    let files = render(&facts, &Files::new(), &Files::new()).files;
    let tags = source_tags(memories.iter().map(|memory| memory.id));
    let tag = |at: usize| &tags[&memories[at].id];
    let mut expected = [
        format!("- the port is 8080 (2026-01-04; possibly in place of {})", tag(2)),
        format!(
            "- ghosts are cleared; by hand (2026-01-03; conflicts with {} “ghosts are cleared every night”)",
            tag(1)
        ),
        format!("- the port is 80 (2026-01-02; possibly outdated by {})", tag(3)),
        format!(
            "- ghosts are cleared every night (2026-01-02; conflicts with {} “ghosts are cleared, by hand”)",
            tag(0)
        ),
    ];
    let mut found = entries(&files, "active-context.md", "Recent Decisions");
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    let partly = [Contradiction { is_partly: true, ..contradictions[1] }];
    let facts = Facts { contradictions: &partly, ..facts };
    let files = render(&facts, &Files::new(), &Files::new()).files;
    let found = entries(&files, "active-context.md", "Recent Decisions");
    for line in [
        format!("- the port is 8080 (2026-01-04; replaces a part of {})", tag(2)),
        format!("- the port is 80 (2026-01-02; in part replaced by {} “the port is 8080”)", tag(3)),
    ] {
        assert!(found.contains(&line), "{found:#?}");
    }
}

#[test]
fn an_old_decision_that_was_said_again_stays_in_a_full_list_and_one_with_a_record_goes_first() {
    let of = |n: i64| {
        let options: &[&str] = if n % 2 == 0 { &["blue", "red"] } else { &[] };
        memory(
            &format!("m{n}"),
            n,
            decision(&format!("berth {n} is blue"), options, "it shows less dirt"),
            Stage::Decided,
        )
    };
    let mut memories: Vec<Memory> = (0..80).map(of).collect();
    memories[0].sources.push(RecordId(Digest::of(&["again"])));
    let over = decision("berth 79 is closed until 31 March", &[], "");
    memories.push(memory("over", 79, over, Stage::Decided));
    let all = rendered(&memories, &[], &Files::new(), &Files::new());
    let lines = entries(&all.files, "active-context.md", "Recent Decisions");
    let has = |n: i64| lines.iter().any(|it| it.contains(&format!("berth {n} is blue")));
    // The newest thirty, the one that was said again, and those without a record before those with one.
    assert_eq!(lines.len(), 60);
    assert!((50..80).all(has) && has(0) && (1..50).filter(|n| n % 2 == 1).all(has));
    assert!(has(48) && !has(2) && lines.iter().all(|it| !it.contains("closed")));
    // While there is room, all stay.
    let few = rendered(&memories[51..], &[], &Files::new(), &Files::new());
    assert_eq!(entries(&few.files, "active-context.md", "Recent Decisions").len(), 30);
    assert!(all.files.contains_key("decisions/ADR-002-berth-2-is-blue.md"));
}

#[test]
fn what_a_list_has_no_room_for_stands_in_the_archive_of_its_month() {
    let of =
        |n: i64| memory(&format!("m{n}"), n, request(&format!("Do thing {n}")), Stage::Proposed);
    let memories: Vec<Memory> = (0..150).map(of).collect();
    let all = rendered(&memories, &[], &Files::new(), &Files::new());
    let backlog = entries(&all.files, "progress.md", "Backlog");
    assert_eq!((backlog.len(), backlog[0].as_str()), (60, "- Do thing 149 (2026-05-31)"));
    let january = entries(&all.files, "archive/2026-01.md", "Requests");
    assert_eq!((january.len(), january[0].as_str()), (30, "- [ ] Do thing 0 (2026-01-02)"));
    let archived: usize = all
        .files
        .keys()
        .filter(|path| path.starts_with("archive/"))
        .map(|path| entries(&all.files, path, "Requests").len())
        .sum();
    assert_eq!((archived, all.unplaced.len()), (90, 0));
}

#[test]
fn what_a_session_shows_is_archived_too_once_its_list_is_full() {
    let of = |n: i64| {
        memory(&format!("m{n}"), n, discussion(&format!("Why {n}?"), &[]), Stage::Proposed)
    };
    let mut memories: Vec<Memory> = (0..22).map(of).collect();
    memories[0].edited = Some("- Why on earth? (2026-01-02)".to_owned());
    memories.push(memory("index", 4, attempt("Add an index", "Fast", true), Stage::Decided));
    let all = rendered(&memories, &[note(&memories)], &Files::new(), &Files::new());
    let archived = entries(&all.files, "archive/2026-01.md", "Discussions");
    assert_eq!(archived, ["- Why on earth? (2026-01-02)", "- Why 1? (2026-01-03)"]);
    assert!(!all.files["archive/2026-01.md"].contains("index"), "its session has it");
    assert_eq!(all.unplaced, []);
}

#[test]
fn a_persons_wording_is_in_every_file_and_breaks_none() {
    let mut memories = one_of_each();
    let word = |memories: &mut Vec<Memory>, at: usize, edited: &str| {
        memories[at].edited = Some(edited.to_owned());
    };
    word(&mut memories, 0, "- ADR-001: Use PostgreSQL 17 (2026-01-02)");
    word(&mut memories, 1, "Name files\nin kebab-case.");
    word(&mut memories, 4, "- ");
    word(&mut memories, 5, "- Upgrade\n  - the driver\n  - the server");
    word(&mut memories, 7, "* [ ] Retry all jobs (2026-01-07; conflicts with src-00000000)");
    memories.push(memory("depot", 2, decision("a depot is a place", &[], ""), Stage::Decided));
    word(&mut memories, 10, "| depot | a yard |");
    let files = rendered(&memories, &[note(&memories)], &Files::new(), &Files::new()).files;
    let session = "sessions/2026-01-02-the-queue.md";
    let record = "decisions/ADR-001-use-postgresql.md";
    for (path, section, expected) in [
        ("active-context.md", "Current Focus", vec!["- Retry all jobs"]),
        ("progress.md", "In Progress", vec!["- [ ] Retry all jobs (2026-01-07)"]),
        (
            "active-context.md",
            "Recent Decisions",
            vec![
                "- Name files in kebab-case. (2026-01-03)",
                "- ADR-001: Use PostgreSQL 17 (2026-01-02)",
            ],
        ),
        ("active-context.md", "Blockers", vec!["- Upgrade\n  - the driver\n  - the server"]),
        ("patterns.md", "Lessons", vec!["- Vacuum at night – It blocked the queue (2026-01-05)"]),
        ("glossary.md", "Terms", vec!["| depot | a yard |"]),
        (record, "Decision", vec!["Use PostgreSQL 17"]),
        (
            session,
            "Decisions Made",
            vec![
                "- ADR-001: Use PostgreSQL 17 (2026-01-02)",
                "- Name files in kebab-case. (2026-01-03)",
                "- depot – a yard (2026-01-04)",
            ],
        ),
    ] {
        assert_eq!(entries(&files, path, section), expected, "{path} {section}");
    }
    assert!(files[record].starts_with("# ADR-001: Use PostgreSQL 17\n"), "{}", files[record]);
    let summary = entries(&files, session, "Summary");
    assert!(
        summary[0]
            .contains("Decided: Use PostgreSQL 17; Name files in kebab-case; depot – a yard."),
        "{summary:?}"
    );
    assert!(summary[0].contains("Asked for: Retry all jobs;"), "{summary:?}");
}

#[test]
fn the_considerations_of_a_settled_discussion_stay_findable() {
    let with = memory(
        "with",
        1,
        decision("Take Postgres", &["Postgres", "MySQL"], "we know it; so Ann runs it"),
        Stage::Decided,
    );
    let without =
        memory("without", 1, decision("No dark mode", &[], "nobody asked"), Stage::Decided);
    let settled = |name: &str, topic: &str, by: &Memory| {
        let claim = discussion(topic, &["it was weighed"]);
        let (state, superseded_by) = (MemoryState::Superseded, Some(by.id));
        Memory { state, superseded_by, ..memory(name, 0, claim, Stage::Decided) }
    };
    let memories = [
        settled("one", "Which database?", &with),
        settled("two", "Dark mode?", &without),
        with,
        without,
    ];
    let files = rendered(&memories, &[], &Files::new(), &Files::new()).files;
    let record = "decisions/ADR-001-take-postgres.md";
    assert_eq!(entries(&files, record, "Context"), ["- Which database? it was weighed"]);
    assert_eq!(entries(&files, record, "Rationale"), ["- we know it"]);
    assert_eq!(entries(&files, record, "Consequences"), ["- so Ann runs it"]);
    let archived = entries(&files, "archive/2026-01.md", "Discussions");
    let by = source_tag(memories[3].id);
    let expected =
        format!("- Dark mode? it was weighed (2026-01-02; settled by {by} “No dark mode”)");
    assert_eq!(archived, [expected]);
}

#[test]
fn what_is_rendered_has_nothing_for_the_linter_but_what_people_must_write() {
    let memories = one_of_each();
    let files = rendered(&memories, &[note(&memories)], &Files::new(), &Files::new()).files;
    let known = memories.iter().map(|memory| (memory.id, memory.state)).collect();
    let gate = gate();
    let linting =
        Linting { files: &files, known: Some(&known), rendered: &files, today: TODAY, gate: &gate };
    let rules: Vec<String> =
        lint(&linting).iter().map(|it| format!("{} {}", it.path, it.rule)).collect();
    assert_eq!(rules, ["product-context.md missing-file"]);
}

#[test]
fn the_same_memories_give_the_same_bytes_on_another_day() {
    let memories = one_of_each();
    let notes = [note(&memories)];
    let first = rendered(&memories, &notes, &Files::new(), &Files::new()).files;
    let gate = gate();
    let facts = Facts {
        memories: &memories,
        sessions: &notes,
        contradictions: &[],
        missing: &[],
        last: &LastRun::default(),
        today: Timestamp(TODAY.0 + DAY),
        gate: &gate,
    };
    assert_eq!(render(&facts, &first, &first).files, first);
    let mut reversed = memories.clone();
    reversed.reverse();
    assert_eq!(rendered(&reversed, &notes, &Files::new(), &Files::new()).files, first);
}

#[test]
fn a_file_is_rendered_again_once_something_in_it_changes() {
    let mut memories = one_of_each();
    let note = note(&memories);
    let done = |name, day| memory(name, day, attempt(name, "It works", true), Stage::Decided);
    memories.extend([done("wire the shed", 3), done("paint the shed", 40)]);
    let (gate, none) = (gate(), LastRun::default());
    let facts = Facts {
        memories: &memories,
        sessions: &[note],
        contradictions: &[],
        missing: &[],
        last: &none,
        today: TODAY,
        gate: &gate,
    };
    let first = render(&facts, &Files::new(), &Files::new());
    let last = LastRun { inputs: first.inputs, ..LastRun::default() };
    // A text that no rendering gives shows which files are rendered.
    let base: Files = first.files.keys().map(|path| (path.clone(), "kept".into())).collect();
    let check = |facts: Facts<'_>, expected: &[&str]| {
        let files = render(&facts, &base, &first.files).files;
        let fresh = render(&Facts { last: &none, ..facts }, &base, &first.files).files;
        let again = files.iter().filter(|(path, text)| path.contains('/') && &***text != "kept");
        let again: Vec<&str> = again.map(|(path, _)| path.as_str()).collect();
        assert_eq!(again, expected);
        assert!(again.iter().all(|path| files[*path] == fresh[*path]), "{files:#?}");
    };
    let facts = Facts { last: &last, ..facts };
    check(facts, &[]);
    let [january, february] = ["archive/2026-01.md", "archive/2026-02.md"];
    let record = "decisions/ADR-001-use-postgresql.md";
    let session = "sessions/2026-01-02-the-queue.md";
    let updated = LastRun { program: "2".into(), ..last.clone() };
    check(Facts { last: &updated, ..facts }, &[january, february, record, session]);
    let masked = Gate::new(&[]);
    check(Facts { gate: &masked, ..facts }, &[january, february, record, session]);
    let [.., one, other] = &*memories else { panic!("two were added") };
    let pair = [Contradiction { one: one.id, other: other.id, is_certain: true, is_partly: false }];
    check(Facts { contradictions: &pair, ..facts }, &[january, february]);
    let mut edited = memories.clone();
    edited[0].stage = Stage::Proposed;
    check(Facts { memories: &edited, ..facts }, &[record, session]);
    edited[0] = memories[0].clone();
    edited.pop();
    check(Facts { memories: &edited, ..facts }, &[]);
    edited.extend([done("oil the door", 3), done("oil the lock", 40)]);
    check(Facts { memories: &edited, ..facts }, &[january, february]);
}

#[test]
fn a_superseded_record_stays_and_names_what_took_its_place() {
    let mut memories = one_of_each();
    let base = rendered(&memories, &[], &Files::new(), &Files::new()).files;
    let new = memory(
        "sqlite",
        9,
        decision("Use SQLite", &["Use SQLite", "Use PostgreSQL"], "One machine."),
        Stage::Decided,
    );
    memories[0].state = MemoryState::Superseded;
    memories[0].superseded_by = Some(new.id);
    memories.push(new);
    let files = rendered(&memories, &[], &base, &base).files;
    assert!(
        files["decisions/ADR-001-use-postgresql.md"]
            .contains("**Status:** Superseded by ADR-002\n")
    );
    assert!(files["decisions/ADR-002-use-sqlite.md"].contains("**Status:** Accepted\n"));
    assert_eq!(
        entries(&files, "active-context.md", "Recent Decisions")[0],
        "- ADR-002: Use SQLite (2026-01-11)"
    );
    assert_eq!(entries(&files, "active-context.md", "Recent Decisions").len(), 2);
}

#[test]
fn a_number_is_never_one_that_lies_on_the_disk() {
    let disk =
        Files::from([("decisions/ADR-041-theirs.md".to_owned(), "# ADR-041: Theirs\n".into())]);
    let files = rendered(&one_of_each(), &[], &Files::new(), &disk).files;
    assert!(files.contains_key("decisions/ADR-042-use-postgresql.md"), "{:?}", files.keys());
}

#[test]
fn a_record_that_a_person_renamed_keeps_its_new_name() {
    let memories = one_of_each();
    let base = rendered(&memories, &[], &Files::new(), &Files::new()).files;
    let mut disk = base.clone();
    let text = disk.remove("decisions/ADR-001-use-postgresql.md").unwrap();
    disk.insert("decisions/ADR-001-database.md".to_owned(), text);
    let again = rendered(&memories, &[], &base, &disk);
    let update = update(&base, &again, &disk, &gate());
    assert_eq!(update, Update::default());
    assert!(again.files.contains_key("decisions/ADR-001-database.md"));
}

#[test]
fn what_is_forgotten_goes_and_what_people_took_away_stays_away() {
    let memories = one_of_each();
    let base = rendered(&memories, &[], &Files::new(), &Files::new()).files;
    let mut disk = base.clone();
    disk.remove("progress.md");
    let left = rendered(&memories[1..], &[], &base, &disk);
    let update = update(&base, &left, &disk, &gate());
    let changed: Vec<(&str, bool)> =
        update.changes.iter().map(|it| (it.path.as_str(), it.after.is_some())).collect();
    assert_eq!(
        changed,
        [("active-context.md", true), ("decisions/ADR-001-use-postgresql.md", false)]
    );
    assert_eq!(update.deleted, ["progress.md"]);
    let text: String = update.changes.iter().filter_map(|it| it.after.as_deref()).collect();
    assert!(!text.contains("PostgreSQL"), "{text}");
}

#[test]
fn a_decision_that_was_replaced_is_marked_in_its_session() {
    let new = memory("new", 3, decision("the port is 8417", &[], ""), Stage::Decided);
    let replaced = Memory {
        state: MemoryState::Superseded,
        superseded_by: Some(new.id),
        ..memory("old", 1, decision("the port is 8090", &[], ""), Stage::Decided)
    };
    let memories = [replaced, new];
    let files = rendered(&memories, &[note(&memories)], &Files::new(), &Files::new()).files;
    let lines = entries(&files, "sessions/2026-01-02-the-queue.md", "Decisions Made");
    let tag = source_tag(memories[1].id);
    let expected = format!("- the port is 8090 (2026-01-03; superseded by {tag})");
    assert_eq!(lines, [expected, "- the port is 8417 (2026-01-05)".to_owned()]);
}

#[test]
fn a_line_names_three_of_the_memories_that_replaced_a_part_of_it() {
    let of = |n: i64| {
        memory(&format!("m{n}"), n, decision(&format!("term {n} (new)"), &[], ""), Stage::Decided)
    };
    let memories: Vec<Memory> = (0..6).map(of).collect();
    let partly = |other: usize| Contradiction {
        one: memories[0].id,
        other: memories[other].id,
        is_certain: false,
        is_partly: true,
    };
    let (gate, contradictions) = (gate(), (1..6).map(partly).collect::<Vec<_>>());
    let (last, today) = (LastRun::default(), TODAY);
    let facts = Facts {
        memories: &memories,
        sessions: &[],
        contradictions: &contradictions,
        missing: &[],
        last: &last,
        today,
        gate: &gate,
    };
    let files = render(&facts, &Files::new(), &Files::new()).files;
    let tag = |n: usize| format!("{} “term {n}”", source_tag(memories[n].id));
    let (five, four, three) = (tag(5), tag(4), tag(3));
    let line = format!(
        "- term 0 (new) (2026-01-02; in part replaced by {five}, {four}, {three} and 2 more)"
    );
    let lines = entries(&files, "active-context.md", "Recent Decisions");
    assert!(lines.contains(&line), "{lines:#?}");
}

#[test]
fn the_record_of_what_was_replaced_names_the_record_that_holds() {
    let mut old = memory(
        "old",
        0,
        decision("TLS is off", &["TLS on", "TLS off"], "only a LAN"),
        Stage::Decided,
    );
    let mut asked = memory("asked", 1, request("Encrypt the traffic"), Stage::Decided);
    let new = memory("new", 2, decision("traffic is encrypted", &[], ""), Stage::Decided);
    (old.state, old.superseded_by) = (MemoryState::Superseded, Some(asked.id));
    (asked.state, asked.superseded_by) = (MemoryState::Superseded, Some(new.id));
    let files = rendered(&[old, asked, new], &[], &Files::new(), &Files::new()).files;
    let record = &files["decisions/ADR-001-tls-is-off.md"];
    assert!(record.contains("**Status:** Superseded by ADR-002\n"), "{record}");
    assert!(files.contains_key("decisions/ADR-002-traffic-is-encrypted.md"));
}

#[test]
fn a_record_of_which_a_part_no_longer_holds_says_so_in_its_status() {
    let memories = [
        memory(
            "old",
            0,
            decision("Rust 1.85 and axum 0.7", &["now", "later"], "calm"),
            Stage::Decided,
        ),
        memory("new", 1, decision("Rust is raised to 1.94", &[], ""), Stage::Decided),
    ];
    let (one, other) = (memories[0].id, memories[1].id);
    let contradictions = [Contradiction { one, other, is_certain: false, is_partly: true }];
    let (gate, last) = (gate(), LastRun::default());
    let facts = Facts {
        memories: &memories,
        sessions: &[],
        contradictions: &contradictions,
        missing: &[],
        last: &last,
        today: TODAY,
        gate: &gate,
    };
    let files = render(&facts, &Files::new(), &Files::new()).files;
    let by = format!("in part replaced by {} “Rust is raised to 1.94”", source_tag(other));
    let record = &files["decisions/ADR-001-rust-1-85-and-axum-0-7.md"];
    assert!(record.contains(&format!("**Status:** Accepted ({by})\n")), "{record}");
}

#[test]
fn a_standing_rule_is_among_the_rules_although_it_has_a_record() {
    let rule = decision("Never deploy on Fridays", &["today", "on Monday"], "market days");
    let memories = [memory("rule", 0, rule, Stage::Decided)];
    let files = rendered(&memories, &[], &Files::new(), &Files::new()).files;
    let rules = entries(&files, "patterns.md", "Code Conventions");
    assert_eq!(rules, ["- ADR-001: Never deploy on Fridays (2026-01-02)"]);
    assert!(!files.contains_key("active-context.md"), "{:?}", files.keys());
}

#[test]
fn failures_with_the_same_cure_are_one_lesson() {
    let worked =
        memory("worked", 9, attempt("Ran it in WAL mode", "50 runs", true), Stage::Decided);
    let failed = |n: i64| {
        let it = attempt(&format!("Ran it with timeout {n}"), "locked", false);
        Memory { settled_by: Some(worked.id), ..memory(&format!("f{n}"), n, it, Stage::Decided) }
    };
    let mut memories: Vec<Memory> = (1..6).map(failed).collect();
    memories[1].edited = Some("- Do not wait two seconds".to_owned());
    memories.push(worked);
    let all = rendered(&memories, &[], &Files::new(), &Files::new());
    let joined = "- Ran it with timeout 1 – locked; then Ran it with timeout 3 – locked; then Ran it with timeout 4 – \
                  locked; then 1 more; what worked: Ran it in WAL mode – 50 runs (2026-01-03)";
    let lessons = entries(&all.files, "patterns.md", "Lessons");
    assert_eq!(lessons, ["- Do not wait two seconds", joined]);
    let archived = entries(&all.files, "archive/2026-01.md", "Attempts");
    assert_eq!(archived, ["- Ran it in WAL mode – 50 runs (2026-01-11)"]);
    assert_eq!(all.unplaced, []);
}

#[test]
fn a_summary_tells_what_was_new_in_whole_clauses() {
    let long =
        format!("Levels are stored in millimetres, still as integers (also: {})", "x".repeat(80));
    let memories = [
        memory("old", -9, decision("Times are in UTC", &[], ""), Stage::Decided),
        memory("port", 1, decision(&long, &[], ""), Stage::Decided),
        memory(
            "sms",
            2,
            decision("Textloft sends", &["Textloft", "Pigeon"], "cheap"),
            Stage::Decided,
        ),
    ];
    let files = rendered(&memories, &[note(&memories)], &Files::new(), &Files::new()).files;
    let summary = entries(&files, "sessions/2026-01-02-the-queue.md", "Summary");
    let head = "Levels are stored in millimetres, still as integers";
    let expected = format!("Decided: {head}; Textloft sends.");
    assert_eq!(summary, [expected]);
}

#[test]
fn tags_are_names() {
    let options = ["30 minutes", "rumqttc", "new file"];
    let chosen =
        "rumqttc replaces Paho on Tuesday after 30 minutes in a new file (also: Nothing else)";
    let it = memory("it", 0, decision(chosen, &options, "calm"), Stage::Decided);
    let files = rendered(&[it], &[], &Files::new(), &Files::new()).files;
    let record = files.iter().find(|(path, _)| path.starts_with("decisions/")).unwrap().1;
    assert!(record.contains("**Tags:** rumqttc, paho\n"), "{record}");
}

#[test]
fn two_sessions_never_share_a_file() {
    let memories = one_of_each();
    let notes = ["a", "b", "c"]
        .map(|name| SessionNote { id: SessionId(Digest::of(&[name])), ..note(&memories) });
    let files = rendered(&memories, &notes, &Files::new(), &Files::new()).files;
    let sessions: Vec<&String> = files.keys().filter(|it| it.starts_with("sessions/")).collect();
    assert_eq!(sessions.len(), 3, "{sessions:?}");
}

/// Text that tries to be Markdown.
const FORGED: [&str; 24] = [
    "\n# heading",
    "## Blockers",
    "\n- [x] done",
    "- item",
    "<!-- @category: bugfix -->",
    "\n<!-- @tag: src-deadbeef -->\n",
    "<private>",
    "</private>",
    "<PRİVATE >",
    "-->",
    "<!--",
    "\n---\n",
    "\r\n*Session: 2030-01-01*\r\n",
    "|a|b|",
    "```",
    "~~~~\n",
    "<<<<<<< HEAD\n",
    "\n=======\n",
    ">>>>>>> x",
    "**Status:** Accepted",
    "\u{2028}## x",
    "\u{85}- y",
    "1. one",
    "word",
];

fn forged() -> impl Strategy<Value = String> {
    let piece = prop_oneof![4 => prop::sample::select(FORGED.to_vec()).prop_map(str::to_owned), 1 => "\\PC{0,6}", 1 => Just(" ".to_owned())];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn forged_claim() -> impl Strategy<Value = Claim> {
    let texts = prop::collection::vec(forged(), 0..4);
    (forged(), forged(), texts, any::<bool>(), 0..4).prop_map(|(a, b, list, flag, kind)| match kind
    {
        0 => Claim::Decision(Decision { options: list, chosen: a, rationale: b }),
        1 => Claim::Discussion(Discussion { topic: a, points: list }),
        2 => Claim::Attempt(Attempt { action: a, result: b, succeeded: flag }),
        _ => {
            Claim::Request(PersonRequest { intent: b, target: flag.then(String::new), summary: a })
        }
    })
}

proptest! {
    #![proptest_config(crate::testing::cases(64))]

    #[test]
    fn no_claim_is_more_than_an_entry(claims in prop::collection::vec((forged_claim(), 0..4_usize), 1..6)) {
        let stage = |at: usize| Stage::ALL[at];
        let memories: Vec<Memory> = claims
            .into_iter()
            .enumerate()
            .map(|(at, (claim, it))| memory(&format!("m{at}"), at as i64, claim, stage(it)))
            .collect();
        let tags: BTreeSet<String> = source_tags(memories.iter().map(|memory| memory.id)).into_values().collect();
        let all = rendered(&memories, &[note(&memories)], &Files::new(), &Files::new());
        let mut shown = BTreeSet::new();
        for (path, text) in &all.files {
            let kind = Kind::of_path(path);
            let (document, odd) = Document::parse(kind, text);
            prop_assert!(odd.is_empty(), "{:?} {}", odd, text);
            prop_assert!(private_spans(text) == (vec![], vec![]), "{}", text);
            let sections = document.blocks.iter().filter(|block| block.part == Part::Section);
            let names: Vec<&str> = sections.map(|block| document.heading_words(block)).collect();
            let archive = ["Decisions", "Discussions", "Attempts", "Requests"];
            let mut expected = kind.sections().iter().copied().chain([LESSONS]).collect::<Vec<_>>();
            if kind == Kind::Other {
                expected = names.iter().copied().filter(|name| archive.contains(name)).collect();
            }
            expected.retain(|name| names.contains(name));
            prop_assert_eq!(names, expected, "{}", text);
            let mut of_file = BTreeSet::new();
            for block in &document.blocks {
                let is_ours = matches!(block.part, Part::Entry(_));
                let is_frame = matches!(
                    block.part,
                    Part::Title | Part::Section | Part::Meta | Part::Comment | Part::Blank | Part::Footer
                        | Part::TableHead
                );
                prop_assert!(is_ours || is_frame, "{:?} in {}", block.part, text);
                let ours: Vec<&str> = document.tags(block).filter_map(|tag| tag.ours()).collect();
                prop_assert!(ours.len() <= 1 && document.tags(block).all(|tag| tag.is_exact), "{}", text);
                prop_assert_eq!(document.body(block).lines().filter(|line| !line.is_empty()).count() <= 1 || !is_ours, true, "{}", text);
                let in_record = kind == Kind::Decision;
                prop_assert!(!is_ours || in_record || ours.len() == 1, "{}", text);
                for tag in ours.into_iter().filter(|tag| tag.starts_with("src-")) {
                    prop_assert!(tags.contains(tag), "{}", text);
                    prop_assert!(in_record || of_file.insert(tag.to_owned()), "{} twice in {}", tag, text);
                    shown.insert(tag.to_owned());
                }
            }
        }
        let unplaced = source_tags(memories.iter().map(|memory| memory.id));
        let missing: BTreeSet<String> = all.unplaced.iter().map(|id| unplaced[id].clone()).collect();
        prop_assert_eq!(&tags - &missing, shown);
    }

    #[test]
    fn what_lies_there_changes_by_what_memories_change(keep in prop::collection::vec(any::<bool>(), 10)) {
        let memories = one_of_each();
        let kept: Vec<Memory> = memories.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(it, _)| it.clone()).collect();
        let base = rendered(&kept, &[], &Files::new(), &Files::new()).files;
        let now = rendered(&memories, &[], &base, &base);
        let mut disk = base.clone();
        for change in update(&base, &now, &disk, &gate()).changes {
            prop_assert_eq!(disk.get(&change.path), change.before.as_ref());
            disk.insert(change.path, change.after.unwrap());
        }
        prop_assert_eq!(&disk, &now.files);
        prop_assert_eq!(update(&now.files, &now, &disk, &gate()), Update::default());
    }
}

#[test]
fn a_quotation_that_repeats_the_decision_is_no_reason_whoever_said_it() {
    for (what, why, is_shown) in [
        ("The fee is never above 1.20", "Ann: \"3.5 percent, never above 1.20 of the fee\"", false),
        ("Ann pays the rent", "Ann: \"the others are short of money\"", true),
        ("Rent the hall in May", "Budget: \"June costs twice as much for the hall\"", true),
        ("No forum", "Ann: they want a phone number", true),
    ] {
        assert_eq!(with_reason(what, why).contains('–'), is_shown, "{what} – {why}");
    }
}
