use super::*;
use crate::llm::tool::check_strict;
use crate::text::lenient_json::tests::answers;
use proptest::prelude::*;
use serde_json::json;
use std::path::Path;

fn whole(list: &str, elements: Value) -> Value {
    let mut root = json!({"decisions": [], "discussions": [], "attempts": [], "requests": []});
    root[list] = elements;
    root
}

#[track_caller]
fn check(value: Value, claims: usize, problems: &[&str], rules: &[&str]) -> Checked {
    let checked = validate(value);
    assert_eq!(checked.claims.len(), claims, "{checked:?}");
    assert_eq!(checked.problems, problems);
    let found: Vec<&str> = checked.findings.iter().map(|finding| finding.rule.as_ref()).collect();
    assert_eq!(found, rules);
    checked
}

#[test]
fn nothing_worth_keeping_is_an_answer() {
    assert!(check(whole("attempts", json!([])), 0, &[], &[]).shaped);
}

#[test]
fn missing_lists_are_empty() {
    let value = json!({"decisions": [{"options": ["a", "b"], "chosen": "a", "rationale": "c"}]});
    let checked = check(value, 1, &[], &["missing-array"]);
    assert!(checked.findings[0].detail.starts_with("3 missing lists"));
    check(json!({"decisions": [], "attempts": null}), 0, &[], &["missing-array"]);
}

#[test]
fn without_any_list_it_is_no_answer() {
    for value in [json!({}), json!({"records": []}), json!([]), Value::Null, json!("x")] {
        let checked = validate(value);
        assert!(!checked.shaped);
        assert_eq!(checked.problems.len(), 1);
    }
}

#[test]
fn provenance_is_dropped_and_reported() {
    let mut value = whole("discussions", json!([{"topic": "a", "points": ["b"], "timestamp": 3}]));
    value["source"] = json!({"segment_id": "x", "range": [0, 9]});
    value["session_id"] = json!("x");
    value["mood"] = json!("good");
    let checked = check(value, 1, &[], &["model-provenance", "unknown-field"]);
    assert!(checked.findings[0].detail.starts_with("3 fields"));
    assert!(!checked.findings[1].detail.contains("mood"));
}

#[test]
fn every_problem_is_named_at_once() {
    let value = json!({
        "decisions": [
            {"options": ["a"], "chosen": "a"},
            {"options": ["a"], "chosen": "a", "rationale": "b"},
            {"options": "a", "chosen": 3, "rationale": "  "},
            "we chose a",
        ],
        "discussions": {"topic": "x", "points": []},
        "attempts": [{"action": "x", "result": "y", "succeeded": "partial"}],
        "requests": [{"intent": "a", "summary": "b", "target": ["c"]}],
    });
    let expected = [
        "decisions[0].rationale: missing; expected a string",
        "decisions[2].options: expected a list of strings; found a string",
        "decisions[2].chosen: expected a string; found a number",
        "decisions[2].rationale: empty; expected a string",
        "decisions[3]: expected an object with `options`, `chosen` and `rationale`; found a string",
        "discussions: expected a list; found an object",
        "attempts[0].succeeded: expected true or false (a partial success is false; say in `result` which part worked); found a string",
        "requests[0].target: expected a string or null; found a list",
    ];
    check(value, 1, &expected, &[]);
}

#[test]
fn items_are_strings() {
    let value = whole("discussions", json!([{"topic": "a", "points": ["b", 3, " ", null]}]));
    let expected = [
        "discussions[0].points[1]: expected a string; found a number",
        "discussions[0].points[2]: expected a string; found null",
    ];
    check(value, 0, &expected, &["empty-item"]);
}

#[test]
fn texts_are_trimmed_and_one_line_where_one_line_is_meant() {
    let value =
        whole("requests", json!([{"intent": " a\n b ", "target": "  ", "summary": "c\t\td"}]));
    let checked = check(value, 1, &[], &[]);
    let expected = PersonRequest { intent: "a b".into(), target: None, summary: "c d".into() };
    assert_eq!(checked.claims, [Claim::Request(expected)]);
    let value = whole("attempts", json!([{"action": " a\n b ", "result": "c", "succeeded": true}]));
    let expected = Attempt { action: "a\n b".into(), result: "c".into(), succeeded: true };
    assert_eq!(check(value, 1, &[], &[]).claims, [Claim::Attempt(expected)]);
}

#[test]
fn long_texts_are_cut_between_characters() {
    let long = "é".repeat(CLAIM_BYTES_MAX);
    let value = whole("discussions", json!([{"topic": format!("x{long}"), "points": []}]));
    let checked = check(value, 1, &[], &["cut-string"]);
    let topic = checked.claims[0].headline();
    assert!(topic.len() <= CLAIM_BYTES_MAX && topic.len() + 2 > CLAIM_BYTES_MAX);
}

#[test]
fn too_many_claims_are_dropped() {
    let claims = |n: usize| -> Vec<Value> {
        (0..n).map(|n| json!({"topic": n.to_string(), "points": []})).collect()
    };
    let checked = check(
        whole("discussions", json!(claims(CLAIMS_MAX + 7))),
        CLAIMS_MAX,
        &[],
        &["too-many-claims"],
    );
    assert!(checked.findings[0].detail.starts_with("7 "));
}

#[test]
fn too_many_items_are_dropped() {
    let points: Vec<String> = (0..500).map(|n| n.to_string()).collect();
    check(
        whole("discussions", json!([{"topic": "a", "points": points}])),
        1,
        &[],
        &["too-many-items"],
    );
}

#[test]
fn the_same_claim_counts_once() {
    let same = json!({"topic": "a", "points": []});
    check(whole("discussions", json!([same, same, same])), 1, &[], &["duplicate-claim"]);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z ]{0,6}".prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "decisions", "discussions", "attempts", "requests", "options", "chosen", "rationale",
        "topic", "points", "action", "result", "succeeded", "intent", "summary", "target", "x",
    ]);
    leaf.prop_recursive(4, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..5)
                .prop_map(|pairs| pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_comes_is_looked_at(value in any_json(), list in prop::sample::select(LISTS.to_vec())) {
        validate(value.clone());
        let checked = validate(whole(list, value));
        prop_assert!(checked.claims.is_empty() || checked.shaped);
    }

    #[test]
    fn claims_are_what_was_sent(answer in answers()) {
        let checked = validate(answer.clone());
        for claim in &checked.claims {
            for (_, text) in claim.strings() {
                let folded = |text: &str| text.split_whitespace().collect::<String>();
                let sent = strings(&answer);
                prop_assert!(sent.iter().any(|sent| folded(sent) == folded(text)), "{text:?}");
            }
        }
    }
}

fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(members) => members.values().flat_map(strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => vec![],
    }
}

#[test]
fn the_wire_schema_is_strict() {
    let wire = wire_of::<WriteExtracted>();
    assert_eq!(wire["type"], "object");
    check_strict(&wire, "root");
    let target = &wire["properties"]["requests"]["items"]["properties"]["target"];
    assert_eq!(target["type"], json!(["string", "null"]));
}

#[test]
fn fields_keep_their_order() {
    let wire = wire_of::<WriteExtracted>();
    let names = |schema: &Value| -> Vec<String> {
        schema["properties"].as_object().expect("properties").keys().cloned().collect()
    };
    assert_eq!(names(&wire), ["decisions", "discussions", "attempts", "requests"]);
    let decision = &wire["properties"]["decisions"]["items"];
    assert_eq!(names(decision), ["options", "chosen", "rationale"]);
}

#[test]
fn published_schemas_are_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    for (name, content) in schema_files() {
        let published = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
        assert_eq!(published, content, "schemas/{name}: run `annalist schema`, read the change");
    }
}

#[test]
fn full_allows_what_the_wire_demands() {
    let validator = jsonschema::draft202012::new(&full_of::<WriteExtracted>()).expect("a schema");
    let empty = json!({"decisions": [], "discussions": [], "attempts": [], "requests": []});
    assert!(validator.is_valid(&empty));
    let with = |target: Value| {
        let request = json!({"intent": "a", "target": target, "summary": "b"});
        json!({"decisions": [], "discussions": [], "attempts": [], "requests": [request]})
    };
    assert!(validator.is_valid(&with(Value::Null)));
    assert!(validator.is_valid(&with(json!("src/lib.rs"))));
    assert!(!validator.is_valid(&with(json!(""))));
}
