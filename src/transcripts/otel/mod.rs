//! OpenTelemetry spans and logs of generative models, as OTLP JSON or with plain attributes. Each
//! call repeats the conversation before it. A conversation's id is its own or that of its trace.

use super::chat::words_of;
use super::client::{Client, ReadRecord, ignore, read_of};
use super::conversation::{Conversation, ToolResult};
use super::json::{JsonExt, parse};
use crate::domain::{Format, Outcome, Timestamp};
use serde_json::{Map, Value};

pub(super) const CLIENT: Client = Client {
    format: Format::Otel,
    lines: &[
        &["resourceSpans"],
        &["resourceLogs"],
        &["attributes.gen_ai.operation.name"],
        &["attributes.gen_ai.input.messages"],
        &["gen_ai.input.messages"],
        &["gen_ai.output.messages"],
    ],
    documents: &[
        &["resourceSpans"],
        &["resourceLogs"],
        &["attributes.gen_ai.operation.name"],
        &["attributes.gen_ai.input.messages"],
        &["gen_ai.input.messages"],
        &["gen_ai.output.messages"],
        &["gen_ai.system_instructions"],
        &["parts.0.type", "role"],
    ],
    list: "resourceSpans|resourceLogs",
    kind,
    kinds: &[
        ("batch", batch),
        ("span", span),
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

/// Reads spans and log records in the order of their ends: the span of an agent contains those of its calls.
fn batch(json: &Value, talk: &mut Conversation<'_>) {
    let mut spans = Vec::new();
    gather(json, &mut spans);
    spans.sort_by_key(|json| nanos(json, &["endTimeUnixNano"]).or(time(json)));
    spans.into_iter().for_each(|json| span(json, talk));
}

/// Adds spans and log records at any depth.
fn gather<'j>(json: &'j Value, spans: &mut Vec<&'j Value>) {
    const LISTS: [&str; 7] = [
        "resourceSpans", "resourceLogs", "scopeSpans", "scopeLogs", "instrumentationLibrarySpans",
        "spans", "logRecords",
    ];
    let inner = LISTS.iter().flat_map(|key| json[key].list().iter().map(move |it| (*key, it)));
    for (key, inner) in inner {
        match key {
            "spans" | "logRecords" => spans.push(inner),
            _ => gather(inner, spans),
        }
    }
}

/// Reads a span, or a log record of a model call.
fn span(json: &Value, talk: &mut Conversation<'_>) {
    let mut fields = attributes(&json["attributes"]);
    let body = any_value(&json["body"]);
    let told_in_body = body.map().filter(|(key, _)| key.starts_with("gen_ai."));
    fields.extend(told_in_body.map(|(key, value)| (key.clone(), value.clone())));
    let fields = Value::Object(fields);
    let trace = json.first_text(&["traceId", "trace_id"]);
    let trace = trace.or(json["context"].first_text(&["trace_id", "traceId"])).unwrap_or_default();
    told(&fields, trace, time(json), talk);
    let own = [json.text("eventName"), fields.text("event.name")];
    if let Some(name) = own.into_iter().find(|name| name.starts_with("gen_ai.")) {
        event(name, &body, talk);
    }
    for inner in json["events"].list() {
        let fields = Value::Object(attributes(&inner["attributes"]));
        talk.time(time(inner));
        event(inner.text("name"), &fields, talk);
        if fields.map().any(|(key, _)| key.ends_with(".messages")) {
            messages(&fields, talk);
        }
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

fn messages(json: &Value, talk: &mut Conversation<'_>) {
    let instructions = words_of(&structured(&json["gen_ai.system_instructions"]));
    if !instructions.is_empty() && !talk.repeats(&instructions) {
        talk.injected(&instructions);
    }
    for key in ["gen_ai.input.messages", "gen_ai.output.messages"] {
        for json in structured(&json[key]).list() {
            message(json, talk);
        }
    }
}

/// Reads a message, unless an earlier call contained it.
fn message(json: &Value, talk: &mut Conversation<'_>) {
    let role = json.text("role");
    let is_told = |part: &&Value| !matches!(part.text("type"), "reasoning" | "thinking");
    let parts = json["parts"].list().iter().filter(is_told).map(Value::to_string);
    if talk.repeats(&format!("{role} {}", parts.collect::<String>())) {
        return;
    }
    for part in json["parts"].list() {
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
    json["tool_calls"] = structured(&json["tool_calls"]);
    if !talk.repeats(&format!("{role} {} {}", json["content"], json["tool_calls"])) {
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

    #[test]
    fn spans_are_read_in_the_order_of_their_ends() {
        let span = |end: u8, said: &str| {
            format!(
                r#"{{"traceId":"t","startTimeUnixNano":"1772463700000000000","endTimeUnixNano":"177246370{end}000000000","attributes":[{{"key":"gen_ai.input.messages","value":{{"stringValue":"[{{\"role\":\"user\",\"parts\":[{{\"type\":\"text\",\"content\":\"{said}\"}}]}}]"}}}}]}}"#
            )
        };
        let spans = [span(3, "third"), span(1, "first"), span(2, "second")].join(",");
        let file = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#);
        let expected = ["first", "second", "third"].map(|said| format!("person prompt: {said}"));
        assert_eq!(testing::shown(Format::Otel, &file), expected);
    }
}
