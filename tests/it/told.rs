//! What slices are told of the entries before them, and what is kept beside a session: its dialog, its
//! card.

use super::handed::document;
use super::input::claude;
use super::place::{Place, count};
use super::stub::{Stub, error};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Slices of two talks, so that a session of a few has several.
const SLICE_TOKENS: &str = "400";
/// Talks of a session.
const TALKS: usize = 12;

/// What each slice was told, by the slice's words.
type Told = Arc<Mutex<BTreeMap<String, String>>>;

/// An endpoint that notes what slices are told.
fn listening() -> (Stub, Told) {
    let told = Told::default();
    let heard = Arc::clone(&told);
    let stub = Stub::new(move |ask| {
        heard.lock().unwrap().insert(ask.slice().to_owned(), before(&ask.body));
        ask.good()
    });
    (stub, told)
}

/// What stands before the slice in a request; nothing where nothing does.
fn before(body: &Value) -> String {
    let message = body["messages"].as_array().unwrap().last().unwrap();
    let text = message["content"].as_str().unwrap();
    let Some((_, rest)) = text.split_once("<before-") else { return String::new() };
    let (_, rest) = rest.split_once(">\n").unwrap();
    rest.split_once("\n</before-").unwrap().0.to_owned()
}

fn place(stub: &Stub) -> Place {
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST__SLICE__TOKENS", SLICE_TOKENS);
    place.set("ANNALIST__SLICE__TOOL_TOKENS", "100");
    place.set("ANNALIST__QUEUE__GATHER_TOKENS", "0");
    place
}

/// What was heard by now.
fn heard(told: &Told) -> BTreeMap<String, String> {
    told.lock().unwrap().clone()
}

/// Talks with a name in them.
fn talks(talks: usize) -> String {
    claude(0..talks).replace("station on", "station of Mira on")
}

/// What a replay of the talks tells their slices.
fn replayed(set: &[(&str, &str)]) -> BTreeMap<String, String> {
    let (stub, told) = listening();
    let mut place = place(&stub);
    set.iter().for_each(|(name, value)| place.set(name, value));
    place.write("talks.jsonl", talks(TALKS));
    place.json(&["replay", "talks.jsonl", "--json"]);
    let heard = heard(&told);
    assert!(heard.len() > 2, "the talks are several slices: {}", heard.len());
    heard
}

#[test]
fn a_slice_has_earlier_entries_as_preamble_and_the_first_has_none() {
    let told = replayed(&[]);
    let without = told.values().filter(|before| before.is_empty()).count();
    assert_eq!(without, 1, "the first slice alone");
    for (slice, before) in told.iter().filter(|(_, before)| !before.is_empty()) {
        assert!(before.starts_with("DIALOG_SUMMARY (last few turns):\n"), "{before}");
        let last = before.rsplit("\n\n").next().unwrap();
        assert!(last.starts_with("[Assistant] "), "the last words before it: {before}");
        assert!(!slice.contains(last), "what the slice says itself is not told before");
    }
}

#[test]
fn the_preamble_follows_the_strategy_of_the_settings() {
    let with = |strategy: &str| replayed(&[("ANNALIST__CONVERSATION__STRATEGY", strategy)]);
    let has = |told: &BTreeMap<String, String>, words: &str| {
        told.values().filter(|before| before.contains(words)).count()
    };
    let slices = replayed(&[]).len();
    assert_eq!(has(&with("entity"), "[System] Known entities:\n"), slices - 1);
    assert!(has(&with("summary"), "[System] Previous conversation summary: ") > 0);
    let nothing =
        [("ANNALIST__CONVERSATION__CONTEXT_TOKENS", "0"), ("ANNALIST__DIALOG__TOKENS", "0")];
    assert_eq!(has(&replayed(&nothing), ""), slices);
    assert!(replayed(&nothing).values().all(String::is_empty), "0 tells nothing");
    assert_eq!(has(&replayed(&nothing[..1]), "[User]"), 0, "turns alone");
    assert_eq!(has(&replayed(&nothing[1..]), "DIALOG_SUMMARY"), 0, "words alone");
}

#[test]
fn a_session_enqueued_piece_by_piece_has_the_same_preambles() {
    let (stub, told) = listening();
    let place = place(&stub);
    let documents: String = (0..TALKS).map(|n| document("one", n, 2 * n)).collect();
    place.write("whole.jsonl", &documents);
    place.json(&["replay", "whole.jsonl", "--json"]);
    let whole = heard(&told);
    let dialog = place.run(&["dialog", "--session", &session(&place)]).stdout;

    let (stub, told) = listening();
    let mut place = self::place(&stub);
    // Every slice but the last is cut for good as soon as the next entry does not fit any more.
    place.set("ANNALIST__QUEUE__GATHER_TOKENS", SLICE_TOKENS);
    for line in documents.lines() {
        place.write("piece.json", line);
        place.json(&["enqueue", "piece.json", "--json"]);
    }
    place.json(&["enqueue", "piece.json", "--flush", "--json"]);
    place.json(&["worker", "--drain", "--json"]);
    assert_eq!(heard(&told), whole);
    assert_eq!(place.run(&["dialog", "--session", &session(&place)]).stdout, dialog);
    assert_eq!(place.number("SELECT count(*) FROM jobs WHERE context IS NOT NULL"), 0);
    assert_eq!(place.number("SELECT next FROM remembered"), 2 * TALKS as i64);
}

#[test]
fn a_growing_file_has_the_same_preambles_and_a_replay_asks_nothing() {
    let whole = replayed(&[]);
    let (stub, told) = listening();
    let mut place = place(&stub);
    place.set("ANNALIST__QUEUE__GATHER_TOKENS", SLICE_TOKENS);
    for talks in 1..=TALKS {
        place.write("talks.jsonl", self::talks(talks));
        place.json(&["enqueue", "talks.jsonl", "--json"]);
    }
    place.json(&["enqueue", "talks.jsonl", "--flush", "--json"]);
    place.json(&["worker", "--drain", "--json"]);
    assert_eq!(heard(&told), whole);
    let asked = stub.count();
    place.json(&["replay", "talks.jsonl", "--json"]);
    assert_eq!(stub.count(), asked);
}

#[test]
fn halves_of_a_slice_keep_its_preamble() {
    let long = Arc::new(Mutex::new(None::<String>));
    let told = Told::default();
    let (heard, is_long) = (Arc::clone(&told), Arc::clone(&long));
    let stub = Stub::new(move |ask| {
        let told = before(&ask.body);
        let mut long = is_long.lock().unwrap();
        if !told.is_empty() && long.is_none() {
            *long = Some(told);
            return error(400, "context_length_exceeded");
        }
        drop(long);
        heard.lock().unwrap().insert(ask.slice().to_owned(), told);
        ask.good()
    });
    let mut place = place(&stub);
    place.set("ANNALIST__SLICE__TOKENS", "1200");
    place.set("ANNALIST__MODEL__CONCURRENCY", "1");
    place.write("talks.jsonl", claude(0..3 * TALKS));
    place.json(&["enqueue", "talks.jsonl", "--flush", "--json"]);
    place.json(&["worker", "--drain", "--json"]);
    let long = long.lock().unwrap().clone().unwrap();
    let told = told.lock().unwrap();
    let parts = told.values().filter(|before| **before == long).count();
    assert!(parts > 1, "{parts} slices in its place");
}

/// The id of the one session.
fn session(place: &Place) -> String {
    let status = place.json(&["status", "--all", "--json"]);
    status["sessions"][0]["session"].as_str().unwrap().to_owned()
}

#[test]
fn workers_and_replays_keep_a_card_of_each_session() {
    let (stub, _) = listening();
    let mut place = place(&stub);
    place.set("ANNALIST__QUEUE__GATHER_TOKENS", "0");
    let is_right = |place: &Place, entries: u64| {
        let cards = place.json(&["records", "cards", "--json"]);
        let of_entries = place.json(&["card", "--session", &session(place), "--format", "json"]);
        assert_eq!(cards.as_array().unwrap().len(), 1);
        assert_eq!(cards[0]["card"], of_entries);
        assert_eq!(
            (count(&cards[0], "/entries"), &cards[0]["due"]),
            (entries, &Value::Bool(false))
        );
    };
    for talks in [2, 5] {
        place.write("talks.jsonl", claude(0..talks));
        place.json(&["enqueue", "talks.jsonl", "--json"]);
        place.json(&["worker", "--drain", "--json"]);
        is_right(&place, 2 * talks as u64);
    }
    place.write("talks.jsonl", claude(0..7));
    place.json(&["replay", "talks.jsonl", "--json"]);
    is_right(&place, 14);
    let shown = place.run(&["records", "cards"]);
    assert!(shown.stdout.contains("roofs"), "{}", shown.stdout);
    let other = place.json(&["records", "cards", "--namespace", "other", "--json"]);
    assert_eq!(other, serde_json::json!([]));
}
