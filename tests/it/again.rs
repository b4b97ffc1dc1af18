//! Replaying again: nothing is paid for twice, what changed is seen, what grew is asked about alone.

use super::input::claude;
use super::place::{Place, balanced, count, records};
use super::stub::Stub;
use serde_json::Value;

#[test]
fn second_replay_makes_no_call_and_changes_no_byte() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..12));
    let first = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&first);
    assert_eq!(records(&first), 12, "{first}");
    assert_eq!(stub.count() as u64, count(&first, "/calls"));
    assert_eq!(count(&first, "/tokens/sent"), 100 * count(&first, "/calls"));
    let (asked, before) = (stub.count(), place.run(&["records", "export"]).stdout);
    let again = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&again);
    assert_eq!((stub.count(), count(&again, "/calls")), (asked, 0));
    assert_eq!(count(&again, "/slices_known"), count(&again, "/slices"));
    assert_eq!(again["records"], first["records"]);
    assert_eq!(place.run(&["records", "export"]).stdout, before);
}

#[test]
fn another_model_makes_new_runs_and_replaces_the_old() {
    let stub = Stub::new(|ask| {
        let mut extracted = super::input::extracted(ask.slice());
        if ask.body["model"] == "other" {
            for decision in extracted["decisions"].as_array_mut().unwrap() {
                decision["rationale"] = Value::from("paper");
            }
        }
        super::stub::Answer::Call(extracted)
    });
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..3));
    let first = place.json(&["replay", "s.jsonl", "--json"]);
    let asked = stub.count();
    let second = place.json(&["replay", "s.jsonl", "--model", "other", "--json"]);
    balanced(&second);
    assert_eq!(stub.count(), 2 * asked, "every slice is asked about anew");
    assert_eq!(records(&second), records(&first), "records of one model are counted");
    let replaced = place.json(&["records", "--state", "replaced", "--json"]);
    assert_eq!(replaced.as_array().unwrap().len() as u64, records(&first));
    let runs = place.json(&["records", "runs", "--json"]);
    let of = |model: &str| {
        let runs = runs.as_array().unwrap();
        let run = runs.iter().find(|run| run["model"] == model && run["entries"][0] == 0);
        run.unwrap().clone()
    };
    let (old, new) = (of("stub-1"), of("other"));
    assert_eq!((&old["current"], &new["current"]), (&Value::from(false), &Value::from(true)));
    let ids = [&old, &new].map(|run| run["run"].as_str().unwrap().to_owned());
    let diff = place.json(&["records", "diff", &ids[0], &ids[1], "--json"]);
    assert_eq!(diff["same"], 0);
    assert_eq!(diff["gone"].as_array().unwrap().len(), diff["added"].as_array().unwrap().len());
    let shown = place.run(&["records", "diff", &ids[0][..12], &ids[1][..12]]).stdout;
    assert!(shown.contains("+ decision") && shown.contains("- decision"), "{shown}");
    // Going back costs nothing: the old runs cover the session again.
    let back = place.json(&["replay", "s.jsonl", "--json"]);
    assert_eq!((count(&back, "/calls"), stub.count()), (0, 2 * asked));
    assert_eq!(records(&back), records(&first));
}

#[test]
fn session_that_grew_is_asked_about_what_is_new_alone() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    let path = place.write("s.jsonl", claude(0..5));
    let first = place.json(&["replay", "s.jsonl", "--json"]);
    let asked = stub.count();
    place.write("s.jsonl", claude(0..8));
    let grown = place.json(&["replay", path.to_str().unwrap(), "--json"]);
    balanced(&grown);
    assert_eq!((records(&first), records(&grown)), (5, 8));
    assert_eq!(count(&grown, "/slices_known"), asked as u64, "what was paid for is found again");
    assert_eq!(count(&grown, "/entries"), 16);
    let whole = place.json(&["replay", "s.jsonl", "--json"]);
    assert_eq!((count(&whole, "/calls"), records(&whole)), (0, 8));
}

#[test]
fn line_that_is_still_being_written_is_read_next_time() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    let text = claude(0..4);
    let cut = text.len() - 40;
    place.write("s.jsonl", &text[..cut]);
    let first = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&first);
    assert_eq!((count(&first, "/entries"), records(&first)), (7, 3));
    place.write("s.jsonl", &text);
    let second = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&second);
    assert_eq!((count(&second, "/entries"), records(&second)), (8, 4));
    assert_eq!(count(&second, "/calls"), 1);
}

#[test]
fn failed_slice_is_asked_again_and_what_was_good_is_not() {
    let stub = Stub::new(|ask| match ask.slice().contains("depot-2") && ask.number < 100 {
        true => super::stub::error(400, "invalid_request_error"),
        false => ask.good(),
    });
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..4));
    let first = place.json_with(1, &["replay", "s.jsonl", "--json"]);
    balanced(&first);
    assert!(count(&first, "/coverage/failed") > 0);
    assert_eq!(records(&first), 3);
    let status = place.run(&["status"]);
    assert_eq!(status.code, 1);
    assert!(status.stdout.contains("bad-request"), "{}", status.stdout);
    assert!(status.stderr.contains("--retry-failed"), "{}", status.stderr);
    let asked = stub.count();
    let second = place.json_with(1, &["replay", "s.jsonl", "--retry-failed", "--json"]);
    assert_eq!(stub.count(), asked + 1, "only the failed slice");
    assert_eq!(second["coverage"], first["coverage"]);
}

#[test]
fn session_that_was_rewritten_shorter_has_only_what_is_left() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..8));
    place.json(&["replay", "s.jsonl", "--json"]);
    place.write("s.jsonl", claude(0..3));
    let shorter = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&shorter);
    assert_eq!((records(&shorter), count(&shorter, "/calls")), (3, 0), "{shorter}");
    assert_eq!(place.export().len(), 3);
    assert_eq!(place.run(&["status"]).code, 0);
}

#[test]
fn slices_of_another_length_replace_the_old_runs() {
    let stub = Stub::good();
    let mut place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..6));
    place.json(&["replay", "s.jsonl", "--json"]);
    place.set("ANNALIST__SLICE__TOKENS", "2000");
    let longer = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&longer);
    assert_eq!(records(&longer), 6, "each claim once: {longer}");
    assert_eq!(place.export().len(), 6);
}

#[test]
fn another_model_that_is_stopped_half_way_leaves_no_record_twice() {
    let stub = Stub::new(|ask| match ask.body["model"] == "other" && ask.number == 9 {
        true => super::stub::Answer::Hold,
        false => ask.good(),
    });
    let mut place = Place::with_endpoint(stub.url());
    place.set("ANNALIST__MODEL__CONCURRENCY", "1");
    place.write("s.jsonl", claude(0..6));
    place.json(&["replay", "s.jsonl", "--json"]);
    let running = place.start(&["replay", "s.jsonl", "--model", "other", "--json"]);
    stub.until(9);
    running.signal("INT");
    let stopped = running.wait().json();
    balanced(&stopped);
    assert_eq!((records(&stopped), place.export().len()), (6, 6), "each claim once");
    let whole = place.json(&["replay", "s.jsonl", "--model", "other", "--json"]);
    assert_eq!((records(&whole), place.export().len()), (6, 6));
}

#[test]
fn copy_of_a_session_in_another_file_is_read_once() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("in/a.jsonl", claude(0..4));
    place.write("in/b.jsonl", claude(0..4));
    let totals = place.json(&["replay", "in", "--json"]);
    balanced(&totals);
    assert_eq!((records(&totals), count(&totals, "/sessions")), (4, 1));
    assert_eq!(count(&totals, "/coverage/skipped"), 8);
    let again = place.json(&["replay", "in", "--json"]);
    balanced(&again);
    assert_eq!(count(&again, "/calls"), 0);
}

#[test]
fn another_model_that_fails_leaves_what_was_found() {
    let stub = Stub::new(|ask| match ask.body["model"] == "broken" {
        true => super::stub::error(400, "invalid_request_error"),
        false => ask.good(),
    });
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..4));
    let good = place.json(&["replay", "s.jsonl", "--json"]);
    let kept = place.export();
    let failed = place.json_with(1, &["replay", "s.jsonl", "--model", "broken", "--json"]);
    balanced(&failed);
    assert_eq!(count(&failed, "/coverage/failed"), count(&failed, "/entries"));
    assert_eq!(place.export(), kept);
    assert_eq!(place.run(&["status"]).code, 0, "what was found covers every entry");
    assert_eq!(records(&good), 4);
}

#[test]
fn two_conversations_that_begin_alike_are_both_read() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("a.txt", "user: hi\nassistant: hello\nuser: We chose red over blue because sun.\n");
    place.write(
        "in/b.txt",
        "user: hi\nassistant: hello\nuser: We chose oak over elm because age.\n",
    );
    let both = place.json(&["replay", "a.txt", "in", "--json"]);
    balanced(&both);
    assert_eq!((count(&both, "/sessions"), count(&both, "/coverage/skipped")), (2, 2), "{both}");
    assert_eq!(records(&both), 2);
    let again = place.json(&["replay", "in/b.txt", "--json"]);
    balanced(&again);
    assert_eq!((count(&again, "/calls"), place.export().len()), (0, 2), "{again}");
}
