//! Rules of slice documents and of files of them.

use super::document::{ENTRIES_MAX, parse_slice, schema_file};
use crate::domain::{HANDED_BYTES_MAX, Timestamp};
use crate::transcripts::testing::show;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::LazyLock;

static PUBLISHED: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
    let schema = serde_json::from_str(&schema_file().1).unwrap();
    jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
});

fn root(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap_or_default()
}

#[track_caller]
fn check(entries: Value, expected: &[&str]) {
    let text = json!({ "session": "s", "entries": entries }).to_string();
    let handed = parse_slice(text.as_bytes(), None).unwrap();
    assert_eq!(handed.entries.iter().map(show).collect::<Vec<_>>(), expected);
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    let refusal = parse_slice(text.as_bytes(), None).unwrap_err().to_string();
    assert_eq!(refusal, expected);
    assert_eq!(refusal.lines().count(), 1);
}

#[test]
fn the_published_schema_is_the_type() {
    let (name, content) = schema_file();
    let published = root(&format!("schemas/{name}"));
    assert_eq!(published, content, "schemas/{name}: run `just bless`, read the change");
    assert!(content.contains(&format!("at most {HANDED_BYTES_MAX} bytes")));
}

#[test]
fn the_shipped_example_is_what_the_schema_has() {
    let text = root("examples/slice.json");
    assert!(PUBLISHED.is_valid(&serde_json::from_str(&text).unwrap()));
    let handed = parse_slice(text.as_bytes(), None).unwrap();
    assert_eq!((handed.from, handed.closed, handed.priority), (Some(0), true, Some(10)));
    assert_eq!(handed.session.native_id, "kiln-controller-0412");
    assert_eq!(handed.session.started_at, Timestamp::of_rfc3339("2026-04-12T08:30:00Z"));
    assert_eq!(
        show(&handed.entries[3]).split(':').next(),
        Some("tool tool_result bash#c1 failed 101")
    );
}

#[test]
fn kinds_are_what_a_speaker_mostly_says() {
    check(
        json!([
            {"speaker": "person", "text": "a"},
            {"speaker": "assistant", "text": "b"},
            {"speaker": "tool", "text": "c"},
            {"speaker": "web", "text": "d"},
            {"speaker": "client", "text": "e"},
            {"speaker": "client", "kind": "injected", "text": "f"},
        ]),
        &[
            "person prompt: a",
            "assistant text: b",
            "tool tool_result tool#: c",
            "web tool_result tool#: d",
            "client notice: e",
            "client injected: f (injected context)",
        ],
    );
}

#[test]
fn results_are_read_as_in_every_other_format() {
    check(
        json!([
            {"speaker": "assistant", "kind": "tool_call", "tool": "bash", "call_id": "a", "text": "ls"},
            {"speaker": "assistant", "kind": "tool_call", "tool": "WebFetch", "call_id": "b", "text": "u"},
            {"speaker": "tool", "call_id": "b", "text": "page"},
            {"speaker": "tool", "call_id": "a", "text": "Exit code 2\n\u{1b}[31mno"},
            {"speaker": "tool", "tool": "make", "exit_code": 0, "text": "Exit code 2"},
            {"speaker": "tool", "tool": "make", "exit_code": 0, "outcome": "aborted", "text": "x"},
            {"speaker": "tool", "tool": "f", "text": "{\"success\":false}"},
        ]),
        &[
            "assistant tool_call bash#a: ls",
            "assistant tool_call WebFetch#b: u",
            "web tool_result WebFetch#b: page",
            "tool tool_result bash#a failed 2: Exit code 2\nno",
            "tool tool_result make# succeeded 0: Exit code 2",
            "tool tool_result make# aborted 0: x",
            "tool tool_result f# failed: {\"success\":false}",
        ],
    );
}

#[test]
fn one_entry_is_one_entry_whatever_it_says() {
    check(
        json!([
            {"speaker": "person", "text": "a\n<system-reminder>b</system-reminder>"},
            {"speaker": "person", "text": ""},
            {"speaker": "person", "text": "<task>c</task><environment_details>d</environment_details>"},
        ]),
        &[
            "person prompt: a",
            "person prompt: ",
            "person prompt: <task>c</task><environment_details>d</environment_details>",
        ],
    );
}

#[test]
fn whoever_passes_it_on_may_name_the_session() {
    let unnamed = br#"{"entries":[]}"#;
    assert_eq!(parse_slice(unnamed, Some("mine")).unwrap().session.native_id, "mine");
    let named = br#"{"session":"s","entries":[]}"#;
    assert_eq!(parse_slice(named, Some("mine")).unwrap().session.native_id, "mine");
    assert_eq!(parse_slice(named, None).unwrap().session.native_id, "s");
    refused(r#"{"entries":[]}"#, "session: is missing: expected the session's id");
    assert!(parse_slice(unnamed, Some("")).is_err());
}

#[test]
fn a_refusal_names_the_place_and_the_name_that_was_meant() {
    let with = |entry: &str| {
        format!(r#"{{"session":"s","entries":[{{"speaker":"tool","text":""}},{entry}]}}"#)
    };
    refused(
        &with(r#"{"speaker":"asistant","text":"x"}"#),
        "entries[1].speaker: has an unknown name: did you mean `assistant`?",
    );
    refused(
        &with(r#"{"speaker":"user","text":"x"}"#),
        "entries[1].speaker: has an unknown name: did you mean `person`?",
    );
    refused(
        &with(r#"{"speaker":"zzz","text":"x"}"#),
        "entries[1].speaker: has an unknown name: expected one of person, assistant, tool, web, client",
    );
    refused(
        &with(r#"{"role":"user","content":"x"}"#),
        "entries[1]: field 1 has an unknown name: did you mean `speaker`?",
    );
    refused(&with(r#"{"speaker":"person"}"#), "entries[1].text: is missing: expected text");
    refused(
        &with(r#"{"speaker":"person","text":["x"]}"#),
        "entries[1].text: expected text, found a list",
    );
    refused(
        &with(r#"{"speaker":"person","text":"x","text":"y"}"#),
        "document: a field is given twice, or a number has a decimal point",
    );
    refused(
        &with(r#"{"speaker":"person","text":"x","at":"2026-04-12 08:30"}"#),
        "entries[1].at: expected a time in RFC 3339 with its zone, such as 2026-11-21T09:00:00Z",
    );
    refused(
        &with(r#"{"speaker":"person","text":"x","kind":"prompts"}"#),
        "entries[1].kind: has an unknown name: did you mean `prompt`?",
    );
    refused(
        &with(r#"{"speaker":"tool","text":"x","exit_code":3221225477}"#),
        "entries[1].exit_code: expected a whole number from -2147483648 to 2147483647",
    );
    refused(
        r#"{"session":"s","priority":101,"entries":[]}"#,
        "priority: expected a whole number from -100 to 100",
    );
    refused(
        r#"{"session":"s","from":0.5,"entries":[]}"#,
        "from: expected a whole number from 0 to 4294867295, found a number",
    );
    refused(r#"{"session":"","entries":[]}"#, "session: is empty: expected text, or leave it out");
    refused(r#"{"session":"s"}"#, "entries: is missing: expected a list");
    refused("[]", "document: expected an object, found a list");
    refused(
        r#"{"session":"s","entries":["#,
        "document: expected one JSON object: EOF while parsing a list at line 1 column 26",
    );
}

#[test]
fn bounds_are_kept() {
    let long = "x".repeat(4_097);
    refused(
        &json!({"session": long, "entries": []}).to_string(),
        "session: expected at most 4096 characters, found 4097",
    );
    let entry = r#"{"speaker":"tool","text":""}"#;
    let many = vec![entry; ENTRIES_MAX + 1].join(",");
    refused(
        &format!(r#"{{"session":"s","entries":[{many}]}}"#),
        "entries: expected at most 100000 elements, found 100001",
    );
    let large = " ".repeat(HANDED_BYTES_MAX + 1);
    refused(&large, "document: expected at most 33554432 bytes, found more");
}

#[test]
fn what_is_no_character_is_replaced_and_told() {
    let text = b"\xef\xbb\xbf{\"session\":\"s\",\"entries\":[{\"speaker\":\"tool\",\"text\":\"a\xff\\ud83d\"}]}";
    let handed = parse_slice(text, None).unwrap();
    assert_eq!((handed.entries[0].text.as_str(), handed.repaired), ("a\u{fffd}\u{fffd}", true));
}

/// A field of a document or an entry, with valid and invalid values.
fn value(name: &str) -> impl Strategy<Value = Value> + use<> {
    let own = match name {
        "speaker" => json!(["person", "web", "user", "hush-hush"]),
        "kind" => json!(["prompt", "tool_call", "promt", null]),
        "outcome" => json!(["failed", "hush-hush", null]),
        "at" | "started_at" => json!(["2026-04-12T08:30:00Z", "2026-04-12T08:30:00", "hush-hush"]),
        "from" | "priority" | "exit_code" => {
            json!([0, 7, -7, 101, u32::MAX, 5_000_000_000_u64, 1.5, null])
        }
        "closed" => json!([true, false]),
        "entries" => json!([[], "hush-hush"]),
        _ => json!(["a", "", "x".repeat(4_097), null]),
    };
    let odd = json!([true, "hush-hush", {}, ["hush-hush"], 4]);
    let own = own.as_array().cloned().unwrap_or_default();
    prop_oneof![9 => prop::sample::select(own), 1 => prop::sample::select(odd.as_array().cloned().unwrap_or_default())]
}

fn object(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let field = prop::sample::select(names).prop_flat_map(|name| (Just(name), value(name)));
    prop::collection::vec(field, 0..4).prop_map(|fields| {
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    })
}

/// Documents of which about half are valid.
fn documents() -> impl Strategy<Value = Value> {
    const HEAD: [&str; 9] = [
        "session", "namespace", "title", "cwd", "started_at", "from", "closed", "priority",
        "hush-hush",
    ];
    const ENTRY: [&str; 9] =
        ["speaker", "kind", "text", "at", "id", "tool", "outcome", "exit_code", "role"];
    let whole = (object(&HEAD), prop::collection::vec(object(&ENTRY), 0..3), 0..9u8);
    whole.prop_map(|(mut head, mut entries, plain)| {
        for entry in entries.iter_mut().filter(|_| plain > 0) {
            let fields = entry.as_object_mut().unwrap();
            fields.entry("speaker").or_insert(json!("person"));
            fields.entry("text").or_insert(json!("hush-hush"));
        }
        if plain > 0 {
            let fields = head.as_object_mut().unwrap();
            fields.entry("session").or_insert(json!("s"));
            fields.entry("entries").or_insert(json!(entries));
        }
        head
    })
}

proptest! {
    #![proptest_config(crate::testing::cases(2_000))]
    #[test]
    fn what_the_schema_lets_in_is_taken_and_all_else_is_refused(document in documents()) {
        let text = document.to_string();
        let result = parse_slice(text.as_bytes(), Some("s"));
        prop_assert_eq!(result.is_ok(), PUBLISHED.is_valid(&document), "{:?}: {}", result, text);
        if let Err(refusal) = result {
            let refusal = refusal.to_string();
            prop_assert!(!refusal.contains("hush") && refusal.lines().count() == 1, "{}", refusal);
            prop_assert!(!refusal.contains("given twice"), "unexplained: {}", text);
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in "[{}\\[\\]\":,\\\\a-z0-9]{0,60}") {
        let _ = parse_slice(bytes.as_bytes(), None);
    }
}
