//! Prompts of one's own, as a process: each reaches the model that is asked with it, and changes nothing else.

use super::judging::{BY_MODEL, all, check, judge, opposed, says, states};
use super::place::{Place, read};
use super::stub::{Answer, Ask, Stub};
use serde_json::json;

/// What prompts of one's own say beside the built-in words.
const OWN: &str = "We build roofs; a later choice of a roof holds.";
/// All that `init --prompts` writes.
const FILES: [&str; 4] = ["extract.md", "slice.md", "retry.md", "consolidate.md"];

/// A server that extracts well, and takes the later choice only where it is told so.
fn roofer() -> Stub {
    judge(verdict)
}

fn verdict(ask: &Ask) -> Answer {
    let batch = ask.batch();
    let record = batch.iter().find(|it| it["id"] == "R1").unwrap();
    let (target, words) = (record["may_touch"][0].as_str(), record["words"][0].as_str());
    match ask.said(OWN) {
        Some(_) => all(&[says("R1", "supersede", target, words)]),
        // Not of what a person said: the host refuses it, and the pair stays open.
        None => all(&[says("R1", "discard", None, None)]),
    }
}

/// Puts [`OWN`] into a prompt that was written out, before these words.
fn change(place: &Place, name: &str, before: &str) {
    let text = String::from_utf8(read(&place.path(name))).unwrap();
    assert!(text.contains(before), "{name}: no {before}");
    place.write(name, text.replacen(before, &format!("{OWN} {before}"), 1));
}

/// How many runs of extraction there are.
fn runs(place: &Place) -> i64 {
    place.number("SELECT count(*) FROM runs")
}

#[test]
fn prompts_that_are_written_out_and_used_as_they_are_ask_nothing_anew() {
    let stub = roofer();
    let mut place = opposed(&stub);
    place.json(&BY_MODEL);
    let seen = (stub.count(), runs(&place));
    let output = place.run(&["init", "--prompts", "own"]);
    let expected: Vec<String> = FILES.iter().map(|name| format!("wrote own/{name}")).collect();
    assert_eq!(output.stdout.lines().collect::<Vec<_>>(), expected);
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("prompts");
    for name in FILES {
        assert_eq!(read(&place.path(&format!("own/{name}"))), read(&sources.join(name)), "{name}");
    }
    place.set("ANNALIST__PROMPTS", "own");
    place.json(&["replay", "t", "--json"]);
    assert_eq!(place.json(&BY_MODEL), json!([]));
    // The prompt for lessons of earlier versions is not read, whatever is in it.
    place.write("own/reflect.md", "---\nid: reflect\n---\n{{ weather }}\n");
    assert_eq!(place.json(&BY_MODEL), json!([]));
    assert_eq!((stub.count(), runs(&place)), seen);
}

#[test]
fn a_changed_prompt_to_consolidate_asks_anew_and_changes_no_run_of_extraction() {
    let stub = roofer();
    let mut place = opposed(&stub);
    check(&place.json(&BY_MODEL), &["add new", "conflict reversal"]);
    place.run(&["init", "--prompts", "own"]);
    for name in FILES.iter().filter(|name| **name != "consolidate.md") {
        std::fs::remove_file(place.path(&format!("own/{name}"))).unwrap();
    }
    place.set("ANNALIST__PROMPTS", "own");
    assert_eq!(place.json(&BY_MODEL), json!([]), "it says what the built-in one says");
    let seen = (stub.count(), runs(&place));
    change(&place, "own/consolidate.md", "- Is it the same matter?");
    place.json(&["replay", "t", "--json"]);
    assert_eq!((stub.count(), runs(&place)), seen, "slices are asked about with other prompts");
    check(&place.json(&BY_MODEL), &["settle judged-replaced"]);
    assert_eq!((stub.count(), runs(&place)), (seen.0 + 1, seen.1));
    assert_eq!(states(&place), ["Postgres active", "Redis superseded"]);
    place.set("ANNALIST__PROMPTS", "own/consolidate.md");
    assert_eq!(place.json(&BY_MODEL), json!([]), "the file alone is the same prompt");
}

#[test]
fn a_prompt_that_cannot_be_used_is_one_line_that_names_it() {
    let mut place = Place::new();
    place.run(&["init", "--prompts", "own"]);
    place.set("ANNALIST__PROMPTS", "own");
    let good = read(&place.path("own/consolidate.md"));
    place.write("own/consolidate.md", [&good[..], b"{{ weather }}"].concat());
    for args in [&["consolidate"][..], &["memory", "reflect"], &["status"], &["test"]] {
        place
            .run(args)
            .refused(2, &["prompts: own/consolidate.md: prompt `consolidate`", "`weather`"]);
    }
    for name in ["summary.md", "reflect.md"] {
        let path = format!("own/{name}");
        place.set("ANNALIST__PROMPTS", &path);
        place.write(&path, "---\nid: summary\nversion: 1\ninputs: []\n---\n");
        place.run(&["status"]).refused(2, &[&path, "no command asks a model with"]);
    }
}

#[test]
fn a_prompt_test_asks_with_prompts_of_extraction_alone() {
    let place = Place::new();
    place.run(&["init", "--prompts", "own"]);
    place.write("memory/consolidate.md", read(&place.path("own/consolidate.md")));
    let words = ["not an extraction prompt", "extract.md, slice.md, retry.md"];
    for path in ["own/consolidate.md", "memory"] {
        let words = [&[path][..], &words].concat();
        place.run(&["test", "--prompt", path]).refused(2, &words);
    }
    place.write("own/summary.md", "");
    place.run(&["test", "--prompt", "own/summary.md"]).refused(2, &["no command asks"]);
}
