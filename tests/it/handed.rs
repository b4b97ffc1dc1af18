//! Slices as they are handed over, through the whole line.

use super::input::claude;
use super::place::{Place, balanced, count, records};
use super::stub::Stub;
use serde_json::{Value, json};
use std::path::Path;

/// Talk `n` as a hook would hand it over when it is said.
pub(crate) fn document(session: &str, n: usize, from: usize) -> String {
    let entries: Vec<Value> = claude(n..n + 1)
        .lines()
        .map(|line| {
            let record: Value = serde_json::from_str(line).unwrap();
            let content = &record["message"]["content"];
            let text = content.as_str().or_else(|| content[0]["text"].as_str()).unwrap();
            let person = record["type"] == "user";
            let speaker = if person { "person" } else { "assistant" };
            json!({"speaker": speaker, "text": text, "at": record["timestamp"]})
        })
        .collect();
    let document =
        json!({"session": session, "namespace": "roofs", "from": from, "entries": entries});
    document.to_string() + "\n"
}

#[test]
fn replay_knows_enqueued_slices_and_extracts_new_ones() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    let begun = [document("one", 0, 0), document("two", 7, 0), document("one", 1, 2)].concat();
    place.write("handed.jsonl", &begun);
    let totals = place.json(&["replay", "handed.jsonl", "--json"]);
    balanced(&totals);
    assert_eq!((count(&totals, "/sessions"), records(&totals)), (2, 3));
    let asked = count(&totals, "/calls");
    let grown = [begun, document("one", 1, 2), document("one", 2, 4)].concat();
    place.write("handed.jsonl", grown);
    let totals = place.json(&["replay", "handed.jsonl", "--json"]);
    balanced(&totals);
    let calls = count(&totals, "/calls");
    assert!(0 < calls && calls < asked, "{calls} calls, {asked} at first");
    assert_eq!((count(&totals, "/entries"), records(&totals)), (8, 4));
    let listed = place.json(&["records", "--namespace", "roofs", "--json"]);
    assert_eq!(listed.as_array().unwrap().len(), 4, "the document says whose memory it is");
}

#[test]
fn the_shipped_slice_is_read_whole_and_nothing_is_wrong_with_it() {
    let place = Place::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/slice.json");
    let totals = place.json(&["replay", example.to_str().unwrap(), "--dry-run", "--json"]);
    balanced(&totals);
    assert_eq!((count(&totals, "/sessions"), count(&totals, "/entries")), (1, 9));
    assert_eq!(totals["findings"], json!({}));
    let schema = place.json(&["schema", "slice.v1.json"]);
    assert_eq!(schema["title"], "Slice");
}

#[test]
fn a_refused_document_is_reported_by_place_without_its_words() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    let bad = document("one", 1, 2).replace("\"person\"", "\"hush\"");
    place.write("handed.jsonl", [document("one", 0, 0), bad, document("one", 2, 4)].concat());
    let totals = place.json(&["replay", "handed.jsonl", "--json"]);
    balanced(&totals);
    assert_eq!(records(&totals), 2, "the others are taken");
    let status = place.json(&["status", "--json"]);
    let findings = status["sessions"][0]["findings"].to_string();
    assert!(findings.contains("entries[0].speaker: has an unknown name"), "{findings}");
    assert!(findings.contains("missing-entries") && !findings.contains("hush"), "{findings}");
}

#[test]
fn a_nul_that_was_said_is_stored_as_a_mark() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    let said = document("one", 0, 0).replace("Which store", "Which\\u0000 store");
    let named = said.replace("\"session\"", "\"title\":\"a\\u0000b\",\"session\"");
    place.write("handed.jsonl", named);
    balanced(&place.json(&["replay", "handed.jsonl", "--json"]));
    let with = |what: &str| format!("SELECT count(*) FROM {what}");
    assert_eq!(place.number(&with("entries WHERE instr(text, char(0)) > 0")), 0);
    assert_eq!(place.number(&with("sessions WHERE title = 'a' || char(65533) || 'b'")), 1);
}
