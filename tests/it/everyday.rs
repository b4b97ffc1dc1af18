//! Everyday commands: what is open, what was said of late, and lists that begin with the newest.

use super::place::Place;
use serde_json::Value;

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

#[test]
fn records_are_listed_with_project_and_session_and_the_newest_first() {
    let place = Place::with_examples();
    let records = place.json(&["records", "--json"]);
    let at: Vec<&str> = list(&records).iter().filter_map(|it| it["at"].as_str()).collect();
    assert!(at.len() > 3 && at.is_sorted_by(|one, next| one >= next), "{at:?}");
    let newest = place.json(&["records", "--limit", "2", "--json"]);
    assert_eq!(list(&newest), &list(&records)[..2]);
    let session = records[0]["session"].as_str().unwrap();
    let of_session = place.json(&["records", "--session", &session[..10], "--json"]);
    assert!(
        list(&of_session).iter().all(|it| it["session"] == session)
            && !list(&of_session).is_empty()
    );
    let namespace = records[0]["namespace"].as_str().unwrap();
    let printed = place.run(&["records", "--namespace", namespace]).stdout;
    let head = printed.lines().next().unwrap();
    assert!(head.contains("PROJECT") && head.contains("SESSION"), "{head}");
    let line = printed.lines().nth(1).unwrap();
    assert!(line.contains(namespace) && line.contains(&session[..10]), "{line}");
}

#[test]
fn a_replay_shows_the_records_of_what_it_read_and_of_nothing_else() {
    let place = Place::new();
    let root = env!("CARGO_MANIFEST_DIR");
    let cassette = format!("{root}/examples/cassette");
    let shown = |name: &str| {
        let path = format!("{root}/examples/sessions/{name}");
        let told = place.run(&["replay", &path, "--cassette", &cassette, "--show"]);
        assert_eq!(told.code, 0, "{}", told.stderr);
        told.stdout.split_once("\n\n").unwrap().1.to_owned()
    };
    let queue = shown("claude-code-queue.jsonl");
    assert_eq!(queue, place.run(&["records"]).stdout, "a new store has nothing else");
    let retro = shown("plain-retro.txt");
    assert!(retro.lines().count() > 1 && !retro.contains("ledger"), "{retro}");
    assert_eq!(shown("claude-code-queue.jsonl"), queue, "although it was read before");
}

#[test]
fn what_is_open_is_listed_the_oldest_first_with_where_it_was_said() {
    let place = Place::with_examples();
    let open = place.json(&["open", "--all", "--json"]);
    assert!(!list(&open).is_empty() && list(&open).iter().all(|it| it["kind"] != "decision"));
    let at: Vec<&str> = list(&open).iter().filter_map(|it| it["at"].as_str()).collect();
    assert!(at.is_sorted(), "{at:?}");
    let printed = place.run(&["open", "--all"]).stdout;
    for it in list(&open) {
        let said = format!("{}:{}", it["path"].as_str().unwrap(), it["line"]);
        assert!(printed.contains(&said), "no `{said}` in: {printed}");
    }
    let first = place.run(&["open", "--all", "--limit", "1"]).stdout;
    assert_eq!(first.lines().next(), printed.lines().next());
    assert!(first.contains("more: --limit"), "{first}");
    for none in [&["open", "--limit", "0"][..], &["week", "--limit", "0"]] {
        place.run(none).refused(2, &["--limit"]);
    }
}

#[test]
fn the_week_is_told_by_project_and_deed() {
    let place = Place::new();
    let root = env!("CARGO_MANIFEST_DIR");
    let path = format!("{root}/examples/sessions/plain-retro.txt");
    let cassette = format!("{root}/examples/cassette");
    place.json(&["replay", &path, "--cassette", &cassette, "--namespace", "retro", "--json"]);
    for day in ["today", "week"] {
        let told = place.run(&[day]);
        let line = "1 undated conversation is not shown: `annalist records` lists all";
        assert_eq!((told.code, told.stdout.as_str()), (0, ""));
        assert_eq!(told.stderr.lines().last(), Some(line));
        assert_eq!(list(&place.json(&[day, "--json"])).len(), 0);
    }
    for list in [&["records"][..], &["open", "--all"], &["search", "--all"]] {
        let printed = place.run(list).stdout;
        assert!(printed.lines().skip(1).any(|line| line.contains("–  ")), "{list:?}: {printed}");
    }
    // As if it had been said when it was read.
    let dated = "UPDATE records SET at = (SELECT finished_at FROM runs WHERE no = run_no)";
    assert!(place.sql().execute(dated, []).unwrap() > 0);
    let told = place.json(&["week", "--json"]);
    assert!(!list(&told).is_empty(), "{told}");
    let printed = place.run(&["week"]).stdout;
    assert_eq!(printed.lines().next(), Some("retro"), "{printed}");
    let first = |word: &str| printed.find(&format!("  {word} "));
    assert!(first("decided") < first("asked") || first("asked").is_none(), "{printed}");
    let elsewhere = place.run(&["week", "--namespace", "none"]);
    assert_eq!((elsewhere.code, elsewhere.stdout.as_str()), (0, ""));
    assert!(elsewhere.stderr.contains("no records for these days"), "{}", elsewhere.stderr);
}

#[test]
fn every_list_tells_an_attempt_that_failed_from_one_that_succeeded() {
    let place = Place::with_examples();
    let dated = "UPDATE records SET at = (SELECT finished_at FROM runs WHERE no = run_no)";
    place.sql().execute(dated, []).unwrap();
    place.run(&["consolidate"]);
    let failed = place.json(&["search", "--all", "--failed", "--json"]);
    assert!(!list(&failed).is_empty(), "no failed attempt");
    assert!(list(&failed).iter().all(|it| it["succeeded"] == false), "{failed}");
    let search = ["search", "--all", "--kind", "attempt", "--limit", "99", "--format"];
    for format in ["csv", "md"] {
        let table = place.run(&[&search[..], &[format]].concat()).stdout;
        assert_eq!(table.matches("attempt ✗").count(), list(&failed).len(), "{table}");
        assert!(table.contains("attempt ✓"), "{table}");
    }
    for (command, word) in [("records", "attempt ✗"), ("week", "tried ✗")] {
        let printed = place.run(&[command]).stdout;
        assert!(printed.contains(word), "{command}: {printed}");
    }
    let open = place.json(&["open", "--all", "--json"]);
    let unsolved = list(&open).iter().filter(|it| it["kind"] == "attempt").count();
    let printed = place.run(&["open", "--all"]).stdout;
    assert_eq!(printed.matches("attempt ✗").count(), unsolved, "{printed}");
}

#[test]
fn what_consolidation_discards_was_not_decided_that_week_and_is_not_open() {
    let place = Place::with_examples();
    let dated = "UPDATE records SET at = (SELECT finished_at FROM runs WHERE no = run_no)";
    place.sql().execute(dated, []).unwrap();
    place.run(&["consolidate"]);
    let told = |args: &[&str]| place.json(args).to_string();
    let (week, open) = (["week", "--json"], ["open", "--all", "--json"]);
    let chosen = "a payout is tried 5 times before it goes to dead_jobs";
    let asked = "Quarantine upload.spec.ts with @flaky instead of deleting it.";
    assert!(told(&week).contains(chosen) && told(&open).contains(asked));
    let discarded = "UPDATE dispositions SET disposition = 'discard', memory = NULL WHERE record IN
        (SELECT id FROM records WHERE body LIKE '%' || ?1 || '%')";
    let erased = "DELETE FROM memories WHERE body LIKE '%' || ?1 || '%'";
    for words in [chosen, asked] {
        assert!(place.sql().execute(discarded, [words]).unwrap() > 0);
        place.sql().execute(erased, [words]).unwrap();
    }
    assert!(!told(&week).contains(chosen) && !told(&open).contains(asked));
    let found = place.json(&["search", "payout tried dead_jobs", "--all", "--json"]);
    assert!(list(&found).iter().any(|it| it["headline"] == chosen && it["state"] == "discarded"));
}

#[test]
fn status_says_that_answers_came_from_recordings() {
    let status = Place::with_examples().run(&["status"]).stdout;
    let line = "0 failed; 0 calls, 4 slices answered from recordings";
    assert!(status.lines().any(|it| it.ends_with(line)), "{status}");
}

#[test]
fn memories_are_listed_in_a_persons_words_where_there_are_such() {
    let place = Place::with_examples();
    place.run(&["consolidate"]);
    let id = place.json(&["memory", "list", "--limit", "1", "--json"])[0]["id"].clone();
    let id = id.as_str().unwrap();
    let sql = "UPDATE memories SET body = json_set(body, '$.edited', '- [ ] As a person has it')
        WHERE lower(hex(id)) = ?1";
    assert_eq!(place.sql().execute(sql, [id]).unwrap(), 1);
    let printed = place.run(&["memory", "list"]).stdout;
    let line = printed.lines().find(|line| line.trim_start().starts_with(&id[..10])).unwrap();
    assert!(line.ends_with("  As a person has it"), "{line}");
}

#[test]
fn a_record_is_shown_where_it_was_said_also_when_the_file_is_gone() {
    let place = Place::new();
    let root = env!("CARGO_MANIFEST_DIR");
    let session =
        std::fs::read(format!("{root}/examples/sessions/claude-code-queue.jsonl")).unwrap();
    let path = place.write("claude-code-queue.jsonl", session);
    let cassette = format!("{root}/examples/cassette");
    place.json(&["replay", "claude-code-queue.jsonl", "--cassette", &cassette, "--json"]);
    let record = place.json(&["records", "--kind", "decision", "--json"])[0].clone();
    let id = record["id"].as_str().unwrap();
    let shown = || place.run(&["records", "show", id, "--in-transcript"]);
    let before = shown();
    assert_eq!(before.stderr, "");
    for evidence in list(&record["evidence"]) {
        let words = evidence["words"].as_str().unwrap().lines().next().unwrap();
        assert!(before.stdout.contains(words), "no `{words}` in: {}", before.stdout);
        let place = format!("claude-code-queue.jsonl:{}  ", evidence["line"]);
        assert!(before.stdout.contains(&place), "no `{place}` in: {}", before.stdout);
    }
    assert!(before.stdout.contains(">>") && before.stdout.contains("<<"), "{}", before.stdout);
    std::fs::remove_file(path).unwrap();
    let after = shown();
    assert!(after.stderr.contains("shown from the store"), "{}", after.stderr);
    assert!(after.stdout.contains(">>"), "{}", after.stdout);
}

#[test]
fn days_are_those_of_the_time_zone_of_the_machine() {
    let mut place = Place::with_examples();
    let records = place.json(&["records", "--json"]);
    let late = list(&records).iter().find_map(|it| it["at"].as_str());
    let day = late.unwrap()[..10].to_owned();
    assert!(place.run(&["records"]).stdout.contains(&day));
    // A day ahead of UTC.
    place.set("TZ", "XXX-24");
    let next = place.run(&["records"]).stdout;
    assert!(!next.contains(&day), "{next}");
    assert_eq!(place.json(&["records", "--json"]), records, "JSON is in UTC");
}
