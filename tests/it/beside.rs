//! What feeds a worker as it runs: folders that it watches, a stream that it receives.

#[cfg(feature = "nats")]
use super::handed::document;
use super::input::{SESSION, claude};
use super::place::{Place, Running};
#[cfg(feature = "nats")]
use super::stream::Stream;
use super::stub::{Ask, Stub};
use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};

/// How often the decision of each talk was asked about.
type Asked = Arc<Mutex<BTreeMap<usize, u32>>>;

/// An endpoint that answers well and counts whose decisions it sees.
fn counting() -> (Asked, Stub) {
    let asked = Asked::default();
    let heard = Arc::clone(&asked);
    let stub = Stub::new(move |ask: &Ask| {
        for rest in ask.slice().split("We chose depot-").skip(1) {
            let talk = rest.split(' ').next().unwrap().parse().unwrap();
            *heard.lock().unwrap().entry(talk).or_default() += 1;
        }
        ask.good()
    });
    (asked, stub)
}

/// Waits until these talks were asked about.
#[track_caller]
fn until_asked(stub: &Stub, asked: &Asked, talks: std::ops::Range<usize>) {
    stub.until_that(|| talks.clone().all(|talk| asked.lock().unwrap().contains_key(&talk)));
}

#[track_caller]
fn ends(running: Running) {
    running.signal("TERM");
    let output = running.wait();
    assert_eq!(output.code, 0, "{}", output.stderr);
}

fn prepared(stub: &Stub) -> Place {
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST__QUEUE__GATHER_TOKENS", "0");
    place
}

/// Adds to a transcript, as an agent does.
fn append(place: &Place, name: &str, text: &str) {
    let before = fs::read_to_string(place.path(name)).unwrap_or_default();
    place.write(name, before + text);
}

#[test]
fn growth_of_a_watched_folder_is_extracted_once_across_renames_and_restarts() {
    let (asked, stub) = counting();
    let place = prepared(&stub);
    let watch = ["worker", "--watch", "talks"];
    place.write("talks/s.jsonl", claude(0..2));
    let running = place.start(&watch);
    until_asked(&stub, &asked, 0..2);
    append(&place, "talks/s.jsonl", &claude(2..3));
    until_asked(&stub, &asked, 0..3);
    // As a rotation: the old name is free for another session.
    fs::rename(place.path("talks/s.jsonl"), place.path("talks/old.jsonl")).unwrap();
    let other = "0d6b1d9c-11aa-4f0e-8a55-2f1f6b0c9a77";
    place.write("talks/s.jsonl", claude(3..4).replace(SESSION, other));
    until_asked(&stub, &asked, 0..4);
    ends(running);
    // What is said and moved while nobody watches.
    fs::rename(place.path("talks/old.jsonl"), place.path("talks/older.jsonl")).unwrap();
    append(&place, "talks/older.jsonl", &claude(4..5));
    let running = place.start(&watch);
    until_asked(&stub, &asked, 0..5);
    ends(running);
    place.is_whole(5);
    let asked = asked.lock().unwrap();
    assert!(asked.values().all(|times| *times == 1), "{asked:?}");
}

#[cfg(feature = "nats")]
#[test]
fn messages_of_a_stream_are_enqueued_once_and_malformed_ones_are_set_aside() {
    let Some(stream) = Stream::new() else { return };
    let (asked, stub) = counting();
    let place = prepared(&stub);
    stream.publish(&document("one", 0, 0));
    stream.publish(&document("one", 0, 0));
    stream.publish("these words are no slice");
    stream.publish(&document("one", 1, 2));
    let from = ["worker", "--from", &stream.url];
    let running = place.start(&from);
    until_asked(&stub, &asked, 0..2);
    stream.publish(&document("two", 2, 0));
    until_asked(&stub, &asked, 0..3);
    running.kill();
    // Whatever had no verdict yet comes back, and is known.
    stream.publish(&document("two", 3, 2));
    let running = place.start(&from);
    until_asked(&stub, &asked, 0..4);
    ends(running);
    let output = place.run(&["worker", "--drain"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    place.is_whole(4);
    let entries = place.number("SELECT count(*) FROM entries");
    assert_eq!(entries, 8, "what was published twice is there once");
    let dead = stream.dead_letters();
    assert_eq!(dead.len(), 1, "{dead:?}");
    assert!(dead[0].contains("JSON"), "the reason: {dead:?}");
}

#[cfg(feature = "nats")]
#[test]
fn rejected_messages_fail_a_drain() {
    let Some(stream) = Stream::new() else { return };
    let stub = Stub::good();
    let place = Place::with_worker(stub.url());
    stream.publish(&document("one", 0, 0));
    stream.publish("these words are no slice");
    let output = place.run(&["worker", "--drain", "--from", &stream.url, "--json"]);
    let told = output.json();
    assert_eq!((output.code, &told["well"], &told["rejected"]), (1, &false.into(), &1.into()));
    assert!(output.stderr.contains("rejected: 1 message"), "{}", output.stderr);
    place.is_whole(1);
}

#[cfg(feature = "nats")]
#[test]
fn a_drain_takes_in_a_stream_and_ends_when_all_of_it_is_extracted() {
    let Some(stream) = Stream::new() else { return };
    let stub = Stub::good();
    let place = Place::with_worker(stub.url());
    (0..3).for_each(|n| stream.publish(&document("one", n, 2 * n)));
    let output = place.run(&["worker", "--drain", "--from", &stream.url]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    place.is_whole(3);
}

#[test]
fn a_drain_takes_in_a_watched_folder_as_it_is() {
    let stub = Stub::good();
    let place = Place::with_worker(stub.url());
    place.write("talks/s.jsonl", claude(0..3));
    let output = place.run(&["worker", "--drain", "--watch", "talks"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    place.is_whole(3);
}

#[test]
fn files_of_clients_that_are_not_read_are_named_and_counted_in_a_watched_folder() {
    let stub = Stub::good();
    let place = Place::with_worker(stub.url());
    place.write("talks/s.jsonl", claude(0..1));
    for name in ["talks/k.jsonl", "talks/deep/l.jsonl"] {
        place.write(name, "{\"type\":\"metadata\",\"protocol_version\":1}\n");
    }
    let output = place.run(&["worker", "--drain", "--watch", "talks"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stderr.contains("not read: 2 files: Kimi CLI"), "{}", output.stderr);
    place.is_whole(1);
}

#[cfg(not(feature = "nats"))]
#[test]
fn a_program_without_nats_says_how_to_build_it() {
    let place = Place::with_worker("http://127.0.0.1:9/v1");
    let from = ["worker", "--from", "nats://127.0.0.1:9/SLICES"];
    place.run(&from).refused(2, &["--from", "--features nats"]);
}

#[cfg(feature = "nats")]
#[test]
fn a_stream_that_is_not_there_is_one_clear_line() {
    let place = Place::with_worker("http://127.0.0.1:9/v1");
    place.run(&["worker", "--from", "nats://127.0.0.1:9/SLICES"]).refused(1, &["127.0.0.1:9"]);
    place.run(&["worker", "--from", "http://127.0.0.1:9"]).refused(2, &["--from", "nats://"]);
}

#[test]
fn a_missing_folder_is_reported_and_watched_once_it_exists() {
    let (asked, stub) = counting();
    let place = prepared(&stub);
    let running = place.start(&["worker", "--watch", "later"]);
    while !running.said().contains("later: does not exist yet") {
        std::thread::yield_now();
    }
    place.write("later/s.jsonl", claude(0..1));
    until_asked(&stub, &asked, 0..1);
    ends(running);
    place.is_whole(1);
}
