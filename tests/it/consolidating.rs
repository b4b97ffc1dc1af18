//! From staged records to memory and back, as a process.

use super::place::Place;
use serde_json::Value;

fn memories(place: &Place) -> Vec<String> {
    let database = place.sql();
    let mut statement = database.prepare("SELECT body FROM memories ORDER BY id").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn every_record_is_dealt_with_once_and_a_second_run_has_nothing_to_do() {
    let place = Place::with_examples();
    let staged = place.json(&["records", "--state", "staged", "--json"]).as_array().unwrap().len();
    let dry = place.json(&["consolidate", "--dry-run", "--json"]);
    assert!(memories(&place).is_empty(), "a dry run changes nothing");
    let done = place.json(&["consolidate", "--json"]);
    assert_eq!(dry, done, "what was announced is what was done");
    let operations = |told: &Value| told["plan"]["operations"].as_array().unwrap().len();
    assert_eq!(done.as_array().unwrap().iter().map(operations).sum::<usize>(), staged);
    let kept = memories(&place);
    assert!(!kept.is_empty());
    assert_eq!(place.json(&["consolidate", "--json"]), Value::Array(vec![]));
    assert_eq!(memories(&place), kept);
    let again = place.run(&["consolidate"]);
    assert_eq!((again.code, again.stdout.as_str()), (0, ""));
    assert!(again.stderr.contains("nothing waits to be consolidated"), "{}", again.stderr);
}

#[test]
fn plans_are_undone_and_made_again_to_the_same_bytes() {
    let place = Place::with_examples();
    place.json(&["consolidate", "--json"]);
    let kept = memories(&place);
    let log = place.json(&["consolidate", "log", "--json"]);
    for plan in log.as_array().unwrap().iter().rev() {
        place.json(&["consolidate", "--undo", plan["plan"].as_str().unwrap(), "--json"]);
    }
    assert!(memories(&place).is_empty());
    place.json(&["consolidate", "--json"]);
    assert_eq!(memories(&place), kept);
    place.run(&["consolidate", "--undo", "0000"]).refused(2, &["no plan begins with `0000`"]);
    let other = place.json(&["consolidate", "log", "--namespace", "none", "--json"]);
    assert_eq!(other, Value::Array(vec![]));
}

#[test]
fn one_namespace_alone_is_consolidated_if_it_is_named() {
    let place = Place::with_examples();
    let done = place.json(&["consolidate", "--namespace", "ledger", "--json"]);
    assert_eq!(done.as_array().unwrap().len(), 1);
    let all = memories(&place);
    assert!(all.iter().all(|body| body.contains("\"namespace\":\"ledger\"")));
    let shown = place.run(&["consolidate", "--dry-run"]);
    assert!(shown.stdout.contains("stocklist") && !shown.stdout.contains("ledger "));
    assert!(shown.stderr.contains("nothing was changed"), "{}", shown.stderr);
}
