//! Answer of a model about one batch: its schema, and how it is read from a reply.

use crate::domain::{Finding, Reply, Severity, ToolSpec};
use crate::llm::tool::{schema_files_of, wire_of};
use crate::privacy::Redacted;
use crate::text::lenient_json::decode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum number of calls read from one reply.
const CALLS_MAX: usize = 16;
/// Maximum number of entries read from one answer: more than any batch asks for.
const ENTRIES_MAX: usize = 200;
/// Key of the list of entries in an answer.
const LIST: &str = "dispositions";
const FIELDS: [&str; 5] = ["record", "disposition", "target", "evidence", "until"];

pub(super) const TOOL_NAME: &str = "write_consolidated";
/// Version of the published schema. A breaking change increments it.
pub(super) const SCHEMA_VERSION: u32 = 1;
const TOOL_DESCRIPTION: &str = "Hands over how each record stands to the memories that it may touch. Call it once, with every record.";

/// How records stand to memories.
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
struct WriteConsolidated {
    /// One entry for each record, or one for each of its memories that something happens to.
    dispositions: Vec<Judgement>,
}

/// How one record stands to its memories.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Judgement {
    /// The record's id, such as R1.
    pub(super) record: String,
    /// What becomes of it.
    #[schemars(extend("enum" = ["add", "duplicate", "merge", "supersede", "amend", "conflict", "discard"]))]
    pub(super) disposition: String,
    /// The memory's id, such as M1; null for add and discard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<String>,
    /// For supersede and amend: words of the record, or beside it, that show the change, copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) evidence: Option<String>,
    /// For a decision about a day or a time: the last day on which it matters, such as 2026-09-12; else null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<String>,
}

/// Published schema files: name and content.
pub(crate) fn schema_files() -> Vec<(String, String)> {
    schema_files_of::<WriteConsolidated>(TOOL_NAME, SCHEMA_VERSION)
}

/// The tool that hands over an answer.
pub(super) fn tool() -> ToolSpec {
    ToolSpec::new(TOOL_NAME, TOOL_DESCRIPTION.to_owned(), wire_of::<WriteConsolidated>())
}

/// The entries of one answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) entries: Vec<Value>,
    pub(super) findings: Vec<Finding>,
}

impl Answer {
    /// Reads the calls of the tool, or JSON in the reply's text; `None` if neither has the list.
    pub(super) fn read(reply: &Reply, tool_asked: bool) -> Option<Answer> {
        let mut answer = Answer { entries: Vec::new(), findings: Vec::new() };
        let mut found = false;
        for call in reply.calls.iter().take(CALLS_MAX).filter(|call| call.name == TOOL_NAME) {
            found |= answer.add(&call.arguments);
        }
        if !found {
            found = answer.add(&reply.content);
            if found && tool_asked {
                answer.note("found-in-text", "the answer was in the text, not in a tool call");
            }
        }
        found.then_some(answer)
    }

    fn add(&mut self, text: &Redacted) -> bool {
        let (value, repairs) = decode(text.as_str(), &[LIST]);
        let Value::Object(mut object) = value else { return false };
        let Some(Value::Array(entries)) = object.remove(LIST) else { return false };
        self.findings.extend(repairs.into_iter().map(|repair| repair.finding()));
        let room = ENTRIES_MAX.saturating_sub(self.entries.len());
        self.entries.extend(entries.into_iter().take(room));
        true
    }

    pub(super) fn note(&mut self, rule: &'static str, detail: impl Into<String>) {
        self.findings.push(Finding::new(Severity::Warning, rule, 0, detail));
    }

    /// Parses an entry without its unknown fields; `None` if its shape is wrong.
    pub(super) fn parse(&mut self, entry: Value) -> Option<Judgement> {
        let Value::Object(object) = entry else { return None };
        let (known, other): (Map<String, Value>, Map<String, Value>) =
            object.into_iter().partition(|(key, _)| FIELDS.contains(&key.as_str()));
        if !other.is_empty() {
            self.note("unknown-field", "fields that were not asked for, dropped");
        }
        serde_json::from_value(Value::Object(known)).ok()
    }
}

#[cfg(test)]
mod schema_tests {
    use super::*;
    use crate::llm::tool::check_strict;
    use std::path::Path;

    #[test]
    fn the_wire_schema_to_consolidate_is_strict() {
        check_strict(&wire_of::<WriteConsolidated>(), "root");
    }

    #[test]
    fn published_schemas_to_consolidate_are_the_types() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        for (name, content) in schema_files() {
            let published = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
            assert_eq!(published, content, "schemas/{name}: run `just bless`, read the change");
        }
    }
}
