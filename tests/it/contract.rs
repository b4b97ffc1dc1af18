//! The contract of the one engine: the same conversation in two files is one, caps hold, whoever works
//! at the same time pays once, and the bill shows every call.

use super::input::{SESSION, claude, extracted};
use super::place::{Place, balanced, count, records};
use super::stub::{Answer, Ask, Stub};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A second file beside `p/s.jsonl`, replayed with it: nothing is lost, asked about or counted twice.
#[track_caller]
fn is_one_conversation(second: &str, folders: &[&str]) {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("p/s.jsonl", claude(0..6));
    let first = place.json(&["replay", "p", "--json"]);
    balanced(&first);
    let (asked, before) = (stub.count(), place.export());
    assert_eq!(before.len(), 6);
    place.write("a/s.jsonl", second);
    let root = place.path("").display().to_string();
    let folders: Vec<&str> =
        folders.iter().map(|it| if *it == "ROOT" { &root } else { *it }).collect();
    let mut args = vec!["replay"];
    args.extend(&folders);
    let dry = place.json(&[&args[..], &["--dry-run", "--json"]].concat());
    balanced(&dry);
    assert_eq!(
        (count(&dry, "/coverage/pending"), count(&dry, "/tokens/estimated")),
        (0, 0),
        "{dry}"
    );
    let both = place.json(&[&args[..], &["--json"]].concat());
    balanced(&both);
    assert_eq!(pathless(&place.export()), pathless(&before), "{both}");
    assert_eq!(
        (stub.count(), count(&both, "/calls"), count(&both, "/sessions")),
        (asked, 0, 1),
        "{both}"
    );
    assert_eq!(records(&both), 6);
    assert_eq!(both["entries"], dry["entries"]);
    assert_eq!(both["slices"], dry["slices"]);
    assert_eq!(both["coverage"], dry["coverage"]);
    let said = place.run(&args).stderr;
    assert!(said.contains("every entry is accounted for"), "{said}");
}

/// Records without the name of their file, which may be written in several ways.
fn pathless(export: &[String]) -> Vec<Value> {
    let without = |line: &String| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record["path"] = Value::Null;
        record
    };
    export.iter().map(without).collect()
}

#[test]
fn a_copy_in_a_second_file_is_the_same_conversation() {
    is_one_conversation(&claude(0..6), &["a", "p"]);
    is_one_conversation(&claude(0..6), &["p", "a"]);
    is_one_conversation(&claude(0..6), &["."]);
    is_one_conversation(&claude(0..6), &["ROOT"]);
}

#[test]
fn a_shorter_copy_is_the_same_conversation() {
    is_one_conversation(&claude(0..4), &["a", "p"]);
}

#[test]
fn a_fork_that_repeats_the_entries_is_the_same_conversation() {
    let other = "0d6b1d9c-11aa-4f0e-8a55-2f1f6b0c9a77";
    is_one_conversation(&claude(0..6).replace(SESSION, other), &["a", "p"]);
    is_one_conversation(&claude(0..4).replace(SESSION, other), &["p", "a"]);
}

#[test]
fn the_same_ids_make_no_copy_of_other_words_and_none_of_another_namespace() {
    let place = Place::new();
    let forked = |name: &str| claude(0..4).replace(SESSION, name);
    place.write("a.jsonl", claude(0..4));
    place.write("b.jsonl", forked("0d6b1d9c-11aa-4f0e-8a55-2f1f6b0c9a77"));
    place.write("c.jsonl", forked("1d6b1d9c-11aa-4f0e-8a55-2f1f6b0c9a77").replace("roof", "hut"));
    let enqueued = |files: &[&str], namespace: &str| {
        let args = [&["enqueue"], files, &["--namespace", namespace, "--json"]].concat();
        let taken = place.json(&args);
        [count(&taken, "/entries"), count(&taken, "/copies")]
    };
    assert_eq!(enqueued(&["a.jsonl"], "one"), [8, 0]);
    assert_eq!(enqueued(&["b.jsonl"], "one"), [0, 1], "a copy in the same namespace");
    assert_eq!(enqueued(&["b.jsonl"], "two"), [8, 0], "nothing of another namespace is a copy");
    assert_eq!(enqueued(&["c.jsonl"], "one"), [8, 0], "these words are in no other session");
    assert_eq!(enqueued(&["a.jsonl", "c.jsonl"], "three"), [16, 0], "nor in another file");
}

/// A session of pi with a prompt a record. Forks have the ids of their origin.
fn pi(name: &str, parent: Option<&str>, prompts: &[&str]) -> String {
    let head =
        json!({"type": "session", "version": 3, "id": name, "cwd": "/p", "parentSession": parent});
    let records = prompts.iter().enumerate().map(|(number, prompt)| {
        let id = format!("{:.7}{number}", format!("{}-------", &prompts[0][4..]));
        json!({"type": "message", "id": id, "timestamp": "2026-11-01T10:00:00Z",
            "message": {"role": "user", "content": prompt}})
    });
    [head].into_iter().chain(records).map(|record| format!("{record}\n")).collect()
}

#[test]
fn a_fork_of_pi_has_only_what_its_origin_lacks() {
    let place = Place::new();
    let prompts = ["Use zebra.", "Use tapir.", "Use okapi."];
    place.write("a/1.jsonl", pi("one", None, &prompts[..2]));
    place.write("a/2.jsonl", pi("two", Some("a/1.jsonl"), &prompts));
    place.write("b/3.jsonl", pi("three", None, &["Use heron.", "Use stork."]));
    let copied = |totals: &Value| count(totals, "/skipped/copied from elsewhere");
    let dry = place.json(&["replay", "a", "b", "--dry-run", "--json"]);
    assert_eq!((count(&dry, "/coverage/pending"), copied(&dry)), (5, 2), "{dry}");
    place.json(&["enqueue", "a/1.jsonl", "b", "--json"]);
    place.json(&["enqueue", "a/2.jsonl", "--json"]);
    assert_eq!(place.number("SELECT count(*) FROM entries WHERE skip IS NULL"), 5);
}

#[test]
fn a_longer_copy_goes_on_where_the_conversation_ended() {
    for folders in [["a", "p"], ["p", "a"]] {
        let stub = Stub::good();
        let place = Place::with_endpoint(stub.url());
        place.write("p/s.jsonl", claude(0..6));
        place.json(&["replay", "p", "--json"]);
        let asked = stub.count();
        place.write("a/s.jsonl", claude(0..8));
        let args = ["replay", folders[0], folders[1]];
        let dry = place.json(&[&args[..], &["--dry-run", "--json"]].concat());
        let both = place.json(&[&args[..], &["--json"]].concat());
        balanced(&both);
        assert_eq!((count(&both, "/sessions"), records(&both)), (1, 8), "{both}");
        assert!(stub.count() - asked <= 3, "{} calls for two talks more", stub.count() - asked);
        assert_eq!(both["slices"], dry["slices"]);
        assert_eq!(place.number("SELECT count(*) FROM sessions"), 1);
        let again = place.json(&[&args[..], &["--json"]].concat());
        balanced(&again);
        assert_eq!((count(&again, "/calls"), records(&again)), (0, 8), "{again}");
        assert_eq!(place.export().len(), 8);
    }
}

#[test]
fn a_dry_run_knows_what_is_done() {
    let stub = Stub::good();
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..5));
    let all = place.json(&["replay", "s.jsonl", "--dry-run", "--json"]);
    place.json(&["replay", "s.jsonl", "--json"]);
    place.write("s.jsonl", claude(0..8));
    let dry = place.json(&["replay", "s.jsonl", "--dry-run", "--json"]);
    balanced(&dry);
    let open = count(&dry, "/slices") - count(&dry, "/slices_known");
    assert!(count(&dry, "/tokens/estimated") < count(&all, "/tokens/estimated"), "{dry}");
    let grown = place.json(&["replay", "s.jsonl", "--json"]);
    assert_eq!(count(&grown, "/calls"), open);
    assert_eq!((&grown["slices"], &grown["slices_known"]), (&dry["slices"], &dry["slices_known"]));
}

/// An answer with 100 tokens sent and 100 answered, late enough that others are asked meanwhile.
fn dear(ask: &Ask) -> Answer {
    std::thread::sleep(Duration::from_millis(30));
    let call = json!({"id": "call_1", "type": "function",
        "function": {"name": ask.tool(), "arguments": extracted(ask.slice()).to_string()}});
    let body = json!({
        "id": "1", "object": "chat.completion", "created": 1, "model": "stub-1",
        "choices": [{"index": 0, "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": null, "tool_calls": [call]}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 100, "total_tokens": 200},
    });
    Answer::Status(200, "", body.to_string())
}

/// Settings under which a call costs $0.045 and its worst case is below $0.2.
fn capped(stub: &Stub) -> Place {
    let mut place = Place::with_endpoint(stub.url());
    place.set("ANNALIST__MODEL__USD_PER_MILLION_SENT", "50");
    place.set("ANNALIST__MODEL__USD_PER_MILLION_ANSWERED", "400");
    place.set("ANNALIST__MODEL__REPLY_TOKENS_MAX", "200");
    place.set("ANNALIST__LIMITS__DAY_USD_MAX", "1.0");
    place
}

#[track_caller]
fn within_the_cap(place: &Place, stub: &Stub) {
    let status = place.json(&["status", "--json"]);
    let spent = status["spent"]["cost"].as_f64().unwrap();
    assert!(stub.count() as f64 * 0.045 <= 1.0, "{} calls", stub.count());
    assert!(0.5 < spent && spent <= 1.0, "{}", status["spent"]);
    assert_eq!(count(&status, "/spent/calls"), stub.count() as u64);
}

#[test]
fn a_money_cap_is_never_exceeded() {
    for concurrency in ["1", "8", "64"] {
        let stub = Stub::new(dear);
        let place = capped(&stub);
        place.write("s.jsonl", claude(0..60));
        let output = place.run(&["replay", "s.jsonl", "--concurrency", concurrency, "--json"]);
        assert_eq!(output.code, 1, "{}", output.stderr);
        assert!(output.stderr.contains("limits.day_usd_max"), "{}", output.stderr);
        balanced(&output.json());
        within_the_cap(&place, &stub);
    }
    let stub = Stub::new(dear);
    let place = capped(&stub);
    place.write("s.jsonl", claude(0..60));
    place.run(&["enqueue", "s.jsonl", "--flush"]);
    let worker = ["worker", "--drain", "--concurrency", "16"];
    std::thread::scope(|scope| {
        let others = [scope.spawn(|| place.run(&worker)), scope.spawn(|| place.run(&worker))];
        others.into_iter().for_each(|it| drop(it.join().unwrap()));
    });
    within_the_cap(&place, &stub);
}

#[test]
fn a_reservation_of_a_killed_process_is_spent_and_blocks_no_other() {
    let stub = Stub::new(|ask| if ask.number == 1 { Answer::Hold } else { ask.good() });
    let mut place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..4));
    place.set("ANNALIST__MODEL__REPLY_TOKENS_MAX", "300");
    let dry = place.json(&["replay", "s.jsonl", "--dry-run", "--json"]);
    let sent = count(&dry, "/tokens/estimated") / count(&dry, "/slices");
    // Room for two worst cases, which differ from slice to slice, and for what four calls really take; too little for three
    // of them.
    let (worst, room) = (sent * 4 / 3 + 300, 3_000);
    assert!(room < worst, "{worst}");
    place.set("ANNALIST__LIMITS__DAY_TOKENS_MAX", &(2 * worst + room).to_string());
    let running = place.start(&["replay", "s.jsonl", "--concurrency", "1"]);
    stub.until(1);
    running.kill();
    let again = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&again);
    assert_eq!(records(&again), 4, "{again}");
}

#[test]
fn two_replays_at_once_pay_once() {
    let stub = Stub::new(|ask| {
        std::thread::sleep(Duration::from_millis(100));
        ask.good()
    });
    let mut place = Place::with_endpoint(stub.url());
    place.set("ANNALIST__MODEL__CONCURRENCY", "2");
    place.write("s.jsonl", claude(0..10));
    let outputs = std::thread::scope(|scope| {
        let replay = || place.run(&["replay", "s.jsonl", "--json"]);
        [scope.spawn(replay), scope.spawn(replay)].map(|it| it.join().unwrap())
    });
    let mut slices = 0;
    for output in outputs {
        assert_eq!(output.code, 0, "{}", output.stderr);
        balanced(&output.json());
        assert_eq!(records(&output.json()), 10);
        slices = count(&output.json(), "/slices");
    }
    assert_eq!((stub.count() as u64, place.export().len()), (slices, 10));
    assert_eq!(count(&place.json(&["status", "--json"]), "/spent/calls"), slices);
}

#[test]
fn a_replay_beside_a_worker_pays_once_and_leaves_the_jobs_of_others() {
    let stub = Stub::new(|ask| {
        std::thread::sleep(Duration::from_millis(50));
        ask.good()
    });
    let mut place = Place::with_endpoint(stub.url());
    place.set("ANNALIST__MODEL__CONCURRENCY", "2");
    place.write("s.jsonl", claude(0..10));
    let other = "0d6b1d9c-11aa-4f0e-8a55-2f1f6b0c9a77";
    place.write("other/s.jsonl", claude(20..24).replace(SESSION, other));
    place.run(&["enqueue", "other", "--flush"]);
    let waiting = place.number("SELECT count(*) FROM jobs WHERE state = 'ready'");
    let first = place.json(&["replay", "s.jsonl", "--json"]);
    assert_eq!(place.number("SELECT count(*) FROM jobs WHERE state = 'ready'"), waiting);
    assert_eq!(stub.count() as u64, count(&first, "/calls"));
    place.write("s.jsonl", claude(0..20));
    place.run(&["enqueue", "s.jsonl", "--flush"]);
    let running = place.start(&["worker"]);
    let both = place.run(&["replay", "s.jsonl", "--json"]);
    assert_eq!(both.code, 0, "{}", both.stderr);
    balanced(&both.json());
    running.signal("TERM");
    running.wait();
    let drained = place.run(&["worker", "--drain"]);
    assert_eq!(drained.code, 0, "{}", drained.stderr);
    let status = place.json(&["status", "--json"]);
    assert_eq!(count(&status, "/spent/calls"), stub.count() as u64);
    assert_eq!(stub.count() as u64, count(&both.json(), "/slices") + waiting as u64);
    assert_eq!(place.export().len(), 24);
}

#[test]
fn an_answer_paid_after_the_lease_was_lost_is_billed() {
    let stub = Stub::new(|ask| if ask.number == 1 { Answer::Hold } else { ask.good() });
    let mut place = Place::with_worker(stub.url());
    place.set("ANNALIST__QUEUE__LEASE_SECS", "1");
    place.set("ANNALIST__MODEL__CONCURRENCY", "1");
    place.write("s.jsonl", claude(0..1));
    place.run(&["enqueue", "s.jsonl", "--flush"]);
    let stopped = place.start(&["worker", "--drain"]);
    stub.until(1);
    stopped.signal("STOP");
    std::thread::sleep(Duration::from_millis(1_200));
    let other = place.run(&["worker", "--drain"]);
    assert_eq!(other.code, 0, "{}", other.stderr);
    stub.release();
    stopped.signal("CONT");
    stopped.wait();
    let status = place.json(&["status", "--json"]);
    let (asked, billed) = (stub.count() as u64, count(&status, "/spent/calls"));
    // The answer that came too late may have been lost with its connection.
    assert!(asked >= 2 && billed + 1 >= asked && billed <= asked, "{asked} asked, {billed} billed");
    assert_eq!(place.export().len(), 1);
}

#[test]
fn identical_slices_of_one_replay_are_asked_about_once() {
    let stub = Stub::new(|ask| {
        std::thread::sleep(Duration::from_millis(100));
        ask.good()
    });
    let place = Place::with_endpoint(stub.url());
    let said = "user: Which store?\nassistant: We chose oak over elm because age.\n";
    for n in 0..4 {
        place.write(&format!("in/{n}.json"), openai(n, said));
    }
    let totals = place.json(&["replay", "in", "--json"]);
    balanced(&totals);
    assert_eq!((count(&totals, "/sessions"), count(&totals, "/slices")), (4, 4), "{totals}");
    assert_eq!((stub.count(), count(&totals, "/calls"), records(&totals)), (1, 1, 4), "{totals}");
    let status = place.json(&["status", "--json"]);
    assert_eq!(count(&status, "/spent/calls"), 1, "what the journal answers costs nothing");
}

/// A slice document of a conversation of its own, whose words others say as well.
fn openai(n: usize, said: &str) -> String {
    let entries: Vec<Value> = said
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(who, text)| {
            let speaker = if who == "user" { "person" } else { "assistant" };
            json!({"speaker": speaker, "text": text})
        })
        .collect();
    json!({"session": format!("s{n}"), "namespace": "roofs", "from": 0, "entries": entries})
        .to_string()
}

#[test]
fn an_edited_prompt_of_the_same_version_is_told_apart() {
    let stub = Stub::good();
    let mut place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..2));
    place.json(&["replay", "s.jsonl", "--json"]);
    place.run(&["init", "--prompts", "own"]);
    let rules = String::from_utf8(super::place::read(&place.path("own/extract.md"))).unwrap();
    place.write("own/extract.md", rules + "\nBe brief.\n");
    place.set("ANNALIST__PROMPTS", "own");
    place.json(&["replay", "s.jsonl", "--json"]);
    let runs = place.json(&["records", "runs", "--json"]);
    let runs = runs.as_array().unwrap();
    let of = |current: bool| runs.iter().find(|run| run["current"] == current).unwrap();
    let (old, new) = (of(false), of(true));
    assert_eq!(old["prompt"]["version"], new["prompt"]["version"]);
    assert_ne!(old["prompt"]["digest"], new["prompt"]["digest"]);
    let short = |run: &Value| run["prompt"]["digest"].as_str().unwrap()[..8].to_owned();
    let shown = place.run(&["records", "runs"]).stdout;
    assert!(shown.contains(&short(old)) && shown.contains(&short(new)), "{shown}");
    let ids = [old, new].map(|run| run["run"].as_str().unwrap().to_owned());
    let diff = place.run(&["records", "diff", &ids[0], &ids[1]]);
    let diff = diff.stdout + &diff.stderr;
    assert!(diff.contains(&short(old)) && diff.contains(&short(new)), "{diff}");
    let record = place.export()[0].clone();
    let record: Value = serde_json::from_str(&record).unwrap();
    let why = place.run(&["why", record["id"].as_str().unwrap()]).stdout;
    assert!(why.contains(&short(new)), "{why}");
}

#[test]
fn an_identical_re_ask_is_a_fresh_sample_and_billed_once() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let stub = Stub::new(move |ask| {
        seen.lock().unwrap().push(ask.body["messages"].clone());
        let broken = json!({"decisions": [{"chosen": 5}], "discussions": [], "attempts": [], "requests": []});
        if ask.number < 3 { Answer::Call(broken) } else { ask.good() }
    });
    let place = Place::with_endpoint(stub.url());
    place.write("s.jsonl", claude(0..1));
    let totals = place.json(&["replay", "s.jsonl", "--json"]);
    balanced(&totals);
    let messages = asked.lock().unwrap().clone();
    assert_eq!(messages.len(), 3, "{totals}");
    assert_eq!(messages[1], messages[2], "two broken answers alike lead to the same request");
    assert_eq!((count(&totals, "/calls"), count(&totals, "/journaled")), (3, 0), "{totals}");
    assert_eq!(records(&totals), 1, "{totals}");
    let again = place.json(&["replay", "s.jsonl", "--json"]);
    assert_eq!((stub.count(), count(&again, "/calls")), (3, 0), "{again}");
    assert_eq!(count(&place.json(&["status", "--json"]), "/spent/calls"), 3);
}
