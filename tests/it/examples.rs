//! The shipped sessions with their shipped answers, through the whole line.

use super::place::{Place, balanced, count, read, records, timeless};
use super::stub::{Answer, Stub};
use serde_json::Value;
use std::path::PathBuf;

/// Words of the sessions that nothing of ours may hold: keys, passwords, addresses, private words.
const PLANTED: [&str; 8] = [
    "sk-proj-EXAMPLE",
    "exampleEXAMPLEexample0123456789abcdef",
    "hunter2",
    "salary review",
    "They offered 71k",
    "<private>",
    "ines@atelier",
    "(212) 555-",
];

fn examples(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples").join(name).display().to_string()
}

/// A place with a cassette of the shipped answers, and its totals.
fn replayed() -> (Place, Value) {
    let place = Place::new();
    let (answers, sessions) = (examples("answers"), examples("sessions"));
    let made = place
        .run(&["cassette", "import", &answers, "--transcripts", &sessions, "--to", "cassette"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert_eq!(made.stdout.lines().count(), 4, "{}", made.stdout);
    let totals = place.json(&["replay", &sessions, "--cassette", "cassette", "--json"]);
    (place, totals)
}

#[test]
fn cards_of_the_examples_hold_nothing_that_was_planted() {
    let place = Place::new();
    let sessions = examples("sessions");
    let cards = place.run(&["card", &sessions]);
    assert_eq!((cards.code, cards.stderr.as_str()), (0, ""));
    assert_eq!(cards.stdout.matches("# Memory Card").count(), 4);
    for planted in PLANTED {
        assert!(!cards.stdout.contains(planted), "{planted}");
    }
    let checked = place.run(&["card", "--check", &sessions]);
    assert_eq!(checked.code, 0, "{}", checked.stdout);
}

#[test]
fn examples_give_their_records_and_every_entry_is_accounted_for() {
    let (place, totals) = replayed();
    balanced(&totals);
    assert_eq!(count(&totals, "/files"), 4);
    assert_eq!(count(&totals, "/sessions"), 4);
    assert_eq!(count(&totals, "/coverage/failed"), 0);
    assert_eq!(count(&totals, "/coverage/pending"), 0);
    assert!(count(&totals, "/coverage/extracted") > 20 && count(&totals, "/coverage/skipped") > 0);
    assert_eq!(count(&totals, "/calls"), count(&totals, "/slices"));
    assert!(count(&totals, "/tokens/sent") > 0 && totals["cost"] == 0.0);
    assert_eq!(count(&totals, "/records/decisions"), 13, "{totals}");
    assert_eq!(records(&totals) + count(&totals, "/quarantined"), 45, "every claim is kept");
    let status = place.json(&["status", "--json"]);
    assert_eq!(status["coverage"], totals["coverage"]);
    assert_eq!(status["sessions"].as_array().unwrap().len(), 4);
}

#[test]
fn claim_that_nothing_supports_is_quarantined_with_its_reason() {
    let (place, totals) = replayed();
    assert!(count(&totals, "/quarantined") >= 1);
    let doubted = place.json(&["records", "--state", "quarantined", "--json"]);
    let doubted = doubted.as_array().unwrap().clone();
    assert_eq!(doubted.len() as u64, count(&totals, "/quarantined"));
    let planted = doubted.iter().find(|it| it.to_string().contains("claim_storm"));
    let planted = planted.expect("the planted claim");
    assert!(planted["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{planted}");
    let staged = place.run(&["records", "--state", "staged", "--json"]).stdout;
    assert!(!staged.contains("claim_storm"));
}

#[test]
fn decision_that_was_reversed_stands_in_its_final_state_alone() {
    let (place, _) = replayed();
    let decisions = place.json(&["records", "--kind", "decision", "--json"]);
    let chosen: Vec<&str> = decisions
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["claim"]["chosen"].as_str().unwrap())
        .collect();
    let about_redis: Vec<_> = chosen.iter().filter(|it| it.contains("Redis")).collect();
    assert_eq!(about_redis, [&"move the payout job queue to Postgres, not to Redis streams"]);
}

#[test]
fn nothing_planted_is_in_the_store_the_cassette_or_anything_printed() {
    let (place, _) = replayed();
    let sessions = examples("sessions");
    let mut seen = Vec::new();
    for args in [
        &["records"][..],
        &["records", "--json"],
        &["records", "export"],
        &["records", "runs", "--json"],
        &["status", "--all"],
        &["status", "--json"],
        &["replay", &sessions, "--cassette", "cassette"],
        &["replay", &sessions, "--dry-run", "--json"],
    ] {
        let output = place.run(args);
        seen.push((format!("{args:?}"), format!("{}{}", output.stdout, output.stderr)));
    }
    for (path, bytes) in place.files() {
        seen.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
    }
    assert!(seen.iter().any(|(place, _)| place.ends_with("annalist.db")));
    for (place, text) in seen {
        for planted in PLANTED {
            assert!(!text.contains(planted), "`{planted}` in {place}");
        }
    }
}

#[test]
fn planted_secrets_are_in_the_sessions() {
    let mut all = String::new();
    super::place::walk(&PathBuf::from(examples("sessions")), &mut |path| {
        all.push_str(&String::from_utf8(read(path)).unwrap());
    });
    for planted in PLANTED {
        assert!(all.contains(planted), "`{planted}` is planted nowhere");
    }
}

#[test]
fn evidence_is_the_very_bytes_of_the_stored_entry() {
    let (place, _) = replayed();
    let sql = place.sql();
    let exported = place.run(&["records", "export"]).stdout;
    let mut checked = 0;
    for line in exported.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let evidence = record["evidence"].as_array().unwrap();
        let quarantined = record["state"] == "quarantined" && record["reason"].is_string();
        assert!(quarantined || !evidence.is_empty(), "{line}");
        for it in evidence {
            let session = record["session"].as_str().unwrap();
            let text: String = sql
                .query_row(
                    "SELECT e.text FROM entries e JOIN sessions s
                        ON e.place = s.no * 4294967296 + ?2 WHERE lower(hex(s.id)) = ?1",
                    rusqlite::params![session, it["entry"].as_i64().unwrap()],
                    |row| row.get(0),
                )
                .unwrap();
            let bytes = |at: usize| it["bytes"][at].as_u64().unwrap() as usize;
            let words = text.get(bytes(0)..bytes(1));
            assert_eq!(words, it["words"].as_str(), "{line}");
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked} pieces of evidence");
}

#[test]
fn why_shows_the_words_the_line_and_who_said_them() {
    let (place, _) = replayed();
    let decisions = place.json(&["records", "--kind", "decision", "--json"]);
    let queue = decisions
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it.to_string().contains("SKIP LOCKED suffices"));
    let id = queue.unwrap()["id"].as_str().unwrap();
    let why = place.run(&["why", id]);
    assert_eq!(why.code, 0, "{}", why.stderr);
    for words in ["SKIP LOCKED suffices", "said by person", "claude-code-queue.jsonl:", "model"] {
        assert!(why.stdout.contains(words), "no `{words}` in {}", why.stdout);
    }
    let marked = ">>no, take Postgres after all: one thing less to run, and SKIP LOCKED suffices";
    assert!(why.stdout.contains(marked) && why.stdout.contains("<<"), "{}", why.stdout);
    let as_json = place.json(&["why", &id[..12], "--json"]);
    assert_eq!(as_json["id"], id);
    assert!(as_json["sources"][0]["text"].is_string());
}

#[test]
fn cassette_asked_twice_adds_nothing_and_changes_nothing() {
    let (place, first) = replayed();
    let before = place.run(&["records", "export"]).stdout;
    let sessions = examples("sessions");
    let again = place.json(&["replay", &sessions, "--cassette", "cassette", "--json"]);
    balanced(&again);
    assert_eq!(count(&again, "/calls"), 0);
    assert_eq!(again["coverage"], first["coverage"]);
    assert_eq!(again["records"], first["records"]);
    assert_eq!(again["quarantined"], first["quarantined"]);
    assert_eq!(place.run(&["records", "export"]).stdout, before, "byte for byte");
}

#[test]
fn same_input_and_cassette_give_the_same_records_anywhere() {
    let ((one, _), (other, _)) = (replayed(), replayed());
    let export = |place: &Place| -> Vec<String> {
        place.run(&["records", "export"]).stdout.lines().map(timeless).collect()
    };
    assert_eq!(export(&one), export(&other), "in the same order too");
}

#[test]
fn secret_that_a_model_says_is_kept_nowhere() {
    // Once as it is, once in escapes that only JSON undoes.
    let plain = "sk-proj-ROOFroofROOFroof0123456789abcdefgh";
    let escaped: String = plain.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    for said in [plain.to_owned(), escaped] {
        let arguments = format!(
            "{{\"decisions\":[],\"discussions\":[],\"attempts\":[],\"requests\":[{{\"intent\":\
             \"choose depot-0\",\"target\":null,\"summary\":\"damp-0 ruins paper, key {said}\"}}]}}"
        );
        let call =
            serde_json::json!({"function": {"name": "write_extracted", "arguments": arguments}});
        let body = serde_json::json!({"choices": [{
            "message": {"tool_calls": [call]}, "finish_reason": "tool_calls",
        }]});
        let stub = Stub::new(move |_| Answer::Status(200, "", body.to_string()));
        let place = Place::with_endpoint(stub.url());
        place.write("s.jsonl", super::input::claude(0..1));
        place.json(&["replay", "s.jsonl", "--json"]);
        let seen = place.run(&["records", "export"]).stdout;
        assert!(seen.contains("ruins paper"), "{seen}");
        for (path, bytes) in place.files() {
            let text = String::from_utf8_lossy(&bytes);
            // The journal keeps the arguments as text, whose own backslashes are escaped again.
            let found =
                [plain, &said, &said.replace('\\', "\\\\")].iter().any(|form| text.contains(*form));
            assert!(!found, "in {}", path.display());
        }
        assert!(!seen.contains(plain));
    }
}
