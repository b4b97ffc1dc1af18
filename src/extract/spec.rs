//! Everything that the requests of a run share: model, prompts, tool and its two schemas.

use crate::domain::{Message, OutputMode, Request, Role, ToolSpec, WriteExtracted};
use crate::llm::prompt::{Form, Prompts};
use crate::llm::tool::{full_of, schema_files_of, wire_of};
use crate::privacy::Redacted;
use serde_json::Value;
use std::sync::Arc;

/// Default maximum length of an answer, in tokens: thirty claims with room to spare.
pub(crate) const REPLY_TOKENS_DEFAULT: u32 = 8_000;

/// A model, the prompts and the tool, with the rules rendered once.
#[derive(Debug)]
pub struct ExtractionSpec {
    /// The model's name at the endpoint.
    pub model: String,
    /// Maximum length of an answer, in the model's tokens.
    pub reply_tokens_max: u32,
    /// Sampling temperature; `None` leaves it to the endpoint.
    pub temperature: Option<f32>,
    pub(super) prompts: Arc<Prompts>,
    pub(super) tool: Arc<ToolSpec>,
    language: String,
    rules_tool: Redacted,
    rules_json: Redacted,
}

impl ExtractionSpec {
    /// Creates a spec for `model` and `prompts`, with claims in `language` (its English name, or its own).
    pub fn new(model: impl Into<String>, language: &str, prompts: Arc<Prompts>) -> ExtractionSpec {
        let tool = tool();
        ExtractionSpec {
            model: model.into(),
            reply_tokens_max: REPLY_TOKENS_DEFAULT,
            temperature: None,
            language: language.to_owned(),
            rules_tool: prompts.rules(language, Form::Tool, tool.schema()),
            rules_json: prompts.rules(language, Form::Json, tool.schema()),
            prompts,
            tool,
        }
    }

    /// The language of the claims.
    pub fn language(&self) -> &str {
        &self.language
    }

    /// The prompts, whose id and version belong to the run.
    pub fn prompts(&self) -> &Prompts {
        &self.prompts
    }

    /// Makes a request in the output mode `rung`: the rules, then `messages`.
    pub(super) fn request(
        &self,
        rung: OutputMode,
        generation: u32,
        messages: Vec<Message>,
    ) -> Request {
        let rules = match form(rung) {
            Form::Tool => &self.rules_tool,
            Form::Json => &self.rules_json,
        };
        let mut all = Vec::with_capacity(1 + messages.len());
        all.push(Message { role: Role::System, content: rules.clone() });
        all.extend(messages);
        Request {
            model: self.model.clone(),
            messages: all,
            rung,
            tool: Arc::clone(&self.tool),
            reply_tokens_max: self.reply_tokens_max,
            temperature: self.temperature,
            generation,
        }
    }
}

/// Form of an answer in the output mode `rung`.
pub(super) fn form(rung: OutputMode) -> Form {
    if rung.is_tool() { Form::Tool } else { Form::Json }
}

pub(crate) const TOOL_NAME: &str = "write_extracted";
/// The version of the published schema; part of a run's id. A breaking change makes the next one,
/// and readers keep the old.
pub(crate) const SCHEMA_VERSION: u32 = 1;
/// Description of the tool for the model.
const TOOL_DESCRIPTION: &str = "Hands over what happened in the slice: decisions, discussions, attempts and requests. \
     Call it once; every list may be empty.";
/// Makes the tool as it is offered to a model.
pub fn tool() -> Arc<ToolSpec> {
    let description = TOOL_DESCRIPTION.to_owned();
    Arc::new(ToolSpec::new(TOOL_NAME, description, wire()))
}

/// Schema that a model gets: every property is required, absent ones are null, no others are allowed.
fn wire() -> Value {
    wire_of::<WriteExtracted>()
}

/// Schema that an answer is checked against: `target` may be missing, no text is empty.
pub(crate) fn full() -> Value {
    full_of::<WriteExtracted>()
}

/// Names and contents of the files published in `schemas/`.
pub(crate) fn schema_files() -> Vec<(String, String)> {
    schema_files_of::<WriteExtracted>(TOOL_NAME, SCHEMA_VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::tool::check_strict;
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
