//! Other people's transcripts and a large model's recorded answers, where they lie beside the project.

use super::place::{Place, balanced, count, read, walk};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A folder beside the project; none, and one line that says so, where it is absent.
#[expect(clippy::print_stderr, reason = "says why nothing was tested")]
pub(crate) fn beside(name: &str) -> Option<PathBuf> {
    let named = std::env::vars().find(|(key, _)| key == "ANNALIST_SHARED").map(|(_, value)| value);
    let shared = named.unwrap_or(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared").to_owned());
    let path = Path::new(&shared).join(name);
    if !path.exists() {
        eprintln!("not tested: no shared/{name} beside the project");
        return None;
    }
    Some(path.canonicalize().unwrap())
}

pub(crate) fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&read(path)).unwrap()
}

/// A record has evidence in bounds, or a reason why it is not proven.
#[track_caller]
fn proven(record: &Value) {
    let evidence = record["evidence"].as_array().unwrap();
    let fine = match record["state"].as_str().unwrap() {
        "staged" => !evidence.is_empty() && record["reason"].is_null(),
        _ => record["reason"].as_str().is_some_and(|reason| !reason.is_empty()),
    };
    assert!(fine, "{record}");
    let entries = [0, 1].map(|at| record["entries"][at].as_u64().unwrap());
    for it in evidence {
        let entry = it["entry"].as_u64().unwrap();
        assert!(entries[0] <= entry && entry <= entries[1], "{record}");
        let bytes = [0, 1].map(|at| it["bytes"][at].as_u64().unwrap() as usize);
        assert_eq!(bytes[1] - bytes[0], it["words"].as_str().unwrap().len(), "{record}");
    }
}

#[test]
fn recorded_answers_of_a_large_model_become_proven_records() {
    let (Some(answers), Some(transcripts)) = (beside("answers"), beside("transcripts")) else {
        return;
    };
    let place = Place::new();
    let [answers, folder] = [&answers, &transcripts].map(|path| path.to_str().unwrap());
    let import = ["cassette", "import", answers, "--transcripts", folder, "--to", "cassette"];
    let made = place.run(&import);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let (mut claims, mut named) = (0, BTreeSet::new());
    walk(Path::new(answers), &mut |path| {
        if path.extension().is_some_and(|extension| extension == "json") {
            let answer = json_of(path);
            let lists = answer["arguments"].as_object().unwrap().values();
            claims += lists.map(|list| list.as_array().unwrap().len() as u64).sum::<u64>();
            let transcript = answer["transcript"].as_str().unwrap();
            named.insert(transcripts.join(transcript).display().to_string());
        }
    });
    let mut replay = vec!["replay", "--cassette", "cassette", "--json"];
    replay.extend(named.iter().map(String::as_str));
    let first = place.run(&replay);
    let totals = first.json();
    balanced(&totals);
    // Conversations that nobody answered for are stale; nothing else fails.
    let failures: Vec<&String> = totals["failures"].as_object().unwrap().keys().collect();
    assert!(failures.iter().all(|kind| *kind == "stale"), "{}", first.stderr);
    assert_eq!(first.code, i32::from(!failures.is_empty()), "{}", first.stderr);
    let staged: u64 = super::place::records(&totals);
    assert_eq!(staged + count(&totals, "/quarantined"), claims, "every claim is kept: {totals}");
    assert!(staged * 10 >= claims * 9, "{staged} of {claims} are proven");
    let export = place.run(&["records", "export"]).stdout;
    assert_eq!(export.lines().count() as u64, claims);
    export.lines().for_each(|line| proven(&serde_json::from_str(line).unwrap()));
    let again = place.run(&replay).json();
    balanced(&again);
    assert_eq!(count(&again, "/calls"), 0);
    assert_eq!((&again["records"], &again["coverage"]), (&totals["records"], &totals["coverage"]));
    assert_eq!(place.run(&["records", "export"]).stdout, export);
}

#[test]
fn every_transcript_is_read_or_named_with_the_reason() {
    let Some(transcripts) = beside("transcripts") else { return };
    let place = Place::new();
    let folder = transcripts.to_str().unwrap();
    let totals = place.json(&["replay", folder, "--dry-run", "--json"]);
    balanced(&totals);
    assert!(count(&totals, "/sessions") > 0);
    let mut args = vec!["replay".to_owned(), "--dry-run".to_owned(), "--json".to_owned()];
    walk(&transcripts, &mut |path| args.push(path.display().to_string()));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = place.run(&args);
    let named = output.json();
    balanced(&named);
    assert_eq!(named["entries"], totals["entries"], "named or found, the same is read");
    let problems = named["problems"].as_array().unwrap();
    assert_eq!(output.code, i32::from(!problems.is_empty()));
    for problem in problems {
        let (path, why) = (problem["path"].as_str().unwrap(), problem["problem"].as_str().unwrap());
        assert!(why.contains("expected") || why.contains("empty"), "{path}: {why}");
    }
    let seen = count(&named, "/files") + count(&named, "/files_passed_over");
    assert_eq!(seen + problems.len() as u64, args.len() as u64 - 3, "each file is accounted for");
}

/// What `redact --only part` lets through of `text`, without the line end that print adds.
fn redacted(place: &Place, part: &str, text: &str) -> String {
    place.write("in.txt", text);
    let output = place.run(&["redact", "in.txt", "--only", part]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    output.stdout
}

/// Cases of a golden file that are run as processes; the rooms run all of them.
const SAMPLE: usize = 12;

#[test]
fn gate_lets_through_what_the_golden_cases_say() {
    let Some(golden) = beside("golden") else { return };
    let place = Place::new();
    let (pii, blocks) =
        (json_of(&golden.join("memory_lite.json")), json_of(&golden.join("conkeeper.json")));
    for case in pii["pii"].as_array().unwrap().iter().take(SAMPLE) {
        let (text, expected) = (&case["input"], &case["recommended"]["text"]);
        let found = redacted(&place, "pii", text.as_str().unwrap());
        assert_eq!(Some(found.as_str()), expected.as_str(), "{text}");
    }
    for case in blocks["strip_private"].as_array().unwrap().iter().take(SAMPLE) {
        let found = redacted(&place, "private", case["input"].as_str().unwrap());
        assert_eq!(Some(found.as_str()), case["recommended"].as_str(), "{}", case["name"]);
    }
    for case in blocks["file_private"].as_array().unwrap().iter().take(SAMPLE) {
        let text = case["input"].as_str().unwrap();
        let hidden = case["recommended"] == true;
        let found = redacted(&place, "private", text);
        assert_eq!(found.is_empty() && !text.is_empty(), hidden, "{}", case["name"]);
    }
}
