//! What bad input gets: one clear line that names the file, the line or the key, and what to do; the
//! right exit code; nothing lost.

use super::input::{SESSION, claude};
use super::place::{Place, balanced, count, records};
use super::stub::{Answer, Stub};
use std::process::Stdio;

#[test]
fn file_that_is_no_transcript_is_named() {
    let place = Place::new();
    place.write("empty.jsonl", "");
    place.write("binary.jsonl", [0, 159, 146, 150, 0, 255, 1, 2, 3, 0, 0, 7]);
    place.write("unknown.txt", "Once upon a time there was a roof.\nIt leaked.\n");
    place.write("archive.json", b"PK\x03\x04zip");
    for (name, words) in [
        ("nowhere.jsonl", "No such file"),
        ("empty.jsonl", "empty"),
        ("binary.jsonl", "binary"),
        ("unknown.txt", "expected"),
        ("archive.json", "unpack"),
    ] {
        for more in [&["--dry-run"][..], &[]] {
            let args = [&["replay", name], more].concat();
            place.run(&args).refused(1, &[name, words]);
        }
    }
}

#[test]
fn folder_in_which_nothing_is_a_transcript_fails_and_says_what_was_expected() {
    let place = Place::new();
    place.write("in/notes.md", "# Notes\n\nNothing here is a transcript.\n");
    place.write("in/picture.png", [137, 80, 78, 71, 13, 10, 26, 10, 0, 0]);
    std::fs::create_dir(place.path("bare")).unwrap();
    for command in [&["replay"][..], &["replay", "--dry-run"], &["replay", "--json"], &["enqueue"]]
    {
        let words = ["in, bare: nothing was read from 2 files", "expected", "--format"];
        place.run(&[command, &["in", "bare"]].concat()).refused(1, &words);
    }
    place.run(&["replay", "bare"]).refused(1, &["bare: there are no files to read"]);
    place.write("in/a.jsonl", claude(0..2));
    assert_eq!(place.run(&["enqueue", "in", "bare"]).code, 0, "some of it is readable");
    assert_eq!(place.run(&["replay", "in", "bare", "--dry-run"]).code, 0);
    let late = place.run(&["replay", "in", "--since", "2099-01-01", "--dry-run"]);
    assert!(late.code == 0 && late.stderr.contains("--since excludes all of"), "{}", late.stderr);
}

#[test]
fn readable_file_without_an_entry_is_told_and_never_accounted_for() {
    let place = Place::new();
    let bookkeeping = r#"{"type":"summary","summary":"s","leafUuid":"l"}"#;
    place.write("in/s.jsonl", bookkeeping);
    for args in [["replay", "in"], ["replay", "in/s.jsonl"], ["enqueue", "in"]] {
        let told = place.run(&args);
        let line = "no entries: in/s.jsonl: nothing in it could be read as claude-code";
        assert!(told.code == 1 && told.stderr.contains(line), "{}", told.stderr);
        assert!(!told.stderr.contains("accounted for"), "{}", told.stderr);
    }
    let report = place.run(&["replay", "in", "--dry-run", "--json"]).json();
    assert_eq!(count(&report, "/findings/no-entries"), 1);
    assert_eq!(report["empty"].as_array().unwrap().len(), 1);
    let wrong = place.run(&["replay", "in/s.jsonl", "--format", "codex"]);
    wrong.refused(1, &["could be read as codex; it looks like claude-code"]);
    assert!(!wrong.stderr.contains("accounted for"), "{}", wrong.stderr);
    assert_eq!(place.number("SELECT count(*) FROM sessions"), 0, "nothing was read of it");
}

#[test]
#[cfg(unix)]
fn pipe_as_a_file_is_refused_and_waits_for_nobody() {
    let place = Place::new();
    let pipe = place.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for command in ["replay", "enqueue", "dialog"] {
        place
            .run(&[command, "pipe"])
            .refused(1, &["pipe", "not a regular file", "`annalist enqueue -`"]);
    }
}

#[test]
fn bad_file_does_not_keep_the_good_from_being_read() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("in/a.jsonl", claude(0..2));
    place.write("in/notes.md", "# Notes\n\nNothing here is a transcript.\n");
    place.write("in/picture.png", [137, 80, 78, 71, 13, 10, 26, 10, 0, 0]);
    let folder = place.json(&["replay", "in", "--json"]);
    assert_eq!((count(&folder, "/files"), count(&folder, "/files_passed_over")), (1, 2));
    let mixed = place.run(&["replay", "in", "gone.jsonl", "--json"]);
    mixed.refused(1, &["gone.jsonl"]);
    assert_eq!(records(&mixed.json()), 2);
}

#[test]
fn line_that_does_not_parse_is_counted_and_the_rest_goes_on() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    let (first, second) = (claude(0..2), claude(2..4));
    let torn = b"{\"type\":\"user\",\"message\":{\"role\n\xff\xfe\x00 not JSON at all\n".to_vec();
    place.write("s.jsonl", [first.as_bytes(), &torn, second.as_bytes()].concat());
    let totals = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&totals);
    assert_eq!(records(&totals), 4);
    let findings = totals["findings"].as_object().unwrap();
    let found: u64 = findings.values().filter_map(|it| it.as_u64()).sum();
    assert!(found >= 2, "{totals}");
    let status = place.json(&["status", "--json"]);
    let findings = status["sessions"][0]["findings"].as_array().unwrap().clone();
    for line in [5, 6] {
        assert!(findings.iter().any(|it| it["line"] == line), "line {line}: {findings:?}");
    }
}

#[test]
fn every_finding_has_its_place_and_the_most_severe_come_first() {
    let place = Place::new();
    place.write("in/a.jsonl", claude(0..2));
    place.write("in/b.jsonl", claude(0..2));
    let other = claude(5..7).replace(SESSION, "another-session");
    let mut torn = other.into_bytes();
    let at = torn.windows(5).position(|it| it == b"Which").unwrap();
    torn[at] = 0xff;
    torn.extend(b"no JSON\n{\"type\":\"us");
    place.write("in/c.jsonl", torn);
    let output = place.run(&["replay", "in", "--dry-run", "--json"]);
    let totals = output.json();
    let found = totals["findings"].as_object().unwrap();
    assert!(found.contains_key("session-copy") && found.contains_key("invalid-utf8"), "{totals}");
    let places = totals["places"].as_array().unwrap();
    let times: u64 = found.values().filter_map(|it| it.as_u64()).sum();
    assert_eq!(places.len() as u64, times, "{totals}");
    assert_eq!(places[0]["severity"], "warning", "{totals}");
    assert_eq!(places.last().unwrap()["severity"], "info", "{totals}");
    assert!(output.stderr.contains("in/b.jsonl: session-copy: "), "{}", output.stderr);
}

#[test]
fn mark_at_the_beginning_and_carriage_returns_change_nothing() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..3));
    let plain = place.json(&["replay", "s.jsonl", "--json"]);
    let odd = format!("\u{feff}{}", claude(0..3).replace('\n', "\r\n"));
    place.write("s.jsonl", odd);
    let again = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&again);
    assert_eq!((count(&again, "/calls"), &again["records"]), (0, &plain["records"]));
}

#[test]
fn line_of_many_megabytes_is_a_finding_and_memory_stays_bounded() {
    let stub = Stub::new(|_| Answer::Hold);
    let place = Place::with_endpoint(stub.url());
    let garbage = vec![b'x'; 40 << 20];
    let text = [claude(0..1).as_bytes(), &garbage, b"\n", claude(1..2).as_bytes()].concat();
    place.write("s.jsonl", text);
    let running = place.start(&["replay", "s.jsonl", "--json"]);
    stub.until(2);
    let peak = running.peak_kib();
    stub.release();
    let output = running.wait();
    assert_eq!(output.code, 0, "{}", output.stderr);
    let totals = output.json();
    balanced(&totals);
    assert_eq!(records(&totals), 2);
    // A line may be held up to the longest that is read, 32 MiB, and while that grows twice.
    assert!(peak.is_none_or(|kib| kib < 256 << 10), "{peak:?} KiB");
}

#[test]
fn message_of_many_megabytes_is_cut_and_held_once() {
    let stub = Stub::new(|_| Answer::Hold);
    let mut place = Place::with_endpoint(stub.url());
    place.set("ANNALIST__SLICE__TOKENS", "6000");
    let long = "The gutter of the roof is full of leaves again. ".repeat(80_000);
    place.write("s.txt", format!("user: {long}\nassistant: We chose a-1 over b-1 because c-1.\n"));
    let running = place.start(&["replay", "s.txt", "--json"]);
    stub.until(1);
    let peak = running.peak_kib();
    stub.release();
    let output = running.wait();
    assert_eq!(output.code, 0, "{}", output.stderr);
    let totals = output.json();
    balanced(&totals);
    assert!(count(&totals, "/slices") > 100 && count(&totals, "/entries") == 2, "{totals}");
    // A job reads the message from the store, and holds its slice of it while it is asked about.
    assert!(peak.is_none_or(|kib| kib < 240 << 10), "{peak:?} KiB");
}

#[test]
fn environment_that_is_no_text_is_no_matter_unless_it_is_ours() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    place.write("s.jsonl", claude(0..1));
    let code = |name: &[u8], value: &[u8]| {
        let mut command = place.command(&["replay", "s.jsonl", "--dry-run"]);
        command.env(OsStr::from_bytes(name), OsStr::from_bytes(value));
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(code(b"ROOF", b"\xff").0, 0);
    assert_eq!(code(b"R\xffOF", b"x").0, 0);
    let (ours, said) = code(b"ANNALIST__MODEL__MODEL", b"\xff");
    assert!(ours == 2 && said.contains("ANNALIST__MODEL__MODEL"), "{said}");
}

#[test]
fn settings_with_a_mark_and_carriage_returns_are_read() {
    let place = Place::new();
    place.write("s.jsonl", claude(0..1));
    place.write("config.toml", "\u{feff}[model]\r\nmodel = \"x\"\r\n");
    let output = place.run(&["replay", "s.jsonl", "--dry-run"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    place.write("config.toml", b"[model]\nmodel = \"\xff\"\n");
    place.run(&["status"]).refused(2, &["config.toml", "UTF-8"]);
}

#[test]
fn settings_that_cannot_be_used_name_file_line_and_key() {
    for (text, words) in [
        ("[model]\nbase_ulr = \"x\"\n", &["config.toml:2", "base_ulr", "model.base_url"][..]),
        ("language = \"English\"\nconcurency = 3\n", &["config.toml:2", "model.concurrency"]),
        ("[model]\nconcurrency = \"many\"\n", &["config.toml:2", "a whole number"]),
        ("[slice]\n\ntokens = 1\n", &["config.toml", "slice.tokens", "at least"]),
        ("[model]\nbase_url = \"nonsense\"\n", &["config.toml", "model.base_url", "http"]),
        ("[model]\nrung = \"tols\"\n", &["config.toml", "model.rung", "forced_tool"]),
        ("[privacy]\npii = [\"emial\"]\n", &["config.toml", "privacy.pii", "email"]),
        ("[store]\nurl = \"mysql://u:word@host/x\"\n", &["mysql", "sqlite:PATH"]),
        ("namespace = \"a\\nb\"\n", &["config.toml", "namespace: expected a name on one line"]),
        ("[model\nno = 1\n", &["config.toml:1", "TOML"]),
        ("[model]\nbase_url = \"http://\"\n", &["base_url"]),
    ] {
        let place = Place::new();
        place.write("config.toml", text);
        place.write("s.jsonl", claude(0..1));
        let output = place.run(&["replay", "s.jsonl"]);
        output.refused(2, words);
        assert!(!output.stderr.contains("u:word"), "{}", output.stderr);
    }
}

#[test]
fn settings_of_the_environment_and_the_named_file_are_checked_too() {
    let mut place = Place::new();
    place.write("s.jsonl", claude(0..1));
    place.run(&["--config", "gone.toml", "status"]).refused(2, &["gone.toml"]);
    place.set("ANNALIST__MODEL__CONCURENCY", "4");
    place.run(&["replay", "s.jsonl", "--dry-run"]).refused(2, &["ANNALIST__MODEL__CONCURENCY"]);
    place.unset("ANNALIST__MODEL__CONCURENCY");
    place.set("ANNALIST__MODEL__CONCURRENCY", "four");
    place.run(&["replay", "s.jsonl", "--dry-run"]).refused(2, &["ANNALIST__MODEL__CONCURRENCY"]);
}

#[test]
fn named_file_then_environment_then_flags_win() {
    let stub = Stub::good();
    let mut place = Place::new();
    let settings =
        |url: &str, model: &str| format!("[model]\nbase_url = \"{url}\"\nmodel = \"{model}\"\n");
    place.write("s.jsonl", claude(0..1));
    place.write("home/xdg/annalist/config.toml", settings(stub.url(), "of-user"));
    let model = |place: &Place, more: &[&str]| {
        let args = [&["replay", "s.jsonl", "--json"], more].concat();
        place.json(&args);
        let runs = place.json(&["records", "runs", "--json"]);
        let runs = runs.as_array().unwrap().clone();
        let current = runs.iter().find(|run| run["current"] == true).unwrap();
        current["model"].as_str().unwrap().to_owned()
    };
    assert_eq!(model(&place, &[]), "of-user");
    place.write("config.toml", settings(stub.url(), "of-folder"));
    assert_eq!(model(&place, &[]), "of-folder");
    place.write("named.toml", settings(stub.url(), "of-name"));
    assert_eq!(model(&place, &["--config", "named.toml"]), "of-name");
    place.set("ANNALIST__MODEL__MODEL", "of-env");
    assert_eq!(model(&place, &["--config", "named.toml"]), "of-env");
    assert_eq!(model(&place, &["--model", "of-flag"]), "of-flag");
}

#[test]
fn flags_that_cannot_be_read_say_what_was_expected() {
    let place = Place::new();
    for (args, words) in [
        (&["replay", "x", "--since", "soon"][..], "2026-11-21"),
        (&["records", "--since", "soon"], "today"),
        (&["records", "--limit", "0"], "at least 1"),
        (&["jobs", "list", "--limit", "0"], "at least 1"),
        (&["replay", "x", "--limit", "0"], "at least 1"),
        (&["replay", "x", "--format", "word"], "claude-code"),
        (&["replay", "x", "--concurrency", "0"], "1..=4096"),
        (&["replay"], "PATH"),
        (&["records", "--kind", "dream"], "decision"),
        (&["relpay"], "replay"),
    ] {
        let output = place.run(args);
        assert_eq!(output.code, 2, "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains(words), "{args:?}: {}", output.stderr);
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn input_without_an_entry_names_a_schema_that_there_is() {
    let place = Place::new();
    let told = place.run(&["enqueue", "-"]);
    told.refused(2, &["standard input: empty"]);
    let schema = told.stderr.split("annalist schema ").nth(1).unwrap();
    let (schema, _) = schema.split_once('`').unwrap();
    assert_eq!(place.run(&["schema", schema]).code, 0, "{}", told.stderr);
    place.run(&["enqueue", "-", "--session", ""]).refused(2, &["--session"]);
}

#[test]
fn ids_that_name_nothing_or_too_much_are_told() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..40));
    place.json(&["replay", "s.jsonl", "--json"]);
    let export = place.run(&["records", "export"]).stdout;
    // Among 40 ids two begin with the same digit.
    let mut firsts: Vec<String> = export
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|record| record["id"].as_str().unwrap()[..1].to_owned())
        .collect();
    firsts.sort();
    let twice = firsts.windows(2).find(|two| two[0] == two[1]).unwrap()[0].clone();
    for command in [&["why"][..], &["records", "show"]] {
        let with = |id: &str| place.run(&[command, &[id]].concat());
        with("ffffffffffffffff").refused(2, &["ffffffffffffffff", "annalist records"]);
        with(&twice).refused(2, &["more than one", "use more digits"]);
        with("xyz").refused(2, &["xyz"]);
    }
    place.run(&["records", "--session", "zz"]).refused(2, &["zz"]);
    place.run(&["why", "zz"]).refused(2, &["hex digits", "annalist search"]);
    place.run(&["records", "diff", "ffffffff", "ffffffff"]).refused(2, &["no run", "ffffffff"]);
}

#[test]
fn no_store_yet_says_what_makes_one() {
    let place = Place::new();
    for args in [&["records"][..], &["status"], &["jobs"], &["why", "ab"], &["records", "export"]] {
        place.run(args).refused(1, &["annalist.db", "annalist replay"]);
    }
    assert!(!place.database().exists(), "asking makes none");
}

#[test]
fn store_that_is_not_ours_is_left_as_it_is() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..1));
    let text = "no database ".repeat(200);
    place.write(".annalist/annalist.db", &text);
    place.run(&["replay", "s.jsonl"]).refused(1, &["annalist.db", "not a database"]);
    place.run(&["status"]).refused(1, &["annalist.db", "not a database"]);
    assert_eq!(super::place::read(&place.database()), text.as_bytes());
    assert_eq!(stub.count(), 0, "nothing is paid for that cannot be kept");
}

#[test]
fn store_of_a_newer_version_is_refused_with_both_versions() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..1));
    place.json(&["replay", "s.jsonl", "--json"]);
    place.sql().execute_batch("PRAGMA user_version = 99").unwrap();
    for args in [&["replay", "s.jsonl"][..], &["status"], &["records"]] {
        place.run(args).refused(1, &["version is 99", "update annalist"]);
    }
}

#[test]
fn store_that_another_process_holds_says_so_and_nothing_is_lost() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..2));
    place.json(&["replay", "s.jsonl", "--json"]);
    place.write("s.jsonl", claude(0..4));
    let sql = place.sql();
    sql.execute_batch("BEGIN IMMEDIATE").unwrap();
    place.run(&["replay", "s.jsonl"]).refused(1, &["annalist.db", "locked", "try again"]);
    assert_eq!(place.run(&["records"]).code, 0, "reading goes on");
    sql.execute_batch("ROLLBACK").unwrap();
    drop(sql);
    let totals = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&totals);
    assert_eq!(records(&totals), 4);
}

#[cfg(unix)]
#[test]
#[expect(clippy::print_stderr, reason = "says why nothing was tested")]
fn folder_that_cannot_be_written_to_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.write("s.jsonl", claude(0..1));
    let folder = place.path("locked");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o555)).unwrap();
    if std::fs::File::create(folder.join("probe")).is_ok() {
        eprintln!("not tested: this user may write anywhere");
        return;
    }
    let mut place = place;
    place.set("ANNALIST__STORE__URL", "sqlite:locked/a.db");
    place.run(&["replay", "s.jsonl"]).refused(1, &["locked/a.db", "permission"]);
}

#[test]
fn endpoint_that_is_down_is_named_and_the_next_replay_goes_on() {
    let mut place = Place::with_endpoint("http://127.0.0.1:9/v1");
    place.set("ANNALIST__LIMITS__TRIES_MAX", "1");
    place.write("s.jsonl", claude(0..12));
    let output = place.run(&["replay", "s.jsonl", "--json"]);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("127.0.0.1:9"), "{}", output.stderr);
    // Two slices failed, and the third waits: no other number of slices is told.
    let stopped = "stopped: several slices in a row had no answer: unavailable";
    assert!(output.stderr.contains("failed: 2 slices"), "{}", output.stderr);
    assert!(output.stderr.contains(stopped), "{}", output.stderr);
    balanced(&output.json());
    let again = place.run(&["enqueue", "s.jsonl"]);
    for part in
        ["failed 2 slices earlier, unavailable: 127.0.0.1:9", "replay --retry-failed s.jsonl"]
    {
        assert!(again.stderr.contains(part), "{part}: {}", again.stderr);
    }
    let doctor = place.run(&["doctor", "--json"]);
    assert_eq!(doctor.code, 1);
    let checks = &doctor.json()["checks"];
    assert_eq!(checks["endpoint"]["ok"], false);
    let model = checks["model"]["detail"].as_str().unwrap();
    assert!(!model.contains("lists no models"), "it was not reached: {model}");
    // The same command goes on when it is there.
    let stub = Stub::good();
    place.set("ANNALIST__MODEL__BASE_URL", stub.url());
    let totals = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&totals);
    assert_eq!((records(&totals), count(&totals, "/coverage/failed")), (12, 0));
}

#[test]
fn key_that_is_not_there_is_named_before_anything_is_done() {
    let mut place = Place::with_endpoint("http://127.0.0.1:9/v1");
    place.set("ANNALIST__MODEL__API_KEY_ENV", "ROOF_KEY");
    place.write("s.jsonl", claude(0..1));
    place.run(&["replay", "s.jsonl"]).refused(2, &["ROOF_KEY", "api_key_env"]);
    assert!(!place.database().exists());
    assert_eq!(place.run(&["replay", "s.jsonl", "--dry-run"]).code, 0, "a dry run needs no key");
}

#[test]
fn cassette_that_cannot_be_used_is_named() {
    let place = Place::new();
    place.write("s.jsonl", claude(0..1));
    place.write("empty/readme.md", "no answers");
    place.write("broken/a.json", "{\"origin\": \"recorded\", \"exchanges\": [{]}");
    let replay = |folder: &str| place.run(&["replay", "s.jsonl", "--cassette", folder]);
    replay("gone").refused(2, &["gone"]);
    replay("empty").refused(2, &["empty", "no recorded answers"]);
    replay("broken").refused(2, &["broken", "a.json"]);
    let import = |answer: &str| {
        place.run(&["cassette", "import", answer, "--transcripts", ".", "--to", "c"])
    };
    place.write("answers/a.json", "{}");
    place.write("answers/b.json", "{\"transcript\": \"gone.txt\", \"arguments\": {}}");
    let output = import("answers");
    assert_eq!(output.code, 1);
    for words in ["a.json: not an answer file", "b.json: its transcript", "gone.txt"] {
        assert!(output.stderr.contains(words), "{}", output.stderr);
    }
}

#[test]
fn stale_cassette_fails_its_slices_and_says_what_differs() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("in/s.jsonl", claude(0..1));
    let answer = serde_json::json!({
        "transcript": "s.jsonl", "arguments": super::input::extracted(&claude(0..1)),
    });
    place.write("a.json", answer.to_string());
    let made =
        place.run(&["cassette", "import", "a.json", "--transcripts", "in", "--to", "cassette"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    place.json(&["replay", "in", "--cassette", "cassette", "--json"]);
    place.write("in/s.jsonl", claude(3..5));
    let output = place.run(&["replay", "in", "--cassette", "cassette", "--json"]);
    assert_eq!(output.code, 1);
    balanced(&output.json());
    assert!(output.json()["failures"]["stale"]["slices"].as_u64().unwrap() > 0);
    assert_eq!(stub.count(), 0, "a cassette asks nobody");
}

#[test]
fn gate_takes_any_bytes() {
    let place = Place::new();
    place.write("odd.txt", b"a \xff\xfe b\r\npassword = hunter22-long\r\n\xc3\x28\n");
    let output = place.run(&["redact", "odd.txt"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.starts_with("a ") && !output.stdout.contains("hunter22"));
    let mut child = place
        .command(&["redact", "-", "--only", "private"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    use std::io::Write;
    child.stdin.take().unwrap().write_all(b"x\n<private>\ny\n</private>\nz\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "x\nz\n");
    assert!(!String::from_utf8(output.stderr).unwrap().contains("UTF-8"));
    let told = place.run(&["redact", "odd.txt"]).stderr;
    assert!(told.contains("odd.txt:1: not UTF-8"), "{told}");
    place.run(&["redact", "gone.txt"]).refused(1, &["gone.txt"]);
}

#[test]
fn private_tag_that_hides_nothing_is_told() {
    let place = Place::new();
    let said =
        "user: my <private> pin is long\nassistant: well\nuser: - <private>zebra9\nmore zebra9\n";
    place.write("s.md", said);
    let totals = place.json(&["replay", "s.md", "--format", "plain", "--dry-run", "--json"]);
    assert_eq!(totals["findings"]["private-mention"], 1, "{totals}");
    assert_eq!(totals["masked"]["private"], 1, "{totals}");
    place.write("t.md", "my <private> pin is long\n- <private>zebra9\nmore zebra9\n");
    let told = place.run(&["redact", "t.md"]);
    assert!(told.stderr.contains("1 tag <private> without </private>"), "{}", told.stderr);
    assert!(told.stdout.contains("my <private> pin") && !told.stdout.contains("zebra9"));
}
