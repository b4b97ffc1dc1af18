//! Ending at every effect: by a signal that cannot be caught, by a store that refuses, by a person.
//! Going on afterwards gives what an undisturbed run gives.

use super::input::claude;
use super::place::{Place, balanced, count};
use super::stub::{Answer, Ask, Stub, error};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Talks of the session; each is a slice or more.
const TALKS: usize = 6;
const REPLAY: [&str; 3] = ["replay", "s.jsonl", "--json"];

/// What an undisturbed run exports, and how many requests it makes.
fn undisturbed() -> (Vec<String>, usize) {
    let stub = Stub::good();
    let place = prepared(&stub);
    balanced(&place.json(&REPLAY));
    (place.export(), stub.count())
}

fn prepared(stub: &Stub) -> Place {
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..TALKS));
    place
}

/// Going on asks for what is not in the journal, no more, and ends as if nothing had happened.
#[track_caller]
fn goes_on(place: &Place, stub: &Stub) {
    let (export, requests) = undisturbed();
    let journaled = place.number("SELECT count(*) FROM journal") as usize;
    let seen = stub.count();
    let totals = place.json(&REPLAY);
    balanced(&totals);
    assert_eq!(count(&totals, "/coverage/pending"), 0);
    assert_eq!(place.export(), export);
    assert_eq!(stub.count() - seen, requests - journaled, "what is journaled is not asked again");
    let status = place.json(&["status", "--json"]);
    let mut spent = [count(&status, "/spent/calls"), count(&status, "/spent/sent")];
    for line in status["bill"].as_array().unwrap().iter().filter(|it| it["for"] == "unanswered") {
        spent[0] -= count(line, "/calls");
        spent[1] -= count(line, "/sent");
    }
    let kept = requests as u64;
    assert_eq!(spent, [kept, 100 * kept], "every answer that is kept is on the bill");
    let seen = stub.count();
    let again = place.json(&REPLAY);
    assert_eq!((count(&again, "/calls"), stub.count()), (0, seen));
}

#[test]
fn killed_before_the_answer_to_any_call_it_goes_on() {
    let (_, requests) = undisturbed();
    for last in 1..=requests {
        let stub = Stub::new(move |ask| if ask.number == last { Answer::Hold } else { ask.good() });
        let mut place = prepared(&stub);
        place.set("ANNALIST__MODEL__CONCURRENCY", "1");
        let running = place.start(&REPLAY);
        stub.until(last);
        running.kill();
        goes_on(&place, &stub);
    }
}

#[test]
fn killed_when_any_answer_has_just_been_sent_it_goes_on() {
    let (_, requests) = undisturbed();
    for last in 1..=requests {
        let stub = Stub::good();
        let place = prepared(&stub);
        let running = place.start(&REPLAY);
        stub.until(last);
        running.kill();
        goes_on(&place, &stub);
    }
}

#[test]
fn killed_with_many_calls_in_flight_it_asks_for_those_again() {
    let (_, requests) = undisturbed();
    let stub = Stub::new(|ask| if ask.number > 2 { Answer::Hold } else { ask.good() });
    let place = prepared(&stub);
    let running = place.start(&REPLAY);
    stub.until(requests.min(8));
    running.kill();
    assert!(place.number("SELECT count(*) FROM journal") <= 2);
    stub.release();
    goes_on(&place, &stub);
}

/// A store that refuses `effect`, as a full disk would, then not any more.
#[track_caller]
fn refused(effect: &str) {
    let stub = Stub::good();
    let mut place = prepared(&stub);
    place.set("ANNALIST__MODEL__CONCURRENCY", "1");
    // Makes the store with nothing in it.
    place.json(&["replay", "s.jsonl", "--since", "2999-01-01", "--json"]);
    let trigger =
        format!("CREATE TRIGGER refuse BEFORE {effect} BEGIN SELECT RAISE(ABORT, 'no room'); END");
    place.sql().execute_batch(&trigger).unwrap();
    let output = place.run(&REPLAY);
    assert_eq!(output.code, 1, "{effect}: {}", output.stderr);
    assert!(output.stderr.contains("error:"), "{effect}: {}", output.stderr);
    place.sql().execute_batch("DROP TRIGGER refuse").unwrap();
    goes_on(&place, &stub);
}

#[test]
fn store_that_refuses_to_begin_a_session_loses_nothing() {
    refused("INSERT ON sessions");
}

#[test]
fn store_that_refuses_to_journal_ends_the_asking() {
    refused("INSERT ON journal");
    // Nobody goes on paying for what cannot be stored.
    let stub = Stub::good();
    let mut place = Place::with_endpoint(stub.url());
    place.set("ANNALIST__MODEL__CONCURRENCY", "1");
    place.write("s.jsonl", claude(0..300));
    place.json(&["replay", "s.jsonl", "--since", "2999-01-01", "--json"]);
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON journal
        BEGIN SELECT RAISE(ABORT, 'no room'); END";
    place.sql().execute_batch(refuse).unwrap();
    assert_eq!(place.run(&REPLAY).code, 1);
    assert!(stub.count() < 150, "{} requests after the first was refused", stub.count());
}

#[test]
fn store_that_refuses_a_later_answer_keeps_the_earlier() {
    refused("INSERT ON journal WHEN (SELECT count(*) FROM journal) = 3");
}

#[test]
fn store_that_refuses_to_stage_has_the_answer_already() {
    refused("INSERT ON runs");
    refused("INSERT ON runs WHEN (SELECT count(*) FROM runs) = 2");
}

#[test]
fn store_that_refuses_records_or_coverage_stages_no_half() {
    refused("INSERT ON records");
    refused("INSERT ON coverage");
    refused("INSERT ON entries");
}

#[test]
fn store_that_refuses_to_end_a_session_ends_it_next_time() {
    refused("INSERT ON session_ends");
    refused("UPDATE OF ended_at ON sessions WHEN NEW.ended_at IS NOT NULL");
}

/// Holds the third call, so that there is a middle.
fn held() -> Stub {
    Stub::new(|ask: &Ask| if ask.number == 3 { Answer::Hold } else { ask.good() })
}

#[test]
fn asked_to_stop_it_says_how_to_go_on_and_goes_on() {
    for signal in ["INT", "TERM"] {
        let stub = held();
        let mut place = prepared(&stub);
        place.set("ANNALIST__MODEL__CONCURRENCY", "1");
        let running = place.start(&REPLAY);
        stub.until(3);
        running.signal(signal);
        let output = running.wait();
        assert_eq!(output.code, 1, "{signal}: {}", output.stderr);
        assert!(output.stderr.contains("run the same command again"), "{}", output.stderr);
        balanced(&output.json());
        assert!(count(&output.json(), "/coverage/pending") > 0);
        goes_on(&place, &stub);
    }
}

#[test]
fn slices_that_failed_before_are_left_as_well_when_it_is_stopped() {
    let stub = Stub::new(|ask: &Ask| match ask.number {
        1 => error(400, "invalid_request_error"),
        _ => Answer::Hold,
    });
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..1));
    assert_eq!(place.run(&["replay", "s.jsonl"]).code, 1);
    let running = place.start(&["replay", "s.jsonl", "--retry-failed"]);
    stub.until(2);
    running.signal("INT");
    let output = running.wait();
    let mut rows = output.stdout.lines().map(|it| it.split_whitespace().collect::<Vec<_>>());
    assert!(rows.any(|row| row == ["waiting", "1"]), "{}", output.stdout);
    assert!(output.stderr.contains("stopped: 1 slice left, "), "{}", output.stderr);
}

#[test]
fn stopped_before_it_read_as_far_as_the_last_time_the_totals_balance() {
    let stub = Stub::new(|ask| match ask.body["model"] == "other" {
        true => Answer::Hold,
        false => ask.good(),
    });
    let place = Place::with_endpoint(stub.url());
    // More slices than are worked on at once, so that reading waits.
    place.write("s.jsonl", claude(0..200));
    place.json(&REPLAY);
    let running = place.start(&["replay", "s.jsonl", "--model", "other", "--json"]);
    stub.until(stub.count() + 1);
    running.signal("INT");
    let output = running.wait();
    assert!(!output.stderr.contains("do not balance"), "{}", output.stderr);
    balanced(&output.json());
    assert!(count(&output.json(), "/entries") < 400);
    let whole = place.json(&REPLAY);
    assert_eq!(count(&whole, "/calls"), 0);
    balanced(&whole);
}

#[test]
fn asked_twice_it_stops_at_once() {
    // From the third answer on another process holds the store, so that ending takes seconds.
    let held: Arc<Mutex<(PathBuf, Option<rusqlite::Connection>)>> = Arc::default();
    let hold = Arc::clone(&held);
    let stub = Stub::new(move |ask| match ask.number {
        3 => {
            let mut hold = hold.lock().unwrap();
            let sql = rusqlite::Connection::open(&hold.0).unwrap();
            sql.busy_timeout(Duration::from_secs(60)).unwrap();
            // The next job is claimed ahead; once the store is held none can be.
            let ahead = "SELECT sum(state = 'done') >= 2 AND sum(state = 'leased') >= 2 FROM jobs";
            while !sql.query_row(ahead, [], |row| row.get::<_, bool>(0)).unwrap() {
                std::thread::yield_now();
            }
            sql.execute_batch("BEGIN IMMEDIATE").unwrap();
            hold.1 = Some(sql);
            ask.good()
        }
        4 => Answer::Hold,
        _ => ask.good(),
    });
    let mut place = prepared(&stub);
    place.set("ANNALIST__MODEL__CONCURRENCY", "1");
    held.lock().unwrap().0 = place.database();
    let mut running = place.start(&REPLAY);
    // The fourth is asked when the third was answered, which cannot be stored now.
    stub.until(4);
    running.signal("INT");
    while !running.said().contains("stopping:") && !running.has_ended() {
        std::thread::yield_now();
    }
    running.signal("INT");
    let output = running.wait();
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert_eq!(output.stdout, "", "it did not wait for the totals");
    assert!(!output.stderr.contains("locked"), "{}", output.stderr);
    held.lock().unwrap().1 = None;
    goes_on(&place, &stub);
}

#[test]
fn two_processes_at_once_share_a_store() {
    let (export, _) = undisturbed();
    let stub = Stub::good();
    let place = prepared(&stub);
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| place.run(&REPLAY));
        let two = scope.spawn(|| place.run(&REPLAY));
        (one.join().unwrap(), two.join().unwrap())
    });
    for output in [one, two] {
        assert_eq!(output.code, 0, "{}", output.stderr);
        balanced(&output.json());
    }
    assert_eq!(place.export(), export);
}
