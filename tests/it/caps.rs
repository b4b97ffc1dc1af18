//! Bounds on tokens and money, and slices that are too long: work waits or is cut, none is lost.

use super::input::{claude, extracted};
use super::place::{Place, balanced, count, records};
use super::stub::{Answer, Stub, error};
use serde_json::json;

/// A cap that `key` names, reached in the midst of a session; raising it goes on. The worst case of a call
/// is reserved, so that the cap lies some calls above it.
#[track_caller]
fn waits_at(key: &str) {
    let stub = Stub::good();
    let mut place = Place::with_endpoint(stub.url());
    let name = format!("ANNALIST__LIMITS__{}", key.to_uppercase());
    place.write("s.jsonl", claude(0..10));
    place.set("ANNALIST__MODEL__USD_PER_MILLION_SENT", "1000");
    place.set("ANNALIST__MODEL__REPLY_TOKENS_MAX", "300");
    let dry = place.json(&["replay", "s.jsonl", "--dry-run", "--json"]);
    let worst = count(&dry, "/tokens/estimated") / count(&dry, "/slices") * 4 / 3;
    let cap = match key.ends_with("usd_max") {
        true => ((worst + 600) as f64 / 1000.0).to_string(),
        false => (worst + 300 + 800).to_string(),
    };
    place.set(&name, &cap);
    // One at a time: a later slice is told more, so that its worst case may not fit where the first does.
    let output = place.run(&["replay", "s.jsonl", "--concurrency", "1", "--json"]);
    assert_eq!(output.code, 1, "{key}: {}", output.stderr);
    assert!(output.stderr.contains(&format!("limits.{key}")), "{key}: {}", output.stderr);
    let capped = output.json();
    balanced(&capped);
    let (calls, pending) = (count(&capped, "/calls"), count(&capped, "/coverage/pending"));
    assert!(calls > 0 && pending > 0, "{key}: some of it is done, some waits: {capped}");
    assert_eq!(calls, stub.count() as u64);
    assert!(records(&capped) > 0, "{key}: what was paid for is kept: {capped}");
    let status = place.run(&["status"]);
    assert!(status.stdout.contains("unfinished"), "{}", status.stdout);
    place.unset(&name);
    let rest = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&rest);
    assert_eq!((records(&rest), count(&rest, "/coverage/pending")), (10, 0));
    assert_eq!(calls + count(&rest, "/calls"), count(&rest, "/slices"), "nothing is paid twice");
}

#[test]
fn at_the_cap_on_tokens_a_day_work_waits() {
    waits_at("day_tokens_max");
}

#[test]
fn at_the_cap_on_tokens_of_a_session_work_waits() {
    waits_at("session_tokens_max");
}

#[test]
fn at_the_cap_on_money_work_waits() {
    waits_at("day_usd_max");
    waits_at("session_usd_max");
}

#[test]
fn cap_on_money_is_refused_where_the_price_is_unknown() {
    let stub = Stub::good();
    let mut place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..1));
    place.set("ANNALIST__LIMITS__DAY_USD_MAX", "1");
    place.set("ANNALIST__MODEL__BASE_URL", "http://models.invalid/v1");
    let words = ["limits.day_usd_max has no effect", "usd_per_million_sent"];
    place.run(&["replay", "s.jsonl"]).refused(2, &words);
    place.run(&["worker", "--drain"]).refused(2, &words);
    let dry = place.run(&["replay", "s.jsonl", "--dry-run"]);
    assert!(dry.code == 0 && dry.stderr.contains(words[0]), "{}", dry.stderr);
    place.set("ANNALIST__MODEL__BASE_URL", stub.url());
    place.json(&["replay", "s.jsonl", "--json"]);
    place.set("ANNALIST__MODEL__BASE_URL", "http://models.invalid/v1");
    place.run(&["consolidate", "--model", "small"]).refused(2, &words);
    let doctor = place.run(&["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains(words[0]), "{}", doctor.stdout);
}

#[test]
fn cap_of_the_day_counts_what_was_spent_before() {
    let stub = Stub::good();
    let mut place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..3));
    let spent = place.json(&["replay", "s.jsonl", "--json"]);
    let tokens = count(&spent, "/tokens/sent") + count(&spent, "/tokens/answered");
    place.set("ANNALIST__LIMITS__DAY_TOKENS_MAX", &tokens.to_string());
    place.write("s.jsonl", claude(0..4));
    let asked = stub.count();
    let capped = place.json_with(1, &["replay", "s.jsonl", "--json"]);
    balanced(&capped);
    assert_eq!(stub.count(), asked);
}

#[test]
fn slice_that_is_too_long_is_cut_in_two_until_it_fits() {
    let stub = Stub::new(|ask| match ask.slice().matches("We chose ").count() > 4 {
        true => error(400, "context_length_exceeded"),
        false => Answer::Call(extracted(ask.slice())),
    });
    let mut place = Place::with_endpoint(stub.url());
    place.set("ANNALIST__SLICE__TOKENS", "6000");
    place.write("s.jsonl", claude(0..12));
    let totals = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&totals);
    assert_eq!((records(&totals), count(&totals, "/coverage/failed")), (12, 0), "{totals}");
    let asked = stub.count();
    let again = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&again);
    assert_eq!((count(&again, "/calls"), stub.count()), (0, asked));
    assert_eq!(again["records"], totals["records"]);
    // What grew is cut in the same way, and what was cut before is known.
    place.write("s.jsonl", claude(0..14));
    let grown = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&grown);
    assert_eq!((records(&grown), stub.count()), (14, asked + 1));
}

/// The answer about a slice; broken off behind `kept` claims if there are more than five.
fn cut_off(slice: &str, kept: usize) -> Answer {
    let whole = extracted(slice).to_string();
    let ends: Vec<usize> = whole.match_indices("},").map(|(at, _)| at).collect();
    match ends.len() > 4 {
        true => {
            Answer::CallText(whole[..kept.checked_sub(1).map_or(0, |at| ends[at]) + 8].to_owned())
        }
        false => Answer::Call(extracted(slice)),
    }
}

#[track_caller]
fn check_cut_in_two(kept: usize) {
    let stub = Stub::new(move |ask| cut_off(ask.slice(), kept));
    let mut place = Place::with_endpoint(stub.url());
    place.set("ANNALIST__SLICE__TOKENS", "6000");
    place.write("s.jsonl", claude(0..12));
    let totals = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&totals);
    assert_eq!((records(&totals), count(&totals, "/coverage/failed")), (12, 0), "{totals}");
    let asked = stub.count();
    place.json(&["replay", "s.jsonl", "--retry-failed", "--json"]);
    assert_eq!(stub.count(), asked);
}

#[test]
fn slice_whose_answers_break_off_is_cut_in_two() {
    check_cut_in_two(5);
}

#[test]
fn slice_whose_answers_break_off_before_a_claim_is_cut_in_two() {
    check_cut_in_two(0);
}

#[test]
fn slice_whose_answers_break_off_fails_with_what_arrived_and_is_asked_about_again() {
    let stub = Stub::new(|ask| {
        let whole = extracted(ask.slice()).to_string();
        match ask.body["max_tokens"] == 300 {
            true => Answer::CallText(whole[..whole.find("\"requests\"").unwrap() + 5].to_owned()),
            false => Answer::CallText(whole),
        }
    });
    let mut place = Place::with_endpoint(stub.url());
    place.set("ANNALIST__MODEL__REPLY_TOKENS_MAX", "300");
    place.write("s.jsonl", claude(0..2));
    let output = place.run(&["replay", "s.jsonl", "--json"]);
    let totals = output.json();
    balanced(&totals);
    assert_eq!((output.code, &totals["coverage"]["failed"]), (1, &totals["entries"]), "{totals}");
    assert!(output.stderr.contains("model.reply_tokens_max"), "{}", output.stderr);
    assert_eq!(records(&totals), 2, "what arrived is kept: {totals}");
    assert_eq!(place.run(&["status"]).code, 1);
    let asked = stub.count();
    place.json_with(1, &["replay", "s.jsonl", "--json"]);
    assert_eq!(stub.count(), asked, "nothing is paid twice");
    place.json_with(1, &["replay", "s.jsonl", "--retry-failed", "--json"]);
    assert!(stub.count() > asked);
    place.set("ANNALIST__MODEL__REPLY_TOKENS_MAX", "600");
    let whole = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&whole);
    assert_eq!((records(&whole), count(&whole, "/coverage/failed")), (2, 0), "{whole}");
}

#[test]
fn calls_without_an_answer_count_against_a_cap_at_their_worst_case() {
    let stub = Stub::new(|_| Answer::Hold);
    let mut place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..2));
    place.set("ANNALIST__MODEL__TIMEOUT_SECS", "1");
    place.set("ANNALIST__MODEL__REPLY_TOKENS_MAX", "8000");
    place.set("ANNALIST__LIMITS__DAY_TOKENS_MAX", "15000");
    for _ in 0..2 {
        let output = place.run(&["replay", "s.jsonl"]);
        assert_eq!(output.code, 1);
        assert!(output.stderr.contains("limits.day_tokens_max"), "{}", output.stderr);
        assert_eq!(stub.count(), 1, "a second one might exceed it");
    }
    let status = place.run(&["status"]).stdout;
    assert!(status.contains("1 call without an answer, counted at up to $"), "{status}");
}

#[test]
fn calls_of_a_killed_process_count_against_a_cap_at_their_worst_case() {
    let stub = Stub::new(|_| Answer::Hold);
    let mut place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..2));
    place.set("ANNALIST__MODEL__REPLY_TOKENS_MAX", "8000");
    place.set("ANNALIST__LIMITS__DAY_TOKENS_MAX", "15000");
    let worker = place.start(&["replay", "s.jsonl"]);
    stub.until(1);
    worker.kill();
    let output = place.run(&["replay", "s.jsonl"]);
    assert!(output.stderr.contains("limits.day_tokens_max"), "{}", output.stderr);
    assert_eq!((output.code, stub.count()), (1, 1));
    let status = place.run(&["status"]).stdout;
    assert!(status.contains("1 call without an answer, counted at up to $"), "{status}");
}

#[test]
fn slice_that_never_fits_fails_with_the_reason() {
    let stub = Stub::new(|_| error(400, "context_length_exceeded"));
    let mut place = Place::with_endpoint(stub.url());
    place.set("ANNALIST__SLICE__TOKENS", "1600");
    place.write("s.jsonl", claude(0..6));
    let totals = place.json_with(1, &["replay", "s.jsonl", "--json"]);
    balanced(&totals);
    assert_eq!(totals["coverage"]["failed"], totals["entries"]);
    assert!(totals["failures"]["too-long"]["slices"].as_u64().unwrap() > 0, "{totals}");
}

#[test]
fn calls_that_use_more_than_their_worst_case_exceed_a_cap_once() {
    // Every answer is reported at more than the whole cap.
    let stub = Stub::new(|ask| {
        let Answer::Call(arguments) = ask.good() else { unreachable!() };
        let call = json!({"id": "c", "type": "function",
            "function": {"name": ask.tool(), "arguments": arguments.to_string()}});
        let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        let body = json!({"id": "1", "object": "chat.completion", "created": 1, "model": "stub-1",
            "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
            "usage": {"prompt_tokens": 30_000, "completion_tokens": 10}});
        Answer::Status(200, "", body.to_string())
    });
    let mut place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..30));
    place.set("ANNALIST__MODEL__REPLY_TOKENS_MAX", "300");
    for (cap, calls) in [("20000", 1), ("150000", 4)] {
        place.set("ANNALIST__LIMITS__DAY_TOKENS_MAX", cap);
        let output = place.run(&["replay", "s.jsonl"]);
        assert_eq!(output.code, 1, "{}", output.stderr);
        assert_eq!(stub.count(), calls, "cap {cap}: {}", output.stderr);
    }
}
