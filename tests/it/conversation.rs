//! Conversation memory as a command.

use super::place::{Place, count};
use super::shared::{beside, json_of};
use super::stub::{Answer, Stub};
use serde_json::{Value, json};

/// The strategies and the names of their limits.
const LIMITS: [(&str, &str); 4] = [
    ("buffer", "max_messages"),
    ("window", "window_size"),
    ("summary", "summary_threshold"),
    ("entity", "max_entities"),
];

/// A chat with system messages at the beginning and in the middle.
const CHAT: &str = r#"[
  {"role": "system", "content": "S1"},
  {"role": "user", "content": "We take Postgres. Ask ada@example.com."},
  {"role": "assistant", "content": "Good."},
  {"role": "system", "content": "S2"},
  {"role": "user", "content": "And Postgres needs a backup."}
]"#;

fn contents(shown: &Value) -> Vec<&str> {
    shown.as_array().unwrap().iter().map(|it| it["content"].as_str().unwrap()).collect()
}

#[test]
fn a_conversation_is_shown_as_a_model_would_see_it() {
    let place = Place::new();
    place.write("chat.json", CHAT);
    let show =
        |args: &[&str]| place.json(&[&["conversation", "--json", "chat.json"], args].concat());
    let buffer = show(&["--strategy", "buffer"]);
    let asked = "We take Postgres. Ask <EMAIL>.";
    let last = "And Postgres needs a backup.";
    assert_eq!(contents(&buffer), ["S1", asked, "Good.", "S2", last]);
    assert_eq!(buffer[0], json!({"role": "system", "content": "S1"}));
    let buffer = show(&["--strategy", "buffer", "--limit", "4"]);
    assert_eq!(contents(&buffer), ["S1", "Good.", "S2", last]);
    let window = show(&["--strategy", "window", "--limit", "2"]);
    assert_eq!(contents(&window), ["S1", "S2", "Good.", last]);
    let entity = show(&["--strategy", "entity"]);
    let known = "Known entities:\n- Postgres: {\"mentions\": 2}";
    assert_eq!(contents(&entity), ["S1", "S2", known, asked, "Good.", last]);
    let summary = show(&["--strategy", "summary", "--limit", "2"]);
    assert_eq!(
        contents(&summary),
        [
            "S1",
            "Previous conversation summary: - user: We take Postgres.\n- assistant: Good.",
            "S2",
            last
        ]
    );
    let cut = show(&["--strategy", "buffer", "--tokens", "38"]);
    assert_eq!(contents(&cut), ["S1", "[… 3 messages left out …]", last]);
}

#[test]
fn a_person_reads_blocks_and_a_table() {
    let place = Place::new();
    place.write("chat.json", CHAT);
    let blocks = place.run(&["conversation", "--strategy", "window", "--limit", "1", "chat.json"]);
    assert_eq!(blocks.stdout, "system: S1\n\nsystem: S2\n\nuser: And Postgres needs a backup.\n");
    assert_eq!(blocks.stderr, "3 shown, about 9 tokens, of 5 read: 2 pinned, 1 kept, 2 evicted\n");
    let table = place.run(&["conversation", "--strategy", "entity", "--check", "chat.json"]);
    insta::assert_snapshot!("conversation_check", table.stdout);
}

#[test]
fn a_strategy_or_limit_that_is_not_allowed_is_refused() {
    let place = Place::new();
    place.write("chat.json", CHAT);
    let refused = |args: &[&str], words: &[&str]| {
        place.run(&[&["conversation", "chat.json"], args].concat()).refused(2, words);
    };
    refused(&["--strategy", "vector"], &["buffer, window, summary, entity"]);
    for (strategy, name) in LIMITS {
        for limit in ["0", "-3"] {
            let words = [name, "at least 1", "allowed are 1 to"];
            refused(&["--strategy", strategy, "--limit", limit], &words);
        }
    }
    refused(&["--limit", "4294967296"], &["allowed are 1 to 4294967295"]);
}

#[test]
fn of_several_conversations_one_is_shown() {
    let place = Place::new();
    let chat =
        |text: &str| format!("{{\"messages\":[{{\"role\":\"user\",\"content\":\"{text}\"}}]}}\n");
    place.write("chats.jsonl", ["one", "two", "three"].map(chat).concat());
    let last = place.run(&["conversation", "--json", "chats.jsonl"]);
    assert_eq!(contents(&last.json()), ["three"]);
    assert!(last.stderr.contains("3 conversations in the file"), "{}", last.stderr);
    let first = place.json(&["conversation", "--json", "--only", "0", "chats.jsonl"]);
    assert_eq!(contents(&first), ["one"]);
    place.run(&["conversation", "--only", "9", "chats.jsonl"]).refused(2, &["no conversation"]);
}

#[test]
fn context_that_a_client_injects_is_no_message() {
    let place = Place::new();
    let session = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sessions/claude-code-queue.jsonl");
    let shown = place.json(&["conversation", "--strategy", "buffer", "--json", session]);
    let shown = shown.as_array().unwrap();
    let roles: Vec<&str> = shown.iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert!(roles.contains(&"user") && roles.contains(&"assistant"));
    assert!(!roles.contains(&"system"));
}

#[test]
fn a_file_that_cannot_be_read_is_one_clear_line() {
    let place = Place::new();
    place.run(&["conversation", "none.json"]).refused(1, &["none.json: cannot be read"]);
    place.write("empty.json", "");
    place.run(&["conversation", "empty.json"]).refused(1, &["empty"]);
    place.write("private.md", "---\nprivate: true\n---\nuser: key\n");
    let hidden = place.run(&["conversation", "private.md", "--format", "plain"]);
    assert_eq!((hidden.code, hidden.stdout.as_str()), (0, ""), "{}", hidden.stderr);
}

/// A chat of a program that says of its messages what it knows.
const NAMED: &str = r#"{"session_id": "s-1", "messages": [
  {"role": "user", "content": "Ann works at Acme", "timestamp": "2026-05-04T06:00:00Z", "token_count": 900,
   "metadata": {"entities": {"Ann": {"type": "person"}, "Acme": {"type": "org"}}}},
  {"role": "assistant", "content": "ok", "metadata": {"entities": ["Ann", "Oslo"]}}
]}"#;

#[test]
fn entities_and_token_counts_of_messages_are_read() {
    let place = Place::new();
    place.write("chat.json", NAMED);
    let known = |name: &str| place.json(&["conversation", "chat.json", "--entity", name]);
    assert_eq!(known("Ann"), json!({"type": "person", "mentions": 2}));
    assert_eq!(known("Oslo"), json!({"mentions": 1}));
    place
        .run(&["conversation", "chat.json", "--entity", "Eve"])
        .refused(1, &["`Eve`", "3 entities"]);
    let refused = ["conversation", "chat.json", "--entity", "Ann", "--strategy", "window"];
    place.run(&refused).refused(2, &["--entity", "window"]);
    let table = place.run(&["conversation", "chat.json", "--check"]).stdout;
    assert!(
        table.lines().any(|line| line.starts_with(" read") && line.ends_with("901")),
        "{table}"
    );
    // A message in another role is no message of a memory: the chat is read as a transcript.
    place.write("chat.json", NAMED.replace("\"assistant\"", "\"tool\""));
    let plain = place.run(&["conversation", "chat.json", "--json"]);
    assert!(plain.stderr.contains("chat.json: metadata and token counts are ignored: messages[1]"));
    assert_eq!(contents(&plain.json()), ["Ann works at Acme"]);
}

#[test]
fn a_memory_is_printed_as_json_and_read_again() {
    let place = Place::new();
    place.write("chat.json", CHAT);
    place.write("named.json", NAMED);
    for (strategy, _) in LIMITS {
        for chat in ["chat.json", "named.json"] {
            let memory = ["conversation", chat, "--memory", "--strategy", strategy, "--limit", "2"];
            let saved = place.run(&memory).stdout;
            place.write("memory.json", &saved);
            assert_eq!(place.run(&["conversation", "memory.json", "--memory"]).stdout, saved);
            let shown = ["conversation", chat, "--json", "--strategy", strategy, "--limit", "2"];
            let again = place.json(&["conversation", "memory.json", "--json"]);
            assert_eq!(again, place.json(&shown), "{strategy} {chat}");
        }
    }
    let limit = ["conversation", "memory.json", "--limit", "3"];
    place.run(&limit).refused(2, &["saved memory", "--limit"]);
    place.write("memory.json", r#"{"memory_type": "window", "messages": [{"role": "user"}]}"#);
    place
        .run(&["conversation", "memory.json"])
        .refused(1, &["memory.json: not a saved", "messages[0]"]);
    let Some(golden) = beside("golden") else { return };
    let golden = json_of(&golden.join("conversation_memory.json"));
    let saved = place.json(&["conversation", "chat.json", "--memory"]);
    for (keys, of) in [("to_json_keys", &saved), ("message_keys", &saved["messages"][0])] {
        for key in golden[keys].as_array().unwrap() {
            assert!(of.get(key.as_str().unwrap()).is_some(), "{keys}: {key}");
        }
    }
}

const BY_MODEL: [&str; 8] =
    ["conversation", "chat.json", "--strategy", "summary", "--limit", "2", "--model", "stub-1"];

#[test]
fn a_model_writes_summaries_that_are_billed_and_paid_once() {
    let stub = Stub::new(|ask| Answer::Words(format!("summary#{}", ask.number)));
    let mut place = Place::with_endpoint(stub.url());
    place.write("chat.json", CHAT);
    let shown = place.run(&[&BY_MODEL[..], &["--json"]].concat());
    let label = "Previous conversation summary: summary#2";
    let last = "And Postgres needs a backup.";
    assert_eq!(contents(&shown.json()), ["S1", label, "S2", last], "{}", shown.stderr);
    assert!(
        shown.stderr.contains("asked about 2 messages in 2 questions: 2 calls"),
        "{}",
        shown.stderr
    );
    let again = place.run(&[&BY_MODEL[..], &["--json"]].concat());
    assert_eq!((again.stdout, stub.count()), (shown.stdout, 2));
    assert!(again.stderr.contains("(2 from the journal): 0 calls"), "{}", again.stderr);
    let status = place.json(&["status", "--json"]);
    let bill = status["bill"].as_array().unwrap();
    let line = bill.iter().find(|it| it["for"] == "summarise").unwrap();
    assert_eq!((count(line, "/calls"), &line["namespace"]), (2, &json!("default")));
    let refused = ["conversation", "chat.json", "--model", "stub-1"];
    place.run(&refused).refused(2, &["--strategy summary", "window"]);
    place.set("ANNALIST__LIMITS__DAY_TOKENS_MAX", "10");
    place.write("chat.json", CHAT.replace("Good.", "Fine."));
    place.run(&BY_MODEL).refused(1, &["no summary was written", "day_tokens_max"]);
}

#[test]
fn an_empty_summary_of_a_model_drops_nothing() {
    let stub = Stub::new(|_| Answer::Words(String::new()));
    let place = Place::with_endpoint(stub.url());
    place.write("chat.json", CHAT);
    let shown = place.run(&[&BY_MODEL[..], &["--json"]].concat());
    assert_eq!(shown.json().as_array().unwrap().len(), 5, "{}", shown.stderr);
    assert!(shown.stderr.contains("summary is empty"), "{}", shown.stderr);
}
