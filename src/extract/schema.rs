//! The two schemas of what is handed over for a slice, and the tool as it is offered.

use crate::domain::{ToolSpec, WriteExtracted};
use crate::tool::{full_of, schema_files_of, wire_of};
use serde_json::Value;
use std::sync::Arc;

/// The tool's name.
pub const TOOL_NAME: &str = "write_extracted";
/// The version of the published schema; part of a run's id. A breaking change makes the next one,
/// and readers keep the old.
pub const SCHEMA_VERSION: u32 = 1;
/// What the tool is for, in the words that a model reads.
const TOOL_DESCRIPTION: &str = "Hands over what happened in the slice: decisions, discussions, attempts and requests. \
     Call it once; every list may be empty.";
/// The tool as it is offered. Made once and shared.
pub fn tool() -> Arc<ToolSpec> {
    let description = TOOL_DESCRIPTION.to_owned();
    Arc::new(ToolSpec::new(TOOL_NAME, description, wire()))
}

/// The schema that a model is given: every property required, absent ones null, nothing else let in.
pub fn wire() -> Value {
    wire_of::<WriteExtracted>()
}

/// The schema that an answer is checked against: `target` may be left out, no text is empty.
pub fn full() -> Value {
    full_of::<WriteExtracted>()
}

/// The files that are published in `schemas/`, name and content.
pub fn schema_files() -> Vec<(String, String)> {
    schema_files_of::<WriteExtracted>(TOOL_NAME, SCHEMA_VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::check_strict;
    use serde_json::json;
    use std::path::Path;

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
