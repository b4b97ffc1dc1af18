//! Attributes and times of spans and log records, as OTLP JSON or as a map.

use crate::domain::Timestamp;
use crate::transcripts::json::{JsonExt, parse};
use serde_json::{Map, Value};

/// Start time of a span or time of a log record.
pub(super) fn time(json: &Value) -> Option<Timestamp> {
    const NANOS: [&str; 3] = ["startTimeUnixNano", "timeUnixNano", "observedTimeUnixNano"];
    let nanos = NANOS.iter().find_map(|key| json[key].number()).filter(|nanos| *nanos > 0.0);
    let text = json.first_text(&["start_time", "timestamp", "startTime"]);
    nanos.and_then(|nanos| Timestamp::from_secs(nanos / 1.0e9)).or(text.and_then(Timestamp::parse))
}

/// Attributes by name, from a list of keys and typed values or from a map.
pub(super) fn attributes(json: &Value) -> Map<String, Value> {
    let listed = json.list().iter().map(|it| (it.text("key").to_owned(), any_value(&it["value"])));
    let mapped = json.map().map(|(key, value)| (key.clone(), value.clone()));
    listed.chain(mapped).collect()
}

/// Unwraps an OTLP `AnyValue`.
pub(super) fn any_value(json: &Value) -> Value {
    let Some((kind, value)) =
        json.map().next().filter(|_| json.as_object().is_some_and(|it| it.len() == 1))
    else {
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
pub(super) fn structured(json: &Value) -> Value {
    let text = json.as_str().filter(|text| text.trim_start().starts_with(['[', '{']));
    text.and_then(|text| parse(text).ok()).unwrap_or_else(|| json.clone())
}
