use super::Repair;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Lists of the extraction tool.
const LISTS: [&str; 4] = ["decisions", "discussions", "attempts", "requests"];

fn decode(text: &str) -> (Value, Vec<Repair>) {
    super::decode(text, &LISTS)
}

#[track_caller]
fn check(text: &str, expected: Value, repairs: &[Repair]) {
    assert_eq!(decode(text), (expected, repairs.to_vec()), "{text}");
}

fn topic(text: &str) -> Value {
    json!({"discussions": [{"topic": text, "points": []}]})
}

const TOPIC: &str = r#"{"discussions":[{"topic":"x","points":[]}]}"#;

#[test]
fn a_cut_element_is_dropped() {
    let one = json!({"topic": "a", "points": ["b"]});
    let text = r#"{"discussions":[{"topic":"a","points":["b"]},{"topic":"c","points":["d""#;
    check(text, json!({"discussions": [one]}), &[Repair::Cut]);
    check(
        r#"{"decisions":[],"attempts":[{"action":"a","succeeded":tru"#,
        json!({"decisions": [], "attempts": []}),
        &[Repair::Cut],
    );
    check(r#"{"deci"#, json!({}), &[Repair::Cut]);
    check(
        r#"{"name":"x","arguments":{"decisions":[],"discussions":["#,
        json!({"decisions": [], "discussions": []}),
        &[Repair::Cut, Repair::Wrapped],
    );
}

#[test]
fn nothing_is_null() {
    check("", Value::Null, &[]);
    check("   ", Value::Null, &[]);
    check("null", Value::Null, &[]);
    check("I saw nothing of note.", Value::Null, &[]);
    check("fn main() { let a = {}; }", Value::Null, &[]);
}

#[test]
fn the_object_is_found() {
    check(TOPIC, topic("x"), &[]);
    check(&format!("\u{feff}{TOPIC}"), topic("x"), &[Repair::Mark]);
    check(&format!("```json\n{TOPIC}\n```"), topic("x"), &[Repair::Fence]);
    check(&format!("Here {{it}} is: {TOPIC} – done"), topic("x"), &[Repair::Prose]);
    check(&format!("{TOPIC}\nThat is all."), topic("x"), &[Repair::Prose]);
    check(&format!("<think>{{\"decisions\": 1}} no</think>{TOPIC}"), topic("x"), &[Repair::Prose]);
    check(&format!("Draft {{\"discussions\": []}}, final {TOPIC}"), topic("x"), &[Repair::Prose]);
    check(&Value::from(TOPIC).to_string(), topic("x"), &[Repair::Twice]);
    let twice = Value::from(Value::from(TOPIC).to_string()).to_string();
    check(&twice, topic("x"), &[Repair::Twice]);
    let wrapped = json!({"name": "write_extracted", "arguments": TOPIC}).to_string();
    check(&wrapped, topic("x"), &[Repair::Wrapped]);
    check(&format!("[{TOPIC}]"), topic("x"), &[Repair::Wrapped]);
    check(&format!("[Note] {TOPIC}"), topic("x"), &[Repair::Prose]);
    check(&format!("{{x}} then {TOPIC}"), topic("x"), &[Repair::Prose]);
    let code = "if a { b } ".repeat(100);
    check(&format!("{code}{TOPIC}"), topic("x"), &[Repair::Prose]);
    let raw = format!("<tool_call>\n{{\"name\": \"x\", \"arguments\": {TOPIC}}}\n</tool_call>");
    check(&raw, topic("x"), &[Repair::Prose]);
}

#[test]
fn lists_under_one_key_are_joined() {
    check(
        r#"{"decisions":[1],"decisions":[2]}"#,
        json!({"decisions": [1, 2]}),
        &[Repair::DuplicateKey],
    );
    check(
        r#"{"decisions":[1]}{"decisions":[2]}"#,
        json!({"decisions": [1, 2]}),
        &[Repair::Several],
    );
}

#[test]
fn odd_characters_are_put_right() {
    let with = |text: &str| format!(r#"{{"discussions":[{{"topic":"{text}","points":[]}}]}}"#);
    check(&with(r"a\ud800b"), topic("a\u{fffd}b"), &[Repair::Surrogate]);
    check(&with(r"a\ud83d\ude00b"), topic("a😀b"), &[]);
    check(&with(r"a\u0000b"), topic("ab"), &[Repair::Nul]);
    check(&with("a\0b"), topic("ab"), &[Repair::Nul]);
    check(&with("a\nb"), topic("a\nb"), &[Repair::Control]);
    check(&with(r"C:\Users"), topic(r"C:\Users"), &[Repair::Escape]);
    check(&with(r#"say "hi" twice"#), topic(r#"say "hi" twice"#), &[Repair::RawQuote]);
}

#[test]
fn near_json_is_read() {
    check("{\"attempts\":[1,2,],}", json!({"attempts": [1, 2]}), &[Repair::ExtraComma]);
    check("{\"attempts\":[1 2]}", json!({"attempts": [1, 2]}), &[Repair::MissingComma]);
    check("{'attempts':['a']}", json!({"attempts": ["a"]}), &[Repair::SingleQuotes]);
    check(
        "{attempts:[True, NaN]}",
        json!({"attempts": [true, null]}),
        &[Repair::BareKey, Repair::Literal],
    );
    check("{\"attempts\":[ // none\n]}", json!({"attempts": []}), &[Repair::Comment]);
    check("{\"attempts\":[yes]}", json!({"attempts": [null]}), &[Repair::BareWord]);
}

#[test]
fn what_cannot_be_read_ends_the_text() {
    check(
        r#"{"attempts":[{"a":1},{"b":2]],"requests":[3]}"#,
        json!({"attempts": [{"a": 1}]}),
        &[Repair::Broken, Repair::Cut],
    );
}

#[test]
fn deep_values_are_dropped() {
    let deep = format!("{}1{}", "[".repeat(2_000), "]".repeat(2_000));
    let (value, repairs) = decode(&format!(r#"{{"attempts":[1],"x":{deep}}}"#));
    assert_eq!(value["attempts"], json!([1]));
    assert_eq!(repairs, [Repair::TooDeep]);
    decode(&"{\"a\":".repeat(100_000));
    decode(&"[".repeat(100_000));
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z\"\\\\{}\\[\\]:,é😀\n ]{1,12}",
        "[ -~]{1,20}",
        Just("null".to_owned()),
        Just("}]".to_owned()),
    ]
}

/// An answer with complete claims in all four lists.
pub(crate) fn answers() -> impl Strategy<Value = Value> {
    let list = || prop::collection::vec(words(), 0..3);
    let decision = (list(), words(), words())
        .prop_map(|(o, c, r)| json!({"options": o, "chosen": c, "rationale": r}));
    let discussion = (words(), list()).prop_map(|(t, p)| json!({"topic": t, "points": p}));
    let attempt = (words(), words(), any::<bool>())
        .prop_map(|(a, r, s)| json!({"action": a, "result": r, "succeeded": s}));
    let request = (words(), prop::option::of(words()), words())
        .prop_map(|(i, t, s)| json!({"intent": i, "target": t, "summary": s}));
    let few = 0..3_usize;
    (
        prop::collection::vec(decision, few.clone()),
        prop::collection::vec(discussion, few.clone()),
        prop::collection::vec(attempt, few.clone()),
        prop::collection::vec(request, few),
    )
        .prop_map(
            |(d, t, a, r)| json!({"decisions": d, "discussions": t, "attempts": a, "requests": r}),
        )
}

#[test]
fn the_beginning_of_a_value_is_read_as_far_as_it_goes() {
    let check =
        |text: &str, expected: Value| assert_eq!(super::beginning(text), expected, "{text}");
    check(r#"{"a":[{"b":"some wo"#, json!({"a": [{"b": "some wo"}]}));
    check(r#"{"a":1,"b"#, json!({"a": 1}));
    check("{\"a\":\"x\ty\",\"b\":", json!({"a": "x\ty"}));
    check(r#"{"a":1} x"#, json!({"a": 1}));
    check("[", json!([]));
    check("oops", Value::Null);
    // Deep nesting is survived.
    super::beginning(&"[".repeat(60_000));
    super::beginning(&"{\"a\":".repeat(10_000));
}

#[test]
fn strings_that_a_strict_parser_rejects_are_repaired() {
    let check = |text: &str, expected: Option<&str>| {
        assert_eq!(super::repaired(text).as_deref(), expected, "{text}");
    };
    check(r#"{"a":"x\ud83d y"}"#, Some("{\"a\":\"x\u{fffd} y\"}"));
    check(r#"{"a":"\ude00"}"#, Some("{\"a\":\"\u{fffd}\"}"));
    check(r#"{"a":"\ud83d\ud83d\ude00"}"#, Some("{\"a\":\"\u{fffd}\u{1f600}\"}"));
    check(r#"{"a":"\\\ud83d"}"#, Some("{\"a\":\"\\\\\u{fffd}\"}"));
    check("{\n\"a\":\"x\ty\"}", Some(r#"{"a":"x\ty"}"#));
    check("{\n\t\"a\": 1}\u{0}", Some(r#"{"a":1}"#));
    check("{\"a\":\"x\ty\"", None);
    check("{\"a\":\"x\ty\",}", None);
    check("{\"a\":\"\t\\x\"}", None);
}

proptest! {
    #[test]
    fn json_is_read_as_it_is(answer in answers(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&answer) } else { serde_json::to_string(&answer) };
        prop_assert_eq!(decode(&text.unwrap_or_default()), (answer, vec![]));
    }

    #[test]
    fn a_cut_text_gives_whole_claims_only(answer in answers(), pretty: bool, twice: bool, at: prop::sample::Index) {
        let text = if pretty { serde_json::to_string_pretty(&answer) } else { serde_json::to_string(&answer) };
        let text = text.unwrap_or_default();
        let text = if twice { Value::from(text).to_string() } else { text };
        let mut end = at.index(text.len());
        while !text.is_char_boundary(end) { end -= 1; }
        let (value, _) = decode(&text[..end]);
        for (name, claims) in value.as_object().into_iter().flatten() {
            let claims = claims.as_array().expect("a list");
            prop_assert!(answer[name].as_array().expect("a list").starts_with(claims));
        }
    }

    #[test]
    fn any_text_is_read(text in "\\PC{0,60}|[\\[\\]{}:,\"'a1\\\\/*`\u{0}\n ]{0,60}") {
        decode(&text);
        decode(&format!("{{\"decisions\":[{text}"));
        super::beginning(&text);
    }

    #[test]
    fn a_changed_byte_never_hurts(answer in answers(), at: prop::sample::Index, with in "[\"{}\\[\\],:\\\\a0\u{0}]") {
        let mut text = answer.to_string();
        let mut place = at.index(text.len());
        while !text.is_char_boundary(place) { place -= 1; }
        text.insert_str(place, &with);
        decode(&text);
    }
}
