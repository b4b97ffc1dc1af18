//! Retrospectives, as a process: made by rule of what stands, written once, and forgotten with their records.

use super::judging::{CHOICES, opposed, place, talk};
use super::place::{Place, count};
use super::stub::{Answer, Stub};
use serde_json::{Value, json};

const REFLECT: [&str; 3] = ["memory", "reflect", "--json"];

/// The texts of the first retrospective.
fn notes(told: &Value) -> Vec<&str> {
    let notes = told[0]["notes"].as_array().unwrap().iter();
    notes.map(|it| it["headline"].as_str().unwrap()).collect()
}

#[test]
fn records_are_looked_back_at_by_rule_and_no_model_is_asked() {
    let stub = Stub::good();
    let mut place = opposed(&stub);
    place.set("ANNALIST__CONSOLIDATE__MODEL", "stub-1");
    let asked = stub.count();
    let told = place.json(&REFLECT);
    let keys: Vec<&String> = told[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["namespace", "sessions", "kinds", "failed", "notes"]);
    assert_eq!(told[0]["namespace"], "home/dev/roofs");
    assert_eq!(notes(&told), ["Postgres", "Redis"]);
    assert_eq!(stub.count(), asked);
    for flag in ["--model", "--no-model", "--cassette"] {
        let unexpected = format!("unexpected argument '{flag}'");
        place.run(&["memory", "reflect", flag]).refused(2, &[&unexpected]);
    }
    let none = place.run(&["memory", "reflect", "--since", "2030-01-01"]);
    assert!(none.code == 0 && none.stderr.contains("no records"), "{}", none.stderr);
}

#[test]
fn a_bill_for_lessons_of_an_earlier_version_is_read() {
    let place = opposed(&Stub::good());
    let bill = "INSERT INTO bills (digest, at, namespace, model, prompt_tokens, cached_tokens,
        completion_tokens, cost_micros, purpose) VALUES (x'01', 1, 'home/dev/roofs', 'm', 9, 0, 1, 7, 'reflect')";
    place.sql().execute(bill, []).unwrap();
    let status = place.json(&["status", "--json"]);
    assert_eq!(count(&status, "/spent/calls"), 3, "{status}");
    let line = status["bill"].as_array().unwrap().iter().find(|it| it["for"] == "reflect").unwrap();
    assert_eq!((&line["namespace"], &line["calls"]), (&json!("home/dev/roofs"), &json!(1)));
    assert!(place.run(&["status", "--all"]).stdout.contains("reflect"));
}

#[test]
fn the_same_notes_are_written_once_and_what_a_person_changed_stays() {
    let place = opposed(&Stub::good());
    place.run(&["memory", "init"]);
    place.json(&["memory", "sync", "--namespace", "home/dev/roofs", "--json"]);
    let args = ["memory", "reflect", "--write", "--namespace", "home/dev/roofs"];
    let retros = || {
        let files = place.files().into_iter();
        let retros = files.filter(|(path, _)| path.to_str().unwrap().ends_with("-retro.md"));
        retros.map(|(path, bytes)| (path, String::from_utf8(bytes).unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(place.run(&args).code, 0);
    let first = retros();
    assert!(place.run(&args).stderr.contains("is up to date"));
    assert_eq!(retros(), first);
    let text = &first[0].1;
    assert!(text.contains("Made from the records by rule.\n\n## Architecture\n- Postgres\n"));
    assert_eq!(text.matches("<!-- @tag: record-").count(), 2, "{text}");
    let lint = place.json(&["memory", "lint", "--format", "json"]);
    assert_eq!(lint["errors"], 0, "{lint}");
    place.write(first[0].0.to_str().unwrap(), format!("{text}\nMine.\n"));
    assert_eq!(place.run(&args).code, 0);
    let now = retros();
    assert_eq!(now.len(), 2);
    assert!(now.iter().any(|(path, text)| *path == first[0].0 && text.ends_with("\nMine.\n")));
    // What was made of a record goes with it, in every file; what a person wrote beside it stays.
    let told = place.json(&REFLECT);
    let record = told[0]["notes"][0]["records"][0].as_str().unwrap();
    let forgot = place.json(&["forget", "--record", record, "--yes", "--json"]);
    assert_eq!(forgot["proof"]["left"].get("files"), None, "{forgot}");
    for (path, text) in retros() {
        assert!(!text.contains("Postgres") && text.contains("- Redis\n"), "{text}");
        assert_eq!(text.ends_with("\nMine.\n"), path == first[0].0);
    }
}

#[test]
fn only_standing_records_are_looked_back_at() {
    let stub = Stub::new(|ask| match ask.slice().contains("tar over slate") {
        true => Answer::Call(json!({
            "decisions": [{"options": ["tar"], "chosen": "tar", "rationale": "see `roof/none.rs`"}],
            "discussions": [], "attempts": [], "requests": [],
        })),
        false => ask.good(),
    });
    let place = Place::with_endpoint(stub.url());
    let said = [CHOICES[0], CHOICES[1], "We chose tar over slate because the roof is flat."];
    for (day, words) in (1..).zip(said) {
        place.write(&format!("t/s{day}.jsonl"), talk("roofs", day, ("user", words)));
    }
    place.json(&["replay", "t", "--json"]);
    assert_eq!(place.number("SELECT count(*) FROM records WHERE state = 'quarantined'"), 1);
    place.json(&["consolidate", "--json"]);
    let take_back = "UPDATE memories SET state = 'retracted',
        body = json_set(body, '$.state', 'retracted') WHERE body LIKE '%restart%'";
    assert_eq!(place.sql().execute(take_back, []).unwrap(), 1);
    assert_eq!(notes(&place.json(&REFLECT)), ["Redis"]);
}

#[test]
fn records_that_an_undo_set_aside_are_not_looked_back_at() {
    let place = place(&Stub::good(), &[("user", CHOICES[0])]);
    let plan = place.json(&["consolidate", "--json"])[0]["plan"]["id"].clone();
    assert_eq!(notes(&place.json(&REFLECT)), ["Redis"]);
    place.json(&["consolidate", "--undo", plan.as_str().unwrap(), "--json"]);
    assert_eq!(place.json(&REFLECT), json!([]));
}

#[test]
fn each_namespace_is_looked_back_at_by_itself() {
    let place = place(&Stub::good(), &[("user", CHOICES[0])]);
    place.write("t/cellars.jsonl", talk("cellars", 11, ("user", CHOICES[1])));
    place.json(&["replay", "t", "--json"]);
    let told = place.json(&REFLECT);
    let found = told.as_array().unwrap().iter();
    let found: Vec<(&Value, &Value)> =
        found.map(|it| (&it["namespace"], &it["notes"][0]["headline"])).collect();
    let expected = [("home/dev/cellars", "Postgres"), ("home/dev/roofs", "Redis")];
    assert_eq!(json!(found), json!(expected));
}

#[test]
fn a_project_that_was_moved_is_looked_back_at_and_its_new_namespace_is_told() {
    let place = Place::with_examples();
    let namespace = |it: &Place| it.json(&["namespace", "list", "--json"])[0]["namespace"].clone();
    let name = namespace(&place);
    let name = name.as_str().unwrap();
    place.run(&["memory", "init"]);
    place.json(&["memory", "sync", "--namespace", name, "--json"]);
    let moved = place.moved();
    moved.run(&["memory", "sync"]).refused(2, &[&format!("`annalist namespace move '{name}' ")]);
    let written = moved.run(&["memory", "reflect", "--write"]);
    assert_eq!(written.code, 0, "{}", written.stderr);
    assert!(written.stdout.starts_with(name) && written.stderr.contains("wrote"), "{written:?}");
    // Another project that shares the store was not moved.
    let other = moved.copied();
    std::fs::remove_dir_all(other.path(".claude")).unwrap();
    other.run(&["memory", "init"]);
    let none = other.run(&["memory", "reflect", "--write"]);
    assert!(none.stderr.contains("no records to look back at"), "{}", none.stderr);
}
