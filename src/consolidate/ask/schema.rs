//! The tool by which a model says how records stand to memories.

use crate::domain::ToolSpec;
use crate::tool::{schema_files_of, wire_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The tool's name.
pub const TOOL_NAME: &str = "write_consolidated";
/// The version of the published schema. A breaking change makes the next one.
pub const SCHEMA_VERSION: u32 = 1;
/// What the tool is for, in the words that a model reads.
const TOOL_DESCRIPTION: &str = "Hands over how each record stands to the memories that it may touch. Call it once, with every record.";

/// How records stand to memories.
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WriteConsolidated {
    /// One entry for each record.
    pub dispositions: Vec<Judgement>,
}

/// How one record stands to its memories.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    /// The record's id, such as R1.
    pub record: String,
    /// What becomes of it.
    #[schemars(extend("enum" = ["add", "duplicate", "merge", "supersede", "conflict", "discard"]))]
    pub disposition: String,
    /// The memory's id, such as M1; null for add and discard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// For supersede: the words of the record that show the change, copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// The tool as it is offered.
pub(super) fn tool() -> Arc<ToolSpec> {
    let description = TOOL_DESCRIPTION.to_owned();
    Arc::new(ToolSpec::new(TOOL_NAME, description, wire_of::<WriteConsolidated>()))
}

/// The files that are published in `schemas/`, name and content.
pub fn schema_files() -> Vec<(String, String)> {
    schema_files_of::<WriteConsolidated>(TOOL_NAME, SCHEMA_VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::check_strict;
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
