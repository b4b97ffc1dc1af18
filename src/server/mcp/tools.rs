//! Tool definitions: names, descriptions and argument schemas. They are short because every prompt has them.

use crate::domain::{Attempt, Claim, ClaimKind, Decision, Discussion, PersonRequest, named};
use crate::pipeline::HitState;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::Value;

/// Maximum letters of each text of a note, so that an answer shows it whole.
const NOTE_LETTERS: usize = 600;
/// Schema keywords that are of no use to a model.
const SILENT: [&str; 2] = ["default", "format"];

named! {
    pub(super) ToolName {
        Search = "search",
        Why = "why",
        Context = "context",
        History = "history",
        OpenItems = "open_items",
        Note = "note",
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchArguments {
    /// Words, any order and form
    pub(super) query: String,
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = ClaimKind::ALL))]
    pub(super) kind: Option<ClaimKind>,
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = HitState::ALL))]
    pub(super) state: Option<HitState>,
    /// Default 10
    #[serde(default)]
    #[schemars(with = "u64", range(min = 1, max = 255))]
    pub(super) limit: Option<u64>,
    /// Another one than this project's, if allowed
    #[serde(default)]
    #[schemars(with = "String")]
    pub(super) namespace: Option<String>,
}

/// Arguments of `why` and `history`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct IdArguments {
    /// Id of a hit, such as src-1b0c22d4
    pub(super) id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ContextArguments {
    /// Prefer what has these words
    #[serde(default)]
    #[schemars(with = "String")]
    pub(super) query: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenArguments {
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = ClaimKind::ALL))]
    pub(super) kind: Option<ClaimKind>,
    /// Another one than this project's, if allowed
    #[serde(default)]
    #[schemars(with = "String")]
    pub(super) namespace: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoteArguments {
    #[schemars(with = "String", extend("enum" = ClaimKind::ALL))]
    pub(super) kind: ClaimKind,
    /// One sentence: what was chosen, asked, raised or tried
    pub(super) text: String,
    /// The reason; of an attempt its result
    #[serde(default)]
    #[schemars(with = "String")]
    pub(super) reason: Option<String>,
    /// Required for an attempt
    #[serde(default)]
    #[schemars(with = "bool")]
    pub(super) succeeded: Option<bool>,
}

impl NoteArguments {
    /// Builds the claim of the note, or returns the invalid argument.
    pub(super) fn claim(self) -> Result<Claim, String> {
        let NoteArguments { kind, text, reason, succeeded } = self;
        let reason = reason.unwrap_or_default();
        if text.trim().is_empty() {
            return Err("text: empty: expected one sentence".to_owned());
        }
        for (name, text) in [("text", &text), ("reason", &reason)] {
            let letters = text.chars().count();
            if letters > NOTE_LETTERS {
                return Err(format!("{name}: {letters} letters: expected at most {NOTE_LETTERS}"));
            }
        }
        Ok(match kind {
            ClaimKind::Decision => {
                Claim::Decision(Decision { options: Vec::new(), chosen: text, rationale: reason })
            }
            ClaimKind::Discussion => {
                let points = if reason.is_empty() { Vec::new() } else { vec![reason] };
                Claim::Discussion(Discussion { topic: text, points })
            }
            ClaimKind::Attempt => {
                let succeeded =
                    succeeded.ok_or("succeeded: expected true or false for an attempt")?;
                Claim::Attempt(Attempt { action: text, result: reason, succeeded })
            }
            ClaimKind::Request => {
                Claim::Request(PersonRequest { intent: text.clone(), target: None, summary: text })
            }
        })
    }
}

impl ToolName {
    fn description(self) -> &'static str {
        match self {
            ToolName::Search => {
                "Search this project's memory: decisions, discussions, attempts, requests and \
                 notes of earlier sessions, best match first. Each hit has its quote, who said it \
                 where and when, and whether it still holds."
            }
            ToolName::Why => {
                "The quotes behind a record or memory, with speaker, file, line and state."
            }
            ToolName::Context => {
                "What a session should start with: rules, current decisions, contradictions, open \
                 requests, lessons."
            }
            ToolName::History => "Changes of a memory and the rule behind each, oldest first.",
            ToolName::OpenItems => "Open requests, questions and failures, and contradictions.",
            ToolName::Note => {
                "Leave a note. It is attributed to you, and becomes memory only when a person says the same."
            }
        }
    }

    fn schema(self) -> JsonObject {
        match self {
            ToolName::Search => schema_of::<SearchArguments>(),
            ToolName::Why | ToolName::History => schema_of::<IdArguments>(),
            ToolName::Context => schema_of::<ContextArguments>(),
            ToolName::OpenItems => schema_of::<OpenArguments>(),
            ToolName::Note => schema_of::<NoteArguments>(),
        }
    }
}

pub(super) fn tools(takes_notes: bool) -> Vec<Tool> {
    let tool = |name: &ToolName| {
        let hints = ToolAnnotations::new().read_only(*name != ToolName::Note).open_world(false);
        let hints = if *name == ToolName::Note { hints.destructive(false) } else { hints };
        Tool::new(name.name(), name.description(), name.schema()).with_annotations(hints)
    };
    let offered = ToolName::ALL.iter().filter(|name| takes_notes || **name != ToolName::Note);
    offered.map(tool).collect()
}

fn schema_of<T: JsonSchema>() -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let Value::Object(mut object) = schema else { return JsonObject::new() };
    let properties = object.get_mut("properties").and_then(Value::as_object_mut);
    let properties = properties.into_iter().flat_map(|it| it.values_mut());
    for property in properties.filter_map(Value::as_object_mut) {
        property.retain(|keyword, _| !SILENT.contains(&keyword.as_str()));
    }
    object.retain(|keyword, _| !["title", "description"].contains(&keyword.as_str()));
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_dir::LETTERS_PER_TOKEN;

    /// Token budget of all tools in a prompt.
    const TOKENS_MAX: usize = 1_500;

    #[test]
    fn all_tools_together_take_few_tokens() {
        let text = serde_json::to_string(&tools(true)).unwrap();
        let tokens = text.chars().count().div_ceil(LETTERS_PER_TOKEN);
        assert!(tokens < TOKENS_MAX, "{tokens}: {text}");
    }

    #[test]
    fn a_schema_has_the_names_that_are_read() {
        for tool in tools(true) {
            let schema = Value::Object((*tool.input_schema).clone());
            assert_eq!(schema["type"], "object", "{}: {schema}", tool.name);
            assert_eq!(schema["additionalProperties"], false, "{}: {schema}", tool.name);
        }
        let search = Value::Object(ToolName::Search.schema());
        assert_eq!(search["required"], serde_json::json!(["query"]));
        assert_eq!(search["properties"]["kind"]["enum"][0], "decision");
        assert_eq!(search["properties"]["limit"]["maximum"], 255);
    }
}
