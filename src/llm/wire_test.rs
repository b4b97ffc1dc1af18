//! Every malformed reply shape once.

use super::*;
use crate::domain::ErrorKind;

fn reply_of(body: &str) -> Result<Reply, Failure> {
    let completion: Completion = serde_json::from_str(body).unwrap();
    completion.into_reply(&Gate::new(&[]))
}

/// Calls as `name(arguments)`, then content, refusal and finish, joined by ` | `.
#[track_caller]
fn check(body: &str, expected: &str) {
    let reply = reply_of(body).unwrap();
    let mut parts: Vec<String> =
        reply.calls.iter().map(|c| format!("{}({})", c.name, c.arguments.as_str())).collect();
    parts.push(reply.content.as_str().to_owned());
    parts.extend(reply.refusal.map(|words| format!("refused {}", words.as_str())));
    parts.push(reply.finish.name().to_owned());
    assert_eq!(parts.join(" | "), expected, "{body}");
}

#[track_caller]
fn check_message(message: &str, expected: &str) {
    let body = format!("{{\"choices\":[{{\"message\":{message},\"finish_reason\":\"stop\"}}]}}");
    check(&body, expected);
}

#[test]
fn arguments_are_text_or_an_object() {
    let call = |function: &str| format!("{{\"tool_calls\":[{{\"function\":{function}}}]}}");
    check_message(&call(r#"{"name":"f","arguments":"{\"a\":1}"}"#), r#"f({"a":1}) |  | stop"#);
    check_message(&call(r#"{"name":"f","arguments":{"a": 1}}"#), r#"f({"a":1}) |  | stop"#);
    check_message(&call(r#"{"name":"f","arguments":""}"#), "f() |  | stop");
    check_message(&call(r#"{"name":"f","arguments":null}"#), "f() |  | stop");
    check_message(&call(r#"{"name":"f"}"#), "f() |  | stop");
    check_message(&call(r#"{"name":null,"arguments":"x"}"#), "(x) |  | stop");
    check_message(
        &call(r#"{"name":"f","arguments":"{\"a\":\"\\u0000\"}"}"#),
        "f({\"a\":\"\\u0000\"}) |  | stop",
    );
    check_message(&call("null"), " | stop");
}

#[test]
fn old_calls_count_where_there_are_no_new_ones() {
    let old = r#""function_call":{"name":"f","arguments":"old"}"#;
    check_message(&format!("{{{old}}}"), "f(old) |  | stop");
    check_message(&format!("{{\"tool_calls\":null,{old}}}"), "f(old) |  | stop");
    let new = r#""tool_calls":[{"function":{"name":"f","arguments":"new"}}]"#;
    check_message(&format!("{{{new},{old}}}"), "f(new) |  | stop");
}

#[test]
fn content_is_text_or_parts_without_thoughts() {
    check_message(r#"{"content":"yes"}"#, "yes | stop");
    check_message(r#"{"content":null}"#, " | stop");
    check_message(r#"{"content":[{"type":"text","text":"a"},{"text":"b"},3]}"#, "ab | stop");
    check_message(r#"{"content":{"no":"text"}}"#, " | stop");
    check_message(r#"{"content":"<think>hm</think>\nyes","reasoning_content":"hm"}"#, "yes | stop");
    check_message(r#"{"content":"<think>hm"}"#, " | stop");
    check_message(r#"{"content":"a <think>b</think>"}"#, "a <think>b</think> | stop");
}

#[test]
fn refusals_stand_in_two_places() {
    check_message(r#"{"refusal":"no"}"#, " | refused no | stop");
    check_message(r#"{"provider_specific_fields":{"refusal":"no"}}"#, " | refused no | stop");
    check_message(r#"{"refusal":null,"content":"x"}"#, "x | stop");
    check_message(r#"{"refusal":"","content":"x"}"#, "x | stop");
}

#[test]
fn what_is_missing_reads_as_nothing() {
    check(r#"{"choices":[]}"#, " | other");
    check(r#"{"choices":[null]}"#, " | other");
    check(r#"{"choices":"none"}"#, " | other");
    check(r#"{"choices":[{"message":null,"finish_reason":null}]}"#, " | other");
    check(r#"{"choices":[{"message":[1,2],"finish_reason":7}],"usage":[]}"#, " | other");
    check(r#"{"choices":[{"finish_reason":"content_filter"}]}"#, " | content_filter");
}

#[test]
fn what_is_no_completion_is_a_failure() {
    for body in ["{}", "[]", "null", "3", r#"{"detail":"Not Found"}"#] {
        assert!(matches!(reply_of(body), Err(Failure::InvalidReply { .. })), "{body}");
    }
}

#[test]
fn error_behind_200_has_its_code_for_a_status() {
    let status = |body: &str| match reply_of(body) {
        Err(Failure::Status { status, said, .. }) => (
            status,
            super::super::error::kind_of(status, None, &said, crate::domain::OutputMode::Text),
        ),
        Err(Failure::InvalidReply { .. } | Failure::Transport { .. }) | Ok(_) => {
            panic!("no status: {body}")
        }
    };
    let limited = (429, ErrorKind::RateLimited { wait: None });
    assert_eq!(status(r#"{"error":{"code":429,"message":"slow"}}"#), limited);
    assert_eq!(status(r#"{"error":{"code":"429","message":"slow"}}"#), limited);
    let down = (500, ErrorKind::Unavailable { wait: None });
    assert_eq!(status(r#"{"error":{"code":null,"message":"hm"}}"#), down);
    assert_eq!(status(r#"{"error":"hm"}"#), down);
    check(r#"{"error":null,"choices":[{"message":{"content":"x"}}]}"#, "x | other");
}

#[test]
fn usage_is_counted_as_far_as_it_is_there() {
    let usage = |usage: &str| {
        reply_of(&format!("{{\"choices\":[],\"usage\":{usage}}}")).map(|reply| reply.usage).unwrap()
    };
    let full = r#"{"prompt_tokens":7,"completion_tokens":2.0,
        "prompt_tokens_details":{"cached_tokens":5}}"#;
    let expected = Usage { prompt_tokens: 7, cached_tokens: 5, completion_tokens: 2 };
    assert_eq!(usage(full), expected);
    let partial = r#"{"prompt_tokens":null,"completion_tokens":3,"prompt_tokens_details":null}"#;
    assert_eq!(usage(partial), Usage { completion_tokens: 3, ..Usage::default() });
    let odd = [r#"{"prompt_tokens":-7}"#, r#"{"prompt_tokens":"7"}"#, r#"{"prompt_tokens":1e300}"#];
    for nothing in ["null", "[]", "{}", "\"7\""].into_iter().chain(odd) {
        assert_eq!(usage(nothing), Usage::default(), "{nothing}");
    }
}

#[test]
fn little_is_kept_of_a_reply_that_no_model_writes() {
    let junk = "x".repeat(ANSWER_BYTES_MAX);
    let function = format!(r#"{{"function":{{"name":"f","arguments":"{junk}"}}}}"#);
    let body = format!(
        r#"{{"choices":[{{"message":{{"content":"{junk}","tool_calls":[{function},{function}]}}}}]}}"#
    );
    let reply = reply_of(&body).unwrap();
    let calls = reply.calls.iter().map(|call| call.arguments.as_str().len());
    assert!(calls.sum::<usize>() + reply.content.as_str().len() <= ANSWER_BYTES_MAX);
    assert_eq!(reply.calls.len(), 2);
}

#[test]
fn calls_are_bounded() {
    let call = r#"{"function":{"name":"f","arguments":"x"}}"#;
    let calls = vec![call; CALLS_MAX + 9].join(",");
    let body = format!("{{\"choices\":[{{\"message\":{{\"tool_calls\":[{calls}]}}}}]}}");
    assert_eq!(reply_of(&body).map(|reply| reply.calls.len()), Ok(CALLS_MAX));
}

proptest::proptest! {
    #[test]
    fn no_json_breaks_it(text in "[\\[\\]{}\",:a-z0-9 ]{0,80}") {
        if let Ok(completion) = serde_json::from_str::<Completion>(&text) {
            let _ = completion.into_reply(&Gate::new(&[]));
        }
    }
}
