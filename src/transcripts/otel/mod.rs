//! OpenTelemetry spans and logs of generative models, as OTLP JSON or with plain attributes. Each
//! call repeats the conversation before it. A conversation's id is its own or that of its trace.

use super::chat::words_of;
use super::client::{Client, ReadRecord, ignore, read_of};
use super::conversation::{Conversation, ToolResult};
use super::json::{JsonExt, parse};
use crate::domain::{Format, Outcome, Timestamp};
use serde_json::{Map, Value, json};

const SIGNATURES: &[&[&str]] = &[
    &["resourceSpans"],
    &["resourceLogs"],
    &["attributes.gen_ai.operation.name"],
    &["attributes.gen_ai.input.messages"],
    &["gen_ai.input.messages"],
    &["gen_ai.output.messages"],
    &["gen_ai.prompt"],
    &["gen_ai.completion"],
    &["gen_ai.tool.name"],
    &["gen_ai.system_instructions"],
    &["parts.0.type", "role"],
];

pub(super) const CLIENT: Client = Client {
    format: Format::Otel,
    lines: SIGNATURES,
    documents: SIGNATURES,
    list: "resourceSpans|resourceLogs",
    kind,
    kinds: &[
        ("batch", batch),
        ("span", |json, talk| part_of_span(json, true, talk)),
        ("attributes", |json, talk| told(json, "", time(json), talk)),
        ("message", lone_message),
        ("document", ignore),
    ],
};

const PARTS: &[(&str, ReadRecord)] = &[
    ("tool_call|server_tool_call", call),
    ("tool_call_response|server_tool_call_response", response),
    ("reasoning|thinking", ignore),
];

fn kind(json: &Value) -> &str {
    let has = |keys: &[&str]| keys.iter().any(|key| json.get(*key).is_some());
    match () {
        () if json["resourceSpans"].is_array() || json["resourceLogs"].is_array() => "batch",
        () if has(&["resourceSpans", "resourceLogs"]) => "document",
        () if has(&["scopeSpans", "scopeLogs", "instrumentationLibrarySpans"]) => "batch",
        () if has(&["attributes"]) => "span",
        () if json.map().any(|(key, _)| key.starts_with("gen_ai.")) => "attributes",
        () if has(&["parts"]) => "message",
        () => json.text("type"),
    }
}

/// Reads what spans received at their starts and the rest at their ends: the span of an agent or a model contains those
/// of its tools.
fn batch(json: &Value, talk: &mut Conversation<'_>) {
    let mut spans = Vec::new();
    gather(json, &mut spans);
    spans.sort_by_key(|(json, is_over)| {
        let end = nanos(json, &["endTimeUnixNano"]).filter(|_| *is_over);
        end.or(time(json))
    });
    spans.into_iter().for_each(|(json, is_over)| part_of_span(json, is_over, talk));
}

/// Adds the starts and ends of spans and log records at any depth.
fn gather<'j>(json: &'j Value, spans: &mut Vec<(&'j Value, bool)>) {
    const LISTS: [&str; 7] = [
        "resourceSpans", "resourceLogs", "scopeSpans", "scopeLogs", "instrumentationLibrarySpans",
        "spans", "logRecords",
    ];
    let inner = LISTS.iter().flat_map(|key| json[key].list().iter().map(move |it| (*key, it)));
    for (key, inner) in inner {
        match key {
            "spans" | "logRecords" => spans.extend([(inner, false), (inner, true)]),
            _ => gather(inner, spans),
        }
    }
}

/// Reads a span or a log record of a model call, or only its input unless it is over.
fn part_of_span(json: &Value, is_over: bool, talk: &mut Conversation<'_>) {
    const RESULTS: [&str; 3] = ["gen_ai.output.messages", "gen_ai.completion", "gen_ai.tool."];
    let mut fields = attributes(&json["attributes"]);
    let body = any_value(&json["body"]);
    let told_in_body = body.map().filter(|(key, _)| key.starts_with("gen_ai."));
    fields.extend(told_in_body.map(|(key, value)| (key.clone(), value.clone())));
    fields.retain(|key, _| is_over || !RESULTS.iter().any(|result| key.starts_with(result)));
    let fields = Value::Object(fields);
    let trace = json.first_text(&["traceId", "trace_id"]);
    let trace = trace.or(json["context"].first_text(&["trace_id", "traceId"])).unwrap_or_default();
    told(&fields, trace, time(json), talk);
    if !is_over {
        return;
    }
    let own = [json.text("eventName"), fields.text("event.name")];
    if let Some(name) = own.into_iter().find(|name| name.starts_with("gen_ai.")) {
        event(name, &body, talk);
    }
    for inner in json["events"].list() {
        let fields = Value::Object(attributes(&inner["attributes"]));
        talk.time(time(inner));
        event(inner.text("name"), &fields, talk);
        messages(&fields, talk);
    }
}

fn lone_message(json: &Value, talk: &mut Conversation<'_>) {
    talk.session("");
    talk.at("", time(json));
    message(json, talk);
}

/// Reads the attributes of a call.
fn told(json: &Value, trace: &str, at: Option<Timestamp>, talk: &mut Conversation<'_>) {
    if !json.map().any(|(key, _)| key.starts_with("gen_ai.")) {
        return;
    }
    let named = json.first_text(&["gen_ai.conversation.id", "session.id"]);
    talk.session(named.unwrap_or(trace));
    talk.next_request();
    talk.at("", at);
    messages(json, talk);
    let id = json.text("gen_ai.tool.call.id");
    if json.has("gen_ai.tool.name") && (id.is_empty() || !talk.has_call(id)) {
        talk.repeats(&format!("{id} {}", json.text("gen_ai.tool.name")));
        talk.call(id, json.text("gen_ai.tool.name"), &json["gen_ai.tool.call.arguments"]);
    }
    if json.has("gen_ai.tool.call.result") || json.has("gen_ai.tool.name") && json.has("error.type")
    {
        let outcome = json.has("error.type").then_some(Outcome::Failed);
        let text = words_of(&structured(&json["gen_ai.tool.call.result"]));
        let text = if text.is_empty() { json.text("error.type").to_owned() } else { text };
        talk.result(ToolResult { id, text, outcome, ..ToolResult::default() });
    }
}

/// Attributes with messages; the older ones may be text.
const MESSAGES: [&str; 4] =
    ["gen_ai.input.messages", "gen_ai.prompt", "gen_ai.output.messages", "gen_ai.completion"];

fn messages(json: &Value, talk: &mut Conversation<'_>) {
    let instructions = words_of(&structured(&json["gen_ai.system_instructions"]));
    if !instructions.is_empty() && !talk.repeats(&instructions) {
        talk.injected(&instructions);
    }
    for key in MESSAGES {
        let is_answer = matches!(key, "gen_ai.output.messages" | "gen_ai.completion");
        let role = if is_answer { "assistant" } else { "user" };
        let is_message =
            |json: &Value| ["role", "content", "text", "parts"].iter().any(|it| json.has(it));
        let told = structured(&json[key]);
        // Other JSON is the text of one message.
        let is_json = told.is_null() || told.list().iter().all(is_message) && told.is_array();
        let told = if is_json || is_message(&told) { told } else { json[key].clone() };
        let list = if told.is_array() { told.list() } else { std::slice::from_ref(&told) };
        for json in list.iter().filter(|json| !json.is_null()) {
            match json["parts"].is_array() {
                true => message(json, talk),
                false => plain(json.clone(), role, talk),
            }
        }
    }
}

/// Reads a message, unless an earlier call contained it.
fn message(json: &Value, talk: &mut Conversation<'_>) {
    let role = json.text("role");
    let is_told = |part: &&Value| !matches!(part.text("type"), "reasoning" | "thinking");
    let parts = json["parts"].list().iter().filter(is_told).map(Value::to_string);
    let is_told = talk.repeats(&format!("{role} {}", parts.collect::<String>()));
    for part in json["parts"].list() {
        // A later call may have the same id. The span of a tool may have told the call before.
        let is_call = part.text("type").ends_with("tool_call") && part.has("id");
        let call = format!("{} {}", part.text("id"), part.text("name"));
        if is_call && talk.repeats(&call) || is_told {
            continue;
        }
        if let Some(read) = read_of(PARTS, part.text("type")) {
            read(part, talk);
            continue;
        }
        let text = words_of(part);
        match role {
            "user" => talk.user(&text),
            "assistant" | "model" => talk.assistant(&text),
            "tool" => talk.result(ToolResult { text, ..ToolResult::default() }),
            _ => talk.injected(&text),
        }
    }
}

fn call(part: &Value, talk: &mut Conversation<'_>) {
    let arguments = part.first(&["arguments", "server_tool_call"]);
    talk.call(part.text("id"), part.text("name"), arguments);
}

fn response(part: &Value, talk: &mut Conversation<'_>) {
    let text = words_of(part.first(&["response", "result", "server_tool_call_response"]));
    talk.result(ToolResult { id: part.text("id"), text, ..ToolResult::default() });
}

/// Reads an event of older instrumentations, which holds one message.
fn event(name: &str, body: &Value, talk: &mut Conversation<'_>) {
    let role = match name {
        "gen_ai.system.message" => "system",
        "gen_ai.user.message" => "user",
        "gen_ai.assistant.message" | "gen_ai.choice" => "assistant",
        "gen_ai.tool.message" => "tool",
        _ => return,
    };
    let inner = structured(&body["message"]);
    let mut json = if inner.is_object() { inner } else { body.clone() };
    json["role"] = Value::from(role);
    if role == "tool" {
        json["tool_call_id"] = body["id"].clone();
    }
    plain(json, role, talk);
}

/// Reads a message without parts, which may be its text alone.
fn plain(json: Value, role: &str, talk: &mut Conversation<'_>) {
    let mut json = if json.is_object() { json } else { json!({ "content": json }) };
    json["role"] = Value::from(json.first_text(&["role"]).unwrap_or(role));
    json["tool_calls"] = structured(&json["tool_calls"]);
    let text = json.first(&["content", "text"]);
    if !talk.repeats(&format!("{} {text} {}", json["role"], json["tool_calls"])) {
        talk.message(&json);
    }
}

/// Start time of a span or time of a log record.
fn time(json: &Value) -> Option<Timestamp> {
    const NANOS: [&str; 3] = ["startTimeUnixNano", "timeUnixNano", "observedTimeUnixNano"];
    let text = json.first_text(&["start_time", "timestamp", "startTime"]);
    nanos(json, &NANOS).or(text.and_then(Timestamp::parse))
}

fn nanos(json: &Value, keys: &[&str]) -> Option<Timestamp> {
    let nanos = keys.iter().find_map(|key| json[key].number()).filter(|nanos| *nanos > 0.0);
    Timestamp::from_secs(nanos? / 1.0e9)
}

/// Attributes by name, from a list of keys and typed values or from a map.
fn attributes(json: &Value) -> Map<String, Value> {
    let listed = json.list().iter().map(|it| (it.text("key").to_owned(), any_value(&it["value"])));
    let mapped = json.map().map(|(key, value)| (key.clone(), value.clone()));
    listed.chain(mapped).collect()
}

/// Unwraps an OTLP `AnyValue`.
fn any_value(json: &Value) -> Value {
    let Some((kind, value)) = json.map().next().filter(|_| json.map().count() == 1) else {
        return json.clone();
    };
    match kind.as_str() {
        "arrayValue" => value["values"].list().iter().map(any_value).collect(),
        "kvlistValue" => Value::Object(attributes(&value["values"])),
        "stringValue" | "intValue" | "doubleValue" | "boolValue" | "bytesValue" => value.clone(),
        _ => json.clone(),
    }
}

/// Value of an attribute; on spans it may be JSON in a string.
fn structured(json: &Value) -> Value {
    let text = json.as_str().filter(|text| text.trim_start().starts_with(['[', '{']));
    text.and_then(|text| parse(text).ok()).unwrap_or_else(|| json.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcripts::{client, testing};

    #[test]
    fn sessions_of_one_file_may_use_the_same_ids_of_calls() {
        let text = |key: &str, text: &str| {
            format!(r#"{{"key":"{key}","value":{{"stringValue":{}}}}}"#, Value::from(text))
        };
        let record = |trace: &str, name: &str, body: &str| {
            let values = |body: &str| format!(r#"{{"kvlistValue":{{"values":[{body}]}}}}"#);
            format!(
                r#"{{"timeUnixNano":"1772463700000000000","traceId":"{trace}","eventName":"gen_ai.{name}","attributes":[{}],"body":{}}}"#,
                text("gen_ai.conversation.id", trace),
                values(body)
            )
        };
        let call = |tool: &str| {
            let json = format!(
                r#"[{{"id":"c1","type":"function","function":{{"name":"{tool}","arguments":"{{}}"}}}}]"#
            );
            text("tool_calls", &json)
        };
        let result = |words: &str| format!("{},{}", text("id", "c1"), text("content", words));
        let records = [
            record("t1", "assistant.message", &call("tides")),
            record("t2", "assistant.message", &call("web_search")),
            record("t1", "tool.message", &result("noon")),
            record("t2", "tool.message", &result("rain")),
        ];
        let file = format!(
            r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{}]}}]}}]}}"#,
            records.join(",")
        );
        testing::check(
            |input, sink| client::read(&CLIENT, input, sink),
            &file,
            &[
                "= t1",
                "1: assistant tool_call tides#c1: {}",
                "1: tool tool_result tides#c1: noon",
                "= t2",
                "1: assistant tool_call web_search#c1: {}",
                "1: web tool_result web_search#c1: rain",
            ],
        );
    }

    /// Span from `start` to `end` with attributes.
    fn a_span(start: u8, end: u8, fields: &[(&str, Value)]) -> Value {
        let nanos = |at: u8| format!("17724637{at:02}000000000");
        let field = |(key, value): &(&str, Value)| json!({"key": key, "value": {"stringValue": value.as_str().map_or_else(|| value.to_string(), str::to_owned)}});
        let fields: Vec<Value> = fields.iter().map(field).collect();
        json!({"traceId": "t", "startTimeUnixNano": nanos(start), "endTimeUnixNano": nanos(end), "attributes": fields})
    }

    #[track_caller]
    fn check_spans(spans: &[Value], expected: &[&str]) {
        let file = json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]});
        assert_eq!(testing::shown(Format::Otel, &file.to_string()), expected);
    }

    const INPUT: &str = "gen_ai.input.messages";
    const OUTPUT: &str = "gen_ai.output.messages";

    fn says(role: &str, text: &str) -> Value {
        json!({"role": role, "parts": [{"type": "text", "content": text}]})
    }

    #[test]
    fn older_attributes_have_the_messages_as_json_or_text() {
        let parts = json!([says("user", "q"), {"role": "assistant", "content": "a"}]).to_string();
        let file = json!({"gen_ai.prompt": parts, "gen_ai.completion": r#"{"text":"b","finish_reason":"stop"}"#});
        let expected = ["person prompt: q", "assistant text: a", "assistant text: b"];
        assert_eq!(testing::shown(Format::Otel, &file.to_string()), expected);
        let file = json!({"gen_ai.prompt": "q", "gen_ai.completion": "a"});
        assert_eq!(testing::shown(Format::Otel, &file.to_string()), expected[..2]);
        let tool = json!({"gen_ai.tool.name": "ls", "gen_ai.tool.call.id": "c", "gen_ai.tool.call.result": "r"});
        let expected = ["assistant tool_call ls#c: ", "tool tool_result ls#c: r"];
        assert_eq!(testing::shown(Format::Otel, &tool.to_string()), expected);
        for file in [file, tool] {
            assert_eq!(
                crate::transcripts::detect(file.to_string().as_bytes(), None),
                Ok(Format::Otel)
            );
        }
    }

    #[test]
    fn spans_are_read_in_the_order_of_their_ends() {
        let span = |start, end, text: &str| {
            a_span(start, end, &[(OUTPUT, json!([says("assistant", text)]))])
        };
        let spans = [span(10, 40, "third"), span(10, 20, "first"), span(25, 30, "second")];
        check_spans(
            &spans,
            &["assistant text: first", "assistant text: second", "assistant text: third"],
        );
        let without = spans.map(|mut span| {
            span.as_object_mut().unwrap().retain(|key, _| !key.ends_with("Nano"));
            span
        });
        check_spans(
            &without,
            &["assistant text: third", "assistant text: first", "assistant text: second"],
        );
    }

    #[test]
    fn a_span_that_contains_those_of_its_tools_is_asked_before_them_and_answers_after_them() {
        let prompt = says("user", "list the files");
        let call = json!({"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "ls", "arguments": {}}]});
        let result = json!({"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "a.rs"}]});
        let (asked, answered) =
            ((INPUT, json!([prompt])), (OUTPUT, json!([says("assistant", "One.")])));
        let tool = [
            ("gen_ai.tool.name", json!("ls")),
            ("gen_ai.tool.call.id", json!("c")),
            ("gen_ai.tool.call.arguments", json!({})),
            ("gen_ai.tool.call.result", json!("a.rs")),
        ];
        let tool = a_span(12, 14, &tool);
        let agent = a_span(10, 30, &[asked.clone(), answered.clone()]);
        let more = a_span(21, 25, &[(INPUT, json!([prompt, call, result])), answered]);
        let expected = [
            "person prompt: list the files",
            "assistant tool_call ls#c: {}",
            "tool tool_result ls#c: a.rs",
            "assistant text: One.",
        ];
        check_spans(&[agent.clone(), tool.clone()], &expected);
        for end in [11, 20] {
            let model = a_span(10, end, &[asked.clone(), (OUTPUT, json!([call]))]);
            check_spans(&[model.clone(), tool.clone(), more.clone()], &expected);
            check_spans(&[agent.clone(), model, tool.clone(), more.clone()], &expected);
        }
    }

    #[test]
    fn a_later_call_with_the_same_id_is_another_call() {
        let call = json!({"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "ls", "arguments": {}}]});
        let other = json!({"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "cat", "arguments": {}}]});
        let output = |message: &Value, at| a_span(at, at + 1, &[(OUTPUT, json!([message]))]);
        let told = ["assistant tool_call ls#c: {}", "assistant tool_call cat#c: {}"];
        check_spans(&[output(&call, 10), output(&other, 12)], &told);
        let prompt = says("user", "again");
        let spans = [
            a_span(10, 11, &[(OUTPUT, json!([call]))]),
            a_span(12, 13, &[(INPUT, json!([call, prompt])), (OUTPUT, json!([call]))]),
        ];
        let called = "assistant tool_call ls#c: {}";
        check_spans(&spans, &[called, "person prompt: again", called]);
    }
}
