use super::fixture::*;
use crate::domain::{MemoryMap, Speaker};
use serde::Deserialize;

/// Two statements of a person, two days apart.
#[derive(Deserialize)]
struct Pair {
    /// `merged`, `open` (the same, but left to a model) or `different`.
    expected: String,
    former: String,
    later: String,
    /// Alternatives of the later one.
    #[serde(default)]
    options: Vec<String>,
}

#[test]
fn only_what_certainly_says_the_same_is_merged() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/consolidate");
    let pairs = std::fs::read_to_string(folder.join("restated.json")).unwrap();
    let pairs: Vec<Pair> = serde_json::from_str(&pairs).unwrap();
    let mut wrong = Vec::new();
    for Pair { expected, former, later, options } in &pairs {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let said = [
            (decision(&[], former, "so it is"), 1),
            (decision(&options, later, "that is how it is"), 3),
        ];
        let records = said.map(|(claim, day)| record(claim, Speaker::Person, day));
        let told = told(&plan(&records, &mut MemoryMap::new()));
        let is_merged = told.last().is_some_and(|it| it.starts_with("merge"));
        if is_merged != (expected == "merged") {
            wrong.push(format!("{expected}: {former} / {later}: {told:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
