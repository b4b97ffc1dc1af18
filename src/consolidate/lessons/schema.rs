//! The tool by which a model says what records teach.

use crate::domain::ToolSpec;
use crate::tool::{schema_files_of, wire_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The tool's name.
pub const REFLECT_TOOL_NAME: &str = "write_reflection";
/// The version of the published schema. A breaking change makes the next one.
pub const REFLECT_SCHEMA_VERSION: u32 = 1;
/// What the tool is for, in the words that a model reads.
const TOOL_DESCRIPTION: &str =
    "Hands over what the records teach about how the work went. Call it once, with every lesson.";

/// What records teach.
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WriteReflection {
    /// The lessons, the most useful first; empty where there is nothing to learn.
    pub lessons: Vec<Lesson>,
}

/// One lesson, unproven.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Lesson {
    /// What it is about.
    #[schemars(extend("enum" = ["efficiency", "quality", "ux", "knowledge", "architecture"]))]
    pub category: String,
    /// What happened and what follows from it, in one sentence and in the words of its records.
    pub lesson: String,
    /// The ids of the records that show it, such as R1.
    pub records: Vec<String>,
}

/// The tool as it is offered.
pub(super) fn tool() -> Arc<ToolSpec> {
    let description = TOOL_DESCRIPTION.to_owned();
    Arc::new(ToolSpec::new(REFLECT_TOOL_NAME, description, wire_of::<WriteReflection>()))
}

/// The files that are published in `schemas/`, name and content.
pub fn reflect_schema_files() -> Vec<(String, String)> {
    schema_files_of::<WriteReflection>(REFLECT_TOOL_NAME, REFLECT_SCHEMA_VERSION)
}

#[cfg(test)]
mod tests {
    use super::super::super::Category;
    use super::*;
    use crate::tool::check_strict;
    use std::path::Path;

    #[test]
    fn the_wire_schema_to_reflect_is_strict_and_knows_every_category() {
        let wire = wire_of::<WriteReflection>();
        check_strict(&wire, "root");
        let text = wire.to_string();
        for category in Category::ALL {
            assert!(text.contains(&format!("\"{}\"", category.name())), "{text}");
        }
    }

    #[test]
    fn published_schemas_to_reflect_are_the_types() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        for (name, content) in reflect_schema_files() {
            let published = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
            assert_eq!(published, content, "schemas/{name}: run `just bless`, read the change");
        }
    }
}
