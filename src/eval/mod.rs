//! Prompt tests: conversations with gold, whose extractions are scored on recorded or live replies.

mod case;
mod compare;
mod extraction;
mod gold;
mod judge;
mod measure;
mod prepare;
mod report;
mod run;
mod score;
pub(crate) mod view;
#[cfg(test)]
pub(crate) mod testing;

#[cfg(test)]
pub(crate) use case::Tolerances;
pub(crate) use case::{CASE_EXAMPLE, CaseFolder, Scope, find, write_if_changed};
pub(crate) use compare::{
    CaseComparison, Comparison, MeasureChange, ReportFile, Trend, VariantComparison, compare,
};
pub(crate) use extraction::Recording;
pub(crate) use gold::{Forbidden, Gold, Item, Why};
pub(crate) use prepare::Variation;
pub(crate) use report::{
    CaseOutcome, CaseReport, RecordReport, Report, SCHEMA_VERSION, Variant, headline,
};
pub(crate) use run::{EvalResult, EvalRun, LiveModel};
pub(crate) use view::{junit, page};

use crate::llm::tool::published_of;

/// Name and content of the files published in `schemas/`.
pub(crate) fn schema_files() -> Vec<(String, String)> {
    let name = |name: &str| format!("{name}.v{SCHEMA_VERSION}.json");
    vec![
        (name("case"), published_of::<case::Case>()),
        (name("gold"), published_of::<gold::Gold>()),
        (name("test_report"), published_of::<ReportFile>()),
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
