//! Valid and invalid gold files, their messages, and redaction.

use super::super::score::score;
use super::super::score::tests::{record, request};
use super::*;
use crate::domain::RecordState;

/// The example key of the vendor's documentation.
const KEY: &str = "AKIAIOSFODNN7EXAMPLE";

fn read(text: &str) -> Result<Gold, Finding> {
    Gold::read(text, &Gate::new(&[]))
}

/// Line and message of the finding about an invalid file.
#[track_caller]
fn wrong(text: &str) -> (u32, String) {
    let finding = read(text).expect_err(text);
    assert_eq!(finding.rule, "bad-gold");
    (finding.line, finding.detail.clone())
}

/// A file with one decision that has these additional fields.
fn with(fields: &str) -> String {
    let item = r#""id": "d", "kind": "decision", "importance": "core", "statement": "s""#;
    format!("{{\"must\": [\n{{{item}\n{fields}}}]}}")
}

#[test]
fn what_is_no_gold_is_a_finding_that_says_what_where_and_what_is_expected() {
    for text in ["", "[]", "{}", r#"{"must": [{"id": "a"}]}"#] {
        wrong(text);
    }
    let (line, detail) = wrong("{\"must\":\n 3}");
    assert_eq!((line, &*detail), (2, "column 2: invalid type: integer `3`, expected a sequence"));
    let (line, detail) = wrong(&with(", \"trems\": []"));
    assert_eq!(line, 3);
    assert!(detail.starts_with("column 9: unknown field `trems`, expected one of `id`, `kind`"));
    assert!(detail.contains("`terms`"), "{detail}");
    let (_, detail) = wrong("{\"must\": [], \"mustnt\": []}");
    assert!(detail.contains("unknown field `mustnt`") && detail.contains("`must_not`"), "{detail}");
    let (line, detail) = wrong(&with(", \"fields\": {\"chosen\": 3}"));
    assert_eq!(line, 3);
    assert!(detail.ends_with("a text or a list of texts"), "{detail}");
    let (_, detail) = wrong(&with("").replace("decision", "decison"));
    assert!(detail.contains("unknown variant `decison`, expected one of `decision`"), "{detail}");
    let (_, detail) = wrong(&with("").replace("core", KEY));
    assert!(!detail.contains(KEY) && detail.contains("`useful`"), "{detail}");
}

#[test]
fn what_cannot_be_meant_so_is_a_finding() {
    let wrong = |text: &str| wrong(text).1;
    let similarity = wrong(r#"{"must": [], "similarity": 1.5}"#);
    assert_eq!(similarity, "similarity 1.5: expected a number from 0 to 1");
    let fields = wrong(&with(r#", "fields": {"choosen": "x"}"#));
    let expected = "d: fields.choosen: expected one of chosen, rationale, options for a decision";
    assert_eq!(fields, expected);
    let twice = r#"{"must": [], "must_not": [{"id": "n", "terms": []}, {"id": "n", "terms": []}]}"#;
    assert_eq!(wrong(twice), "must_not: duplicate id n: expected unique ids");
    let item = with("");
    let item = item.trim_start_matches("{\"must\": [").trim_end_matches("]}");
    let twice = wrong(&format!("{{\"must\": [{item}, {item}]}}"));
    assert_eq!(twice, "must: duplicate id d: expected unique ids");
    let outcome = wrong(&with(r#", "succeeded": true"#));
    assert_eq!(outcome, "d: succeeded: expected only for an attempt, and this is a decision");
    let empty = wrong(&with(r#", "terms": [["a"], []]"#));
    assert_eq!(empty, "d: terms[1]: is empty: expected at least one alternative");
    let private = wrong(&with(r#", "terms": [["a", "<private>b</private>"]]"#));
    assert!(private.starts_with("d: terms[0]: has an empty term"), "{private}");
    let empty = wrong(r#"{"must": [], "must_not": [{"id": "n", "terms": [[" "]]}]}"#);
    assert!(empty.starts_with("n: terms[0]: has an empty term"), "{empty}");
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_gold_file() {
    assert_eq!(read("\u{feff}{\"must\": []}"), Ok(Gold::default()));
}

#[test]
fn what_is_shown_passed_the_gate_and_is_compared_as_records_are() {
    let gate = Gate::new(&[]);
    let text = format!(
        r#"{{"must": [
            {{"id": "a", "kind": "request", "importance": "core", "statement": "use {KEY} <private>of Anna</private>",
             "terms": [["use {KEY}"]], "quote": "use {KEY}"}},
            {{"id": "b", "kind": "request", "importance": "core", "statement": "s", "fields": {{"summary": "drop {KEY}"}}}}],
        "must_not": [{{"id": "n", "statement": "{KEY}", "terms": [["{KEY}"]]}}]}}"#
    );
    let gold = read(&text).unwrap();
    let shown = format!("{:?} {}", gold.items, gold.forbidden[0].statement);
    assert!(!shown.contains(KEY) && !shown.contains("Anna"), "{shown}");
    let said = |text: &str| record(request(text), RecordState::Staged);
    let masked = |text: &str| said(gate.redact(text).as_str());
    let found = score(&gold, &[masked(&format!("use {KEY}")), masked(&format!("drop {KEY}"))]);
    assert_eq!((found.missed.len(), found.violated.len()), (0, 0), "{found:?}");
    let leaked = score(&gold, &[said(&format!("keep {KEY}"))]);
    assert_eq!(leaked.violated.len(), 1, "a key that the gate let through is seen");
}
