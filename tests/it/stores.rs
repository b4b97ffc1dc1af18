//! The same on a file and on a server, as whole processes.

use super::input::claude;
use super::place::{Place, balanced, count};
use super::stub::{Answer, Stub};
use serde_json::Value;

const REPLAY: [&str; 3] = ["replay", "s.jsonl", "--json"];

/// JSON without the times of the runs.
fn timeless(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            // Which store was used is all that may differ.
            fields.remove("store");
            for (name, field) in fields {
                let time = ["extracted_at", "finished_at"].contains(&name.as_str());
                *field = if time { Value::Null } else { timeless(field.take()) };
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = timeless(item.take())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    value
}

/// Everything that is printed of the shipped sessions, replayed twice, and once more with slices of
/// another length, so that runs are replaced.
fn printed(place: &mut Place) -> Vec<String> {
    let root = env!("CARGO_MANIFEST_DIR");
    let sessions = format!("{root}/examples/sessions");
    let cassette = format!("{root}/examples/cassette");
    let replay = ["replay", &sessions, "--cassette", &cassette, "--json"];
    let mut printed = vec![place.json(&replay), place.json(&replay)];
    let first = place.json(&["records", "runs", "--json"]);
    let staged = place.json(&["records", "--json"]);
    printed.push(place.json(&["why", staged[0]["id"].as_str().unwrap(), "--json"]));
    place.set("ANNALIST__SLICE__TOOL_TOKENS", "90");
    let output = place.run(&replay);
    assert_ne!(output.code, 2, "{}", output.stderr);
    printed.push(output.json());
    let then = place.json(&["records", "runs", "--json"]);
    assert_ne!(first, then);
    let run = |list: &Value, n: usize| list[n]["run"].as_str().unwrap().to_owned();
    let diff = ["records", "diff", &run(&then, 0), &run(&then, 1), "--json"];
    printed.extend([place.json(&diff), first, staged, then]);
    for args in [&["status", "--json"][..], &["records", "--state", "replaced", "--json"]] {
        printed.push(place.json_with(place.run(args).code, args));
    }
    let export = place.run(&["records", "export"]).stdout;
    printed.extend(export.lines().map(|line| serde_json::from_str(line).unwrap()));
    printed.into_iter().map(|value| timeless(value).to_string()).collect()
}

#[test]
fn output_is_the_same_on_both_stores() {
    let (mut file, Some(mut server)) = (Place::new(), Place::new().on_server()) else { return };
    let (of_file, of_server) = (printed(&mut file), printed(&mut server));
    assert!(of_file.len() > 20);
    for (file, server) in of_file.iter().zip(&of_server) {
        assert_eq!(file, server);
    }
    assert_eq!(of_file.len(), of_server.len());
    assert!(!server.database().exists());
}

fn prepared(stub: &Stub) -> Option<Place> {
    let place = Place::with_endpoint(stub.url()).on_server()?;
    place.write("s.jsonl", claude(0..4));
    Some(place)
}

/// As without a mishap: all is there, nothing was asked twice but what was not journaled.
#[track_caller]
fn goes_on(place: &Place, stub: &Stub, undisturbed: &(Vec<String>, usize)) {
    let journaled = place.number("SELECT count(*) FROM journal") as usize;
    let seen = stub.count();
    let totals = place.json(&REPLAY);
    balanced(&totals);
    assert_eq!(count(&totals, "/coverage/pending"), 0);
    assert_eq!(place.export(), undisturbed.0);
    assert_eq!(stub.count() - seen, undisturbed.1 - journaled, "nothing is paid for twice");
}

fn undisturbed() -> Option<(Vec<String>, usize)> {
    let stub = Stub::good();
    let place = prepared(&stub)?;
    balanced(&place.json(&REPLAY));
    Some((place.export(), stub.count()))
}

#[test]
fn killed_when_any_answer_has_just_been_sent_it_goes_on_from_a_server() {
    let Some(undisturbed) = undisturbed() else { return };
    for last in 1..=undisturbed.1 {
        let stub = Stub::good();
        let Some(place) = prepared(&stub) else { return };
        let running = place.start(&REPLAY);
        stub.until(last);
        running.kill();
        place.until_nobody_writes();
        goes_on(&place, &stub, &undisturbed);
    }
}

#[test]
fn a_server_that_went_away_meanwhile_is_found_again() {
    let Some(undisturbed) = undisturbed() else { return };
    let stub = Stub::new(|ask| if ask.number % 2 == 0 { Answer::Hold } else { ask.good() });
    let Some(place) = prepared(&stub) else { return };
    let running = place.start(&REPLAY);
    stub.until(2);
    place.cut_connections();
    stub.release();
    let output = running.wait();
    assert_eq!(output.code, 0, "{}", output.stderr);
    balanced(&output.json());
    assert_eq!(place.export(), undisturbed.0);
    assert_eq!(stub.count(), undisturbed.1);
}

#[test]
fn a_password_is_in_nothing_that_is_said() {
    let mut place = Place::new();
    for url in ["postgres://u:hunter2@127.0.0.1:1/d", "postgres://u:hunter2@h:port/d"] {
        place.set("ANNALIST__STORE__URL", url);
        place.set("ANNALIST_LOG", "debug");
        let output = place.run(&["status"]);
        assert_ne!(output.code, 0);
        assert!(!format!("{output:?}").contains("hunter2"), "{output:?}");
        assert_eq!(output.stderr.lines().filter(|line| line.starts_with("error")).count(), 1);
    }
}
