//! Tools that a model calls: two schemas from one type, and the echo of an earlier reply. The *wire* schema goes to
//! the model: the strict subset that every provider accepts. The *full* one validates replies and is published.

use crate::domain::Reply;
use crate::privacy::{Redacted, Woven};
use crate::text::truncate::bytes;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// Keywords that strict providers reject or ignore. annalist checks these limits itself.
const NOT_ON_THE_WIRE: &str = "\
    title, default, examples, format, minLength, maxLength, pattern, minimum, maximum, \
    exclusiveMinimum, exclusiveMaximum, multipleOf, minItems, maxItems, uniqueItems, \
    minProperties, maxProperties";
/// Maximum bytes of an earlier reply that a retry shows; a typical reply fits whole.
const ECHO_BYTES_MAX: usize = 24_000;
/// Maximum calls of one reply that are shown.
const CALLS_MAX: usize = 8;

/// Schema of `T` for the model: every property required, absent ones null, no additional ones.
pub(crate) fn wire_of<T: JsonSchema>() -> Value {
    generate::<T>(settings().with(|settings| settings.meta_schema = None), wire)
}

/// Schema of `T` that validates a reply: optional properties may be absent, no text is empty.
pub(crate) fn full_of<T: JsonSchema>() -> Value {
    generate::<T>(settings(), full)
}

/// Published schema of a file of type `T`: optional properties may be absent.
pub(crate) fn published_of<T: JsonSchema>() -> String {
    let schema = generate::<T>(settings(), published);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true)
}

pub(crate) fn schema_files_of<T: JsonSchema>(tool: &str, version: u32) -> Vec<(String, String)> {
    let file = |kind: &str, schema: &Value| {
        let content = serde_json::to_string_pretty(schema).unwrap_or_default();
        (format!("{tool}{kind}.v{version}.json"), content + "\n")
    };
    vec![file("", &full_of::<T>()), file(".wire", &wire_of::<T>())]
}

/// Generates the schema of `T`, changed by `change` at every level.
fn generate<T: JsonSchema>(settings: SchemaSettings, change: fn(&mut Schema)) -> Value {
    let settings = settings.with_transform(RecursiveTransform(change));
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

fn wire(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    for keyword in NOT_ON_THE_WIRE.split(", ") {
        object.shift_remove(keyword);
    }
    if is_of_type(object, "object") {
        let properties = object.get("properties").and_then(Value::as_object);
        let names: Vec<String> = properties.into_iter().flat_map(Map::keys).cloned().collect();
        object.insert("required".to_owned(), json!(names));
        object.insert("additionalProperties".to_owned(), json!(false));
    }
}

/// Removes line breaks from descriptions, and formats that only Rust knows.
fn published(schema: &mut Schema) {
    if let Some(Value::String(words)) = schema.get_mut("description") {
        *words = words.replace('\n', " ");
    }
    schema.remove("format");
}

fn full(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    if is_of_type(object, "string") {
        object.insert("minLength".to_owned(), json!(1));
    }
}

fn is_of_type(object: &Map<String, Value>, name: &str) -> bool {
    match object.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => false,
    }
}

/// Text of `reply`, to show the model its earlier answer. Never empty: some servers reject a message without
/// content, and some chat templates reject two consecutive messages of one role.
pub(crate) fn echo(reply: &Reply) -> Redacted {
    let mut pieces = Vec::new();
    for call in reply.calls.iter().take(CALLS_MAX) {
        pieces.extend([Woven::Passed(&call.arguments), Woven::Ours("\n")]);
    }
    if reply.calls.is_empty() {
        pieces.push(Woven::Passed(&reply.content));
    }
    let text = Redacted::weave(&pieces);
    if text.as_str().trim().is_empty() {
        return Redacted::weave(&[Woven::Ours("(no answer)")]);
    }
    if text.len() <= ECHO_BYTES_MAX {
        return text;
    }
    let end = bytes(text.as_str(), ECHO_BYTES_MAX).len();
    Redacted::weave(&[Woven::Passed(&text.cut(0..end)), Woven::Ours(" …")])
}

#[cfg(test)]
pub(crate) use strict::check_strict;

#[cfg(test)]
mod strict {
    use super::is_of_type;
    use serde_json::{Value, json};

    /// Keywords that OpenAI's strict mode, Anthropic and Gemini all accept.
    const KNOWN: [&str; 7] =
        ["type", "description", "properties", "required", "additionalProperties", "items", "enum"];

    /// Fails if `schema` contains anything that strict providers reject.
    pub(crate) fn check_strict(schema: &Value, path: &str) {
        let object = schema.as_object().expect(path);
        for keyword in object.keys() {
            assert!(KNOWN.contains(&keyword.as_str()), "{path}: {keyword}");
        }
        if is_of_type(object, "object") {
            assert_eq!(object["additionalProperties"], json!(false), "{path}");
            let properties = object["properties"].as_object().expect(path);
            let required = object["required"].as_array().expect(path);
            assert!(properties.keys().eq(required.iter().filter_map(Value::as_str)), "{path}");
            for (name, property) in properties {
                check_strict(property, &format!("{path}.{name}"));
            }
        }
        if is_of_type(object, "array") {
            check_strict(&object["items"], &format!("{path}[]"));
        }
    }
}
