//! Hand-overs of hooks: done by a process of their own, kept until they are done, and told about.

use super::hook_cli::{run, tell};
use super::input::claude;
use super::place::{ANNALIST, Place, read};
use super::stub::Stub;
use rusqlite::params;
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::Write;

/// Looks at the spool, each of some milliseconds; an answer is waited for five seconds.
const LOOKS_MAX: usize = 20_000;

/// Hand-overs in the spool.
fn spooled(place: &Place) -> Vec<Value> {
    let Ok(files) = fs::read_dir(place.path("home/.local/share/annalist/spool")) else {
        return Vec::new();
    };
    let paths = files.map(|file| file.unwrap().path());
    let whole = paths.filter(|path| path.extension().is_some_and(|it| it == "json"));
    // A file may go away between two looks.
    whole.filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok()).collect()
}

#[track_caller]
fn until(place: &Place, is_so: impl Fn(&[Value]) -> bool) {
    let look = |_| {
        // Takes a moment, in which the other process may work.
        place.run(&["--version"]);
        is_so(&spooled(place))
    };
    assert!((0..LOOKS_MAX).any(look), "{:?}", spooled(place));
}

/// Waits for the processes that hooks started.
#[track_caller]
pub(crate) fn until_handed_over(place: &Place) {
    until(place, <[Value]>::is_empty);
}

pub(crate) fn until_failed(place: &Place) {
    until(place, |all| !all.is_empty() && all.iter().all(|it| it["problem"].is_string()));
}

fn append(place: &Place, text: &str) {
    let mut file = OpenOptions::new().append(true).open(place.path("t.jsonl")).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn entries(place: &Place) -> i64 {
    place.number("SELECT count(*) FROM entries")
}

/// The prompt and the answer of a talk, each with its line end.
fn turn(n: usize) -> (String, String) {
    let text = claude(n..n + 1);
    let (prompt, answer) = text.split_at(text.find('\n').unwrap() + 1);
    (prompt.to_owned(), answer.to_owned())
}

fn words(answer: &str) -> String {
    let line: Value = serde_json::from_str(answer).unwrap();
    line["message"]["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn an_answer_that_is_written_after_the_hook_is_handed_over() {
    let place = Place::new();
    let ((prompt, answer), (next_prompt, next)) = (turn(0), turn(1));
    place.write("t.jsonl", &prompt);
    let told = json!({"last_assistant_message": words(&answer)});
    let output = run(&place, "stop", &told);
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""));
    append(&place, &answer);
    until_handed_over(&place);
    assert_eq!(entries(&place), 2);
    // The same words once more: those of the turn before do not count.
    let same = next.replace(&words(&next), &words(&answer));
    append(&place, &next_prompt);
    assert_eq!(run(&place, "stop", &told).code, 0);
    assert_eq!(spooled(&place).len(), 1, "it is waited for");
    append(&place, &same);
    until_handed_over(&place);
    assert_eq!(entries(&place), 4);
}

#[test]
fn a_transcript_that_is_written_after_the_hook_is_handed_over() {
    let place = Place::new();
    let (prompt, answer) = turn(0);
    assert_eq!(run(&place, "stop", &json!({"last_assistant_message": words(&answer)})).code, 0);
    place.write("t.jsonl", prompt + &answer);
    until_handed_over(&place);
    assert_eq!(entries(&place), 2);
}

#[test]
fn a_folder_in_the_place_of_a_transcript_is_not_read() {
    let place = Place::new();
    let (prompt, answer) = turn(0);
    place.write("other/t.jsonl", &(prompt + &answer));
    let output = run(&place, "stop", &json!({"transcript_path": place.path("other")}));
    assert_eq!((output.code, output.stdout.as_str()), (0, ""));
    assert!(output.stderr.contains("is not a regular file"), "{}", output.stderr);
    until_handed_over(&place);
    assert!(!place.database().exists());
}

#[test]
fn no_words_of_a_conversation_are_in_the_spool() {
    let mut place = Place::new();
    place.write("file", "x");
    place.set("ANNALIST__STORE__URL", &format!("sqlite:{}", place.path("file/no.db").display()));
    let (prompt, answer) = turn(0);
    place.write("t.jsonl", prompt + &answer);
    assert_eq!(run(&place, "stop", &json!({"last_assistant_message": words(&answer)})).code, 0);
    until_failed(&place);
    let all = serde_json::to_string(&spooled(&place)).unwrap();
    assert!(!words(&answer).split(' ').any(|word| word.len() > 6 && all.contains(word)), "{all}");
}

#[test]
fn a_hand_over_that_fails_is_kept_told_and_done_by_the_next_hook() {
    let mut place = Place::new();
    place.write("t.jsonl", claude(0..1));
    place.write("file", "x");
    let store = place.path("file/a.db");
    place.set("ANNALIST__STORE__URL", &format!("sqlite:{}", store.display()));
    let output = run(&place, "session-end", &json!({}));
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""));
    until_failed(&place);
    let status = place.run(&["status"]);
    let lines: Vec<&str> = status.stdout.lines().filter(|it| it.starts_with("spooled")).collect();
    assert_eq!((status.code == 0, lines.len()), (false, 1), "{}{}", status.stdout, status.stderr);
    assert!(lines[0].contains("annalist enqueue") && lines[0].contains("t.jsonl"), "{}", lines[0]);
    let start = run(&place, "session-start", &json!({"source": "startup"}));
    let told: Value = serde_json::from_str(&start.stdout).unwrap();
    let notice = told["systemMessage"].as_str().unwrap();
    assert!(notice.starts_with("annalist: 1 transcript"), "{notice}");
    assert!(notice.contains("`annalist status`") && !notice.contains('\n'), "{notice}");
    fs::remove_file(place.path("file")).unwrap();
    assert_eq!(run(&place, "user-prompt-submit", &json!({"prompt": "go on"})).code, 0);
    until_handed_over(&place);
    let waiting = place.run(&["jobs"]).stdout;
    assert!(waiting.contains("ready") && !waiting.contains("gathering"), "flushed: {waiting}");
    assert_eq!(run(&place, "session-start", &json!({"source": "startup"})).stdout, "");
}

#[test]
fn status_and_workers_try_again_what_a_hook_could_not_hand_over() {
    let stub = Stub::good();
    let mut place = Place::new();
    place.set("ANNALIST__MODEL__BASE_URL", stub.url());
    for (n, args) in [&["status"][..], &["worker", "--drain"]].into_iter().enumerate() {
        place.write("t.jsonl", claude(0..n + 1));
        place.write("config.toml", "[model]\nno = 1\n");
        assert_eq!(run(&place, "stop", &json!({})).code, 0);
        until_failed(&place);
        fs::remove_file(place.path("config.toml")).unwrap();
        place.run(args);
        assert_eq!((spooled(&place), entries(&place)), (Vec::new(), 2 * n as i64 + 2), "{args:?}");
    }
}

#[test]
fn a_store_that_was_corrected_in_the_settings_gets_what_the_wrong_one_did_not() {
    let place = Place::new();
    place.write("t.jsonl", claude(0..1));
    place.write("config.toml", "[store]\nurl = \"postgres://u@127.0.0.1:9/x\"\n");
    assert_eq!(run(&place, "stop", &json!({})).code, 0);
    until_failed(&place);
    fs::remove_file(place.path("config.toml")).unwrap();
    assert_eq!(place.run(&["status"]).code, 0);
    assert_eq!((spooled(&place), entries(&place)), (Vec::new(), 2));
}

#[test]
fn a_store_of_another_environment_does_not_get_what_was_meant_for_this_one() {
    let mut place = Place::new();
    place.write("t.jsonl", claude(0..1));
    place.write("file", "x");
    let url = |name: &str| format!("sqlite:{}", place.path(name).display());
    let (down, other) = (url("file/a.db"), url("other.db"));
    place.set("ANNALIST__STORE__URL", &down);
    assert_eq!(run(&place, "stop", &json!({})).code, 0);
    until_failed(&place);
    place.set("ANNALIST__STORE__URL", &other);
    assert_ne!(place.run(&["status"]).code, 0);
    assert_eq!(spooled(&place).len(), 1);
}

#[test]
fn a_hand_over_is_retried_under_the_settings_of_its_own_environment() {
    let mut place = Place::new();
    place.write("t.jsonl", claude(0..1));
    place.write("config.toml", "[model]\nno = 1\n");
    place.set("ANNALIST__NAMESPACE", "team-a");
    assert_eq!(run(&place, "stop", &json!({})).code, 0);
    until_failed(&place);
    fs::remove_file(place.path("config.toml")).unwrap();
    place.set("ANNALIST__NAMESPACE", "team-b");
    assert_ne!(place.run(&["status"]).code, 0);
    assert_eq!(spooled(&place).len(), 1);
    place.set("ANNALIST__NAMESPACE", "team-a");
    assert_eq!(place.run(&["status"]).code, 0);
    assert_eq!(spooled(&place), Vec::<Value>::new());
    assert_eq!(place.number("SELECT count(*) FROM sessions WHERE namespace = 'team-a'"), 1);
}

/// Makes the hand-overs two hours older.
fn age(place: &Place) {
    age_by(place, 2);
}

fn age_by(place: &Place, hours: i64) {
    for file in fs::read_dir(place.path("home/.local/share/annalist/spool")).unwrap() {
        let path = file.unwrap().path();
        // The process of a hook may be writing one, or removing it.
        let whole =
            fs::read(&path).ok().filter(|_| path.extension().is_some_and(|it| it == "json"));
        let Some(mut it) = whole.and_then(|it| serde_json::from_slice::<Value>(&it).ok()) else {
            continue;
        };
        it["at"] = json!(it["at"].as_i64().unwrap() - hours * 3_600_000);
        // The process of a hook may read it at any time, and removes what it cannot read.
        let aged = place.write("aged", it.to_string());
        fs::rename(aged, path).unwrap();
    }
}

#[test]
fn a_transcript_that_cannot_be_seen_stays_listed_and_one_that_never_was_does_not() {
    let place = Place::new();
    let told = json!({"transcript_path": place.path("share/t.jsonl")});
    place.write("share/t.jsonl", claude(0..1));
    place.write("config.toml", "[model]\nno = 1\n");
    assert_eq!(run(&place, "stop", &told).code, 0);
    until_failed(&place);
    fs::remove_file(place.path("config.toml")).unwrap();
    fs::remove_file(place.path("share/t.jsonl")).unwrap();
    // The process of the hook may still write the age that it read.
    until(&place, |_| {
        age(&place);
        let status = place.run(&["status"]);
        status.code == 1 && status.stdout.contains("t.jsonl: not found")
    });
    assert_eq!(spooled(&place).len(), 1);
    // No message was written yet, and none ever is.
    let never = json!({"transcript_path": place.path("share/other.jsonl")});
    assert_eq!(run(&place, "stop", &never).code, 0);
    until(&place, |_| {
        age(&place);
        place.run(&["status"]);
        let left = spooled(&place);
        left.len() == 1 && left[0]["transcript"].as_str().unwrap().ends_with("/t.jsonl")
    });
    place.run(&["status"]);
    let left = spooled(&place);
    assert!(left.len() == 1 && left[0]["problem"].is_string(), "{left:?}");
}

#[test]
fn a_transcript_that_is_missing_from_its_folder_for_a_week_is_given_up_and_told_once() {
    const WEEK_HOURS: i64 = 7 * 24;
    let place = Place::new();
    let told = json!({"agent_transcript_path": place.path("none/agent-1.jsonl")});
    assert_eq!(run(&place, "subagent-stop", &told).code, 0);
    until(&place, |all| {
        age(&place);
        place.run(&["status"]);
        all.iter().any(|it| it["problem"].is_string())
    });
    let at = |it: &Value| it["at"].as_i64().unwrap();
    let first = at(&spooled(&place)[0]);
    let start = || run(&place, "session-start", &json!({"source": "startup"})).stdout;
    let is_given_up = || {
        // The process of the hook may still write the age that it read.
        if spooled(&place).iter().any(|it| first - WEEK_HOURS * 3_600_000 < at(it)) {
            age_by(&place, WEEK_HOURS);
        }
        start().contains("agent-1.jsonl: not found, given up")
    };
    assert!(!is_given_up(), "its disk may be unmounted");
    place.write("none/x", "");
    until(&place, |_| is_given_up());
    assert_eq!((spooled(&place), start()), (Vec::new(), String::new()));
}

#[test]
fn status_names_the_problem_of_each_file_and_how_to_drop_it() {
    let place = Place::new();
    for name in ["one.jsonl", "two.jsonl"] {
        let path = place.write(name, "\u{1}\u{2}\n");
        assert_eq!(run(&place, "stop", &json!({"transcript_path": path})).code, 0);
        until_failed(&place);
    }
    let told = place.run(&["status"]).stdout;
    assert_eq!(told.matches("` to drop it").count(), 2, "{told}");
    assert!(told.contains("one.jsonl: ") && told.contains("two.jsonl: "), "{told}");
}

#[test]
fn a_session_starts_with_the_reason_for_which_a_store_cannot_be_read() {
    let place = Place::new();
    place.write(".annalist/annalist.db", [7_u8; 4_096]);
    // The store is looked at for a moment only.
    until(&place, |_| {
        let start = run(&place, "session-start", &json!({"source": "startup"})).stdout;
        start.starts_with(r#"{"systemMessage":"annalist: "#) && start.contains("not a database")
    });
}

#[test]
fn a_hand_over_alarms_its_own_project_and_is_dropped_by_the_printed_command() {
    let place = Place::new();
    let transcript = place.write("t.jsonl", claude(0..1));
    place.write("one/.git/x", "");
    place.write("two/.git/x", "");
    place.write("one/annalist.toml", "[model]\nno = 1\n");
    let shell = |folder: &str, line: &str| {
        let line = line.replace("annalist ", &format!("{ANNALIST} "));
        let mut command = place.program("/bin/sh", &["-c", &line]);
        let output =
            command.current_dir(place.path(folder)).env("PATH", "/usr/bin:/bin").output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let hook = |event, folder: &str| run(&place, event, &json!({"cwd": place.path(folder)}));
    let enqueue = format!("annalist enqueue {}", transcript.display());
    let printed =
        |line: &str| line.split("run `").nth(1).unwrap().split('`').next().unwrap().to_owned();
    assert_eq!(hook("stop", "one").code, 0);
    until_failed(&place);
    assert_eq!(shell("two", &enqueue).0, Some(0));
    let (code, told) = shell("two", "annalist status");
    assert!(code == Some(0) && told.contains("spooled"), "{told}");
    assert_eq!(hook("session-start", "two").stdout, "");
    assert!(printed(&told).starts_with("cd ") && printed(&told).ends_with(&enqueue), "{told}");
    place.write("one/annalist.toml", "");
    assert_eq!(shell("two", &printed(&told)).0, Some(0));
    assert_eq!(spooled(&place), Vec::<Value>::new());
    place.write("one/annalist.toml", "[model]\nno = 1\n");
    assert_eq!(hook("stop", "one").code, 0);
    until_failed(&place);
    fs::remove_dir_all(place.path("one")).unwrap();
    let (code, told) = shell("two", "annalist status");
    assert!(code == Some(0) && told.contains("one is gone"), "{told}");
    assert_eq!(shell("two", &printed(&told)).0, Some(0));
    assert_eq!(spooled(&place), Vec::<Value>::new());
}

#[test]
fn transcripts_of_sub_agents_are_handed_over() {
    let place = Place::new();
    let text = claude(0..1).replace("\"isSidechain\":false", "\"isSidechain\":true");
    place.write("t/subagents/agent-1.jsonl", &text);
    let (main, agent) = (place.path("t.jsonl"), place.path("t/subagents/agent-1.jsonl"));
    let told = json!({"session_id": "s-1", "transcript_path": main, "hook_event_name": "SubagentStop",
        "agent_id": "1", "agent_transcript_path": agent, "stop_hook_active": false});
    let output = tell(&place, "subagent-stop", &told.to_string());
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""));
    until_handed_over(&place);
    assert_eq!(entries(&place), 2);
    // Older clients name the main transcript alone.
    place.write("t/subagents/agent-1.jsonl", text + &claude(1..2));
    assert_eq!(run(&place, "subagent-stop", &json!({})).code, 0);
    until_handed_over(&place);
    assert_eq!(entries(&place), 4);
}

#[test]
fn a_transcript_of_a_sub_agent_that_is_never_written_is_no_problem() {
    let place = Place::new();
    place.write("t.jsonl", claude(0..1));
    let told = |kind: &str, path: &str| json!({"agent_type": kind, "agent_transcript_path": place.path(path)});
    // Claude Code forks the conversation to compact it.
    assert_eq!(run(&place, "subagent-stop", &told("", "t/subagents/agent-1.jsonl")).code, 0);
    assert_eq!(spooled(&place), Vec::<Value>::new());
    // Qwen Code has a folder for each session.
    for path in ["t/subagents/agent-1.jsonl", "t/subagents/b/agent-1.jsonl"] {
        assert_eq!(run(&place, "subagent-stop", &told("Explore", path)).code, 0);
    }
    until(&place, |all| {
        age(&place);
        place.run(&["status"]);
        all.iter().all(|it| it["problem"].is_string())
    });
    assert_eq!(spooled(&place), Vec::<Value>::new());
}

#[test]
fn a_session_starts_with_one_line_about_what_stops_work() {
    let place = Place::new();
    place.write("t.jsonl", claude(0..1));
    assert_eq!(run(&place, "session-end", &json!({})).code, 0);
    until_handed_over(&place);
    let start = || run(&place, "session-start", &json!({"source": "startup"}));
    assert_eq!(start().stdout, "");
    let sql = place.sql();
    let stopped = "INSERT INTO workers (id, started_at, seen_at, stopped) VALUES ('w', 1, 2, ?1)";
    sql.execute(stopped, params!["model.api_key_env: the key is refused"]).unwrap();
    sql.execute("UPDATE jobs SET state = 'dead', reason = 'refused', finished_at = 1", []).unwrap();
    place.write(".claude/memory/active-context.md", "## Current Focus\nThe queue.\n");
    let told: Value = serde_json::from_str(&start().stdout).unwrap();
    let notice = told["systemMessage"].as_str().unwrap();
    assert!(notice.starts_with("annalist: ") && !notice.contains('\n'), "{notice}");
    for part in ["key is refused", "`annalist worker`", "jobs retry --all-dead --kind refused"] {
        assert!(notice.contains(part), "{part}: {notice}");
    }
    let context = told["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(context.contains("The queue.") && !context.contains("refused"), "{context}");
    assert_eq!(place.run(&["status"]).code, 1);
}

#[test]
fn a_locked_store_costs_no_hook_its_hand_over() {
    let place = Place::new();
    place.write("t.jsonl", claude(0..1));
    assert_eq!(run(&place, "stop", &json!({})).code, 0);
    until_handed_over(&place);
    let sql = place.sql();
    sql.execute_batch("BEGIN EXCLUSIVE").unwrap();
    place.write("t.jsonl", claude(0..2));
    for event in ["session-start", "stop"] {
        let output = run(&place, event, &json!({}));
        assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""));
    }
    until_failed(&place);
    sql.execute_batch("ROLLBACK").unwrap();
    assert_eq!(run(&place, "user-prompt-submit", &json!({"prompt": "go on"})).code, 0);
    until_handed_over(&place);
    assert_eq!(entries(&place), 4);
}

#[test]
fn the_folder_of_a_store_is_never_in_version_control() {
    let place = Place::new();
    let ignore = place.path(".annalist/.gitignore");
    assert!(!ignore.exists(), "the folder was there without one");
    place.write("t.jsonl", claude(0..1));
    assert_eq!(place.run(&["enqueue", "t.jsonl"]).code, 0);
    assert_eq!(read(&ignore), b"*\n");
    fs::remove_file(&ignore).unwrap();
    place.run(&["status"]);
    assert_eq!(read(&ignore), b"*\n");
    place.write(".annalist/.gitignore", "mine\n");
    place.run(&["status"]);
    assert_eq!(read(&ignore), b"mine\n");
}
