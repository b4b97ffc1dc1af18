//! `annalist test` where it must not be silent: what a baseline covers, what gold shows.

use super::place::Place;
use super::prompt_tests::{ok, text, with_cases};
use serde_json::json;

/// Copies the cases of `from` into `to`.
fn copied(place: &Place, from: &str, to: &str) {
    let root = place.path(from);
    super::place::walk(&root, &mut |path| {
        let inside = path.strip_prefix(&root).unwrap();
        place.write(&format!("{to}/{}", inside.display()), super::place::read(path));
    });
}

#[test]
fn a_baseline_is_met_whichever_folder_above_the_cases_is_named() {
    let place = with_cases(&["lock-file-retry", "tea-and-snow"]);
    copied(&place, "cases/tea-and-snow", "cases/group/tea-and-snow");
    ok(&place.run(&["test", "cases", "--json", "base.json"]));
    for (named, run) in [(".", 3), ("cases/group", 1), ("cases/group/tea-and-snow", 1)] {
        let args = ["test", named, "--baseline", "base.json", "--json"];
        let variant = &place.json(&args)["comparison"]["variants"][0];
        assert_eq!(variant["measured"], run, "{named}");
        assert_eq!((&variant["new"], &variant["gone"]), (&json!([]), &json!([])), "{named}");
        assert_eq!(variant["not_run"].as_array().unwrap().len(), 3 - run);
    }
}

#[test]
fn a_gate_that_compared_nothing_is_shut_and_says_so() {
    let place = with_cases(&["lock-file-retry", "tea-and-snow"]);
    ok(&place.run(&["test", "cases/tea-and-snow", "--json", "base.json"]));
    let nothing = place.run(&["test", "cases/lock-file-retry", "--baseline", "base.json"]);
    assert_eq!(nothing.code, 1, "{}", nothing.stdout);
    for words in [
        "nothing could be compared, both runs measured no case of: all",
        "not compared, not in the baseline: lock-file-retry",
        "not run: tea-and-snow",
    ] {
        assert!(nothing.stdout.contains(words), "{}", nothing.stdout);
    }
    assert!(!nothing.stdout.contains("no case is worse"), "{}", nothing.stdout);
    let part = place.run(&["test", "cases", "--baseline", "base.json"]);
    ok(&part);
    assert!(part.stdout.contains("not in the baseline: lock-file-retry"), "{}", part.stdout);
    let models = ["--model", "hand-written", "--model", "nobody", "--baseline", "base.json"];
    let models = place.run(&[&["test", "cases"], &models[..]].concat());
    assert!(models.stdout.contains("no case of: hand-written, nobody"), "{}", models.stdout);
}

#[test]
fn a_case_that_went_from_a_folder_that_is_named_is_gone() {
    let place = with_cases(&["lock-file-retry", "tea-and-snow", "quick-question"]);
    ok(&place.run(&["test", "cases", "--json", "base.json"]));
    std::fs::remove_dir_all(place.path("cases/quick-question")).unwrap();
    let gone = place.run(&["test", "cases", "--baseline", "base.json", "--junit", "j.xml"]);
    assert_eq!(gone.code, 1, "{}", gone.stdout);
    assert!(gone.stdout.contains("gone: quick-question"), "{}", gone.stdout);
    assert!(text(&place.path("j.xml")).contains("type=\"gone\""));
    ok(&place.run(&["test", "cases/tea-and-snow", "--baseline", "base.json"]));
}

#[test]
fn gold_is_shown_behind_the_gate_only() {
    const KEY: &str = "AKIAIOSFODNN7EXAMPLE";
    let place = with_cases(&["quick-question"]);
    let item = json!({
        "id": "a", "kind": "request", "importance": "core", "quote": "nobody said so",
        "statement": format!("Use {KEY} <private>for Havelmoor</private> today."),
    });
    let never = json!({"id": "n", "statement": format!("The key {KEY}."), "terms": [["x y z"]]});
    let gold = json!({"must": [item], "must_not": [never]}).to_string();
    place.write("cases/quick-question/gold.json", format!("\u{feff}{gold}"));
    place.write("cases/quick-question/case.toml", format!("about = \"The key {KEY}\"\n"));
    let told = place.run(&["test", "cases", "--verbose", "--html", "p.html"]);
    ok(&told);
    let warned = "quote-not-found: a: its quote is not in the transcript";
    assert!(told.stdout.contains("today.") && told.stdout.contains(warned), "{}", told.stdout);
    let json = place.run(&["test", "cases", "--json"]).stdout;
    for shown in [told.stdout, text(&place.path("p.html")), json] {
        assert!(!shown.contains(KEY) && !shown.contains("Havelmoor"), "{shown}");
    }
}
