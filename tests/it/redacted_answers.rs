//! Redaction of a model's answers: a private tag in one claim never reaches into another.

use super::input::claude;
use super::place::{Place, count, records};
use super::stub::{Answer, Stub};
use serde_json::{Value, json};

/// Four claims with an opening tag in the first and a closing one in the third.
fn tagged() -> Value {
    let decision = |n: usize, why: &str| {
        json!({"options": [format!("depot-{n}"), format!("cellar-{n}")],
            "chosen": format!("depot-{n}"), "rationale": why})
    };
    let claims = [
        decision(0, "damp-0 ruins paper <private> the vault code is 7714"),
        decision(1, "damp-1 ruins paper"),
        decision(2, "damp-2 </private> ruins paper"),
        decision(3, "damp-3 ruins paper"),
    ];
    json!({"decisions": claims, "discussions": [], "attempts": [], "requests": []})
}

/// Replays four decisions, answered by `answer`, and returns what was extracted.
fn replayed(answer: impl Fn(&Value) -> Answer + Send + Sync + 'static) -> (Place, Vec<Value>) {
    let stub = Stub::new(move |_| answer(&tagged()));
    let mut place = Place::with_endpoint(stub.url());
    place.set("ANNALIST__SLICE__TOKENS", "100000");
    place.write("s.jsonl", claude(0..4));
    let totals = place.json(&["replay", "s.jsonl", "--json"]);
    // The tag itself is not in the transcript, so that its claim is quarantined.
    assert_eq!((records(&totals), count(&totals, "/quarantined")), (3, 1), "{totals}");
    assert_eq!(stub.count(), 1);
    let shown = place.json(&["records", "--json"]);
    (place, shown.as_array().unwrap().clone())
}

#[track_caller]
fn check_claims(place: &Place, shown: &[Value]) {
    let text = Value::from(shown.to_vec()).to_string();
    for n in [0, 1, 3] {
        assert!(text.contains(&format!("depot-{n}")), "claim {n}: {text}");
    }
    assert!(!place.export().join("\n").contains("7714"), "the rest of the string is hidden");
    let store = std::fs::read(place.database()).unwrap();
    let log = std::fs::read(place.path(".annalist/annalist.db-wal")).unwrap_or_default();
    for bytes in [store, log] {
        assert!(!String::from_utf8_lossy(&bytes).contains("7714"), "the journal is redacted");
    }
}

#[test]
fn tag_in_one_claim_of_a_tool_call_leaves_the_others() {
    let (place, shown) = replayed(|claims| Answer::Call(claims.clone()));
    check_claims(&place, &shown);
}

#[test]
fn tag_in_one_claim_of_encoded_arguments_leaves_the_others() {
    let (place, shown) =
        replayed(|claims| Answer::CallText(json!({"arguments": claims.to_string()}).to_string()));
    check_claims(&place, &shown);
}
