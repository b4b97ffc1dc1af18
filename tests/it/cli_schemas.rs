//! The JSON of every command keeps to its published schema.

use super::place::Place;
use serde_json::{Value, json};

/// Checks what a command printed against the entry of `schemas/cli.v1.json`; `annalist schema --check` compares
/// that file with the program.
#[track_caller]
pub(crate) fn check(place: &Place, schema: &str, printed: &Value) {
    let document = place.json(&["schema", "cli.v1.json"]);
    let definitions = &document["$defs"];
    assert!(definitions[schema].is_object(), "no schema `{schema}`");
    let whole = json!({ "$ref": format!("#/$defs/{schema}"), "$defs": definitions });
    let validator = jsonschema::validator_for(&whole).unwrap();
    let problems: Vec<String> = validator
        .iter_errors(printed)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(problems.is_empty(), "{schema}: {problems:?}");
}

/// Runs a command that prints JSON, whatever its exit code says, and checks it.
#[track_caller]
fn run(place: &Place, schema: &str, args: &[&str]) -> Value {
    let printed = place.run(args).json();
    check(place, schema, &printed);
    printed
}

/// Some text of a value, such as an id.
#[track_caller]
fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn records_and_sessions_keep_to_their_schemas() {
    let place = Place::with_examples();
    let records = run(&place, "records-list", &["records", "--json"]);
    let id = text(&records[0]["id"]);
    run(&place, "records-show", &["records", "show", id, "--json"]);
    run(&place, "why", &["why", id, "--json"]);
    run(&place, "open", &["open", "--all", "--json"]);
    run(&place, "recent", &["week", "--json"]);
    run(&place, "records-cards", &["records", "cards", "--json"]);
    let runs = run(&place, "records-runs", &["records", "runs", "--json"]);
    let run_id = text(&runs[0]["run"]);
    run(&place, "records-diff", &["records", "diff", run_id, run_id, "--json"]);
    let session = text(&records[0]["session"]);
    run(&place, "card", &["card", "--session", session, "--format", "json"]);
    run(&place, "dialog", &["dialog", "--session", session, "--json"]);
    run(&place, "conversation", &["conversation", "--session", session, "--json"]);
    run(&place, "context", &["context", "--session", session, "--json"]);
    run(&place, "forget-dry-run", &["forget", "--session", session, "--dry-run", "--json"]);
    run(&place, "forget", &["forget", "--session", session, "--yes", "--json"]);
}

#[test]
fn memory_keeps_to_its_schemas() {
    let place = Place::with_examples();
    place.run(&["memory", "init"]);
    run(&place, "consolidate", &["consolidate", "--dry-run", "--json"]);
    run(&place, "consolidate", &["consolidate", "--json"]);
    let namespace =
        text(&run(&place, "memory-list", &["memory", "list", "--json"])[0]["namespace"]).to_owned();
    let log = run(&place, "consolidate-log", &["consolidate", "log", "--json"]);
    let sync = ["memory", "sync", "--namespace", &namespace, "--json"];
    run(&place, "memory-sync", &sync);
    run(&place, "publish", &["publish", "--json"]);
    run(&place, "namespace-list", &["namespace", "list", "--json"]);
    run(&place, "memory-render", &["memory", "render", "--namespace", &namespace, "--json"]);
    let list = run(&place, "memory-list", &["memory", "list", "--all", "--json"]);
    let id = text(&list[0]["id"]);
    run(&place, "memory-show", &["memory", "show", id, "--json"]);
    run(&place, "memory-history", &["memory", "history", id, "--json"]);
    run(&place, "memory-list", &["memory", "at", "2099-01-01", "--json"]);
    run(&place, "memory-lint", &["memory", "lint", "--format", "json"]);
    run(&place, "search", &["search", "--all", "--json"]);
    run(&place, "memory-search", &["memory", "search", "queue", "--json"]);
    run(&place, "memory-reflect", &["memory", "reflect", "--json"]);
    let plan = text(&log.as_array().unwrap().last().unwrap()["plan"]);
    run(&place, "consolidate-undo", &["consolidate", "--undo", plan, "--json"]);
}

#[test]
fn the_queue_and_its_workers_keep_to_their_schemas() {
    let place = Place::new();
    let root = env!("CARGO_MANIFEST_DIR");
    let [sessions, cassette] =
        ["sessions", "cassette"].map(|name| format!("{root}/examples/{name}"));
    run(&place, "replay", &["replay", &sessions, "--dry-run", "--json"]);
    let enqueued = run(&place, "enqueue", &["enqueue", &sessions, "--flush", "--json"]);
    assert!(enqueued["jobs"].as_u64() > Some(0), "{enqueued}");
    let jobs = run(&place, "jobs-list", &["jobs", "--json"]);
    let id = text(&jobs[0]["job"]);
    run(&place, "status", &["status", "--json"]);
    run(&place, "jobs-list", &["jobs", id, "--json"]);
    run(&place, "jobs-change", &["jobs", "cancel", id, "--json"]);
    run(&place, "jobs-change", &["jobs", "retry", id, "--json"]);
    run(&place, "worker", &["worker", "--drain", "--cassette", &cassette, "--json"]);
    run(&place, "jobs-list", &["jobs", id, "--json"]);
    run(&place, "jobs-change", &["jobs", "drop", id, "--json"]);
    run(&place, "replay", &["replay", &sessions, "--cassette", &cassette, "--json"]);
    let status = run(&place, "status", &["status", "--json"]);
    assert!(!status["sessions"].as_array().unwrap().is_empty(), "{status}");
}

#[test]
fn prompt_tests_and_the_endpoint_keep_to_their_schemas() {
    let mut place = Place::with_examples();
    place.set("ANNALIST__MODEL__BASE_URL", "http://127.0.0.1:9/v1");
    run(&place, "doctor", &["doctor", "--json"]);
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cases");
    run(&place, "test", &["test", cases, "--json"]);
}
