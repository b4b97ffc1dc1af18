//! The published schemas of the files of prompt tests.

use super::case::{Case, SCHEMA_VERSION};
use super::compare::Written;
use super::gold::Gold;
use crate::tool::published_of;

/// The files that are published in `schemas/`, name and content.
pub fn schema_files() -> Vec<(String, String)> {
    let name = |name: &str| format!("{name}.v{SCHEMA_VERSION}.json");
    vec![
        (name("case"), published_of::<Case>()),
        (name("gold"), published_of::<Gold>()),
        (name("test_report"), published_of::<Written>()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn published_schemas_are_the_types() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        for (name, content) in schema_files() {
            let published = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
            assert_eq!(published, content, "schemas/{name}: run `just bless`, read the change");
        }
    }
}
