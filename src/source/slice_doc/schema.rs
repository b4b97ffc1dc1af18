//! The published schema, made of the types.

use super::SliceDocument;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::Value;
use std::sync::LazyLock;

/// The file's name in `schemas/`. A breaking change makes the next version, and readers keep this one.
const NAME: &str = "slice.v1.json";

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings
        .with_transform(Tidy)
        .into_generator()
        .into_root_schema_for::<SliceDocument>()
        .to_value()
});

/// Leaves out where a comment's lines end, and formats that only Rust knows.
#[derive(Clone)]
struct Tidy;

impl Transform for Tidy {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        if let Some(Value::String(words)) = schema.get_mut("description") {
            *words = words.replace('\n', " ");
        }
        if schema.get("format").is_some_and(|format| format != "date-time") {
            schema.remove("format");
        }
    }
}

/// What a document is explained by when it is refused.
pub(super) fn schema() -> &'static Value {
    &SCHEMA
}

/// The file that is published in `schemas/`, name and content.
pub fn schema_file() -> (String, String) {
    let content = serde_json::to_string_pretty(schema()).unwrap_or_default();
    (NAME.to_owned(), content + "\n")
}
