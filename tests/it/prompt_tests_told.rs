//! What prompt tests say of what differs, and where they write it.

use super::place::{Place, read, walk};
use serde_json::Value;
use std::path::Path;

/// A place with a copy of a shipped case in `cases`.
fn with_case(name: &str) -> Place {
    let place = Place::new();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases");
    walk(&shipped.join(name), &mut |path| {
        let inside = path.strip_prefix(&shipped).unwrap();
        place.write(&format!("cases/{}", inside.display()), read(path));
    });
    place
}

#[test]
fn messages_in_a_file_are_never_shortened() {
    let place = with_case("quick-question");
    let unknown = "z".repeat(90);
    let settings = format!("about = \"x\"\n[settings.{unknown}]\ntokens = 1\n");
    place.write("cases/quick-question/case.toml", settings);
    let report: Value = place.json_with(1, &["test", "cases", "--json"]);
    let detail = &report["variants"][0]["cases"][0]["problems"][0]["detail"];
    let detail = detail.as_str().unwrap();
    assert!(detail.len() > 120, "as long as lines were cut: {detail}");
    let printed = place.run(&["test", "cases"]).stdout;
    assert!(printed.contains(detail), "{printed}");
}

#[test]
fn models_are_called_as_they_are_in_every_table() {
    let place = with_case("quick-question");
    let all = ["test", "cases", "--model", "hand-written", "--model", "Other-Model"];
    let printed = place.run(&all).stdout;
    let heads: Vec<&str> =
        printed.lines().filter(|it| it.starts_with("CASE") || it.starts_with("MEASURE")).collect();
    assert_eq!(heads.len(), 2, "{printed}");
    for head in heads {
        assert!(head.contains("hand-written") && head.contains("Other-Model"), "{head}");
    }
}

#[test]
fn a_report_goes_into_no_folder_that_is_not_there() {
    let place = with_case("quick-question");
    for flag in ["--json", "--junit", "--html"] {
        let refused = place.run(&["test", "cases", flag, "a/b/c.out"]);
        refused.refused(2, &[flag, "a/b/c.out", "there is no folder a/b"]);
    }
    assert!(!place.path("a").exists());
}
