//! What is printed: help that shows how, results on stdout alone, readers that go away.

use super::input::claude;
use super::place::{Place, balanced};
use super::stub::{Answer, Stub};
use serde_json::Value;
use std::process::Stdio;

const COMMANDS: [&str; 12] = [
    "memory", "replay", "records", "why", "status", "jobs", "dialog", "redact", "cassette",
    "schema", "init", "doctor",
];

fn replayed(talks: usize) -> Place {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..talks));
    place.json(&["replay", "s.jsonl", "--json"]);
    place
}

#[test]
fn help_of_every_command_says_what_it_is_for() {
    let place = Place::new();
    let top = place.run(&["--help"]);
    assert_eq!(top.code, 0);
    assert!(top.stdout.contains("Start here:") && top.stdout.contains("Exit codes:"));
    for command in COMMANDS {
        assert!(top.stdout.contains(&format!("\n  {command} ")), "{command} is not listed");
        let help = place.run(&[command, "--help"]);
        assert_eq!((help.code, help.stderr.as_str()), (0, ""), "{command}");
        let purpose = help.stdout.lines().next().unwrap_or_default();
        assert!(purpose.len() > 15 && !purpose.starts_with("Usage"), "{command}: {purpose}");
        let options = help.stdout.lines().filter(|line| line.trim_start().starts_with("--"));
        for option in options {
            let said = option.split_whitespace().count() > 2;
            let next = help.stdout.split_once(option).map(|(_, rest)| rest.trim_start());
            assert!(said || next.is_some_and(|next| !next.starts_with('-')), "{command}: {option}");
        }
    }
    let nothing = place.run(&[]);
    assert_eq!(nothing.code, 2);
    assert!(nothing.stderr.contains("Start here:"), "{}", nothing.stderr);
}

#[test]
fn help_fits_a_terminal_of_eighty_columns() {
    let pages = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/commands.md"));
    let mut place = Place::new();
    place.set("COLUMNS", "80");
    for page in pages.unwrap().lines().filter_map(|line| line.split_once("# annalist ")) {
        let args: Vec<&str> = page.1.split(' ').chain(["--help"]).collect();
        let help = place.run(&args).stdout;
        let wide = help.lines().find(|line| 80 < line.chars().count());
        assert_eq!(wide, None, "{args:?}");
    }
}

#[test]
fn version_completions_and_manual_are_printed() {
    let place = Place::new();
    let version = place.run(&["--version"]);
    assert_eq!(version.stdout, format!("annalist {}\n", env!("CARGO_PKG_VERSION")));
    for shell in ["bash", "zsh", "fish"] {
        let script = place.run(&["completions", shell]);
        assert_eq!((script.code, script.stderr.as_str()), (0, ""));
        assert!(script.stdout.contains("annalist") && script.stdout.contains("replay"), "{shell}");
    }
    let page = place.run(&["man"]);
    assert!(page.code == 0 && page.stdout.contains(".TH annalist"), "{}", page.stdout);
    let page = place.run(&["man", "memory", "sync"]).stdout;
    let title = format!(".TH annalist-memory-sync 1  \"{}\"", version.stdout.trim());
    assert!(page.contains(&title), "{page}");
}

#[test]
fn with_json_nothing_else_stands_on_stdout() {
    let place = replayed(3);
    for args in [
        &["replay", "s.jsonl", "--json"][..],
        &["replay", "s.jsonl", "--dry-run", "--json"],
        &["records", "--json"],
        &["records", "list", "--json"],
        &["records", "runs", "--json"],
        &["status", "--json"],
        &["jobs", "--json"],
        &["jobs", "retry", "--all-dead", "--json"],
    ] {
        let value = place.json(args);
        assert!(value.is_object() || value.is_array(), "{args:?}");
    }
    for line in place.run(&["records", "export", "--format", "jsonl"]).stdout.lines() {
        assert!(serde_json::from_str::<Value>(line).unwrap().is_object());
    }
}

#[test]
fn totals_hold_everything_that_is_promised() {
    let place = replayed(3);
    let totals = place.json(&["replay", "s.jsonl", "--json"]);
    for key in [
        "files", "sessions", "entries", "slices", "calls", "coverage", "records", "quarantined",
        "tokens", "cost",
    ] {
        assert!(!totals[key].is_null(), "{key}: {totals}");
    }
    for key in ["extracted", "nothing", "skipped", "failed"] {
        assert!(totals["coverage"][key].is_u64(), "{key}: {totals}");
    }
    let known = place.json(&["replay", "s.jsonl", "--dry-run", "--json"]);
    assert_eq!(known["coverage"]["pending"], 0, "{known}");
    place.write("t.jsonl", claude(5..8));
    let dry = place.json(&["replay", "t.jsonl", "--dry-run", "--json"]);
    balanced(&dry);
    assert_eq!(dry["coverage"]["pending"], dry["entries"]);
    assert!(dry["tokens"]["estimated"].as_u64().unwrap() > 0);
}

#[test]
fn table_says_the_same_as_the_json() {
    let place = replayed(3);
    let table = place.run(&["replay", "s.jsonl"]);
    assert_eq!(table.code, 0);
    for row in ["entries", "extracted", "nothing worth keeping", "failed", "decisions", "cost"] {
        assert!(table.stdout.contains(row), "no `{row}` in {}", table.stdout);
    }
    assert!(table.stderr.contains("every entry is accounted for"), "{}", table.stderr);
    assert!(!table.stdout.contains('\u{1b}') && !table.stderr.contains('\u{1b}'), "NO_COLOR");
}

#[test]
fn dry_run_asks_nothing_and_keeps_nothing() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..3));
    place.json(&["replay", "s.jsonl", "--dry-run", "--json"]);
    assert_eq!(stub.count(), 0);
    assert!(!place.database().exists());
}

#[test]
fn reader_that_goes_away_is_no_error() {
    let place = replayed(120);
    for args in [&["records", "export"][..], &["records", "--json"], &["records"], &["man"]] {
        let mut command = place.command(args);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {said}");
        assert!(!said.contains("error") && !said.contains("panicked"), "{args:?}: {said}");
    }
}

#[test]
fn work_goes_on_when_the_reader_goes_away() {
    let unread = |place: &Place, args: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = place.command(args);
        command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::null()).status().unwrap()
    };
    let place = Place::with_examples();
    assert!(unread(&place, &["init", "--claude-code", "--yes"]).success());
    let is_set_up = place.run(&["init", "--claude-code", "--yes"]).stdout;
    assert!(is_set_up.contains("already set up"), "{is_set_up}");
    place.run(&["memory", "init"]);
    let reflect = ["memory", "reflect", "--write", "--namespace", "home/dev/ledger"];
    assert!(unread(&place, &reflect).success());
    let sessions = std::fs::read_dir(place.path(".claude/memory/sessions")).unwrap();
    let mut names = sessions.map(|it| it.unwrap().file_name().into_string().unwrap());
    assert!(names.any(|name| name.ends_with("-retro.md")));
    // A token that nobody saw is of no use.
    let token = ["token", "new", "laptop", "--namespace", "roofs", "--can", "read"];
    for args in [&token[..], &[&token[..], &["--json"]].concat()] {
        assert_eq!(unread(&place, args).code(), Some(1));
        let tokens = place.json(&["token", "list", "--json"]);
        assert!(tokens.as_array().unwrap().iter().all(|it| it["valid"] == false), "{tokens}");
    }
}

#[test]
fn a_job_that_waits_for_more_entries_is_counted() {
    let place = Place::with_endpoint("http://127.0.0.1:9/v1");
    place.write("s.jsonl", claude(0..1));
    let told = place.run(&["enqueue", "s.jsonl"]).stdout;
    assert!(told.contains(": 1 job, 2 entries, the last job waits for more"), "{told}");
    assert!(told.ends_with("\n1 job, 2 entries, of 1 session\n"), "{told}");
    assert_eq!(place.json(&["jobs", "--json"]).as_array().unwrap().len(), 1);
}

#[test]
fn limits_of_an_argument_are_named() {
    let place = Place::with_examples();
    for tokens in ["0", "99999999999"] {
        place.run(&["context", "--budget", tokens]).refused(2, &["from 1 to 4294967295"]);
    }
    let reversed = ["search", "--since", "2026-06-10", "--until", "2026-06-01"];
    place.run(&reversed).refused(2, &["--since is later than --until"]);
}

#[test]
fn filters_of_records_choose() {
    let place = replayed(8);
    let count = |args: &[&str]| {
        let all = [&["records"], args, &["--json"]].concat();
        place.json(&all).as_array().unwrap().len()
    };
    assert_eq!(count(&[]), 8);
    assert_eq!((count(&["--kind", "decision"]), count(&["--kind", "attempt"])), (8, 0));
    assert_eq!(
        (count(&["--namespace", "home/dev/roofs"]), count(&["--namespace", "other"])),
        (8, 0)
    );
    assert_eq!(count(&["--since", "2026-05-04"]), 8);
    assert_eq!(count(&["--since", "2026-05-05"]), 0);
    assert_eq!(count(&["--since", "2026-05-04T06:04:00Z"]), 4);
    assert_eq!(count(&["--limit", "3"]), 3);
    let status = place.json(&["status", "--json"]);
    let session = status["sessions"][0]["session"].as_str().unwrap();
    assert_eq!(count(&["--session", &session[..8]]), 8);
    let exported = place.run(&["records", "export", "--limit", "2"]).stdout;
    assert_eq!(exported.lines().count(), 2);
}

#[test]
fn sessions_before_a_day_are_left_out_and_so_many_are_read() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("in/a.jsonl", claude(0..2));
    place.write("in/b.txt", "user: shall we paint the roof?\nassistant: yes\nuser: green then\n");
    let sessions = |args: &[&str]| {
        let all = [&["replay", "in", "--dry-run", "--json"], args].concat();
        let totals = place.json(&all);
        balanced(&totals);
        totals["sessions"].as_u64().unwrap()
    };
    assert_eq!((sessions(&[]), sessions(&["--limit", "1"])), (2, 1));
    assert_eq!(sessions(&["--format", "claude-code", "--since", "2026-05-05"]), 0);
    assert_eq!(sessions(&["--format", "claude-code", "--since", "2026-05-04"]), 1);
}

#[test]
fn schemas_are_those_that_are_published() {
    let place = Place::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas");
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/docs");
    let checked = place.run(&["schema", "--check", "--dir", folder, "--docs", docs]);
    assert_eq!(checked.code, 0, "{}", checked.stdout);
    place.write("schemas/write_extracted.v1.json", "{}");
    assert_eq!(place.run(&["schema", "--check"]).code, 1);
    place.run(&["schema", "nothing.json"]).refused(2, &["nothing.json", "write_extracted.v1.json"]);
}

#[test]
fn init_writes_the_defaults_once() {
    let place = Place::new();
    assert_eq!(place.run(&["init"]).code, 0);
    let written = super::place::read(&place.path("annalist.toml"));
    assert_eq!(String::from_utf8(written).unwrap(), annalist::DEFAULT_CONFIG);
    place.run(&["init"]).refused(2, &["annalist.toml", "already exists"]);
    assert_eq!(place.run(&["init", "--user"]).code, 0);
    assert!(place.path("home/xdg/annalist/config.toml").exists());
    assert_eq!(place.run(&["init", "--print"]).stdout.trim(), annalist::DEFAULT_CONFIG.trim());
}

#[test]
fn doctor_fails_for_a_model_that_cannot_fill_the_tool() {
    let stub = Stub::new(|ask| match ask.tool() {
        "note_city" => Answer::Call(serde_json::json!({"city": "Lisbon"})),
        "note_colour" => Answer::Call(serde_json::json!({"colour": "red"})),
        _ => Answer::Call(super::input::extracted("nothing")),
    });
    let place = Place::with_endpoint(stub.url());
    let doctor = place.run(&["doctor", "--json"]);
    let report = doctor.json();
    assert_eq!(doctor.code, 1, "{report}");
    assert_eq!(report["checks"]["ladder"]["ok"], true);
    let extraction = &report["checks"]["extraction"];
    assert_eq!(extraction["ok"], false);
    assert!(extraction["detail"].as_str().unwrap().contains("stub-1 does not find"), "{report}");
}

#[test]
fn doctor_fails_for_a_store_that_is_only_readable() {
    let place = Place::new();
    place.write("s.jsonl", claude(0..1));
    assert_eq!(place.run(&["enqueue", "s.jsonl"]).code, 0);
    // No process can open its log.
    std::fs::create_dir(place.path(".annalist/annalist.db-wal")).unwrap();
    let doctor = place.json_with(1, &["doctor", "--json"]);
    let store = &doctor["checks"]["store"];
    assert_eq!(store["ok"], false, "{store}");
    assert!(store["detail"].as_str().unwrap().contains("read-only"), "{store}");
}

#[test]
fn model_that_finds_nothing_anywhere_is_warned_of() {
    let stub = Stub::new(|_| Answer::Call(super::input::extracted("nothing")));
    let warned = |talks, command: &[&str]| {
        let place = Place::with_endpoint(stub.url());
        place.write("s.jsonl", claude(0..talks));
        if command[0] == "worker" {
            assert_eq!(place.run(&["enqueue", "s.jsonl"]).code, 0);
        }
        let output = place.run(command);
        assert_eq!(output.code, 0, "{}", output.stderr);
        output.stderr.contains("found nothing in any of")
    };
    assert!(warned(24, &["replay", "s.jsonl"]) && warned(24, &["replay", "s.jsonl", "--json"]));
    assert!(warned(24, &["worker", "--drain"]));
    assert!(!warned(3, &["replay", "s.jsonl"]), "so few slices may well hold nothing");
}

#[test]
fn doctor_says_what_the_endpoint_can_do_and_the_next_replay_uses_it() {
    // An endpoint that knows no tools.
    let stub = Stub::new(|ask| match ask.body.get("tools") {
        Some(_) => Answer::Status(
            400,
            "",
            "{\"error\":{\"message\":\"tools are not supported\",\"param\":\"tools\"}}".to_owned(),
        ),
        None if ask.path.ends_with("/models") => {
            Answer::Status(200, "", "{\"data\":[{\"id\":\"stub-1\"}]}".to_owned())
        }
        None => {
            let words = super::input::extracted(ask.slice()).to_string();
            let message = serde_json::json!({"role": "assistant", "content": words});
            let choice = serde_json::json!({"message": message, "finish_reason": "stop"});
            let body = serde_json::json!({"choices": [choice]});
            Answer::Status(200, "", body.to_string())
        }
    });
    let place = Place::with_endpoint(stub.url());
    let fresh = place.run(&["doctor", "--json"]);
    let store = &fresh.json()["checks"]["store"];
    assert_eq!((fresh.code, &store["ok"]), (0, &serde_json::Value::Null), "{store}");
    assert!(
        store["detail"].as_str().unwrap().contains("annalist.db: no store there yet"),
        "{store}"
    );
    assert_eq!(
        std::fs::read_dir(place.path(".annalist")).unwrap().count(),
        0,
        "looking makes none"
    );
    place.write("s.jsonl", claude(0..2));
    assert_eq!(place.run(&["enqueue", "s.jsonl"]).code, 0, "this makes one");
    let doctor = place.run(&["doctor", "--json"]);
    let report = doctor.json();
    assert_eq!(doctor.code, 0, "{report}");
    let best = report["best"].as_str().unwrap().to_owned();
    assert!(best.starts_with("json"), "{report}");
    assert_eq!(report["checks"]["extraction"]["ok"], true, "{report}");
    let before = stub.count();
    let totals = place.json(&["replay", "s.jsonl", "--json"]);
    assert_eq!(super::place::records(&totals), 2);
    assert_eq!((stub.count() - before) as u64, totals["slices"].as_u64().unwrap());
}

#[test]
fn dry_run_has_a_dated_price_or_says_that_there_is_none() {
    let mut place = Place::new();
    place.write("s.jsonl", claude(0..3));
    let dry = ["replay", "s.jsonl", "--dry-run"];
    let here = place.run(&[&dry[..], &["--json"]].concat()).json();
    assert_eq!(here["cost"], 0.0, "a model on this machine is free");
    place.set("ANNALIST__MODEL__BASE_URL", "https://api.openai.com/v1");
    place.set("ANNALIST__LIMITS__DAY_USD_MAX", "5");
    let listed = place.run(&[&dry[..], &["--model", "gpt-5-mini"]].concat());
    assert!(listed.stdout.contains("(list price of 20"), "{}", listed.stdout);
    assert!(!listed.stderr.contains("warning"), "{}", listed.stderr);
    let unknown = place.run(&dry);
    assert!(unknown.stdout.contains("price unknown: set model.usd_per_million_"));
    assert!(!unknown.stdout.contains('$'), "{}", unknown.stdout);
    assert!(unknown.stderr.contains("limits.day_usd_max has no effect"), "{}", unknown.stderr);
    place.set("ANNALIST__MODEL__USD_PER_MILLION_SENT", "3");
    place.set("ANNALIST__MODEL__USD_PER_MILLION_ANSWERED", "15");
    let own = place.run(&dry);
    assert!(own.stdout.contains("cost") && own.stdout.contains("$0."), "{}", own.stdout);
    assert!(!own.stderr.contains("warning"), "{}", own.stderr);
}
