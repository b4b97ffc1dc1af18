//! How jobs and workers end that do not end well: what fails, what is away, who is told to stop.

use super::handing::{Handed, ONE};
use super::input::{claude, extracted};
use super::place::{Place, count};
use super::stub::{Answer, Stub, error};
use serde_json::json;
use std::path::Path;

const DRAIN: [&str; 3] = ["worker", "--drain", "--json"];
const TALKS: usize = 4;

/// Only a person can mend it: the worker says how, and the jobs stay as they were.
#[track_caller]
fn needs_a_person(status: u16, code: &'static str, words: &str) {
    let stub = Stub::new(move |_| error(status, code));
    let place = Place::with_worker(stub.url());
    let jobs = ONE.enqueue(&place, 0..TALKS) as i64;
    let output = place.run(&["worker"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    let line = output.stderr.lines().find(|line| line.starts_with("stopped:")).unwrap();
    assert!(line.contains(words), "{line}");
    assert_eq!(place.jobs_in("ready"), jobs);
    assert_eq!(place.number("SELECT sum(attempts) FROM jobs"), 0);
    let told = place.sql().query_row("SELECT stopped FROM workers", [], |row| row.get(0));
    let told: String = told.unwrap();
    assert!(line.contains(&told), "{told}");
}

#[test]
fn a_wrong_key_or_model_stops_the_worker_and_leaves_the_jobs() {
    needs_a_person(401, "invalid_api_key", "api_key_env");
    needs_a_person(404, "model_not_found", "check `model`");
}

#[test]
fn rate_limits_charge_no_attempt() {
    let stub = Stub::new(|ask| match ask.number {
        ..=12 => Answer::Status(429, "retry-after-ms: 60\r\n", "{}".to_owned()),
        _ => ask.good(),
    });
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST__QUEUE__ATTEMPTS_MAX", "1");
    let jobs = ONE.enqueue(&place, 0..TALKS) as u64;
    let output = place.run(&DRAIN);
    let summary = output.json();
    assert_eq!((count(&summary, "/jobs/done"), count(&summary, "/jobs/dead")), (jobs, 0));
    assert!(count(&summary, "/jobs/released") > 0, "{summary}");
    assert_eq!(output.stderr.matches("rate-limited until").count(), 1, "{}", output.stderr);
    place.is_whole(TALKS);
}

#[test]
fn one_job_without_an_answer_backs_off_and_dies_of_its_attempts() {
    let stub = Stub::new(|ask| match ask.slice().contains("roof 2 ") {
        true => error(503, "overloaded"),
        false => ask.good(),
    });
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST__QUEUE__ATTEMPTS_MAX", "2");
    place.set("ANNALIST__MODEL__CONCURRENCY", "1");
    let jobs = ONE.enqueue(&place, 0..TALKS) as u64;
    let summary = place.json_with(1, &DRAIN);
    let dead = count(&summary, "/jobs/dead");
    assert!(dead > 0 && dead < 3, "only what has no answer: {summary}");
    assert_eq!(count(&summary, "/jobs/done"), jobs - dead);
    assert_eq!(summary["jobs"]["failures"]["unavailable"][0], dead);
    let status = place.json_with(1, &["status", "--json"]);
    assert!(count(&status, "/sessions/0/coverage/failed") > 0, "{status}");
}

#[test]
fn an_endpoint_that_is_away_costs_no_job_its_life() {
    let stub = Stub::new(|ask| match ask.number {
        ..=6 => error(503, "loading"),
        _ => ask.good(),
    });
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST__QUEUE__ATTEMPTS_MAX", "2");
    ONE.enqueue(&place, 0..TALKS);
    let output = place.run(&DRAIN);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(output.stderr.matches("considered unreachable").count(), 1, "{}", output.stderr);
    assert_eq!(output.stderr.matches("answers again").count(), 1, "{}", output.stderr);
    place.is_whole(TALKS);
}

#[test]
fn an_outage_that_begins_while_a_worker_runs_charges_no_attempt() {
    let stub = Stub::new(|ask| match ask.number {
        2..=3 => error(503, "down"),
        _ => ask.good(),
    });
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST__MODEL__CONCURRENCY", "1");
    ONE.enqueue(&place, 0..TALKS);
    let summary = place.run(&DRAIN).json();
    assert_eq!((count(&summary, "/jobs/retried"), count(&summary, "/jobs/released")), (0, 2));
    place.is_whole(TALKS);
}

#[test]
fn workers_started_again_and_again_while_the_endpoint_is_away_cost_no_job_its_life() {
    let stub = Stub::new(|_| error(503, "down"));
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST__LIMITS__WAIT_SECS_MAX", "1");
    place.set("ANNALIST__QUEUE__ATTEMPTS_MAX", "1");
    let jobs = ONE.enqueue(&place, 0..1) as i64;
    for _ in 0..2 {
        let output = place.run(&DRAIN);
        assert!(output.stderr.contains("limits.wait_secs_max"), "{}", output.stderr);
        assert_eq!(place.number("SELECT sum(attempts) FROM jobs"), 0);
    }
    assert_eq!(place.jobs_in("ready") + place.jobs_in("waiting"), jobs);
}

#[test]
fn a_drain_does_not_wait_for_ever_for_an_endpoint_that_is_away() {
    let stub = Stub::new(|_| error(503, "down"));
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST__LIMITS__WAIT_SECS_MAX", "1");
    let jobs = ONE.enqueue(&place, 0..TALKS) as i64;
    let output = place.run(&DRAIN);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("limits.wait_secs_max"), "{}", output.stderr);
    assert_eq!(place.jobs_in("ready") + place.jobs_in("waiting"), jobs);
}

#[test]
fn a_drain_ends_on_an_endpoint_that_is_no_model() {
    let stub = Stub::new(|_| Answer::Status(200, "", "<html>welcome".to_owned()));
    let place = Place::with_worker(stub.url());
    ONE.enqueue(&place, 0..TALKS);
    let output = place.run(&DRAIN);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("stopped: not-a-reply"), "{}", output.stderr);
    assert!(output.stderr.contains("check `base_url`"), "{}", output.stderr);
    assert!(place.jobs_in("dead") == 0 && stub.count() < 20, "{} requests", stub.count());
}

#[test]
fn a_slice_that_is_too_long_becomes_jobs_that_fit() {
    let stub = Stub::new(|ask| match ask.slice().matches("We chose ").count() > 4 {
        true => error(400, "context_length_exceeded"),
        false => Answer::Call(extracted(ask.slice())),
    });
    let place = Place::with_worker(stub.url());
    let jobs = Handed { slice: 6_000, ..ONE }.enqueue(&place, 0..12) as u64;
    let summary = place.json(&DRAIN);
    let cut = count(&summary, "/jobs/cut");
    assert!(cut > 0 && count(&summary, "/jobs/done") >= jobs + cut, "{summary}");
    place.is_whole(12);
}

#[test]
fn a_slice_that_never_fits_is_dead_with_the_reason() {
    let stub = Stub::new(|_| error(400, "context_length_exceeded"));
    let place = Place::with_worker(stub.url());
    Handed { slice: 1_600, ..ONE }.enqueue(&place, 0..TALKS);
    let summary = place.json_with(1, &DRAIN);
    assert_eq!(count(&summary, "/jobs/done"), 0);
    assert_eq!(summary["jobs"]["failures"]["too-long"][0], summary["jobs"]["dead"]);
    let status = place.json_with(1, &["status", "--json"]);
    assert_eq!(count(&status, "/sessions/0/coverage/failed"), 2 * TALKS as u64, "{status}");
}

#[test]
fn a_slice_without_a_usable_answer_is_dead_until_another_model_is_asked() {
    let stub = Stub::new(|ask| match ask.body["model"] == "stub-2" {
        true => ask.good(),
        false => Answer::Call(json!({"decisions": "none"})),
    });
    let place = Place::with_worker(stub.url());
    let jobs = ONE.enqueue(&place, 0..2) as u64;
    let summary = place.json_with(1, &DRAIN);
    assert_eq!(count(&summary, "/jobs/dead"), jobs);
    assert_eq!(summary["jobs"]["failures"]["malformed"][0], jobs, "{summary}");
    let asked = stub.count();
    let again = place.run(&DRAIN);
    assert_eq!(count(&again.json(), "/jobs/claimed"), 0, "the same would be said again");
    assert_eq!((again.code, count(&again.json(), "/left/dead")), (0, jobs));
    assert!(again.stderr.contains("annalist jobs retry --all-dead"), "{}", again.stderr);
    assert_eq!(stub.count(), asked);
    let again = place.json(&["worker", "--drain", "--json", "--model", "stub-2"]);
    assert_eq!((count(&again, "/jobs/done"), count(&again, "/jobs/dead")), (jobs, 0));
    place.is_whole(2);
}

#[test]
fn a_stopping_worker_keeps_the_answer_under_way_and_releases_the_rest() {
    let stub = Stub::new(|_| Answer::Hold);
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST__MODEL__CONCURRENCY", "1");
    let jobs = ONE.enqueue(&place, 0..TALKS) as i64;
    let running = place.start(&["worker"]);
    stub.until(1);
    running.signal("TERM");
    while !running.said().contains("stopping:") {
        std::thread::yield_now();
    }
    stub.release();
    let output = running.wait();
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!((place.jobs_in("done"), place.jobs_in("ready")), (1, jobs - 1));
    assert_eq!(place.number("SELECT sum(attempts) FROM jobs WHERE state = 'ready'"), 0);
    place.json(&DRAIN);
    assert_eq!(stub.count() as i64, jobs, "nothing is asked twice");
    place.is_whole(TALKS);
}

#[test]
fn a_stopping_worker_waits_no_longer_than_the_grace() {
    let stub = Stub::new(|ask| if ask.number == 1 { Answer::Hold } else { ask.good() });
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST__QUEUE__GRACE_SECS", "0");
    place.set("ANNALIST__MODEL__CONCURRENCY", "1");
    let jobs = ONE.enqueue(&place, 0..TALKS) as i64;
    let running = place.start(&["worker"]);
    stub.until(1);
    running.signal("INT");
    let output = running.wait();
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!((place.jobs_in("ready"), place.number("SELECT sum(attempts) FROM jobs")), (jobs, 0));
    place.json(&DRAIN);
    place.is_whole(TALKS);
}

#[test]
fn a_worker_that_is_stopped_twice_ends_at_once_and_loses_nothing() {
    let stub = Stub::new(|ask| if ask.number == 1 { Answer::Hold } else { ask.good() });
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST__MODEL__CONCURRENCY", "1");
    let jobs = ONE.enqueue(&place, 0..TALKS);
    let running = place.start(&["worker"]);
    stub.until(1);
    running.signal("TERM");
    while !running.said().contains("stopping:") {
        std::thread::yield_now();
    }
    running.signal("TERM");
    let output = running.wait();
    assert_eq!(output.code, 1, "{}", output.stderr);
    let summary = place.json(&DRAIN);
    assert_eq!((count(&summary, "/jobs/done"), stub.count()), (jobs as u64, jobs + 1));
    place.is_whole(TALKS);
}

#[test]
fn a_store_that_is_locked_for_a_while_loses_no_answer() {
    let stub = Stub::new(|ask| if ask.number == 1 { Answer::Hold } else { ask.good() });
    let place = Place::with_worker(stub.url());
    let jobs = ONE.enqueue(&place, 0..1);
    let running = place.start(&DRAIN);
    stub.until(jobs);
    let sql = place.sql();
    sql.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
    sql.execute_batch("BEGIN IMMEDIATE").unwrap();
    stub.release();
    while !running.said().contains("retried for") {
        std::thread::yield_now();
    }
    sql.execute_batch("ROLLBACK").unwrap();
    let output = running.wait();
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(stub.count(), jobs, "nothing is asked twice");
    place.is_whole(1);
}

#[test]
fn words_of_a_conversation_are_in_no_log_of_a_worker() {
    let stub = Stub::new(|ask| match ask.number {
        2 => error(400, "context_length_exceeded"),
        3 => Answer::Call(json!({"decisions": "depot"})),
        _ => ask.good(),
    });
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST_LOG", "trace");
    ONE.enqueue(&place, 0..TALKS);
    let output = place.run(&["worker", "--drain"]);
    assert!(output.stderr.contains("job ended"), "{}", output.stderr);
    for words in ["weather station", "depot", "damp", "cellar"] {
        assert!(!output.stderr.contains(words), "{words}: {}", output.stderr);
    }
}

#[test]
fn a_dead_job_whose_entries_a_replay_extracted_is_over() {
    let stub = Stub::new(|ask| match ask.number {
        1 => error(400, "content_filter"),
        _ => ask.good(),
    });
    let place = Place::with_worker(stub.url());
    place.write("s.jsonl", claude(0..TALKS));
    place.json(&["enqueue", "s.jsonl", "--flush", "--json"]);
    place.json_with(1, &DRAIN);
    assert_eq!(place.jobs_in("dead"), 1);
    assert_eq!(place.run(&["status"]).code, 1);
    place.json(&["replay", "s.jsonl", "--retry-failed", "--json"]);
    assert_eq!((place.jobs_in("dead"), place.run(&["status"]).code), (0, 0));
    place.is_whole(TALKS);
}

#[test]
fn a_slice_that_no_cassette_answered_is_asked_about_as_new() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sessions = root.join("examples/sessions");
    let (sessions, cassette) = (sessions.to_str().unwrap(), root.join("examples/cassette"));
    let place = Place::new();
    let one = "plain-retro.json";
    place.write(&format!("part/{one}"), std::fs::read(cassette.join(one)).unwrap());
    place.json(&["enqueue", sessions, "--flush", "--json"]);
    let summary = place.json_with(1, &["worker", "--drain", "--cassette", "part", "--json"]);
    let dead = count(&summary, "/jobs/dead");
    assert!(dead > 0, "{summary}");
    let retried = place.run(&["jobs", "retry", "--all-dead"]);
    assert_eq!(retried.code, 0, "{}", retried.stderr);
    let whole = ["worker", "--drain", "--cassette", cassette.to_str().unwrap(), "--json"];
    assert_eq!(count(&place.json(&whole), "/jobs/done"), dead);
}
