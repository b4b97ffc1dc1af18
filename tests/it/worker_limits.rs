//! Caps and rates of workers: what is over waits with its reason, and all workers keep them together.

use super::handing::{Handed, ONE};
use super::place::{Place, count};
use super::stub::Stub;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const DRAIN: [&str; 3] = ["worker", "--drain", "--json"];
const TALKS: usize = 10;

/// A cap that `key` names: jobs wait with the reason, and go on when it was raised. The worst case of a call is
/// reserved, so the cap is the smallest of some under which a call is made at all.
#[track_caller]
fn waits_at(key: &str, per_token: f64) {
    let begun = (45..80).any(|hundreds| {
        let cap = f64::from(hundreds * 100) * per_token;
        let cap = if per_token < 1.0 { cap.to_string() } else { format!("{cap:.0}") };
        waits_at_cap(key, &cap)
    });
    assert!(begun, "{key}: no call was made under any cap");
}

/// False if no call was made.
#[track_caller]
fn waits_at_cap(key: &str, cap: &str) -> bool {
    let stub = Stub::good();
    let mut place = Place::with_worker(stub.url());
    let name = format!("ANNALIST__LIMITS__{}", key.to_uppercase());
    place.set("ANNALIST__MODEL__USD_PER_MILLION_SENT", "1000");
    place.set("ANNALIST__MODEL__REPLY_TOKENS_MAX", "300");
    place.set(&name, cap);
    let jobs = ONE.enqueue(&place, 0..TALKS) as u64;
    let output = place.run(&DRAIN);
    assert_eq!(output.code, 1, "{key}: {}", output.stderr);
    let summary = output.json();
    let (done, waits) = (count(&summary, "/jobs/done"), count(&summary, "/left/at_a_cap"));
    let reason = if done == 0 { "is too small: one call" } else { "is reached" };
    assert!(output.stderr.contains(&format!("limits.{key} {reason}")), "{}", output.stderr);
    if done == 0 {
        return false;
    }
    assert!(waits > 0 && done + waits == jobs, "{key}: {summary}");
    let mend = if key.starts_with("session") { "raise it, then run" } else { "the next day (UTC)" };
    assert!(output.stderr.contains(mend), "{key}: {}", output.stderr);
    let reasons = place.number("SELECT count(DISTINCT detail) FROM jobs WHERE reason = 'cap'");
    let charged = place.number("SELECT sum(attempts) FROM jobs WHERE reason = 'cap'");
    assert_eq!((reasons, charged), (1, 0), "{key}");
    place.unset(&name);
    assert_eq!(count(&place.json(&DRAIN), "/jobs/done"), waits, "{key}");
    assert_eq!(stub.count() as u64, jobs, "{key}: nothing is paid twice");
    place.is_whole(TALKS);
    true
}

#[test]
fn at_a_cap_jobs_wait_with_the_reason_and_go_on_when_it_was_raised() {
    waits_at("day_tokens_max", 1.0);
    waits_at("session_tokens_max", 1.0);
    waits_at("namespace_day_tokens_max", 1.0);
    waits_at("day_usd_max", 0.001);
    waits_at("namespace_day_usd_max", 0.001);
}

#[test]
fn a_cap_of_one_namespace_holds_no_other() {
    let stub = Stub::good();
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST__MODEL__REPLY_TOKENS_MAX", "300");
    place.set("ANNALIST__LIMITS__NAMESPACE_DAY_TOKENS_MAX", "5600");
    ONE.enqueue(&place, 0..TALKS);
    let other = Handed { namespace: "cellars", name: "two", ..ONE }.enqueue(&place, 20..21);
    let summary = place.json_with(1, &DRAIN);
    assert!(count(&summary, "/left/at_a_cap") > 0, "{summary}");
    let waiting = "SELECT count(*) FROM jobs j JOIN lanes l ON l.no = j.lane
        WHERE l.namespace = 'cellars' AND j.state = 'done'";
    assert_eq!(place.number(waiting), other as i64);
}

#[test]
fn two_workers_together_spend_no_more_than_the_cap() {
    let stub = Stub::good();
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST__MODEL__REPLY_TOKENS_MAX", "300");
    place.set("ANNALIST__LIMITS__DAY_TOKENS_MAX", "6000");
    ONE.enqueue(&place, 0..60);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| place.run(&DRAIN));
        }
    });
    let (asked, left) = (stub.count(), place.jobs_in("waiting"));
    assert!(left > 0, "{asked} requests");
    let spent = "SELECT amount FROM allowances WHERE scope LIKE 'day %' AND sort = 'tokens'";
    let spent = place.number(spent);
    assert!(spent <= 6_000, "{spent} tokens in {asked} requests");
}

#[test]
fn two_workers_together_keep_the_requests_of_a_minute() {
    // Two a second, two at once: twenty take nine seconds; with a rate each, they would take half of it.
    let asked: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let heard = Arc::clone(&asked);
    let stub = Stub::new(move |ask| {
        heard.lock().unwrap().push(Instant::now());
        ask.good()
    });
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST__LIMITS__REQUESTS_PER_MINUTE", "120");
    let jobs = ONE.enqueue(&place, 0..20);
    assert_eq!(jobs, 20);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| place.json(&DRAIN));
        }
    });
    let asked = asked.lock().unwrap();
    let (first, last) = (asked.first().unwrap(), asked.last().unwrap());
    // The first may be late on its way, and no request is early.
    assert!(last.duration_since(*first) >= Duration::from_secs(7), "{:?}", *last - *first);
    assert_eq!(asked.len(), jobs);
}
