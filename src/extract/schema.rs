//! Two schemas from one type. *Wire* is what a model is given: the strict subset that every provider
//! takes. *Full* is what an answer is checked against, and what is published.

use crate::domain::{ToolSpec, WriteExtracted};
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The tool's name.
pub const TOOL_NAME: &str = "write_extracted";
/// The version of the published schema; part of a run's id. A breaking change makes the next one,
/// and readers keep the old.
pub const SCHEMA_VERSION: u32 = 1;
/// What the tool is for, in the words that a model reads.
const TOOL_DESCRIPTION: &str = "Hands over what happened in the slice: decisions, discussions, attempts and requests. \
     Call it once; every list may be empty.";
/// What strict providers refuse or ignore. The limits are checked here instead.
const NOT_ON_THE_WIRE: [&str; 17] = [
    "title",
    "default",
    "examples",
    "format",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// The tool as it is offered. Made once and shared.
pub fn tool() -> Arc<ToolSpec> {
    let description = TOOL_DESCRIPTION.to_owned();
    Arc::new(ToolSpec::new(TOOL_NAME, description, wire()))
}

/// The schema that a model is given: every property required, absent ones null, nothing else let in.
pub fn wire() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    generate::<WriteExtracted>(settings.with_transform(Wire))
}

/// The schema that an answer is checked against: `target` may be left out, no text is empty.
pub fn full() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    generate::<WriteExtracted>(settings.with_transform(Full))
}

/// The files that are published in `schemas/`, name and content.
pub fn schema_files() -> Vec<(String, String)> {
    let file = |kind: &str, schema: &Value| {
        let content = serde_json::to_string_pretty(schema).unwrap_or_default();
        (format!("{TOOL_NAME}{kind}.v{SCHEMA_VERSION}.json"), content + "\n")
    };
    vec![file("", &full()), file(".wire", &wire())]
}

fn generate<T: JsonSchema>(settings: SchemaSettings) -> Value {
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

#[derive(Clone)]
struct Wire;

impl Transform for Wire {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else { return };
        for keyword in NOT_ON_THE_WIRE {
            object.shift_remove(keyword);
        }
        if is_of_type(object, "object") {
            let properties = object.get("properties").and_then(Value::as_object);
            let names: Vec<String> = properties.into_iter().flat_map(Map::keys).cloned().collect();
            object.insert("required".to_owned(), json!(names));
            object.insert("additionalProperties".to_owned(), json!(false));
        }
    }
}

#[derive(Clone)]
struct Full;

impl Transform for Full {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else { return };
        if is_of_type(object, "string") {
            object.insert("minLength".to_owned(), json!(1));
        }
    }
}

fn is_of_type(object: &Map<String, Value>, name: &str) -> bool {
    match object.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Keywords that OpenAI's strict mode, Anthropic and Gemini all take.
    const KNOWN: [&str; 6] =
        ["type", "description", "properties", "required", "additionalProperties", "items"];

    fn check_strict(schema: &Value, path: &str) {
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

    #[test]
    fn the_wire_schema_is_strict() {
        let wire = wire();
        assert_eq!(wire["type"], "object");
        check_strict(&wire, "root");
        let target = &wire["properties"]["requests"]["items"]["properties"]["target"];
        assert_eq!(target["type"], json!(["string", "null"]));
    }

    #[test]
    fn fields_keep_their_order() {
        let wire = wire();
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
            assert_eq!(
                published, content,
                "schemas/{name}: run `annalist schema`, read the change"
            );
        }
    }

    #[test]
    fn full_allows_what_the_wire_demands() {
        let validator = jsonschema::draft202012::new(&full()).expect("a schema");
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
}
