//! From a line of code to the words behind it.

use super::cli_schemas;
use super::place::Place;
use super::stub::{Answer, Stub};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

const LINE: &str = "pub fn claim_next() { lock(SKIP_LOCKED) }";
const CHOSEN: &str = "Let claim_next take jobs with SKIP LOCKED, so that workers do not wait.";

/// An entry of a session, said at this minute after nine.
struct Said {
    minute: u32,
    role: &'static str,
    content: Value,
}

fn said(minute: u32, role: &'static str, content: Value) -> Said {
    Said { minute, role, content }
}

fn call(tool: &str, input: Value) -> Value {
    json!([{"type": "tool_use", "id": format!("c-{tool}"), "name": tool, "input": input}])
}

fn result(tool: &str, text: &str) -> Value {
    json!([{"type": "tool_result", "tool_use_id": format!("c-{tool}"), "content": text}])
}

/// A session of 2 March 2026 in a project's folder.
fn session(number: u32, project: &str, branch: &str, entries: &[Said]) -> String {
    let uuid = |n: usize| format!("{number:08x}-abcd-4bcd-8bcd-{n:012x}");
    let line = |(n, it): (usize, &Said)| {
        let parent = if n == 0 { Value::Null } else { json!(uuid(n - 1)) };
        let at = format!("2026-03-02T09:{:02}:00.000Z", it.minute);
        json!({
            "parentUuid": parent, "isSidechain": false, "userType": "external",
            "cwd": format!("/home/dev/{project}"), "version": "2.1.0", "type": it.role,
            "sessionId": format!("{number:08x}-0d3e-4d3c-9a57-000000000000"),
            "message": {"role": it.role, "content": it.content}, "uuid": uuid(n), "timestamp": at,
            "gitBranch": branch,
        })
        .to_string()
            + "\n"
    };
    entries.iter().enumerate().map(line).collect()
}

/// The session that writes the line.
fn working(number: u32, branch: &str) -> String {
    let edit = json!({"file_path": "/home/dev/shop/src/old_queue.rs", "old_string": "", "new_string": LINE});
    let entries = [
        said(0, "user", json!(CHOSEN)),
        said(5, "assistant", call("Edit", edit)),
        said(6, "user", result("Edit", "The file has been updated.")),
        said(50, "assistant", json!([{"type": "text", "text": "Done."}])),
    ];
    session(number, "shop", branch, &entries)
}

/// A model that finds the choice where it was said.
fn model() -> Stub {
    Stub::new(|ask| {
        let chosen = json!([{"options": [], "chosen": CHOSEN, "rationale": "workers do not wait"}]);
        let decisions = if ask.slice().contains(CHOSEN) { chosen } else { json!([]) };
        Answer::Call(json!({
            "decisions": decisions, "discussions": [], "attempts": [], "requests": []
        }))
    })
}

fn git(place: &Place, minute: u32, args: &[&str]) {
    let mut command = place.program("git", &[&["-C", "shop"], args].concat());
    let at = format!("2026-03-02T09:{minute:02}:00+00:00");
    command.env("GIT_AUTHOR_DATE", &at).env("GIT_COMMITTER_DATE", &at);
    for (name, value) in [("NAME", "Ana"), ("EMAIL", "ana@example.com")] {
        command.env(format!("GIT_AUTHOR_{name}"), value);
        command.env(format!("GIT_COMMITTER_{name}"), value);
    }
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// A repository in which a session wrote a line on `main`, which was committed at half past nine; beside it
/// other sessions at that time.
fn shop(stub: &Stub) -> Place {
    let place = Place::with_endpoint(stub.url());
    let talk = |words: &str| [said(1, "user", json!(words)), said(55, "user", json!("Thank you."))];
    place.write("t/working.jsonl", working(1, "main"));
    place.write("t/talking.jsonl", session(2, "shop", "main", &talk("What is the weather like?")));
    place.write("t/elsewhere.jsonl", session(3, "roofs", "main", &talk("What is in queue.rs?")));
    place.json(&["replay", "t", "--json"]);
    place.write("shop/src/old_queue.rs", format!("// Jobs.\n{LINE}\n"));
    git(&place, 30, &["init", "-q", "-b", "main"]);
    git(&place, 30, &["add", "."]);
    git(&place, 30, &["commit", "-q", "-m", "Claim jobs without waiting"]);
    git(&place, 59, &["mv", "src/old_queue.rs", "src/queue.rs"]);
    git(&place, 59, &["commit", "-q", "-m", "Rename a file"]);
    place
}

#[test]
fn a_line_leads_through_its_commit_to_the_session_and_its_words() {
    let place = shop(&model());
    let told = place.json(&["why", "shop/src/queue.rs:2", "--json"]);
    cli_schemas::check(&place, "why-code", &told);
    assert_eq!(told["commit"]["subject"], "Claim jobs without waiting", "renames are followed");
    assert_eq!(told["commit"]["at"], "2026-03-02T09:30:00Z");
    assert_eq!(told["commit"]["files"], json!(["src/old_queue.rs"]));
    let sessions = told["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 1, "a guess beside a sure one is left out: {told}");
    assert_eq!(sessions[0]["certainty"], "sure");
    assert!(sessions[0]["path"].as_str().unwrap().ends_with("working.jsonl"), "{told}");
    assert!(sessions[0]["reasons"].to_string().contains("wrote this line"), "{told}");
    let record = &told["records"][0];
    assert_eq!((&record["headline"], &record["words"]), (&json!(CHOSEN), &json!(CHOSEN)));
    assert_eq!((&record["line"], &record["said_by"]), (&json!(1), &json!("person")));
    let printed = place.run(&["why", "shop/src/queue.rs:2"]).stdout;
    for words in ["src/queue.rs:2", "sure: ", CHOSEN, "working.jsonl:1"] {
        assert!(printed.contains(words), "no `{words}` in: {printed}");
    }
}

#[test]
fn a_commit_by_its_name_has_its_files_and_a_session_that_only_fits_the_time_is_a_guess() {
    let place = shop(&model());
    git(&place, 54, &["commit", "-q", "--allow-empty", "-m", "Release"]);
    let told = in_shop(&place, "HEAD");
    assert_eq!(told["commit"]["subject"], "Release");
    let sessions = told["sessions"].as_array().unwrap();
    assert!(sessions.iter().all(|it| it["certainty"] == "guess"), "{told}");
    assert!(
        sessions.iter().all(|it| it["namespace"] == "shop"),
        "the time alone is nothing: {told}"
    );
    let told = in_shop(&place, "HEAD~2");
    assert_eq!(told["commit"]["files"], json!(["src/old_queue.rs"]));
    let sure = &told["sessions"][0];
    assert_eq!(sure["certainty"], "sure", "{told}");
    assert!(sure["reasons"].to_string().contains("branch with the commit"), "{told}");
}

#[test]
fn a_session_on_another_branch_is_less_sure() {
    let stub = model();
    let place = shop(&stub);
    place.sql().execute("UPDATE sessions SET branches = 'feature/x'", []).unwrap();
    let told = in_shop(&place, "HEAD~1");
    assert_eq!(told["sessions"][0]["certainty"], "likely", "{told}");
}

#[test]
fn what_is_not_proven_comes_last_and_what_was_superseded_below_what_holds() {
    let unproven = "Let claim_next in queue.rs lock with SKIP_LOCKED on every weekday.";
    let stub = Stub::new(move |ask| {
        let decide =
            |chosen| json!({"options": [], "chosen": chosen, "rationale": "workers do not wait"});
        let is_here = ask.slice().contains(CHOSEN);
        let decisions = if is_here { vec![decide(unproven), decide(CHOSEN)] } else { Vec::new() };
        Answer::Call(json!({
            "decisions": decisions, "discussions": [], "attempts": [], "requests": []
        }))
    });
    let place = shop(&stub);
    let states = || {
        let told = place.json(&["why", "shop/src/queue.rs:2", "--json"]);
        let records = told["records"].as_array().unwrap().iter();
        records.map(|it| it["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let doubted = "UPDATE records SET state = 'quarantined' WHERE body LIKE '%weekday%'";
    assert_eq!(place.sql().execute(doubted, []).unwrap(), 1);
    assert_eq!(states(), ["staged", "quarantined"]);
    place.json(&["consolidate", "--json"]);
    let sql = "UPDATE memories SET state = 'superseded',
        body = json_set(body, '$.state', 'superseded')";
    assert_eq!(place.sql().execute(sql, []).unwrap(), 1);
    assert_eq!(states(), ["superseded", "quarantined"]);
    let proven = "UPDATE records SET state = 'staged', reason = NULL";
    place.sql().execute(proven, []).unwrap();
    assert_eq!(states(), ["staged", "superseded"]);
}

#[test]
fn a_note_of_an_agent_is_no_session_that_made_a_commit() {
    let place = shop(&model());
    let session = |told: &Value| told["sessions"][0]["path"].to_string().contains("working.jsonl");
    assert!(session(&in_shop(&place, "HEAD~1")));
    let noted = "UPDATE sessions SET format = 'slice', native_id = 'note-0123456789abcdef'
        WHERE path LIKE '%working.jsonl'";
    assert_eq!(place.sql().execute(noted, []).unwrap(), 1);
    let told = in_shop(&place, "HEAD~1");
    assert!(!session(&told), "{told}");
}

/// What is told of a commit, in the repository.
#[track_caller]
fn in_shop(place: &Place, commit: &str) -> Value {
    let mut command = place.command(&["why", "--commit", commit, "--json"]);
    command.env("ANNALIST__STORE__URL", format!("sqlite:{}", place.database().display()));
    let output = command.current_dir(place.path("shop")).output().unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn a_line_that_is_not_committed_says_so() {
    let place = shop(&model());
    place.write("shop/src/queue.rs", format!("// Jobs.\n{LINE}\n// More.\n"));
    place.write("shop/new.rs", "// New.\n");
    for line in ["shop/src/queue.rs:3", "shop/new.rs:1"] {
        let told = place.run(&["why", line, "--json"]).json();
        assert_eq!((&told["commit"], &told["sessions"]), (&Value::Null, &json!([])), "{line}");
        assert!(place.run(&["why", line]).stdout.contains("not committed"), "{line}");
    }
}

#[test]
fn a_place_that_is_not_there_is_one_line() {
    let place = shop(&model());
    let refused = |line: &str, words: &[&str]| place.run(&["why", line]).refused(2, words);
    refused("shop/src/queue.rs:3", &["has 2 lines", "from 1 to 2"]);
    refused("shop/src/queue.rs:0", &["from 1 to 2"]);
    refused("shop/src/none.rs:1", &["none.rs", "cannot be read"]);
    place.write("shop/empty.rs", "");
    refused("shop/empty.rs:1", &["the file is empty"]);
    refused("shop/src/queue.rs", &["name a line"]);
    place.write("outside.rs", "// Outside.\n");
    refused("outside.rs:1", &["not in a git repository"]);
    let mut command = place.command(&["why", "--commit=--output=x"]);
    command.env("ANNALIST__STORE__URL", format!("sqlite:{}", place.database().display()));
    let output = command.current_dir(place.path("shop")).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("no commit") && output.status.code() == Some(2), "{stderr}");
}

/// Commits of a long history.
const COMMITS: u32 = 10_000;

/// A stream for `git fast-import`: a file that is written once, and commits to fifty others.
fn history() -> String {
    let blob = |text: &str| format!("data {}\n{text}\n", text.len());
    let mut stream = String::new();
    for number in 0..COMMITS {
        // The first is of half past nine.
        let at = 1_772_443_800 + number;
        let subject = if number == 0 { "Claim jobs without waiting" } else { "Count" };
        let (name, text) = match number {
            0 => ("src/old_queue.rs".to_owned(), format!("// Jobs.\n{LINE}\n")),
            _ => (format!("src/file{}.rs", number % 50), format!("// {number}\n")),
        };
        stream.push_str(&format!(
            "commit refs/heads/main\ncommitter Ana <ana@example.com> {at} +0000\n{}M 100644 inline {name}\n{}",
            blob(subject),
            blob(&text)
        ));
    }
    stream
}

/// How long it takes is in `benches/README.md`.
#[test]
fn a_line_at_the_beginning_of_a_long_history_is_found() {
    let stub = model();
    let place = Place::with_endpoint(stub.url());
    place.write("t/working.jsonl", working(1, "main"));
    place.json(&["replay", "t", "--json"]);
    std::fs::create_dir_all(place.path("shop")).unwrap();
    git(&place, 0, &["init", "-q", "-b", "main"]);
    let mut import = place.program("git", &["-C", "shop", "fast-import", "--quiet"]);
    let mut child = import.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(history().as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    git(&place, 0, &["reset", "-q", "--hard"]);
    let told = place.json(&["why", "shop/src/old_queue.rs:2", "--json"]);
    assert_eq!(told["commit"]["subject"], "Claim jobs without waiting");
    assert_eq!(told["sessions"][0]["certainty"], "sure", "{told}");
    assert_eq!(told["records"][0]["headline"], CHOSEN);
}
